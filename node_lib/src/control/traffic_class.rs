//! Which class a frame is sent in: what the client asked for, and ours above it.
//!
//! A radio with queues per class (Wi-Fi: IEEE 802.11 §10.2.4.2) sends the higher user priorities
//! first. A client says what it wants in the VLAN tag of its frame (PCP) or else in the IP header
//! (DSCP). The node that takes the frame out of its TAP writes that into the header, where every
//! hop finds it. The DSCPs are mapped as RFC 8325 §4.3 recommends.

use crate::messages::ethernet::{IPV4, IPV6, carried_by};
use crate::messages::flags::PRIORITY;
use crate::messages::{ETHERNET_HEADER_LEN, Kind};

/// User priority of control frames ("network control", IEEE 802.1Q-2018 table I-2).
pub const CONTROL: u8 = 7;

/// The highest a client can have. User priorities 6 and 7 share one queue of a Wi-Fi radio, that
/// for voice (IEEE 802.11 table 10-1); so no data frame stands in the way of control.
pub const DATA_MAX: u8 = 5;

/// The usual one.
pub const BEST_EFFORT: u8 = 0;

/// User priority of a frame for the radio.
pub fn of(frame: &[u8]) -> u8 {
    let packet = frame.get(ETHERNET_HEADER_LEN..).unwrap_or_default();
    match Kind::peek(packet) {
        Ok(kind) if is_control(kind) => CONTROL,
        Ok(_) => of_data(packet.get(1).map_or(BEST_EFFORT, |flags| flags & PRIORITY)),
        Err(_) => BEST_EFFORT,
    }
}

/// User priority of a message that is no data.
pub const fn of_kind(kind: Kind) -> u8 {
    if is_control(kind) { CONTROL } else { BEST_EFFORT }
}

/// User priority of data with this in its header.
pub fn of_data(priority: u8) -> u8 {
    priority.min(DATA_MAX)
}

/// Messages between nodes, and not frames of their clients. An echo shows how frames of clients
/// fare, and is to stand in the way of nothing else: it goes as they do.
pub const fn is_control(kind: Kind) -> bool {
    !matches!(kind, Kind::ToUpstream | Kind::ToDownstream | Kind::Echo | Kind::Fragment)
}

/// User priority of a client's frame.
pub fn of_inner(frame: &[u8]) -> u8 {
    of_client(frame).unwrap_or(BEST_EFFORT).min(DATA_MAX)
}

/// What a client's frame asks for, if it says.
fn of_client(frame: &[u8]) -> Option<u8> {
    let carried = carried_by(frame)?;
    if let Some(tag) = carried.tag {
        return Some(tag.priority());
    }
    match carried.ethertype {
        IPV4 => Some(of_dscp(carried.payload.get(1)? >> 2)),
        IPV6 => {
            let [first, second] = *carried.payload.first_chunk::<2>()?;
            Some(of_dscp((first << 2 | second >> 6) & 0x3f))
        }
        _ => None,
    }
}

