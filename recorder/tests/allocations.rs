//! A recorder beside each node costs a frame no allocation either, on every path there is.
//!
//! One test in a process of its own, because the allocator counts for all threads: the one that
//! writes to disk too.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "../../benches/support/chain.rs"]
mod chain;
#[path = "recorder/common.rs"]
mod common;
#[path = "../../benches/support/counting.rs"]
#[allow(dead_code, reason = "benches use more of it")]
mod counting;

use chain::{Around, MTU, PATHS, drive_with, frame, settle, window};
use node_lib::control::node::Node;
use recorder::{Limits, Recorded, Recorder};

const ROUNDS: usize = 200;
const BATCH: usize = 10;
const WINDOWS: usize = 20;

/// The next node has the next recorder.
struct WithRecorder<'a>(std::slice::Iter<'a, Recorder>);

impl Around for WithRecorder<'_> {
    type Of<N: Node> = Recorded<N>;
    fn wrap<N: Node>(&mut self, node: N) -> Recorded<N> {
        Recorded::new(node, self.0.next().map(Recorder::tap))
    }
}

#[test]
fn no_path_of_a_frame_allocates_with_the_recorder_on() {
    let directory = tempfile::tempdir().unwrap();
    let recorders: Vec<Recorder> = (0..3)
        .map(|n| {
            // So that no file is finished meanwhile: that allocates, on the other thread, for its
            // name.
            let limits = Limits { bytes: 4 << 30, ..Limits::default() };
            let header = recorder::RecordingHeader { id: [2, 0, 0, 0, 0, n], ..common::header() };
            Recorder::start(directory.path(), header, limits).unwrap()
        })
        .collect();
    drive_with(WithRecorder(recorders.iter()), |ends| {
        settle(ends);
        for path in &PATHS {
            for (len, batch) in [(60, BATCH), (1514, BATCH), (MTU + 14, BATCH / 5)] {
                let frame = frame(path.from, path.to, len);
                let mut seen = Vec::new();
                loop {
                    let before = counting::start();
                    let arrived = window(ends, path.at, &frame, batch, ROUNDS);
                    let counted = counting::stop(before);
                    let wanted = [0, 1, 2]
                        .map(|lan| if path.arrives.contains(&lan) { ROUNDS * batch } else { 0 });
                    seen.push((arrived, counted));
                    if arrived == wanted && counted.allocations == 0 {
                        break;
                    }
                    assert!(seen.len() < WINDOWS, "{}, {len} bytes: {seen:?}", path.name);
                }
            }
        }
    });
    for recorder in recorders {
        let stats = recorder.finish();
        assert!(stats.records > 10_000, "{stats:?}");
    }
}
