//! What a node finds at its start, [`Start`], how it counts its starts, [`boot`], and which clients
//! it knows again, [`clients`].
//!
//! Beside this stands what the operator decides (`Settings` of each role). Both together make a
//! node's `Config`, by one function per role that daemons and simulations call: neither can run a
//! node the other would not.

pub mod boot;
pub mod clients;

use crate::mac::{Mac, NodeId};
use crate::order::Boot;

/// What one start of a node finds: who it is, its interfaces, and what tells it from other starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Identity; by default the MAC of the radio.
    pub id: NodeId,
    /// MAC of the radio interface.
    pub radio_mac: Mac,
    /// Largest Ethernet payload the radio carries, in bytes.
    pub radio_mtu: usize,
    /// MAC of the node's own TAP; every daemon has one.
    pub tap_mac: Option<Mac>,
    /// Boot count of this start: higher than that of any start before.
    pub boot: Boot,
    /// Seed of everything random in the node.
    pub seed: u64,
}

impl Start {
    /// The first start of a node with this radio, of an Ethernet's MTU, and without a TAP.
    pub fn new(radio_mac: Mac) -> Self {
        Self {
            id: radio_mac.into(),
            radio_mac,
            radio_mtu: RADIO_MTU,
            tap_mac: None,
            boot: Boot(1),
            seed: 0,
        }
    }
}

/// MTU of a radio that was not told another: that of Ethernet (IEEE 802.3 §3.2.7), which Linux
/// gives every Ethernet-like interface.
pub const RADIO_MTU: usize = 1500;
