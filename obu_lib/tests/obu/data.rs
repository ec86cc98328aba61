//! Where clients' frames go, what is in front of them, and what becomes of those that go nowhere.

use node_lib::control::counters::Counters;
use node_lib::control::event::{Event, Limit, TooLong};
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::control::radio::Radio;
use node_lib::messages::ETHERTYPE_DEFAULT;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::data::{Data, Destination, ToDownstream, ToUpstream};
use node_lib::{Boot, Mac, NodeId, Seq};
use obu_lib::Settings;

use crate::talk::{
    A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, attached, id, last, next,
};

/// A frame of a client, 60 bytes long.
fn frame(from: Mac, to: Mac) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00]].concat();
    frame.resize(60, 0x5a);
    frame
}

/// A frame of C's client on its way up.
fn up(payload: &[u8], hop_limit: u8) -> ToUpstream<'_> {
    let (destination, source) = (id(RSU), id(C));
    ToUpstream {
        destination,
        source,
        hop_limit,
        boot: 7,
        seq: Seq(99),
        again: false,
        priority: 5,
        payload,
    }
}

/// A frame of the RSU on its way down.
fn down<'a>(destination: Destination<'a>, payload: &'a [u8]) -> ToDownstream<'a> {
    ToDownstream { destination, source: id(RSU), boot: 7, seq: Seq(99), priority: 5, payload }
}

/// For every OBU but this one, with so many relays to go.
fn flood(except: NodeId, hop_limit: u8) -> Destination<'static> {
    Destination::All { except, hop_limit, taken_at: Seq(4) }
}

/// Behind A; C is behind us.
fn relay() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    t.clear();
    t
}

/// What was counted meanwhile.
fn counts(t: &mut Talk, act: impl FnOnce(&mut Talk)) -> Vec<(&'static str, u64)> {
    let before: Counters = t.obu.counters().clone();
    act(t);
    let pairs = t.obu.counters().iter().zip(before.iter());
    let changed = pairs.filter(|(now, then)| now.1 != then.1);
    let data = |(name, _): &(&str, u64)| !name.starts_with("ctl_") && !name.ends_with("_tx");
    changed.map(|(now, then)| (now.0, now.1 - then.1)).filter(data).collect()
}

#[test]
fn a_clients_frames_are_numbered_and_may_pass_fifteen_relays() {
    let mut t = relay();
    let sent = frame(CAMERA, SERVER);
    for _ in 0..3 {
        t.tap_frame(&sent);
    }
    let numbers: Vec<_> = t
        .data_sent()
        .into_iter()
        .map(|(to, data)| {
            let Data::Upstream(data) = data else { panic!("{data:?}") };
            let expected = ToUpstream {
                destination: id(RSU),
                source: id(US),
                hop_limit: 15,
                boot: 1,
                seq: data.seq,
                // As the client's IPv4 header asks for.
                again: false,
                priority: 3,
                payload: &sent,
            };
            assert_eq!((to, data), (A, expected));
            data.seq.0
        })
        .collect();
    assert_eq!(numbers, [numbers[0], numbers[0] + 1, numbers[0] + 2]);
    assert_eq!(t.obu.counters().tap_to_wire, 3);
}

#[test]
fn a_relay_changes_nothing_of_a_frame_but_what_is_left_of_its_way() {
    let mut t = relay();
    let payload = frame(CAMERA, SERVER);
    let counted = counts(&mut t, |t| {
        t.hear_data(C, up(&payload, 5));
        t.hear_data(A, down(next(C), &payload));
        t.hear_data(A, down(flood(NodeId::NONE, 3), &payload));
    });
    let expected = [
        (A, up(&payload, 4).into()),
        (C, down(last(C), &payload).into()),
        (C, down(flood(NodeId::NONE, 2), &payload).into()),
    ];
    assert_eq!(t.data_sent(), expected);
    assert_eq!(counted, [("wire_to_tap", 1), ("relayed", 2), ("flood_relayed", 1)]);
}

