//! Files: how many there are, which are kept, and that a disk that stalls costs records and no
//! time.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use node_lib::control::counters::Counters;
use node_lib::control::event::{Attachment, Cause, Event};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::{NodeId, Timestamp};
use recorder::block::{BlockKind, HEAD_LEN, Head};
use recorder::read::Recording;
use recorder::record::What;
use recorder::segment::{FROZEN, FROZEN_MAX, Limits, Ring, Store};
use recorder::tape::FreezeCause;
use recorder::{Recorded, Recorder, Switch};

use crate::common;

const FRAME: [u8; 1000] = [7; 1000];

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[test]
fn what_is_recorded_is_in_files_that_only_their_owner_reads() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(directory.path(), common::header(), Limits::default()).unwrap();
    let tap = recorder.tap();
    for n in 0..3000 {
        tap.from_radio(at(n), &FRAME[..n as usize % 1000]);
    }
    let stats = recorder.finish();
    assert_eq!((stats.records, stats.lost, stats.write_errors), (3000, 0, 0));
    let files = common::files(directory.path());
    assert_eq!(files.len(), 1);
    assert!(files[0].to_string_lossy().ends_with("obu-020000000009-0000000007-000000.v2xr"));
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (records, reports) = common::read(&files);
    assert_eq!(records.len(), 3000);
    assert_eq!(reports[0].missing, 0);
    for (n, record) in records.iter().enumerate() {
        assert_eq!(record.at, at(n as u64));
        assert_eq!(*record.what.frame().unwrap().bytes, FRAME[..n % 1000]);
    }
}

#[test]
fn the_ring_keeps_to_its_bytes_and_the_oldest_files_go() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    for boot in [7, 8] {
        let header = recorder::RecordingHeader { boot, ..common::header() };
        let ring = Ring::open(directory.path(), header, limits.clone()).unwrap();
        let recorder = Recorder::start_into(ring, 0, 1 << 20, 32 << 10).unwrap();
        recorder.be_patient();
        let tap = recorder.tap();
        for n in 0..5000 {
            tap.from_radio(at(n), &FRAME);
        }
        let stats = recorder.finish();
        assert_eq!(stats.lost, 0);
        assert!(stats.bytes > 5_000_000 && stats.files_removed > 20, "{stats:?}");
        let files = common::files(directory.path());
        let sum: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!(sum <= 1 << 20, "{sum} bytes");
        assert!(sum > 1 << 19, "{sum} bytes: more than half of what there may be");
        // What is left is the end, without a hole.
        let of_this = |file: &PathBuf| file.to_string_lossy().contains(&format!("{boot:010}-"));
        assert!(files.iter().all(of_this), "those of the run before are gone: {files:?}");
        let (records, reports) = common::read(&files);
        assert_eq!(records.last().unwrap().at, at(4999));
        assert!(reports[0].missing > 0);
        assert!(reports[1..].iter().all(|report| report.missing == 0));
    }
}

#[test]
fn files_that_are_too_old_go() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("obu-020000000009-0000000006-000000.v2xr");
    let others = directory.path().join("obu-020000000008-0000000006-000000.v2xr");
    for path in [&old, &others] {
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(7200)).unwrap();
    }
    let limits = Limits { age: Some(Duration::from_secs(3600)), ..Limits::default() };
    let mut ring = Ring::open(directory.path(), common::header(), limits).unwrap();
    assert_eq!(ring.tick(), (1, 0));
    assert!(!old.exists());
    assert!(others.exists(), "it is of another node");
    // What this run has written ages by a clock that nobody sets: a date says nothing.
    ring.close();
    let [.., own] = &common::files(directory.path())[..] else { panic!("a file") };
    let file = std::fs::File::options().write(true).open(own).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(7200)).unwrap();
    assert_eq!(ring.tick(), (0, 0));
    assert!(own.exists());
}

/// A file of the run that goes on is removed when it has been finished for so long, and not before.
#[test]
fn files_of_this_run_that_are_too_old_go_while_it_records() {
    const AGE: Duration = Duration::from_secs(1);
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { age: Some(AGE), ..Limits::default() };
    let begun = Instant::now();
    let ring = Ring::open(directory.path(), common::header(), limits).unwrap();
    // Blocks so small that there are several in a file of a second.
    let recorder = Recorder::start_into(ring, 0, 1 << 20, 8 << 10).unwrap();
    let (tap, handle) = (recorder.tap(), recorder.handle());
    let mut last = 0;
    while handle.stats().files_removed == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", common::files(directory.path()));
        last += 1;
        tap.from_radio(at(last), &FRAME);
        std::thread::sleep(Duration::from_millis(10));
    }
    // A file grows for a second at least.
    assert!(begun.elapsed() > 2 * AGE, "{:?}", begun.elapsed());
    assert_eq!(recorder.finish().lost, 0);
    let files = common::files(directory.path());
    assert!(files.iter().all(|file| !file.to_string_lossy().contains("-000000.v2xr")), "{files:?}");
    let (records, reports) = common::read(&files);
    assert_eq!(records.last().unwrap().at, at(last), "what is new is there");
    assert!(reports[0].missing > 0 && records[0].at > at(1), "what is old is not");
}

