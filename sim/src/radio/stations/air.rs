//! What is on air: whom a transmission reaches, and who has received it at its end.

use std::sync::Arc;

use super::event::StationStep;
use super::lock::Lock;
use super::station::Phase;
use super::{ERRORS, FADING, Landing, Scene, Stations, micros, use_of};
use crate::dice::{Luck, subseed};
use crate::frame::Flight;
use crate::radio::RadioModel;
use crate::radio::airtime::{DataRate, SIFS, SLOT};
use crate::radio::earshot::Ear;
use crate::radio::errors::ErrorModel;
use crate::radio::fading::Fading;
use crate::radio::occupancy::{Tenure, Use};
use crate::radio::path_loss::PathLoss;
use node_lib::time::Timestamp;

/// A microwatt in attowatts, two metres from a sender: more makes no difference, and ten million of
/// them fit into a sum.
const STRONGEST: f64 = 1e12;

#[derive(Clone, Debug)]
pub(super) struct OnAir {
    from: usize,
    /// Of all its sender sent.
    number: u64,
    what: Transmission,
    /// Power at everyone it reaches.
    reached: Vec<(u32, u64)>,
}

#[derive(Clone, Debug)]
pub(super) enum Transmission {
    Frame(Arc<Flight>),
    Ack { to: usize, kind: Use },
}

/// A frame that begins to arrive.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    air: usize,
    power: u64,
    rate: DataRate,
    /// It cannot be read, however strong.
    is_lost: bool,
}

impl Stations {
    /// A node acknowledges what it received.
    pub(crate) fn acknowledge(
        &mut self,
        now: Timestamp,
        from: usize,
        to: usize,
        kind: Use,
        scene: Scene<'_>,
    ) {
        if self.stations.get(from).is_some_and(|station| !station.is_sending) {
            self.transmit(now, from, Transmission::Ack { to, kind }, scene);
        }
    }

