//! What each control message means to the RSU.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::Cost;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Clients};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::control::word::WordFields;
use node_lib::{Boot, Mac, NodeId, Order, Seq, Timestamp};

use super::super::clients::Port;
use super::super::obus::left::Telling;
use super::super::obus::tree::Edge;
use super::super::obus::{Acknowledgement, Claim, Farewell, Judged, Says, WordVerdict};
use super::Rsu;
use crate::control::about::About;

/// What we hear of our own id above our boot count must be heard again within this, and three
/// intervals …
const WITNESS_WITHIN: Duration = Duration::from_secs(5);

/// … and be no further ahead: two years of a boot count that the clock makes, in quarters of a
/// second.
const BOOT_JUMP_MAX: u32 = 1 << 28;

/// Heartbeat intervals from one word of an OBU to its next, at most: 682 OBUs share 16 replies in
/// ten intervals, are half as rare again on standby, and up to a quarter late. Who says more may be
/// made up, and would stay for hours.
const WITHIN_MAX: u32 = 800;

/// Questions kept for OBUs that have announced themselves.
const QUESTIONS_KEPT: u32 = 10;

impl Rsu {
    pub(super) fn hear_heartbeat(&mut self, now: Timestamp, from: Mac, heartbeat: &Heartbeat) {
        // Only of those we know: nobody made up takes their place.
        if self.obus.knows(heartbeat.sender) {
            self.positions.hear(now, heartbeat.sender, heartbeat.position);
        }
        // Relays bring our own heartbeats back; only one that is newer than any of ours is news.
        // Without a hop on its way it is not ours, however old it is.
        let is_another = heartbeat.hops == 0;
        if heartbeat.rsu != self.radio.id || (heartbeat.order <= self.order && !is_another) {
            return;
        }
        if self.conflicts.take(now) {
            self.event(Event::IdConflict { mac: from });
        }
        if is_another {
            // Were each to go above the other, they would never end. So OBUs follow the newer one.
            return;
        }
        // We were started with a lower boot count than before, it seems: OBUs would ignore us until
        // they forget what they have heard. If it is heard again we go above it, but not any
        // distance, and once: else it is another RSU with our id, or a forgery.
        let within = WITNESS_WITHIN.max(self.pace.said().interval() * 3);
        let first = self.heard_above.filter(|at| now.since(*at) <= within);
        let first = *self.heard_above.insert(first.unwrap_or(now));
        let is_borne_out = now.since(first) >= self.pace.said().interval() / 2;
        let ahead = heartbeat.order.boot.0.saturating_sub(self.order.boot.0);
        if is_borne_out && !self.has_raised && ahead <= BOOT_JUMP_MAX {
            self.has_raised = true;
            let Some(boot) = heartbeat.order.boot.0.checked_add(1).map(Boot) else { return };
            self.order = Order { boot, seq: Seq(0) };
            self.radio.boot = boot;
        }
    }

    /// Somebody else has our id: one of us must have another, or nobody in earshot of both gets
    /// anywhere.
    fn is_of_our_id(&mut self, now: Timestamp, from: Mac, id: NodeId) -> bool {
        let is_ours = id == self.radio.id;
        if is_ours {
            self.counters.drop_foreign += 1;
            if self.conflicts.take(now) {
                self.event(Event::IdConflict { mac: from });
            }
        }
        is_ours
    }

