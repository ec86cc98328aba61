//! One of many whose clients all speak: what it may still say.

use node_lib::Mac;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;

use crate::talk::{A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, attached, id, next};

const D: Mac = Mac([2, 0, 0, 0, 0, 0x0d]);

/// Behind A, two hops from an RSU that has so many OBUs, for five seconds; B is heard as well, and,
/// if there are others, sixteen that are farther away than we are.
fn behind_a(obus: u16) -> Talk {
    let mut t = Talk::new();
    t.obus = obus;
    t.settle(A, 1);
    for _ in 0..50 {
        beat(&mut t, &[A, B], &[A, B]);
    }
    t
}

/// 100 ms, in which these send a heartbeat, as those farther away do, and these answer when they
/// are asked, and a client speaks. Returns how many words were to be acknowledged since the last
/// one.
fn beat(t: &mut Talk, heard: &[Mac], answering: &[Mac]) -> usize {
    beat_among(t, farther(t.obus), heard, answering)
}

/// Of so many OBUs those that are heard, and are farther away than we are.
fn farther(obus: u16) -> u8 {
    if obus > 1 { 16 } else { 0 }
}

/// The same with so many farther away.
fn beat_among(t: &mut Talk, others: u8, heard: &[Mac], answering: &[Mac]) -> usize {
    let words = begin_beat(t, others, heard, answering);
    let asked = |t: &Talk| answering.iter().map(|who| t.last_probe(*who)).collect::<Vec<_>>();
    let mut answered = asked(t);
    // An answer takes 5 ms at most.
    for _ in 0..20 {
        t.pass(t.now + 5);
        let now = asked(t);
        for (who, (before, last)) in answering.iter().zip(answered.iter().zip(&now)) {
            if let Some(nonce) = last.filter(|nonce| Some(*nonce) != *before) {
                t.hear(t.now, *who, Heard::answer(nonce, t.seq, 1));
            }
        }
        answered = now;
    }
    words
}

/// The beginning of it.
fn begin_beat(t: &mut Talk, others: u8, heard: &[Mac], answering: &[Mac]) -> usize {
    t.seq += 1;
    for who in heard {
        t.hear(t.now, *who, Heard::heartbeat(t.seq, 1));
    }
    for n in 0..others {
        t.hear(t.now, Mac([2, 0, 0, 0, 2, n]), Heard::heartbeat(t.seq, 3));
    }
    for who in answering {
        if let Some(nonce) = t.last_probe(*who) {
            t.hear(t.now, *who, Heard::answer(nonce, t.seq, 1));
        }
    }
    let words = t.words().len();
    t.acknowledge_all();
    t.clear();
    t.tap(CAMERA, SERVER);
    words
}

/// A neighbour answers what it was asked. If it is time, it sends a heartbeat first, and a client
/// speaks.
fn hear_at_once(t: &mut Talk, from: Mac, is_beat: bool) {
    if is_beat {
        t.seq += 1;
        t.hear(t.now, from, Heard::heartbeat(t.seq, 1));
        t.tap(CAMERA, SERVER);
    }
    if let Some(nonce) = t.last_probe(from) {
        t.hear(t.now, from, Heard::answer(nonce, t.seq, 1));
    }
}

/// Announcements of all OBUs of a crowd together: 100 a second, which is 5 % of a radio of 6
/// Mbit/s. However many they are, that is what it comes to; each has its part.
const ANNOUNCEMENTS_PER_SECOND: usize = 100;

/// Their questions: 333 a second, and twenty more to keep their candidates.
const QUESTIONS_PER_SECOND: usize = 353;

const CROWDS: [u16; 3] = [100, 200, 400];

/// The part of one OBU in so many seconds, of what all have.
fn part_of(obus: u16, all: usize) -> usize {
    all.div_ceil(usize::from(obus))
}

/// One OBU takes its part up to a quarter sooner than others do, and so a third more often.
fn of_the_fastest(part: usize) -> usize {
    part * 4 / 3
}

