//! Frames a radio gave up reach the node, if it wants them.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::device::StaticLinks;

use crate::bench::Bench;
use crate::bundles::{bundle_of, data_frame};
use crate::devices::Telling;
use crate::script::{Call, Script};

#[test]
fn what_the_radio_gave_up_is_told_frame_by_frame_and_answered() {
    let mut node = Script::new(|call, out| {
        if let Call::Unacknowledged(frame) = call {
            out.wire(|flat| flat.extend_from_slice(&frame[90..110]));
        }
    });
    node.wants_unacknowledged = true;
    let (one, two) = (data_frame(1, 100, 1), data_frame(1, 100, 2));
    let mut radio = Telling::new();
    radio.give_up(&data_frame(1, 100, 3));
    radio.give_up(&bundle_of(&[one.clone(), two.clone()]));
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    let told = [data_frame(1, 100, 3), one, two];
    let unacknowledged =
        node.calls.borrow().iter().filter_map(Call::as_unacknowledged).collect::<Vec<_>>();
    assert_eq!(unacknowledged, told);
    assert_eq!(radio.sent, told.map(|frame| frame[90..110].to_vec()));
    assert!(node.polled.get() < 30, "{} turns for nothing", node.polled.get());
}

#[test]
fn a_radio_that_gives_up_much_holds_back_no_deadline() {
    let mut node = Script::new(|_, _| {});
    node.wants_unacknowledged = true;
    // One is always due.
    node.deadline = Some(Timestamp::ZERO);
    node.again_after = Some(Duration::ZERO);
    let mut radio = Telling::new();
    (0..200).for_each(|n| radio.give_up(&data_frame(1, 60, n)));
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_secs(1));
    let calls = node.calls.borrow();
    let told = calls.split(|call| *call == Call::Timeout).map(<[Call]>::len);
    assert_eq!(told.clone().sum::<usize>(), 200);
    assert!(told.max() <= Some(64), "so many frames before a deadline");
}

#[test]
fn a_radio_is_not_asked_for_what_the_node_does_not_want() {
    let mut node = Script::new(|_, _| {});
    let mut radio = Telling::new();
    Bench::new().run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(5));
    assert!(!radio.is_wanted);
    node.wants_unacknowledged = true;
    Bench::new().run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(5));
    assert!(radio.is_wanted);
}
