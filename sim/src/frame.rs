//! What a bystander reads off a frame on the radio: [`FrameKind`] and, for data, [`Packet`].
//!
//! Written against the format tables and not with the parsers of the nodes, so that a mistake in
//! those cannot hide itself here.

use bytes::BytesMut;
use std::fmt;
use std::sync::Arc;

use crate::batman;
use crate::index::NodeIndex;
use node_lib::buffer_pool::return_buffer;
use node_lib::mac::{Mac, NodeId};

/// Message type of a frame on the radio: low nibble of the first byte after the Ethernet header, or
/// what a frame of batman-adv is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameKind(pub u8);

impl FrameKind {
    /// An RSU makes itself known; OBUs relay it outward.
    pub const HEARTBEAT: Self = Self(1);
    /// A neighbour was heard: the other direction of the link.
    pub const HEARTBEAT_REPLY: Self = Self(2);
    /// Are you there?
    pub const PROBE: Self = Self(3);
    /// I am.
    pub const PROBE_ANSWER: Self = Self(4);
    /// Do not route through me; also the goodbye.
    pub const WITHDRAWAL: Self = Self(5);
    /// An OBU's clients, on their way to its RSU.
    pub const ANNOUNCEMENT: Self = Self(6);
    /// The RSU has them.
    pub const ACK: Self = Self(7);
    /// A client's frame on its way to an RSU.
    pub const TO_UPSTREAM: Self = Self(8);
    /// A client's frame on its way to an OBU, or to all.
    pub const TO_DOWNSTREAM: Self = Self(9);

    /// A part of one of the two.
    pub const FRAGMENT: Self = Self(10);
    /// Several of the two for one neighbour.
    pub const BUNDLE: Self = Self(11);

    /// Originator messages of batman-adv.
    pub const OGM: Self = Self(12);
    /// A table of clients of batman-adv, or the question for it.
    pub const CLIENT_TABLE: Self = Self(13);
    /// A client's frame in one of batman-adv.
    pub const MESH_DATA: Self = Self(14);

    /// Who is on the way to a node or client.
    pub const ECHO: Self = Self(15);

    /// Kinds there are, for tables indexed by kind, "unknown" among them.
    pub const COUNT: usize = 16;

    /// The kind of a whole Ethernet frame; 0 if it is none of these.
    pub fn of(frame: &[u8]) -> Self {
        if let Some(packet) = batman::packet_of(frame) {
            return match packet {
                batman::PacketKind::Ogm => Self::OGM,
                batman::PacketKind::Data => Self::MESH_DATA,
                batman::PacketKind::ClientTable => Self::CLIENT_TABLE,
                batman::PacketKind::Other => Self(0),
            };
        }
        match frame.get(14).map(|first| first & 0x0f) {
            Some(kind @ 1..=9) => Self(kind),
            Some(10) => Self::BUNDLE,
            Some(11) => Self::ECHO,
            Some(12) => Self::FRAGMENT,
            _ => Self(0),
        }
    }

    /// Carries a client's frame.
    pub const fn is_data(self) -> bool {
        matches!(
            self,
            Self::TO_UPSTREAM
                | Self::TO_DOWNSTREAM
                | Self::FRAGMENT
                | Self::BUNDLE
                | Self::MESH_DATA
        )
    }