/// RFC 8325 figure 1. What is not in it counts by its upper three bits no more than "excellent
/// effort", as a class nobody agreed on is not to be ahead of one somebody did.
fn of_dscp(dscp: u8) -> u8 {
    match dscp {
        // CS6, CS7: routing protocols of the client's own network.
        48 | 56 => 7,
        // EF, VOICE-ADMIT.
        46 | 44 => 6,
        // CS5: signalling.
        40 => 5,
        // CS4, CS3, AF41-43, AF31-33: video.
        32 | 24 | 34 | 36 | 38 | 26 | 28 | 30 => 4,
        // AF21-23: transactions.
        18 | 20 | 22 => 3,
        // CS1, LE (RFC 8622): what others need not wait for.
        8 | 1 => 1,
        _ => BEST_EFFORT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::{Mac, NodeId};
    use crate::messages::control::probe::Probe;
    use crate::messages::data::{Destination, ToDownstream, ToUpstream};
    use crate::messages::fragment::{Fragment, PartPlace};
    use crate::messages::message::Message;
    use crate::messages::packet_type::PacketType;
    use crate::messages::{ETHERTYPE_DEFAULT, Way};
    use crate::order::{Boot, Seq};

    fn frame<'a>(packet: impl Into<PacketType<'a>>) -> Vec<u8> {
        let (to, from) = (Mac([2; 6]), Mac([4; 6]));
        (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet: packet.into() }).into()
    }

    fn up(inner: &[u8]) -> u8 {
        let (destination, source) = (NodeId([2; 6]), NodeId([4; 6]));
        let payload = &[&[2; 12][..], inner, &[0; 40]].concat();
        let (boot, seq, priority) = (0, Seq(0), of_inner(payload));
        let up = ToUpstream {
            destination,
            source,
            hop_limit: 1,
            boot,
            seq,
            again: false,
            priority,
            payload,
        };
        let destination = Destination::Node { id: destination, way: Way::END };
        let down = ToDownstream { destination, source, boot, seq, priority, payload };
        let class = of(&frame(up));
        assert_eq!(of(&frame(down)), class);
        class
    }

    #[test]
    fn control_is_above_all_data() {
        let (sender, sender_boot) = (NodeId([4; 6]), Boot(1));
        let probe = Probe { sender, sender_boot, nonce: 7, rsu: NodeId::NONE, asked: NodeId::NONE };
        assert_eq!(of(&frame(probe)), CONTROL);
        assert_eq!(up(&[0x81, 0, 7 << 5, 1, 8, 0]), DATA_MAX);
        assert_eq!(up(&[8, 0, 0x45, 56 << 2]), DATA_MAX);
    }

    #[test]
    fn what_another_node_wrote_does_not_get_into_the_queue_of_control() {
        for (priority, class) in [(0, 0), (3, 3), (5, DATA_MAX), (6, DATA_MAX), (7, DATA_MAX)] {
            let place = PartPlace { total: 101, index: 1, count: 2 };
            let part = Fragment { priority, id: 1, place, part: &[7; 50] };
            assert_eq!(of(&frame(PacketType::Fragment(part))), class);
            let all = Destination::All { except: NodeId::NONE, hop_limit: 1, taken_at: Seq(0) };
            let (boot, seq, payload) = (0, Seq(0), &[2; 60]);
            let source = NodeId([2; 6]);
            let flood = ToDownstream { destination: all, source, boot, seq, priority, payload };
            assert_eq!(of(&frame(flood)), class, "the flag of a flood is no priority");
        }
    }

    /// IEEE 802.11 table 10-1: which user priorities a radio sends from one queue.
    #[test]
    fn control_has_a_queue_of_the_radio_to_itself() {
        let queue = |priority| match priority {
            1 | 2 => "background",
            0 | 3 => "best effort",
            4 | 5 => "video",
            _ => "voice",
        };
        let tags = (0..8).map(|pcp| up(&[0x81, 0, pcp << 5, 1, 8, 0]));
        let dscps = (0..64).map(|dscp| up(&[8, 0, 0x45, dscp << 2]));
        for priority in tags.chain(dscps) {
            assert_ne!(queue(priority), queue(CONTROL), "{priority}");
        }
    }

    #[test]
    fn the_tag_counts_before_the_ip_header() {
        assert_eq!(up(&[0x81, 0, 3 << 5, 1, 8, 0, 0x45, 46 << 2]), 3);
        assert_eq!(up(&[0x81, 0, 0, 1, 8, 0, 0x45, 46 << 2]), 0);
    }

    #[test]
    fn dscps_become_what_rfc_8325_says() {
        for (dscp, class) in [(0, 0), (8, 1), (10, 0), (18, 3), (34, 4), (40, 5), (46, 5), (3, 0)] {
            assert_eq!(up(&[8, 0, 0x45, dscp << 2 | 1]), class, "IPv4 {dscp}");
            assert_eq!(up(&[0x86, 0xdd, 0x60 | dscp >> 2, dscp << 6]), class, "IPv6 {dscp}");
        }
    }

    #[test]
    fn what_says_nothing_is_best_effort() {
        assert_eq!(up(&[8, 6, 0xff, 0xff]), BEST_EFFORT);
        assert_eq!(of(&[0; 14]), BEST_EFFORT);
        assert_eq!(of(&[]), BEST_EFFORT);
    }
}
