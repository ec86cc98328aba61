//! A conversation with one OBU: what it hears goes in as messages, what it says is kept.

#![allow(dead_code, reason = "each test uses a part of it")]

mod data;

use std::time::Duration;

use node_lib::control::event::{Attachment, Event};
use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::{Announcement, Client};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::position::Position;
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::messages::{Cost, ETHERTYPE_DEFAULT, Message, PacketType, Way};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Start, Timestamp};
use obu_lib::{Obu, Policy, Settings};

pub(crate) const US: Mac = Mac([2, 0, 0, 0, 0, 0xee]);
pub(crate) const RSU: Mac = Mac([2, 0, 0, 0, 0, 0x10]);
pub(crate) const OTHER_RSU: Mac = Mac([2, 0, 0, 0, 0, 0x11]);
pub(crate) const A: Mac = Mac([2, 0, 0, 0, 0, 0x0a]);
pub(crate) const B: Mac = Mac([2, 0, 0, 0, 0, 0x0b]);
pub(crate) const C: Mac = Mac([2, 0, 0, 0, 0, 0x0c]);
pub(crate) const CAMERA: Mac = Mac([2, 0, 0, 0, 1, 1]);
pub(crate) const SERVER: Mac = Mac([2, 0, 0, 0, 1, 2]);

/// Of radios here, in bytes.
const MTU: u16 = 1500;

pub(crate) fn id(mac: Mac) -> NodeId {
    mac.into()
}

pub(crate) fn attached(rsu: Mac, upstream: Mac, hops: u8) -> Option<Attachment> {
    Some(Attachment { rsu: id(rsu), upstream: id(upstream), hops })
}

#[derive(Clone)]
pub(crate) enum Heard {
    Heartbeat {
        boot: u32,
        seq: u32,
        hops: u8,
        via: Option<Mac>,
    },
    Answer {
        nonce: u32,
        seq: u32,
        hops: u8,
    },
    AnswerTo {
        asker: Mac,
        seq: u32,
    },
    /// About an RSU with this boot count, one hop away.
    AnswerOf {
        boot: u32,
        nonce: u32,
        seq: u32,
    },
    Probe {
        boot: u32,
    },
    ProbeFor {
        rsu: Mac,
    },
    Withdrawal {
        goodbye: bool,
    },
    Ack {
        epoch: u32,
        status: AckStatus,
        digest: u32,
    },
    Reply {
        origin: Mac,
        seq: u32,
        hops: u8,
    },
    Standby {
        origin: Mac,
        rsu: Mac,
        seq: u32,
    },
    Impostor,
}

/// What we said of ourselves, and want to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) to: Mac,
    pub(crate) rsu: Mac,
    pub(crate) via: Mac,
    pub(crate) epoch: u32,
    pub(crate) seq: Seq,
    pub(crate) digest: u32,
    pub(crate) part: (u8, u8),
    pub(crate) standby: bool,
    /// With all clients; otherwise only who our upstream is.
    pub(crate) is_set: bool,
}

impl Word {
    /// All our clients, or a part of them, announced to this neighbour.
    pub(crate) fn of_set(to: Mac, a: &Announcement<'_>) -> Self {
        Word {
            to,
            rsu: Mac(a.rsu.0),
            via: Mac(a.via.0),
            epoch: a.epoch,
            seq: a.order.seq,
            digest: a.digest,
            part: (a.part, a.parts),
            standby: a.standby,
            is_set: true,
        }
    }
}

impl Heard {
    pub(crate) fn heartbeat(seq: u32, hops: u8) -> Self {
        Self::Heartbeat { boot: 1, seq, hops, via: None }
    }

    pub(crate) fn heartbeat_via(seq: u32, hops: u8, via: Mac) -> Self {
        Self::Heartbeat { boot: 1, seq, hops, via: Some(via) }
    }

    pub(crate) fn answer(nonce: u32, seq: u32, hops: u8) -> Self {
        Self::Answer { nonce, seq, hops }
    }
}

