//! What an OBU does, told as a conversation: what it hears, what it answers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use std::ops::RangeInclusive;

use node_lib::control::event::{Cause, Event};
use node_lib::control::node::{LinkEvent, Node};
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::data::Data;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, NodeId, Seq};

use talk::{
    A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, all_but, attached, id, last, next,
};

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
fn a_silent_upstream_is_given_up_within_three_intervals_and_the_next_one_used() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    let seq = t.beat(A, 1);
    t.hear(t.now, B, Heard::heartbeat(seq, 1));
    t.prove(B, seq, 1);
    // From here on A says nothing, while B brings every heartbeat.
    let silent_from = t.now;
    t.events();
    while t.obu.attachment() == attached(RSU, A, 2) {
        t.pass(t.now + 5);
        assert!(t.now < silent_from + 300, "still trusted after three intervals");
        if (t.now - silent_from).is_multiple_of(100) {
            t.seq += 1;
            t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        }
        t.answer_probes_of(B);
    }
    assert!(t.now >= silent_from + 200, "given up after only {} ms", t.now - silent_from);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    let events = t.events();
    assert!(
        matches!(events[..], [Event::UpstreamChanged { cause: Cause::Dead, .. }, ..]),
        "{events:?}"
    );
}

/// Whoever restarts counts on it: it routes again after 3.5 intervals, and by then nobody may send
/// through it on the strength of what it said before.
#[test]
fn nobody_is_upstream_longer_than_three_intervals_after_its_last_word() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    // With frames to carry, A is watched closely.
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 60);
    t.acknowledge(A);
    let seq = t.beat(A, 1);
    t.hear(t.now, B, Heard::heartbeat(seq, 1));
    t.prove(B, seq, 1);
    // B speaks for the last time; A somewhat later, so that it is given up shortly before B would
    // be.
    let last = t.now + 10;
    t.pass(last);
    let seq = t.beat(A, 1);
    t.hear(last, B, Heard::heartbeat(seq, 1));
    t.hear(last + 65, A, Heard::heartbeat(seq, 1));
    t.pass(last + 295);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.pass(last + 300);
    assert_eq!(t.obu.attachment(), None);
}

#[test]
fn an_upstream_that_answers_is_kept_though_some_heartbeats_are_lost() {
    let mut t = Talk::settled_behind(A);
    for step in 0..300 {
        t.pass(t.now + 10);
        t.answer_probes_of(A);
        if step % 100 == 99 {
            t.beat(A, 1);
        }
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn an_upstream_that_answers_but_brings_no_news_leads_nowhere() {
    let mut t = Talk::settled_behind(A);
    for _ in 0..300 {
        t.pass(t.now + 10);
        t.answer_probes_of(A);
    }
    assert_eq!((t.obu.attachment(), t.obu.counters().upstream_dead), (None, 1));
}

#[test]
fn data_that_may_not_arrive_makes_it_ask_even_while_heartbeats_come() {
    let mut t = Talk::settled_behind(A);
    t.is_deaf = true;
    let start = t.now;
    // A is heard, but hears nothing: a one-way link.
    while t.now < start + 300 {
        t.tap(CAMERA, Mac::BROADCAST);
        if (t.now - start).is_multiple_of(100) {
            t.beat(A, 1);
        }
        t.pass(t.now + 10);
    }
    assert_eq!(t.obu.attachment(), None);
}

/// A client spoke, and then the process stood still: nobody asked whether the frame arrived, and
/// nobody heard what the upstream said. Both come late, in whatever order, and neither is the
/// upstream's fault.
#[test]
fn who_stood_still_judges_nobody_before_it_has_heard_what_waited() {
    for span in [200, 500, 1500, 2500, 8000] {
        let mut t = Talk::settled_behind(A);
        t.beat(A, 1);
        t.tap(CAMERA, Mac::BROADCAST);
        t.pass(t.now + 10);
        // Of another neighbour first.
        t.stall_and_hear(t.now + span, B, Heard::heartbeat(t.seq + 1, 2));
        assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "{span}");
        t.stall_and_hear(t.now, A, Heard::heartbeat(t.seq + 1, 1));
        t.seq += 1;
        t.pass(t.now + 1);
        let mut wakes = 0;
        for _ in 0..6 {
            t.answer_probes_of(A);
            wakes += t.wakes(t.now + 10);
        }
        assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "{span}");
        assert!(wakes < 50, "{wakes} times in 60 ms");
        // From then on as ever: a silent one is dead.
        t.pass(t.now + 400);
        assert_eq!(t.obu.attachment().filter(|to| to.upstream == id(A)), None, "{span}");
    }
}

