//! Any one message: what stands in a frame after the Ethernet header.

use super::control::Control;
use super::control::ack::AnnouncementAck;
use super::control::announcement::Announcement;
use super::control::echo::Echo;
use super::control::heartbeat::{Heartbeat, HeartbeatReply};
use super::control::probe::{Probe, ProbeAnswer};
use super::control::withdrawal::Withdrawal;
use super::data::{Data, ToDownstream, ToUpstream};
use super::format::Format;
use super::fragment::Fragment;
use super::{Kind, ParseError};

/// A message of either plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketType<'a> {
    /// Keeps routes alive.
    Control(Control<'a>),
    /// Carries a client's frame.
    Data(Data<'a>),
    /// Carries a part of one.
    Fragment(Fragment<'a>),
}

impl PacketType<'_> {
    /// Which message this is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Control(control) => control.kind(),
            Self::Data(data) => data.kind(),
            Self::Fragment(_) => Kind::Fragment,
        }
    }

    /// Bytes on the wire, prefix included.
    #[inline]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Control(control) => control.wire_len(),
            Self::Data(data) => data.wire_len(),
            Self::Fragment(fragment) => fragment.wire_len(),
        }
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Control(control) => control.emit(out),
            Self::Data(data) => data.emit(out),
            Self::Fragment(fragment) => fragment.emit(out),
        }
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        match self {
            Self::Control(control) => control.push_parts(parts),
            Self::Data(data) => data.push_parts(parts),
            Self::Fragment(fragment) => fragment.push_parts(parts),
        }
    }
}

impl Kind {
    const fn format(self) -> Format {
        match self {
            Self::Heartbeat => Heartbeat::FORMAT,
            Self::HeartbeatReply => HeartbeatReply::FORMAT,
            Self::Probe => Probe::FORMAT,
            Self::ProbeAnswer => ProbeAnswer::FORMAT,
            Self::Withdrawal => Withdrawal::FORMAT,
            Self::Announcement => Announcement::FORMAT,
            Self::AnnouncementAck => AnnouncementAck::FORMAT,
            Self::ToUpstream => ToUpstream::FORMAT,
            Self::ToDownstream => ToDownstream::FORMAT,
            Self::Echo => Echo::FORMAT,
            Self::Fragment => Fragment::FORMAT,
        }
    }

    /// Bytes of the fixed part, prefix included; for [fixed](Self::is_fixed) kinds the whole
    /// message.
    pub const fn fixed_len(self) -> usize {
        self.format().fixed_len
    }

    /// All messages of this kind have one length.
    pub const fn is_fixed(self) -> bool {
        self.format().is_fixed
    }

    /// The flags this kind has; all others must be zero.
    pub const fn known_flags(self) -> u8 {
        self.format().known_flags
    }
}

impl<'a> TryFrom<&'a [u8]> for PacketType<'a> {
    type Error = ParseError;

    /// Reads whichever message its prefix names.
    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Ok(match Kind::peek(bytes)? {
            Kind::Heartbeat => Heartbeat::try_from(bytes)?.into(),
            Kind::HeartbeatReply => HeartbeatReply::try_from(bytes)?.into(),
            Kind::Probe => Probe::try_from(bytes)?.into(),
            Kind::ProbeAnswer => ProbeAnswer::try_from(bytes)?.into(),
            Kind::Withdrawal => Withdrawal::try_from(bytes)?.into(),
            Kind::Announcement => Announcement::try_from(bytes)?.into(),
            Kind::AnnouncementAck => AnnouncementAck::try_from(bytes)?.into(),
            Kind::ToUpstream => ToUpstream::try_from(bytes)?.into(),
            Kind::ToDownstream => ToDownstream::try_from(bytes)?.into(),
            Kind::Echo => Echo::try_from(bytes)?.into(),
            Kind::Fragment => Self::Fragment(Fragment::try_from(bytes)?),
        })
    }
}

impl<'a> From<Control<'a>> for PacketType<'a> {
    fn from(control: Control<'a>) -> Self {
        Self::Control(control)
    }
}

impl<'a> From<Data<'a>> for PacketType<'a> {
    fn from(data: Data<'a>) -> Self {
        Self::Data(data)
    }
}

macro_rules! from_message {
    ($($message:ty => $plane:ident::$variant:ident),* $(,)?) => {
        $(
            impl<'a> From<$message> for PacketType<'a> {
                #[inline]
                fn from(message: $message) -> Self {
                    Self::$plane($plane::$variant(message))
                }
            }
        )*
    };
}

from_message! {
    Heartbeat => Control::Heartbeat,
    HeartbeatReply => Control::HeartbeatReply,
    Probe => Control::Probe,
    ProbeAnswer => Control::ProbeAnswer,
    Withdrawal<'a> => Control::Withdrawal,
    Announcement<'a> => Control::Announcement,
    AnnouncementAck<'a> => Control::AnnouncementAck,
    Echo<'a> => Control::Echo,
    ToUpstream<'a> => Data::Upstream,
    ToDownstream<'a> => Data::Downstream,
}

conversions!(PacketType<'_>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::capacity::RADIO_MTU_MIN;
    use crate::messages::control::{ack, announcement, withdrawal};

    #[test]
    fn the_smallest_radio_carries_each_message_and_has_room_for_the_envelope() {
        const ENVELOPE: usize = 8 + 8 + 16;
        let one_client = announcement::HEADER_LEN + 4 + 6;
        let one_rsu = withdrawal::HEADER_LEN + 6;
        let longest_way = ack::HEADER_LEN + 14 * 2;
        let fixed = Kind::ALL.into_iter().filter(|kind| kind.is_fixed()).map(Kind::fixed_len);
        for len in fixed.chain([one_client, one_rsu, longest_way]) {
            assert!(len + ENVELOPE <= RADIO_MTU_MIN, "{len}");
        }
        // The longest that a radio of 1500 is given: all clients there may be, on one VLAN.
        let most_clients = announcement::HEADER_LEN + 4 + 6 * announcement::MAX_CLIENTS;
        assert_eq!(most_clients, 1430);
        assert!(most_clients + ENVELOPE <= 1500);
    }
}
