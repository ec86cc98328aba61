//! Which way clients' frames go, and what floods may cost.

use node_lib::control::node::Node;
use node_lib::{Mac, NodeId};
use rsu_lib::Settings;

use crate::talk::{
    A, B, C, CAMERA, RELAY, SERVER, SIGN, STRANGER, Talk, US, all_except, arp, id, packet, to,
};

#[test]
fn a_client_that_never_spoke_is_reachable_from_the_lan() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.clear();
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [(RELAY, to(A, 1))]);
}

#[test]
fn frames_go_where_their_client_is() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[SIGN]);
    t.tap(SERVER, Mac::BROADCAST);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!((t.taps.len(), t.sent_down().len()), (1, 0), "to the LAN only");
    t.clear();
    t.up(A, CAMERA, SIGN);
    assert_eq!(t.sent_down(), [(B, to(B, 0))]);
    assert_eq!(t.taps.len(), 0, "from OBU to OBU without the LAN");
}

#[test]
fn a_broadcast_goes_once_over_the_radio_to_the_lan_and_not_back_to_its_sender() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[SIGN]);
    t.relay(RELAY, US);
    t.announce(C, RELAY, 1, &[]);
    t.clear();
    t.up(A, CAMERA, Mac::BROADCAST);
    assert_eq!(t.taps.len(), 1);
    assert_eq!(t.sent_down(), [(Mac::BROADCAST, all_except(id(A), 0))]);
}

#[test]
fn a_flood_to_a_single_next_hop_is_unicast_and_to_nobody_is_not_sent() {
    let mut t = Talk::new();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down(), []);
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.announce(B, RELAY, 1, &[SIGN]);
    t.clear();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down(), [(RELAY, all_except(NodeId::NONE, 0))]);
}

#[test]
fn unknown_destinations_are_flooded_within_a_budget() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    for _ in 0..1000 {
        t.tap(SERVER, STRANGER);
    }
    assert_eq!(t.sent_down().len(), 200);
    assert_eq!(t.rsu.counters().drop_flood_limit, 800);
}

#[test]
fn a_flood_for_an_unknown_client_costs_as_many_as_relays_repeat_it() {
    let mut t = Talk::new();
    for n in 1..=9 {
        let [relay, behind] = [n, n + 100].map(|n| Mac([2, 0, 0, 0, 1, n]));
        t.announce(relay, relay, 1, &[]);
        t.announce(behind, relay, 1, &[]);
        // A relay is one, whoever else is behind it.
        t.announce(Mac([2, 0, 0, 0, 2, n]), relay, 1, &[]);
    }
    // They are counted each second.
    t.pass(t.now + 1000);
    t.clear();
    for _ in 0..1000 {
        t.tap(SERVER, STRANGER);
    }
    assert_eq!(t.sent_down().len(), 20);
    assert_eq!(t.rsu.counters().drop_flood_limit, 980);
}

/// A frame to a group: its addresses, its EtherType, and what follows, so long.
fn to_group(group: Mac, ethertype: u16, body: &[u8], len: usize) -> Vec<u8> {
    let mut frame = [&group.0[..], &SERVER.0, &ethertype.to_be_bytes(), body].concat();
    frame.resize(len, 0);
    frame
}

fn ipv4_to(destination: [u8; 4], port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1];
    packet.extend_from_slice(&destination);
    packet.extend_from_slice(&[0, 9]);
    packet.extend_from_slice(&port.to_be_bytes());
    packet
}

#[test]
fn a_video_to_a_group_has_a_budget_and_what_hosts_need_to_find_each_other_another() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    let video = to_group(Mac([1, 0, 0x5e, 1, 1, 1]), 0x0800, &ipv4_to([239, 1, 1, 1], 5004), 1400);
    for n in 0..5000 {
        if n % 1000 == 0 {
            t.reply(A, 1, &[CAMERA], false);
        }
        t.tap_frame(&video);
        t.pass(t.now + 1);
    }
    let video_sent = t.sent_down().len();
    assert!((400..700).contains(&video_sent), "{video_sent} of 1400 bytes in 5 s");
    assert_eq!(t.rsu.counters().drop_flood_limit, 5000 - video_sent as u64);
    let neighbours = {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, 58, 255];
        packet.extend_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend_from_slice(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1]);
        packet
    };
    let vital = [
        arp(SERVER, [10, 0, 0, 1], [10, 0, 0, 7]),
        to_group(Mac([0x33, 0x33, 0xff, 0, 0, 1]), 0x86dd, &neighbours, 90),
        to_group(Mac([1, 0, 0x5e, 0, 0, 251]), 0x0800, &ipv4_to([224, 0, 0, 251], 5353), 90),
        to_group(Mac::BROADCAST, 0x0800, &ipv4_to([255, 255, 255, 255], 68), 342),
    ];
    for frame in &vital {
        t.clear();
        t.tap_frame(frame);
        assert_eq!(t.sent_down().len(), 1, "{frame:x?}");
    }
    t.clear();
    t.tap_frame(&to_group(Mac::BROADCAST, 0x0800, &ipv4_to([10, 0, 0, 255], 138), 1400));
    t.up_frame(B, &video);
    assert_eq!(t.sent_down().len(), 0);
}

#[test]
fn what_goes_to_nobody_costs_no_budget() {
    let mut t = Talk::new();
    for _ in 0..1000 {
        t.tap_frame(&to_group(Mac::BROADCAST, 0x88b6, &[], 1400));
    }
    assert_eq!(t.rsu.counters().drop_flood_limit, 0);
}

#[test]
fn a_frame_seen_before_is_dropped() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    let seq = t.seq;
    t.up(A, CAMERA, SERVER);
    t.seq = seq;
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.taps.len(), 1);
    assert_eq!(t.rsu.counters().drop_duplicate, 1);
}

#[test]
fn a_host_on_the_lan_is_told_what_fits_and_nobody_about_floods_and_strangers() {
    let mut t = Talk::with(Settings { pmtu_discovery: true, ..Settings::default() });
    t.announce(A, A, 1, &[CAMERA]);
    t.taps.clear();
    t.tap_frame(&packet(1500, CAMERA));
    let told = t.rsu.counters().too_big_told;
    let [answer] = &t.taps[..] else { panic!("{:?}", t.taps) };
    assert_eq!((told, &answer[..12]), (1, &[SERVER.0, CAMERA.0].concat()[..]));
    assert_eq!(t.rsu.counters().fragmented, 0);
    for to in [Mac::BROADCAST, Mac([0x01, 0, 0x5e, 1, 2, 3]), Mac([2, 9, 9, 9, 9, 9])] {
        t.tap_frame(&packet(1500, to));
    }
    assert_eq!((t.rsu.counters().fragmented, t.taps.len()), (3, 1));
    // Between two vehicles the radio carries it, in fragments: the sender is not on this LAN.
    t.announce(B, B, 1, &[SIGN]);
    t.taps.clear();
    t.up_frame(A, &packet(1500, SIGN));
    assert_eq!((t.rsu.counters().fragmented, t.taps.len()), (4, 0));
}
