//! Where clients' frames go: between the LAN, the OBUs, and from OBU to OBU.

use std::time::Duration;

use node_lib::control::at_risk;
use node_lib::control::client_cache::client;
use node_lib::control::inner::Inner;
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{Node, Replies};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::control::traffic_class;
use node_lib::messages::Way;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::data::{Data, Destination, ToDownstream, ToUpstream};
use node_lib::messages::ethernet::{ARP, IPV4, IPV6, RARP};
use node_lib::messages::fragment::Fragment;
use node_lib::{Mac, NodeId, Timestamp};

use super::about::About;
use super::addresses::snooping::{Said, may_state, payload, said};
use super::clients::{CLIENTS_MAX, Port};
use super::departed::LATE_FOR;
use super::node::{FLOODS_BURST, GROUP_UNIT, Rsu};
use super::obus::tree::{Edge, WayDown};

/// An RSU that has started does not know what it received before. For so long it takes nothing that
/// goes a second time: it may have come already. OBUs keep frames for 300 ms, and on a full channel
/// they come two seconds later.
const NO_COPIES_FOR: Duration = at_risk::AGE_MAX.saturating_add(Duration::from_secs(2));

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
        if data.again && now < self.began + NO_COPIES_FOR {
            self.counters.drop_duplicate += 1;
            return;
        }
        if !self.duplicates.accept(now, obu, data.boot, data.seq) {
            self.counters.drop_duplicate += 1;
            return;
        }
        let is_known = self.obus.knows(obu);
        if !is_known && !self.strangers.take(now) {
            self.counters.drop_strangers += 1;
            return;
        }
        self.obus.renew(now, obu);
        if self.obus.has_untold() {
            self.compare_ways(now, from, data, out);
        }
        if self.obus.must_ask_sender(now, obu, LATE_FOR) {
            // We restarted, its announcement is still on the way, or somebody else said goodbye for
            // it. A stranger behind a relay cannot be asked: its frame does not say which way it
            // came. Its next reply does.
            let is_beside_us = data.hop_limit == HOP_LIMIT;
            let edge = Edge { via: self.radio.id, mac: Some(from), mtu: u16::MAX };
            let way = if is_beside_us { self.obus.way_by(edge) } else { self.obus.way(obu) };
            if let Ok(way) = way
                && self.may_question(now, obu)
            {
                self.send_ack(obu, way, AckStatus::SendAll, About::default(), out);
            }
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
        } else if self.may_teach(now, is_known, source)
            && self.learn(now, inner, data.payload, Port::Obu(obu))
        {
            self.name_to_lan(now, source);
        }
        if inner.destination.is_group() {
            self.send_to_tap(data.payload, out);
            self.flood(now, obu, budget(inner, data.payload), data.payload, out);
            return;
        }
        match self.owner(now, client(inner.vlan, inner.destination)) {
            Some(Port::Tap) => self.send_to_tap(data.payload, out),
            Some(Port::Obu(other)) if other == obu => self.counters.drop_reflected += 1,
            Some(Port::Obu(other)) => self.send_to_obu(now, other, data.payload, out),
            None => {
                self.send_to_tap(data.payload, out);
                self.flood(now, obu, Budget::Unknown, data.payload, out);
            }
        }
    }

    /// Whether this frame came the way that leads back to its OBU: if so, those on it are where
    /// they are said to be.
    #[cold]
    fn compare_ways(
        &mut self,
        now: Timestamp,
        from: Mac,
        data: &ToUpstream<'_>,
        out: &mut Replies,
    ) {
        let relays = HOP_LIMIT.saturating_sub(data.hop_limit);
        let way = self.obus.way(data.source);
        let is_same = way.is_ok_and(|way| way.first.mac == from && way.hops() == relays + 1);
        for untold in self.obus.untold_on_way(data.source) {
            if is_same {
                self.obus.confirm(untold);
            } else {
                self.tell_where_it_was(now, untold, out);
            }
        }
    }

    /// Whether a frame of this OBU shows where its client is. An OBU that has not announced itself
    /// may be made up: it fills half of the table at most, and takes no client from one that has.
    #[inline]
    fn may_teach(&self, now: Timestamp, is_known: bool, source: Client) -> bool {
        is_known
            || match self.clients.owner(now, source) {
                Some(Port::Obu(other)) => !self.obus.is_here(other) || !self.obus.is_reached(other),
                Some(Port::Tap) => true,
                None => self.clients.len() < CLIENTS_MAX / 2,
            }
    }

    /// A part of a neighbour's message. With the last one it is handled as if it had come in one
    /// frame.
    pub(super) fn take_fragment(
        &mut self,
        now: Timestamp,
        frame: &[u8],
        fragment: &Fragment<'_>,
        out: &mut Replies,
    ) {
        let whole = self.reassembly.add(now, frame, fragment, &mut self.counters);
        if let Some(whole) = whole {
            self.handle_wire(now, &whole, out);
            self.reassembly.give_back(whole);
        }
    }

    /// A frame from the LAN. `is_late`: it may have waited in the TAP for so long that an OBU that
    /// has had it from another RSU would take it for another frame. It is not flooded, unless hosts
    /// need it to find each other: of that a second copy does no harm, and a full radio may be full
    /// for long.
    pub(super) fn take_from_tap(
        &mut self,
        now: Timestamp,
        frame: &[u8],
        is_late: bool,
        out: &mut Replies,
    ) {
        let Some(inner) = Inner::parse(frame) else {
            self.counters.drop_inner += 1;
            return;
        };
        self.learn(now, inner, frame, Port::Tap);
        if inner.destination.is_group() {
            if is_late && budget(inner, frame) != Budget::Vital {
                self.counters.drop_flood_late += 1;
            } else {
                self.flood_from_tap(now, inner, frame, out);
            }
            return;
        }
        match self.owner(now, client(inner.vlan, inner.destination)) {
            Some(Port::Obu(obu)) => {
                let Some(way) = self.way_to(now, obu, out) else { return };
                if !self.radio.tell_too_big(now, way.first, frame, out, &mut self.counters) {
                    self.send_along(now, obu, &way, frame, out);
                }
            }
            elsewhere => match self.late.obu(now, client(inner.vlan, inner.destination)) {
                // Down the old way, never back to the LAN it came from.
                Some(obu) => {
                    self.counters.forwarded_late += 1;
                    self.send_to_obu(now, obu, frame, out);
                }
                None if elsewhere.is_some() => self.counters.drop_reflected += 1,
                None if is_late => self.counters.drop_flood_late += 1,
                None => self.flood(now, NodeId::NONE, Budget::Unknown, frame, out),
            },
        }
    }

    fn flood_from_tap(&mut self, now: Timestamp, inner: Inner, frame: &[u8], out: &mut Replies) {
        // Reverse ARP only tells switches, us included, where a client is: vehicles need not hear
        // it.
        if inner.ethertype == RARP {
            return;
        }
        let source = client(inner.vlan, inner.source);
        let payload = payload(frame);
        if may_state(inner, payload)
            && let Some(Said { address, is_unasked: true, .. }) = said(inner, payload)
            && !self.repeats.is_new(now, source, address)
        {
            self.counters.drop_duplicate += 1;
            return;
        }
        // An OBU whose client this was a moment ago would take it for a sign that the client has
        // left its LAN. It hears of it from the RSU it went to, if at all.
        let except = self.late.obu(now, source).unwrap_or(NodeId::NONE);
        self.flood(now, except, budget(inner, frame), frame, out);
    }

    #[inline]
    fn send_to_tap(&mut self, frame: &[u8], out: &mut Replies) {
        self.radio.deliver(frame, out, &mut self.counters);
    }

    #[inline]
    fn send_to_obu(&mut self, now: Timestamp, obu: NodeId, frame: &[u8], out: &mut Replies) {
        if let Some(way) = self.way_to(now, obu, out) {
            self.send_along(now, obu, &way, frame, out);
        }
    }

    #[inline]
    fn way_to(&mut self, now: Timestamp, obu: NodeId, out: &mut Replies) -> Option<WayDown> {
        if self.obus.has_untold() && !self.obus.speaks(now, obu) {
            for untold in self.obus.untold_on_way(obu) {
                self.tell_where_it_was(now, untold, out);
            }
        }
        let way = self.obus.way(obu);
        self.expect_way(obu, way)
    }

    #[inline]
    fn send_along(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        way: &WayDown,
        frame: &[u8],
        out: &mut Replies,
    ) {
        let destination = Destination::Node { id: obu, way: way.as_sent() };
        let is_sent = self.send_down(way.first, destination, frame, out);
        if is_sent && self.reroutes {
            self.keep(now, obu, frame);
        }
    }

    /// Keeps a copy of the frame that was sent to this OBU just now.
    fn keep(&mut self, now: Timestamp, obu: NodeId, frame: &[u8]) {
        let destination = Destination::Node { id: obu, way: Way::default() };
        let data = self.numbered(destination, frame);
        self.obus.keep(now, obu, Data::Downstream(data));
    }

    /// This OBU has said that its upstream is another one. What was sent to it or through it a
    /// moment ago may have gone to the one before in vain, and goes once more.
    pub(super) fn reroute_what_was_at_risk(
        &mut self,
        now: Timestamp,
        relay: NodeId,
        out: &mut Replies,
    ) {
        let Some(since) = self.obus.take_moved(relay) else { return };
        for obu in self.obus.sent_through(relay) {
            let Ok(way) = self.obus.way(obu) else { continue };
            let destination = Destination::Node { id: obu, way: way.as_sent() };
            let Self { radio, counters, .. } = self;
            self.obus.reroute(now, obu, since, way.first.mac, |data| {
                let Data::Downstream(data) = data else { return };
                let data = ToDownstream { destination, ..data };
                let is_sent = radio.data(way.first, data, out, counters);
                counters.rerouted += u64::from(is_sent);
            });
        }
    }

    /// To every attached OBU but one, within a budget, because every such frame costs airtime on
    /// the whole radio. One frame, however many OBUs there are; to a single next hop it goes by
    /// unicast, which a radio repeats when it is not acknowledged.
    fn flood(
        &mut self,
        now: Timestamp,
        except: NodeId,
        budget: Budget,
        frame: &[u8],
        out: &mut Replies,
    ) {
        let others = self.obus.attached() - usize::from(self.obus.is_attached(except));
        if others == 0 {
            return;
        }
        let Some(to) = self.obus.all() else {
            self.counters.drop_no_route += 1;
            return;
        };
        let units = u32::try_from(frame.len() / GROUP_UNIT + 2).unwrap_or(u32::MAX);
        let may_go = match (budget, &mut self.groups) {
            (Budget::Unknown, _) => {
                let times = self.relays.saturating_add(1).min(FLOODS_BURST);
                self.floods.take_many(now, times)
            }
            (Budget::Group, Some([group, _])) => group.take_many(now, units),
            (Budget::Vital, Some([_, vital])) => vital.take_many(now, units),
            (Budget::Group | Budget::Vital, None) => true,
        };
        if !may_go {
            self.counters.drop_flood_limit += 1;
            return;
        }
        let taken_at = self.order.seq;
        let destination = Destination::All { except, hop_limit: HOP_LIMIT, taken_at };
        self.send_down(to, destination, frame, out);
    }

    #[inline]
    fn send_down(
        &mut self,
        to: NextHop,
        destination: Destination<'_>,
        frame: &[u8],
        out: &mut Replies,
    ) -> bool {
        self.seq.0 = self.seq.0.wrapping_add(1);
        let data = self.numbered(destination, frame);
        let is_sent = self.radio.data(to, data, out, &mut self.counters);
        self.counters.tap_to_wire += u64::from(is_sent);
        is_sent
    }

    /// The frame with the number that was given out last.
    #[inline]
    fn numbered<'a>(&self, destination: Destination<'a>, frame: &'a [u8]) -> ToDownstream<'a> {
        ToDownstream {
            destination,
            source: self.radio.id,
            boot: self.radio.boot.low_byte(),
            seq: self.seq,
            priority: traffic_class::of_inner(frame),
            payload: frame,
        }
    }
}

