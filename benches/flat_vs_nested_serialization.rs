//! What it costs to serialize each message: flat (one allocation), nested (one part per field),
//! nested and then flattened, and `emit` into a buffer that is used again.
//!
//! Beside criterion's figures this prints what each form asks of the allocator, and for the
//! heartbeat the ratios between the forms. These are from rounds that alternate between them, so
//! that a noisy machine disturbs all of them alike. See docs/performance.md.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/turns.rs"]
mod turns;
#[path = "../node_lib/tests/vectors/read.rs"]
mod vectors;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use node_lib::messages::{ETHERTYPE_DEFAULT, Kind, Message};
use turns::{Times, in_turns, time};

/// Nanoseconds published for flat, nested, nested and flattened by the project our goals are set
/// against, on its own machine: context, not a comparison.
const PUBLISHED: [f64; 3] = [22.86, 198.06, 254.49];

/// Goals for flat divided by nested, and by nested and flattened.
const GOALS: [f64; 2] = [0.1, 0.083];

fn main() {
    let frames = one_of_each_kind();
    let messages: Vec<(Kind, Message<'_>)> = frames
        .iter()
        .map(|(kind, frame)| (*kind, Message::parse(frame, ETHERTYPE_DEFAULT).expect("a vector")))
        .collect();

    print_allocations(&messages);
    let heartbeat = messages.iter().find(|(kind, _)| *kind == Kind::Heartbeat).expect("a vector").1;
    if turns::is_measuring() {
        print_ratios(&heartbeat);
    }

    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    bench(&mut criterion, &messages);
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, messages: &[(Kind, Message<'_>)]) {
    let mut group = criterion.benchmark_group("flat_vs_nested");
    for (kind, message) in messages {
        group.throughput(Throughput::Bytes(message.wire_len() as u64));
        let id = |form: &str| BenchmarkId::new(form, kind.name());
        group.bench_with_input(id("flat"), message, |b, message| b.iter(|| flat(message)));
        group.bench_with_input(id("nested"), message, |b, message| b.iter(|| nested(message)));
        group.bench_with_input(id("nested_flatten"), message, |b, message| {
            b.iter(|| nested_flatten(message));
        });
        let mut out = Vec::with_capacity(message.wire_len());
        group.bench_with_input(id("emit"), message, |b, message| {
            b.iter(|| {
                out.clear();
                black_box(message).emit(&mut out);
                black_box(&out);
            });
        });
    }
    group.finish();
}

#[inline]
fn flat(message: &Message<'_>) -> Vec<u8> {
    black_box(message).into()
}

#[inline]
fn nested(message: &Message<'_>) -> Vec<Vec<u8>> {
    black_box(message).into()
}

#[inline]
fn nested_flatten(message: &Message<'_>) -> Vec<u8> {
    nested(message).concat()
}

/// The first vector of each kind, in the order of the type codes.
fn one_of_each_kind() -> Vec<(Kind, Vec<u8>)> {
    let mut frames = BTreeMap::new();
    for vector in vectors::all() {
        let message = Message::parse(&vector.frame, ETHERTYPE_DEFAULT);
        let kind = message.unwrap_or_else(|error| unreachable!("{}: {error}", vector.name)).packet;
        frames.entry(kind.kind()).or_insert(vector.frame);
    }
    frames.into_iter().collect()
}

fn print_allocations(messages: &[(Kind, Message<'_>)]) {
    println!("Allocations (and bytes asked for) per message:\n");
    println!("| message         | frame | flat        | nested      | nested + flatten |");
    println!("|-----------------|------:|------------:|------------:|-----------------:|");
    for (kind, message) in messages {
        let cell = |counted: counting::Counted| {
            format!("{:>2} ({:>4} B)", counted.allocations, counted.bytes)
        };
        println!(
            "| {:<15} | {:>3} B | {:>11} | {:>11} | {:>16} |",
            kind.name(),
            message.wire_len(),
            cell(counting::count(|| flat(message)).1),
            cell(counting::count(|| nested(message)).1),
            cell(counting::count(|| nested_flatten(message)).1),
        );
    }
    println!();
}

/// Times the three forms in turns and compares their medians.
fn print_ratios(message: &Message<'_>) {
    const ROUNDS: usize = 400;
    const CALLS: u32 = 2_000;

    let length = message.wire_len();
    let [flat, nested, flattened, bare] = in_turns(ROUNDS, || {
        [
            time(CALLS, || flat(message)),
            time(CALLS, || nested(message)),
            time(CALLS, || nested_flatten(message)),
            time(CALLS, || Vec::<u8>::with_capacity(black_box(length))),
        ]
    });

    println!("Heartbeat, {ROUNDS} rounds of {CALLS} calls, forms in turns:\n");
    println!("| form                    | median    | best round | published |");
    println!("|-------------------------|----------:|-----------:|----------:|");
    let forms = [("flat", &flat), ("nested", &nested), ("nested + flatten", &flattened)];
    for ((form, here), published) in forms.iter().zip(PUBLISHED) {
        let Times { median, best } = here;
        println!("| {form:<23} | {median:>6.2} ns |  {best:>6.2} ns | {published:>6.2} ns |");
    }
    let Times { median, best } = bare;
    println!("| the one allocation only | {median:>6.2} ns |  {best:>6.2} ns |           |\n");
    for ((form, other), goal) in forms.iter().skip(1).zip(GOALS) {
        let ratio = flat.median / other.median;
        let verdict = if ratio <= goal { "met" } else { "MISSED" };
        println!(
            "flat / {form}: {ratio:.3} (1 : {:.1}) by medians, {:.3} by best rounds; \
             goal {goal} {verdict}",
            1.0 / ratio,
            flat.best / other.best,
        );
    }
    println!();
}
