//! The buffer pool beside the allocator: one buffer at a time, and a burst of 64 as the packet loop
//! takes them. The sizes are the classes and a full frame of a radio with an MTU of 1500.

use std::hint::black_box;
use std::time::Duration;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, Throughput};
use node_lib::buffer_pool::{KEPT_MAX, get_buffer, return_buffer};

const SIZES: [usize; 4] = [256, 512, 1500, 1514];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    one(&mut criterion);
    burst(&mut criterion);
    criterion.final_summary();
}

fn one(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("buffer_pool/one");
    for size in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::new("pool", size), |b| {
            b.iter(|| return_buffer(touched(get_buffer(black_box(size)))));
        });
        group.bench_function(BenchmarkId::new("allocator", size), |b| {
            b.iter(|| drop(touched(BytesMut::with_capacity(black_box(size)))));
        });
    }
    group.finish();
}

fn burst(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("buffer_pool/burst_of_64");
    let mut held = Vec::with_capacity(KEPT_MAX);
    for size in SIZES {
        group.throughput(Throughput::Bytes((KEPT_MAX * size) as u64));
        group.bench_function(BenchmarkId::new("pool", size), |b| {
            b.iter(|| {
                held.extend((0..KEPT_MAX).map(|_| touched(get_buffer(black_box(size)))));
                held.drain(..).for_each(return_buffer);
            });
        });
        group.bench_function(BenchmarkId::new("allocator", size), |b| {
            b.iter(|| {
                held.extend(
                    (0..KEPT_MAX).map(|_| touched(BytesMut::with_capacity(black_box(size)))),
                );
                held.clear();
            });
        });
    }
    group.finish();
}

/// Writes the first bytes, as any user would: a header.
#[inline]
fn touched(mut buf: BytesMut) -> BytesMut {
    buf.extend_from_slice(black_box(&[0; 14]));
    buf
}