#[test]
fn after_a_stall_an_idle_obu_of_a_crowd_does_not_spin() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    for _ in 0..20 {
        t.pass(t.now + 100);
        t.beat(A, 1);
        t.answer_probes_of(A);
    }
    // Late: it asks once, and waits for the end.
    t.pass(t.now + 285);
    // Then it is not called, beyond the moment at which its upstream is dead.
    t.stall(t.now + 100);
    let wakes = t.wakes(t.now + 49);
    assert!(wakes < 50, "{wakes} times in 49 ms");
}

#[test]
fn after_a_restart_of_its_rsu_an_obu_of_a_crowd_waits_before_it_announces() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    for _ in 0..40 {
        t.pass(t.now + 50);
        t.beat(A, 1);
        t.answer_probes_of(A);
    }
    if t.announcements() > 0 {
        t.acknowledge(A);
    }
    t.clear();
    for seq in 1..=2 {
        t.pass(t.now + 100);
        t.hear(t.now, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
    }
    assert_eq!(t.announcements(), 0, "not at once, as everybody else");
    for seq in 3..=20 {
        t.pass(t.now + 100);
        t.hear(t.now, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
    }
    assert!(t.announcements() > 0);
}

#[test]
fn a_crowd_is_forgotten_without_heartbeats() {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    t.pass(t.now + 15_000);
    t.clear();
    (t.rsu, t.obus) = (OTHER_RSU, 1);
    for seq in 1..8 {
        t.hear(t.now, B, Heard::heartbeat(seq, 1));
        if let Some(nonce) = t.last_probe(B) {
            t.hear(t.now, B, Heard::answer(nonce, seq, 1));
        }
        t.pass(t.now + 100);
    }
    let said: Vec<u16> = t.heartbeats().iter().map(|heartbeat| heartbeat.obus).collect();
    assert!(!said.is_empty() && said.iter().all(|obus| *obus < 5), "{said:?}");
}

#[test]
fn a_goodbye_moves_us_as_soon_as_there_is_another_way() {
    let mut t = Talk::settled_behind(A);
    let seq = t.seq;
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "it still forwards for a moment");
    t.hear(t.now + 1, B, Heard::heartbeat(seq + 1, 1));
    for _ in 0..2000 {
        if t.last_probe(B).is_some() {
            break;
        }
        t.pass(t.now + 1);
        t.answer_probes_of(A);
    }
    t.hear(t.now, B, Heard::heartbeat(seq + 1, 1));
    let nonce = t.sent_probe(B);
    t.hear(t.now, B, Heard::answer(nonce, seq + 1, 1));
    t.pass(t.now + 1);
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
}

#[test]
fn who_goes_on_advertising_after_a_goodbye_has_not_left() {
    let mut t = Talk::settled_behind(A);
    let candidates = |t: &Talk| t.obu.candidates(node_lib::Timestamp::from_millis(t.now));
    assert_eq!(candidates(&t), 1);
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: true });
    assert_eq!(candidates(&t), 0);
    t.beat(A, 1);
    assert_eq!(candidates(&t), 0, "that heartbeat may have been under way");
    t.pass(t.now + 100);
    t.beat(A, 1);
    assert_eq!(candidates(&t), 1);
}

#[test]
fn without_any_way_it_withdraws_three_times_and_asks_around() {
    let mut t = Talk::settled_behind(A);
    t.beat(A, 1);
    t.pass(t.now + 10);
    t.clear();
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    t.pass(t.now + 60);
    assert_eq!(t.withdrawals(), 3);
    assert!(t.solicitations() >= 1);
}

#[test]
fn a_restarted_upstream_is_left_at_its_second_word() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now + 1, A, Heard::Probe { boot: 2 });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2), "one frame may be forged");
    t.hear(t.now + 20, A, Heard::Probe { boot: 2 });
    assert_eq!(t.obu.attachment(), None);
}

#[test]
fn a_neighbour_that_sends_through_us_is_no_candidate() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now + 1, C, Heard::heartbeat_via(t.seq + 1, 1, US));
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), None);
}

