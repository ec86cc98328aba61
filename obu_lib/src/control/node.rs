//! The OBU: what it hears, what it does when time passes.

use std::time::Duration;

use node_lib::control::answer_scope::AnswerScope;
use node_lib::control::counters::Counters;
use node_lib::control::deadline::Deadline;
use node_lib::control::duplicates::Duplicates;
use node_lib::control::echo::Echoes;
use node_lib::control::event::{Attachment, Event, Events, REPORTS};
use node_lib::control::load::AirLoad;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::ping::{Echoed, Ping};
use node_lib::control::positions::{Located, Positions};
use node_lib::control::radio::Radio;
use node_lib::control::random::Random;
use node_lib::control::reassembly::Reassembly;
use node_lib::control::repeated::{LINGER, Repeated};
use node_lib::control::snapshot::{KnownRoute, Snapshot};
use node_lib::control::table::{TIDY_EVERY, Table};
use node_lib::control::token_bucket::TokenBucket;
use node_lib::messages::control::Control;
use node_lib::messages::control::probe::Probe;
use node_lib::messages::control::withdrawal::Withdrawal;
use node_lib::messages::data::Data;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, NodeId, Seq, Start, Timestamp};

use super::budget::Budget;
use super::children::Children;
use super::clients::{LocalClients, Noted};
use super::context::Context;
use super::flood_dedup::Floods;
use super::registration::{Flags, Registration};
use super::route::Route;
use super::solicitation::{Asked, Solicitation};
use super::timing;
use crate::control::link::floor::SignalFloor;
use crate::control::link::neighbour::Neighbours;
use crate::control::route::feasibility::Distance;
use crate::{Config, Settings};

mod attachment;
mod hand_over;
mod hearing;
mod inside;
mod probing;
mod registering;
mod weighed;

use attachment::Changing;
use hand_over::{Parting, Unsettled};

/// "There is no way through me" is said to a sender at most 50 times a second.
const COMPLAINTS: TokenBucket = TokenBucket::new(5, Duration::from_millis(20));

/// Probes of others are answered at most 500 times a second.
const ANSWERS: TokenBucket = TokenBucket::new(64, Duration::from_millis(2));

/// Neighbours silent for this long, and 30 intervals, are forgotten.
const NEIGHBOUR_AGE_MAX: Duration = Duration::from_secs(60);

/// Beside our own, we relay the heartbeats of so many RSUs, the nearest ones. Where there is an RSU
/// at each crossing the radio would be full of them otherwise. Whoever has an RSU among its nearest
/// hears of it all the same. For so has everybody on the shortest way to it, or those that are
/// nearer there would be nearer to whoever is behind as well.
const RSUS_RELAYED: usize = 2;

/// RSUs known at once. Beyond, the one with the oldest news goes of those nobody may count on us
/// for; a new one is refused if there is none.
const ROUTES_MAX: usize = 64;

/// Being called so much later than asked means that we were late ourselves.
const LATE_OURSELVES: Duration = Duration::from_millis(50);

/// Which RSU we send to, and through whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttachedVia {
    pub(super) rsu: NodeId,
    pub(super) upstream: Mac,
}

