//! The RSU: what it hears, what it does when time passes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use node_lib::control::answer_scope::AnswerScope;
use node_lib::control::client_cache::ClientCache;
use node_lib::control::counters::Counters;
use node_lib::control::deadline::Deadline;
use node_lib::control::duplicates::Duplicates;
use node_lib::control::echo::Echoes;
use node_lib::control::event::{Event, Events, REPORTS};
use node_lib::control::load::AirLoad;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::pin::{NoPin, Pin};
use node_lib::control::ping::{Echoed, Ping};
use node_lib::control::positions::{Located, Positions};
use node_lib::control::radio::{HOP_LIMIT, Radio};
use node_lib::control::random::Random;
use node_lib::control::reassembly::Reassembly;
use node_lib::control::repeated::{LINGER, Repeated};
use node_lib::control::snapshot::Snapshot;
use node_lib::control::table::TIDY_EVERY;
use node_lib::control::token_bucket::TokenBucket;
use node_lib::messages::Cost;
use node_lib::messages::control::Control;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::messages::data::Data;
use node_lib::{Mac, NodeId, Order, Seq, Timestamp};

use super::addresses::AddressBook;
use super::clients::{AGE_MAX, CLIENTS_MAX, Port};
use super::departed::{FAREWELL, Late};
use super::lan_announce::WiredAnnouncements;
use super::lan_dedup::Repeats;
use super::obus::Obus;
use super::obus::tree::HOPS_MAX;
use super::pace::Pace;
use super::pins::Pins;
use crate::Config;

mod attachment;
mod hearing;
mod inside;

/// What frames for unknown clients may take of the radio: to be sent 100 times in a second, 200
/// times at once. Each is sent by us and by each relay. Where 400 OBUs are switched on within reach
/// of each other there soon are 50 relays. With 100 such frames a second, they would fill the
/// radio, and nobody's word of which clients it has would get through.
const FLOODS: TokenBucket = TokenBucket::new(FLOODS_BURST, Duration::from_millis(10));

/// One that more relays repeat than this takes all there is, once it is there.
pub(super) const FLOODS_BURST: u32 = 200;

/// What frames to all are counted in, in bytes; each costs one unit more for preamble and headers.
pub(super) const GROUP_UNIT: usize = 64;

/// What broadcast and multicast may take of the radio, in units of [`GROUP_UNIT`]: so many kB a
/// second, twice as much at once. 128 kB are a fifth of the time of a radio of 6 Mbit/s, or a
/// thousand ARP requests.
fn group_budget(kilobytes: u32) -> TokenBucket {
    let every = GROUP_UNIT as u64 * 1000 / u64::from(kilobytes.max(1));
    let burst = kilobytes.saturating_mul(2000) / GROUP_UNIT as u32;
    TokenBucket::new(burst.max(1), Duration::from_micros(every.max(1)))
}

/// Data frames of OBUs that have not announced themselves: 1,000 a second, 1,000 at once. They may
/// be made up, and are all the LAN gets of such; an OBU whose announcement is still on its way, or
/// whose RSU has just restarted, is known within a few milliseconds.
const STRANGERS: TokenBucket = TokenBucket::new(1000, Duration::from_millis(1));

/// "Announce yourself" is said to strangers at most 100 times a second, and OBUs are told as often
/// what was said for them.
const QUESTIONS: TokenBucket = TokenBucket::new(20, Duration::from_millis(10));

/// Probes are answered at most 250 times a second, 32 at once: more would keep our heartbeats from
/// the radio for so long that everybody asks.
const ANSWERS: TokenBucket = TokenBucket::new(32, Duration::from_millis(4));

/// OBUs that come are reported ten times a second at most, 64 at once; one that was not reported is
/// not reported when it goes either.
const ARRIVALS: TokenBucket = TokenBucket::new(64, Duration::from_millis(100));

/// Heartbeats come up to so many per cent earlier or later, so that RSUs do not fall into step.
const JITTER_PERCENT: u32 = 10;

/// Heartbeats whose sending time is remembered, to measure round trips.
const SENT_MAX: usize = 64;