/// A node that leaves its upstream when the link goes down, and has nothing else to say.
struct Leaver {
    counters: Counters,
    event: Option<Event>,
}

impl Node for Leaver {
    fn id(&self) -> NodeId {
        NodeId([2, 0, 0, 0, 0, 9])
    }
    fn handle_wire(&mut self, _: Timestamp, _: &[u8], _: &mut Replies) {}
    fn handle_tap(&mut self, _: Timestamp, _: &[u8], _: &mut Replies) {}
    fn handle_link(&mut self, _: Timestamp, _: LinkEvent, _: &mut Replies) {
        let upstream = NodeId([2, 0, 0, 0, 0, 1]);
        self.event = Some(Event::UpstreamChanged {
            from: Some(Attachment { rsu: upstream, upstream, hops: 1 }),
            to: None,
            cause: Cause::LinkDown,
            silence: Duration::ZERO,
        });
    }
    fn handle_timeout(&mut self, _: Timestamp, _: &mut Replies) {}
    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn handle_shutdown(&mut self, _: Timestamp, _: &mut Replies) {}
    fn linger(&self) -> Duration {
        Duration::ZERO
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }
}

/// A fail-over and a mark: what came 15 s before and 5 s after is there when the ring has long
/// moved on.
#[test]
fn moments_are_kept_though_the_ring_moves_on() {
    for cause in [FreezeCause::FailOver, FreezeCause::Mark] {
        let directory = tempfile::tempdir().unwrap();
        let limits = Limits { bytes: 1 << 20, ..Limits::default() };
        let ring = Ring::open(directory.path(), common::header(), limits).unwrap();
        let recorder = Recorder::start_into(ring, 0, 1 << 20, 32 << 10).unwrap();
        recorder.be_patient();
        let mut node = Recorded::new(
            Leaver { counters: Counters::default(), event: None },
            Some(recorder.tap()),
        );
        let mut out = Replies::new();
        for n in 0..12_000 {
            if n == 6000 && cause == FreezeCause::FailOver {
                node.handle_link(at(n * 10), LinkEvent::Down, &mut out);
                assert!(matches!(node.poll_event(), Some(Event::UpstreamChanged { .. })));
            } else if n == 6000 {
                assert!(recorder.handle().mark("here"));
            }
            // 10 kB a second: fifteen seconds are two or three files.
            node.handle_wire(at(n * 10), &FRAME[..100], &mut out);
        }
        let handle = recorder.handle();
        assert_eq!(recorder.finish().frozen, 1);
        assert_eq!(handle.stats().lost, 0);
        let kept: Vec<_> = std::fs::read_dir(directory.path().join(FROZEN)).unwrap().collect();
        assert_eq!(kept.len(), 1);
        let kept = kept[0].as_ref().unwrap().path();
        assert!(kept.to_string_lossy().ends_with(cause.as_str()), "{kept:?}");
        let (records, _) = common::read(&[kept]);
        let (first, last) = (records[0].at, records.last().unwrap().at);
        assert!(first <= at(45_000), "from {first}");
        assert!(last >= at(65_000), "to {last}");
        assert!(records.iter().any(|record| match &record.what {
            What::Mark(text) => cause == FreezeCause::Mark && text == "here",
            What::Event(_) => cause == FreezeCause::FailOver && record.at == at(60_000),
            _ => false,
        }));
    }
}

#[test]
fn only_so_many_moments_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { after: Duration::ZERO, ..Limits::default() };
    let mut ring = Ring::open(directory.path(), common::header(), limits).unwrap();
    for n in 0..FROZEN_MAX as u64 + 5 {
        ring.freeze(FreezeCause::Mark, at(n));
    }
    let mut kept: Vec<_> = std::fs::read_dir(directory.path().join(FROZEN))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    assert_eq!(kept.len(), FROZEN_MAX);
    assert!(kept.last().unwrap().contains(&format!("-{:06}-", FROZEN_MAX + 4)), "{kept:?}");
}

