//! B.A.T.M.A.N. IV, for comparison: [`Model`], a node that routes by the published rules of
//! batman-adv.
//!
//! **A model, not the program.** It is written after the documentation of batman-adv
//! (open-mesh.org: B.A.T.M.A.N. IV, bridge loop avoidance II, translation tables), the constants
//! and rules of its source (2026, `net/batman-adv`), and the older
//! draft-wunderlich-openmesh-manet-routing-00, and shares no code with it. Frames have its layout,
//! so that they take the air they would take there. All settings are its defaults:
//!
//! | what | value |
//! |---|---|
//! | originator message (OGM) of every node | each second, ± 20 ms; repeated once by whoever has its best way over the sender, and by its neighbours |
//! | OGMs of others in one frame | held for up to 100 ms; 512 bytes; those that measure a link go alone |
//! | transmission quality | echoes of the last 64 OGMs over receptions, asymmetry penalty, mean of 5; hop penalty 30 of 255, twice for one half-duplex radio |
//! | purge | a neighbour after 200 s, an originator after 400 s |
//! | broadcasts | by number, each sent three times, 5 ms apart, by every node |
//! | clients | announced with OGMs, asked for when missed; a client of several nodes is reached over the best |
//! | RSUs on one LAN | bridge loop avoidance: one of them is responsible for a client's broadcasts |
//!
//! Every node takes part alike: an OBU knows no RSU, but sends to whoever announces the client,
//! over the best way. Which originators are RSUs the model is told for its reports alone
//! ([`Attachment`]); no rule of it asks.
//!
//! What is simpler than batman-adv, and in whose favour it is:
//!
//! * In favour of the model: clients do not roam, and RSUs believe each other from the start;
//!   `translation` and `backbone` say what that leaves out.
//! * Against it: a broadcast is repeated even where its sender is the only neighbour
//!   (`batadv_send_no_broadcast`).
//! * In nobody's: there is one ranking, where batman-adv keeps a second one for frames of its own
//!   clients, without the penalty for half-duplex radios; with one radio the two differ by a
//!   factor. What one frame of the radio does not carry is dropped and counted, where batman-adv
//!   sends fragments. Clients' priorities are not looked at (`batadv_skb_set_priority`). No
//!   scenario has frames so large, or with a priority. The distributed ARP table, gateways (DHCP)
//!   and multicast optimisation have nothing to do here, and several radios and bonding (off by
//!   default) do not occur.
//!
//! OGMs wait in the queue for best effort of a radio as well: the priority batman-adv gives them
//! (`TC_PRIO_CONTROL`) Linux does not take for one of Wi-Fi (`cfg80211_classify8021d`).

mod backbone;
mod queue;
mod ranking;
mod translation;
mod window;
mod wire;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use node_lib::control::counters::Counters;
use node_lib::control::event::{Attachment, Cause, Event, Events};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::messages::ethernet::{HEADER_LEN, Header};
use node_lib::{Mac, NodeId, Start, Timestamp};
use sim::{Dice, Role};

use backbone::{Backbone, BackboneVerdict};
use queue::Queue;
use ranking::{OgmVerdict, OriginatorRanking, OriginatorWay, TQ_MAX};
use translation::Translation;
use wire::{BatmanPacket, Ogm, TTL, TranslationTable};

/// Time between two OGMs of a node (`orig_interval`).
pub const INTERVAL: Duration = Duration::from_secs(1);
/// It is up to so much shorter or longer (`BATADV_JITTER`).
const JITTER: Duration = Duration::from_millis(20);
/// An OGM is repeated after up to so long, if it does not wait for others.
const REPEAT_WITHIN: Duration = Duration::from_millis(10);
/// OGMs of which the mean is taken (`BATADV_TQ_GLOBAL_WINDOW_SIZE`): a next hop that is silent is
/// left after no more of them.
pub const MEAN_OF: u32 = 5;

/// How often a broadcast is sent, and how far apart (`BATADV_NUM_BCASTS_WIRELESS`).
const COPIES: u8 = 3;
const COPY_AFTER: Duration = Duration::from_millis(5);
/// Broadcasts that wait (`BATADV_BCAST_QUEUE_LEN`); another is dropped.
const BROADCASTS_MAX: usize = 256;

/// How often it is looked for who has been silent for long. batman-adv looks each second.
const PURGE_EVERY: Duration = Duration::from_secs(5);

