//! Why an upstream is left, and for whom.

use node_lib::Mac;
use node_lib::control::event::Cause;
use node_lib::control::node::Node;

use super::beats::{beat, causes};
use super::better::behind_a;
use crate::talk::{A, B, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, attached, id};

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
                    t.forget_sent_to(*who);
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
fn a_relay_through_which_seven_words_stay_unanswered_is_left_for_another() {
    let mut t = behind_a();
    t.acknowledge(A);
    let heard = [(A, 1), (B, 1)];
    assert_eq!(left_after(&mut t, A, 5000, &heard), None, "all is answered");
    t.tap(CAMERA, SERVER);
    let (after, other) = left_after(&mut t, A, 5000, &heard).expect("nobody answers");
    assert!((1300..=2400).contains(&after) && other == B, "{after} ms, {other}");
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

/// More relays than are remembered as tried in vain, and fewer.
#[test]
fn where_no_relay_brings_an_answer_the_one_left_first_is_tried_again() {
    for relays in [3, 6] {
        let mut t = behind_a();
        t.acknowledge(A);
        let relays: Vec<_> = (A.0[5]..).map(|n| Mac([2, 0, 0, 0, 0, n])).take(relays).collect();
        let heard: Vec<_> = relays.iter().map(|relay| (*relay, 1)).collect();
        t.tap(CAMERA, SERVER);
        let mut upstream = A;
        let tried = std::iter::from_fn(|| {
            let (after, next) = left_after(&mut t, upstream, 5000, &heard)?;
            assert!((700..=2500).contains(&after), "{after} ms after {upstream}");
            upstream = next;
            Some(next)
        });
        let tried: Vec<_> = tried.take(2 * relays.len() - 1).collect();
        let expected: Vec<_> = relays.iter().cycle().skip(1).take(tried.len()).copied().collect();
        assert_eq!(tried, expected);
        assert_eq!(tried.len(), 2 * relays.len() - 1);
    }
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
        while replies.len() < 15 {
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
        // One may have been sent while nobody had spoken for five seconds.
        let first = replies.iter().position(|wants| *wants).filter(|at| *at <= 3);
        assert_eq!(first.is_some(), speaks, "{replies:?}");
        let of_twelve = &replies[first.unwrap_or(0)..][..12];
        let wanted = of_twelve.iter().filter(|wants| **wants).count();
        assert_eq!(wanted, if speaks { 4 } else { 0 }, "{replies:?}");
    }
}
