//! What cannot be seen from outside. [`Watched`] is a node with an observer. That notes which
//! frames of which flow the node sends to whom, and which it gets, in a [`Journal`] all nodes of a
//! world share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::deadline::Deadline;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::control::pin::{NoPin, Pin};
use node_lib::control::ping::{Echoed, Ping};
use node_lib::control::positions::Located;
use node_lib::control::snapshot::{KnownRoute, Snapshot};
use node_lib::start::clients::Remembered;
use node_lib::{Mac, NodeId, Timestamp};
use sim::{FlowIndex, NodeIndex, Numbered, inner_frames};

/// How far one frame of a flow has come over the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Copies sent to a neighbour and not heard there.
    pending: u8,
    /// Of those, one was sent over a link that was none.
    over_no_link: bool,
    /// The node that took it from its client sent it to more than one neighbour.
    pub(crate) sent_twice: bool,
}

/// Where a frame was lost that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostTo {
    /// Nothing could have carried it: its vehicle was out of everyone's range.
    Distance,
    /// A link that is there, but loses frames.
    Air,
    /// A radio with too many frames waiting.
    Queue,
    /// A link that was there no more.
    DeadLink,
    /// A node that had no way, or dropped it.
    Node,
}

impl LostTo {
    /// Another route would have saved it.
    pub(crate) const fn is_by_routing(self) -> bool {
        matches!(self, Self::DeadLink | Self::Node)
    }
}

impl Passage {
    /// Where it was lost, if it did not arrive though its vehicle was in range.
    pub(crate) fn lost_to(self, was_queue_full: bool) -> LostTo {
        match (self.pending, self.over_no_link) {
            _ if was_queue_full => LostTo::Queue,
            (0, _) => LostTo::Node,
            (_, true) => LostTo::DeadLink,
            (_, false) => LostTo::Air,
        }
    }
}

/// One frame sent to one neighbour.
#[derive(Clone, Copy, Debug)]
struct Hop {
    frame: Numbered,
    from: NodeIndex,
    to: Mac,
}

/// What the nodes of one world did.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    passages: BTreeMap<u32, Vec<Passage>>,
    /// Sent since it was last asked whether the links were there.
    fresh: Vec<Hop>,
}

impl Journal {
    fn passage(&mut self, frame: Numbered) -> Option<&mut Passage> {
        let frames = self.passages.entry(frame.flow.0).or_default();
        let index = frame.number as usize;
        if frames.len() <= index {
            frames.resize(index + 1, Passage::default());
        }
        frames.get_mut(index)
    }

    fn sent(&mut self, from: NodeIndex, to: Mac, frame: Numbered) {
        if let Some(passage) = self.passage(frame) {
            passage.pending = passage.pending.saturating_add(1);
            self.fresh.push(Hop { frame, from, to });
        }
    }

    fn heard(&mut self, frame: Numbered) {
        if let Some(passage) = self.passage(frame) {
            passage.pending = passage.pending.saturating_sub(1);
        }
    }

    /// How far a frame came.
    pub(crate) fn of(&self, flow: FlowIndex, number: u32) -> Passage {
        let frames = self.passages.get(&flow.0);
        frames.and_then(|frames| frames.get(number as usize)).copied().unwrap_or_default()
    }

    /// Notes which frames under way, or lost, were sent over a link that is not there.
    pub(crate) fn judge(&mut self, is_linked: impl Fn(NodeIndex, Mac) -> bool) {
        for Hop { frame, from, to } in std::mem::take(&mut self.fresh) {
            if let Some(passage) = self.passage(frame)
                && passage.pending > 0
                && !is_linked(from, to)
            {
                passage.over_no_link = true;
            }
        }
    }
}

/// A journal all nodes of a world write to.
pub(crate) type SharedJournal = Arc<Mutex<Journal>>;

/// A node, and what it does written down. It changes nothing.
pub(crate) struct Watched<N> {
    index: NodeIndex,
    node: N,
    journal: SharedJournal,
}

impl<N: Node> Watched<N> {
    pub(crate) fn new(index: NodeIndex, node: N, journal: SharedJournal) -> Self {
        Self { index, node, journal }
    }

