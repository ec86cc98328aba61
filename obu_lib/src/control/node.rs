//! The OBU: what it hears, what it does when time passes.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::control::candidates::Advert;
use node_lib::control::counters::Counters;
use node_lib::control::downstream::{Downstream, Path};
use node_lib::control::duplicates::Duplicates;
use node_lib::control::event::{Attachment, Cause, Event, Events};
use node_lib::control::feasibility::Distance;
use node_lib::control::neighbour::{Heard, Neighbours};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::radio::Radio;
use node_lib::control::random::Random;
use node_lib::control::token_bucket::TokenBucket;
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AnnouncementAck;
use node_lib::messages::control::announcement::Announcement;
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::probe::{Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::Withdrawal;
use node_lib::messages::data::Data;
use node_lib::messages::packet_type::PacketType;
use node_lib::messages::{Cost, MAX_HOPS};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Timestamp};

use super::clients::LocalClients;
use super::core::Core;
use super::floods::Floods;
use super::registration::Registration;
use super::route::{Loss, Route, is_better};
use super::solicitation::Solicitation;
use super::timing;
use crate::Config;

/// RSUs known at once. Beyond, the one with the oldest news goes.
const ROUTES_MAX: usize = 64;

/// Changing RSU costs an announcement and a flood on the LAN: another RSU must be so much cheaper
/// than another upstream to the same one.
const RSU_CHANGE_COST: Cost = Cost(32);

/// "There is no way through me" is said to a sender at most 50 times a second.
const COMPLAINTS: TokenBucket = TokenBucket::new(5, Duration::from_millis(20));

/// Probes of others are answered at most 500 times a second.
const ANSWERS: TokenBucket = TokenBucket::new(64, Duration::from_millis(2));

/// Candidates are asked whether they hear us at most 200 times a second while there is no way.
const SEARCHES: TokenBucket = TokenBucket::new(32, Duration::from_millis(5));

/// Tables are looked through for old entries this often.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Neighbours silent for this long are forgotten.
const NEIGHBOUR_AGE_MAX: Duration = Duration::from_secs(60);

/// Being called so much later than asked means that we were late ourselves.
const LATE_OURSELVES: Duration = Duration::from_millis(50);

/// Which RSU we send to, and through whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attached {
    pub(super) rsu: NodeId,
    pub(super) upstream: Mac,
}

/// Control plane of one OBU. See the crate's documentation for its life.
#[derive(Debug)]
pub struct Obu {
    pub(super) core: Core,
    pub(super) routes: BTreeMap<NodeId, Route>,
    pub(super) attached: Option<Attached>,
    reported: Option<Attachment>,
    better_rsu: Option<(NodeId, Timestamp)>,
    pub(super) registration: Registration,
    solicitation: Solicitation,
    pub(super) downstream: Downstream,
    pub(super) duplicates: Duplicates,
    pub(super) floods: Floods,
    pub(super) clients: LocalClients,
    pub(super) seq: Seq,
    pub(super) complaints: TokenBucket,
    answers: TokenBucket,
    probe_candidates_at: Timestamp,
    goodbyes_left: u8,
    goodbye_at: Timestamp,
    tidy_at: Timestamp,
    deadline: Timestamp,
}

