//! A conversation with one RSU: what it hears and reads goes in, what it says and writes is kept.

use std::collections::BTreeMap;

use node_lib::control::event::Event;
use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::data::{Data, Destination, ToUpstream};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType, Way};
use node_lib::{Mac, NodeId, Order, Seq, Start, Timestamp};
use rsu_lib::{Rsu, Settings};

pub(crate) const US: Mac = Mac([2, 0, 0, 0, 0, 0x10]);
pub(crate) const A: Mac = Mac([2, 0, 0, 0, 0, 0x0a]);
pub(crate) const B: Mac = Mac([2, 0, 0, 0, 0, 0x0b]);
pub(crate) const C: Mac = Mac([2, 0, 0, 0, 0, 0x0c]);
pub(crate) const RELAY: Mac = Mac([2, 0, 0, 0, 0, 0x0f]);
pub(crate) const CAMERA: Mac = Mac([2, 0, 0, 0, 1, 1]);
pub(crate) const SIGN: Mac = Mac([2, 0, 0, 0, 1, 2]);
pub(crate) const SERVER: Mac = Mac([2, 0, 0, 0, 1, 3]);
pub(crate) const STRANGER: Mac = Mac([2, 0, 0, 0, 1, 4]);

pub(crate) fn id(mac: Mac) -> NodeId {
    mac.into()
}

/// Each OBU speaks about once a second.
pub(crate) const WITHIN_DS: u16 = 13;

/// What an OBU says about where it is and who is behind it.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) obu: Mac,
    pub(crate) order: Order,
    pub(crate) epoch: u32,
    pub(crate) standby: bool,
    pub(crate) clients: Vec<Client>,
    pub(crate) goodbye: bool,
}

/// An RSU, the time in milliseconds, and what it sent since the last [`Talk::clear`].
pub(crate) struct Talk {
    pub(crate) rsu: Rsu,
    /// Each OBU's upstream. That of the others is the RSU.
    pub(crate) upstreams: BTreeMap<Mac, Mac>,
    /// The MTU of each OBU's radio. That of the others is 1500.
    pub(crate) mtus: BTreeMap<Mac, u16>,
    pub(crate) now: u64,
    pub(crate) seq: u32,
    pub(crate) sent: Vec<(u64, Vec<u8>)>,
    pub(crate) taps: Vec<Vec<u8>>,
    pub(crate) out: Replies,
}

