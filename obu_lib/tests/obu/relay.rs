//! What an OBU does for those behind it: the RSU they go to learns its upstream, and what comes
//! down finds its way.

use node_lib::control::node::{LinkEvent, Node};
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::data::{Data, Destination, ToDownstream, ToUpstream};
use node_lib::messages::way::Next;
use node_lib::messages::{Label, Message, PacketType, Way};
use node_lib::{Mac, NodeId, Seq};

use crate::talk::heard::reply;
use crate::talk::{
    A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, all_but, attached, id, last, next,
};

const D: Mac = Mac([2, 0, 0, 0, 0, 0x0d]);
const E: Mac = Mac([2, 0, 0, 0, 0, 0x0e]);

/// Attached through A, and known; B is the way to the other RSU, which is too far to be the next
/// one.
fn between() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.prove_towards(OTHER_RSU, B, 4);
    t.acknowledge_all();
    t.clear();
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    t
}

/// C, whose upstream we are, says a word to the other RSU.
fn says(t: &mut Talk, seq: u32, standby: bool) {
    t.hear_packet(C, US, reply(C, OTHER_RSU, seq, 0, standby).into());
}

/// So long, with heartbeats of both RSUs and answers to all questions. What was sent is kept.
fn live(t: &mut Talk, ms: u64) {
    live_at(t, ms, [(RSU, A, 1), (OTHER_RSU, B, 4)]);
}

/// The same, with heartbeats of these RSUs by these neighbours, so many hops from them.
fn live_at<const N: usize>(t: &mut Talk, ms: u64, heard: [(Mac, Mac, u8); N]) {
    let until = t.now + ms;
    while t.now < until {
        t.pass((t.now / 10 + 1) * 10);
        for (rsu, who, hops) in heard {
            t.rsu = rsu;
            if t.now.is_multiple_of(100) {
                t.seq += u32::from(rsu == RSU);
                t.hear(t.now, who, Heard::heartbeat(t.seq, hops));
            }
            if let Some(nonce) = t.last_probe(who) {
                t.hear(t.now, who, Heard::answer(nonce, t.seq, hops));
                t.forget_probes();
            }
        }
        t.rsu = RSU;
    }
}

/// What we said to the other RSU of ourselves.
fn said_there(t: &Talk) -> Vec<HeartbeatReply> {
    let is_ours = |r: &HeartbeatReply| (r.rsu, r.origin) == (id(OTHER_RSU), id(US));
    t.replies_sent().into_iter().filter(is_ours).collect()
}

#[test]
fn a_relay_attached_elsewhere_says_its_upstream_before_it_passes_a_childs_word_on() {
    let mut t = between();
    says(&mut t, 1, false);
    let [ours, childs] = t.replies_sent()[..] else { panic!("{:?}", t.replies_sent()) };
    assert_eq!(t.sent_to(), [B, B]);
    assert_eq!((ours.rsu, ours.origin, ours.via), (id(OTHER_RSU), id(US), id(B)));
    // Nothing is sent this way yet: it need not be acknowledged.
    assert!(ours.standby && !ours.acknowledge && !ours.goodbye, "{ours:?}");
    assert_eq!(childs, HeartbeatReply { hops: 1, ..reply(C, OTHER_RSU, 1, 0, false) });
    assert_eq!(t.announcements(), 0, "our clients are not behind it");
}