impl Obu {
    /// An OBU that starts `now`.
    pub fn new(config: Config, now: Timestamp) -> Self {
        let radio = Radio {
            id: config.id,
            boot: config.boot,
            mac: config.radio_mac,
            ethertype: config.ethertype,
            mtu: config.radio_mtu,
        };
        let mut core = Core {
            radio,
            neighbours: Neighbours::new(),
            random: Random::new(config.seed),
            counters: Counters::default(),
            events: Events::default(),
            started: now,
            link_is_up: true,
            is_leaving: false,
            grace_until: now,
            hello: 0,
            silent: Vec::new(),
            searches: SEARCHES,
            cached_candidates: config.cached_candidates,
            hello_history: u32::try_from(config.hello_history).unwrap_or(64).clamp(1, 64),
        };
        let mut solicitation = Solicitation::default();
        solicitation.begin(&mut core, now);
        let clients = LocalClients::new(config.tap_mac, config.seed);
        let mut registration = Registration::new(&core, now);
        registration.set_clients(clients.announced(), core.radio.mtu);
        Self {
            core,
            routes: BTreeMap::new(),
            attached: None,
            reported: None,
            better_rsu: None,
            registration,
            solicitation,
            downstream: Downstream::new(),
            duplicates: Duplicates::new(),
            floods: Floods::default(),
            clients,
            seq: Seq(0),
            complaints: COMPLAINTS,
            answers: ANSWERS,
            probe_candidates_at: now,
            goodbyes_left: 0,
            goodbye_at: now,
            tidy_at: now + TIDY_EVERY,
            deadline: now,
        }
    }

    /// Which RSU is used through which neighbour.
    pub fn attachment(&self) -> Option<Attachment> {
        let attached = self.attached?;
        let candidate = self.routes.get(&attached.rsu)?.parent_candidate()?;
        Some(Attachment {
            rsu: attached.rsu,
            upstream: candidate.id,
            hops: candidate.advert.distance.hops.saturating_add(1),
        })
    }

    fn hear_heartbeat(&mut self, now: Timestamp, from: Mac, heartbeat: &Heartbeat) {
        let Some(us) = self.hear(now, from, heartbeat.sender, heartbeat.sender_boot) else {
            return;
        };
        if let Some(neighbour) = self.core.neighbours.get_mut(from) {
            neighbour.note_hello(heartbeat.hello);
            if heartbeat.via == us {
                // Only a node that hears us names us.
                neighbour.note_proof(now);
            }
        }
        self.hear_advert(
            now,
            from,
            heartbeat.sender,
            heartbeat.rsu,
            Advert {
                distance: Distance { order: heartbeat.order, hops: heartbeat.hops },
                cost: heartbeat.cost,
                hop_limit: heartbeat.hop_limit,
                via: heartbeat.via,
                path: heartbeat.path,
            },
            Duration::from_millis(u64::from(heartbeat.interval_ms)),
        );
    }

    /// A control frame of `id` came. `None` if it must be ignored; else who we are.
    fn hear(&mut self, now: Timestamp, from: Mac, id: NodeId, boot: Boot) -> Option<NodeId> {
        let us = self.core.id();
        if id == us {
            self.core.counters.drop_foreign += 1;
            self.core.event(Event::IdConflict { mac: from });
            return None;
        }
        let (heard, _) = self.core.neighbours.hear(now, from, id, boot);
        self.core.counters.ctl_rx_frames += 1;
        match heard {
            Heard::Stale => return None,
            Heard::Restarted => {
                for route in self.routes.values_mut() {
                    route.drop_candidate(now, from, Cause::Restarted);
                }
            }
            Heard::Known | Heard::New => {}
        }
        Some(us)
    }

    fn hear_advert(
        &mut self,
        now: Timestamp,
        from: Mac,
        id: NodeId,
        rsu: NodeId,
        advert: Advert,
        interval: Duration,
    ) {
        if rsu == self.core.id() || advert.distance.hops >= MAX_HOPS {
            return;
        }
        if !self.routes.contains_key(&rsu) {
            self.make_room_for_a_route();
            self.routes.insert(rsu, Route::new(rsu, interval, now));
        }
        let Some(route) = self.routes.get_mut(&rsu) else { return };
        if advert.via == self.core.radio.id {
            route.note_child(now);
        }
        let boot_before = route.newest().boot;
        route.hear(now, from, id, advert, interval);
        let has_restarted = boot_before != Boot(0) && route.newest().boot > boot_before;
        let Some(attached) = self.attached.filter(|attached| attached.rsu == rsu) else { return };
        if attached.upstream == from {
            self.registration.note_heartbeat(now, advert.distance.order.seq);
        }
        // An RSU that restarted forgot us; when a relay between us and it was replaced, the way back
        // to us leads to the old one.
        if has_restarted || route.take_path_changed() {
            self.registration.announce(now);
        }
    }