/// Questions of one whose RSU has so many OBUs, and that hears so many farther away. Each is
/// answered late, so that there is reason for a hundred.
fn asked_in_a_minute(obus: u16, others: u8) -> usize {
    let mut t = behind_a(obus);
    let mut asked = 0;
    for beats in 0..800 {
        begin_beat(&mut t, others, &[A, B], &[A, B]);
        t.pass(t.now + 100);
        asked += if beats < 200 { 0 } else { t.asked().len() };
    }
    assert_eq!(t.obu.attachment().map(|to| to.rsu), Some(id(RSU)));
    asked
}

#[test]
fn whether_its_frames_arrive_is_asked_within_the_budget_while_it_hears_its_upstream() {
    assert!(asked_in_a_minute(1, farther(1)) > 240, "alone, nearly every frame is a reason to ask");
    for obus in CROWDS {
        let part = part_of(obus, 60 * QUESTIONS_PER_SECOND);
        let asked = asked_in_a_minute(obus, farther(obus));
        assert!(
            (part.min(100) / 2..=of_the_fastest(part) + 1).contains(&asked),
            "{obus} OBUs: {asked}, part {part}"
        );
    }
}

#[test]
fn where_many_are_heard_each_has_its_part_though_its_rsu_has_few() {
    let (among_few, among_many) = (asked_in_a_minute(1, 4), asked_in_a_minute(1, 16));
    assert!(among_few > 240, "{among_few}");
    // Four for each heartbeat in 100 ms: sixteen, and those of A, B and ourselves.
    let part = part_of(4 * 19, 60 * QUESTIONS_PER_SECOND);
    assert!((part.min(100)..=part + 1).contains(&among_many), "{among_many}, part {part}");
}

#[test]
fn where_it_is_congested_a_proof_spares_the_questions_about_what_is_sent_within_three_seconds() {
    let asked_at = |obus| {
        let mut t = behind_a(obus);
        let mut at = Vec::new();
        for _ in 0..1000 {
            // One frame, and an answer 5 ms after each question.
            begin_beat(&mut t, farther(obus), &[A, B], &[A, B]);
            for _ in 0..40 {
                at.extend(t.asked().contains(&A).then_some(t.now));
                for who in [A, B] {
                    if let Some(nonce) = t.last_probe(who) {
                        t.hear(t.now, who, Heard::answer(nonce, t.seq, 1));
                    }
                }
                t.acknowledge_all();
                t.clear();
                t.pass(t.now + 5);
            }
        }
        at
    };
    assert_eq!(asked_at(1).len(), 1000, "alone each frame is a reason to ask");
    let asked = asked_at(200);
    let gaps: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Three seconds, and until the budget has one: two and a half at the slowest pace.
    assert!(gaps.iter().all(|gap| (3000..5500).contains(gap)), "{gaps:?}");
}

#[test]
fn a_silent_upstream_is_given_up_after_three_intervals_and_asked_before() {
    let mut t = behind_a(200);
    beat(&mut t, &[A, B], &[A, B]);
    let last = t.now - 100;
    t.clear();
    t.pass(last + 200);
    assert_eq!(t.asked(), [], "one heartbeat may get lost");
    t.pass(last + 310);
    assert!(t.asked().iter().filter(|who| **who == A).count() >= 2, "{:?}", t.asked());
    assert_ne!(t.obu.attachment(), attached(RSU, A, 2));
    assert_eq!(t.obu.counters().upstream_dead, 1);
}

