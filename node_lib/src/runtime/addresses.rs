//! What a host says of its own addresses when it comes to a LAN: those of the TAP, once the node is
//! attached.
//!
//! The kernel would say it when the interface comes up (`arp_notify`), long before a frame gets
//! through. Hosts on the LAN that know another MAC for an address of ours would send there until
//! their entry has expired, which takes half a minute and more.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::mac::Mac;
use crate::messages::MIN_FRAME_LEN;
use crate::messages::ethernet::{ARP, Header, IPV6};
use crate::offload::checksum::Sum;

/// All nodes on the link (RFC 4291 §2.7.1), and on Ethernet (RFC 2464 §7).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);
const ICMPV6: u8 = 58;
/// Header, target and the option with the MAC.
const ADVERTISEMENT_LEN: usize = 8 + 16 + 8;

/// A frame for each address: an ARP announcement (RFC 5227 §3) or an unsolicited neighbour
/// advertisement (RFC 4861 §7.2.6).
pub fn announcements(mac: Mac, addresses: impl IntoIterator<Item = IpAddr>) -> Vec<Vec<u8>> {
    let announce = |address| match address {
        IpAddr::V4(address) => arp(mac, address),
        IpAddr::V6(address) => neighbour_advertisement(mac, address),
    };
    addresses.into_iter().map(announce).collect()
}

/// A request whose sender and target are the same, which nobody answers.
fn arp(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    let mut frame = Vec::with_capacity(MIN_FRAME_LEN);
    Header { to: Mac::BROADCAST, from: mac, ethertype: ARP }.emit(&mut frame);
    // Ethernet, IPv4, the lengths of their addresses, operation 1 = request.
    frame.extend_from_slice(&[0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend_from_slice(&mac.0);
    frame.extend_from_slice(&address.octets());
    frame.extend_from_slice(&[0; Mac::LEN]);
    frame.extend_from_slice(&address.octets());
    frame.resize(MIN_FRAME_LEN, 0);
    frame
}

/// "Replace what you know", to all nodes.
fn neighbour_advertisement(mac: Mac, address: Ipv6Addr) -> Vec<u8> {
    const OVERRIDE: u8 = 0x20;
    let advertisement = |checksum: [u8; 2]| {
        let head = [136, 0, checksum[0], checksum[1], OVERRIDE, 0, 0, 0];
        // Target link-layer address, in units of eight bytes.
        [&head[..], &address.octets(), &[2, 1], &mac.0].concat()
    };
    let addresses = [address.octets(), ALL_NODES.octets()].concat();
    let sum = Sum::pseudo_header(&addresses, ICMPV6, ADVERTISEMENT_LEN as u32)
        .plus(Sum::of(&advertisement([0; 2])));
    let [high, low] = (ADVERTISEMENT_LEN as u16).to_be_bytes();
    // A packet that passed a router has a hop limit of less than 255 (RFC 4861 §3.1).
    let header = [0x60, 0, 0, 0, high, low, ICMPV6, 255];
    let mut frame = Vec::new();
    Header { to: ALL_NODES_MAC, from: mac, ethertype: IPV6 }.emit(&mut frame);
    frame.extend([&header[..], &addresses, &advertisement(sum.finish())].concat());
    frame
}

#[cfg(test)]
mod tests {
    use etherparse::{Icmpv6Slice, Icmpv6Type, NetSlice, SlicedPacket, TransportSlice};

    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    #[test]
    fn an_ipv4_address_is_announced_as_rfc_5227_says() {
        let frames = announcements(MAC, [Ipv4Addr::new(10, 0, 0, 9).into()]);
        let expected = [
            &[0xff; 6][..],
            &MAC.0,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &MAC.0,
            &[10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9],
        ]
        .concat();
        assert_eq!(frames[0][..42], expected);
        assert_eq!((frames.len(), frames[0].len()), (1, 60));
    }

    #[test]
    fn an_ipv6_address_is_advertised_with_a_checksum_others_find_right() {
        let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
        let frames = announcements(MAC, [address.into()]);
        let packet = SlicedPacket::from_ethernet(&frames[0]).unwrap();
        let Some(NetSlice::Ipv6(ip)) = packet.net else { panic!("no IPv6") };
        let (source, destination) = (ip.header().source(), ip.header().destination());
        assert_eq!((source, destination), (address.octets(), ALL_NODES.octets()));
        assert_eq!(ip.header().hop_limit(), 255);
        let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else { panic!("no ICMPv6") };
        assert!(Icmpv6Slice::is_checksum_valid(&icmp, source, destination));
        assert!(matches!(icmp.icmp_type(), Icmpv6Type::NeighborAdvertisement(header)
            if header.r#override && !header.solicited && !header.router));
        assert_eq!(icmp.payload(), [&address.octets()[..], &[2, 1], &MAC.0].concat());
    }
}
