//! What the operator decides about a node of either role: defaults and ranges, in one place.
//!
//! Command lines, scenarios of the simulator and the libraries take them from here, from
//! `obu_lib::settings` and from `rsu_lib::settings`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Heartbeats over which a link is judged: a second of them, at the default interval.
pub const HELLO_HISTORY: usize = 10;

/// Values `--hello-history` takes: 64 are kept, one bit each.
pub const HELLO_HISTORY_RANGE: RangeInclusive<u64> = 1..=64;

/// Values `--ethertype` takes: smaller ones are lengths (IEEE 802.3 §3.2.6).
pub const ETHERTYPE_RANGE: RangeInclusive<u64> = 0x0600..=0xffff;

/// Values `--coalesce` and `--busy-poll` take, in microseconds.
pub const WAIT_RANGE_US: RangeInclusive<u64> = 0..=1000;

/// What the operator decides about the loop that drives a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopSettings {
    /// Small frames that wait for the same neighbour leave in one (`--bundles`).
    pub bundles: bool,
    /// How long to let frames gather while there is traffic (`--coalesce`).
    pub coalesce: Duration,
    /// How long to stay awake for the answer to a frame (`--busy-poll`).
    pub busy_poll: Duration,
}

impl LoopSettings {
    /// What a daemon does that is told nothing.
    pub const DEFAULT: Self = Self {
        bundles: true,
        coalesce: Duration::from_micros(30),
        busy_poll: Duration::from_micros(100),
    };
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
