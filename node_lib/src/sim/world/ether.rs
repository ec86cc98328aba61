//! Worlds whose nodes have places: they move, and what they send is heard by who is near.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::buffer_pool::return_buffer;
use crate::sim::dice::{Dice, Luck, subseed};
use crate::sim::frame::{Flight, inner};
use crate::sim::index::NodeIndex;
use crate::sim::mobility::{Body, Position, Track};
use crate::sim::radio::earshot::{Ear, Earshot};
use crate::sim::radio::medium::{Landing, Medium, Scene, Step, use_of};
use crate::sim::radio::path_loss::PathLoss;
use crate::sim::radio::{Access, Airtime, Radio, Strength, dbm};
use crate::sim::topology::Graph;
use crate::sim::trace::What;
use crate::sim::traffic::{AirLoss, Numbered};
use crate::sim::world::{Happening, World};

/// The channel between all nodes that have a place.
#[derive(Clone, Debug)]
pub(super) struct Ether {
    radio: Radio,
    earshot: Earshot,
    medium: Medium,
    airtime: Airtime,
    /// Someone was placed, appeared or left since the earshot was computed.
    is_stale: bool,
    /// Pairs a fault keeps apart, sender first.
    cuts: BTreeSet<(usize, usize)>,
    seed: u64,
    dice: Dice,
    /// Memory for the ears of one sender, without contention.
    heard_by: Vec<Ear>,
}

/// Purposes of streams of randomness.
const ETHER_DICE: u64 = 3 << 60;
const LUCK_SEED: u64 = 4 << 60;
const SHADOWS: u64 = 1;
const MEDIUM: u64 = 2;

/// How long [`Airtime`] is averaged.
const SECOND: Duration = Duration::from_secs(1);

/// From this share of frames on, two nodes count as linked.
const LINKED_FROM: f64 = 0.5;

impl Ether {
    pub(super) fn set_cut(&mut self, from: usize, to: usize, cut: bool) {
        if cut {
            self.cuts.insert((from, to));
        } else {
            self.cuts.remove(&(from, to));
        }
    }

    fn is_cut(&self, from: usize, to: usize) -> bool {
        !self.cuts.is_empty() && self.cuts.contains(&(from, to))
    }

    fn refresh(&mut self, bodies: &[Body]) {
        if self.is_stale {
            self.earshot.refresh(&self.radio, bodies);
            self.medium.resize(bodies.len());
            self.is_stale = false;
        }
    }

    /// Probability that a frame passes between two nodes where they are, when nobody disturbs it.
    fn delivery(&self, from: usize, to: usize) -> f64 {
        match self.earshot.between(from, to) {
            Some(ear) if !self.is_cut(from, to) => {
                self.radio.delivery_at(f64::from(ear.distance_m), dbm(f64::from(ear.power)))
            }
            _ => 0.0,
        }
    }

    /// How strong frames come in then.
    fn strength(&self, from: usize, to: usize) -> Option<Strength> {
        let ear = self.earshot.between(from, to).filter(|_| !self.is_cut(from, to))?;
        self.radio.strength_at(f64::from(ear.distance_m), dbm(f64::from(ear.power)))
    }
}

/// How well one node hears another, when nobody disturbs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// Who sends.
    pub from: NodeIndex,
    /// Who hears it.
    pub to: NodeIndex,
    /// Probability that a frame passes, as [`World::delivery`] has it.
    pub share: f64,
    /// How strong frames come in, where that is known.
    pub strength: Option<Strength>,
}

impl World {
    /// From now on who hears whom follows from where nodes are; links are out of use. Faults keep
    /// nodes apart as before.
    pub fn set_radio(&mut self, radio: Radio) {
        let (update_every, is_first) = (radio.update_every(), self.ether.is_none());
        let cuts = self.ether.take().map(|ether| ether.cuts).unwrap_or_default();
        let seed = subseed(self.seed, LUCK_SEED);
        self.ether = Some(Box::new(Ether {
            earshot: Earshot::new(subseed(seed, SHADOWS)),
            medium: Medium::new(&radio, subseed(seed, MEDIUM)),
            airtime: Airtime::default(),
            radio,
            is_stale: true,
            cuts,
            seed,
            dice: Dice::new(self.seed, ETHER_DICE),
            heard_by: Vec::new(),
        }));
        if is_first {
            self.plan(self.now + update_every, Happening::Move);
            self.plan(self.now + SECOND, Happening::Second);
        }
    }

