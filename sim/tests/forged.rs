//! Whatever comes in, a node neither panics nor grows without bound, and what it answers can be
//! read.
//!
//! Forged frames are real ones, caught in simulated towns, with other senders and with bytes
//! changed; data comes in bundles as well. In between the signal jumps, the radio goes down and up,
//! gets another address and another MTU, and somebody answers what the node asks, so that it has a
//! way and routes for others. At last it says goodbye, and hears as much again.
//! `V2X_SIM_RUNS=1000000` feeds that many to each role.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "sim/common.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use common::{Town, at, ms, obu, radio, rsu, runs, scribble};
use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::messages::bundle::{self, Messages};
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::probe::{AnsweredRoute, ProbeAnswer};
use node_lib::messages::{Cost, ETHERTYPE_DEFAULT, Message, PacketType, Rhythm, Way};
use node_lib::{Boot, Mac, NodeId, Order, Start, Timestamp};
use proptest::prelude::*;
use sim::topology::Graph;
use sim::{Dice, Fault, Link, NodeIndex};

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

/// The first start of the `n`-th node.
fn first(n: usize) -> Start {
    Start { seed: 1, ..Start::new(radio(n)) }
}

#[test]
fn an_obu_stays_bounded_under_forged_frames() {
    let node = obu(2)(&first(2), Timestamp::ZERO);
    let victim = flood("OBU", Victim::of(node, radio(2), Some(HonestRsu::new())));
    let counters = victim.node.counters();
    // It was put to the test: it had a way, and carried and relayed for others.
    let shares = [
        ("changes of upstream", counters.upstream_changes),
        ("frames of its clients sent up", counters.tap_to_wire),
        ("frames handed to the TAP", counters.wire_to_tap),
        ("frames relayed", counters.relayed),
        ("frames in bundles", victim.bundled),
        ("words of others passed on", victim.replies_said as u64),
        ("malformed frames", counters.drop_malformed),
    ];
    for (what, count) in shares {
        assert!(count >= 10, "{what}: {count}");
    }
}

#[test]
fn an_rsu_stays_bounded_under_forged_frames() {
    let victim = flood("RSU", Victim::new(rsu(0)(&first(0), Timestamp::ZERO), radio(0)));
    let counters = victim.node.counters();
    let shares = [
        ("acknowledgements", counters.ack_tx),
        ("answers", counters.answer_tx),
        ("frames handed to the TAP", counters.wire_to_tap),
        ("frames sent down", counters.tap_to_wire),
        ("frames in bundles", victim.bundled),
        ("malformed frames", counters.drop_malformed),
    ];
    for (what, count) in shares {
        assert!(count >= 10, "{what}: {count}");
    }
}

fn flood(role: &str, mut victim: Victim) -> Victim {
    let real = real_frames();
    let kinds: Vec<&Vec<Vec<u8>>> = real.values().collect();
    let mut dice = Dice::new(7, 7);
    // Until the tables are full: with 40,000 frames those of an RSU were still filling.
    let frames = runs(320_000);
    let start = LIVE.get();
    let mut half = 0;
    // Before anybody lies, it may find its RSU.
    for _ in 0..1000 {
        victim.pass(ms(1));
        victim.be_answered(1.0, &mut dice);
    }
    for n in 0..2 * frames {
        if n == frames {
            half = LIVE.get();
        }
        victim.attack(&kinds, &mut dice);
    }
    let end = LIVE.get();
    println!(
        "{role}: {} kB after {frames} forged frames, {} kB after twice as many; {} replies, {} of \
         {} frames from bundles; {:?}",
        (half - start) / 1000,
        (end - start) / 1000,
        victim.replies,
        victim.bundled,
        victim.heard,
        victim.node.counters().iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>(),
    );
    assert!(end - start < 32 << 20, "{role} holds {} bytes", end - start);
    assert!(end - half < 256 << 10, "{role} grew by {} bytes in the second half", end - half);
    say_goodbye(&mut victim, &kinds, &mut dice);
    victim
}

/// While it leaves, a node hears all that as well. It says goodbye as often as ever, and an RSU
/// sends no heartbeat afterwards.
fn say_goodbye(victim: &mut Victim, kinds: &[&Vec<Vec<u8>>], dice: &mut Dice) {
    victim.link(LinkEvent::Up);
    victim.goodbyes = 0;
    let heartbeats = victim.node.counters().heartbeat_tx;
    victim.node.handle_shutdown(victim.now, &mut victim.out);
    victim.check();
    let end = victim.now + victim.node.linger();
    while victim.now < end {
        victim.attack(kinds, dice);
    }
    assert_eq!(victim.goodbyes, 3);
    if victim.rsu.is_none() {
        assert_eq!(
            victim.node.counters().heartbeat_tx,
            heartbeats,
            "a heartbeat after the goodbye"
        );
    }
}

