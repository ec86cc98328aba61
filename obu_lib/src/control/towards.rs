//! An RSU as one of those that are told of us.

use node_lib::{Mac, NodeId};

/// How we stand to an RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Our clients are behind it.
    Attached,
    /// We may go there next.
    Standby,
    /// Others are on their way there through us.
    Relay,
}

/// Whom we tell, and how to get there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Towards {
    pub(crate) rsu: NodeId,
    /// Our upstream: where to send …
    pub(crate) upstream: Mac,
    /// … and who it is.
    pub(crate) via: NodeId,
    /// Radio hops to the RSU.
    pub(crate) hops: u8,
    pub(crate) standing: Standing,
    /// Frames go this way: what is sent down must find us at once.
    pub(crate) is_used: bool,
    /// What came down in the last time, in 10 ms, may not have reached us.
    pub(crate) at_risk_10ms: u8,
}
