//! Where a node is, as it tells: [`PositionReport`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a node is. With topic `view`, of a daemon that was given `--position`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PositionReport {
    /// Who says so: `fixed`, `gpsd://HOST:PORT` or `file:PATH`.
    pub source: String,
    /// Whether it is known, and why not.
    pub state: PositionState,
    /// `None`: not known.
    pub fix: Option<Fix>,
    /// Since the last fix came, by the clock of the node; it goes on when that is too old to be
    /// used. `None`: there is none, or it is a fixed value, which does not age.
    pub age_ms: Option<u64>,
    /// Why nothing comes from the source, if nothing does.
    pub fault: Option<String>,
    /// Reports that told of a position, or that there is no fix.
    pub reports: u64,
    /// Lines that were dropped: too long, no JSON, or with values that cannot be.
    pub bad_lines: u64,
}

/// Whether a position is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PositionState {
    /// It is.
    Known,
    /// No report has come yet.
    #[default]
    Waiting,
    /// The receiver has no fix.
    NoFix,
    /// The last fix is too old.
    TooOld,
}

impl fmt::Display for PositionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "known",
            Self::Waiting => "no report has come yet",
            Self::NoFix => "the receiver has no fix",
            Self::TooOld => "the last fix is too old",
        })
    }
}

/// A position, and what was told with it. WGS 84.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fix {
    /// Degrees, north is positive.
    pub latitude_deg: f64,
    /// Degrees, east is positive.
    pub longitude_deg: f64,
    /// Above the ellipsoid.
    pub altitude_hae_m: Option<f64>,
    /// Above mean sea level.
    pub altitude_msl_m: Option<f64>,
    /// Over ground.
    pub speed_mps: Option<f64>,
    /// Course over ground, clockwise from true north.
    pub track_deg: Option<f64>,
    /// Estimated horizontal error.
    pub accuracy_m: Option<f64>,
    /// When, as the receiver says.
    pub at_unix_ms: Option<u64>,
}
