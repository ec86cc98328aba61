//! What a bystander reads off a frame of batman-adv (`batadv_packet.h`, compatibility version 15),
//! so that what a model of it sends is counted as our own frames are.

use node_lib::messages::ethernet::Header;

/// EtherType, and packet types, the first byte after it.
const ETHERTYPE: u16 = 0x4305;
const OGM: u8 = 0x00;
const BROADCAST: u8 = 0x01;
const UNICAST: u8 = 0x40;
const TVLV: u8 = 0x44;

/// Bytes in front of a client's frame, after the Ethernet header: to all, and to one.
const BROADCAST_LEN: usize = 14;
const UNICAST_LEN: usize = 10;

fn packet(frame: &[u8]) -> Option<&[u8]> {
    let (header, packet) = Header::read(frame)?;
    (header.ethertype == ETHERTYPE).then_some(packet)
}

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    Ogm,
    /// A client's frame in one of batman-adv.
    Data,
    /// A table of clients, or the question for it.
    ClientTable,
    Other,
}

/// What a whole Ethernet frame is, if it is one of batman-adv.
pub(super) fn packet_of(frame: &[u8]) -> Option<PacketKind> {
    Some(match *packet(frame)?.first()? {
        OGM => PacketKind::Ogm,
        BROADCAST | UNICAST => PacketKind::Data,
        TVLV => PacketKind::ClientTable,
        _ => PacketKind::Other,
    })
}

/// The client's frame in a whole Ethernet frame of batman-adv.
pub(super) fn inner(frame: &[u8]) -> Option<&[u8]> {
    let packet = packet(frame)?;
    match *packet.first()? {
        BROADCAST => packet.get(BROADCAST_LEN..),
        UNICAST => packet.get(UNICAST_LEN..),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{BROADCAST, ETHERTYPE, OGM, TVLV, UNICAST};
    use crate::{FrameKind, Packet, inner_frames};

    #[test]
    fn frames_of_batman_adv_are_told_apart_and_those_of_clients_are_found_in_them() {
        let mut frame = [&[2; 12], &ETHERTYPE.to_be_bytes()[..], &[0; 15], &[7; 60]].concat();
        for (kind, is, client) in [
            (OGM, FrameKind::OGM, None),
            (BROADCAST, FrameKind::MESH_DATA, Some(14 + 14)),
            (UNICAST, FrameKind::MESH_DATA, Some(14 + 10)),
            (TVLV, FrameKind::CLIENT_TABLE, None),
            (0x41, FrameKind(0), None),
        ] {
            frame[14] = kind;
            assert_eq!((FrameKind::of(&frame), Packet::of(&frame)), (is, None));
            assert_eq!(inner_frames(&frame).next(), client.map(|at| &frame[at..]));
            assert_eq!(is.is_data(), client.is_some());
        }
        // Cut short, or with another EtherType.
        frame[14] = UNICAST;
        assert_eq!(inner_frames(&frame[..23]).next(), None);
        assert_eq!(FrameKind::of(&frame[..14]), FrameKind(0));
        frame[12] = 0x88;
        assert_ne!(FrameKind::of(&frame), FrameKind::MESH_DATA);
    }
}
