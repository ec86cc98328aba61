//! Radio and TAP change, go down, go away and come back.

use std::time::Duration;

use node_lib::Mac;
use node_lib::control::node::LinkEvent;
use node_lib::device::{LinkChange, LinkState, Side, StaticLinks};
use node_lib::runtime::command::Remote;

use crate::bench::{Bench, bench_radio, radio_link};
use crate::devices::{Mortal, ScriptedLinks};
use crate::script::{Call, Script};

#[test]
fn changes_of_the_radio_become_link_events_and_set_the_tap_mtu() {
    let link = radio_link();
    let radio = |link: Option<LinkState>| LinkChange { side: Side::Radio, link };
    let other = Mac([2, 0, 0, 0, 0, 2]);
    let mut links = ScriptedLinks::new([
        radio(Some(LinkState { up: false, ..link.clone() })),
        radio(Some(link.clone())),
        radio(Some(LinkState { mtu: 1400, ..link.clone() })),
        radio(None),
        radio(Some(LinkState { index: 8, mac: other, up: false, ..link.clone() })),
        radio(Some(LinkState { index: 8, mac: other, ..link.clone() })),
        // Deleted and re-created between two looks.
        radio(Some(LinkState { index: 9, mac: other, ..link.clone() })),
        // Too small for any TAP: said, and survived.
        radio(Some(LinkState { index: 9, mac: other, mtu: 90, up: true })),
    ]);
    let mut node = Script::new(|_, _| {});
    Bench::new().run(&mut node, &mut links, Duration::from_millis(50));
    let seen: Vec<_> = node
        .calls
        .borrow()
        .iter()
        .filter_map(|call| match call {
            Call::Link(event) => Some(*event),
            _ => None,
        })
        .collect();
    use LinkEvent::{AddressChanged, Down, MtuChanged, Up};
    assert_eq!(
        seen,
        [
            Down,
            Up,
            MtuChanged(1400),
            Down,
            AddressChanged(other),
            MtuChanged(1500),
            Up,
            Down,
            Up,
            MtuChanged(90),
        ]
    );
    assert_eq!(links.tap_mtus, [1500, 1500]);
}

#[test]
fn a_tap_that_is_down_or_gone_is_a_lan_that_is_down_and_told_once() {
    let tap = |up: Option<bool>| {
        let link = up.map(|up| LinkState { up, ..radio_link() });
        LinkChange { side: Side::Tap, link }
    };
    let states = [Some(true), Some(false), None, Some(false), Some(true), None, Some(true)];
    let mut links = ScriptedLinks::new(states.map(tap));
    let mut node = Script::new(|_, _| {});
    Bench::new().run(&mut node, &mut links, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let seen: Vec<_> = calls.iter().filter(|call| matches!(call, Call::Link(_))).collect();
    use LinkEvent::{LanDown, LanUp};
    let expected = [LanDown, LanUp, LanDown, LanUp].map(Call::Link);
    assert_eq!(seen, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_tap_mtu_the_operator_fixed_stays_and_one_that_no_longer_fits_is_left_alone() {
    let link = radio_link();
    let change =
        |mtu| LinkChange { side: Side::Radio, link: Some(LinkState { mtu, ..link.clone() }) };
    let mut links = ScriptedLinks::new([change(1600), change(180)]);
    let mut bench = Bench::new();
    bench.tap_mtu.fixed = Some(1400);
    bench.run(&mut Script::new(|_, _| {}), &mut links, Duration::from_millis(50));
    assert_eq!(links.tap_mtus, [1400]);
}

#[test]
fn a_radio_that_is_down_at_the_start_is_told_to_the_node() {
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    bench.link.up = false;
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(20));
    assert_eq!(node.calls.borrow().first(), Some(&Call::Link(LinkEvent::Down)));
}

#[test]
fn a_tap_that_is_gone_is_re_created_and_configured_anew() {
    let mut links = ScriptedLinks::new([]);
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    let mut tap = Mortal { refusals: 2, ..Mortal::default() };
    bench.run_all(
        &mut node,
        &mut bench_radio(),
        &mut tap,
        &mut links,
        Remote::new(),
        Some(Duration::from_millis(900)),
    );
    // 100 ms, then 200, then 400.
    assert_eq!((tap.attempts, tap.alive), (3, true));
    assert_eq!(links.tap_mtus, [1500]);
}
