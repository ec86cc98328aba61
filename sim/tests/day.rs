//! A day in the life of a road-side unit, a relay and a vehicle: what they keep in memory does not
//! grow.
//!
//! `V2X_DAY_HOURS` (quick: 3): what is held at the end is compared with what is held after two.
//! One test at a time, because the allocator counts for all threads.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use node_lib::control::node::{Interface, LinkEvent, Node, Replies};
use node_lib::{Boot, Mac, Start, Timestamp};

#[global_allocator]
static ALLOCATOR: Held = Held;

static HELD: AtomicIsize = AtomicIsize::new(0);

/// Who has it is the test that runs.
static ALONE: Mutex<()> = Mutex::new(());

/// Counts what is allocated and not yet given back.
struct Held;

// SAFETY: every call goes to `System` unchanged, which keeps the contract; counting does not
// allocate. `realloc` and `alloc_zeroed` are made of these two.
unsafe impl GlobalAlloc for Held {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promises are those of `System::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: `address` came from `System` through this allocator, with this layout.
        unsafe { System.dealloc(address, layout) }
    }
}

const NODES: u8 = 3;

fn radio(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, n + 1])
}

/// Three nodes in a row that hear who is next to them, at once.
struct Row {
    nodes: Vec<Box<dyn Node>>,
    now: Timestamp,
    /// Nothing passes between the last two.
    is_cut: bool,
    arrived: u64,
}

impl Row {
    fn new() -> Self {
        let start = |n| Start { boot: Boot(7), seed: u64::from(n), ..Start::new(radio(n)) };
        let obu = |n| -> Box<dyn Node> {
            let config = obu_lib::Settings::default().config(&start(n));
            Box::new(obu_lib::Obu::new(config, Timestamp::ZERO))
        };
        let rsu = rsu_lib::Settings::default().config(&start(0));
        let rsu: Box<dyn Node> = Box::new(rsu_lib::Rsu::new(rsu, Timestamp::ZERO));
        let nodes = vec![rsu, obu(1), obu(2)];
        Self { nodes, now: Timestamp::ZERO, is_cut: false, arrived: 0 }
    }

    /// What a node says reaches its neighbours, and what they say upon that.
    fn carry(&mut self, from: u8, out: &mut Replies) {
        let mut under_way = vec![(from, out.take())];
        while let Some((from, replies)) = under_way.pop() {
            for reply in replies {
                if reply.interface() == Interface::Tap {
                    self.arrived += 1;
                    continue;
                }
                let frame = reply.into_frame();
                for to in 0..NODES {
                    let is_near = from.abs_diff(to) == 1 && !(self.is_cut && from.max(to) == 2);
                    let is_for_it = frame[0] & 1 == 1 || frame[..6] == radio(to).0;
                    if is_near && is_for_it {
                        let mut said = Replies::new();
                        self.nodes[usize::from(to)].handle_wire(self.now, &frame, &mut said);
                        said.flatten();
                        under_way.push((to, said.take()));
                    }
                }
            }
        }
    }

    fn with(&mut self, node: u8, act: impl FnOnce(&mut dyn Node, Timestamp, &mut Replies)) {
        let mut out = Replies::new();
        act(&mut *self.nodes[usize::from(node)], self.now, &mut out);
        out.flatten();
        self.carry(node, &mut out);
    }

    fn pass(&mut self, until: Timestamp) {
        loop {
            let due =
                (0..NODES).filter_map(|n| Some((self.nodes[usize::from(n)].poll_timeout()?, n)));
            let Some((at, node)) = due.min().filter(|(at, _)| *at <= until) else { break };
            self.now = self.now.max(at);
            self.with(node, |node, now, out| node.handle_timeout(now, out));
        }
        self.now = until;
        for node in &mut self.nodes {
            while node.poll_event().is_some() {}
        }
    }

    fn client_says(&mut self, node: u8, from: Mac, to: Mac) {
        let mut frame = [&to.0[..], &from.0, &[0x08, 0x00]].concat();
        frame.resize(100, 0);
        self.with(node, |node, now, out| node.handle_tap(now, &frame, out));
    }

    /// An hour in which each second somebody speaks, each minute somebody else, and each ten
    /// minutes something breaks.
    fn hour(&mut self, hour: u32) {
        let server = Mac([2, 0, 0, 1, 0, 0]);
        for second in 0..3600 {
            let minute = (hour * 60 + second / 60) as u16;
            let [high, low] = minute.to_be_bytes();
            let rider = Mac([2, 0, 0, 2, high, low]);
            self.client_says(2, rider, server);
            self.client_says(0, server, rider);
            match second % 600 {
                300 => self.is_cut = true,
                305 => self.is_cut = false,
                400 => self.with(1, |node, now, out| node.handle_link(now, LinkEvent::Down, out)),
                402 => self.with(1, |node, now, out| node.handle_link(now, LinkEvent::Up, out)),
                _ => {}
            }
            let next = self.now + Duration::from_secs(1);
            self.pass(next);
        }
    }
}

/// A table with as many clients as it may have, and ever others: each half a minute as many as it
/// has at most, of which the first half stays and the rest is pushed out.
#[test]
fn what_nodes_hold_is_the_same_however_many_clients_come_and_go() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const ROUNDS: u32 = 40;
    for (node, clients_max) in [(0, 8192), (2, 512)] {
        let mut row = Row::new();
        let mut held = Vec::new();
        for round in 0..ROUNDS {
            for n in 0..clients_max {
                let [_, a, b, c] = (round * clients_max + n).to_be_bytes();
                row.client_says(node, Mac([2, 0, 1, a, b, c]), Mac([2, 0, 0, 1, 0, 0]));
            }
            let next = row.now + Duration::from_secs(30);
            row.pass(next);
            held.push(HELD.load(Relaxed));
        }
        println!("node {node}: held after each round, in bytes: {held:?}");
        let most = held[1..].iter().max().unwrap();
        assert!(most - held[1] <= 64 << 10, "node {node}: {held:?}");
    }
}

#[test]
fn what_nodes_hold_does_not_grow_in_a_day() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hours = std::env::var("V2X_DAY_HOURS").map_or(3, |text| text.parse().unwrap());
    let mut row = Row::new();
    let mut held = Vec::new();
    for hour in 0..hours {
        row.hour(hour);
        held.push(HELD.load(Relaxed));
    }
    println!("held after each hour, in bytes: {held:?}; {} frames arrived", row.arrived);
    // Of two a second, less those of the outages.
    assert!(row.arrived > u64::from(hours) * 6500, "{}", row.arrived);
    let most = held[1..].iter().max().unwrap();
    assert!(most - held[1] <= 64 << 10, "{held:?}");
}
