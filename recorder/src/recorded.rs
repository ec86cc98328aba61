//! A node with a recorder beside it: [`Recorded`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::deadline::Deadline;
use node_lib::control::event::{Cause, Event, Events};
use node_lib::control::node::{Interface, LinkEvent, Node, Replies, ReplyType};
use node_lib::control::pin::{NoPin, Pin};
use node_lib::control::ping::{Echoed, Ping};
use node_lib::control::positions::Located;
use node_lib::control::replies::Loan;
use node_lib::control::snapshot::{KnownRoute, Snapshot};
use node_lib::messages::ETHERNET_HEADER_LEN;
use node_lib::messages::data::{self, Data, Destination};
use node_lib::messages::flags::FLOOD;
use node_lib::messages::fragment::{self, Fragment};
use node_lib::start::clients::Remembered;
use node_lib::{Mac, NodeId, Timestamp};

use crate::encode::{self, CLIENT_LEN, EVENT_MAX, PassedOn, kind};
use crate::shared::FreezeCause;
use crate::tape::{Pen, Tape};

/// A node, and what goes into it and comes out of it on record. Without a tap it is the node and
/// nothing else.
///
/// A frame is written when the node has answered, with its replies and events behind it; what makes
/// the node panic is written by the hook of the panic. All other inputs are written before the node
/// is asked. What is on loan is written as a reference to the frame that was lent.
#[derive(Debug)]
pub struct Recorded<N> {
    node: N,
    tap: Option<Tape>,
    switch: Option<Switch>,
    /// Taken out of the node and not yet by the driver.
    events: Events,
}

impl<N: Node> Recorded<N> {
    /// Records from now on; of a node that was just made, so that it can be made again.
    pub fn new(node: N, tap: Option<Tape>) -> Self {
        Self { node, tap, switch: None, events: Events::default() }
    }

    /// With a switch that gives it another tap, or none, while it runs.
    #[must_use]
    pub fn with_switch(self, switch: Switch) -> Self {
        Self { switch: Some(switch), ..self }
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// From now on it has the tap that it was given.
    ///
    /// A recording begins and ends with an input, so that what comes out is in the same as what
    /// went in.
    #[inline]
    fn turn_switch(&mut self) {
        if let Some(tap) = self.switch.as_ref().and_then(Switch::take) {
            self.tap = tap;
        }
    }

    /// Asks the node about a frame, and writes that and what came out.
    #[inline]
    fn ask(
        &mut self,
        now: Timestamp,
        kind: u8,
        frame: &[u8],
        out: &mut Replies,
        ask: impl FnOnce(&mut N, &mut Replies),
    ) {
        self.turn_switch();
        let Some(tap) = &self.tap else { return ask(&mut self.node, out) };
        let before = Before::of(out);
        tap.while_asked(now, kind, frame, || ask(&mut self.node, out));
        let kept = match tap.snap() {
            Some(snap) if frame.len() > snap => {
                passed_on_from(before, frame, out).map_or(frame.len(), |start| start + snap)
            }
            _ => frame.len(),
        };
        tap.write(now, |pen| match passed_on_once(before, frame, out) {
            Some(to) => pen.input_passed_on(kind, frame, kept, to),
            None => {
                pen.input(kind, frame, kept);
                replies(pen, before, (frame, tap.snap()), out);
            }
        });
        self.events(now);
    }

    /// Writes an input that is no frame.
    #[inline]
    fn input(&mut self, now: Timestamp, write: impl FnOnce(&mut Pen<'_>)) {
        self.turn_switch();
        if let Some(tap) = &self.tap {
            tap.write(now, write);
        }
    }

    /// Writes what came out since there were so many replies and loans.
    #[inline]
    fn outputs(&mut self, now: Timestamp, before: Before, out: &Replies) {
        let Some(tap) = &self.tap else { return };
        if out.as_slice().len() > before.replies || out.loans().len() > before.loans {
            tap.write(now, |pen| replies(pen, before, (&[], tap.snap()), out));
        }
        self.events(now);
    }

    /// Writes what happened, and keeps it for the driver.
    #[inline]
    fn events(&mut self, now: Timestamp) {
        let Some(tap) = &self.tap else { return };
        let mut is_fail_over = false;
        while let Some(happened) = self.node.poll_event() {
            tap.write(now, |pen| {
                pen.put(EVENT_MAX, |out, since| encode::event(out, since, &happened));
            });
            is_fail_over |= leaves_something(&happened);
            let lost = self.events.push(happened);
            if lost > 0 {
                tap.counts().events_lost.fetch_add(lost, Ordering::Relaxed);
            }
        }
        if is_fail_over {
            tap.write(now, |pen| pen.freeze(FreezeCause::FailOver));
        }
    }
}

/// Gives a node that runs another tap, from another thread.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<Turned>);

#[derive(Debug, Default)]
struct Turned {
    is_turned: AtomicBool,
    to: Mutex<Option<Option<Tape>>>,
}

impl Switch {
    /// From its next input on the node has this tap; with `None` it is not recorded.
    pub fn turn(&self, to: Option<Tape>) {
        *self.0.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
        self.0.is_turned.store(true, Ordering::Release);
    }

    /// What it was turned to since it was last asked. Never waits: who is just turning it is heard
    /// the next time.
    #[inline]
    fn take(&self) -> Option<Option<Tape>> {
        if !self.0.is_turned.load(Ordering::Acquire) {
            return None;
        }
        self.take_turned()
    }

    #[cold]
    fn take_turned(&self) -> Option<Option<Tape>> {
        let mut to = self.0.to.try_lock().ok()?;
        self.0.is_turned.store(false, Ordering::Release);
        to.take()
    }
}

/// What there was to send before the node was asked: a turn of the loop asks many times before it
/// sends.
#[derive(Clone, Copy)]
struct Before {
    replies: usize,
    loans: usize,
}

impl Before {
    #[inline]
    fn of(out: &Replies) -> Self {
        Self { replies: out.as_slice().len(), loans: out.loans().len() }
    }
}

/// The node had a way and has another, or none.
fn leaves_something(event: &Event) -> bool {
    matches!(event, Event::UpstreamChanged { from: Some(_), cause, .. } if *cause != Cause::First)
}

/// Where the client's frame begins in one that was passed on as it came and did nothing else.
/// `None` for all others: a node may have looked at any byte of them.
///
/// So whatever it drops, keeps to put together with others, changes or answers is recorded whole,
/// and so are groups and floods: a vehicle compares what is in them ("one broadcast, delivered
/// once").
#[inline]
fn passed_on_from(before: Before, frame: &[u8], out: &Replies) -> Option<usize> {
    if out.as_slice().len() > before.replies {
        return None;
    }
    let [first, more @ ..] = out.loans().get(before.loans..)? else { return None };
    let start = first.payload.start;
    let is_all = |loan: &Loan| loan.payload == (start..frame.len());
    if !is_all(first) || !more.iter().all(is_all) {
        return None;
    }
    let is_group = frame.get(start).is_none_or(|byte| byte & 1 == 1);
    let is_flood = start > 0 && frame.get(ETHERNET_HEADER_LEN + 1).is_none_or(|f| f & FLOOD > 0);
    (!is_group && !is_flood).then_some(start)
}

/// How the frame was passed on, if that is all that came out: as it is on loan, or as a copy for
/// the TAP.
#[inline]
fn passed_on_once<'a>(before: Before, frame: &[u8], out: &'a Replies) -> Option<PassedOn<'a>> {
    let (replies, loans) =
        (out.as_slice().get(before.replies..)?, out.loans().get(before.loans..)?);
    match (replies, loans) {
        ([], [loan]) => {
            let is_rest = loan.payload.end == frame.len() && loan.payload.start <= frame.len();
            is_rest.then(|| PassedOn { head: out.head(loan), start: loan.payload.start })
        }
        ([ReplyType::TapFlat(flat)], []) => {
            let start = frame.len().checked_sub(flat.len())?;
            frame.ends_with(flat).then_some(PassedOn { head: None, start })
        }
        _ => None,
    }
}

