//! The control plane: messages that find, keep and give up routes, and say who is behind an OBU.
//! [`echo`] asks who is on a way.

pub mod ack;
pub mod announcement;
pub mod echo;
pub mod heartbeat;
pub mod position;
pub mod probe;
pub mod withdrawal;
pub mod word;

use super::Kind;
use ack::AnnouncementAck;
use announcement::Announcement;
use echo::Echo;
use heartbeat::{Heartbeat, HeartbeatReply};
use probe::{Probe, ProbeAnswer};
use withdrawal::Withdrawal;

/// Any message of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named like the message it holds")]
pub enum Control<'a> {
    Heartbeat(Heartbeat),
    HeartbeatReply(HeartbeatReply),
    Probe(Probe),
    ProbeAnswer(ProbeAnswer),
    Withdrawal(Withdrawal<'a>),
    Announcement(Announcement<'a>),
    AnnouncementAck(AnnouncementAck<'a>),
    Echo(Echo<'a>),
}

macro_rules! each {
    ($control:expr, $message:ident => $what:expr) => {
        match $control {
            Control::Heartbeat($message) => $what,
            Control::HeartbeatReply($message) => $what,
            Control::Probe($message) => $what,
            Control::ProbeAnswer($message) => $what,
            Control::Withdrawal($message) => $what,
            Control::Announcement($message) => $what,
            Control::AnnouncementAck($message) => $what,
            Control::Echo($message) => $what,
        }
    };
}

impl Control<'_> {
    /// Which message this is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Heartbeat(_) => Kind::Heartbeat,
            Self::HeartbeatReply(_) => Kind::HeartbeatReply,
            Self::Probe(_) => Kind::Probe,
            Self::ProbeAnswer(_) => Kind::ProbeAnswer,
            Self::Withdrawal(_) => Kind::Withdrawal,
            Self::Announcement(_) => Kind::Announcement,
            Self::AnnouncementAck(_) => Kind::AnnouncementAck,
            Self::Echo(_) => Kind::Echo,
        }
    }

    /// Bytes on the wire, prefix included.
    #[inline]
    pub fn wire_len(&self) -> usize {
        each!(self, message => message.wire_len())
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        each!(self, message => message.emit(out));
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        each!(self, message => message.push_parts(parts));
    }
}

conversions!(Control<'_>);
