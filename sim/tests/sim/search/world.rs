//! One RSU, a few OBUs and the frames between them, small enough to be copied thousands of times a
//! second. Nothing in it is left to chance: see [`World::due`] for what the search decides.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::{Boot, Mac, NodeId, Start, Timestamp};
use obu_lib::{Obu, Policy};
use rsu_lib::Rsu;
use sim::topology::Graph;
use sim::{FrameKind, Packet, subseed};

use super::check::{Broken, QUIET_FOR, check_ways};
use super::decision::{Decision, Hearing};
use crate::common::{HOST_MAC, radio, rider_mac};

/// Node 0 is the RSU.
pub const RSU: usize = 0;

/// A frame is under way for this long, unless the search decides otherwise.
const UNDER_WAY: Duration = Duration::from_micros(700);

/// After a change of upstream everybody sends at once, and again when the change was announced.
const SEND_AGAIN_AFTER: Duration = Duration::from_millis(5);

#[derive(Clone)]
pub enum Machine {
    Rsu(Box<Rsu>),
    Obu(Box<Obu>),
}

impl Machine {
    fn node(&mut self) -> &mut dyn Node {
        match self {
            Self::Rsu(rsu) => rsu.as_mut(),
            Self::Obu(obu) => obu.as_mut(),
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        match self {
            Self::Rsu(rsu) => rsu.poll_timeout(),
            Self::Obu(obu) => obu.poll_timeout(),
        }
    }

    fn reseed(&mut self, seed: u64) {
        match self {
            Self::Rsu(rsu) => rsu.reseed(seed),
            Self::Obu(obu) => obu.reseed(seed),
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsu(rsu) => rsu.fmt(f),
            Self::Obu(obu) => obu.fmt(f),
        }
    }
}

/// One frame on its way to one receiver.
#[derive(Clone, Debug)]
pub struct Flight {
    at: Timestamp,
    serial: u64,
    pub from: usize,
    pub to: usize,
    frame: Rc<[u8]>,
    /// For data: the nodes this copy was at, one bit each.
    visited: u32,
    /// The search has decided about it already.
    decided: bool,
}

impl Flight {
    pub fn kind(&self) -> FrameKind {
        FrameKind::of(&self.frame)
    }

    /// Something to sort by that is the same in equal states.
    pub fn key(&self) -> (Timestamp, usize, usize, &[u8]) {
        (self.at, self.from, self.to, &self.frame)
    }

    /// The search may lose or delay it: control frames, once. Data only shows where the ways lead.
    pub fn is_open(&self) -> bool {
        !self.decided && !self.kind().is_data()
    }
}

/// Which rules the nodes follow, and the luck they have.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub policy: Policy,
    /// Chooses the jitter: each node's luck depends on this, the node and the time.
    pub draw: u64,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A link works again.
    Repair(usize),
    /// A frame reaches its receiver, unless the search decides otherwise.
    Frame(usize),
    /// A node asked to be called.
    Wake(usize),
    /// Every client sends.
    Send,
}

#[derive(Clone)]
pub struct World {
    setup: Setup,
    now: Timestamp,
    pub nodes: Vec<Machine>,
    boots: Vec<u32>,
    started: Vec<Timestamp>,
    /// By sender: the nodes that hear it, one bit each.
    pub links: Vec<u32>,
    pub repairs: Vec<(Timestamp, usize, usize)>,
    pub flights: Vec<Flight>,
    serial: u64,
    send_at: Vec<Timestamp>,
    /// Where each node sends what is for the RSU.
    pub ways: Vec<Option<usize>>,
}

/// As programs with a state file count: the first start by the clock, in quarters of a second since
/// 2024, and each further one by one more.
const FIRST_BOOT: u32 = 365_000_000;

thread_local! {
    static REPLIES: RefCell<Replies> = RefCell::default();
}

