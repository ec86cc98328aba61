//! What a client's frame says about the client's own address.
//!
//! ARP and neighbour discovery state it. The source of any other packet may be somebody behind the
//! client, when the client is a router. But a router takes one off the hop limit. So a limit that
//! systems start with (64, 128, 255) shows that the packet comes from the client itself.

use std::net::{Ipv4Addr, Ipv6Addr};

use node_lib::control::inner::Inner;
use node_lib::messages::ethernet::{ARP, IPV4, IPV6, carried_by};

/// Next header of ICMPv6.
pub(crate) const ICMPV6: u8 = 58;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
/// Type of neighbour advertisements.
pub(crate) const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Hop limits that systems start with.
const INITIAL: [u8; 3] = [64, 128, 255];

/// What the frame's sender says, or lets be concluded, about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) address: Address,
    /// Stated by ARP or neighbour discovery, and not just the source of a packet.
    pub(crate) is_stated: bool,
    /// Whether the client is a router, if it says so.
    pub(crate) is_router: Option<bool>,
}

/// An address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
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
        IPV6 => payload.get(6..8) == Some(&[ICMPV6, 255]),
        _ => false,
    }
}

/// What the frame says about its sender.
pub(crate) fn said(inner: Inner, payload: &[u8]) -> Option<Said> {
    match inner.ethertype {
        ARP => by_arp(inner, payload),
        IPV4 => by_ipv4(payload),
        IPV6 if may_state(inner, payload) => by_discovery(inner, payload),
        IPV6 => by_ipv6(payload),
        _ => None,
    }
}

fn by_arp(inner: Inner, payload: &[u8]) -> Option<Said> {
    // Ethernet, IPv4, the lengths of their addresses; a request or a reply.
    let (&[0, 1, 8, 0, 6, 4, 0, 1 | 2], rest) = payload.split_first_chunk()? else { return None };
    let (mac, rest) = rest.split_first_chunk::<6>()?;
    let address = Ipv4Addr::from(*rest.first_chunk::<4>()?);
    (*mac == inner.source.0 && is_host4(address)).then_some(Said {
        address: Address::V4(address),
        is_stated: true,
        is_router: None,
    })
}

fn by_ipv4(payload: &[u8]) -> Option<Said> {
    let header = payload.first_chunk::<20>()?;
    let [version, _, _, _, _, _, _, _, ttl, _, _, _, a, b, c, d, ..] = *header;
    let address = Ipv4Addr::new(a, b, c, d);
    (version >> 4 == 4 && INITIAL.contains(&ttl) && is_host4(address)).then_some(Said {
        address: Address::V4(address),
        is_stated: false,
        is_router: None,
    })
}

fn by_ipv6(payload: &[u8]) -> Option<Said> {
    let (header, _) = payload.split_first_chunk::<40>()?;
    let [version, _, _, _, _, _, _, hop_limit, ..] = *header;
    let address = source6(payload)?;
    (version >> 4 == 6 && INITIAL.contains(&hop_limit)).then_some(Said {
        address: Address::V6(address),
        is_stated: false,
        is_router: None,
    })
}

fn by_discovery(inner: Inner, payload: &[u8]) -> Option<Said> {
    let (_, message) = payload.split_first_chunk::<40>()?;
    let stated = |address, is_router| {
        Some(Said { address: Address::V6(address), is_stated: true, is_router })
    };
    let &[kind, _, _, _, flags, ..] = message else { return None };
    match kind {
        ROUTER_SOLICITATION | NEIGHBOUR_SOLICITATION => stated(source6(payload)?, None),
        ROUTER_ADVERTISEMENT => stated(source6(payload)?, Some(true)),
        NEIGHBOUR_ADVERTISEMENT => {
            let target = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
            // The option names whose it is; a proxy names another.
            let option = message.get(24..32);
            let is_own = option.is_none_or(|o| o.strip_prefix(&[2, 1]) == Some(&inner.source.0));
            if is_own && is_host6(target) { stated(target, Some(flags & 0x80 != 0)) } else { None }
        }
        _ => by_ipv6(payload),
    }
}

fn source6(payload: &[u8]) -> Option<Ipv6Addr> {
    let address = Ipv6Addr::from(*payload.get(8..)?.first_chunk::<16>()?);
    is_host6(address).then_some(address)
}

fn is_host4(address: Ipv4Addr) -> bool {
    !(address.octets().first() == Some(&0)
        || address.is_loopback()
        || address.is_multicast()
        || address.is_broadcast())
}

fn is_host6(address: Ipv6Addr) -> bool {
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::super::super::lan_announce::tests::hex;
    use super::*;

    const MAC: &str = "020000000007";
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);

    fn read(ethertype: &str, body: &str) -> Option<Said> {
        let frame = hex(&format!("ffffffffffff {MAC} {ethertype} {body}"));
        said(Inner::parse(&frame).unwrap(), payload(&frame))
    }

    fn v4(is_stated: bool) -> Option<Said> {
        let address = Address::V4(Ipv4Addr::new(10, 0, 0, 9));
        Some(Said { address, is_stated, is_router: None })
    }

    fn v6(is_stated: bool, is_router: Option<bool>) -> Option<Said> {
        Some(Said { address: Address::V6(HOST), is_stated, is_router })
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
        assert_eq!(read("86dd", &ipv6(58, 255, "87 00 0000 00")), v6(true, None));
        assert_eq!(read("86dd", &ipv6(58, 255, "86 00 0000 00")), v6(true, Some(true)));
        let of = |flags, option: &str| read("86dd", &ipv6(58, 255, &advertisement(flags, option)));
        assert_eq!(of(0x20, &own), v6(true, Some(false)));
        assert_eq!(of(0xa0, ""), v6(true, Some(true)));
        assert_eq!(of(0x20, "02 01 020000000008"), None, "a proxy");
    }

    #[test]
    fn nothing_is_concluded_from_the_rest() {
        assert_eq!(read("88b5", ""), None);
        for body in ["", "45", "60000000"] {
            assert_eq!((read("0800", body), read("86dd", body)), (None, None));
        }
    }
}
