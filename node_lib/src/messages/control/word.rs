//! What each word of an OBU says, be it a reply or an announcement: [`WordFields`].

use std::time::Duration;

use super::announcement::Announcement;
use super::heartbeat::HeartbeatReply;
use crate::mac::NodeId;
use crate::order::Order;

/// The fields that both kinds of words have; spans as such, and not in the units of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordFields {
    /// For whom.
    pub rsu: NodeId,
    /// The OBU.
    pub origin: NodeId,
    /// Boot count and sequence of the OBU.
    pub order: Order,
    /// Of the OBU's attachment.
    pub epoch: u32,
    /// The OBU's upstream for this RSU.
    pub via: NodeId,
    /// The longest packet of the OBU's own radio, in bytes.
    pub mtu: u16,
    /// From the OBU to the sender.
    pub hops: u8,
    /// The next word comes within this.
    pub within: Duration,
    /// What the RSU sent to the OBU or through it within this may not have arrived.
    pub at_risk: Duration,
}

/// Both kinds name these fields alike.
macro_rules! fields {
    ($word:expr) => {
        WordFields {
            rsu: $word.rsu,
            origin: $word.origin,
            order: $word.order,
            epoch: $word.epoch,
            via: $word.via,
            mtu: $word.mtu,
            hops: $word.hops,
            within: Duration::from_millis(100) * u32::from($word.within_ds),
            at_risk: Duration::from_millis(10) * u32::from($word.at_risk_10ms),
        }
    };
}

impl From<&HeartbeatReply> for WordFields {
    fn from(reply: &HeartbeatReply) -> Self {
        fields!(reply)
    }
}

impl From<&Announcement<'_>> for WordFields {
    fn from(announcement: &Announcement<'_>) -> Self {
        fields!(announcement)
    }
}
