//! What a medium sees of a world, and does to it: [`Air`].

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::frame::Flight;
use crate::index::NodeIndex;
use crate::medium::{Medium, Step};
use crate::trace::What;
use crate::world::{SimEvent, Slot, World};
use node_lib::mac::Mac;
use node_lib::time::Timestamp;

/// What a [`Medium`] sees of the world, and says of frames. What it says happens when it has
/// returned, in this order.
#[derive(Debug)]
pub struct Air<'a> {
    now: Timestamp,
    slots: &'a [Slot],
    macs: &'a HashMap<Mac, usize, FixedState>,
    cuts: &'a BTreeSet<(usize, usize)>,
    /// Radios have no filter.
    hears_all: bool,
    deeds: &'a mut Deeds,
}

/// What a medium said in one call.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    list: Vec<Deed>,
    /// The frames it spoke of; mostly one.
    frames: Vec<Arc<Flight>>,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Plan(Timestamp, Step),
    Hear { frame: u32, node: u32, dbm: Option<i8> },
    Lost { frame: u32, node: u32 },
    Undelivered { frame: u32 },
    Unacknowledged { frame: u32 },
    Unsent { frame: u32 },
    Room { node: u32 },
}

impl Air<'_> {
    /// Time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Can this node send and receive at all: does it run, and is its radio up?
    pub fn is_on(&self, node: NodeIndex) -> bool {
        self.slots.get(node.0).is_some_and(Slot::is_on_air)
    }

    /// Does a fault keep frames of the one from the other?
    pub fn is_cut(&self, from: NodeIndex, to: NodeIndex) -> bool {
        !self.cuts.is_empty() && self.cuts.contains(&(from.0, to.0))
    }

    /// The node a unicast frame is addressed to, if there is one.
    pub fn addressee(&self, frame: &Flight) -> Option<NodeIndex> {
        self.macs.get(&frame.to).copied().map(NodeIndex)
    }

    /// Calls [`Medium::step`] with this step at this time.
    pub fn plan(&mut self, at: Timestamp, step: Step) {
        self.deeds.list.push(Deed::Plan(at, step));
    }

    /// A node receives a frame, this strong if that is known, in dBm. `false`, and nothing, if it
    /// cannot: it is off, or a fault keeps the two apart. What is not for it its radio filters out.
    pub fn hear(&mut self, frame: &Arc<Flight>, node: NodeIndex, dbm: Option<f64>) -> bool {
        if self.is_cut(frame.from(), node) {
            return false;
        }
        let Some(slot) = self.slots.get(node.0).filter(|slot| slot.is_on_air()) else {
            return false;
        };
        if frame.to.is_group() || frame.to == slot.mac || self.hears_all {
            let (frame, node) = (self.deeds.name(frame), short(node.0));
            self.deeds.list.push(Deed::Hear { frame, node, dbm: dbm.map(whole_dbm) });
        }
        true
    }

    /// A node that might have received a frame did not. Of no consequence but a line in the trace.
    pub fn lost(&mut self, frame: &Arc<Flight>, node: NodeIndex) {
        if frame.to.is_group() || self.addressee(frame) == Some(node) {
            let (frame, node) = (self.deeds.name(frame), short(node.0));
            self.deeds.list.push(Deed::Lost { frame, node });
        }
    }

    /// A unicast frame did not arrive and is not sent again: what was in it is lost on this link.
    pub fn undelivered(&mut self, frame: &Arc<Flight>) {
        let frame = self.deeds.name(frame);
        self.deeds.list.push(Deed::Undelivered { frame });
    }

    /// No acknowledgement came for a unicast frame, and it is not sent again: where radios tell
    /// ([`World::report_unacknowledged`]), its sender hears of it when whoever acts now is done.
    pub fn unacknowledged(&mut self, frame: &Arc<Flight>) {
        if !frame.to.is_group() {
            let frame = self.deeds.name(frame);
            self.deeds.list.push(Deed::Unacknowledged { frame });
        }
    }

    /// A frame was never sent, because it waited for too long.
    pub fn unsent(&mut self, frame: &Arc<Flight>) {
        let frame = self.deeds.name(frame);
        self.deeds.list.push(Deed::Unsent { frame });
    }

    /// A node that was told there is no room has it again.
    pub fn room(&mut self, node: NodeIndex) {
        self.deeds.list.push(Deed::Room { node: short(node.0) });
    }

    /// Pairs kept apart, sender first.
    pub(crate) fn cuts(&self) -> &BTreeSet<(usize, usize)> {
        self.cuts
    }

    /// Radios have no filter.
    pub(crate) fn hears_all(&self) -> bool {
        self.hears_all
    }
}

