//! A radio channel that follows from where nodes are: [`Radio`].
//!
//! Set with [`World::set_radio`](crate::sim::World::set_radio); nodes stand where
//! [`World::place`](crate::sim::World::place) puts them or move as
//! [`World::follow`](crate::sim::World::follow) says. Powers are in dBm at 5.9 GHz.

pub(in crate::sim) mod earshot;
mod grid;
pub mod path_loss;

use std::time::Duration;

use path_loss::PathLoss;

/// What the channel between any two places does to a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Radio {
    /// Mean strength by distance.
    pub path_loss: PathLoss,
    /// Powers and thresholds.
    pub budget: Budget,
    /// How a frame gets on the air.
    pub access: Access,
    /// How often it is looked where nodes are.
    pub update_every: Duration,
}

/// Powers and thresholds of every radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Transmitted, in dBm.
    pub tx_dbm: f64,
    /// Antenna gain of both ends together, in dBi.
    pub gain_dbi: f64,
    /// Means below this are neither heard nor in the way.
    pub floor_dbm: f64,
}

impl Budget {
    /// 20 dBm and 3 dB of antennas, the usual 23 dBm of EIRP (half of what ETSI EN 302 571 allows a
    /// vehicle).
    pub const VEHICLE: Self = Self { tx_dbm: 20.0, gain_dbi: 3.0, floor_dbm: -99.0 };
}

/// How a frame gets on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// At once: frames take no air and cannot collide. For tests of pure logic.
    Instant {
        /// Time under way, at least.
        delay: Duration,
        /// Added to it per frame, uniformly from zero to this; the same for all who hear it.
        jitter: Duration,
    },
}

impl Access {
    /// 0.5 to 1 ms under way, as [`Link::CLEAN`](crate::sim::Link::CLEAN).
    pub const INSTANT: Self =
        Self::Instant { delay: Duration::from_micros(500), jitter: Duration::from_micros(500) };
}

/// A vehicle at 130 km/h moves 3.6 m meanwhile.
const UPDATE_EVERY: Duration = Duration::from_millis(100);

impl Radio {
    /// Everyone within the range hears everything but this share of frames.
    pub const fn disk(range_m: f64, loss: f64) -> Self {
        Self {
            path_loss: PathLoss::Disk { range_m, loss },
            budget: Budget::VEHICLE,
            access: Access::INSTANT,
            update_every: UPDATE_EVERY,
        }
    }

    /// Mean strength at this distance, in dBm.
    pub fn mean_dbm(&self, distance_m: f64) -> f64 {
        let Budget { tx_dbm, gain_dbi, .. } = self.budget;
        tx_dbm + gain_dbi - self.path_loss.loss_db(distance_m)
    }

    /// Nobody farther away than this is ever looked at, in metres.
    pub fn reach_m(&self) -> f64 {
        let Budget { tx_dbm, gain_dbi, floor_dbm } = self.budget;
        self.path_loss.distance_m(tx_dbm + gain_dbi - floor_dbm)
    }

    /// Probability that a frame sent over this distance is received, when nobody disturbs it.
    pub fn delivery(&self, distance_m: f64) -> f64 {
        match self.path_loss {
            PathLoss::Disk { range_m, loss } if distance_m <= range_m => 1.0 - loss,
            PathLoss::Disk { .. } => 0.0,
            _ if self.mean_dbm(distance_m) >= self.budget.floor_dbm => 1.0,
            _ => 0.0,
        }
    }
}
