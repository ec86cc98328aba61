//! Reading a frame: the success path on every test vector.

#[path = "../node_lib/tests/vectors/read.rs"]
mod vectors;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    bench(&mut criterion);
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("message_parse");
    for vectors::Vector { name, frame } in vectors::all() {
        Message::parse(&frame, ETHERTYPE_DEFAULT).expect("every vector is a message");
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &frame, |b, frame| {
            b.iter(|| Message::parse(black_box(frame), ETHERTYPE_DEFAULT).is_ok());
        });
    }
    group.finish();
}
