//! What the operator decides about an RSU.

use std::ops::RangeInclusive;
use std::time::Duration;

use node_lib::messages::ETHERTYPE_DEFAULT;
use node_lib::settings::HELLO_HISTORY;

/// Time between heartbeats.
pub const HELLO_PERIODICITY: Duration = Duration::from_millis(100);

/// Values `--hello-periodicity` takes, in milliseconds.
pub const HELLO_PERIODICITY_RANGE_MS: RangeInclusive<u64> = 10..=10_000;

/// Broadcast and multicast sent over the radio, in kB a second.
pub const GROUP_RATE: u32 = 128;

/// Values `--group-rate` takes: the highest is 64 bytes a microsecond.
pub const GROUP_RATE_RANGE: RangeInclusive<i64> = 0..=64_000;

/// What the operator decides about an RSU; the default is what a daemon does that is told nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Settings {
    /// EtherType of our frames (`--ethertype`).
    pub ethertype: u16,
    /// Time between heartbeats (`--hello-periodicity`); each is sent up to 10 % earlier or later.
    pub hello_periodicity: Duration,
    /// Clients hear of packets that take more than one frame of the radio and may not be
    /// fragmented, so that they send shorter ones (`--pmtu-discovery`).
    pub pmtu_discovery: bool,
    /// Neighbours are told where the node is, where that is known (`--share-position`).
    #[cfg_attr(feature = "serde", serde(default))]
    pub share_position: bool,
    /// Heartbeats over which a link is judged (`--hello-history`).
    pub hello_history: usize,
    /// Broadcast and multicast sent over the radio, in kB (1,000 bytes) a second; 64 bytes are
    /// added to each frame. Twice as much may go at once. 0: no limit (`--group-rate`).
    pub group_rate: u32,
    /// What was sent the old way of an OBU that lost its upstream goes the new one as well. Costs a
    /// copy of each frame.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rerouting: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ethertype: ETHERTYPE_DEFAULT,
            hello_periodicity: HELLO_PERIODICITY,
            pmtu_discovery: false,
            share_position: false,
            hello_history: HELLO_HISTORY,
            group_rate: GROUP_RATE,
            rerouting: true,
        }
    }
}
