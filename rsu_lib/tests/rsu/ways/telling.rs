//! Whom a word has moved is told at the place where it was, should the word not be its own.

use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;

use super::seen::{answers, past, sent_to, word};
use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US, WITHIN_DS};

/// A, and behind it B, of whom both the next word names another upstream, or says what `forge`
/// makes of it.
fn forged(forge: impl Fn(HeartbeatReply) -> HeartbeatReply) -> Talk {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    t.announce(B, A, 1, &[SIGN]);
    t.clear();
    let word = forge(word(&mut t, A, RELAY, &[CAMERA]));
    t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..word }.into());
    t
}

#[test]
fn an_obu_is_told_where_it_was_with_the_first_frame_for_it_or_for_one_behind_it() {
    for (client, sent) in [(CAMERA, past(&[RELAY], A)), (SIGN, past(&[RELAY, A], B))] {
        let mut t = forged(|word| word);
        assert_eq!(answers(&t), []);
        assert_eq!(sent_to(&mut t, client), std::slice::from_ref(&sent));
        let told = t.each(|to, control| match control {
            Control::AnnouncementAck(ack) => Some((to, ack.status, ack.epoch, ack.seq.0)),
            _ => None,
        });
        assert_eq!(told, [(A, AckStatus::Known, 1, t.seq)]);
        assert_eq!(sent_to(&mut t, client), [sent]);
        assert_eq!(answers(&t), [], "once");
    }
}

#[test]
fn who_has_clients_that_speak_is_told_only_if_a_frame_of_theirs_comes_another_way() {
    for (by, told) in [(RELAY, vec![]), (A, vec![(AckStatus::Known, past(&[], A))])] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.announce(A, US, 1, &[CAMERA]);
        t.up(A, CAMERA, SERVER);
        let word = word(&mut t, A, RELAY, &[CAMERA]);
        t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..word }.into());
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t), [], "its next frame will tell");
        t.clear();
        t.moves(A, if by == A { US } else { by });
        t.up(A, CAMERA, SERVER);
        assert_eq!(answers(&t), told);
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t), [], "once");
    }
}

#[test]
fn whose_clients_have_fallen_silent_is_told_all_the_same() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    t.up(A, CAMERA, SERVER);
    for (ms, told) in [(1000, 0), (1099, 0), (1100, 1)] {
        t.pass(t.now / 10_000 * 10_000 + ms);
        if ms == 1000 {
            let word = word(&mut t, A, RELAY, &[CAMERA]);
            t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..word }.into());
        }
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t).len(), told, "{ms} ms after its frame");
    }
}

#[test]
fn who_has_said_a_word_since_is_not_told_where_it_was() {
    for (ms, told) in [(u64::from(WITHIN_DS) * 100 - 1, 1), (u64::from(WITHIN_DS) * 100, 0)] {
        let mut t = forged(|word| word);
        t.pass(t.now + ms);
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t).len(), told, "after {ms} ms");
    }
}

#[test]
fn an_obu_whose_clients_are_gone_with_a_word_is_told_at_once() {
    let gone = |word| HeartbeatReply { standby: true, ..word };
    let t = forged(gone);
    assert_eq!(answers(&t), [(AckStatus::Known, past(&[], A))]);
    // Told just now, it is told again when that is over, though no frame shows that it is missed.
    let mut t = forged(gone);
    t.announce(A, US, 2, &[CAMERA]);
    let standby = gone(word(&mut t, A, RELAY, &[CAMERA]));
    let again = HeartbeatReply { epoch: 2, acknowledge: false, ..standby };
    t.clear();
    t.hear(RELAY, US, again.into());
    assert_eq!(answers(&t), []);
    t.pass(t.now + 250);
    assert_eq!(answers(&t), [(AckStatus::Known, past(&[], A))]);
}

#[test]
fn of_an_obu_and_its_relay_that_were_both_elsewhere_the_relay_is_told_first() {
    let mut t = forged(|word| word);
    let b = word(&mut t, B, RELAY, &[SIGN]);
    t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..b }.into());
    let told = |t: &mut Talk| {
        sent_to(t, SIGN);
        answers(t).into_iter().map(|(_, told)| told).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut t), [past(&[], A)]);
    t.pass(t.now + 49);
    assert_eq!(told(&mut t), []);
    t.announce(A, US, 2, &[CAMERA]);
    t.pass(t.now + 51);
    assert_eq!(told(&mut t), [past(&[RELAY], A)], "it was there, as far as is known");
    t.pass(t.now + 50);
    assert_eq!(told(&mut t), [past(&[A], B)]);
}
