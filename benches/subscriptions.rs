//! What it costs a client to subscribe to everything again after a reconnect. One line that is kept
//! for all its listeners, is held against a line made anew for each, as bytes and through a socket.
//!
//! A daemon has seven topics, so fifty of them cannot be had. What is counted are fifty listeners
//! with one or two topics each, which together want all seven: the one line names each topic once.
//! A daemon takes 16 subscriptions of a client, so in truth the fifty lines would need four
//! connections; what these cost is left out.
//!
//! Beside criterion's figures this prints the ratios of rounds in turns, so that a busy machine
//! disturbs all alike, and fails where the goal is missed. See docs/performance.md.
//!
//! `cargo bench -p control_socket --bench subscriptions`

#[path = "support/counting.rs"]
mod counting;
#[path = "support/turns.rs"]
mod turns;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use control_socket::feed::Wanted;
use control_socket::message::{Ask, RequestLine, Topic};
use criterion::Criterion;
use turns::{Times, in_turns, time};

const LISTENERS: u64 = 50;

/// Fifty lines are to cost at least so many times what one costs.
const GOAL: f64 = 20.0;

fn main() -> ExitCode {
    let kept = wanted();
    let all: Vec<_> = (0..LISTENERS).map(|listener| (listener, topics_of(listener))).collect();
    // Or else less would be asked for, which is no saving.
    let together: BTreeSet<_> = all.iter().flat_map(|(_, topics)| topics).copied().collect();
    assert_eq!(made(1, &Vec::from_iter(together)), kept.line(), "both ask for the same");

    let is_met = !turns::is_measuring() || print_ratios(&kept, &all) >= GOAL;
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, &kept, &all);
    criterion.final_summary();
    if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn topics_of(listener: u64) -> Vec<Topic> {
    let number = usize::try_from(listener).unwrap_or_default();
    let topics = [number, number / Topic::ALL.len()].map(|n| n % Topic::ALL.len());
    let topics: BTreeSet<_> = topics.into_iter().collect();
    topics.into_iter().filter_map(|n| Topic::ALL.get(n).copied()).collect()
}

fn wanted() -> Wanted {
    let mut wanted = Wanted::default();
    for listener in 0..LISTENERS {
        wanted.add(&topics_of(listener));
    }
    wanted
}

/// The line of one listener.
fn made(id: u64, topics: &[Topic]) -> Vec<u8> {
    let ask = Ask::Subscribe(topics.to_vec());
    let mut line = serde_json::to_vec(&RequestLine { id, ask }).expect("words and numbers");
    line.push(b'\n');
    line
}

type All = [(u64, Vec<Topic>)];

fn one_kept(kept: &Wanted, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(black_box(kept).line());
    black_box(out);
}

fn fifty_made(all: &All, out: &mut Vec<u8>) {
    out.clear();
    for (id, topics) in black_box(all) {
        out.extend_from_slice(&made(*id, topics));
    }
    black_box(out);
}

/// As the client does after a reconnect.
fn send_one(kept: &Wanted, near: &mut UnixStream) {
    near.write_all(black_box(kept).line()).expect("room in the socket");
}

/// Each as it is ready.
fn send_fifty(all: &All, near: &mut UnixStream) {
    for (id, topics) in black_box(all) {
        near.write_all(&made(*id, topics)).expect("room in the socket");
    }
}

/// All of them in one piece: what is left when only the making is compared.
fn send_fifty_at_once(all: &All, near: &mut UnixStream, out: &mut Vec<u8>) {
    fifty_made(all, out);
    near.write_all(out).expect("room in the socket");
}

fn bench(c: &mut Criterion, kept: &Wanted, all: &All) {
    let mut out = Vec::with_capacity(16 << 10);
    let mut group = c.benchmark_group("subscriptions/bytes");
    group.bench_function("one_kept", |b| b.iter(|| one_kept(kept, &mut out)));
    group.bench_function("fifty_made", |b| b.iter(|| fifty_made(all, &mut out)));
    group.finish();

    let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while far.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    let mut group = c.benchmark_group("subscriptions/socket");
    group.bench_function("one_kept", |b| b.iter(|| send_one(kept, &mut near)));
    group.bench_function("fifty_made", |b| b.iter(|| send_fifty(all, &mut near)));
    group.bench_function("fifty_made_at_once", |b| {
        b.iter(|| send_fifty_at_once(all, &mut near, &mut out));
    });
    group.finish();
    drop(near);
    reader.join().expect("the reader");
}

/// Times both in turns, and compares their medians: how many times as much fifty frames cost.
fn print_ratios(kept: &Wanted, all: &All) -> f64 {
    const ROUNDS: usize = 400;
    // So many lines fit into the socket while nobody reads.
    const CALLS: u32 = 3;

    let mut out = Vec::with_capacity(16 << 10);
    one_kept(kept, &mut out);
    let one_line = out.len();
    let one = counting::count(|| one_kept(kept, &mut out)).1;
    fifty_made(all, &mut out);
    let fifty_lines = out.len();
    let fifty = counting::count(|| fifty_made(all, &mut out)).1;
    println!("One line of {one_line} bytes, {} allocations;", one.allocations);
    println!("{LISTENERS} lines of {fifty_lines} bytes, {} allocations.\n", fifty.allocations);

    let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
    let mut buffer = vec![0; 64 << 10];
    let [one, fifty, sent, sent_fifty, at_once] = in_turns(ROUNDS, || {
        let mut drained = |bytes: usize, nanoseconds: f64| {
            let mut left = bytes * CALLS as usize;
            while left > 0 {
                left -= far.read(&mut buffer).expect("what was written");
            }
            nanoseconds
        };
        [
            time(1_000, || one_kept(kept, &mut out)),
            time(100, || fifty_made(all, &mut out)),
            drained(one_line, time(CALLS, || send_one(kept, &mut near))),
            drained(fifty_lines, time(CALLS, || send_fifty(all, &mut near))),
            drained(fifty_lines, time(CALLS, || send_fifty_at_once(all, &mut near, &mut out))),
        ]
    });
    println!("{ROUNDS} rounds in turns, medians (and best rounds):\n");
    println!("|                           | one kept          | fifty made        | ratio |");
    println!("|---------------------------|------------------:|------------------:|------:|");
    row("bytes", &one, &fifty);
    row("socket, a write each", &sent, &sent_fifty);
    row("socket, fifty in one write", &sent, &at_once);
    println!();
    let ratio = sent_fifty.median / sent.median;
    let verdict = if ratio >= GOAL { "met" } else { "MISSED" };
    println!("fifty frames made anew / one kept: {ratio:.0}; goal {GOAL} {verdict}\n");
    ratio
}

fn row(what: &str, one: &Times, fifty: &Times) {
    let cell = |times: &Times| format!("{:.0} ({:.0}) ns", times.median, times.best);
    let ratio = fifty.median / one.median;
    println!("| {what:<25} | {:>17} | {:>17} | {ratio:>5.0} |", cell(one), cell(fifty));
}
