//! What the operator decides about an OBU, in the units the node works with.

use node_lib::messages::ETHERTYPE_DEFAULT;
use node_lib::{Boot, Mac, NodeId};

use crate::{Policy, Thresholds};

/// Settings of one OBU.
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
    /// Defaults for a node with this radio.
    pub fn new(radio_mac: Mac) -> Self {
        Self {
            id: radio_mac.into(),
            radio_mac,
            radio_mtu: 1500,
            ethertype: ETHERTYPE_DEFAULT,
            tap_mac: None,
            boot: Boot(1),
            seed: 0,
            hello_history: 10,
            cached_candidates: 3,
            policy: Policy::default(),
            thresholds: Thresholds::default(),
        }
    }
}
