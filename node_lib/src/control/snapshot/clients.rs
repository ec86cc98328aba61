//! Who is behind a node: [`KnownClient`].

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::mac::{Mac, NodeId};

/// Behind which port a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ClientPort {
    /// The node's own TAP.
    Tap,
    /// An OBU, wherever it is.
    Obu,
}

/// Where an operator has put a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Pinned {
    /// Behind this OBU.
    pub obu: NodeId,
    /// The OBU is attached to this RSU: that is where its frames go, whatever is heard.
    pub is_in_effect: bool,
}

/// A MAC address behind a TAP.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct KnownClient {
    /// Its address.
    pub mac: Mac,
    /// Its VLAN; 0 without a tag.
    pub vlan: u16,
    /// Where it is.
    pub port: ClientPort,
    /// The OBU it is behind, if that is its port.
    pub obu: Option<NodeId>,
    /// Heard, or refreshed by its OBU: it is forgotten by this age. `None` for the TAP itself.
    pub age_ms: Option<u64>,
    /// A frame of its own came. `None`: it never spoke there.
    pub heard_ms: Option<u64>,
    /// It has been there since.
    pub since_ms: Option<u64>,
    /// It moved too often, and is held where it is.
    pub is_held: bool,
    /// An operator has put it somewhere.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub pinned: Option<Pinned>,
}
