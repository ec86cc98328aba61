//! Withdrawal: the sender has no route to these RSUs any more, or leaves the network.
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x25`                                                              |
//! |      1 |     1 | flags       | bit 0 goodbye: the sender leaves altogether                         |
//! |      2 |     2 | length      | 16 + 6 × count                                                      |
//! |      4 |     6 | sender      | who lost its routes                                                 |
//! |     10 |     4 | sender_boot | starts of the sender                                                |
//! |     14 |     1 | count       | ids that follow: 1 to 64, with goodbye 0                            |
//! |     15 |     1 | reserved    | zero                                                                |
//! |     16 |   6 × | rsus        | the RSUs                                                            |
//!
//! One hop, never relayed: who routed through the sender decides for itself and withdraws in turn.

use crate::mac::NodeId;
use crate::messages::flags::{GOODBYE, flag};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::{Kind, ParseError};
use crate::order::Boot;

/// Length without the ids.
pub const HEADER_LEN: usize = 16;

/// Ids in one message. No node keeps routes to more RSUs.
pub const MAX_RSUS: usize = 64;

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 sender: 6,
        10 sender_boot: 4,
        14 count: 1,
        15 reserved: 1,
    }
}

/// The sender has no route any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawal<'a> {
    /// Who lost its routes.
    pub sender: NodeId,
    /// Starts of the sender.
    pub sender_boot: Boot,
    /// The sender leaves altogether; `rsus` is empty.
    pub goodbye: bool,
    /// To these; not empty unless `goodbye`.
    pub rsus: NodeIds<'a>,
}

/// At most [`MAX_RSUS`] node ids, none of them [`NodeId::NONE`], where they stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NodeIds<'a>(&'a [[u8; NodeId::LEN]]);

impl<'a> NodeIds<'a> {
    /// No ids.
    pub const EMPTY: Self = Self(&[]);

    /// The ids in these bytes, all of which they must fill. [`Self::encode`] makes such bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::Withdrawal;
        let (ids, rest) = bytes.as_chunks::<{ NodeId::LEN }>();
        if !rest.is_empty() {
            let need = bytes.len() + NodeId::LEN - rest.len();
            return Err(ParseError::Truncated { message: kind.name(), need, have: bytes.len() });
        }
        if ids.len() > MAX_RSUS {
            let have = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            return Err(kind.value("count", "at most 64", have));
        }
        for &id in ids {
            kind.node("rsus", id)?;
        }
        Ok(Self(ids))
    }

    /// Appends ids as they stand in a message.
    pub fn encode(ids: &[NodeId], out: &mut Vec<u8>) {
        out.reserve(ids.len() * NodeId::LEN);
        for id in ids {
            out.extend_from_slice(&id.0);
        }
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// None.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// First to last.
    pub fn iter(self) -> impl ExactSizeIterator<Item = NodeId> + use<'a> {
        self.0.iter().map(|&id| NodeId(id))
    }
}

impl Withdrawal<'_> {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::Withdrawal, HEADER_LEN, GOODBYE);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.rsus.len() * NodeId::LEN
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.rsus.0.as_flattened());
    }

    pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.reserve(Wire::FIELDS + self.rsus.len());
        self.wire().push_parts(parts);
        parts.extend(self.rsus.0.iter().map(|id| id.to_vec()));
    }

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Withdrawal.first_byte(),
            flags: [flag(self.goodbye, GOODBYE)],
            length: length(self.wire_len()),
            sender: self.sender.0,
            sender_boot: self.sender_boot.0.to_be_bytes(),
            // At most 64, see `NodeIds::parse`.
            count: [u8::try_from(self.rsus.len()).unwrap_or(u8::MAX)],
            reserved: [0],
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for Withdrawal<'a> {
    type Error = ParseError;

    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::Withdrawal;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, ids)) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            sender,
            sender_boot,
            count: [count],
            reserved: [reserved],
        } = wire;
        let goodbye = flags & GOODBYE != 0;
        if goodbye != (count == 0) {
            let need = if goodbye { "0 with goodbye" } else { "at least 1 without goodbye" };
            return Err(kind.value("count", need, u32::from(count)));
        }
        if reserved != 0 {
            return Err(kind.value("reserved", "zero", u32::from(reserved)));
        }
        let need = HEADER_LEN + usize::from(count) * NodeId::LEN;
        if body.len() != need {
            return Err(ParseError::Length { message: kind.name(), need, have: body.len() });
        }
        Ok(Self {
            sender: kind.node("sender", sender)?,
            sender_boot: Boot(u32::from_be_bytes(sender_boot)),
            goodbye,
            rsus: NodeIds::parse(ids)?,
        })
    }
}

conversions!(Withdrawal<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: NodeId = NodeId([2, 0, 0, 0, 0, 9]);

    fn ids(count: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let ids: Vec<_> = (1..=count).map(|last| NodeId([2, 0, 0, 0, 1, last])).collect();
        NodeIds::encode(&ids, &mut bytes);
        bytes
    }

    fn withdrawal(rsus: &[u8]) -> Withdrawal<'_> {
        let rsus = NodeIds::parse(rsus).unwrap();
        Withdrawal { sender: SENDER, sender_boot: Boot(2), goodbye: rsus.is_empty(), rsus }
    }

    #[test]
    fn reads_as_it_was_written() {
        for count in [0, 1, 2, 64] {
            let ids = ids(count);
            let flat: Vec<u8> = (&withdrawal(&ids)).into();
            assert_eq!(flat.len(), 16 + 6 * usize::from(count));
            let read = Withdrawal::try_from(&flat[..]).unwrap();
            assert_eq!(read, withdrawal(&ids));
            assert_eq!(read.rsus.iter().len(), usize::from(count));
            assert!(read.rsus.iter().all(|id| id.0[4] == 1));
        }
    }

    #[test]
    fn says_something() {
        let mut flat: Vec<u8> = (&withdrawal(&[])).into();
        flat[1] = 0;
        let error = Withdrawal::try_from(&flat[..]).unwrap_err();
        assert_eq!(error.to_string(), "Withdrawal: count 0 where it is at least 1 without goodbye");
    }

    #[test]
    fn a_goodbye_names_nobody() {
        let ids = ids(1);
        let mut flat: Vec<u8> = (&withdrawal(&ids)).into();
        flat[1] = GOODBYE;
        let error = Withdrawal::try_from(&flat[..]).unwrap_err();
        assert_eq!(error.to_string(), "Withdrawal: count 1 where it is 0 with goodbye");
    }

    #[test]
    fn refuses_a_reserved_byte() {
        let mut flat: Vec<u8> = (&withdrawal(&[])).into();
        flat[15] = 1;
        let error = Withdrawal::try_from(&flat[..]).unwrap_err();
        assert!(matches!(error, ParseError::Value { field: "reserved", .. }), "{error}");
    }

    #[test]
    fn count_and_length_agree() {
        let ids = ids(2);
        let mut flat: Vec<u8> = (&withdrawal(&ids)).into();
        flat[14] = 1;
        let need = ParseError::Length { message: "Withdrawal", need: 22, have: 28 };
        assert_eq!(Withdrawal::try_from(&flat[..]), Err(need));
    }

    #[test]
    fn refuses_nobody_too_many_and_half_an_id() {
        let error = NodeIds::parse(&[0; 6]).unwrap_err();
        assert_eq!(error, ParseError::NoNode { message: "Withdrawal", field: "rsus" });
        let error = NodeIds::parse(&[2; 65 * 6]).unwrap_err();
        assert!(matches!(error, ParseError::Value { field: "count", have: 65, .. }), "{error}");
        let error = NodeIds::parse(&[2; 7]).unwrap_err();
        assert_eq!(error, ParseError::Truncated { message: "Withdrawal", need: 12, have: 7 });
    }
}