    /// The channel, if there is one.
    pub fn radio(&self) -> Option<&Radio> {
        self.ether.as_ref().map(|ether| &ether.radio)
    }

    /// Puts a node here, to stay.
    pub fn place(&mut self, node: NodeIndex, position: Position) {
        if let Some(body) = self.bodies.get_mut(node.0) {
            *body = Body { position: Some(position), track: None };
        }
        self.note_moved();
    }

    /// Lets a node move. It starts at the first waypoint, and is silent and gone after the last; a
    /// node that runs too early is stopped until then.
    pub fn follow(&mut self, node: NodeIndex, track: Track) {
        let (start, end) = (track.start(), track.end());
        let Some(body) = self.bodies.get_mut(node.0) else { return };
        *body = Body { position: None, track: Some(track) };
        self.note_moved();
        if start > self.now {
            self.stop(node.0);
            self.plan(start, Happening::Appear { node: node.0 });
        } else {
            self.appear(node.0);
        }
        self.plan(end, Happening::Disappear { node: node.0 });
    }

    /// Where a node is; `None` before its first and after its last waypoint, or if it was put nowhere.
    pub fn position(&self, node: NodeIndex) -> Option<Position> {
        let body = self.bodies.get(node.0)?;
        match &body.track {
            Some(track) => track.position_at(self.now),
            None => body.position,
        }
    }

    /// Probability that a frame from the one reaches the other from where they were last looked at,
    /// when nobody disturbs it. Without a [`Radio`], what their link lets through.
    pub fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64 {
        let (from, to) = (from.0, to.0);
        if !self.is_on_air(from) || !self.is_on_air(to) {
            return 0.0;
        }
        match &self.ether {
            Some(ether) if ether.is_stale => self.fresh(ether).delivery(from, to),
            Some(ether) => ether.delivery(from, to),
            None => match self.paths.get(from).and_then(|paths| paths.get(&to)) {
                Some(path) if !path.cut => 1.0 - path.link.loss,
                _ => 0.0,
            },
        }
    }

    /// All directions that let anything through: what a [`LinkTrace`] is made of. In the order of nodes.
    ///
    /// [`LinkTrace`]: crate::sim::LinkTrace
    pub fn deliveries(&self) -> Vec<Delivery> {
        let mut all = Vec::new();
        let fresh;
        let ether: Option<&Ether> = match &self.ether {
            Some(ether) if ether.is_stale => {
                fresh = self.fresh(ether);
                Some(&fresh)
            }
            other => other.as_deref(),
        };
        for from in (0..self.slots.len()).filter(|&from| self.is_on_air(from)) {
            let mut note = |to: usize, share: f64, strength: Option<Strength>| {
                if share > 0.0 && self.is_on_air(to) {
                    let (from, to) = (NodeIndex(from), NodeIndex(to));
                    all.push(Delivery { from, to, share, strength });
                }
            };
            match ether {
                Some(ether) => {
                    for to in ether.earshot.of(from).iter().map(|ear| ear.node as usize) {
                        note(to, ether.delivery(from, to), ether.strength(from, to));
                    }
                }
                None => {
                    for (&to, path) in self.paths.get(from).into_iter().flatten() {
                        let share = if path.cut { 0.0 } else { 1.0 - path.link.loss };
                        note(to, share, path.strength);
                    }
                }
            }
        }
        all
    }

    fn note_moved(&mut self) {
        if let Some(ether) = &mut self.ether {
            ether.is_stale = true;
        }
    }

    fn fresh(&self, ether: &Ether) -> Ether {
        let mut fresh = ether.clone();
        fresh.refresh(&self.bodies);
        fresh
    }