#[test]
fn where_frames_go_a_relay_repeats_it_until_it_is_acknowledged_and_says_every_other_upstream() {
    for status in [AckStatus::Accepted, AckStatus::Known] {
        let mut t = between();
        says(&mut t, 1, false);
        t.rsu = OTHER_RSU;
        t.down(B, next(C), 6);
        t.rsu = RSU;
        t.pass(t.now + 1);
        let first = t.words()[0];
        live(&mut t, 400);
        assert!(t.words().len() > 1);
        t.answer(B, first, status);
        t.clear();
        live(&mut t, 500);
        assert_eq!(t.words(), []);
        // B has no way any more; E has.
        t.rsu = OTHER_RSU;
        t.hear(t.now, E, Heard::heartbeat(t.seq, 4));
        t.down(B, next(C), 7);
        t.rsu = RSU;
        says(&mut t, 2, false);
        t.clear();
        t.hear_packet(B, US, withdrawal_of_the_other(B));
        for _ in 0..200 {
            t.pass(t.now + 1);
            t.rsu = OTHER_RSU;
            if let Some(nonce) = t.last_probe(E) {
                t.hear(t.now, E, Heard::answer(nonce, t.seq + 1, 4));
                t.forget_probes();
            }
            t.rsu = RSU;
        }
        assert_eq!(t.obu.upstream_for(id(OTHER_RSU)), Some(id(E)));
        let word = t.words()[0];
        assert_eq!((word.to, word.rsu, word.via), (E, OTHER_RSU, E));
        assert!(word.standby && !word.is_set);
    }
}

/// This neighbour has no way to the other RSU any more.
fn withdrawal_of_the_other(from: Mac) -> PacketType<'static> {
    use node_lib::Boot;
    use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
    let (sender, sender_boot, goodbye) = (id(from), Boot(1), false);
    Withdrawal { sender, sender_boot, goodbye, rsus: NodeIds::parse(&OTHER_RSU.0).unwrap() }.into()
}

#[test]
fn a_relay_goes_on_saying_it_while_the_child_is_there_and_stops_when_it_is_gone() {
    let mut t = between();
    for seq in 1..=20 {
        says(&mut t, seq, false);
        t.acknowledge_all_there();
        live(&mut t, 1000);
    }
    let said = said_there(&t);
    // About every one and a half seconds.
    assert!((11..=20).contains(&said.len()), "{} in 20 s", said.len());
    assert!(said.iter().all(|reply| reply.standby && reply.via == id(B)));
    assert!(said.iter().all(|reply| !reply.acknowledge), "nothing is sent this way");
    live(&mut t, 5000);
    t.clear();
    live(&mut t, 20_000);
    assert_eq!(said_there(&t), []);
    // The RSU has forgotten us by now.
    says(&mut t, 21, false);
    assert_eq!(said_there(&t).len(), 1);
}

/// Nothing is sent to it from there. Were such words reason to say one's own, each would make
/// another relay say one.
#[test]
fn a_relay_whose_only_child_stands_by_says_nothing_of_itself_until_that_one_comes() {
    let mut t = between();
    for seq in 1..=10 {
        says(&mut t, seq, true);
        live(&mut t, 1300);
    }
    assert_eq!(said_there(&t), []);
    says(&mut t, 11, false);
    assert_eq!(said_there(&t).len(), 1);
}

/// C, whose upstream we are, says a word that the other RSU is to acknowledge.
fn asks(t: &mut Talk, seq: u32, standby: bool) {
    let word = HeartbeatReply { acknowledge: true, ..reply(C, OTHER_RSU, seq, 0, standby) };
    t.hear_packet(C, US, word.into());
}

/// It is attached elsewhere as well, and frames of those behind it go this way.
#[test]
fn a_relay_says_its_upstream_when_a_child_that_stands_by_wants_an_answer() {
    let mut t = between();
    asks(&mut t, 1, true);
    assert_eq!(said_there(&t).len(), 1);
}

#[test]
fn what_a_relay_only_mentioned_it_mentions_again_when_a_child_wants_an_answer() {
    let mut t = between();
    says(&mut t, 1, false);
    t.clear();
    says(&mut t, 2, false);
    assert_eq!(said_there(&t), [], "that is said every now and then");
    asks(&mut t, 3, false);
    assert_eq!(said_there(&t).len(), 1, "it may have been lost");
}

