//! No path of a frame costs an allocation once everything is warm: the control planes of RSU and
//! OBUs in the loop of the daemons, over memory devices.
//!
//! One test in a process of its own, because the allocator counts for all threads.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "../../benches/support/chain.rs"]
mod chain;
#[path = "../../benches/support/counting.rs"]
#[allow(dead_code, reason = "benches use more of it")]
mod counting;

use chain::{MTU, PATHS, drive, frame, settle, window};

const ROUNDS: usize = 200;
/// Few enough for the buffers of all memory devices together to stay in the pool.
const BATCH: usize = 10;
const WINDOWS: usize = 20;

/// The control plane goes on beside the data and may allocate when a heartbeat changes something,
/// so a window of 2,000 frames is looked at several times: what a frame costs would show in each of
/// them.
#[test]
fn no_path_of_a_frame_allocates() {
    drive(|ends| {
        settle(ends);
        for path in &PATHS {
            // The last is too long for the radio, and takes twice as many frames there.
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
}
