//! What an OBU does around a change of RSU or upstream, told as a conversation.

use node_lib::control::event::{Cause, Event, HandOver};
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{Mac, NodeId};

use crate::talk::{
    A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, all_but, attached, id, last, next,
};

/// Attached to an RSU heard directly; another one is heard as well as it, and has proven itself.
pub(super) fn between_two_rsus() -> Talk {
    let mut t = Talk::new();
    t.hear(100, RSU, Heard::heartbeat(1, 0));
    let nonce = t.sent_probe(RSU);
    t.hear(102, RSU, Heard::answer(nonce, 1, 0));
    t.acknowledge(RSU);
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    t.clear();
    t.seq = 1;
    for _ in 0..30 {
        beat_of_both(&mut t);
        if t.announced().iter().any(|(to, ..)| *to == OTHER_RSU) {
            t.events();
            return t;
        }
    }
    panic!("the other RSU was never told");
}

/// 100 ms pass; both send a heartbeat and answer what they were asked.
pub(super) fn beat_of_both(t: &mut Talk) {
    t.pass(t.now + 100);
    t.seq += 1;
    for rsu in [RSU, OTHER_RSU] {
        speak_of(t, rsu);
    }
}

/// The other RSU has been there for longer: it sent so many heartbeats more.
const AHEAD: u32 = 1000;

/// The number of this RSU's last heartbeat.
fn seq_of(t: &Talk, rsu: Mac) -> u32 {
    t.seq + if rsu == OTHER_RSU { AHEAD } else { 0 }
}

fn speak_of(t: &mut Talk, rsu: Mac) {
    t.rsu = rsu;
    let seq = seq_of(t, rsu);
    t.hear(t.now, rsu, Heard::heartbeat(seq, 0));
    if let Some(nonce) = t.last_probe(rsu) {
        t.hear(t.now, rsu, Heard::answer(nonce, seq, 0));
    }
    t.rsu = RSU;
}

/// A broadcast of the LAN comes from this RSU, which took it so many heartbeats ago. Whether it is
/// delivered.
fn floods(t: &mut Talk, rsu: Mac, ago: u32, number: u32) -> bool {
    let before = t.taps;
    t.rsu = rsu;
    let taken_at = seq_of(t, rsu) - ago;
    t.down(rsu, all_but(NodeId::NONE, taken_at), number);
    t.rsu = RSU;
    t.taps > before
}

/// The other RSU acknowledges that we may come, or have come, as soon as it was told: a few
/// OBUs share the radio.
pub(super) fn acknowledge_there(t: &mut Talk) {
    t.pass(t.now + 5);
    let mut words = t.words().into_iter().filter(|word| word.rsu == OTHER_RSU);
    let last = words.next_back().expect("a word to it");
    t.answer(OTHER_RSU, last, AckStatus::Accepted);
}

pub(super) fn records(t: &mut Talk) -> Vec<HandOver> {
    let record = |event| match event {
        Event::HandOver(record) => Some(record),
        _ => None,
    };
    t.events().into_iter().filter_map(record).collect()
}

#[test]
fn an_rsu_as_good_as_ours_is_told_that_we_may_come_and_gets_no_data() {
    let mut t = between_two_rsus();
    assert_eq!(t.announced(), [(OTHER_RSU, OTHER_RSU, 1, true)]);
    acknowledge_there(&mut t);
    t.clear();
    t.pass(t.now + 80);
    assert_eq!(t.announced(), [], "acknowledged");
    t.tap(CAMERA, SERVER);
    assert_eq!(t.data_sent_to(), [RSU]);
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
}

#[test]
fn who_has_lost_every_way_stands_by_nowhere() {
    let mut t = between_two_rsus();
    let standby = |t: &Talk| t.look().standby.map(|next| next.rsu);
    for _ in 0..4 {
        t.pass(t.now + 100);
        t.seq += 1;
        speak_of(&mut t, RSU);
    }
    assert_eq!(standby(&t), Some(id(OTHER_RSU)), "silent, but not for long");
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: false });
    assert_eq!((t.obu.attachment(), standby(&t)), (None, None));
}

