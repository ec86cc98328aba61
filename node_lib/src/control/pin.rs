//! Clients that an operator puts behind an OBU, whatever is heard of them ([`Pin`]).

use crate::mac::{Mac, NodeId};
use crate::messages::control::announcement::Client;

/// What an operator wants of the pins of an RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// The client is behind this OBU, as long as the OBU is attached to this RSU, until it is
    /// unpinned or pinned elsewhere.
    Put {
        /// Who.
        client: Client,
        /// Where.
        obu: NodeId,
    },
    /// Clients are where they are heard again: all, or those with this address.
    Take(Option<Mac>),
}

/// Why a client is not pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPin {
    /// Behind an OBU are its own clients and no others.
    #[error("clients are pinned at road-side units only: a vehicle sends all it has one way")]
    NotHere,
    /// There is no room for another.
    #[error("{0} clients are pinned already, and no more can be")]
    Full(usize),
}
