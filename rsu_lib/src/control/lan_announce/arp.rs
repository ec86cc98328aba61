//! ARP announcements (RFC 5227 §3): who has this address has a cable elsewhere now.

use std::net::Ipv4Addr;

use node_lib::Mac;
use node_lib::control::inner::Inner;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::ethernet::ARP;

use super::{header, pad};

/// Announces, from the client's MAC, that the client has this address: a request whose sender and
/// target are the same, which nobody answers.
pub(super) fn write(client: Client, address: Ipv4Addr, frame: &mut Vec<u8>) {
    header(Mac::BROADCAST, client, ARP, frame);
    // Ethernet, IPv4, the lengths of their addresses, operation 1 = request.
    frame.extend_from_slice(&[0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend_from_slice(&client.mac.0);
    frame.extend_from_slice(&address.octets());
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&address.octets());
    pad(frame);
}

/// Whether this frame, from a LAN, is such an announcement.
pub(crate) fn is_announcement(inner: Inner, payload: &[u8]) -> bool {
    let (sender, target) = (payload.get(14..18), payload.get(24..28));
    inner.ethertype == ARP && sender.is_some() && sender == target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_rfc_5227_says_and_known_again() {
        let mut frame = Vec::new();
        write(
            Client { vlan: 0x123, mac: Mac([2, 0, 0, 0, 0, 7]) },
            Ipv4Addr::new(10, 0, 0, 9),
            &mut frame,
        );
        let expect = "ffffffffffff020000000007 8100 0123 0806 0001 0800 06 04 0001 \
                      020000000007 0a000009 000000000000 0a000009";
        assert_eq!(frame[..46], super::super::tests::hex(expect));
        assert_eq!(frame.len(), 60);
        let inner = Inner::parse(&frame).unwrap();
        assert!(is_announcement(inner, &frame[18..]));
        let mut question = frame.clone();
        question[45] = 1;
        assert!(!is_announcement(inner, &question[18..]));
        assert!(!is_announcement(inner, &frame[18..30]));
    }
}
