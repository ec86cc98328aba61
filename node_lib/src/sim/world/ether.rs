//! Worlds whose nodes have places: they move, and what they send is heard by who is near.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::buffer_pool::return_buffer;
use crate::sim::dice::{Dice, Luck, subseed};
use crate::sim::frame::Flight;
use crate::sim::index::NodeIndex;
use crate::sim::mobility::{Body, Position, Track};
use crate::sim::radio::earshot::{Ear, Earshot};
use crate::sim::radio::path_loss::PathLoss;
use crate::sim::radio::{Access, Radio};
use crate::sim::topology::Graph;
use crate::sim::trace::What;
use crate::sim::world::{Happening, World};

/// The channel between all nodes that have a place.
#[derive(Clone, Debug)]
pub(super) struct Ether {
    radio: Radio,
    earshot: Earshot,
    /// Someone was placed, appeared or left since the earshot was computed.
    is_stale: bool,
    /// Pairs a fault keeps apart, sender first.
    cuts: BTreeSet<(usize, usize)>,
    seed: u64,
    dice: Dice,
    /// Memory for the ears of one sender.
    heard_by: Vec<Ear>,
}

/// Purposes of streams of randomness.
const ETHER_DICE: u64 = 3 << 60;
const LUCK_SEED: u64 = 4 << 60;

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
            self.is_stale = false;
        }
    }

    /// Probability that a frame passes between two nodes where they are, when nobody disturbs it.
    fn delivery(&self, from: usize, to: usize) -> f64 {
        match self.earshot.between(from, to) {
            Some(ear) if !self.is_cut(from, to) => self.radio.delivery(f64::from(ear.distance_m)),
            _ => 0.0,
        }
    }
}

impl World {
    /// From now on who hears whom follows from where nodes are; links are out of use. Faults keep
    /// nodes apart as before.
    pub fn set_radio(&mut self, radio: Radio) {
        let (update_every, is_first) = (radio.update_every, self.ether.is_none());
        let cuts = self.ether.take().map(|ether| ether.cuts).unwrap_or_default();
        self.ether = Some(Box::new(Ether {
            radio,
            earshot: Earshot::default(),
            is_stale: true,
            cuts,
            seed: subseed(self.seed, LUCK_SEED),
            dice: Dice::new(self.seed, ETHER_DICE),
            heard_by: Vec::new(),
        }));
        if is_first {
            self.plan(self.now + update_every, Happening::Move);
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
            let next = now + ether.radio.update_every;
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
        if self.slots.get(node).is_some_and(|slot| slot.node.is_none()) {
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

    /// A frame leaves a node's antenna.
    pub(super) fn radiate(&mut self, flight: Rc<Flight>) {
        let Some(ether) = &mut self.ether else { return };
        match ether.radio.access {
            Access::Instant { delay, jitter } => {
                let time = self.now + delay + ether.dice.up_to(jitter);
                self.plan(time, Happening::Land { flight });
            }
        }
    }

    /// It reaches everyone in earshot, each with their own luck.
    pub(super) fn land(&mut self, flight: Rc<Flight>) {
        let from = flight.from;
        if self.is_on_air(from)
            && let Some(ether) = &mut self.ether
        {
            ether.refresh(&self.bodies);
            let mut ears = std::mem::take(&mut ether.heard_by);
            ears.clear();
            if flight.to.is_group() || self.hears_all {
                ears.extend_from_slice(ether.earshot.of(from));
            } else if let Some(&to) = self.macs.get(&flight.to) {
                ears.extend(ether.earshot.between(from, to));
            }
            for ear in &ears {
                self.land_at(ear, &flight);
            }
            if let Some(ether) = &mut self.ether {
                ether.heard_by = ears;
            }
        }
        if let Some(flight) = Rc::into_inner(flight) {
            return_buffer(flight.bytes);
        }
    }

    fn land_at(&mut self, ear: &Ear, flight: &Flight) {
        let (from, to) = (flight.from, ear.node as usize);
        if !self.is_on_air(to) {
            return;
        }
        let Some(ether) = &self.ether else { return };
        if ether.is_cut(from, to) {
            return;
        }
        let loss = match ether.radio.path_loss {
            PathLoss::Disk { loss, .. } => loss,
            _ => 0.0,
        };
        if loss > 0.0 && Luck::new(ether.seed, from, to, flight.number).chance(loss) {
            self.trace.add(self.now, What::Lost { from, to, crc: flight.crc });
            return;
        }
        self.hear(to, flight, Some(whole_dbm(f64::from(ear.dbm))));
    }
}

/// As drivers report it.
#[allow(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
fn whole_dbm(dbm: f64) -> i8 {
    dbm.round() as i8
}
