//! RSUs an OBU knows ([`KnownRoute`]), and through whom each could be reached ([`KnownCandidate`]).

use std::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::KnownPosition;
use crate::mac::{Mac, NodeId};

/// How an RSU that is known stands with this OBU, and so why it is not used, if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RouteStanding {
    /// The OBU is attached to it.
    InUse,
    /// It expects us, or is being told that we may come.
    Standby,
    /// It could be used, and is not better by enough, or not for long enough.
    NotBetter,
    /// It did not answer what we said: any other is preferred for a while.
    Shunned,
    /// It, or the neighbour towards it, said goodbye.
    Leaving,
    /// We have just started and still listen: nobody but an RSU in range is sent through.
    Quiet,
    /// It is heard of, and no neighbour can be upstream towards it: each says why.
    NoUpstream,
}

impl fmt::Display for RouteStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "in use",
            Self::Standby => "standby",
            Self::NotBetter => "not better",
            Self::Shunned => "shunned",
            Self::Leaving => "leaving",
            Self::Quiet => "quiet",
            Self::NoUpstream => "no upstream",
        })
    }
}

/// What keeps a neighbour from being upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Obstacle {
    /// Its next heartbeat is overdue by more than an interval. It may be used all the same, after
    /// all others.
    Late,
    /// What we said to the RSU through it was not answered. It may be used all the same, where
    /// there is no other.
    Unanswered,
    /// It, or the RSU, said goodbye.
    Leaving,
    /// It has not proven lately that it hears us: the link works one way only, for all we know.
    OneWay,
    /// It sends through us.
    ThroughUs,
    /// We have just started and still listen.
    Quiet,
    /// What it said of its way is too old to count.
    Stale,
    /// What it advertises is no better than what we advertised: through it frames could come back
    /// to us.
    Infeasible,
    /// It advertises no way, to no RSU: it stands in no route
    /// ([`Snapshot::without_way`](super::Snapshot::without_way)).
    NoWay,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Late => "late",
            Self::Unanswered => "unanswered",
            Self::Leaving => "leaving",
            Self::OneWay => "one-way",
            Self::ThroughUs => "through us",
            Self::Quiet => "quiet",
            Self::Stale => "stale",
            Self::Infeasible => "infeasible",
            Self::NoWay => "no way",
        })
    }
}

/// An RSU that an OBU knows.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownRoute {
    /// Who.
    pub rsu: NodeId,
    /// How it stands with us.
    pub standing: RouteStanding,
    /// The neighbour frames for it go to: ours while we are attached to it, those of others in any
    /// case.
    pub upstream: Option<NodeId>,
    /// Radio hops through that one.
    pub hops: Option<u8>,
    /// Its newest heartbeat, by whatever way, came.
    pub heard_ms: u64,
    /// Its boot count, as that heartbeat had it.
    pub boot: u32,
    /// The number of that heartbeat.
    pub seq: u32,
    /// Between two of its heartbeats.
    pub interval_ms: u64,
    /// OBUs attached to it, as it says.
    pub obus: u16,
    /// So much longer nobody but the RSU itself is sent through. `None`: no longer.
    pub quiet_for_ms: Option<u64>,
    /// So much longer any other RSU is preferred. `None`: it is not shunned.
    pub shunned_for_ms: Option<u64>,
    /// Somebody says that it counts otherwise, and is not believed yet: it may have restarted, or
    /// two RSUs have one id.
    pub is_contested: bool,
    /// Where the RSU is, if it is in radio range, says so, and that is not too old.
    pub position: Option<KnownPosition>,
    /// Who could be upstream, the best first: usable ones before those that are not.
    pub candidates: Vec<KnownCandidate>,
}

/// A neighbour that advertised a way to an RSU, with the figures it is judged by.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownCandidate {
    /// Who.
    pub id: NodeId,
    /// Its address.
    pub mac: Mac,
    /// Frames for this RSU go to it.
    pub is_used: bool,
    /// What keeps it from being used. Empty: nothing does.
    pub obstacles: Vec<Obstacle>,
    /// Radio hops to the RSU through it.
    pub hops: u8,
    /// Expected transmissions to the RSU, by which candidates are ranked: the sum of the following
    /// three.
    pub cost: f64,
    /// From it to the RSU, as it says.
    pub advertised_cost: f64,
    /// From us to it, there and back.
    pub link_cost: f64,
    /// Our share of what it costs that it is a relay.
    pub relay_cost: f64,
    /// By so much it is cheaper than the one in use; dearer, if negative. `None`: none is in use,
    /// or this one is.
    pub margin: Option<f64>,
    /// So much cheaper it has to be to be called better.
    pub margin_needed: Option<f64>,
    /// It has been better by that for so long.
    pub better_for_ms: Option<u64>,
    /// It last said something of its way.
    pub heard_ms: u64,
    /// It last proved that it hears us.
    pub proven_ms: Option<u64>,
    /// Of its last heartbeats, the share that came.
    pub heard_ratio: Option<f64>,
    /// How much speaks for the link having got bad, in nat: from the threshold on it is *fading*.
    pub strain_nat: f64,
    /// How strong it comes in.
    pub signal_dbm: Option<f64>,
    /// How strong it will, half a second from now.
    pub signal_ahead_dbm: Option<f64>,
    /// Its own upstream. `None`: it is the RSU.
    pub via: Option<NodeId>,
    /// Neighbours the RSU reaches through it, as it says.
    pub children: u8,
    /// The longest packet that passes all radios from it to the RSU.
    pub mtu_bytes: u16,
}

/// `via NEIGHBOUR (2 hops): cost 2.10, heard 90 %, strain 0.31, -71 dBm going to -74 [late]`
impl fmt::Display for KnownCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, hops, cost, strain_nat, .. } = self;
        let used = if self.is_used { " in use" } else { "" };
        write!(f, "via {id} ({hops} hops){used}: cost {cost:.2}, ")?;
        match self.heard_ratio {
            Some(ratio) => write!(f, "heard {:.0} %", ratio * 100.0)?,
            None => f.write_str("too young")?,
        }
        write!(f, ", strain {strain_nat:.2}")?;
        if let Some((is, will_be)) = self.signal_dbm.zip(self.signal_ahead_dbm) {
            write!(f, ", {is:.0} dBm going to {will_be:.0}")?;
        }
        let mut gap = " [";
        for obstacle in &self.obstacles {
            write!(f, "{gap}{obstacle}")?;
            gap = ", ";
        }
        if self.obstacles.is_empty() { Ok(()) } else { f.write_str("]") }
    }
}