#[test]
fn who_falls_silent_where_much_of_what_it_says_collides_is_borne_with() {
    // Nobody answers from now on. When it was first asked, and when it was given up.
    let left_after = |obus, (upstream, hops): (Mac, u8), is_drowned_out: bool| {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(upstream, hops);
        for beats in 0..1001_u32 {
            t.seq += 1;
            if !is_drowned_out || beats % 4 != 3 {
                t.hear(t.now, upstream, Heard::heartbeat(t.seq, hops));
            }
            // Sixteen in all; so few at a time do not fill the air with heartbeats.
            for n in (0..16).filter(|n| u32::from(n % 4) == beats % 4) {
                t.hear(t.now, Mac([2, 0, 0, 0, 2, n]), Heard::heartbeat(t.seq, 3));
            }
            t.tap(CAMERA, SERVER);
            // What it is asked it answers after 5 ms at most.
            for _ in 0..20 {
                if let Some(nonce) = t.last_probe(upstream) {
                    t.hear(t.now, upstream, Heard::answer(nonce, t.seq, hops));
                }
                t.acknowledge_all();
                t.clear();
                t.pass(t.now + 5);
            }
        }
        let last = t.now - 100;
        let mut asked_at = None;
        while t.obu.attachment().is_some() && t.now < last + 2000 {
            if t.asked().contains(&upstream) {
                asked_at.get_or_insert(t.now - last);
            }
            t.pass(t.now + 5);
        }
        (asked_at.unwrap_or_default(), t.now - last)
    };
    let alone = left_after(1, (RSU, 0), false);
    assert!(alone.0 <= 125 && alone.1 <= 230, "{alone:?}");
    let heard_well = left_after(200, (RSU, 0), false);
    assert!((220..=275).contains(&heard_well.0) && heard_well.1 <= 305, "{heard_well:?}");
    for upstream in [(RSU, 0), (A, 1)] {
        let (asked, left) = left_after(200, upstream, true);
        assert!((320..=375).contains(&asked) && (400..=405).contains(&left), "{asked}, {left}");
    }
    let relay = left_after(200, (A, 1), false);
    assert!((220..=275).contains(&relay.0) && relay.1 <= 305, "{relay:?}");
}

#[test]
fn where_it_is_congested_the_long_way_round_is_taken_only_after_the_next_heartbeats() {
    // B leads there as well, but in so many hops, and has just proven that it hears us.
    let taken_after = |obus, hops| {
        let mut t = behind_a(obus);
        let lost = t.now;
        t.seq += 1;
        t.hear(lost, B, Heard::heartbeat_via(t.seq, hops, US));
        t.hear(lost, B, Heard::heartbeat_via(t.seq + 1, hops, D));
        t.hear(lost, A, Heard::Withdrawal { goodbye: false });
        while t.obu.attachment().is_none() && t.now < lost + 1000 {
            t.pass(t.now + 5);
        }
        assert_eq!(t.obu.attachment(), attached(RSU, B, hops + 1));
        t.now - lost
    };
    assert_eq!((taken_after(1, 1), taken_after(1, 6)), (0, 0));
    assert_eq!(taken_after(200, 1), 0);
    assert!((220..=225).contains(&taken_after(200, 6)), "{}", taken_after(200, 6));
}

#[test]
fn who_has_left_the_jam_for_ten_seconds_is_not_congested_any_more() {
    // Its RSU still has all of them. Alone, one late heartbeat is reason to ask while clients
    // speak.
    let asks_after = |seconds: usize| {
        let mut t = behind_a(200);
        for _ in 0..seconds * 10 {
            beat_among(&mut t, 0, &[A, B], &[A, B]);
        }
        let last = t.now - 100;
        t.clear();
        t.pass(last + 200);
        t.asked().contains(&A)
    };
    assert_eq!([2, 8, 12, 58].map(asks_after), [false, false, true, true]);
}

#[test]
fn who_is_behind_a_relay_that_moved_says_nothing_however_many_there_are() {
    for obus in [1, 200] {
        let mut t = behind_a(obus);
        // It was in doubt about A, and hears it again.
        t.hear(t.now, A, Heard::heartbeat(t.seq, 1));
        t.acknowledge_all();
        let said = |t: &mut Talk, via| {
            t.clear();
            t.seq += 1;
            t.hear(t.now, A, Heard::heartbeat_via(t.seq, 1, via));
            t.pass(t.now + 21);
            (t.announcements(), t.replies_sent().iter().filter(|reply| reply.acknowledge).count())
        };
        assert_eq!(said(&mut t, D), (0, 0), "{obus}");
        assert_eq!(said(&mut t, RSU), (0, 0), "{obus}");
    }
}

