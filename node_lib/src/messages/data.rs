//! The data plane: a client's Ethernet frame, whole, on its way to the RSU or from it.
//!
//! # ToUpstream
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x18`                                                              |
//! |      1 |     1 | flags       | none                                                                |
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
//! |      0 |     1 | type        | `0x19`                                                              |
//! |      1 |     1 | flags       | bit 0 flood: for every OBU attached to the source                   |
//! |      2 |     2 | length      | 22 + the inner frame                                                |
//! |      4 |     6 | destination | the OBU; with flood the one left out, zero: nobody                  |
//! |     10 |     6 | source      | the RSU                                                             |
//! |     16 |     1 | hop_limit   | relays still allowed                                                |
//! |     17 |     1 | boot        | low 8 bits of the starts of the source                              |
//! |     18 |     4 | seq         | frames of the source since that start                               |
//! |     22 |       | payload     | the inner frame, at least its 14-byte header                        |
//!
//! Source, `boot` and `seq` together suppress duplicates. Eight bits of boot count only have to differ from
//! those of the start before. Which of two is the later one they do not tell.
//!
//! The header is 22 bytes, ≡ 2 mod 4: behind 14 bytes of outer Ethernet and 14 of inner, the inner IP
//! header starts at offset 50 of the frame, ≡ 14 mod 4. A receiver that places frames so that the IP
//! header after one Ethernet header is aligned (Linux: `NET_IP_ALIGN`) has this one aligned too.

use std::mem::offset_of;

use super::prefix::{FLOOD, length};
use super::{ETHERNET_HEADER_LEN, Kind, ParseError, fragment};
use crate::mac::NodeId;
use crate::order::Seq;

/// Length before the inner frame, of both messages.
pub const HEADER_LEN: usize = 22;

/// Where `hop_limit` (1 byte) stands, from the prefix on, in both messages.
pub const HOP_LIMIT_OFFSET: usize = offset_of!(Wire, hop_limit);

/// An IEEE 802.1Q tag.
pub const VLAN_TAG_LEN: usize = 4;

/// What the inner frame costs of the radio's MTU beside the IP packet in it: our header, its Ethernet header
/// and one VLAN tag. The outer Ethernet header is not in the MTU.
pub const OVERHEAD: usize = HEADER_LEN + ETHERNET_HEADER_LEN + VLAN_TAG_LEN;

/// The smallest MTU IPv4 works with (RFC 791 §3.2). IPv6 needs 1280 (RFC 8200 §5), but a node that
/// carries only IPv4 is none the worse for a smaller one.
pub const TAP_MTU_MIN: usize = 68;

/// The largest: header and frame fit the length field.
pub const TAP_MTU_MAX: usize = u16::MAX as usize - OVERHEAD;

/// The smallest MTU of a radio: it carries the smallest IPv4 packet in one frame, and every control message that
/// cannot be split.
pub const RADIO_MTU_MIN: usize = TAP_MTU_MIN + OVERHEAD;

/// The longest IP packet that fits a radio with this MTU in one frame, tagged or not.
#[inline]
pub const fn packet_max(radio_mtu: usize) -> usize {
    radio_mtu.saturating_sub(OVERHEAD)
}

/// The largest MTU of a TAP on a radio with this MTU: every frame of the TAP, tagged or not, gets through in as many
/// [fragments](super::fragment) as there may be. `None` below [`RADIO_MTU_MIN`].
pub const fn tap_mtu_max(radio_mtu: usize) -> Option<usize> {
    if radio_mtu < RADIO_MTU_MIN {
        return None;
    }
    Some(fragment::message_max(radio_mtu).saturating_sub(OVERHEAD))
}

/// The smallest MTU of a radio that carries the frames of a TAP with this MTU.
pub const fn radio_mtu_for(tap_mtu: usize) -> usize {
    let each = (tap_mtu + OVERHEAD).div_ceil(fragment::COUNT_MAX as usize) + fragment::HEADER_LEN;
    if each > RADIO_MTU_MIN { each } else { RADIO_MTU_MIN }
}

/// Sets the hop limit of a data message, from its prefix on: what a relay changes in the copy it sends.
/// `false`, and nothing done, when the bytes end before it.
#[inline]
pub fn set_hop_limit(packet: &mut [u8], hop_limit: u8) -> bool {
    match packet.get_mut(HOP_LIMIT_OFFSET) {
        Some(byte) => {
            *byte = hop_limit;
            true
        }
        None => false,
    }
}

// A field of its own keeps the payload aligned; see above.
const _: () = assert!(HEADER_LEN % 4 == 2 && HEADER_LEN <= 24);

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 destination: 6,
        10 source: 6,
        16 hop_limit: 1,
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

    /// Appends the message up to its payload, for a sender that has that in place.
    #[inline]
    pub fn emit_head(&self, out: &mut Vec<u8>) {
        match self {
            Self::Upstream(message) => message.wire().append(out),
            Self::Downstream(message) => message.wire().append(out),
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
    /// The inner frame.
    pub payload: &'a [u8],
}

/// Whom a frame from the RSU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// One OBU.
    Node(NodeId),
    /// Every OBU attached to the source except this one, which the frame came from;
    /// [`NodeId::NONE`] leaves nobody out.
    AllExcept(NodeId),
}

/// A frame on its way from the RSU to a client, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToDownstream<'a> {
    /// Whom it is for.
    pub destination: Destination,
    /// The RSU.
    pub source: NodeId,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// Low 8 bits of the starts of the source.
    pub boot: u8,
    /// Frames of the source since that start.
    pub seq: Seq,
    /// The inner frame.
    pub payload: &'a [u8],
}

impl ToUpstream<'_> {
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
            flags: [0],
            length: length(self.wire_len()),
            destination: self.destination.0,
            source: self.source.0,
            hop_limit: [self.hop_limit],
            boot: [self.boot],
            seq: self.seq.0.to_be_bytes(),
        }
    }
}

impl ToDownstream<'_> {
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
        let (flags, destination) = match self.destination {
            Destination::Node(node) => (0, node),
            Destination::AllExcept(node) => (FLOOD, node),
        };
        Wire {
            version_type: Kind::ToDownstream.first_byte(),
            flags: [flags],
            length: length(self.wire_len()),
            destination: destination.0,
            source: self.source.0,
            hop_limit: [self.hop_limit],
            boot: [self.boot],
            seq: self.seq.0.to_be_bytes(),
        }
    }
}

/// Prefix, fields and inner frame of either message.
#[inline]
fn open(kind: Kind, bytes: &[u8]) -> Result<(u8, Wire, &[u8]), ParseError> {
    let (flags, body) = kind.open(bytes)?;
    let Some((wire, payload)) = Wire::read(body) else {
        return Err(kind.truncated(body.len()));
    };
    if payload.len() < ETHERNET_HEADER_LEN {
        return Err(ParseError::Length {
            message: kind.name(),
            need: HEADER_LEN + ETHERNET_HEADER_LEN,
            have: body.len(),
        });
    }
    Ok((flags, wire, payload))
}

impl<'a> TryFrom<&'a [u8]> for ToUpstream<'a> {
    type Error = ParseError;

    #[inline]
    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::ToUpstream;
        let (_, wire, payload) = open(kind, bytes)?;
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            destination,
            source,
            hop_limit: [hop_limit],
            boot: [boot],
            seq,
        } = wire;
        Ok(Self {
            destination: kind.node("destination", destination)?,
            source: kind.node("source", source)?,
            hop_limit,
            boot,
            seq: Seq(u32::from_be_bytes(seq)),
            payload,
        })
    }
}

impl<'a> TryFrom<&'a [u8]> for ToDownstream<'a> {
    type Error = ParseError;

    #[inline]
    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::ToDownstream;
        let (flags, wire, payload) = open(kind, bytes)?;
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            destination,
            source,
            hop_limit: [hop_limit],
            boot: [boot],
            seq,
        } = wire;
        let destination = if flags & FLOOD != 0 {
            Destination::AllExcept(NodeId(destination))
        } else {
            Destination::Node(kind.node("destination", destination)?)
        };
        Ok(Self {
            destination,
            source: kind.node("source", source)?,
            hop_limit,
            boot,
            seq: Seq(u32::from_be_bytes(seq)),
            payload,
        })
    }
}

conversions!(ToUpstream<'_>, ToDownstream<'_>, Data<'_>, super::control::Control<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    const FRAME: [u8; 20] = [0x55; 20];

    fn up() -> ToUpstream<'static> {
        ToUpstream {
            destination: RSU,
            source: OBU,
            hop_limit: 8,
            boot: 9,
            seq: Seq(0x0102_0304),
            payload: &FRAME,
        }
    }

    fn down(destination: Destination) -> ToDownstream<'static> {
        ToDownstream {
            destination,
            source: RSU,
            hop_limit: 8,
            boot: 3,
            seq: Seq(5),
            payload: &FRAME,
        }
    }

    #[test]
    fn upstream_reads_as_it_was_written() {
        let flat: Vec<u8> = (&up()).into();
        assert_eq!(flat.len(), HEADER_LEN + FRAME.len());
        assert_eq!(flat[..4], [0x18, 0, 0, 42]);
        assert_eq!(flat[16..22], [8, 9, 1, 2, 3, 4]);
        assert_eq!(ToUpstream::try_from(&flat[..]), Ok(up()));
    }

    #[test]
    fn downstream_reads_as_it_was_written() {
        for destination in [
            Destination::Node(OBU),
            Destination::AllExcept(OBU),
            Destination::AllExcept(NodeId::NONE),
        ] {
            let flat: Vec<u8> = (&down(destination)).into();
            assert_eq!(ToDownstream::try_from(&flat[..]), Ok(down(destination)));
        }
    }

    #[test]
    fn one_addressee_has_a_name() {
        let flat: Vec<u8> = (&down(Destination::Node(NodeId::NONE))).into();
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
    }

    #[test]
    fn a_relay_patches_the_hop_limit() {
        let mut flat: Vec<u8> = (&up()).into();
        assert!(set_hop_limit(&mut flat, 7));
        assert_eq!(ToUpstream::try_from(&flat[..]), Ok(ToUpstream { hop_limit: 7, ..up() }));
        assert!(!set_hop_limit(&mut flat[..16], 7));
    }

    #[test]
    fn a_tagged_frame_of_the_tap_gets_through_the_radio() {
        assert_eq!((OVERHEAD, packet_max(1500), packet_max(30)), (40, 1460, 0));
        assert_eq!(tap_mtu_max(1500), Some(8 * (1500 - 12) - 40));
        assert_eq!(tap_mtu_max(108), Some(728));
        assert_eq!(tap_mtu_max(107), None);
        assert_eq!(tap_mtu_max(65_536), Some(TAP_MTU_MAX));
        assert_eq!((radio_mtu_for(68), radio_mtu_for(1500)), (108, 205));
        for tap in (68..10_000).step_by(7) {
            let radio = radio_mtu_for(tap);
            assert!(tap_mtu_max(radio) >= Some(tap), "{tap}");
            assert!(radio == RADIO_MTU_MIN || tap_mtu_max(radio - 1) < Some(tap), "{tap}");
        }
        let largest = vec![0; TAP_MTU_MAX + ETHERNET_HEADER_LEN + VLAN_TAG_LEN];
        let flat: Vec<u8> = (&ToUpstream { payload: &largest, ..up() }).into();
        assert_eq!(ToUpstream::try_from(&flat[..]).unwrap().payload.len(), largest.len());
    }
}
