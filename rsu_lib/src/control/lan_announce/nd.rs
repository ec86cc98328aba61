//! Unsolicited neighbour advertisements (RFC 4861 §7.2.6; RFC 9131 for the routers among those who
//! hear them): what ARP announcements are, for IPv6.

use std::net::Ipv6Addr;

use node_lib::Mac;
use node_lib::control::inner::Inner;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::ethernet::IPV6;

use super::super::addresses::snooping::{ICMPV6, NEIGHBOUR_ADVERTISEMENT};
use super::header;

/// All nodes on the link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The same, on Ethernet (RFC 2464 §7).
const ALL_NODES_MAC: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);

/// "I am a router": taken from what the client said itself, because hosts that hear the contrary
/// stop using it as one (RFC 4861 §7.2.5).
const ROUTER: u8 = 0x80;

/// "This answers a question."
const SOLICITED: u8 = 0x40;

/// "Replace what you know."
const OVERRIDE: u8 = 0x20;

/// Type, code, checksum, flags, target, and the option with the client's MAC.
const ADVERTISEMENT_LEN: usize = 24 + 8;

/// A packet that passed a router has less (RFC 4861 §3.1).
const HOP_LIMIT: u8 = 255;

/// Advertises, from the client's MAC, that the client has this address.
pub(super) fn write(client: Client, address: Ipv6Addr, is_router: bool, frame: &mut Vec<u8>) {
    let mut advertisement = [0u8; ADVERTISEMENT_LEN];
    let flags = OVERRIDE | if is_router { ROUTER } else { 0 };
    put(&mut advertisement, 0, [NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, flags]);
    put(&mut advertisement, 8, address.octets());
    // Target link-layer address, in units of eight bytes.
    put(&mut advertisement, 24, [2, 1]);
    put(&mut advertisement, 26, client.mac.0);
    let sum = checksum(address, ALL_NODES, &advertisement);
    put(&mut advertisement, 2, sum.to_be_bytes());

    header(ALL_NODES_MAC, client, IPV6, frame);
    let [high, low] = (ADVERTISEMENT_LEN as u16).to_be_bytes();
    frame.extend_from_slice(&[0x60, 0, 0, 0, high, low, ICMPV6, HOP_LIMIT]);
    frame.extend_from_slice(&address.octets());
    frame.extend_from_slice(&ALL_NODES.octets());
    frame.extend_from_slice(&advertisement);
}

/// Whether this frame, from a LAN, is such an advertisement.
pub(crate) fn is_unsolicited(inner: Inner, payload: &[u8]) -> bool {
    inner.ethertype == IPV6
        && inner.destination == ALL_NODES_MAC
        && payload.get(6) == Some(&ICMPV6)
        && payload.get(40) == Some(&NEIGHBOUR_ADVERTISEMENT)
        && payload.get(44).is_some_and(|flags| flags & SOLICITED == 0)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(room) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
        *room = field;
    }
}