#[test]
fn the_radio_going_down_ends_everything_and_coming_up_asks_again() {
    let mut t = Talk::settled_behind(A);
    t.events();
    t.link(LinkEvent::Down);
    assert_eq!(t.obu.attachment(), None);
    let events = t.events();
    let down = |e: &Event| matches!(e, Event::UpstreamChanged { cause: Cause::LinkDown, .. });
    assert!(events.len() == 1 && events.iter().all(down), "{events:?}");
    t.clear();
    t.pass(t.now + 500);
    assert_eq!(t.sent.len(), 0, "a radio that is down cannot send");
    t.link(LinkEvent::Up);
    t.pass(t.now + 50);
    assert!(t.solicitations() >= 1);
}

/// What was under way when the radio went down may still attach it again.
#[test]
fn attached_with_the_radio_down_it_does_not_wait_for_what_it_cannot_say() {
    let mut t = Talk::settled_behind(A);
    t.link(LinkEvent::Down);
    for _ in 0..150 {
        t.beat(A, 1);
        if let Some(nonce) = t.last_probe(A) {
            t.hear(t.now, A, Heard::answer(nonce, t.seq, 1));
            t.clear();
        }
        let wakes = t.wakes(t.now + 100);
        assert!(wakes < 50, "{wakes} times in 100 ms at {} ms", t.now);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn an_announcement_is_repeated_until_acknowledged() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.pass(t.now + 60);
    assert!(t.announcements() >= 1);
    t.acknowledge(A);
    assert!(t.events().iter().any(|e| matches!(e, Event::Acknowledged { .. })));
    t.clear();
    t.pass(t.now + 60);
    assert_eq!(t.announcements(), 0);
}

#[test]
fn an_rsu_that_knows_a_higher_epoch_makes_us_jump_above_it() {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now, A, Heard::Ack { epoch: 50, status: AckStatus::StaleEpoch, digest: 0 });
    let (_, epoch, ..) = t.sent_announcement();
    assert_eq!(epoch, 51);
}

#[test]
fn an_rsu_that_restarted_is_told_our_clients_at_its_second_heartbeat() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.clear();
    for (seq, announcements) in [(1, 0), (2, 1)] {
        t.hear(t.now + 100, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        assert_eq!(t.announcements(), announcements);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn when_a_relay_further_up_is_replaced_nobody_behind_it_says_a_word() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    // The reply that comes about once a second is not due for a while.
    while t.replies() == 0 {
        t.pass(t.now + 100);
        t.beat(A, 1);
    }
    t.clear();
    let from = t.now;
    // A has another upstream with each heartbeat, and is one hop farther or nearer.
    for (n, via) in [B, C, B, C].into_iter().enumerate() {
        t.pass(t.now + 100);
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat_via(t.seq, 1 + (n % 2) as u8, via));
    }
    assert_eq!(t.obu.attachment().map(|to| to.upstream), Some(id(A)));
    assert!(t.now < from + 750, "before the next reply");
    assert_eq!((t.announcements(), t.replies()), (0, 0));
}

#[test]
fn clients_behind_the_tap_are_announced_shortly_after_they_first_speak() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.clear();
    t.tap(CAMERA, Mac::BROADCAST);
    t.pass(t.now + 60);
    let (_, _, clients) = t.sent_announcement();
    assert_eq!(clients, [Client { vlan: 0, mac: CAMERA }]);
}

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

#[test]
fn a_question_to_all_is_answered_unless_two_others_did() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
    t.pass(t.now + 10);
    assert_eq!(t.answers(), 1);
    for (others, answers) in [(&[A][..], 1), (&[A, B], 0)] {
        t.clear();
        t.hear_broadcast(t.now, C, Heard::Probe { boot: 1 });
        for other in others {
            t.hear_broadcast(t.now, *other, Heard::AnswerTo { asker: C, seq: t.seq });
        }
        t.pass(t.now + 10);
        assert_eq!(t.answers(), answers, "{others:?}");
    }
}

#[test]
fn a_goodbye_of_ours_is_said_three_times_and_frames_still_pass() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.shut_down();
    t.pass(t.now + 100);
    assert_eq!(t.withdrawals(), 3);
    t.clear();
    t.up(C, C, 16);
    assert_eq!(t.sent_to(), [A]);
}

