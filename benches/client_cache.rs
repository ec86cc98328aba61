//! The table a switch looks into for every frame: look-ups, refreshes, moves and evictions.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use node_lib::control::client_cache::ClientCache;
use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, Timestamp};

const AGE: Duration = Duration::from_secs(300);
const NOW: Timestamp = Timestamp::from_millis(1);

fn client(n: u32) -> Client {
    let [a, b, c, d] = n.to_be_bytes();
    Client { vlan: 0, mac: Mac([2, 0, a, b, c, d]) }
}

fn filled(count: u32) -> ClientCache<u32> {
    let mut cache = ClientCache::new(count as usize, AGE, 1);
    for n in 0..count {
        cache.learn(NOW, client(n), n % 100);
    }
    cache
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("client_cache");
    // What a radio would carry if this were all there is to do: one look-up for a full frame.
    group.throughput(Throughput::Bytes(1514));
    for count in [100, 8192] {
        let mut cache = filled(count);
        // A stride that visits every client in an order no cache line predicts.
        let mut n = 0u32;
        let mut next = move || {
            n = (n + 4801) % count;
            n
        };
        group.bench_with_input(BenchmarkId::new("owner", count), &(), |b, ()| {
            b.iter(|| cache.owner(NOW, black_box(client(next()))))
        });
        group.bench_with_input(BenchmarkId::new("learn_known", count), &(), |b, ()| {
            b.iter(|| {
                let n = next();
                cache.learn(NOW, black_box(client(n)), n % 100)
            })
        });
        let mut fresh = 1_000_000u32;
        group.bench_with_input(BenchmarkId::new("learn_new_and_evict", count), &(), |b, ()| {
            b.iter(|| {
                fresh += 1;
                cache.learn(NOW, black_box(client(fresh)), fresh % 100)
            })
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
