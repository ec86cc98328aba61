//! What each control message means to the OBU.

use std::time::Duration;

use node_lib::control::event::{Cause, Event};
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::Replies;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::AnnouncementAck;
use node_lib::messages::control::announcement::Announcement;
use node_lib::messages::control::announcement::ready::relay;
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::Withdrawal;
use node_lib::messages::control::word::WordFields;
use node_lib::messages::{Kind, MAX_HOPS};
use node_lib::{Boot, Mac, NodeId, Timestamp};

use crate::control::link::neighbour::HeardAs;
use crate::control::route::candidates::Advert;
use crate::control::route::feasibility::Distance;

use super::super::children::Said;
use super::super::route::{Learned, Route};
use super::super::timing;
use super::{Obu, ROUTES_MAX};

/// What is known of a control frame once its sender is.
struct Sender {
    /// Who we are: nobody's own frame is heard.
    us: NodeId,
    /// The sender has started again since it was last heard.
    has_restarted: bool,
}

impl Obu {
    /// Returns whether something must be done about it now.
    pub(super) fn hear_heartbeat(
        &mut self,
        now: Timestamp,
        from: Mac,
        heartbeat: &Heartbeat,
    ) -> bool {
        let Some(Sender { us, has_restarted }) =
            self.hear(now, from, heartbeat.sender, heartbeat.sender_boot)
        else {
            if let Some(route) = self.routes.get_mut(&heartbeat.rsu) {
                route.note_doubtful(now, heartbeat.order);
            }
            return false;
        };
        self.context.positions.hear(now, heartbeat.sender, heartbeat.position);
        if let Some(neighbour) = self.context.neighbours.get_mut(from) {
            neighbour.note_hello(now, heartbeat.hello);
            if heartbeat.via == us {
                // Only a node that hears us names us.
                neighbour.note_proof(now);
            }
        }
        let Heartbeat { rsu, sender, mtu, .. } = *heartbeat;
        let is_believed = self.hear_route(now, from, (sender, mtu), rsu, heartbeat.into());
        if is_believed && let Some(route) = self.routes.get_mut(&heartbeat.rsu) {
            route.note_heartbeat(&self.context, now, from, heartbeat);
            if self.attached.is_none_or(|attached| attached.rsu == heartbeat.rsu) {
                // Without an RSU there is nobody around, for all we know.
                let obus = route.obus().max(self.obus_around());
                self.context.note_obus(now, obus);
            }
        }
        let route = self.routes.get(&heartbeat.rsu);
        has_restarted || route.is_some_and(|route| route.is_moved_by(&self.context, now, from))
    }

    /// Those attached to RSUs no more than one hop farther than ours: on the air it does not matter
    /// which.
    fn obus_around(&self) -> u16 {
        let most = self.context.hops.map_or(u8::MAX, |ours| ours.saturating_add(1));
        let near = self.routes.values().filter(|r| r.hops().is_some_and(|hops| hops <= most));
        near.fold(0, |sum: u16, route| sum.saturating_add(route.obus()))
    }

    /// A control frame of `id` came. `None` if it must be ignored.
    fn hear(&mut self, now: Timestamp, from: Mac, id: NodeId, boot: Boot) -> Option<Sender> {
        let us = self.context.id();
        if id == us {
            self.context.counters.drop_foreign += 1;
            if self.conflicts.take(now) {
                self.context.event(Event::IdConflict { mac: from });
            }
            return None;
        }
        let interval = self.context.interval;
        let (heard, _) = self.context.neighbours.hear(now, from, id, boot, interval);
        match heard {
            HeardAs::Stale | HeardAs::Doubtful => {
                self.context.counters.drop_doubtful += 1;
                return None;
            }
            HeardAs::Restarted => {
                for route in self.routes.values_mut() {
                    route.drop_candidate(now, from, Cause::Restarted);
                }
            }
            HeardAs::New => {
                self.context.heard_lately += 1;
                // After a cold start this alone may tell that there is a crowd.
                self.context.share_with(now, self.context.obus);
            }
            HeardAs::Known => {}
        }
        Some(Sender { us, has_restarted: heard == HeardAs::Restarted })
    }

