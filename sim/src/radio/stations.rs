//! Who sends when, and who receives it: contention, collisions and acknowledgements, [`Stations`].
//!
//! Every node is a station. It locks on to the first frame whose preamble it can decode, or to a
//! later one strong enough to drown the first. It has received it if it survived noise and
//! everything else until its end ([`ErrorModel`]). While it is locked the channel is busy for it,
//! whatever becomes of the frame: it has read how long that lasts. What it missed the preamble of
//! is mere energy, summed up in [`Station::energy`], and makes the channel busy only from a
//! threshold 20 dB higher on. While the channel is busy its countdown stands still. Nothing here
//! knows of hidden nodes: they are those who do not hear each other.

mod air;
mod contention;
mod event;
mod limits;
mod lock;
mod station;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use self::air::OnAir;
pub(crate) use self::event::StationStep;
use self::limits::Limits;
use self::station::Station;
use crate::dice::Luck;
use crate::frame::Flight;
use crate::radio::RadioModel;
use crate::radio::access::{Access, Csma};
use crate::radio::airtime::{SIFS, mac_len};
use crate::radio::earshot::Earshot;
use crate::radio::errors::ErrorModel;
use crate::radio::occupancy::{AirtimeSecond, Tenure, Use};
use node_lib::time::Timestamp;

/// Where everybody is, for one call.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) radio: &'a RadioModel,
    pub(crate) earshot: &'a Earshot,
    /// Pairs kept apart, sender first.
    pub(crate) cuts: &'a BTreeSet<(usize, usize)>,
}

/// A transmission that ended.
#[derive(Debug)]
pub(crate) struct Landing {
    /// What was sent; an acknowledgement is of no interest outside.
    pub(crate) flight: Arc<Flight>,
    /// Who received it, with its power there in attowatts.
    pub(crate) heard: Vec<(u32, u64)>,
    /// Who would have, had nobody disturbed it.
    pub(crate) missed: Vec<u32>,
    /// It is acknowledged.
    pub(crate) wants_ack: bool,
    /// Its addressee received it before, but the acknowledgement was lost.
    pub(crate) is_repeat: bool,
}

/// A frame that no acknowledgement came for.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub(crate) flight: Arc<Flight>,
    /// Its addressee has it.
    pub(crate) was_heard: bool,
}

/// The channel and everyone at it.
#[derive(Clone, Debug)]
pub(crate) struct Stations {
    csma: Csma,
    limits: Limits,
    seed: u64,
    stations: Vec<Station>,
    /// What each of them heard in the second that runs: all there is of them without contention.
    tenures: Vec<Tenure>,
    on_air: Vec<Option<OnAir>>,
    free: Vec<usize>,
    /// Lists no longer used.
    spare: Vec<Vec<(u32, u64)>>,
    /// What is to be planned.
    pub(crate) plans: Vec<(Timestamp, StationStep)>,
    /// Frames that waited for too long.
    pub(crate) expired: Vec<Arc<Flight>>,
    /// Nodes that were told there is no room, and have it again.
    pub(crate) roomy: Vec<usize>,
}

/// Purposes of random numbers.
const FADING: u64 = 1;
const BACKOFF: u64 = 2;
const ERRORS: u64 = 3;

/// What a flight occupies the channel with.
pub(crate) fn use_of(flight: &Flight) -> Use {
    if flight.kind.is_data() { Use::Data } else { Use::Control }
}

impl Stations {
    pub(crate) fn new(radio: &RadioModel, seed: u64) -> Self {
        let csma = match radio.access {
            Access::Csma(csma) => csma,
            Access::Instant { .. } => Csma::DEFAULT,
        };
        Self {
            csma,
            limits: Limits::of(radio),
            seed,
            stations: Vec::new(),
            tenures: Vec::new(),
            on_air: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            plans: Vec::new(),
            expired: Vec::new(),
            roomy: Vec::new(),
        }
    }