/// Control plane of one OBU. See the crate's documentation for its life.
///
/// ```
/// use node_lib::control::node::{Node, Replies};
/// use node_lib::messages::control::Control;
/// use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType};
/// # use node_lib::messages::{Cost, Rhythm, control::heartbeat::Heartbeat};
/// # use node_lib::{Boot, NodeId, Order, Seq};
/// use node_lib::{Mac, Timestamp};
/// use obu_lib::{Config, Obu};
///
/// # let heartbeat = Heartbeat {
/// #     rsu: NodeId([2, 0, 0, 0, 0, 9]),
/// #     order: Order { boot: Boot(1), seq: Seq(1) },
/// #     rhythm: Rhythm::each(100),
/// #     obus: 0,
/// #     sender: NodeId([2, 0, 0, 0, 0, 9]),
/// #     sender_boot: Boot(1), hello: 1,
/// #     via: NodeId::NONE,
/// #     cost: Cost(0),
/// #     mtu: 1500,
/// #     hop_limit: 31,
/// #     hops: 0, children: 0,
/// #     stride: 0,
/// #     position: None,
/// # };
/// let rsu = Mac([2, 0, 0, 0, 0, 9]);
/// let frame: Vec<u8> = (&Message {
///     to: Mac::BROADCAST,
///     from: rsu,
///     ethertype: ETHERTYPE_DEFAULT,
///     packet: PacketType::Control(Control::Heartbeat(heartbeat)),
/// }).into();
///
/// let mut obu = Obu::new(Config::new(Mac([2, 0, 0, 0, 0, 1])), Timestamp::ZERO);
/// let mut out = Replies::new();
/// // An RSU is heard. Whether it hears us is not known, so the OBU asks it.
/// obu.handle_wire(Timestamp::from_millis(10), &frame, &mut out);
/// while let Some(now) = obu.poll_timeout().filter(|at| *at < Timestamp::from_millis(500)) {
///     obu.handle_timeout(now, &mut out);
/// }
/// let asks_it = |frame: &[u8]| match Message::try_from(frame).unwrap().packet {
///     PacketType::Control(Control::Probe(probe)) => probe.asked == rsu.into(),
///     _ => false,
/// };
/// assert!(out.as_slice().iter().any(|reply| asks_it(&reply.frame())));
/// assert_eq!(obu.attachment(), None, "it has not answered yet");
/// ```
///
/// In a crowd most frames heard change nothing. What they look at comes first, and in this order in
/// memory, so that a simulation of hundreds of nodes finds it in few lines of the processor's
/// cache.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct Obu {
    pub(super) routes: Table<NodeId, Route>,
    /// When to come back. What for, [`Obu::due`], is seldom looked at.
    deadline: Timestamp,
    pub(super) attached: Option<AttachedVia>,
    pub(super) context: Context,
    // Looked at whenever something is to be done.
    due: &'static str,
    tidy_at: Timestamp,
    goodbyes: Repeated,
    reported: Option<Attachment>,
    changing: Changing,
    probe_candidates_at: Timestamp,
    parting: Option<Parting>,
    pub(super) solicitation: Solicitation,
    pub(super) registration: Registration,
    unsettled: Option<Unsettled>,
    // Seldom, or with clients' frames.
    answers: TokenBucket,
    answer_scope: AnswerScope,
    conflicts: TokenBucket,
    pub(super) complaints: TokenBucket,
    pub(super) children: Children,
    pub(super) duplicates: Duplicates,
    /// Frames that went another way, because the radio gave them up or their next hop was lost.
    pub(super) sent_again: Duplicates,
    /// Frames that the radio gave up, and that went the same way once more.
    pub(super) tried_again: Duplicates,
    pub(super) floods: Floods,
    pub(super) reassembly: Reassembly,
    pub(super) clients: LocalClients,
    pub(super) echoes: Echoes,
    pub(super) seq: Seq,
}

impl Obu {
    /// An OBU that starts `now`.
    pub fn new(config: Config, now: Timestamp) -> Self {
        let Start { id, radio_mac, radio_mtu, tap_mac, boot, seed } = config.start;
        let Settings { ethertype, pmtu_discovery, hello_history, cached_candidates, .. } =
            config.settings;
        let Settings { share_position, policy, thresholds, .. } = config.settings;
        let radio = Radio::new(id, boot, radio_mac, ethertype, radio_mtu)
            .with_pmtu_discovery(pmtu_discovery);
        // Drawn apart: what a node draws in its life does not depend on what it has budgets for.
        let mut paces = Random::new(!seed);
        let mut context = Context {
            radio,
            neighbours: Neighbours::new(),
            heard_lately: 0,
            random: Random::new(seed),
            floor: SignalFloor::default(),
            counters: Counters::default(),
            events: Events::default(),
            started: now,
            link_is_up: true,
            interval: timing::INTERVAL_DEFAULT,
            hops: None,
            last_relayed: None,
            is_leaving: false,
            grace_until: now,
            hello: 0,
            silent: Vec::new(),
            last: None,
            active_at: None,
            questions: Budget::of_questions(&mut paces),
            load: AirLoad::new(now),
            announcing: Budget::of_announcements(&mut paces),
            obus: 1,
            obus_at: now,
            cached_candidates,
            hello_history: u32::try_from(hello_history).unwrap_or(64).clamp(1, 64),
            policy,
            thresholds,
            positions: Positions::new(share_position),
        };
        let mut solicitation = Solicitation::default();
        solicitation.begin(&mut context, now);
        let clients = LocalClients::new(tap_mac, seed);
        let mut registration = Registration::new(&context, now);
        registration.set_clients(&clients.announced(), &context.radio, context.radio.said_mtu());
        Self {
            context,
            routes: Table::new(),
            attached: None,
            reported: None,
            changing: Changing::default(),
            parting: None,
            unsettled: None,
            registration,
            solicitation,
            children: Children::default(),
            duplicates: Duplicates::starting(now),
            sent_again: Duplicates::new(),
            tried_again: Duplicates::new(),
            reassembly: Reassembly::new(),
            floods: Floods::default(),
            clients,
            echoes: Echoes::default(),
            seq: Seq(0),
            complaints: COMPLAINTS,
            answers: ANSWERS,
            answer_scope: AnswerScope::default(),
            conflicts: REPORTS,
            probe_candidates_at: now,
            goodbyes: Repeated::default(),
            tidy_at: now + TIDY_EVERY,
            deadline: now,
            due: "start",
        }
    }

