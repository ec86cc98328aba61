//! One of a crowd that loses its upstream: whom it asks, and what it says of the next.

use std::ops::RangeInclusive;

use crate::talk::{A, B, C, CAMERA, Heard, RSU, SERVER, Talk, US, attached, id, next};

/// One of 200 OBUs behind A, idle, whose clients its RSU knows; B is another way. Hears up to
/// heartbeat `last`.
pub(crate) fn known_of_a_crowd(last: u64) -> Talk {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    hear_a_and_b(&mut t, 5..=last);
    t
}

/// These heartbeats, through A and through B; neither answers a question.
fn hear_a_and_b(t: &mut Talk, beats: RangeInclusive<u64>) {
    for beat in beats {
        t.seq = beat as u32 - 1;
        t.pass(beat * 100);
        t.beat(A, 1);
        t.hear(beat * 100 + 10, B, Heard::heartbeat(beat as u32, 1));
        if t.announcements() > 0 {
            t.acknowledge(A);
            t.clear();
        }
    }
    t.clear();
}

/// A has no way any more, and B answers.
fn moves_from_a_to_b(t: &mut Talk) {
    t.hear(t.now + 40, A, Heard::Withdrawal { goodbye: false });
    t.pass(t.now + 17);
    assert_eq!(t.asked(), [B]);
    let seq = t.seq;
    let nonce = t.sent_probe(B);
    t.hear(t.now + 1, B, Heard::answer(nonce, seq, 1));
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.clear();
}

#[test]
fn in_a_crowd_a_new_upstream_to_the_same_rsu_is_told_at_leisure_and_at_once_when_a_client_speaks() {
    let told_after = |seed, speaks: bool| {
        let mut t = known_of_a_crowd(50);
        t.obu.reseed(seed);
        moves_from_a_to_b(&mut t);
        let moved = t.now;
        if speaks {
            t.tap(CAMERA, SERVER);
        }
        while t.replies() == 0 {
            assert_eq!(t.announcements(), 0);
            t.pass(t.now + 1);
        }
        let [reply] = t.replies_sent()[..] else { panic!("not one reply") };
        // Who is idle and has nobody behind it mentions it only.
        assert_eq!((reply.via, reply.acknowledge), (id(B), speaks), "{reply:?}");
        t.now - moved
    };
    assert!((0..20).all(|seed| told_after(seed, true) <= 1));
    let mut waits: Vec<_> = (0..20).map(|seed| told_after(seed, false)).collect();
    waits.sort_unstable();
    // Up to a millisecond for each of the 200.
    assert!(waits[19] <= 201 && waits[15] > 75 && waits[5] < 125, "{waits:?}");
}

/// The mention may be lost, and the next reply be ten seconds away.
#[test]
fn a_new_upstream_that_was_only_mentioned_is_acknowledged_once_frames_go_that_way() {
    for speaks in [true, false] {
        let mut t = known_of_a_crowd(50);
        moves_from_a_to_b(&mut t);
        let words = |t: &Talk| t.replies_sent().iter().map(|r| r.acknowledge).collect::<Vec<_>>();
        while t.replies() == 0 {
            t.pass(t.now + 1);
        }
        assert_eq!(words(&t), [false], "mentioned once");
        if speaks {
            t.tap(CAMERA, SERVER);
        } else {
            t.down(B, next(C), 1);
        }
        t.pass(t.now + 50);
        let said = words(&t);
        assert!(said[1..].contains(&true), "{speaks} {said:?}");
    }
}

#[test]
fn in_a_crowd_who_lost_its_way_takes_a_neighbour_that_heard_it_lately_without_asking() {
    // B names us as its upstream with heartbeat 51, so it hears us, and has another upstream from
    // 52 on.
    let asked_after = |beats: u64, is_idle: bool| {
        let mut t = known_of_a_crowd(50);
        t.hear(5101, B, Heard::heartbeat_via(51, 1, US));
        hear_a_and_b(&mut t, 52..=51 + beats);
        if !is_idle {
            t.tap(CAMERA, SERVER);
        }
        t.clear();
        t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
        t.pass(t.now + 17);
        let is_attached = t.obu.attachment() == attached(RSU, B, 2);
        (is_attached, t.asked().first().copied())
    };
    for is_idle in [true, false] {
        assert_eq!(asked_after(20, is_idle), (true, None), "idle: {is_idle}");
        assert_eq!(asked_after(90, is_idle), (true, None), "idle: {is_idle}");
        assert_eq!(asked_after(110, is_idle), (false, Some(B)), "too long ago, idle: {is_idle}");
    }
}

/// It is asked from 220 ms on after its last heartbeat, 33 later at the latest, and again until
/// three of its heartbeats are missing.
#[test]
fn in_a_crowd_a_silent_upstream_is_asked_and_nobody_else_before_it_is_given_up() {
    let mut asked_after = Vec::new();
    for seed in 0..40 {
        let mut t = known_of_a_crowd(150);
        t.obu.reseed(seed);
        for beat in [151, 152] {
            t.hear(beat * 100 + 10, B, Heard::heartbeat(beat as u32, 1));
        }
        t.clear();
        let asked = (15_211..15_300).find(|ms| {
            t.pass(*ms);
            !t.asked().is_empty()
        });
        let asked = asked.unwrap();
        t.pass(15_299);
        // Each 12.5 ms, up to half as much sooner or later.
        let times = t.asked().len();
        assert!((3..=12).contains(&times) && t.asked().iter().all(|who| *who == A), "{times}");
        assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "{seed}");
        t.pass(15_325);
        // Once more perhaps just before.
        let asked_then: Vec<_> =
            t.asked().into_iter().skip(times).filter(|who| *who != A).collect();
        assert_eq!(asked_then, [B]);
        asked_after.push(asked - 15_000);
    }
    asked_after.sort_unstable();
    assert!(asked_after[0] >= 220 && asked_after[39] <= 254, "{asked_after:?}");
    assert!(asked_after[0] < 230 && asked_after[39] > 245, "{asked_after:?}");
}

#[test]
fn in_a_crowd_an_upstream_that_answers_one_of_its_questions_stays() {
    let mut t = known_of_a_crowd(150);
    t.hear(15_015, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    t.clear();
    t.pass(15_295);
    assert!(t.asked().len() >= 3, "{:?}", t.asked());
    t.answer_probes_of(A);
    t.pass(15_400);
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn in_a_crowd_who_lost_its_way_asks_one_neighbour_after_the_other() {
    let mut t = known_of_a_crowd(50);
    t.hear(5021, C, Heard::heartbeat(50, 1));
    t.hear(5040, A, Heard::Withdrawal { goodbye: false });
    let mut asked = Vec::new();
    for ms in 5041..5140 {
        t.pass(ms);
        assert!(t.asked().len() <= 1, "one at a time: {:?}", t.asked());
        asked.extend(t.asked());
        t.clear();
    }
    let first: Vec<_> = asked.iter().copied().take(2).collect();
    assert_eq!(first, [B, C], "the best first: {asked:?}");
}