/// An OBU that is attached to an RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedObu {
    /// Who.
    pub obu: NodeId,
    /// Radio hops to it; `None` while a relay on the way has not said who its upstream is, or is
    /// gone.
    pub hops: Option<u8>,
    /// Smoothed time from a heartbeat to the OBU's reply, without the time the OBU held it.
    pub round_trip: Option<Duration>,
}

/// Control plane of one RSU. See the crate's documentation for its life.
///
/// ```
/// use node_lib::control::node::{Node, Replies};
/// use node_lib::messages::control::Control;
/// use node_lib::messages::{Message, PacketType};
/// use node_lib::{Mac, Timestamp};
/// use rsu_lib::{Config, Rsu};
///
/// let mut rsu = Rsu::new(Config::new(Mac([2, 0, 0, 0, 0, 9])), Timestamp::ZERO);
/// let mut out = Replies::new();
/// while let Some(now) = rsu.poll_timeout().filter(|at| *at < Timestamp::from_millis(1000)) {
///     rsu.handle_timeout(now, &mut out);
/// }
/// let is_heartbeat = |frame: &[u8]| {
///     let said = Message::try_from(frame).unwrap();
///     matches!(said.packet, PacketType::Control(Control::Heartbeat(_)))
/// };
/// let heartbeats = out.as_slice().iter().filter(|reply| is_heartbeat(&reply.frame())).count();
/// assert!((9..=12).contains(&heartbeats), "one in 100 ms, give or take 10 %");
/// assert!(rsu.attached().is_empty(), "nobody answered");
/// ```
#[derive(Clone, Debug)]
pub struct Rsu {
    pub(super) radio: Radio,
    pub(super) tap_mac: Option<Mac>,
    pace: Pace,
    history: usize,
    pub(super) order: Order,
    pub(super) began: Timestamp,
    /// When a heartbeat of our id was first heard above our boot count.
    heard_above: Option<Timestamp>,
    /// We have gone above what was heard, which is done once.
    has_raised: bool,
    hello: u32,
    /// How full the air is, for who looks inside; nothing follows from it.
    load: AirLoad,
    heartbeat_at: Timestamp,
    sent: VecDeque<(Seq, Timestamp)>,
    pub(super) obus: Obus,
    /// An OBU that is too far away to be reached, until it is reported.
    far: Option<NodeId>,
    far_reports: TokenBucket,
    pub(super) clients: ClientCache<Port>,
    pub(super) pins: Pins,
    pub(super) late: Late,
    /// OBUs whose clients have all gone to the LAN.
    pub(super) leaving: BTreeMap<NodeId, Timestamp>,
    pub(super) wired: WiredAnnouncements,
    pub(super) addresses: AddressBook,
    pub(super) repeats: Repeats,
    pub(super) duplicates: Duplicates,
    pub(super) reassembly: Reassembly,
    pub(super) echoes: Echoes,
    pub(super) seq: Seq,
    pub(super) floods: TokenBucket,
    /// OBUs that others are reached through, when they were last counted.
    pub(super) relays: u32,
    /// For broadcast and multicast, and apart from it for what hosts need to find each other.
    /// `None`: without limit.
    pub(super) groups: Option<[TokenBucket; 2]>,
    /// What was sent the old way of an OBU goes its new one as well.
    pub(super) reroutes: bool,
    pub(super) strangers: TokenBucket,
    pub(super) questions: TokenBucket,
    /// For OBUs that are told where they were what was said for them.
    pub(super) tellings: TokenBucket,
    answers: TokenBucket,
    answer_scope: AnswerScope,
    conflicts: TokenBucket,
    obu_conflicts: TokenBucket,
    arrivals: TokenBucket,
    pub(super) held_reports: TokenBucket,
    random: Random,
    /// Where we are, and OBUs in radio range.
    pub(super) positions: Positions,
    pub(super) counters: Counters,
    events: Events,
    link_is_up: bool,
    /// Without a LAN there is nothing to attach to here.
    lan_is_up: bool,
    is_leaving: bool,
    goodbyes: Repeated,
    tidy_at: Timestamp,
    deadline: Deadline,
}