    /// One lower-case word.
    pub const fn as_str(self) -> &'static str {
        match self.0 {
            1 => "heartbeat",
            2 => "reply",
            3 => "probe",
            4 => "answer",
            5 => "withdrawal",
            6 => "announcement",
            7 => "ack",
            8 => "to-upstream",
            9 => "to-downstream",
            10 => "fragment",
            11 => "bundle",
            12 => "ogm",
            13 => "client-table",
            14 => "mesh-data",
            15 => "echo",
            _ => "unknown",
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Identity of one data packet, the same on every hop.
///
/// | offset | bytes | field, counted after the Ethernet header |
/// |-------:|------:|------------------------------------------|
/// |      0 |     1 | version, message type 8 or 9             |
/// |      1 |     1 | flags; bit 3 of type 9: flood, bit 4 of type 8: again |
/// |      4 |     6 | destination id                           |
/// |     10 |     6 | source id                                |
/// |     16 |     1 | hop limit; relays of a way down          |
/// |     17 |     1 | boot count, low byte                     |
/// |     18 |     4 | sequence                                 |
/// |     22 |       | type 8: the client's frame               |
/// |     22 |     4 | flood: a heartbeat's number, then it     |
/// |     22 | 2 × … | way down: a label per relay beyond the next, in multiples of 4 bytes, then it |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packet {
    /// To an RSU or to an OBU.
    pub kind: FrameKind,
    /// For everyone on the way.
    pub is_flood: bool,
    /// Given to another next hop before. What goes another way is a packet of its own here: each of
    /// its ways is to be without a circle.
    pub is_again: bool,
    /// Node it goes to.
    pub destination: NodeId,
    /// Node that took it from its TAP.
    pub source: NodeId,
    /// Low byte of the source's boot count.
    pub boot: u8,
    /// Its number.
    pub seq: u32,
}

/// Bytes of the data header.
const DATA_HEADER_LEN: usize = 22;

/// Bytes in front of the part in a fragment, and where in them its index stands.
const FRAGMENT_HEADER_LEN: usize = 12;
const FRAGMENT_INDEX: usize = 10;

/// Bytes in front of the first message of a bundle, and where in each message its length stands.
const BUNDLE_HEADER_LEN: usize = 4;
const LENGTH_AT: usize = 2;

/// The data messages in a whole Ethernet frame: those in a bundle, the first part of one in its
/// first fragment, and nothing in other fragments.
fn data_messages(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let packet = frame.get(14..).unwrap_or_default();
    let kind = FrameKind::of(frame);
    let mut rest = match kind {
        FrameKind::FRAGMENT if packet.get(FRAGMENT_INDEX) == Some(&0) => {
            packet.get(FRAGMENT_HEADER_LEN..)
        }
        FrameKind::BUNDLE => packet.get(BUNDLE_HEADER_LEN..),
        FrameKind::TO_UPSTREAM | FrameKind::TO_DOWNSTREAM => Some(packet),
        _ => None,
    }
    .unwrap_or_default();
    std::iter::from_fn(move || {
        if kind != FrameKind::BUNDLE {
            return Some(std::mem::take(&mut rest)).filter(|message| !message.is_empty());
        }
        let &[high, low] = rest.get(LENGTH_AT..)?.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let message = rest.get(..length).filter(|message| !message.is_empty())?;
        rest = rest.get(length..)?;
        Some(message)
    })
}

/// The clients' frames in a whole Ethernet frame, or the first part of one.
pub fn inner_frames(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ours = data_messages(frame).filter_map(|message| message.get(header_len(message)?..));
    ours.chain(batman::inner(frame))
}

/// Bytes in front of the client's frame.
fn header_len(message: &[u8]) -> Option<usize> {
    let &[first, flags, ..] = message else { return None };
    let relays = usize::from(*message.get(16)?);
    Some(
        DATA_HEADER_LEN
            + match FrameKind(first & 0x0f) {
                FrameKind::TO_DOWNSTREAM if flags & FLOOD != 0 => 4,
                FrameKind::TO_DOWNSTREAM => relays.saturating_sub(1).div_ceil(2) * 4,
                _ => 0,
            },
    )
}

/// Flag of type 9.
const FLOOD: u8 = 8;

/// Flag of type 8.
const AGAIN: u8 = 16;

impl Packet {
    /// The packet in a whole Ethernet frame that is no bundle, and how many hops it may still go.
    pub fn of(frame: &[u8]) -> Option<(Self, u8)> {
        Self::all_of(frame).next()
    }

    /// The packets in a whole Ethernet frame, in order.
    pub fn all_of(frame: &[u8]) -> impl Iterator<Item = (Self, u8)> {
        data_messages(frame).map_while(Self::in_message)
    }

