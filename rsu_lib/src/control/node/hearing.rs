//! What each control message means to the RSU.

use std::time::Duration;

use node_lib::control::downstream::{PATHS_MAX, Path, path_lifetime};
use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Clients};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::{Cost, PathTag};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Timestamp};

use super::super::clients::Port;
use super::super::obus::{Claim, Verdict};
use super::Rsu;

/// What we hear of our own id above our boot count must be heard again within this …
const WITNESS_WITHIN: Duration = Duration::from_secs(5);

/// … and be no further ahead: two years of a boot count that the clock makes, in quarters of a second.
const BOOT_JUMP_MAX: u32 = 1 << 28;

/// Questions kept for OBUs that have announced themselves.
const QUESTIONS_KEPT: u32 = 10;

impl Rsu {
    pub(super) fn hear_heartbeat(&mut self, now: Timestamp, from: Mac, heartbeat: &Heartbeat) {
        // Relays bring our own heartbeats back; only one that is newer than any of ours is news. Without
        // a hop on its way it is not ours, however old it is.
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
        // We were started with a lower boot count than before, it seems: OBUs would ignore us until they
        // forget what they have heard. If it is heard again we go above it, but not any distance, and once:
        // else it is another RSU with our id, or a forgery.
        let first = self.heard_above.filter(|at| now.since(*at) <= WITNESS_WITHIN);
        let first = *self.heard_above.insert(first.unwrap_or(now));
        let is_borne_out = now.since(first) >= self.period / 2;
        let ahead = heartbeat.order.boot.0.saturating_sub(self.order.boot.0);
        if is_borne_out && !self.has_raised && ahead <= BOOT_JUMP_MAX {
            self.has_raised = true;
            let Some(boot) = heartbeat.order.boot.0.checked_add(1).map(Boot) else { return };
            self.order = Order { boot, seq: Seq(0) };
            self.radio.boot = boot;
        }
    }

