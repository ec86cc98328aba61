//! What is looked up in a crowd, and how its cost grows with the crowd: twice as many entries must
//! not cost twice as much each.
//!
//! *A cell falls silent*: an RSU gives up all its OBUs, and for each of their clients has to know
//! whether another OBU announces it too. *Floods*: an OBU has to know of each broadcast whether it
//! is the copy of one that another RSU has sent. Beside each stands what looking through all
//! entries would take, on the same entries.
//!
//! Sizes take turns, so that a noisy machine disturbs all alike; the figures are medians.

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::{Duration, Instant};

use node_lib::control::event::Event;
use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message};
use node_lib::{Mac, NodeId, Order, Timestamp};
use rsu_lib::Rsu;

#[path = "support/pair.rs"]
mod pair;
use pair::Pair;

const OBUS: [u16; 4] = [125, 250, 500, 1000];
const CLIENTS: u16 = 8;

/// Floods an OBU remembers: 256 at most.
const FLOODS: [usize; 4] = [32, 64, 128, 256];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let rounds = if has("--bench") && !has("--test") && !has("--list") { 15 } else { 1 };
    let silent = OBUS.map(|obus| (usize::from(obus), move || silent_cell(obus)));
    print("a cell falls silent, ns for each client", "OBUs", rounds, &silent);
    let floods = FLOODS.map(|known| (known, move || heard_floods(known)));
    print("floods, ns for each", "known", rounds, &floods);
}

/// Nanoseconds for each, by the nodes and by looking through everything.
type Cost = [f64; 2];

fn print(what: &str, entries: &str, rounds: usize, sizes: &[(usize, impl Fn() -> Cost)]) {
    let mut costs = vec![[const { Vec::new() }; 2]; sizes.len()];
    for _ in 0..rounds {
        for ((_, measure), costs) in sizes.iter().zip(&mut costs) {
            for (costs, cost) in costs.iter_mut().zip(measure()) {
                costs.push(cost);
            }
        }
    }
    println!("{what}, {rounds} rounds in turns (medians):\n");
    println!("| {entries:>7} | as it is | twice as many | looking through all | twice as many |");
    println!("|--------:|---------:|--------------:|--------------------:|--------------:|");
    let mut before: Option<Cost> = None;
    for ((count, _), costs) in sizes.iter().zip(costs) {
        let cost = costs.map(median);
        let [growth, of_all] =
            before.map_or([f64::NAN; 2], |before| [cost[0] / before[0], cost[1] / before[1]]);
        println!(
            "| {count:>7} | {:>8.0} | {growth:>12.2}x | {:>19.0} | {of_all:>12.2}x |",
            cost[0], cost[1]
        );
        before = Some(cost);
    }
    println!("\nGoal: less than 2x, which is what looking through all costs\n");
}

fn client(n: u32) -> Client {
    let [a, b, c, d] = n.to_be_bytes();
    Client { vlan: 0, mac: Mac([2, 1, a, b, c, d]) }
}

fn obu(n: u16) -> Mac {
    let [a, b] = n.to_be_bytes();
    Mac([2, 0, 0, 2, a, b])
}

fn clients_of(n: u16) -> Vec<Client> {
    (0..CLIENTS).map(|c| client(u32::from(n) * u32::from(CLIENTS) + u32::from(c))).collect()
}

