//! Ideal routing, for comparison: [`Ideal`], a node that knows everything and says nothing.
//!
//! What of the losses on a channel could any routing avoid? Here each data frame takes the way of
//! least expected airtime, hop by hop, over links as they are: to the RSU that is best for its
//! vehicle, and from it. Ways are worked out anew from the truth whenever the world looks where
//! nodes are, and all nodes know them at once. There is no control frame, no belief that is late,
//! and no wait for anything.
//!
//! All else is as with the nodes that ship: the radio and its contention, acknowledgements and
//! retries, queues, outbox and TAP, and bundles. The header is the smallest the nodes have: the 22
//! bytes of [`ToUpstream`], up and down. On the way down the nodes that ship have 2 more for each
//! relay beyond the next.
//!
//! | what | how |
//! |---|---|
//! | cost of a hop | 1 / (p·q): the transmissions until one is acknowledged, p and q being the shares that arrive there and back when nobody disturbs them ([`World::delivery`](sim::World::delivery)) |
//! | who is best | the RSU to which the sum of that is least; of equals the way with the shorter hops |
//! | RSUs on one LAN | pass on over it what is for another's vehicle |
//! | broadcasts | are not carried: nobody has to learn anything. Nor are frames longer than the radio's |
//!
//! **It is a bound for routing by shortest paths without any control, and not what the channel can
//! carry at most.** Costs know nothing of load and of who disturbs whom: frames spread more evenly,
//! or sent when others are silent, may fare better.

mod forest;
mod truth;

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::{Attachment, Cause, Event, Events};
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::radio::{HOP_LIMIT, Radio};
use node_lib::control::traffic_class;
use node_lib::messages::data::{Data, ToUpstream};
use node_lib::messages::ethernet::Header;
use node_lib::messages::{ETHERTYPE_DEFAULT, Message};
use node_lib::{NodeId, Seq, Start, Timestamp};
use sim::{NodeIndex, Role};

use truth::{IdealNextHop, Truth};
pub(crate) use truth::{Oracle, SharedTruth};

/// How often an OBU says which way is the best: for tables alone, nothing depends on it.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A node that knows everything and says nothing.
pub(crate) struct Ideal {
    index: usize,
    role: Role,
    radio: Radio,
    truth: SharedTruth,
    seq: u32,
    attachment: Option<Attachment>,
    next_report: Option<Timestamp>,
    events: Events,
    counters: Counters,
}

impl Ideal {
    /// A node that starts now, and knows this.
    pub(crate) fn new(
        start: &Start,
        index: NodeIndex,
        role: Role,
        truth: SharedTruth,
        now: Timestamp,
    ) -> Self {
        let Start { id, boot, radio_mac: mac, radio_mtu: mtu, .. } = *start;
        Self {
            index: index.0,
            role,
            radio: Radio::new(id, boot, mac, ETHERTYPE_DEFAULT, mtu),
            truth,
            seq: 0,
            attachment: None,
            next_report: (role == Role::Obu).then_some(now),
            events: Events::default(),
            counters: Counters::default(),
        }
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a frame on its way from here.
    fn send(&mut self, data: ToUpstream<'_>, out: &mut Replies) -> bool {
        let next = self.truth().next(self.index, data.destination);
        match next {
            Some(IdealNextHop::Radio(mac)) => {
                if data.wire_len() > self.radio.mtu {
                    self.counters.drop_oversize += 1;
                    return false;
                }
                let next = NextHop { mac, mtu: self.radio.said_mtu() };
                self.radio.data(next, data, out, &mut self.counters)
            }
            Some(IdealNextHop::Lan(to)) => {
                let (from, ethertype) = (self.radio.mac, self.radio.ethertype);
                let packet = Data::from(data).into();
                out.tap(|flat| Message { to, from, ethertype, packet }.emit(flat));
                true
            }
            None => {
                self.counters.drop_no_route += 1;
                false
            }
        }
    }

    /// Takes a frame off the radio, or from another RSU on the LAN.
    fn hear(&mut self, frame: &[u8], out: &mut Replies) {
        let Some(heard) = self.radio.hear(frame, &mut self.counters) else { return };
        let Some(Data::Upstream(data)) = heard.data() else {
            self.counters.drop_malformed += 1;
            return;
        };
        if self.truth().has_arrived(self.index, data.destination) {
            if self.role == Role::Rsu
                && let Some((Header { from: client, .. }, _)) = Header::read(data.payload)
            {
                self.truth().note_port(client, self.index);
            }
            return self.radio.deliver(data.payload, out, &mut self.counters);
        }
        let Some(hop_limit) = data.hop_limit.checked_sub(1) else {
            self.counters.drop_hop_limit += 1;
            return;
        };
        let was_sent = self.send(ToUpstream { hop_limit, ..data }, out);
        self.counters.relayed += u64::from(was_sent);
    }
}

impl Node for Ideal {
    fn id(&self) -> NodeId {
        self.radio.id
    }

    fn handle_wire(&mut self, _now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.hear(frame, out);
    }

    fn handle_tap(&mut self, _now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some((Header { to, .. }, _)) = Header::read(frame) else {
            self.counters.drop_inner += 1;
            return;
        };
        if to == self.radio.mac {
            return self.hear(frame, out);
        }
        let Some(destination) = self.truth().takes(self.index, to) else { return };
        self.seq = self.seq.wrapping_add(1);
        let data = ToUpstream {
            destination,
            source: self.radio.id,
            hop_limit: HOP_LIMIT,
            boot: self.radio.boot.low_byte(),
            seq: Seq(self.seq),
            again: false,
            priority: traffic_class::of_inner(frame),
            payload: frame,
        };
        let was_sent = self.send(data, out);
        self.counters.tap_to_wire += u64::from(was_sent);
    }

    fn handle_link(&mut self, _now: Timestamp, _event: LinkEvent, _out: &mut Replies) {}

    fn handle_timeout(&mut self, now: Timestamp, _out: &mut Replies) {
        if self.next_report.is_none_or(|at| at > now) {
            return;
        }
        self.next_report = Some(now + REPORT_EVERY);
        let (from, to) = (self.attachment, self.truth().attachment(self.index));
        let ends = |of: Attachment| (of.rsu, of.upstream);
        if from.map(ends) != to.map(ends) {
            self.counters.upstream_changes += 1;
            let cause = match (from, to) {
                (None, _) => Cause::First,
                (_, Some(_)) => Cause::Better,
                (_, None) => Cause::Dead,
            };
            let silence = Duration::ZERO;
            self.events.push(Event::UpstreamChanged { from, to, cause, silence });
        }
        self.attachment = to;
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.next_report
    }

    fn handle_shutdown(&mut self, _now: Timestamp, _out: &mut Replies) {
        self.next_report = None;
    }

    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    fn candidates(&self, _now: Timestamp) -> usize {
        usize::from(self.attachment.is_some())
    }

    fn upstream_for(&self, rsu: NodeId) -> Option<NodeId> {
        self.attachment.filter(|to| to.rsu == rsu).map(|to| to.upstream)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}
