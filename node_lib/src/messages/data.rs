//! The data plane: a client's Ethernet frame, whole, on its way to the RSU or from it.
//!
//! # ToUpstream
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x28`                                                              |
//! |      1 |     1 | flags       | bits 2–0 user priority of the inner frame                           |
//! |      2 |     2 | length      | 22 + the inner frame                                                |
//! |      4 |     6 | destination | the RSU                                                             |
//! |     10 |     6 | source      | the OBU whose client sent the frame                                 |
//! |     16 |     1 | hop_limit   | relays still allowed                                                |
//! |     17 |     1 | boot        | low 8 bits of the starts of the source                              |
//! |     18 |     4 | seq         | frames of the source since that start                               |
//! |     22 |       | payload     | the inner frame, at least its 14-byte header                        |
//!
//! # ToDownstream
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x29`                                                              |
//! |      1 |     1 | flags       | bits 2–0 as above; bit 3 flood: for every OBU attached to the source |
//! |      2 |     2 | length      | 22 + labels and padding, or 22 + `taken_at`; + the inner frame      |
//! |      4 |     6 | destination | the OBU; with flood the one left out, zero: nobody                  |
//! |     10 |     6 | source      | the RSU                                                             |
//! |     16 |     1 | relays      | yet to pass, see [`super::way`]; with flood relays still allowed    |
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
//! Source, `boot` and `seq` together suppress duplicates. Eight bits of boot count only have to
//! differ from those of the start before. Which of two is the later one they do not tell.
//!
//! The user priority stands in the header so that a relay need not look for it in the inner frame,
//! which may be encrypted some day.
//!
//! What is before the inner frame has 22 bytes and a multiple of 4 more, 50 at most: ≡ 2 mod 4.
//! Behind 14 bytes of outer Ethernet and 14 of inner, the inner IP header starts at byte 50 of the
//! frame or a multiple of 4 later, ≡ 14 mod 4. A receiver that places frames so that the IP header
//! after one Ethernet header is aligned (Linux: `NET_IP_ALIGN`) has this one aligned too.

use std::mem::offset_of;

use super::flags::{FLOOD, PRIORITY, flag};
use super::format::Format;
use super::prefix::length;
use super::way::{LABEL_LEN, LABELS_MAX, Way, labels_of};
use super::{ETHERNET_HEADER_LEN, Kind, ParseError};
use crate::mac::NodeId;
use crate::order::Seq;

/// Length of the fields both messages begin with: all that is before the inner frame, but for ways
/// and floods.
pub const HEADER_LEN: usize = 22;

/// The longest header: that of a way with as many labels as there may be.
pub const HEADER_LEN_MAX: usize = HEADER_LEN + way_len(LABELS_MAX);

/// Kept for a way's labels in each frame of the radio: ways of eight hops. What goes farther takes
/// longer headers, and a full frame then goes in two fragments.
pub const WAY_KEPT: usize = way_len(6);

/// Where `hop_limit` (1 byte) of a [`ToUpstream`] stands, from the prefix on.
pub const HOP_LIMIT_OFFSET: usize = offset_of!(Wire, limit);

/// Bytes of so many labels with their padding.
const fn way_len(labels: usize) -> usize {
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

// A field of its own keeps the payload aligned; see above.
const _: () = assert!(HEADER_LEN % 4 == 2 && HEADER_LEN <= 24);

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 destination: 6,
        10 source: 6,
        16 limit: 1,
        17 boot: 1,
        18 seq: 4,
    }
}

/// Any message of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// To an RSU.
    Upstream(ToUpstream<'a>),
    /// To OBUs.
    Downstream(ToDownstream<'a>),
}

impl Data<'_> {
    /// Which message this is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Upstream(_) => Kind::ToUpstream,
            Self::Downstream(_) => Kind::ToDownstream,
        }
    }

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        match self {
            Self::Upstream(message) => message.wire_len(),
            Self::Downstream(message) => message.wire_len(),
        }
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Upstream(message) => message.emit(out),
            Self::Downstream(message) => message.emit(out),
        }
    }

    /// Bytes of the message before its payload.
    #[inline]
    pub const fn head_len(&self) -> usize {
        match self {
            Self::Upstream(_) => HEADER_LEN,
            Self::Downstream(message) => message.head_len(),
        }
    }

    /// Appends the message up to its payload, for a sender that has that in place.
    #[inline]
    pub fn emit_head(&self, out: &mut Vec<u8>) {
        match self {
            Self::Upstream(message) => message.wire().append(out),
            Self::Downstream(message) => message.emit_head(out),
        }
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        match self {
            Self::Upstream(message) => message.push_parts(parts),
            Self::Downstream(message) => message.push_parts(parts),
        }
    }
}

