//! Who sends when, and who receives it: contention, collisions and acknowledgements, [`Stations`].
//!
//! Every node is a station. It locks on to the first frame whose preamble it can decode, or to a
//! later one strong enough to drown the first, and has received it if it survived noise and
//! everything else until its end ([`ErrorModel`]). While it is locked the channel is busy for it,
//! whatever becomes of the frame: it has read how long that lasts. What it missed the preamble of
//! is mere energy, summed up in [`Station::energy`], and makes the channel busy only from a
//! threshold 20 dB higher on. While the channel is busy its countdown stands still. Nothing here
//! knows of hidden nodes: they are those who do not hear each other.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::dice::{Luck, subseed};
use crate::frame::Flight;
use crate::medium::Step;
use crate::radio::access::{Access, CATEGORIES, Category, Csma};
use crate::radio::airtime::{
    CCA_TIME, DataRate, PREAMBLE_US, SIFS, SIGNAL_US, SLOT, SYMBOL_US, mac_len,
};
use crate::radio::earshot::{Ear, Earshot};
use crate::radio::errors::{ErrorModel, SIGNAL_BITS};
use crate::radio::fading::Fading;
use crate::radio::occupancy::{AirtimeSecond, Tenure, Use};
use crate::radio::path_loss::PathLoss;
use crate::radio::{Budget, Radio, attowatts, power};
use node_lib::time::Timestamp;

/// What has to be done later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A countdown ends, unless it was stopped since.
    Contend { node: usize },
    /// A transmission ends.
    Finish { air: usize },
    /// `from` acknowledges what it received from `to`, a frame of this kind.
    Acknowledge { from: usize, to: usize, kind: Use },
    /// No acknowledgement came, unless it did.
    GiveUp { node: usize, turn: u32 },
    /// A frame that takes no air arrives.
    Land { place: usize },
}

/// Bits of an index, and of a turn: more of either than fit in there are not.
const INDEX_BITS: u32 = 30;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

impl Event {
    /// As a medium hands it to its world: what it is in the upper bits, and two numbers.
    pub(crate) fn pack(self) -> Step {
        let (what, a, b) = match self {
            Self::Contend { node } => (0, node, 0),
            Self::Finish { air } => (1, air, 0),
            Self::Acknowledge { from, to, kind: Use::Control } => (2, from, to),
            Self::Acknowledge { from, to, kind: Use::Data } => (3, from, to),
            Self::GiveUp { node, turn } => (4, node, turn as usize),
            Self::Land { place } => (5, place, 0),
        };
        let numbers = (a as u64 & INDEX_MASK) << INDEX_BITS | b as u64 & INDEX_MASK;
        Step(what << (2 * INDEX_BITS) | numbers)
    }

    /// Back again.
    pub(crate) fn unpack(Step(packed): Step) -> Option<Self> {
        let index = |packed: u64| usize::try_from(packed & INDEX_MASK).unwrap_or(0);
        let (a, b) = (index(packed >> INDEX_BITS), index(packed));
        let acknowledge = |kind| Self::Acknowledge { from: a, to: b, kind };
        Some(match packed >> (2 * INDEX_BITS) {
            0 => Self::Contend { node: a },
            1 => Self::Finish { air: a },
            2 => acknowledge(Use::Control),
            3 => acknowledge(Use::Data),
            4 => Self::GiveUp { node: a, turn: u32::try_from(b).unwrap_or(0) },
            5 => Self::Land { place: a },
            _ => return None,
        })
    }
}

/// Where everybody is, for one call.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) radio: &'a Radio,
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
    pub(crate) plans: Vec<(Timestamp, Event)>,
    /// Frames that waited for too long.
    pub(crate) expired: Vec<Arc<Flight>>,
    /// Nodes that were told there is no room, and have it again.
    pub(crate) roomy: Vec<usize>,
}

/// Thresholds in attowatts, ratios of powers.
#[derive(Clone, Copy, Debug)]
struct Limits {
    errors: ErrorModel,
    noise: f64,
    /// Weakest frame that can be received, and weakest preamble.
    weakest: f64,
    preamble: f64,
    /// Busy from here on, whatever it is.
    busy: u64,
    sinr: f64,
    preamble_sinr: f64,
    capture: f64,
    /// Less than this is not worth a sum.
    ignored: f64,
}

