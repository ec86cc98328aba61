//! What an RSU does: what it hears and reads, what it answers and writes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node};
use node_lib::messages::Cost;
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::position::{Coordinates, Position};
use node_lib::messages::control::probe::Probe;
use node_lib::{Boot, Mac, NodeId, Order};
use rsu_lib::Settings;

use talk::{
    A, B, C, CAMERA, RELAY, SERVER, SIGN, STRANGER, Said, Talk, US, all_except, arp, id, packet,
    rarp, to,
};

#[test]
fn heartbeats_come_at_the_period_give_or_take_a_tenth_and_count_up() {
    let mut t = Talk::new();
    t.pass(10_000);
    let beats = t.heartbeats();
    assert!((98..=102).contains(&beats.len()), "{}", beats.len());
    for pair in beats.windows(2) {
        assert_eq!(pair[1].1.order, pair[0].1.order.next());
        let gap = pair[1].0 - pair[0].0;
        assert!((89..=111).contains(&gap), "{gap} ms");
    }
    assert_eq!((beats[0].1.hops, beats[0].1.via, beats[0].1.interval_ms), (0, NodeId::NONE, 100));
}

#[test]
fn an_announcement_is_acknowledged_and_its_clients_are_shown_to_the_lan() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA, SIGN]);
    assert_eq!(t.acks(), [(A, AckStatus::Accepted, 1)]);
    let shown: Vec<_> = t.taps.iter().map(|frame| Mac(frame[6..12].try_into().unwrap())).collect();
    assert_eq!(shown, [CAMERA, SIGN]);
    assert!(t.taps.iter().all(|frame| frame[12..14] == [0x80, 0x35] && frame.len() == 60));
    assert_eq!(t.events(), [Event::ObuAttached { obu: id(A), clients: 2, epoch: 1 }]);
}

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
fn a_late_claim_with_a_lower_epoch_is_refused_and_told_the_higher() {
    let mut t = Talk::new();
    t.announce(A, A, 9, &[CAMERA]);
    t.clear();
    t.announce(A, A, 3, &[SIGN]);
    assert_eq!(t.acks(), [(A, AckStatus::StaleEpoch, 9)]);
    assert_eq!(t.rsu.clients_of(id(A)), [Client { vlan: 0, mac: CAMERA }]);
}

#[test]
fn a_reply_with_another_digest_makes_the_rsu_ask_for_the_set() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    t.reply(A, 1, &[CAMERA], false);
    assert_eq!(t.acks(), []);
    t.reply(A, 1, &[CAMERA, SIGN], false);
    assert_eq!(t.acks(), [(A, AckStatus::SendAll, 1)]);
}

#[test]
fn a_stranger_is_asked_to_announce_itself() {
    let mut t = Talk::new();
    t.reply(A, 1, &[CAMERA], false);
    assert_eq!(t.acks(), [(A, AckStatus::SendAll, 1)]);
    t.clear();
    t.up(B, CAMERA, SERVER);
    assert_eq!(t.acks(), [(B, AckStatus::SendAll, 0)]);
    assert_eq!(t.taps.len(), 1, "and its frame is carried all the same");
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
fn frames_in_a_clients_name_do_not_keep_it_from_where_it_was() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[]);
    t.up(A, CAMERA, SERVER);
    for n in 0..40 {
        t.up(if n % 2 == 0 { B } else { A }, CAMERA, SERVER);
        t.pass(t.now + 100);
    }
    t.up(B, CAMERA, SERVER);
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1);
    t.clear();
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [(A, to(A, 0))]);
}

#[test]
fn a_client_that_moved_to_another_vehicle_stays_there_when_the_old_one_attaches_again() {
    let mut t = Talk::new();
    t.announce(A, A, 200, &[CAMERA]);
    t.announce(B, B, 3, &[]);
    t.up(B, CAMERA, SERVER);
    t.announce(B, B, 3, &[CAMERA]);
    for _ in 0..30 {
        t.reply(A, 200, &[CAMERA], false);
        t.reply(B, 3, &[CAMERA], false);
        t.pass(t.now + 2000);
    }
    for epoch in 201..210 {
        for obu in [A, B] {
            t.reply(obu, if obu == A { epoch - 1 } else { 3 }, &[CAMERA], false);
        }
        t.announce(A, A, epoch, &[CAMERA]);
        assert_eq!(t.rsu.clients_of(id(B)).len(), 1, "epoch {epoch}");
        t.pass(t.now + 2000);
    }
}

