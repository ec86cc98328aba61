//! Whom an OBU takes as upstream, and whom never.

use node_lib::control::node::Node;
use node_lib::{Mac, Seq};

use crate::talk::{A, B, C, Heard, RSU, Talk, US, attached, id};

#[test]
fn attaches_to_an_rsu_it_hears_directly_even_while_quiet() {
    let mut t = Talk::new();
    t.hear(5, RSU, Heard::heartbeat(1, 0));
    let probe = t.sent_probe(RSU);
    assert_eq!(t.obu.attachment(), None, "not before the RSU has proven that it hears us");
    t.hear(7, RSU, Heard::answer(probe, 1, 0));
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    let announced = t.sent_announcement();
    assert_eq!((announced.0, announced.1), (RSU, 1));
}

#[test]
fn an_answer_to_its_question_to_all_is_proof_enough() {
    let mut t = Talk::new();
    t.pass(10);
    let nonce = t.sent_probe(Mac::BROADCAST);
    t.hear(12, RSU, Heard::answer(nonce, 1, 0));
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    assert_eq!((t.obu.counters().ctl_rx_frames, t.obu.counters().upstream_changes), (1, 1));
    let mut t = Talk::new();
    t.pass(10);
    let nonce = t.sent_probe(Mac::BROADCAST);
    t.hear(12, RSU, Heard::answer(nonce ^ 1, 1, 0));
    assert_eq!(t.obu.attachment(), None, "an answer to somebody else's question");
}

#[test]
fn does_not_route_through_others_while_quiet_and_does_afterwards() {
    let mut t = Talk::new();
    t.hear(5, A, Heard::heartbeat(1, 1));
    assert_eq!(t.last_probe(A), None, "nobody but the RSU is of use yet");
    for beat in 1..=4 {
        t.hear(5 + beat * 100, A, Heard::heartbeat(1 + beat as u32, 1));
    }
    let probe = t.sent_probe(A);
    t.hear(410, A, Heard::answer(probe, 5, 1));
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn relays_each_heartbeat_of_its_upstream_once_one_hop_further() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.hear(450, A, Heard::heartbeat(5, 1));
    t.hear(451, A, Heard::heartbeat(5, 1));
    t.hear(452, B, Heard::heartbeat(5, 1));
    t.pass(500);
    let relayed = t.heartbeats();
    assert_eq!(relayed.len(), 1, "{relayed:?}");
    let (hops, hop_limit, via) = (relayed[0].hops, relayed[0].hop_limit, relayed[0].via);
    assert_eq!((relayed[0].order.seq, hops, hop_limit, via), (Seq(5), 2, 13, id(A)));
}

#[test]
fn a_candidate_as_far_away_as_we_say_we_are_is_not_used_for_the_same_heartbeat() {
    let mut t = Talk::settled_behind(A);
    let seq = t.beat(A, 1);
    t.pass(t.now + 10);
    // C is as far from the RSU as we say we are: it may be behind us.
    t.hear(t.now + 2, C, Heard::heartbeat(seq, 2));
    t.prove(C, seq, 2);
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), None);
    // Newer news through C cannot have come through us.
    t.hear(t.now + 1, C, Heard::heartbeat(t.seq + 5, 2));
    assert_eq!(t.obu.attachment(), attached(RSU, C, 3));
}

#[test]
fn a_neighbour_that_does_not_answer_is_never_used() {
    let mut t = Talk::new();
    for beat in 0..50 {
        t.hear(beat * 100, A, Heard::heartbeat(beat as u32 + 1, 1));
        t.pass(beat * 100 + 99);
    }
    assert_eq!(t.obu.attachment(), None);
}

#[test]
fn a_neighbour_that_sends_through_us_is_no_candidate() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now + 1, C, Heard::heartbeat_via(t.seq + 1, 1, US));
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), None);
}