/// All OBUs of an RSU fall silent.
fn silent_cell(obus: u16) -> Cost {
    let mut rsu = Rsu::new(rsu_lib::Config::new(pair::RSU), Timestamp::ZERO);
    let (mut now, mut out) = (Timestamp::ZERO, Replies::new());
    for n in 0..obus {
        rsu.handle_wire(now, &announcement(obu(n), &clients_of(n)), &mut out);
        out.recycle();
    }
    assert_eq!(rsu.attached().len(), usize::from(obus));
    while rsu.poll_event().is_some() {}
    // All were heard for the last time at one moment, so one call gives up all of them.
    let took = loop {
        now = rsu.poll_timeout().expect("it sends heartbeats").max(now);
        let start = Instant::now();
        rsu.handle_timeout(black_box(now), &mut out);
        let elapsed = start.elapsed();
        out.recycle();
        let is_given_up = |event| matches!(event, Event::ObuDetached { .. });
        if std::iter::from_fn(|| rsu.poll_event()).any(is_given_up) {
            break elapsed;
        }
    };
    assert!(rsu.attached().is_empty(), "all are given up");
    [per(took, obus * CLIENTS), per(look_through_sets(obus), obus * CLIENTS)]
}

/// The set of every OBU is searched for each client of those given up, as it was done before there
/// was an index.
fn look_through_sets(obus: u16) -> Duration {
    let mut sets: BTreeMap<NodeId, Vec<Client>> =
        (0..obus).map(|n| (obu(n).into(), clients_of(n))).collect();
    let start = Instant::now();
    while let Some((_, gone)) = sets.pop_first() {
        for client in gone {
            let claims = sets.iter().filter(|(_, set)| set.binary_search(&client).is_ok());
            assert!(black_box(claims.map(|(obu, _)| *obu).min()).is_none());
        }
    }
    start.elapsed()
}

/// An OBU hears four times as many floods as it remembers at a time.
fn heard_floods(known: usize) -> Cost {
    const REMEMBERED_FOR: Duration = Duration::from_millis(900);
    let Pair { mut obu, mut rsu, mut now, mut out } = Pair::attached();
    let every = REMEMBERED_FOR / known as u32;
    let mut took = Duration::ZERO;
    let mut delivered = 0;
    for n in 0..4 * known {
        let mut flood = pair::frame(pair::HOST, Mac::BROADCAST, 64);
        if let Some(last) = flood.last_chunk_mut() {
            *last = (n as u64).to_be_bytes();
        }
        now += every;
        rsu.handle_tap(now, &flood, &mut out);
        let sent = out.take().into_iter().find_map(|reply| match reply {
            ReplyType::WireFlat(frame) => Some(frame),
            _ => None,
        });
        let Some(frame) = sent else { continue };
        let start = Instant::now();
        obu.handle_wire(now, black_box(&frame), &mut out);
        took += start.elapsed();
        delivered += usize::from(!out.is_empty());
        out.recycle();
    }
    assert_eq!(delivered, 4 * known, "each flood is delivered");
    [per(took, 4 * known as u16), per(look_through_floods(known), 4 * known as u16)]
}

/// Every flood remembered is looked at for each that comes.
fn look_through_floods(known: usize) -> Duration {
    let mut heard: VecDeque<(u32, usize, NodeId)> = VecDeque::new();
    let rsu: NodeId = pair::RSU.into();
    let start = Instant::now();
    for n in 0..4 * known as u32 {
        let alike = heard.iter().filter(|(digest, len, _)| (*digest, *len) == (n, 64));
        let mut by = BTreeMap::<NodeId, u32>::new();
        alike.for_each(|(.., rsu)| *by.entry(*rsu).or_default() += 1);
        assert!(black_box(by).is_empty());
        if heard.len() >= known {
            heard.pop_front();
        }
        heard.push_back((n, 64, rsu));
    }
    start.elapsed()
}

fn announcement(obu: Mac, set: &[Client]) -> Vec<u8> {
    let mut groups = Vec::new();
    Clients::encode(set, &mut groups);
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
        digest: client_digest(set),
        standby: false,
        clients: Clients::parse(&groups).expect("as just written"),
    };
    let packet = announcement.into();
    (&Message { to: pair::RSU, from: obu, ethertype: ETHERTYPE_DEFAULT, packet }).into()
}

fn per(took: Duration, count: u16) -> f64 {
    took.as_secs_f64() * 1e9 / f64::from(count)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
