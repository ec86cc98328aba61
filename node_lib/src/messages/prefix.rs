//! The prefix: the first four bytes of every message.
//!
//! | offset | bytes | field   | meaning                                                              |
//! |-------:|------:|---------|----------------------------------------------------------------------|
//! |      0 |     1 | type    | version (2) in bits 7–4, type code in bits 3–0                       |
//! |      1 |     1 | flags   | bits 7–6 key slot, must be 0; bits 5–0 per message, unused ones 0    |
//! |      2 |     2 | length  | bytes of the message, from offset 0                                  |
//!
//! Bytes past `length` are Ethernet padding and ignored, as long as the frame has no more than 60
//! bytes; in a longer frame nobody pads, so they are refused.
//!
//! A key slot other than 0 is reserved for the security envelope: boot index (8 bytes) and counter
//! (8 bytes) right after the prefix, a tag (16 bytes) last. This version refuses it rather than
//! guess.

use super::control::{ack, announcement, heartbeat, probe, withdrawal};
use super::{ETHERNET_HEADER_LEN, MIN_FRAME_LEN, ParseError, data, fragment, way};
use crate::mac::NodeId;

/// Length of the prefix.
pub const LEN: usize = 4;

/// The format version in every first byte.
pub const VERSION: u8 = 2;

/// A message and its padding are no longer than this: the smallest frame without its header.
pub const MIN_BODY_LEN: usize = MIN_FRAME_LEN - ETHERNET_HEADER_LEN;

/// Flag of [`Kind::HeartbeatReply`] and [`Kind::Withdrawal`]: the sender leaves the network.
pub const GOODBYE: u8 = 0x01;

/// Flag of [`Kind::HeartbeatReply`] and [`Kind::Announcement`]: the OBU is attached elsewhere.
pub const STANDBY: u8 = 0x02;

/// Flag of [`Kind::HeartbeatReply`]: the OBU waits for an acknowledgement.
pub const ACKNOWLEDGE: u8 = 0x04;

/// Flag of [`Kind::Heartbeat`]: the sender knows fewer candidates than it would like.
pub const FEW_CANDIDATES: u8 = 0x01;

/// Flags of [`Kind::Heartbeat`]: how many neighbours are reached from this RSU through the sender.
pub const CHILDREN: u8 = 0x0e;

/// The most it can say: so many, or more.
pub const CHILDREN_MAX: u8 = CHILDREN >> CHILDREN.trailing_zeros();

/// Flags of [`Kind::Heartbeat`] and [`Kind::ProbeAnswer`]: the stride of the sender.
pub const STRIDE: u8 = 0x30;

/// The largest: every fourth heartbeat.
pub const STRIDE_MAX: u8 = 2;

/// Flag of [`Kind::ToDownstream`]: for every OBU attached to the source.
pub const FLOOD: u8 = 0x08;

/// Flags of [`Kind::ToUpstream`], [`Kind::ToDownstream`] and [`Kind::Fragment`]: user priority of
/// the frame inside.
pub const PRIORITY: u8 = 0x07;

/// Which message, with its type code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is named like the message it stands for")]
pub enum Kind {
    Heartbeat = 1,
    HeartbeatReply = 2,
    Probe = 3,
    ProbeAnswer = 4,
    Withdrawal = 5,
    Announcement = 6,
    AnnouncementAck = 7,
    ToUpstream = 8,
    ToDownstream = 9,
    Fragment = 12,
}

impl Kind {
    /// Every kind, in the order of the codes; 10 is that of the [bundle](super::bundle), and 15 is
    /// kept for kinds whose code stands in the byte after the prefix.
    pub const ALL: [Self; 10] = [
        Self::Heartbeat,
        Self::HeartbeatReply,
        Self::Probe,
        Self::ProbeAnswer,
        Self::Withdrawal,
        Self::Announcement,
        Self::AnnouncementAck,
        Self::ToUpstream,
        Self::ToDownstream,
        Self::Fragment,
    ];