    /// Somebody else has our id: one of us must have another, or nobody in earshot of both gets anywhere.
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
        was_for_all: bool,
        probe: &Probe,
        out: &mut Replies,
    ) {
        if self.is_of_our_id(now, from, probe.sender) {
            return;
        }
        let has_nothing = self.is_leaving || !self.lan_is_up;
        if was_for_all && (has_nothing || probe.rsu != NodeId::NONE) {
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
            interval_ms: self.interval_ms(),
            hops: 0,
            hop_limit: HOP_LIMIT,
            cost: Cost::ZERO,
            via: NodeId::NONE,
            path: PathTag::DIRECT,
        });
        let rsu = if is_for_us { self.radio.id } else { probe.rsu };
        let answer = ProbeAnswer {
            sender: self.radio.id,
            sender_boot: self.radio.boot,
            asker: probe.sender,
            nonce: probe.nonce,
            rsu,
            route,
        };
        // By broadcast, a question to all is answered for everybody in earshot.
        let to = if was_for_all {
            Mac::BROADCAST
        } else {
            let way_back = self.downstream.path(now, probe.sender);
            self.askers.addressee(now, from, rsu, self.obus.attached(), way_back)
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
        if self.is_of_our_id(now, from, obu) {
            return;
        }
        if reply.rsu != self.radio.id {
            self.counters.drop_foreign += 1;
            return;
        }
        if reply.goodbye {
            let (is_news, was_attached) = self.obus.hear_goodbye(now, reply);
            if is_news {
                self.downstream.retire(now, obu, self.radio.id, reply.order);
            }
            if was_attached {
                self.let_go(now, obu);
            } else if !self.obus.knows(obu) {
                self.clients.forget_owner(Port::Obu(obu));
            }
            return;
        }
        let before = self.obus.boot(obu);
        let (verdict, accepted) = self.obus.hear_reply(now, reply);
        let HeartbeatReply { order, standby, .. } = *reply;
        self.learn_path(now, verdict, (obu, from), order, reply.hops, standby);
        if let Some((_, sent)) = self.sent.iter().find(|(seq, _)| *seq == reply.answers) {
            let held = Duration::from_micros(u64::from(reply.held_100us) * 100);
            self.obus.note_round_trip(obu, now.since(*sent).saturating_sub(held));
        }
        self.note_restart(obu, before);
        if let Some(accepted) = accepted {
            self.settle(now, obu, reply.epoch, accepted, Clients::EMPTY);
        }
        if self.obus.vouches(now, obu, reply.digest) {
            self.clients.touch_owner(now, Port::Obu(obu));
        }
        self.note_duel(now, obu, from);
        if self.obus.must_ask(now, reply) && self.may_question(now, obu) {
            self.send_ack(now, obu, Some(from), AckStatus::SendAll, 0, (0, 1), reply.digest, out);
        }
    }

    /// Two nodes say that they are this OBU.
    fn note_duel(&mut self, now: Timestamp, obu: NodeId, from: Mac) {
        if self.obus.take_duel(obu) && self.obu_conflicts.take(now) {
            self.event(Event::ObuIdConflict { obu, mac: from });
        }
    }

    /// Whether there is a question left. Some are kept for OBUs that are known: those that are not
    /// may be made up, and many.
    pub(in crate::control) fn may_question(&mut self, now: Timestamp, obu: NodeId) -> bool {
        let left = if self.obus.knows(obu) { 0 } else { QUESTIONS_KEPT };
        self.questions.take_above(now, left)
    }

    /// The boot count of an OBU was another one before its last word.
    fn note_restart(&mut self, obu: NodeId, before: Option<Boot>) {
        if let Some((before, again)) = before.zip(self.obus.boot(obu)) {
            self.duplicates.note_restart(obu, before, again);
        }
    }

    /// Learns the way back to an OBU from what it said, as far as that is believed.
    fn learn_path(
        &mut self,
        now: Timestamp,
        verdict: Verdict,
        (obu, next): (NodeId, Mac),
        order: Order,
        hops: u8,
        standby: bool,
    ) {
        // An OBU that has not announced itself may be made up, as many more may be.
        let has_room = self.downstream.len() < PATHS_MAX / 2;
        if verdict == Verdict::Unproven || (verdict == Verdict::Unknown && !has_room) {
            return;
        }
        let hops = hops.saturating_add(1);
        let obus = u16::try_from(self.obus.attached()).unwrap_or(u16::MAX);
        let lifetime = path_lifetime(self.period, obus);
        let path = Path { order, hops, next, rsu: self.radio.id, standby, seen: now, lifetime };
        let (is_news, evicted) = if verdict == Verdict::Newest {
            self.downstream.correct(obu, path)
        } else {
            self.downstream.learn(obu, path)
        };
        self.counters.evicted += evicted;
        if is_news && !standby {
            self.note_stays(obu);
        }
    }

    /// A newcomer was refused, and will knock again.
    fn make_room(&mut self, now: Timestamp, out: &mut Replies) {
        let knocked = self.obus.knock(now);
        for obu in knocked.gone {
            self.obus.lose(now, obu);
            self.let_go(now, obu);
        }
        for (obu, digest) in knocked.asked {
            self.send_ack(now, obu, None, AckStatus::SendAll, 0, (0, 1), digest, out);
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
        if self.is_of_our_id(now, from, obu) {
            return;
        }
        if announcement.rsu != self.radio.id {
            self.counters.drop_foreign += 1;
            return;
        }
        let before = self.obus.boot(obu);
        let (verdict, claim) = self.obus.claim(now, announcement);
        self.note_restart(obu, before);
        self.counters.evicted += self.obus.take_evicted();
        self.note_duel(now, obu, from);
        if claim == Claim::Refused {
            // Answered, it would believe that it is attached, and its clients were never reached.
            self.counters.obus_refused += 1;
            return self.make_room(now, out);
        }
        self.learn_path(now, verdict, (obu, from), order, announcement.hops, announcement.standby);
        // Acknowledged first: the OBU waits, the LAN does not.
        match claim {
            Claim::Refused | Claim::Unproven => {}
            // The way back that is known may be somebody else's.
            Claim::Stale(higher) => {
                let status = AckStatus::StaleEpoch;
                self.send_ack(now, obu, Some(from), status, higher, (part, parts), digest, out);
            }
            Claim::Accepted(accepted) => {
                let status = AckStatus::Accepted;
                self.send_ack(now, obu, None, status, epoch, (part, parts), digest, out);
                self.settle(now, obu, epoch, accepted, announcement.clients);
            }
        }
    }
}