#[test]
fn somebody_with_our_id_is_reported() {
    let mut t = Talk::settled_behind(A);
    t.events();
    t.hear(t.now, C, Heard::Impostor);
    assert_eq!(t.events(), [Event::IdConflict { mac: C }]);
    assert_eq!(t.obu.counters().drop_foreign, 1);
}

#[test]
fn a_relay_that_does_not_know_better_does_not_make_a_crowd_forget_that_it_is_one() {
    let mut t = Talk::new();
    t.obus = 200;
    for beat in 1..=5 {
        t.hear(beat * 100, A, Heard::heartbeat(beat as u32, 1));
    }
    let probe = t.sent_probe(A);
    t.hear(510, A, Heard::answer(probe, 5, 1));
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    let says = |t: &Talk| t.heartbeats().last().unwrap().obus;
    t.clear();
    // B has only been answered about the RSU, and brings the next heartbeat first.
    t.obus = 0;
    t.hear(600, B, Heard::heartbeat(6, 1));
    t.obus = 200;
    t.hear(602, A, Heard::heartbeat(6, 1));
    t.pass(650);
    assert_eq!(says(&t), 200);
    for beat in 7..=100 {
        t.hear(beat * 100, A, Heard::heartbeat(beat as u32, 1));
        t.pass(beat * 100 + 60);
    }
    // An RSU that restarted has none at first; of those it had, one in sixteen is forgotten per
    // heartbeat.
    t.obus = 0;
    for beat in 103..=200 {
        let seq = beat as u32 - 102;
        t.hear(beat * 100, A, Heard::Heartbeat { boot: 2, seq, hops: 1, via: None });
        t.answer_probes_of(A);
        t.pass(beat * 100 + 60);
        if beat == 104 {
            assert!((160..190).contains(&says(&t)), "{}", says(&t));
        }
    }
    assert_eq!(says(&t), 0);
}

/// One of 200 OBUs, one hop from the RSU, idle.
fn one_of_a_crowd() -> Talk {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(RSU, 0);
    t
}

#[test]
fn in_a_crowd_news_of_an_rsu_two_hops_further_than_ours_is_left_to_others() {
    for (hops, is_relayed) in [(1, true), (2, false)] {
        let mut t = one_of_a_crowd();
        t.clear();
        for beat in 5..=20 {
            t.rsu = RSU;
            t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
            // B is behind us, so it hears us, and nearer to the other RSU than we are.
            t.hear(beat * 100 + 50, B, Heard::heartbeat_via(beat as u32, 2, US));
            t.rsu = OTHER_RSU;
            t.hear(beat * 100 + 51, B, Heard::heartbeat(beat as u32, hops));
        }
        let of = |rsu| t.heartbeats().iter().any(|heartbeat| heartbeat.rsu == id(rsu));
        assert_eq!((of(RSU), of(OTHER_RSU)), (true, is_relayed), "{hops} hops from it to B");
    }
}

