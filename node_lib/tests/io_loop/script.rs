//! A node that does what the test says, and writes down what the loop asked of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::mpsc;
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::snapshot::{KnownRoute, NodeRole, Snapshot};
use node_lib::start::clients::Remembered;
use node_lib::{Mac, NodeId, Timestamp};

/// What the loop asked of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Wire(Vec<u8>),
    Tap(Vec<u8>),
    TapLate(Vec<u8>),
    Link(LinkEvent),
    Timeout,
    Shutdown,
    Clients(Vec<Remembered>),
    Signal(Mac, i8),
    Unacknowledged(Vec<u8>),
}

impl Call {
    pub(crate) fn as_unacknowledged(&self) -> Option<Vec<u8>> {
        if let Self::Unacknowledged(frame) = self { Some(frame.clone()) } else { None }
    }
}

/// A node that writes down what it is asked and answers by a closure.
pub(crate) struct Script<F> {
    pub(crate) calls: RefCell<Vec<Call>>,
    pub(crate) answer: F,
    pub(crate) deadline: Option<Timestamp>,
    /// The next deadline after one was handled.
    pub(crate) again_after: Option<Duration>,
    pub(crate) linger: Duration,
    /// How often the loop asked for the deadline: at least once a turn.
    pub(crate) polled: Cell<u32>,
    pub(crate) counters: Counters,
    pub(crate) record: bool,
    pub(crate) wants_unacknowledged: bool,
    /// Who is behind its TAP, as it says.
    pub(crate) clients: Vec<Remembered>,
    pub(crate) scratch: Call,
    /// Told of each strength.
    pub(crate) on_signal: Option<mpsc::Sender<()>>,
    /// What has happened to it.
    pub(crate) happened: RefCell<VecDeque<Event>>,
    /// How often somebody looked inside.
    pub(crate) looked: Cell<u32>,
    /// Done first, with the frame itself and not a copy of it.
    pub(crate) pass: Option<fn(&[u8], &mut Replies)>,
}

impl<F: FnMut(&Call, &mut Replies)> Script<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self {
            calls: RefCell::default(),
            answer,
            deadline: None,
            again_after: None,
            linger: Duration::ZERO,
            polled: Cell::new(0),
            counters: Counters::default(),
            record: true,
            wants_unacknowledged: false,
            clients: Vec::new(),
            scratch: Call::Timeout,
            on_signal: None,
            happened: RefCell::default(),
            looked: Cell::new(0),
            pass: None,
        }
    }

    pub(crate) fn call(&mut self, call: Call, out: &mut Replies) {
        (self.answer)(&call, out);
        if self.record {
            self.calls.borrow_mut().push(call);
        }
    }

    /// As `call`, for a frame, and without an allocation when nothing is recorded.
    pub(crate) fn call_frame(
        &mut self,
        make: fn(Vec<u8>) -> Call,
        frame: &[u8],
        out: &mut Replies,
    ) {
        if let Some(pass) = self.pass {
            pass(frame, out);
        }
        if self.record {
            return self.call(make(frame.to_vec()), out);
        }
        let mut bytes = match std::mem::replace(&mut self.scratch, Call::Timeout) {
            Call::Wire(bytes) | Call::Tap(bytes) => bytes,
            _ => Vec::new(),
        };
        bytes.clear();
        bytes.extend_from_slice(frame);
        self.scratch = make(bytes);
        (self.answer)(&self.scratch, out);
    }
}

impl<F: FnMut(&Call, &mut Replies)> Node for Script<F> {
    fn id(&self) -> NodeId {
        NodeId([2, 0, 0, 0, 0, 1])
    }
    fn handle_wire(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::Wire, frame, out);
    }
    fn handle_tap(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::Tap, frame, out);
    }
    fn handle_tap_late(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::TapLate, frame, out);
    }
    fn handle_link(&mut self, _: Timestamp, event: LinkEvent, out: &mut Replies) {
        self.call(Call::Link(event), out);
    }
    fn handle_clients(&mut self, _: Timestamp, clients: &[Remembered], out: &mut Replies) {
        if !clients.is_empty() {
            self.call(Call::Clients(clients.to_vec()), out);
        }
    }
    fn clients(&self, _: Timestamp) -> Vec<Remembered> {
        self.clients.clone()
    }
    fn handle_signal(&mut self, _: Timestamp, from: Mac, dbm: i8) {
        self.on_signal.iter().for_each(|tell| tell.send(()).unwrap());
        self.calls.borrow_mut().push(Call::Signal(from, dbm));
    }
    fn handle_unacknowledged(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::Unacknowledged, frame, out);
    }
    fn wants_unacknowledged(&self) -> bool {
        self.wants_unacknowledged
    }
    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.deadline = self.again_after.map(|span| now + span);
        self.call(Call::Timeout, out);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.polled.set(self.polled.get() + 1);
        self.deadline
    }
    fn handle_shutdown(&mut self, _: Timestamp, out: &mut Replies) {
        self.call(Call::Shutdown, out);
    }
    fn linger(&self) -> Duration {
        self.linger
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn snapshot(&self, _: Timestamp) -> Snapshot {
        self.looked.set(self.looked.get() + 1);
        Snapshot::of(self.id(), NodeRole::Other)
    }
    fn routes(&self, _: Timestamp) -> Vec<KnownRoute> {
        Vec::new()
    }
    fn forget_clients(&mut self, _: Timestamp, which: Option<Mac>, out: &mut Replies) -> usize {
        out.wire(|flat| flat.extend_from_slice(&[8; 20]));
        if which.is_some() { 1 } else { 7 }
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.happened.borrow_mut().pop_front()
    }
}
