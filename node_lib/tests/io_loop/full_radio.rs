//! What waits while the radio takes no more.

use std::time::{Duration, Instant};

use node_lib::Timestamp;
use node_lib::control::traffic_class;
use node_lib::device::StaticLinks;
use node_lib::runtime::command::Remote;
use node_lib::transport::outbox;
use node_lib::transport::tap_wait::TAP_LATE;

use crate::bench::{Bench, bench_radio, put, take};
use crate::devices::{Stalled, SuperFrames};
use crate::script::{Call, Script};

#[test]
fn a_radio_that_is_full_stops_the_tap_and_nothing_else() {
    let mut node = Script::new(|call, out| match call {
        Call::Wire(frame) => out.tap_frame(frame),
        Call::Tap(frame) => out.wire_around(traffic_class::of(frame), frame, |_| {}),
        _ => {}
    });
    let mut bench = Bench::new();
    for _ in 0..900 {
        put(&mut bench.host, &[9; 60]);
    }
    for _ in 0..300 {
        put(&mut bench.air, &[8; 60]);
    }
    let inner = std::mem::replace(&mut bench.radio, bench_radio());
    let mut radio = Stalled { inner, full_until: None };
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, outbox::AGE_MAX * 5 / 2);
    let from_tap = |node: &Script<_>| {
        let calls = node.calls.borrow();
        calls.iter().filter(|call| matches!(call, Call::Tap(_) | Call::TapLate(_))).count()
    };
    // A frame or a burst at the start, and each time what waited has become too old.
    let read = from_tap(&node);
    assert!((1..=3 * 64).contains(&read), "{read} frames read from the TAP");
    assert_eq!(take(&mut bench.host).len(), 300, "the other way is open");
    assert!(take(&mut bench.air).is_empty());
    radio.full_until = Some(Instant::now());
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    assert_eq!(from_tap(&node), 900);
    assert_eq!(take(&mut bench.air).len(), 900 - read);
}

#[test]
fn what_was_left_in_the_tap_for_long_is_late_until_the_tap_is_read_to_its_end() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        put(&mut bench.host, &[9; 60]);
    }
    let mut host = std::mem::replace(&mut bench.host, bench_radio());
    let mut node = Script::new(move |call, out| match call {
        Call::Tap(frame) | Call::TapLate(frame) => {
            out.wire_around(traffic_class::of(frame), frame, |_| {})
        }
        Call::Timeout => put(&mut host, &[7; 60]),
        _ => {}
    });
    let is_free = TAP_LATE * 3 / 2;
    node.deadline = Some(Timestamp::ZERO + is_free + outbox::AGE_MAX * 4);
    let inner = std::mem::replace(&mut bench.radio, bench_radio());
    let mut radio = Stalled { inner, full_until: Some(Instant::now() + is_free) };
    let span = is_free + outbox::AGE_MAX * 6;
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, span);
    let calls = node.calls.into_inner();
    let late = calls.iter().filter(|call| matches!(call, Call::TapLate(_))).count();
    let first = calls.iter().take_while(|call| matches!(call, Call::Tap(_))).count();
    assert_eq!(late, 200 - first, "{first} were read before");
    assert!((1..=64).contains(&first), "{first} were read before");
    assert_eq!(calls[200..], [Call::Timeout, Call::Tap(vec![7; 60])]);
}

#[test]
fn a_queue_of_super_frames_holds_more_frames_and_all_of_them_are_late() {
    const ALL: usize = 3000;
    let mut node = Script::new(|call, out| match call {
        Call::Tap(frame) | Call::TapLate(frame) => {
            out.wire_around(traffic_class::of(frame), frame, |_| {})
        }
        _ => {}
    });
    let mut tap = SuperFrames { left: ALL, ..SuperFrames::default() };
    let is_free = TAP_LATE * 3 / 2;
    let mut bench = Bench::new();
    let inner = std::mem::replace(&mut bench.radio, bench_radio());
    let mut radio = Stalled { inner, full_until: Some(Instant::now() + is_free) };
    let span = Some(is_free + outbox::AGE_MAX * 4);
    bench.run_all(&mut node, &mut radio, &mut tap, &mut StaticLinks, Remote::new(), span);
    let calls = node.calls.into_inner();
    let first = calls.iter().take_while(|call| matches!(call, Call::Tap(_))).count();
    let late = calls.iter().filter(|call| matches!(call, Call::TapLate(_))).count();
    assert_eq!((tap.left, late), (0, ALL - first), "{first} were read before");
    assert!(first < ALL / 2, "{first} were read before");
}