#[derive(Clone, Debug, Default)]
struct Station {
    /// By category: frames and when they were handed over.
    queues: [VecDeque<(Timestamp, Arc<Flight>)>; CATEGORIES],
    heads: [Option<Head>; CATEGORIES],
    /// Its node was told that the queue is full.
    is_waited_for: [bool; CATEGORIES],
    /// The category whose head counts down or is on air.
    active: usize,
    phase: Phase,
    /// When its countdown is next looked at: not later than it ends. Most countdowns are stopped
    /// and end later, which costs nothing this way.
    looked_at: Option<Timestamp>,
    /// Tells a wait for an acknowledgement from those before it.
    turn: u32,
    /// Transmits, be it an acknowledgement.
    is_sending: bool,
    /// Everything that arrives, in attowatts.
    energy: u64,
    lock: Option<Lock>,
    /// In the future while an acknowledgement is expected, and kept free for it.
    idle_since: Timestamp,
    /// By the duration field of the last frame received (NAV).
    reserved_until: Timestamp,
    /// Because the last frame could not be read, and may be acknowledged (EIFS, up to DIFS).
    unsure_until: Timestamp,
    busy_since: Timestamp,
    /// The countdown after the last frame ends.
    not_before: Timestamp,
    /// Transmissions and random numbers so far.
    sent: u64,
    drawn: u64,
    dropped: u64,
}

/// The frame of a category that is next.
#[derive(Clone, Debug)]
struct Head {
    flight: Arc<Flight>,
    since: Timestamp,
    slots: u32,
    window: u16,
    tries: u8,
    was_heard: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing to send, or the channel is busy.
    #[default]
    Idle,
    /// Slots are counted from `start`; at `end` it sends.
    Waiting { start: Timestamp, end: Timestamp },
    /// Its frame is on air.
    Sending,
    /// For an acknowledgement.
    Awaiting,
}

/// A frame being received.
#[derive(Clone, Copy, Debug)]
struct Lock {
    air: usize,
    power: u64,
    rate: DataRate,
    begun: Timestamp,
    /// It was above the threshold all the time.
    is_clear: bool,
    /// Logarithm of the probability that it has survived up to then.
    odds: f64,
    counted_to: Timestamp,
}

impl Lock {
    /// From here on there is more in its way.
    fn disturb(&mut self, limits: &Limits, others: u64) {
        self.is_clear &= limits.is_clear(self.power, others);
    }