    /// The type code on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The name in errors, counters and docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heartbeat => "Heartbeat",
            Self::HeartbeatReply => "HeartbeatReply",
            Self::Probe => "Probe",
            Self::ProbeAnswer => "ProbeAnswer",
            Self::Withdrawal => "Withdrawal",
            Self::Announcement => "Announcement",
            Self::AnnouncementAck => "AnnouncementAck",
            Self::ToUpstream => "ToUpstream",
            Self::ToDownstream => "ToDownstream",
            Self::Fragment => "Fragment",
        }
    }

    /// Bytes of the fixed part, prefix included; for [fixed](Self::is_fixed) kinds the whole
    /// message.
    pub const fn fixed_len(self) -> usize {
        match self {
            Self::Heartbeat => heartbeat::LEN,
            Self::HeartbeatReply => heartbeat::REPLY_LEN,
            Self::Probe => probe::LEN,
            Self::ProbeAnswer => probe::ANSWER_LEN,
            Self::Withdrawal => withdrawal::HEADER_LEN,
            Self::Announcement => announcement::HEADER_LEN,
            Self::AnnouncementAck => ack::HEADER_LEN,
            Self::ToUpstream | Self::ToDownstream => data::HEADER_LEN,
            Self::Fragment => fragment::HEADER_LEN,
        }
    }

    /// All messages of this kind have one length.
    pub const fn is_fixed(self) -> bool {
        match self {
            Self::Heartbeat | Self::HeartbeatReply | Self::Probe | Self::ProbeAnswer => true,
            Self::Withdrawal
            | Self::Announcement
            | Self::AnnouncementAck
            | Self::ToUpstream
            | Self::ToDownstream
            | Self::Fragment => false,
        }
    }

    /// The flags this kind has; all others must be zero.
    pub const fn known_flags(self) -> u8 {
        match self {
            Self::Heartbeat => FEW_CANDIDATES | CHILDREN | STRIDE,
            Self::ProbeAnswer => STRIDE,
            Self::HeartbeatReply => GOODBYE | STANDBY | ACKNOWLEDGE,
            Self::Withdrawal => GOODBYE,
            Self::Announcement => STANDBY,
            Self::ToDownstream => FLOOD | PRIORITY,
            Self::ToUpstream | Self::Fragment => PRIORITY,
            _ => 0,
        }
    }

    /// Reads the kind off a message (from its prefix on) and looks no further.
    #[inline]
    pub fn peek(bytes: &[u8]) -> Result<Self, ParseError> {
        let Some(&first) = bytes.first() else {
            return Err(ParseError::Truncated { message: "prefix", need: LEN, have: 0 });
        };
        if first >> 4 != VERSION {
            return Err(ParseError::Version { need: VERSION, have: first >> 4 });
        }
        let code = first & 0x0f;
        Self::ALL
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or(ParseError::UnknownType { have: code })
    }

    /// First byte of a message of this kind.
    pub(super) const fn first_byte(self) -> [u8; 1] {
        [VERSION << 4 | self.code()]
    }

    /// Judges the prefix; returns the flags and the message without its padding.
    #[inline]
    pub(super) fn open(self, bytes: &[u8]) -> Result<(u8, &[u8]), ParseError> {
        let message = self.name();
        let &[first, flags, l0, l1, ..] = bytes else {
            return Err(ParseError::Truncated { message, need: LEN, have: bytes.len() });
        };
        if first != VERSION << 4 | self.code() {
            let have = Self::peek(bytes)?.code();
            return Err(ParseError::Type { message, need: self.code(), have });
        }
        if flags >> 6 != 0 {
            return Err(ParseError::Envelope { message, slot: flags >> 6 });
        }
        if flags & !self.known_flags() != 0 {
            return Err(ParseError::Flags { message, need: self.known_flags(), have: flags });
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let need = self.fixed_len();
        if length < need || self.is_fixed() && length > need {
            return Err(ParseError::Length { message, need, have: length });
        }
        let Some(body) = bytes.get(..length) else {
            return Err(ParseError::Truncated { message, need: length, have: bytes.len() });
        };
        if bytes.len() > length && bytes.len() > MIN_BODY_LEN {
            return Err(ParseError::TrailingBytes { message, need: length, have: bytes.len() });
        }
        Ok((flags, body))
    }

    /// The error for a fixed part that is not there. [`Self::open`] has seen to it that it is.
    pub(super) const fn truncated(self, have: usize) -> ParseError {
        ParseError::Truncated { message: self.name(), need: self.fixed_len(), have }
    }

    /// The error for a value out of range.
    pub(super) const fn value(
        self,
        field: &'static str,
        need: &'static str,
        have: u32,
    ) -> ParseError {
        ParseError::Value { message: self.name(), field, need, have }
    }

    /// The node named in a field; nobody is refused.
    #[inline]
    pub(super) fn node(self, field: &'static str, bytes: [u8; 6]) -> Result<NodeId, ParseError> {
        if bytes == NodeId::NONE.0 {
            return Err(ParseError::NoNode { message: self.name(), field });
        }
        Ok(NodeId(bytes))
    }

    /// A hop count, at most [`super::MAX_HOPS`].
    #[inline]
    pub(super) fn hops(self, hops: u8) -> Result<u8, ParseError> {
        if hops > super::MAX_HOPS {
            return Err(self.value("hops", "at most 32", u32::from(hops)));
        }
        Ok(hops)
    }

    /// A stride, from the flags.
    #[inline]
    pub(super) fn stride(self, flags: u8) -> Result<u8, ParseError> {
        const { assert!(STRIDE_MAX == 2, "as the error says") };
        let stride = (flags & STRIDE) >> STRIDE.trailing_zeros();
        if stride > STRIDE_MAX {
            return Err(self.value("stride", "at most 2", stride.into()));
        }
        Ok(stride)
    }

    /// A heartbeat interval in milliseconds, at most [`super::INTERVAL_MS_MAX`].
    #[inline]
    pub(super) fn interval(self, bytes: [u8; 2]) -> Result<u16, ParseError> {
        match u16::from_be_bytes(bytes) {
            interval @ 1..=super::INTERVAL_MS_MAX => Ok(interval),
            have => Err(self.value("interval_ms", "1 to 10000", have.into())),
        }
    }

    /// The MTU of a radio, in bytes, at least [`data::RADIO_MTU_MIN`].
    #[inline]
    pub(super) fn mtu(self, bytes: [u8; 2]) -> Result<u16, ParseError> {
        match u16::from_be_bytes(bytes) {
            mtu if usize::from(mtu) >= data::RADIO_MTU_MIN => Ok(mtu),
            have => Err(self.value("mtu", "at least 120", have.into())),
        }
    }

    /// The upstream of `origin`, which is not itself.
    #[inline]
    pub(super) fn upstream(self, via: [u8; 6], origin: [u8; 6]) -> Result<NodeId, ParseError> {
        if via == origin {
            return Err(ParseError::Via { message: self.name(), have: NodeId(via) });
        }
        self.node("via", via)
    }

    /// When the next word comes, in 0.1 s: at least 1.
    #[inline]
    pub(super) fn within(self, bytes: [u8; 2]) -> Result<u16, ParseError> {
        match u16::from_be_bytes(bytes) {
            0 => Err(self.value("within_ds", "at least 1", 0)),
            within => Ok(within),
        }
    }

    /// Hops of `sender` from `rsu`: none exactly at the RSU itself, and nobody else is without an
    /// upstream of its own.
    #[inline]
    pub(super) fn hops_from(
        self,
        hops: u8,
        (rsu, sender, via): (NodeId, NodeId, NodeId),
    ) -> Result<u8, ParseError> {
        let is_rsu = sender == rsu;
        if is_rsu != (hops == 0) {
            return Err(self.value("hops", "0 at the RSU, and nowhere else", hops.into()));
        }
        if is_rsu != (via == NodeId::NONE) {
            return Err(ParseError::Via { message: self.name(), have: via });
        }
        self.hops(hops)
    }

    /// Relays yet to pass, at most [`way::RELAYS_MAX`].
    #[inline]
    pub(super) fn relays(self, relays: u8) -> Result<u8, ParseError> {
        const { assert!(way::RELAYS_MAX == 15, "as the error says") };
        if relays > way::RELAYS_MAX {
            return Err(self.value("relays", "at most 15", relays.into()));
        }
        Ok(relays)
    }

    /// `part` of `parts`, counted from zero.
    #[inline]
    pub(super) fn part(self, part: u8, parts: u8) -> Result<(), ParseError> {
        if part >= parts {
            return Err(self.value("part", "below parts", u32::from(part)));
        }
        Ok(())
    }
}

