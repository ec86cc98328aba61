//! When a better neighbour is taken in the place of the upstream.

use node_lib::control::event::{Cause, Event};
use node_lib::control::node::Node;
use node_lib::{Mac, Timestamp};

use super::beats::{beat, beat_now, causes};
use crate::talk::{A, B, Heard, RSU, Talk, attached};

/// Behind A, which is two hops from the RSU.
pub(crate) fn behind_a() -> Talk {
    let mut t = Talk::new();
    t.settle(A, 2);
    t.events();
    t
}

#[test]
fn a_clearly_better_neighbour_is_taken_when_it_has_been_so_for_three_seconds() {
    let mut t = behind_a();
    // The way has been there for so long that only what lasts is better.
    for _ in 0..60 {
        beat(&mut t, &[(A, 2)]);
    }
    let waited = until_b_is_taken(&mut t);
    assert!((3000..6000).contains(&waited), "{waited} ms: the patience, and to measure the link");
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, B, 2), vec![Cause::Better]));
}

#[test]
fn a_clearly_better_neighbour_is_taken_sooner_while_the_first_way_is_young() {
    let mut t = behind_a();
    let waited = until_b_is_taken(&mut t);
    assert!(waited < 2600, "{waited} ms: half of the time there has been a way, and to measure it");
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, B, 2), vec![Cause::Better]));
}

#[test]
fn a_way_of_six_hops_is_left_for_one_of_five() {
    let mut t = Talk::new();
    t.settle(A, 5);
    for _ in 0..60 {
        beat(&mut t, &[(A, 5), (B, 4)]);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, B, 5));
}

/// How long A is upstream while B is one hop nearer, which saves one of four transmissions; in
/// milliseconds.
pub(crate) fn until_b_is_taken(t: &mut Talk) -> u64 {
    let from = t.now;
    while t.obu.attachment() == attached(RSU, A, 3) && t.now < from + 10_000 {
        beat(t, &[(A, 2), (B, 1)]);
    }
    t.now - from
}

#[test]
fn a_neighbour_that_is_hardly_better_or_only_now_and_then_is_not_taken() {
    let mut t = behind_a();
    for _ in 0..100 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 3));
    for n in 0..200 {
        // Two seconds it is nearer, and then it is not.
        beat(&mut t, &[(A, 2), (B, if n % 40 < 20 { 1 } else { 2 })]);
    }
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, A, 3), vec![]));
}

/// Ten seconds in which A, the upstream, and B are relays one hop from the RSU, with so many
/// children each. Returns who is upstream then.
fn chosen_of(children: [u8; 2]) -> Mac {
    let mut t = Talk::new();
    t.settle(A, 1);
    for _ in 0..100 {
        t.pass(t.now + 100);
        t.seq += 1;
        for (who, children) in [A, B].into_iter().zip(children) {
            t.children = children;
            t.hear(t.now, who, Heard::heartbeat(t.seq, 1));
            if let Some(nonce) = t.last_probe(who) {
                t.hear(t.now, who, Heard::answer(nonce, t.seq, 1));
            }
        }
        t.acknowledge_all();
        t.clear();
    }
    let chosen = [A, B].into_iter().find(|who| t.obu.attachment() == attached(RSU, *who, 2));
    chosen.unwrap()
}

#[test]
fn of_two_relays_alike_the_one_that_many_share_is_taken_in_place_of_one_that_nobody_shares() {
    assert_eq!([[1, 1], [1, 7]].map(chosen_of), [A, B]);
    // A heartbeat says what was counted a second ago: it may not count us yet.
    assert_eq!(chosen_of([0, 7]), B);
}

#[test]
fn what_some_share_is_not_left_for_what_some_more_share() {
    assert_eq!([[0, 1], [2, 7], [4, 7]].map(chosen_of), [A, A, A]);
}

#[test]
fn the_one_whose_signal_rises_is_taken_before_the_one_whose_signal_falls_is_lost() {
    for (reported, cause) in [(true, vec![Cause::Predicted]), (false, vec![])] {
        let mut t = behind_a();
        for _ in 0..20 {
            beat(&mut t, &[(A, 2), (B, 2)]);
        }
        for step in 0..40_i8 {
            beat(&mut t, &[(A, 2), (B, 2)]);
            if reported {
                let now = Timestamp::from_millis(t.now);
                t.obu.handle_signal(now, A, -50 - step);
                t.obu.handle_signal(now, B, -90 + step);
            }
        }
        let upstream = if reported { B } else { A };
        assert_eq!(t.obu.attachment(), attached(RSU, upstream, 3));
        assert_eq!(causes(&mut t), cause);
    }
}

/// So many heartbeats, of which A, the upstream, brings every third, and B all. The radio may tell
/// how strong they come in, which stays as it was.
fn brings_fewer(beats: u32, is_told: bool) -> Talk {
    let mut t = behind_a();
    let tell = |t: &mut Talk| {
        for who in [A, B].into_iter().filter(|_| is_told) {
            t.obu.handle_signal(Timestamp::from_millis(t.now), who, -60);
        }
    };
    for _ in 0..80 {
        beat(&mut t, &[(A, 2), (B, 2)]);
        tell(&mut t);
    }
    for n in 0..beats {
        tell(&mut t);
        // It answers at once, as radios try again what is for one addressee.
        for _ in 0..20 {
            t.pass(t.now + 5);
            if let Some(nonce) = t.last_probe(A) {
                t.hear(t.now, A, Heard::answer(nonce, t.seq, 2));
                t.clear();
            }
        }
        beat_now(&mut t, if n % 3 == 0 { &[(A, 2), (B, 2)] } else { &[(B, 2)] });
    }
    t
}

#[test]
fn an_upstream_that_brings_ever_fewer_heartbeats_is_left_for_one_that_brings_all() {
    let mut t = brings_fewer(60, false);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 3));
    let events = t.events();
    let records: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::HandOver(record) => Some((record.cause, record.gap.as_millis(), record.at_risk)),
            _ => None,
        })
        .collect();
    assert_eq!(records, [(Cause::Fading, 0, 0)], "it was slow, and never gone");
}

#[test]
fn as_strong_as_before_it_is_left_only_when_another_has_been_better() {
    assert_eq!(brings_fewer(20, false).obu.attachment(), attached(RSU, B, 3));
    assert_eq!(brings_fewer(20, true).obu.attachment(), attached(RSU, A, 3), "others lose as much");
    let mut t = brings_fewer(70, true);
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, B, 3), vec![Cause::Better]));
}

#[test]
fn a_fading_upstream_is_not_left_for_one_that_is_hardly_heard_itself() {
    let mut t = behind_a();
    for n in 0..80 {
        beat(&mut t, if n % 3 == 0 { &[(A, 2), (B, 2)] } else { &[(A, 2)] });
    }
    for n in 0..30 {
        for _ in 0..20 {
            t.pass(t.now + 5);
            for who in [A, B] {
                if let Some(nonce) = t.last_probe(who) {
                    t.hear(t.now, who, Heard::answer(nonce, t.seq, 2));
                }
            }
            t.clear();
        }
        beat_now(&mut t, if n % 3 == 0 { &[(A, 2), (B, 2)] } else { &[] });
    }
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, A, 3), vec![]));
}
