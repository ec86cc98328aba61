//! Which frames to all are vital: they go over the radio when others have used up what those may
//! take.

use node_lib::Mac;
use node_lib::control::node::Node;

use crate::talk::{A, CAMERA, SERVER, Talk, arp, packet};

const UDP: u8 = 17;
const TCP: u8 = 6;

/// A small frame to a group.
fn to_group(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = [&Mac::BROADCAST.0[..], &SERVER.0, &ethertype.to_be_bytes(), packet].concat();
    frame.resize(80, 0);
    frame
}

fn ipv4(
    destination: [u8; 4],
    protocol: u8,
    fragment: [u8; 2],
    options: usize,
    port: u8,
) -> Vec<u8> {
    let words = 5 + options as u8;
    let mut packet = vec![0x40 | words, 0, 0, 40, 0, 0, fragment[0], fragment[1], 64, protocol];
    packet.extend_from_slice(&[0, 0, 10, 0, 0, 1]);
    packet.extend_from_slice(&destination);
    packet.resize(4 * usize::from(words), 0);
    packet.extend_from_slice(&[0, 9, 0, port]);
    to_group(0x0800, &packet)
}

fn ipv6(group: [u8; 2]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 24, 58, 255];
    packet.resize(24, 1);
    packet.extend_from_slice(&group);
    packet.resize(40, 1);
    to_group(0x86dd, &packet)
}

/// Whether this frame still goes out when not even the smallest other frame does.
fn is_vital(frame: &[u8]) -> bool {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    while t.rsu.counters().drop_flood_limit == 0 {
        t.tap_frame(&to_group(0x88b6, &[]));
    }
    t.clear();
    t.tap_frame(frame);
    !t.sent_down().is_empty()
}

const ALL: [u8; 4] = [255; 4];
const WHOLE: [u8; 2] = [0x40, 0];

#[test]
fn what_hosts_need_to_find_each_other_is() {
    assert!(is_vital(&arp(SERVER, [10, 0, 0, 1], [10, 0, 0, 7])), "ARP");
    assert!(is_vital(&ipv6([0xff, 0x02])), "neighbour discovery and what else stays on the link");
    assert!(is_vital(&ipv4([224, 0, 0, 251], UDP, WHOLE, 0, 99)), "what no router passes on");
    for port in [67, 68] {
        assert!(is_vital(&ipv4(ALL, UDP, WHOLE, 0, port)), "DHCP, port {port}");
        assert!(is_vital(&ipv4(ALL, UDP, WHOLE, 2, port)), "behind options");
    }
}

#[test]
fn nothing_else_is() {
    assert!(!is_vital(&to_group(0x88b6, &[])), "an EtherType nobody knows");
    assert!(!is_vital(&to_group(0x0800, &[])), "no packet at all");
    assert!(!is_vital(&ipv6([0xff, 0x05])), "a group of the site");
    assert!(!is_vital(&ipv6([0x20, 0x02])), "no group");
    assert!(!is_vital(&ipv4([224, 0, 1, 1], UDP, WHOLE, 0, 99)), "a group that routers pass on");
    for port in [66, 69] {
        assert!(!is_vital(&ipv4(ALL, UDP, WHOLE, 0, port)), "another port");
    }
    assert!(!is_vital(&ipv4(ALL, TCP, WHOLE, 0, 67)), "not by UDP");
    assert!(!is_vital(&ipv4(ALL, UDP, [0, 9], 0, 67)), "a later fragment has no ports");
    assert!(!is_vital(&ipv4(ALL, UDP, [0x21, 0], 0, 67)), "nor has one that begins farther on");
}

#[test]
fn what_may_have_waited_in_the_tap_for_long_is_flooded_only_if_hosts_need_it_to_find_each_other() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    let late = |t: &mut Talk, frame: &[u8]| {
        t.clear();
        t.tap_late(frame);
        t.sent_down().len()
    };
    let floods = [to_group(0x88b6, &[]), packet(100, Mac([2, 0, 0, 0, 1, 99]))];
    assert_eq!(floods.each_ref().map(|frame| late(&mut t, frame)), [0; 2]);
    assert_eq!(t.rsu.counters().drop_flood_late, 2);
    assert_eq!(late(&mut t, &packet(100, CAMERA)), 1, "for one client");
    assert_eq!(late(&mut t, &arp(SERVER, [10, 0, 0, 1], [10, 0, 0, 7])), 1, "vital");
    for frame in &floods {
        t.clear();
        t.tap_frame(frame);
        assert_eq!(t.sent_down().len(), 1, "in time");
    }
    assert_eq!(t.rsu.counters().drop_flood_late, 2);
}