/// A broadcast that is to be sent so often still.
#[derive(Debug)]
struct Copies {
    frame: Vec<u8>,
    left: u8,
}

/// A node that routes as B.A.T.M.A.N. IV does.
#[derive(Debug)]
pub struct Model {
    id: NodeId,
    mac: Mac,
    mtu: usize,
    tap: Option<Mac>,
    role: Role,
    /// For reports.
    rsus: Arc<[Mac]>,
    dice: Dice,
    ranking: OriginatorRanking,
    queue: Queue,
    translation: Translation,
    backbone: Backbone,
    /// Number of the OGM that waits.
    seqno: u32,
    broadcast_seqno: u32,
    broadcasts: BTreeMap<(Timestamp, u32), Copies>,
    queued: u32,
    next_purge: Timestamp,
    /// An RSU's next word on the LAN.
    next_announcement: Option<Timestamp>,
    is_stopped: bool,
    attachment: Option<Attachment>,
    events: Events,
    counters: Counters,
}

impl Model {
    /// A node that starts now, in a world with these RSUs.
    pub fn new(start: &Start, role: Role, rsus: Arc<[Mac]>, now: Timestamp) -> Self {
        let Start { id, radio_mac: mac, radio_mtu: mtu, tap_mac: tap, seed, .. } = *start;
        let mut dice = Dice::new(seed, 0);
        let [seqno, broadcast_seqno] =
            [0; 2].map(|_: u32| u32::try_from(dice.below(1 << 32)).unwrap_or_default());
        let mut translation = Translation::default();
        if let Some(tap) = tap {
            translation.note_ours(now, tap);
        }
        let mut model = Self {
            id,
            mac,
            mtu,
            tap,
            role,
            rsus,
            dice,
            ranking: OriginatorRanking::new(mac),
            queue: Queue::default(),
            translation,
            backbone: Backbone::new(mac),
            seqno,
            broadcast_seqno,
            broadcasts: BTreeMap::new(),
            queued: 0,
            next_purge: now + PURGE_EVERY,
            next_announcement: (role == Role::Rsu).then_some(now),
            is_stopped: false,
            attachment: None,
            events: Events::default(),
            counters: Counters::default(),
        };
        model.schedule(now);
        model
    }

    /// Our next OGM; what it says of our clients is what is so now.
    fn schedule(&mut self, now: Timestamp) {
        let mut tvlvs = Vec::new();
        self.translation.announce(&mut tvlvs);
        wire::emit_usual_tvlvs(&mut tvlvs);
        let at = now + (INTERVAL - JITTER) + self.dice.up_to(2 * JITTER);
        let (orig, prev_sender) = (self.mac, self.mac);
        let (ttl, tq, seqno, tvlvs) = (TTL, TQ_MAX, self.seqno, &tvlvs);
        self.queue.add_own(at, &Ogm { ttl, flags: 0, seqno, orig, prev_sender, tq, tvlvs });
    }

    fn send_ogms(&mut self, now: Timestamp, out: &mut Replies) {
        while let Some(aggregate) = self.queue.take(now) {
            let len = HEADER_LEN + aggregate.ogms.len();
            out.wire(|flat| {
                wire::emit_ethernet(Mac::BROADCAST, self.mac, flat);
                flat.extend(&aggregate.ogms);
            });
            self.count_control(len);
            if aggregate.is_own {
                self.ranking.note_sent(self.seqno);
                self.seqno = self.seqno.wrapping_add(1);
                self.schedule(now);
            }
        }
    }

    fn count_control(&mut self, len: usize) {
        self.counters.ctl_tx_frames += 1;
        self.counters.ctl_tx_bytes += len as u64;
    }

    fn hear_ogm(&mut self, now: Timestamp, from: Mac, ogm: Ogm<'_>, out: &mut Replies) {
        let had_way = self.ranking.way(ogm.orig).is_some();
        let verdict = self.ranking.hear(now, from, ogm);
        self.counters.drop_strangers = self.ranking.refused + self.translation.refused;
        let OgmVerdict::Taken(repeated) = verdict else { return };
        if let Some(table) = TranslationTable::find(ogm.tvlvs)
            && let Some(missing) = self.translation.hear(now, ogm.orig, &table)
        {
            // batman-adv asks before it ranks: on the first OGM of an originator there is no way to
            // it yet.
            if had_way {
                let mut question = Vec::new();
                missing.emit(&mut question);
                self.send_tvlvs(TTL, missing.orig, self.mac, &question, out);
            } else {
                self.counters.drop_no_route += 1;
            }
        }
        if let Some(repeated) = repeated {
            let at = now + self.dice.up_to(REPEAT_WITHIN);
            self.queue.add(at, &repeated);
            self.counters.drop_rate_limit = self.queue.dropped;
        }
        if self.rsus.contains(&ogm.orig) {
            self.report(now);
        }
    }

