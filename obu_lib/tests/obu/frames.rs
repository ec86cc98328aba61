//! Which way clients' frames go: up, down, past us, to all.

use node_lib::control::node::Node;
use node_lib::messages::data::Data;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, NodeId};

use crate::talk::{
    A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, all_but, id, last, next,
};

#[test]
fn a_frame_from_the_tap_goes_up_in_one_piece() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    let frame = t.tap(CAMERA, SERVER);
    let [(to, flat)] = &t.sent[..] else { panic!("{:?}", t.sent) };
    let message = Message::try_from(&flat[..]).unwrap();
    let PacketType::Data(Data::Upstream(data)) = message.packet else { panic!("{message:?}") };
    assert_eq!((*to, data.destination, data.source), (A, id(RSU), id(US)));
    assert_eq!(data.payload, frame);
}

#[test]
fn a_frame_for_us_reaches_the_tap_once() {
    let mut t = Talk::settled_behind(A);
    t.down(A, last(US), 7);
    t.down(A, last(US), 7);
    assert_eq!(t.taps, 1);
    assert_eq!(t.obu.counters().drop_duplicate, 1);
}

#[test]
fn a_flood_is_delivered_once_unless_it_was_ours_and_only_from_our_rsu() {
    let mut t = Talk::settled_behind(A);
    t.down(A, all_but(NodeId::NONE, 4), 1);
    t.down(B, all_but(NodeId::NONE, 4), 1);
    assert_eq!(t.taps, 1);
    t.down(A, all_but(id(US), 4), 2);
    assert_eq!(t.taps, 1, "our own frame coming back");
    t.rsu = OTHER_RSU;
    t.down(A, all_but(NodeId::NONE, 4), 3);
    assert_eq!(t.taps, 1, "another RSU's");
}

#[test]
fn frames_for_others_are_relayed_up_and_down_and_never_back() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    t.clear();
    t.up(C, C, 15);
    assert_eq!(t.sent_to(), [A]);
    t.clear();
    t.down(A, next(C), 1);
    assert_eq!(t.sent_to(), [C]);
    t.clear();
    t.up(A, C, 16);
    assert_eq!(t.relayed_data(), 0, "never back to where it came from");
    t.up(C, C, 0);
    assert_eq!(t.obu.counters().drop_hop_limit, 1);
}

#[test]
fn a_child_gets_what_its_rsu_and_the_next_one_send_down_to_it() {
    let mut t = Talk::settled_behind(A);
    t.rsu = OTHER_RSU;
    t.hear(t.now, B, Heard::heartbeat(1, 1));
    t.prove_towards(OTHER_RSU, B, 1);
    t.rsu = RSU;
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    t.hear(t.now, C, Heard::Standby { origin: C, rsu: OTHER_RSU, seq: 2 });
    t.clear();
    t.down(A, all_but(NodeId::NONE, t.seq), 1);
    assert_eq!(t.sent_to(), [C]);
    t.clear();
    t.rsu = OTHER_RSU;
    t.down(B, next(C), 2);
    assert_eq!(t.sent_to(), [C]);
    t.clear();
    t.rsu = Mac([2, 0, 0, 0, 0, 0x12]);
    t.down(B, next(C), 3);
    assert_eq!(t.sent_to(), [], "to a third one it said nothing");
}

#[test]
fn who_sends_through_us_without_a_way_is_told() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    t.pass(t.now + 100);
    t.clear();
    t.up(C, C, 16);
    assert_eq!((t.withdrawals(), t.sent_to()), (1, vec![C]));
}