#[test]
fn a_frame_without_hops_left_is_not_relayed() {
    let payload = frame(SERVER, CAMERA);
    for (from, data) in [(C, Data::from(up(&payload, 0))), (A, down(last(C), &payload).into())] {
        let mut t = relay();
        assert_eq!(counts(&mut t, |t| t.hear_data(from, data)), [("drop_hop_limit", 1)]);
        assert_eq!(t.data_sent(), []);
    }
    // What is for everybody is for us as well.
    let mut t = relay();
    let flood = down(flood(NodeId::NONE, 0), &payload);
    let counted = counts(&mut t, |t| t.hear_data(A, flood));
    assert_eq!(counted, [("wire_to_tap", 1), ("drop_hop_limit", 1)]);
    assert_eq!((t.taps, t.data_sent()), (1, vec![]));
}

#[test]
fn a_flood_goes_on_by_broadcast_to_several_and_by_unicast_to_one() {
    let payload = frame(SERVER, Mac::BROADCAST);
    let sent_to = |behind_us: &[Mac], except: NodeId| {
        let mut t = Talk::settled_behind(A);
        for obu in behind_us {
            t.hear(t.now, *obu, Heard::Reply { origin: *obu, seq: 1, hops: 0 });
        }
        t.clear();
        t.hear_data(A, down(flood(except, 5), &payload));
        t.sent_to()
    };
    assert_eq!(sent_to(&[], NodeId::NONE), []);
    assert_eq!(sent_to(&[C], NodeId::NONE), [C]);
    // Others may be behind whoever it came from, which drops it.
    assert_eq!(sent_to(&[C], id(C)), [C]);
    assert_eq!(sent_to(&[B, C], NodeId::NONE), [Mac::BROADCAST]);
    assert_eq!(sent_to(&[B, C], id(B)), [Mac::BROADCAST]);
}

#[test]
fn our_own_frames_coming_back_are_dropped() {
    let payload = frame(CAMERA, SERVER);
    let mut t = relay();
    let ours = ToUpstream { source: id(US), ..up(&payload, 5) };
    assert_eq!(counts(&mut t, |t| t.hear_data(C, ours)), [("drop_reflected", 1)]);
    let for_us = ToUpstream { destination: id(US), ..up(&payload, 5) };
    assert_eq!(counts(&mut t, |t| t.hear_data(C, for_us)), [("drop_reflected", 1)]);
    assert_eq!(t.data_sent(), []);
}

#[test]
fn a_frame_for_somebody_unknown_below_has_no_route_and_never_goes_back() {
    let payload = frame(SERVER, CAMERA);
    let mut t = relay();
    let for_b = down(next(B), &payload);
    assert_eq!(counts(&mut t, |t| t.hear_data(A, for_b)), [("drop_no_route", 1)]);
    let for_c = down(next(C), &payload);
    assert_eq!(counts(&mut t, |t| t.hear_data(C, for_c)), [("drop_no_route", 1)]);
    assert_eq!(t.data_sent(), []);
}

#[test]
fn a_frame_between_two_clients_on_the_tap_side_stays_there() {
    let mut t = relay();
    t.tap(CAMERA, Mac::BROADCAST);
    t.tap(SERVER, Mac::BROADCAST);
    t.clear();
    assert_eq!(counts(&mut t, |t| t.tap_frame(&frame(CAMERA, SERVER))), [("drop_reflected", 1)]);
    assert_eq!(t.data_sent(), []);
    t.tap(CAMERA, Mac::BROADCAST);
    assert_eq!(t.data_sent_to(), [A], "what is for everybody goes up all the same");
}

#[test]
fn a_long_frame_goes_in_fragments_and_what_eight_do_not_carry_is_dropped() {
    let mut t = relay();
    t.set_mtu(600);
    t.clear();
    let longest = 600 - 22;
    let mut fits = frame(CAMERA, SERVER);
    fits.resize(longest, 0);
    assert_eq!(counts(&mut t, |t| t.tap_frame(&fits)), [("tap_to_wire", 1)]);
    fits.push(0);
    let in_two = [("tap_to_wire", 1), ("fragmented", 1)];
    assert_eq!(counts(&mut t, |t| t.tap_frame(&fits)), in_two);
    fits.resize(8 * (600 - 12) - 22 + 1, 0);
    assert_eq!(counts(&mut t, |t| t.tap_frame(&fits)), [("drop_oversize", 1)]);
    assert_eq!(counts(&mut t, |t| t.hear_data(C, up(&fits, 5))), [("drop_oversize", 1)]);
    assert_eq!(t.data_sent().len(), 1);
}

