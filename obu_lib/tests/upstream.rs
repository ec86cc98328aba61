//! Through whom an OBU sends: how closely it watches its upstream, and when it prefers another one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use node_lib::control::event::{Cause, Event};
use node_lib::control::node::Node;
use node_lib::{Mac, Timestamp};

use talk::{A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, attached, id, last};

/// 100 ms, in which each of these, so many hops from the RSU, sends the next heartbeat and answers
/// what it is asked.
fn beat(t: &mut Talk, heard: &[(Mac, u8)]) {
    t.pass(t.now + 100);
    beat_now(t, heard);
}

fn beat_now(t: &mut Talk, heard: &[(Mac, u8)]) {
    t.seq += 1;
    for (who, hops) in heard {
        t.hear(t.now, *who, Heard::heartbeat(t.seq, *hops));
        if let Some(nonce) = t.last_probe(*who) {
            t.hear(t.now, *who, Heard::answer(nonce, t.seq, *hops));
        }
    }
    t.acknowledge_all();
    t.clear();
}

fn causes(t: &mut Talk) -> Vec<Cause> {
    let cause = |event| match event {
        Event::UpstreamChanged { cause, .. } => Some(cause),
        _ => None,
    };
    t.events().into_iter().filter_map(cause).collect()
}

/// Behind A, which is two hops from the RSU.
fn behind_a() -> Talk {
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
fn who_becomes_upstream_on_an_old_proof_is_asked_at_once() {
    let mut t = behind_a();
    for _ in 0..30 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    // From here on B is heard, and does not hear us.
    for _ in 0..8 {
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 2));
        t.hear(t.now, B, Heard::heartbeat(t.seq, 2));
        t.tap(CAMERA, SERVER);
        pass_answering(&mut t, 100, &[(A, 2)]);
    }
    t.clear();
    let then = t.now;
    t.hear(then, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 3), "its proof still counts");
    t.tap(CAMERA, SERVER);
    t.pass(then + 5);
    assert!(t.asked().contains(&B), "asked before it is late");
    while t.obu.attachment().is_some() && t.now < then + 300 {
        t.pass(t.now + 5);
    }
    // As long as from being late to being given up, and not 225 ms.
    assert_eq!(t.now - then, 105);
}

/// How long A is upstream while B is one hop nearer, which saves one of four transmissions; in
/// milliseconds.
fn until_b_is_taken(t: &mut Talk) -> u64 {
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
fn who_hears_that_a_way_leads_through_it_stands_by_it() {
    // How far B is, through us; what that says of our way is better than A's only at 2 hops.
    for (hops, stays) in [(1, true), (2, false), (4, false), (5, true)] {
        let mut t = Talk::new();
        t.settle(A, 3);
        let ours = t.obu.attachment();
        beat(&mut t, &[(A, 3)]);
        t.hear(t.now, B, Heard::heartbeat_via(t.seq, hops, US));
        assert_eq!(t.obu.attachment() == ours, stays, "{hops} hops");
        beat(&mut t, &[(A, 3)]);
        assert_eq!(t.obu.attachment(), ours, "{hops} hops: the next heartbeat is newer");
    }
}

#[test]
fn a_relay_says_how_many_are_reached_through_it() {
    let mut t = behind_a();
    let mut said = |children: &[Mac]| {
        for seq in 0..20 {
            for child in children {
                t.hear(t.now, *child, Heard::Reply { origin: *child, seq, hops: 0 });
            }
            beat(&mut t, &[(A, 2)]);
        }
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 2));
        t.pass(t.now + 5);
        t.heartbeats().last().unwrap().children
    };
    let many: Vec<_> = (0..9).map(|n| Mac([2, 0, 0, 0, 2, n])).collect();
    assert_eq!([&many[..0], &[C], &many].map(&mut said), [0, 1, 7]);
}

#[test]
fn a_better_neighbour_that_does_not_hear_us_is_not_taken() {
    let mut t = behind_a();
    for _ in 0..100 {
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        beat(&mut t, &[(A, 2)]);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 3));
}