    fn make_room_for_a_route(&mut self) {
        if self.routes.len() < ROUTES_MAX {
            return;
        }
        let used = self.attached.map(|attached| attached.rsu);
        let oldest = self
            .routes
            .iter()
            .filter(|(rsu, _)| Some(**rsu) != used)
            .min_by_key(|(_, route)| route.newest_at())
            .map(|(rsu, _)| *rsu);
        if let Some(oldest) = oldest {
            self.routes.remove(&oldest);
            self.core.counters.evicted += 1;
        }
    }

    fn hear_probe(
        &mut self,
        now: Timestamp,
        from: Mac,
        was_for_all: bool,
        probe: &Probe,
        out: &mut Replies,
    ) {
        if self.hear(now, from, probe.sender, probe.sender_boot).is_none() {
            return;
        }
        if was_for_all {
            if self.attached.is_some() && !self.core.is_leaving {
                self.solicitation.hear_question(&mut self.core, now, probe.sender, probe.nonce);
            }
            return;
        }
        if !self.answers.take(now) {
            self.core.counters.drop_rate_limit += 1;
            return;
        }
        self.answer(now, from, probe.sender, probe.nonce, probe.rsu, out);
    }

    fn answer(
        &mut self,
        now: Timestamp,
        to: Mac,
        asker: NodeId,
        nonce: u32,
        asked: NodeId,
        out: &mut Replies,
    ) {
        let ours = self.attached.map(|attached| attached.rsu);
        let rsu = if asked == NodeId::NONE { ours } else { Some(asked) };
        let Some(rsu) = rsu else { return };
        let core = &self.core;
        let route = self.routes.get_mut(&rsu).and_then(|route| route.advertise(core, now));
        if to == Mac::BROADCAST && route.is_none() {
            return;
        }
        let (sender, sender_boot) = (self.core.id(), self.core.radio.boot);
        let answer = ProbeAnswer { sender, sender_boot, asker, nonce, rsu, route };
        self.core.radio.control(to, answer, out, &mut self.core.counters);
    }

    fn hear_answer(&mut self, now: Timestamp, from: Mac, answer: &ProbeAnswer) {
        let Some(us) = self.hear(now, from, answer.sender, answer.sender_boot) else { return };
        self.solicitation.hear_answer(answer.asker, answer.nonce);
        match answer.route {
            Some(route) => self.hear_advert(
                now,
                from,
                answer.sender,
                answer.rsu,
                Advert {
                    distance: Distance { order: route.order, hops: route.hops },
                    cost: route.cost,
                    hop_limit: route.hop_limit,
                    via: route.via,
                    path: route.path,
                },
                Duration::from_millis(u64::from(route.interval_ms)),
            ),
            None => {
                if let Some(route) = self.routes.get_mut(&answer.rsu) {
                    route.drop_candidate(now, from, Cause::Withdrawn);
                }
            }
        }
        if answer.asker != us {
            return;
        }
        let is_solicited = self.solicitation.is_ours(answer.nonce);
        let Some(neighbour) = self.core.neighbours.get_mut(from) else { return };
        let is_answer = neighbour.note_answer(now, answer.nonce);
        if is_solicited {
            neighbour.note_proof(now);
        }
        if is_answer || is_solicited {
            for route in self.routes.values_mut() {
                route.note_proof(from);
            }
        }
    }

    fn hear_withdrawal(&mut self, now: Timestamp, from: Mac, withdrawal: &Withdrawal<'_>) {
        if self.hear(now, from, withdrawal.sender, withdrawal.sender_boot).is_none() {
            return;
        }
        if withdrawal.goodbye {
            for route in self.routes.values_mut() {
                route.note_goodbye(from, withdrawal.sender);
            }
            return;
        }
        for rsu in withdrawal.rsus.iter() {
            if let Some(route) = self.routes.get_mut(&rsu) {
                route.drop_candidate(now, from, Cause::Withdrawn);
            }
        }
    }