    /// A neighbour says what way it has to an RSU, and which packets pass it. Returns whether it is
    /// believed.
    fn hear_route(
        &mut self,
        now: Timestamp,
        from: Mac,
        (id, mtu): (NodeId, u16),
        rsu: NodeId,
        route: AnsweredRoute,
    ) -> bool {
        let AnsweredRoute { order, rhythm, via, cost, hop_limit, hops, stride } = route;
        if rsu == self.context.id() || hops >= MAX_HOPS {
            return false;
        }
        if !self.routes.contains_key(&rsu) {
            if !self.make_room_for_a_route(now) {
                self.context.counters.drop_doubtful += 1;
                return false;
            }
            let ours = self.attached.and_then(|attached| self.routes.get(&attached.rsu));
            let obus = ours.map_or(self.context.obus, Route::obus);
            self.routes.insert(rsu, Route::new(rsu, rhythm, obus, now));
        }
        let Some(route) = self.routes.get_mut(&rsu) else { return false };
        let advert =
            Advert { distance: Distance { order, hops }, cost, hop_limit, via, mtu, stride };
        let learned = route.hear(&self.context, now, from, id, advert, rhythm);
        if learned == Learned::Doubtful {
            self.context.counters.drop_doubtful += 1;
            return false;
        }
        if let Learned::Anew(before) = learned {
            self.duplicates.note_restart(rsu, before, route.newest().boot);
            let is_ours = self.is_attached_to(rsu);
            self.registration.tell_again(&mut self.context, now, rsu, is_ours);
        }
        let Some(attached) = self.attached.filter(|attached| attached.rsu == rsu) else {
            return true;
        };
        if attached.upstream == from {
            self.registration.note_heartbeat(now, advert.distance.order.seq);
        }
        true
    }

    /// Whether one more RSU can be known. What was advertised for an RSU must be kept as long as
    /// somebody may count on it.
    fn make_room_for_a_route(&mut self, now: Timestamp) -> bool {
        if self.routes.len() < ROUTES_MAX {
            return true;
        }
        let used = self.attached.map(|attached| attached.rsu);
        let oldest = self
            .routes
            .iter()
            .filter(|(rsu, route)| Some(**rsu) != used && !route.is_counted_on(now))
            .min_by_key(|(_, route)| route.newest_at())
            .map(|(rsu, _)| *rsu);
        let Some(oldest) = oldest else { return false };
        self.routes.remove(&oldest);
        self.context.counters.evicted += 1;
        true
    }

    pub(super) fn hear_probe(
        &mut self,
        now: Timestamp,
        from: Mac,
        probe: &Probe,
        out: &mut Replies,
    ) {
        if self.hear(now, from, probe.sender, probe.sender_boot).is_none() {
            return;
        }
        if probe.asked == NodeId::NONE {
            if self.attached.is_some() && !self.context.is_leaving {
                let (asker, nonce) = (probe.sender, probe.nonce);
                self.solicitation.hear_question(&mut self.context, now, asker, nonce);
            }
            return;
        }
        if probe.asked != self.context.id() {
            return;
        }
        if !self.answers.take(now) {
            self.context.counters.drop_rate_limit += 1;
            return;
        }
        let is_child = self.children.contains(now, from);
        let obus = usize::from(self.context.obus);
        let to = self.answer_scope.addressee(now, from, probe.rsu, obus, is_child);
        self.answer(now, to, probe.sender, probe.nonce, probe.rsu, out);
    }

    pub(super) fn answer(
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
        let context = &self.context;
        let route = self.routes.get_mut(&rsu).and_then(|route| route.advertise(context, now));
        if to == Mac::BROADCAST && asked == NodeId::NONE && route.is_none() {
            return;
        }
        let (sender, sender_boot) = (self.context.id(), self.context.radio.boot);
        let mtu = self.mtu_to(rsu);
        let answer = ProbeAnswer { sender, sender_boot, asker, nonce, mtu, rsu, route };
        self.context.radio.control(to, answer, out, &mut self.context.counters);
    }