/// For so many ms these answer within 5 ms what they are asked.
fn pass_answering(t: &mut Talk, ms: u64, heard: &[(Mac, u8)]) {
    for _ in 0..ms / 5 {
        t.pass(t.now + 5);
        for (who, hops) in heard {
            if let Some(nonce) = t.last_probe(*who) {
                t.hear(t.now, *who, Heard::answer(nonce, t.seq, *hops));
                t.acknowledge_all();
                t.clear();
            }
        }
    }
}

#[test]
fn who_has_something_to_send_asks_a_better_neighbour_and_who_has_not_waits_for_its_turn() {
    // Of a hundred OBUs each may ask once in five seconds to keep its candidates proven. Better for
    // three seconds is what B has to be in any case.
    let takes_b_soon = |speaks: bool| {
        let mut t = Talk::new();
        t.obus = 100;
        t.settle(A, 2);
        for n in 0..95 {
            if speaks {
                t.tap(CAMERA, SERVER);
            }
            let heard = [(A, 2), (B, 1)];
            let heard = if n < 60 { &heard[..1] } else { &heard };
            t.seq += 1;
            for (who, hops) in heard {
                t.hear(t.now, *who, Heard::heartbeat(t.seq, *hops));
            }
            pass_answering(&mut t, 100, heard);
            t.acknowledge_all();
        }
        t.obu.attachment() == attached(RSU, B, 2)
    };
    assert!(takes_b_soon(true));
    assert!(!takes_b_soon(false));
}

#[test]
fn a_better_neighbour_that_does_not_answer_is_asked_now_and_then_in_a_crowd() {
    let mut t = behind_a();
    t.obus = 100;
    let mut asked = 0;
    for _ in 0..100 {
        t.tap(CAMERA, SERVER);
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 2));
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        t.clear();
        for _ in 0..20 {
            pass_answering(&mut t, 5, &[(A, 2)]);
            asked += t.asked().iter().filter(|whom| **whom == B).count();
            t.clear();
        }
    }
    assert!((2..=4).contains(&asked), "{asked} in ten seconds");
}

/// On a full channel heartbeats in a row get lost all the time.
#[test]
fn a_better_neighbour_whose_heartbeats_get_lost_now_and_then_is_taken_all_the_same() {
    let mut t = behind_a();
    for _ in 0..60 {
        beat(&mut t, &[(A, 5)]);
    }
    for n in 0..60 {
        let is_lost = n % 10 >= 8;
        let heard = [(A, 5), (B, 1)];
        beat(&mut t, if is_lost { &heard[..1] } else { &heard });
    }
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
}

/// All asked it at once, and it did not get round to answering.
#[test]
fn a_better_neighbour_that_did_not_answer_once_is_asked_again_and_taken() {
    let mut t = behind_a();
    for n in 0..160 {
        t.tap(CAMERA, SERVER);
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 5));
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        let heard = [(A, 5), (B, 1)];
        pass_answering(&mut t, 100, if n < 60 { &heard[..1] } else { &heard });
        t.acknowledge_all();
    }
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
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