/// Another sender, and in most frames some other bytes; mostly ids, so that tables fill.
fn forge(frame: &mut [u8], to: Mac, dice: &mut Dice) {
    if dice.chance(0.9) {
        frame[..6].copy_from_slice(&to.0);
    }
    scribble(frame, 5000, dice, |_, random, _| random);
}

/// The kinds of message there are, by the code in the first byte: see `docs/wire-format.md`. 10 is
/// the bundle, which the tests make.
const KINDS: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// Frames of every kind, from two towns in which something happens.
fn real_frames() -> BTreeMap<u8, Vec<Vec<u8>>> {
    let mut frames = BTreeMap::<u8, Vec<Vec<u8>>>::new();
    for town in [town_with_faults(), crowd_behind_a_relay()] {
        for sent in town.world.air() {
            frames.entry(sent.frame[14] & 0x0f).or_default().push(sent.frame.clone());
        }
    }
    // What a radio's queue makes of data that waits for the same neighbour.
    let data: Vec<Vec<u8>> = [8, 9].iter().flat_map(|kind| frames[kind].clone()).collect();
    for waiting in data.windows(5).step_by(5) {
        let alike = waiting.iter().filter(|frame| frame[..14] == waiting[0][..14]);
        let mut one = Vec::new();
        bundle::emit(alike.map(Vec::as_slice), &mut one);
        frames.entry(bundle::CODE).or_default().push(one);
    }
    assert_eq!(frames.keys().copied().collect::<Vec<_>>(), KINDS);
    frames
}

fn town_with_faults() -> Town {
    let mut town = Town::new(1, &Graph::ring(4), &[0], Link::lossy(0.1));
    town.world.keep_air();
    for node in [1, 2, 3].map(NodeIndex) {
        town.up(node, at(500), ms(20), 100);
        town.down(node, at(500), ms(20), 100);
    }
    town.world.at(at(1500), Fault::Crash(NodeIndex(1)));
    town.world.at(at(2000), Fault::Shutdown(NodeIndex(3)));
    town.world.run_until(at(3000)).unwrap();
    town
}

