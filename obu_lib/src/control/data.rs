//! Where clients' frames go: from the TAP up, from above to the TAP, and past us for others.

use node_lib::control::deadline::Deadline;
use node_lib::control::inner::Inner;
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{Node, Replies};
use node_lib::control::radio::HOP_LIMIT;
use node_lib::control::traffic_class;
use node_lib::messages::Way;
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::messages::fragment::Fragment;
use node_lib::messages::way::Next;
use node_lib::{Mac, NodeId, Seq, Timestamp};

use super::children::NextHops;
use super::clients::{FromRadio, Noted};
use super::node::Obu;

impl Obu {
    /// A client's frame goes to the RSU we are attached to.
    pub(super) fn take_from_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some(inner) = Inner::parse(frame) else {
            self.context.counters.drop_inner += 1;
            return;
        };
        let Noted { is_news, evicted } = self.clients.learn(now, inner);
        self.context.counters.evicted += evicted;
        if is_news {
            self.registration.note_clients_changed(now);
            self.wake_at(self.registration_deadline());
        }
        if !inner.destination.is_group() && self.clients.is_local(now, inner) {
            // The bridge beside us flooded a frame that is for its own side.
            self.context.counters.drop_reflected += 1;
            return;
        }
        if self.context.is_idle(now) {
            self.registration.hurry(now);
            self.wake_at(Deadline::new(now, "our clients speak again"));
        }
        self.context.active_at = Some(now);
        let Some(attached) = self.attached else {
            self.context.counters.drop_no_route += 1;
            // No time to be patient any more.
            self.solicitation.hurry(now);
            self.wake_at(Deadline::new(now, "a client's frame has no way"));
            self.note_lost();
            return;
        };
        let hop = self.hop(attached.rsu, attached.upstream);
        if self.context.radio.tell_too_big(now, hop, frame, out, &mut self.context.counters) {
            return;
        }
        self.seq.0 = self.seq.0.wrapping_add(1);
        let data = ToUpstream {
            destination: attached.rsu,
            source: self.context.id(),
            hop_limit: HOP_LIMIT,
            boot: self.context.radio.boot.low_byte(),
            seq: self.seq,
            again: false,
            priority: traffic_class::of_inner(frame),
            payload: frame,
        };
        if self.send_up(now, hop, None, data, out) {
            self.context.counters.tap_to_wire += 1;
        }
    }

    /// Sends a frame that came from `from`, or from our own clients, to the upstream; while that is
    /// in doubt, the latter through the next best as well.
    #[inline]
    fn send_up(
        &mut self,
        now: Timestamp,
        hop: NextHop,
        from: Option<Mac>,
        data: ToUpstream<'_>,
        out: &mut Replies,
    ) -> bool {
        if !self.context.radio.data(hop, data, out, &mut self.context.counters) {
            return false;
        }
        let Some(route) = self.routes.get_mut(&data.destination) else { return true };
        let second = match from {
            None => route.second_way(&self.context, now, data.payload.len()),
            Some(_) => None,
        };
        let is_first = route.is_idle(now);
        let late_after = route.note_sent(&self.context, now, second.is_some());
        match second {
            Some(second) => self.send_second(second, data, out),
            None => route.keep(&self.context, now, from, data),
        }
        if let Some(late_after) = late_after {
            // The RSU may only have been told in passing who our upstream is. Now it matters.
            let late = Deadline::new(now + late_after, "ask an upstream that is late");
            self.wake_at(if is_first {
                Deadline::new(now, "frames go this way again")
            } else {
                late
            });
        }
        true
    }

    #[cold]
    fn send_second(&mut self, to: Mac, data: ToUpstream<'_>, out: &mut Replies) {
        self.context.counters.sent_twice += 1;
        let hop = self.hop(data.destination, to);
        let again = self.context.policy.rerouting;
        let data = ToUpstream { again, ..data };
        self.context.radio.data(hop, data, out, &mut self.context.counters);
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
        let whole = self.reassembly.add(now, frame, fragment, &mut self.context.counters);
        if let Some(whole) = whole {
            self.handle_wire(now, &whole, out);
            self.reassembly.give_back(whole);
        }
    }

    /// Another node's frame on its way up: passed to our upstream for that RSU.
    #[inline]
    pub(super) fn relay_up(
        &mut self,
        now: Timestamp,
        from: Mac,
        data: &ToUpstream<'_>,
        out: &mut Replies,
    ) {
        let us = self.context.id();
        if data.source == us || data.destination == us {
            self.context.counters.drop_reflected += 1;
            return;
        }
        let Some(hop_limit) = data.hop_limit.checked_sub(1) else {
            self.context.counters.drop_hop_limit += 1;
            return;
        };
        let Some(to) = self.upstream_for_others(now, data.destination, from, out) else { return };
        let relayed = ToUpstream { hop_limit, ..*data };
        if self.send_up(now, self.hop(data.destination, to), Some(from), relayed, out) {
            self.context.counters.relayed += 1;
        }
    }

    /// Where to pass what `from` sends through us to `rsu`. When there is no way, it is told so.
    pub(super) fn upstream_for_others(
        &mut self,
        now: Timestamp,
        rsu: NodeId,
        from: Mac,
        out: &mut Replies,
    ) -> Option<Mac> {
        let Some(route) = self.routes.get_mut(&rsu) else {
            self.context.counters.drop_no_route += 1;
            return None;
        };
        if route.is_quiet(&self.context, now) {
            self.context.counters.drop_quiet += 1;
            return None;
        }
        match route.upstream() {
            Some(upstream) if upstream != from => {
                route.note_child(now);
                self.children.renew(now, from, rsu);
                Some(upstream)
            }
            _ => {
                self.context.counters.drop_no_route += 1;
                if route.hold_down(&self.context, now).is_some() {
                    return None;
                }
                if self.complaints.take(now) {
                    route.say_withdrawal(&mut self.context, from, out);
                } else {
                    self.context.counters.drop_rate_limit += 1;
                }
                None
            }
        }
    }

    /// A frame from an RSU: for us, for an OBU behind us, or for all.
    pub(super) fn take_from_above(
        &mut self,
        now: Timestamp,
        from: Mac,
        data: &ToDownstream<'_>,
        out: &mut Replies,
    ) {
        match data.destination {
            Destination::Node { id, .. } if id == self.context.id() => {
                self.context.active_at = Some(now);
                self.note_received(now, data.source);
                if !self.is_new(now, data) {
                    return;
                }
                if self.floods.has_brought(now, data.source, data.payload) {
                    return self.count_duplicate();
                }
                self.deliver(now, data.payload, out);
            }
            Destination::Node { id, way } => self.relay_down(now, from, id, way, data, out),
            Destination::All { except, hop_limit, taken_at } => {
                self.flood(now, from, (except, hop_limit, taken_at), data, out);
            }
        }
    }

    /// A frame of this RSU came down to us, or to somebody behind us.
    fn note_received(&mut self, now: Timestamp, rsu: NodeId) {
        let Some(route) = self.routes.get_mut(&rsu) else { return };
        let is_first = route.is_idle(now);
        route.note_received(now);
        if is_first {
            // As when the first goes up.
            self.wake_at(Deadline::new(now, "frames go this way again"));
        }
    }

    fn is_new(&mut self, now: Timestamp, data: &ToDownstream<'_>) -> bool {
        let is_new = self.duplicates.accept(now, data.source, data.boot, data.seq);
        if !is_new {
            self.count_duplicate();
        }
        is_new
    }

    fn count_duplicate(&mut self) {
        self.context.counters.drop_duplicate += 1;
        self.note_doubled();
    }

    /// Where a message of this RSU that came from a neighbour goes on to on its way down, and the
    /// way from there. Counted, when it must go no further.
    #[inline]
    pub(super) fn next_hops<'a>(
        &mut self,
        now: Timestamp,
        from: Mac,
        (rsu, obu): (NodeId, NodeId),
        way: Way<'a>,
    ) -> (NextHops, Way<'a>) {
        let Some((next, way)) = way.next() else {
            // We are not whom it is for, and nobody else may be behind us.
            self.context.counters.drop_hop_limit += 1;
            return (NextHops::new(), way);
        };
        let mut hops = match next {
            Next::Labelled(label) => self.children.labelled(now, rsu, label),
            Next::Destination => self.children.named(now, rsu, obu),
        };
        hops.retain(|hop| hop.mac != from);
        self.context.counters.drop_no_route += u64::from(hops.is_empty());
        (hops, way)
    }

    fn relay_down(
        &mut self,
        now: Timestamp,
        from: Mac,
        obu: NodeId,
        way: Way<'_>,
        data: &ToDownstream<'_>,
        out: &mut Replies,
    ) {
        self.note_received(now, data.source);
        let (hops, way) = self.next_hops(now, from, (data.source, obu), way);
        let destination = Destination::Node { id: obu, way };
        for hop in hops {
            let relayed = ToDownstream { destination, ..*data };
            if self.context.radio.data(hop, relayed, out, &mut self.context.counters) {
                self.context.counters.relayed += 1;
            }
        }
    }

    /// Everybody attached to the RSU gets a flood once; each relay passes it on once, if somebody
    /// is behind it.
    fn flood(
        &mut self,
        now: Timestamp,
        from: Mac,
        (except, hop_limit, taken_at): (NodeId, u8, Seq),
        data: &ToDownstream<'_>,
        out: &mut Replies,
    ) {
        if !self.is_new(now, data) {
            return;
        }
        if self.listens_to(now, data.source) && except != self.context.id() {
            let route = self.routes.get(&data.source);
            let taken = route.and_then(|route| route.when(now, data.boot, taken_at));
            if self.floods.is_new(now, data.source, taken, data.payload) {
                self.deliver(now, data.payload, out);
            } else {
                self.count_duplicate();
            }
        }
        // One frame over the radio, however many are behind us; to one alone it goes by unicast,
        // which a radio repeats when it is not acknowledged.
        let Some(to) = self.children.all(now, data.source, from) else { return };
        let Some(hop_limit) = hop_limit.checked_sub(1) else {
            self.context.counters.drop_hop_limit += 1;
            return;
        };
        let destination = Destination::All { except, hop_limit, taken_at };
        let relayed = ToDownstream { destination, ..*data };
        if self.context.radio.data(to, relayed, out, &mut self.context.counters) {
            self.context.counters.flood_relayed += 1;
        }
    }

    fn deliver(&mut self, now: Timestamp, payload: &[u8], out: &mut Replies) {
        let Some(inner) = Inner::parse(payload) else {
            self.context.counters.drop_inner += 1;
            return;
        };
        match self.clients.hear_from_radio(now, inner) {
            FromRadio::Reflection => {
                self.context.counters.drop_reflected += 1;
                return;
            }
            FromRadio::Moved => {
                self.registration.note_clients_changed(now);
                self.wake_at(self.registration_deadline());
            }
            FromRadio::Stranger => {}
        }
        self.context.radio.deliver(payload, out, &mut self.context.counters);
    }
}
