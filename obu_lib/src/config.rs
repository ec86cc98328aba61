//! What an OBU runs with: what the operator decides, [`Settings`], and what its start finds.

use node_lib::{Boot, Mac, NodeId, Start};

use crate::{Policy, Settings, Thresholds};

/// What one OBU runs with; made by [`Settings::config`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Identity; by default the MAC of the radio.
    pub id: NodeId,
    /// MAC of the radio interface.
    pub radio_mac: Mac,
    /// Largest Ethernet payload the radio carries, in bytes.
    pub radio_mtu: usize,
    /// EtherType of our frames.
    pub ethertype: u16,
    /// MAC of our own TAP, announced to the RSU before it first speaks.
    pub tap_mac: Option<Mac>,
    /// Boot count of this start: higher than that of any start before.
    pub boot: Boot,
    /// Seed of everything random in the node.
    pub seed: u64,
    /// Clients hear of packets that take more than one frame of the radio and may not be fragmented, so that
    /// they send shorter ones (`--pmtu-discovery`).
    pub pmtu_discovery: bool,
    /// Heartbeats over which a link is judged (`--hello-history`).
    pub hello_history: usize,
    /// Usable candidates kept ready beside the upstream (`--cached-candidates`).
    pub cached_candidates: usize,
    /// Rules switched off for comparison.
    pub policy: Policy,
    /// When the trend of a link is reason to leave it.
    pub thresholds: Thresholds,
}

impl Config {
    /// The first start of a node with this radio and default settings.
    pub fn new(radio_mac: Mac) -> Self {
        Settings::default().config(&Start::new(radio_mac))
    }
}