/// Forty idle OBUs behind one.
fn crowd_behind_a_relay() -> Town {
    let links = (2..42).map(|n| (1, n)).chain([(0, 1)]);
    let mut town = Town::new(1, &Graph::new(42, links), &[0], Link::CLEAN);
    town.world.run_until(at(7000)).unwrap();
    town.world.keep_air();
    town.world.run_until(at(12_000)).unwrap();
    town
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn no_bytes_make_a_node_panic(
        is_rsu: bool,
        inputs in prop::collection::vec(
            (any::<bool>(), 0_u64..200, any::<i8>(), prop::collection::vec(any::<u8>(), 0..120)),
            0..60,
        ),
        leaves_after in 0_usize..60,
    ) {
        let (node, mac) = if is_rsu {
            (rsu(0)(&first(0), Timestamp::ZERO), radio(0))
        } else {
            (obu(2)(&first(2), Timestamp::ZERO), radio(2))
        };
        let mut victim = Victim::new(node, mac);
        for (n, (is_wire, pause, dbm, mut frame)) in inputs.into_iter().enumerate() {
            victim.pass(ms(pause));
            if n == leaves_after {
                victim.node.handle_shutdown(victim.now, &mut victim.out);
                victim.check();
            }
            if is_wire {
                victim.node.handle_signal(victim.now, Mac([2; 6]), dbm);
                victim.receive(&frame);
                // The same once more with a header that gets it past the first check.
                if frame.len() > 18 {
                    let len = (frame.len() - 14) as u16;
                    frame[..6].copy_from_slice(&mac.0);
                    frame[6] &= 0xfe;
                    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
                    frame[14] = 0x21 + frame[14] % 12;
                    frame[15] = 0;
                    frame[16..18].copy_from_slice(&len.to_be_bytes());
                    victim.receive(&frame);
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
    /// Around an OBU there is one that does not lie.
    rsu: Option<HonestRsu>,
    mac: Mac,
    mtu: usize,
    now: Timestamp,
    out: Replies,
    replies: u64,
    /// Frames it was given, and how many of them out of bundles.
    heard: u64,
    bundled: u64,
    /// Replies of others it heard, and said again.
    replies_heard: usize,
    replies_said: usize,
    /// Goodbyes that it sent.
    goodbyes: u64,
    /// What it wants to know, and from whom.
    questions: Vec<(Mac, Vec<u8>)>,
}

impl Victim {
    fn new(node: Box<dyn Node>, mac: Mac) -> Self {
        Self::of(node, mac, None)
    }

    fn of(node: Box<dyn Node>, mac: Mac, rsu: Option<HonestRsu>) -> Self {
        Self {
            node,
            rsu,
            mac,
            mtu: 1500,
            now: Timestamp::ZERO,
            out: Replies::new(),
            replies: 0,
            heard: 0,
            bundled: 0,
            replies_heard: 0,
            replies_said: 0,
            goodbyes: 0,
            questions: Vec::new(),
        }
    }

    /// One forged frame, and whatever else may happen meanwhile.
    fn attack(&mut self, kinds: &[&Vec<Vec<u8>>], dice: &mut Dice) {
        self.pass(dice.up_to(ms(2)));
        self.be_answered(0.9, dice);
        if dice.chance(0.001) {
            self.link(any_link_event(dice));
            self.link(LinkEvent::Up);
        }
        let kind = *dice.pick(kinds).unwrap();
        let mut frame = dice.pick(kind).unwrap().clone();
        forge(&mut frame, self.mac, dice);
        if dice.chance(0.1) {
            // Of any length, too long ones among them.
            let mut inner = frame.split_off(36.min(frame.len()));
            inner.resize(inner.len().max(dice.index(1600)), 0);
            return self.take(&inner);
        }
        if dice.chance(0.5) {
            let whose =
                if dice.chance(0.9) { Mac(*frame[6..].first_chunk().unwrap()) } else { self.mac };
            self.node.handle_signal(self.now, whose, dice.next_u64() as i8);
        }
        self.receive(&frame);
    }

    /// Does with a frame what the packet loop does: takes a bundle apart.
    fn receive(&mut self, frame: &[u8]) {
        if let Some(rsu) = &mut self.rsu {
            rsu.hear(frame);
        }
        let Some(mut messages) =
            bundle::is_bundle(frame).then(|| Messages::open(frame).ok()).flatten()
        else {
            return self.hear(frame);
        };
        while let Some(Ok(message)) = messages.next_in(frame) {
            self.bundled += 1;
            self.hear(&[&frame[..14], &frame[message]].concat());
        }
    }

    /// Whoever was asked answers, and whoever was told acknowledges, with this probability.
    fn be_answered(&mut self, probability: f64, dice: &mut Dice) {
        for (whom, question) in std::mem::take(&mut self.questions) {
            if dice.chance(probability) {
                self.answer(whom, &question);
            }
        }
    }

    fn answer(&mut self, whom: Mac, question: &[u8]) {
        let Some(rsu) = &self.rsu else { return };
        let PacketType::Control(control) = Message::try_from(question).unwrap().packet else {
            return;
        };
        let packet: PacketType<'_> = match control {
            Control::Probe(probe) => ProbeAnswer {
                sender: whom.into(),
                sender_boot: rsu.0.sender_boot,
                asker: self.node.id(),
                nonce: probe.nonce,
                mtu: 1500,
                rsu: rsu.0.rsu,
                route: Some(AnsweredRoute {
                    order: rsu.0.order,
                    rhythm: rsu.0.rhythm,
                    via: if whom == RSU { NodeId::NONE } else { rsu.0.rsu },
                    cost: if whom == RSU { Cost::ZERO } else { Cost::ONE },
                    hop_limit: 15,
                    hops: u8::from(whom != RSU),
                    stride: 0,
                }),
            }
            .into(),
            Control::Announcement(announcement) => AnnouncementAck {
                destination: announcement.origin,
                rsu: announcement.rsu,
                epoch: announcement.epoch,
                seq: announcement.order.seq,
                digest: announcement.digest,
                part: announcement.part,
                parts: announcement.parts,
                status: AckStatus::Accepted,
                way: Way::END,
            }
            .into(),
            Control::HeartbeatReply(reply) if reply.acknowledge => AnnouncementAck {
                destination: reply.origin,
                rsu: reply.rsu,
                epoch: reply.epoch,
                seq: reply.order.seq,
                digest: reply.digest,
                part: 0,
                parts: 1,
                status: AckStatus::Known,
                way: Way::END,
            }
            .into(),
            _ => return,
        };
        let flat = flat(self.mac, whom, packet);
        self.hear(&flat);
    }

    /// Lets time pass, waking the node when it wants.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        let beat = self.rsu.as_mut().and_then(|rsu| rsu.beat(self.now));
        if let Some(beat) = beat {
            self.hear(&beat);
        }
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
        self.heard += 1;
        self.replies_heard += replies_in(frame, self.node.id());
        self.node.handle_wire(self.now, frame, &mut self.out);
        self.check();
    }

    fn take(&mut self, frame: &[u8]) {
        self.node.handle_tap(self.now, frame, &mut self.out);
        self.check();
    }

    fn link(&mut self, event: LinkEvent) {
        self.node.handle_link(self.now, event, &mut self.out);
        match event {
            LinkEvent::AddressChanged(mac) => self.mac = mac,
            LinkEvent::MtuChanged(mtu) => self.mtu = mtu,
            LinkEvent::Up
            | LinkEvent::Down
            | LinkEvent::LanUp
            | LinkEvent::LanDown
            | LinkEvent::ChannelBusy(_) => {}
        }
        self.check();
    }

    /// Everything sent can be read, bears our address, fits the radio, and is not without end; and
    /// what others reply is not said more often than it was heard.
    fn check(&mut self) {
        self.replies += self.out.as_slice().len() as u64;
        assert!(self.out.as_slice().len() < 2000, "{} replies at once", self.out.as_slice().len());
        for reply in self.out.as_slice() {
            match reply {
                ReplyType::WireFlat(frame) => {
                    let message = Message::try_from(&frame[..]).unwrap();
                    assert_eq!(message.from, self.mac);
                    let is_data = matches!(message.packet, PacketType::Data(_));
                    assert!(frame.len() <= 14 + if is_data { self.mtu } else { 1500 });
                    self.replies_said += replies_in(frame, self.node.id());
                    assert!(self.replies_said <= self.replies_heard, "{message:?}");
                    let PacketType::Control(control) = &message.packet else { continue };
                    match control {
                        Control::Probe(probe) if probe.asked != NodeId::NONE => {
                            self.questions.push((Mac(probe.asked.0), frame.clone()));
                        }
                        Control::Probe(_)
                        | Control::Announcement(_)
                        | Control::HeartbeatReply(_) => {
                            self.questions.push((message.to, frame.clone()));
                        }
                        Control::Withdrawal(said) => self.goodbyes += u64::from(said.goodbye),
                        _ => {}
                    }
                }
                ReplyType::TapFlat(frame) => assert!(frame.len() >= 14),
                other => panic!("{other:?}"),
            }
        }
        self.out.recycle();
        while self.node.poll_event().is_some() {}
    }
}

/// [`radio`] of node 0.
const RSU: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// The RSU of the towns, in the victim's earshot.
struct HonestRsu(Heartbeat);

impl HonestRsu {
    fn new() -> Self {
        Self(Heartbeat {
            rsu: RSU.into(),
            order: Order::new(1, 0),
            rhythm: Rhythm::each(100),
            obus: 40,
            sender: RSU.into(),
            sender_boot: Boot(1),
            hello: 0,
            via: NodeId::NONE,
            cost: Cost::ZERO,
            mtu: 1500,
            hop_limit: 15,
            hops: 0,
            children: 0,
            stride: 0,
            position: None,
        })
    }

    /// The next heartbeat, if it is time.
    fn beat(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        let Self(said) = self;
        let due = Timestamp::ZERO + ms(100) * said.hello;
        (now >= due).then(|| {
            said.hello += 1;
            said.order = said.order.next();
            flat(Mac::BROADCAST, RSU, (*said).into())
        })
    }

    /// It goes above what others say in its name, as RSUs do.
    fn hear(&mut self, frame: &[u8]) {
        let Self(said) = self;
        let Ok(Message { packet: PacketType::Control(control), .. }) = Message::try_from(frame)
        else {
            return;
        };
        if let Control::Heartbeat(heartbeat) = control
            && heartbeat.rsu == said.rsu
            && heartbeat.order > said.order
        {
            said.order = Order::new(heartbeat.order.boot.0.saturating_add(1), 0);
            said.sender_boot = said.order.boot;
        }
    }
}

fn flat(to: Mac, from: Mac, packet: PacketType<'_>) -> Vec<u8> {
    (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet }).into()
}

/// Replies of others than `us` in a frame.
fn replies_in(frame: &[u8], us: NodeId) -> usize {
    let Ok(Message { packet: PacketType::Control(control), .. }) = Message::try_from(frame) else {
        return 0;
    };
    match control {
        Control::HeartbeatReply(reply) => usize::from(reply.origin != us),
        _ => 0,
    }
}

fn any_link_event(dice: &mut Dice) -> LinkEvent {
    match dice.index(4) {
        0 => LinkEvent::Down,
        3 => LinkEvent::ChannelBusy(dice.index(101) as u8),
        1 => LinkEvent::AddressChanged(Mac([2, 0, 0, 7, 0, dice.index(4) as u8])),
        _ => LinkEvent::MtuChanged(600 + dice.index(901)),
    }
}
