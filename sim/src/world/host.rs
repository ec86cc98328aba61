//! What is around a node on its machine, as it is around a daemon. There is the way out to the
//! radio with its bundles and its outbox, and the interface of the TAP with MTU and queue. There
//! are the sockets of the radio, which fill while the process stands still.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::frame::{Flight, FrameKind, Packet, Parcel, Trigger};
use crate::index::NodeIndex;
use crate::lan::addresses;
use crate::trace::What;
use crate::traffic::Numbered;
use crate::world::{RadioFrame, Role, SimEvent, World};
use node_lib::buffer_pool::get_buffer;
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::messages::capacity::INNER_OVERHEAD;
use node_lib::time::Timestamp;
use node_lib::transport::bundler::{BundleCounters, Opened};
use node_lib::transport::mtu::TapMtu;
use node_lib::transport::outbox::OutboxCounters;
use node_lib::transport::socket::{RECV_BUFFER, truesize};
use node_lib::transport::tap_wait::TAP_QUEUE_MAX;
use node_lib::transport::{BURST, DRAIN_TURNS, Outgoing, Sent, Sink, WayOut};

/// What a node's TAP refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounters {
    /// Frames longer than the MTU.
    pub oversize: u64,
    /// Frames that found [`TAP_QUEUE_MAX`] others waiting.
    pub full: u64,
}

/// The machine around one start of a node.
#[derive(Debug, Default)]
pub(super) struct Host {
    way_out: WayOut,
    tap_mtu: usize,
    /// Frames nobody has read from the TAP yet.
    tap: VecDeque<Arc<[u8]>>,
    tap_counters: TapCounters,
    /// Until when the process stands still, if it does.
    stalled_until: Timestamp,
    /// What came meanwhile.
    control: Socket,
    data: Socket,
    links: Vec<LinkEvent>,
    is_told_to_stop: bool,
}

/// Frames a process has not read yet.
#[derive(Debug, Default)]
struct Socket {
    frames: VecDeque<Arc<Flight>>,
    bytes: usize,
    dropped: u64,
}

impl Socket {
    /// A frame comes; with no room it is dropped. The kernel takes one as long as what it has does
    /// not reach the limit (`packet_rcv`, net/packet/af_packet.c).
    fn push(&mut self, flight: &Arc<Flight>) {
        if self.bytes >= 2 * RECV_BUFFER {
            self.dropped += 1;
            return;
        }
        self.bytes += truesize(flight.bytes.len());
        self.frames.push_back(Arc::clone(flight));
    }

    fn pop(&mut self) -> Option<Arc<Flight>> {
        let flight = self.frames.pop_front()?;
        self.bytes = self.bytes.saturating_sub(truesize(flight.bytes.len()));
        Some(flight)
    }
}

impl Host {
    /// Around a start of a node, with a radio of this MTU.
    pub(super) fn new(radio_mtu: usize, tap_mtu: usize, bundles: bool) -> Self {
        Self { way_out: WayOut::new(radio_mtu, bundles), tap_mtu, ..Self::default() }
    }

    /// Frames from the TAP wait: until the radio has room, or the process runs again.
    fn holds_tap(&self) -> bool {
        self.way_out.has_data() || !self.tap.is_empty()
    }
}

/// The radio of a node.
struct Antenna<'a> {
    world: &'a mut World,
    node: usize,
}

impl Sink for Antenna<'_> {
    fn take(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        for (done, frame) in frames.iter().enumerate() {
            if !self.world.transmit(self.node, frame) {
                return Sent::Full(done);
            }
        }
        Sent::All
    }

    fn dropped(&mut self, frame: &[u8]) {
        self.world.note_unsent(self.node, frame);
    }
}

impl World {
    /// Whether nodes that start from now on send small frames for the same neighbour in one, as
    /// with the daemons' `--bundles`. They do unless told otherwise.
    pub fn bundle(&mut self, bundles: bool) {
        self.bundles = bundles;
    }

    /// What operators decide about the MTU of the TAPs of this role, for nodes that start from now
    /// on. A node whose radio does not fit does not start.
    pub fn set_tap_mtu(&mut self, role: Role, mtu: TapMtu) {
        match role {
            Role::Obu => self.tap_mtu.0 = mtu,
            Role::Rsu => self.tap_mtu.1 = mtu,
        }
    }