impl Rsu {
    /// An RSU that starts `now`.
    pub fn new(config: Config, now: Timestamp) -> Self {
        let Config { start, settings } = config;
        let mut random = Random::new(start.seed);
        // Not at once: after a power cut many RSUs start together.
        let heartbeat_at = now + random.up_to(settings.hello_periodicity / 10);
        Self {
            radio: Radio::new(
                start.id,
                start.boot,
                start.radio_mac,
                settings.ethertype,
                start.radio_mtu,
            )
            .with_pmtu_discovery(settings.pmtu_discovery),
            tap_mac: start.tap_mac,
            pace: Pace::new(settings.hello_periodicity),
            history: settings.hello_history.clamp(1, SENT_MAX),
            order: Order { boot: start.boot, seq: Seq(0) },
            began: now,
            heard_above: None,
            has_raised: false,
            hello: 0,
            load: AirLoad::new(now),
            heartbeat_at,
            sent: VecDeque::new(),
            obus: Obus::default(),
            far: None,
            far_reports: REPORTS,
            clients: ClientCache::new(CLIENTS_MAX, AGE_MAX, start.seed),
            pins: Pins::default(),
            late: Late::default(),
            leaving: BTreeMap::new(),
            wired: WiredAnnouncements::default(),
            addresses: AddressBook::default(),
            repeats: Repeats::default(),
            duplicates: Duplicates::starting(now),
            reassembly: Reassembly::new(),
            echoes: Echoes::default(),
            seq: Seq(0),
            floods: FLOODS,
            relays: 0,
            groups: (settings.group_rate > 0)
                .then(|| [0; 2].map(|_| group_budget(settings.group_rate))),
            reroutes: settings.rerouting,
            strangers: STRANGERS,
            questions: QUESTIONS,
            tellings: QUESTIONS,
            answers: ANSWERS,
            answer_scope: AnswerScope::default(),
            conflicts: REPORTS,
            obu_conflicts: REPORTS,
            arrivals: ARRIVALS,
            held_reports: REPORTS,
            random,
            positions: Positions::new(settings.share_position),
            counters: Counters::default(),
            events: Events::default(),
            link_is_up: true,
            lan_is_up: true,
            is_leaving: false,
            goodbyes: Repeated::default(),
            tidy_at: now + TIDY_EVERY,
            deadline: Deadline::new(now, "start"),
        }
    }

    /// OBUs attached, by id.
    pub fn attached(&self) -> Vec<AttachedObu> {
        let attached = self.obus.each_attached();
        let with_way = |(obu, round_trip)| {
            let hops = self.obus.way(obu).ok().map(|way| way.hops());
            AttachedObu { obu, hops, round_trip }
        };
        attached.map(with_way).collect()
    }

    /// Clients known behind `obu`.
    pub fn clients_of(&self, obu: NodeId) -> Vec<Client> {
        self.clients.clients_of(Port::Obu(obu))
    }

    /// Goes on with another stream of randomness: for a search that compares states, in which the
    /// same state must have the same luck.
    pub fn reseed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    pub(super) fn event(&mut self, event: Event) {
        self.counters.events_lost += self.events.push(event);
    }

    fn drive(&mut self, now: Timestamp, out: &mut Replies) {
        if now >= self.tidy_at {
            self.tidy(now);
        }
        self.drop_left(now);
        self.send_heartbeat(now, out);
        let (clients, pins, obus) = (&self.clients, &self.pins, &self.obus);
        let whereabouts = |client| {
            let pinned = pins.in_effect(client, obus).map(Port::Obu);
            match pinned.or_else(|| clients.owner(now, client))? {
                Port::Obu(obu) => Some(obus.whereabouts(obu)),
                Port::Tap => None,
            }
        };
        self.counters.wired_limited += self.wired.drive(now, whereabouts, &self.addresses, out);
        self.say_goodbye(now, out);
        self.deadline = self.next_deadline(now);
    }

