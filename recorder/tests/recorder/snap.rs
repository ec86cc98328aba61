//! What a snap length cuts, and what it does not. That a node does the same again without the rest
//! is shown in `sim_replay`.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use node_lib::control::node::{Node, Replies};
use node_lib::messages::data::ToUpstream;
use node_lib::messages::fragment::{Fragment, PartPlace};
use node_lib::{Mac, NodeId, Seq, Timestamp};
use recorder::read::Recording;
use recorder::replay::replay_with;
use recorder::tape::SNAP_MIN;
use recorder::{Handle, Limits, Recorded, Recorder};
use tempfile::TempDir;

use crate::common;

/// Where the client's frame begins in one of ours.
const CLIENT: usize = 38;
const FLAGS: usize = 15;
const SNAP: usize = SNAP_MIN as usize;

/// A frame of the radio with so many bytes of a client's in it, to one host.
fn heard(client: usize) -> Vec<u8> {
    let mut frame = vec![2; CLIENT + client];
    frame[FLAGS] = 0;
    frame
}

/// The recording of a node that hears this frame.
fn record(frame: &[u8], hear: fn(&[u8], &mut Replies)) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let header = recorder::RecordingHeader { snap: SNAP_MIN, ..common::header() };
    let recorder = Recorder::start(directory.path(), header, Limits::default()).unwrap();
    let mut node = Recorded::new(common::Hears::new(hear), Some(recorder.tap()));
    MARKS.set(Some(recorder.handle()));
    let mut out = Replies::new();
    out.lend(0, frame, 64);
    // Some panic.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        node.handle_wire(Timestamp::from_millis(1), frame, &mut out);
    }));
    assert_eq!(recorder.finish().lost, 0);
    directory
}

/// A node hears this frame, and does what it does. What is recorded: name, length, bytes kept.
fn recorded(frame: &[u8], hear: fn(&[u8], &mut Replies)) -> Vec<(&'static str, usize, usize)> {
    let directory = record(frame, hear);
    let (records, _) = common::read(&common::files(directory.path()));
    let shape = |record: &recorder::record::Record<'_>| {
        let (len, kept) = record.what.frame().map_or((0, 0), |kept| {
            if let Some(bytes) = frame.get(..kept.bytes.len())
                && record.what.name() == "from_radio"
            {
                assert_eq!(*kept.bytes, *bytes, "the first bytes");
            }
            (kept.len as usize, kept.bytes.len())
        });
        (record.what.name(), len, kept)
    };
    records.iter().map(shape).collect()
}

