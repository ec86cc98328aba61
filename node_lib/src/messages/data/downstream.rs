//! A frame on its way from the RSU to a client, or to all: [`ToDownstream`].
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x29`                                                              |
//! |      1 |     1 | flags       | bits 2–0 user priority; bit 3 flood: all OBUs attached to the source |
//! |      2 |     2 | length      | 22 + labels and padding, or 22 + `taken_at`; + the inner frame      |
//! |      4 |     6 | destination | the OBU; with flood the one left out, zero: nobody                  |
//! |     10 |     6 | source      | the RSU                                                             |
//! |     16 |     1 | relays      | yet to pass, see [way]; with flood relays still allowed               |
//! |     17 |     1 | boot        | low 8 bits of the starts of the source                              |
//! |     18 |     4 | seq         | frames of the source since that start                               |
//!
//! Without flood the way follows:
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |     22 |   2 × | labels      | of the relays beyond the next one                                   |
//! |        |0 or 2 | padding     | zero, behind an odd number of labels: both make a multiple of 4     |
//! |        |       | payload     | the inner frame, at least its 14-byte header                        |
//!
//! With flood, what the frame is known by:
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |     22 |     4 | taken_at    | sequence of the RSU's last heartbeat before it took the frame       |
//! |     26 |       | payload     | the inner frame, at least its 14-byte header                        |
//!
//! Two RSUs on one LAN each send its broadcasts down. `taken_at` tells an OBU that hears both RSUs
//! which of their floods were taken from the LAN at the same time, however late they come.
//!
//! [way]: crate::messages::way

use super::{HEADER_LEN, Wire, open, payload};
use crate::mac::NodeId;
use crate::messages::flags::{FLOOD, PRIORITY, flag};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::way::{LABEL_LEN, Way, labels_of};
use crate::messages::{Kind, ParseError};
use crate::order::Seq;

/// Bytes of so many labels with their padding.
pub(super) const fn way_len(labels: usize) -> usize {
    (labels * LABEL_LEN).next_multiple_of(4)
}

/// Follows an odd number of labels.
const PADDING: [u8; LABEL_LEN] = [0; LABEL_LEN];

#[inline]
const fn is_padded(way: Way<'_>) -> bool {
    way.labels() % 2 == 1
}

/// Length of `taken_at`.
const TAKEN_AT_LEN: usize = 4;

/// Whom a frame from the RSU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// One OBU.
    Node {
        /// Who.
        id: NodeId,
        /// What is left of the way to it.
        way: Way<'a>,
    },
    /// Every OBU attached to the source.
    All {
        /// But this one, which the frame came from; [`NodeId::NONE`] leaves nobody out.
        except: NodeId,
        /// Relays still allowed.
        hop_limit: u8,
        /// Sequence of the RSU's last heartbeat before it took the frame.
        taken_at: Seq,
    },
}

/// A frame on its way from the RSU to a client, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToDownstream<'a> {
    /// Whom it is for.
    pub destination: Destination<'a>,
    /// The RSU.
    pub source: NodeId,
    /// Low 8 bits of the starts of the source.
    pub boot: u8,
    /// Frames of the source since that start.
    pub seq: Seq,
    /// User priority of the inner frame, at most 7.
    pub priority: u8,
    /// The inner frame.
    pub payload: &'a [u8],
}

impl ToDownstream<'_> {
    pub(crate) const FORMAT: Format =
        Format::at_least(Kind::ToDownstream, HEADER_LEN, FLOOD | PRIORITY);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        self.head_len() + self.payload.len()
    }

    /// Bytes before the payload.
    #[inline]
    pub const fn head_len(&self) -> usize {
        HEADER_LEN
            + match self.destination {
                Destination::Node { way, .. } => way_len(way.labels()),
                Destination::All { .. } => TAKEN_AT_LEN,
            }
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.emit_head(out);
        out.extend_from_slice(self.payload);
    }

    #[inline]
    pub(super) fn emit_head(&self, out: &mut Vec<u8>) {
        self.wire().append(out);
        match self.destination {
            Destination::Node { way, .. } => {
                out.extend_from_slice(way.as_bytes());
                if is_padded(way) {
                    out.extend_from_slice(&PADDING);
                }
            }
            Destination::All { taken_at, .. } => {
                out.extend_from_slice(&taken_at.0.to_be_bytes());
            }
        }
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        // Labels, their padding and the inner frame.
        parts.reserve(Wire::FIELDS + (self.head_len() - HEADER_LEN) / LABEL_LEN + 1);
        self.wire().push_parts(parts);
        match self.destination {
            Destination::Node { way, .. } => {
                parts.extend(way.as_bytes().chunks(LABEL_LEN).map(<[u8]>::to_vec));
                if is_padded(way) {
                    parts.push(PADDING.to_vec());
                }
            }
            Destination::All { taken_at, .. } => parts.push(taken_at.0.to_be_bytes().to_vec()),
        }
        parts.push(self.payload.to_vec());
    }

    #[inline]
    pub(super) fn wire(&self) -> Wire {
        let (is_flood, destination, limit) = match self.destination {
            Destination::Node { id, way } => (false, id, way.relays()),
            Destination::All { except, hop_limit, .. } => (true, except, hop_limit),
        };
        Wire {
            version_type: Kind::ToDownstream.first_byte(),
            flags: [flag(is_flood, FLOOD) | self.priority & PRIORITY],
            length: length(self.wire_len()),
            destination: destination.0,
            source: self.source.0,
            limit: [limit],
            boot: [self.boot],
            seq: self.seq.0.to_be_bytes(),
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for ToDownstream<'a> {
    type Error = ParseError;

    #[inline]
    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::ToDownstream;
        let (flags, wire, rest) = open(Self::FORMAT, bytes)?;
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            destination,
            source,
            limit: [limit],
            boot: [boot],
            seq,
        } = wire;
        let (destination, payload) = if flags & FLOOD != 0 {
            let (taken_at, payload) = payload(kind, rest, TAKEN_AT_LEN)?;
            let taken_at = taken_at.first_chunk().copied().unwrap_or_default();
            let all = Destination::All {
                except: NodeId(destination),
                hop_limit: limit,
                taken_at: Seq(u32::from_be_bytes(taken_at)),
            };
            (all, payload)
        } else {
            let relays = kind.relays(limit)?;
            let count = labels_of(relays);
            let (way, payload) = payload(kind, rest, way_len(count))?;
            let (labels, padding) = way.as_chunks().0.split_at(count);
            if let Some(&have) = padding.iter().find(|bytes| **bytes != PADDING) {
                return Err(kind.value("padding", "zero", u16::from_be_bytes(have).into()));
            }
            let way = Way::new(relays, labels).unwrap_or_default();
            let id = kind.node("destination", destination)?;
            (Destination::Node { id, way }, payload)
        };
        Ok(Self {
            destination,
            source: kind.node("source", source)?,
            boot,
            seq: Seq(u32::from_be_bytes(seq)),
            priority: flags & PRIORITY,
            payload,
        })
    }
}

conversions!(ToDownstream<'_>);

#[cfg(test)]
mod tests {
    use super::super::Data;
    use super::super::HEADER_LEN_MAX;
    use super::super::tests::{FLOOD_TO_ALL, FRAME, OBU, RSU, down, labels, to_obu};
    use super::*;
    use crate::messages::capacity::{INNER_OVERHEAD, TAP_MTU_MAX};
    use crate::messages::way::{LABELS_MAX, RELAYS_MAX};

    /// A message down with these relays and this behind the fixed fields, its length as it should
    /// be.
    fn raw(relays: u8, behind: &[u8]) -> Vec<u8> {
        let len = u8::try_from(HEADER_LEN + behind.len()).unwrap();
        let mut bytes = vec![0x29, 0, 0, len, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        bytes.extend([relays, 3, 0, 0, 0, 5]);
        bytes.extend(behind);
        bytes
    }

    #[test]
    fn ways_of_every_length_read_as_they_were_written() {
        let labels = labels();
        for relays in 0..=RELAYS_MAX {
            let count = usize::from(relays).saturating_sub(1);
            let message = down(to_obu(Way::new(relays, &labels[..count]).unwrap()));
            let flat: Vec<u8> = (&message).into();

            let mut behind = labels[..count].concat();
            if count % 2 == 1 {
                behind.extend([0, 0]);
            }
            behind.extend(FRAME);
            let mut expected = raw(relays, &behind);
            expected[1] = 6;
            assert_eq!(flat, expected, "{relays} relays");

            let head_len = flat.len() - FRAME.len();
            assert_eq!((message.head_len(), head_len % 4), (head_len, 2), "{relays} relays");
            let mut head = Vec::new();
            Data::from(message).emit_head(&mut head);
            assert_eq!(head, flat[..head_len], "{relays} relays");
            assert_eq!(ToDownstream::try_from(&flat[..]), Ok(message), "{relays} relays");
        }
        assert_eq!(HEADER_LEN_MAX, 22 + 28);
    }

    #[test]
    fn a_flood_says_when_its_frame_was_taken() {
        let without = Destination::All { except: OBU, hop_limit: 14, taken_at: Seq(0x0a0b_0c0d) };
        for (destination, named) in [(without, OBU), (FLOOD_TO_ALL, NodeId::NONE)] {
            let message = down(destination);
            let flat: Vec<u8> = (&message).into();
            assert_eq!(flat[..4], [0x29, 0x08 | 6, 0, 46]);
            assert_eq!(flat[4..16], [named.0, RSU.0].concat());
            assert_eq!(flat[16..26], [14, 3, 0, 0, 0, 5, 0x0a, 0x0b, 0x0c, 0x0d]);
            assert_eq!(flat[26..], FRAME);
            assert_eq!((message.head_len(), message.head_len() % 4), (26, 2));
            assert_eq!(ToDownstream::try_from(&flat[..]), Ok(message));
        }
    }

    #[test]
    fn padding_is_zero_and_labels_may_be() {
        let refused = |have| ParseError::Value {
            message: "ToDownstream",
            field: "padding",
            need: "zero",
            have,
        };
        for (padding, have) in [([0, 1], 1), ([1, 0], 256)] {
            let flat = raw(2, &[&[0xa0, 1], &padding[..], &FRAME].concat());
            assert_eq!(ToDownstream::try_from(&flat[..]), Err(refused(have)));
        }
        for label in [[0; LABEL_LEN], [0xff; LABEL_LEN]] {
            let flat = raw(2, &[&label[..], &[0, 0], &FRAME].concat());
            let way = [label];
            let meant = down(to_obu(Way::new(2, &way).unwrap()));
            let read = ToDownstream::try_from(&flat[..]);
            assert_eq!(read, Ok(ToDownstream { priority: 0, ..meant }));
        }
    }

    #[test]
    fn a_way_is_no_longer_than_the_longest() {
        let behind = [&labels().concat()[..], &[0, 0], &FRAME].concat();
        for relays in [RELAYS_MAX + 1, u8::MAX] {
            let need = ParseError::Value {
                message: "ToDownstream",
                field: "relays",
                need: "at most 15",
                have: relays.into(),
            };
            assert_eq!(ToDownstream::try_from(&raw(relays, &behind)[..]), Err(need));
        }
        // A flood's byte counts relays still allowed, and has no limit of its own.
        let flood = Destination::All { except: OBU, hop_limit: u8::MAX, taken_at: Seq(1) };
        let flat: Vec<u8> = (&down(flood)).into();
        assert_eq!(ToDownstream::try_from(&flat[..]), Ok(down(flood)));
    }

    #[test]
    fn labels_that_are_not_there_are_no_part_of_the_frame() {
        // Fifteen relays want 28 bytes of labels, and the message has 20.
        let need = ParseError::Length { message: "ToDownstream", need: 64, have: 42 };
        assert_eq!(ToDownstream::try_from(&raw(RELAYS_MAX, &FRAME)[..]), Err(need));
    }

    #[test]
    fn the_longest_frame_of_the_largest_tap_fits_the_length_field() {
        let largest = vec![0; TAP_MTU_MAX + INNER_OVERHEAD];
        let labels = labels();
        let way = Way::new(RELAYS_MAX, &labels[..LABELS_MAX]).unwrap();
        let flat: Vec<u8> = (&ToDownstream { payload: &largest, ..down(to_obu(way)) }).into();
        assert_eq!(flat.len(), usize::from(u16::MAX));
        assert_eq!(ToDownstream::try_from(&flat[..]).unwrap().payload.len(), largest.len());
    }
}