#[test]
fn who_changes_again_and_again_asks_for_acknowledgements_within_the_budget() {
    let words_in_ten_seconds = |obus| {
        let mut t = behind_a(obus);
        let mut words = 0;
        for turn in 0..50 {
            let (from, to) = if turn % 2 == 0 { (A, B) } else { (B, A) };
            t.hear(t.now, from, Heard::Withdrawal { goodbye: false });
            for _ in 0..2 {
                words += beat(&mut t, &[to], &[to]);
            }
        }
        words
    };
    // All but the first, if it was through B already.
    let alone = words_in_ten_seconds(1);
    assert!((49..=50).contains(&alone), "{alone}");
    for obus in CROWDS {
        let (part, words) =
            (part_of(obus, 10 * ANNOUNCEMENTS_PER_SECOND), words_in_ten_seconds(obus));
        // A burst of at most as many as two changes take.
        assert!((3..=part + 4).contains(&words), "{obus} OBUs: {words}, part {part}");
    }
}

#[test]
fn who_has_spent_its_budget_does_not_speak_again_at_an_even_time_as_all_others_do() {
    let mut t = behind_a(200);
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    let mut said = Vec::new();
    for step in 0..4000 {
        hear_at_once(&mut t, B, step % 20 == 0);
        said.extend(t.words().iter().map(|_| t.now));
        t.clear();
        t.pass(t.now + 5);
    }
    assert!(said.len() >= 8, "{said:?}");
    let at_even_times = said.windows(2).filter(|pair| pair[1] - pair[0] == 2000).count();
    assert_eq!(at_even_times, 0, "{said:?}");
}

#[test]
fn a_relay_without_a_way_tells_those_behind_it_only_when_the_next_heartbeats_have_come() {
    let told_after = |obus| {
        let mut t = behind_a(obus);
        t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
        beat(&mut t, &[A], &[A]);
        t.clear();
        let lost = t.now;
        // Somebody who may be asked is all there is to hope for.
        t.hear(lost, D, Heard::heartbeat(t.seq, 1));
        t.hear(lost, B, Heard::Withdrawal { goodbye: false });
        t.hear(lost, A, Heard::Withdrawal { goodbye: false });
        while t.withdrawals() == 0 && t.now < lost + 1000 {
            t.pass(t.now + 5);
        }
        t.now - lost
    };
    assert!(told_after(1) < 100, "before the next heartbeat");
    // Two heartbeats could have come, and they still believe in us.
    assert!((201..300).contains(&told_after(200)), "{}", told_after(200));
}

#[test]
fn a_neighbour_that_heard_it_eight_seconds_ago_is_taken_without_asking() {
    let moves_at_once = |obus| {
        let mut t = behind_a(obus);
        // Named by B, so heard by B; then B has another upstream, and answers no more.
        t.hear(t.now, B, Heard::heartbeat_via(t.seq, 1, US));
        for _ in 0..80 {
            beat(&mut t, &[A, B], &[A]);
        }
        t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
        t.obu.attachment() == attached(RSU, B, 2)
    };
    assert!(!moves_at_once(1));
    assert!(moves_at_once(200));
}

#[test]
fn a_new_upstream_is_said_at_once_even_when_the_budget_is_empty() {
    let mut t = behind_a(200);
    // Named by B, so heard by B.
    t.hear(t.now, B, Heard::heartbeat_via(t.seq, 1, US));
    beat(&mut t, &[A, B], &[A, B]);
    // Without and with wanting to be acknowledged.
    let mut said_with = [0, 0];
    for turn in 0..10 {
        let (from, to) = if turn % 2 == 0 { (A, B) } else { (B, A) };
        t.clear();
        t.hear(t.now, from, Heard::Withdrawal { goodbye: false });
        t.pass(t.now + 1);
        assert_eq!(t.obu.attachment(), attached(RSU, to, 2));
        let [said] = t.replies_sent()[..] else { panic!("turn {turn}: not one reply") };
        assert_eq!(said.via, id(to), "turn {turn}");
        said_with[usize::from(said.acknowledge)] += 1;
        beat(&mut t, &[A, B], &[A, B]);
    }
    assert!(said_with[0] >= 6 && said_with[1] >= 2, "{said_with:?}");
}

