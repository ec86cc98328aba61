//! What an RSU says by itself and when asked: heartbeats, answers to probes, withdrawals, goodbyes.

use std::time::Duration;

use node_lib::control::node::{LinkEvent, Node};
use node_lib::messages::Rhythm;
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::probe::Probe;
use node_lib::{Boot, Mac, NodeId};

use crate::talk::{A, B, CAMERA, SERVER, Talk, US, id, to};

#[test]
fn heartbeats_come_at_the_period_give_or_take_a_tenth_and_count_up() {
    let mut t = Talk::new();
    t.pass(10_000);
    let beats = t.heartbeats();
    assert!((98..=102).contains(&beats.len()), "{}", beats.len());
    for pair in beats.windows(2) {
        assert_eq!(pair[1].1.order, pair[0].1.order.next());
        let gap = pair[1].0 - pair[0].0;
        assert!((89..=111).contains(&gap), "{gap} ms");
    }
    assert_eq!(
        (beats[0].1.hops, beats[0].1.via, beats[0].1.rhythm),
        (0, NodeId::NONE, Rhythm::each(100))
    );
}

#[test]
fn numbers_count_time_whatever_is_heard_first_after_the_rsu_stood_still() {
    for event in [LinkEvent::Up, LinkEvent::LanUp, LinkEvent::MtuChanged(1500)] {
        let mut t = Talk::new();
        t.pass(1000);
        let before = t.heartbeats().last().unwrap().1.order.seq.0;
        t.now = 6000;
        t.rsu.handle_link(t.at(), event, &mut t.out);
        t.collect();
        let after = t.heartbeats().last().unwrap().1.order.seq.0;
        assert!((49..=51).contains(&(after - before)), "{event:?}: {before}, {after} 5 s later");
    }
}

#[test]
fn the_round_trip_is_measured_without_the_time_the_obu_held_the_heartbeat() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.pass(t.now + 150);
    let (at, beat) = *t.heartbeats().last().unwrap();
    t.pass(at + 30);
    t.reply_to(A, beat.order.seq, 200);
    let attached = t.rsu.attached();
    let rtt = attached[0].round_trip.unwrap();
    assert!(rtt <= Duration::from_millis(11) && rtt >= Duration::from_millis(9), "{rtt:?}");
}

#[test]
fn a_probe_is_answered_with_the_heartbeat_last_sent() {
    let mut t = Talk::new();
    t.pass(250);
    t.clear();
    t.hear(
        A,
        US,
        Probe { sender: id(A), sender_boot: Boot(1), nonce: 7, rsu: id(US), asked: id(US) }.into(),
    );
    let answer = t.each(|to, control| match control {
        Control::ProbeAnswer(answer) => Some((to, answer.nonce, answer.route.unwrap().hops)),
        _ => None,
    });
    assert_eq!(answer, [(A, 7, 0)]);
}

const NEW: Mac = Mac([2, 0, 0, 0, 4, 1]);

#[test]
fn in_a_crowd_the_second_of_two_questions_at_once_is_answered_for_all() {
    let answered = |obus: u8, askers: [Mac; 2]| {
        let mut t = Talk::new();
        for n in 2..obus {
            let obu = Mac([2, 0, 0, 0, 3, n]);
            t.announce(obu, obu, 1, &[]);
        }
        t.announce(A, A, 1, &[]);
        t.announce(B, B, 1, &[]);
        t.pass(250);
        t.clear();
        for asker in askers {
            let sender = id(asker);
            let probe =
                Probe { sender, sender_boot: Boot(1), nonce: 7, rsu: id(US), asked: id(US) };
            t.hear(asker, US, probe.into());
        }
        t.each(|to, control| matches!(control, Control::ProbeAnswer(_)).then_some(to))
    };
    assert_eq!(answered(16, [A, B]), [A, Mac::BROADCAST]);
    assert_eq!(answered(15, [A, B]), [A, B], "no crowd");
    assert_eq!(answered(16, [A, NEW]), [A, NEW], "not behind us: it needs a proof of its own");
}

