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

use super::{ETHERNET_HEADER_LEN, MIN_FRAME_LEN, ParseError};

/// Length of the prefix.
pub const LEN: usize = 4;

/// The format version in every first byte.
pub const VERSION: u8 = 2;

/// A message and its padding are no longer than this: the smallest frame without its header.
pub const MIN_BODY_LEN: usize = MIN_FRAME_LEN - ETHERNET_HEADER_LEN;

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
    Echo = 11,
    Fragment = 12,
}

impl Kind {
    /// Every kind, in the order of the codes; 10 is that of the [bundle](super::bundle), and 15 is
    /// kept for kinds whose code stands in the byte after the prefix.
    pub const ALL: [Self; 11] = [
        Self::Heartbeat,
        Self::HeartbeatReply,
        Self::Probe,
        Self::ProbeAnswer,
        Self::Withdrawal,
        Self::Announcement,
        Self::AnnouncementAck,
        Self::ToUpstream,
        Self::ToDownstream,
        Self::Echo,
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
            Self::Echo => "Echo",
            Self::Fragment => "Fragment",
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

    const PROBE: [u8; 30] = [
        0x23, 0, 0, 30, 2, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0,
    ];

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
        for have in [0, 10, 13, 14, 15] {
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
        for length in [0, 29, 31] {
            let need = ParseError::Length { message: "Probe", need: 30, have: length.into() };
            assert_eq!(error(&with(3, length)), need);
        }
    }

    #[test]
    fn ignores_padding_up_to_the_smallest_frame_and_no_further() {
        let mut bytes = PROBE.to_vec();
        bytes.resize(MIN_BODY_LEN, 0xee);
        assert!(Probe::try_from(&bytes[..]).is_ok());
        bytes.push(0);
        let need = ParseError::TrailingBytes { message: "Probe", need: 30, have: 47 };
        assert_eq!(error(&bytes), need);
    }

    #[test]
    fn each_code_has_one_kind() {
        // 10 is the bundle's, which no node is given.
        let codes: Vec<u8> = (1..=9).chain([11, 12]).collect();
        assert_eq!(Kind::ALL.map(Kind::code), codes[..]);
        for kind in Kind::ALL {
            assert_eq!(Kind::peek(&kind.first_byte()), Ok(kind));
        }
    }

    #[test]
    fn an_error_reads_as_a_sentence() {
        assert_eq!(error(&with(3, 31)).to_string(), "Probe: length 31 where the format has 30");
        let mut bytes = PROBE.to_vec();
        bytes.resize(50, 0);
        assert_eq!(
            error(&bytes).to_string(),
            "Probe: 50 bytes where the message has 30 and padding ends at 46"
        );
        let unknown = error(&with(0, 0x2d)).to_string();
        assert_eq!(unknown, "type 13 where types are 1 to 9, 11 and 12");
    }
}
