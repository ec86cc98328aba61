//! Telling an RSU about all clients after a change: one frame that is ready and patched, against
//! one message per client.
//!
//! Both are sent and received over UDP on the loopback, one system call each per frame: what either
//! costs a daemon is made of that. The first table comes from rounds that alternate between the
//! two, so that a noisy machine disturbs both alike; criterion's own figures follow. Allocations
//! are counted, here and in an OBU that is asked for its clients.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/pair.rs"]
mod pair;

use std::hint::black_box;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use node_lib::control::node::{Node, ReplyType};
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::ready::{PartOf, Patch, ReadyAnnouncement};
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, Way};
use node_lib::{Mac, NodeId, Order, Seq};

use pair::{HOST, OBU, Pair, frame};

/// Clients, and how many times faster one frame must be; 0: no goal.
const GOALS: [(usize, f64); 4] = [(10, 0.0), (50, 20.0), (100, 0.0), (230, 100.0)];

const UPSTREAM: Mac = Mac([2, 0, 0, 0, 0, 1]);
const US: Mac = Mac([2, 0, 0, 0, 0, 2]);
const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 3]);

fn main() {
    // Criterion measures when cargo says `--bench`, and only tries each once in test mode.
    let args: Vec<String> = std::env::args().collect();
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let measures = has("--bench") && !has("--test") && !has("--list");
    print_table(if measures { 300 } else { 2 });

    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    bench(&mut criterion);
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("announcement");
    for (count, _) in GOALS {
        group.throughput(Throughput::Elements(count as u64));
        let mut bench = Bench::new(count);
        group.bench_with_input(BenchmarkId::new("patch", count), &(), |b, ()| {
            b.iter(|| black_box(bench.patch()).len());
        });
        group.bench_with_input(BenchmarkId::new("one_frame", count), &(), |b, ()| {
            b.iter(|| bench.one_frame());
        });
        group.bench_with_input(BenchmarkId::new("one_message_each", count), &(), |b, ()| {
            b.iter(|| bench.one_message_each());
        });
    }
    group.finish();
}

/// A vehicle with so many clients, and a pair of sockets.
struct Bench {
    clients: Vec<Client>,
    ready: ReadyAnnouncement,
    order: Order,
    /// Clients of one message, encoded, and the message: memory that is used again.
    groups: Vec<u8>,
    flat: Vec<u8>,
    sender: UdpSocket,
    receiver: UdpSocket,
    received: Vec<u8>,
}

impl Bench {
    fn new(count: usize) -> Self {
        let client = |n: usize| Client { vlan: 0, mac: Mac([2, 0, 0, 0, 1, n as u8]) };
        let clients: Vec<_> = (0..count).map(client).collect();
        let mut ready = ReadyAnnouncement::default();
        ready.rebuild(
            PartOf {
                ethertype: ETHERTYPE_DEFAULT,
                origin: US.into(),
                mtu: 1500,
                digest: client_digest(&clients),
                part: 0,
                parts: 1,
            },
            &clients,
        );
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback socket");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback socket");
        let address = receiver.local_addr().expect("a bound socket has an address");
        sender.connect(address).expect("loopback is connected");
        Self {
            clients,
            ready,
            order: Order::new(1, 1),
            groups: Vec::new(),
            flat: Vec::new(),
            sender,
            receiver,
            received: vec![0; 2048],
        }
    }

    fn patch(&mut self) -> &[u8] {
        self.order = self.order.next();
        self.ready.patch(&patch(self.order))
    }

    fn one_frame(&mut self) {
        self.order = self.order.next();
        let Self { ready, order, sender, receiver, received, .. } = self;
        carry(sender, receiver, ready.patch(&patch(*order)), received);
    }

    fn one_message_each(&mut self) {
        let Self { clients, groups, flat, sender, receiver, received, order, .. } = self;
        for client in clients.iter() {
            *order = order.next();
            let one = std::slice::from_ref(client);
            groups.clear();
            Clients::encode(one, groups);
            let announcement = Announcement {
                rsu: RSU,
                origin: US.into(),
                order: *order,
                epoch: order.seq.0,
                via: UPSTREAM.into(),
                digest: 0,
                part: 0,
                parts: 1,
                within_ds: 15,
                at_risk_10ms: 0,
                mtu: 1500,
                hops: 0,
                standby: false,
                clients: Clients::parse(groups).expect("what was just encoded"),
            };
            let packet = announcement.into();
            flat.clear();
            Message { to: UPSTREAM, from: US, ethertype: ETHERTYPE_DEFAULT, packet }.emit(flat);
            carry(sender, receiver, flat, received);
        }
    }
}