/// The internet checksum (RFC 1071) over pseudo-header (RFC 8200 §8.1) and message, whose length is
/// even and whose checksum field is zero.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let len = (message.len() as u32).to_be_bytes();
    let pseudo = [len, [0, 0, 0, ICMPV6]];
    let (source, destination) = (source.octets(), destination.octets());
    let parts = [&source[..], &destination, pseudo.as_flattened(), message];
    let mut sum: u32 = 0;
    for part in parts {
        let (words, _) = part.as_chunks::<2>();
        sum += words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum::<u32>();
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::super::tests::hex;
    use super::*;
    use etherparse::icmpv6::{Icmpv6PayloadSlice, NdpOptionSlice, NeighborAdvertisementHeader};
    use etherparse::{
        IcmpEchoHeader, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanId,
    };
    use proptest::prelude::*;

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);

    fn written(client: Client, address: Ipv6Addr, is_router: bool) -> Vec<u8> {
        let mut frame = Vec::new();
        write(client, address, is_router, &mut frame);
        frame
    }

    /// The same advertisement, made by another implementation but for the target and the option.
    fn expected(client: Client, address: Ipv6Addr, is_router: bool) -> Vec<u8> {
        let flags =
            NeighborAdvertisementHeader { router: is_router, solicited: false, r#override: true };
        let ethernet = PacketBuilder::ethernet2(client.mac.0, [0x33, 0x33, 0, 0, 0, 1]);
        let all_nodes = "ff02::1".parse::<Ipv6Addr>().unwrap().octets();
        let builder = match client.vlan {
            0 => ethernet.ipv6(address.octets(), all_nodes, 255),
            vlan => ethernet.single_vlan(VlanId::try_new(vlan).unwrap()).ipv6(
                address.octets(),
                all_nodes,
                255,
            ),
        };
        let body = [&address.octets()[..], &[2, 1], &client.mac.0].concat();
        let mut frame = Vec::new();
        let builder = builder.icmpv6(Icmpv6Type::NeighborAdvertisement(flags));
        builder.write(&mut frame, &body).unwrap();
        frame
    }

    proptest! {
        #[test]
        fn each_byte_is_as_another_implementation_writes_it(
            mac: [u8; 6], vlan in 0_u16..4095, address: [u16; 8], is_router: bool,
        ) {
            let (client, address) = (Client { vlan, mac: Mac(mac) }, Ipv6Addr::from(address));
            let frame = written(client, address, is_router);
            prop_assert_eq!(frame, expected(client, address, is_router));
        }
    }

    /// Some sums carry into the upper half once more when their halves are added.
    #[test]
    fn every_checksum_there_is_comes_out_right() {
        let client = Client { vlan: 0, mac: Mac([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff]) };
        for last in 0..=u16::MAX {
            let all_ones = u16::MAX;
            let address = Ipv6Addr::from([0xfdff, all_ones, all_ones, all_ones, 0, 0, 0, last]);
            let frame = written(client, address, true);
            let packet = SlicedPacket::from_ethernet(&frame).unwrap();
            let Some(TransportSlice::Icmpv6(icmp)) = &packet.transport else {
                panic!("{packet:?}")
            };
            let is_valid = icmp.is_checksum_valid(address.octets(), ALL_NODES.octets());
            assert!(is_valid, "{address}");
        }
    }

    #[test]
    fn another_implementation_reads_whose_address_it_is() {
        let mac = [2, 0, 0, 0xff, 0xee, 7];
        let frame = written(Client { vlan: 5, mac: Mac(mac) }, ADDRESS, true);
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        assert_eq!(packet.vlan_ids().as_slice(), [VlanId::try_new(5).unwrap()]);
        let Some(NetSlice::Ipv6(ip)) = &packet.net else { panic!("{packet:?}") };
        let (from, to) = (ip.header().source(), ip.header().destination());
        assert_eq!((Ipv6Addr::from(from), ip.header().hop_limit()), (ADDRESS, 255));
        let Some(TransportSlice::Icmpv6(icmp)) = &packet.transport else { panic!("{packet:?}") };
        assert!(icmp.is_checksum_valid(from, to));
        let Icmpv6Type::NeighborAdvertisement(flags) = icmp.icmp_type() else { panic!("{icmp:?}") };
        assert_eq!((flags.router, flags.solicited, flags.r#override), (true, false, true));
        let Ok(Icmpv6PayloadSlice::NeighborAdvertisement(body)) = icmp.payload_slice() else {
            panic!("{icmp:?}")
        };
        assert_eq!(body.target_address(), ADDRESS);
        let options: Vec<_> = body.options_iterator().collect();
        let [Ok(NdpOptionSlice::TargetLinkLayerAddress(option))] = &options[..] else {
            panic!("{options:?}")
        };
        assert_eq!(option.link_layer_address(), mac);
    }

    #[test]
    fn only_an_advertisement_to_all_nodes_that_answers_nobody_is_unsolicited() {
        let frame = written(Client { vlan: 0, mac: Mac([2, 0, 0, 0, 0, 7]) }, ADDRESS, false);
        let is_one = |frame: &[u8]| is_unsolicited(Inner::parse(frame).unwrap(), &frame[14..]);
        assert!(is_one(&frame));
        let changes = [
            (5, 2, "to another group"),
            (12, 0x08, "no IPv6"),
            (14 + 6, 17, "no ICMPv6"),
            (14 + 40, 135, "a solicitation"),
            (14 + 44, OVERRIDE | SOLICITED, "an answer"),
        ];
        for (at, byte, what) in changes {
            let mut other = frame.clone();
            other[at] = byte;
            assert!(!is_one(&other), "{what}");
        }
        assert!(!is_one(&frame[..14 + 44]), "cut short");
    }

    /// Our own arithmetic against numbers worked out by hand.
    #[test]
    fn the_checksum_is_the_one_a_well_known_packet_has() {
        // Echo request ::1 to ::1, identifier 0x1234, sequence 1, no data: 8000 + 1234 + 1 + 1 +
        // 1 + 8 + 3a = 9279 (hexadecimal), complemented.
        let sum = checksum(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &hex("80000000 12340001"));
        assert_eq!(sum, !0x9279);
        let echo = Icmpv6Type::EchoRequest(IcmpEchoHeader { id: 0x1234, seq: 1 });
        let localhost = Ipv6Addr::LOCALHOST.octets();
        assert_eq!(echo.calc_checksum(localhost, localhost, &[]).unwrap(), sum);
    }
}