    pub(super) fn hear_probe(
        &mut self,
        now: Timestamp,
        from: Mac,
        probe: &Probe,
        out: &mut Replies,
    ) {
        if self.is_of_our_id(now, from, probe.sender) {
            return;
        }
        let is_for_all = probe.asked == NodeId::NONE;
        if !is_for_all && probe.asked != self.radio.id {
            return;
        }
        let has_nothing = self.is_leaving || !self.lan_is_up;
        if is_for_all && (has_nothing || probe.rsu != NodeId::NONE) {
            return;
        }
        if !self.answers.take(now) {
            self.counters.drop_rate_limit += 1;
            return;
        }
        let is_for_us = probe.rsu == NodeId::NONE || probe.rsu == self.radio.id;
        // Who asks while there is no LAN behind us hears that there is no way.
        let route = (is_for_us && self.lan_is_up).then(|| AnsweredRoute {
            order: self.order,
            rhythm: self.pace.said(),
            via: NodeId::NONE,
            cost: Cost::ZERO,
            hop_limit: HOP_LIMIT,
            hops: 0,
            stride: 0,
        });
        let rsu = if is_for_us { self.radio.id } else { probe.rsu };
        let answer = ProbeAnswer {
            sender: self.radio.id,
            sender_boot: self.radio.boot,
            asker: probe.sender,
            nonce: probe.nonce,
            mtu: self.radio.said_mtu(),
            rsu,
            route,
        };
        // By broadcast, a question to all is answered for everybody in earshot.
        let to = if is_for_all {
            Mac::BROADCAST
        } else {
            let is_child = self.obus.is_child(probe.sender, from);
            self.answer_scope.addressee(now, from, rsu, self.obus.attached(), is_child)
        };
        self.radio.control(to, answer, out, &mut self.counters);
    }

    pub(super) fn hear_reply(
        &mut self,
        now: Timestamp,
        from: Mac,
        reply: &HeartbeatReply,
        out: &mut Replies,
    ) {
        let obu = reply.origin;
        let Some(says) = self.what_it_says(now, from, reply.into()) else { return };
        if reply.goodbye {
            let Farewell { was_attached, is_duel } = self.obus.hear_goodbye(now, reply, says);
            self.note_duel(now, obu, from, is_duel);
            if was_attached {
                self.let_go(now, obu);
                self.tell_where_it_was(now, obu, out);
            } else if !self.obus.knows(obu) {
                self.clients.forget_owner(Port::Obu(obu));
            }
            return;
        }
        let before = self.obus.boot(obu);
        let (judged, accepted) = self.obus.hear_reply(now, reply, says);
        self.reroute_what_was_at_risk(now, obu, out);
        let Judged { verdict, is_duel, evicted } = judged;
        self.counters.evicted += evicted;
        self.counters.edges_refused += u64::from(verdict == WordVerdict::Circular);
        if verdict == WordVerdict::Unknown && reply.standby {
            self.counters.obus_refused += 1;
            return self.make_room(now, out);
        }
        if let Some((_, sent)) = self.sent.iter().find(|(seq, _)| *seq == reply.answers) {
            let held = Duration::from_micros(u64::from(reply.held_100us) * 100);
            self.obus.note_round_trip(obu, now.since(*sent).saturating_sub(held));
        }
        self.note_restart(obu, before);
        if let Some(accepted) = accepted {
            self.settle(now, obu, reply.epoch, accepted, Clients::EMPTY);
        }
        if self.obus.is_urgent(obu) {
            self.tell_where_it_was(now, obu, out);
        }
        if self.obus.refreshes(now, obu, reply.digest) {
            self.clients.touch_owner(now, Port::Obu(obu));
        }
        self.note_duel(now, obu, from, is_duel);
        let Some(answer) = self.obus.answer(now, reply, says.edge, verdict) else { return };
        let Acknowledgement { status, epoch } = answer;
        let way = self.obus.way_by(says.edge);
        // A question that finds no way takes none from those that do.
        let Some(way) = self.expect_way(obu, way) else { return };
        let is_question = matches!(status, AckStatus::SendAll | AckStatus::StaleEpoch);
        if is_question && !self.may_question(now, obu) {
            return;
        }
        let about = About { seq: reply.order.seq, epoch, digest: reply.digest, part: 0, parts: 1 };
        self.send_ack(obu, way, status, about, out);
    }

    /// What a word says, if it is for us, and not of somebody with our id.
    fn what_it_says(&mut self, now: Timestamp, from: Mac, word: WordFields) -> Option<Says> {
        let WordFields { rsu, origin, order, epoch, via, mtu, hops, within, at_risk } = word;
        if self.is_of_our_id(now, from, origin) {
            return None;
        }
        if rsu != self.radio.id {
            self.counters.drop_foreign += 1;
            return None;
        }
        // What came without a hop on its way came from the OBU itself.
        let is_child = via == rsu && hops == 0;
        let edge = Edge { via, mac: is_child.then_some(from), mtu };
        let within = within.min(self.pace.said().interval() * WITHIN_MAX);
        Some(Says { order, epoch, edge, within, at_risk })
    }