/// This flag if it `is_set`.
#[inline]
pub(super) const fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

/// The number of children as it stands in the flags.
pub(super) const fn children_flags(children: u8) -> u8 {
    debug_assert!(children <= CHILDREN_MAX);
    (children << CHILDREN.trailing_zeros()) & CHILDREN
}

/// The number of children, from the flags.
pub(super) const fn children(flags: u8) -> u8 {
    (flags & CHILDREN) >> CHILDREN.trailing_zeros()
}

/// A stride as it stands in the flags.
pub(super) const fn stride_flags(stride: u8) -> u8 {
    debug_assert!(stride <= STRIDE_MAX);
    (stride << STRIDE.trailing_zeros()) & STRIDE
}

/// The length field of a message of `len` bytes.
///
/// What we send fits the MTU of a radio, which is far below 65 536. A message that does not fit the
/// field says 65 535 and is refused by whoever hears it.
#[inline]
pub(super) fn length(len: usize) -> [u8; 2] {
    debug_assert!(u16::try_from(len).is_ok(), "a message of {len} bytes");
    u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::control::probe::Probe;

    const PROBE: [u8; 24] =
        [0x23, 0, 0, 24, 2, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0];

    fn with(offset: usize, value: u8) -> Vec<u8> {
        let mut bytes = PROBE.to_vec();
        bytes[offset] = value;
        bytes
    }

    fn error(bytes: &[u8]) -> ParseError {
        Probe::try_from(bytes).unwrap_err()
    }

    #[test]
    fn nothing_is_not_a_message() {
        let need = ParseError::Truncated { message: "Probe", need: 4, have: 0 };
        assert_eq!(error(&[]), need);
        let need = ParseError::Truncated { message: "prefix", need: 4, have: 0 };
        assert_eq!(Kind::peek(&[]), Err(need));
    }

    #[test]
    fn refuses_another_version() {
        for have in [0, 1, 3, 15] {
            assert_eq!(error(&with(0, have << 4 | 3)), ParseError::Version { need: 2, have });
        }
    }

    #[test]
    fn refuses_an_unknown_type() {
        for have in [0, 10, 11, 13, 14, 15] {
            assert_eq!(error(&with(0, 0x20 | have)), ParseError::UnknownType { have });
            assert_eq!(Kind::peek(&[0x20 | have]), Err(ParseError::UnknownType { have }));
        }
    }

    #[test]
    fn refuses_another_type_than_asked_for() {
        assert_eq!(error(&with(0, 0x21)), ParseError::Type { message: "Probe", need: 3, have: 1 });
    }

    #[test]
    fn refuses_an_envelope_it_cannot_open() {
        for slot in 1..=3 {
            let need = ParseError::Envelope { message: "Probe", slot };
            assert_eq!(error(&with(1, slot << 6)), need);
        }
    }

    #[test]
    fn refuses_flags_it_does_not_know() {
        for bit in 0..6 {
            let have = 1 << bit;
            assert_eq!(
                error(&with(1, have)),
                ParseError::Flags { message: "Probe", need: 0, have }
            );
        }
    }

    #[test]
    fn refuses_a_length_the_format_does_not_have() {
        for length in [0, 23, 25] {
            let need = ParseError::Length { message: "Probe", need: 24, have: length.into() };
            assert_eq!(error(&with(3, length)), need);
        }
    }

    #[test]
    fn ignores_padding_up_to_the_smallest_frame_and_no_further() {
        let mut bytes = PROBE.to_vec();
        bytes.resize(MIN_BODY_LEN, 0xee);
        assert!(Probe::try_from(&bytes[..]).is_ok());
        bytes.push(0);
        let need = ParseError::TrailingBytes { message: "Probe", need: 24, have: 47 };
        assert_eq!(error(&bytes), need);
    }

    #[test]
    fn each_code_has_one_kind() {
        // 10 is the bundle's, which no node is given.
        let codes: Vec<u8> = (1..=9).chain([12]).collect();
        assert_eq!(Kind::ALL.map(Kind::code), codes[..]);
        for kind in Kind::ALL {
            assert_eq!(Kind::peek(&kind.first_byte()), Ok(kind));
        }
    }

    #[test]
    fn the_smallest_radio_carries_each_message_and_has_room_for_the_envelope() {
        const ENVELOPE: usize = 8 + 8 + 16;
        let one_client = announcement::HEADER_LEN + 4 + 6;
        let one_rsu = withdrawal::HEADER_LEN + 6;
        let longest_way = ack::HEADER_LEN + 14 * 2;
        let fixed = Kind::ALL.into_iter().filter(|kind| kind.is_fixed()).map(Kind::fixed_len);
        for len in fixed.chain([one_client, one_rsu, longest_way]) {
            assert!(len + ENVELOPE <= data::RADIO_MTU_MIN, "{len}");
        }
        // The longest that a radio of 1500 is given: all clients there may be, on one VLAN.
        let most_clients = announcement::HEADER_LEN + 4 + 6 * announcement::MAX_CLIENTS;
        assert_eq!(most_clients, 1430);
        assert!(most_clients + ENVELOPE <= 1500);
    }

    #[test]
    fn an_error_reads_as_a_sentence() {
        assert_eq!(error(&with(3, 25)).to_string(), "Probe: length 25 where the format has 24");
        let mut bytes = PROBE.to_vec();
        bytes.resize(50, 0);
        assert_eq!(
            error(&bytes).to_string(),
            "Probe: 50 bytes where the message has 24 and padding ends at 46"
        );
        let unknown = error(&with(0, 0x2b)).to_string();
        assert_eq!(unknown, "type 11 where types are 1 to 9 and 12");
    }
}