/// An OBU, the time in milliseconds, and everything it sent since the last [`Talk::clear`].
pub(crate) struct Talk {
    pub(crate) obu: Obu,
    pub(crate) now: u64,
    pub(crate) seq: u32,
    pub(crate) rsu: Mac,
    /// OBUs the RSU has, as heartbeats say.
    pub(crate) obus: u16,
    /// How rarely those who send them do, as heartbeats say.
    pub(crate) stride: u8,
    /// The low byte of the boot count of the RSU whose frames come down.
    pub(crate) down_boot: u8,
    /// Where those that send heartbeats say that they are.
    pub(crate) position: Option<Position>,
    /// What neighbours say of those behind them.
    pub(crate) children: u8,
    /// Between two heartbeats, as they say.
    pub(crate) interval_ms: u16,
    /// MTU of the neighbours' radios, as they say.
    pub(crate) mtu: u16,
    /// Whom the OBU asked last, and that question.
    asked_last: Option<(Mac, u32)>,
    /// The last word the OBU said of itself.
    pub(crate) said: Seq,
    /// The upstream hears nothing.
    pub(crate) is_deaf: bool,
    pub(crate) sent: Vec<(Mac, Vec<u8>)>,
    pub(crate) taps: usize,
    out: Replies,
}

impl Talk {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with_policy(policy: Policy) -> Self {
        Self::with(Settings { policy, ..Settings::default() })
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let start = Start { seed: 1, ..Start::new(US) };
        Self {
            obu: Obu::new(settings.config(&start), Timestamp::ZERO),
            now: 0,
            seq: 0,
            rsu: RSU,
            obus: 1,
            stride: 0,
            down_boot: 1,
            position: None,
            children: 0,
            interval_ms: 100,
            mtu: MTU,
            asked_last: None,
            said: Seq(0),
            is_deaf: false,
            sent: Vec::new(),
            taps: 0,
            out: Replies::new(),
        }
    }

    /// Past the quiet period, attached through `via`, two hops from the RSU.
    pub(crate) fn settled_behind(via: Mac) -> Self {
        Self::settled_behind_with(via, Policy::default())
    }

    pub(crate) fn settled_behind_with(via: Mac, policy: Policy) -> Self {
        let mut t = Self::with_policy(policy);
        t.settle(via, 1);
        t
    }

    /// Hears four heartbeats of `via`, which is `hops` from the RSU, asks it, and is attached
    /// through it.
    pub(crate) fn settle(&mut self, via: Mac, hops: u8) {
        for beat in 1..=4 {
            self.hear(beat * 100, via, Heard::heartbeat(beat as u32, hops));
        }
        self.seq = 4;
        let nonce = self.sent_probe(via);
        self.hear(405, via, Heard::answer(nonce, 4, hops));
        self.pass(420);
        assert_eq!(self.obu.attachment(), attached(RSU, via, hops + 1));
    }