    pub(super) fn graph_of_ether(&self) -> Graph {
        let mut graph = Graph::empty(self.slots.len());
        let Some(ether) = &self.ether else { return graph };
        let fresh;
        let ether: &Ether = if ether.is_stale {
            fresh = self.fresh(ether);
            &fresh
        } else {
            ether
        };
        for a in (0..self.slots.len()).filter(|&a| self.is_on_air(a)) {
            for b in ether.earshot.of(a).iter().map(|ear| ear.node as usize) {
                if a < b
                    && self.is_on_air(b)
                    && ether.delivery(a, b) >= LINKED_FROM
                    && ether.delivery(b, a) >= LINKED_FROM
                {
                    graph.link(a, b);
                }
            }
        }
        graph
    }

    pub(super) fn move_all(&mut self) {
        let now = self.now;
        let mut has_moved = false;
        for body in &mut self.bodies {
            has_moved |= body.advance(now);
        }
        if has_moved {
            self.note_moved();
        }
        if let Some(ether) = &mut self.ether {
            ether.refresh(&self.bodies);
            let next = now + ether.radio.update_every();
            self.plan(next, Happening::Move);
        }
    }

    /// The first waypoint of a track.
    pub(super) fn appear(&mut self, node: usize) {
        let now = self.now;
        let Some(body) = self.bodies.get_mut(node) else { return };
        body.advance(now);
        // Put elsewhere since this was planned, or over already.
        if body.track.is_none() || body.position.is_none() {
            return;
        }
        self.note_moved();
        if node < self.slots.len() && !self.is_on(node) {
            self.start(node);
        }
    }

    /// The last waypoint of a track.
    pub(super) fn disappear(&mut self, node: usize) {
        let now = self.now;
        let Some(body) = self.bodies.get_mut(node) else { return };
        if body.track.as_ref().is_some_and(|track| track.end() <= now) {
            body.position = None;
            body.track = None;
            self.note_moved();
            self.stop(node);
        }
    }

    /// A second is over.
    pub(super) fn end_second(&mut self) {
        let Some(mut ether) = self.ether.take() else { return };
        let is_there = |body: &Body| body.position.is_some();
        let is_receiver =
            |node| self.is_on_air(node) && self.bodies.get(node).is_some_and(is_there);
        let second = ether.medium.take_second(self.now, is_receiver);
        ether.airtime.seconds.push(second);
        self.ether = Some(ether);
        self.plan(self.now + SECOND, Happening::Second);
    }

    /// How full the channel was at every receiver; empty without a [`Radio`].
    pub fn airtime(&self) -> &Airtime {
        const NONE: &Airtime = &Airtime { seconds: Vec::new() };
        self.ether.as_ref().map_or(NONE, |ether| &ether.airtime)
    }

    /// Frames dropped on their way to the air because too many were waiting, or for too long: in the queue of the
    /// node's TAP, in its outbox, or in its radio.
    pub fn queue_drops(&self, node: NodeIndex) -> u64 {
        let in_radio = self.ether.as_ref().map_or(0, |ether| ether.medium.dropped(node.0));
        let waited = self.waited(node);
        in_radio + waited.full + waited.late + self.tap_counters(node).full
    }

    /// Has the radio of a node room for a frame of this user priority? If not, it tells when it has.
    pub(super) fn has_room(&mut self, node: usize, priority: u8) -> bool {
        match &mut self.ether {
            Some(ether) if matches!(ether.radio.access, Access::Csma(_)) => {
                ether.refresh(&self.bodies);
                ether.medium.has_room(node, priority)
            }
            _ => true,
        }
    }

    /// A node went silent: its radio forgets what waits.
    pub(super) fn silence(&mut self, node: usize) {
        if let Some(ether) = &mut self.ether {
            ether.medium.silence(node);
        }
    }