    pub(super) fn hear_answer(&mut self, now: Timestamp, from: Mac, answer: &ProbeAnswer) {
        let Some(Sender { us, .. }) = self.hear(now, from, answer.sender, answer.sender_boot)
        else {
            return;
        };
        self.solicitation.hear_answer(answer.asker, answer.nonce);
        match answer.route {
            Some(route) => {
                self.hear_route(now, from, (answer.sender, answer.mtu), answer.rsu, route);
            }
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
        let Some(neighbour) = self.context.neighbours.get_mut(from) else { return };
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

    pub(super) fn hear_withdrawal(
        &mut self,
        now: Timestamp,
        from: Mac,
        withdrawal: &Withdrawal<'_>,
    ) {
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

    /// Somebody behind us talks to an RSU: passed on.
    pub(super) fn relay_reply(
        &mut self,
        now: Timestamp,
        from: Mac,
        reply: &HeartbeatReply,
        out: &mut Replies,
    ) {
        let HeartbeatReply { rsu, standby, acknowledge, .. } = *reply;
        // Who stands by and wants an answer sends frames of others there.
        let is_reached = !standby || acknowledge;
        if acknowledge {
            self.registration.remind(now, rsu, self.is_attached_to(rsu));
        }
        let passed = self.pass_on(now, from, reply.into(), is_reached, out);
        let Some((hops, to)) = passed else { return };
        let relayed = HeartbeatReply { hops, ..*reply };
        self.context.radio.control(to, relayed, out, &mut self.context.counters);
    }

    pub(super) fn relay_announcement(
        &mut self,
        now: Timestamp,
        from: Mac,
        frame: &[u8],
        announcement: &Announcement<'_>,
        out: &mut Replies,
    ) {
        let Announcement { rsu, standby, .. } = *announcement;
        let is_ours = self.is_attached_to(rsu);
        self.registration.remind(now, rsu, is_ours);
        let passed = self.pass_on(now, from, announcement.into(), !standby, out);
        let Some((hops, to)) = passed else { return };
        let between = (to, self.context.radio.mac);
        self.context.radio.ready(Kind::Announcement, out, &mut self.context.counters, |flat| {
            relay(frame, announcement, between, hops, flat);
        });
    }

    /// Where a word for an RSU goes on to, and hops from its origin then. `None`, and counted, when
    /// it must go no further. Who says it without a hop on its way is our child. `is_reached`: the
    /// RSU will send to it.
    fn pass_on(
        &mut self,
        now: Timestamp,
        from: Mac,
        word: WordFields,
        is_reached: bool,
        out: &mut Replies,
    ) -> Option<(u8, Mac)> {
        let WordFields { rsu, origin, mtu, hops, .. } = word;
        if origin == self.context.id() {
            self.context.counters.drop_reflected += 1;
            return None;
        }
        if hops >= HOP_LIMIT {
            self.context.counters.drop_hop_limit += 1;
            return None;
        }
        let to = self.upstream_for_others(now, rsu, from, out)?;
        let interval = self.routes.get(&rsu).map_or(Duration::ZERO, Route::interval);
        let within = word.within.min(timing::within_max(interval));
        let said = Said { id: origin, mtu, rsu, within, is_reached };
        // Who says it from the address of a neighbour that is another node is no child. One such
        // word would take that one's place; and neighbours that are each said to be the same child
        // of the others would pass a frame on to each other, twice at each hop.
        let neighbour = self.context.neighbours.get(from);
        let is_another = neighbour.is_some_and(|known| known.id != origin);
        if hops == 0 && is_another {
            self.context.counters.drop_doubtful += 1;
        } else if hops == 0 {
            self.context.counters.evicted += self.children.hear(now, from, said);
        } else {
            self.children.hear_behind(now, from, said);
        }
        if is_reached {
            // The RSU needs our upstream before it can answer.
            self.register_for_others(now, rsu, out);
        }
        Some((hops + 1, to))
    }

    /// What this RSU knows need not be said with the next upstream.
    pub(super) fn note_told(&mut self, rsu: NodeId) {
        let is_ours = self.is_attached_to(rsu);
        let Some(route) = self.routes.get_mut(&rsu) else { return };
        let Some(upstream) = route.upstream_candidate() else { return };
        if self.registration.has_told(rsu, is_ours, upstream.id) {
            route.note_told();
        }
    }

    pub(super) fn hear_ack(
        &mut self,
        now: Timestamp,
        from: Mac,
        ack: &AnnouncementAck<'_>,
        out: &mut Replies,
    ) {
        let is_ours = self.is_attached_to(ack.rsu);
        let is_passing = ack.destination != self.context.id();
        if is_passing {
            // What comes another way was sent by what the RSU knew before.
            if self.upstream_of(ack.rsu) == Some(from) {
                self.registration.note_passing_ack(ack.rsu, is_ours);
            }
        } else if !is_ours {
            self.registration.handle_other_ack(now, ack);
        } else if self.registration.handle_ack(&mut self.context, now, ack) {
            self.note_acknowledged(now);
        }
        self.note_told(ack.rsu);
        if !is_passing {
            return;
        }
        let (hops, way) = self.next_hops(now, from, (ack.rsu, ack.destination), ack.way);
        for NextHop { mac, .. } in hops {
            let relayed = AnnouncementAck { way, ..*ack };
            self.context.radio.control(mac, relayed, out, &mut self.context.counters);
        }
    }
}