    /// The next heartbeat, through `via`.
    pub(crate) fn beat(&mut self, via: Mac, hops: u8) -> u32 {
        self.seq += 1;
        self.hear(self.now, via, Heard::heartbeat(self.seq, hops));
        self.seq
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    pub(crate) fn hear(&mut self, ms: u64, from: Mac, heard: Heard) {
        let is_for_all = matches!(heard, Heard::Heartbeat { .. });
        self.hear_at(ms, from, if is_for_all { Mac::BROADCAST } else { US }, heard);
    }

    pub(crate) fn hear_broadcast(&mut self, ms: u64, from: Mac, heard: Heard) {
        self.hear_at(ms, from, Mac::BROADCAST, heard);
    }

    fn hear_at(&mut self, ms: u64, from: Mac, to: Mac, heard: Heard) {
        self.pass(ms);
        self.hear_now(from, to, heard);
    }

    /// Nobody calls the OBU until then, and what comes first is a frame that has waited.
    pub(crate) fn stall_and_hear(&mut self, until_ms: u64, from: Mac, heard: Heard) {
        self.now = until_ms;
        self.hear_now(from, Mac::BROADCAST, heard);
    }

    fn hear_now(&mut self, from: Mac, to: Mac, heard: Heard) {
        let sender = id(from);
        let sender_boot = Boot(1);
        let (rsu, obus, interval_ms) = (id(self.rsu), self.obus, self.interval_ms);
        let packet: PacketType<'_> = match heard.clone() {
            Heard::Heartbeat { boot, seq, hops, via } => Heartbeat {
                rsu,
                order: Order::new(boot, seq),
                interval_ms,
                hop_limit: HOP_LIMIT - hops,
                hops,
                cost: Cost(64 * u16::from(hops)),
                sender,
                sender_boot,
                hello: seq,
                via: via.map_or(if hops == 0 { NodeId::NONE } else { rsu }, id),
                obus,
                mtu: self.mtu,
                few_candidates: false,
                children: self.children,
                stride: self.stride,
                position: self.position,
            }
            .into(),
            Heard::Answer { nonce, seq, hops } => {
                let answer = answer(rsu, from, US, nonce, seq, hops);
                let stride = self.stride;
                let route = answer.route.map(|route| AnsweredRoute { stride, ..route });
                ProbeAnswer { mtu: self.mtu, route, ..answer }.into()
            }
            Heard::AnswerTo { asker, seq } => answer(rsu, from, asker, ASKED, seq, 1).into(),
            Heard::AnswerOf { boot, nonce, seq } => {
                let mut answer = answer(rsu, from, US, nonce, seq, 1);
                answer.route =
                    answer.route.map(|r| AnsweredRoute { order: Order::new(boot, seq), ..r });
                answer.into()
            }
            Heard::Probe { boot } => {
                let sender_boot = Boot(boot);
                Probe { sender, sender_boot, nonce: ASKED, rsu: NodeId::NONE }.into()
            }
            Heard::ProbeFor { rsu } => {
                Probe { sender, sender_boot, nonce: ASKED, rsu: id(rsu) }.into()
            }
            Heard::Impostor => {
                Probe { sender: id(US), sender_boot, nonce: ASKED, rsu: NodeId::NONE }.into()
            }
            Heard::Withdrawal { goodbye } => {
                let rsus = if goodbye { NodeIds::EMPTY } else { NodeIds::parse(&RSU.0).unwrap() };
                Withdrawal { sender, sender_boot, goodbye, rsus }.into()
            }
            Heard::Ack { epoch, status, digest } => AnnouncementAck {
                destination: id(US),
                rsu,
                epoch,
                seq: self.said,
                digest,
                part: 0,
                parts: 1,
                status,
                way: Way::END,
            }
            .into(),
            Heard::Reply { origin, seq, hops } => reply(origin, RSU, seq, hops, false).into(),
            Heard::Standby { origin, rsu, seq } => reply(origin, rsu, seq, 0, true).into(),
        };
        self.wire(from, to, packet);
        if let Heard::Heartbeat { boot, seq, hops, via } = heard {
            self.answer_as_upstream(from, (boot, seq, hops), via);
        }
    }

    /// The upstream that speaks answers what it was asked since it last did; who only hears it is
    /// no upstream for long.
    fn answer_as_upstream(
        &mut self,
        from: Mac,
        (boot, seq, hops): (u32, u32, u8),
        via: Option<Mac>,
    ) {
        let is_upstream = self.obu.attachment().is_some_and(|to| to.upstream == id(from));
        let asked = self.asked_last.take_if(|(whom, _)| is_upstream && *whom == from);
        let Some((_, nonce)) = asked.filter(|_| !self.is_deaf) else { return };
        let answer = answer(id(self.rsu), from, US, nonce, seq, hops);
        let route = answer.route.map(|route| AnsweredRoute {
            order: Order::new(boot, seq),
            via: via.map_or(route.via, id),
            ..route
        });
        self.wire(from, US, ProbeAnswer { route, mtu: self.mtu, ..answer }.into());
    }

