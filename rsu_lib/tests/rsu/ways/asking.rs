//! Strangers whose frames come up are asked who they are, if there is a way to them.

use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;

use super::seen::{answers, past, stranger};
use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US};

#[test]
fn a_stranger_beside_us_is_asked_at_its_first_frame_and_one_behind_a_relay_at_its_first_word() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[], A))]);
    // A frame does not say which way it came.
    t.clear();
    t.moves(B, RELAY);
    t.up(B, SIGN, SERVER);
    assert_eq!((answers(&t), t.taps.len()), (vec![], 1), "its frame is carried all the same");
    t.reply(B, 1, &[SIGN], false);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[RELAY], B))]);
    t.clear();
    t.announce(B, RELAY, 1, &[SIGN]);
    assert_eq!(answers(&t), [(AckStatus::Accepted, past(&[RELAY], B))]);
}

#[test]
fn strangers_that_cannot_be_asked_take_no_question_from_those_that_can() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.clear();
    for n in 0..100 {
        t.moves(stranger(n), RELAY);
        t.up(stranger(n), CAMERA, SERVER);
    }
    t.up(A, SIGN, SERVER);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[], A))]);
    assert_eq!((t.taps.len(), t.rsu.counters().drop_no_route), (101, 0), "no frame was dropped");
}

#[test]
fn who_left_and_sends_a_frame_again_is_asked_the_way_it_was() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.reply(A, 1, &[CAMERA], true);
    t.pass(400);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[RELAY], A))]);
}