thread_local! {
    /// For the one that marks the moment.
    static MARKS: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

fn to_tap(frame: &[u8], out: &mut Replies) {
    out.tap_frame(&frame[CLIENT..]);
}

fn onward(frame: &[u8], out: &mut Replies) {
    out.wire_around(0, &frame[CLIENT..], |head| head.extend_from_slice(&[2; 40]));
}

#[test]
fn what_was_only_passed_on_is_cut_and_keeps_its_length() {
    let kept = CLIENT + SNAP;
    let from = ("from_radio", CLIENT + 1000, kept);
    assert_eq!(recorded(&heard(1000), to_tap), [from, ("to_tap", 1000, SNAP)]);
    assert_eq!(recorded(&heard(1000), onward), [from, ("to_radio", 1040, 40 + SNAP)]);
    let both = |frame: &[u8], out: &mut Replies| {
        to_tap(frame, out);
        onward(frame, out);
    };
    let outputs = [("to_tap", 1000, SNAP), ("to_radio", 1040, 40 + SNAP)];
    assert_eq!(recorded(&heard(1000), both), [from, outputs[0], outputs[1]]);
    // One byte too many, and none.
    assert_eq!(recorded(&heard(SNAP + 1), to_tap)[0], ("from_radio", kept + 1, kept));
    assert_eq!(recorded(&heard(SNAP), to_tap)[0], ("from_radio", kept, kept));
}

#[test]
fn what_a_node_may_have_read_is_whole() {
    let whole = ("from_radio", CLIENT + 1000, CLIENT + 1000);
    let dropped = |_: &[u8], _: &mut Replies| {};
    assert_eq!(recorded(&heard(1000), dropped), [whole]);
    let answered = |frame: &[u8], out: &mut Replies| {
        to_tap(frame, out);
        out.wire(|flat| flat.extend_from_slice(&[2; 60]));
    };
    let outputs = [("to_tap", 1000, 1000), ("to_radio", 60, 60)];
    assert_eq!(recorded(&heard(1000), answered), [whole, outputs[0], outputs[1]]);
    let changed = |frame: &[u8], out: &mut Replies| {
        out.tap(|flat| flat.extend(frame[CLIENT..].iter().map(|byte| byte ^ 1)));
    };
    assert_eq!(recorded(&heard(1000), changed), [whole, ("to_tap", 1000, 1000)]);
    let in_part = |frame: &[u8], out: &mut Replies| out.tap_frame(&frame[CLIENT..1000]);
    assert_eq!(recorded(&heard(1000), in_part), [whole, ("to_tap", 1000 - CLIENT, 1000 - CLIENT)]);
    // Vehicles compare what is in floods and what is to groups.
    let mut flood = heard(1000);
    flood[FLAGS] = node_lib::messages::flags::FLOOD;
    assert_eq!(recorded(&flood, to_tap), [whole, ("to_tap", 1000, 1000)]);
    let mut group = heard(1000);
    group[CLIENT..CLIENT + 6].copy_from_slice(&Mac::BROADCAST.0);
    assert_eq!(recorded(&group, to_tap), [whole, ("to_tap", 1000, 1000)]);
}

/// A frame of a client that had come before, in one piece or in parts, or one for all.
fn another_way(_: &[u8], out: &mut Replies) {
    let (destination, source, seq) = (NodeId([2; 6]), NodeId([4; 6]), Seq(7));
    let (hop_limit, boot, again, priority) = (5, 7, true, 0);
    for to in [2, 1] {
        let payload = &[to; 1000][..];
        let up = ToUpstream { destination, source, hop_limit, boot, seq, again, priority, payload };
        let mut message = Vec::new();
        up.emit(&mut message);
        let ethernet = [&[2; 12][..], &[0x88, 0xb5]].concat();
        out.wire(|flat| flat.extend([&ethernet[..], &message].concat()));
        for place in PartPlace::all(message.len(), 400).unwrap().filter(|_| to == 2) {
            let part = &message[place.range()];
            let mut packet = Vec::new();
            Fragment { priority, id: 9, place, part }.emit(&mut packet);
            out.wire(|flat| flat.extend([&ethernet[..], &packet].concat()));
        }
    }
}

#[test]
fn what_goes_another_way_is_cut_where_it_was_when_it_came() {
    let message = 22 + 1000;
    let part = 14 + 12 + message / 3 + 1;
    assert_eq!(
        recorded(&heard(20), another_way),
        [
            ("from_radio", CLIENT + 20, CLIENT + 20),
            ("to_radio", 14 + message, 14 + 22 + SNAP),
            ("to_radio", part, 14 + 12 + 22 + SNAP),
            ("to_radio", part, 14 + 12),
            ("to_radio", part - 1, 14 + 12),
            ("to_radio", 14 + message, 14 + message),
        ]
    );
}

#[test]
fn a_frame_that_makes_the_node_panic_is_whole() {
    let panics = |_: &[u8], _: &mut Replies| panic!("as planned");
    assert_eq!(recorded(&heard(1000), panics), [("from_radio", CLIENT + 1000, CLIENT + 1000)]);
}

/// What came of a frame is written with it, in one piece.
#[test]
fn a_mark_while_the_node_is_asked_goes_before_the_frame() {
    let marks = |frame: &[u8], out: &mut Replies| {
        to_tap(frame, out);
        assert!(MARKS.with_borrow(|marks| marks.as_ref().unwrap().mark("now")));
    };
    let seen = recorded(&heard(1000), marks);
    let from = ("from_radio", CLIENT + 1000, CLIENT + SNAP);
    assert_eq!(seen, [("mark", 0, 0), from, ("to_tap", 1000, SNAP)]);
}

#[test]
fn a_replay_compares_length_and_what_there_is() {
    let directory = record(&heard(1000), to_tap);
    let recording = Recording::open(&common::files(directory.path())).unwrap();
    let differs = |hear| {
        let node = Box::new(common::Hears::new(hear));
        replay_with(&recording, node).unwrap().difference.is_some()
    };
    assert!(!differs(to_tap));
    assert!(differs(|frame, out| out.tap_frame(&frame[CLIENT..frame.len() - 1])));
    assert!(differs(|frame, out| {
        out.tap(|flat| flat.extend(frame[CLIENT..].iter().map(|byte| byte ^ 1)));
    }));
    assert!(differs(|_, _| ()));
}