/// It stands by at the other RSU, and its way there has just changed from B to E.
fn between_with_standby() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.prove_towards(OTHER_RSU, B, 1);
    live_at(&mut t, 1000, [(RSU, A, 1), (OTHER_RSU, B, 1), (OTHER_RSU, E, 1)]);
    assert_eq!(t.announced().last(), Some(&(B, OTHER_RSU, 1, true)), "we may go there next");
    t.acknowledge_all();
    t.hear_packet(B, US, withdrawal_of_the_other(B));
    live_at(&mut t, 200, [(RSU, A, 1), (OTHER_RSU, E, 1)]);
    assert_eq!(t.obu.upstream_for(id(OTHER_RSU)), Some(id(E)));
    assert_eq!(said_there(&t), [], "nothing goes this way: the next reply says it");
    t.clear();
    t
}

#[test]
fn who_stands_by_mentions_its_new_upstream_in_the_next_reply() {
    let mut t = between_with_standby();
    live_at(&mut t, 2500, [(RSU, A, 1), (OTHER_RSU, E, 1)]);
    let said: Vec<_> = said_there(&t).iter().map(|reply| (reply.via, reply.acknowledge)).collect();
    assert!(!said.is_empty() && said.iter().all(|said| *said == (id(E), false)), "{said:?}");
}

#[test]
fn a_relay_reminds_the_rsu_its_child_asks_and_not_the_one_it_stands_by_at() {
    const THIRD: Mac = Mac([2, 0, 0, 0, 0, 0xfc]);
    let mut t = between_with_standby();
    t.prove_towards(THIRD, D, 4);
    t.acknowledge_all();
    let mut said_after = |seq, acknowledge| {
        t.clear();
        let word = HeartbeatReply { acknowledge, ..reply(C, THIRD, seq, 0, false) };
        t.hear_packet(C, US, word.into());
        let ours = t.replies_sent().into_iter().filter(|reply| reply.origin == id(US));
        ours.map(|reply| (reply.rsu, reply.via)).collect::<Vec<_>>()
    };
    let mentioned = [(id(THIRD), id(D))];
    assert_eq!(said_after(1, false), mentioned);
    assert_eq!(said_after(2, false), [], "that is said every now and then");
    assert_eq!(said_after(3, true), mentioned, "it may have been lost");
}

#[test]
fn a_relay_that_stands_by_mentions_its_new_upstream_again_as_well() {
    let mut t = between_with_standby();
    asks(&mut t, 1, false);
    let said: Vec<_> = said_there(&t).iter().map(|reply| (reply.via, reply.standby)).collect();
    assert_eq!(said, [(id(E), true)]);
}

#[test]
fn an_answer_that_comes_another_way_does_not_say_that_the_rsu_knows_the_new_upstream() {
    for (via, words) in [(B, 1), (E, 0)] {
        let mut t = between_with_standby();
        t.rsu = OTHER_RSU;
        t.answer_passes(via, C);
        t.rsu = RSU;
        asks(&mut t, 1, false);
        assert_eq!(said_there(&t).len(), words, "it came through {via}");
    }
}

#[test]
fn an_rsu_that_started_again_is_told_by_the_relay_too() {
    let mut t = between();
    says(&mut t, 1, false);
    t.acknowledge_all_there();
    t.clear();
    t.rsu = OTHER_RSU;
    for (seq, words) in [(1, 0), (2, 1)] {
        t.hear(t.now + 100, B, Heard::Heartbeat { boot: 2, seq, hops: 4, via: None });
        let there = said_there(&t);
        assert_eq!(there.len(), words);
        assert!(there.iter().all(|reply| reply.via == id(B) && reply.standby));
    }
}

/// Behind A; C and D are behind us.
fn relay() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    for child in [C, D] {
        t.hear(t.now, child, Heard::Reply { origin: child, seq: 1, hops: 0 });
    }
    t.clear();
    t
}

fn data<'a>(destination: Destination<'a>, payload: &'a [u8]) -> ToDownstream<'a> {
    ToDownstream { destination, source: id(RSU), boot: 7, seq: Seq(9), priority: 0, payload }
}

fn frame(len: usize) -> Vec<u8> {
    let mut frame = [&CAMERA.0[..], &SERVER.0, &[0x08, 0x00]].concat();
    frame.resize(len, 0x5a);
    frame
}