    /// Sends a frame over the best way to a node. `false`, and counted, without one.
    fn send_to(&mut self, to: Mac, packet: &BatmanPacket<'_>, out: &mut Replies) -> bool {
        let Some(OriginatorWay { next_hop, .. }) = self.ranking.way(to) else {
            self.counters.drop_no_route += 1;
            return false;
        };
        out.wire(|flat| {
            wire::emit_ethernet(next_hop, self.mac, flat);
            packet.emit(flat);
        });
        true
    }

    fn send_tvlvs(
        &mut self,
        ttl: u8,
        destination: Mac,
        source: Mac,
        tvlvs: &[u8],
        out: &mut Replies,
    ) {
        if self.send_to(destination, &BatmanPacket::Tvlv { ttl, destination, source, tvlvs }, out) {
            self.count_control(HEADER_LEN + 20 + tvlvs.len());
        }
    }

    fn hear_tvlvs(
        &mut self,
        ttl: u8,
        destination: Mac,
        source: Mac,
        tvlvs: &[u8],
        out: &mut Replies,
    ) {
        if let Some(table) = TranslationTable::find(tvlvs) {
            let mut answer = Vec::new();
            if self.translation.answer(self.mac, destination, &table, &mut answer) {
                // In the name of who was asked.
                return self.send_tvlvs(TTL, source, destination, &answer, out);
            }
            if destination == self.mac {
                return self.translation.take(source, &table);
            }
        }
        match ttl.checked_sub(1).filter(|_| destination != self.mac) {
            Some(ttl @ 1..) => self.send_tvlvs(ttl, destination, source, tvlvs, out),
            _ => self.counters.drop_hop_limit += 1,
        }
    }

    fn hear_unicast(
        &mut self,
        now: Timestamp,
        from: Mac,
        packet: (u8, u8, Mac, &[u8]),
        out: &mut Replies,
    ) {
        let (ttl, table, destination, inner) = packet;
        if destination != self.mac {
            let Some(ttl @ 1..) = ttl.checked_sub(1) else {
                self.counters.drop_hop_limit += 1;
                return;
            };
            let passed_on = BatmanPacket::Unicast { ttl, table, destination, inner };
            self.counters.relayed += u64::from(self.send_to(destination, &passed_on, out));
        } else if self.backbone.is_gateway(from) {
            // From our own LAN, over the radio of another gateway.
            self.counters.drop_reflected += 1;
        } else {
            self.deliver(now, inner, None, out);
        }
    }

    fn hear_broadcast(&mut self, now: Timestamp, packet: (u8, u32, Mac, &[u8]), out: &mut Replies) {
        let (ttl, seqno, orig, inner) = packet;
        if orig == self.mac {
            return;
        }
        let Some(ttl @ 1..) = ttl.checked_sub(1) else {
            self.counters.drop_hop_limit += 1;
            return;
        };
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(inner);
        if !self.ranking.is_new_broadcast(now, orig, seqno)
            || self.backbone.is_repeated(now, orig, hasher.finish())
        {
            self.counters.drop_duplicate += 1;
            return;
        }
        self.counters.flood_relayed += 1;
        self.broadcast(now, &BatmanPacket::Broadcast { ttl, seqno, orig, inner });
        if self.backbone.is_gateway(orig) {
            self.counters.drop_reflected += 1;
            return;
        }
        self.deliver(now, inner, Some(orig), out);
    }

    /// Plans the copies of a broadcast.
    fn broadcast(&mut self, now: Timestamp, packet: &BatmanPacket<'_>) {
        if self.broadcasts.len() >= BROADCASTS_MAX {
            self.counters.drop_flood_limit += 1;
            return;
        }
        let mut frame = Vec::new();
        wire::emit_ethernet(Mac::BROADCAST, self.mac, &mut frame);
        packet.emit(&mut frame);
        self.plan(now, Copies { frame, left: COPIES });
    }