#[test]
fn an_upstream_that_brings_ever_fewer_heartbeats_is_left_for_one_that_brings_all() {
    let mut t = behind_a();
    for _ in 0..80 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    for n in 0..60 {
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
fn what_others_send_through_us_is_reason_to_ask_as_soon_as_what_our_clients_send() {
    let mut t = behind_a();
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    beat(&mut t, &[(A, 2)]);
    let heard = t.now;
    t.pass(heard + 30);
    t.up(C, C, 16);
    t.clear();
    t.pass(heard + 119);
    assert_eq!(t.asked(), []);
    t.pass(heard + 125);
    assert_eq!(t.asked(), [A]);
}

#[test]
fn another_interval_is_believed_when_two_heartbeats_in_a_row_say_so() {
    let mut t = Talk::settled_behind(A);
    let mut relayed = Vec::new();
    for said in [100, 500, 100, 500, 200, 200, 200] {
        t.pass(t.now + 100);
        t.interval_ms = said;
        t.beat(A, 1);
        t.clear();
        t.pass(t.now + 20);
        relayed.extend(t.heartbeats().iter().map(|heartbeat| heartbeat.interval_ms));
    }
    assert_eq!(relayed, [100, 100, 100, 100, 100, 200, 200]);
}

/// How many of 200 heartbeats of an RSU with 200 OBUs we relay, nothing going through us, when
/// twenty neighbours so many hops from it relay them as well.
fn relayed_beside(hops: u8) -> usize {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(RSU, 0);
    let mut relayed = 0;
    for _ in 0..200 {
        t.pass(t.now + 50);
        t.seq += 1;
        t.hear(t.now, RSU, Heard::heartbeat(t.seq, 0));
        if let Some(nonce) = t.last_probe(RSU) {
            t.hear(t.now, RSU, Heard::answer(nonce, t.seq, 0));
        }
        t.clear();
        t.pass(t.now + 50);
        for n in 0..20 {
            t.hear(t.now, Mac([2, 0, 0, 0, 4, n]), Heard::heartbeat(t.seq, hops));
        }
        relayed += t.heartbeats().len();
    }
    let left = t.obu.counters().heartbeat_left;
    assert!(left.abs_diff(200 - relayed as u64) <= 4, "{left} left, {relayed} relayed");
    relayed
}

#[test]
fn in_a_crowd_only_relays_no_more_than_one_hop_farther_speak_for_us() {
    let far = relayed_beside(3);
    assert!((50..55).contains(&far), "{far}: every fourth, as nothing goes through us");
    assert!(relayed_beside(2) < 30, "{}", relayed_beside(2));
    assert!(relayed_beside(1) < 30, "{}", relayed_beside(1));
}

#[test]
fn in_a_crowd_neighbours_towards_another_rsu_are_not_asked_before_there_was_time_to_find_the_last()
{
    let asked_after = |obus| {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(A, 1);
        for _ in 0..20 {
            beat(&mut t, &[(A, 1)]);
        }
        let lost = t.now;
        t.rsu = Mac([2, 0, 0, 0, 0, 0x11]);
        t.clear();
        t.hear(lost, B, Heard::heartbeat(1, 1));
        t.hear(lost, A, Heard::Withdrawal { goodbye: false });
        while !t.asked().contains(&B) {
            t.pass(t.now + 1);
            if t.now.is_multiple_of(100) {
                t.hear(t.now, B, Heard::heartbeat(1 + ((t.now - lost) / 100) as u32, 1));
            }
            assert!(t.now < lost + 1000);
        }
        t.now - lost
    };
    assert!(asked_after(1) <= 1, "{}", asked_after(1));
    assert!((220..=280).contains(&asked_after(200)), "{}", asked_after(200));
}

#[test]
fn what_happens_to_a_neighbour_that_is_not_upstream_changes_nothing() {
    let mut t = behind_a();
    for _ in 0..30 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, A, 3), vec![]));
    for _ in 0..30 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    t.hear(t.now, B, Heard::Probe { boot: 2 });
    t.hear(t.now + 1, B, Heard::Probe { boot: 2 });
    t.hear(t.now, B, Heard::Withdrawal { goodbye: true });
    t.pass(t.now + 50);
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, A, 3), vec![]));
}

#[test]
fn why_an_upstream_was_left_is_told() {
    let lost = |words: &[Heard]| {
        let mut t = behind_a();
        for word in words {
            match word {
                Heard::Withdrawal { goodbye } => {
                    t.hear(t.now + 20, A, Heard::Withdrawal { goodbye: *goodbye });
                }
                Heard::Probe { boot } => t.hear(t.now + 20, A, Heard::Probe { boot: *boot }),
                _ => t.hear(t.now + 20, A, Heard::heartbeat_via(5, 2, US)),
            }
        }
        t.pass(t.now + 400);
        let dead = t.obu.counters().upstream_dead;
        let causes = causes(&mut t);
        assert_eq!(dead, u64::from(causes == [Cause::Dead]));
        causes
    };
    assert_eq!(lost(&[Heard::Withdrawal { goodbye: false }]), [Cause::Withdrawn]);
    assert_eq!(lost(&[Heard::heartbeat_via(5, 2, US)]), [Cause::Withdrawn], "it sends through us");
    assert_eq!(lost(&[Heard::Probe { boot: 2 }, Heard::Probe { boot: 2 }]), [Cause::Restarted]);
    assert_eq!(lost(&[]), [Cause::Dead]);
}

