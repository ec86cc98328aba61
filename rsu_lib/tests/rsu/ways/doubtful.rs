//! Words that may be of somebody else: forged, overtaken, doubled, or far from all before.

use node_lib::Order;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;

use super::seen::{OTHER, answers, past, sent_to, word};
use crate::talk::{A, C, CAMERA, RELAY, Talk, US, id};

/// An upstream that A did not name, in a word that is so many numbers ahead of its last.
fn forge(t: &mut Talk, ahead: u32) -> u32 {
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    let last = t.seq;
    let forged = HeartbeatReply {
        order: Order::new(1, last + ahead),
        acknowledge: false,
        ..word(t, A, RELAY, &[CAMERA])
    };
    t.hear(RELAY, US, forged.into());
    t.seq = last;
    assert_eq!(sent_to(t, CAMERA), [past(&[RELAY], A)], "it is believed");
    assert_eq!(answers(t), [(AckStatus::Known, past(&[], A))], "A is told where it is");
    t.clear();
    last
}

#[test]
fn a_forged_upstream_a_few_numbers_ahead_lasts_until_the_obus_own_words_are_newer() {
    for ahead in 1..=4 {
        let mut t = Talk::new();
        forge(&mut t, ahead);
        for _ in 0..ahead {
            t.reply(A, 1, &[CAMERA], false);
        }
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[RELAY], A)], "{ahead}");
        t.reply(A, 1, &[CAMERA], false);
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{ahead}");
    }
}

#[test]
fn an_obu_for_whom_somebody_names_an_upstream_far_ahead_hears_of_it_at_its_next_word() {
    for ahead in [5, 6, 7, 8, 1000] {
        let mut t = Talk::new();
        forge(&mut t, ahead);
        t.pass(t.now + 100);
        t.clear();
        t.reply(A, 1, &[CAMERA], false);
        assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[], A))], "{ahead}: the way A says");
        // It announces itself, and repeats that until it hears an answer: five times in 300 ms.
        let mut epoch = 1;
        for _ in 0..5 {
            t.clear();
            t.announce(A, US, epoch, &[CAMERA]);
            for (status, sent) in answers(&t).into_iter().filter(|(_, (to, ..))| *to == A) {
                assert_eq!(sent, past(&[], A));
                epoch += u32::from(status == AckStatus::StaleEpoch);
            }
        }
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{ahead}");
    }
}

#[test]
fn a_jump_is_taken_back_by_one_word_above_what_the_obu_is_told() {
    for (epoch, is_believed) in [(1, false), (2, true)] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.announce(A, US, 1, &[CAMERA]);
        let seq = t.seq;
        let word = word(&mut t, A, RELAY, &[CAMERA]);
        for n in 1..3 {
            t.pass(t.now + 50);
            t.clear();
            let order = Order::new(900, n);
            let jump = HeartbeatReply { order, epoch: 70, acknowledge: false, ..word };
            t.hear(RELAY, US, jump.into());
        }
        assert_eq!(t.acks(), [(A, AckStatus::StaleEpoch, 1)], "which of its words is known");
        t.seq = seq;
        t.clear();
        t.announce(A, US, epoch, &[CAMERA]);
        assert_eq!(!answers(&t).is_empty(), is_believed);
        let way = if is_believed { past(&[], A) } else { past(&[RELAY], A) };
        assert_eq!(sent_to(&mut t, CAMERA), [way], "{epoch}");
    }
}

#[test]
fn a_copy_of_a_word_and_one_that_was_overtaken_change_no_way() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.relay(OTHER, US);
    t.announce(A, US, 1, &[CAMERA]);
    let overtaken = word(&mut t, A, RELAY, &[CAMERA]);
    let last = word(&mut t, A, OTHER, &[CAMERA]);
    t.hear(OTHER, US, last.into());
    sent_to(&mut t, CAMERA);
    t.clear();
    t.hear(RELAY, US, overtaken.into());
    assert_eq!((answers(&t), sent_to(&mut t, CAMERA)), (vec![], vec![past(&[OTHER], A)]));
    // The last one once more.
    t.hear(OTHER, US, last.into());
    assert_eq!((answers(&t), sent_to(&mut t, CAMERA)), (vec![], vec![past(&[OTHER], A)]));
}

#[test]
fn of_two_words_with_one_number_the_second_changes_no_way_and_who_said_it_is_asked() {
    for (by, via, hops) in [(RELAY, RELAY, 1), (C, US, 0)] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.relay(OTHER, US);
        t.announce(A, US, 1, &[CAMERA]);
        let last = word(&mut t, A, OTHER, &[CAMERA]);
        t.hear(OTHER, US, last.into());
        t.clear();
        t.hear(by, US, HeartbeatReply { via: id(via), hops, ..last }.into());
        assert_eq!(
            answers(&t).iter().map(|(status, _)| *status).collect::<Vec<_>>(),
            [AckStatus::SendAll]
        );
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[OTHER], A)]);
    }
}

#[test]
fn a_word_far_from_all_before_changes_a_way_only_when_it_is_repeated_and_the_obu_is_silent() {
    for is_silent in [false, true] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.announce(A, US, 1, &[CAMERA]);
        let ours = t.seq;
        t.clear();
        for (n, at) in [0, 49, 50].into_iter().enumerate() {
            t.pass(1000 + at);
            if !is_silent {
                t.seq = ours + n as u32;
                t.reply(A, 1, &[CAMERA], false);
            }
            assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{at} ms");
            let order = Order::new(1, ours + 5000 + n as u32);
            let far = HeartbeatReply { order, ..word(&mut t, A, RELAY, &[CAMERA]) };
            t.hear(RELAY, US, far.into());
            if at < 50 || !is_silent {
                assert_eq!(answers(&t), []);
            }
        }
        let way = if is_silent { past(&[RELAY], A) } else { past(&[], A) };
        assert_eq!(sent_to(&mut t, CAMERA), [way]);
    }
}
