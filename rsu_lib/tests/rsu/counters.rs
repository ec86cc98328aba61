//! What an RSU does not carry, it counts under its cause.

use node_lib::control::counters::Counters;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::control::probe::Probe;
use node_lib::messages::data::{ToDownstream, ToUpstream};
use node_lib::messages::{ETHERNET_HEADER_LEN, PacketType};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Start, Timestamp};
use rsu_lib::{Rsu, Settings};

use crate::talk::{A, B, CAMERA, SERVER, SIGN, STRANGER, Said, Talk, US, arp, id, inner, to};

/// What was counted since.
fn counted(t: &Talk, before: &Counters) -> Vec<(&'static str, u64)> {
    let pairs = t.rsu.counters().iter().zip(before.iter());
    pairs.filter(|(now, then)| now.1 != then.1).map(|(now, then)| (now.0, now.1 - then.1)).collect()
}

/// What this does to the counters, once A is attached with the camera.
fn counts(act: impl FnOnce(&mut Talk)) -> Vec<(&'static str, u64)> {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    let before = t.rsu.counters().clone();
    act(&mut t);
    counted(&t, &before)
}

fn up(rsu: Mac, obu: Mac, payload: &[u8]) -> PacketType<'_> {
    let (destination, source) = (id(rsu), id(obu));
    ToUpstream {
        destination,
        source,
        hop_limit: 15,
        boot: 1,
        seq: Seq(9),
        again: false,
        priority: 0,
        payload,
    }
    .into()
}

fn probe(sender: Mac, rsu: NodeId) -> PacketType<'static> {
    Probe { sender: id(sender), sender_boot: Boot(1), nonce: 7, rsu, asked: id(US) }.into()
}

fn question_to_all(sender: Mac, rsu: NodeId) -> PacketType<'static> {
    let asked = NodeId::NONE;
    Probe { sender: id(sender), sender_boot: Boot(1), nonce: 7, rsu, asked }.into()
}

#[test]
fn frames_are_counted_in_the_direction_they_go() {
    assert_eq!(counts(|t| t.up(A, CAMERA, Mac::BROADCAST)), [("wire_to_tap", 1)]);
    assert_eq!(counts(|t| t.tap(SERVER, CAMERA)), [("tap_to_wire", 1)]);
}

#[test]
fn a_vehicles_frame_for_another_rsu_or_from_ourselves_is_foreign() {
    let frame = inner(CAMERA, SERVER);
    assert_eq!(counts(|t| t.hear(A, US, up(B, A, &frame))), [("drop_foreign", 1)]);
    assert_eq!(counts(|t| t.hear(A, US, up(US, US, &frame))), [("drop_foreign", 1)]);
    assert_eq!(counts(|t| t.hear(A, US, up(US, A, &frame))), [("wire_to_tap", 1)]);
}

#[test]
fn data_that_an_rsu_sends_or_that_goes_to_everybody_is_foreign() {
    let frame = inner(SERVER, CAMERA);
    let down = ToDownstream {
        destination: to(US, 0),
        source: id(B),
        boot: 1,
        seq: Seq(1),
        priority: 0,
        payload: &frame,
    };
    assert_eq!(counts(|t| t.hear(B, US, down.into())), [("drop_foreign", 1)]);
    let up = up(US, A, &frame);
    assert_eq!(counts(|t| t.hear(A, Mac::BROADCAST, up)), [("drop_foreign", 1)]);
}

#[test]
fn what_has_one_addressee_is_not_believed_when_everybody_gets_it() {
    let mut t = Talk::new();
    t.announce_to_all(A, &[CAMERA]);
    assert_eq!((t.acks(), t.rsu.clients_of(id(A))), (vec![], vec![]));
    assert_eq!((t.rsu.counters().drop_foreign, t.rsu.counters().ctl_rx_frames), (1, 1));
}

#[test]
fn a_frame_no_bridge_forwards_is_dropped_from_either_side() {
    let pause = Mac([0x01, 0x80, 0xc2, 0, 0, 1]);
    assert_eq!(counts(|t| t.up(A, CAMERA, pause)), [("drop_inner", 1)]);
    assert_eq!(counts(|t| t.tap(SERVER, pause)), [("drop_inner", 1)]);
}