#[test]
fn a_relay_that_waits_for_its_rsu_says_so_before_those_behind_it_ask() {
    let mut t = one_of_a_crowd();
    t.hear(430, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    for beat in 5..=6 {
        t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
    }
    t.pass(630);
    assert_eq!(t.heartbeats().last().map(|heartbeat| heartbeat.order.seq.0), Some(6));
    t.clear();
    // The RSU is heard by B and no longer by us: we are patient, those behind us ask after 240 ms.
    t.hear(700, B, Heard::heartbeat_via(7, 1, RSU));
    t.hear(800, B, Heard::heartbeat_via(8, 1, RSU));
    t.pass(600 + 28 + 240);
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    assert_eq!(t.heartbeats().iter().map(|heartbeat| heartbeat.order.seq.0).max(), Some(6));
}

#[test]
fn a_relay_passes_on_each_reply_at_once_in_a_crowd_as_well() {
    for obus in [1, 200] {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(A, 1);
        t.clear();
        t.hear(430, B, Heard::Reply { origin: B, seq: 1, hops: 0 });
        t.hear(430, B, Heard::Reply { origin: C, seq: 1, hops: 1 });
        let of_others: Vec<_> = t
            .replies_sent()
            .into_iter()
            .filter(|reply| reply.origin != id(US))
            .map(|reply| (Mac(reply.origin.0), reply.hops))
            .collect();
        assert_eq!(of_others, [(B, 1), (C, 2)], "{obus}");
    }
}

#[test]
fn a_reply_that_comes_from_our_upstream_is_not_sent_back() {
    let mut t = Talk::settled_behind(A);
    t.clear();
    t.hear(440, A, Heard::Reply { origin: B, seq: 1, hops: 1 });
    t.pass(600);
    assert!(t.replies_sent().iter().all(|reply| reply.origin == id(US)));
    assert_eq!(t.obu.counters().drop_no_route, 1);
}

/// One of 200 OBUs behind A, idle, whose clients its RSU knows; B is another way. Hears up to
/// heartbeat `last`.
fn known_of_a_crowd(last: u64) -> Talk {
    let mut t = Talk::new();
    t.obus = 200;
    t.settle(A, 1);
    hear_a_and_b(&mut t, 5..=last);
    t
}

/// These heartbeats, through A and through B; neither answers a question.
fn hear_a_and_b(t: &mut Talk, beats: RangeInclusive<u64>) {
    for beat in beats {
        t.seq = beat as u32 - 1;
        t.pass(beat * 100);
        t.beat(A, 1);
        t.hear(beat * 100 + 10, B, Heard::heartbeat(beat as u32, 1));
        if t.announcements() > 0 {
            t.acknowledge(A);
            t.clear();
        }
    }
    t.clear();
}

/// A has no way any more, and B answers.
fn moves_from_a_to_b(t: &mut Talk) {
    t.hear(t.now + 40, A, Heard::Withdrawal { goodbye: false });
    t.pass(t.now + 17);
    assert_eq!(t.asked(), [B]);
    let seq = t.seq;
    let nonce = t.sent_probe(B);
    t.hear(t.now + 1, B, Heard::answer(nonce, seq, 1));
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.clear();
}

#[test]
fn in_a_crowd_a_new_upstream_to_the_same_rsu_is_told_at_leisure_and_at_once_when_a_client_speaks() {
    let told_after = |seed, speaks: bool| {
        let mut t = known_of_a_crowd(50);
        t.obu.reseed(seed);
        moves_from_a_to_b(&mut t);
        let moved = t.now;
        if speaks {
            t.tap(CAMERA, SERVER);
        }
        while t.replies() == 0 {
            assert_eq!(t.announcements(), 0);
            t.pass(t.now + 1);
        }
        let [reply] = t.replies_sent()[..] else { panic!("not one reply") };
        // Who is idle and has nobody behind it mentions it only.
        assert_eq!((reply.via, reply.acknowledge), (id(B), speaks), "{reply:?}");
        t.now - moved
    };
    assert!((0..20).all(|seed| told_after(seed, true) <= 1));
    let mut waits: Vec<_> = (0..20).map(|seed| told_after(seed, false)).collect();
    waits.sort_unstable();
    // Up to a millisecond for each of the 200.
    assert!(waits[19] <= 201 && waits[15] > 75 && waits[5] < 125, "{waits:?}");
}

/// The mention may be lost, and the next reply be ten seconds away.
#[test]
fn a_new_upstream_that_was_only_mentioned_is_acknowledged_once_frames_go_that_way() {
    for speaks in [true, false] {
        let mut t = known_of_a_crowd(50);
        moves_from_a_to_b(&mut t);
        let words = |t: &Talk| t.replies_sent().iter().map(|r| r.acknowledge).collect::<Vec<_>>();
        while t.replies() == 0 {
            t.pass(t.now + 1);
        }
        assert_eq!(words(&t), [false], "mentioned once");
        if speaks {
            t.tap(CAMERA, SERVER);
        } else {
            t.down(B, next(C), 1);
        }
        t.pass(t.now + 50);
        let said = words(&t);
        assert!(said[1..].contains(&true), "{speaks} {said:?}");
    }
}

#[test]
fn in_a_crowd_who_lost_its_way_takes_a_neighbour_that_heard_it_lately_without_asking() {
    // B names us as its upstream with heartbeat 51, so it hears us, and has another upstream from
    // 52 on.
    let asked_after = |beats: u64, is_idle: bool| {
        let mut t = known_of_a_crowd(50);
        t.hear(5101, B, Heard::heartbeat_via(51, 1, US));
        hear_a_and_b(&mut t, 52..=51 + beats);
        if !is_idle {
            t.tap(CAMERA, SERVER);
        }
        t.clear();
        t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: false });
        t.pass(t.now + 17);
        let is_attached = t.obu.attachment() == attached(RSU, B, 2);
        (is_attached, t.asked().first().copied())
    };
    for is_idle in [true, false] {
        assert_eq!(asked_after(20, is_idle), (true, None), "idle: {is_idle}");
        assert_eq!(asked_after(90, is_idle), (true, None), "idle: {is_idle}");
        assert_eq!(asked_after(110, is_idle), (false, Some(B)), "too long ago, idle: {is_idle}");
    }
}