#[test]
fn who_does_not_answer_is_upstream_to_no_rsu_and_others_stay() {
    let mut t = behind_a();
    let third = Mac([2, 0, 0, 0, 0, 0x12]);
    for _ in 0..30 {
        for (rsu, via) in [(OTHER_RSU, A), (third, B)] {
            t.rsu = rsu;
            t.hear(t.now, via, Heard::heartbeat(t.seq, 2));
            if let Some(nonce) = t.last_probe(via) {
                t.hear(t.now, via, Heard::answer(nonce, t.seq, 2));
            }
        }
        t.rsu = RSU;
        beat(&mut t, &[(A, 2)]);
    }
    let upstreams = |t: &Talk| [RSU, OTHER_RSU, third].map(|rsu| t.obu.upstream_for(id(rsu)));
    assert_eq!(upstreams(&t), [Some(id(A)), Some(id(A)), Some(id(B))]);
    let (silent_from, seq) = (t.now, t.seq);
    for ms in 1..300 {
        t.pass(silent_from + ms);
        if ms % 10 == 1 {
            t.tap(CAMERA, SERVER);
        }
        if ms % 100 == 50 {
            t.rsu = third;
            t.hear(t.now, B, Heard::heartbeat(seq + 1 + ms as u32 / 100, 2));
            t.rsu = RSU;
        }
        if t.obu.upstream_for(id(RSU)).is_none() {
            break;
        }
    }
    assert_eq!(upstreams(&t), [None, None, Some(id(B))], "{} ms", t.now - silent_from);
}

#[test]
fn what_comes_down_is_reason_to_watch_the_upstream_closely() {
    for (comes_down, asked) in [(true, vec![A]), (false, vec![])] {
        let mut t = behind_a();
        t.pass(t.now + 90);
        if comes_down {
            t.down(A, last(US), 1);
        }
        beat(&mut t, &[(A, 2)]);
        t.pass(t.now + 121);
        assert_eq!(t.asked(), asked);
    }
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

#[test]
fn an_upstream_that_says_goodbye_is_left_at_once_for_another_to_the_same_rsu() {
    let mut t = behind_a();
    for _ in 0..30 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    beat(&mut t, &[(A, 2)]);
    // Not before it brings a newer heartbeat than we passed on: it may be behind us.
    t.pass(t.now + 20);
    t.hear(t.now, A, Heard::Withdrawal { goodbye: true });
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, A, 3), vec![]));
    t.seq += 1;
    t.hear(t.now + 1, B, Heard::heartbeat(t.seq, 2));
    assert_eq!((t.obu.attachment(), causes(&mut t)), (attached(RSU, B, 3), vec![Cause::Goodbye]));
}

#[test]
fn who_has_few_neighbours_to_go_to_asks_those_in_a_crowd_to_speak() {
    let asks = |heard: &[(Mac, u8)]| {
        let mut t = behind_a();
        for _ in 0..30 {
            beat(&mut t, heard);
        }
        t.pass(t.now + 20);
        t.heartbeats().last().map(|heartbeat| heartbeat.few_candidates)
    };
    let d = Mac([2, 0, 0, 0, 0, 0x0d]);
    assert_eq!(asks(&[(A, 2)]), Some(true));
    assert_eq!(asks(&[(A, 2), (B, 2), (C, 2), (d, 2)]), Some(false));
    assert_eq!(asks(&[(A, 2), (B, 4), (C, 4), (d, 4)]), Some(true), "those may be behind us");
}

#[test]
fn withdrawals_and_goodbyes_are_apart_though_it_is_asked_all_the_time() {
    for is_goodbye in [false, true] {
        let mut t = Talk::settled_behind(A);
        t.beat(A, 1);
        t.pass(t.now + 20);
        t.clear();
        if is_goodbye {
            t.shut_down();
        } else {
            t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
        }
        let mut said = Vec::new();
        for ms in 1..100 {
            let before = t.withdrawals();
            t.stall(t.now + 1);
            said.extend((before..t.withdrawals()).map(|_| ms));
        }
        let pauses: Vec<_> = said.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.ends_with(&[15]), "{said:?}");
        assert_eq!(t.withdrawals(), 3);
    }
}

