//! A conversation with one OBU: what it hears goes in as messages, what it says is kept.

mod answering;
mod data;
pub(crate) mod heard;
mod said;

use std::time::Duration;

use node_lib::control::event::{Attachment, Event};
use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::control::snapshot::Snapshot;
use node_lib::messages::control::Control;
use node_lib::messages::control::position::Position;
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType, Rhythm, Way};
use node_lib::{Mac, NodeId, Seq, Start, Timestamp};
use obu_lib::{Obu, Policy, Settings};

pub(crate) use heard::Heard;
pub(crate) use said::Word;

use heard::MTU;
use said::whom;

pub(crate) const US: Mac = Mac([2, 0, 0, 0, 0, 0xee]);
pub(crate) const RSU: Mac = Mac([2, 0, 0, 0, 0, 0x10]);
pub(crate) const OTHER_RSU: Mac = Mac([2, 0, 0, 0, 0, 0x11]);
pub(crate) const A: Mac = Mac([2, 0, 0, 0, 0, 0x0a]);
pub(crate) const B: Mac = Mac([2, 0, 0, 0, 0, 0x0b]);
pub(crate) const C: Mac = Mac([2, 0, 0, 0, 0, 0x0c]);
pub(crate) const CAMERA: Mac = Mac([2, 0, 0, 0, 1, 1]);
pub(crate) const SERVER: Mac = Mac([2, 0, 0, 0, 1, 2]);

pub(crate) fn id(mac: Mac) -> NodeId {
    mac.into()
}

pub(crate) fn attached(rsu: Mac, upstream: Mac, hops: u8) -> Option<Attachment> {
    Some(Attachment { rsu: id(rsu), upstream: id(upstream), hops })
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
    /// What neighbours leave out looks as if it had been lost.
    pub(crate) is_lossy: bool,
    /// The low byte of the boot count of the RSU whose frames come down.
    pub(crate) down_boot: u8,
    /// Where those that send heartbeats say that they are.
    pub(crate) position: Option<Position>,
    /// What neighbours say of those behind them.
    pub(crate) children: u8,
    /// How often heartbeats come, as they say.
    pub(crate) rhythm: Rhythm,
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
            is_lossy: false,
            down_boot: 1,
            position: None,
            children: 0,
            rhythm: Rhythm::each(100),
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

    /// Behind A, B could be upstream as well, and C is behind us.
    pub(crate) fn between_with(policy: Policy) -> Self {
        let mut t = Self::settled_behind_with(A, policy);
        t.acknowledge(A);
        t.prove_beside_a(B);
        t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
        t.clear();
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

    /// What whoever looks inside is told.
    pub(crate) fn look(&self) -> Snapshot {
        self.obu.snapshot(self.at())
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
            again: false,
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
                        PacketType::Control(Control::Probe(probe)) if whom(&probe).is_unicast() => {
                            self.asked_last = Some((whom(&probe), probe.nonce));
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
