//! Small frames leave in one, and are taken apart again.

use std::time::Duration;

use node_lib::Mac;
use node_lib::control::next_hop::NextHop;
use node_lib::device::StaticLinks;
use node_lib::device::memory;
use node_lib::messages::bundle;

use crate::bench::{Bench, put, take};
use crate::script::{Call, Script};

/// A data frame to neighbour `to`: its message has `len` bytes, and `number` behind the prefix.
pub(crate) fn data_frame(to: u8, len: u16, number: u8) -> Vec<u8> {
    let mut frame = vec![to; 14];
    frame.extend_from_slice(&[0x28, 0]);
    frame.extend_from_slice(&len.to_be_bytes());
    frame.resize(14 + usize::from(len), number);
    frame
}

/// One frame with the messages of all of these.
pub(crate) fn bundle_of(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    bundle::emit(frames.iter().map(Vec::as_slice), &mut out);
    out
}

#[test]
fn small_frames_that_wait_together_leave_in_one_as_far_as_the_radio_takes_it() {
    let heads: [(u8, u16); 7] =
        [(1, 400), (1, 400), (2, 100), (1, 700), (1, 700), (1, 700), (1, 1400)];
    let frames: Vec<_> = (0..).zip(heads).map(|(n, (to, len))| data_frame(to, len, n)).collect();
    let all = frames.clone();
    let sent = |bundles: bool, narrow: Option<NextHop>| {
        let all = all.clone();
        let mut node = Script::new(move |call, out| {
            let Call::Tap(frame) = call else { return };
            narrow.iter().for_each(|hop| out.keep_short(*hop));
            out.wire(|flat| flat.extend_from_slice(&all[usize::from(frame[0])]));
        });
        let mut bench = Bench { bundles, ..Bench::new() };
        (0..7).for_each(|n| put(&mut bench.host, &[n; 60]));
        bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
        take(&mut bench.air)
    };
    assert_eq!(sent(false, None), frames);
    // The first is gone before the loop has seen that it is not alone.
    let together = bundle_of(&frames[3..5]);
    let expected = [&frames[0], &frames[1], &frames[2], &together, &frames[5], &frames[6]];
    assert!(expected.iter().all(|frame| frame.len() <= 1514));
    let expected = expected.map(Vec::clone);
    assert_eq!(sent(true, None), expected);
    // Those two together are a packet of 1,404 bytes.
    let hop = |mac, mtu| NextHop { mac: Mac([mac; 6]), mtu };
    assert_eq!(sent(true, Some(hop(1, 1404))), expected);
    assert_eq!(sent(true, Some(hop(1, 1403))), frames);
    assert_eq!(sent(true, Some(hop(2, 200))), expected, "somebody else");
}

#[test]
fn what_comes_in_one_is_handled_as_if_it_had_come_alone() {
    let mut node = Script::new(|_, _| {});
    // Passing on from where it lies would write over a frame's neighbours.
    node.pass = Some(|frame, out| {
        out.wire_around(0, &frame[18..], |head| head.extend_from_slice(&[9; 40]));
        out.tap_frame(&frame[18..]);
    });
    let frames: Vec<_> = (0..100).map(|n| data_frame(1, 22, n)).collect();
    let mut bench = Bench { bundles: false, ..Bench::new() };
    put(&mut bench.air, &frames[0]);
    put(&mut bench.air, &bundle_of(&frames[1..60]));
    put(&mut bench.air, &bundle_of(&frames[60..99]));
    put(&mut bench.air, &frames[99]);
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let heard: Vec<_> = frames.iter().cloned().map(Call::Wire).collect();
    assert_eq!(*node.calls.borrow(), heard);
    let inner = frames.iter().map(|frame| frame[18..].to_vec());
    assert_eq!(take(&mut bench.host), inner.clone().collect::<Vec<_>>());
    let passed = inner.map(|inner| [vec![9; 40], inner].concat());
    assert_eq!(take(&mut bench.air), passed.collect::<Vec<_>>());
}

#[test]
fn a_bundle_in_the_place_of_a_frame_that_was_lent_is_not_lent_itself() {
    let mut node = Script::new(|_, _| {});
    node.pass = Some(|frame, out| {
        // Of the TAP's frames there is no answer that would end the loan.
        if frame[14] == 0x28 {
            out.tap_frame(&frame[18..]);
        }
    });
    let frames: Vec<_> = (0..10).map(|n| data_frame(1, 100, n)).collect();
    let bundle = bundle_of(&frames);
    let mut bench = Bench::new();
    let (_, far) = memory::pair(1500).unwrap();
    let mut air = std::mem::replace(&mut bench.air, far);
    put(&mut bench.host, &[0; 1500]);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        put(&mut air, &bundle);
    });
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(150));
    late.join().unwrap();
    let inner = frames.iter().map(|frame| frame[18..].to_vec());
    assert_eq!(take(&mut bench.host), inner.collect::<Vec<_>>());
}

#[test]
fn of_a_malformed_bundle_the_node_gets_what_can_be_read() {
    let frames = [data_frame(1, 30, 7), data_frame(1, 30, 8)];
    let mut cut = bundle_of(&frames);
    cut[18 + 30 + 3] = 31;
    let mut unopened = bundle_of(&frames);
    unopened[15] = 1;
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    put(&mut bench.air, &cut);
    put(&mut bench.air, &unopened);
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let [first, _] = frames;
    assert_eq!(*node.calls.borrow(), [Call::Wire(first), Call::Wire(unopened)]);
}