#[test]
fn in_a_crowd_a_silent_upstream_is_asked_once_and_nobody_else_before_it_is_given_up() {
    let mut t = known_of_a_crowd(150);
    for beat in [151, 152] {
        t.hear(beat * 100 + 10, B, Heard::heartbeat(beat as u32, 1));
    }
    t.pass(15_299);
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    assert_eq!(t.asked(), [A]);
    t.pass(15_320);
    assert_eq!(t.asked(), [A, B]);
}

#[test]
fn in_a_crowd_who_lost_its_way_asks_one_neighbour_after_the_other() {
    let mut t = known_of_a_crowd(50);
    t.hear(5021, C, Heard::heartbeat(50, 1));
    t.hear(5040, A, Heard::Withdrawal { goodbye: false });
    let mut asked = Vec::new();
    for ms in 5041..5140 {
        t.pass(ms);
        assert!(t.asked().len() <= 1, "one at a time: {:?}", t.asked());
        asked.extend(t.asked());
        t.clear();
    }
    let first: Vec<_> = asked.iter().copied().take(2).collect();
    assert_eq!(first, [B, C], "the best first: {asked:?}");
}

/// So many neighbours ask everybody, as after a cold start; then so long an OBU that has just
/// started asks.
fn asks_among(neighbours: u8, speaks: bool) -> usize {
    let mut t = Talk::new();
    for n in 1..=neighbours {
        t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
    }
    t.pass(10);
    t.clear();
    if speaks {
        t.tap(CAMERA, SERVER);
    }
    t.pass(110);
    t.solicitations()
}

#[test]
fn sixteen_neighbours_are_a_crowd_before_any_rsu_says_so() {
    assert!(asks_among(15, false) >= 3, "every 25 ms");
    assert_eq!(asks_among(16, false), 0, "after a quarter of a second");
    assert!(asks_among(16, true) >= 1, "a client waits");
}

#[test]
fn after_a_cold_start_the_count_of_the_rsu_is_not_believed_below_what_is_heard() {
    let mut t = Talk::new();
    t.obus = 3;
    for n in 1..=40 {
        t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
    }
    t.settle(RSU, 0);
    let says = |t: &Talk| t.heartbeats().last().unwrap().obus;
    for beat in 5..=100 {
        t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
        t.pass(beat * 100 + 60);
        match beat {
            // Forty neighbours and the RSU.
            48 => assert_eq!(says(&t), 82),
            60 => assert_eq!(says(&t), 3),
            _ => {}
        }
    }
    assert_eq!(says(&t), 3);
}

#[test]
fn fifteen_neighbours_change_nothing() {
    let mut t = Talk::new();
    // With the RSU they are fifteen.
    for n in 1..=14 {
        t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
    }
    t.settle(RSU, 0);
    t.hear(500, RSU, Heard::heartbeat(5, 0));
    t.pass(560);
    assert_eq!(t.heartbeats().last().map(|heartbeat| heartbeat.obus), Some(1));
}

#[test]
fn whoever_is_cold_in_a_crowd_takes_its_time_to_announce_unless_a_client_speaks() {
    let announced_after = |neighbours: u8, speaks: bool| {
        let mut waits = Vec::new();
        for seed in 0..20 {
            let mut t = Talk::new();
            t.obu.reseed(seed);
            for n in 1..=neighbours {
                t.hear_broadcast(1, Mac([2, 0, 0, 0, 3, n]), Heard::Probe { boot: 1 });
            }
            t.hear(50, RSU, Heard::heartbeat(1, 0));
            t.pass(99);
            let nonce = t.sent_probe(RSU);
            t.hear(100, RSU, Heard::answer(nonce, 1, 0));
            assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
            if speaks {
                t.tap(CAMERA, SERVER);
            }
            let first = (100..1000).find(|ms| {
                t.pass(*ms);
                t.announcements() > 0
            });
            waits.push(first.unwrap() - 100);
        }
        waits.sort_unstable();
        waits
    };
    assert_eq!(announced_after(10, false).last(), Some(&0), "alone at once");
    assert_eq!(announced_after(40, true).last(), Some(&0), "a client waits");
    let waits = announced_after(40, false);
    assert!(waits[5] > 30 && waits[15] > 150, "{waits:?}");
}