#[test]
fn a_frame_for_where_it_comes_from_is_reflected() {
    let behind_a = |t: &mut Talk| t.announce(A, A, 2, &[CAMERA, SIGN]);
    let mut t = Talk::new();
    behind_a(&mut t);
    t.up(A, CAMERA, SIGN);
    assert_eq!(t.rsu.counters().drop_reflected, 1);
    assert_eq!((t.sent_down(), t.rsu.counters().wire_to_tap), (vec![], 0));
}

#[test]
fn a_frame_for_a_client_whose_vehicle_has_no_way_back_has_no_route() {
    let mut t = Talk::new();
    // B has not announced itself, so nobody knows a way to it; but its client has spoken.
    t.up(B, SIGN, SERVER);
    t.clear();
    t.tap(SERVER, SIGN);
    assert_eq!((t.sent_down(), t.rsu.counters().drop_no_route), (vec![], 1));
}

#[test]
fn questions_beyond_the_budget_are_not_answered() {
    let counted = counts(|t| {
        for _ in 0..1000 {
            t.hear(A, US, probe(A, id(US)));
        }
    });
    let of = |name| counted.iter().find(|(counter, _)| *counter == name).map(|(_, count)| *count);
    let (answered, dropped) = (of("answer_tx").unwrap(), of("drop_rate_limit").unwrap());
    assert_eq!(answered + dropped, 1000);
    assert!((1..100).contains(&answered), "{answered}");
    assert_eq!(of("ctl_rx_frames"), Some(1000));
}

#[test]
fn a_question_to_all_about_another_rsu_is_not_ours_to_answer() {
    let question = || question_to_all(A, id(B));
    let counted = counts(|t| t.hear(A, Mac::BROADCAST, question()));
    let bytes = ("ctl_rx_bytes", (question().wire_len() + ETHERNET_HEADER_LEN) as u64);
    assert_eq!(counted, [("ctl_rx_frames", 1), bytes, ("probe_rx", 1)]);
}

#[test]
fn a_question_to_somebody_else_is_not_ours_to_answer() {
    let question =
        Probe { sender: id(A), sender_boot: Boot(1), nonce: 7, rsu: id(US), asked: id(B) };
    let counted = counts(|t| t.hear(A, Mac::BROADCAST, question.into()));
    assert!(counted.iter().all(|(name, _)| *name != "answer_tx"), "{counted:?}");
}

#[test]
fn announcements_of_other_rsus_that_were_passed_on_already_are_duplicates() {
    let announcement = arp(SIGN, [10, 0, 0, 7], [10, 0, 0, 7]);
    let counted = counts(|t| {
        t.tap_frame(&announcement);
        t.tap_frame(&announcement);
    });
    assert_eq!(counted, [("tap_to_wire", 1), ("drop_duplicate", 1)]);
}

#[test]
fn who_makes_room_in_a_full_table_is_counted() {
    let mut t = Talk::new();
    let obu = |n: u16| Mac([2, 0, 0, 9, (n >> 8) as u8, n as u8]);
    for n in 0..1024 {
        t.stand_by(obu(n), 1, &[]);
    }
    assert_eq!(t.rsu.counters().evicted, 0);
    t.announce(A, A, 1, &[]);
    assert_eq!(t.rsu.counters().evicted, 1);
    assert_eq!(t.rsu.attached().len(), 1);
    for n in 1025..3000 {
        t.pass(t.now + 1);
        t.stand_by(obu(n), 1, &[]);
    }
    assert_eq!(t.rsu.counters().evicted, 3000 - 1024, "of all 3,000 the RSU knows 1,024");
}

#[test]
fn an_obu_for_which_there_is_no_room_is_refused_without_an_answer_and_not_asked() {
    let mut t = Talk::new();
    let obu = |n: u16| Mac([2, 0, 0, 9, (n >> 8) as u8, n as u8]);
    for n in 0..1024 {
        t.announce(obu(n), obu(n), 1, &[]);
    }
    t.clear();
    t.announce(A, A, 1, &[CAMERA]);
    t.reply(A, 1, &[CAMERA], false);
    t.up(A, CAMERA, SERVER);
    assert_eq!((t.acks(), t.rsu.counters().obus_refused), (vec![], 1));
    assert_eq!(t.rsu.attached().len(), 1024);
}

