//! OBUs that are attached elsewhere and may come: known, and sent nothing.

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::messages::control::ack::AckStatus;

use crate::talk::{A, CAMERA, SERVER, SIGN, Talk, id, to};

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
