//! Who is in radio range: [`KnownNeighbour`].

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{KnownPosition, Obstacle};
use crate::mac::{Mac, NodeId};

/// A node in radio range.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownNeighbour {
    /// Who.
    pub id: NodeId,
    /// Its address.
    pub mac: Mac,
    /// Its boot count: another one tells of a restart.
    pub boot: Option<u32>,
    /// A control frame of it was last heard.
    pub heard_ms: u64,
    /// Of its last heartbeats, the share that did not come.
    pub loss_rx_ratio: Option<f64>,
    /// Of our questions, the share to which no answer came: lost there or back.
    pub loss_round_trip_ratio: Option<f64>,
    /// From a question to its answer, smoothed.
    pub round_trip_us: Option<u32>,
    /// How strong it comes in.
    pub signal_dbm: Option<f64>,
    /// How strong it will, half a second from now.
    pub signal_ahead_dbm: Option<f64>,
    /// It last proved that it hears us: both directions work. `None`: it never did.
    pub proven_ms: Option<u64>,
    /// Questions in a row without an answer.
    pub unanswered: Option<u8>,
    /// Expected transmissions until a frame is through and answered.
    pub link_cost: Option<f64>,
    /// Frames of ours go to it.
    pub is_upstream: bool,
    /// Frames of it go through us.
    pub is_child: bool,
    /// Where it is, if it says so and that is not too old.
    pub position: Option<KnownPosition>,
}

impl KnownNeighbour {
    /// What keeps one that stands in no route from being upstream.
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let through_us = self.is_child.then_some(Obstacle::ThroughUs);
        [Some(Obstacle::NoWay), through_us].into_iter().flatten().collect()
    }
}