    /// A node hands a frame to its radio.
    pub(super) fn radiate(&mut self, flight: Arc<Flight>) {
        let (now, from) = (self.now, flight.from);
        let Some(ether) = &mut self.ether else { return };
        ether.refresh(&self.bodies);
        match ether.radio.access {
            Access::Instant { delay, jitter } => {
                let Ether { medium, earshot, .. } = &mut **ether;
                let (kind, airtime) = (use_of(&flight), medium.airtime(&flight));
                medium.occupy(from, kind, airtime);
                for ear in earshot.of(from) {
                    if medium.is_noticed(f64::from(ear.power)) {
                        medium.occupy(ear.node as usize, kind, airtime);
                    }
                }
                let time = now + delay + ether.dice.up_to(jitter);
                self.plan(time, Happening::Land { flight });
            }
            Access::Csma(_) => {
                ether.medium.push(now, from, flight);
                self.plan_steps();
            }
        }
    }

    /// The medium has something to do.
    pub(super) fn step(&mut self, step: Step) {
        let now = self.now;
        let can_send = |world: &Self, node| world.is_on_air(node);
        match step {
            Step::Contend { node } if !can_send(self, node) => self.silence(node),
            Step::Acknowledge { from, .. } if !can_send(self, from) => {}
            Step::Contend { .. } | Step::Acknowledge { .. } => {
                let Some(ether) = &mut self.ether else { return };
                ether.refresh(&self.bodies);
                let Ether { medium, radio, earshot, cuts, .. } = &mut **ether;
                let scene = Scene { radio, earshot, cuts };
                match step {
                    Step::Contend { node } => medium.contend(now, node, scene),
                    Step::Acknowledge { from, to, kind } => {
                        medium.acknowledge(now, from, to, kind, scene);
                    }
                    _ => {}
                }
            }
            Step::Finish { air } => {
                let Some(ether) = &mut self.ether else { return };
                if let Some(landing) = ether.medium.finish(now, air) {
                    self.deliver(&landing);
                    if let Some(ether) = &mut self.ether {
                        ether.medium.reuse(landing.heard);
                    }
                    if let Some(flight) = Arc::into_inner(landing.flight) {
                        return_buffer(flight.bytes);
                    }
                }
            }
            Step::GiveUp { node, turn } => {
                let Some(ether) = &mut self.ether else { return };
                if let Some(flight) = ether.medium.give_up(now, node, turn) {
                    self.note_lost(&flight);
                }
            }
        }
        self.plan_steps();
    }

    fn plan_steps(&mut self) {
        let Some(ether) = &mut self.ether else { return };
        let roomy = std::mem::take(&mut ether.medium.roomy);
        for flight in std::mem::take(&mut ether.medium.expired) {
            self.note_unsent(flight.from, &flight.bytes);
        }
        for node in roomy {
            self.plan(self.now, Happening::Room { node });
        }
        let Some(ether) = &mut self.ether else { return };
        let mut plans = std::mem::take(&mut ether.medium.plans);
        for (time, step) in plans.drain(..) {
            self.plan(time, Happening::Step(step));
        }
        if let Some(ether) = &mut self.ether {
            ether.medium.plans = plans;
        }
    }

    /// A frame was on air: those who received it hear it.
    fn deliver(&mut self, landing: &Landing) {
        let Landing { flight, heard, missed, wants_ack, is_repeat } = landing;
        let from = flight.from;
        if !self.is_on_air(from) {
            return;
        }
        let addressee = self.macs.get(&flight.to).copied();
        for &node in missed {
            let node = node as usize;
            if flight.to.is_group() || Some(node) == addressee {
                self.trace.add(self.now, What::Lost { from, to: node, crc: flight.crc });
            }
        }
        let mut has_arrived = false;
        for &(node, power) in heard {
            let node = node as usize;
            let is_addressee = Some(node) == addressee;
            if !self.is_on_air(node) {
                continue;
            }
            if is_addressee && *wants_ack {
                if let Some(ether) = &mut self.ether {
                    ether.medium.received(self.now, flight, node);
                }
                // What the radio has acknowledged before it does not hand over again.
                if *is_repeat {
                    continue;
                }
            }
            has_arrived |= is_addressee;
            if is_addressee || flight.to.is_group() || self.hears_all {
                self.hear(node, flight, Some(whole_dbm(dbm(power as f64))));
            }
        }
        if !has_arrived && !wants_ack {
            self.note_lost(flight);
        }
    }