/// Whose share of the radio a frame to all takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Budget {
    /// Unicast frames for clients nobody knows.
    Unknown,
    /// Broadcast and multicast.
    Group,
    /// Of these, what hosts need to find each other.
    Vital,
}

/// ARP, and what goes to groups no router passes on (RFC 5771 §4, RFC 4291 §2.7: neighbour
/// discovery, group membership, mDNS, DHCPv6, routing protocols), is vital, and so is DHCP. A video
/// stream is not.
fn budget(inner: Inner, frame: &[u8]) -> Budget {
    let payload = payload(frame);
    let is_vital = match inner.ethertype {
        ARP => true,
        IPV4 => {
            // Destination 224.0.0.0/24; or UDP, first fragment, to the ports of DHCP (RFC 2131
            // §4.1).
            let header = 4 * usize::from(payload.first().copied().unwrap_or(0) & 15);
            let port = payload.get(header + 2..header + 4);
            let is_first =
                payload.get(6..8).is_some_and(|at| matches!(at, [high, 0] if high & 0x1f == 0));
            payload.get(16..19) == Some(&[224, 0, 0])
                || (payload.get(9) == Some(&17)
                    && is_first
                    && (port == Some(&[0, 67]) || port == Some(&[0, 68])))
        }
        IPV6 => payload.get(24..26) == Some(&[0xff, 0x02]),
        _ => false,
    };
    if is_vital { Budget::Vital } else { Budget::Group }
}
