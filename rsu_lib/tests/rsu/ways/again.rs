//! What was sent the old way of an OBU that has lost its upstream: it goes once more, the new way.

use node_lib::Mac;
use node_lib::control::node::Node;
use node_lib::messages::control::heartbeat::HeartbeatReply;

use rsu_lib::Settings;

use super::seen::{OTHER, past, sent, stranger, word};
use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US, inner};

/// The RSU, A behind it with the camera, and B behind A with the sign; another relay waits.
fn behind_each_other() -> Talk {
    let mut t = Talk::with(Settings { rerouting: true, ..Settings::default() });
    t.pass(1000);
    t.relay(RELAY, US);
    t.relay(OTHER, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.announce(B, A, 1, &[SIGN]);
    t.clear();
    t
}

/// A has left its upstream for this one, and what came within so many times 10 ms may be lost.
fn moves_at_risk(t: &mut Talk, via: Mac, at_risk_10ms: u8) {
    t.moves(A, via);
    let word = HeartbeatReply { at_risk_10ms, ..word(t, A, via, &[CAMERA]) };
    t.clear();
    t.bring(A, word.into());
}

#[test]
fn what_went_to_an_obu_that_moved_or_through_it_goes_the_new_way() {
    let mut t = behind_each_other();
    t.tap(SERVER, CAMERA);
    t.pass(1300);
    t.tap(SERVER, CAMERA);
    t.tap(SERVER, SIGN);
    let first: Vec<_> = t.sent.iter().rev().take(2).map(|(_, frame)| frame.clone()).collect();
    t.pass(1400);
    moves_at_risk(&mut t, OTHER, 23);
    assert_eq!(sent(&t), [past(&[OTHER], A), past(&[OTHER, A], B)], "not what came before that");
    assert_eq!(t.rsu.counters().rerouted, 2);
    // The same frames, with the numbers they had.
    let again: Vec<_> = t.sent.iter().filter(|(_, frame)| frame.len() > 100).collect();
    for ((_, frame), before) in again.iter().zip(first.iter().rev()) {
        assert_eq!(frame[14 + 10..14 + 16], before[14 + 10..14 + 16]);
        assert_eq!(frame[14 + 17..14 + 22], before[14 + 17..14 + 22], "boot and seq");
        assert_eq!(frame[frame.len() - 60..], before[before.len() - 60..]);
    }
}

#[test]
fn it_does_not_for_one_that_was_not_lost_nor_for_others_nor_twice_for_one_move() {
    let mut t = behind_each_other();
    t.tap(SERVER, CAMERA);
    t.tap(SERVER, SIGN);
    t.pass(1010);
    moves_at_risk(&mut t, OTHER, 0);
    assert_eq!(sent(&t), [], "it went by choice");

    let mut t = behind_each_other();
    t.announce(B, OTHER, 1, &[SIGN]);
    t.tap(SERVER, SIGN);
    t.pass(1010);
    moves_at_risk(&mut t, OTHER, 20);
    assert_eq!(sent(&t), [], "B is not behind A");

    let mut t = behind_each_other();
    t.tap(SERVER, CAMERA);
    t.pass(1010);
    moves_at_risk(&mut t, RELAY, 20);
    assert_eq!(sent(&t), [], "it is where it was");
    moves_at_risk(&mut t, OTHER, 20);
    assert_eq!(sent(&t).len(), 1);
    moves_at_risk(&mut t, OTHER, 20);
    assert_eq!(sent(&t), [], "that is known");
}

#[test]
fn who_moves_to_and_fro_gets_each_frame_once_more_and_no_old_one() {
    let mut t = behind_each_other();
    t.tap(SERVER, CAMERA);
    t.pass(1010);
    let mut again = 0;
    for step in 0..20 {
        moves_at_risk(&mut t, if step % 2 == 0 { OTHER } else { RELAY }, 255);
        again += sent(&t).len();
    }
    assert_eq!(again, 1);

    let mut t = behind_each_other();
    t.tap(SERVER, CAMERA);
    t.pass(1510);
    moves_at_risk(&mut t, OTHER, 255);
    assert_eq!(sent(&t), [], "then nobody waits for it");
}

#[test]
fn it_waits_until_the_new_way_is_known() {
    let unknown = Mac([2, 0, 0, 0, 0, 0x2f]);
    let mut t = behind_each_other();
    t.tap(SERVER, CAMERA);
    t.pass(1010);
    t.moves(unknown, US);
    moves_at_risk(&mut t, unknown, 20);
    assert_eq!(sent(&t), [], "who that is has not said where it is");
    t.relay(unknown, US);
    moves_at_risk(&mut t, unknown, 20);
    assert_eq!(sent(&t), [past(&[unknown], A)]);
}

#[test]
fn of_many_obus_each_has_a_share_of_what_is_kept() {
    let again = |others: u16| {
        let mut t = behind_each_other();
        for n in 0..others {
            t.announce(stranger(n), stranger(n), 1, &[]);
        }
        t.pass(t.now + 1000);
        for _ in 0..400 {
            t.tap(SERVER, CAMERA);
        }
        moves_at_risk(&mut t, OTHER, 20);
        sent(&t).len()
    };
    let alone = again(0);
    assert!((100..400).contains(&alone), "{alone}");
    assert!(again(500).abs_diff(alone * 204 / 502) <= 2, "{alone}, {}", again(500));
}

/// It does not know what it received before it started: what comes for the second time may be what
/// the one before had delivered.
#[test]
fn an_rsu_that_has_just_started_takes_nothing_that_was_given_to_another_next_hop_before() {
    let mut t = Talk::new();
    t.announce(A, US, 1, &[CAMERA]);
    let frame = inner(CAMERA, SERVER);
    let delivered = |t: &Talk| t.rsu.counters().wire_to_tap;
    for (now, again, expected) in
        [(100, true, 0), (200, false, 1), (2299, true, 1), (2300, true, 2), (2400, false, 3)]
    {
        t.pass(now);
        t.up_as(A, &frame, again);
        assert_eq!(delivered(&t), expected, "{now} ms, again: {again}");
    }
    assert_eq!(t.rsu.counters().drop_duplicate, 2);
}