#[test]
fn a_client_whose_frames_come_from_the_lan_has_moved_there() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    // Another RSU shows it to the LAN.
    t.tap_frame(&rarp(CAMERA));
    assert_eq!(t.rsu.clients_of(id(A)), []);
    t.pass(t.now + 300);
    t.clear();
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [], "the LAN reaches it without us");
    assert_eq!(t.taps.len(), 0);
}

#[test]
fn what_still_arrives_for_an_obu_that_went_to_another_rsu_is_sent_down_the_old_way() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.pass(1000);
    t.tap_frame(&rarp(CAMERA));
    t.clear();
    t.pass(1299);
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [(RELAY, to(A, 1))]);
    assert_eq!((t.taps.len(), t.rsu.counters().forwarded_late), (0, 1), "and not back to the LAN");
    t.clear();
    t.pass(1300);
    t.tap(SERVER, CAMERA);
    assert_eq!((t.sent_down(), t.taps.len()), (vec![], 0));
    assert_eq!(t.rsu.counters().forwarded_late, 1);
}

#[test]
fn a_goodbye_after_a_hand_over_leaves_the_old_way_open_for_a_moment() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.pass(1000);
    t.reply(A, 1, &[CAMERA], true);
    t.clear();
    t.pass(1299);
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [(RELAY, to(A, 1))]);
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down().len(), 1, "floods are for those attached");
    t.clear();
    t.pass(1300);
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), []);
}

#[test]
fn late_frames_of_an_obu_that_left_are_carried_and_not_taken_for_news() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.pass(1000);
    t.tap_frame(&rarp(CAMERA));
    t.clear();
    t.pass(1200);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!((t.taps.len(), t.acks()), (1, vec![]));
    t.pass(1290);
    assert_eq!(t.taps.len(), 1, "the LAN is not told that it is here");
    assert_eq!((t.rsu.clients_of(id(A)), t.rsu.counters().forwarded_late), (vec![], 1));
    // Later it is news.
    t.pass(1300);
    t.clear();
    t.up(A, CAMERA, SERVER);
    t.pass(1301);
    assert_eq!((t.taps.len(), t.rsu.clients_of(id(A)).len()), (2, 1));
}

#[test]
fn an_obu_all_of_whose_clients_went_to_the_lan_is_detached_after_a_moment() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA, SIGN]);
    t.events();
    t.pass(1000);
    t.tap_frame(&rarp(CAMERA));
    t.pass(2000);
    assert_eq!(t.events(), [], "one of them is still here");
    t.tap_frame(&rarp(SIGN));
    t.pass(2299);
    assert_eq!(t.events(), []);
    t.pass(2300);
    assert_eq!(t.events(), [Event::ObuDetached { obu: id(A) }]);
    t.clear();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down(), []);
}

#[test]
fn an_obu_that_goes_on_answering_stays_though_its_clients_were_seen_on_the_lan() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.events();
    t.tap_frame(&rarp(CAMERA));
    t.pass(100);
    t.reply(A, 1, &[CAMERA], false);
    t.pass(1000);
    assert_eq!(t.events(), []);
}

#[test]
fn a_frame_that_another_rsu_still_had_does_not_take_back_a_client_that_just_came() {
    let mut t = Talk::new();
    t.tap(CAMERA, Mac::BROADCAST);
    t.pass(1000);
    t.announce(A, A, 1, &[CAMERA]);
    t.tap(CAMERA, Mac::BROADCAST);
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1);
    t.pass(1300);
    t.tap(CAMERA, Mac::BROADCAST);
    assert_eq!(t.rsu.clients_of(id(A)).len(), 0);
}

#[test]
fn an_obu_that_comes_back_at_once_has_its_clients_back() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.tap_frame(&rarp(CAMERA));
    t.clear();
    t.announce(A, A, 3, &[CAMERA]);
    assert_eq!((t.taps.len(), t.rsu.clients_of(id(A)).len()), (1, 1));
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.rsu.counters().forwarded_late, 0);
    t.events();
    t.pass(t.now + 1000);
    assert_eq!(t.events(), []);
}