    /// Somebody behind us answers an RSU: we learn the way back and pass it on.
    fn relay_reply(
        &mut self,
        now: Timestamp,
        from: Mac,
        reply: &HeartbeatReply,
        out: &mut Replies,
    ) {
        let Some((hop_limit, hops)) = self.next_hop(reply.origin, reply.hop_limit, reply.hops)
        else {
            return;
        };
        if reply.goodbye {
            self.downstream.retire(now, reply.origin);
        } else {
            self.learn_path(now, reply.origin, from, reply.rsu, reply.order, hops);
        }
        let Some(to) = self.upstream_for_others(now, reply.rsu, from, out) else { return };
        let relayed = HeartbeatReply { hop_limit, hops, ..*reply };
        self.core.radio.control(to, relayed, out, &mut self.core.counters);
    }

    fn relay_announcement(
        &mut self,
        now: Timestamp,
        from: Mac,
        announcement: &Announcement<'_>,
        out: &mut Replies,
    ) {
        let next = self.next_hop(announcement.origin, announcement.hop_limit, announcement.hops);
        let Some((hop_limit, hops)) = next else { return };
        let (origin, rsu) = (announcement.origin, announcement.rsu);
        self.learn_path(now, origin, from, rsu, announcement.order, hops);
        let Some(to) = self.upstream_for_others(now, rsu, from, out) else { return };
        let relayed = Announcement { hop_limit, hops, ..*announcement };
        self.core.radio.control(to, relayed, out, &mut self.core.counters);
    }

    /// Hop limit and hops after us; `None`, and counted, when it must go no further.
    fn next_hop(&mut self, origin: NodeId, hop_limit: u8, hops: u8) -> Option<(u8, u8)> {
        if origin == self.core.id() {
            self.core.counters.drop_reflected += 1;
            return None;
        }
        let next = hop_limit.checked_sub(1).zip(hops.checked_add(1));
        if next.is_none() {
            self.core.counters.drop_hop_limit += 1;
        }
        next
    }

    fn learn_path(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        next: Mac,
        rsu: NodeId,
        order: Order,
        hops: u8,
    ) {
        let path = Path { order, hops, next, rsu, seen: now };
        let (_, evicted) = self.downstream.learn(obu, path);
        self.core.counters.evicted += evicted;
    }

    fn hear_ack(&mut self, now: Timestamp, from: Mac, ack: &AnnouncementAck, out: &mut Replies) {
        if ack.destination == self.core.id() {
            if self.attached.is_some_and(|attached| attached.rsu == ack.rsu) {
                self.registration.handle_ack(&mut self.core, now, ack);
            }
            return;
        }
        let Some(hop_limit) = ack.hop_limit.checked_sub(1) else {
            self.core.counters.drop_hop_limit += 1;
            return;
        };
        match self.downstream.path(now, ack.destination) {
            Some(path) if path.next != from => {
                let relayed = AnnouncementAck { hop_limit, ..*ack };
                self.core.radio.control(path.next, relayed, out, &mut self.core.counters);
            }
            _ => self.core.counters.drop_no_route += 1,
        }
    }

    /// Does whatever is due, and says when to come back.
    fn drive(&mut self, now: Timestamp, out: &mut Replies) {
        if now >= self.tidy_at {
            self.tidy(now);
        }
        self.drive_routes(now, out);
        for mac in std::mem::take(&mut self.core.silent) {
            for route in self.routes.values_mut() {
                route.leave_silent(now, mac);
            }
            self.drive_routes(now, out);
        }
        self.choose_attachment(now);
        self.probe_candidates(now, out);
        self.register(now, out);
        self.ask_and_answer(now, out);
        self.say_goodbye(now, out);
        self.deadline = self.next_deadline(now);
    }

