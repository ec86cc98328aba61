//! Frames to all: how they go down, and when they go nowhere.

use node_lib::control::node::Node;
use node_lib::{Mac, NodeId};

use super::seen::moves;
use crate::talk::{A, B, C, CAMERA, RELAY, SERVER, SIGN, STRANGER, Talk, US, all_except, id};

#[test]
fn a_flood_says_after_which_heartbeat_it_was_taken_and_goes_out_once() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    t.announce(B, RELAY, 1, &[SIGN]);
    t.announce(C, B, 1, &[]);
    t.pass(450);
    let last = t.heartbeats().last().unwrap().1.order.seq;
    let unknown = Mac([2, 0, 0, 0, 1, 99]);
    for group in
        [Mac::BROADCAST, Mac([1, 0, 0x5e, 1, 1, 1]), Mac([0x33, 0x33, 0, 0, 0, 1]), unknown]
    {
        t.clear();
        t.tap(SERVER, group);
        let to_all = (Mac::BROADCAST, all_except(NodeId::NONE, last.0));
        assert_eq!((t.sent_down(), t.taps.len()), (vec![to_all], 0), "{group}");
        t.clear();
        t.up(C, STRANGER, group);
        let to_others = (Mac::BROADCAST, all_except(id(C), last.0));
        assert_eq!((t.sent_down(), t.taps[0][..6].to_vec()), (vec![to_others], group.0.to_vec()));
    }
    // The next heartbeat, and the next flood.
    t.pass(t.now + 120);
    t.clear();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down(), [(Mac::BROADCAST, all_except(NodeId::NONE, last.0 + 1))]);
}

#[test]
fn a_flood_goes_by_unicast_while_there_is_one_child_however_many_are_behind_it() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.announce(B, RELAY, 1, &[SIGN]);
    t.announce(C, US, 1, &[]);
    let flooded = |t: &mut Talk| {
        t.clear();
        t.tap(SERVER, Mac::BROADCAST);
        t.sent_down().into_iter().map(|(to, _)| to).collect::<Vec<_>>()
    };
    assert_eq!(flooded(&mut t), [Mac::BROADCAST]);
    moves(&mut t, C, B, &[]);
    assert_eq!(flooded(&mut t), [RELAY]);
    moves(&mut t, C, US, &[]);
    assert_eq!(flooded(&mut t), [Mac::BROADCAST]);
    t.reply(C, 1, &[], true);
    assert_eq!(flooded(&mut t), [RELAY]);
}

#[test]
fn a_flood_for_whom_there_is_no_way_is_counted_and_one_for_nobody_is_not() {
    let mut t = Talk::new();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.rsu.counters().drop_no_route, 0);
    // Its relay has not said who its upstream is.
    t.announce(A, RELAY, 1, &[CAMERA]);
    assert_eq!(t.rsu.counters().drop_no_route, 1, "the answer");
    t.clear();
    t.tap(SERVER, Mac::BROADCAST);
    t.tap(SERVER, STRANGER);
    assert_eq!((t.sent_down(), t.rsu.counters().drop_no_route), (vec![], 3));
    t.up(A, CAMERA, Mac::BROADCAST);
    assert_eq!(t.rsu.counters().drop_no_route, 3, "it is for nobody else");
}
