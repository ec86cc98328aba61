//! Two nodes with one id, and nodes that start again.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::messages::control::Control;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::probe::Probe;
use node_lib::messages::{Cost, Rhythm};
use node_lib::{Boot, Mac, NodeId, Order};

use rsu_lib::Settings;

use crate::talk::{A, CAMERA, SIGN, Said, Talk, US, id};

/// A heartbeat of our own id, relayed by `A`, or from another RSU itself.
pub(crate) fn of_our_id(boot: u32, hops: u8) -> Heartbeat {
    Heartbeat {
        rsu: id(US),
        order: Order::new(boot, 5),
        rhythm: Rhythm::each(100),
        hop_limit: 15,
        hops,
        cost: if hops == 0 { Cost::ZERO } else { Cost::ONE },
        sender: if hops == 0 { id(US) } else { id(A) },
        sender_boot: Boot(1),
        hello: 1,
        via: if hops == 0 { NodeId::NONE } else { id(US) },
        mtu: 1500,
        obus: 0,
        children: 0,
        stride: 0,
        position: None,
    }
}

fn last_boot(t: &Talk) -> u32 {
    t.heartbeats().last().unwrap().1.order.boot.0
}

#[test]
fn an_rsu_whose_boot_count_fell_goes_above_what_it_hears_of_itself_twice() {
    let mut t = Talk::new();
    t.pass(50);
    t.hear(A, Mac::BROADCAST, of_our_id(900, 1).into());
    t.pass(t.now + 99);
    assert_eq!(last_boot(&t), 1, "one word is not enough");
    t.hear(A, Mac::BROADCAST, of_our_id(900, 1).into());
    t.pass(t.now + 150);
    assert_eq!(last_boot(&t), 901);
}

#[test]
fn an_rsu_that_speaks_rarely_goes_above_what_it_hears_of_itself_as_well() {
    for ms in [1000, 6000, 10_000] {
        let hello_periodicity = Duration::from_millis(ms);
        let mut t = Talk::with(Settings { hello_periodicity, ..Settings::default() });
        for _ in 0..3 {
            t.hear(A, Mac::BROADCAST, of_our_id(900, 1).into());
            t.pass(t.now + ms);
        }
        t.pass(t.now + 2 * ms);
        assert_eq!(last_boot(&t), 901, "each {ms} ms");
    }
}

#[test]
fn an_rsu_goes_above_what_it_hears_of_itself_once_and_not_any_distance() {
    let mut t = Talk::new();
    for n in 0..50 {
        t.hear(A, Mac::BROADCAST, of_our_id(u32::MAX - 50 + n, 1).into());
        t.pass(t.now + 100);
    }
    assert_eq!(last_boot(&t), 1);
    for n in 0..50 {
        t.hear(A, Mac::BROADCAST, of_our_id(900 + 2 * n, 1).into());
        t.pass(t.now + 100);
    }
    assert!(last_boot(&t) < 910, "{}", last_boot(&t));
    assert_eq!(t.events(), [Event::IdConflict { mac: A }], "and says so every ten seconds");
}

#[test]
fn two_obus_with_one_id_are_reported() {
    let mut t = Talk::new();
    for n in 0..600_u32 {
        // Each says a word a second, and goes on counting.
        let boot = 100 * (n % 2 + 1);
        let said = Said {
            obu: A,
            order: Order::new(boot, n),
            epoch: 1,
            standby: false,
            clients: vec![Client { vlan: 0, mac: if n % 2 == 0 { CAMERA } else { SIGN } }],
            goodbye: false,
        };
        t.say(&said);
        t.pass(t.now + 500);
    }
    let reported = t.events();
    let conflicts = reported.iter().filter(|e| matches!(e, Event::ObuIdConflict { .. })).count();
    assert!((1..=30).contains(&conflicts), "{conflicts} in 300 s");
}

#[test]
fn an_obu_that_starts_again_and_again_is_one_obu() {
    let mut t = Talk::new();
    let said = |boot, seq| Said {
        obu: A,
        order: Order::new(boot, seq),
        epoch: 1,
        standby: false,
        clients: vec![Client { vlan: 0, mac: CAMERA }],
        goodbye: false,
    };
    for start in 1..=20 {
        // Announced five times, as none is answered that is not believed; what the start before
        // said comes late.
        for (n, wait) in [0, 20, 40, 80, 160].into_iter().enumerate() {
            t.pass(t.now + wait);
            t.say(&said(10 * start, 1 + n as u32));
            if start > 1 && n < 4 {
                t.say(&said(10 * (start - 1), 6 + n as u32));
            }
        }
        t.pass(t.now + 1200);
    }
    let conflicts = t.events().into_iter().filter(|e| matches!(e, Event::ObuIdConflict { .. }));
    assert_eq!(conflicts.count(), 0);
}

#[test]
fn who_speaks_with_our_id_is_named_whatever_it_says() {
    let probe =
        Probe { sender: id(US), sender_boot: Boot(1), nonce: 1, rsu: NodeId::NONE, asked: id(US) };
    let mut t = Talk::new();
    t.hear(A, Mac::BROADCAST, probe.into());
    assert_eq!(t.events(), [Event::IdConflict { mac: A }]);
    t.hear(A, US, probe.into());
    assert_eq!(t.events(), [], "every ten seconds");
    t.pass(11_000);
    t.announce(US, A, 1, &[CAMERA]);
    assert_eq!(t.events(), [Event::IdConflict { mac: A }]);
    assert_eq!(t.rsu.clients_of(id(US)), []);
    assert_eq!(t.each(|_, c| matches!(c, Control::ProbeAnswer(_)).then_some(())), []);
}

#[test]
fn two_rsus_with_one_id_both_say_so_and_neither_goes_above_the_other() {
    let other = Mac([2, 0, 0, 0, 0, 0x11]);
    for boot in [1, 900] {
        let mut t = Talk::new();
        t.pass(50);
        for _ in 0..300 {
            t.hear(other, Mac::BROADCAST, of_our_id(boot, 0).into());
            t.pass(t.now + 100);
        }
        assert_eq!(t.events(), vec![Event::IdConflict { mac: other }; 3], "in 30 s");
        assert_eq!(last_boot(&t), 1);
    }
}
