//! The channel between all nodes that have a place, as a [`RadioModel`] has it: [`Channel`].

use std::sync::Arc;
use std::time::Duration;

use crate::dice::{Dice, Luck, subseed};
use crate::frame::Flight;
use crate::index::NodeIndex;
use crate::medium::{Medium, Step};
use crate::mobility::Location;
use crate::radio::earshot::{Ear, Earshot};
use crate::radio::occupancy::{AirtimeSecond, Use};
use crate::radio::path_loss::PathLoss;
use crate::radio::stations::{GivenUp, Landing, Scene, StationStep, Stations, use_of};
use crate::radio::{Access, RadioModel, Strength, dbm};
use crate::world::Air;
use node_lib::time::Timestamp;

/// Who hears whom, and who is in whose way.
#[derive(Debug)]
pub(crate) struct Channel {
    radio: RadioModel,
    earshot: Earshot,
    stations: Stations,
    /// Without contention: frames under way, and places in the list that are free.
    under_way: Vec<Option<Arc<Flight>>>,
    free: Vec<usize>,
    seed: u64,
    dice: Dice,
}

/// Purposes of randomness.
const DICE: u64 = 3 << 60;
const LUCK: u64 = 4 << 60;
const SHADOWS: u64 = 1;
const STATIONS: u64 = 2;

impl Channel {
    /// The channel of a world with this seed.
    pub(crate) fn new(radio: RadioModel, world_seed: u64) -> Self {
        let seed = subseed(world_seed, LUCK);
        Self {
            earshot: Earshot::new(radio.clone(), subseed(seed, SHADOWS)),
            stations: Stations::new(&radio, subseed(seed, STATIONS)),
            radio,
            under_way: Vec::new(),
            free: Vec::new(),
            seed,
            dice: Dice::new(world_seed, DICE),
        }
    }

    fn ear(&self, from: NodeIndex, to: NodeIndex) -> Option<&Ear> {
        self.earshot.between(from.0, to.0)
    }

    /// Without contention: on its way at once, and in the way of nobody.
    fn send_at_once(&mut self, frame: Arc<Flight>, air: &mut Air<'_>, time: Timestamp) {
        let (kind, airtime) = (use_of(&frame), self.stations.airtime(&frame));
        self.stations.occupy(frame.from, kind, airtime);
        for ear in self.earshot.of(frame.from) {
            if self.stations.is_noticed(f64::from(ear.power)) {
                self.stations.occupy(ear.node as usize, kind, airtime);
            }
        }
        let place = self.free.pop().unwrap_or(self.under_way.len());
        match self.under_way.get_mut(place) {
            Some(slot) => *slot = Some(frame),
            None => self.under_way.push(Some(frame)),
        }
        air.plan(time, StationStep::Land { place }.pack());
    }

    /// Without contention: a frame reaches everyone in earshot, each with their own luck.
    fn land(&mut self, place: usize, air: &mut Air<'_>) {
        let Some(frame) = self.under_way.get_mut(place).and_then(Option::take) else { return };
        self.free.push(place);
        let mut has_arrived = false;
        if air.is_on(NodeIndex(frame.from)) {
            let addressee = air.addressee(&frame);
            for ear in self.earshot.of(frame.from) {
                let node = NodeIndex(ear.node as usize);
                if !frame.to.is_group() && addressee != Some(node) && !air.hears_all() {
                    continue;
                }
                has_arrived |= self.land_at(ear, &frame, air) && addressee == Some(node);
            }
            if has_arrived && let Some(by) = addressee {
                self.acknowledge_at_once(by.0, use_of(&frame));
            }
        }
        if !has_arrived {
            air.undelivered(&frame);
            air.unacknowledged(&frame);
        }
    }

    fn land_at(&self, ear: &Ear, frame: &Arc<Flight>, air: &mut Air<'_>) -> bool {
        let node = NodeIndex(ear.node as usize);
        if !air.is_on(node) || air.is_cut(frame.from(), node) {
            return false;
        }
        let loss = match self.radio.path_loss {
            PathLoss::Disk { loss, .. } => loss,
            _ => 0.0,
        };
        let mut luck = Luck::new(self.seed, frame.from, node.0, frame.number);
        let fading = self.radio.fading.draw(f64::from(ear.distance_m), &mut luck);
        let power = f64::from(ear.power) * fading;
        if !self.stations.is_received(frame, power, &mut luck) || luck.chance(loss) {
            air.lost(frame, node);
            return false;
        }
        air.hear(frame, node, Some(dbm(power)))
    }

    /// Without contention: an acknowledgement occupies the channel of its sender and of who hears
    /// it.
    fn acknowledge_at_once(&mut self, by: usize, kind: Use) {
        self.stations.occupy_with_ack(by, kind);
        for ear in self.earshot.of(by) {
            if self.stations.is_noticed(f64::from(ear.power)) {
                self.stations.occupy_with_ack(ear.node as usize, kind);
            }
        }
    }