#[test]
fn without_standby_the_next_rsu_is_told_nothing() {
    let policy = obu_lib::Policy { standby: false, ..Default::default() };
    let mut t = Talk::with_policy(policy);
    t.hear(100, RSU, Heard::heartbeat(1, 0));
    let nonce = t.sent_probe(RSU);
    t.hear(102, RSU, Heard::answer(nonce, 1, 0));
    t.acknowledge(RSU);
    t.clear();
    (0..30).for_each(|_| beat_of_both(&mut t));
    assert_eq!(t.announced(), []);
}

#[test]
fn a_goodbye_moves_us_at_once_to_the_rsu_that_expects_us() {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    t.clear();
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    assert_eq!(t.announced(), [(OTHER_RSU, OTHER_RSU, 2, false)]);
    t.tap(CAMERA, SERVER);
    assert_eq!(t.data_sent_to(), [OTHER_RSU]);
}

#[test]
fn an_rsu_that_does_not_answer_is_not_waited_for_longer_than_the_old_one_forwards() {
    let mut t = between_two_rsus();
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    let heard_at = t.now;
    t.pass(heard_at + 99);
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1), "it may still acknowledge");
    t.pass(heard_at + 101);
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
}

/// The other RSU answers what it was told last: this epoch, less so many, and this digest, or
/// another.
fn answer_there(t: &mut Talk, status: AckStatus, older: u32, is_other_digest: bool) {
    let (word, _) = t.parts_sent().pop().expect("an announcement");
    let epoch = word.epoch - older;
    let digest = word.digest ^ u32::from(is_other_digest);
    t.rsu = OTHER_RSU;
    t.hear(t.now, OTHER_RSU, Heard::Ack { epoch, status, digest });
    t.rsu = RSU;
}

/// Whether a goodbye of our RSU moves us at once.
fn is_expected(t: &mut Talk) -> bool {
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    t.obu.attachment() == attached(OTHER_RSU, OTHER_RSU, 1)
}

#[test]
fn only_an_answer_to_what_it_was_told_last_means_that_the_next_rsu_expects_us() {
    for (older, is_other_digest) in [(0, false), (1, false), (0, true)] {
        let mut t = between_two_rsus();
        answer_there(&mut t, AckStatus::Accepted, older, is_other_digest);
        let is_present = older == 0 && !is_other_digest;
        assert_eq!(is_expected(&mut t), is_present, "{older} {is_other_digest}");
    }
}

#[test]
fn a_next_rsu_that_asks_again_is_told_again_and_does_not_expect_us_meanwhile() {
    let mut t = between_two_rsus();
    answer_there(&mut t, AckStatus::Accepted, 0, false);
    let told = t.announced().len();
    answer_there(&mut t, AckStatus::SendAll, 0, false);
    assert_eq!(t.announced()[told..], [(OTHER_RSU, OTHER_RSU, 1, true)]);
    assert!(!is_expected(&mut t));
}

#[test]
fn a_next_rsu_that_knows_a_higher_epoch_makes_us_go_above_it_at_both() {
    let mut t = between_two_rsus();
    t.clear();
    t.rsu = OTHER_RSU;
    t.hear(t.now, OTHER_RSU, Heard::Ack { epoch: 7, status: AckStatus::StaleEpoch, digest: 0 });
    t.rsu = RSU;
    assert_eq!(t.announced(), [(RSU, RSU, 8, false), (OTHER_RSU, OTHER_RSU, 8, true)]);
}

#[test]
fn a_client_that_comes_is_told_to_both_and_the_next_does_not_expect_it_before_it_answers() {
    let mut t = between_two_rsus();
    answer_there(&mut t, AckStatus::Accepted, 0, false);
    t.tap(CAMERA, SERVER);
    t.clear();
    t.pass(t.now + 51);
    let told: Vec<_> = t.announced().into_iter().map(|(to, _, _, standby)| (to, standby)).collect();
    assert_eq!(told, [(RSU, false), (OTHER_RSU, true)]);
    assert!(!is_expected(&mut t));
}

