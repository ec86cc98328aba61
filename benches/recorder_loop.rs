//! What the recorder costs a frame on its way through the loops of RSU, relay and OBU, over memory
//! devices: the bench `packet_loop` with a recorder beside each node, and without, in turns.
//!
//! There is no kernel in it, which in a daemon takes most of the time: this is the worst case.

use std::time::{Duration, Instant};

#[path = "support/chain.rs"]
mod chain;

use chain::{Around, Ends, PATHS, Path, drive_with, frame, settle, window};
use node_lib::control::node::Node;
use node_lib::{Mac, NodeId, Start, Timestamp};
use recorder::header::{RecordingHeader, Role};
use recorder::{Limits, Recorded, Recorder, Tape};

const BATCH: usize = 10;

/// The next node has the next tap, or none.
struct Taps(std::vec::IntoIter<Option<Tape>>);

impl Around for Taps {
    type Of<N: Node> = Recorded<N>;
    fn wrap<N: Node>(&mut self, node: N) -> Recorded<N> {
        Recorded::new(node, self.0.next().flatten())
    }
}

fn main() {
    // `cargo bench -- --test` compiles and runs each bench once.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (rounds, windows, turns) = if is_test { (20, 3, 1) } else { (500, 15, 3) };
    let lens = [64, 256, 1474];
    // [path][length][off, whole, snapped]
    let mut times = vec![[[(); 3]; 3].map(|kinds| kinds.map(|()| Vec::new())); PATHS.len()];
    for _ in 0..turns {
        for (kind, snap) in [None, Some(0), Some(128)].into_iter().enumerate() {
            let directory = tempfile::tempdir().expect("a directory");
            let recorders: Vec<Recorder> = snap.map_or(Vec::new(), |snap| {
                (1..=3).map(|n| start(directory.path(), n, snap)).collect()
            });
            let taps: Vec<_> = (0..3).map(|n| recorders.get(n).map(Recorder::tap)).collect();
            drive_with(Taps(taps.into_iter()), |ends| {
                settle(ends);
                for (path, times) in PATHS.iter().zip(&mut times) {
                    for (len, times) in lens.iter().zip(times) {
                        let Some(times) = times.get_mut(kind) else { continue };
                        measure(ends, path, *len, rounds, windows, times);
                    }
                }
            });
            let lost: u64 = recorders.into_iter().map(|recorder| recorder.finish().lost).sum();
            if lost > 0 {
                println!("{lost} records dropped: memory devices are faster than the disk");
            }
        }
    }
    println!(
        "| path | bytes | off, µs | on, µs | on / off, per cent | 128 bytes of each, per cent |"
    );
    println!(
        "|------|------:|--------:|-------:|-------------------:|----------------------------:|"
    );
    for (path, times) in PATHS.iter().zip(&times) {
        for (len, kinds) in lens.iter().zip(times) {
            let [off, whole, snapped] = kinds.each_ref().map(|times| median(times));
            println!(
                "| {} | {len} | {:.2} | {:.2} | {:.0} | {:.0} |",
                path.name,
                off * 1e6,
                whole * 1e6,
                100.0 * off / whole,
                100.0 * off / snapped
            );
        }
    }
}

fn start(directory: &std::path::Path, n: u8, snap: u32) -> Recorder {
    let start = Start { id: NodeId([2, 0, 0, 0, 0, n]), ..Start::new(Mac([2, 0, 0, 0, 0, n])) };
    let header = RecordingHeader::new(Role::Obu, &start, Timestamp::ZERO, &()).expect("a header");
    let limits = Limits { bytes: 256 << 20, ..Limits::default() };
    Recorder::start(directory, RecordingHeader { snap, ..header }, limits)
        .expect("a directory that can be written")
}

fn median(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
}

fn measure(
    ends: &mut Ends<'_>,
    path: &Path,
    len: usize,
    rounds: usize,
    windows: usize,
    times: &mut Vec<Duration>,
) {
    let frame = frame(path.from, path.to, len);
    window(ends, path.at, &frame, BATCH, rounds);
    let count = rounds * BATCH;
    let mut done = 0;
    while done < windows {
        let begun = Instant::now();
        let arrived = window(ends, path.at, &frame, BATCH, rounds);
        let elapsed = begun.elapsed();
        // One during which an upstream was in doubt tells nothing.
        if path.arrives.iter().all(|&lan| arrived.get(lan) == Some(&count)) {
            times.push(elapsed / u32::try_from(count).unwrap_or(u32::MAX));
            done += 1;
        } else {
            ends.rest(Duration::from_millis(100));
        }
    }
}
