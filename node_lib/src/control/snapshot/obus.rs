//! The tree of upstreams, from both sides: [`KnownObu`] as an RSU knows it, [`KnownChild`] as a
//! relay does.

use std::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::KnownPosition;
use crate::mac::{Mac, NodeId};

/// How an OBU stands to an RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ObuStanding {
    /// Its clients are behind the RSU.
    Attached,
    /// It is attached elsewhere: it may come, or others come through it.
    Standby,
    /// It was here.
    Gone,
}

impl fmt::Display for ObuStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attached => "attached",
            Self::Standby => "standby",
            Self::Gone => "gone",
        })
    }
}

/// An OBU that an RSU knows.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownObu {
    /// Who.
    pub id: NodeId,
    /// How it stands to the RSU.
    pub standing: ObuStanding,
    /// Its upstream, as it says.
    pub upstream: NodeId,
    /// Its address, if the RSU is its upstream.
    pub mac: Option<Mac>,
    /// Relays on the way down to it, the first one first. `None`: there is no way, because one of
    /// them has not said who its upstream is, has fallen silent, or there are too many.
    pub way: Option<Vec<NodeId>>,
    /// It was last heard.
    pub heard_ms: u64,
    /// Its boot count.
    pub boot: u32,
    /// It takes another with each RSU it goes to.
    pub epoch: u32,
    /// Clients it announced.
    pub clients: usize,
    /// All of its announcement is there.
    pub is_complete: bool,
    /// From a heartbeat to its reply, without the time it held it, smoothed.
    pub round_trip_us: Option<u32>,
    /// Something far from what it said before was said in its name, and is not believed yet.
    pub is_contested: bool,
    /// Where it is, if it is in radio range, says so, and that is not too old.
    pub position: Option<KnownPosition>,
}

/// A neighbour that sends through an OBU.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownChild {
    /// Who.
    pub id: NodeId,
    /// Its address.
    pub mac: Mac,
    /// RSUs it sends to through us.
    pub towards: Vec<NodeId>,
    /// It last said, or sent, something through us.
    pub heard_ms: u64,
    /// It has been sending through us since.
    pub since_ms: u64,
}