/// One whose budget is used up, and that is expected at another RSU, which starts again: what that
/// one is told in each tenth of the next fifteen seconds, by replies nobody acknowledges and by
/// announcements.
fn told_without_budget(is_relay: bool) -> Vec<(usize, usize)> {
    let mut t = behind_a(200);
    t.hear(t.now, B, Heard::heartbeat_via(t.seq, 1, US));
    let beat_with = |t: &mut Talk, boot: u32| {
        beat(t, &[A, B], &[A, B]);
        t.rsu = OTHER_RSU;
        t.hear(t.now, C, Heard::Heartbeat { boot, seq: t.seq, hops: 1, via: None });
        if let Some(nonce) = t.last_probe(C) {
            t.hear(t.now, C, Heard::answer(nonce, t.seq, 1));
        }
        if is_relay {
            t.hear(t.now, D, Heard::Standby { origin: D, rsu: OTHER_RSU, seq: t.seq });
            t.down(C, next(D), t.seq);
        }
        t.rsu = RSU;
        let is_ours = |r: &&HeartbeatReply| (r.rsu, r.origin) == (id(OTHER_RSU), id(US));
        let replies = t.replies_sent().iter().filter(is_ours).filter(|r| !r.acknowledge).count();
        let is_there = |(_, rsu, ..): &&(Mac, Mac, u32, bool)| *rsu == OTHER_RSU;
        (replies, t.announced().iter().filter(is_there).count())
    };
    // C leads to the other RSU. It has named us, so it hears us.
    t.rsu = OTHER_RSU;
    t.hear(t.now, C, Heard::heartbeat_via(t.seq, 1, US));
    t.rsu = RSU;
    let told: usize = (0..60).map(|_| beat_with(&mut t, 1).1).sum();
    assert_eq!(told, 1, "we may go there next");
    // New upstreams take all there is to say.
    for turn in 0..10 {
        beat_with(&mut t, 1);
        t.hear(t.now, if turn % 2 == 0 { A } else { B }, Heard::Withdrawal { goodbye: false });
        t.pass(t.now + 1);
    }
    (0..150).map(|_| beat_with(&mut t, 2)).collect()
}

#[test]
fn without_budget_an_rsu_is_told_at_once_if_it_sends_frames_here() {
    let told = told_without_budget(false);
    assert!(told.iter().all(|(replies, _)| *replies == 0), "{told:?}");
    assert_eq!(told.iter().map(|(_, sets)| sets).sum::<usize>(), 1, "{told:?}");
    let told = told_without_budget(true);
    assert!(told[..10].iter().any(|(replies, _)| *replies > 0), "{told:?}");
}

#[test]
fn an_rsu_that_asks_is_told_all_clients_whatever_the_budget_but_not_more_than_once_a_second() {
    let mut t = behind_a(1000);
    let asks = || Heard::Ack { epoch: 0, status: AckStatus::SendAll, digest: 0 };
    let mut told = Vec::new();
    let start = t.now;
    // Somebody else asks in its name, a hundred times a second, and nobody acknowledges.
    for step in 0..500 {
        hear_at_once(&mut t, A, step % 10 == 0);
        t.hear(t.now, A, asks());
        told.extend((0..t.announcements()).map(|_| t.now - start));
        t.clear();
        t.pass(t.now + 10);
    }
    // Within five seconds: what there was a budget for, and five more.
    assert!((5..=10).contains(&told.len()), "{told:?}");
    assert!(told[0] == 0 && told.windows(2).all(|pair| pair[1] - pair[0] <= 1010), "{told:?}");
}

#[test]
fn few_or_many_an_upstream_is_in_doubt_after_three_questions() {
    let asked_until_doubted = |obus| {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(A, 1);
        for _ in 0..50 {
            beat_among(&mut t, 0, &[A, B], &[A, B]);
        }
        t.clear();
        let doubted = t.obu.counters().upstream_doubted;
        while t.obu.counters().upstream_doubted == doubted {
            t.pass(t.now + 1);
            t.answer_probes_of(B);
        }
        t.asked().iter().filter(|who| **who == A).count()
    };
    // With the one that is sent in that moment.
    assert_eq!((asked_until_doubted(2), asked_until_doubted(200)), (4, 4));
}