/// An IPv4 packet of so many bytes that may not be fragmented, from a camera to a server.
fn packet(len: u16) -> Vec<u8> {
    let mut frame = [&SERVER.0[..], &CAMERA.0, &[0x08, 0x00, 0x45, 0]].concat();
    frame.extend_from_slice(&len.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.resize(14 + usize::from(len), 0);
    frame
}

#[test]
fn who_sends_what_eight_fragments_do_not_carry_is_told_and_the_operator_once() {
    let mut t = relay();
    t.set_mtu(600);
    t.clear();
    t.events();
    let most = 8 * (600 - 12) - 68;
    // With room for a VLAN tag, and for the longest way from the RSU.
    assert_eq!(counts(&mut t, |t| t.tap_frame(&packet(most + 4)))[1], ("fragmented", 1));
    let told = [("too_big_told", 1)];
    assert_eq!(counts(&mut t, |t| t.tap_frame(&packet(most + 5))), told);
    assert_eq!((t.taps, t.events()), (1, vec![]), "its sender knows what to do");
    // A relay has no way to tell, and who may have its packets fragmented would not listen.
    let mut long = packet(most + 33);
    assert_eq!(counts(&mut t, |t| t.hear_data(C, up(&long, 5))), [("drop_oversize", 1)]);
    long[20] = 0;
    assert_eq!(counts(&mut t, |t| t.tap_frame(&long)), [("drop_oversize", 1)]);
    let (len, most) = (long.len(), 14 + usize::from(most) + 32);
    let limit = Limit::Fragments;
    assert_eq!(t.events(), [Event::TooLong(TooLong { from: CAMERA, len, most, limit })]);
    assert_eq!((t.taps, t.events()), (1, vec![]));
}

#[test]
fn with_path_mtu_discovery_a_packet_takes_one_frame_or_its_sender_hears_of_it() {
    let mut t = Talk::with(Settings { pmtu_discovery: true, ..Settings::default() });
    t.settle(A, 1);
    t.clear();
    assert_eq!(counts(&mut t, |t| t.tap_frame(&packet(1452))), [("tap_to_wire", 1)]);
    assert_eq!(counts(&mut t, |t| t.tap_frame(&packet(1453))), [("too_big_told", 1)]);
    assert_eq!((t.taps, t.data_sent().len()), (1, 1));
    let mut may_be_fragmented = packet(1465);
    may_be_fragmented[20] = 0;
    let carried = [("tap_to_wire", 1), ("fragmented", 1)];
    assert_eq!(counts(&mut t, |t| t.tap_frame(&may_be_fragmented)), carried);
    // Whoever has had his answers gets his packets carried.
    for _ in 0..60 {
        t.tap_frame(&packet(1500));
    }
    assert_eq!((t.taps, t.obu.counters().fragmented), (50, 1 + 11));
}

#[test]
fn a_sender_hears_what_the_smallest_radio_on_the_way_to_the_rsu_carries() {
    let mut t = Talk::with(Settings { pmtu_discovery: true, ..Settings::default() });
    t.settle(A, 1);
    // The upstream says in its heartbeat that a radio on its way is smaller than ours.
    t.mtu = 1000;
    t.beat(A, 1);
    t.clear();
    assert_eq!(counts(&mut t, |t| t.tap_frame(&packet(1000 - 52))), [("tap_to_wire", 1)]);
    assert_eq!(counts(&mut t, |t| t.tap_frame(&packet(1000 - 52 + 5))), [("too_big_told", 1)]);
    assert_eq!((t.taps, t.data_sent().len()), (1, 1));
}

#[test]
fn what_comes_in_fragments_is_delivered_and_passed_on_whole() {
    let mut t = relay();
    let payload = [frame(SERVER, CAMERA), vec![0x5a; 1200]].concat();
    let (mut out, mut counters) = (Replies::new(), Counters::default());
    let mut radio = Radio::new(id(RSU), Boot(7), A, ETHERTYPE_DEFAULT, 600);
    for (destination, seq) in [(last(US), 1), (next(C), 2)] {
        let data = ToDownstream { seq: Seq(seq), ..down(destination, &payload) };
        radio.data(NextHop { mac: US, mtu: 1500 }, data, &mut out, &mut counters);
    }
    for fragment in out.take() {
        let ReplyType::WireFlat(flat) = fragment else { panic!("not for the radio") };
        t.hear_frame(&flat);
    }
    assert_eq!((t.obu.counters().reassembled, t.taps, t.data_sent_to()), (2, 1, vec![C]));
    let (_, Data::Downstream(sent)) = t.data_sent()[0] else { panic!("not downwards") };
    assert_eq!((sent.payload, sent.destination), (&payload[..], last(C)));
}

#[test]
fn clients_beyond_what_a_vehicle_announces_push_out_others_and_are_counted() {
    let mut t = relay();
    let clients = (0..600_u16).map(|n| Mac([2, 0, 0, 7, (n >> 8) as u8, n as u8]));
    let counted =
        counts(&mut t, |t| clients.for_each(|client| t.tap_frame(&frame(client, SERVER))));
    assert_eq!(counted, [("tap_to_wire", 600), ("evicted", 600 - 512)]);
}

#[test]
fn a_frame_no_bridge_forwards_is_dropped_on_either_side() {
    let pause = frame(CAMERA, Mac([0x01, 0x80, 0xc2, 0, 0, 1]));
    let mut t = relay();
    assert_eq!(counts(&mut t, |t| t.tap_frame(&pause)), [("drop_inner", 1)]);
    let for_us = down(last(US), &pause);
    assert_eq!(counts(&mut t, |t| t.hear_data(A, for_us)), [("drop_inner", 1)]);
    assert_eq!((t.data_sent(), t.taps), (vec![], 0));
}

#[test]
fn a_clients_own_frame_coming_back_is_dropped_and_one_from_elsewhere_means_that_it_moved() {
    let mut t = Talk::settled_behind(A);
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 60);
    assert_eq!(t.sent_announcement().2, [Client { vlan: 0, mac: CAMERA }]);
    t.acknowledge(A);
    let moved = frame(CAMERA, SERVER);
    let back = down(last(US), &moved);
    assert_eq!(counts(&mut t, |t| t.hear_data(A, back)), [("drop_reflected", 1)]);
    // More than two seconds later it is not an echo any more.
    for _ in 0..22 {
        t.pass(t.now + 100);
        t.beat(A, 1);
        t.answer_probes_of(A);
    }
    t.clear();
    let later = ToDownstream { seq: Seq(100), ..back };
    assert_eq!(counts(&mut t, |t| t.hear_data(A, later)), [("wire_to_tap", 1)]);
    t.pass(t.now + 60);
    assert_eq!(t.sent_announcement().2, []);
}

