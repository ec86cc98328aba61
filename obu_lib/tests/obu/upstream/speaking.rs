//! What an OBU says to its neighbours of the way it has.

use node_lib::Mac;
use node_lib::control::node::Node;
use node_lib::messages::Rhythm;

use super::beats::beat;
use super::better::behind_a;
use crate::talk::{A, B, C, Heard, RSU, Talk, US, attached};

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
fn another_interval_is_believed_when_two_heartbeats_in_a_row_say_so() {
    let mut t = Talk::settled_behind(A);
    let mut relayed = Vec::new();
    for said in [100, 500, 100, 500, 200, 200, 200] {
        t.pass(t.now + 100);
        t.rhythm = Rhythm::each(said);
        t.beat(A, 1);
        t.clear();
        t.pass(t.now + 20);
        relayed.extend(t.heartbeats().iter().map(|heartbeat| heartbeat.rhythm.tick_ms));
    }
    assert_eq!(relayed, [100, 100, 100, 100, 100, 200, 200]);
}

#[test]
fn of_an_rsu_that_sends_rarer_all_that_is_sent_is_relayed_and_its_silence_says_less() {
    let mut t = Talk::settled_behind(A);
    t.rhythm.pace = 1;
    let mut said = Vec::new();
    for _ in 0..8 {
        t.seq = t.seq.next_multiple_of(2) + 1;
        t.pass(t.now + 200);
        t.beat(A, 1);
        t.clear();
        t.pass(t.now + 20);
        said.extend(t.heartbeats().iter().map(|h| (h.order.seq.0 % 2, h.rhythm)));
    }
    assert_eq!(said.last(), Some(&(0, t.rhythm)));
    assert!(said.len() >= 7, "{said:?}");
    // Two intervals and a fifth, of 200 ms each.
    let last = t.now - 20;
    t.clear();
    t.pass(last + 430);
    assert_eq!(t.last_probe(A), None, "not late yet");
    t.pass(last + 440 + 80);
    assert!(t.last_probe(A).is_some());
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