impl Talk {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let start = Start { seed: 1, ..Start::new(US) };
        Self {
            rsu: Rsu::new(settings.config(&start), Timestamp::ZERO),
            upstreams: BTreeMap::new(),
            mtus: BTreeMap::new(),
            now: 0,
            seq: 0,
            sent: Vec::new(),
            taps: Vec::new(),
            out: Replies::new(),
        }
    }

    pub(crate) fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    pub(crate) fn pass(&mut self, until_ms: u64) {
        let until = Timestamp::from_millis(until_ms);
        while let Some(due) = self.rsu.poll_timeout().filter(|due| *due <= until) {
            self.now = due.as_micros() / 1000;
            self.rsu.handle_timeout(due, &mut self.out);
            self.collect();
        }
        self.now = until_ms;
    }

    pub(crate) fn hear(&mut self, from: Mac, to: Mac, packet: PacketType<'_>) {
        let frame: Vec<u8> = (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet }).into();
        self.rsu.handle_wire(self.at(), &frame, &mut self.out);
        self.collect();
    }

    /// Who this OBU's upstream is.
    pub(crate) fn via(&self, obu: Mac) -> Mac {
        self.upstreams.get(&obu).copied().unwrap_or(US)
    }

    /// From now on this is the OBU's upstream, and nobody is told.
    pub(crate) fn moves(&mut self, obu: Mac, via: Mac) {
        self.upstreams.insert(obu, via);
    }

    /// Who brings the RSU what this OBU says, and how many relays have passed it on.
    fn brought_by(&self, obu: Mac) -> (Mac, u8) {
        let (mut by, mut hops) = (obu, 0);
        while self.via(by) != US {
            assert!(hops < 40, "the upstreams of OBUs form no circle");
            (by, hops) = (self.via(by), hops + 1);
        }
        (by, hops)
    }

    /// This OBU behind `via` registers its upstream, as others come through it.
    pub(crate) fn relay(&mut self, obu: Mac, via: Mac) {
        self.moves(obu, via);
        let said = Said { standby: true, ..self.words(obu, 1, &[]) };
        let reply = HeartbeatReply { acknowledge: true, ..self.reply_of(&said) };
        self.bring(obu, reply.into());
    }

    /// The RSU hears a word of this OBU.
    pub(crate) fn bring(&mut self, obu: Mac, packet: PacketType<'_>) {
        let (by, _) = self.brought_by(obu);
        self.hear(by, US, packet);
    }

    /// An OBU announces its clients, from behind this upstream or, with itself, from behind the
    /// RSU.
    pub(crate) fn announce(&mut self, obu: Mac, via: Mac, epoch: u32, macs: &[Mac]) {
        self.moves(obu, if via == obu { US } else { via });
        let words = self.words(obu, epoch, macs);
        self.say(&words);
    }

    pub(crate) fn stand_by(&mut self, obu: Mac, epoch: u32, macs: &[Mac]) {
        let words = Said { standby: true, ..self.words(obu, epoch, macs) };
        self.say(&words);
    }

    /// Announces this to everybody in earshot, as no OBU does.
    pub(crate) fn announce_to_all(&mut self, obu: Mac, macs: &[Mac]) {
        let words = self.words(obu, 1, macs);
        self.announce_clients(Mac::BROADCAST, &words, (0, 1), &words.clients);
    }

    /// Announces one part of a set.
    pub(crate) fn announce_part(
        &mut self,
        obu: Mac,
        epoch: u32,
        part: (u8, u8),
        macs: &[Mac],
        whole: &[Mac],
    ) {
        let words = self.words(obu, epoch, whole);
        self.announce_clients(US, &words, part, &clients(macs));
    }

    /// What an attached OBU says next.
    pub(crate) fn words(&mut self, obu: Mac, epoch: u32, macs: &[Mac]) -> Said {
        self.seq += 1;
        let order = Order::new(1, self.seq);
        Said { obu, order, epoch, standby: false, clients: clients(macs), goodbye: false }
    }

    /// Says this, whatever was said before.
    pub(crate) fn say(&mut self, said: &Said) {
        if said.goodbye {
            self.bring(said.obu, self.reply_of(said).into());
        } else {
            self.announce_clients(US, said, (0, 1), &said.clients);
        }
    }

    /// This part of what is said, with these clients.
    fn announce_clients(
        &mut self,
        to: Mac,
        said: &Said,
        (part, parts): (u8, u8),
        named: &[Client],
    ) {
        let mut groups = Vec::new();
        Clients::encode(named, &mut groups);
        let (by, hops) = self.brought_by(said.obu);
        let announcement = Announcement {
            rsu: id(US),
            origin: id(said.obu),
            order: said.order,
            epoch: said.epoch,
            via: id(self.via(said.obu)),
            digest: client_digest(&said.clients),
            part,
            parts,
            within_ds: WITHIN_DS,
            at_risk_10ms: 0,
            mtu: self.mtu(said.obu),
            hops,
            standby: said.standby,
            clients: Clients::parse(&groups).unwrap(),
        };
        self.hear(by, to, announcement.into());
    }

    fn mtu(&self, obu: Mac) -> u16 {
        self.mtus.get(&obu).copied().unwrap_or(1500)
    }

    /// What is said, as a reply to no heartbeat.
    pub(crate) fn reply_of(&self, said: &Said) -> HeartbeatReply {
        HeartbeatReply {
            rsu: id(US),
            origin: id(said.obu),
            order: said.order,
            epoch: said.epoch,
            via: id(self.via(said.obu)),
            digest: client_digest(&said.clients),
            clients: said.clients.len() as u16,
            within_ds: WITHIN_DS,
            at_risk_10ms: 0,
            answers: Seq(0),
            held_100us: 0,
            mtu: self.mtu(said.obu),
            hops: self.brought_by(said.obu).1,
            goodbye: said.goodbye,
            standby: said.standby,
            acknowledge: false,
        }
    }

    pub(crate) fn reply(&mut self, obu: Mac, epoch: u32, macs: &[Mac], goodbye: bool) {
        let said = Said { goodbye, ..self.words(obu, epoch, macs) };
        self.bring(obu, self.reply_of(&said).into());
    }

    pub(crate) fn reply_on_standby(&mut self, obu: Mac, epoch: u32, macs: &[Mac]) {
        let said = Said { standby: true, ..self.words(obu, epoch, macs) };
        self.bring(obu, self.reply_of(&said).into());
    }

    pub(crate) fn reply_to(&mut self, obu: Mac, answers: Seq, held_100us: u16) {
        let said = self.words(obu, 1, &[]);
        let reply = HeartbeatReply { answers, held_100us, ..self.reply_of(&said) };
        self.bring(obu, reply.into());
    }

    pub(crate) fn up(&mut self, obu: Mac, from: Mac, to: Mac) {
        self.up_frame(obu, &inner(from, to));
    }

    pub(crate) fn up_frame(&mut self, obu: Mac, payload: &[u8]) {
        self.up_as(obu, payload, false);
    }

    /// `again`: it was given to another next hop before.
    pub(crate) fn up_as(&mut self, obu: Mac, payload: &[u8], again: bool) {
        self.seq += 1;
        let data = ToUpstream {
            destination: id(US),
            source: id(obu),
            hop_limit: HOP_LIMIT - self.brought_by(obu).1,
            boot: 1,
            seq: Seq(self.seq),
            again,
            priority: 0,
            payload,
        };
        self.bring(obu, data.into());
    }

    pub(crate) fn tap(&mut self, from: Mac, to: Mac) {
        self.tap_frame(&inner(from, to));
    }

    pub(crate) fn tap_frame(&mut self, frame: &[u8]) {
        self.rsu.handle_tap(self.at(), frame, &mut self.out);
        self.collect();
    }

    /// It may have waited in the TAP for long.
    pub(crate) fn tap_late(&mut self, frame: &[u8]) {
        self.rsu.handle_tap_late(self.at(), frame, &mut self.out);
        self.collect();
    }

    pub(crate) fn collect(&mut self) {
        for reply in self.out.take() {
            match reply {
                ReplyType::WireFlat(flat) => self.sent.push((self.now, flat)),
                ReplyType::TapFlat(flat) => self.taps.push(flat),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.sent.clear();
        self.taps.clear();
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.rsu.poll_event()).collect()
    }

    pub(crate) fn each<T>(&self, mut pick: impl FnMut(Mac, &Control<'_>) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        for (_, flat) in &self.sent {
            let message = Message::try_from(&flat[..]).unwrap();
            if let PacketType::Control(control) = &message.packet {
                picked.extend(pick(message.to, control));
            }
        }
        picked
    }

    pub(crate) fn heartbeats(&self) -> Vec<(u64, Heartbeat)> {
        let mut beats = Vec::new();
        for (at, flat) in &self.sent {
            let message = Message::try_from(&flat[..]).unwrap();
            if let PacketType::Control(Control::Heartbeat(heartbeat)) = message.packet {
                beats.push((*at, heartbeat));
            }
        }
        beats
    }

    pub(crate) fn acks(&self) -> Vec<(Mac, AckStatus, u32)> {
        self.each(|to, control| match control {
            Control::AnnouncementAck(ack) => Some((to, ack.status, ack.epoch)),
            _ => None,
        })
    }

    pub(crate) fn sent_down(&self) -> Vec<(Mac, Destination<'_>)> {
        let mut sent = Vec::new();
        for (_, flat) in &self.sent {
            let message = Message::try_from(&flat[..]).unwrap();
            if let PacketType::Data(Data::Downstream(data)) = message.packet {
                sent.push((message.to, data.destination));
            }
        }
        sent
    }
}