    fn drive_routes(&mut self, now: Timestamp, out: &mut Replies) {
        let ours = self.attached.map(|attached| attached.rsu);
        for (rsu, route) in &mut self.routes {
            route.drive(&mut self.core, now, Some(*rsu) == ours, out);
        }
    }

    fn tidy(&mut self, now: Timestamp) {
        self.tidy_at = now + TIDY_EVERY;
        self.core.neighbours.expire(now, NEIGHBOUR_AGE_MAX);
        self.downstream.expire(now);
        if self.clients.expire(now) {
            self.registration.note_clients_changed(now);
        }
        self.routes.retain(|_, route| !route.is_forgettable(now));
    }

    /// Chooses the RSU, and notices when the upstream changed.
    fn choose_attachment(&mut self, now: Timestamp) {
        let core = &self.core;
        let rank = |route: &Route| route.rank(core, now);
        let current = self.attached.map(|attached| attached.rsu);
        let stays = current.and_then(|rsu| Some((rsu, self.routes.get(&rsu).and_then(rank)?)));
        let others = self.routes.iter().filter(|(rsu, _)| Some(**rsu) != current);
        let best = others.filter_map(|(rsu, route)| Some((rank(route)?, *rsu))).min();
        let mut cause = Cause::First;
        let chosen = match (stays, best) {
            (None, best) => best.map(|(_, rsu)| rsu),
            (Some((rsu, _)), None) => Some(rsu),
            (Some((rsu, ours)), Some((theirs, other))) => {
                let is_better = !theirs.is_late
                    && is_better(theirs.cost.saturating_add(RSU_CHANGE_COST), ours.cost);
                let since = match self.better_rsu {
                    Some((candidate, since)) if candidate == other && is_better => Some(since),
                    _ => is_better.then_some(now),
                };
                self.better_rsu = since.map(|since| (other, since));
                let settled = self
                    .routes
                    .get(&rsu)
                    .is_none_or(|route| now.since(route.changed_at()) >= timing::SETTLE_FOR);
                let is_leaving = self
                    .routes
                    .get(&rsu)
                    .and_then(Route::parent_candidate)
                    .is_some_and(|candidate| candidate.leaving);
                if is_leaving {
                    cause = Cause::Goodbye;
                    Some(other)
                } else if settled
                    && since.is_some_and(|since| now.since(since) >= timing::BETTER_FOR)
                {
                    cause = Cause::Better;
                    Some(other)
                } else {
                    Some(rsu)
                }
            }
        };
        let upstream = |rsu: NodeId| self.routes.get(&rsu).and_then(Route::parent);
        let chosen = chosen.and_then(|rsu| Some(Attached { rsu, upstream: upstream(rsu)? }));
        // A lost parent is reported once, whoever takes its place.
        let loss = current.and_then(|rsu| self.routes.get_mut(&rsu)).and_then(Route::take_loss);
        if chosen != self.attached {
            self.attach(now, chosen, loss, cause);
        }
    }

    fn attach(&mut self, now: Timestamp, to: Option<Attached>, loss: Option<Loss>, cause: Cause) {
        let from = self.reported;
        self.attached = to;
        let attachment = self.attachment();
        self.reported = attachment;
        self.better_rsu = None;
        let cause = loss.map_or(cause, |loss| loss.cause);
        let silence = loss.map_or(Duration::ZERO, |loss| loss.silence);
        self.core.counters.upstream_changes += 1;
        if from.map(|from| from.rsu) != attachment.map(|to| to.rsu) {
            self.core.counters.rsu_changes += 1;
        }
        self.core.event(Event::UpstreamChanged { from, to: attachment, cause, silence });
        match to {
            Some(to) => {
                if let Some(route) = self.routes.get_mut(&to.rsu) {
                    let interval = route.interval();
                    let seq = route.newest().seq;
                    self.registration.begin(&mut self.core, now, timing::reply_every(interval));
                    self.registration.note_heartbeat(now, seq);
                }
            }
            None => {
                self.registration.end();
                self.solicitation.begin(&mut self.core, now);
            }
        }
    }

