//! What an RSU runs with: what the operator decides, [`Settings`], and what its start finds.

use std::time::Duration;

use node_lib::{Boot, Mac, NodeId, Start};

use crate::Settings;

/// What one RSU runs with; made by [`Settings::config`].
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
    /// MAC of our own TAP, never taken for a client of an OBU.
    pub tap_mac: Option<Mac>,
    /// Boot count of this start: higher than that of any start before.
    pub boot: Boot,
    /// Seed of everything random in the node.
    pub seed: u64,
    /// Time between heartbeats (`--hello-periodicity`); each is sent up to 10 % earlier or later.
    pub hello_periodicity: Duration,
    /// Clients hear of packets that take more than one frame of the radio and may not be fragmented, so that
    /// they send shorter ones (`--pmtu-discovery`).
    pub pmtu_discovery: bool,
    /// Heartbeats over which a link is judged (`--hello-history`).
    pub hello_history: usize,
    /// Broadcast and multicast sent over the radio, in kB (1,000 bytes) a second, 0 for no limit
    /// (`--group-rate`).
    pub group_rate: u32,
}

impl Config {
    /// The first start of a node with this radio and default settings.
    pub fn new(radio_mac: Mac) -> Self {
        Settings::default().config(&Start::new(radio_mac))
    }
}