impl<'a> Data<'a> {
    /// Reads a message of the data plane. `None` if it is another, or malformed.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        match Kind::peek(bytes) {
            Ok(Kind::ToUpstream) => ToUpstream::try_from(bytes).ok().map(Self::Upstream),
            Ok(Kind::ToDownstream) => ToDownstream::try_from(bytes).ok().map(Self::Downstream),
            _ => None,
        }
    }

    /// User priority of the inner frame, at most 7.
    #[inline]
    pub const fn priority(&self) -> u8 {
        match self {
            Self::Upstream(message) => message.priority,
            Self::Downstream(message) => message.priority,
        }
    }

    /// The inner frame.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        match self {
            Self::Upstream(message) => message.payload,
            Self::Downstream(message) => message.payload,
        }
    }
}

impl<'a> From<ToUpstream<'a>> for Data<'a> {
    #[inline]
    fn from(message: ToUpstream<'a>) -> Self {
        Self::Upstream(message)
    }
}

impl<'a> From<ToDownstream<'a>> for Data<'a> {
    #[inline]
    fn from(message: ToDownstream<'a>) -> Self {
        Self::Downstream(message)
    }
}

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
    /// The inner frame.
    pub payload: &'a [u8],
}

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

impl ToUpstream<'_> {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::ToUpstream, HEADER_LEN, PRIORITY);

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
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::ToUpstream.first_byte(),
            flags: [self.priority & PRIORITY],
            length: length(self.wire_len()),
            destination: self.destination.0,
            source: self.source.0,
            limit: [self.hop_limit],
            boot: [self.boot],
            seq: self.seq.0.to_be_bytes(),
        }
    }
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
    fn emit_head(&self, out: &mut Vec<u8>) {
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
    fn wire(&self) -> Wire {
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

/// Flags and fields of either message, and what follows them.
#[inline]
fn open(format: Format, bytes: &[u8]) -> Result<(u8, Wire, &[u8]), ParseError> {
    let (flags, body) = format.open(bytes)?;
    let Some((wire, rest)) = Wire::read(body) else {
        return Err(format.truncated(body.len()));
    };
    Ok((flags, wire, rest))
}

/// What is left of `rest` behind `len` bytes, which holds a frame with its header.
#[inline]
fn payload(kind: Kind, rest: &[u8], len: usize) -> Result<(&[u8], &[u8]), ParseError> {
    match rest.split_at_checked(len) {
        Some(parts) if parts.1.len() >= ETHERNET_HEADER_LEN => Ok(parts),
        _ => Err(ParseError::Length {
            message: kind.name(),
            need: HEADER_LEN + len + ETHERNET_HEADER_LEN,
            have: HEADER_LEN + rest.len(),
        }),
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
            payload,
        })
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

conversions!(ToUpstream<'_>, ToDownstream<'_>, Data<'_>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::capacity::{TAP_MTU_MAX, VLAN_TAG_LEN};
    use crate::messages::way::RELAYS_MAX;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    const FRAME: [u8; 20] = [0x55; 20];
    const FLOOD_TO_ALL: Destination<'static> =
        Destination::All { except: NodeId::NONE, hop_limit: 14, taken_at: Seq(0x0a0b_0c0d) };

    /// More labels than any way has; no two alike, none zero.
    fn labels() -> [[u8; LABEL_LEN]; LABELS_MAX + 1] {
        std::array::from_fn(|index| [0xa0, u8::try_from(index).unwrap() + 1])
    }

    fn to_obu(way: Way<'_>) -> Destination<'_> {
        Destination::Node { id: OBU, way }
    }

    fn up() -> ToUpstream<'static> {
        ToUpstream {
            destination: RSU,
            source: OBU,
            hop_limit: 8,
            boot: 9,
            seq: Seq(0x0102_0304),
            priority: 5,
            payload: &FRAME,
        }
    }

    fn down(destination: Destination<'_>) -> ToDownstream<'_> {
        ToDownstream {
            destination,
            source: RSU,
            boot: 3,
            seq: Seq(5),
            priority: 6,
            payload: &FRAME,
        }
    }

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
    fn upstream_reads_as_it_was_written() {
        let flat: Vec<u8> = (&up()).into();
        assert_eq!(flat[..4], [0x28, 5, 0, 42]);
        assert_eq!(flat[4..16], [RSU.0, OBU.0].concat());
        assert_eq!(flat[16..22], [8, 9, 1, 2, 3, 4]);
        assert_eq!(flat[22..], FRAME);
        assert_eq!(ToUpstream::try_from(&flat[..]), Ok(up()));
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
    fn every_priority_stands_in_the_flags() {
        for priority in 0..=7 {
            let message = ToUpstream { priority, ..up() };
            let flat: Vec<u8> = (&message).into();
            assert_eq!(flat[1], priority);
            assert_eq!(Data::read(&flat), Some(message.into()));
            for (destination, flags) in
                [(to_obu(Way::END), priority), (FLOOD_TO_ALL, 0x08 | priority)]
            {
                let message = ToDownstream { priority, ..down(destination) };
                let flat: Vec<u8> = (&message).into();
                assert_eq!(flat[1], flags);
                let read = Data::read(&flat).unwrap();
                assert_eq!((read, read.priority()), (message.into(), priority));
            }
        }
    }

    #[test]
    fn a_flood_goes_no_way_up() {
        let mut flat: Vec<u8> = (&up()).into();
        flat[1] |= 0x08;
        let need = ParseError::Flags { message: "ToUpstream", need: 0x07, have: 0x0d };
        assert_eq!(ToUpstream::try_from(&flat[..]), Err(need));
        let mut flat: Vec<u8> = (&down(FLOOD_TO_ALL)).into();
        flat[1] |= 0x10;
        let need = ParseError::Flags { message: "ToDownstream", need: 0x0f, have: 0x1e };
        assert_eq!(ToDownstream::try_from(&flat[..]), Err(need));
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
    fn one_addressee_has_a_name() {
        let nobody = Destination::Node { id: NodeId::NONE, way: Way::END };
        let flat: Vec<u8> = (&down(nobody)).into();
        let need = ParseError::NoNode { message: "ToDownstream", field: "destination" };
        assert_eq!(ToDownstream::try_from(&flat[..]), Err(need));
        let flat: Vec<u8> = (&ToUpstream { destination: NodeId::NONE, ..up() }).into();
        let need = ParseError::NoNode { message: "ToUpstream", field: "destination" };
        assert_eq!(ToUpstream::try_from(&flat[..]), Err(need));
    }

    #[test]
    fn the_inner_frame_has_a_header() {
        let flat: Vec<u8> = (&ToUpstream { payload: &FRAME[..13], ..up() }).into();
        let need = ParseError::Length { message: "ToUpstream", need: 36, have: 35 };
        assert_eq!(ToUpstream::try_from(&flat[..]), Err(need));
        let flat: Vec<u8> = (&ToUpstream { payload: &FRAME[..14], ..up() }).into();
        assert!(ToUpstream::try_from(&flat[..]).is_ok());
        let labels = labels();
        for (destination, need) in [
            (to_obu(Way::END), 36),
            (to_obu(Way::new(2, &labels[..1]).unwrap()), 40),
            (to_obu(Way::new(RELAYS_MAX, &labels[..LABELS_MAX]).unwrap()), 64),
            (FLOOD_TO_ALL, 40),
        ] {
            let message = ToDownstream { payload: &FRAME[..13], ..down(destination) };
            let flat: Vec<u8> = (&message).into();
            let error = ParseError::Length { message: "ToDownstream", need, have: need - 1 };
            assert_eq!(ToDownstream::try_from(&flat[..]), Err(error));
            let message = ToDownstream { payload: &FRAME[..14], ..message };
            let flat: Vec<u8> = (&message).into();
            assert_eq!(ToDownstream::try_from(&flat[..]), Ok(message));
        }
    }

    #[test]
    fn labels_that_are_not_there_are_no_part_of_the_frame() {
        // Fifteen relays want 28 bytes of labels, and the message has 20.
        let need = ParseError::Length { message: "ToDownstream", need: 64, have: 42 };
        assert_eq!(ToDownstream::try_from(&raw(RELAYS_MAX, &FRAME)[..]), Err(need));
    }

    #[test]
    fn a_relay_patches_the_hop_limit() {
        let mut flat: Vec<u8> = (&up()).into();
        assert_eq!(flat[HOP_LIMIT_OFFSET], 8);
        flat[HOP_LIMIT_OFFSET] = 7;
        assert_eq!(ToUpstream::try_from(&flat[..]), Ok(ToUpstream { hop_limit: 7, ..up() }));
    }

    #[test]
    fn the_longest_frame_of_the_largest_tap_fits_the_length_field() {
        let largest = vec![0; TAP_MTU_MAX + ETHERNET_HEADER_LEN + VLAN_TAG_LEN];
        let labels = labels();
        let way = Way::new(RELAYS_MAX, &labels[..LABELS_MAX]).unwrap();
        let flat: Vec<u8> = (&ToDownstream { payload: &largest, ..down(to_obu(way)) }).into();
        assert_eq!(flat.len(), usize::from(u16::MAX));
        assert_eq!(ToDownstream::try_from(&flat[..]).unwrap().payload.len(), largest.len());
    }
}