    /// Keeps the best candidates proven, and the link to the upstream measured.
    fn probe_candidates(&mut self, now: Timestamp, out: &mut Replies) {
        if now < self.probe_candidates_at || !self.core.link_is_up {
            return;
        }
        let Some(attached) = self.attached else { return };
        let Some(route) = self.routes.get(&attached.rsu) else { return };
        let every = timing::probe_candidates_every(route.interval());
        self.probe_candidates_at = now + self.core.random.jitter(every, 25);
        // The upstream, the best beside it, and the upstreams towards other RSUs.
        let mut asked = vec![(attached.upstream, attached.rsu)];
        asked.extend(route.ready(&self.core, now).into_iter().map(|mac| (mac, attached.rsu)));
        let others = self.routes.iter().filter(|(rsu, _)| **rsu != attached.rsu);
        for (rsu, route) in others.take(OTHER_RSUS_READY) {
            let best = route.parent().or_else(|| route.ready(&self.core, now).first().copied());
            if let Some(mac) = best.filter(|mac| asked.iter().all(|(known, _)| known != mac)) {
                asked.push((mac, *rsu));
            }
        }
        for (mac, rsu) in asked {
            self.core.probe(now, mac, rsu, out);
        }
    }

    fn register(&mut self, now: Timestamp, out: &mut Replies) {
        if self.registration.wants_clients(now) {
            self.registration.set_clients(self.clients.announced(), self.core.radio.mtu);
            if self.attached.is_some() {
                self.registration.announce(now);
            }
        }
        let Some(attached) = self.attached else { return };
        if self.core.is_leaving {
            return;
        }
        let Some(route) = self.routes.get(&attached.rsu) else { return };
        let every = timing::reply_every(route.interval());
        let Attached { rsu, upstream } = attached;
        self.registration.drive(&mut self.core, now, rsu, upstream, every, out);
    }

    fn ask_and_answer(&mut self, now: Timestamp, out: &mut Replies) {
        if !self.core.link_is_up {
            return;
        }
        if self.attached.is_none()
            && !self.core.is_leaving
            && let Some(nonce) = self.solicitation.question(&mut self.core, now)
        {
            let (sender, sender_boot) = (self.core.id(), self.core.radio.boot);
            let probe = Probe { sender, sender_boot, nonce, rsu: NodeId::NONE };
            self.core.radio.control(Mac::BROADCAST, probe, out, &mut self.core.counters);
        }
        while let Some((asker, nonce)) = self.solicitation.due_answer(now) {
            self.answer(now, Mac::BROADCAST, asker, nonce, NodeId::NONE, out);
        }
    }

    fn say_goodbye(&mut self, now: Timestamp, out: &mut Replies) {
        if self.goodbyes_left == 0 || now < self.goodbye_at {
            return;
        }
        self.goodbyes_left -= 1;
        self.goodbye_at = now + timing::SAID_EVERY;
        let goodbye = Withdrawal {
            sender: self.core.id(),
            sender_boot: self.core.radio.boot,
            goodbye: true,
            rsus: Default::default(),
        };
        self.core.radio.control(Mac::BROADCAST, goodbye, out, &mut self.core.counters);
        if let Some(Attached { rsu, upstream }) = self.attached {
            self.registration.reply(&mut self.core, now, rsu, upstream, true, out);
        }
    }