/// These, in no VLAN.
pub(crate) fn clients(macs: &[Mac]) -> Vec<Client> {
    macs.iter().map(|mac| Client { vlan: 0, mac: *mac }).collect()
}

/// For this OBU, past so many relays, at most one: then the way needs no label.
pub(crate) fn to(obu: Mac, relays: u8) -> Destination<'static> {
    Destination::Node { id: id(obu), way: Way::new(relays, &[]).unwrap() }
}

/// For all but one, taken when so many heartbeats had been sent.
pub(crate) fn all_except(except: NodeId, taken_at: u32) -> Destination<'static> {
    Destination::All { except, hop_limit: HOP_LIMIT, taken_at: Seq(taken_at) }
}

pub(crate) fn inner(from: Mac, to: Mac) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00]].concat();
    frame.resize(60, 0);
    frame
}

/// An ARP request of `client`.
pub(crate) fn arp(client: Mac, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let fixed = [0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1];
    let mut frame =
        [&[0xff; 6][..], &client.0, &fixed, &client.0, &sender, &[0; 6], &target].concat();
    frame.resize(60, 0);
    frame
}

pub(crate) fn rarp(client: Mac) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &client.0, &[0x80, 0x35]].concat();
    frame.resize(60, 0);
    frame
}

/// An IPv4 packet of so many bytes that may not be fragmented.
pub(crate) fn packet(len: u16, to: Mac) -> Vec<u8> {
    let mut frame = [&to.0[..], &SERVER.0, &[0x08, 0x00, 0x45, 0]].concat();
    frame.extend_from_slice(&len.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.resize(14 + usize::from(len), 0);
    frame
}
