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
    /// Seed of everything random in the node. No two nodes may share one, or they speak at the same
    /// moments for ever.
    pub seed: u64,
}

impl Start {
    /// The first start of a node with this radio, of an Ethernet's MTU, and without a TAP. Its seed
    /// is made from the address, so that a simulation repeats and no two nodes share one.
    pub fn new(radio_mac: Mac) -> Self {
        Self {
            id: radio_mac.into(),
            radio_mac,
            radio_mtu: RADIO_MTU,
            tap_mac: None,
            boot: Boot(1),
            seed: seed_of(radio_mac),
        }
    }
}

/// Neighbouring addresses give unlike seeds: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn seed_of(Mac([a, b, c, d, e, f]): Mac) -> u64 {
    let mut seed = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// MTU of a radio that was not told another: that of Ethernet (IEEE 802.3 §3.2.7), which Linux
/// gives every Ethernet-like interface.
pub const RADIO_MTU: usize = 1500;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_nodes_start_with_one_seed() {
        let seeds: BTreeSet<_> =
            (0..=255).map(|n| Start::new(Mac([2, 0, 0, 0, 0, n])).seed).collect();
        assert_eq!(seeds.len(), 256);
        // Nor with seeds that differ in a few bits only.
        let apart = |(a, b): (&u64, &u64)| (a ^ b).count_ones();
        let nearest = seeds.iter().zip(seeds.iter().skip(1)).map(apart).min();
        assert!(nearest > Some(8), "{nearest:?}");
    }
}
