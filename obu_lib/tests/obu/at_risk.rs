//! What a lost upstream was given since its last sign of life: it goes the next way, and the RSU is
//! told for how long its own frames may have gone astray.

use node_lib::control::node::Node;
use node_lib::messages::control::Control;
use node_lib::messages::data::{Data, ToUpstream};
use node_lib::{Mac, Seq};
use obu_lib::Policy;

use crate::talk::{A, B, C, CAMERA, Heard, RSU, SERVER, Talk, attached, id};

const PAYLOAD: [u8; 60] = [0x5a; 60];

/// Behind A, B could be upstream as well, and C is behind us. Nothing goes two ways.
fn between() -> Talk {
    Talk::between_with(Policy { duplication: false, rerouting: true, ..Default::default() })
}

/// A frame of C's client, with this number, on its way up through us.
fn up(t: &mut Talk, seq: u32) {
    let (destination, source, seq) = (id(RSU), id(C), Seq(seq));
    let payload = &PAYLOAD;
    t.hear_data(
        C,
        ToUpstream {
            destination,
            source,
            hop_limit: 5,
            boot: 7,
            seq,
            again: false,
            priority: 5,
            payload,
        },
    );
}

/// B goes on, and A does not, until we have left A. Returns how long that took, in ms.
fn until_a_is_dead(t: &mut Talk) -> u64 {
    let begun = t.now;
    while t.obu.attachment() != attached(RSU, B, 2) {
        t.pass(t.now + 1);
        t.answer_probes_of(B);
        if (t.now - begun).is_multiple_of(100) {
            t.seq += 1;
            t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        }
        assert!(t.now < begun + 300, "A is silent");
    }
    t.now - begun
}

/// What each of our words says of the frames that came down.
fn at_risk_said(t: &Talk) -> Vec<u8> {
    t.each(|_, control| match control {
        Control::HeartbeatReply(reply) => Some(reply.at_risk_10ms),
        Control::Announcement(announcement) => Some(announcement.at_risk_10ms),
        _ => None,
    })
}

/// The numbers of C's frames that went to this neighbour.
fn of_c(t: &Talk, to: Mac) -> Vec<u32> {
    let sent = t.data_sent().into_iter().filter(|(next, _)| *next == to);
    sent.filter_map(|(_, data)| match data {
        Data::Upstream(data) if data.source == id(C) => Some(data.seq.0),
        _ => None,
    })
    .collect()
}

#[test]
fn what_a_silent_upstream_was_given_goes_the_next_way_in_its_order_and_once() {
    let mut t = between();
    up(&mut t, 1);
    t.answer_probes_of(A);
    t.pass(t.now + 120);
    t.answer_probes_of(A);
    // The last that is heard of A.
    t.beat(A, 1);
    t.answer_probes_of(A);
    t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
    t.clear();
    for seq in 2..5 {
        t.pass(t.now + 20);
        t.answer_probes_of(B);
        up(&mut t, seq);
    }
    t.tap(CAMERA, SERVER);
    let silence = 60 + until_a_is_dead(&mut t);
    assert_eq!((of_c(&t, A), of_c(&t, B)), (vec![2, 3, 4], vec![2, 3, 4]));
    let ours = t.data_sent().into_iter().filter(|(to, _)| *to == B).count() - 3;
    assert_eq!((ours, t.obu.counters().rerouted), (1, 4), "and our own client's");
    let risk = *at_risk_said(&t).last().unwrap();
    assert!(u64::from(risk).abs_diff(silence / 10) <= 4, "{risk}0 ms of {silence}");
    t.clear();
    t.pass(t.now + 50);
    up(&mut t, 5);
    assert_eq!(of_c(&t, B), [5], "what went before does not go a third time");
}

#[test]
fn what_has_waited_for_too_long_is_not_sent_any_more() {
    for (later, expected) in [(0, 1), (100, 0)] {
        let mut t = between();
        t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
        up(&mut t, 1);
        let given = t.now;
        while t.obu.attachment().is_some() {
            t.pass(t.now + 1);
        }
        t.pass(t.now.max(given + 200) + later);
        t.seq += 2;
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        t.prove(B, t.seq, 1);
        t.pass(t.now + 20);
        assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
        assert_eq!(t.obu.counters().rerouted, expected, "{later} ms later");
    }
}

#[test]
fn what_went_to_an_upstream_that_has_no_way_itself_goes_the_next_one() {
    let mut t = between();
    t.pass(t.now + 1);
    up(&mut t, 1);
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    assert_eq!((of_c(&t, B), t.obu.counters().rerouted), (vec![1], 1));
    assert_eq!(at_risk_said(&t).last(), Some(&30), "as long as it takes to notice");
}