    /// What was in its way up to now.
    fn count(&mut self, limits: &Limits, now: Timestamp, others: u64) {
        if limits.errors == ErrorModel::Threshold {
            return;
        }
        let snr = self.power as f64 / (limits.noise + others as f64);
        let begun = self.begun.as_micros();
        let [from, to] = [self.counted_to, now].map(|time| time.as_micros() - begun);
        self.counted_to = now;
        let within = |start: u64, end: u64| to.min(end).saturating_sub(from.max(start)) as f64;
        let header_ends = PREAMBLE_US + SIGNAL_US;
        let header = within(PREAMBLE_US, header_ends) * SIGNAL_BITS / SIGNAL_US as f64;
        let payload = within(header_ends, to) * self.rate.bits_per_symbol() as f64;
        self.odds += header * DataRate::LOWEST.log_success(snr)
            + payload / SYMBOL_US as f64 * self.rate.log_success(snr);
    }
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

#[derive(Clone, Debug)]
struct OnAir {
    from: usize,
    /// Of all its sender sent.
    number: u64,
    what: Sent,
    /// Power at everyone it reaches.
    reached: Vec<(u32, u64)>,
}

#[derive(Clone, Debug)]
enum Sent {
    Frame(Arc<Flight>),
    Ack { to: usize, kind: Use },
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
    pub(crate) fn new(radio: &Radio, seed: u64) -> Self {
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

    /// Is there room for a frame of this user priority? If not, the node is among
    /// [`Stations::roomy`] as soon as half of the queue is empty: the socket of a kernel is
    /// writable again then (`sock_writeable`, include/net/sock.h).
    pub(crate) fn has_room(&mut self, node: usize, priority: u8) -> bool {
        let category = Category::place_of(priority);
        let Some(station) = self.stations.get_mut(node) else { return true };
        let len = station.queues.get(category).map_or(0, VecDeque::len);
        let has_room = len < self.csma.queue_len_max;
        if !has_room && let Some(is_waited_for) = station.is_waited_for.get_mut(category) {
            *is_waited_for = true;
        }
        has_room
    }

    /// A node wants this sent, and there is room for it.
    pub(crate) fn push(&mut self, now: Timestamp, node: usize, flight: Arc<Flight>) {
        let category = Category::place_of(flight.priority);
        let Some(station) = self.stations.get_mut(node) else { return };
        let Some(queue) = station.queues.get_mut(category) else { return };
        queue.push_back((now, flight));
        self.load(now, node, category);
        // A better category goes before what waits already.
        if let Some(station) = self.stations.get_mut(node)
            && category < station.active
        {
            station.stop_counting(now);
        }
        self.consider(now, node);
    }

    /// A node went silent: what it wanted to send is forgotten.
    pub(crate) fn silence(&mut self, node: usize) {
        if let Some(station) = self.stations.get_mut(node) {
            station.queues = Default::default();
            station.heads = Default::default();
            station.phase = Phase::Idle;
            station.turn += 1;
            if std::mem::take(&mut station.is_waited_for) != [false; CATEGORIES] {
                self.roomy.push(node);
            }
        }
    }

    /// Frames this node could not send in time.
    pub(crate) fn dropped(&self, node: usize) -> u64 {
        self.stations.get(node).map_or(0, |station| station.dropped)
    }

    /// A countdown may have ended: the frame goes on air.
    pub(crate) fn contend(&mut self, now: Timestamp, node: usize, scene: Scene<'_>) {
        let Some(station) = self.stations.get_mut(node) else { return };
        if station.looked_at == Some(now) {
            station.looked_at = None;
        }
        let Phase::Waiting { end, .. } = station.phase else { return };
        if end > now {
            return self.look_at(node, end);
        }
        let Some(Some(head)) = station.heads.get_mut(station.active) else { return };
        head.slots = 0;
        if station.is_sending {
            // An acknowledgement began within the last microseconds; it goes on afterwards.
            station.phase = Phase::Idle;
            return;
        }
        let flight = Arc::clone(&head.flight);
        station.phase = Phase::Sending;
        self.transmit(now, node, Sent::Frame(flight), scene);
    }

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
            self.transmit(now, from, Sent::Ack { to, kind }, scene);
        }
    }

