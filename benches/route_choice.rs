//! What is decided per frame, and per change of upstream.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use node_lib::control::candidates::{Advert, Candidates, Judge};
use node_lib::control::feasibility::{Distance, Feasibility};
use node_lib::control::neighbour::Neighbours;
use node_lib::control::node::Node;
use node_lib::messages::{Cost, PathTag};
use node_lib::{Boot, Mac, NodeId, Order, Timestamp};

#[path = "support/pair.rs"]
mod pair;
use pair::{CAR, HOST, Pair, frame};

fn choose(c: &mut Criterion) {
    let mut candidates = Candidates::default();
    let mut neighbours = Neighbours::new();
    let now = Timestamp::from_millis(1000);
    for n in 0..16u8 {
        let mac = Mac([2, 0, 0, 0, 0, n]);
        let advert = Advert {
            distance: Distance { order: Order::new(1, 7), hops: n % 4 },
            cost: Cost(64 + u16::from(n)),
            hop_limit: 15,
            via: NodeId::NONE,
            path: PathTag::DIRECT,
        };
        candidates.hear(now, mac, mac.into(), advert, None);
        neighbours.hear(now, mac, mac.into(), Boot(1)).1.note_proof(now);
    }
    let judge = Judge {
        now,
        us: NodeId([2, 0, 0, 0, 0, 0xff]),
        interval: Duration::from_millis(100),
        feasibility: Feasibility::default(),
        neighbours: &neighbours,
        is_quiet: false,
        by_hops: false,
    };
    let mut group = c.benchmark_group("route_choice");
    group.bench_function("best_of_16_candidates", |b| {
        b.iter(|| black_box(&candidates).best(black_box(&judge)).map(|c| c.mac))
    });
    group.finish();
}

fn forward(c: &mut Criterion) {
    for len in [64usize, 1474] {
        let mut group = c.benchmark_group(format!("forward/{len}_bytes"));
        group.throughput(Throughput::Bytes(len as u64));
        let up = frame(CAR, HOST, len);
        let mut pair = Pair::attached();
        let now = pair.now;
        group.bench_function("obu_tap_to_wire", |b| {
            b.iter(|| {
                pair.obu.handle_tap(now, black_box(&up), &mut pair.out);
                pair.out.recycle();
            })
        });
        let down = frame(HOST, CAR, len);
        group.bench_function("rsu_tap_to_wire", |b| {
            b.iter(|| {
                pair.rsu.handle_tap(now, black_box(&down), &mut pair.out);
                pair.out.recycle();
            })
        });
        // Every frame needs a number of its own, or it is a duplicate; patching it in costs one store.
        let mut wire = pair.tap_to_wire(&up);
        let mut seq = 1_000_000u32;
        group.bench_function("rsu_wire_to_tap", |b| {
            b.iter(|| {
                seq = seq.wrapping_add(1);
                if let Some(field) = wire.get_mut(SEQ) {
                    field.copy_from_slice(&seq.to_be_bytes());
                }
                pair.rsu.handle_wire(now, black_box(&wire), &mut pair.out);
                pair.out.recycle();
            })
        });
        group.finish();
    }
}

/// Where the sequence number of a data frame stands, Ethernet header included.
const SEQ: std::ops::Range<usize> = 14 + 18..14 + 22;

criterion_group!(benches, choose, forward);
criterion_main!(benches);
