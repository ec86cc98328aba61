//! What a record costs: to write, to read and on disk, in MessagePack and in JSON lines; and
//! whether the recorder keeps up with 200,000 frames a second.
//!
//! Frames of 256 bytes, and events of a dozen numbers and addresses. Ratios are of the same run. It
//! fails where a goal is missed, unless it runs as a test: then it is too short to tell.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[path = "support/counting.rs"]
#[allow(dead_code, reason = "other benches use more of it")]
mod counting;

use node_lib::control::event::{Attachment, Cause, Event, HandOver};
use node_lib::{Mac, NodeId, Start, Timestamp};
use recorder::decode::Records;
use recorder::header::{RecordingHeader, Role};
use recorder::json;
use recorder::record::{Record, What};
use recorder::{Limits, Recorder, encode};

/// Records of a window.
const WINDOW: usize = 500;
const LEN: usize = 256;
/// What a busy node has to record.
const RATE: u64 = 200_000;
/// Into the recorder, median.
const NANOS_MAX: f64 = 60.0;
/// How many times as fast MessagePack is written and read as JSON, and how many times as small.
const GOALS: [(&str, f64); 3] = [("written", 8.0), ("read", 3.0), ("small", 2.0)];

fn main() -> ExitCode {
    // `cargo bench -- --test` compiles and runs each bench once.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let windows = if is_test { 5 } else { 2000 };
    let frame: Vec<u8> = (0..LEN).map(|n| (n * 89 % 251) as u8).collect();
    let at = |n: usize| Timestamp::from_micros(n as u64 * 5);
    let frames: Vec<Record<'_>> = (0..WINDOW)
        .map(|n| Record { at: at(n), what: What::FromRadio((&frame[..]).into()) })
        .collect();
    let place = Attachment { rsu: NodeId([2; 6]), upstream: NodeId([2, 3, 4, 5, 6, 7]), hops: 2 };
    let hand_over = HandOver {
        from: place,
        to: Some(place),
        cause: Cause::Fading,
        is_settled: true,
        gap: Duration::from_millis(41),
        lost: 3,
        at_risk: 17,
        doubled: 2,
        sent_twice: 9,
    };
    let events: Vec<Record<'_>> = (0..WINDOW)
        .map(|n| Record { at: at(n), what: What::Event(Event::HandOver(hand_over)) })
        .collect();
    println!(
        "{windows} windows of {WINDOW} records, the median of them; ns and bytes per record\n"
    );
    println!("| record | form | write | allocations | read | bytes |");
    println!("|--------|------|------:|------------:|-----:|------:|");
    let mut missed = Vec::new();
    for (name, records) in [("frame of 256 bytes", &frames), ("hand-over", &events)] {
        let packed = form(name, "MessagePack", records, windows, pack, unpack);
        let lines = form(name, "JSON lines", records, windows, print_lines, read_lines);
        let ratios =
            [lines.write / packed.write, lines.read / packed.read, lines.bytes / packed.bytes];
        let [write, read, bytes] = ratios;
        println!("| {name} | ratio | {write:.1} | | {read:.1} | {bytes:.1} |");
        let goals = GOALS.iter().zip(ratios).filter(|((_, least), ratio)| ratio < least);
        missed.extend(goals.map(|((what, least), ratio)| {
            format!("{name}, {what}: {ratio:.1} times as JSON, goal {least}")
        }));
    }
    let nanos = tap(&frame, if is_test { 20 } else { 4000 });
    if nanos > NANOS_MAX {
        missed.push(format!("into the recorder: {nanos:.0} ns, goal {NANOS_MAX}"));
    }
    let dropped = keeps_up(&frame, if is_test { 20_000 } else { 5 * RATE });
    if dropped > 0 {
        missed.push(format!("{dropped} frames dropped, goal 0"));
    }
    for goal in &missed {
        println!("MISSED {goal}");
    }
    ExitCode::from(u8::from(!is_test && !missed.is_empty()))
}

struct Cost {
    write: f64,
    read: f64,
    bytes: f64,
}