/// Whom this goes on to when it comes from there, and what is left of its way.
fn goes_to(t: &mut Talk, from: Mac, obu: Mac, labels: &[Mac]) -> Vec<(Mac, Vec<Label>)> {
    let labels: Vec<_> = labels.iter().map(|relay| Label::of(id(*relay)).0).collect();
    let way = Way::new(labels.len() as u8 + 1, &labels).unwrap();
    t.clear();
    t.hear_data(from, data(Destination::Node { id: id(obu), way }, &frame(60)));
    let left = |data| match data {
        Data::Downstream(ToDownstream {
            destination: Destination::Node { mut way, .. }, ..
        }) => {
            let mut labels = Vec::new();
            while let Some((Next::Labelled(label), rest)) = way.next() {
                labels.push(label);
                way = rest;
            }
            labels
        }
        other => panic!("{other:?}"),
    };
    t.data_sent().into_iter().map(|(to, data)| (to, left(data))).collect()
}

#[test]
fn a_relay_sends_to_the_child_whose_label_comes_first_and_takes_that_off() {
    let mut t = relay();
    let labels = |of: &[Mac]| of.iter().map(|relay| Label::of(id(*relay))).collect::<Vec<_>>();
    assert_eq!(goes_to(&mut t, A, E, &[C, B, A]), [(C, labels(&[B, A]))]);
    assert_eq!(goes_to(&mut t, A, E, &[D, B]), [(D, labels(&[B]))]);
    assert_eq!(goes_to(&mut t, A, E, &[C]), [(C, vec![])]);
    assert_eq!(goes_to(&mut t, A, D, &[]), [(D, vec![])], "the child it is for");
    assert_eq!(t.obu.counters().drop_no_route, 0);
    assert_eq!(goes_to(&mut t, A, C, &[B]), [], "a child further down on another way, as it says");
    assert_eq!(goes_to(&mut t, A, E, &[]), []);
    assert_eq!(t.obu.counters().drop_no_route, 2);
}

#[test]
fn what_comes_down_never_goes_back_to_where_it_came_from() {
    let mut t = relay();
    assert_eq!(goes_to(&mut t, C, E, &[C]), []);
    assert_eq!(goes_to(&mut t, C, C, &[]), []);
    assert_eq!(t.obu.counters().drop_no_route, 2);
    t.clear();
    t.hear_data(C, data(all_but(NodeId::NONE, 4), &frame(60)));
    assert_eq!(t.data_sent_to(), [D], "of two children one is left");
}

#[test]
fn who_is_behind_a_child_is_no_child() {
    let mut t = relay();
    t.hear(t.now, C, Heard::Reply { origin: E, seq: 1, hops: 1 });
    assert_eq!(goes_to(&mut t, A, E, &[]), []);
    assert_eq!(goes_to(&mut t, A, B, &[E]), []);
    assert_eq!(goes_to(&mut t, A, E, &[C]), [(C, vec![])]);
}

#[test]
fn what_a_third_rsu_sends_for_a_child_of_ours_goes_nowhere() {
    let mut t = relay();
    let foreign = ToDownstream { source: id(OTHER_RSU), ..data(next(C), &[0; 60]) };
    t.hear_data(A, foreign);
    assert_eq!((t.data_sent_to(), t.obu.counters().drop_no_route), (vec![], 1));
}

/// Another node with the same label as this one.
fn namesake_of(node: Mac) -> Mac {
    let all = (0..=u8::MAX).flat_map(|a| (0..=u8::MAX).map(move |b| (a, b)));
    let mut all = all.flat_map(|(a, b)| [0, 1, 2, 3].map(|c| Mac([2, 0, 9, c, a, b])));
    all.find(|other| Label::of(id(*other)) == Label::of(id(node))).expect("one in 65,536")
}

