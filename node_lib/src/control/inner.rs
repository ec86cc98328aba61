//! What a bridge must know of the frame inside: [`Inner`].

use std::net::IpAddr;

use crate::mac::Mac;
use crate::messages::ethernet::{Header, Tag, carried};

/// Addresses and VLAN of a client's Ethernet frame. Handed on by value, so that it stays in
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// To whom.
    pub destination: Mac,
    /// From whom.
    pub source: Mac,
    /// VLAN id of an IEEE 802.1Q tag; 0 without one, or with a priority tag only.
    pub vlan: u16,
    /// EtherType behind the tag, if there is one.
    pub ethertype: u16,
}

impl Inner {
    /// Reads the header. `None` when it is too short, or of the kind no bridge may forward: sent
    /// from a group or zero address, or to a link-local control address (IEEE 802.1Q-2018 §8.6.3).
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (Header { to: destination, from: source, ethertype }, rest) = Header::read(frame)?;
        if !source.is_unicast() || destination.is_bridge_local() || destination == Mac::ZERO {
            return None;
        }
        let carried = carried(ethertype, rest)?;
        if carried.tag.is_some_and(Tag::is_reserved) {
            return None;
        }
        let vlan = carried.tag.map_or(0, Tag::vlan);
        Some(Self { destination, source, vlan, ethertype: carried.ethertype })
    }
}

/// The address is that of one host: not of this network, nobody or oneself, a group, all, or
/// reserved (RFC 1122 §3.2.1.3, RFC 4291 §2.5).
pub fn is_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !matches!(v4.octets(), [0 | 127 | 224.., ..]),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

    fn frame(destination: [u8; 6], source: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&destination[..], &source, rest].concat()
    }

    #[test]
    fn reads_an_untagged_frame() {
        let inner = Inner::parse(&frame(A, B, &[0x08, 0x00])).unwrap();
        assert_eq!(
            inner,
            Inner { destination: Mac(A), source: Mac(B), vlan: 0, ethertype: 0x0800 }
        );
    }

    #[test]
    fn reads_the_vlan_id_and_not_the_priority() {
        let inner = Inner::parse(&frame(A, B, &[0x81, 0, 0xe0 | 0x01, 0x2c, 0x86, 0xdd])).unwrap();
        assert_eq!((inner.vlan, inner.ethertype), (300, 0x86dd));
    }

    #[test]
    fn refuses_what_no_bridge_forwards() {
        assert_eq!(Inner::parse(&frame(A, [0xff; 6], &[8, 0])), None, "group source");
        assert_eq!(Inner::parse(&frame(A, [0; 6], &[8, 0])), None, "zero source");
        assert_eq!(Inner::parse(&frame([1, 0x80, 0xc2, 0, 0, 0], B, &[8, 0])), None, "BPDU");
        assert_eq!(Inner::parse(&frame(A, B, &[8])), None, "short");
        assert_eq!(Inner::parse(&frame(A, B, &[0x81, 0, 0, 1])), None, "short tag");
        assert_eq!(Inner::parse(&frame(A, B, &[0x81, 0, 0x0f, 0xff, 8, 0])), None, "VLAN 4095");
    }

    #[test]
    fn refuses_a_frame_to_nobody_and_reads_one_to_everybody() {
        assert_eq!(Inner::parse(&frame([0; 6], B, &[8, 0])), None);
        let inner = Inner::parse(&frame([0xff; 6], B, &[8, 0]));
        assert!(inner.is_some_and(|inner| inner.destination == Mac::BROADCAST));
    }

    #[test]
    fn a_priority_tag_is_no_vlan_and_the_largest_vlan_is_one() {
        let vlan = |high, low| {
            Inner::parse(&frame(A, B, &[0x81, 0, high, low, 8, 0])).map(|inner| inner.vlan)
        };
        assert_eq!(vlan(0xe0, 0), Some(0));
        assert_eq!(vlan(0x0f, 0xfe), Some(4094));
        assert_eq!(vlan(0xff, 0xff), None);
    }
}
