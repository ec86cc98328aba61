//! What an OBU says of itself: its clients, its upstream, its goodbye.

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::Client;

use crate::talk::{A, B, C, CAMERA, Heard, RSU, Talk, attached, id};

#[test]
fn an_announcement_is_repeated_until_acknowledged() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.pass(t.now + 60);
    assert!(t.announcements() >= 1);
    t.acknowledge(A);
    assert!(t.events().iter().any(|e| matches!(e, Event::Acknowledged { .. })));
    t.clear();
    t.pass(t.now + 60);
    assert_eq!(t.announcements(), 0);
}

#[test]
fn an_rsu_that_knows_a_higher_epoch_makes_us_jump_above_it() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now, A, Heard::Ack { epoch: 50, status: AckStatus::StaleEpoch, digest: 0 });
    let (_, epoch, ..) = t.sent_announcement();
    assert_eq!(epoch, 51);
}

#[test]
fn an_rsu_that_restarted_is_told_our_clients_at_its_second_heartbeat() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.clear();
    for (seq, announcements) in [(1, 0), (2, 1)] {
        t.hear(t.now + 100, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        assert_eq!(t.announcements(), announcements);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn an_rsu_that_was_away_for_long_is_told_our_clients_when_it_is_back() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.pass(t.now + 2000);
    assert_eq!(t.obu.attachment(), None);
    t.clear();
    for seq in 1..=3 {
        t.pass(t.now + 100);
        t.hear(t.now, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    assert!(t.announcements() > 0);
    assert_eq!(t.replies(), 0, "it would only ask for more");
}

#[test]
fn when_a_relay_further_up_is_replaced_nobody_behind_it_says_a_word() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    // The reply that comes about once a second is not due for a while.
    while t.replies() == 0 {
        t.pass(t.now + 100);
        t.beat(A, 1);
    }
    t.clear();
    let from = t.now;
    // A has another upstream with each heartbeat, and is one hop farther or nearer.
    for (n, via) in [B, C, B, C].into_iter().enumerate() {
        t.pass(t.now + 100);
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat_via(t.seq, 1 + (n % 2) as u8, via));
    }
    assert_eq!(t.obu.attachment().map(|to| to.upstream), Some(id(A)));
    assert!(t.now < from + 750, "before the next reply");
    assert_eq!((t.announcements(), t.replies()), (0, 0));
}

#[test]
fn clients_behind_the_tap_are_announced_shortly_after_they_first_speak() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.clear();
    t.tap(CAMERA, Mac::BROADCAST);
    t.pass(t.now + 60);
    let (_, _, clients) = t.sent_announcement();
    assert_eq!(clients, [Client { vlan: 0, mac: CAMERA }]);
}

#[test]
fn a_goodbye_of_ours_is_said_three_times_and_frames_still_pass() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.shut_down();
    t.pass(t.now + 100);
    assert_eq!(t.withdrawals(), 3);
    t.clear();
    t.up(C, C, 16);
    assert_eq!(t.sent_to(), [A]);
}

#[test]
fn somebody_with_our_id_is_reported() {
    let mut t = Talk::settled_behind(A);
    t.events();
    t.hear(t.now, C, Heard::Impostor);
    assert_eq!(t.events(), [Event::IdConflict { mac: C }]);
    assert_eq!(t.obu.counters().drop_foreign, 1);
}
