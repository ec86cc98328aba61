//! In which order a turn reads, handles deadlines and sends, whatever one side has to say.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::node::ReplyType;
use node_lib::device::StaticLinks;
use node_lib::device::memory;
use node_lib::transport::DRAIN_TURNS;

use crate::bench::{Bench, put, take};
use crate::bundles::{bundle_of, data_frame};
use crate::devices::{Apart, Flood};
use crate::script::{Call, Script};

#[test]
fn replies_go_out_in_order_each_as_one_frame() {
    let mut node = Script::new(|call, out| {
        if matches!(call, Call::Wire(_)) {
            out.tap(|flat| flat.extend_from_slice(&[1; 20]));
            out.push(ReplyType::Wire(vec![vec![2; 14], vec![3; 6]]));
            out.wire(|flat| flat.extend_from_slice(&[4; 20]));
            out.push(ReplyType::Tap((0..30).map(|n| vec![n]).collect()));
        }
    });
    let mut bench = Bench::new();
    put(&mut bench.air, &[0; 60]);
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    assert_eq!(take(&mut bench.air), [[vec![2; 14], vec![3; 6]].concat(), vec![4; 20]]);
    assert_eq!(take(&mut bench.host), [vec![1; 20], (0..30).collect()]);
}

#[test]
fn what_the_radio_holds_is_heard_before_a_deadline_is_handled() {
    let mut node = Script::new(|_, _| {});
    // Long past: the process has been asleep.
    node.deadline = Some(Timestamp::ZERO);
    let mut bench = Bench::new();
    for _ in 0..300 {
        put(&mut bench.air, &[0; 60]);
    }
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let first = calls.iter().position(|call| *call == Call::Timeout).expect("a timeout");
    let heard = calls.iter().take(first).filter(|call| matches!(call, Call::Wire(_))).count();
    assert_eq!(heard, 300);
}

#[test]
fn a_radio_that_never_drains_holds_back_neither_the_deadline_nor_the_tap() {
    let mut node = Script::new(|_, _| {});
    node.deadline = Some(Timestamp::ZERO);
    let mut bench = Bench::new();
    put(&mut bench.host, &[9; 60]);
    let mut radio = Flood::default();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let before = |wanted: &dyn Fn(&Call) -> bool| {
        let first = calls.iter().position(wanted).expect("it happened");
        calls.iter().take(first).filter(|call| matches!(call, Call::Wire(_))).count()
    };
    // One frame comes before the first full burst.
    assert!(before(&|call| matches!(call, Call::Tap(_))) <= 1 + 64);
    assert!(before(&|call| *call == Call::Timeout) <= 1 + 64 * (DRAIN_TURNS as usize + 1));
}

#[test]
fn where_control_is_kept_apart_no_data_holds_back_a_deadline() {
    let mut node = Script::new(|_, _| {});
    node.deadline = Some(Timestamp::ZERO);
    // Seventy control frames are more than a burst: all of them are heard first.
    let (control, mut air) = memory::pair(1500).unwrap();
    for _ in 0..70 {
        put(&mut air, &[2; 60]);
    }
    let mut radio = Apart { control, data: Flood::default() };
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let first = calls.iter().position(|call| *call == Call::Timeout).expect("a timeout");
    let heard = |byte| {
        let wire = calls.iter().take(first).filter_map(|call| match call {
            Call::Wire(frame) => frame.first(),
            _ => None,
        });
        wire.filter(|first| **first == byte).count()
    };
    assert_eq!(heard(2), 70);
    assert!(heard(1) <= 1 + 2 * 64, "{} data frames before the deadline", heard(1));
}

#[test]
fn control_does_not_wait_for_a_burst_of_full_bundles() {
    let (control, air) = memory::pair(1500).unwrap();
    let air = RefCell::new(air);
    let heard = Cell::new(0);
    let mut node = Script::new(|call, _| {
        if matches!(call, Call::Wire(_)) {
            heard.set(heard.get() + 1);
            // More than a millisecond for a turn, after which control is looked for.
            std::thread::sleep(Duration::from_micros(50));
            // The first bundles tell how many messages there are in one.
            if heard.get() == 1200 {
                put(&mut air.borrow_mut(), &[2; 60]);
            }
        }
    });
    let bundle = bundle_of(&vec![data_frame(1, 60, 1); 16]);
    let mut radio = Apart { control, data: Flood { frame: bundle, ..Flood::default() } };
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(1500));
    let calls = node.calls.borrow();
    let at = calls.iter().filter(|call| matches!(call, Call::Wire(_)));
    let at = at.take_while(|call| **call != Call::Wire(vec![2; 60])).count();
    assert!(at < 1200 + 3 * 64, "{} messages were heard before control", at - 1200);
}

#[test]
fn deadlines_are_kept_without_any_traffic() {
    let mut node = Script::new(|_, _| {});
    node.deadline = Some(Timestamp::from_millis(5));
    node.again_after = Some(Duration::from_millis(10));
    let mut bench = Bench::new();
    bench.run(&mut node, &mut StaticLinks, Duration::from_secs(1));
    let timeouts = node.calls.borrow().iter().filter(|call| **call == Call::Timeout).count();
    assert!((5..=101).contains(&timeouts), "{timeouts} timeouts in a second, one due every 10 ms");
}