#[test]
fn a_client_heard_behind_ever_other_obus_is_held_and_reported_once() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.announce(B, B, 1, &[]);
    t.events();
    for n in 0..20 {
        t.up(if n % 2 == 0 { A } else { B }, CAMERA, SERVER);
        t.up(if n % 2 == 0 { A } else { B }, SIGN, SERVER);
    }
    assert_eq!(t.rsu.counters().clients_damped, 2);
    let camera = Client { vlan: 0, mac: CAMERA };
    assert_eq!(t.events(), [Event::ClientHeld { client: camera }]);
    assert_eq!(t.taps.iter().filter(|frame| frame[12..14] == [8, 0]).count(), 40, "all carried");
    assert_eq!(t.rsu.clients_of(id(A)).len(), 2, "where they were first");
}

#[test]
fn reverse_arp_of_another_rsu_does_not_go_over_the_radio() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    t.tap_frame(&rarp(SIGN));
    assert_eq!(t.sent_down(), []);
}

#[test]
fn a_client_whose_address_is_known_comes_back_with_an_arp_announcement() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.up_frame(A, &arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 1]));
    t.tap_frame(&rarp(CAMERA));
    t.pass(1000);
    t.clear();
    t.announce(A, A, 3, &[CAMERA]);
    t.pass(2000);
    let announcement = arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 7]);
    let [first, second, ..] = &t.taps[..] else { panic!("{:?}", t.taps) };
    assert_eq!((&first[12..14], second), (&[0x80, 0x35][..], &announcement));
    assert_eq!(t.taps.len(), 6, "three rounds of two");
}

#[test]
fn an_arp_announcement_of_another_rsu_reaches_vehicles_once_and_not_the_one_that_left() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[SIGN]);
    t.tap_frame(&rarp(CAMERA));
    t.clear();
    for _ in 0..3 {
        t.tap_frame(&arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 7]));
        t.pass(t.now + 150);
    }
    let sent = t.sent_down();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].1, all_except(id(A), 0));
    t.clear();
    // A question is no announcement.
    t.tap_frame(&arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 1]));
    t.tap_frame(&arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 1]));
    assert_eq!(t.sent_down().len(), 2);
}

#[test]
fn a_goodbye_or_five_seconds_of_silence_detach_an_obu() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[SIGN]);
    t.events();
    t.reply(A, 1, &[CAMERA], true);
    assert_eq!(t.events(), [Event::ObuDetached { obu: id(A) }]);
    assert_eq!(t.rsu.clients_of(id(A)), []);
    t.pass(t.now + 7000);
    assert_eq!(t.events(), [Event::ObuDetached { obu: id(B) }]);
    assert_eq!(t.rsu.clients_of(id(B)), []);
}

#[test]
fn who_said_goodbye_is_told_once_where_it_was_that_it_did() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    for _ in 0..3 {
        t.reply(A, 1, &[CAMERA], true);
        t.reply(B, 1, &[], true);
    }
    assert_eq!(t.acks(), [(A, AckStatus::Known, 1)]);
}

#[test]
fn an_obu_on_standby_is_known_and_acknowledged_but_nothing_else_changes() {
    let mut t = Talk::new();
    t.tap(CAMERA, Mac::BROADCAST);
    t.pass(50);
    t.clear();
    t.stand_by(A, 1, &[CAMERA, SIGN]);
    assert_eq!(t.acks(), [(A, AckStatus::Accepted, 1)]);
    t.pass(150);
    assert_eq!((t.taps.len(), t.events(), t.rsu.clients_of(id(A))), (0, vec![], vec![]));
    assert_eq!(t.heartbeats()[0].1.obus, 0);
    t.clear();
    t.tap(SERVER, CAMERA);
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down(), [], "neither its clients' frames nor floods go there");
    t.reply_on_standby(A, 1, &[CAMERA, SIGN]);
    t.reply_on_standby(A, 1, &[CAMERA]);
    assert_eq!(t.acks(), [], "of who is attached elsewhere the clients need not be known");
}

#[test]
fn an_obu_that_was_on_standby_takes_its_clients_over_at_once() {
    let mut t = Talk::new();
    t.tap(CAMERA, Mac::BROADCAST);
    t.stand_by(A, 1, &[CAMERA, SIGN]);
    t.clear();
    t.announce(A, A, 2, &[CAMERA, SIGN]);
    assert_eq!(t.acks(), [(A, AckStatus::Accepted, 2)]);
    assert_eq!(t.events(), [Event::ObuAttached { obu: id(A), clients: 2, epoch: 2 }]);
    assert_eq!((t.taps.len(), t.rsu.clients_of(id(A)).len()), (2, 2), "and the LAN is told");
    t.clear();
    t.tap(SERVER, CAMERA);
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down().len(), 2);
    t.pass(t.now + 100);
    assert_eq!(t.heartbeats()[0].1.obus, 1);
}

