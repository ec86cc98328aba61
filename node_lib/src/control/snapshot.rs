//! How a node stands, as plain data for whoever looks inside: [`Snapshot`].
//!
//! It is made on request, from tables the node has anyway, and never on the way of a packet. What
//! is in it is what an operator asks: who am I, am I well, who is around, through whom could I send
//! and why not, who is behind me. A control socket, a web page and a recording show the same.
//!
//! * Every figure has its unit at the end of its name. Costs have none: they are expected
//!   transmissions.
//! * What ends in `_ms` and is no span is an *age*: so long before the snapshot.
//! * What is not known is `None`, `null` in JSON, and never 0.
//! * With the feature `serde` all of it can be written and read: ids and addresses are strings,
//!   choices are words in kebab-case. A reader must expect fields it does not know.

mod clients;
mod neighbours;
mod obus;
mod position;
mod process;
mod routes;

use std::borrow::Cow;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::control::deadline::Deadline;
use crate::mac::{Mac, NodeId};
use crate::time::Timestamp;
pub use clients::{ClientPort, KnownClient, Pinned};
pub use neighbours::KnownNeighbour;
pub use obus::{KnownChild, KnownObu, ObuStanding};
pub use position::KnownPosition;
pub use process::{Counts, Groups, InterfaceState, View, WiderPort};
pub use routes::{KnownCandidate, KnownRoute, Obstacle, RouteStanding};

/// What a node is to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NodeRole {
    /// A vehicle's.
    Obu,
    /// A road-side unit.
    Rsu,
    /// A node that says nothing of itself.
    #[default]
    Other,
}

/// A node at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// Who.
    pub id: NodeId,
    /// What it is to the others.
    pub role: NodeRole,
    /// Its boot count.
    pub boot: Option<u32>,
    /// Its radio, as the control plane knows it.
    pub air: Option<RadioState>,
    /// Where it is, if it was told.
    pub position: Option<KnownPosition>,
    /// It has said goodbye.
    pub is_leaving: bool,
    /// What it does next by itself.
    pub waits_for: Option<WaitsFor>,
    /// Where an OBU is attached.
    pub attached: Option<Attached>,
    /// The RSU an OBU may go to next, and has told so.
    pub standby: Option<StandbyRsu>,
    /// Who is in radio range, by MAC.
    pub neighbours: Vec<KnownNeighbour>,
    /// RSUs known to an OBU, by id, with every neighbour that could be upstream.
    pub routes: Vec<KnownRoute>,
    /// Clients behind the TAP; those behind OBUs too, for an RSU. By VLAN and MAC.
    pub clients: Vec<KnownClient>,
    /// OBUs an RSU knows, by id.
    pub obus: Vec<KnownObu>,
    /// Neighbours that send through an OBU, by MAC.
    pub children: Vec<KnownChild>,
}

impl Snapshot {
    /// Of a node of which no more is known.
    pub fn of(id: NodeId, role: NodeRole) -> Self {
        Self { id, role, ..Self::default() }
    }

    /// Neighbours of an OBU that stand in no route: they advertise no way to any RSU. With the
    /// candidates of all routes these are all neighbours.
    pub fn without_way(&self) -> impl Iterator<Item = &KnownNeighbour> {
        let is_candidate = |mac: Mac| {
            let mut candidates = self.routes.iter().flat_map(|route| &route.candidates);
            candidates.any(|candidate| candidate.mac == mac)
        };
        let ours = if self.role == NodeRole::Obu { &self.neighbours[..] } else { &[] };
        ours.iter().filter(move |neighbour| !is_candidate(neighbour.mac))
    }
}

/// What a node does next by itself, as long as nothing comes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct WaitsFor {
    /// When; 0: it is due.
    pub in_ms: u64,
    /// What, in a few words for people: they may change with any version.
    pub reason: Cow<'static, str>,
}

impl WaitsFor {
    /// This deadline.
    pub fn of(now: Timestamp, deadline: Deadline) -> Self {
        Self { in_ms: span_ms(deadline.at.since(now)), reason: Cow::Borrowed(deadline.reason) }
    }
}

/// A radio, as the control plane knows it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct RadioState {
    /// Its address.
    pub mac: Mac,
    /// The longest Ethernet payload it carries.
    pub mtu_bytes: usize,
    /// The EtherType of our frames.
    pub ethertype: u16,
    /// It can send.
    pub is_up: bool,
    /// OBUs that share it with us, for all we know.
    pub obus: Option<u16>,
    /// Heartbeats heard or sent each second, as if nobody held back.
    pub heartbeats_per_s: Option<f64>,
    /// It is so full of them that relays hold back.
    pub is_full: Option<bool>,
    /// An RSU sends one each so many ms: rarer than it was told to where it has many OBUs for that,
    /// or its channel is full. An OBU says it of each RSU: [`KnownRoute::interval_ms`].
    pub interval_ms: Option<u64>,
    /// So many per cent of the time its channel was busy lately, as an RSU's radio tells.
    pub busy_percent: Option<u8>,
}

/// Where an OBU is attached.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Attached {
    /// The RSU.
    pub rsu: NodeId,
    /// The neighbour frames are sent to.
    pub upstream: NodeId,
    /// Its address.
    pub upstream_mac: Mac,
    /// Radio hops to the RSU.
    pub hops: u8,
    /// The upstream is the same since.
    pub since_ms: u64,
    /// The upstream last said something of its way.
    pub heard_ms: u64,
    /// The longest packet that passes all radios on the way.
    pub mtu_bytes: u16,
    /// The RSU has acknowledged our clients, all of them.
    pub is_acknowledged: bool,
    /// It has not answered six words in a row: it, or the way to it, does not work for us.
    pub is_unanswered: bool,
    /// The upstream is in doubt: frames go another way as well.
    pub is_doubted: bool,
}

/// The RSU an OBU may go to next.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct StandbyRsu {
    /// Who.
    pub rsu: NodeId,
    /// It has acknowledged that we may come.
    pub is_acknowledged: bool,
}

/// How long ago, in milliseconds.
pub fn age_ms(now: Timestamp, at: Timestamp) -> u64 {
    span_ms(now.since(at))
}

/// A span in milliseconds.
pub fn span_ms(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Rounded to a thousandth: what is beyond is noise, and is not to be printed.
pub fn milli(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