    fn transmit(&mut self, now: Timestamp, from: usize, what: Sent, scene: Scene<'_>) {
        let (airtime, rate) = match &what {
            Sent::Frame(flight) => (self.airtime(flight), self.csma.rate),
            Sent::Ack { .. } => (self.csma.rate.airtime_of_ack(), self.csma.rate.of_ack()),
        };
        let pay = |tenure: &mut Tenure| match &what {
            Sent::Frame(flight) => tenure.add(use_of(flight), micros(airtime)),
            Sent::Ack { kind, .. } => tenure.add_ack(*kind, micros(SIFS + airtime)),
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
        self.plans.push((now + airtime, Event::Finish { air }));
    }

    /// How strong one frame is at one receiver, and whether it cannot be read there however strong.
    fn strength(
        &self,
        radio: &Radio,
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
            Sent::Frame(flight) => self.csma.retries > 0 && !flight.to.is_group(),
            Sent::Ack { .. } => false,
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
            Sent::Frame(flight) => flight,
            Sent::Ack { to, .. } => {
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
                self.plans
                    .push((ack_ends + SLOT, Event::GiveUp { node: from, turn: station.turn }));
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

    /// The addressee has the frame its sender is waiting to see acknowledged.
    pub(crate) fn received(&mut self, now: Timestamp, flight: &Flight, by: usize) {
        if let Some(head) = self.stations.get_mut(flight.from).and_then(Station::active_head) {
            head.was_heard = true;
        }
        let step = Event::Acknowledge { from: by, to: flight.from, kind: use_of(flight) };
        self.plans.push((now + SIFS, step));
    }

    fn acknowledged(&mut self, now: Timestamp, node: usize) {
        if let Some(station) = self.stations.get_mut(node)
            && station.phase == Phase::Awaiting
        {
            station.turn += 1;
            self.done(now, node);
            self.consider(now, node);
        }
    }

    /// No acknowledgement came: once more, or the frame is returned.
    pub(crate) fn give_up(&mut self, now: Timestamp, node: usize, turn: u32) -> Option<GivenUp> {
        let retries = self.csma.retries;
        let station = self.stations.get_mut(node)?;
        if station.turn != turn || station.phase != Phase::Awaiting {
            return None;
        }
        let category = self.csma.category(station.active);
        let head = station.active_head()?;
        if head.tries >= retries {
            let given_up = GivenUp { flight: Arc::clone(&head.flight), was_heard: head.was_heard };
            self.done(now, node);
            self.consider(now, node);
            return Some(given_up);
        }
        head.tries += 1;
        head.window = head.window.saturating_mul(2).saturating_add(1).min(category.cw_max);
        let window = head.window;
        let slots = station.draw(self.seed, node, window);
        if let Some(head) = station.active_head() {
            head.slots = slots;
        }
        station.phase = Phase::Idle;
        self.consider(now, node);
        None
    }

    /// The frame of the active category is dealt with.
    fn done(&mut self, now: Timestamp, node: usize) {
        let Some(station) = self.stations.get_mut(node) else { return };
        let (active, category) = (station.active, self.csma.category(station.active));
        if let Some(head) = station.heads.get_mut(active) {
            *head = None;
        }
        station.phase = Phase::Idle;
        let slots = station.draw(self.seed, node, category.cw_min);
        station.not_before = now + category.aifs() + SLOT * slots;
        self.load(now, node, active);
    }

    /// Takes the next frame of a category, and its luck.
    fn load(&mut self, now: Timestamp, node: usize, index: usize) {
        let category = self.csma.category(index);
        let busy = self.limits.busy;
        let Some(station) = self.stations.get_mut(node) else { return };
        if !matches!(station.heads.get(index), Some(None)) {
            return;
        }
        let Some(queue) = station.queues.get_mut(index) else { return };
        let Some((since, flight)) = queue.pop_front() else { return };
        if let Some(is_waited_for) = station.is_waited_for.get_mut(index)
            && *is_waited_for
            && queue.len() <= self.csma.queue_len_max / 2
        {
            *is_waited_for = false;
            self.roomy.push(node);
        }
        let is_free = !station.is_busy(busy)
            && now >= station.idle_since + category.aifs()
            && now >= station.not_before;
        let window = category.cw_min;
        let slots = if is_free { 0 } else { station.draw(self.seed, node, window) };
        if let Some(head) = station.heads.get_mut(index) {
            *head = Some(Head { flight, since, slots, window, tries: 0, was_heard: false });
        }
    }

    /// Drops what has waited for too long.
    fn expire(&mut self, now: Timestamp, node: usize) {
        for index in 0..CATEGORIES {
            loop {
                let Some(station) = self.stations.get_mut(node) else { return };
                let Some(head) = station.heads.get_mut(index) else { return };
                let is_over = |head: &mut Head| now.since(head.since) > self.csma.lifetime;
                let Some(head) = head.take_if(is_over) else { break };
                if !head.was_heard {
                    station.dropped += 1;
                    self.expired.push(head.flight);
                }
                self.load(now, node, index);
            }
        }
    }

    /// Begins to count down if there is something to send and the channel is idle.
    fn consider(&mut self, now: Timestamp, node: usize) {
        let busy = self.limits.busy;
        let may_count = |station: &Station| station.phase == Phase::Idle && !station.is_busy(busy);
        if !self.stations.get(node).is_some_and(may_count) {
            return;
        }
        self.expire(now, node);
        let Some(station) = self.stations.get_mut(node) else { return };
        let Some(active) = station.heads.iter().position(Option::is_some) else { return };
        station.active = active;
        let aifs = self.csma.category(active).aifs();
        let Some(slots) = station.active_head().map(|head| head.slots) else { return };
        let start = now.max(station.idle_since + aifs);
        let end = start + SLOT * slots;
        station.phase = Phase::Waiting { start, end };
        self.look_at(node, end);
    }

    fn look_at(&mut self, node: usize, end: Timestamp) {
        let Some(station) = self.stations.get_mut(node) else { return };
        if station.looked_at.is_none_or(|planned| end < planned) {
            station.looked_at = Some(end);
            self.plans.push((end, Event::Contend { node }));
        }
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
            (node, std::mem::take(tenure))
        });
        AirtimeSecond::over(
            tenures.filter(|(node, _)| is_receiver(*node)).map(|(_, tenure)| tenure),
        )
    }
}

impl Station {
    fn is_busy(&self, threshold: u64) -> bool {
        self.is_sending || self.lock.is_some() || self.energy >= threshold
    }

