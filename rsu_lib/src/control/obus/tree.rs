//! The tree of upstreams, from which the ways down are made.
//!
//! Each OBU says who its upstream is. That is one edge; followed upwards, edges lead to the RSU,
//! and the other way round they are the way down ([`node_lib::messages::way`]). When a relay has
//! another upstream, its edge changes, and with it the ways to all behind it: they need say
//! nothing.
//!
//! The upstreams of OBUs cannot form a circle (`docs/architecture.md`, "Why it does not loop").
//! Words of two OBUs may come in another order than they were said, and so what is known of them
//! may. An edge that would close a circle is refused, and the word that said so is not answered; it
//! will be repeated, when the word it overtook has come.

use std::collections::BTreeSet;

use arrayvec::ArrayVec;
use node_lib::control::next_hop::NextHop;
use node_lib::messages::way::{LABEL_LEN, LABELS_MAX, RELAYS_MAX};
use node_lib::messages::{self, Label};
use node_lib::{Mac, NodeId};

use super::{Obus, Standing};

/// Radio hops of the longest way.
pub(crate) const HOPS_MAX: usize = RELAYS_MAX as usize + 1;

/// Who an OBU's upstream is, as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The upstream.
    pub(crate) via: NodeId,
    /// The OBU's address, if we are its upstream: where its words came from, and what is for it
    /// goes to.
    pub(crate) mac: Option<Mac>,
    /// The longest packet of the OBU's radio, in bytes.
    pub(crate) mtu: u16,
}

/// The way down to an OBU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WayDown {
    /// The first relay, or the OBU itself; and the longest packet that passes all radios on the
    /// way.
    pub(crate) first: NextHop,
    labels: ArrayVec<[u8; LABEL_LEN], LABELS_MAX>,
    /// Relays, the first among them.
    relays: u8,
}

/// Why there is no way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoWay {
    /// An OBU on it has not said who its upstream is, or has fallen silent.
    Unknown,
    /// It has more than [`HOPS_MAX`] hops.
    TooLong,
}

impl WayDown {
    /// As it stands in what is sent to the first.
    pub(crate) fn as_sent(&self) -> messages::Way<'_> {
        messages::Way::new(self.relays, &self.labels).unwrap_or_default()
    }

    /// Radio hops.
    pub(crate) fn hops(&self) -> u8 {
        self.relays + 1
    }
}

impl Obus {
    /// The way to this OBU.
    pub(crate) fn way(&self, obu: NodeId) -> Result<WayDown, NoWay> {
        let known = self.by_id.get(&obu).ok_or(NoWay::Unknown)?;
        self.way_by(known.edge)
    }

    /// The way to an OBU with this edge, whatever is known of it. It may lead through one that has
    /// said goodbye, or went to another RSU. That one still passes on what is under way, and those
    /// behind it have just this moment to find another way. It leads through none that fell silent.
    pub(crate) fn way_by(&self, edge: Edge) -> Result<WayDown, NoWay> {
        // From the OBU's upstream to the first relay.
        let mut relays = ArrayVec::<NodeId, { HOPS_MAX - 1 }>::new();
        let mut edge = edge;
        let mut mtu = edge.mtu;
        let first = loop {
            if let Some(mac) = edge.mac {
                break mac;
            }
            if relays.contains(&edge.via) {
                // Through one that has left, and was here before.
                return Err(NoWay::Unknown);
            }
            relays.try_push(edge.via).map_err(|_| NoWay::TooLong)?;
            let relay = self.by_id.get(&edge.via).filter(|relay| relay.passes_on);
            edge = relay.ok_or(NoWay::Unknown)?.edge;
            mtu = mtu.min(edge.mtu);
        };
        let beyond = relays.iter().rev().skip(1);
        Ok(WayDown {
            first: NextHop { mac: first, mtu },
            relays: u8::try_from(relays.len()).unwrap_or(RELAYS_MAX),
            labels: beyond.map(|relay| Label::of(*relay).0).collect(),
        })
    }

    /// Relays on the way down to an OBU with this edge, the first one first; `None` if there is no
    /// way.
    pub(super) fn relays(&self, edge: Edge) -> Option<Vec<NodeId>> {
        self.way_by(edge).ok()?;
        let mut relays = Vec::new();
        let mut edge = edge;
        while edge.mac.is_none() && relays.len() < HOPS_MAX {
            relays.push(edge.via);
            edge = self.by_id.get(&edge.via)?.edge;
        }
        relays.reverse();
        Some(relays)
    }

    /// Relays on the way down to an OBU, the first one first; `None` if there is no way.
    pub(crate) fn relays_to(&self, obu: NodeId) -> Option<Vec<NodeId>> {
        self.relays(self.by_id.get(&obu)?.edge)
    }

    /// The way to `obu` is one to `relay` first, or they are the same.
    pub(super) fn leads_through(&self, obu: NodeId, relay: NodeId) -> bool {
        let mut at = obu;
        for _ in 0..HOPS_MAX {
            match self.by_id.get(&at) {
                _ if at == relay => return true,
                Some(known) if known.edge.mac.is_none() => at = known.edge.via,
                _ => return false,
            }
        }
        false
    }

    /// The address of an OBU that sends to us without a relay.
    pub(crate) fn mac_of(&self, obu: NodeId) -> Option<Mac> {
        self.by_id.get(&obu)?.edge.mac
    }

    /// This OBU sends to us without a relay, from this address.
    pub(crate) fn is_child(&self, obu: NodeId, mac: Mac) -> bool {
        self.by_id.get(&obu).is_some_and(|known| known.edge.mac == Some(mac))
    }

    /// There is a way to this OBU.
    pub(crate) fn is_reached(&self, obu: NodeId) -> bool {
        self.way(obu).is_ok()
    }

    /// With this edge the ways to `obu` and to its upstream would be ways to each other.
    pub(super) fn closes_circle(&self, obu: NodeId, edge: Edge) -> bool {
        let mut at = edge;
        for _ in 0..=self.by_id.len() {
            if at.mac.is_some() {
                return false;
            }
            if at.via == obu {
                return true;
            }
            match self.by_id.get(&at.via).filter(|known| known.leads_on()) {
                Some(next) => at = next.edge,
                None => return false,
            }
        }
        true
    }

    /// OBUs that others are reached through.
    pub(crate) fn count_relays(&self) -> u32 {
        let here = self.by_id.values().filter(|known| known.standing != Standing::Gone);
        let behind_others = here.filter(|known| known.edge.mac.is_none());
        let relays: BTreeSet<NodeId> = behind_others.map(|known| known.edge.via).collect();
        u32::try_from(relays.len()).unwrap_or(u32::MAX)
    }

    /// Where to send what is for all: to nobody, to the only neighbour, or to all in earshot.
    pub(crate) fn all(&self) -> Option<NextHop> {
        let children = self.by_id.values().filter(|known| known.standing != Standing::Gone);
        NextHop::for_all(
            children
                .filter_map(|known| known.edge.mac.map(|mac| NextHop { mac, mtu: known.edge.mtu })),
        )
    }
}