#[test]
fn a_goodbye_is_said_three_times_and_no_heartbeat_after_it() {
    let mut t = Talk::new();
    t.pass(150);
    t.clear();
    t.rsu.handle_shutdown(t.at(), &mut t.out);
    t.collect();
    t.pass(t.now + 1000);
    let goodbyes = t.each(|_, c| match c {
        Control::Withdrawal(withdrawal) => Some(withdrawal.goodbye),
        _ => None,
    });
    assert_eq!(goodbyes, [true; 3]);
    assert_eq!(t.heartbeats().len(), 0);
    assert_eq!(t.rsu.linger(), Duration::from_millis(200), "while others still send through it");
}

#[test]
fn without_a_lan_it_withdraws_is_silent_and_no_way_and_comes_back() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.pass(300);
    t.clear();
    t.rsu.handle_link(t.at(), LinkEvent::LanDown, &mut t.out);
    t.pass(1000);
    let withdrawals = t.each(|_, c| match c {
        Control::Withdrawal(w) => Some((w.goodbye, w.rsus.iter().collect::<Vec<_>>())),
        _ => None,
    });
    assert_eq!(withdrawals, vec![(false, vec![id(US)]); 3]);
    assert_eq!(t.heartbeats().len(), 0);
    t.clear();
    let probe = Probe { sender: id(A), sender_boot: Boot(1), nonce: 1, rsu: id(US), asked: id(US) };
    t.hear(A, US, probe.into());
    t.hear(A, Mac::BROADCAST, Probe { rsu: NodeId::NONE, asked: NodeId::NONE, ..probe }.into());
    let routes = t.each(|_, c| match c {
        Control::ProbeAnswer(answer) => Some(answer.route.is_some()),
        _ => None,
    });
    assert_eq!(routes, [false], "asked, there is no way; asked by all, nothing");
    t.clear();
    t.rsu.handle_link(t.at(), LinkEvent::LanUp, &mut t.out);
    t.pass(2000);
    assert!((9..=12).contains(&t.heartbeats().len()), "{}", t.heartbeats().len());
}

/// A LAN that was lost for a while. Who was attached has been told to go, if it could hear it.
fn lan_lost_and_back(t: &mut Talk) {
    t.rsu.handle_link(t.at(), LinkEvent::LanDown, &mut t.out);
    t.pass(t.now + 400);
    t.rsu.handle_link(t.at(), LinkEvent::LanUp, &mut t.out);
    t.clear();
}

fn is_sent_down(t: &mut Talk) -> bool {
    t.clear();
    t.tap(SERVER, CAMERA);
    t.sent_down() == [(A, to(A, 0))]
}

#[test]
fn who_was_attached_when_the_lan_was_lost_is_sent_frames_once_it_says_that_it_is_here() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    assert!(is_sent_down(&mut t));
    lan_lost_and_back(&mut t);
    assert!(!is_sent_down(&mut t), "it may be at another RSU by now");
    t.announce(A, A, 2, &[CAMERA]);
    assert!(is_sent_down(&mut t));
    // One that has not heard that it is to go says what it said before, or sends a frame.
    lan_lost_and_back(&mut t);
    t.reply(A, 2, &[CAMERA], false);
    assert!(is_sent_down(&mut t));
    lan_lost_and_back(&mut t);
    t.up(A, CAMERA, SERVER);
    assert_eq!(t.acks(), [(A, AckStatus::SendAll, 0)]);
    assert!(is_sent_down(&mut t));
}

#[test]
fn a_radio_that_is_down_sends_nothing_and_beats_at_once_when_it_is_back() {
    let mut t = Talk::new();
    t.rsu.handle_link(t.at(), LinkEvent::Down, &mut t.out);
    t.pass(500);
    assert_eq!(t.heartbeats().len(), 0);
    t.rsu.handle_link(t.at(), LinkEvent::Up, &mut t.out);
    t.collect();
    assert_eq!(t.heartbeats().len(), 1);
}