    /// Which RSU is used through which neighbour.
    pub fn attachment(&self) -> Option<Attachment> {
        let attached = self.attached?;
        let candidate = self.routes.get(&attached.rsu)?.upstream_candidate()?;
        Some(Attachment {
            rsu: attached.rsu,
            upstream: candidate.id,
            hops: candidate.hops_through(),
        })
    }

    pub(super) fn is_attached_to(&self, rsu: NodeId) -> bool {
        self.attached.is_some_and(|attached| attached.rsu == rsu)
    }

    /// The neighbour frames for this RSU go to: our own while we are attached to it, those of
    /// others in any case.
    pub fn upstream_for(&self, rsu: NodeId) -> Option<NodeId> {
        Some(self.routes.get(&rsu)?.upstream_candidate()?.id)
    }

    /// The best distance we ever advertised for this RSU: what our upstream advertised is better.
    pub fn advertised_for(&self, rsu: NodeId) -> Option<Distance> {
        self.routes.get(&rsu)?.advertised()
    }

    /// Goes on with another stream of randomness: for a search that compares states, in which the
    /// same state must have the same luck.
    pub fn reseed(&mut self, seed: u64) {
        self.context.random = Random::new(seed);
    }

    /// Does whatever is due, and says when to come back.
    fn drive(&mut self, now: Timestamp, out: &mut Replies) {
        // Whatever comes first after a process stood still, and as a rule that is a frame that
        // waited.
        if now.since(self.deadline) > LATE_OURSELVES {
            self.context.grace_until = now + LATE_OURSELVES;
        }
        if now >= self.tidy_at {
            self.tidy(now);
        }
        self.drive_routes(now, out);
        for mac in std::mem::take(&mut self.context.silent) {
            for route in self.routes.values_mut() {
                route.leave_silent(now, mac);
            }
            self.drive_routes(now, out);
        }
        self.choose_attachment(now);
        if self.context.policy.rerouting {
            let ours = self.attached.map(|attached| attached.rsu);
            for (rsu, route) in &mut self.routes {
                let is_ours = Some(*rsu) == ours;
                route.reroute(&mut self.context, &mut self.sent_again, now, is_ours, out);
            }
        }
        self.probe_candidates(now, out);
        self.tell_second_way(now, out);
        self.register(now, out);
        self.settle(now, out);
        self.ask_and_answer(now, out);
        self.say_goodbye(now, out);
        let next = self.next_deadline(now);
        (self.deadline, self.due) = (next.at, next.reason);
    }

    fn drive_routes(&mut self, now: Timestamp, out: &mut Replies) {
        let ours = self.attached.map(|attached| attached.rsu);
        self.context.hops = self.attachment().map(|to| to.hops);
        if let Some(route) = ours.and_then(|rsu| self.routes.get(&rsu)) {
            self.context.interval = route.interval();
        }
        self.context.last_relayed = self.last_relayed(ours);
        for (rsu, route) in &mut self.routes {
            route.drive(&mut self.context, now, Some(*rsu) == ours, out);
        }
    }

    /// The farthest of the [`RSUS_RELAYED`] nearest RSUs, ours not counted. Of RSUs equally near
    /// the lowest ids come first, so that neighbours choose the same.
    fn last_relayed(&self, ours: Option<NodeId>) -> Option<(u8, NodeId)> {
        if self.routes.len() <= RSUS_RELAYED {
            return None;
        }
        let mut nearest = [(u8::MAX, NodeId::NONE); RSUS_RELAYED];
        for (rsu, route) in &self.routes {
            let Some(hops) = route.hops().filter(|_| Some(*rsu) != ours) else { continue };
            let mut next = (hops, *rsu);
            for kept in &mut nearest {
                if next < *kept {
                    std::mem::swap(kept, &mut next);
                }
            }
        }
        nearest.last().copied().filter(|(hops, _)| *hops < u8::MAX)
    }