    fn tidy(&mut self, now: Timestamp) {
        self.tidy_at = now + TIDY_EVERY;
        self.obus.forget_left(now);
        self.obus.tidy(now);
        self.relays = self.obus.count_relays();
        if self.pace.consider(now, self.obus.attached()) {
            let every = self.pace.said().interval();
            self.event(Event::PaceChanged { every, busy_percent: self.pace.busy(now) });
        }
        self.clients.expire(now);
        self.addresses.retain(|client| {
            self.clients.owner(now, client).is_some() || self.pins.of(client).is_some()
        });
        self.late.expire(now);
        self.positions.tidy(now);
        self.drop_silent(now);
        if let Some(obu) = self.far.take_if(|_| self.far_reports.take(now)) {
            self.event(Event::TooFar { obu, hops_max: HOPS_MAX });
        }
    }

    fn send_heartbeat(&mut self, now: Timestamp, out: &mut Replies) {
        if now < self.heartbeat_at || self.is_leaving {
            return;
        }
        // Counted from when it was due, so that delays do not add up; but never two at once.
        let due = self.heartbeat_at.max(now.before(self.pace.said().tick() / 2));
        // Their numbers count time, also while none can be sent: by them OBUs tell when we took a
        // frame from the LAN.
        let missed = now.since(self.heartbeat_at).as_nanos() / self.pace.said().tick().as_nanos();
        self.order = self.order.later(u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1));
        self.heartbeat_at = due + self.random.jitter(self.pace.said().tick(), JITTER_PERCENT);
        for obu in self.obus.urgent() {
            self.tell_where_it_was(now, obu, out);
        }
        if !(self.link_is_up && self.lan_is_up && self.pace.is_due(self.order.seq)) {
            return;
        }
        self.pace.note_sent();
        self.hello = self.hello.wrapping_add(1);
        self.load.note(now, 0);
        if self.sent.len() >= self.history {
            self.sent.pop_front();
        }
        self.sent.push_back((self.order.seq, now));
        let obus = u16::try_from(self.obus.attached()).unwrap_or(u16::MAX);
        let heartbeat = Heartbeat {
            rsu: self.radio.id,
            order: self.order,
            rhythm: self.pace.said(),
            hop_limit: HOP_LIMIT,
            hops: 0,
            cost: Cost::ZERO,
            sender: self.radio.id,
            sender_boot: self.radio.boot,
            hello: self.hello,
            via: NodeId::NONE,
            mtu: self.radio.said_mtu(),
            obus,
            children: 0,
            stride: 0,
            position: self.positions.to_say(now),
        };
        self.radio.control(Mac::BROADCAST, heartbeat, out, &mut self.counters);
    }

    /// The next heartbeat goes out now. One that was due earlier stays so: from when it was, those
    /// that were missed are counted.
    fn beat_by(&mut self, now: Timestamp) {
        self.heartbeat_at = self.heartbeat_at.min(now);
    }

    fn say_goodbye(&mut self, now: Timestamp, out: &mut Replies) {
        if !self.goodbyes.take(now) {
            return;
        }
        // Without a LAN we stay: others need not forget us, only the way to it through us.
        let mut ids = Vec::new();
        if !self.is_leaving {
            NodeIds::encode(&[self.radio.id], &mut ids);
        }
        let Ok(rsus) = NodeIds::parse(&ids) else { return };
        let (sender, sender_boot) = (self.radio.id, self.radio.boot);
        let goodbye = Withdrawal { sender, sender_boot, goodbye: self.is_leaving, rsus };
        self.radio.control(Mac::BROADCAST, goodbye, out, &mut self.counters);
    }

    fn next_deadline(&self, now: Timestamp) -> Deadline {
        let heartbeat = (!self.is_leaving).then_some(self.heartbeat_at);
        Deadline::new(self.tidy_at, "tidy tables")
            .or_at(heartbeat, "send a heartbeat")
            .or(self.wired.deadline())
            .or_at(self.leaving.values().min().copied(), FAREWELL)
            .or_at(self.goodbyes.due_at(), "say goodbye")
            .after(now)
    }

    /// Something on the data path needs attention earlier than planned.
    pub(super) fn wake_at(&mut self, deadline: Deadline) {
        self.deadline = self.deadline.or(deadline);
    }
}