    /// With contention: a frame was on air, and those who received it hear it.
    fn deliver(&mut self, landing: Landing, air: &mut Air<'_>) {
        let Landing { flight, heard, missed, wants_ack, is_repeat } = landing;
        if air.is_on(NodeIndex(flight.from)) {
            for node in missed {
                air.lost(&flight, NodeIndex(node as usize));
            }
            let addressee = air.addressee(&flight);
            let mut has_arrived = false;
            for &(node, power) in &heard {
                let node = NodeIndex(node as usize);
                let is_addressee = Some(node) == addressee;
                if !is_addressee && !flight.to.is_group() && !air.hears_all() {
                    continue;
                }
                let is_cut = air.is_cut(flight.from(), node);
                if is_addressee && wants_ack && air.is_on(node) && !is_cut {
                    self.stations.received(air.now(), &flight, node.0);
                    // What the radio has acknowledged before it does not hand over again.
                    if is_repeat {
                        continue;
                    }
                }
                has_arrived |= air.hear(&flight, node, Some(dbm(power as f64))) && is_addressee;
            }
            if !has_arrived && !wants_ack {
                air.undelivered(&flight);
            }
        }
        self.stations.reuse(heard);
    }

    /// Passes on what the stations want.
    fn tell(&mut self, air: &mut Air<'_>) {
        let Stations { expired, roomy, plans, .. } = &mut self.stations;
        plans.iter().for_each(|(time, event)| air.plan(*time, event.pack()));
        plans.clear();
        // Both are rare.
        if !expired.is_empty() {
            expired.drain(..).for_each(|frame| air.unsent(&frame));
        }
        if !roomy.is_empty() {
            roomy.drain(..).for_each(|node| air.room(NodeIndex(node)));
        }
    }
}

impl Medium for Channel {
    fn look(&mut self, places: &[Option<Location>]) {
        self.earshot.refresh(places);
        self.stations.resize(places.len());
    }

    fn look_every(&self) -> Duration {
        self.radio.update_every
    }

    fn has_room(&mut self, node: NodeIndex, priority: u8) -> bool {
        match self.radio.access {
            Access::Instant { .. } => true,
            Access::Csma(_) => self.stations.has_room(node.0, priority),
        }
    }

    fn send(&mut self, frame: Arc<Flight>, air: &mut Air<'_>) {
        match self.radio.access {
            Access::Instant { delay, jitter } => {
                let time = air.now() + delay + self.dice.up_to(jitter);
                self.send_at_once(frame, air, time);
            }
            Access::Csma(_) => {
                self.stations.push(air.now(), frame.from, frame);
                self.tell(air);
            }
        }
    }

    fn step(&mut self, step: Step, air: &mut Air<'_>) {
        let now = air.now();
        let Self { radio, earshot, stations, .. } = self;
        match StationStep::unpack(step) {
            Some(StationStep::Contend { node }) if air.is_on(NodeIndex(node)) => {
                stations.contend(now, node, Scene { radio, earshot, cuts: air.cuts() });
            }
            Some(StationStep::Contend { node }) => stations.silence(node),
            Some(StationStep::Acknowledge { from, to, kind }) if air.is_on(NodeIndex(from)) => {
                let scene = Scene { radio, earshot, cuts: air.cuts() };
                stations.acknowledge(now, from, to, kind, scene);
            }
            Some(StationStep::Acknowledge { .. }) | None => {}
            Some(StationStep::Finish { air: place }) => {
                if let Some(landing) = stations.finish(now, place) {
                    self.deliver(landing, air);
                }
            }
            Some(StationStep::GiveUp { node, turn }) => {
                if let Some(GivenUp { flight, was_heard }) = stations.give_up(now, node, turn) {
                    if !was_heard {
                        air.undelivered(&flight);
                    }
                    air.unacknowledged(&flight);
                }
            }
            Some(StationStep::Land { place }) => self.land(place, air),
        }
        self.tell(air);
    }

    fn silence(&mut self, node: NodeIndex, air: &mut Air<'_>) {
        self.stations.silence(node.0);
        self.tell(air);
    }

    fn dropped(&self, node: NodeIndex) -> u64 {
        self.stations.dropped(node.0)
    }

    fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64 {
        let Some(ear) = self.ear(from, to) else { return 0.0 };
        // On a disk only the distance counts, and whoever samples routes asks for each pair.
        let mean_dbm = match self.radio.path_loss {
            PathLoss::Disk { .. } => f64::INFINITY,
            _ => dbm(f64::from(ear.power)),
        };
        self.radio.delivery_at(f64::from(ear.distance_m), mean_dbm)
    }

    fn strength(&self, from: NodeIndex, to: NodeIndex) -> Option<Strength> {
        let ear = self.ear(from, to)?;
        self.radio.strength_at(f64::from(ear.distance_m), dbm(f64::from(ear.power)))
    }

    fn hearers(&self, from: NodeIndex, take: &mut dyn FnMut(NodeIndex)) {
        self.earshot.of(from.0).iter().for_each(|ear| take(NodeIndex(ear.node as usize)));
    }

    fn take_second(
        &mut self,
        now: Timestamp,
        is_receiver: &dyn Fn(NodeIndex) -> bool,
    ) -> AirtimeSecond {
        self.stations.take_second(now, |node| is_receiver(NodeIndex(node)))
    }

    fn busy_percent(&self, NodeIndex(node): NodeIndex) -> Option<u8> {
        // Without contention there is no channel that could be busy.
        let has_contention = matches!(self.radio.access, Access::Csma(_));
        has_contention.then(|| self.stations.busy_percent(node)).flatten()
    }
}
