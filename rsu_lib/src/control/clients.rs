//! What the RSU's switch remembers of clients, and for how long.

use std::time::Duration;

use node_lib::NodeId;

/// A port of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Port {
    /// The road-side LAN.
    Tap,
    /// An OBU, wherever it is.
    Obu(NodeId),
}

/// Clients remembered, VLAN by VLAN.
pub(crate) const CLIENTS_MAX: usize = 8192;

/// As in Linux bridges and most switches. An OBU refreshes its clients with every reply, so those
/// that never speak stay as long as their OBU does.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(300);

/// A client heard behind another OBU within this time is there, whoever else announces it.
pub(crate) const HEARD_LATELY: Duration = Duration::from_secs(5);