#[test]
fn what_still_comes_from_the_old_rsu_is_taken_and_it_is_told_last() {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    acknowledge_there(&mut t);
    t.clear();
    t.down(RSU, last(US), 1);
    assert_eq!(t.taps, 1, "a frame for us, by whatever way");
    assert!(floods(&mut t, RSU, 0, 2), "a flood that only the old one passed on");
    assert!(!floods(&mut t, OTHER_RSU, 0, 1), "and the new one's copy of it");
    let told_at = t.now;
    (0..2).for_each(|_| beat_of_both(&mut t));
    t.pass(told_at + 299);
    assert_eq!(t.replied(), []);
    t.pass(told_at + 301);
    assert_eq!(t.replied(), [(RSU, RSU, true)]);
    assert!(!floods(&mut t, RSU, 0, 3), "now it is another RSU's");
    let [record] = records(&mut t)[..] else { panic!("not one record") };
    assert_eq!((record.cause, record.is_settled), (Cause::Goodbye, true));
    assert_eq!((record.gap.as_millis(), record.lost, record.doubled), (0, 0, 1));
    let counters = t.obu.counters();
    assert_eq!((counters.hand_overs, counters.gap_sum_us, counters.gap_max_us), (1, 0, 0));
}

#[test]
fn what_the_radio_gives_up_does_not_go_to_an_rsu_that_was_left() {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    t.clear();
    t.tap(CAMERA, SERVER);
    let frame = t.sent.last().map(|(_, frame)| frame.clone()).expect("it is sent to ours");
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    acknowledge_there(&mut t);
    // The old one goes on after all, and we have told it that we left.
    (0..8).for_each(|_| beat_of_both(&mut t));
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    assert_eq!(t.obu.upstream_for(id(RSU)), Some(id(RSU)));
    t.clear();
    t.give_up(&frame);
    assert_eq!(t.data_sent_to(), [], "its LAN would take our client to be there");
}

#[test]
fn a_dead_rsu_leaves_a_record_of_the_gap_and_of_what_was_at_risk() {
    let mut t = between_two_rsus();
    let died_at = t.now;
    // The other one goes on, with a heartbeat each 100 ms.
    for step in 1..60 {
        t.pass(died_at + step * 10);
        t.tap(CAMERA, SERVER);
        if step % 10 == 0 {
            t.seq += 1;
            speak_of(&mut t, OTHER_RSU);
        }
        if t.obu.attachment() == attached(OTHER_RSU, OTHER_RSU, 1) {
            break;
        }
    }
    let took = t.now - died_at;
    assert!((150..=250).contains(&took), "{took} ms");
    acknowledge_there(&mut t);
    t.pass(t.now + 301);
    let [record] = records(&mut t)[..] else { panic!("not one record") };
    assert!(record.gap.as_millis().abs_diff(u128::from(took)) <= 10, "{record:?}");
    assert!(record.at_risk.abs_diff(took / 10) <= 1, "{record:?}");
    assert_eq!((record.lost, record.sent_twice), (0, 0), "towards another RSU nothing is doubled");
    assert_eq!(t.obu.counters().gap_max_us, u64::try_from(record.gap.as_micros()).unwrap());
}

/// Nobody's frames go anywhere: the RSU is told of the change, and is not asked to answer.
#[test]
fn the_change_of_an_idle_obu_is_settled_as_well_and_counted_once() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    for _ in 0..100 {
        let seq = t.beat(A, 1);
        t.hear(t.now, B, Heard::heartbeat(seq, 1));
        t.answer_probes_of(A);
        t.answer_probes_of(B);
    }
    t.prove(B, t.seq, 1);
    assert_eq!((records(&mut t), t.obu.attachment()), (vec![], attached(RSU, A, 2)));
    t.hear(t.now + 1, A, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.pass(t.now + 5000);
    let records = records(&mut t);
    let settled = records.iter().filter(|record| record.is_settled).count();
    assert_eq!((records.len(), settled), (1, 1), "{records:?}");
    assert_eq!(t.obu.counters().hand_overs, 1);
}

/// Behind A, with B as proven candidate to the same RSU, and A silent until two questions are open.
fn in_doubt() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.prove_beside_a(B);
    t.tap(CAMERA, SERVER);
    t.answer_probes_of(A);
    t.pass(t.now + 60);
    t.acknowledge_all();
    t.answer_probes_of(A);
    t.beat(A, 1);
    t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
    let silent_from = t.now;
    t.clear();
    while t.obu.counters().upstream_doubted == 0 {
        t.pass(t.now + 1);
        t.answer_probes_of(B);
        if t.now == silent_from + 100 {
            t.hear(t.now, B, Heard::heartbeat(t.seq + 1, 1));
        }
        assert!(t.now < silent_from + 200, "two questions are open by now");
    }
    t
}

