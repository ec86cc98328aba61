//! What all messages of a kind have in common; each message declares its own.

use super::prefix::{LEN, MIN_BODY_LEN, VERSION};
use super::{Kind, ParseError};

/// What the prefix of a message is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) kind: Kind,
    /// Bytes of the fixed part, prefix included.
    pub(crate) fixed_len: usize,
    /// The fixed part is the whole message.
    pub(crate) is_fixed: bool,
    /// The flags there are; all others must be zero.
    pub(crate) known_flags: u8,
}

impl Format {
    /// All messages of this kind have one length.
    pub(crate) const fn fixed(kind: Kind, len: usize, known_flags: u8) -> Self {
        Self { kind, fixed_len: len, is_fixed: true, known_flags }
    }

    /// Messages of this kind have so many bytes, and what belongs to each.
    pub(crate) const fn at_least(kind: Kind, header_len: usize, known_flags: u8) -> Self {
        Self { kind, fixed_len: header_len, is_fixed: false, known_flags }
    }

    /// Judges the prefix; returns the flags and the message without its padding.
    #[inline]
    pub(super) fn open(self, bytes: &[u8]) -> Result<(u8, &[u8]), ParseError> {
        let Self { kind, fixed_len, is_fixed, known_flags } = self;
        let message = kind.name();
        let &[first, flags, l0, l1, ..] = bytes else {
            return Err(ParseError::Truncated { message, need: LEN, have: bytes.len() });
        };
        if first != VERSION << 4 | kind.code() {
            let have = Kind::peek(bytes)?.code();
            return Err(ParseError::Type { message, need: kind.code(), have });
        }
        if flags >> 6 != 0 {
            return Err(ParseError::Envelope { message, slot: flags >> 6 });
        }
        if flags & !known_flags != 0 {
            return Err(ParseError::Flags { message, need: known_flags, have: flags });
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if length < fixed_len || is_fixed && length > fixed_len {
            return Err(ParseError::Length { message, need: fixed_len, have: length });
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
        ParseError::Truncated { message: self.kind.name(), need: self.fixed_len, have }
    }
}