    fn wire(&mut self, from: Mac, to: Mac, packet: PacketType<'_>) {
        let frame: Vec<u8> = (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet }).into();
        self.obu.handle_wire(self.at(), &frame, &mut self.out);
        self.collect();
    }

    /// A data frame of `source` on its way up comes from `from`.
    pub(crate) fn up(&mut self, from: Mac, source: Mac, hop_limit: u8) {
        let payload = inner(CAMERA, SERVER);
        let data = ToUpstream {
            destination: id(RSU),
            source: id(source),
            hop_limit,
            boot: 1,
            seq: Seq(1),
            priority: 0,
            payload: &payload,
        };
        self.wire(from, US, data.into());
    }

    /// A data frame of the RSU comes from `from`.
    pub(crate) fn down(&mut self, from: Mac, destination: Destination<'_>, seq: u32) {
        let payload = inner(SERVER, CAMERA);
        let data = ToDownstream {
            destination,
            source: id(self.rsu),
            boot: self.down_boot,
            seq: Seq(seq),
            priority: 0,
            payload: &payload,
        };
        self.wire(from, US, data.into());
    }

    /// A client's frame comes out of the TAP.
    pub(crate) fn tap(&mut self, from: Mac, to: Mac) -> Vec<u8> {
        let frame = inner(from, to);
        self.obu.handle_tap(self.at(), &frame, &mut self.out);
        self.collect();
        frame
    }

    pub(crate) fn link(&mut self, event: LinkEvent) {
        self.obu.handle_link(self.at(), event, &mut self.out);
        self.collect();
    }

    pub(crate) fn shut_down(&mut self) {
        self.obu.handle_shutdown(self.at(), &mut self.out);
        self.collect();
        assert!(self.obu.linger() > Duration::ZERO);
    }

    /// Time passes; the OBU does what it planned.
    pub(crate) fn pass(&mut self, until_ms: u64) {
        let until = Timestamp::from_millis(until_ms);
        while let Some(due) = self.obu.poll_timeout().filter(|due| *due <= until) {
            self.obu.handle_timeout(due, &mut self.out);
            self.collect();
        }
        self.now = self.now.max(until_ms);
    }

    /// Nobody calls the OBU until then, though it asked to be called.
    pub(crate) fn stall(&mut self, until_ms: u64) {
        self.now = until_ms;
        self.obu.handle_timeout(self.at(), &mut self.out);
        self.collect();
    }

    /// How often it wants to be called until then.
    pub(crate) fn wakes(&mut self, until_ms: u64) -> usize {
        let until = Timestamp::from_millis(until_ms);
        let mut wakes = 0;
        while let Some(due) = self.obu.poll_timeout().filter(|due| *due <= until) {
            self.obu.handle_timeout(due, &mut self.out);
            self.collect();
            wakes += 1;
        }
        self.now = self.now.max(until_ms);
        wakes
    }

    fn collect(&mut self) {
        for reply in self.out.take() {
            match reply {
                ReplyType::WireFlat(flat) => {
                    let message = Message::try_from(&flat[..]).unwrap();
                    let to = message.to;
                    match message.packet {
                        PacketType::Control(Control::Probe(probe)) if to.is_unicast() => {
                            self.asked_last = Some((to, probe.nonce));
                        }
                        PacketType::Control(Control::HeartbeatReply(reply))
                            if reply.origin == id(US) =>
                        {
                            self.said = reply.order.seq;
                        }
                        PacketType::Control(Control::Announcement(a)) if a.origin == id(US) => {
                            self.said = a.order.seq;
                        }
                        _ => {}
                    }
                    self.sent.push((to, flat));
                }
                ReplyType::TapFlat(_) => self.taps += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.sent.clear();
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.obu.poll_event()).collect()
    }

    pub(crate) fn sent_to(&self) -> Vec<Mac> {
        self.sent.iter().map(|(to, _)| *to).collect()
    }

    fn each<T>(&self, mut pick: impl FnMut(Mac, &Control<'_>) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        for (to, flat) in &self.sent {
            if let PacketType::Control(control) = Message::try_from(&flat[..]).unwrap().packet {
                picked.extend(pick(*to, &control));
            }
        }
        picked
    }

    pub(crate) fn heartbeats(&self) -> Vec<Heartbeat> {
        self.each(|_, control| match control {
            Control::Heartbeat(heartbeat) => Some(*heartbeat),
            _ => None,
        })
    }

    pub(crate) fn withdrawals(&self) -> usize {
        self.each(|_, control| matches!(control, Control::Withdrawal(_)).then_some(())).len()
    }

    /// What was said of the MTU of our radio, and in which message.
    pub(crate) fn mtus_said(&self) -> Vec<(&'static str, u16)> {
        self.each(|_, control| match control {
            Control::Heartbeat(heartbeat) => Some(("Heartbeat", heartbeat.mtu)),
            Control::HeartbeatReply(reply) => Some(("HeartbeatReply", reply.mtu)),
            Control::ProbeAnswer(answer) => Some(("ProbeAnswer", answer.mtu)),
            Control::Announcement(announcement) => Some(("Announcement", announcement.mtu)),
            _ => None,
        })
    }

    /// Questions that were sent are forgotten.
    pub(crate) fn forget_probes(&mut self) {
        let is_probe = |flat: &[u8]| {
            let packet = Message::try_from(flat).unwrap().packet;
            matches!(packet, PacketType::Control(Control::Probe(_)))
        };
        self.sent.retain(|(_, flat)| !is_probe(flat));
    }

    pub(crate) fn solicitations(&self) -> usize {
        self.each(|to, c| (to.is_group() && matches!(c, Control::Probe(_))).then_some(())).len()
    }

    pub(crate) fn announcements(&self) -> usize {
        self.each(|_, control| matches!(control, Control::Announcement(_)).then_some(())).len()
    }

    pub(crate) fn replies(&self) -> usize {
        self.each(|_, control| matches!(control, Control::HeartbeatReply(_)).then_some(())).len()
    }

    /// Whom questions went to.
    pub(crate) fn asked(&self) -> Vec<Mac> {
        self.each(|to, control| matches!(control, Control::Probe(_)).then_some(to))
    }

    pub(crate) fn answers(&self) -> usize {
        self.each(|_, control| matches!(control, Control::ProbeAnswer(_)).then_some(())).len()
    }

    /// To whom answers went.
    pub(crate) fn answered(&self) -> Vec<Mac> {
        self.each(|to, control| matches!(control, Control::ProbeAnswer(_)).then_some(to))
    }

    pub(crate) fn relayed_data(&self) -> usize {
        let is_data =
            |flat: &[u8]| matches!(Message::try_from(flat).unwrap().packet, PacketType::Data(_));
        self.sent.iter().filter(|(_, flat)| is_data(flat)).count()
    }

    pub(crate) fn last_probe(&self, to: Mac) -> Option<u32> {
        let nonces = self.each(|sent_to, control| match control {
            Control::Probe(probe) if sent_to == to => Some(probe.nonce),
            _ => None,
        });
        nonces.last().copied()
    }

    pub(crate) fn sent_probe(&self, to: Mac) -> u32 {
        self.last_probe(to).expect("a probe was sent")
    }

    fn last_announcement(&self) -> (Mac, u32, Vec<Client>, u32) {
        let read =
            |a: &Announcement<'_>| (Mac(a.rsu.0), a.epoch, a.clients.iter().collect(), a.digest);
        let all = self.each(|_, control| match control {
            Control::Announcement(announcement) => Some(read(announcement)),
            _ => None,
        });
        all.last().expect("an announcement was sent").clone()
    }

    /// To whom, for which RSU, with which epoch, and whether only that we may come, was announced.
    pub(crate) fn announced(&self) -> Vec<(Mac, Mac, u32, bool)> {
        self.each(|to, control| match control {
            Control::Announcement(a) => Some((to, Mac(a.rsu.0), a.epoch, a.standby)),
            _ => None,
        })
    }

    /// To whom and for which RSU replies went, and whether as a goodbye.
    pub(crate) fn replied(&self) -> Vec<(Mac, Mac, bool)> {
        self.each(|to, control| match control {
            Control::HeartbeatReply(reply) => Some((to, Mac(reply.rsu.0), reply.goodbye)),
            _ => None,
        })
    }

    /// Whom data frames were sent to.
    pub(crate) fn data_sent_to(&self) -> Vec<Mac> {
        let is_data =
            |flat: &[u8]| matches!(Message::try_from(flat).unwrap().packet, PacketType::Data(_));
        self.sent.iter().filter(|(_, flat)| is_data(flat)).map(|(to, _)| *to).collect()
    }

    /// RSU, epoch and clients of the last announcement.
    pub(crate) fn sent_announcement(&self) -> (Mac, u32, Vec<Client>) {
        let (rsu, epoch, clients, _) = self.last_announcement();
        (rsu, epoch, clients)
    }

    /// The RSU it was for acknowledges the last word that wants it.
    pub(crate) fn acknowledge(&mut self, via: Mac) {
        let word = *self.words().last().expect("a word that is to be acknowledged");
        self.answer(via, word, AckStatus::Accepted);
    }

    /// Each RSU acknowledges what it was told.
    pub(crate) fn acknowledge_all(&mut self) {
        for word in self.words() {
            self.answer(word.to, word, AckStatus::Accepted);
        }
    }

    /// The same, but those of our own RSU.
    pub(crate) fn acknowledge_all_there(&mut self) {
        for word in self.words().into_iter().filter(|word| word.rsu != RSU) {
            self.answer(word.to, word, AckStatus::Accepted);
        }
    }

    /// The answer of an RSU to a word of ours.
    pub(crate) fn answer(&mut self, via: Mac, to: Word, status: AckStatus) {
        let ack = AnnouncementAck {
            destination: id(US),
            rsu: id(to.rsu),
            epoch: to.epoch,
            seq: to.seq,
            digest: to.digest,
            part: to.part.0,
            parts: to.part.1,
            status,
            way: Way::END,
        };
        self.wire(via, US, ack.into());
    }

    /// What we said of ourselves that is to be acknowledged, in the order in which it was sent.
    pub(crate) fn words(&self) -> Vec<Word> {
        self.each(|to, control| match control {
            Control::Announcement(a) if a.origin == id(US) => Some(Word::of_set(to, a)),
            Control::HeartbeatReply(r) if r.origin == id(US) && r.acknowledge => Some(Word {
                to,
                rsu: Mac(r.rsu.0),
                via: Mac(r.via.0),
                epoch: r.epoch,
                seq: r.order.seq,
                digest: r.digest,
                part: (0, 1),
                standby: r.standby,
                is_set: false,
            }),
            _ => None,
        })
    }

    /// Lets time pass until `who` is asked, and answers; A answers as well meanwhile.
    pub(crate) fn prove(&mut self, who: Mac, seq: u32, hops: u8) {
        for _ in 0..2000 {
            if let Some(nonce) = self.last_probe(who) {
                self.hear(self.now, who, Heard::answer(nonce, seq, hops));
                self.sent.retain(|(to, _)| *to != who);
                return;
            }
            self.pass(self.now + 1);
            self.answer_probes_of(A);
            if self.now.is_multiple_of(90) {
                self.beat(A, 1);
                self.hear(self.now, who, Heard::heartbeat(self.seq, hops));
            }
        }
        panic!("{who} was never asked");
    }

    /// `who`, so many hops from this RSU that is not ours, answers what it is asked; A stays our
    /// upstream.
    pub(crate) fn prove_towards(&mut self, rsu: Mac, who: Mac, hops: u8) {
        for seq in 2..100 {
            self.pass(self.now + 50);
            self.rsu = RSU;
            self.beat(A, 1);
            self.rsu = rsu;
            self.hear(self.now, who, Heard::heartbeat(seq, hops));
            if let Some(nonce) = self.last_probe(who) {
                self.hear(self.now, who, Heard::answer(nonce, seq, hops));
            }
            if self.obu.upstream_for(id(rsu)) == Some(id(who)) {
                self.rsu = RSU;
                return;
            }
        }
        panic!("{who} was never asked");
    }

    /// `who`, one hop from the RSU, answers what it was asked.
    pub(crate) fn answer_probes_of(&mut self, who: Mac) {
        if let Some(nonce) = self.last_probe(who) {
            self.hear(self.now, who, Heard::answer(nonce, self.seq, 1));
            self.sent.retain(|(to, _)| *to != who);
        }
    }
}

