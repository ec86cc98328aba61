//! What is decided per frame, and per change of upstream.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use node_lib::control::candidates::{Advert, Candidates, Judge};
use node_lib::control::feasibility::{Distance, Feasibility};
use node_lib::control::neighbour::Neighbours;
use node_lib::control::node::{Node, Replies};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::device::{Burst, HEADROOM};
use node_lib::messages::data::ToUpstream;
use node_lib::messages::message::Message;
use node_lib::messages::{Cost, ETHERTYPE_DEFAULT, PathTag};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Timestamp};

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
        let mut pair = Pair::attached();
        let up = pair.tap_to_wire(&frame(CAR, HOST, len));
        let Pair { mut obu, mut rsu, now, .. } = pair;
        let mut turn = Turn::with(&frame(CAR, HOST, len));
        group.bench_function("obu_tap_to_wire", |b| {
            b.iter(|| turn.pass(|frame, out| obu.handle_tap(now, frame, out)))
        });
        let mut turn = Turn::with(&frame(HOST, CAR, len));
        group.bench_function("rsu_tap_to_wire", |b| {
            b.iter(|| turn.pass(|frame, out| rsu.handle_tap(now, frame, out)))
        });
        let relayed = upward(Mac([2, 0, 0, 0, 0, 0x02]), len);
        let mut turn = Turn::with(&relayed);
        group.bench_function("obu_relay", |b| {
            b.iter(|| {
                // The new header was written over the one that came.
                turn.burst.put_head(0, SEQ_END, relayed.get(..SEQ_END).unwrap_or_default());
                turn.pass(|frame, out| obu.handle_wire(now, frame, out));
            })
        });
        // Every frame needs a number of its own, or it is a duplicate; patching it in costs one store.
        let mut turn = Turn::with(&up);
        let mut seq = 1_000_000u32;
        group.bench_function("rsu_wire_to_tap", |b| {
            b.iter(|| {
                seq = seq.wrapping_add(1);
                turn.burst.put_head(0, SEQ_END, &seq.to_be_bytes());
                turn.pass(|frame, out| rsu.handle_wire(now, frame, out));
            })
        });
        group.finish();
    }
}

/// A frame where the loop has it, handled again and again; each time its new header is written in place.
struct Turn {
    burst: Burst,
    out: Replies,
}

impl Turn {
    fn with(frame: &[u8]) -> Self {
        let mut burst = Burst::new(1);
        burst.reset(2048);
        if let Some(slot) = burst.vacant().and_then(|slot| slot.get_mut(..frame.len())) {
            slot.copy_from_slice(frame);
        }
        burst.commit(frame.len());
        Self { burst, out: Replies::new() }
    }

    fn pass(&mut self, handle: impl FnOnce(&[u8], &mut Replies)) {
        let frame = self.burst.frame(0);
        self.out.lend(0, frame, HEADROOM);
        handle(black_box(frame), &mut self.out);
        for loan in self.out.loans() {
            if let Some(head) = self.out.head(loan) {
                self.burst.put_head(0, loan.payload.start, head);
            }
        }
        assert!(!self.out.is_empty(), "it is passed on");
        self.out.recycle();
    }
}

/// A client's frame on its way up from an OBU behind ours.
fn upward(from: Mac, len: usize) -> Vec<u8> {
    let inner = frame(CAR, HOST, len);
    let packet = ToUpstream {
        destination: pair::RSU.into(),
        source: from.into(),
        hop_limit: HOP_LIMIT,
        boot: 0,
        seq: Seq(1),
        payload: &inner,
    };
    (&Message { to: pair::OBU, from, ethertype: ETHERTYPE_DEFAULT, packet: packet.into() }).into()
}

/// Where the sequence number of a data frame ends, Ethernet header included.
const SEQ_END: usize = 14 + 22;

criterion_group!(benches, choose, forward);
criterion_main!(benches);