/// In the order in which they are sent. `snap`: so many bytes of clients' frames are kept.
#[inline]
fn replies(
    pen: &mut Pen<'_>,
    before: Before,
    (frame, snap): (&[u8], Option<usize>),
    out: &Replies,
) {
    let mut loans = out.loans().iter().skip(before.loans).peekable();
    let mut index = before.replies;
    let mut items = out.as_slice().iter().skip(before.replies);
    loop {
        while let Some(loan) = loans.next_if(|loan| loan.after == index) {
            pen.passed(out.head(loan), frame, loan.payload.start, loan.payload.end);
        }
        index += 1;
        let Some(reply) = items.next() else { return };
        let whole = reply.frame();
        let end = frame.len();
        match reply.interface() {
            Interface::Tap if frame.ends_with(&whole) => {
                pen.passed(None, frame, end - whole.len(), end);
            }
            Interface::Tap => pen.frame(kind::TO_TAP, &whole, whole.len()),
            Interface::Radio => {
                let passed = same(&whole, frame);
                let start = whole.len() - passed;
                let kept = snap.and_then(|snap| client_frame_kept(&whole, snap));
                let kept = kept.unwrap_or(whole.len());
                match whole.get(..start) {
                    Some(head) if passed > 0 && start <= kept => {
                        pen.passed(Some(head), frame, end - passed, end);
                    }
                    _ => pen.frame(kind::TO_RADIO, &whole, kept),
                }
            }
        }
    }
}