    /// Stations for so many nodes.
    pub(crate) fn resize(&mut self, nodes: usize) {
        if self.stations.len() < nodes {
            self.stations.resize_with(nodes, Station::default);
            self.tenures.resize_with(nodes, Tenure::default);
        }
    }

    /// Frames this node could not send in time.
    pub(crate) fn dropped(&self, node: usize) -> u64 {
        self.stations.get(node).map_or(0, |station| station.dropped)
    }

    /// Changes a station, and stops or starts its countdown as its channel becomes busy or idle.
    fn change(&mut self, now: Timestamp, node: usize, change: impl FnOnce(&mut Station)) {
        let busy = self.limits.busy;
        let Some(station) = self.stations.get_mut(node) else { return };
        let was_busy = station.is_busy(busy);
        change(station);
        match (was_busy, station.is_busy(busy)) {
            (false, true) => {
                station.busy_since = now;
                station.stop_counting(now);
            }
            (true, false) => {
                let busy = now.as_micros() - station.busy_since.as_micros();
                station.idle_since = now.max(station.reserved_until).max(station.unsure_until);
                self.tenure(node, |tenure| tenure.add_busy(busy));
                self.consider(now, node);
            }
            _ => {}
        }
    }

    /// A frame occupies the channel of a node, without contention.
    pub(crate) fn occupy(&mut self, node: usize, kind: Use, airtime: Duration) {
        self.tenure(node, |tenure| {
            tenure.add(kind, micros(airtime));
            tenure.add_busy(micros(airtime));
        });
    }

    /// So does the acknowledgement of one.
    pub(crate) fn occupy_with_ack(&mut self, node: usize, kind: Use) {
        let airtime = self.csma.rate.airtime_of_ack();
        self.tenure(node, |tenure| {
            tenure.add_ack(kind, micros(SIFS + airtime));
            tenure.add_busy(micros(airtime));
        });
    }

    fn tenure(&mut self, node: usize, change: impl FnOnce(&mut Tenure)) {
        if let Some(tenure) = self.tenures.get_mut(node) {
            change(tenure);
        }
    }

    /// Does this receiver notice a frame of this power?
    pub(crate) fn is_noticed(&self, power: f64) -> bool {
        power >= self.limits.preamble.min(self.limits.busy as f64)
    }

    /// Is a frame of this power received when nobody disturbs it?
    pub(crate) fn is_received(&self, flight: &Flight, power: f64, luck: &mut Luck) -> bool {
        match self.limits.errors {
            ErrorModel::Threshold => power >= self.limits.weakest,
            ErrorModel::Nist => {
                let (snr, len) = (power / self.limits.noise, mac_len(flight.bytes.len()));
                luck.chance(self.csma.rate.frame_success(snr, len))
            }
        }
    }

    /// How long this frame occupies the channel.
    pub(crate) fn airtime(&self, flight: &Flight) -> Duration {
        self.csma.rate.airtime_of_ethernet(flight.bytes.len())
    }

    /// For how many per cent of the last second a node's channel was busy.
    pub(crate) fn busy_percent(&self, node: usize) -> Option<u8> {
        self.stations.get(node).map(|station| station.busy_percent)
    }

    /// What these receivers heard since this was last asked.
    pub(crate) fn take_second(
        &mut self,
        now: Timestamp,
        is_receiver: impl Fn(usize) -> bool,
    ) -> AirtimeSecond {
        let busy = self.limits.busy;
        let all = self.stations.iter_mut().zip(&mut self.tenures).enumerate();
        let tenures = all.map(|(node, (station, tenure))| {
            if station.is_busy(busy) {
                tenure.add_busy(now.as_micros() - station.busy_since.as_micros());
                station.busy_since = now;
            }
            station.busy_percent = tenure.busy_percent();
            (node, std::mem::take(tenure))
        });
        AirtimeSecond::over(
            tenures.filter(|(node, _)| is_receiver(*node)).map(|(_, tenure)| tenure),
        )
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
