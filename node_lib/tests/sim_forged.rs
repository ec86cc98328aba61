//! Whatever comes in, a node neither panics nor grows without bound, and what it answers can be read.
//!
//! Forged frames are real ones, caught in a simulated town, with other senders and with bytes changed.
//! `V2X_SIM_RUNS=1000000` feeds that many to each role.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod sim_common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::messages::Message;
use node_lib::sim::topology::Graph;
use node_lib::sim::{Dice, Fault, Kind, Link, NodeIndex};
use node_lib::{Boot, Mac, Timestamp};
use proptest::prelude::*;
use sim_common::{Town, at, ms, obu, radio, rsu, runs};

/// Counts the bytes each thread holds.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // Not there any more while the thread ends.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: every call is passed on unchanged to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same there.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from `System.alloc` with this layout, as all memory does here.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_obu_stays_bounded_under_forged_frames() {
    flood("OBU", obu(2)(Boot(1), Timestamp::ZERO, 1), radio(2));
}

#[test]
fn an_rsu_stays_bounded_under_forged_frames() {
    flood("RSU", rsu(0)(Boot(1), Timestamp::ZERO, 1), radio(0));
}

fn flood(role: &str, node: Box<dyn Node>, mac: Mac) {
    let mut victim = Victim::new(node, mac);
    let real = real_frames();
    let kinds: Vec<&Vec<Vec<u8>>> = real.values().collect();
    let mut dice = Dice::new(7, 7);
    let frames = runs(40_000);
    let start = LIVE.get();
    let mut half = 0;
    for n in 0..2 * frames {
        if n == frames {
            half = LIVE.get();
        }
        victim.pass(dice.up_to(ms(2)));
        let kind = *dice.pick(&kinds).unwrap();
        let mut frame = dice.pick(kind).unwrap().clone();
        forge(&mut frame, mac, &mut dice);
        if dice.chance(0.9) {
            victim.hear(&frame)
        } else {
            victim.take(&frame[36.min(frame.len())..])
        }
    }
    let end = LIVE.get();
    println!(
        "{role}: {} kB after {frames} forged frames, {} kB after twice as many; {} replies; {:?}",
        (half - start) / 1000,
        (end - start) / 1000,
        victim.replies,
        victim.node.counters().iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>(),
    );
    assert!(end - start < 32 << 20, "{role} holds {} bytes", end - start);
    assert!(end - half < 256 << 10, "{role} grew by {} bytes in the second half", end - half);
}

/// Another sender, and in most frames some other bytes; mostly ids, so that tables fill.
fn forge(frame: &mut [u8], to: Mac, dice: &mut Dice) {
    if dice.chance(0.9) {
        frame[..6].copy_from_slice(&to.0);
    }
    if dice.chance(0.8) {
        let sender = dice.below(5000).to_be_bytes();
        frame[6..12].copy_from_slice(&[2, 0, 9, 9, sender[6], sender[7]]);
    }
    for _ in 0..dice.index(4) {
        let place = 14 + dice.index(frame.len() - 14);
        let bytes = dice.next_u64().to_be_bytes();
        let len = [1, 2, 6][dice.index(3)];
        for (byte, random) in frame[place..].iter_mut().zip(&bytes[..len]) {
            *byte = *random;
        }
    }
}

/// Frames of every kind, from a town in which something happens.
fn real_frames() -> BTreeMap<Kind, Vec<Vec<u8>>> {
    let mut town = Town::new(1, &Graph::ring(4), &[0], Link::lossy(0.1));
    town.world.keep_air();
    for node in [1, 2, 3].map(NodeIndex) {
        town.up(node, at(500), ms(20), 100);
        town.down(node, at(500), ms(20), 100);
    }
    town.world.at(at(1500), Fault::Crash(NodeIndex(1)));
    town.world.at(at(2000), Fault::Shutdown(NodeIndex(3)));
    town.world.run_until(at(3000)).unwrap();
    let mut frames = BTreeMap::<Kind, Vec<Vec<u8>>>::new();
    for sent in town.world.air() {
        frames.entry(Kind::of(&sent.frame)).or_default().push(sent.frame.clone());
    }
    assert_eq!(frames.len(), 9, "all kinds: {:?}", frames.keys().collect::<Vec<_>>());
    frames
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn no_bytes_make_a_node_panic(
        is_rsu: bool,
        inputs in prop::collection::vec(
            (any::<bool>(), 0_u64..200, prop::collection::vec(any::<u8>(), 0..120)), 0..60),
    ) {
        let (node, mac) = if is_rsu {
            (rsu(0)(Boot(1), Timestamp::ZERO, 1), radio(0))
        } else {
            (obu(2)(Boot(1), Timestamp::ZERO, 1), radio(2))
        };
        let mut victim = Victim::new(node, mac);
        for (is_wire, pause, mut frame) in inputs {
            victim.pass(ms(pause));
            if is_wire {
                victim.hear(&frame);
                // The same once more with a header that gets it past the first check.
                if frame.len() > 18 {
                    let len = (frame.len() - 14) as u16;
                    frame[..6].copy_from_slice(&mac.0);
                    frame[6] &= 0xfe;
                    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
                    frame[14] = 0x11 + frame[14] % 9;
                    frame[15] = 0;
                    frame[16..18].copy_from_slice(&len.to_be_bytes());
                    victim.hear(&frame);
                }
            } else {
                victim.take(&frame);
            }
        }
        victim.pass(ms(5000));
    }
}

/// A node under fire, and its clock.
struct Victim {
    node: Box<dyn Node>,
    mac: Mac,
    now: Timestamp,
    out: Replies,
    replies: u64,
}

impl Victim {
    fn new(node: Box<dyn Node>, mac: Mac) -> Self {
        Self { node, mac, now: Timestamp::ZERO, out: Replies::new(), replies: 0 }
    }

    /// Lets time pass, waking the node when it wants.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        let mut wakes = 0;
        while let Some(wake) = self.node.poll_timeout().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            self.node.handle_timeout(self.now, &mut self.out);
            self.check();
            wakes += 1;
            assert!(wakes < 100_000, "wants to be woken without end");
        }
        self.now = until;
    }

    fn hear(&mut self, frame: &[u8]) {
        self.node.handle_wire(self.now, frame, &mut self.out);
        self.check();
    }

    fn take(&mut self, frame: &[u8]) {
        self.node.handle_tap(self.now, frame, &mut self.out);
        self.check();
    }

    /// Everything sent can be read, bears our address, and is not without end.
    fn check(&mut self) {
        self.replies += self.out.as_slice().len() as u64;
        assert!(self.out.as_slice().len() < 2000, "{} replies at once", self.out.as_slice().len());
        for reply in self.out.as_slice() {
            match reply {
                ReplyType::WireFlat(frame) => {
                    let message = Message::try_from(&frame[..]).unwrap();
                    assert_eq!(message.from, self.mac);
                    assert!(frame.len() <= 1514);
                }
                ReplyType::TapFlat(frame) => assert!(frame.len() >= 14),
                other => panic!("{other:?}"),
            }
        }
        self.out.recycle();
        while self.node.poll_event().is_some() {}
    }
}
