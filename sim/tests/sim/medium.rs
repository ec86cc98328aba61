//! A medium of one's own: what it says happens, and it hears of all it must know.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use node_lib::control::node::Replies;
use node_lib::{Mac, Start, Timestamp};
use sim::{
    Air, Counting, Fault, Flight, FrameKind, Location, Medium, NodeIndex, Role, Step, World,
};

use crate::cell::{Cell, PROBE, at, mac, ms, send_probe};
use crate::puppet::{self, Puppet};

const A: NodeIndex = NodeIndex(0);
const B: NodeIndex = NodeIndex(1);

#[test]
fn who_is_off_or_cut_off_hears_nothing_and_the_frame_counts_as_lost_there() {
    let mut cell = Cell::over(1, Lanes::new(ms(1)), &[0.0, 10.0, 20.0]);
    let flow = cell.unicast(0, 1, at(0), ms(10), 30);
    let other = cell.broadcast(2, at(5), ms(10), 30);
    cell.world.at(at(95), Fault::CutOneWay(A, B));
    cell.world.at(at(195), Fault::HealOneWay(A, B));
    cell.world.at(at(245), Fault::RadioDown(B));
    cell.world.run_until(at(1000)).unwrap();
    let (log, b) = (cell.log(flow), cell.clients[1]);
    for number in 0..30 {
        let is_there = number < 10 || (20..25).contains(&number);
        assert_eq!(log.received_at(b, number).is_some(), is_there, "{number}");
        assert_eq!(log.lost_on_air(number).is_some(), !is_there, "{number}");
    }
    assert_eq!(log.received_at(b, 3), Some(at(31)));
    assert_eq!(log.lost_on_air(12).map(|loss| (loss.from, loss.to)), Some((A, Some(B))));
    // What another sends to all is not kept from B by the cut, and from A by nothing.
    assert_eq!(cell.log(other).received(b), 24);
    assert_eq!(cell.log(other).received(cell.clients[0]), 30);
}

/// A node has room for three frames, one of which comes out each 5 ms, and five times as many to
/// send: they wait in its TAP, 500 of them, and what finds these waiting is lost.
#[test]
fn a_node_that_is_told_there_is_no_room_waits_for_it() {
    let lanes = Lanes { room: 3, ..Lanes::new(ms(5)) };
    let mut cell = Cell::over(2, lanes, &[0.0, 10.0]);
    let flow = cell.unicast(0, 1, at(0), ms(1), 1000);
    cell.world.run_until(at(5000)).unwrap();
    let (log, b) = (cell.log(flow), cell.clients[1]);
    let received = log.received(b);
    let lost = (0..1000).filter(|n| log.lost_in_queue(*n).is_some()).count();
    assert_eq!(received + lost, 1000, "each arrived, or waited for too long");
    // One each 5 ms for a second, and what waits at its end: 500 in the TAP.
    assert!((200..750).contains(&received), "{received}");
    assert!(lost > 200, "{lost}");
}

#[test]
fn what_a_medium_did_not_send_is_lost_in_its_queue() {
    let lanes = Lanes { keeps_back_every: 3, ..Lanes::new(ms(1)) };
    let mut cell = Cell::over(3, lanes, &[0.0, 10.0]);
    let flow = cell.unicast(0, 1, at(0), ms(10), 30);
    cell.world.run_until(at(1000)).unwrap();
    for number in 0..30 {
        let is_kept_back = number % 3 == 2;
        let lost = cell.log(flow).lost_in_queue(number).map(|(_, node)| node);
        assert_eq!(lost, is_kept_back.then_some(A), "{number}");
    }
    assert_eq!(cell.log(flow).received(cell.clients[1]), 20);
}

#[test]
fn a_medium_hears_who_is_where_and_who_is_silent() {
    let lanes = Lanes::new(ms(1));
    let told = Arc::clone(&lanes.told);
    let mut cell = Cell::over(4, lanes, &[0.0, 10.0]);
    assert_eq!(cell.world.delivery(A, B), 1.0);
    cell.world.place(B, Location::new(70.0, 0.0));
    // It looks when it is asked, not before.
    assert_eq!(told.lock().unwrap().looks, 1);
    assert_eq!(cell.world.delivery(A, B), 0.0);
    assert_eq!(cell.world.graph().edges().count(), 0);
    cell.world.run_until(at(500)).unwrap();
    cell.world.apply(Fault::Crash(B));
    let told = told.lock().unwrap();
    assert_eq!((told.looks, &told.silenced[..]), (2, &[B][..]));
    assert_eq!(cell.world.airtime().worst(), Default::default(), "it knows nothing of that");
}

