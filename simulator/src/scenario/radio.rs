//! What the air does to frames: [`Radio`], as the file says it.

use serde::Deserialize;

use super::Span;

/// What decides who hears whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Nothing but `[[link]]`.
    #[default]
    Links,
    /// Everybody within a range.
    Disk,
    /// Strength falls with one exponent.
    LogDistance,
    /// Strength falls with one exponent up to a break and with another beyond.
    DualSlope,
}

impl Model {
    /// Its name in a file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Disk => "disk",
            Self::LogDistance => "log-distance",
            Self::DualSlope => "dual-slope",
        }
    }
}

/// The radio channel. What is not named has the default of the model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Radio {
    /// What decides who hears whom.
    pub model: Model,
    /// Everybody so near hears everything (disk).
    pub range_m: Option<f64>,
    /// Share of frames lost within the range (disk).
    pub loss: Option<f64>,
    /// Path-loss exponent (log-distance).
    pub exponent: Option<f64>,
    /// Distance at which the exponent changes (dual-slope).
    pub break_m: Option<f64>,
    /// Exponent up to the break (dual-slope).
    pub near_exponent: Option<f64>,
    /// Exponent beyond it (dual-slope).
    pub far_exponent: Option<f64>,
    /// Transmitted power.
    pub tx_dbm: Option<f64>,
    /// Antenna gain of both ends together.
    pub gain_dbi: Option<f64>,
    /// Means below this are neither heard nor in the way.
    pub floor_dbm: Option<f64>,
    /// How often it is looked where nodes are.
    pub update_every: Option<Span>,
}

impl Radio {
    /// Each number: its name, its value, the models it belongs to, its least and its greatest value.
    pub(super) fn numbers(&self) -> Vec<(&'static str, Option<f64>, &'static [Model], f64, f64)> {
        use Model::{Disk, DualSlope, LogDistance};
        const ANY: &[Model] = &[Disk, LogDistance, DualSlope];
        const SLOPES: &[Model] = &[LogDistance, DualSlope];
        vec![
            ("range_m", self.range_m, &[Disk], 1.0, 10_000.0),
            ("loss", self.loss, &[Disk], 0.0, 1.0),
            ("exponent", self.exponent, &[LogDistance], 1.0, 6.0),
            ("break_m", self.break_m, &[DualSlope], 1.0, 10_000.0),
            ("near_exponent", self.near_exponent, &[DualSlope], 1.0, 6.0),
            ("far_exponent", self.far_exponent, &[DualSlope], 1.0, 6.0),
            ("tx_dbm", self.tx_dbm, SLOPES, -30.0, 40.0),
            ("gain_dbi", self.gain_dbi, SLOPES, -30.0, 40.0),
            ("floor_dbm", self.floor_dbm, SLOPES, -120.0, 0.0),
            ("update_every", self.update_every.map(|span| span.0.as_secs_f64()), ANY, 0.001, 10.0),
        ]
    }
}