/// A table full of made-up OBUs closes the RSU to nobody for longer than it takes to ask them; who
/// answers stays.
#[test]
fn made_up_obus_that_fell_silent_make_room_and_those_that_answer_stay() {
    let mut t = Talk::new();
    let obu = |n: u16| Mac([2, 0, 0, 9, (n >> 8) as u8, n as u8]);
    t.announce(B, B, 1, &[SIGN]);
    for n in 0..1023 {
        t.announce(obu(n), obu(n), 1, &[]);
    }
    t.pass(3000);
    let mut asked = 0;
    // As an OBU repeats its announcement.
    for wait in [0, 20, 60, 140, 300, 620, 940, 1260, 1580, 1900] {
        t.pass(3000 + wait);
        t.clear();
        t.announce(A, A, 1, &[CAMERA]);
        let acks = t.acks();
        let questions = acks.iter().filter(|(_, status, _)| *status == AckStatus::SendAll);
        asked += questions.clone().count();
        if questions.into_iter().any(|(to, ..)| *to == B) {
            t.announce(B, B, 1, &[SIGN]);
        }
    }
    let attached: Vec<_> = t.rsu.attached().into_iter().map(|known| known.obu).collect();
    assert!(attached.contains(&id(A)), "{} refused", t.rsu.counters().obus_refused);
    assert!(attached.contains(&id(B)), "it answered");
    assert_eq!(t.rsu.clients_of(id(B)).len(), 1);
    assert!(asked <= 10 * 8, "{asked} questions in two seconds");
}

#[test]
fn data_of_obus_that_have_not_announced_themselves_is_limited_and_that_of_others_is_not() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    for n in 0..3000_u16 {
        t.up(Mac([2, 0, 0, 9, (n >> 8) as u8, n as u8]), STRANGER, SERVER);
        t.up(A, CAMERA, SERVER);
    }
    assert_eq!(t.rsu.counters().drop_strangers, 2000);
    assert_eq!(t.rsu.counters().drop_duplicate, 0);
    let of_a = t.taps.iter().filter(|frame| **frame == inner(CAMERA, SERVER)).count();
    assert_eq!(of_a, 3000);
    t.clear();
    t.pass(1000);
    t.up(B, SIGN, SERVER);
    assert!(t.taps.contains(&inner(SIGN, SERVER)), "a second later there is room for a newcomer");
}

#[test]
fn our_own_taps_frame_coming_back_by_radio_is_reflected() {
    let start = Start { seed: 1, tap_mac: Some(SIGN), ..Start::new(US) };
    let mut t =
        Talk { rsu: Rsu::new(Settings::default().config(&start), Timestamp::ZERO), ..Talk::new() };
    t.announce(A, A, 1, &[CAMERA]);
    t.clear();
    t.up(A, SIGN, SERVER);
    assert_eq!((t.taps.len(), t.rsu.counters().drop_reflected), (0, 1));
    assert_eq!(t.rsu.clients_of(id(A)).len(), 1, "and it is not behind that vehicle");
}

#[test]
fn a_frame_between_two_hosts_of_the_lan_does_not_go_over_the_radio() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.tap(SIGN, Mac::BROADCAST);
    t.clear();
    t.tap(SERVER, SIGN);
    assert_eq!((t.sent_down(), t.rsu.counters().drop_reflected), (vec![], 1));
}

#[test]
fn what_is_left_out_where_there_is_too_much_is_counted() {
    let mut t = Talk::new();
    // 8,192 clients are remembered.
    for vehicle in 0..42_u8 {
        let clients: Vec<Mac> = (0..200).map(|n| Mac([2, 0, 0, 5, vehicle, n])).collect();
        let obu = Mac([2, 0, 0, 9, 0, vehicle]);
        t.announce(obu, obu, 1, &clients);
    }
    assert_eq!(t.rsu.counters().evicted, 42 * 200 - 8192);
    t.pass(3000);
    assert!(t.rsu.counters().wired_limited > 0, "not all were shown to the LAN three times");
}

#[test]
fn a_reply_to_another_rsu_is_foreign_and_changes_nothing() {
    let mut t = Talk::new();
    let clients = Vec::new();
    let order = Order::new(1, 1);
    let said = Said { obu: A, order, epoch: 1, standby: false, clients, goodbye: false };
    let reply = HeartbeatReply { rsu: id(B), ..t.reply_of(&said) };
    t.hear(A, US, reply.into());
    assert_eq!((t.rsu.counters().drop_foreign, t.acks()), (1, vec![]));
}
