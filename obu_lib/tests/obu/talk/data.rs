//! What goes up and down in a conversation, with all its fields: clients' frames, replies,
//! announcements.

use node_lib::control::node::{LinkEvent, Node};
use node_lib::messages::control::Control;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::data::Data;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, Order};

use super::{A, Heard, Talk, US, Word};

impl Talk {
    /// A data frame comes from `from`.
    pub(crate) fn hear_data<'a>(&mut self, from: Mac, data: impl Into<Data<'a>>) {
        let packet = match data.into() {
            Data::Upstream(data) => data.into(),
            Data::Downstream(data) => data.into(),
        };
        self.wire(from, US, packet);
    }

    /// This comes from `from`, whatever it is.
    pub(crate) fn hear_packet(&mut self, from: Mac, to: Mac, packet: PacketType<'_>) {
        self.wire(from, to, packet);
    }

    /// These bytes come off the radio.
    pub(crate) fn hear_frame(&mut self, frame: &[u8]) {
        self.obu.handle_wire(self.at(), frame, &mut self.out);
        self.collect();
    }

    /// The radio gave these bytes up, which were sent before.
    pub(crate) fn give_up(&mut self, frame: &[u8]) {
        self.obu.handle_unacknowledged(self.at(), frame, &mut self.out);
        self.collect();
    }

    /// This frame comes out of the TAP.
    pub(crate) fn tap_frame(&mut self, frame: &[u8]) {
        self.obu.handle_tap(self.at(), frame, &mut self.out);
        self.collect();
    }

    /// To whom data frames were sent, and what was in them.
    pub(crate) fn data_sent(&self) -> Vec<(Mac, Data<'_>)> {
        let data = self.sent.iter().filter_map(|(to, flat)| {
            match Message::try_from(&flat[..]).unwrap().packet {
                PacketType::Data(data) => Some((*to, data)),
                PacketType::Control(_) | PacketType::Fragment(_) => None,
            }
        });
        data.collect()
    }

    pub(crate) fn set_mtu(&mut self, mtu: usize) {
        self.link(LinkEvent::MtuChanged(mtu));
    }

    /// Replies of ours and of those behind us, in the order in which they were sent.
    pub(crate) fn replies_sent(&self) -> Vec<HeartbeatReply> {
        self.each(|_, control| match control {
            Control::HeartbeatReply(reply) => Some(*reply),
            _ => None,
        })
    }

    /// Acknowledgements passed on: to whom, and how many relays they pass yet.
    pub(crate) fn acks_sent(&self) -> Vec<(Mac, u8)> {
        self.each(|to, control| match control {
            Control::AnnouncementAck(ack) => Some((to, ack.way.relays())),
            _ => None,
        })
    }

    /// Announcements, part by part, and the clients each names.
    pub(crate) fn parts_sent(&self) -> Vec<(Word, Vec<Client>)> {
        self.each(|to, control| match control {
            Control::Announcement(a) => Some((Word::of_set(to, a), a.clients.iter().collect())),
            _ => None,
        })
    }

    /// Until then A, one hop from the RSU, brings each heartbeat and answers what it is asked.
    pub(crate) fn live_until(&mut self, until: u64) {
        while self.now < until {
            let next = until.min((self.now / 10 + 1) * 10);
            self.pass(next);
            if self.now.is_multiple_of(100) {
                self.seq += 1;
                self.hear(self.now, A, Heard::heartbeat(self.seq, 1));
            }
            if let Some(nonce) = self.last_probe(A) {
                self.hear(self.now, A, Heard::answer(nonce, self.seq, 1));
                self.forget_probes();
            }
        }
    }

    /// Boot count and sequence of all that we say of ourselves.
    pub(crate) fn orders_sent(&self) -> Vec<Order> {
        self.each(|_, control| match control {
            Control::HeartbeatReply(reply) => Some(reply.order),
            Control::Announcement(announcement) => Some(announcement.order),
            _ => None,
        })
    }
}