#[test]
fn while_the_upstream_is_in_doubt_frames_go_both_ways_and_the_way_back_follows() {
    let mut t = in_doubt();
    assert_eq!(t.replied(), [(B, RSU, false)]);
    let asked = t.last_probe(A);
    t.clear();
    t.tap(CAMERA, SERVER);
    assert_eq!(t.data_sent_to(), [A, B]);
    assert_eq!(t.obu.counters().sent_twice, 1);
    // A was only slow.
    let nonce = asked.unwrap();
    t.clear();
    t.hear(t.now + 1, A, Heard::answer(nonce, t.seq, 1));
    assert_eq!(t.replied(), [(A, RSU, false)]);
    // Should that get lost, frames down would go the other way, which nobody watches any more.
    t.pass(t.now + 110);
    assert_eq!(t.replied(), [(A, RSU, false); 2], "until it is acknowledged");
    t.acknowledge(A);
    t.clear();
    t.beat(A, 1);
    t.pass(t.now + 90);
    assert_eq!(t.replied(), []);
    t.clear();
    t.tap(CAMERA, SERVER);
    assert_eq!(t.data_sent_to(), [A]);
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn frames_go_twice_within_a_budget_only() {
    let mut t = in_doubt();
    t.clear();
    for _ in 0..2000 {
        t.tap(CAMERA, SERVER);
    }
    // Of 60 bytes each.
    assert_eq!(t.obu.counters().sent_twice, 64 * 1024 / 60);
}

#[test]
fn the_record_of_a_change_says_what_was_sent_both_ways() {
    let mut t = in_doubt();
    for _ in 0..3 {
        t.tap(CAMERA, SERVER);
    }
    t.clear();
    while t.obu.attachment() != attached(RSU, B, 2) {
        t.pass(t.now + 1);
        t.answer_probes_of(B);
    }
    t.pass(t.now + 30);
    t.acknowledge(B);
    let [record] = records(&mut t)[..] else { panic!("not one record") };
    assert_eq!((record.cause, record.sent_twice), (Cause::Dead, 3));
    // Until the second way was open: two questions, 17 ms apart, after 120 ms of silence.
    assert!((150..=160).contains(&record.gap.as_millis()), "{record:?}");
}

#[test]
fn a_time_without_any_way_is_one_change_with_all_it_cost() {
    let mut t = between_two_rsus();
    let lost = t.now + 1;
    t.hear(lost, OTHER_RSU, Heard::Withdrawal { goodbye: true });
    t.rsu = OTHER_RSU;
    t.hear(lost, OTHER_RSU, Heard::ProbeFor { rsu: OTHER_RSU });
    t.rsu = RSU;
    t.hear(lost, RSU, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment().map(|to| to.rsu), None);
    for ms in 1..=50 {
        t.pass(lost + ms * 10);
        t.tap(CAMERA, SERVER);
    }
    t.clear();
    t.hear(lost + 510, C, Heard::heartbeat(t.seq + 6, 1));
    let nonce = t.sent_probe(C);
    t.hear(lost + 512, C, Heard::answer(nonce, t.seq + 6, 1));
    assert_eq!(t.obu.attachment(), attached(RSU, C, 2));
    t.pass(lost + 540);
    t.acknowledge(C);
    let [record] = records(&mut t)[..] else { panic!("not one record") };
    assert_eq!((record.from.upstream, record.to), (id(RSU), attached(RSU, C, 2)));
    assert_eq!((record.cause, record.lost, record.is_settled), (Cause::Withdrawn, 50, true));
    assert!((505..=520).contains(&record.gap.as_millis()), "{record:?}");
    let counters = t.obu.counters();
    assert_eq!((counters.upstream_changes, counters.rsu_changes), (3, 3));
}

#[test]
fn an_rsu_that_does_not_answer_is_left_once_when_the_other_does_not_answer_either() {
    // However often there is something new to announce.
    for every in [1000, 200] {
        let mut t = between_two_rsus();
        t.tap(CAMERA, SERVER);
        let mut changes = Vec::new();
        for _ in 0..300 {
            let before = t.obu.attachment();
            beat_of_both(&mut t);
            t.sent.clear();
            if t.obu.attachment() != before {
                changes.push(t.obu.attachment());
            }
            if t.now % every < 100 {
                t.tap(Mac([2, 0, 0, 0, 9, (t.now / every) as u8]), SERVER);
            }
        }
        assert_eq!(changes, [attached(OTHER_RSU, OTHER_RSU, 1)], "every {every} ms");
    }
}

#[test]
fn floods_of_an_rsu_that_we_were_never_attached_to_are_not_for_us() {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    let delivered = [RSU, OTHER_RSU, C].map(|rsu| floods(&mut t, rsu, 0, 40));
    // The second is the copy of the first.
    assert_eq!(delivered, [true, false, false]);
    assert_eq!(t.obu.counters().drop_duplicate, 1);
}

#[test]
fn without_duplication_nothing_is_sent_twice() {
    let policy = obu_lib::Policy { duplication: false, ..Default::default() };
    let mut t = Talk::settled_behind_with(A, policy);
    t.acknowledge(A);
    t.prove_beside_a(B);
    for _ in 0..30 {
        t.tap(CAMERA, SERVER);
        t.pass(t.now + 5);
    }
    assert_eq!(t.obu.counters().sent_twice, 0);
    assert!(t.data_sent_to().iter().all(|to| *to == A));
}

/// Attached to the other RSU since a moment ago.
fn just_moved() -> Talk {
    just_moved_after(0)
}

fn just_moved_after(beats: u32) -> Talk {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    for _ in 0..beats {
        beat_of_both(&mut t);
        t.acknowledge_all();
    }
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    acknowledge_there(&mut t);
    t.clear();
    t
}

#[test]
fn a_broadcast_of_the_lan_is_one_however_late_the_second_rsu_brings_it() {
    // In the first ten seconds of a life what others have overtaken is refused.
    let mut t = just_moved_after(100);
    assert!(floods(&mut t, RSU, 0, 1));
    for beat in 1..=30 {
        beat_of_both(&mut t);
        t.acknowledge_all();
        // The same bytes again on the LAN, once a second, as ARP asks.
        if beat % 10 == 0 {
            assert!(floods(&mut t, OTHER_RSU, 0, 100 + beat), "{beat}");
        }
    }
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    assert!(!floods(&mut t, OTHER_RSU, 30, 1), "three seconds in queues");
    assert!(floods(&mut t, OTHER_RSU, 30, 2), "a second equal one, which the old RSU never sent");
    assert_eq!(t.obu.counters().drop_duplicate, 1);
}

/// The RSU we left does not know who has the client, and floods what is for it. The new one knows.
#[test]
fn what_one_rsu_floods_and_another_sends_to_us_alone_is_delivered_once() {
    let mut t = just_moved();
    assert!(floods(&mut t, RSU, 0, 1));
    let before = t.taps;
    t.rsu = OTHER_RSU;
    t.down(OTHER_RSU, last(US), 2);
    assert_eq!(t.taps, before);
    assert_eq!(t.obu.counters().drop_duplicate, 1);
    t.down(OTHER_RSU, last(US), 3);
    assert_eq!(t.taps, before + 1, "a second equal one");
}

/// It numbers its heartbeats from the beginning, and of those none has come yet.
#[test]
fn a_broadcast_is_one_also_where_the_rsu_that_brings_the_copy_has_just_started_again() {
    let mut t = just_moved_after(20);
    assert!(floods(&mut t, RSU, 0, 1));
    t.down_boot = 2;
    let since_the_third = seq_of(&t, OTHER_RSU) - 3;
    assert!(!floods(&mut t, OTHER_RSU, since_the_third, 1));
    assert!(floods(&mut t, OTHER_RSU, since_the_third, 2), "a second equal one");
}

#[test]
fn a_broadcast_is_one_also_where_the_heartbeats_that_tell_its_moment_come_ever_later() {
    let mut t = just_moved();
    assert!(floods(&mut t, RSU, 0, 1));
    let (beats, later) = (36, 3);
    for beat in 1..=beats {
        t.pass(t.now + 100);
        t.seq += 1;
        speak_of(&mut t, RSU);
        // In the end those of our RSU come 1.2 s late, over relays that are full.
        t.rsu = OTHER_RSU;
        let seq = seq_of(&t, OTHER_RSU) - beat / later;
        t.hear(t.now, OTHER_RSU, Heard::heartbeat(seq, 0));
        t.rsu = RSU;
        t.acknowledge_all();
    }
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    assert!(!floods(&mut t, OTHER_RSU, beats, 1), "the other's copy");
    assert!(floods(&mut t, OTHER_RSU, beats, 2), "a second equal one");
}

#[test]
fn an_rsu_that_is_left_and_that_others_go_to_through_us_hears_last_that_we_stand_by_and_no_goodbye()
{
    for (has_child, goodbyes) in [(false, 1), (true, 0)] {
        let mut t = between_two_rsus();
        acknowledge_there(&mut t);
        // Until then it relays nothing, as it has just started.
        (0..5).for_each(|_| beat_of_both(&mut t));
        if has_child {
            t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
        }
        t.clear();
        t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: true });
        acknowledge_there(&mut t);
        let acknowledged = t.now;
        t.pass(acknowledged + 30);
        assert!(t.words().iter().all(|word| word.rsu == OTHER_RSU), "{:?}", t.words());
        t.clear();
        let mut words = Vec::new();
        for n in 0..10 {
            if has_child {
                t.hear(t.now, C, Heard::Reply { origin: C, seq: n + 2, hops: 0 });
            }
            beat_of_both(&mut t);
            words.extend(t.words().into_iter().filter(|word| word.rsu == RSU));
            t.acknowledge_all();
            // What is late comes from there until then.
            assert!(t.now >= acknowledged + 300 || words.is_empty(), "{words:?}");
        }
        assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
        let ours: Vec<_> = t
            .replies_sent()
            .into_iter()
            .filter(|reply| (reply.rsu, reply.origin) == (id(RSU), id(US)))
            .collect();
        assert_eq!(ours.iter().filter(|reply| reply.goodbye).count(), goodbyes, "{ours:?}");
        if has_child {
            assert!(!ours.is_empty() && ours.iter().all(|reply| reply.standby));
            assert!(ours.iter().all(|reply| reply.via == id(RSU)));
            t.clear();
            t.down(RSU, next(C), 7);
            assert_eq!(t.data_sent_to(), [C], "what comes down to it still passes us");
        }
    }
}