impl Node for Rsu {
    fn id(&self) -> NodeId {
        self.radio.id
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some(heard) = self.radio.hear(frame, &mut self.counters) else { return };
        let (from, was_for_all) = (heard.from, heard.was_for_all);
        match heard.data() {
            Some(Data::Upstream(data)) if !was_for_all => {
                return self.take_from_obu(now, from, &data, out);
            }
            Some(_) => {
                self.counters.drop_foreign += 1;
                return;
            }
            None => {}
        }
        if let Some(fragment) = heard.fragment() {
            return self.take_fragment(now, frame, &fragment, out);
        }
        let Some(control) = heard.control(&mut self.counters) else { return };
        if let Control::Echo(echo) = &control {
            if was_for_all {
                self.counters.drop_foreign += 1;
            } else {
                self.hear_echo(now, from, echo, out);
            }
            return;
        }
        match &control {
            Control::Heartbeat(heartbeat) => {
                self.load.note(now, heartbeat.stride);
                self.hear_heartbeat(now, from, heartbeat);
            }
            Control::Probe(probe) => self.hear_probe(now, from, probe, out),
            // OBUs say these to each other.
            Control::ProbeAnswer(_) | Control::Withdrawal(_) => {}
            // The rest has one addressee.
            _ if was_for_all => self.counters.drop_foreign += 1,
            Control::HeartbeatReply(reply) => self.hear_reply(now, from, reply, out),
            Control::Announcement(a) => self.hear_announcement(now, from, a, out),
            Control::AnnouncementAck(_) | Control::Echo(_) => self.counters.drop_foreign += 1,
        }
        self.drive(now, out);
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.take_from_tap(now, frame, false, out);
    }

    fn handle_tap_late(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.take_from_tap(now, frame, true, out);
    }

    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies) {
        match event {
            LinkEvent::Up => {
                self.link_is_up = true;
                self.beat_by(now);
            }
            LinkEvent::Down => self.link_is_up = false,
            LinkEvent::AddressChanged(mac) => self.radio.mac = mac,
            LinkEvent::MtuChanged(mtu) => self.radio.mtu = mtu,
            LinkEvent::ChannelBusy(percent) => return self.pace.note_busy(now, percent),
            LinkEvent::LanUp => {
                if !self.lan_is_up {
                    // Words that were under way have come since it was lost.
                    self.let_all_go(now);
                }
                self.lan_is_up = true;
                self.beat_by(now);
                if !self.is_leaving {
                    self.goodbyes.end();
                }
            }
            LinkEvent::LanDown => {
                self.lan_is_up = false;
                self.let_all_go(now);
                self.goodbyes.begin(now);
            }
        }
        self.drive(now, out);
    }

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.reassembly.expire(now, &mut self.counters);
        self.drive(now, out);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        Some(self.deadline.at)
    }

    fn deadline(&self) -> Option<Deadline> {
        Some(self.deadline)
    }

    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies) {
        self.is_leaving = true;
        self.goodbyes.begin(now);
        self.drive(now, out);
    }

    fn linger(&self) -> Duration {
        LINGER
    }

    fn snapshot(&self, now: Timestamp) -> Snapshot {
        self.look_inside(now)
    }

    fn forget_clients(&mut self, now: Timestamp, which: Option<Mac>, _: &mut Replies) -> usize {
        self.forget(now, which)
    }

    fn handle_position(&mut self, now: Timestamp, located: Option<Located>) {
        self.positions.locate(now, located);
    }

    fn pin_clients(&mut self, now: Timestamp, pin: Pin, out: &mut Replies) -> Result<usize, NoPin> {
        let pinned = self.pin(now, pin)?;
        self.drive(now, out);
        Ok(pinned)
    }

    fn handle_ping(&mut self, now: Timestamp, ping: Ping, out: &mut Replies) {
        self.ask_echo(now, ping, out);
    }

    fn poll_echo(&mut self) -> Option<Echoed> {
        self.echoes.poll()
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        let too_long = || self.radio.take_too_long().map(Event::TooLong);
        self.events.pop().or_else(too_long)
    }
}