    fn tidy(&mut self, now: Timestamp) {
        self.tidy_at = now + TIDY_EVERY;
        self.context.neighbours.expire(now, NEIGHBOUR_AGE_MAX.max(self.context.interval * 30));
        self.context.count_neighbours(now);
        self.children.expire(now);
        if self.clients.expire(now) {
            self.registration.note_clients_changed(now);
        }
        self.routes.retain(|_, route| !route.is_forgettable(now));
        for (rsu, route) in &mut self.routes {
            route.count_children(self.children.count_towards(now, *rsu));
            route.tidy(now);
        }
        self.context.load.turn_to(now);
        self.context.age_obus(now);
        self.context.positions.tidy(now);
    }

    fn ask_and_answer(&mut self, now: Timestamp, out: &mut Replies) {
        if !self.context.link_is_up {
            return;
        }
        if self.wants_a_way(now)
            && self.solicitation.is_due(now)
            && self.context.questions.take(now)
            && let Some(nonce) = self.solicitation.question(&mut self.context, now)
        {
            let Radio { id: sender, boot: sender_boot, .. } = self.context.radio;
            let (rsu, asked) = (NodeId::NONE, NodeId::NONE);
            let probe = Probe { sender, sender_boot, nonce, rsu, asked };
            self.context.radio.control(Mac::BROADCAST, probe, out, &mut self.context.counters);
        }
        while let Some(Asked { asker, nonce }) = self.solicitation.due_answer(now) {
            self.answer(now, Mac::BROADCAST, asker, nonce, NodeId::NONE, out);
        }
    }

    /// There is no way, and asking for one may help.
    fn wants_a_way(&self, now: Timestamp) -> bool {
        let knows_one =
            || self.routes.values().any(|route| route.waits_out_quiet(&self.context, now));
        self.attached.is_none() && !self.context.is_leaving && !knows_one()
    }

    fn say_goodbye(&mut self, now: Timestamp, out: &mut Replies) {
        if !self.goodbyes.take(now) {
            return;
        }
        let goodbye = Withdrawal {
            sender: self.context.id(),
            sender_boot: self.context.radio.boot,
            goodbye: true,
            rsus: Default::default(),
        };
        self.context.radio.control(Mac::BROADCAST, goodbye, out, &mut self.context.counters);
        if let Some(AttachedVia { rsu, upstream }) = self.attached {
            self.say(now, rsu, upstream, Flags { goodbye: true, ..Flags::default() }, out);
        }
    }

    fn next_deadline(&self, now: Timestamp) -> Deadline {
        let ours = self.attached.map(|attached| attached.rsu);
        let mut next = Deadline::new(self.tidy_at, "tidy tables");
        for (rsu, route) in &self.routes {
            next = next.or(route.deadline(&self.context, now, Some(*rsu) == ours));
        }
        if self.context.link_is_up {
            let may_ask = self.wants_a_way(now).then(|| self.context.questions.next_at());
            next = next.or(self.solicitation.deadline(may_ask));
        }
        next = next.or_at(self.goodbyes.due_at(), "say goodbye");
        if self.attached.is_some() {
            if self.context.link_is_up {
                next = next.or_at(self.probe_candidates_at, "probe candidates in turn");
            }
            if !self.context.is_leaving {
                next = next.or(self.registration_deadline());
            }
            next = next.or(self.changing_deadline(now));
        }
        next.or_at(self.settle_at(), "leave the last RSU").after(now)
    }

    /// Something on the data path needs attention earlier than planned.
    pub(super) fn wake_at(&mut self, deadline: Deadline) {
        if deadline.at < self.deadline {
            (self.deadline, self.due) = (deadline.at, deadline.reason);
        }
    }
}

impl Node for Obu {
    fn id(&self) -> NodeId {
        self.context.id()
    }

    fn handle_signal(&mut self, now: Timestamp, from: Mac, dbm: i8) {
        if let Some(neighbour) = self.context.neighbours.get_mut(from) {
            neighbour.note_signal(now, dbm);
            self.context.floor.note(now, dbm);
        }
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let radio = &self.context.radio;
        let Some(heard) = radio.hear(frame, &mut self.context.counters) else { return };
        let (from, was_for_all) = (heard.from, heard.was_for_all);
        if let Some(data) = heard.data() {
            return match data {
                Data::Upstream(data) if !was_for_all => self.relay_up(now, from, &data, out),
                Data::Upstream(_) => {}
                Data::Downstream(data) => self.take_from_above(now, from, &data, out),
            };
        }
        if let Some(fragment) = heard.fragment() {
            return self.take_fragment(now, frame, &fragment, out);
        }
        let Some(control) = heard.control(&mut self.context.counters) else { return };
        match &control {
            Control::Heartbeat(heartbeat) => {
                self.context.load.note(now, heartbeat.stride);
                if !self.hear_heartbeat(now, from, heartbeat) && now < self.deadline {
                    return;
                }
            }
            Control::Probe(probe) => self.hear_probe(now, from, probe, out),
            Control::ProbeAnswer(answer) => self.hear_answer(now, from, answer),
            Control::Withdrawal(withdrawal) => self.hear_withdrawal(now, from, withdrawal),
            // The rest has one addressee and is forwarded by nobody else.
            _ if was_for_all => self.context.counters.drop_foreign += 1,
            Control::HeartbeatReply(reply) => self.relay_reply(now, from, reply, out),
            Control::Announcement(a) => self.relay_announcement(now, from, frame, a, out),
            Control::AnnouncementAck(ack) => self.hear_ack(now, from, ack, out),
            Control::Echo(echo) => return self.hear_echo(now, from, echo, out),
        }
        self.drive(now, out);
    }