    /// MTU of the TAP of a running node, in bytes.
    pub fn tap_mtu(&self, node: NodeIndex) -> Option<usize> {
        self.node(node)?;
        Some(self.host(node)?.tap_mtu)
    }

    /// What the TAP of a node refused since its last start.
    pub fn tap_counters(&self, node: NodeIndex) -> TapCounters {
        self.host(node).map(|host| host.tap_counters).unwrap_or_default()
    }

    /// What a node sent and received in bundles since its last start.
    pub fn bundles(&self, node: NodeIndex) -> BundleCounters {
        self.host(node).map(|host| *host.way_out.bundles()).unwrap_or_default()
    }

    /// What had to wait for a node's radio since its last start.
    pub fn waited(&self, node: NodeIndex) -> OutboxCounters {
        self.host(node).map(|host| *host.way_out.waited()).unwrap_or_default()
    }

    /// Frames for a node that stood still and found its sockets full, since its last start.
    pub fn unread(&self, node: NodeIndex) -> u64 {
        self.host(node).map_or(0, |host| host.control.dropped + host.data.dropped)
    }

    /// The process of a node is there and stands still.
    pub fn is_stalled(&self, node: NodeIndex) -> bool {
        self.slots.get(node.0).is_some_and(|slot| slot.is_stalled)
    }

    fn host(&self, node: NodeIndex) -> Option<&Host> {
        Some(&self.slots.get(node.0)?.details.host)
    }

    fn host_mut(&mut self, index: usize) -> Option<&mut Host> {
        Some(&mut self.slots.get_mut(index)?.details.host)
    }

    /// When the oldest frame in the outbox will have waited too long.
    pub(super) fn outbox_expires(&self, index: usize) -> Option<Timestamp> {
        // Asked with every frame heard, and hardly ever is there something: the rest lies elsewhere
        // in memory.
        let slot = self.slots.get(index).filter(|slot| slot.is_waiting)?;
        slot.details.host.way_out.expires()
    }

    /// Calls a node with what its clock shows, then sends what it wants sent and notes what it
    /// reports.
    pub(super) fn drive(
        &mut self,
        index: usize,
        cause: Option<Trigger<'_>>,
        call: impl FnOnce(&mut dyn Node, Timestamp, &mut Replies),
    ) {
        self.have(index, cause, call);
        self.send(index);
    }

    /// Sends what a node gave for the radio since this was last done: as a daemon does after each
    /// burst.
    fn send(&mut self, index: usize) {
        if self.replies.is_empty() {
            return;
        }
        let mut replies = std::mem::take(&mut self.replies);
        replies.flatten();
        if replies.as_slice().len() == 1 {
            let only = replies.classed().find_map(for_radio);
            self.send_frames(index, only.as_slice(), replies.narrow());
        } else {
            let frames: Vec<_> = replies.classed().filter_map(for_radio).collect();
            self.send_frames(index, &frames, replies.narrow());
        }
        replies.recycle();
        self.replies = replies;
    }