    /// If two nodes say that they are this OBU, somebody should know.
    fn note_duel(&mut self, now: Timestamp, obu: NodeId, from: Mac, is_duel: bool) {
        if is_duel && self.obu_conflicts.take(now) {
            self.event(Event::ObuIdConflict { obu, mac: from });
        }
    }

    /// Whether this OBU was not asked just now, and there is a question left. Some are kept for
    /// OBUs that are known: those that are not may be made up, and many.
    pub(in crate::control) fn may_question(&mut self, now: Timestamp, obu: NodeId) -> bool {
        let left = if self.obus.knows(obu) { 0 } else { QUESTIONS_KEPT };
        self.obus.may_ask(now, obu) && self.questions.take_above(now, left)
    }

    /// Tells an OBU, on the ways it was on, what was said for it: somebody else may have said it.
    /// If it is not told now, because it was told just now, it is with the next frame, or the next
    /// heartbeat.
    pub(in crate::control) fn tell_where_it_was(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        out: &mut Replies,
    ) {
        if !self.obus.is_untold(obu) {
            return;
        }
        match self.obus.unsettled_towards(now, obu) {
            // It is found when the relay is.
            Some(relay) => self.tell(now, relay, out),
            None => self.tell(now, obu, out),
        }
    }

    fn tell(&mut self, now: Timestamp, obu: NodeId, out: &mut Replies) {
        if !self.obus.may_tell(now, obu) || !self.tellings.take(now) {
            return;
        }
        for Telling { edge, status, about } in self.obus.take_untold(now, obu) {
            if let Ok(way) = self.obus.way_by(edge) {
                self.send_ack(obu, way, status, about, out);
            }
        }
    }

    /// The boot count of an OBU was another one before its last word.
    fn note_restart(&mut self, obu: NodeId, before: Option<Boot>) {
        if let Some((before, again)) = before.zip(self.obus.boot(obu)) {
            self.duplicates.note_restart(obu, before, again);
        }
    }

    /// A newcomer was refused, and will knock again.
    fn make_room(&mut self, now: Timestamp, out: &mut Replies) {
        let knocked = self.obus.knock(now);
        for obu in knocked.gone {
            self.obus.give_up(now, obu);
            self.let_go(now, obu);
        }
        for (obu, digest) in knocked.asked {
            let about = About { digest, ..About::default() };
            let way = self.obus.way(obu);
            self.answer(obu, way, AckStatus::SendAll, about, out);
        }
    }

    pub(super) fn hear_announcement(
        &mut self,
        now: Timestamp,
        from: Mac,
        announcement: &Announcement<'_>,
        out: &mut Replies,
    ) {
        let Announcement { origin: obu, order, epoch, part, parts, digest, .. } = *announcement;
        let Some(says) = self.what_it_says(now, from, announcement.into()) else { return };
        let before = self.obus.boot(obu);
        let (judged, claim) = self.obus.claim(now, announcement, says);
        self.reroute_what_was_at_risk(now, obu, out);
        let Judged { verdict, is_duel, evicted } = judged;
        self.note_restart(obu, before);
        self.counters.evicted += evicted;
        self.note_duel(now, obu, from, is_duel);
        if claim == Claim::Refused {
            // Answered, it would believe that it is attached, and its clients were never reached.
            self.counters.obus_refused += 1;
            return self.make_room(now, out);
        }
        self.counters.edges_refused += u64::from(verdict == WordVerdict::Circular);
        let about = About { seq: order.seq, epoch, digest, part, parts };
        // Acknowledged first: the OBU waits, the LAN does not.
        match claim {
            Claim::Refused | Claim::Unproven => {}
            // The way down that is known may be somebody else's.
            Claim::Stale(higher) => {
                let about = About { epoch: higher, ..about };
                let way = self.obus.way_by(says.edge);
                self.answer(obu, way, AckStatus::StaleEpoch, about, out);
            }
            Claim::Accepted(accepted) => {
                let way = self.obus.way(obu);
                self.answer(obu, way, AckStatus::Accepted, about, out);
                self.settle(now, obu, epoch, accepted, announcement.clients);
                if self.obus.is_urgent(obu) {
                    self.tell_where_it_was(now, obu, out);
                }
            }
        }
    }
}