#[test]
fn who_says_goodbye_passes_on_no_news_and_offers_no_way() {
    let mut t = Talk::settled_behind(A);
    t.shut_down();
    t.clear();
    t.beat(A, 1);
    t.pass(t.now + 30);
    assert_eq!(t.heartbeats().len(), 0);
    t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
    t.pass(t.now + 20);
    assert_eq!(t.answers(), 0);
}

#[test]
fn who_is_quiet_after_its_start_answers_no_question_to_all() {
    let mut t = Talk::new();
    t.hear(5, RSU, Heard::heartbeat(1, 0));
    let nonce = t.sent_probe(RSU);
    t.hear(7, RSU, Heard::answer(nonce, 1, 0));
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
    t.pass(t.now + 20);
    assert_eq!(t.answers(), 0);
    t.hear(t.now, C, Heard::ProbeFor { rsu: RSU });
    assert_eq!(t.answered(), [C], "who asks it alone hears that there is no way");
}

/// When the OBU first sent through another than `whom`, in milliseconds from now, and through whom.
/// No RSU answers what it says; those heard bring every heartbeat and answer every question.
fn left_after(t: &mut Talk, whom: Mac, ms: u64, heard: &[(Mac, u8)]) -> Option<(u64, Mac)> {
    let start = t.now;
    while t.now < start + ms {
        t.seq += 1;
        for (who, hops) in heard {
            t.hear(t.now, *who, Heard::heartbeat(t.seq, *hops));
        }
        for _ in 0..20 {
            t.pass(t.now + 5);
            for (who, hops) in heard {
                if let Some(nonce) = t.last_probe(*who) {
                    t.hear(t.now, *who, Heard::answer(nonce, t.seq, *hops));
                    t.sent.retain(|(to, _)| to != who);
                }
            }
            let upstream = t.obu.attachment().map(|to| Mac(to.upstream.0));
            if let Some(other) = upstream.filter(|upstream| *upstream != whom) {
                return Some((t.now - start, other));
            }
        }
    }
    None
}

#[test]
fn a_relay_through_which_six_words_stay_unanswered_is_left_for_another() {
    let mut t = behind_a();
    t.acknowledge(A);
    let heard = [(A, 1), (B, 1)];
    assert_eq!(left_after(&mut t, A, 5000, &heard), None, "all is answered");
    t.tap(CAMERA, SERVER);
    let (after, other) = left_after(&mut t, A, 5000, &heard).expect("nobody answers");
    assert!((700..=1500).contains(&after) && other == B, "{after} ms, {other}");
    // B brings nothing any more: there is no other than A.
    let alone = t.now;
    while t.obu.attachment() != attached(RSU, A, 2) {
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 1));
        t.pass(t.now + 50);
        t.answer_probes_of(A);
        t.pass(t.now + 50);
        assert!(t.now < alone + 1000, "the last choice is one");
    }
}

#[test]
fn where_no_relay_brings_an_answer_the_one_left_first_is_tried_again() {
    let mut t = behind_a();
    t.acknowledge(A);
    let heard = [(A, 1), (B, 1), (C, 1)];
    t.tap(CAMERA, SERVER);
    let mut upstream = A;
    let tried = std::iter::from_fn(|| {
        let (after, next) = left_after(&mut t, upstream, 5000, &heard)?;
        assert!((700..=2500).contains(&after), "{after} ms after {upstream}");
        upstream = next;
        Some(next)
    });
    let tried: Vec<_> = tried.take(5).collect();
    assert_eq!(tried, [B, C, A, B, C]);
}

#[test]
fn while_frames_go_every_third_reply_is_to_be_acknowledged_and_of_an_idle_vehicle_none() {
    for speaks in [true, false] {
        let mut t = behind_a();
        t.tap(CAMERA, SERVER);
        t.pass(t.now + 60);
        t.acknowledge(A);
        let mut replies = Vec::new();
        t.live_until(t.now + 6000);
        t.clear();
        while replies.len() < 12 {
            if speaks {
                t.tap(CAMERA, SERVER);
            }
            t.live_until(t.now + 10);
            for reply in t.replies_sent() {
                replies.push(reply.acknowledge);
                if reply.acknowledge {
                    t.acknowledge(A);
                }
            }
            t.clear();
        }
        let wanted = replies.iter().filter(|wants| **wants).count();
        assert_eq!(wanted, if speaks { 4 } else { 0 }, "{replies:?}");
    }
}
