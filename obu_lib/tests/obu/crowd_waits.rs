//! One of a crowd: how it knows, and what it leaves to others or to later.

use node_lib::Mac;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;

use crate::crowd_moves::known_of_a_crowd;
use crate::talk::heard::reply;
use crate::talk::{A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, attached, id};

#[test]
fn after_a_stall_an_idle_obu_of_a_crowd_does_not_spin() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    for _ in 0..20 {
        t.pass(t.now + 100);
        t.beat(A, 1);
        t.answer_probes_of(A);
    }
    // Late: it asks once, and waits for the end.
    t.pass(t.now + 285);
    // Then it is not called, beyond the moment at which its upstream is dead.
    t.stall(t.now + 100);
    let wakes = t.wakes(t.now + 49);
    assert!(wakes < 50, "{wakes} times in 49 ms");
}

#[test]
fn a_relay_from_where_heartbeats_may_go_no_further_does_not_spin() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    let mut wakes = Vec::new();
    for hops in [1; 10].into_iter().chain([15; 10]) {
        t.hear(t.now, C, Heard::Reply { origin: C, seq: t.seq, hops: 0 });
        t.beat(A, hops);
        wakes.push(t.wakes(t.now + 100));
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 16));
    assert!(!t.heartbeats().is_empty(), "as long as it could it spoke");
    assert!(wakes.iter().all(|wakes| *wakes < 50), "{wakes:?} times, in 100 ms each");
}

#[test]
fn after_a_restart_of_its_rsu_an_obu_of_a_crowd_waits_before_it_announces() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    for _ in 0..40 {
        t.pass(t.now + 50);
        t.beat(A, 1);
        t.answer_probes_of(A);
    }
    if t.announcements() > 0 {
        t.acknowledge(A);
    }
    t.clear();
    for seq in 1..=2 {
        t.pass(t.now + 100);
        t.hear(t.now, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
    }
    assert_eq!(t.announcements(), 0, "not at once, as everybody else");
    for seq in 3..=20 {
        t.pass(t.now + 100);
        t.hear(t.now, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
    }
    assert!(t.announcements() > 0);
}

#[test]
fn a_crowd_is_forgotten_without_heartbeats() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    t.pass(t.now + 15_000);
    t.clear();
    (t.rsu, t.obus) = (OTHER_RSU, 1);
    for seq in 1..8 {
        t.hear(t.now, B, Heard::heartbeat(seq, 1));
        if let Some(nonce) = t.last_probe(B) {
            t.hear(t.now, B, Heard::answer(nonce, seq, 1));
        }
        t.pass(t.now + 100);
    }
    let said: Vec<u16> = t.heartbeats().iter().map(|heartbeat| heartbeat.obus).collect();
    assert!(!said.is_empty() && said.iter().all(|obus| *obus < 5), "{said:?}");
}