/// Nonce of the questions others ask here.
const ASKED: u32 = 99;

fn answer(rsu: NodeId, from: Mac, asker: Mac, nonce: u32, seq: u32, hops: u8) -> ProbeAnswer {
    ProbeAnswer {
        sender: id(from),
        sender_boot: Boot(1),
        asker: id(asker),
        nonce,
        mtu: MTU,
        rsu,
        route: Some(AnsweredRoute {
            order: Order::new(1, seq),
            interval_ms: 100,
            hops,
            hop_limit: HOP_LIMIT - hops,
            cost: Cost(64 * u16::from(hops)),
            via: if hops == 0 { NodeId::NONE } else { rsu },
            stride: 0,
        }),
    }
}

/// What an OBU says whose upstream we are; or what we said, when it is ours.
pub(crate) fn reply(origin: Mac, rsu: Mac, seq: u32, hops: u8, standby: bool) -> HeartbeatReply {
    HeartbeatReply {
        rsu: id(rsu),
        origin: id(origin),
        order: Order::new(1, seq),
        epoch: 1,
        via: id(if origin == US { A } else { US }),
        digest: 0,
        clients: 0,
        within_ds: 13,
        answers: Seq(0),
        held_100us: 0,
        mtu: MTU,
        hops,
        goodbye: false,
        standby,
        acknowledge: false,
    }
}

/// The OBU itself: no relay is left on the way.
pub(crate) fn last(obu: Mac) -> Destination<'static> {
    Destination::Node { id: id(obu), way: Way::END }
}

/// An OBU that is a child of the relay that hears this.
pub(crate) fn next(obu: Mac) -> Destination<'static> {
    Destination::Node { id: id(obu), way: Way::new(1, &[]).unwrap() }
}

/// Every OBU but this one, as far as anything goes; the RSU took it after this heartbeat of it.
pub(crate) fn all_but(except: NodeId, taken_at: u32) -> Destination<'static> {
    Destination::All { except, hop_limit: HOP_LIMIT, taken_at: Seq(taken_at) }
}

/// A client's frame, as short as frames are.
fn inner(from: Mac, to: Mac) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00]].concat();
    frame.resize(60, 0);
    frame
}
