//! What an operator wants to know: [`Event`], in a bounded queue.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::control::token_bucket::TokenBucket;
use crate::mac::{Mac, NodeId};
use crate::messages::control::announcement::Client;

/// Why a node changed its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Cause {
    /// The first route after having none.
    First,
    /// The upstream fell silent: it left questions unanswered.
    Dead,
    /// The upstream said goodbye.
    Goodbye,
    /// The upstream withdrew its route.
    Withdrawn,
    /// The upstream restarted and forgot its routes.
    Restarted,
    /// The upstream was getting worse fast.
    Fading,
    /// The upstream was about to get worse, by the trend of what is heard of it and how strong.
    Predicted,
    /// Another candidate was better for long enough.
    Better,
    /// Our own radio went down.
    LinkDown,
}

impl Cause {
    /// One lower-case word for logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Dead => "dead",
            Self::Goodbye => "goodbye",
            Self::Withdrawn => "withdrawn",
            Self::Restarted => "restarted",
            Self::Fading => "fading",
            Self::Predicted => "predicted",
            Self::Better => "better",
            Self::LinkDown => "link-down",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which RSU a node uses, and through which neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Attachment {
    /// The RSU.
    pub rsu: NodeId,
    /// The neighbour frames are sent to.
    pub upstream: NodeId,
    /// Radio hops to the RSU: 1 when it is heard directly.
    pub hops: u8,
}

/// What a change of upstream or RSU cost, as far as the OBU can know.
///
/// It is written when the change is settled and the old way is not listened to any more, or when
/// the next change came before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct HandOver {
    /// Before the change.
    pub from: Attachment,
    /// After it. `None` only in a record that another change cut short.
    pub to: Option<Attachment>,
    /// Why the old upstream was left, as it turned out: one that was left because it faded, and was
    /// not heard again, had died.
    pub cause: Cause,
    /// The RSU acknowledged the new way; or nothing goes over it, and the RSU was told and need not
    /// answer. If not, the next change came first, and its gap begins where this one did.
    pub is_settled: bool,
    /// Time without a way that was believed. It is zero when the new one was there before the old
    /// one was given up. Otherwise it is from the last sign of life of the old upstream to the
    /// first frame over a way that was settled later. Clients were cut off for no longer than
    /// this, and for up to one heartbeat interval less: when the upstream died after its last sign
    /// of life, nobody knows.
    #[cfg_attr(feature = "serde", serde(rename = "gap_ms", with = "millis"))]
    pub gap: Duration,
    /// Frames of our clients dropped because there was no way. Frames for them that the RSU could
    /// not deliver are counted there.
    pub lost: u64,
    /// Frames handed to the old upstream after its last sign of life and to nobody else. Some may
    /// have arrived.
    pub at_risk: u64,
    /// Frames from above that came twice while both ways were listened to, and were delivered once.
    pub doubled: u64,
    /// Frames sent both ways while the old upstream was in doubt. The RSU drops the second copy.
    pub sent_twice: u64,
}

/// What a frame was too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Limit {
    /// The radio, also in as many [fragments](crate::messages::fragment) as there may be.
    Fragments,
    /// The radio as it is: others send, or our driver takes, frames of another length.
    Radio,
    /// The TAP: hosts on the other side have a larger MTU.
    Tap,
}

impl Limit {
    /// What the operator can do about it.
    pub const fn cure(self) -> &'static str {
        match self {
            Self::Fragments => {
                "raise the MTU of the radio, or lower that of the sender and of --mtu"
            }
            Self::Radio => "give all radios the same MTU (ip link set dev RADIO mtu N)",
            Self::Tap => "give all nodes the same --mtu, and the hosts beside them",
        }
    }
}

/// A frame that was dropped because of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct TooLong {
    /// The client, or the neighbour, that sent it.
    pub from: Mac,
    /// Its length in bytes, Ethernet header included.
    #[cfg_attr(feature = "serde", serde(rename = "bytes"))]
    pub len: usize,
    /// The longest that would have passed.
    #[cfg_attr(feature = "serde", serde(rename = "bytes_max"))]
    pub most: usize,
    /// For what it was too long.
    pub limit: Limit,
}

impl TooLong {
    /// The frame begins with this, whatever is left of it.
    pub(crate) fn new(frame: &[u8], len: usize, most: usize, limit: Limit) -> Self {
        let source = frame.get(Mac::LEN..).and_then(|rest| rest.first_chunk());
        Self { from: source.copied().map_or(Mac::ZERO, Mac), len, most, limit }
    }
}