    fn plan(&mut self, at: Timestamp, copies: Copies) {
        self.queued = self.queued.wrapping_add(1);
        self.broadcasts.insert((at, self.queued), copies);
    }

    fn send_broadcasts(&mut self, now: Timestamp, out: &mut Replies) {
        while let Some(first) = self.broadcasts.first_entry()
            && first.key().0 <= now
        {
            let Copies { frame, left } = first.remove();
            out.wire(|flat| flat.extend(&frame));
            if let Some(left @ 1..) = left.checked_sub(1) {
                self.plan(now + COPY_AFTER, Copies { frame, left });
            }
        }
    }

    /// Hands a client's frame that came over the radio to the TAP; `broadcast_by` is the originator
    /// of one to all.
    fn deliver(
        &mut self,
        now: Timestamp,
        inner: &[u8],
        broadcast_by: Option<Mac>,
        out: &mut Replies,
    ) {
        let Some((to, client)) = addresses(inner).filter(|(_, client)| client.is_unicast()) else {
            self.counters.drop_inner += 1;
            return;
        };
        if self.role == Role::Rsu {
            match self.backbone.pass_to_lan(now, client, to.is_group()) {
                BackboneVerdict::Drop => {
                    self.counters.drop_reflected += 1;
                    return;
                }
                BackboneVerdict::Pass => {}
                BackboneVerdict::PassAfter(claim) => out.tap_frame(&claim),
            }
        }
        if let Some(orig) = broadcast_by {
            self.translation.note_heard(now, client, orig);
        }
        self.counters.wire_to_tap += 1;
        out.tap_frame(inner);
    }

    /// The best way to a client, and the node it is behind.
    fn origin_of(&self, client: Mac) -> Option<Mac> {
        let origins = self.translation.origins(client);
        let others = origins.filter(|orig| !self.backbone.is_gateway(*orig));
        let ways = others.filter_map(|orig| Some((self.ranking.way(orig)?.tq, orig)));
        let better = |best: (u8, Mac), next: (u8, Mac)| if next.0 > best.0 { next } else { best };
        ways.reduce(better).map(|(_, orig)| orig)
    }

    /// Tells which RSU is reached best, and over whom.
    fn report(&mut self, now: Timestamp) {
        if self.role == Role::Rsu {
            return;
        }
        let ways = self.rsus.iter().filter_map(|rsu| Some((*rsu, self.ranking.way(*rsu)?)));
        let is_present = |rsu: Mac| self.attachment.is_some_and(|now| now.rsu == NodeId::from(rsu));
        // Of equals the one that was.
        let best = ways.max_by_key(|(rsu, way)| (way.tq, is_present(*rsu)));
        let to = best.map(|(rsu, way)| Attachment {
            rsu: rsu.into(),
            upstream: way.next_hop.into(),
            hops: way.hops,
        });
        let from = self.attachment;
        let ends = |of: Attachment| (of.rsu, of.upstream);
        if from.map(ends) == to.map(ends) {
            return;
        }
        let heard = from.and_then(|of| {
            let rsu = self.rsus.iter().find(|rsu| NodeId::from(**rsu) == of.rsu)?;
            self.ranking.heard_over(*rsu, of.upstream)
        });
        let silence = heard.map_or(Duration::ZERO, |heard| now.since(heard));
        let cause = match from {
            None => Cause::First,
            Some(_) if silence >= INTERVAL * (MEAN_OF - 1) => Cause::Dead,
            Some(_) => Cause::Better,
        };
        self.attachment = to;
        self.counters.upstream_changes += 1;
        self.events.push(Event::UpstreamChanged { from, to, cause, silence });
    }
}

/// Destination and source of an Ethernet frame.
fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    Header::read(frame).map(|(header, _)| (header.to, header.from))
}

