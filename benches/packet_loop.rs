//! A frame through the loops of RSU, relay and OBU, over memory devices: what it costs in user
//! space, and how often it asks the allocator, on every path there is.
//!
//! The time is that of everything a frame passes, its copies in and out of the memory devices
//! included: compare paths, not this with a kernel.

use std::time::{Duration, Instant};

#[path = "support/chain.rs"]
mod chain;
#[path = "support/counting.rs"]
#[allow(dead_code, reason = "other benches use more of it")]
mod counting;

use chain::{Ends, PATHS, Path, drive, frame, settle, window};

/// Frames of a window: few enough at a time for the buffers of all memory devices to stay in the
/// pool.
const BATCH: usize = 10;

fn main() {
    // `cargo bench -- --test` compiles and runs each bench once.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (rounds, windows) = if is_test { (20, 7) } else { (500, 21) };
    println!(
        "{windows} windows of {} frames on each path: median time, fewest allocations\n",
        rounds * BATCH
    );
    println!("| path | bytes | µs per frame | MB/s | allocations per frame |");
    println!("|------|------:|-------------:|-----:|----------------------:|");
    drive(|ends| {
        settle(ends);
        for path in &PATHS {
            for len in [64, 1474] {
                measure(ends, path, len, rounds, windows);
            }
        }
    });
}

fn measure(ends: &mut Ends<'_>, path: &Path, len: usize, rounds: usize, windows: usize) {
    let frame = frame(path.from, path.to, len);
    // Every buffer has grown to what it needs.
    window(ends, path.at, &frame, BATCH, rounds);
    let count = rounds * BATCH;
    let (mut times, mut allocations) = (Vec::new(), Vec::new());
    while times.len() < windows {
        let begun = Instant::now();
        let before = counting::start();
        let arrived = window(ends, path.at, &frame, BATCH, rounds);
        let counted = counting::stop(before);
        let elapsed = begun.elapsed();
        // One during which an upstream was in doubt, because this process was not on a processor,
        // tells nothing.
        if path.arrives.iter().all(|&lan| arrived.get(lan) == Some(&count)) {
            times.push(elapsed / u32::try_from(count).unwrap_or(u32::MAX));
            allocations.push(counted.allocations);
        } else {
            ends.rest(Duration::from_millis(100));
        }
    }
    times.sort_unstable();
    // What frames ask of the allocator, they ask in each window: so the fewest. In some a memory
    // still grows towards its limit, or more buffers are out at a time than ever before.
    let (Some(time), Some(allocations)) = (times.get(windows / 2), allocations.iter().min()) else {
        return;
    };
    println!(
        "| {} | {len} | {:.2} | {:.0} | {} |",
        path.name,
        time.as_secs_f64() * 1e6,
        len as f64 / time.as_secs_f64() / 1e6,
        *allocations as f64 / count as f64
    );
    assert_eq!(*allocations, 0, "{}, {len} bytes: no frame asks the allocator", path.name);
}