/// Bytes kept of a client's frame to one addressee that did not just go in, or of a part of one: it
/// went another way now, and a replay has no more of it than was kept when it went in. `None` for
/// all others.
fn client_frame_kept(whole: &[u8], snap: usize) -> Option<usize> {
    let packet = whole.get(ETHERNET_HEADER_LEN..)?;
    if let Ok(fragment) = Fragment::try_from(packet) {
        let known = (data::HEADER_LEN + snap).saturating_sub(fragment.place.range().start);
        let kept = ETHERNET_HEADER_LEN + fragment::HEADER_LEN + known;
        return (kept < whole.len()).then_some(kept);
    }
    let data = Data::read(packet)?;
    let payload = match data {
        Data::Upstream(data) => data.payload,
        Data::Downstream(data) if matches!(data.destination, Destination::Node { .. }) => {
            data.payload
        }
        Data::Downstream(_) => return None,
    };
    let is_group = payload.first().is_none_or(|byte| byte & 1 == 1);
    let kept = whole.len() - payload.len() + snap;
    (!is_group && kept < whole.len()).then_some(kept)
}

/// How many bytes at the end of both are the same, counted in steps.
///
/// What a node passes on out of a bundle, or to several, is a copy and no loan. It is written once
/// all the same: what costs is not the comparison but memory that the processor's cache has not.
#[inline]
fn same(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 16;
    let (_, one) = one.as_rchunks::<STEP>();
    let (_, other) = other.as_rchunks::<STEP>();
    let steps = one.iter().rev().zip(other.iter().rev());
    STEP * steps.take_while(|(one, other)| one == other).count()
}

impl<N: Node> Node for Recorded<N> {
    fn id(&self) -> NodeId {
        self.node.id()
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.ask(now, kind::FROM_RADIO, frame, out, |node, out| node.handle_wire(now, frame, out));
    }

    fn handle_signal(&mut self, now: Timestamp, from: Mac, dbm: i8) {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::signal(out, since, from, dbm));
        });
        self.node.handle_signal(now, from, dbm);
        self.events(now);
    }

    fn handle_unacknowledged(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.ask(now, kind::UNACKNOWLEDGED, frame, out, |node, out| {
            node.handle_unacknowledged(now, frame, out)
        });
    }

    fn wants_unacknowledged(&self) -> bool {
        self.node.wants_unacknowledged()
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.ask(now, kind::FROM_TAP, frame, out, |node, out| node.handle_tap(now, frame, out));
    }

    fn handle_tap_late(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.ask(now, kind::FROM_TAP_LATE, frame, out, |node, out| {
            node.handle_tap_late(now, frame, out)
        });
    }

    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies) {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::link_event(out, since, event));
        });
        let before = Before::of(out);
        self.node.handle_link(now, event, out);
        self.outputs(now, before, out);
    }

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::bare(out, kind::TIMEOUT, since));
        });
        let before = Before::of(out);
        self.node.handle_timeout(now, out);
        self.outputs(now, before, out);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        // Whoever asks may be about to wait.
        if let Some(tap) = &self.tap {
            tap.lay_down();
        }
        self.node.poll_timeout()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.node.deadline()
    }

    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies) {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::bare(out, kind::SHUTDOWN, since));
        });
        let before = Before::of(out);
        self.node.handle_shutdown(now, out);
        self.outputs(now, before, out);
    }

    fn handle_clients(&mut self, now: Timestamp, clients: &[Remembered], out: &mut Replies) {
        self.input(now, |pen| {
            pen.put(clients.len() * CLIENT_LEN, |out, since| encode::clients(out, since, clients));
        });
        let before = Before::of(out);
        self.node.handle_clients(now, clients, out);
        self.outputs(now, before, out);
    }

    fn clients(&self, now: Timestamp) -> Vec<Remembered> {
        self.node.clients(now)
    }

    fn forget_clients(&mut self, now: Timestamp, which: Option<Mac>, out: &mut Replies) -> usize {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::forget_clients(out, since, which));
        });
        let before = Before::of(out);
        let forgotten = self.node.forget_clients(now, which, out);
        self.outputs(now, before, out);
        forgotten
    }

    fn handle_position(&mut self, now: Timestamp, located: Option<Located>) {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::position(out, since, located));
        });
        self.node.handle_position(now, located);
        self.events(now);
    }

    fn pin_clients(&mut self, now: Timestamp, pin: Pin, out: &mut Replies) -> Result<usize, NoPin> {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::pin(out, since, pin));
        });
        let before = Before::of(out);
        let pinned = self.node.pin_clients(now, pin, out);
        self.outputs(now, before, out);
        pinned
    }

    fn handle_ping(&mut self, now: Timestamp, ping: Ping, out: &mut Replies) {
        self.input(now, |pen| {
            pen.put(0, |out, since| encode::ping(out, since, ping));
        });
        let before = Before::of(out);
        self.node.handle_ping(now, ping, out);
        self.outputs(now, before, out);
    }

    fn poll_echo(&mut self) -> Option<Echoed> {
        self.node.poll_echo()
    }

    fn snapshot(&self, now: Timestamp) -> Snapshot {
        self.node.snapshot(now)
    }

    fn routes(&self, now: Timestamp) -> Vec<KnownRoute> {
        self.node.routes(now)
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

    fn counters(&self) -> &Counters {
        self.node.counters()
    }

    fn poll_event(&mut self) -> Option<Event> {
        // Without a tap they stay where they are.
        self.events.pop().or_else(|| self.node.poll_event())
    }
}