#[test]
fn a_next_rsu_that_started_again_is_told_all_again_and_does_not_expect_us_meanwhile() {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    t.pass(t.now + 80);
    t.clear();
    t.rsu = OTHER_RSU;
    for (seq, words) in [(1, 0), (2, 1)] {
        t.hear(t.now + 60, OTHER_RSU, Heard::Heartbeat { boot: 2, seq, hops: 0, via: None });
        let there: Vec<_> = t.words().into_iter().filter(|word| word.rsu == OTHER_RSU).collect();
        assert_eq!(there.len(), words);
        assert!(there.iter().all(|word| word.standby && word.is_set));
    }
    t.rsu = RSU;
    assert!(!is_expected(&mut t));
}

#[test]
fn an_rsu_that_is_left_is_told_at_once_when_the_way_it_knows_to_those_behind_us_has_ended() {
    let mut t = between_two_rsus();
    acknowledge_there(&mut t);
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    // B is another way to it, and has proven itself.
    for _ in 0..20 {
        beat_of_both(&mut t);
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        if let Some(nonce) = t.last_probe(B) {
            t.hear(t.now, B, Heard::answer(nonce, t.seq, 1));
        }
        t.hear(t.now, C, Heard::Reply { origin: C, seq: t.seq, hops: 0 });
        t.acknowledge_all();
    }
    t.hear(t.now, RSU, Heard::Withdrawal { goodbye: true });
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    t.clear();
    t.hear(t.now + 1, RSU, Heard::Withdrawal { goodbye: false });
    // It has not left for all who hear it.
    for _ in 0..2 {
        t.seq += 1;
        t.hear(t.now + 60, B, Heard::heartbeat(t.seq, 1));
        if let Some(nonce) = t.last_probe(B) {
            t.hear(t.now, B, Heard::answer(nonce, t.seq, 1));
        }
    }
    assert_eq!(t.obu.upstream_for(id(RSU)), Some(id(B)));
    let is_ours = |reply: &HeartbeatReply| (reply.rsu, reply.origin) == (id(RSU), id(US));
    let said = t.replies_sent().into_iter().find(is_ours).expect("a word to it");
    assert_eq!((said.via, said.standby), (id(B), true));
}