#[test]
fn without_a_way_a_clients_frame_is_counted_as_lost() {
    let mut t = Talk::new();
    let frame = frame(CAMERA, SERVER);
    assert_eq!(counts(&mut t, |t| t.tap_frame(&frame)), [("drop_no_route", 1)]);
}

#[test]
fn whoever_sends_through_us_in_vain_is_told_so_within_a_budget() {
    let payload = frame(CAMERA, SERVER);
    let mut t = Talk::settled_behind(A);
    let elsewhere = ToUpstream { destination: id(OTHER_RSU), ..up(&payload, 5) };
    assert_eq!(counts(&mut t, |t| t.hear_data(C, elsewhere)), [("drop_no_route", 1)]);
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    t.pass(t.now + 100);
    t.clear();
    let counted = counts(&mut t, |t| {
        for _ in 0..100 {
            t.hear_data(C, up(&payload, 5));
        }
    });
    let told = t.withdrawals() as u64;
    assert!((1..20).contains(&told), "{told}");
    assert_eq!(counted, [("drop_no_route", 100), ("drop_rate_limit", 100 - told)]);
}

#[test]
fn while_quiet_after_its_start_it_relays_nothing() {
    let payload = frame(CAMERA, SERVER);
    let mut t = Talk::new();
    t.hear(5, RSU, Heard::heartbeat(1, 0));
    let nonce = t.sent_probe(RSU);
    t.hear(7, RSU, Heard::answer(nonce, 1, 0));
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1), "its own clients have a way");
    assert_eq!(counts(&mut t, |t| t.hear_data(C, up(&payload, 5))), [("drop_quiet", 1)]);
}