impl World {
    pub fn new(graph: &Graph, setup: Setup) -> Self {
        let n = graph.nodes();
        let mut links = vec![0; n];
        for (a, b) in graph.edges() {
            links[a] |= 1 << b;
            links[b] |= 1 << a;
        }
        let started = Timestamp::ZERO;
        Self {
            setup,
            now: started,
            nodes: (0..n).map(|index| start(index, FIRST_BOOT, started, setup)).collect(),
            boots: vec![FIRST_BOOT; n],
            started: vec![started; n],
            links,
            repairs: Vec::new(),
            flights: Vec::new(),
            serial: 0,
            send_at: Vec::new(),
            ways: vec![None; n],
        }
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What happens next, if it does before `until`. Of two things at the same time the order is
    /// fixed; that the other order happens too is for the search to bring about.
    pub fn due(&self, until: Timestamp) -> Option<Due> {
        let repairs = (0..).zip(&self.repairs).map(|(i, r)| (r.0, 0, Due::Repair(i)));
        let flights = (0..).zip(&self.flights).map(|(i, f)| (f.at, f.serial, Due::Frame(i)));
        let wakes = (0..).zip(&self.nodes);
        let wakes = wakes.filter_map(|(i, m)| Some((m.poll_timeout()?, 0, Due::Wake(i))));
        let sends = self.send_at.iter().map(|at| (*at, 0, Due::Send));
        let (at, _, due) = repairs.chain(flights).chain(wakes).chain(sends).min()?;
        (at < until).then_some(due)
    }

    pub fn flight(&self, index: usize) -> &Flight {
        &self.flights[index]
    }

    /// Nothing more happens before this time: go there.
    pub fn wait_until(&mut self, time: Timestamp) {
        self.now = self.now.max(time);
    }

    /// Lets it happen.
    pub fn happen(&mut self, due: Due) -> Result<(), Broken> {
        match due {
            Due::Repair(index) => {
                let (at, from, to) = self.repairs.swap_remove(index);
                self.wait_until(at);
                self.links[from] |= 1 << to;
                Ok(())
            }
            Due::Frame(index) => {
                let flight = self.flights.swap_remove(index);
                self.wait_until(flight.at);
                self.arrive(&flight)
            }
            Due::Wake(index) => {
                let at = self.nodes[index].poll_timeout().unwrap_or(self.now);
                self.wait_until(at);
                self.drive(index, 0, |node, now, out| node.handle_timeout(now, out))
            }
            Due::Send => {
                let next = (0..self.send_at.len()).min_by_key(|i| self.send_at[*i]).unwrap_or(0);
                let at = self.send_at.swap_remove(next);
                self.wait_until(at);
                self.everybody_sends()
            }
        }
    }

    pub fn hears(&self, from: usize, to: usize) -> bool {
        self.links[from] >> to & 1 == 1
    }

    fn arrive(&mut self, flight: &Flight) -> Result<(), Broken> {
        let to = flight.to;
        // A cut takes what is under way.
        if !self.hears(flight.from, to) {
            return Ok(());
        }
        // A flood comes back from each relay, and is dropped.
        if flight.visited >> to & 1 == 1
            && let Some((packet, _)) = Packet::of(&flight.frame)
            && !packet.is_flood
        {
            return Err(Broken::VisitedTwice { node: to, packet });
        }
        let frame = &flight.frame;
        self.drive(to, flight.visited, |node, now, out| node.handle_wire(now, frame, out))
    }

    /// Calls a node, sends what it wants sent, and looks whether all ways still lead to the RSU.
    fn drive(
        &mut self,
        index: usize,
        visited: u32,
        call: impl FnOnce(&mut dyn Node, Timestamp, &mut Replies),
    ) -> Result<(), Broken> {
        let now = self.now;
        REPLIES.with_borrow_mut(|out| {
            let machine = &mut self.nodes[index];
            machine.reseed(luck(self.setup, index, now));
            let node = machine.node();
            call(node, now, out);
            while node.poll_event().is_some() {}
            for reply in out.as_slice() {
                if let ReplyType::WireFlat(frame) = reply {
                    self.transmit(index, frame, visited);
                }
            }
            out.recycle();
        });
        self.look_at_ways(index)
    }

    fn transmit(&mut self, from: usize, frame: &[u8], visited: u32) {
        let to = Mac(frame[..6].try_into().unwrap());
        let visited = if FrameKind::of(frame).is_data() { visited | 1 << from } else { 0 };
        let frame: Rc<[u8]> = frame.into();
        for receiver in 0..self.nodes.len() {
            if self.hears(from, receiver) && (to == Mac::BROADCAST || to == radio(receiver)) {
                self.serial += 1;
                let (at, serial) = (self.now + UNDER_WAY, self.serial);
                let frame = Rc::clone(&frame);
                let decided = false;
                self.flights.push(Flight {
                    at,
                    serial,
                    from,
                    to: receiver,
                    frame,
                    visited,
                    decided,
                });
            }
        }
    }

    /// Every client behind an OBU sends to the host behind the RSU, and the host to each of them.
    fn everybody_sends(&mut self) -> Result<(), Broken> {
        for obu in 1..self.nodes.len() {
            let down = ethernet(rider_mac(obu), HOST_MAC);
            self.drive(RSU, 0, |node, now, out| node.handle_tap(now, &down, out))?;
            let up = ethernet(HOST_MAC, rider_mac(obu));
            self.drive(obu, 0, |node, now, out| node.handle_tap(now, &up, out))?;
        }
        Ok(())
    }

    fn look_at_ways(&mut self, index: usize) -> Result<(), Broken> {
        let Machine::Obu(obu) = &self.nodes[index] else { return Ok(()) };
        let way = obu.upstream_for(radio(RSU).into()).map(index_of);
        if way != self.ways[index] {
            self.ways[index] = way;
            for at in [self.now, self.now + SEND_AGAIN_AFTER] {
                if !self.send_at.contains(&at) {
                    self.send_at.push(at);
                }
            }
        }
        check_ways(self)
    }

    /// Listening after its start, so that nobody may count on what it advertised before.
    pub fn is_quiet(&self, index: usize) -> bool {
        self.now.since(self.started[index]) < QUIET_FOR
    }

    pub fn policy(&self) -> Policy {
        self.setup.policy
    }

    /// Does what the search decided.
    pub fn apply(&mut self, decision: Decision) -> Result<(), Broken> {
        match decision {
            Decision::Lose { flight, .. } => {
                self.flights.swap_remove(flight);
            }
            Decision::Delay { flight, by, .. } => {
                let flight = &mut self.flights[flight];
                flight.at += by;
                flight.decided = true;
            }
            Decision::Double { flight, by, .. } => {
                self.flights[flight].decided = true;
                let mut again = self.flights[flight].clone();
                again.at += by;
                self.flights.push(again);
            }
            Decision::Cut { from, to, both, repaired_after } => {
                self.cut(from, to, repaired_after);
                if both {
                    self.cut(to, from, repaired_after);
                }
            }
            Decision::Restart { node, hearing } => {
                for (other, heard) in hearing.iter() {
                    if matches!(heard, Hearing::Neither | Hearing::HearsOnly) {
                        self.cut(node, other, None);
                    }
                    if matches!(heard, Hearing::Neither | Hearing::HeardOnly) {
                        self.cut(other, node, None);
                    }
                }
                self.boots[node] += 1;
                self.started[node] = self.now;
                self.nodes[node] = start(node, self.boots[node], self.now, self.setup);
                self.ways[node] = None;
                return self.look_at_ways(node);
            }
        }
        Ok(())
    }

    fn cut(&mut self, from: usize, to: usize, repaired_after: Option<Duration>) {
        let was_there = self.hears(from, to);
        self.links[from] &= !(1 << to);
        self.repairs.retain(|(_, a, b)| repaired_after.is_some() || (*a, *b) != (from, to));
        if let (true, Some(after)) = (was_there, repaired_after) {
            self.repairs.push((self.now + after, from, to));
        }
    }
}

fn start(index: usize, boot: u32, now: Timestamp, setup: Setup) -> Machine {
    let seed = luck(setup, index, now);
    // The rider is announced without having to speak.
    let tap_mac = Some(rider_mac(index));
    let start = Start { boot: Boot(boot), seed, tap_mac, ..Start::new(radio(index)) };
    if index == RSU {
        return Machine::Rsu(Box::new(Rsu::new(rsu_lib::Settings::default().config(&start), now)));
    }
    let settings = obu_lib::Settings { policy: setup.policy, ..obu_lib::Settings::default() };
    Machine::Obu(Box::new(Obu::new(settings.config(&start), now)))
}

fn luck(setup: Setup, index: usize, now: Timestamp) -> u64 {
    subseed(setup.draw << 8 | index as u64, now.as_micros())
}

/// Which node has this id: as [`radio`] makes them.
pub fn index_of(id: NodeId) -> usize {
    usize::from(id.0[5]) - 1
}

fn ethernet(to: Mac, from: Mac) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[0x88, 0xb6]);
    frame
}
