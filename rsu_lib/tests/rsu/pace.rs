//! When an RSU speaks: never two heartbeats at once, and goodbyes apart, however often it is woken;
//! and rarer where its channel is full.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node};
use node_lib::messages::Rhythm;
use node_lib::messages::control::Control;
use node_lib::messages::control::probe::Probe;
use node_lib::{Boot, NodeId, Start, Timestamp};
use rsu_lib::{Rsu, Settings};

use crate::talk::{A, Talk, US, id};

fn is_asked(t: &mut Talk) {
    let probe =
        Probe { sender: id(A), sender_boot: Boot(1), nonce: 7, rsu: NodeId::NONE, asked: id(US) };
    t.hear(A, US, probe.into());
}

#[test]
fn after_a_stall_one_heartbeat_is_sent_and_the_next_not_at_once() {
    let mut t = Talk::new();
    t.pass(1000);
    t.clear();
    // Nobody wakes it for two seconds.
    t.now = 3000;
    t.rsu.handle_timeout(t.at(), &mut t.out);
    t.collect();
    assert_eq!(t.heartbeats().len(), 1);
    t.pass(3035);
    assert_eq!(t.heartbeats().len(), 1, "at least four tenths of the interval later");
    t.pass(3115);
    assert_eq!(t.heartbeats().len(), 2);
    t.clear();
    t.pass(5115);
    assert!((18..=22).contains(&t.heartbeats().len()), "and at the usual pace from then on");
}

/// Numbers of the heartbeats sent since the last [`Talk::clear`].
fn numbers(t: &Talk) -> Vec<u32> {
    t.heartbeats().iter().map(|(_, heartbeat)| heartbeat.order.seq.0).collect()
}

/// Something that keeps an RSU from speaking until 6 s.
type Pause = fn(&mut Talk);

#[test]
fn numbers_of_heartbeats_count_time_also_while_none_is_sent() {
    let pauses: [(&str, Pause); 3] = [
        ("its radio is down", |t| {
            link(t, LinkEvent::Down);
            t.pass(6000);
            link(t, LinkEvent::Up);
        }),
        ("its LAN is down", |t| {
            link(t, LinkEvent::LanDown);
            t.pass(6000);
            link(t, LinkEvent::LanUp);
        }),
        ("it stands still", |t| {
            t.now = 6000;
            t.rsu.handle_timeout(t.at(), &mut t.out);
            t.collect();
        }),
    ];
    for (what, pause) in pauses {
        let mut t = Talk::new();
        t.pass(1000);
        let before = *numbers(&t).last().unwrap();
        t.clear();
        pause(&mut t);
        let after = *numbers(&t).first().unwrap();
        assert!((46..=54).contains(&(after - before)), "{what}: {before}, then {after}");
        t.clear();
        t.pass(7000);
        assert!(numbers(&t).iter().zip(after + 1..).all(|(number, next)| *number == next));
    }
}

/// The radio tells each second until then that its channel is busy for so many per cent.
fn pass_busy(t: &mut Talk, until_s: u64, percent: u8) {
    for s in t.now / 1000 + 1..=until_s {
        t.pass(s * 1000 - 1);
        link(t, LinkEvent::ChannelBusy(percent));
    }
    t.clear();
}

#[test]
fn on_a_full_channel_it_speaks_rarer_and_its_numbers_count_time_as_before() {
    let hello_periodicity = Duration::from_millis(50);
    let mut t = Talk::with(Settings { hello_periodicity, ..Settings::default() });
    pass_busy(&mut t, 4, 60);
    let before = t.now;
    t.pass(before + 1900);
    assert!((8..=11).contains(&t.heartbeats().len()), "a quarter: {}", t.heartbeats().len());
    for (_, heartbeat) in t.heartbeats() {
        assert_eq!((heartbeat.rhythm, heartbeat.stride), (Rhythm { tick_ms: 50, pace: 2 }, 0));
        assert_eq!(heartbeat.order.seq.0 % 4, 0);
    }
    let numbers = numbers(&t);
    assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] == 4), "{numbers:?}");
    let changes: Vec<_> = t.events().into_iter().filter(|e| e.kind().contains("pace")).collect();
    let changed =
        |ms| Event::PaceChanged { every: Duration::from_millis(ms), busy_percent: Some(60) };
    assert_eq!(changes, [changed(100), changed(200)]);
    is_asked(&mut t);
    let said = t.each(|_, control| match control {
        Control::ProbeAnswer(answer) => answer.route.map(|route| route.rhythm),
        _ => None,
    });
    assert_eq!(said, [Rhythm { tick_ms: 50, pace: 2 }]);
}

#[test]
fn when_the_channel_has_room_again_or_nobody_tells_it_speaks_as_it_was_told_to() {
    let until_usual: [fn(&mut Talk); 2] = [|t| pass_busy(t, 8, 20), |t| t.pass(10_000)];
    for wait in until_usual {
        let mut t = Talk::new();
        pass_busy(&mut t, 4, 90);
        wait(&mut t);
        t.clear();
        t.pass(t.now + 2000);
        assert!((19..=21).contains(&t.heartbeats().len()), "{}", t.heartbeats().len());
        assert!(t.heartbeats().iter().all(|(_, heartbeat)| heartbeat.rhythm.pace == 0));
    }
}

#[test]
fn goodbyes_are_apart_though_it_is_asked_all_the_time() {
    let mut t = Talk::new();
    t.pass(150);
    t.clear();
    t.rsu.handle_shutdown(t.at(), &mut t.out);
    t.collect();
    let mut said = Vec::new();
    for _ in 0..100 {
        if withdrawn(&t) > said.len() {
            said.push(t.now);
        }
        t.pass(t.now + 1);
        is_asked(&mut t);
    }
    assert_eq!(said.len(), 3);
    assert!(said.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{said:?}");
}

fn withdrawn(t: &Talk) -> usize {
    t.each(|_, c| matches!(c, Control::Withdrawal(_)).then_some(())).len()
}

fn link(t: &mut Talk, event: LinkEvent) {
    t.rsu.handle_link(t.at(), event, &mut t.out);
    t.collect();
}

#[test]
fn a_lan_that_comes_back_at_once_ends_the_withdrawal_but_no_goodbye() {
    let mut t = Talk::new();
    t.pass(150);
    t.clear();
    link(&mut t, LinkEvent::LanDown);
    t.pass(t.now + 1);
    link(&mut t, LinkEvent::LanUp);
    t.pass(t.now + 100);
    assert_eq!(withdrawn(&t), 1, "it is back");
    t.clear();
    t.rsu.handle_shutdown(t.at(), &mut t.out);
    t.collect();
    link(&mut t, LinkEvent::LanUp);
    t.pass(t.now + 100);
    assert_eq!(withdrawn(&t), 3, "it is leaving all the same");
}

#[test]
fn it_is_who_its_configuration_says_and_not_its_radio() {
    let start = Start { id: id(A), ..Start::new(US) };
    let t =
        Talk { rsu: Rsu::new(Settings::default().config(&start), Timestamp::ZERO), ..Talk::new() };
    assert_eq!(t.rsu.id(), id(A));
}
