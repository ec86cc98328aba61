//! Questions of many at once: who answers, and who need not ask.

use node_lib::Mac;

use crate::crowd_moves::known_of_a_crowd;
use crate::crowd_waits::one_of_a_crowd;
use crate::talk::{A, B, C, Heard, OTHER_RSU, RSU, Talk};

#[test]
fn a_question_to_all_is_answered_unless_two_others_did() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
    t.pass(t.now + 10);
    assert_eq!(t.answers(), 1);
    for (others, answers) in [(&[A][..], 1), (&[A, B], 0)] {
        t.clear();
        t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
        for other in others {
            t.hear_broadcast(t.now, *other, Heard::AnswerTo { asker: C, seq: t.seq });
        }
        t.pass(t.now + 10);
        assert_eq!(t.answers(), answers, "{others:?}");
    }
}

#[test]
fn what_another_is_asked_is_not_answered() {
    let mut t = Talk::new();
    t.settle(RSU, 0);
    t.clear();
    t.hear_broadcast(430, C, Heard::ProbeOf { whom: B });
    t.pass(600);
    assert_eq!(t.answers(), 0);
}

#[test]
fn in_a_crowd_the_second_of_two_questions_at_once_is_answered_for_all() {
    let answered = |obus, second: (Mac, u64, Mac)| {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(RSU, 0);
        for behind in [A, B] {
            t.hear(425, behind, Heard::Reply { origin: behind, seq: 1, hops: 0 });
        }
        t.clear();
        t.hear(430, A, Heard::ProbeFor { rsu: RSU });
        let (asker, ms, rsu) = second;
        t.hear(ms, asker, Heard::ProbeFor { rsu });
        t.answered()
    };
    assert_eq!(answered(16, (B, 454, RSU)), [A, Mac::BROADCAST]);
    assert_eq!(answered(200, (B, 455, RSU)), [A, B], "too late");
    assert_eq!(answered(200, (A, 440, RSU)), [A, A], "the same asks again");
    assert_eq!(answered(200, (B, 440, OTHER_RSU)), [A, B], "about another RSU");
    assert_eq!(answered(15, (B, 440, RSU)), [A, B], "no crowd");
    assert_eq!(answered(200, (C, 440, RSU)), [A, C], "not behind us: it needs a proof of its own");
}

#[test]
fn in_full_air_an_rsu_is_asked_about_late_and_over_a_while() {
    let mut after = Vec::new();
    for seed in 0..40 {
        let mut t = one_of_a_crowd();
        t.obu.reseed(seed);
        for beat in 5..=50 {
            t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
            // Twenty others hear it.
            for n in 0..20 {
                let relay = Mac([2, 0, 0, 0, 6, n]);
                let heard = Heard::heartbeat_via(beat as u32, 1, RSU);
                t.hear(beat * 100 + u64::from(n) + 10, relay, heard);
            }
        }
        t.clear();
        let first = (5000..5700).find(|ms| {
            t.pass(*ms);
            if ms % 5 == 0 {
                let relay = Mac([2, 0, 0, 0, 6, (ms % 100 / 5) as u8]);
                t.hear(*ms, relay, Heard::heartbeat_via((ms / 100) as u32, 1, RSU));
            }
            t.asked().contains(&RSU)
        });
        after.push(first.unwrap() - 5000);
    }
    after.sort_unstable();
    assert!(after[0] >= 420 && after[39] <= 458, "{after:?}");
    assert!(after[0] < 430 && after[39] > 445, "{after:?}");
}

#[test]
fn an_answer_for_all_spares_the_others_their_question() {
    let asked = |is_answered: bool| {
        let mut t = known_of_a_crowd(50);
        // Late from 5,220 ms on.
        t.hear(5215, B, Heard::heartbeat(51, 1));
        if is_answered {
            t.hear_broadcast(5218, A, Heard::AnswerTo { asker: C, seq: 51 });
        }
        t.pass(5295);
        t.asked().contains(&A)
    };
    assert!(asked(false) && !asked(true));
}

#[test]
fn a_crowd_behind_a_silent_relay_asks_it_over_what_time_there_is() {
    let mut after = Vec::new();
    for seed in 0..40 {
        let mut t = known_of_a_crowd(50);
        t.obu.reseed(seed);
        t.hear(5110, B, Heard::heartbeat(51, 1));
        t.hear(5210, B, Heard::heartbeat(52, 1));
        let first = (5200..5300).find(|ms| {
            t.pass(*ms);
            t.asked().contains(&A)
        });
        after.push(first.unwrap() - 5000);
    }
    after.sort_unstable();
    assert!(after[0] >= 220 && after[39] <= 254, "{after:?}");
    assert!(after[0] < 230 && after[20] > 233 && after[39] > 248, "{after:?}");
}
