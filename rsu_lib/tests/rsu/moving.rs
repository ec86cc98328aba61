//! Clients that move between vehicles and the LAN, and what is still under way then.

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::announcement::Client;

use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US, all_except, arp, id, rarp, to};

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

/// Reverse ARP of another RSU that has this client behind A, with this epoch of its present start.
fn named_elsewhere(client: Mac, boot: u32, epoch: u32) -> Vec<u8> {
    let mut frame = rarp(client);
    let said = [&b"V2X\x01"[..], &id(A).0, &boot.to_be_bytes(), &epoch.to_be_bytes()].concat();
    frame[42..].copy_from_slice(&said);
    frame
}

/// The other RSU has not heard yet of the announcement to us: its own was on its way for longer, or
/// it names clients a second time.
#[test]
fn who_names_a_client_with_an_epoch_that_is_over_does_not_get_it_and_the_lan_is_told_again() {
    let mut t = Talk::new();
    t.announce(A, A, 2, &[CAMERA, SIGN]);
    let announced_at = t.now;
    for ms in [0, 1000] {
        t.pass(announced_at + ms);
        t.clear();
        t.tap_frame(&named_elsewhere(CAMERA, 1, 1));
        t.pass(t.now + 1);
        let named = t.taps.first().expect("its switches are told");
        let expected = named_elsewhere(CAMERA, 1, 2);
        assert_eq!((&named[..14], &named[42..]), (&expected[..14], &expected[42..]), "{ms} ms");
        // What follows its reverse ARP takes nothing either.
        t.tap_frame(&arp(CAMERA, [10, 0, 0, 7], [10, 0, 0, 7]));
        t.tap(CAMERA, Mac::BROADCAST);
        assert_eq!(t.rsu.clients_of(id(A)).len(), 2);
    }
    t.events();
    t.pass(t.now + 1000);
    assert_eq!(t.events(), []);
}

#[test]
fn who_names_a_client_with_a_newer_epoch_or_of_another_start_gets_it() {
    for (boot, epoch) in [(1, 3), (1, 2), (2, 1), (0, 1)] {
        let mut t = Talk::new();
        t.announce(A, A, 2, &[CAMERA]);
        t.pass(1000);
        t.tap_frame(&named_elsewhere(CAMERA, boot, epoch));
        assert_eq!(t.rsu.clients_of(id(A)), [], "boot {boot}, epoch {epoch}");
    }
}

#[test]
fn what_an_epoch_says_holds_for_its_obu_alone_and_while_that_is_here() {
    let mut t = Talk::new();
    t.announce(B, B, 7, &[CAMERA]);
    t.pass(1000);
    t.tap_frame(&named_elsewhere(CAMERA, 1, 1));
    assert_eq!(t.rsu.clients_of(id(B)), [], "another OBU has it now");
    t.announce(A, A, 2, &[SIGN]);
    t.reply(A, 2, &[SIGN], true);
    t.tap_frame(&named_elsewhere(SIGN, 1, 1));
    t.pass(t.now + 1000);
    t.clear();
    t.tap(SERVER, SIGN);
    assert_eq!(t.sent_down(), [], "who has left has left");
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
