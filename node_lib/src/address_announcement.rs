//! How a host says, unasked, which address it has: [`AddressAnnouncement`].
//!
//! | the address | the frame |
//! |---|---|
//! | IPv4 | ARP announcement (RFC 5227 §3): a request whose sender and target are the same, which nobody answers |
//! | IPv6 | unsolicited neighbour advertisement (RFC 4861 §7.2.6; RFC 9131 for the routers among those who hear it) |

use std::net::{IpAddr, Ipv6Addr};

use arrayvec::ArrayVec;
use etherparse::icmpv6::{NdpOptionType, NeighborAdvertisementHeader};
use etherparse::{ArpEthIpv4Packet, ArpOperation, Icmpv6Type, PacketBuilder};

use crate::mac::Mac;
use crate::messages::MIN_FRAME_LEN;
use crate::messages::ethernet::{ARP, Header, IPV6, Tag};

/// All nodes on the link (RFC 4291 §2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The same, on Ethernet (RFC 2464 §7).
pub const ALL_NODES_MAC: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);

/// A packet that passed a router has less (RFC 4861 §3.1).
const HOP_LIMIT: u8 = 255;

/// What a host says of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressAnnouncement {
    /// Of the host.
    pub mac: Mac,
    /// Of the VLAN it is in.
    pub tag: Option<Tag>,
    /// Which it has.
    pub address: IpAddr,
    /// Hosts that hear the contrary stop using it as a router (RFC 4861 §7.2.5). IPv4 does not say.
    pub is_router: bool,
}

impl AddressAnnouncement {
    /// Writes the frame, from its first byte on.
    pub fn emit(self, frame: &mut Vec<u8>) {
        let Self { mac, tag, address, is_router } = self;
        match address {
            IpAddr::V4(address) => {
                Header { to: Mac::BROADCAST, from: mac, ethertype: ARP }.emit_with(tag, frame);
                let request = ArpEthIpv4Packet {
                    operation: ArpOperation::REQUEST,
                    sender_mac: mac.0,
                    sender_ipv4: address.octets(),
                    target_mac: [0; 6],
                    target_ipv4: address.octets(),
                };
                frame.extend_from_slice(&request.to_bytes());
                frame.resize(frame.len().max(MIN_FRAME_LEN), 0);
            }
            IpAddr::V6(address) => {
                Header { to: ALL_NODES_MAC, from: mac, ethertype: IPV6 }.emit_with(tag, frame);
                // "Replace what you know", and it answers no question.
                let advertisement = NeighborAdvertisementHeader {
                    router: is_router,
                    solicited: false,
                    r#override: true,
                };
                // The option with the MAC, in units of eight bytes.
                let option = [NdpOptionType::TARGET_LINK_LAYER_ADDRESS.0, 1];
                let body = address.octets().into_iter().chain(option).chain(mac.0);
                let written = PacketBuilder::ipv6(address.octets(), ALL_NODES.octets(), HOP_LIMIT)
                    .icmpv6(Icmpv6Type::NeighborAdvertisement(advertisement))
                    .write_to_vec(frame, &body.collect::<ArrayVec<u8, 24>>());
                debug_assert!(written.is_ok(), "it is short, and its ICMP that of its IP");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    /// The frame, in hexadecimal.
    fn written(mac: Mac, vlan: u16, address: impl Into<IpAddr>, is_router: bool) -> String {
        let bytes = emitted(mac, vlan, address.into(), is_router);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn emitted(mac: Mac, vlan: u16, address: IpAddr, is_router: bool) -> Vec<u8> {
        let tag = (vlan != 0).then_some(Tag(vlan));
        let mut frame = Vec::new();
        AddressAnnouncement { mac, tag, address, is_router }.emit(&mut frame);
        frame
    }

    #[test]
    fn an_ipv4_address_is_announced_as_rfc_5227_says() {
        let arp = "0001080006040001020000000007c00002fe000000000000c00002fe";
        let untagged = format!("ffffffffffff0200000000070806{arp}{}", "00".repeat(18));
        assert_eq!(written(MAC, 0, [192, 0, 2, 254], false), untagged);
        let tagged = format!("ffffffffffff020000000007810001230806{arp}{}", "00".repeat(14));
        assert_eq!(written(MAC, 0x123, [192, 0, 2, 254], false), tagged);
    }

    #[test]
    fn an_ipv6_address_is_advertised_as_rfc_4861_says() {
        let known = |from: &str, address: &str, head: &str, mac: &str| {
            let all_nodes = "ff020000000000000000000000000001";
            let ip = format!("86dd6000000000203aff{address}{all_nodes}");
            format!("333300000001{from}{ip}8800{head}000000{address}0201{mac}")
        };
        let (mac, address) = ("020000000007", "20010db8000000000000000000000007");
        let of_host = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
        assert_eq!(written(MAC, 0, of_host, false), known(mac, address, "f91820", mac));
        let mac = "020000ffee07";
        let router = written(Mac([2, 0, 0, 0xff, 0xee, 7]), 5, of_host, true);
        assert_eq!(router, known(&format!("{mac}81000005"), address, "8a18a0", mac));
        let (mac, address) = ("020000000007", "fe800000000000000000000000000007");
        let of_link = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);
        let tagged = written(MAC, 0x123, of_link, false);
        assert_eq!(tagged, known(&format!("{mac}81000123"), address, "578920", mac));
        // Some sums carry into the upper half once more when their halves are added; one is zero.
        for (last, check) in [(0x6dd0, "fffe"), (0x6dd1, "fffc"), (0xedcf, "0000")] {
            let (mac, ones) = ("feffffffffff", u16::MAX);
            let address = Ipv6Addr::from([0xfdff, ones, ones, ones, 0, 0, 0, last]);
            let frame = written(Mac([0xfe, 255, 255, 255, 255, 255]), 0, address, true);
            let address = format!("fdffffffffffffff000000000000{last:04x}");
            assert_eq!(frame, known(mac, &address, &format!("{check}a0"), mac));
        }
    }

    /// What the checksum of an advertisement covers, with it: a multiple of 2¹⁶ − 1. That is the
    /// definition of the sum in other words.
    fn is_right(frame: &[u8]) -> bool {
        // Both addresses and the message; its length, and ICMPv6.
        let (words, _) = frame[frame.len() - 64..].as_chunks::<2>();
        let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
        (sum + 32 + 58).is_multiple_of(0xffff)
    }

    #[test]
    fn every_checksum_there_is_comes_out_right() {
        for last in 0..=u16::MAX {
            let address = Ipv6Addr::from([0xfdff, 0xffff, 0xffff, 0xffff, 0, 0, 0, last]);
            assert!(is_right(&emitted(MAC, 0, address.into(), true)), "{address}");
        }
    }

    proptest! {
        #[test]
        fn the_checksum_of_any_advertisement_is_right(
            mac: [u8; 6], vlan in 0_u16..4095, address: [u16; 8], is_router: bool,
        ) {
            let frame = emitted(Mac(mac), vlan, Ipv6Addr::from(address).into(), is_router);
            prop_assert!(is_right(&frame));
        }
    }
}
