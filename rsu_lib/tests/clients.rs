//! Behind whom the RSU believes a client to be, and for how long.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::messages::data::Destination;

use talk::{A, B, CAMERA, SERVER, SIGN, Talk, arp, id, rarp};

/// A packet of `client` that passed no router, from 10.0.0.7.
fn packet_of(client: Mac) -> Vec<u8> {
    let header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 7, 10, 0, 0, 1];
    let mut frame = [&SERVER.0[..], &client.0, &[0x08, 0x00], &header].concat();
    frame.resize(60, 0);
    frame
}

#[test]
fn a_client_that_never_speaks_stays_as_long_as_its_vehicle_vouches_for_it() {
    let known_after_ten_minutes = |named: &[Mac]| {
        let mut t = Talk::new();
        t.announce(A, A, 1, &[CAMERA]);
        for second in 1..=600 {
            t.pass(second * 1000);
            t.reply(A, 1, named, false);
        }
        t.rsu.clients_of(id(A)).len()
    };
    assert_eq!(known_after_ten_minutes(&[CAMERA]), 1);
    // It names another set, which we were never told.
    assert_eq!(known_after_ten_minutes(&[CAMERA, SIGN]), 0);
}

#[test]
fn a_client_that_spoke_behind_one_vehicle_is_not_another_ones_by_a_word() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.up(A, CAMERA, SERVER);
    t.pass(1000);
    t.announce(B, B, 9, &[CAMERA]);
    t.clear();
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down(), [(A, Destination::Node(id(A)))]);
}

#[test]
fn a_vehicle_is_reported_as_attached_once() {
    let mut t = Talk::new();
    for epoch in 1..=3 {
        t.announce(A, A, epoch, &[CAMERA]);
    }
    assert_eq!(t.events(), [Event::ObuAttached { obu: id(A), clients: 1, epoch: 1 }]);
    t.reply(A, 3, &[CAMERA], true);
    t.announce(A, A, 4, &[CAMERA]);
    let [Event::ObuDetached { .. }, Event::ObuAttached { epoch: 4, .. }] = t.events()[..] else {
        panic!("it left and came again")
    };
}

#[test]
fn an_address_only_concluded_from_a_packet_is_shown_to_the_lan_as_well() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.up_frame(A, &packet_of(CAMERA));
    t.tap_frame(&rarp(CAMERA));
    t.pass(1000);
    t.clear();
    t.announce(A, A, 3, &[CAMERA]);
    assert_eq!(t.taps[1..], [arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 7])]);
}

#[test]
fn what_hosts_on_the_lan_send_concludes_nothing_about_them() {
    let mut t = Talk::new();
    t.tap_frame(&packet_of(CAMERA));
    t.pass(1000);
    t.announce(A, A, 1, &[CAMERA]);
    assert_eq!(t.taps.len(), 1, "a reverse ARP and no address");
}

#[test]
fn a_set_cut_into_other_parts_is_complete_all_the_same() {
    let mut t = Talk::new();
    // The radio became larger between the first part of two and the repetition, which is in one.
    t.announce_part(A, 1, (0, 2), &[CAMERA], &[CAMERA, SIGN]);
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1);
    t.announce(A, A, 1, &[CAMERA, SIGN]);
    assert_eq!(t.events(), [Event::ObuAttached { obu: id(A), clients: 2, epoch: 1 }]);
    t.clear();
    t.reply(A, 1, &[CAMERA, SIGN], false);
    assert_eq!(t.acks(), [], "nothing is missing");
}

#[test]
fn the_smoothed_round_trip_moves_by_an_eighth_of_the_difference() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    let mut measured = Vec::new();
    for late in [80, 80, 8] {
        t.clear();
        while t.heartbeats().is_empty() {
            t.pass(t.now + 1);
        }
        let (sent, beat) = t.heartbeats()[0];
        t.pass(sent + late);
        t.reply_to(A, beat.order.seq, 0);
        measured.push(t.rsu.attached(t.at())[0].2.unwrap().as_millis());
    }
    assert!(measured[0].abs_diff(80) <= 1 && measured[1].abs_diff(80) <= 1, "{measured:?}");
    assert!(measured[2].abs_diff(71) <= 1, "{measured:?}");
}

#[test]
fn who_came_by_a_reply_is_not_reported_again_at_its_next_announcement() {
    let mut t = Talk::new();
    t.stand_by(A, 1, &[CAMERA]);
    t.reply(A, 2, &[CAMERA], false);
    assert_eq!(t.events(), [Event::ObuAttached { obu: id(A), clients: 1, epoch: 2 }]);
    t.announce(A, A, 3, &[CAMERA]);
    t.announce(A, A, 4, &[CAMERA, SIGN]);
    assert_eq!(t.events(), []);
}