fn pack(out: &mut Vec<u8>, records: &[Record<'_>]) {
    records.iter().for_each(|record| encode::record(out, Timestamp::ZERO, record));
}

fn unpack(bytes: &[u8]) -> usize {
    Records::new(bytes, Timestamp::ZERO).filter(|record| black_box(record).is_ok()).count()
}

fn print_lines(out: &mut Vec<u8>, records: &[Record<'_>]) {
    for record in records {
        json::write_record(out, record).expect("memory takes everything");
    }
}

fn read_lines(bytes: &[u8]) -> usize {
    let text = std::str::from_utf8(bytes).expect("JSON is text");
    text.lines().filter(|line| black_box(json::parse(line)).is_ok()).count()
}

/// Nanoseconds per record of the median window.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_nanos() as f64 / WINDOW as f64)
}

fn form(
    name: &str,
    form: &str,
    records: &[Record<'_>],
    windows: usize,
    write: fn(&mut Vec<u8>, &[Record<'_>]),
    read: fn(&[u8]) -> usize,
) -> Cost {
    let mut out = Vec::new();
    write(&mut out, records);
    let (mut writes, mut reads, mut allocations) = (Vec::new(), Vec::new(), u64::MAX);
    for _ in 0..windows {
        out.clear();
        let before = counting::start();
        let begun = Instant::now();
        write(&mut out, black_box(records));
        writes.push(begun.elapsed());
        allocations = allocations.min(counting::stop(before).allocations);
        let begun = Instant::now();
        assert_eq!(read(black_box(&out)), WINDOW, "everything can be read");
        reads.push(begun.elapsed());
    }
    let cost = Cost {
        write: median(writes),
        read: median(reads),
        bytes: out.len() as f64 / WINDOW as f64,
    };
    let each = allocations as f64 / WINDOW as f64;
    println!(
        "| {name} | {form} | {:.0} | {each} | {:.0} | {:.0} |",
        cost.write, cost.read, cost.bytes
    );
    if form == "MessagePack" {
        assert_eq!(allocations, 0, "{name}: a record asks the allocator for nothing");
    }
    cost
}

fn start(directory: &Path) -> Recorder {
    let start = Start::new(Mac([2, 0, 0, 0, 0, 1]));
    let header = RecordingHeader::new(Role::Obu, &start, Timestamp::ZERO, &()).expect("a header");
    let limits = Limits { bytes: 2 << 30, ..Limits::default() };
    Recorder::start(directory, header, limits).expect("a directory that can be written")
}

/// What the packet loop pays, the clock excepted, which it has read already: lock, block, and what
/// the writer beside it costs. Returns the median.
fn tap(frame: &[u8], windows: usize) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let recorder = start(directory.path());
    let tap = recorder.tap();
    let mut now = 0;
    let mut times = Vec::new();
    for window in 0..windows {
        // No faster than a disk: what is measured is the loop.
        std::thread::sleep(Duration::from_millis(2));
        let begun = Instant::now();
        for _ in 0..WINDOW {
            now += 5;
            tap.from_radio(Timestamp::from_micros(now), black_box(frame));
        }
        // The first few touch memory that nobody has touched yet.
        if window * 10 >= windows {
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share) as usize;
        times.get(index).map_or(0.0, |time| time.as_nanos() as f64 / WINDOW as f64)
    };
    println!(
        "\ninto the recorder: p50 {:.0} ns, p99 {:.0} ns a frame of {LEN} bytes",
        at(0.5),
        at(0.99)
    );
    at(0.5)
}

/// Offers frames at a steady rate and counts what was dropped.
fn keeps_up(frame: &[u8], count: u64) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let recorder = start(directory.path());
    let tap = recorder.tap();
    let begun = Instant::now();
    let mut done = 0;
    while done < count {
        // As a loop has them: some at a time.
        let due = (begun.elapsed().as_secs_f64() * RATE as f64) as u64;
        while done < due.min(count) {
            tap.from_radio(Timestamp::from_micros(done * 5), frame);
            done += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let elapsed = begun.elapsed();
    let stats = recorder.finish();
    let dropped = stats.lost + stats.lost_on_disk;
    println!(
        "{count} frames at {:.0} a second, a pool of 64 MiB: {dropped} dropped, {} MB on disk",
        count as f64 / elapsed.as_secs_f64(),
        stats.bytes / 1_000_000
    );
    dropped
}
