//! A client's frame on its way to the RSU: [`ToUpstream`].
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x28`                                                              |
//! |      1 |     1 | flags       | bits 2–0 user priority of the inner frame; bit 4 again              |
//! |      2 |     2 | length      | 22 + the inner frame                                                |
//! |      4 |     6 | destination | the RSU                                                             |
//! |     10 |     6 | source      | the OBU whose client sent the frame                                 |
//! |     16 |     1 | hop_limit   | relays still allowed                                                |
//! |     17 |     1 | boot        | low 8 bits of the starts of the source                              |
//! |     18 |     4 | seq         | frames of the source since that start                               |
//! |     22 |       | payload     | the inner frame, at least its 14-byte header                        |

use super::{HEADER_LEN, Wire, open, payload};
use crate::mac::NodeId;
use crate::messages::flags::{AGAIN, PRIORITY, flag};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::{Kind, ParseError};
use crate::order::Seq;

/// A client's frame on its way to the RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToUpstream<'a> {
    /// The RSU.
    pub destination: NodeId,
    /// The OBU whose client sent the frame.
    pub source: NodeId,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// Low 8 bits of the starts of the source.
    pub boot: u8,
    /// Frames of the source since that start.
    pub seq: Seq,
    /// User priority of the inner frame, at most 7.
    pub priority: u8,
    /// It has been given to another next hop before, which was lost: nobody does that once more.
    pub again: bool,
    /// The inner frame.
    pub payload: &'a [u8],
}

impl ToUpstream<'_> {
    pub(crate) const FORMAT: Format =
        Format::at_least(Kind::ToUpstream, HEADER_LEN, AGAIN | PRIORITY);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.payload.len()
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.payload);
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.reserve(Wire::FIELDS + 1);
        self.wire().push_parts(parts);
        parts.push(self.payload.to_vec());
    }

    #[inline]
    pub(super) fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::ToUpstream.first_byte(),
            flags: [flag(self.again, AGAIN) | self.priority & PRIORITY],
            length: length(self.wire_len()),
            destination: self.destination.0,
            source: self.source.0,
            limit: [self.hop_limit],
            boot: [self.boot],
            seq: self.seq.0.to_be_bytes(),
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for ToUpstream<'a> {
    type Error = ParseError;

    #[inline]
    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::ToUpstream;
        let (flags, wire, rest) = open(Self::FORMAT, bytes)?;
        let (_, payload) = payload(kind, rest, 0)?;
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            destination,
            source,
            limit: [hop_limit],
            boot: [boot],
            seq,
        } = wire;
        Ok(Self {
            destination: kind.node("destination", destination)?,
            source: kind.node("source", source)?,
            hop_limit,
            boot,
            seq: Seq(u32::from_be_bytes(seq)),
            priority: flags & PRIORITY,
            again: flags & AGAIN != 0,
            payload,
        })
    }
}

conversions!(ToUpstream<'_>);

#[cfg(test)]
mod tests {
    use super::super::HOP_LIMIT_OFFSET;
    use super::super::tests::{FRAME, OBU, RSU, up};
    use super::*;

    #[test]
    fn upstream_reads_as_it_was_written() {
        let flat: Vec<u8> = (&up()).into();
        assert_eq!(flat[..4], [0x28, 5, 0, 42]);
        assert_eq!(flat[4..16], [RSU.0, OBU.0].concat());
        assert_eq!(flat[16..22], [8, 9, 1, 2, 3, 4]);
        assert_eq!(flat[22..], FRAME);
        assert_eq!(ToUpstream::try_from(&flat[..]), Ok(up()));
        let again = ToUpstream { again: true, ..up() };
        let flat: Vec<u8> = (&again).into();
        assert_eq!((flat[1], ToUpstream::try_from(&flat[..])), (5 | 16, Ok(again)));
    }

    #[test]
    fn a_relay_patches_the_hop_limit() {
        let mut flat: Vec<u8> = (&up()).into();
        assert_eq!(flat[HOP_LIMIT_OFFSET], 8);
        flat[HOP_LIMIT_OFFSET] = 7;
        assert_eq!(ToUpstream::try_from(&flat[..]), Ok(ToUpstream { hop_limit: 7, ..up() }));
    }
}