    fn send_frames(&mut self, index: usize, frames: &[Outgoing<'_>], narrow: &[NextHop]) {
        let now = self.now;
        self.with_way_out(index, |way_out, radio| way_out.send(now, radio, frames, narrow));
    }

    fn with_way_out(&mut self, index: usize, act: impl FnOnce(&mut WayOut, &mut Antenna<'_>)) {
        let Some(host) = self.host_mut(index) else { return };
        let mut way_out = std::mem::take(&mut host.way_out);
        act(&mut way_out, &mut Antenna { world: self, node: index });
        let is_waiting = way_out.is_waiting();
        if let Some(slot) = self.slots.get_mut(index) {
            slot.details.host.way_out = way_out;
            slot.is_waiting = is_waiting;
        }
        if is_waiting {
            self.note_wake(index);
        }
    }

    /// The radio has room again, or what waits for it has waited too long.
    pub(super) fn retry(&mut self, index: usize) {
        let now = self.now;
        if self.slots.get(index).is_none_or(|slot| slot.node.is_none() || slot.is_stalled) {
            return;
        }
        if self.host_mut(index).is_some_and(|host| host.way_out.is_waiting()) {
            self.with_way_out(index, |way_out, radio| way_out.retry(now, radio));
        }
        self.read_tap(index);
    }

    /// A frame goes to the radio: everyone linked may hear it. `false` if the radio has no room for
    /// it.
    fn transmit(&mut self, index: usize, outgoing: &Outgoing<'_>) -> bool {
        let Outgoing { bytes: frame, priority } = *outgoing;
        let Some(subject) = self.subject(index) else { return true };
        if self.slots.get(index).is_none_or(|slot| !slot.radio_up) {
            return true;
        }
        if !self.has_room(index, priority) {
            return false;
        }
        if let Err(breach) = self.checker.is_carried(frame)
            && self.slots.get(index).is_some_and(|slot| !slot.details.forges)
        {
            self.breach(index, breach);
            return true;
        }
        let Some((to, _)) = addresses(frame) else { return true };
        let mut bytes = get_buffer(frame.len());
        bytes.extend_from_slice(frame);
        let (kind, len, crc) = (FrameKind::of(frame), frame.len(), crc32fast::hash(frame));
        self.trace.add(self.now, What::Sent { node: index, kind, to, len, crc });
        if let Some(air) = &mut self.air {
            air.push(RadioFrame { time: self.now, node: NodeIndex(index), frame: bytes.to_vec() });
        }
        let Some(slot) = self.slots.get_mut(index) else { return true };
        slot.details.stats.count(kind, len);
        slot.details.frames += 1;
        let number = slot.details.frames;
        if slot.isolated {
            return true;
        }
        let checker = &self.checker;
        let parcels = Packet::all_of(frame)
            .map(|(packet, limit)| Parcel {
                packet,
                limit,
                trail: checker.trail_of(packet, subject, to),
            })
            .collect();
        self.fly(Arc::new(Flight { bytes, crc, kind, to, from: index, number, priority, parcels }));
        true
    }

    /// A node hears a frame, at this strength if that is known. One that stands still reads it
    /// later; how strong it was nobody asks then.
    pub(super) fn hear(&mut self, index: usize, flight: &Arc<Flight>, dbm: Option<i8>) {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.node.is_some()) else {
            return;
        };
        let is_stalled = slot.is_stalled;
        let Flight { from, kind, crc, .. } = **flight;
        self.trace.add(self.now, What::Heard { node: index, from, kind, crc });
        if is_stalled {
            if let Some(host) = self.host_mut(index) {
                // As the filters of the daemons' sockets have it: what is not known comes with
                // data.
                let is_control = !kind.is_data() && kind != FrameKind(0);
                let socket = if is_control { &mut host.control } else { &mut host.data };
                socket.push(flight);
            }
            return;
        }
        let dbm = dbm.filter(|_| self.reports_signal);
        self.read(index, flight, &flight.parcels, dbm);
        self.send(index);
    }

    /// A node reads a frame with these packets in it, be it a bundle of several.
    fn read(&mut self, index: usize, flight: &Flight, parcels: &[Parcel], dbm: Option<i8>) {
        for parcel in parcels {
            if let Some(subject) = self.subject(index)
                && let Err(breach) = self.checker.heard(subject, flight.to, parcel)
            {
                return self.breach(index, breach);
            }
        }
        let Some((_, from)) = addresses(&flight.bytes) else { return };
        let sender = self.slots.get(flight.from).map(|slot| slot.mac);
        let mut signal = sender.zip(dbm);
        let mut tell_signal = move |node: &mut dyn Node, now| {
            if let Some((sender, dbm)) = signal.take() {
                node.handle_signal(now, sender, dbm);
            }
        };
        let cause = |n: usize| Some(Trigger { parcel: parcels.get(n)?, from });
        let mut n = 0;
        let bundle = each_frame(&flight.bytes, |frame| {
            self.have(index, cause(n), |node, now, out| {
                tell_signal(node, now);
                node.handle_wire(now, frame, out);
            });
            n += 1;
        });
        if let Some((bundle, host)) = bundle.zip(self.host_mut(index)) {
            host.way_out.count(&bundle);
        }
    }

    /// The radio of a node gives a frame up at this time: the node is told, if radios tell.
    pub(super) fn note_unacknowledged(&mut self, at: Timestamp, flight: &Arc<Flight>) {
        let node = flight.from;
        if self.reports_unacknowledged
            && let Some(slot) = self.slots.get(node)
        {
            let (life, flight) = (slot.life, Arc::clone(flight));
            self.plan(at, SimEvent::Unacknowledged { node, life, flight });
        }
    }

    /// Tells a node what its radio gave up. One that stands still or has started again never hears
    /// of it.
    pub(super) fn tell_unacknowledged(&mut self, index: usize, life: u32, flight: &Flight) {
        let Some(slot) = self.slots.get(index) else { return };
        if slot.life != life || slot.node.is_none() || slot.is_stalled {
            return;
        }
        each_frame(&flight.bytes, |frame| {
            self.have(index, None, |node, now, out| node.handle_unacknowledged(now, frame, out));
        });
        self.send(index);
    }

    /// A frame reaches the TAP of a node from its LAN.
    pub(super) fn enter_tap(&mut self, index: usize, frame: &[u8]) {
        if self.slots.get(index).is_none_or(|slot| slot.node.is_none() || !slot.lan_up) {
            return;
        }
        let (now, is_stalled) = (self.now, self.is_stalled(NodeIndex(index)));
        let Some(host) = self.host_mut(index) else { return };
        // Beside the MTU the kernel allows for a VLAN tag (`__is_skb_forwardable`, net/core/dev.c).
        if frame.len() > INNER_OVERHEAD + host.tap_mtu {
            host.tap_counters.oversize += 1;
            return;
        }
        let (waits, is_full) = (is_stalled || host.holds_tap(), host.tap.len() >= TAP_QUEUE_MAX);
        if waits && is_full {
            host.tap_counters.full += 1;
            if let Some(numbered) = Numbered::parse(frame) {
                self.note_lost_in_queue(index, numbered);
            }
            return;
        }
        if waits {
            host.tap.push_back(frame.into());
        } else {
            host.way_out.note_tap_read(now, 1, true);
        }
        let (len, crc) = (frame.len(), crc32fast::hash(frame));
        self.trace.add(self.now, What::IntoTap { node: index, len, crc });
        if !waits {
            self.drive(index, None, |node, now, out| node.handle_tap(now, frame, out));
        }
    }

    /// Reads what waits in the TAP as far as the radio has room: one frame, and then bursts, as a
    /// daemon does.
    fn read_tap(&mut self, index: usize) {
        let mut enough = 1;
        while self.read_burst_of_tap(index, enough) {
            enough = BURST;
        }
    }

    /// Returns whether there may be more.
    fn read_burst_of_tap(&mut self, index: usize, enough: usize) -> bool {
        let now = self.now;
        let Some(host) = self.host_mut(index) else { return false };
        if host.way_out.has_data() || host.tap.is_empty() {
            return false;
        }
        let count = host.tap.len().min(enough);
        let frames: Vec<_> = host.tap.drain(..count).collect();
        let is_late = host.way_out.note_tap_read(now, count, host.tap.is_empty());
        for frame in &frames {
            self.have(index, None, |node, now, out| {
                if is_late {
                    node.handle_tap_late(now, frame, out);
                } else {
                    node.handle_tap(now, frame, out);
                }
            });
        }
        self.send(index);
        true
    }

    /// The process of a node is stopped (SIGSTOP) for this long; one that does not live yet goes
    /// on.
    pub(super) fn stall(&mut self, index: usize, span: Duration) {
        let until = self.now + span;
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.node.is_some()) else {
            return;
        };
        slot.is_stalled = true;
        let host = &mut slot.details.host;
        host.stalled_until = host.stalled_until.max(until);
        let life = slot.life;
        self.plan(until, SimEvent::Resume { node: index, life });
    }