#[test]
fn in_a_crowd_the_second_of_two_questions_at_once_is_answered_for_all() {
    let answered = |obus, second: (Mac, u64, Mac)| {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(RSU, 0);
        for behind in [A, B] {
            t.hear(425, behind, Heard::Reply { origin: behind, seq: 1, hops: 0 });
        }
        t.clear();
        t.hear(430, A, Heard::ProbeFor { rsu: RSU });
        let (asker, ms, rsu) = second;
        t.hear(ms, asker, Heard::ProbeFor { rsu });
        t.answered()
    };
    assert_eq!(answered(200, (B, 454, RSU)), [A, Mac::BROADCAST]);
    assert_eq!(answered(200, (B, 455, RSU)), [A, B], "too late");
    assert_eq!(answered(200, (A, 440, RSU)), [A, A], "the same asks again");
    assert_eq!(answered(200, (B, 440, OTHER_RSU)), [A, B], "about another RSU");
    assert_eq!(answered(31, (B, 440, RSU)), [A, B], "no crowd");
    assert_eq!(answered(200, (C, 440, RSU)), [A, C], "not behind us: it needs a proof of its own");
}

#[test]
fn in_full_air_an_rsu_is_asked_about_late_and_over_a_while() {
    let mut after = Vec::new();
    for seed in 0..40 {
        let mut t = one_of_a_crowd();
        t.obu.reseed(seed);
        for beat in 5..=50 {
            t.hear(beat * 100, RSU, Heard::heartbeat(beat as u32, 0));
            // Twenty others hear it.
            for n in 0..20 {
                let relay = Mac([2, 0, 0, 0, 6, n]);
                let heard = Heard::heartbeat_via(beat as u32, 1, RSU);
                t.hear(beat * 100 + u64::from(n) + 10, relay, heard);
            }
        }
        t.clear();
        let first = (5000..5700).find(|ms| {
            t.pass(*ms);
            if ms % 5 == 0 {
                let relay = Mac([2, 0, 0, 0, 6, (ms % 100 / 5) as u8]);
                t.hear(*ms, relay, Heard::heartbeat_via((ms / 100) as u32, 1, RSU));
            }
            t.asked().contains(&RSU)
        });
        after.push(first.unwrap() - 5000);
    }
    after.sort_unstable();
    assert!(after[0] >= 420 && after[39] <= 475, "{after:?}");
    assert!(after[0] < 440 && after[39] > 455, "{after:?}");
}

#[test]
fn an_answer_for_all_spares_the_others_their_question() {
    let asked = |is_answered: bool| {
        let mut t = known_of_a_crowd(50);
        // Late from 5,240 ms on.
        t.hear(5235, B, Heard::heartbeat(51, 1));
        if is_answered {
            t.hear_broadcast(5238, A, Heard::AnswerTo { asker: C, seq: 51 });
        }
        t.pass(5295);
        t.asked().contains(&A)
    };
    assert!(asked(false) && !asked(true));
}

#[test]
fn a_crowd_behind_a_silent_relay_asks_it_over_what_time_there_is() {
    let mut after = Vec::new();
    for seed in 0..40 {
        let mut t = known_of_a_crowd(50);
        t.obu.reseed(seed);
        t.hear(5110, B, Heard::heartbeat(51, 1));
        t.hear(5210, B, Heard::heartbeat(52, 1));
        let first = (5200..5300).find(|ms| {
            t.pass(*ms);
            t.asked().contains(&A)
        });
        after.push(first.unwrap() - 5000);
    }
    after.sort_unstable();
    assert!(after[0] >= 240 && after[39] <= 271, "{after:?}");
    assert!(after[20] > 250 && after[39] > 265, "{after:?}");
}
