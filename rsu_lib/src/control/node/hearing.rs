//! What each control message means to the RSU.

use std::time::Duration;

use node_lib::control::downstream::{Path, path_lifetime};
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
use super::super::obus::Claim;
use super::Rsu;

impl Rsu {
    pub(super) fn hear_heartbeat(&mut self, now: Timestamp, from: Mac, heartbeat: &Heartbeat) {
        // Relays bring our own heartbeats back; only one that is newer than any of ours is news.
        if heartbeat.rsu != self.radio.id || heartbeat.order <= self.order {
            return;
        }
        // Another RSU with our id, or we were started with a lower boot count than before. OBUs
        // would ignore us until they forget that order, so go above it.
        if self.conflicts.take(now) {
            self.event(Event::IdConflict { mac: from });
        }
        let boot = Boot(heartbeat.order.boot.0.saturating_add(1));
        self.order = Order { boot, seq: Seq(0) };
        self.radio.boot = boot;
    }

    pub(super) fn hear_probe(
        &mut self,
        now: Timestamp,
        from: Mac,
        was_for_all: bool,
        probe: &Probe,
        out: &mut Replies,
    ) {
        if was_for_all && (self.is_leaving || probe.rsu != NodeId::NONE) {
            return;
        }
        if !self.answers.take(now) {
            self.counters.drop_rate_limit += 1;
            return;
        }
        let is_for_us = probe.rsu == NodeId::NONE || probe.rsu == self.radio.id;
        let route = is_for_us.then(|| AnsweredRoute {
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
        if reply.rsu != self.radio.id {
            self.counters.drop_foreign += 1;
            return;
        }
        if reply.goodbye {
            self.downstream.retire(now, obu, self.radio.id, reply.order);
            if self.obus.hear_goodbye(now, reply) {
                self.let_go(now, obu);
            } else if !self.obus.knows(obu) {
                self.clients.forget_owner(Port::Obu(obu));
            }
            return;
        }
        let HeartbeatReply { order, standby, .. } = *reply;
        self.learn_path(now, obu, from, order, reply.hops, standby);
        if let Some((_, sent)) = self.sent.iter().find(|(seq, _)| *seq == reply.answers) {
            let held = Duration::from_micros(u64::from(reply.held_100us) * 100);
            self.obus.note_round_trip(obu, now.since(*sent).saturating_sub(held));
        }
        if let Some(accepted) = self.obus.hear_reply(now, reply) {
            self.settle(now, obu, reply.epoch, accepted, Clients::EMPTY);
        }
        if self.obus.vouches(obu, reply.digest) {
            self.clients.touch_owner(now, Port::Obu(obu));
        }
        if self.obus.must_ask(now, reply) && self.questions.take(now) {
            self.send_ack(now, obu, None, AckStatus::SendAll, 0, (0, 1), reply.digest, out);
        }
    }

    fn learn_path(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        next: Mac,
        order: Order,
        hops: u8,
        standby: bool,
    ) {
        let hops = hops.saturating_add(1);
        let obus = u16::try_from(self.obus.attached()).unwrap_or(u16::MAX);
        let lifetime = path_lifetime(self.period, obus);
        let path = Path { order, hops, next, rsu: self.radio.id, standby, seen: now, lifetime };
        let (is_news, evicted) = self.downstream.learn(obu, path);
        self.counters.evicted += evicted;
        if is_news && !standby {
            self.note_stays(obu);
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
        if announcement.rsu != self.radio.id || obu == self.radio.id {
            self.counters.drop_foreign += 1;
            return;
        }
        self.learn_path(now, obu, from, order, announcement.hops, announcement.standby);
        let claim = self.obus.claim(now, announcement);
        self.counters.evicted += self.obus.take_evicted();
        // Acknowledged first: the OBU waits, the LAN does not.
        match claim {
            Claim::Stale(higher) => {
                let status = AckStatus::StaleEpoch;
                self.send_ack(now, obu, None, status, higher, (part, parts), digest, out);
            }
            Claim::Overtaken => {
                let status = AckStatus::Accepted;
                self.send_ack(now, obu, None, status, epoch, (part, parts), digest, out);
            }
            Claim::Accepted(accepted) => {
                let status = AckStatus::Accepted;
                self.send_ack(now, obu, None, status, epoch, (part, parts), digest, out);
                self.settle(now, obu, epoch, accepted, announcement.clients);
            }
        }
    }
}
