//! Worlds whose nodes have places: they move, and what they send is heard by who is near.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::frame::{Flight, inner_frames};
use crate::index::NodeIndex;
use crate::medium::{Medium, Step};
use crate::mobility::{Body, Location, Track};
use crate::radio::{Airtime, Channel, RadioModel, Strength};
use crate::topology::Graph;
use crate::traffic::{AirLoss, Numbered};
use crate::world::{SimEvent, World};

/// The medium between all nodes that have a place.
pub(super) struct PlacedMedium {
    /// To be looked at too, which may need a look at where everybody is.
    carrier: RefCell<Carrier>,
    /// What it is, if it is one of ours.
    radio: Option<RadioModel>,
    airtime: Airtime,
    /// Pairs a fault keeps apart, sender first.
    cuts: BTreeSet<(usize, usize)>,
}

struct Carrier {
    medium: Box<dyn Medium>,
    places: Vec<Option<Location>>,
    /// Someone was placed, appeared, left or moved since the medium looked.
    is_stale: bool,
}

impl Carrier {
    fn fresh(&mut self, bodies: &[Body]) -> &mut dyn Medium {
        if self.is_stale {
            self.places.clear();
            self.places.extend(bodies.iter().map(|body| body.position));
            self.medium.look(&self.places);
            self.is_stale = false;
        }
        &mut *self.medium
    }
}

/// How long [`Airtime`] is averaged.
const SECOND: Duration = Duration::from_secs(1);

/// From this share of frames on, two nodes count as linked.
const LINKED_FROM: f64 = 0.5;

/// No medium needs to look more often.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(1);

impl PlacedMedium {
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

    /// The medium, after a look at where everybody is.
    pub(super) fn medium_and_cuts(
        &mut self,
        bodies: &[Body],
    ) -> (&mut dyn Medium, &BTreeSet<(usize, usize)>) {
        (self.carrier.get_mut().fresh(bodies), &self.cuts)
    }

    /// Probability that a frame passes between two nodes where they are, when nobody disturbs it.
    fn delivery(&self, medium: &dyn Medium, from: usize, to: usize) -> f64 {
        if self.is_cut(from, to) { 0.0 } else { medium.delivery(NodeIndex(from), NodeIndex(to)) }
    }

    /// How strong frames come in then.
    fn strength(&self, medium: &dyn Medium, from: usize, to: usize) -> Option<Strength> {
        if self.is_cut(from, to) {
            return None;
        }
        medium.strength(NodeIndex(from), NodeIndex(to))
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
    pub fn set_radio(&mut self, radio: RadioModel) {
        let channel = Channel::new(radio.clone(), self.seed);
        self.set_medium(Box::new(channel));
        if let Some(placed) = &mut self.placed {
            placed.radio = Some(radio);
        }
    }

    /// From now on this medium carries what nodes with places send; links are out of use. Faults
    /// keep nodes apart as before. What is under way or waits in a medium there was before is lost.
    pub fn set_medium(&mut self, medium: Box<dyn Medium>) {
        let (look_every, is_first) =
            (medium.look_every().max(LOOK_EVERY_MIN), self.placed.is_none());
        let cuts = self.placed.take().map(|placed| placed.cuts).unwrap_or_default();
        self.mediums += 1;
        let carrier = Carrier { medium, places: Vec::new(), is_stale: true };
        self.placed = Some(Box::new(PlacedMedium {
            carrier: RefCell::new(carrier),
            radio: None,
            airtime: Airtime::default(),
            cuts,
        }));
        if is_first {
            self.plan(self.now + look_every, SimEvent::Move);
            self.plan(self.now + SECOND, SimEvent::Second);
        }
    }

    /// The radio, if there is one and [`World::set_radio`] set it.
    pub fn radio(&self) -> Option<&RadioModel> {
        self.placed.as_ref()?.radio.as_ref()
    }

    /// Puts a node here, to stay.
    pub fn place(&mut self, node: NodeIndex, position: Location) {
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
            self.plan(start, SimEvent::Appear { node: node.0 });
        } else {
            self.appear(node.0);
        }
        self.plan(end, SimEvent::Disappear { node: node.0 });
    }