/// Something an operator wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(Serialize, Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
pub enum Event {
    /// The node sends through another neighbour, or to another RSU, than before.
    UpstreamChanged {
        /// Before; `None` if there was none.
        from: Option<Attachment>,
        /// Now; `None` if there is none left.
        to: Option<Attachment>,
        /// Why.
        cause: Cause,
        /// How long the old upstream had been silent when the decision fell.
        #[cfg_attr(feature = "serde", serde(rename = "silence_ms", with = "millis"))]
        silence: Duration,
    },
    /// A change of upstream or RSU is over: what it cost.
    HandOver(HandOver),
    /// An OBU attached to this RSU, or announced its clients again.
    ObuAttached {
        /// The OBU.
        obu: NodeId,
        /// Clients it announced.
        clients: usize,
        /// Its epoch.
        epoch: u32,
    },
    /// An OBU left this RSU: it said so, went silent, or its clients appeared elsewhere.
    ObuDetached {
        /// The OBU.
        obu: NodeId,
    },
    /// The RSU acknowledged our announcement.
    Acknowledged {
        /// The RSU.
        rsu: NodeId,
        /// The epoch it accepted.
        epoch: u32,
        /// Announcements sent until then.
        attempts: u32,
    },
    /// A client's frames come from ever other places: it is held where it is for a while. Two
    /// switches are looped, or two machines have one address.
    ClientHeld {
        /// The client.
        client: Client,
    },
    /// Two OBUs use one node id, or somebody speaks for an OBU: starts of it take turns at an RSU.
    ObuIdConflict {
        /// The id.
        obu: NodeId,
        /// The MAC the last frame of it came from.
        mac: Mac,
    },
    /// An OBU cannot be reached by the RSU it is attached to: more relays lie between than a frame
    /// has room for.
    TooFar {
        /// The OBU.
        obu: NodeId,
        /// Hops that can be.
        hops_max: usize,
    },
    /// An RSU sends its heartbeats rarer than before, or more often: by how many OBUs it has, and
    /// by how full its channel is.
    PaceChanged {
        /// The time between two of them from now on.
        #[cfg_attr(feature = "serde", serde(rename = "every_ms", with = "millis"))]
        every: Duration,
        /// For how many per cent of the last second the channel was busy, where the radio tells.
        busy_percent: Option<u8>,
    },
    /// A frame was dropped because of its length, the last one of perhaps many.
    TooLong(TooLong),
    /// Somebody else uses our node id: one of the two must be changed.
    IdConflict {
        /// The MAC the frame came from.
        mac: Mac,
    },
}

impl Event {
    /// What happened, in one phrase: the same for all events of a kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::UpstreamChanged { .. } => "attachment changed",
            Self::HandOver(_) => "hand-over done",
            Self::ObuAttached { .. } => "OBU attached",
            Self::ObuDetached { .. } => "OBU detached",
            Self::Acknowledged { .. } => "announcement acknowledged",
            Self::ClientHeld { .. } => "client moves too often",
            Self::ObuIdConflict { .. } => "two OBUs use one node id",
            Self::IdConflict { .. } => "another node uses our node id",
            Self::TooFar { .. } => "OBU too far away",
            Self::PaceChanged { .. } => "heartbeats at another pace",
            Self::TooLong(_) => "frame too long",
        }
    }

    /// What the operator can do about it. `None`: it is no fault.
    pub const fn cure(&self) -> Option<&'static str> {
        Some(match self {
            Self::ClientHeld { .. } => "look for a loop, or for two machines with one address",
            Self::ObuIdConflict { .. } => "give one of the two OBUs another id with --node-id",
            Self::IdConflict { .. } => "give one of the two another id with --node-id",
            Self::TooFar { .. } => "what is for it cannot be sent over so many hops: add an RSU",
            Self::TooLong(frame) => frame.limit.cure(),
            _ => return None,
        })
    }
}

/// Events waiting for the driver; the oldest are dropped, and counted, when nobody reads them.
#[derive(Clone, Debug, Default)]
pub struct Events {
    queue: VecDeque<Event>,
}

/// What lasts is reported to the operator at most every ten seconds.
pub const REPORTS: TokenBucket = TokenBucket::new(1, Duration::from_secs(10));

/// Events kept for a driver that does not read them.
const EVENTS_MAX: usize = 256;

impl Events {
    /// Appends an event. Returns how many old ones were lost to make room.
    pub fn push(&mut self, event: Event) -> u64 {
        let lost = self.queue.len() >= EVENTS_MAX;
        if lost {
            self.queue.pop_front();
        }
        self.queue.push_back(event);
        u64::from(lost)
    }

    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }
}

/// A span as a whole number of milliseconds.
#[cfg(feature = "serde")]
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_event_is_lost_first() {
        let mut events = Events::default();
        let detached = |n| Event::ObuDetached { obu: NodeId([n, 0, 0, 0, 0, 0]) };
        for n in 0..=255 {
            assert_eq!(events.push(detached(n)), 0);
        }
        assert_eq!(events.push(detached(7)), 1);
        assert_eq!(events.pop(), Some(detached(1)));
    }
}
