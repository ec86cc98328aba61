//! When an OBU leaves its upstream: silence, goodbyes, restarts, its own radio.

use node_lib::Mac;
use node_lib::control::event::{Cause, Event};
use node_lib::control::node::{LinkEvent, Node};

use crate::talk::{A, B, CAMERA, Heard, RSU, SERVER, Talk, attached, id};

#[test]
fn a_silent_upstream_is_given_up_within_three_intervals_and_the_next_one_used() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.prove_beside_a(B);
    // From here on A says nothing, while B brings every heartbeat.
    let silent_from = t.now;
    t.events();
    while t.obu.attachment() == attached(RSU, A, 2) {
        t.pass(t.now + 5);
        assert!(t.now < silent_from + 300, "still trusted after three intervals");
        if (t.now - silent_from).is_multiple_of(100) {
            t.seq += 1;
            t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        }
        t.answer_probes_of(B);
    }
    assert!(t.now >= silent_from + 200, "given up after only {} ms", t.now - silent_from);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    let events = t.events();
    assert!(
        matches!(events[..], [Event::UpstreamChanged { cause: Cause::Dead, .. }, ..]),
        "{events:?}"
    );
}

/// Whoever restarts counts on it: it routes again after 3.5 intervals, and by then nobody may send
/// through it on the strength of what it said before.
#[test]
fn nobody_is_upstream_longer_than_three_intervals_after_its_last_word() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    // With frames to carry, A is watched closely.
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 60);
    t.acknowledge(A);
    t.prove_beside_a(B);
    // B speaks for the last time; A somewhat later, so that it is given up shortly before B would
    // be.
    let last = t.now + 10;
    t.pass(last);
    let seq = t.beat(A, 1);
    t.hear(last, B, Heard::heartbeat(seq, 1));
    t.hear(last + 65, A, Heard::heartbeat(seq, 1));
    t.pass(last + 295);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.pass(last + 300);
    assert_eq!(t.obu.attachment(), None);
}

#[test]
fn an_upstream_that_answers_is_kept_though_some_heartbeats_are_lost() {
    let mut t = Talk::settled_behind(A);
    for step in 0..300 {
        t.pass(t.now + 10);
        t.answer_probes_of(A);
        if step % 100 == 99 {
            t.beat(A, 1);
        }
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn an_upstream_that_answers_but_brings_no_news_leads_nowhere() {
    let mut t = Talk::settled_behind(A);
    for _ in 0..300 {
        t.pass(t.now + 10);
        t.answer_probes_of(A);
    }
    assert_eq!((t.obu.attachment(), t.obu.counters().upstream_dead), (None, 1));
}

#[test]
fn data_that_may_not_arrive_makes_it_ask_even_while_heartbeats_come() {
    let mut t = Talk::settled_behind(A);
    t.is_deaf = true;
    let start = t.now;
    // A is heard, but hears nothing: a one-way link.
    while t.now < start + 300 {
        t.tap(CAMERA, Mac::BROADCAST);
        if (t.now - start).is_multiple_of(100) {
            t.beat(A, 1);
        }
        t.pass(t.now + 10);
    }
    assert_eq!(t.obu.attachment(), None);
}

/// A client spoke, and then the process stood still: nobody asked whether the frame arrived, and
/// nobody heard what the upstream said. Both come late, in whatever order, and neither is the
/// upstream's fault.
#[test]
fn who_stood_still_judges_nobody_before_it_has_heard_what_waited() {
    for span in [200, 500, 1500, 2500, 8000] {
        let mut t = Talk::settled_behind(A);
        t.beat(A, 1);
        t.tap(CAMERA, Mac::BROADCAST);
        t.pass(t.now + 10);
        // Of another neighbour first.
        t.stall_and_hear(t.now + span, B, Heard::heartbeat(t.seq + 1, 2));
        assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "{span}");
        t.stall_and_hear(t.now, A, Heard::heartbeat(t.seq + 1, 1));
        t.seq += 1;
        t.pass(t.now + 1);
        let mut wakes = 0;
        for _ in 0..6 {
            t.answer_probes_of(A);
            wakes += t.wakes(t.now + 10);
        }
        assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "{span}");
        assert!(wakes < 50, "{wakes} times in 60 ms");
        // From then on as ever: a silent one is dead.
        t.pass(t.now + 400);
        assert_eq!(t.obu.attachment().filter(|to| to.upstream == id(A)), None, "{span}");
    }
}

#[test]
fn a_goodbye_moves_us_as_soon_as_there_is_another_way() {
    let mut t = Talk::settled_behind(A);
    let seq = t.seq;
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "it still forwards for a moment");
    t.hear(t.now + 1, B, Heard::heartbeat(seq + 1, 1));
    for _ in 0..2000 {
        if t.last_probe(B).is_some() {
            break;
        }
        t.pass(t.now + 1);
        t.answer_probes_of(A);
    }
    t.hear(t.now, B, Heard::heartbeat(seq + 1, 1));
    let nonce = t.sent_probe(B);
    t.hear(t.now, B, Heard::answer(nonce, seq + 1, 1));
    t.pass(t.now + 1);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
}

#[test]
fn who_goes_on_advertising_after_a_goodbye_has_not_left() {
    let mut t = Talk::settled_behind(A);
    let candidates = |t: &Talk| t.obu.candidates(node_lib::Timestamp::from_millis(t.now));
    assert_eq!(candidates(&t), 1);
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: true });
    assert_eq!(candidates(&t), 0);
    t.beat(A, 1);
    assert_eq!(candidates(&t), 0, "that heartbeat may have been under way");
    t.pass(t.now + 100);
    t.beat(A, 1);
    assert_eq!(candidates(&t), 1);
}

#[test]
fn without_any_way_it_withdraws_three_times_and_asks_around() {
    let mut t = Talk::settled_behind(A);
    t.beat(A, 1);
    t.pass(t.now + 10);
    t.clear();
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    t.pass(t.now + 60);
    assert_eq!(t.withdrawals(), 3);
    assert!(t.solicitations() >= 1);
}

#[test]
fn a_restarted_upstream_is_left_at_its_second_word() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now + 1, A, Heard::Probe { boot: 2 });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "one frame may be forged");
    t.hear(t.now + 20, A, Heard::Probe { boot: 2 });
    assert_eq!(t.obu.attachment(), None);
}

#[test]
fn the_radio_going_down_ends_everything_and_coming_up_asks_again() {
    let mut t = Talk::settled_behind(A);
    t.events();
    t.link(LinkEvent::Down);
    assert_eq!(t.obu.attachment(), None);
    let events = t.events();
    let down = |e: &Event| matches!(e, Event::UpstreamChanged { cause: Cause::LinkDown, .. });
    assert!(events.len() == 1 && events.iter().all(down), "{events:?}");
    t.clear();
    t.pass(t.now + 500);
    assert_eq!(t.sent.len(), 0, "a radio that is down cannot send");
    t.link(LinkEvent::Up);
    t.pass(t.now + 50);
    assert!(t.solicitations() >= 1);
}

/// What was under way when the radio went down may still attach it again.
#[test]
fn attached_with_the_radio_down_it_does_not_wait_for_what_it_cannot_say() {
    let mut t = Talk::settled_behind(A);
    t.link(LinkEvent::Down);
    for _ in 0..150 {
        t.beat(A, 1);
        if let Some(nonce) = t.last_probe(A) {
            t.hear(t.now, A, Heard::answer(nonce, t.seq, 1));
            t.clear();
        }
        let wakes = t.wakes(t.now + 100);
        assert!(wakes < 50, "{wakes} times in 100 ms at {} ms", t.now);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}