    /// Where a node is; `None` before its first and after its last waypoint, or if it was put
    /// nowhere.
    pub fn position(&self, node: NodeIndex) -> Option<Location> {
        let body = self.bodies.get(node.0)?;
        match &body.track {
            Some(track) => track.position_at(self.now),
            None => body.position,
        }
    }

    /// Probability that a frame from the one reaches the other from where they were last looked at,
    /// when nobody disturbs it. Without a [`RadioModel`], what their link lets through.
    pub fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64 {
        let (from, to) = (from.0, to.0);
        if !self.is_on_air(from) || !self.is_on_air(to) {
            return 0.0;
        }
        match &self.placed {
            Some(placed) => {
                placed.delivery(placed.carrier.borrow_mut().fresh(&self.bodies), from, to)
            }
            None => match self.paths.get(from).and_then(|paths| paths.get(&to)) {
                Some(path) if !path.cut => 1.0 - path.link.loss,
                _ => 0.0,
            },
        }
    }

    /// All directions that let anything through: what a [`LinkTrace`] is made of. In the order of
    /// nodes.
    ///
    /// [`LinkTrace`]: crate::LinkTrace
    pub fn deliveries(&self) -> Vec<Delivery> {
        let mut all = Vec::new();
        let mut carrier = self.placed.as_ref().map(|placed| placed.carrier.borrow_mut());
        let medium = carrier.as_mut().map(|carrier| &*carrier.fresh(&self.bodies));
        let mut hearers = Vec::new();
        for from in (0..self.slots.len()).filter(|&from| self.is_on_air(from)) {
            let mut note = |to: usize, share: f64, strength: Option<Strength>| {
                if share > 0.0 && self.is_on_air(to) {
                    let (from, to) = (NodeIndex(from), NodeIndex(to));
                    all.push(Delivery { from, to, share, strength });
                }
            };
            match self.placed.as_deref().zip(medium) {
                Some((placed, medium)) => {
                    hearers.clear();
                    medium.hearers(NodeIndex(from), &mut |NodeIndex(to)| hearers.push(to));
                    for &to in &hearers {
                        let share = placed.delivery(medium, from, to);
                        note(to, share, placed.strength(medium, from, to));
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

    /// Whom frames of this node may reach, in the order of nodes. How likely each of them is
    /// reached, and whether it is on, [`World::delivery`] says.
    pub fn hearers(&self, from: NodeIndex) -> Vec<NodeIndex> {
        let mut hearers = Vec::new();
        match &self.placed {
            Some(placed) => {
                let mut carrier = placed.carrier.borrow_mut();
                carrier.fresh(&self.bodies).hearers(from, &mut |to| hearers.push(to));
            }
            None => {
                let paths = self.paths.get(from.0).into_iter().flatten();
                hearers.extend(paths.map(|(&to, _)| NodeIndex(to)));
            }
        }
        hearers
    }

    fn note_moved(&mut self) {
        if let Some(placed) = &mut self.placed {
            placed.carrier.get_mut().is_stale = true;
        }
    }

    pub(super) fn graph_of_places(&self) -> Graph {
        let mut graph = Graph::empty(self.slots.len());
        let Some(placed) = &self.placed else { return graph };
        let mut carrier = placed.carrier.borrow_mut();
        let medium: &dyn Medium = carrier.fresh(&self.bodies);
        let is_linked = |from, to| placed.delivery(medium, from, to) >= LINKED_FROM;
        for a in (0..self.slots.len()).filter(|&a| self.is_on_air(a)) {
            medium.hearers(NodeIndex(a), &mut |NodeIndex(b)| {
                if a < b && self.is_on_air(b) && is_linked(a, b) && is_linked(b, a) {
                    graph.link(a, b);
                }
            });
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
        if let Some(placed) = &mut self.placed {
            let every = placed.carrier.get_mut().fresh(&self.bodies).look_every();
            self.plan(now + every.max(LOOK_EVERY_MIN), SimEvent::Move);
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
        let Some(mut placed) = self.placed.take() else { return };
        let is_there = |body: &Body| body.position.is_some();
        let is_receiver = |NodeIndex(node): NodeIndex| {
            self.is_on_air(node) && self.bodies.get(node).is_some_and(is_there)
        };
        let second = placed.carrier.get_mut().medium.take_second(self.now, &is_receiver);
        placed.airtime.seconds.push(second);
        let medium = &placed.carrier.get_mut().medium;
        let is_told = |node: &usize| self.reports_busy && self.is_on_air(*node);
        let told: Vec<_> = (0..self.bodies.len())
            .filter(is_told)
            .filter_map(|node| Some((node, medium.busy_percent(NodeIndex(node))?)))
            .collect();
        self.placed = Some(placed);
        for (node, percent) in told {
            self.tell_busy(node, percent);
        }
        self.plan(self.now + SECOND, SimEvent::Second);
    }

    /// How full the channel was at every receiver; empty without a [`RadioModel`].
    pub fn airtime(&self) -> &Airtime {
        const NONE: &Airtime = &Airtime { seconds: Vec::new() };
        self.placed.as_ref().map_or(NONE, |placed| &placed.airtime)
    }

    /// Frames dropped on their way to the air because too many were waiting, or for too long: in
    /// the queue of the node's TAP, in its outbox, or in its radio.
    pub fn queue_drops(&self, node: NodeIndex) -> u64 {
        let in_radio = self.placed.as_ref();
        let in_radio = in_radio.map_or(0, |placed| placed.carrier.borrow().medium.dropped(node));
        let waited = self.waited(node);
        in_radio + waited.full + waited.late + self.tap_counters(node).full
    }

    /// Has the radio of a node room for a frame of this user priority? If not, it tells when it
    /// has.
    pub(super) fn has_room(&mut self, node: usize, priority: u8) -> bool {
        let Some(placed) = &mut self.placed else { return true };
        let (medium, _) = placed.medium_and_cuts(&self.bodies);
        medium.has_room(NodeIndex(node), priority)
    }

    /// A node went silent: its radio forgets what waits.
    pub(super) fn silence(&mut self, node: usize) {
        if self.placed.is_some() {
            self.with_medium(|medium, air| medium.silence(NodeIndex(node), air));
        }
    }

    /// A node hands a frame to its radio.
    pub(super) fn radiate(&mut self, flight: Arc<Flight>) {
        self.with_medium_while_sending(|medium, air| medium.send(flight, air));
    }

    /// The medium has something to do.
    pub(super) fn step(&mut self, step: Step) {
        self.with_medium(|medium, air| medium.step(step, air));
    }

    /// A unicast frame did not arrive: what was in it is lost on this link, unless it goes another
    /// way as well.
    pub(super) fn note_lost(&mut self, flight: &Flight) {
        if flight.to.is_group() {
            return;
        }
        let to = self.macs.get(&flight.to).map(|&to| NodeIndex(to));
        let loss = AirLoss { time: self.now, from: NodeIndex(flight.from), to };
        for numbered in inner_frames(&flight.bytes).filter_map(Numbered::parse) {
            if let Some((_, log)) = self.flows.get_mut(numbered.flow.0 as usize) {
                log.note_lost_on_air(numbered.number, loss);
            }
        }
    }

    /// A frame for the radio of this node waited for too long, or found too many waiting.
    pub(super) fn note_unsent(&mut self, node: usize, frame: &[u8]) {
        for numbered in inner_frames(frame).filter_map(Numbered::parse) {
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