fn patch(order: Order) -> Patch {
    Patch {
        to: UPSTREAM,
        from: US,
        rsu: RSU,
        order,
        epoch: order.seq.0,
        via: UPSTREAM.into(),
        within_ds: 15,
        at_risk_10ms: 0,
        standby: false,
    }
}

/// One frame from socket to socket.
fn carry(sender: &UdpSocket, receiver: &UdpSocket, frame: &[u8], received: &mut [u8]) {
    sender.send(frame).expect("loopback takes it");
    let len = receiver.recv(received).expect("loopback brings it");
    assert_eq!(len, frame.len(), "whole");
}

/// Times both in turns and compares their medians.
fn print_table(rounds: usize) {
    println!("All clients announced, UDP on the loopback, {rounds} rounds in turns (medians):\n");
    println!("| clients | one frame | one message each | ratio | goal        | allocations |");
    println!("|--------:|----------:|-----------------:|------:|-------------|------------:|");
    for (count, goal) in GOALS {
        let mut bench = Bench::new(count);
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..rounds {
            let [frame, each] = &mut times;
            // As many calls of the one as there are of the other.
            frame.push(time(count as u32, || bench.one_frame()));
            each.push(time(1, || bench.one_message_each()));
        }
        let [frame, each] = times.map(median);
        let (_, of_frame) = counting::count(|| (0..1000).for_each(|_| bench.one_frame()));
        let of_obu = of_an_obu(&bench.clients);
        let ratio = each / frame;
        let verdict = match goal {
            0.0 => "none".to_owned(),
            goal if ratio >= goal => format!("{goal}x met"),
            goal => format!("{goal}x MISSED"),
        };
        println!(
            "| {count:>7} | {frame:>6.2} µs | {each:>13.2} µs | {ratio:>4.0}x | {verdict:<11} | \
             {:>11} |",
            of_frame.allocations + of_obu,
        );
        assert_eq!(of_frame.allocations, 0, "patching allocates nothing");
        assert_eq!(of_obu, 0, "an OBU announces without allocations after warm-up");
    }
    println!();
}

/// What an OBU with these clients asks of the allocator when it announces them ten times, after
/// fifty times of warming up. By then each of the buffers it takes in turn has grown to the largest
/// frame.
fn of_an_obu(clients: &[Client]) -> u64 {
    let mut pair = Pair::attached();
    for client in clients {
        pair.obu.handle_tap(pair.now, &frame(client.mac, HOST, 64), &mut pair.out);
        pair.out.recycle();
    }
    let packet = AnnouncementAck {
        destination: OBU.into(),
        rsu: pair::RSU.into(),
        epoch: 0,
        seq: Seq(u32::MAX / 2),
        digest: 0,
        part: 0,
        parts: 1,
        status: AckStatus::SendAll,
        way: Way::END,
    };
    let ethertype = ETHERTYPE_DEFAULT;
    let question: Vec<u8> =
        (&Message { to: OBU, from: pair::RSU, ethertype, packet: packet.into() }).into();
    let mut allocations = 0;
    for round in 0..60 {
        // Once until the new clients are gathered; then so little that nothing else is due
        // meanwhile.
        pair.now += Duration::from_micros(if round == 0 { 60_000 } else { 100 });
        let Pair { obu, rsu, now, out } = &mut pair;
        let (_, counted) = counting::count(|| obu.handle_wire(*now, &question, out));
        // The announcement reaches the RSU, and what it answers the OBU.
        let announced = sent(out.as_slice());
        let is_whole = |frame: &Vec<u8>| frame.len() >= 50 + 6 * clients.len();
        assert!(round == 0 || announced.iter().any(is_whole), "it was asked for its clients");
        out.recycle();
        for frame in announced {
            rsu.handle_wire(*now, &frame, out);
        }
        let answers = sent(out.as_slice());
        out.recycle();
        for frame in answers {
            obu.handle_wire(*now, &frame, out);
        }
        out.recycle();
        allocations += if round < 50 { 0 } else { counted.allocations };
    }
    allocations
}

fn sent(replies: &[ReplyType]) -> Vec<Vec<u8>> {
    let wire = |reply: &ReplyType| match reply {
        ReplyType::WireFlat(flat) => Some(flat.clone()),
        _ => None,
    };
    replies.iter().filter_map(wire).collect()
}

/// Microseconds per call.
fn time(calls: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        work();
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