#[test]
fn moments_take_no_more_than_the_ring_does() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { bytes: 1 << 20, after: Duration::ZERO, ..Limits::default() };
    let mut ring = Ring::open(directory.path(), common::header(), limits).unwrap();
    let payload = [0; 60 << 10];
    let head = Head {
        kind: BlockKind::Records,
        records: 0,
        sequence: 0,
        first: Timestamp::ZERO,
        last: Timestamp::ZERO,
    };
    let head = head.emit(&payload);
    let mut most = 0;
    for n in 0..200 {
        ring.write(&head, &payload, at(n * 1000)).unwrap();
        if n % 10 == 9 {
            ring.freeze(FreezeCause::Mark, at(n * 1000));
            let kept = std::fs::read_dir(directory.path().join(FROZEN)).unwrap();
            let files = kept.flat_map(|kept| common::files(&kept.unwrap().path()));
            most = most.max(files.map(|file| file.metadata().unwrap().len()).sum());
        }
    }
    // The last is there whatever it takes: fifteen seconds, and the files they are in.
    assert!(most > 1 << 20, "{most}");
    assert!(most <= 1 << 21, "{most}");
}

/// A disk that takes a block when it is told to.
struct Stalled(Receiver<()>, Sender<usize>);

impl Store for Stalled {
    fn write(&mut self, _: &[u8; HEAD_LEN], payload: &[u8], _: Timestamp) -> io::Result<()> {
        self.0.recv().map_err(io::Error::other)?;
        self.1.send(payload.len()).map_err(io::Error::other)
    }
    fn freeze(&mut self, _: FreezeCause, _: Timestamp) {}
    fn tick(&mut self) -> (u64, u64) {
        (0, 0)
    }
    fn close(&mut self) {}
}

/// Nobody takes a block for as long as the test likes: everything that finds no room is counted, at
/// once, and the recording says where it is missing.
#[test]
fn a_stalled_disk_costs_records_and_no_waiting() {
    const POOL: usize = 8;
    const BLOCK: usize = 16 << 10;
    let (go, told) = channel();
    let (wrote, written) = channel();
    let recorder = Recorder::start_into(Stalled(told, wrote), 0, POOL * BLOCK, BLOCK).unwrap();
    let (tap, handle) = (recorder.tap(), recorder.handle());
    let offered = 10_000;
    // It returns: the disk will not move before it has.
    for n in 0..offered {
        tap.from_radio(at(0), &FRAME[..n % 500]);
    }
    let stats = handle.stats();
    assert_eq!(stats.records + stats.lost, offered as u64);
    assert!(stats.lost > 9000, "{stats:?}");
    // The disk is back: what waited is written, and the next record says how many are missing.
    for _ in 0..POOL {
        go.send(()).unwrap();
        written.recv_timeout(Duration::from_secs(20)).unwrap();
    }
    tap.from_radio(at(0), &FRAME);
    let after = handle.stats();
    assert_eq!(after.lost, stats.lost);
    assert_eq!(after.records, stats.records + 1);
    go.send(()).unwrap();
    let begun = Instant::now();
    recorder.finish();
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn where_records_were_lost_the_recording_says_how_many() {
    let directory = tempfile::tempdir().unwrap();
    let ring = Ring::open(directory.path(), common::header(), Limits::default()).unwrap();
    // A frame that fits no block is lost, though everything else is well.
    let recorder = Recorder::start_into(ring, 0, 64 << 10, 2048).unwrap();
    recorder.be_patient();
    let tap = recorder.tap();
    tap.from_radio(at(1), &FRAME);
    tap.from_radio(at(2), &[0; 3000]);
    tap.from_radio(at(3), &[0; 3000]);
    tap.from_radio(at(4), &FRAME);
    assert_eq!(recorder.finish().lost, 2);
    let (records, reports) = common::read(&common::files(directory.path()));
    let names: Vec<_> = records.iter().map(|record| record.what.name()).collect();
    assert_eq!(names, ["from_radio", "lost", "from_radio"]);
    assert_eq!(records[1].what, What::Lost(2));
    assert_eq!(reports[0].lost, 2);
}

/// Passes each frame on behind another header, and to the TAP.
fn echo() -> common::Hears {
    common::Hears::new(|frame, out| {
        onward(frame, out);
        to_tap(frame, out);
    })
}

/// Only the one, or only the other, or both, as the first byte says.
fn one_or_both() -> common::Hears {
    common::Hears::new(|frame, out| {
        if frame[0] % 3 != 1 {
            onward(frame, out);
        }
        if frame[0] % 3 != 2 {
            to_tap(frame, out);
        }
    })
}

fn onward(frame: &[u8], out: &mut Replies) {
    out.wire_around(0, &frame[10..], |head| head.extend_from_slice(&[1, 2]));
}

fn to_tap(frame: &[u8], out: &mut Replies) {
    out.tap(|flat| flat.extend_from_slice(frame));
}

/// Whatever is lent, in bursts as the loop of the daemons lends it: what is read is what was sent.
#[test]
fn what_is_on_loan_is_recorded_whole_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    // Blocks so small that many a frame and what was made of it are in two of them.
    let ring = Ring::open(directory.path(), common::header(), Limits::default()).unwrap();
    let recorder = Recorder::start_into(ring, 0, 1 << 20, 1800).unwrap();
    recorder.be_patient();
    let mut node = Recorded::new(one_or_both(), Some(recorder.tap()));
    let mut out = Replies::new();
    let frames: Vec<Vec<u8>> =
        (0..200usize).map(|n| (0..20 + n * 7 % 900).map(|at| (n + at) as u8).collect()).collect();
    let mut expected = Vec::new();
    for burst in frames.chunks(7) {
        for (index, frame) in burst.iter().enumerate() {
            out.lend(index, frame, 64);
            node.handle_wire(at(5), frame, &mut out);
            expected.push(("from_radio", frame.clone()));
            if frame[0] % 3 != 1 {
                expected.push(("to_radio", [&[1, 2], &frame[10..]].concat()));
            }
            if frame[0] % 3 != 2 {
                expected.push(("to_tap", frame.clone()));
            }
        }
        out.recycle();
    }
    recorder.finish();
    let recording = Recording::open(&common::files(directory.path())).unwrap();
    assert!(recording.paths().len() == 1);
    let (records, reports) = common::read(recording.paths());
    assert!(reports[0].blocks > 50, "{reports:?}");
    let read: Vec<_> = records
        .iter()
        .map(|record| (record.what.name(), record.what.frame().unwrap().bytes.to_vec()))
        .collect();
    assert!(read == expected, "{} records, {} expected", read.len(), expected.len());
}

