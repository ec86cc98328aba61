//! An OBU that hears of several RSUs: whose heartbeats it relays, and whom it shares the radio
//! with.

use node_lib::Mac;
use node_lib::control::node::Node;

use crate::talk::{A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, attached, id};

const FAR: [Mac; 3] = [OTHER_RSU, Mac([2, 0, 0, 0, 0, 0x12]), Mac([2, 0, 0, 0, 0, 0x13])];

/// The RSU we are attached to speaks, then B, which is behind us, relays what others say: RSU, hops
/// to it from B, and the OBUs it has.
fn beat(t: &mut Talk, ours: u16, others: &[(Mac, u8, u16)]) {
    t.pass(t.now + 50);
    t.seq += 1;
    let seq = t.seq;
    (t.rsu, t.obus) = (RSU, ours);
    t.hear(t.now, RSU, Heard::heartbeat(seq, 0));
    answer(t, RSU, 0);
    if t.announced().last().is_some_and(|(_, rsu, ..)| *rsu == RSU) {
        t.acknowledge(RSU);
    }
    t.pass(t.now + 50);
    t.hear(t.now, B, Heard::heartbeat_via(seq, 1, US));
    for (rsu, hops, obus) in others {
        (t.rsu, t.obus) = (*rsu, *obus);
        t.hear(t.now, B, Heard::heartbeat(seq, *hops));
        answer(t, B, *hops);
    }
    t.rsu = RSU;
}

fn answer(t: &mut Talk, who: Mac, hops: u8) {
    if let Some(nonce) = t.last_probe(who) {
        t.hear(t.now, who, Heard::answer(nonce, t.seq, hops));
        t.forget_sent_to(who);
    }
}

fn attached_with(obus: u16) -> Talk {
    let mut t = Talk::new();
    t.obus = obus;
    t.settle(RSU, 0);
    t
}

/// How many heartbeats of each are relayed within forty.
fn relayed(t: &mut Talk, ours: u16, others: &[(Mac, u8, u16)]) -> Vec<usize> {
    (0..20).for_each(|_| beat(t, ours, others));
    t.pass(t.now + 40);
    t.clear();
    (0..40).for_each(|_| beat(t, ours, others));
    t.pass(t.now + 40);
    let said = t.heartbeats();
    let of = |rsu: &Mac| said.iter().filter(|heartbeat| heartbeat.rsu == id(*rsu)).count();
    [&RSU].into_iter().chain(others.iter().map(|(rsu, ..)| rsu)).map(of).collect()
}

#[test]
fn only_heartbeats_of_the_nearest_rsus_are_relayed() {
    let mut t = attached_with(1);
    let others = [(FAR[0], 3, 1), (FAR[1], 2, 1), (FAR[2], 1, 1)];
    assert_eq!(relayed(&mut t, 1, &others), [40, 0, 40, 40], "the farthest is not");
    assert_eq!(relayed(&mut t, 1, &others[..2]), [40, 40, 40], "it is when one of them is gone");
}

#[test]
fn of_equally_near_rsus_all_relay_the_same() {
    let mut t = attached_with(1);
    let others = [(FAR[2], 1, 1), (FAR[1], 1, 1), (FAR[0], 1, 1)];
    assert_eq!(relayed(&mut t, 1, &others), [40, 0, 40, 40]);
}

#[test]
fn whoever_sends_through_us_to_a_far_rsu_goes_on_hearing_of_it() {
    let mut t = attached_with(1);
    let others = [(FAR[0], 3, 1), (FAR[1], 2, 1), (FAR[2], 1, 1)];
    (0..30).for_each(|_| beat(&mut t, 1, &others));
    t.clear();
    for n in 0..20 {
        t.hear(t.now, C, Heard::Standby { origin: C, rsu: FAR[0], seq: n + 1 });
        beat(&mut t, 1, &others);
    }
    t.pass(t.now + 40);
    let of_far = t.heartbeats().iter().filter(|heartbeat| heartbeat.rsu == id(FAR[0])).count();
    assert_eq!(of_far, 20);
}

#[test]
fn a_neighbour_that_does_not_answer_is_asked_ever_more_rarely() {
    let mut t = attached_with(1);
    let mut asked = Vec::new();
    for _ in 0..150 {
        t.pass(t.now + 100);
        t.seq += 1;
        t.rsu = RSU;
        t.hear(t.now, RSU, Heard::heartbeat(t.seq, 0));
        answer(&mut t, RSU, 0);
        t.rsu = OTHER_RSU;
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        asked.push(t.asked().iter().filter(|who| **who == B).count());
        t.clear();
    }
    let (first, last): (usize, usize) = (asked[..20].iter().sum(), asked[50..].iter().sum());
    assert!((5..=20).contains(&first), "{asked:?}");
    // Once a second, and as often as all candidates are.
    assert!((5..=25).contains(&last), "{asked:?}");
}

/// Questions asked within sixty heartbeats.
fn asked(t: &mut Talk, ours: u16, others: &[(Mac, u8, u16)]) -> u64 {
    (0..20).for_each(|_| beat(t, ours, others));
    let before = t.obu.counters().probe_tx;
    (0..60).for_each(|_| beat(t, ours, others));
    t.obu.counters().probe_tx - before
}