    fn next_deadline(&self, now: Timestamp) -> Timestamp {
        let ours = self.attached.map(|attached| attached.rsu);
        let mut next = self.tidy_at;
        for (rsu, route) in &self.routes {
            next = next.min(route.deadline(&self.core, now, Some(*rsu) == ours));
        }
        let wants_a_way = self.attached.is_none() && !self.core.is_leaving;
        if self.core.link_is_up
            && let Some(at) = self.solicitation.deadline(wants_a_way)
        {
            next = next.min(at);
        }
        if self.goodbyes_left > 0 {
            next = next.min(self.goodbye_at);
        }
        if self.attached.is_some() {
            next = next.min(self.probe_candidates_at);
            if !self.core.is_leaving {
                next = next.min(self.registration.deadline());
            }
            if let Some((_, since)) = self.better_rsu {
                next = next.min(since + timing::BETTER_FOR);
            }
        }
        // Never before now + 1 µs, or a driver would spin on something that cannot be done yet.
        next.max(now + Duration::from_micros(1))
    }

    /// Something on the data path needs attention earlier than planned.
    pub(super) fn wake_at(&mut self, at: Timestamp) {
        self.deadline = self.deadline.min(at);
    }

    pub(super) fn wake_by_route(&mut self, now: Timestamp, rsu: NodeId) {
        if let Some(route) = self.routes.get(&rsu) {
            let at = now + timing::late_after(route.interval());
            self.deadline = self.deadline.min(at);
        }
    }
}

/// Other RSUs whose best neighbour is kept proven.
const OTHER_RSUS_READY: usize = 3;

impl Node for Obu {
    fn id(&self) -> NodeId {
        self.core.id()
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let radio = &self.core.radio;
        let Some(message) = radio.parse(frame, &mut self.core.counters) else { return };
        let from = message.from;
        let was_for_all = message.to.is_group();
        match &message.packet {
            PacketType::Data(Data::Upstream(data)) => {
                if !was_for_all {
                    self.relay_up(now, from, data, out);
                }
                return;
            }
            PacketType::Data(Data::Downstream(data)) => {
                self.take_from_above(now, from, data, out);
                return;
            }
            PacketType::Control(control) => match control {
                Control::Heartbeat(heartbeat) => self.hear_heartbeat(now, from, heartbeat),
                Control::Probe(probe) => self.hear_probe(now, from, was_for_all, probe, out),
                Control::ProbeAnswer(answer) => self.hear_answer(now, from, answer),
                Control::Withdrawal(withdrawal) => self.hear_withdrawal(now, from, withdrawal),
                // The rest has one addressee and is forwarded by nobody else.
                _ if was_for_all => self.core.counters.drop_foreign += 1,
                Control::HeartbeatReply(reply) => self.relay_reply(now, from, reply, out),
                Control::Announcement(a) => self.relay_announcement(now, from, a, out),
                Control::AnnouncementAck(ack) => self.hear_ack(now, from, ack, out),
            },
        }
        self.drive(now, out);
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.take_from_tap(now, frame, out);
    }

    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies) {
        match event {
            LinkEvent::Up => {
                self.core.link_is_up = true;
                self.solicitation.begin(&mut self.core, now);
            }
            LinkEvent::Down => {
                self.core.link_is_up = false;
                self.core.neighbours.clear();
                for route in self.routes.values_mut() {
                    route.link_down(now);
                }
            }
            LinkEvent::AddressChanged(mac) => {
                self.core.radio.mac = mac;
                if self.attached.is_some() {
                    self.registration.announce(now);
                }
            }
            LinkEvent::MtuChanged(mtu) => {
                self.core.radio.mtu = mtu;
                self.registration.note_clients_changed(now);
            }
        }
        self.drive(now, out);
    }

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        if now.since(self.deadline) > LATE_OURSELVES {
            self.core.grace_until = now + LATE_OURSELVES;
        }
        self.drive(now, out);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        Some(self.deadline)
    }

    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies) {
        self.core.is_leaving = true;
        self.goodbyes_left = timing::SAID_TIMES;
        self.goodbye_at = now;
        self.drive(now, out);
    }

    fn linger(&self) -> Duration {
        timing::LINGER
    }

    fn counters(&self) -> &Counters {
        &self.core.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop()
    }
}