impl Deeds {
    /// The place of a frame in the list.
    fn name(&mut self, frame: &Arc<Flight>) -> u32 {
        if !self.frames.last().is_some_and(|last| Arc::ptr_eq(last, frame)) {
            self.frames.push(Arc::clone(frame));
        }
        short(self.frames.len() - 1)
    }
}

/// A world has no four thousand million nodes.
fn short(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// As drivers report it.
#[allow(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
pub(super) fn whole_dbm(dbm: f64) -> i8 {
    dbm.round() as i8
}

impl World {
    /// Lets the medium do something, and does what it says.
    pub(super) fn with_medium(&mut self, act: impl FnOnce(&mut dyn Medium, &mut Air<'_>)) {
        let deeds = self.ask_medium(act);
        self.carry_out(deeds, Self::hear);
    }

    /// The same while a node sends: who hears something at once does so when that node is done.
    pub(super) fn with_medium_while_sending(
        &mut self,
        act: impl FnOnce(&mut dyn Medium, &mut Air<'_>),
    ) {
        let deeds = self.ask_medium(act);
        self.carry_out(deeds, |world, node, flight, dbm| {
            let flight = Arc::clone(flight);
            world.plan(world.now, SimEvent::Hear { node, flight, dbm });
        });
    }

    /// A node hears what a medium said to another one while that one sent it.
    pub(super) fn heard_at_once(&mut self, node: usize, flight: &Arc<Flight>, dbm: Option<i8>) {
        if self.is_on_air(node) {
            self.hear(node, flight, dbm);
        }
    }

    fn ask_medium(&mut self, act: impl FnOnce(&mut dyn Medium, &mut Air<'_>)) -> Deeds {
        let mut deeds = self.spare_deeds.pop().unwrap_or_default();
        let Self { now, slots, macs, bodies, placed, hears_all, .. } = self;
        if let Some(placed) = placed {
            let (medium, cuts) = placed.medium_and_cuts(bodies);
            let (now, hears_all) = (*now, *hears_all);
            act(medium, &mut Air { now, slots, macs, cuts, hears_all, deeds: &mut deeds });
        }
        deeds
    }

    fn carry_out(
        &mut self,
        mut deeds: Deeds,
        mut hear: impl FnMut(&mut Self, usize, &Arc<Flight>, Option<i8>),
    ) {
        for deed in &deeds.list {
            let frame = |frame: &u32| deeds.frames.get(*frame as usize);
            match deed {
                Deed::Plan(at, step) => {
                    self.plan(*at, SimEvent::Step { step: *step, medium: self.mediums });
                }
                Deed::Hear { frame: number, node, dbm } => {
                    let node = *node as usize;
                    if let Some(flight) = frame(number)
                        && self.is_on_air(node)
                    {
                        hear(self, node, flight, *dbm);
                    }
                }
                Deed::Lost { frame: number, node } => {
                    if let Some(flight) = frame(number) {
                        let (from, to) = (flight.from, *node as usize);
                        self.trace.add(self.now, What::Lost { from, to, crc: flight.crc });
                    }
                }
                Deed::Undelivered { frame: number } => {
                    if let Some(flight) = frame(number) {
                        self.note_lost(flight);
                    }
                }
                Deed::Unacknowledged { frame: number } => {
                    if let Some(flight) = frame(number) {
                        self.note_unacknowledged(self.now, flight);
                    }
                }
                Deed::Unsent { frame: number } => {
                    if let Some(flight) = frame(number) {
                        self.note_unsent(flight.from, &flight.bytes);
                    }
                }
                Deed::Room { node } => {
                    self.plan(self.now, SimEvent::Room { node: *node as usize });
                }
            }
        }
        deeds.list.clear();
        deeds.frames.clear();
        self.spare_deeds.push(deeds);
    }
}