#[test]
fn a_relay_that_does_not_know_better_does_not_make_a_crowd_forget_that_it_is_one() {
    let mut t = Talk::new();
    t.obus = 200;
    for beat in 1..=5 {
        t.hear(beat * 100, A, Heard::heartbeat(beat as u32, 1));
    }
    let probe = t.sent_probe(A);
    t.hear(510, A, Heard::answer(probe, 5, 1));
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    let says = |t: &Talk| t.heartbeats().last().unwrap().obus;
    t.clear();
    // B has only been answered about the RSU, and brings the next heartbeat first.
    t.obus = 0;
    t.hear(600, B, Heard::heartbeat(6, 1));
    t.obus = 200;
    t.hear(602, A, Heard::heartbeat(6, 1));
    t.pass(650);
    assert_eq!(says(&t), 200);
    for beat in 7..=100 {
        t.hear(beat * 100, A, Heard::heartbeat(beat as u32, 1));
        t.pass(beat * 100 + 60);
    }
    // An RSU that restarted has none at first; of those it had, one in sixteen is forgotten per
    // heartbeat.
    t.obus = 0;
    for beat in 103..=200 {
        let seq = beat as u32 - 102;
        t.hear(beat * 100, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
        t.pass(beat * 100 + 60);
        if beat == 104 {
            assert!((160..190).contains(&says(&t)), "{}", says(&t));
        }
    }
    assert_eq!(says(&t), 0);
}

/// One of 200 OBUs, one hop from the RSU, idle.
pub(crate) fn one_of_a_crowd() -> Talk {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(RSU, 0);
    t
}

#[test]
fn in_a_crowd_news_of_an_rsu_two_hops_further_than_ours_is_left_to_others() {
    for (hops, is_relayed) in [(1, true), (2, false)] {
        let mut t = one_of_a_crowd();
        t.clear();
        for beat in 5..=20 {
            t.rsu = RSU;
            t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
            // B is behind us, so it hears us, and nearer to the other RSU than we are.
            t.hear(beat * 100 + 50, B, Heard::heartbeat_via(beat as u32, 2, US));
            t.rsu = OTHER_RSU;
            t.hear(beat * 100 + 51, B, Heard::heartbeat(beat as u32, hops));
        }
        let of = |rsu| t.heartbeats().iter().any(|heartbeat| heartbeat.rsu == id(rsu));
        assert_eq!((of(RSU), of(OTHER_RSU)), (true, is_relayed), "{hops} hops from it to B");
    }
}

#[test]
fn a_relay_that_waits_for_its_rsu_says_so_before_those_behind_it_ask() {
    let mut t = one_of_a_crowd();
    t.hear(430, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    for beat in 5..=6 {
        t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
    }
    t.pass(630);
    assert_eq!(t.heartbeats().last().map(|heartbeat| heartbeat.order.seq.0), Some(6));
    t.clear();
    // The RSU is heard by B and no longer by us: we are patient, those behind us ask after 220 ms.
    t.hear(700, B, Heard::heartbeat_via(7, 1, RSU));
    t.hear(800, B, Heard::heartbeat_via(8, 1, RSU));
    t.pass(600 + 28 + 220);
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    assert_eq!(t.heartbeats().iter().map(|heartbeat| heartbeat.order.seq.0).max(), Some(6));
}

#[test]
fn a_relay_passes_on_each_reply_at_once_in_a_crowd_as_well() {
    for obus in [1, 200] {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(A, 1);
        t.clear();
        t.hear(430, B, Heard::Reply { origin: B, seq: 1, hops: 0 });
        t.hear(430, B, Heard::Reply { origin: C, seq: 1, hops: 1 });
        let of_others: Vec<_> = t
            .replies_sent()
            .into_iter()
            .filter(|reply| reply.origin != id(US))
            .map(|reply| (Mac(reply.origin.0), reply.hops))
            .collect();
        assert_eq!(of_others, [(B, 1), (C, 2)], "{obus}");
    }
}

#[test]
fn a_reply_that_comes_from_our_upstream_is_not_sent_back() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.hear(440, A, Heard::Reply { origin: B, seq: 1, hops: 1 });
    t.pass(600);
    assert!(t.replies_sent().iter().all(|reply| reply.origin == id(US)));
    assert_eq!(t.obu.counters().drop_no_route, 1);
}

/// So many neighbours ask everybody, as after a cold start; then so long an OBU that has just
/// started asks.
fn asks_among(neighbours: u8, speaks: bool) -> usize {
    let mut t = Talk::new();
    for n in 1..=neighbours {
        t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
    }
    t.pass(10);
    t.clear();
    if speaks {
        t.tap(CAMERA, SERVER);
    }
    t.pass(110);
    t.solicitations()
}

#[test]
fn sixteen_neighbours_are_a_crowd_before_any_rsu_says_so() {
    assert!(asks_among(15, false) >= 3, "every 25 ms");
    assert_eq!(asks_among(16, false), 0, "after a quarter of a second");
    assert!(asks_among(16, true) >= 1, "a client waits");
}

#[test]
fn after_a_cold_start_the_count_of_the_rsu_is_not_believed_below_what_is_heard() {
    let mut t = Talk::new();
    t.obus = 3;
    for n in 1..=40 {
        t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
    }
    t.settle(RSU, 0);
    let says = |t: &Talk| t.heartbeats().last().unwrap().obus;
    for beat in 5..=100 {
        t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
        t.pass(beat * 100 + 60);
        match beat {
            // Forty neighbours and the RSU.
            48 => assert_eq!(says(&t), 82),
            60 => assert_eq!(says(&t), 3),
            _ => {}
        }
    }
    assert_eq!(says(&t), 3);
}

#[test]
fn fifteen_neighbours_change_nothing() {
    let mut t = Talk::new();
    // With the RSU they are fifteen.
    for n in 1..=14 {
        t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
    }
    t.settle(RSU, 0);
    t.hear(500, RSU, Heard::heartbeat(5, 0));
    t.pass(560);
    assert_eq!(t.heartbeats().last().map(|heartbeat| heartbeat.obus), Some(1));
}

#[test]
fn whoever_is_cold_in_a_crowd_takes_its_time_to_announce_unless_a_client_speaks() {
    let announced_after = |neighbours: u8, speaks: bool| {
        let mut waits = Vec::new();
        for seed in 0..20 {
            let mut t = Talk::new();
            t.obu.reseed(seed);
            for n in 1..=neighbours {
                t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
            }
            t.hear(50, RSU, Heard::heartbeat(1, 0));
            t.pass(99);
            let nonce = t.sent_probe(RSU);
            t.hear(100, RSU, Heard::answer(nonce, 1, 0));
            assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
            if speaks {
                t.tap(CAMERA, SERVER);
            }
            let first = (100..1000).find(|ms| {
                t.pass(*ms);
                t.announcements() > 0
            });
            waits.push(first.unwrap() - 100);
        }
        waits.sort_unstable();
        waits
    };
    assert_eq!(announced_after(10, false).last(), Some(&0), "alone at once");
    assert_eq!(announced_after(40, true).last(), Some(&0), "a client waits");
    let waits = announced_after(40, false);
    assert!(waits[5] > 30 && waits[15] > 150, "{waits:?}");
}

/// One of 200 that its RSU asks for all, and does not answer: when it says so within eight seconds,
/// in milliseconds from the first word. Then `happens` may let something happen.
fn said_in_vain(seed: u64, happens: impl Fn(&mut Talk, u64)) -> Vec<u64> {
    let mut t = known_of_a_crowd(50);
    t.obu.reseed(seed);
    let from = t.now;
    t.hear(from, A, Heard::Ack { epoch: 1, status: AckStatus::SendAll, digest: 0 });
    let mut said = Vec::new();
    for ms in 0..8000 {
        if ms % 100 == 0 {
            t.beat(A, 1);
        }
        happens(&mut t, ms);
        t.pass(from + ms);
        said.extend((0..t.announcements()).map(|_| ms));
        t.clear();
    }
    said
}

/// Waits from 0.3 s, twice as long each time, a quarter more or less, and up to 0.2 s for others.
#[test]
fn in_a_crowd_what_nobody_waits_for_is_repeated_slowly() {
    for seed in 0..20 {
        let said = said_in_vain(seed, |_, _| {});
        let waits: Vec<_> = said.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.len() >= 4, "seed {seed}: {said:?}");
        for (wait, least) in waits.iter().zip([320, 640, 1280, 2560]) {
            let expected = least * 3 / 4..=least * 5 / 4 + 200;
            assert!(expected.contains(wait), "seed {seed}: {wait} ms, {expected:?}; {said:?}");
        }
    }
}

#[test]
fn what_is_repeated_slowly_is_said_at_once_and_often_when_a_client_speaks() {
    for seed in 0..20 {
        let said = said_in_vain(seed, |t, ms| {
            if ms == 2000 {
                t.tap(CAMERA, SERVER);
            }
        });
        let hurried = said.iter().filter(|ms| (2000..3000).contains(*ms)).count();
        assert!(said.contains(&2000) && hurried >= 4, "seed {seed}: {said:?}");
    }
}

/// The RSU can answer a child only if it knows our upstream.
#[test]
fn what_is_repeated_slowly_is_said_soon_when_a_child_wants_an_answer() {
    for seed in 0..20 {
        let said = said_in_vain(seed, |t, ms| {
            if ms == 4000 {
                let word = HeartbeatReply { acknowledge: true, ..reply(C, RSU, 1, 0, false) };
                t.hear_packet(C, US, word.into());
            }
        });
        let next = said.iter().find(|ms| **ms > 4000);
        assert!(next.is_some_and(|ms| *ms <= 4320), "seed {seed}: {said:?}");
    }
}
