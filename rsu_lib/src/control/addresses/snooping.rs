//! What a client's frame says about the client's own address.
//!
//! ARP and neighbour discovery state it. The source of any other packet may be somebody behind the
//! client, when the client is a router. But a router takes one off the hop limit. So a limit that
//! systems start with (64, 128, 255) shows that the packet comes from the client itself.

use std::net::IpAddr;

use etherparse::icmpv6::Icmpv6PayloadSlice::{
    NeighborAdvertisement, NeighborSolicitation, RouterAdvertisement, RouterSolicitation,
};
use etherparse::icmpv6::NdpOptionSlice::TargetLinkLayerAddress;
use etherparse::icmpv6::NeighborAdvertisementHeader;
use etherparse::{ArpOperation, ArpPacket, Icmpv6Slice, Ipv4HeaderSlice, Ipv6Slice, ip_number};
use node_lib::address_announcement::ALL_NODES_MAC;
use node_lib::control::inner::{Inner, is_one_host};
use node_lib::messages::ethernet::{ARP, IPV4, IPV6, carried_by};

/// Hop limits that systems start with.
const INITIAL: [u8; 3] = [64, 128, 255];

/// What the frame's sender says, or lets be concluded, about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) address: IpAddr,
    /// Stated by ARP or neighbour discovery, and not just the source of a packet.
    pub(crate) is_stated: bool,
    /// Said to all, and no answer: an [announcement](node_lib::address_announcement).
    pub(crate) is_unasked: bool,
    /// Whether the client is a router, if it says so.
    pub(crate) is_router: Option<bool>,
}

/// What follows the Ethernet header, tag included. The frame has been read as [`Inner`].
#[inline]
pub(crate) fn payload(frame: &[u8]) -> &[u8] {
    carried_by(frame).map_or(&[], |carried| carried.payload)
}

/// The frame is one of those that state an address: cheap to see.
#[inline]
pub(crate) fn may_state(inner: Inner, payload: &[u8]) -> bool {
    match inner.ethertype {
        ARP => true,
        IPV6 => payload.get(6..8) == Some(&[ip_number::IPV6_ICMP.0, 255]),
        _ => false,
    }
}

/// What the frame says about its sender.
pub(crate) fn said(inner: Inner, payload: &[u8]) -> Option<Said> {
    let said = match inner.ethertype {
        ARP => by_arp(inner, payload)?,
        IPV4 => {
            let header = Ipv4HeaderSlice::from_slice(payload).ok()?;
            concluded(header.source_addr(), header.ttl())?
        }
        IPV6 => by_ipv6(inner, payload)?,
        _ => return None,
    };
    is_one_host(said.address).then_some(said)
}

fn stated(address: impl Into<IpAddr>) -> Said {
    Said { address: address.into(), is_stated: true, is_unasked: false, is_router: None }
}

fn concluded(source: impl Into<IpAddr>, hop_limit: u8) -> Option<Said> {
    INITIAL.contains(&hop_limit).then(|| Said { is_stated: false, ..stated(source) })
}

fn by_arp(inner: Inner, payload: &[u8]) -> Option<Said> {
    let arp = ArpPacket::from_slice(payload).ok()?.try_eth_ipv4().ok()?;
    let is_own = arp.sender_mac == inner.source.0
        && matches!(arp.operation, ArpOperation::REQUEST | ArpOperation::REPLY);
    let is_unasked = arp.sender_ipv4 == arp.target_ipv4;
    is_own.then(|| Said { is_unasked, ..stated(arp.sender_ipv4_addr()) })
}

