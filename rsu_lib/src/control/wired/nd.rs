//! Unsolicited neighbour advertisements (RFC 4861 §7.2.6; RFC 9131 for the routers among those who
//! hear them): what ARP announcements are, for IPv6.

use std::net::Ipv6Addr;

use node_lib::Mac;
use node_lib::control::inner::Inner;
use node_lib::messages::control::announcement::Client;

use super::super::addresses::said::{ICMPV6, IPV6, NEIGHBOUR_ADVERTISEMENT};
use super::header;

/// All nodes on the link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The same, on Ethernet (RFC 2464 §7).
const ALL_NODES_MAC: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);

/// "I am a router": taken from what the client said itself, because hosts that hear the contrary stop
/// using it as one (RFC 4861 §7.2.5).
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

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);

    #[test]
    fn is_written_as_rfc_4861_draws_it_and_known_again() {
        let mut frame = Vec::new();
        write(Client { vlan: 0, mac: Mac([2, 0, 0, 0, 0, 7]) }, ADDRESS, false, &mut frame);
        // The checksum as computed by hand: words of the pseudo-header and the message, complemented.
        let expect = "333300000001020000000007 86dd 60000000 0020 3a ff \
                      20010db8000000000000000000000007 ff020000000000000000000000000001 \
                      88 00 CCCC 20000000 20010db8000000000000000000000007 02 01 020000000007";
        let sum = format!("{:02x}{:02x}", frame[56], frame[57]);
        assert_eq!(frame, hex(&expect.replace("CCCC", &sum)));
        let inner = Inner::parse(&frame).unwrap();
        assert!(is_unsolicited(inner, &frame[14..]));
        frame[14 + 44] |= SOLICITED;
        assert!(!is_unsolicited(inner, &frame[14..]));
        assert!(!is_unsolicited(inner, &frame[14..54]));
    }

    #[test]
    fn with_its_checksum_the_sum_of_all_words_is_all_ones() {
        for is_router in [false, true] {
            let mut frame = Vec::new();
            write(
                Client { vlan: 5, mac: Mac([2, 0, 0, 0xff, 0xee, 7]) },
                ADDRESS,
                is_router,
                &mut frame,
            );
            assert_eq!(checksum(ADDRESS, ALL_NODES, &frame[18 + 40..]), 0);
            assert_eq!(frame[18 + 44] & ROUTER != 0, is_router);
        }
    }

    #[test]
    fn the_checksum_is_the_one_a_well_known_packet_has() {
        // Echo request ::1 to ::1, identifier 0x1234, sequence 1, no data: 8000 + 1234 + 1 + 1 + 1 + 8
        // + 3a = 9279 (hexadecimal), complemented.
        let sum = checksum(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &hex("80000000 12340001"));
        assert_eq!(sum, !0x9279);
    }
}