    /// Something happened to an interface of a node, or somebody wants it to stop. True if it hears
    /// of that later.
    pub(super) fn is_put_off(&mut self, index: usize, event: Option<LinkEvent>) -> bool {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.is_stalled) else {
            return false;
        };
        match event {
            Some(event) => slot.details.host.links.push(event),
            None => slot.details.host.is_told_to_stop = true,
        }
        true
    }

    /// The process goes on (SIGCONT). It does what the loop of a daemon does after it was stopped.
    /// That is interfaces and signals first, then control, data and TAP in bursts, and deadlines
    /// when the radio has nothing left that was said before.
    pub(super) fn resume(&mut self, index: usize, life: u32) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(index) else { return };
        let is_over = now >= slot.details.host.stalled_until;
        if slot.life != life || !slot.is_stalled || !is_over {
            return;
        }
        slot.is_stalled = false;
        (slot.wake, slot.wake_planned) = (None, None);
        let host = &mut slot.details.host;
        let links = std::mem::take(&mut host.links);
        let is_told_to_stop = std::mem::take(&mut host.is_told_to_stop);
        for event in links {
            self.drive(index, None, |node, now, out| node.handle_link(now, event, out));
        }
        if is_told_to_stop {
            self.shut_down(index);
        }
        for turn in 0.. {
            let mut is_drained = true;
            for is_control in [true, false] {
                is_drained &= self.read_burst_of_socket(index, is_control);
            }
            if self.host_mut(index).is_some_and(|host| host.way_out.is_waiting()) {
                self.with_way_out(index, |way_out, radio| way_out.retry(now, radio));
            }
            let has_more = self.read_burst_of_tap(index, BURST);
            if turn == DRAIN_TURNS && !is_drained {
                self.drive(index, None, |node, now, out| node.handle_timeout(now, out));
            }
            if is_drained && !has_more {
                break;
            }
        }
        // Asks it when it wants to be woken: by now, as a rule.
        self.drive(index, None, |_, _, _| ());
    }

    /// Returns whether nothing is left.
    fn read_burst_of_socket(&mut self, index: usize, is_control: bool) -> bool {
        for _ in 0..BURST {
            let Some(host) = self.host_mut(index) else { return true };
            let socket = if is_control { &mut host.control } else { &mut host.data };
            let Some(flight) = socket.pop() else { break };
            // Routes have changed meanwhile, and it may well have to go back: that is no loop. From
            // here on it must not come to any node twice.
            let anew = |parcel: &Parcel| Parcel { trail: None, ..*parcel };
            let parcels: Vec<_> = flight.parcels.iter().map(anew).collect();
            self.read(index, &flight, &parcels, None);
        }
        self.send(index);
        let left =
            self.host_mut(index).map(|host| if is_control { &host.control } else { &host.data });
        left.is_none_or(|socket| socket.frames.is_empty())
    }
}