#[test]
fn both_of_two_children_with_one_label_get_what_is_for_one_of_them_and_the_wrong_one_drops_it() {
    let mut t = relay();
    let namesake = namesake_of(C);
    t.hear(t.now + 1, namesake, Heard::Reply { origin: namesake, seq: 1, hops: 0 });
    assert_eq!(goes_to(&mut t, A, E, &[C]), [(C, vec![]), (namesake, vec![])]);
    assert_eq!(goes_to(&mut t, A, C, &[]), [(C, vec![])], "by their names they are told apart");
    // We are the wrong one here: E is behind the other.
    let counted = t.obu.counters().drop_no_route;
    assert_eq!(goes_to(&mut t, A, E, &[]), []);
    assert_eq!(t.obu.counters().drop_no_route, counted + 1);
    assert_eq!(t.taps, 0);
}

#[test]
fn a_child_that_speaks_from_two_addresses_is_sent_to_at_both() {
    let mut t = relay();
    t.hear(t.now + 1, E, Heard::Reply { origin: C, seq: 2, hops: 0 });
    assert_eq!(goes_to(&mut t, A, C, &[]), [(C, vec![]), (E, vec![])]);
    // Somebody who speaks for it from a third takes the place of the second.
    t.hear(t.now + 1, B, Heard::Reply { origin: C, seq: 3, hops: 0 });
    assert_eq!(goes_to(&mut t, A, C, &[]), [(C, vec![]), (B, vec![])]);
}

#[test]
fn a_word_of_another_from_a_childs_address_does_not_take_the_childs_place() {
    let mut t = relay();
    // C is heard as itself.
    t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
    t.hear(t.now, C, Heard::Reply { origin: E, seq: 1, hops: 0 });
    assert_eq!(goes_to(&mut t, A, C, &[]), [(C, vec![])]);
    assert_eq!(goes_to(&mut t, A, E, &[]), []);
    // Who is not known as another may be anybody.
    t.hear(t.now, B, Heard::Reply { origin: E, seq: 1, hops: 0 });
    assert_eq!(goes_to(&mut t, A, E, &[]), [(B, vec![])]);
}

#[test]
fn an_rsu_that_is_only_relayed_to_hears_of_another_address_at_once() {
    let mut t = between();
    says(&mut t, 1, false);
    live(&mut t, 200);
    t.clear();
    let mac = Mac([2, 0, 0, 0, 7, 7]);
    t.link(LinkEvent::AddressChanged(mac));
    t.pass(t.now + 2);
    let is_there = |r: &HeartbeatReply| (r.rsu, r.via) == (id(OTHER_RSU), id(B));
    assert!(said_there(&t).iter().any(is_there), "{:?}", t.replies_sent());
}

/// Bytes of the data frames sent since, without their Ethernet headers, and to whom.
fn sizes(t: &Talk) -> Vec<(Mac, usize)> {
    let is_data =
        |flat: &[u8]| !matches!(Message::try_from(flat).unwrap().packet, PacketType::Control(_));
    let sent = t.sent.iter().filter(|(_, flat)| is_data(flat));
    sent.map(|(to, flat)| (*to, flat.len() - 14)).collect()
}

#[test]
fn a_frame_longer_than_a_childs_radio_carries_goes_to_it_in_fragments() {
    let mut t = relay();
    let small = HeartbeatReply { mtu: 600, ..reply(C, RSU, 2, 0, false) };
    t.hear_packet(C, US, small.into());
    let long = frame(1200);
    for (to, sent_to) in [(next(C), C), (all_but(NodeId::NONE, 4), Mac::BROADCAST)] {
        t.clear();
        t.hear_data(A, ToDownstream { seq: Seq(10 + t.taps as u32), ..data(to, &long) });
        let sent = sizes(&t);
        assert!(sent.len() == 3, "{sent:?}");
        assert!(sent.iter().all(|(to, len)| *to == sent_to && *len <= 600), "{sent:?}");
    }
    t.clear();
    t.hear_data(A, data(next(D), &long));
    assert_eq!(sizes(&t), [(D, 1222)], "the other one's carries it");
    // A child that has a larger radio now.
    t.hear_packet(C, US, reply(C, RSU, 3, 0, false).into());
    t.clear();
    t.hear_data(A, data(next(C), &long));
    assert_eq!(sizes(&t), [(C, 1222)]);
}