    fn in_message(message: &[u8]) -> Option<(Self, u8)> {
        let kind = FrameKind(message.first()? & 0x0f);
        let header = message.first_chunk::<DATA_HEADER_LEN>()?;
        let [_, flags, _, _, d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ends @ ..] = *header;
        let [limit, boot, seq @ ..] = ends;
        let packet = Self {
            kind,
            is_flood: kind == FrameKind::TO_DOWNSTREAM && flags & FLOOD != 0,
            is_again: kind == FrameKind::TO_UPSTREAM && flags & AGAIN != 0,
            destination: NodeId([d0, d1, d2, d3, d4, d5]),
            source: NodeId([s0, s1, s2, s3, s4, s5]),
            boot,
            seq: u32::from_be_bytes(seq),
        };
        Some((packet, limit))
    }
}

/// A frame under way, shared by all who will hear it.
#[derive(Debug)]
pub struct Flight {
    /// The whole Ethernet frame.
    pub(super) bytes: BytesMut,
    /// Checksum, for the trace.
    pub(super) crc: u32,
    pub(super) kind: FrameKind,
    /// Destination MAC of this hop.
    pub(super) to: Mac,
    /// Index of the node that sent it.
    pub(super) from: usize,
    /// Number of the frame among all this node sent.
    pub(super) number: u64,
    /// User priority: which queue of the radio it waits in.
    pub(super) priority: u8,
    /// The data packets in it.
    pub(super) parcels: Vec<Parcel>,
}

impl Flight {
    /// The node that sent it.
    pub fn from(&self) -> NodeIndex {
        NodeIndex(self.from)
    }

    /// Its number among all that node sent, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Destination MAC of this hop.
    pub fn to(&self) -> Mac {
        self.to
    }

    /// The whole Ethernet frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it is.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// User priority, 0 to 7, as IEEE 802.1D has it.
    pub fn priority(&self) -> u8 {
        self.priority
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        return_buffer(std::mem::take(&mut self.bytes));
    }
}

/// A data packet under way.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) packet: Packet,
    /// Hops it may still go.
    pub(super) limit: u8,
    /// The nodes this copy went through, the last first.
    pub(super) trail: Option<Arc<Trail>>,
}

/// What a node heard that it now answers, or passes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trigger<'a> {
    pub(super) parcel: &'a Parcel,
    /// The neighbour that sent it.
    pub(super) from: Mac,
}

/// The way one copy of a packet went: the node that sent it last, and the way before.
#[derive(Debug)]
pub(super) struct Trail {
    pub(super) node: usize,
    pub(super) before: Option<Arc<Trail>>,
}

impl Trail {
    /// Nodes from the last to the first.
    pub(super) fn nodes(trail: Option<&Arc<Self>>) -> impl Iterator<Item = usize> {
        std::iter::successors(trail, |trail| trail.before.as_ref()).map(|trail| trail.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_kind_and_packet_at_the_offsets_of_the_table() {
        let mut frame = vec![0; 14];
        frame.extend([0x29, 0x08, 0, 50]);
        frame.extend([1; 6]);
        frame.extend([2; 6]);
        frame.extend([7, 3, 0, 0, 1, 0]);
        assert_eq!(FrameKind::of(&frame), FrameKind::TO_DOWNSTREAM);
        let (packet, limit) = Packet::of(&frame).unwrap();
        assert_eq!(limit, 7);
        assert_eq!(
            packet,
            Packet {
                kind: FrameKind::TO_DOWNSTREAM,
                is_flood: true,
                is_again: false,
                destination: NodeId([1; 6]),
                source: NodeId([2; 6]),
                boot: 3,
                seq: 256,
            }
        );
        let both = [&frame[..14], &[0x2a, 0, 0, 48], &frame[14..], &frame[14..]].concat();
        let mut bundle = both.clone();
        for at in [14 + 4 + 3, 14 + 4 + 22 + 3] {
            bundle[at] = 22;
        }
        assert_eq!(FrameKind::of(&bundle), FrameKind::BUNDLE);
        assert_eq!(Packet::all_of(&bundle).collect::<Vec<_>>(), [(packet, limit); 2]);
        assert_eq!(Packet::all_of(&bundle[..50]).count(), 1);
        assert_eq!(Packet::all_of(&both).count(), 0, "lengths beyond the end");
        let up = [&frame[..14], &[0x28, AGAIN], &frame[16..]].concat();
        let is_again = |frame: &[u8]| Packet::of(frame).is_some_and(|(packet, _)| packet.is_again);
        assert!(is_again(&up) && !is_again(&[&up[..15], &[5], &up[16..]].concat()));
        frame.pop();
        assert_eq!(Packet::of(&frame), None);
        assert_eq!(FrameKind::of(&frame[..14]), FrameKind(0));
    }
    #[test]
    fn every_message_has_a_name() {
        for kind in node_lib::messages::Kind::ALL {
            let frame = [&[0; 14][..], &[kind.code()]].concat();
            assert_ne!(FrameKind::of(&frame).as_str(), "unknown", "{kind:?}");
        }
    }
}