/// Hands over a frame off the radio, or each of those in it if it is a bundle, which is returned.
fn each_frame(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Option<Opened> {
    let Some(mut bundle) = Opened::open(bytes) else {
        take(bytes);
        return None;
    };
    let mut bytes = bytes.to_vec();
    while let Some(frame) = bundle.next_in(&mut bytes) {
        take(frame);
    }
    Some(bundle)
}

/// A reply, made flat, if it is for the radio.
fn for_radio((reply, priority): (&ReplyType, u8)) -> Option<Outgoing<'_>> {
    match reply {
        ReplyType::WireFlat(bytes) => Some(Outgoing { bytes, priority }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use node_lib::mac::Mac;

    #[test]
    fn a_socket_holds_what_the_kernel_grants_and_drops_the_newest() {
        let flight = |len, number| {
            let bytes = BytesMut::zeroed(len);
            let (kind, to) = (FrameKind::HEARTBEAT, Mac::BROADCAST);
            let parcels = Vec::new();
            Arc::new(Flight { bytes, crc: 0, kind, to, from: 0, number, priority: 7, parcels })
        };
        for (len, holds) in [(1514, 3641), (60, 10_923)] {
            let mut socket = Socket::default();
            for number in 0..holds + 5 {
                socket.push(&flight(len, number));
            }
            assert_eq!((socket.frames.len() as u64, socket.dropped), (holds, 5));
            assert_eq!(socket.pop().map(|flight| flight.number), Some(0));
            socket.push(&flight(len, 0));
            assert_eq!((socket.frames.len() as u64, socket.dropped), (holds, 5));
            while socket.pop().is_some() {}
            assert_eq!(socket.bytes, 0);
        }
    }
}