#[test]
fn a_frame_longer_than_the_upstreams_radio_carries_goes_to_it_in_fragments() {
    for own in [true, false] {
        let mut t = relay();
        t.mtu = 600;
        t.beat(A, 1);
        t.clear();
        let long = frame(1200);
        if own {
            t.tap_frame(&long);
        } else {
            let (destination, source) = (id(RSU), id(C));
            let (hop_limit, boot, seq, priority) = (5, 1, Seq(1), 0);
            let payload = &long[..];
            t.hear_data(
                C,
                ToUpstream {
                    destination,
                    source,
                    hop_limit,
                    boot,
                    seq,
                    again: false,
                    priority,
                    payload,
                },
            );
        }
        let sent = sizes(&t);
        assert!(sent.len() == 3, "{sent:?}");
        assert!(sent.iter().all(|(to, len)| *to == A && *len <= 600), "{sent:?}");
    }
}

#[test]
fn whatever_a_neighbour_says_of_its_radio_last_holds() {
    let in_fragments = |say: fn(&mut Talk)| {
        let mut t = relay();
        t.mtu = 600;
        // It answers nothing meanwhile.
        t.is_deaf = true;
        say(&mut t);
        t.clear();
        t.tap_frame(&frame(1200));
        let sent = sizes(&t);
        assert!(sent.iter().all(|(to, _)| *to == A), "{sent:?}");
        sent.len() == 3 && sent.iter().all(|(_, len)| *len <= 600)
    };
    assert!(!in_fragments(|_| {}));
    assert!(in_fragments(|t| assert_eq!(t.beat(A, 1), 5)));
    assert!(in_fragments(|t| t.hear(t.now, A, Heard::answer(0, t.seq, 1))));
}

/// A heartbeat says what passes all radios between the neighbour and the RSU, a question only what
/// its own takes.
#[test]
fn a_question_of_the_upstream_does_not_make_the_way_beyond_it_wider() {
    let mut t = Talk::settled_behind(A);
    t.mtu = 600;
    t.beat(A, 1);
    t.pass(t.now + 60);
    t.acknowledge_all();
    t.clear();
    for _ in 0..5 {
        t.mtu = 1500;
        t.hear(t.now, A, Heard::Probe { boot: 1 });
        t.pass(t.now + 20);
        t.mtu = 600;
        t.beat(A, 1);
        t.pass(t.now + 80);
    }
    assert_eq!(t.announcements(), 0, "its set still fits what passes");
    t.mtu = 1500;
    t.hear(t.now, A, Heard::Probe { boot: 1 });
    t.clear();
    t.tap_frame(&frame(1200));
    assert_eq!(sizes(&t).len(), 3, "no radio of the way has to cut it up again");
    // Its radio, or one beyond it, has another MTU.
    t.beat(A, 1);
    t.clear();
    t.tap_frame(&frame(1200));
    assert_eq!(sizes(&t), [(A, 1222)]);
}

#[test]
fn a_neighbour_that_brings_two_rsus_past_other_radios_is_a_way_of_one_width_to_each() {
    let mut t = Talk::settled_behind(A);
    t.mtu = 600;
    t.beat(A, 1);
    t.pass(t.now + 60);
    t.acknowledge_all();
    t.clear();
    for seq in 1..10 {
        (t.rsu, t.mtu) = (OTHER_RSU, 1500);
        t.hear(t.now, A, Heard::heartbeat(seq, 4));
        t.pass(t.now + 20);
        (t.rsu, t.mtu) = (RSU, 600);
        t.beat(A, 1);
        t.pass(t.now + 80);
        t.acknowledge_all();
    }
    assert_eq!(t.announcements(), 0, "its set still fits what passes");
}