#[test]
fn a_recording_begun_while_the_node_runs_is_its_own_and_no_replay() {
    let directory = tempfile::tempdir().unwrap();
    let start = |part| {
        let header = recorder::RecordingHeader { part, ..common::header() };
        Recorder::start(directory.path(), header, Limits::default()).unwrap()
    };
    let switch = Switch::default();
    let first = start(0);
    let node = Recorded::new(echo(), Some(first.tap()));
    let mut node = node.with_switch(switch.clone());
    let mut hear = |ms| {
        let mut out = Replies::new();
        out.lend(0, &FRAME, 64);
        node.handle_wire(at(ms), &FRAME, &mut out);
        assert_eq!(out.loans().len() + out.as_slice().len(), 2, "the node goes on");
    };
    hear(1);
    switch.turn(None);
    first.finish();
    hear(2);
    let second = start(1);
    switch.turn(Some(second.tap()));
    hear(3);
    hear(4);
    second.finish();
    let files = common::files(directory.path());
    assert_eq!(files.len(), 2, "{files:?}");
    let times = |file: &std::path::PathBuf| {
        let (records, _) = common::read(std::slice::from_ref(file));
        let inputs = records.into_iter().filter(|record| record.what.name() == "from_radio");
        inputs.map(|record| record.at).collect::<Vec<_>>()
    };
    assert_eq!(times(&files[0]), [at(1)]);
    assert_eq!(times(&files[1]), [at(3), at(4)]);
    // They are two recordings of one start, and are not read as one.
    let said = Recording::open(&files).unwrap_err().to_string();
    assert!(said.contains("not of the same run"), "{said}");
    let begun = Recording::open(&files[1..]).unwrap();
    let said = recorder::replay::replay_with(&begun, Box::new(echo()));
    assert!(said.unwrap_err().to_string().contains("begun while the node ran"));
}

/// The loop waits for frames, and another thread ends the recording.
#[test]
fn what_a_loop_that_waits_has_written_is_everybodys() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(directory.path(), common::header(), Limits::default()).unwrap();
    let mut node = Recorded::new(echo(), Some(recorder.tap()));
    let (waits, waiting) = channel();
    let (go, ended) = channel::<()>();
    let the_loop = std::thread::spawn(move || {
        let mut out = Replies::new();
        out.lend(0, &FRAME, 64);
        node.handle_wire(at(1), &FRAME, &mut out);
        assert!(node.poll_timeout().is_none());
        waits.send(()).unwrap();
        let _ = ended.recv();
    });
    waiting.recv().unwrap();
    assert_eq!(recorder.finish().blocks, 1);
    drop(go);
    the_loop.join().unwrap();
    let (records, _) = common::read(&common::files(directory.path()));
    assert_eq!(records.len(), 3);
}