fn by_ipv6(inner: Inner, payload: &[u8]) -> Option<Said> {
    let ip = Ipv6Slice::from_slice(payload).ok()?;
    let source = ip.header().source_addr();
    if !may_state(inner, payload) {
        return concluded(source, ip.header().hop_limit());
    }
    let message = Icmpv6Slice::from_slice(ip.payload().payload).ok()?;
    match message.payload_slice().ok()? {
        RouterSolicitation(_) | NeighborSolicitation(_) => Some(stated(source)),
        RouterAdvertisement(_) => Some(Said { is_router: Some(true), ..stated(source) }),
        NeighborAdvertisement(said) => {
            // The option names whose it is; a proxy names another.
            let is_own = said.options_iterator().all(|option| match option {
                Ok(TargetLinkLayerAddress(mac)) => mac.link_layer_address() == inner.source.0,
                option => option.is_ok(),
            });
            let flags = NeighborAdvertisementHeader::from_bytes(message.bytes5to8());
            let is_unasked = inner.destination == ALL_NODES_MAC && !flags.solicited;
            let is_router = Some(flags.router);
            is_own.then(|| Said { is_unasked, is_router, ..stated(said.target_address()) })
        }
        _ => concluded(source, ip.header().hop_limit()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use node_lib::Mac;
    use node_lib::address_announcement::AddressAnnouncement;

    use super::super::super::lan_announce::tests::hex;
    use super::*;

    const MAC: &str = "020000000007";
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);

    fn read(ethertype: &str, body: &str) -> Option<Said> {
        let frame = hex(&format!("ffffffffffff {MAC} {ethertype} {body}"));
        said(Inner::parse(&frame).unwrap(), payload(&frame))
    }

    fn v4(is_stated: bool) -> Option<Said> {
        let address = Ipv4Addr::new(10, 0, 0, 9).into();
        Some(Said { address, is_stated, is_unasked: false, is_router: None })
    }

    fn v6(is_stated: bool, is_router: Option<bool>) -> Option<Said> {
        Some(Said { address: HOST.into(), is_stated, is_unasked: false, is_router })
    }

    fn arp(operation: u8, mac: &str, address: &str) -> String {
        format!("0001 0800 06 04 000{operation} {mac} {address} 000000000000 0a000001")
    }

    fn ipv4(ttl: u8) -> String {
        format!("45000014 00000000 {ttl:02x}110000 0a000009 0a000001")
    }

    fn ipv6(next: u8, hop_limit: u8, message: &str) -> String {
        let host = "fe800000000000000000000000000007";
        format!("60000000 0000 {next:02x} {hop_limit:02x} {host} {host} {message}")
    }

    fn advertisement(flags: u8, option: &str) -> String {
        format!("88 00 0000 {flags:02x}000000 fe800000000000000000000000000007 {option}")
    }

    #[test]
    fn arp_states_the_senders_own_address() {
        assert_eq!(read("0806", &arp(1, MAC, "0a000009")), v4(true));
        assert_eq!(read("8100 0005 0806", &arp(2, MAC, "0a000009")), v4(true));
        assert_eq!(read("0806", &arp(1, MAC, "00000000")), None, "it asks whether that is free");
        assert_eq!(read("0806", &arp(1, "020000000008", "0a000009")), None, "somebody else's");
        assert_eq!(read("0806", &arp(3, MAC, "0a000009")), None);
        assert_eq!(read("0806", "0001 0800"), None);
    }

    #[test]
    fn a_packet_that_passed_no_router_shows_the_senders_address() {
        assert_eq!(read("0800", &ipv4(64)), v4(false));
        assert_eq!(read("0800", &ipv4(63)), None, "somebody behind it");
        assert_eq!(read("86dd", &ipv6(17, 128, "")), v6(false, None));
        assert_eq!(read("86dd", &ipv6(17, 127, "")), None);
    }

    #[test]
    fn neighbour_discovery_states_the_senders_address_and_whether_it_is_a_router() {
        let own = format!("02 01 {MAC}");
        let zeros = "00000000 00000000 00000000 00000000";
        let of = |kind| read("86dd", &ipv6(58, 255, &format!("{kind} 00 0000 00000000 {zeros}")));
        assert_eq!((of("85"), of("87")), (v6(true, None), v6(true, None)));
        assert_eq!(of("86"), v6(true, Some(true)));
        let of = |flags, option: &str| read("86dd", &ipv6(58, 255, &advertisement(flags, option)));
        assert_eq!(of(0x20, &own), v6(true, Some(false)));
        assert_eq!(of(0xa0, ""), v6(true, Some(true)));
        assert_eq!(of(0x20, "02 01 020000000008"), None, "a proxy");
        let nonce = "0e 01 010203040506";
        assert_eq!(of(0x20, &format!("{nonce} {own}")), v6(true, Some(false)));
        assert_eq!(of(0x20, "02 00 020000000007"), None, "no option has no bytes");
    }

    /// The frame with which a host announces the address.
    fn announcement(address: impl Into<IpAddr>) -> Vec<u8> {
        let (mac, address) = (Mac([2, 0, 0, 0, 0, 7]), address.into());
        let mut frame = Vec::new();
        AddressAnnouncement { mac, tag: None, address, is_router: false }.emit(&mut frame);
        frame
    }

    /// What is said by such a frame with a change.
    fn announced(address: impl Into<IpAddr>, at: usize, byte: u8) -> Option<Said> {
        let mut frame = announcement(address);
        frame[at] = byte;
        said(Inner::parse(&frame).unwrap(), payload(&frame))
    }

    #[test]
    fn only_what_is_said_to_all_and_answers_nobody_is_unasked() {
        let unchanged = announced([10, 0, 0, 9], 0, 0xff);
        assert_eq!(unchanged, v4(true).map(|said| Said { is_unasked: true, ..said }));
        assert_eq!(announced([10, 0, 0, 9], 14 + 27, 1), v4(true), "a question");
        let unchanged = announced(HOST, 0, 0x33);
        assert_eq!(unchanged, v6(true, Some(false)).map(|said| Said { is_unasked: true, ..said }));
        for (at, byte, what) in [(5, 2, "to another group"), (14 + 44, 0x60, "an answer")] {
            assert_eq!(announced(HOST, at, byte), v6(true, Some(false)), "{what}");
        }
        assert_eq!(announced(HOST, 14 + 6, 17), v6(false, None), "no ICMPv6");
        assert_eq!(announced(HOST, 14 + 40, 135), v6(true, None), "a solicitation");
    }

    #[test]
    fn what_is_cut_short_says_nothing() {
        let cut_to = |frame: &[u8], len| {
            let frame = &frame[..len];
            said(Inner::parse(frame).unwrap(), payload(frame))
        };
        for (frame, whole) in [(announcement([10, 0, 0, 9]), 14 + 28), (announcement(HOST), 86)] {
            assert!(cut_to(&frame, whole).is_some());
            assert_eq!((14..whole).find_map(|len| cut_to(&frame, len)), None);
        }
    }

    #[test]
    fn nothing_is_concluded_from_the_rest() {
        assert_eq!(read("88b5", ""), None);
        for body in ["", "45", "60000000"] {
            assert_eq!((read("0800", body), read("86dd", body)), (None, None));
        }
    }
}