/// Frames that take no time at all. Two that answer each other do so one after the other, however
/// often, and not the one while the other sends.
#[test]
fn nodes_that_hear_at_once_are_done_with_sending_first() {
    const ANSWERS: u32 = 20_000;
    let mut world = World::new(5);
    world.count_starts(Counting::StateFile);
    world.set_medium(Box::new(Lanes::new(Duration::ZERO)));
    for n in 0..2_u8 {
        let parrot = move |_: &Start, _| puppet::node(Parrot { n, left: ANSWERS });
        let node = world.add_node(Role::Obu, mac(n), Box::new(parrot));
        world.place(node, Location::new(f64::from(n), 0.0));
    }
    world.inject_tap(at(10), A, PROBE);
    world.run_until(at(10)).unwrap();
    let sent = [A, B].map(|node| world.stats_of(node).of(FrameKind::PROBE).frames);
    assert_eq!(sent, [1 + ANSWERS, ANSWERS].map(u64::from));
}

/// Sends a probe, and answers as many of them with another.
struct Parrot {
    n: u8,
    left: u32,
}

impl Puppet for Parrot {
    fn mac(&self) -> Mac {
        mac(self.n)
    }

    fn read(&mut self, _: &[u8], out: &mut Replies) {
        send_probe(mac(self.n), Mac::BROADCAST, out);
    }

    fn hear(&mut self, _: Timestamp, _: &[u8], out: &mut Replies) {
        if self.left > 0 {
            self.left -= 1;
            send_probe(mac(self.n), Mac::BROADCAST, out);
        }
    }
}

/// Within fifty metres everyone hears everything, as much later as told; with no time, from within
/// `send`.
struct Lanes {
    delay: Duration,
    /// Frames of one node at a time.
    room: usize,
    /// Every so many is not sent.
    keeps_back_every: u64,
    places: Vec<Option<Location>>,
    under_way: VecDeque<Arc<Flight>>,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    looks: u32,
    silenced: Vec<NodeIndex>,
}

impl Lanes {
    fn new(delay: Duration) -> Self {
        Self {
            delay,
            room: usize::MAX,
            keeps_back_every: u64::MAX,
            places: Vec::new(),
            under_way: VecDeque::new(),
            told: Arc::default(),
        }
    }

    fn of(&self, node: NodeIndex) -> usize {
        self.under_way.iter().filter(|frame| frame.from() == node).count()
    }

    fn land(&self, frame: &Arc<Flight>, air: &mut Air<'_>) {
        let addressee = air.addressee(frame);
        let mut has_arrived = false;
        self.hearers(frame.from(), &mut |node| {
            has_arrived |= air.hear(frame, node, None) && addressee == Some(node);
        });
        if !has_arrived && !frame.to().is_group() {
            air.undelivered(frame);
        }
    }
}

impl Medium for Lanes {
    fn look(&mut self, places: &[Option<Location>]) {
        self.places = places.to_vec();
        self.told.lock().unwrap().looks += 1;
    }

    fn has_room(&mut self, node: NodeIndex, _: u8) -> bool {
        self.of(node) < self.room
    }

    fn send(&mut self, frame: Arc<Flight>, air: &mut Air<'_>) {
        assert!(self.of(frame.from()) < self.room, "it was told there is no room");
        if frame.number().is_multiple_of(self.keeps_back_every) {
            air.unsent(&frame);
        } else if self.delay.is_zero() {
            self.land(&frame, air);
        } else {
            // One after the other: the last is due when all before it are.
            let ahead = u32::try_from(self.of(frame.from())).unwrap();
            let wait = if self.room == usize::MAX { 1 } else { 1 + ahead };
            self.under_way.push_back(frame);
            air.plan(air.now() + self.delay * wait, Step(7));
        }
    }

    fn step(&mut self, step: Step, air: &mut Air<'_>) {
        assert_eq!(step, Step(7));
        let frame = self.under_way.pop_front().unwrap();
        self.land(&frame, air);
        air.room(frame.from());
    }

    fn silence(&mut self, node: NodeIndex, _: &mut Air<'_>) {
        self.told.lock().unwrap().silenced.push(node);
    }

    fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64 {
        let place = |node: NodeIndex| self.places.get(node.0).copied().flatten();
        let distance_m = place(from).zip(place(to)).map(|(a, b)| a.distance_m(b));
        f64::from(u8::from(distance_m.is_some_and(|metres| metres <= 50.0)))
    }

    fn hearers(&self, from: NodeIndex, take: &mut dyn FnMut(NodeIndex)) {
        let all = (0..self.places.len()).map(NodeIndex).filter(|&to| to != from);
        all.filter(|&to| self.delivery(from, to) > 0.0).for_each(take);
    }
}