    fn active_head(&mut self) -> Option<&mut Head> {
        self.heads.get_mut(self.active)?.as_mut()
    }

    /// Keeps the slots not yet counted. Who would send before it can have noticed goes on and
    /// sends.
    fn stop_counting(&mut self, now: Timestamp) {
        let Phase::Waiting { start, end } = self.phase else { return };
        if end <= now + CCA_TIME {
            return;
        }
        let counted = now.since(start).as_micros() / SLOT.as_micros();
        if let Some(head) = self.active_head() {
            head.slots = head.slots.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
        }
        self.phase = Phase::Idle;
    }

    /// Slots to wait, evenly from 0 to `window`.
    fn draw(&mut self, seed: u64, node: usize, window: u16) -> u32 {
        self.drawn += 1;
        let mut luck = Luck::new(subseed(seed, BACKOFF), node, node, self.drawn);
        luck.below(u32::from(window) + 1)
    }
}

impl Limits {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn of(radio: &Radio) -> Self {
        let Budget { noise_dbm, sinr_db, preamble_db, capture_db, energy_detect_dbm, .. } =
            radio.budget;
        let weakest = attowatts(radio.weakest_dbm());
        match radio.path_loss {
            // Inside a disk nothing is too weak to be heard, and beyond it nothing is in the way.
            PathLoss::Disk { .. } => Self {
                errors: radio.error_model(),
                noise: 0.0,
                weakest,
                preamble: weakest,
                busy: weakest as u64,
                sinr: power(sinr_db),
                preamble_sinr: power(preamble_db),
                capture: power(capture_db),
                ignored: 1.0,
            },
            _ => Self {
                errors: radio.error_model(),
                noise: attowatts(noise_dbm),
                weakest,
                preamble: attowatts(radio.weakest_preamble_dbm()),
                busy: attowatts(energy_detect_dbm) as u64,
                sinr: power(sinr_db),
                preamble_sinr: power(preamble_db),
                capture: power(capture_db),
                ignored: attowatts(noise_dbm) * IGNORED,
            },
        }
    }

    /// Can a frame be read through this?
    fn is_clear(self, power: u64, others: u64) -> bool {
        power as f64 >= self.sinr * (self.noise + others as f64)
    }

    /// Can its preamble be decoded through this?
    fn begins(self, power: u64, others: u64) -> bool {
        power as f64 >= self.preamble_sinr * (self.noise + others as f64)
    }

    /// Does a frame drown the one being received?
    fn captures(self, power: u64, others: u64) -> bool {
        power as f64 >= self.capture * (self.noise + others as f64)
    }
}

/// A microwatt in attowatts, two metres from a sender: more makes no difference, and ten million of
/// them fit into a sum.
const STRONGEST: f64 = 1e12;

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// What is this much below noise, 10 dB, changes no sum by more than 0.4 dB.
const IGNORED: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_as_they_were() {
        for event in [
            Event::Contend { node: 0 },
            Event::Contend { node: INDEX_MASK as usize },
            Event::Finish { air: 77 },
            Event::Acknowledge { from: 3, to: 70_000, kind: Use::Data },
            Event::Acknowledge { from: 70_000, to: 3, kind: Use::Control },
            Event::GiveUp { node: 9, turn: 123_456_789 },
            Event::Land { place: 5 },
        ] {
            assert_eq!(Event::unpack(event.pack()), Some(event));
        }
        assert_eq!(Event::unpack(Step(u64::MAX)), None);
    }
}