    /// Without contention: a frame reaches everyone in earshot, each with their own luck.
    pub(super) fn land(&mut self, flight: Arc<Flight>) {
        let from = flight.from;
        let mut has_arrived = false;
        if self.is_on_air(from)
            && let Some(ether) = &mut self.ether
        {
            ether.refresh(&self.bodies);
            let mut ears = std::mem::take(&mut ether.heard_by);
            ears.clear();
            let addressee = self.macs.get(&flight.to).copied();
            if flight.to.is_group() || self.hears_all {
                ears.extend_from_slice(ether.earshot.of(from));
            } else if let Some(to) = addressee {
                ears.extend(ether.earshot.between(from, to));
            }
            for ear in &ears {
                let is_heard = self.land_at(ear, &flight);
                has_arrived |= is_heard && Some(ear.node as usize) == addressee;
            }
            if let Some(ether) = &mut self.ether {
                ether.heard_by = ears;
            }
        }
        if has_arrived {
            self.acknowledge_at_once(&flight);
        } else {
            self.note_lost(&flight);
        }
        if let Some(flight) = Arc::into_inner(flight) {
            return_buffer(flight.bytes);
        }
    }

    /// Without contention: the acknowledgement of a unicast frame occupies the channel of its addressee
    /// and of who hears that one.
    fn acknowledge_at_once(&mut self, flight: &Flight) {
        let (Some(ether), Some(&by)) = (&mut self.ether, self.macs.get(&flight.to)) else { return };
        let Ether { medium, earshot, .. } = &mut **ether;
        let kind = use_of(flight);
        medium.occupy_with_ack(by, kind);
        for ear in earshot.of(by) {
            if medium.is_noticed(f64::from(ear.power)) {
                medium.occupy_with_ack(ear.node as usize, kind);
            }
        }
    }

    fn land_at(&mut self, ear: &Ear, flight: &Arc<Flight>) -> bool {
        let (from, to) = (flight.from, ear.node as usize);
        let Some(ether) = &self.ether else { return false };
        if !self.is_on_air(to) || ether.is_cut(from, to) {
            return false;
        }
        let loss = match ether.radio.path_loss {
            PathLoss::Disk { loss, .. } => loss,
            _ => 0.0,
        };
        let mut luck = Luck::new(ether.seed, from, to, flight.number);
        let power = f64::from(ear.power);
        let fading = ether.radio.fading.draw(f64::from(ear.distance_m), &mut luck);
        if !ether.medium.is_received(flight, power * fading, &mut luck) || luck.chance(loss) {
            self.trace.add(self.now, What::Lost { from, to, crc: flight.crc });
            return false;
        }
        self.hear(to, flight, Some(whole_dbm(dbm(power * fading))));
        true
    }

    /// A unicast frame did not arrive: what was in it is lost on this link, unless it goes another
    /// way as well.
    pub(super) fn note_lost(&mut self, flight: &Flight) {
        if flight.to.is_group() {
            return;
        }
        let to = self.macs.get(&flight.to).map(|&to| NodeIndex(to));
        let loss = AirLoss { time: self.now, from: NodeIndex(flight.from), to };
        for numbered in inner(&flight.bytes).filter_map(Numbered::parse) {
            if let Some((_, log)) = self.flows.get_mut(numbered.flow.0 as usize) {
                log.note_lost_on_air(numbered.number, loss);
            }
        }
    }

    /// A frame for the radio of this node waited for too long, or found too many waiting.
    pub(super) fn note_unsent(&mut self, node: usize, frame: &[u8]) {
        for numbered in inner(frame).filter_map(Numbered::parse) {
            self.note_lost_in_queue(node, numbered);
        }
    }

    /// What waits at this node for too long, or finds too many waiting, is lost.
    pub(super) fn note_lost_in_queue(&mut self, node: usize, numbered: Numbered) {
        if let Some((_, log)) = self.flows.get_mut(numbered.flow.0 as usize) {
            log.note_lost_in_queue(numbered.number, self.now, NodeIndex(node));
        }
    }
}

/// As drivers report it.
#[allow(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
pub(super) fn whole_dbm(dbm: f64) -> i8 {
    dbm.round() as i8
}
