//! How OBUs become known to an RSU, and how they leave.

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::position::{Coordinates, Position};

use crate::identity::of_our_id;
use crate::talk::{A, B, CAMERA, SERVER, SIGN, Talk, id};

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