    fn note(&self, sent: &[ReplyType], is_origin: bool) {
        // The nodes of a world take turns: nobody else is writing.
        let Ok(mut journal) = self.journal.lock() else { return };
        let mut last = None;
        for reply in sent {
            if let ReplyType::WireFlat(frame) = reply
                && let Some((to, numbered)) = hop(frame)
            {
                journal.sent(self.index, to, numbered);
                if is_origin
                    && last.replace(numbered) == Some(numbered)
                    && let Some(passage) = journal.passage(numbered)
                {
                    passage.sent_twice = true;
                }
            }
        }
    }
}

/// The neighbour a data frame goes to, and the numbered frame in it.
fn hop(frame: &[u8]) -> Option<(Mac, Numbered)> {
    let to = Mac(*frame.first_chunk()?);
    let numbered = inner_frames(frame).find_map(Numbered::parse)?;
    (!to.is_group()).then_some((to, numbered))
}

impl<N: Node> Node for Watched<N> {
    fn id(&self) -> NodeId {
        self.node.id()
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        if let Some((_, numbered)) = hop(frame)
            && let Ok(mut journal) = self.journal.lock()
        {
            journal.heard(numbered);
        }
        let before = out.as_slice().len();
        self.node.handle_wire(now, frame, out);
        self.note(out.as_slice().get(before..).unwrap_or_default(), false);
    }

    fn handle_signal(&mut self, now: Timestamp, from: Mac, dbm: i8) {
        self.node.handle_signal(now, from, dbm);
    }

    fn handle_unacknowledged(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let before = out.as_slice().len();
        self.node.handle_unacknowledged(now, frame, out);
        self.note(out.as_slice().get(before..).unwrap_or_default(), false);
    }

    fn wants_unacknowledged(&self) -> bool {
        self.node.wants_unacknowledged()
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let before = out.as_slice().len();
        self.node.handle_tap(now, frame, out);
        self.note(out.as_slice().get(before..).unwrap_or_default(), true);
    }

    fn handle_tap_late(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let before = out.as_slice().len();
        self.node.handle_tap_late(now, frame, out);
        self.note(out.as_slice().get(before..).unwrap_or_default(), true);
    }

    fn handle_clients(&mut self, now: Timestamp, clients: &[Remembered], out: &mut Replies) {
        self.node.handle_clients(now, clients, out);
    }

    fn clients(&self, now: Timestamp) -> Vec<Remembered> {
        self.node.clients(now)
    }

    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies) {
        self.node.handle_link(now, event, out);
    }

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        let before = out.as_slice().len();
        self.node.handle_timeout(now, out);
        self.note(out.as_slice().get(before..).unwrap_or_default(), false);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.node.poll_timeout()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.node.deadline()
    }

    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies) {
        self.node.handle_shutdown(now, out);
    }

    fn linger(&self) -> Duration {
        self.node.linger()
    }

    fn candidates(&self, now: Timestamp) -> usize {
        self.node.candidates(now)
    }

    fn upstream_for(&self, rsu: NodeId) -> Option<NodeId> {
        self.node.upstream_for(rsu)
    }

    fn snapshot(&self, now: Timestamp) -> Snapshot {
        self.node.snapshot(now)
    }

    fn routes(&self, now: Timestamp) -> Vec<KnownRoute> {
        self.node.routes(now)
    }

    fn handle_position(&mut self, now: Timestamp, located: Option<Located>) {
        self.node.handle_position(now, located);
    }

    fn handle_ping(&mut self, now: Timestamp, ping: Ping, out: &mut Replies) {
        self.node.handle_ping(now, ping, out);
    }

    fn poll_echo(&mut self) -> Option<Echoed> {
        self.node.poll_echo()
    }

    fn forget_clients(&mut self, now: Timestamp, which: Option<Mac>, out: &mut Replies) -> usize {
        self.node.forget_clients(now, which, out)
    }

    fn pin_clients(&mut self, now: Timestamp, pin: Pin, out: &mut Replies) -> Result<usize, NoPin> {
        self.node.pin_clients(now, pin, out)
    }

    fn counters(&self) -> &Counters {
        self.node.counters()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.node.poll_event()
    }
}