#[test]
fn obus_of_all_rsus_around_are_one_crowd() {
    // All of a crowd together ask twice per interval.
    let others = |obus| [(OTHER_RSU, 1, obus)];
    let (few, many) = (
        asked(&mut attached_with(20), 20, &others(1)),
        asked(&mut attached_with(20), 20, &others(60)),
    );
    assert!((5..=8).contains(&few), "{few}");
    assert!((1..=2).contains(&many), "{many}");
}

#[test]
fn obus_of_an_rsu_far_away_are_in_nobodys_way() {
    let asked = asked(&mut attached_with(20), 20, &[(OTHER_RSU, 2, 60)]);
    assert!((5..=8).contains(&asked), "{asked}");
}

#[test]
fn in_a_crowd_who_would_be_better_is_asked_before_those_that_are_known() {
    let mut t = Talk::settled_behind(A);
    t.acknowledge_all();
    t.prove_towards(OTHER_RSU, B, 2);
    // All of a hundred together ask twice per interval: each once in five seconds. A is our
    // upstream; C could be as well; towards the other RSU B is known, and that RSU itself is heard.
    t.obus = 100;
    let mut asked = Vec::new();
    for n in 1..=550 {
        t.pass(t.now + 100);
        t.rsu = RSU;
        t.beat(A, 2);
        t.hear(t.now, C, Heard::heartbeat(t.seq, 2));
        t.rsu = OTHER_RSU;
        let seq = 100 + n;
        t.hear(t.now, B, Heard::heartbeat(seq, 2));
        if n > 60 {
            t.hear(t.now, OTHER_RSU, Heard::heartbeat(seq, 0));
            asked.extend(t.asked());
        }
        t.clear();
    }
    // It does not answer, and is asked twice more before all take their turns again.
    assert_eq!(asked[..3], [OTHER_RSU; 3], "{asked:?}");
    assert!((4..=6).contains(&asked.len()), "{asked:?}");
    assert!(asked[3..].iter().all(|who| *who != OTHER_RSU), "{asked:?}");
}

#[test]
fn in_a_crowd_an_rsu_that_does_not_acknowledge_takes_no_question_from_the_upstream() {
    let mut t = Talk::new();
    t.obus = 100;
    t.settle(RSU, 0);
    let mut asked = Vec::new();
    for n in 1..=800 {
        t.pass(t.now + 100);
        if n > 200 {
            asked.extend(t.asked());
        }
        // Both answer questions, but the near one acknowledges nothing.
        for (rsu, who, hops) in [(RSU, RSU, 0), (OTHER_RSU, B, 2)] {
            t.rsu = rsu;
            t.hear(t.now, who, Heard::heartbeat(10 + n, hops));
            answer(&mut t, who, hops);
        }
        if t.announced().last().is_some_and(|(_, rsu, ..)| *rsu == OTHER_RSU) {
            t.acknowledge(B);
        }
        t.clear();
    }
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, B, 3), "the near one is shunned");
    let of_upstream = asked.iter().filter(|who| **who == B).count();
    assert!(of_upstream * 2 > asked.len() && asked.len() > 5, "{asked:?}");
}

#[test]
fn in_a_crowd_no_rsu_stays_on_standby_when_the_clients_are_still() {
    let mut t = attached_with(200);
    let said_there = |t: &mut Talk, seconds: u64, speaks: bool| {
        let mut said = 0;
        for _ in 0..seconds * 10 {
            t.seq += 1;
            for rsu in [RSU, OTHER_RSU] {
                t.rsu = rsu;
                t.hear(t.now, rsu, Heard::heartbeat(t.seq, 0));
            }
            t.clear();
            if speaks {
                t.tap(CAMERA, SERVER);
            }
            for _ in 0..10 {
                t.pass(t.now + 10);
                for rsu in [RSU, OTHER_RSU] {
                    t.rsu = rsu;
                    if let Some(nonce) = t.last_probe(rsu) {
                        t.hear(t.now, rsu, Heard::answer(nonce, t.seq, 0));
                    }
                }
            }
            let announced = t.announced();
            t.acknowledge_all();
            let announced = announced.into_iter().map(|(_, rsu, ..)| rsu);
            let replied = t.replied().into_iter().map(|(_, rsu, _)| rsu);
            said += announced.chain(replied).filter(|rsu| *rsu == OTHER_RSU).count();
        }
        assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
        said
    };
    assert!(said_there(&mut t, 60, true) > 1, "who speaks is expected at the next RSU");
    // Five seconds until that is still, two until it is believed.
    said_there(&mut t, 8, false);
    assert_eq!(said_there(&mut t, 30, false), 0);
}

#[test]
fn what_was_advertised_for_an_rsu_is_kept_however_many_others_are_heard() {
    let mut t = attached_with(1);
    (0..40).for_each(|_| beat(&mut t, 1, &[(OTHER_RSU, 1, 1)]));
    let advertised = |t: &Talk| t.obu.advertised_for(id(OTHER_RSU));
    assert!(advertised(&t).is_some());
    for n in 0..200 {
        t.rsu = Mac([2, 0, 0, 0, 3, n]);
        t.hear(t.now, C, Heard::heartbeat(1, 1));
    }
    assert!(advertised(&t).is_some(), "somebody may send through us still");
    t.rsu = RSU;
    t.pass(t.now + 700);
    for n in 0..200 {
        t.rsu = Mac([2, 0, 0, 0, 4, n]);
        t.hear(t.now, C, Heard::heartbeat(1, 1));
    }
    assert_eq!(advertised(&t), None, "by now nobody can");
    // Of all 402 it knows 64.
    assert_eq!(t.obu.counters().evicted, 402 - 64);
}
