//! What is decided per frame, and per change of upstream.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use node_lib::control::node::{Node, Replies};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::device::{Burst, HEADROOM};
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::data::ToUpstream;
use node_lib::messages::message::Message;
use node_lib::messages::{Cost, ETHERTYPE_DEFAULT};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Timestamp};
use obu_lib::control::link::neighbour::Neighbours;
use obu_lib::control::route::candidates::{Advert, Candidates, Judge, RELAY, Ranker};
use obu_lib::control::route::feasibility::{Distance, Feasibility};

#[path = "support/pair.rs"]
mod pair;
use pair::{CAR, HOST, Pair, frame};

fn choose(c: &mut Criterion) {
    let mut candidates = Candidates::default();
    let interval = Duration::from_millis(100);
    let mut neighbours = Neighbours::new();
    let now = Timestamp::from_millis(1000);
    for n in 0..16u8 {
        let mac = Mac([2, 0, 0, 0, 0, n]);
        let advert = Advert {
            distance: Distance { order: Order::new(1, 7), hops: n % 4 },
            cost: Cost(64 + u16::from(n)),
            hop_limit: 15,
            via: NodeId::NONE,
            mtu: 1500,
            stride: 0,
        };
        candidates.hear(now, mac, mac.into(), advert, None);
        neighbours.hear(now, mac, mac.into(), Boot(1), interval).1.note_proof(now);
    }
    let judge = Judge {
        ranker: Ranker {
            now,
            interval,
            neighbours: &neighbours,
            upstream: None,
            suspects: &[],
            relay: RELAY,
            by_hops: false,
        },
        us: NodeId([2, 0, 0, 0, 0, 0xff]),
        feasibility: Feasibility::default(),
        is_quiet: false,
        proven_for: Duration::from_secs(3),
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
        // Every frame needs a number of its own, or it is a duplicate; patching it in costs one
        // store.
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

/// An RSU with many OBUs, which send one burst after the other, and are sent to in the same way.
fn forward_in_a_crowd(c: &mut Criterion) {
    const OBUS: u8 = 100;
    const BURST: usize = 8;
    let Pair { mut rsu, now, mut out, .. } = Pair::attached();
    let obus = (0..OBUS).map(|n| (Mac([2, 0, 0, 0, 2, n]), Mac([2, 0, 0, 0, 3, n])));
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (obu, client) in obus {
        rsu.handle_wire(now, &announcement(obu, client), &mut out);
        let inner = frame(client, HOST, 64);
        let data = to_upstream(obu, &inner);
        let (to, ethertype) = (pair::RSU, ETHERTYPE_DEFAULT);
        let flat = Vec::from(&Message { to, from: obu, ethertype, packet: data.into() });
        up.push(Turn::with(&flat));
        down.push(Turn::with(&frame(HOST, client, 64)));
        out.recycle();
    }
    assert_eq!(rsu.attached().len(), usize::from(OBUS) + 1);
    let mut group = c.benchmark_group("forward/100_obus");
    let mut seq = 1u32;
    let mut turns = (0..up.len()).cycle().flat_map(|turn| [turn; BURST]);
    group.bench_function("rsu_wire_to_tap", |b| {
        b.iter(|| {
            let Some(turn) = turns.next().and_then(|turn| up.get_mut(turn)) else { return };
            seq = seq.wrapping_add(1);
            turn.burst.put_head(0, SEQ_END, &seq.to_be_bytes());
            turn.pass(|frame, out| rsu.handle_wire(now, frame, out));
        })
    });
    let mut turns = (0..down.len()).cycle().flat_map(|turn| [turn; BURST]);
    group.bench_function("rsu_tap_to_wire", |b| {
        b.iter(|| {
            let Some(turn) = turns.next().and_then(|turn| down.get_mut(turn)) else { return };
            turn.pass(|frame, out| rsu.handle_tap(now, frame, out));
        })
    });
    group.finish();
}

/// What an OBU with one client says to be attached.
fn announcement(obu: Mac, client: Mac) -> Vec<u8> {
    let set = [Client { vlan: 0, mac: client }];
    let mut groups = Vec::new();
    Clients::encode(&set, &mut groups);
    let announcement = Announcement {
        rsu: pair::RSU.into(),
        origin: obu.into(),
        order: Order::new(1, 1),
        epoch: 1,
        via: pair::RSU.into(),
        part: 0,
        parts: 1,
        within_ds: 15,
        at_risk_10ms: 0,
        mtu: 1500,
        hops: 0,
        digest: client_digest(&set),
        standby: false,
        clients: Clients::parse(&groups).expect("as just written"),
    };
    let packet = announcement.into();
    (&Message { to: pair::RSU, from: obu, ethertype: ETHERTYPE_DEFAULT, packet }).into()
}

/// A frame where the loop has it, handled again and again; each time its new header is written in
/// place.
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
    let packet = to_upstream(from, &inner).into();
    (&Message { to: pair::OBU, from, ethertype: ETHERTYPE_DEFAULT, packet }).into()
}

fn to_upstream(obu: Mac, payload: &[u8]) -> ToUpstream<'_> {
    let (destination, source) = (pair::RSU.into(), obu.into());
    ToUpstream {
        destination,
        source,
        hop_limit: HOP_LIMIT,
        boot: 0,
        seq: Seq(1),
        again: false,
        priority: 0,
        payload,
    }
}

/// Where the sequence number of a data frame ends, Ethernet header included.
const SEQ_END: usize = 14 + 22;

criterion_group!(benches, choose, forward, forward_in_a_crowd);
criterion_main!(benches);