#[test]
fn a_reply_is_enough_to_come_from_standby_when_the_announcement_is_lost() {
    let mut t = Talk::new();
    t.stand_by(A, 1, &[CAMERA]);
    t.clear();
    t.reply(A, 2, &[CAMERA], false);
    assert_eq!(t.events(), [Event::ObuAttached { obu: id(A), clients: 1, epoch: 2 }]);
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1);
    assert_eq!(t.acks(), []);
}

#[test]
fn a_frame_of_an_obu_on_standby_is_carried_and_answered() {
    let mut t = Talk::new();
    t.stand_by(A, 1, &[CAMERA]);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!((t.taps.len(), t.acks()), (1, vec![]));
    t.clear();
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [(A, to(A, 0))]);
}

#[test]
fn an_obu_on_standby_that_falls_silent_is_forgotten_without_a_word() {
    let mut t = Talk::new();
    t.stand_by(A, 1, &[CAMERA]);
    t.pass(t.now + 7000);
    assert_eq!(t.events(), []);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.acks(), [(A, AckStatus::SendAll, 0)], "it is a stranger");
}

#[test]
fn an_obu_that_says_standby_has_left() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.events();
    t.stand_by(A, 2, &[CAMERA]);
    assert_eq!(t.events(), [Event::ObuDetached { obu: id(A) }]);
    assert_eq!(t.rsu.clients_of(id(A)), []);
    // What it said before comes late.
    t.seq -= 2;
    t.announce(A, A, 1, &[CAMERA]);
    assert_eq!((t.events(), t.rsu.clients_of(id(A))), (vec![], vec![]));
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
fn a_client_heard_behind_one_obu_is_not_taken_by_anothers_announcement() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.up(A, CAMERA, SERVER);
    t.announce(B, B, 1, &[CAMERA]);
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1);
    // But where it speaks, there it is.
    t.up(B, CAMERA, SERVER);
    assert_eq!(t.rsu.clients_of(id(B)).len(), 1);
}

#[test]
fn the_round_trip_is_measured_without_the_time_the_obu_held_the_heartbeat() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.pass(t.now + 150);
    let (at, beat) = *t.heartbeats().last().unwrap();
    t.pass(at + 30);
    t.reply_to(A, beat.order.seq, 200);
    let attached = t.rsu.attached();
    let rtt = attached[0].round_trip.unwrap();
    assert!(rtt <= Duration::from_millis(11) && rtt >= Duration::from_millis(9), "{rtt:?}");
}

#[test]
fn a_probe_is_answered_with_the_heartbeat_last_sent() {
    let mut t = Talk::new();
    t.pass(250);
    t.clear();
    t.hear(A, US, Probe { sender: id(A), sender_boot: Boot(1), nonce: 7, rsu: id(US) }.into());
    let answer = t.each(|to, control| match control {
        Control::ProbeAnswer(answer) => Some((to, answer.nonce, answer.route.unwrap().hops)),
        _ => None,
    });
    assert_eq!(answer, [(A, 7, 0)]);
}

const NEW: Mac = Mac([2, 0, 0, 0, 4, 1]);

#[test]
fn in_a_crowd_the_second_of_two_questions_at_once_is_answered_for_all() {
    let answered = |obus: u8, askers: [Mac; 2]| {
        let mut t = Talk::new();
        for n in 2..obus {
            let obu = Mac([2, 0, 0, 0, 3, n]);
            t.announce(obu, obu, 1, &[]);
        }
        t.announce(A, A, 1, &[]);
        t.announce(B, B, 1, &[]);
        t.pass(250);
        t.clear();
        for asker in askers {
            let sender = id(asker);
            let probe = Probe { sender, sender_boot: Boot(1), nonce: 7, rsu: id(US) };
            t.hear(asker, US, probe.into());
        }
        t.each(|to, control| matches!(control, Control::ProbeAnswer(_)).then_some(to))
    };
    assert_eq!(answered(32, [A, B]), [A, Mac::BROADCAST]);
    assert_eq!(answered(31, [A, B]), [A, B], "no crowd");
    assert_eq!(answered(32, [A, NEW]), [A, NEW], "not behind us: it needs a proof of its own");
}