impl Node for Model {
    fn id(&self) -> NodeId {
        self.id
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some((Header { to, from, ethertype }, bytes)) = Header::read(frame) else {
            self.counters.drop_malformed += 1;
            return;
        };
        let is_for_us = to == self.mac || to == Mac::BROADCAST;
        if !is_for_us || from == self.mac || !from.is_unicast() {
            self.counters.drop_foreign += 1;
            return;
        }
        let packet = (ethertype == wire::ETHERTYPE).then(|| BatmanPacket::read(bytes)).flatten();
        match packet {
            Some(BatmanPacket::Ogms(ogms)) if to.is_group() => {
                self.counters.ctl_rx_frames += 1;
                ogms.for_each(|ogm| self.hear_ogm(now, from, ogm, out));
            }
            Some(BatmanPacket::Broadcast { ttl, seqno, orig, inner }) if to.is_group() => {
                self.hear_broadcast(now, (ttl, seqno, orig, inner), out);
            }
            Some(BatmanPacket::Unicast { ttl, table, destination, inner }) if !to.is_group() => {
                self.hear_unicast(now, from, (ttl, table, destination, inner), out);
            }
            Some(BatmanPacket::Tvlv { ttl, destination, source, tvlvs }) if !to.is_group() => {
                self.counters.ctl_rx_frames += 1;
                self.hear_tvlvs(ttl, destination, source, tvlvs, out);
            }
            _ => self.counters.drop_malformed += 1,
        }
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some((to, from)) = addresses(frame).filter(|(_, from)| from.is_unicast()) else {
            self.counters.drop_inner += 1;
            return;
        };
        if self.role == Role::Rsu {
            match self.backbone.pass_to_radio(now, frame, to, from) {
                BackboneVerdict::Drop => {
                    self.counters.drop_reflected += u64::from(!backbone::is_claim(to));
                    return;
                }
                BackboneVerdict::Pass => {}
                BackboneVerdict::PassAfter(word) => out.tap_frame(&word),
            }
        }
        // A client of a vehicle that another gateway put on the LAN is none of ours.
        let is_of_mesh = self.backbone.is_claimed_elsewhere(from) || self.origin_of(from).is_some();
        if !is_of_mesh {
            self.translation.note_ours(now, from);
        }
        let head = if to.is_group() { wire::BROADCAST_LEN } else { wire::UNICAST_LEN };
        if head + frame.len() > self.mtu {
            self.counters.drop_oversize += 1;
            return;
        }
        if to.is_group() {
            self.counters.tap_to_wire += 1;
            let (ttl, seqno, orig, inner) = (TTL - 1, self.broadcast_seqno, self.mac, frame);
            self.broadcast_seqno = seqno.wrapping_add(1);
            self.broadcast(now, &BatmanPacket::Broadcast { ttl, seqno, orig, inner });
        } else if !self.translation.is_ours(to) {
            let Some(destination) = self.origin_of(to) else {
                self.counters.drop_no_route += 1;
                return;
            };
            let table = self.translation.version_of(destination);
            let packet = BatmanPacket::Unicast { ttl: TTL, table, destination, inner: frame };
            self.counters.tap_to_wire += u64::from(self.send_to(destination, &packet, out));
        }
    }

    fn handle_link(&mut self, _now: Timestamp, _event: LinkEvent, _out: &mut Replies) {}

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        if self.is_stopped {
            return;
        }
        self.send_ogms(now, out);
        self.send_broadcasts(now, out);
        if let Some(at) = self.next_announcement.filter(|at| *at <= now) {
            for word in self.backbone.announce(now) {
                out.tap_frame(&word);
            }
            self.next_announcement = Some(at + backbone::PERIOD);
        }
        if self.next_purge <= now {
            self.next_purge = now + PURGE_EVERY;
            for gone in self.ranking.purge(now) {
                self.translation.forget(gone);
            }
            self.translation.purge(now, self.tap);
            self.report(now);
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        if self.is_stopped {
            return None;
        }
        let broadcast = self.broadcasts.first_key_value().map(|((at, _), _)| *at);
        let others = [self.queue.next(), broadcast, self.next_announcement];
        others.into_iter().flatten().chain([self.next_purge]).min()
    }

    /// batman-adv says no goodbye.
    fn handle_shutdown(&mut self, _now: Timestamp, _out: &mut Replies) {
        self.is_stopped = true;
    }

    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    fn candidates(&self, _now: Timestamp) -> usize {
        let rsu = self
            .attachment
            .and_then(|of| self.rsus.iter().find(|rsu| NodeId::from(**rsu) == of.rsu));
        rsu.and_then(|rsu| self.ranking.way(*rsu)).map_or(0, |way| way.choices)
    }

    fn upstream_for(&self, rsu: NodeId) -> Option<NodeId> {
        let rsu = self.rsus.iter().find(|known| NodeId::from(**known) == rsu)?;
        Some(self.ranking.way(*rsu)?.next_hop.into())
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}
