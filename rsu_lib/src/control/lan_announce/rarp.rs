//! Reverse ARP (RFC 903): nobody answers it, and switches learn from its sender.
//!
//! Where Ethernet would pad, other RSUs read behind which OBU the client is, and since when. Two
//! RSUs that speak at once, each of which would give the client to the other, so find the one that
//! is right.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 28 | RFC 903 |
//! | 28 | 4 | `V2X` and a 1 |
//! | 32 | 6 | the OBU |
//! | 38 | 4 | its boot count |
//! | 42 | 4 | the epoch of its announcement |
//!
//! With the Ethernet header those are the 60 bytes that a frame has at least.

use etherparse::{ArpEthIpv4Packet, ArpOperation};
use node_lib::messages::ethernet::{Header, RARP, Tag};
use node_lib::{Boot, Mac, NodeId};

/// What is here follows.
const MARK: [u8; 4] = *b"V2X\x01";

/// Behind which OBU a client is, and how new that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub(crate) obu: NodeId,
    /// Of the word the RSU has it from; zero if it has seen no more than the client's frames.
    pub(crate) boot: Boot,
    pub(crate) epoch: u32,
}

impl Whereabouts {
    /// What another RSU says of the client, if its reverse ARP says anything.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let (mark, said) = payload.get(ArpEthIpv4Packet::LEN..)?.split_first_chunk()?;
        let (obu, said) = said.split_first_chunk()?;
        let (boot, said) = said.split_first_chunk()?;
        let (epoch, _) = said.split_first_chunk()?;
        (*mark == MARK).then(|| Self {
            obu: NodeId(*obu),
            boot: Boot(u32::from_be_bytes(*boot)),
            epoch: u32::from_be_bytes(*epoch),
        })
    }

    /// The OBU has said this later than the other. Of two starts the counts tell nothing: they may
    /// come from clocks.
    pub(crate) fn is_newer_than(self, other: Self) -> bool {
        (self.obu, self.boot) == (other.obu, other.boot) && self.epoch > other.epoch
    }
}

/// Asks, from the client's MAC, which address that MAC has, as hypervisors do after a live
/// migration.
pub(super) fn write(mac: Mac, tag: Option<Tag>, whereabouts: Whereabouts, frame: &mut Vec<u8>) {
    Header { to: Mac::BROADCAST, from: mac, ethertype: RARP }.emit_with(tag, frame);
    let request = ArpEthIpv4Packet {
        // Request reverse.
        operation: ArpOperation(3),
        sender_mac: mac.0,
        sender_ipv4: [0; 4],
        target_mac: mac.0,
        target_ipv4: [0; 4],
    };
    frame.extend_from_slice(&request.to_bytes());
    frame.extend_from_slice(&MARK);
    frame.extend_from_slice(&whereabouts.obu.0);
    frame.extend_from_slice(&whereabouts.boot.0.to_be_bytes());
    frame.extend_from_slice(&whereabouts.epoch.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEREABOUTS: Whereabouts =
        Whereabouts { obu: NodeId([2, 0, 0, 0, 0, 9]), boot: Boot(0x0102_0304), epoch: 5 };

    #[test]
    fn is_written_as_rfc_903_draws_it_and_says_whose_client_it_is() {
        let mut frame = Vec::new();
        write(Mac([2, 0, 0, 0, 0, 7]), None, WHEREABOUTS, &mut frame);
        let expect = "ffffffffffff020000000007 8035 0001 0800 06 04 0003 \
                      020000000007 00000000 020000000007 00000000 \
                      56325801 020000000009 01020304 00000005";
        assert_eq!(frame, super::super::tests::hex(expect));
        assert_eq!((frame.len(), Whereabouts::read(&frame[14..])), (60, Some(WHEREABOUTS)));
    }

    #[test]
    fn what_others_pad_with_says_nothing() {
        let mut frame = Vec::new();
        write(Mac([2, 0, 0, 0, 0, 7]), None, WHEREABOUTS, &mut frame);
        let payload = &mut frame[14..];
        for len in 0..payload.len() {
            assert_eq!(Whereabouts::read(&payload[..len]), None, "{len}");
        }
        payload[28..].fill(0);
        assert_eq!(Whereabouts::read(payload), None);
    }

    #[test]
    fn a_higher_epoch_of_the_same_start_is_newer() {
        let with = |boot, epoch| Whereabouts { boot: Boot(boot), epoch, ..WHEREABOUTS };
        assert!(with(1, 6).is_newer_than(with(1, 5)));
        assert!(!with(1, 5).is_newer_than(with(1, 5)));
        assert!(!with(1, 4).is_newer_than(with(1, 5)));
        assert!(!with(2, 6).is_newer_than(with(1, 5)));
        let other = Whereabouts { obu: NodeId([2, 0, 0, 0, 0, 8]), ..with(1, 5) };
        assert!(!with(1, 6).is_newer_than(other));
    }
}