/// A heartbeat of our own id, relayed by `A`, or from another RSU itself.
fn of_our_id(boot: u32, hops: u8) -> Heartbeat {
    Heartbeat {
        rsu: id(US),
        order: Order::new(boot, 5),
        interval_ms: 100,
        hop_limit: 15,
        hops,
        cost: if hops == 0 { Cost::ZERO } else { Cost::ONE },
        sender: if hops == 0 { id(US) } else { id(A) },
        sender_boot: Boot(1),
        hello: 1,
        via: if hops == 0 { NodeId::NONE } else { id(US) },
        mtu: 1500,
        obus: 0,
        few_candidates: false,
        children: 0,
        stride: 0,
        position: None,
    }
}

#[test]
fn only_obus_that_are_known_are_believed_where_they_are() {
    let mut t = Talk::new();
    t.pass(150);
    let at = Coordinates::new(48.0, 11.5, None).unwrap();
    let position = Some(Position { at, age_ms: 40 });
    let order = t.heartbeats().last().unwrap().1.order;
    let relayed = Heartbeat { order, position, ..of_our_id(1, 1) };
    let seen = |t: &Talk| t.rsu.snapshot(t.at()).obus.pop().and_then(|obu| obu.position);
    t.hear(A, Mac::BROADCAST, relayed.into());
    t.announce(A, A, 1, &[]);
    assert_eq!(seen(&t), None, "nobody had heard of it");
    t.hear(A, Mac::BROADCAST, relayed.into());
    t.hear(A, Mac::BROADCAST, Heartbeat { position: None, ..relayed }.into());
    t.now += 100;
    let place = seen(&t).unwrap();
    assert_eq!((place.latitude_deg, place.age_ms), (48.0, Some(140)));
    assert_eq!(t.rsu.snapshot(t.at()).neighbours[0].position, Some(place));
}

fn last_boot(t: &Talk) -> u32 {
    t.heartbeats().last().unwrap().1.order.boot.0
}

#[test]
fn an_rsu_whose_boot_count_fell_goes_above_what_it_hears_of_itself_twice() {
    let mut t = Talk::new();
    t.pass(50);
    t.hear(A, Mac::BROADCAST, of_our_id(900, 1).into());
    t.pass(t.now + 99);
    assert_eq!(last_boot(&t), 1, "one word is not enough");
    t.hear(A, Mac::BROADCAST, of_our_id(900, 1).into());
    t.pass(t.now + 150);
    assert_eq!(last_boot(&t), 901);
}

#[test]
fn an_rsu_goes_above_what_it_hears_of_itself_once_and_not_any_distance() {
    let mut t = Talk::new();
    for n in 0..50 {
        t.hear(A, Mac::BROADCAST, of_our_id(u32::MAX - 50 + n, 1).into());
        t.pass(t.now + 100);
    }
    assert_eq!(last_boot(&t), 1);
    for n in 0..50 {
        t.hear(A, Mac::BROADCAST, of_our_id(900 + 2 * n, 1).into());
        t.pass(t.now + 100);
    }
    assert!(last_boot(&t) < 910, "{}", last_boot(&t));
    assert_eq!(t.events(), [Event::IdConflict { mac: A }], "and says so every ten seconds");
}

#[test]
fn two_obus_with_one_id_are_reported() {
    let mut t = Talk::new();
    for n in 0..600_u32 {
        // Each says a word a second, and goes on counting.
        let boot = 100 * (n % 2 + 1);
        let said = Said {
            obu: A,
            order: Order::new(boot, n),
            epoch: 1,
            standby: false,
            clients: vec![Client { vlan: 0, mac: if n % 2 == 0 { CAMERA } else { SIGN } }],
            goodbye: false,
        };
        t.say(&said);
        t.pass(t.now + 500);
    }
    let reported = t.events();
    let conflicts = reported.iter().filter(|e| matches!(e, Event::ObuIdConflict { .. })).count();
    assert!((1..=30).contains(&conflicts), "{conflicts} in 300 s");
}

