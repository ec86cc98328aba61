//! Which RSU an OBU goes to when one of them was heard again a moment ago, and has not proven since
//! that it hears us.

use node_lib::Mac;
use node_lib::control::event::{Cause, Event};

use crate::talk::{CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, attached};

const THIRD: Mac = Mac([2, 0, 0, 0, 0, 0x12]);

/// Another RSU's heartbeat comes, and it answers what it was asked.
fn speak(t: &mut Talk, rsu: Mac) {
    t.rsu = rsu;
    t.hear(t.now, rsu, Heard::heartbeat(t.seq, 0));
    answer(t, rsu);
}

fn answer(t: &mut Talk, rsu: Mac) {
    t.rsu = rsu;
    if let Some(nonce) = t.last_probe(rsu) {
        t.hear(t.now, rsu, Heard::answer(nonce, t.seq, 0));
        t.forget_sent_to(rsu);
    }
    t.rsu = RSU;
}

/// A frame of a client each 10 ms; these answer what they are asked.
fn drive(t: &mut Talk, ms: u64, answering: &[Mac]) {
    for _ in 0..ms / 10 {
        t.pass(t.now + 10);
        t.tap(CAMERA, SERVER);
        answering.iter().for_each(|rsu| answer(t, *rsu));
    }
}

/// Attached to an RSU that has just said its last. The other one, of which no heartbeat was
/// lost before, has been silent for 300 ms. The third, if there is one, loses every other.
fn with(third: bool) -> Talk {
    let mut t = Talk::new();
    t.settle(RSU, 0);
    t.acknowledge(RSU);
    for beat in 0..40 {
        let is_last = beat >= 37;
        drive(&mut t, 100, if is_last { &[RSU, THIRD] } else { &[RSU, THIRD, OTHER_RSU] });
        t.seq += 1;
        speak(&mut t, RSU);
        t.acknowledge_all();
        if !is_last {
            speak(&mut t, OTHER_RSU);
        }
        if third && beat % 2 == 1 {
            speak(&mut t, THIRD);
        }
    }
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
    t.events();
    t
}

/// Before ours is given up the other one is heard again, and the third as always.
fn hear_again(t: &mut Talk, third: bool) {
    drive(t, 80, &[THIRD]);
    t.seq += 1;
    if third {
        speak(t, THIRD);
    }
    t.rsu = OTHER_RSU;
    t.hear(t.now, OTHER_RSU, Heard::heartbeat(t.seq, 0));
    t.rsu = RSU;
}

fn changes(t: &mut Talk) -> Vec<(Option<Mac>, Cause)> {
    let change = |event| match event {
        Event::UpstreamChanged { to, cause, .. } => Some((to.map(|to| Mac(to.rsu.0)), cause)),
        _ => None,
    };
    t.events().into_iter().filter_map(change).collect()
}

#[test]
fn one_that_answers_is_preferred_and_the_obu_goes_there_at_once() {
    let mut t = with(true);
    hear_again(&mut t, true);
    drive(&mut t, 100, &[THIRD]);
    assert_eq!(changes(&mut t), [(Some(THIRD), Cause::Dead)]);
}

#[test]
fn where_there_is_no_other_it_is_asked_at_once_and_has_the_time_to_answer() {
    let mut t = with(false);
    hear_again(&mut t, false);
    while t.obu.attachment() == attached(RSU, RSU, 1) {
        drive(&mut t, 10, &[]);
    }
    drive(&mut t, 20, &[]);
    assert!(t.last_probe(OTHER_RSU).is_some(), "it is asked");
    answer(&mut t, OTHER_RSU);
    for _ in 0..10 {
        t.seq += 1;
        speak(&mut t, OTHER_RSU);
        drive(&mut t, 100, &[OTHER_RSU]);
    }
    assert_eq!(changes(&mut t), [(Some(OTHER_RSU), Cause::Dead)]);
}