    pub(super) fn transmit(
        &mut self,
        now: Timestamp,
        from: usize,
        what: Transmission,
        scene: Scene<'_>,
    ) {
        let (airtime, rate) = match &what {
            Transmission::Frame(flight) => (self.airtime(flight), self.csma.rate),
            Transmission::Ack { .. } => (self.csma.rate.airtime_of_ack(), self.csma.rate.of_ack()),
        };
        let pay = |tenure: &mut Tenure| match &what {
            Transmission::Frame(flight) => tenure.add(use_of(flight), micros(airtime)),
            Transmission::Ack { kind, .. } => tenure.add_ack(*kind, micros(SIFS + airtime)),
        };
        let Some(sender) = self.stations.get_mut(from) else { return };
        sender.sent += 1;
        let number = sender.sent;
        self.tenure(from, pay);
        self.change(now, from, |station| {
            // Whoever transmits hears nothing.
            station.lock = None;
            station.is_sending = true;
        });

        let air = self.free.pop().unwrap_or(self.on_air.len());
        let ears = scene.earshot.of(from);
        let mut reached = self.spare.pop().unwrap_or_default();
        let loss = match scene.radio.path_loss {
            PathLoss::Disk { loss, .. } => loss,
            _ => 0.0,
        };
        for ear in ears {
            let to = ear.node as usize;
            if !scene.cuts.is_empty() && scene.cuts.contains(&(from, to)) {
                continue;
            }
            let (strength, is_lost) = self.strength(scene.radio, from, ear, number, loss);
            if strength < self.limits.ignored {
                continue;
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            let strength = strength.min(STRONGEST) as u64;
            reached.push((ear.node, strength));
            self.reach(now, to, Arrival { air, power: strength, rate, is_lost });
            if self.is_noticed(strength as f64) {
                self.tenure(to, pay);
            }
        }
        let on_air = Some(OnAir { from, number, what, reached });
        match self.on_air.get_mut(air) {
            Some(slot) => *slot = on_air,
            None => self.on_air.push(on_air),
        }
        self.plans.push((now + airtime, StationStep::Finish { air }));
    }

    /// How strong one frame is at one receiver, and whether it cannot be read there however strong.
    fn strength(
        &self,
        radio: &RadioModel,
        from: usize,
        ear: &Ear,
        number: u64,
        loss: f64,
    ) -> (f64, bool) {
        if loss == 0.0 && radio.fading == Fading::Still {
            return (f64::from(ear.power), false);
        }
        let mut luck = Luck::new(subseed(self.seed, FADING), from, ear.node as usize, number);
        let fading = radio.fading.draw(f64::from(ear.distance_m), &mut luck);
        (f64::from(ear.power) * fading, luck.chance(loss))
    }

    /// A frame begins to arrive.
    fn reach(&mut self, now: Timestamp, node: usize, arrival: Arrival) {
        let limits = self.limits;
        let Arrival { air, power, rate, is_lost } = arrival;
        self.change(now, node, |station| {
            let before = station.energy;
            station.energy += power;
            if station.is_sending {
                return;
            }
            let locks = if let Some(lock) = &mut station.lock {
                lock.count(&limits, now, before - lock.power);
                lock.disturb(&limits, station.energy - lock.power);
                limits.captures(power, before)
            } else {
                limits.begins(power, before)
            };
            if locks && !is_lost && power as f64 >= limits.preamble {
                let is_clear = power as f64 >= limits.weakest && limits.is_clear(power, before);
                let (begun, counted_to) = (now, now);
                let lock = Lock { air, power, rate, begun, is_clear, odds: 0.0, counted_to };
                station.lock = Some(lock);
            }
        });
    }

    /// A transmission ended. `None` for an acknowledgement.
    pub(crate) fn finish(&mut self, now: Timestamp, air: usize) -> Option<Landing> {
        let OnAir { from, number, what, reached } = self.on_air.get_mut(air)?.take()?;
        self.free.push(air);
        let mut heard = self.spare.pop().unwrap_or_default();
        let mut missed = Vec::new();
        let wants_ack = match &what {
            Transmission::Frame(flight) => self.csma.retries > 0 && !flight.to.is_group(),
            Transmission::Ack { .. } => false,
        };
        let ack_ends = now + SIFS + self.csma.rate.airtime_of_ack();
        let any_ack_ends = now + SIFS + DataRate::LOWEST.airtime_of_ack();
        for &(node, power) in &reached {
            let limits = self.limits;
            let is_strong = power as f64 >= limits.weakest;
            let mut is_heard = false;
            let seed = self.seed;
            self.change(now, node as usize, |station| {
                if let Some(lock) = &mut station.lock {
                    lock.count(&limits, now, station.energy - lock.power);
                }
                station.energy -= power;
                if let Some(lock) = station.lock
                    && lock.air == air
                {
                    station.lock = None;
                    is_heard = match limits.errors {
                        ErrorModel::Threshold => lock.is_clear,
                        ErrorModel::Nist => {
                            let seed = subseed(seed, ERRORS);
                            let mut luck = Luck::new(seed, from, node as usize, number);
                            luck.chance(libm::exp(lock.odds))
                        }
                    };
                    // A frame that can be read ends what was due to one that could not.
                    station.unsure_until = if is_heard { now } else { any_ack_ends };
                    if is_heard && wants_ack {
                        station.reserved_until = ack_ends;
                    }
                }
            });
            if is_heard {
                heard.push((node, power));
            } else if is_strong {
                missed.push(node);
            }
        }
        self.reuse(reached);
        let flight = match what {
            Transmission::Frame(flight) => flight,
            Transmission::Ack { to, .. } => {
                self.change(now, from, |station| station.is_sending = false);
                if heard.iter().any(|(node, _)| *node as usize == to) {
                    self.acknowledged(now, to);
                }
                self.reuse(heard);
                return None;
            }
        };
        let mut is_repeat = false;
        if let Some(station) = self.stations.get_mut(from)
            && station.phase == Phase::Sending
        {
            station.turn += 1;
            if wants_ack {
                station.phase = Phase::Awaiting;
                self.plans.push((
                    ack_ends + SLOT,
                    StationStep::GiveUp { node: from, turn: station.turn },
                ));
                is_repeat = station.active_head().is_some_and(|head| head.was_heard);
            } else {
                self.done(now, from);
            }
        }
        self.change(now, from, |station| station.is_sending = false);
        Some(Landing { flight, heard, missed, wants_ack, is_repeat })
    }

    /// Takes back a list, to save an allocation per frame.
    pub(crate) fn reuse(&mut self, mut list: Vec<(u32, u64)>) {
        list.clear();
        self.spare.push(list);
    }
}
