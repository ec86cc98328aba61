//! Where a node is: [`KnownPosition`].

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::messages::control::position::Coordinates;

/// Where a node is, or says that it is. WGS 84.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownPosition {
    /// Degrees, north is positive.
    pub latitude_deg: f64,
    /// Degrees, east is positive.
    pub longitude_deg: f64,
    /// How far off it may be.
    pub accuracy_m: Option<f64>,
    /// It was there so long ago. `None`: it does not move.
    pub age_ms: Option<u64>,
}

impl KnownPosition {
    /// These coordinates, so old.
    pub fn new(at: Coordinates, age_ms: Option<u64>) -> Self {
        Self {
            latitude_deg: at.latitude_deg(),
            longitude_deg: at.longitude_deg(),
            accuracy_m: at.accuracy_m(),
            age_ms,
        }
    }
}