    fn handle_unacknowledged(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.send_again(now, frame, out);
    }

    fn wants_unacknowledged(&self) -> bool {
        true
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.take_from_tap(now, frame, out);
    }

    fn handle_clients(&mut self, now: Timestamp, clients: &[Remembered], out: &mut Replies) {
        let mut has_news = false;
        for remembered in clients {
            let Noted { is_news, evicted } = self.clients.remember(now, *remembered);
            self.context.counters.evicted += evicted;
            has_news |= is_news;
        }
        if !has_news {
            return;
        }
        if self.attached.is_none() {
            // Before the first announcement, which is to name them.
            let mtu = self.context.radio.said_mtu();
            self.registration.set_clients(&self.clients.announced(), &self.context.radio, mtu);
        } else {
            self.registration.note_clients_changed(now);
        }
        self.drive(now, out);
    }

    fn clients(&self, now: Timestamp) -> Vec<Remembered> {
        self.clients.remembered(now)
    }

    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies) {
        match event {
            LinkEvent::Up => {
                self.context.link_is_up = true;
                self.solicitation.begin(&mut self.context, now);
            }
            LinkEvent::Down => {
                self.context.link_is_up = false;
                self.context.neighbours.clear();
                self.context.heard_lately = 0;
                for route in self.routes.values_mut() {
                    route.link_down(now);
                }
            }
            LinkEvent::AddressChanged(mac) => {
                self.context.radio.mac = mac;
                if self.attached.is_some() {
                    self.registration.announce_to_all(now);
                }
                // Those behind us are reached through us, at whichever RSU they are.
                self.registration.tell_relayed(now);
            }
            LinkEvent::MtuChanged(mtu) => {
                self.context.radio.mtu = mtu;
                self.registration.note_clients_changed(now);
            }
            // Who has nobody behind it may still relay for others.
            LinkEvent::LanUp | LinkEvent::LanDown => {}
            LinkEvent::ChannelBusy(_) => return,
        }
        self.drive(now, out);
    }

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.reassembly.expire(now, &mut self.context.counters);
        self.drive(now, out);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        Some(self.deadline)
    }

    fn deadline(&self) -> Option<Deadline> {
        Some(Deadline::new(self.deadline, self.due))
    }

    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies) {
        self.context.is_leaving = true;
        self.goodbyes.begin(now);
        self.drive(now, out);
    }

    fn linger(&self) -> Duration {
        LINGER
    }

    fn upstream_for(&self, rsu: NodeId) -> Option<NodeId> {
        Self::upstream_for(self, rsu)
    }

    fn candidates(&self, now: Timestamp) -> usize {
        let route = self.attached.and_then(|attached| self.routes.get(&attached.rsu));
        route.map_or(0, |route| route.candidates_in_reach(&self.context, now))
    }

    fn snapshot(&self, now: Timestamp) -> Snapshot {
        self.look_inside(now)
    }

    fn routes(&self, now: Timestamp) -> Vec<KnownRoute> {
        self.look_at_routes(now)
    }

    fn forget_clients(&mut self, now: Timestamp, which: Option<Mac>, out: &mut Replies) -> usize {
        let forgotten = self.forget(now, which);
        self.drive(now, out);
        forgotten
    }

    fn handle_position(&mut self, now: Timestamp, located: Option<Located>) {
        self.context.positions.locate(now, located);
    }

    fn handle_ping(&mut self, now: Timestamp, ping: Ping, out: &mut Replies) {
        self.ask_echo(now, ping, out);
    }

    fn poll_echo(&mut self) -> Option<Echoed> {
        self.echoes.poll()
    }

    fn counters(&self) -> &Counters {
        &self.context.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        let too_long = || self.context.radio.take_too_long().map(Event::TooLong);
        self.context.events.pop().or_else(too_long)
    }
}
