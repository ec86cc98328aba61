//! Plain flooding, for comparison: [`Flooder`].
//!
//! What the closest public project does on its control plane, in the frame formats of this one.
//! Each node relays the first copy it hears of every heartbeat of every RSU, at once and whoever
//! else did. Each OBU answers every heartbeat with a reply to the RSU. Relays pass it on hop by hop
//! to the neighbour that brought them that heartbeat first. Nothing is suppressed, merged or paced.
//! It carries no data: what is compared is what routes cost before anybody uses them.
//!
//! The formats differ by a few bytes (heartbeat 46 and reply 52 there, 62 and 66 here, each with
//! its Ethernet header), so the comparison is one of rules, not of layouts.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::radio::{HOP_LIMIT, Radio};
use node_lib::messages::control::Control;
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::packet_type::PacketType;
use node_lib::messages::{Cost, ETHERTYPE_DEFAULT, Rhythm};
use node_lib::{Mac, NodeId, Order, Seq, Start, Timestamp};
use sim::Dice;

/// The newest heartbeat of an RSU, and who brought it first.
struct Heard {
    order: Order,
    from: Mac,
}

/// A node that floods. Without a period it is an OBU.
pub struct Flooder {
    radio: Radio,
    counters: Counters,
    /// Time between heartbeats of an RSU.
    period: Option<Duration>,
    next: Timestamp,
    dice: Dice,
    seq: u32,
    hello: u32,
    heard: BTreeMap<NodeId, Heard>,
}

/// RSUs remembered; there are not so many in any scenario.
const RSUS_MAX: usize = 1024;

impl Flooder {
    /// A node that starts now; an RSU if it has a period.
    pub fn new(start: &Start, period: Option<Duration>, now: Timestamp) -> Self {
        let Start { id, boot, radio_mac: mac, radio_mtu: mtu, seed, .. } = *start;
        let radio = Radio::new(id, boot, mac, ETHERTYPE_DEFAULT, mtu);
        let mut dice = Dice::new(seed, 0);
        let next = now + dice.up_to(period.unwrap_or_default());
        let (counters, heard) = (Counters::default(), BTreeMap::new());
        Self { radio, counters, period, next, dice, seq: 0, hello: 0, heard }
    }

    fn hear_heartbeat(&mut self, from: Mac, heard: &Heartbeat, out: &mut Replies) {
        let is_news = match self.heard.get(&heard.rsu) {
            Some(last) => heard.order > last.order,
            None => self.heard.len() < RSUS_MAX,
        };
        if heard.rsu == self.radio.id || !is_news {
            return;
        }
        self.heard.insert(heard.rsu, Heard { order: heard.order, from });
        let (hops, limit) = (heard.hops.saturating_add(1), heard.hop_limit.saturating_sub(1));
        if limit > 0 {
            self.hello += 1;
            let relayed = Heartbeat {
                hop_limit: limit,
                hops,
                sender: self.radio.id,
                sender_boot: self.radio.boot,
                hello: self.hello,
                via: from.into(),
                mtu: self.radio.said_mtu(),
                ..*heard
            };
            self.send(Mac::BROADCAST, Control::Heartbeat(relayed), out);
        }
        if self.period.is_none() {
            self.seq += 1;
            let reply = HeartbeatReply {
                rsu: heard.rsu,
                origin: self.radio.id,
                order: Order { boot: self.radio.boot, seq: Seq(self.seq) },
                epoch: 1,
                via: from.into(),
                digest: 0,
                clients: 0,
                within_ds: 1,
                at_risk_10ms: 0,
                answers: heard.order.seq,
                held_100us: 0,
                mtu: self.radio.said_mtu(),
                hops: 0,
                goodbye: false,
                standby: false,
                acknowledge: false,
            };
            self.send(from, Control::HeartbeatReply(reply), out);
        }
    }

    fn hear_reply(&mut self, heard: &HeartbeatReply, out: &mut Replies) {
        let hops = heard.hops.saturating_add(1);
        if heard.rsu == self.radio.id || hops > HOP_LIMIT {
            return;
        }
        if let Some(next) = self.heard.get(&heard.rsu).map(|heard| heard.from) {
            let passed_on = HeartbeatReply { hops, ..*heard };
            self.send(next, Control::HeartbeatReply(passed_on), out);
        }
    }

    fn send(&mut self, to: Mac, control: Control<'_>, out: &mut Replies) {
        self.radio.control(to, PacketType::Control(control), out, &mut self.counters);
    }
}

impl Node for Flooder {
    fn id(&self) -> NodeId {
        self.radio.id
    }

    fn handle_wire(&mut self, _now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some(heard) = self.radio.hear(frame, &mut self.counters) else { return };
        match heard.control(&mut self.counters) {
            Some(Control::Heartbeat(heartbeat)) => {
                self.hear_heartbeat(heard.from, &heartbeat, out);
            }
            Some(Control::HeartbeatReply(reply)) => self.hear_reply(&reply, out),
            _ => {}
        }
    }

    fn handle_tap(&mut self, _now: Timestamp, _frame: &[u8], _out: &mut Replies) {}

    fn handle_link(&mut self, _now: Timestamp, _event: LinkEvent, _out: &mut Replies) {}

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        let Some(period) = self.period.filter(|_| now >= self.next) else { return };
        self.seq += 1;
        self.hello += 1;
        let heartbeat = Heartbeat {
            rsu: self.radio.id,
            order: Order { boot: self.radio.boot, seq: Seq(self.seq) },
            rhythm: Rhythm::each(u16::try_from(period.as_millis()).unwrap_or(u16::MAX).max(1)),
            hop_limit: HOP_LIMIT,
            hops: 0,
            cost: Cost(0),
            sender: self.radio.id,
            sender_boot: self.radio.boot,
            hello: self.hello,
            via: NodeId::NONE,
            mtu: self.radio.said_mtu(),
            obus: 0,
            children: 0,
            stride: 0,
            position: None,
        };
        self.send(Mac::BROADCAST, Control::Heartbeat(heartbeat), out);
        // Up to 10 % later, as there.
        self.next = now + period + self.dice.up_to(period / 10);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.period.map(|_| self.next)
    }

    fn handle_shutdown(&mut self, _now: Timestamp, _out: &mut Replies) {
        self.period = None;
    }

    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
