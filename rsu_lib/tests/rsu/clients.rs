//! Behind whom the RSU believes a client to be, and for how long.

use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, Order};

use crate::talk::{A, B, C, CAMERA, SERVER, SIGN, Said, Talk, arp, id, rarp, to};

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
    assert_eq!(t.sent_down(), [(A, to(A, 0))]);
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
        measured.push(t.rsu.attached()[0].round_trip.unwrap().as_millis());
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

#[test]
fn who_has_not_announced_itself_takes_no_client_from_a_vehicle_that_is_here() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    t.up(B, CAMERA, SERVER);
    assert_eq!((t.taps.len(), t.rsu.clients_of(id(B))), (1, vec![]), "carried all the same");
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1);
    // One of the LAN it may have taken along, and one of a vehicle that has left.
    t.tap(SIGN, Mac::BROADCAST);
    t.pass(1000);
    t.up(B, SIGN, SERVER);
    assert_eq!(t.rsu.clients_of(id(B)).len(), 1);
    t.pass(20_000);
    t.up(B, CAMERA, SERVER);
    assert_eq!(t.rsu.clients_of(id(B)).len(), 2);
}

#[test]
fn who_has_not_announced_itself_fills_half_of_the_table() {
    let mut t = Talk::new();
    let client = |n: u16| Mac([2, 0, 0, 5, (n >> 8) as u8, n as u8]);
    for n in 0..5000 {
        // Of strangers a thousand frames a second go on.
        t.pass(t.now + 1);
        t.up(B, client(n), SERVER);
    }
    assert_eq!(t.rsu.clients_of(id(B)).len(), 4096);
    assert_eq!(t.rsu.counters().wire_to_tap, 5000);
}

#[test]
fn a_client_that_just_spoke_stays_though_its_vehicle_does_not_name_it() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA, SIGN]);
    t.up(A, CAMERA, SERVER);
    t.announce(A, A, 2, &[SERVER]);
    let client = |mac| Client { vlan: 0, mac };
    assert_eq!(t.rsu.clients_of(id(A)), [client(CAMERA), client(SERVER)]);
    for second in 1..=6 {
        t.pass(second * 1000);
        t.reply(A, 2, &[SERVER], false);
    }
    t.announce(A, A, 3, &[SIGN]);
    assert_eq!(t.rsu.clients_of(id(A)), [client(SIGN)]);
}

#[test]
fn a_client_that_is_held_is_not_put_back_to_a_vehicle_that_is_not_there() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.announce(C, C, 1, &[]);
    // B has not announced itself: no way leads to it.
    t.up(B, CAMERA, SERVER);
    for n in 0..20 {
        t.up(if n % 2 == 0 { A } else { C }, CAMERA, SERVER);
    }
    assert_eq!((t.rsu.counters().clients_damped, t.rsu.clients_of(id(B))), (1, vec![]));
    t.clear();
    t.tap(SERVER, CAMERA);
    assert_eq!(t.sent_down().len(), 1, "it is behind one of those that were heard");
}

#[test]
fn a_client_that_is_held_is_put_back_to_the_lan_and_the_lan_not_told() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.tap(CAMERA, Mac::BROADCAST);
    for _ in 0..10 {
        t.pass(t.now + 400);
        t.up(A, CAMERA, SERVER);
        t.tap_frame(&rarp(CAMERA));
    }
    assert_eq!((t.rsu.counters().clients_damped, t.rsu.clients_of(id(A))), (1, vec![]));
    t.pass(1000);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.taps.len(), 1, "carried, and nothing is said about where it is");
}

#[test]
fn frames_of_a_vehicle_that_started_again_pass_though_they_count_from_the_beginning() {
    let mut t = Talk::new();
    for _ in 0..10 {
        t.up(A, CAMERA, SERVER);
    }
    let clients = vec![Client { vlan: 0, mac: CAMERA }];
    let first =
        Said { obu: A, order: Order::new(1, 9), epoch: 1, standby: false, clients, goodbye: false };
    t.say(&first);
    // Data has the low byte of the boot count, and that is the same.
    for seq in 1..=3 {
        t.pass(t.now + 60);
        t.say(&Said { order: Order::new(257, seq), ..first.clone() });
    }
    t.clear();
    t.seq = 0;
    for _ in 0..10 {
        t.up(A, CAMERA, SERVER);
    }
    assert_eq!((t.taps.len(), t.rsu.counters().drop_duplicate), (10, 0));
}

#[test]
fn a_word_long_after_the_last_or_some_way_behind_shows_that_somebody_else_speaks_for_the_vehicle() {
    for (seq, after_ms, asked) in [(7, 299, 0), (7, 300, 1), (9, 1000, 1), (6, 200, 1)] {
        let mut t = Talk::new();
        let clients = vec![Client { vlan: 0, mac: CAMERA }];
        let order = Order::new(1, 10);
        t.say(&Said { obu: A, order, epoch: 1, standby: false, clients, goodbye: false });
        t.pass(t.now + after_ms);
        t.clear();
        t.seq = seq - 1;
        t.reply(A, 1, &[CAMERA], false);
        assert_eq!(t.acks().len(), asked, "word {seq} {after_ms} ms after word 10");
    }
}

#[test]
fn whose_frames_still_come_after_its_goodbye_is_asked_where_it_is_only_when_they_go_on() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.reply(A, 1, &[CAMERA], true);
    t.clear();
    t.pass(t.now + 299);
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.acks(), [], "they were under way");
    t.pass(t.now + 1);
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.acks().len(), 1, "somebody else said goodbye for it");
}

#[test]
fn of_more_clients_than_can_wait_who_comes_later_is_shown_to_the_lan_as_well() {
    let mut t = Talk::new();
    for n in 0..40 {
        let many: Vec<_> = (0..230).map(|m| Mac([2, 9, 9, 9, n, m])).collect();
        let obu = Mac([2, 8, 8, 8, 8, n]);
        t.announce(obu, obu, 1, &many);
    }
    t.pass(1000);
    t.announce(A, A, 1, &[CAMERA]);
    t.taps.clear();
    for second in 2..20 {
        t.pass(second * 1000);
        t.reply(A, 1, &[CAMERA], false);
    }
    let named = t.taps.iter().filter(|frame| frame.get(6..12) == Some(&CAMERA.0)).count();
    assert!(named > 0, "{} left out", t.rsu.counters().wired_limited);
}
