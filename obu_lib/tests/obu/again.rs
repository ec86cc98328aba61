//! What the radio gave up, because no acknowledgement came: what goes once more, and which way.

use node_lib::control::node::Node;
use node_lib::messages::data::{Data, Destination, ToDownstream, ToUpstream};
use node_lib::{Mac, NodeId, Seq};
use obu_lib::Policy;

use crate::talk::{A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, attached, id, last, next};

const PAYLOAD: [u8; 60] = [0x5a; 60];

/// A frame of C's client on its way up.
fn up(seq: u32) -> ToUpstream<'static> {
    let (destination, source, seq) = (id(RSU), id(C), Seq(seq));
    ToUpstream {
        destination,
        source,
        hop_limit: 5,
        boot: 7,
        seq,
        again: false,
        priority: 5,
        payload: &PAYLOAD,
    }
}

/// A frame of the RSU on its way down.
fn down(destination: Destination<'_>) -> ToDownstream<'_> {
    let (source, seq) = (id(RSU), Seq(99));
    ToDownstream { destination, source, boot: 7, seq, priority: 5, payload: &PAYLOAD }
}

/// Behind A, B could be upstream as well, and C is behind us.
fn between() -> Talk {
    Talk::between_with(Policy::default())
}

/// Gives up the only frame sent, and returns to whom frames went from then on.
fn give_up_only(t: &mut Talk) -> (Vec<u8>, Vec<Mac>) {
    let [(_, frame)] = &t.sent[..] else { panic!("{:?}", t.sent) };
    let frame = frame.clone();
    t.clear();
    t.give_up(&frame);
    (frame, t.sent.iter().map(|(to, _)| *to).collect())
}

#[test]
fn a_frame_on_its_way_up_goes_once_more_and_another_way() {
    for is_ours in [true, false] {
        let mut t = between();
        if is_ours {
            t.tap(CAMERA, SERVER);
        } else {
            t.hear_data(C, up(99));
        }
        let (first, to) = give_up_only(&mut t);
        assert_eq!(to, [B], "ours: {is_ours}");
        let again = t.sent[0].1.clone();
        let mut expected = first;
        expected[..6].copy_from_slice(&B.0);
        expected[15] |= 0x10;
        assert_eq!(again, expected, "to B, and marked");
        assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "A is not left for one frame");
        t.clear();
        t.give_up(&again);
        assert_eq!((t.sent.len(), t.obu.counters().sent_again), (0, 1), "ours: {is_ours}");
    }
}

#[test]
fn what_goes_once_more_does_so_for_one_reason_only() {
    let mut t = Talk::between_with(Policy { rerouting: true, ..Policy::default() });
    t.hear_data(C, up(99));
    t.hear_data(C, up(100));
    let given_up = t.sent[0].1.clone();
    t.clear();
    t.give_up(&given_up);
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    let sent = t.data_sent().into_iter().map(|(to, data)| match data {
        Data::Upstream(data) => (to, data.seq.0, data.again),
        Data::Downstream(data) => panic!("{data:?}"),
    });
    assert_eq!(sent.collect::<Vec<_>>(), [(B, 99, true), (B, 100, true)]);
    assert_eq!((t.obu.counters().sent_again, t.obu.counters().rerouted), (1, 1));
}

#[test]
fn where_there_is_no_other_way_it_goes_the_same_one_and_may_go_another_later() {
    let mut t = between();
    t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
    t.clear();
    t.tap(CAMERA, SERVER);
    let (first, to) = give_up_only(&mut t);
    assert_eq!((&to[..], &t.sent[0].1), (&[A][..], &first), "and is not marked");
    t.clear();
    t.give_up(&first);
    assert_eq!(t.sent, [], "once");
    t.pass(t.now + 100);
    let seq = t.beat(A, 1);
    t.hear(t.now, B, Heard::heartbeat(seq, 1));
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    assert_eq!(t.data_sent().iter().map(|(to, _)| *to).collect::<Vec<_>>(), [B]);
}

#[test]
fn after_a_change_of_upstream_it_goes_the_new_way() {
    let mut t = between();
    t.tap(CAMERA, SERVER);
    let sent = t.sent[0].1.clone();
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.give_up(&sent);
    assert_eq!(t.data_sent().iter().map(|(to, _)| *to).collect::<Vec<_>>(), [B], "once");
}

#[test]
fn without_any_way_it_is_lost() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.tap(CAMERA, SERVER);
    let sent = t.sent[0].1.clone();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    t.clear();
    t.give_up(&sent);
    assert_eq!((t.data_sent(), t.obu.counters().sent_again), (vec![], 0));
}

#[test]
fn each_of_many_frames_goes_once_more() {
    let mut t = between();
    for seq in 100..120 {
        t.hear_data(C, up(seq));
    }
    let sent: Vec<Vec<u8>> = t.sent.iter().map(|(_, frame)| frame.clone()).collect();
    t.clear();
    for frame in sent.iter().chain(&sent) {
        t.give_up(frame);
    }
    assert_eq!((t.sent.len(), t.obu.counters().sent_again), (20, 20));
}

#[test]
fn a_relay_sends_once_more_what_is_for_one_and_no_flood() {
    let mut t = between();
    t.hear_data(A, down(next(C)));
    let (first, to) = give_up_only(&mut t);
    assert_eq!((&to[..], &t.sent[0].1), (&[C][..], &first));
    t.clear();
    t.give_up(&first);
    assert_eq!(t.sent, []);

    let mut t = between();
    t.hear_data(A, down(Destination::All { except: NodeId::NONE, hop_limit: 3, taken_at: Seq(4) }));
    let (_, to) = give_up_only(&mut t);
    assert_eq!(to, []);
}

#[test]
fn what_is_for_a_child_that_has_left_is_not_sent_again() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    t.clear();
    t.hear_data(A, down(next(C)));
    let sent = t.sent[0].1.clone();
    while t.now < 60_000 {
        t.beat(A, 1);
        t.pass(t.now + 100);
    }
    t.clear();
    t.give_up(&sent);
    assert_eq!(t.sent, []);
}

#[test]
fn control_frames_are_repeated_by_their_own_rules() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 60);
    let control: Vec<Vec<u8>> = t.sent.iter().map(|(_, frame)| frame.clone()).skip(1).collect();
    assert!(!control.is_empty());
    t.clear();
    for frame in &control {
        t.give_up(frame);
    }
    t.give_up(&[]);
    t.give_up(&[0; 20]);
    assert_eq!((t.sent.len(), t.obu.counters().sent_again), (0, 0));
}

#[test]
fn what_is_for_an_rsu_nobody_leads_to_is_lost() {
    let mut t = between();
    t.hear_data(A, down(last(C)));
    assert_eq!(t.sent.len(), 0);
    t.hear_data(C, up(99));
    let mut sent = t.sent[0].1.clone();
    t.clear();
    // Its destination stands behind the Ethernet header and four bytes of prefix.
    sent[18..24].copy_from_slice(&OTHER_RSU.0);
    t.give_up(&sent);
    assert_eq!((t.sent.len(), t.obu.counters().sent_again), (0, 0));
}