#[test]
fn an_obu_that_starts_again_and_again_is_one_obu() {
    let mut t = Talk::new();
    let said = |boot, seq| Said {
        obu: A,
        order: Order::new(boot, seq),
        epoch: 1,
        standby: false,
        clients: vec![Client { vlan: 0, mac: CAMERA }],
        goodbye: false,
    };
    for start in 1..=20 {
        // Announced five times, as none is answered that is not believed; what the start before
        // said comes late.
        for (n, wait) in [0, 20, 40, 80, 160].into_iter().enumerate() {
            t.pass(t.now + wait);
            t.say(&said(10 * start, 1 + n as u32));
            if start > 1 && n < 4 {
                t.say(&said(10 * (start - 1), 6 + n as u32));
            }
        }
        t.pass(t.now + 1200);
    }
    let conflicts = t.events().into_iter().filter(|e| matches!(e, Event::ObuIdConflict { .. }));
    assert_eq!(conflicts.count(), 0);
}

#[test]
fn who_speaks_with_our_id_is_named_whatever_it_says() {
    let probe = Probe { sender: id(US), sender_boot: Boot(1), nonce: 1, rsu: NodeId::NONE };
    let mut t = Talk::new();
    t.hear(A, Mac::BROADCAST, probe.into());
    assert_eq!(t.events(), [Event::IdConflict { mac: A }]);
    t.hear(A, US, probe.into());
    assert_eq!(t.events(), [], "every ten seconds");
    t.pass(11_000);
    t.announce(US, A, 1, &[CAMERA]);
    assert_eq!(t.events(), [Event::IdConflict { mac: A }]);
    assert_eq!(t.rsu.clients_of(id(US)), []);
    assert_eq!(t.each(|_, c| matches!(c, Control::ProbeAnswer(_)).then_some(())), []);
}

#[test]
fn two_rsus_with_one_id_both_say_so_and_neither_goes_above_the_other() {
    let other = Mac([2, 0, 0, 0, 0, 0x11]);
    for boot in [1, 900] {
        let mut t = Talk::new();
        t.pass(50);
        for _ in 0..300 {
            t.hear(other, Mac::BROADCAST, of_our_id(boot, 0).into());
            t.pass(t.now + 100);
        }
        assert_eq!(t.events(), vec![Event::IdConflict { mac: other }; 3], "in 30 s");
        assert_eq!(last_boot(&t), 1);
    }
}

#[test]
fn a_goodbye_is_said_three_times_and_no_heartbeat_after_it() {
    let mut t = Talk::new();
    t.pass(150);
    t.clear();
    t.rsu.handle_shutdown(t.at(), &mut t.out);
    t.collect();
    t.pass(t.now + 1000);
    let goodbyes = t.each(|_, c| match c {
        Control::Withdrawal(withdrawal) => Some(withdrawal.goodbye),
        _ => None,
    });
    assert_eq!(goodbyes, [true; 3]);
    assert_eq!(t.heartbeats().len(), 0);
    assert_eq!(t.rsu.linger(), Duration::from_millis(200), "while others still send through it");
}

#[test]
fn without_a_lan_it_withdraws_is_silent_and_no_way_and_comes_back() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.pass(300);
    t.clear();
    t.rsu.handle_link(t.at(), LinkEvent::LanDown, &mut t.out);
    t.pass(1000);
    let withdrawals = t.each(|_, c| match c {
        Control::Withdrawal(w) => Some((w.goodbye, w.rsus.iter().collect::<Vec<_>>())),
        _ => None,
    });
    assert_eq!(withdrawals, vec![(false, vec![id(US)]); 3]);
    assert_eq!(t.heartbeats().len(), 0);
    t.clear();
    let probe = Probe { sender: id(A), sender_boot: Boot(1), nonce: 1, rsu: id(US) };
    t.hear(A, US, probe.into());
    t.hear(A, Mac::BROADCAST, Probe { rsu: NodeId::NONE, ..probe }.into());
    let routes = t.each(|_, c| match c {
        Control::ProbeAnswer(answer) => Some(answer.route.is_some()),
        _ => None,
    });
    assert_eq!(routes, [false], "asked, there is no way; asked by all, nothing");
    t.clear();
    t.rsu.handle_link(t.at(), LinkEvent::LanUp, &mut t.out);
    t.pass(2000);
    assert!((9..=12).contains(&t.heartbeats().len()), "{}", t.heartbeats().len());
}

#[test]
fn a_radio_that_is_down_sends_nothing_and_beats_at_once_when_it_is_back() {
    let mut t = Talk::new();
    t.rsu.handle_link(t.at(), LinkEvent::Down, &mut t.out);
    t.pass(500);
    assert_eq!(t.heartbeats().len(), 0);
    t.rsu.handle_link(t.at(), LinkEvent::Up, &mut t.out);
    t.collect();
    assert_eq!(t.heartbeats().len(), 1);
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