#[test]
fn while_nothing_is_wrong_the_rsu_hears_that_nothing_is_at_risk() {
    let mut t = between();
    t.live_until(t.now + 5000);
    let said = at_risk_said(&t);
    assert!(said.len() > 2 && said.iter().all(|risk| *risk == 0), "{said:?}");
}

#[test]
fn until_the_rsu_has_acknowledged_the_new_way_it_hears_of_all_that_was_lost() {
    let mut t = between();
    up(&mut t, 1);
    until_a_is_dead(&mut t);
    let said = |t: &Talk| u64::from(*at_risk_said(t).last().unwrap()) * 10;
    let believed_until = t.now - said(&t);
    // The word was lost on the air. A is back, and B goes.
    for _ in 0..4 {
        t.pass(t.now + 60);
        t.answer_probes_of(B);
    }
    let seq = t.beat(A, 1);
    t.prove(A, seq, 1);
    t.clear();
    t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    assert!((t.now - said(&t)).abs_diff(believed_until) <= 10, "{}", said(&t));
    assert!(said(&t) > 400, "more than a withdrawal alone");
    t.acknowledge(A);
    t.clear();
    t.live_until(t.now + 1500);
    assert_eq!(at_risk_said(&t).last(), Some(&0));
}

/// A relay without frames of its own mentions its new upstream, and nobody acknowledges that. When
/// an answer to somebody behind it comes through it, the RSU knows.
#[test]
fn what_an_answer_to_somebody_behind_us_shows_that_the_rsu_knows_is_no_news_later() {
    let mut t = between();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.pass(t.now + 100);
    assert_eq!(at_risk_said(&t).first(), Some(&30));
    t.answer_passes(B, C);
    for _ in 0..10 {
        t.pass(t.now + 100);
        let seq = t.beat(B, 1);
        t.hear(t.now, A, Heard::heartbeat(seq, 1));
        t.answer_probes_of(A);
        t.answer_probes_of(B);
    }
    t.clear();
    t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    t.pass(t.now + 100);
    let said = at_risk_said(&t);
    assert!(said.last().is_some_and(|risk| *risk <= 45), "of this loss alone: {said:?}");
}

#[test]
fn in_doubt_the_rsu_hears_since_when() {
    let mut t = Talk::settled_behind_with(A, Policy { rerouting: true, ..Default::default() });
    t.acknowledge(A);
    t.prove_beside_a(B);
    t.tap(CAMERA, SERVER);
    t.clear();
    while t.obu.counters().upstream_doubted == 0 {
        t.pass(t.now + 1);
        t.answer_probes_of(B);
    }
    t.pass(t.now + 1);
    let said = t.replies_sent();
    let through_b = said.iter().find(|reply| reply.via == id(B)).unwrap();
    // It was last heard with the heartbeat that is answered.
    assert_eq!(u16::from(through_b.at_risk_10ms), through_b.held_100us.div_ceil(100));
}

#[test]
fn it_does_not_go_back_to_whom_it_came_from() {
    let mut t = between();
    t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
    up(&mut t, 1);
    while t.obu.attachment().is_some() {
        t.pass(t.now + 1);
    }
    // C has found another way, and is now ours.
    t.seq += 20;
    t.hear(t.now, C, Heard::heartbeat(t.seq, 1));
    t.prove(C, t.seq, 1);
    t.pass(t.now + 20);
    assert_eq!((t.obu.attachment(), t.obu.counters().rerouted), (attached(RSU, C, 2), 0));
}

#[test]
fn without_rerouting_nothing_of_this_happens() {
    let mut t = Talk::settled_behind_with(A, Policy { rerouting: false, ..Default::default() });
    t.acknowledge(A);
    t.prove_beside_a(B);
    t.clear();
    t.tap(CAMERA, SERVER);
    until_a_is_dead(&mut t);
    assert_eq!(t.obu.counters().rerouted, 0);
    assert!(at_risk_said(&t).iter().all(|risk| *risk == 0));
}

#[test]
fn what_has_gone_another_way_does_not_do_so_again() {
    let mut t = between();
    t.pass(t.now + 1);
    let (destination, source, payload) = (id(RSU), id(C), &PAYLOAD);
    for (seq, again) in [(1, true), (2, false)] {
        let (seq, hop_limit, boot, priority) = (Seq(seq), 5, 7, 5);
        let up = ToUpstream { destination, source, hop_limit, boot, seq, again, priority, payload };
        t.hear_data(C, up);
    }
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(of_c(&t, B), [2]);
    let marked = t.data_sent().into_iter().all(|(_, data)| match data {
        Data::Upstream(data) => data.again,
        Data::Downstream(_) => false,
    });
    assert!(marked, "the next relay is told");
}
