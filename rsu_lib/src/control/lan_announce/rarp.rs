//! Reverse ARP (RFC 903): nobody answers it, and switches learn from its sender.

use node_lib::Mac;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::ethernet::RARP;

use super::{header, pad};

/// Operation "request reverse".
const REQUEST_REVERSE: u8 = 3;

/// Asks, from the client's MAC, which address that MAC has, as hypervisors do after a live
/// migration.
pub(super) fn write(client: Client, frame: &mut Vec<u8>) {
    let mac = client.mac.0;
    header(Mac::BROADCAST, client, RARP, frame);
    // Ethernet, IPv4, the lengths of their addresses, operation.
    frame.extend_from_slice(&[0, 1, 0x08, 0, 6, 4, 0, REQUEST_REVERSE]);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&[0; 4]);
    pad(frame);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_rfc_903_draws_it() {
        let mut frame = Vec::new();
        write(Client { vlan: 0, mac: Mac([2, 0, 0, 0, 0, 7]) }, &mut frame);
        let expect = "ffffffffffff020000000007 8035 0001 0800 06 04 0003 \
                      020000000007 00000000 020000000007 00000000";
        assert_eq!(frame[..42], super::super::tests::hex(expect));
        assert_eq!((frame.len(), frame[42..].iter().sum::<u8>()), (60, 0));
    }
}
