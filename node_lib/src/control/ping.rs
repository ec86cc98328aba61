//! What an operator asks a node over the radio ([`Ping`]), and what became of it ([`Echoed`]).

use crate::mac::{Mac, NodeId};
use crate::messages::control::echo::Verdict;

/// What an operator asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Id of a node, or address of a client.
    pub target: Mac,
    /// Hops it may go: 1 asks whoever comes first on the way.
    pub hop_limit: u8,
    /// Tells the answer from others; drawn by whoever drives the node.
    pub nonce: u32,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Echoed {
    /// Of the question.
    pub nonce: u32,
    /// What the last on the path says.
    pub verdict: Verdict,
    /// This node first, then everybody the question came to.
    pub path: Vec<NodeId>,
    /// From question to answer; 0 if this node has answered itself.
    pub round_trip_us: u64,
}
