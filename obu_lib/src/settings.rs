//! What the operator decides about an OBU.

use std::ops::RangeInclusive;

use node_lib::messages::ETHERTYPE_DEFAULT;
use node_lib::settings::HELLO_HISTORY;

use crate::{Policy, Thresholds};

/// Candidates kept ready beside the upstream.
pub const CACHED_CANDIDATES: usize = 3;

/// Values `--cached-candidates` takes.
pub const CACHED_CANDIDATES_RANGE: RangeInclusive<u64> = 0..=16;

/// What the operator decides about an OBU; the default is what a daemon does that is told nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Settings {
    /// EtherType of our frames (`--ethertype`).
    pub ethertype: u16,
    /// Clients hear of packets that take more than one frame of the radio and may not be
    /// fragmented, so that they send shorter ones (`--pmtu-discovery`).
    pub pmtu_discovery: bool,
    /// Neighbours are told where the node is, where that is known (`--share-position`).
    #[cfg_attr(feature = "serde", serde(default))]
    pub share_position: bool,
    /// Heartbeats over which a link is judged (`--hello-history`).
    pub hello_history: usize,
    /// Usable candidates kept ready beside the upstream (`--cached-candidates`).
    pub cached_candidates: usize,
    /// Rules switched off for comparison; no flag does that.
    pub policy: Policy,
    /// When the trend of a link is reason to leave it; no flag changes that.
    pub thresholds: Thresholds,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ethertype: ETHERTYPE_DEFAULT,
            pmtu_discovery: false,
            share_position: false,
            hello_history: HELLO_HISTORY,
            cached_candidates: CACHED_CANDIDATES,
            policy: Policy::default(),
            thresholds: Thresholds::default(),
        }
    }
}
