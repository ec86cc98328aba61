//! Where clients' frames go: between the LAN, the OBUs, and from OBU to OBU.

use node_lib::control::client_cache::client;
use node_lib::control::inner::Inner;
use node_lib::control::node::Replies;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::{Mac, NodeId, Timestamp};

use super::addresses::said::{payload, said};
use super::clients::Port;
use super::node::Rsu;
use super::wired::{arp, nd, rarp};

impl Rsu {
    /// A vehicle's frame arrived.
    pub(super) fn take_from_obu(
        &mut self,
        now: Timestamp,
        from: Mac,
        data: &ToUpstream<'_>,
        out: &mut Replies,
    ) {
        let obu = data.source;
        if data.destination != self.radio.id || obu == self.radio.id {
            self.counters.drop_foreign += 1;
            return;
        }
        if !self.duplicates.accept(now, obu, data.boot, data.seq) {
            self.counters.drop_duplicate += 1;
            return;
        }
        self.downstream.renew(now, obu, from);
        if !self.obus.knows(obu) && self.questions.take(now) {
            // We restarted, or its announcement is still on the way.
            self.send_ack(now, obu, Some(from), AckStatus::SendAll, 0, (0, 1), 0, out);
        }
        let Some(inner) = Inner::parse(data.payload) else {
            self.counters.drop_inner += 1;
            return;
        };
        if Some(inner.source) == self.tap_mac {
            self.counters.drop_reflected += 1;
            return;
        }
        let source = client(inner.vlan, inner.source);
        if self.late.obu(now, source) == Some(obu) {
            self.counters.forwarded_late += 1;
        } else if self.learn(now, inner, data.payload, Port::Obu(obu)) {
            self.wired.add(now, source);
            self.wake_at(now);
        }
        if inner.destination.is_group() {
            self.send_to_tap(data.payload, out);
            self.flood(now, obu, data.payload, out);
            return;
        }
        match self.clients.owner(now, client(inner.vlan, inner.destination)) {
            Some(Port::Tap) => self.send_to_tap(data.payload, out),
            Some(Port::Obu(other)) if other == obu => self.counters.drop_reflected += 1,
            Some(Port::Obu(other)) => self.send_to_obu(now, other, data.payload, out),
            None => {
                self.send_to_tap(data.payload, out);
                self.flood_unknown(now, obu, data.payload, out);
            }
        }
    }

    /// A frame from the LAN.
    pub(super) fn take_from_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some(inner) = Inner::parse(frame) else {
            self.counters.drop_inner += 1;
            return;
        };
        self.learn(now, inner, frame, Port::Tap);
        if inner.destination.is_group() {
            self.flood_from_tap(now, inner, frame, out);
            return;
        }
        match self.clients.owner(now, client(inner.vlan, inner.destination)) {
            Some(Port::Obu(obu)) => self.send_to_obu(now, obu, frame, out),
            elsewhere => match self.late.obu(now, client(inner.vlan, inner.destination)) {
                // Down the old way, never back to the LAN it came from.
                Some(obu) => {
                    self.counters.forwarded_late += 1;
                    self.send_to_obu(now, obu, frame, out);
                }
                None if elsewhere.is_some() => self.counters.drop_reflected += 1,
                None => self.flood_unknown(now, NodeId::NONE, frame, out),
            },
        }
    }

    fn flood_from_tap(&mut self, now: Timestamp, inner: Inner, frame: &[u8], out: &mut Replies) {
        // Reverse ARP only tells switches, us included, where a client is: vehicles need not hear it.
        if inner.ethertype == rarp::ETHERTYPE {
            return;
        }
        let source = client(inner.vlan, inner.source);
        let payload = payload(frame);
        if (arp::is_announcement(inner, payload) || nd::is_unsolicited(inner, payload))
            && let Some(said) = said(inner, payload)
            && !self.repeats.is_new(now, source, said.address)
        {
            self.counters.drop_duplicate += 1;
            return;
        }
        // An OBU whose client this was a moment ago would take it for a sign that the client has left
        // its LAN. It hears of it from the RSU it went to, if at all.
        let except = self.late.obu(now, source).unwrap_or(NodeId::NONE);
        self.flood(now, except, frame, out);
    }

    #[inline]
    fn send_to_tap(&mut self, frame: &[u8], out: &mut Replies) {
        self.counters.wire_to_tap += 1;
        out.tap_frame(frame);
    }

    #[inline]
    fn send_to_obu(&mut self, now: Timestamp, obu: NodeId, frame: &[u8], out: &mut Replies) {
        let Some(path) = self.downstream.path(now, obu) else {
            self.counters.drop_no_route += 1;
            return;
        };
        self.send_down(path.next, Destination::Node(obu), frame, out);
    }

    /// A unicast frame for somebody we do not know: to everybody, within a budget, because every
    /// such frame costs airtime on the whole radio.
    fn flood_unknown(&mut self, now: Timestamp, except: NodeId, frame: &[u8], out: &mut Replies) {
        if self.floods.take(now) {
            self.flood(now, except, frame, out);
        } else {
            self.counters.drop_flood_limit += 1;
        }
    }

    /// To every attached OBU but one. One frame over the radio, however many there are; to a single
    /// next hop it goes by unicast, which a radio repeats when it is not acknowledged.
    fn flood(&mut self, now: Timestamp, except: NodeId, frame: &[u8], out: &mut Replies) {
        let mut next_hops = self
            .downstream
            .attached_to(now, self.radio.id)
            .filter(|(obu, _)| *obu != except)
            .map(|(_, path)| path.next);
        let Some(first) = next_hops.next() else { return };
        let to = if next_hops.any(|next| next != first) { Mac::BROADCAST } else { first };
        drop(next_hops);
        self.send_down(to, Destination::AllExcept(except), frame, out);
    }

    fn send_down(&mut self, to: Mac, destination: Destination, frame: &[u8], out: &mut Replies) {
        self.seq.0 = self.seq.0.wrapping_add(1);
        let data = ToDownstream {
            destination,
            source: self.radio.id,
            hop_limit: HOP_LIMIT,
            boot: self.radio.boot.low_byte(),
            seq: self.seq,
            payload: frame,
        };
        if self.radio.data(to, data, out, &mut self.counters) {
            self.counters.tap_to_wire += 1;
        }
    }
}
