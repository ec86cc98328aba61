//! What is called fading, strong, soon of no use, clearly better: [`Thresholds`].

use std::time::Duration;

/// When the trend of a link is reason to leave it.
///
/// The defaults were found by experiment (`docs/performance.md`, "How the thresholds were found"),
/// and are here to be varied in experiments; the daemons have no options for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Thresholds {
    /// An upstream is fading when the evidence that its link got bad
    /// ([`crate::control::link::trend::LossCusum`]) weighs so much, in 1/1000 nat.
    pub fading_millinats: u32,
    /// An alternative is strong when at least so many per cent of the last hellos were heard.
    pub strong_percent: u32,
    /// Time the signal is extrapolated by, where the radio reports one.
    pub signal_ahead: Duration,
    /// An alternative is soon clearly stronger when it will be by so much, and by half of it is
    /// already, in 1/100 dB.
    pub signal_margin_cdb: i32,
    /// The trend must say so for this long …
    pub trend_for: Duration,
    /// … and is not listened to for this long after a change.
    pub rest_for: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            fading_millinats: 9000,
            strong_percent: 80,
            signal_ahead: Duration::from_millis(500),
            signal_margin_cdb: 1200,
            trend_for: Duration::from_millis(100),
            rest_for: Duration::from_secs(1),
        }
    }
}