#[test]
fn what_eight_fragments_of_the_neighbours_radio_do_not_carry_is_counted() {
    let mut t = relay();
    let small = HeartbeatReply { mtu: 120, ..reply(C, RSU, 2, 0, false) };
    t.hear_packet(C, US, small.into());
    t.clear();
    t.hear_data(A, data(next(C), &frame(8 * (120 - 12) - 22)));
    assert_eq!((t.sent.len(), t.obu.counters().drop_oversize), (8, 0));
    t.clear();
    t.hear_data(A, data(next(C), &frame(8 * (120 - 12) - 22 + 1)));
    assert_eq!((t.sent.len(), t.obu.counters().drop_oversize), (0, 1));
}

#[test]
fn whoever_we_send_to_knows_the_mtu_of_our_radio() {
    let mut t = Talk::settled_behind(A);
    t.set_mtu(700);
    t.pass(t.now + 60);
    t.acknowledge_all();
    t.clear();
    while t.replies() == 0 {
        t.pass(t.now + 20);
        t.answer_probes_of(A);
        if t.now.is_multiple_of(100) {
            t.beat(A, 1);
        }
    }
    t.hear(t.now, C, Heard::ProbeFor { rsu: RSU });
    let said = t.mtus_said();
    for kind in ["Heartbeat", "HeartbeatReply", "ProbeAnswer"] {
        assert!(said.contains(&(kind, 700)), "{kind}: {said:?}");
    }
    assert!(said.iter().all(|(_, mtu)| *mtu == 700), "{said:?}");
}

#[test]
fn heartbeats_and_answers_say_the_smallest_mtu_of_the_way_and_words_our_own() {
    for (beyond, ours) in [(600, 1000), (1000, 600)] {
        let mut t = Talk::settled_behind(A);
        t.mtu = beyond;
        t.set_mtu(ours.into());
        t.beat(A, 1);
        t.pass(t.now + 60);
        t.acknowledge_all();
        t.clear();
        while t.replies() == 0 {
            t.pass(t.now + 20);
            t.answer_probes_of(A);
            if t.now.is_multiple_of(100) {
                t.beat(A, 1);
            }
        }
        t.hear(t.now, C, Heard::ProbeFor { rsu: RSU });
        t.tap(CAMERA, SERVER);
        // It falls silent, and is asked.
        t.pass(t.now + 200);
        let said = t.mtus_said();
        for kind in ["Heartbeat", "ProbeAnswer", "HeartbeatReply", "Announcement"] {
            let is_of_way = matches!(kind, "Heartbeat" | "ProbeAnswer");
            let mtu = if is_of_way { beyond.min(ours) } else { ours };
            let of_kind: Vec<_> = said.iter().filter(|(said, _)| *said == kind).collect();
            assert!(!of_kind.is_empty(), "{kind}");
            assert!(of_kind.iter().all(|said| said.1 == mtu), "{kind} {mtu}: {said:?}");
        }
    }
}

/// 682 OBUs share 16 replies in ten intervals, and are half as rare again on standby: no child is
/// silent for longer than 800 intervals, whatever it promises.
#[test]
fn a_child_that_promises_its_next_word_in_two_hours_is_forgotten_after_four_minutes() {
    let mut t = relay();
    t.hear_packet(
        C,
        US,
        HeartbeatReply { within_ds: u16::MAX, ..reply(C, RSU, 2, 0, false) }.into(),
    );
    let payload = frame(60);
    for second in 1..=241 {
        live(&mut t, 1000);
        t.clear();
        t.hear_data(A, ToDownstream { seq: Seq(10 + second), ..data(next(C), &payload) });
        let is_known = second < 240;
        assert_eq!(t.data_sent_to(), vec![C; usize::from(is_known)], "after {second} s");
    }
}

#[test]
fn what_is_for_us_goes_to_our_tap_and_no_further() {
    let mut t = relay();
    t.hear_data(A, data(last(US), &frame(60)));
    assert_eq!((t.taps, t.data_sent_to()), (1, vec![]));
}
