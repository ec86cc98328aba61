//! The loop that drives a node over devices, and what a daemon needs around it.
//!
//! One thread, one loop, no channel, no lock and no allocation per packet. A turn:
//!
//! 1. Wait until the radio or the TAP has frames, a deadline has come, an interface changed or the
//!    operator wants something (`wait.rs`). If the last turn left frames behind, there is no
//!    waiting.
//! 2. Control frames first, where the radio keeps them apart: they overtake the data that waits.
//!    Then about [`BURST`] frames of the radio, those in bundles each by itself, go into the node,
//!    then up to as many of the TAP, so that a busy side cannot starve the other. What the node
//!    answers is sent right after that, in order, each reply as one frame and all of a side
//!    together. A frame that is passed on is not copied: its new header is written in front of
//!    where it lies.
//! 3. A deadline that has come is handled only when the radio has nothing left that was queued
//!    before: a process that was stopped for three seconds first hears what its neighbours said in
//!    the meantime, and then judges their silence. Where control is kept apart, control is all that
//!    is waited for: a heartbeat must not be late because a client floods. Elsewhere, under a load
//!    that never drains, it waits for at most [`DRAIN_TURNS`] bursts.
//! 4. Small frames for the same neighbour that were waiting together leave the radio in one
//!    ([`bundler`](crate::transport::bundler)); none waits for another.
//! 5. A radio that has no room ([`outbox`](crate::transport::outbox)) stops the reading of the TAP,
//!    and nothing else.
//! 6. After a turn with traffic the loop rests for [`Runtime::coalesce`] and looks again by itself,
//!    before it waits to be woken: see [`BUSY`]. After a frame that was passed on alone it looks
//!    for the answer for up to [`Runtime::busy_poll`], where answers come that fast
//!    (`busy_poll.rs`).
//!
//! The loop blocks its thread. Interfaces and signals ([`Links`], [`Commands`]) may be watched by
//! tokio, which then needs another one.

pub mod addresses;
mod bell;
pub mod boot;
pub mod busy_poll;
pub mod clients;
pub mod clock;
pub mod command;
mod first_contact;
pub mod inside;
mod log;
pub mod request;
mod wait;

use std::io;
use std::ops::Range;
use std::task::Poll;
use std::time::Duration;

use arrayvec::ArrayVec;
use tracing::{debug, info, trace, warn};

use crate::control::event::Event;
use crate::control::next_hop::NextHop;
use crate::control::node::{LinkEvent, Node, Replies, ReplyType};
use crate::control::ping::Ping;
use crate::control::replies::Loan;
use crate::control::snapshot::{Groups, Interface, View, span_ms};
use crate::device::signal::{self, Sample};
use crate::device::{
    self, Burst, Device, HEADROOM, Link, LinkChange, Links, Outgoing, Received, Sent, Side,
};
use crate::settings::LoopSettings;
use crate::start::clients::Remembered;
use crate::time::Timestamp;
use crate::transport::bundler::Opened;
use crate::transport::mtu::TapMtu;
use crate::transport::{BURST, CHUNK, DRAIN_TURNS, WayOut};
use busy_poll::BusyPoll;
use clients::{ClientFile, Keeper};
use clock::Clock;
use command::{Command, Commands};
use first_contact::FirstContact;
use inside::{Pingers, Viewers};
use log::EventLog;
use request::{Request, Told};
use wait::{Ready, Waiter};

/// Frames of a turn, both sides together, from which on there is traffic, and more of it on its
/// way. To be woken by the next frame costs its sender an interrupt and us a context switch, often
/// several times per burst; not to be woken costs nothing but the wait. It is what a network card
/// does with `rx-usecs` (ethtool(8)).
pub const BUSY: usize = 8;

/// Control frames wait no longer than this while nobody asks who has something: a hundredth of a
/// heartbeat's interval, and one system call in some twenty turns.
const CONTROL_WITHIN: Duration = Duration::from_millis(1);

/// Wait before the first attempt to re-create a TAP; it doubles with every failure.
const REOPEN_DELAY_MIN: Duration = Duration::from_millis(100);
/// Longest wait between attempts to re-create a TAP.
const REOPEN_DELAY_MAX: Duration = Duration::from_secs(5);

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// After the goodbye and the time to linger.
    Clean,
    /// At once, because it was asked twice.
    Forced,
}

/// Everything the loop has to know beforehand.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The clock the node was created with.
    pub clock: Clock,
    /// State of the radio when the node was created.
    pub radio: Link,
    /// What the TAP's MTU is to be when the radio's changes.
    pub tap_mtu: TapMtu,
    /// Small frames that wait for the same neighbour leave in one.
    pub bundles: bool,
    /// How long to let frames gather while there is traffic; zero: to be woken by the first.
    pub coalesce: Duration,
    /// How long to stay awake for the answer to a frame; zero: not at all.
    pub busy_poll: Duration,
    /// Frames the host would say of its own addresses ([`addresses::announcements`]): the node is
    /// given them, as if from the TAP, when it is attached anew.
    pub announcements: Vec<Vec<u8>>,
    /// Clients of an earlier start: the node is told of them before anything else.
    pub remembered: Vec<Remembered>,
    /// Where the node's clients are noted for the next start.
    pub client_file: Option<ClientFile>,
}

impl Runtime {
    /// As a daemon does that is told nothing, with nobody remembered and nothing to announce.
    pub fn new(clock: Clock, radio: Link) -> Self {
        let LoopSettings { bundles, coalesce, busy_poll } = LoopSettings::DEFAULT;
        Self {
            clock,
            radio,
            tap_mtu: TapMtu::default(),
            bundles,
            coalesce,
            busy_poll,
            announcements: Vec::new(),
            remembered: Vec::new(),
            client_file: None,
        }
    }

    /// Drives `node` until it is told to stop. An error is that of the kernel refusing a descriptor
    /// to wait on (too many files are open) or to wait (no memory).
    pub fn run(
        self,
        node: &mut impl Node,
        radio: &mut impl Device,
        tap: &mut impl Device,
        links: &mut impl Links,
        commands: &mut impl Commands,
    ) -> io::Result<Exit> {
        let mut running = self.start(node, radio, tap, links, commands)?;
        loop {
            if let Some(exit) = running.turn(None)? {
                return Ok(exit);
            }
        }
    }

    /// The loop, to be driven turn by turn.
    pub fn start<'a, N: Node, R: Device, T: Device, L: Links, C: Commands>(
        self,
        node: &'a mut N,
        radio: &'a mut R,
        tap: &'a mut T,
        links: &'a mut L,
        commands: &'a mut C,
    ) -> io::Result<Running<'a, N, R, T, L, C>> {
        if !self.coalesce.is_zero() {
            device::sleep_precisely();
        }
        if node.wants_unacknowledged() {
            radio.want_unacknowledged();
        }
        let mut waiter = Waiter::new(self.clock)?;
        waiter.watch(Side::Radio, radio.descriptor())?;
        waiter.watch_control(radio.control_descriptor())?;
        waiter.watch(Side::Tap, tap.descriptor())?;
        let mut running = Running {
            node,
            coalesce: self.coalesce,
            ports: Ports {
                radio,
                tap,
                way_out: WayOut::new(self.radio.mtu, self.bundles),
                busy_poll: BusyPoll::new(self.busy_poll),
                tap_lost: false,
                tap_written: false,
            },
            links,
            commands,
            clock: self.clock,
            waiter,
            replies: Replies::new(),
            burst: Burst::new(BURST),
            overdue_turns: 0,
            radio_last: 0,
            tap_last: 0,
            per_frame: 1,
            // The first turn looks at everything: frames may have come before the loop did.
            radio_more: true,
            control_more: true,
            control_at: Timestamp::ZERO,
            tap_more: true,
            radio_up: self.radio.up,
            radio_tells: false,
            lan_up: true,
            radio: self.radio,
            tap_mtu: self.tap_mtu,
            reopen: None,
            stop_at: None,
            events: EventLog::default(),
            first_contact: FirstContact::new(self.clock.now()),
            began: self.clock.now(),
            viewers: Viewers::default(),
            pingers: Pingers::default(),
            announcements: self.announcements,
            keeper: self.client_file.map(|file| Keeper::start(file, self.clock.now())),
        };
        running.clients_told(&self.remembered);
        if !running.radio_up {
            warn!(radio = running.ports.radio.name(), "radio is down, waiting for it");
            running.link_event(LinkEvent::Down);
        }
        Ok(running)
    }
}

/// The two devices, and what sending to them needs.
struct Ports<'a, R, T> {
    radio: &'a mut R,
    tap: &'a mut T,
    way_out: WayOut,
    busy_poll: BusyPoll,
    /// The TAP was found to be gone and nobody has looked at it yet.
    tap_lost: bool,
    /// Something was written to the TAP since this was last looked at.
    tap_written: bool,
}

impl<R: Device, T: Device> Ports<'_, R, T> {
    /// Sends replies in order, each as one frame, and takes their buffers back. What is on loan
    /// lies in `burst`.
    fn transmit(&mut self, now: Timestamp, replies: &mut Replies, burst: &mut Burst) {
        if replies.is_empty() {
            // A frame that nobody answers ends its loan as well: something else will lie in its
            // place.
            replies.lend_nothing();
            return;
        }
        replies.flatten();
        for loan in replies.loans() {
            self.busy_poll.passed_on(side_of(loan));
            if let Some(head) = replies.head(loan) {
                let fits = burst.put_head(loan.index, loan.payload.start, head);
                debug_assert!(fits, "lent with no more headroom than there is");
            }
        }
        self.send_in_order(now, replies, burst);
        replies.recycle();
    }

    fn send_in_order(&mut self, now: Timestamp, replies: &Replies, burst: &Burst) {
        let mut wire: ArrayVec<Outgoing<'_>, CHUNK> = ArrayVec::new();
        let mut tap: ArrayVec<Outgoing<'_>, CHUNK> = ArrayVec::new();
        for (to, bytes) in in_order(replies, burst) {
            match to {
                Side::Radio => wire.push(Outgoing::classed(bytes)),
                Side::Tap => tap.push(Outgoing::new(bytes)),
            }
            if wire.is_full() || tap.is_full() {
                self.send(now, &wire, &tap, replies.narrow());
                wire.clear();
                tap.clear();
            }
        }
        self.send(now, &wire, &tap, replies.narrow());
    }

    fn send(
        &mut self,
        now: Timestamp,
        wire: &[Outgoing<'_>],
        tap: &[Outgoing<'_>],
        narrow: &[NextHop],
    ) {
        if !wire.is_empty() {
            self.way_out.send(now, self.radio, wire, narrow);
        }
        if !tap.is_empty() {
            self.tap_written = true;
            self.tap_lost |= self.tap.send(tap) == Sent::Gone;
        }
    }
}

/// How many frames to wait for when there were `last` the turn before. Where one came alone the
/// next does too: it goes on before the system call that finds no other.
fn enough_after(last: usize) -> usize {
    if last <= 1 { 1 } else { BURST }
}

/// Where a frame that was lent goes.
fn side_of(loan: &Loan) -> Side {
    if loan.head.is_some() { Side::Radio } else { Side::Tap }
}

/// Replies and loans as whole frames, in the order in which the node gave them.
fn in_order<'a>(replies: &'a Replies, burst: &'a Burst) -> impl Iterator<Item = (Side, &'a [u8])> {
    let mut loans = replies.loans().iter().peekable();
    let mut items = replies.as_slice().iter();
    let mut taken = 0;
    std::iter::from_fn(move || {
        if let Some(loan) = loans.next_if(|loan| loan.after == taken) {
            let head = loan.head.as_ref().map_or(0, Range::len);
            return Some((side_of(loan), burst.part(loan.index, head, loan.payload.clone())));
        }
        taken += 1;
        items.next().map(|reply| match reply {
            ReplyType::WireFlat(flat) => (Side::Radio, &flat[..]),
            ReplyType::TapFlat(flat) => (Side::Tap, &flat[..]),
            // Made flat before.
            ReplyType::Wire(_) => (Side::Radio, &[][..]),
            ReplyType::Tap(_) => (Side::Tap, &[][..]),
        })
    })
}

/// How a node is told of a frame of the radio.
type Tell<N> = fn(&mut N, Timestamp, &[u8], &mut Replies);

/// A TAP that is gone and will be tried again.
#[derive(Clone, Copy)]
struct Reopen {
    at: Timestamp,
    delay: Duration,
    /// The failure has been logged; one line per change is enough.
    logged: bool,
}

/// A loop on its way.
pub struct Running<'a, N, R, T, L, C> {
    node: &'a mut N,
    ports: Ports<'a, R, T>,
    links: &'a mut L,
    commands: &'a mut C,
    clock: Clock,
    waiter: Waiter,
    coalesce: Duration,
    replies: Replies,
    burst: Burst,
    /// Turns for which a deadline has been waiting for the radio to drain.
    overdue_turns: u32,
    /// Frames of the last turn of either side, those in bundles each by itself.
    radio_last: usize,
    tap_last: usize,
    /// Messages in a frame of the radio, in the last burst: with bundles more than one.
    per_frame: usize,
    /// The last turn may have left frames behind.
    radio_more: bool,
    control_more: bool,
    /// When control is looked for at the latest while nobody is asked who has something.
    control_at: Timestamp,
    tap_more: bool,
    /// The last known state of the radio, which the node works with while there is none.
    radio: Link,
    radio_up: bool,
    /// The radio has had something to tell of frames sent.
    radio_tells: bool,
    /// What is written to the TAP arrives.
    lan_up: bool,
    tap_mtu: TapMtu,
    reopen: Option<Reopen>,
    stop_at: Option<Timestamp>,
    events: EventLog,
    first_contact: FirstContact,
    began: Timestamp,
    viewers: Viewers,
    pingers: Pingers,
    announcements: Vec<Vec<u8>>,
    keeper: Option<Keeper>,
}

impl<N: Node, R: Device, T: Device, L: Links, C: Commands> Running<'_, N, R, T, L, C> {
    /// One turn: waits for something to do, and does it. It waits no longer than `patience`;
    /// without one for as long as it takes. Says how the loop ended if it did; then there must be
    /// no other turn.
    pub fn turn(&mut self, patience: Option<Duration>) -> io::Result<Option<Exit>> {
        let ready = self.wait(patience)?;
        if let Some(exit) = self.turn_bell() {
            return Ok(Some(exit));
        }
        let now = self.clock.now();
        let due = self.node.poll_timeout().is_some_and(|at| at <= now);
        // Under load nobody asks who has something, and most turns have no control.
        let is_blind = ready == Ready::UNKNOWN;
        let is_time = if is_blind { now >= self.control_at } else { ready.control };
        if is_time || self.control_more || due {
            self.control_more = self.turn_control(now);
            self.control_at = now + CONTROL_WITHIN;
        }
        if ready.radio || self.radio_more || due {
            self.radio_more = self.turn_radio(now);
        }
        self.radio_tells |= ready.radio_error;
        if self.radio_tells && (is_blind || ready.radio_error) {
            self.turn_unacknowledged(now);
        }
        let is_stale = self.ports.way_out.expires().is_some_and(|at| at <= now);
        if self.ports.way_out.is_waiting() && ready.radio_room || is_stale {
            self.ports.way_out.retry(now, self.ports.radio);
        }
        // While the radio is full its frames wait in the TAP's queue, which is bounded.
        if self.ports.way_out.has_data() {
            self.tap_last = 0;
        } else if ready.tap
            || self.tap_more
            || self.radio_more
            || due
            || self.ports.way_out.has_left_tap()
        {
            self.tap_more = self.turn_tap(now);
        }
        if due {
            self.turn_timeout();
        }
        self.turn_reopen(now)?;
        let mut is_attached_anew = false;
        while let Some(event) = self.node.poll_event() {
            is_attached_anew |= self.events.event(now, &event);
            self.tell(now, event);
        }
        while let Some(echoed) = self.node.poll_echo() {
            self.pingers.answer(echoed);
        }
        let Ports { radio, tap, .. } = &mut self.ports;
        for too_long in [radio.take_too_long(), tap.take_too_long()].into_iter().flatten() {
            let event = Event::TooLong(too_long);
            self.events.event(now, &event);
            self.tell(now, event);
        }
        if is_attached_anew {
            self.say_who_we_are(now);
        }
        self.events.summarize(now);
        self.first_contact.drive(now, self.ports.radio, self.radio_up);
        self.show_viewers(now);
        if let Some(keeper) = &mut self.keeper {
            keeper.drive(now, self.node);
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            self.end(now);
            return Ok(Some(Exit::Clean));
        }
        Ok(None)
    }

    /// Those who listen hear of an event, and of a decision what it was made from.
    fn tell(&mut self, now: Timestamp, event: Event) {
        if !self.commands.has_listeners() {
            return;
        }
        let is_decision = matches!(event, Event::UpstreamChanged { .. });
        let routes = if is_decision { self.node.routes(now) } else { Vec::new() };
        self.commands.tell(Told { at: now, event, routes });
    }

    /// Shows those who wait for it how the node stands, if it is time.
    fn show_viewers(&mut self, now: Timestamp) {
        if self.viewers.deadline().is_none_or(|at| now < at) {
            return;
        }
        let was_full = self.viewers.is_full();
        let began = self.clock.now();
        let view = self.view(began);
        self.viewers.answer(view, began, self.clock.now());
        if was_full {
            // Nobody has looked for other questions meanwhile.
            self.waiter.bell.ring();
        }
    }

    fn view(&mut self, now: Timestamp) -> View {
        let Ports { radio, tap, way_out, busy_poll, .. } = &mut self.ports;
        let (alone, other_ethertypes) = self.first_contact.found(*radio);
        let counters = Groups {
            node: self.node.counters().iter().collect(),
            radio: radio.counters().iter().collect(),
            tap: tap.counters().iter().collect(),
            bundles: way_out.bundles().iter().collect(),
            outbox: way_out.waited().iter().collect(),
            busy_poll: busy_poll.counters().iter().collect(),
            signal: self.links.signal_counters().iter().collect(),
        };
        View {
            uptime_ms: span_ms(now.since(self.began)),
            node: self.node.snapshot(now),
            radio: Interface {
                name: radio.name().to_owned(),
                mac: Some(self.radio.mac),
                mtu_bytes: Some(self.radio.mtu),
                is_up: self.radio_up,
            },
            tap: Interface {
                name: tap.name().to_owned(),
                mac: None,
                mtu_bytes: self.tap_mtu.over(self.radio.mtu).ok(),
                is_up: self.lan_up,
            },
            is_radio_full: way_out.is_waiting(),
            alone: alone.map(str::to_owned),
            other_ethertypes: other_ethertypes.to_vec(),
            counters,
        }
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::View(viewer) => self.viewers.add(viewer),
            Request::ForgetClients(which, reply) => {
                let now = self.clock.now();
                let forgotten = self.node.forget_clients(now, which, &mut self.replies);
                self.transmit(now);
                info!(which = which.map(tracing::field::display), forgotten, "clients forgotten");
                // Who asked may have gone.
                let _ = reply.send(forgotten);
            }
            Request::Ping(target, hop_limit, reply) => {
                let now = self.clock.now();
                let nonce = self.pingers.add(reply);
                let ping = Ping { target, hop_limit, nonce };
                self.node.handle_ping(now, ping, &mut self.replies);
                self.transmit(now);
            }
        }
    }

    /// Hosts on the LAN may know our addresses from somewhere else.
    fn say_who_we_are(&mut self, now: Timestamp) {
        for frame in &self.announcements {
            self.replies.lend_nothing();
            self.node.handle_tap(now, frame, &mut self.replies);
        }
        self.transmit(now);
    }

    /// Waits for something to do, unless there is.
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<Ready> {
        let reads_tap = !self.ports.way_out.has_data();
        let has_left = self.radio_more || self.control_more || self.tap_more && reads_tap;
        if has_left || self.waiter.bell.is_rung() {
            return Ok(Ready::UNKNOWN);
        }
        if self.is_busy() {
            std::thread::sleep(self.coalesce);
            return Ok(Ready::UNKNOWN);
        }
        self.arm();
        let Ports { radio, tap, way_out, .. } = &self.ports;
        self.waiter.expect(Side::Radio, radio.descriptor(), true, way_out.is_waiting())?;
        self.waiter.expect(Side::Tap, tap.descriptor(), reads_tap, false)?;
        if let Some(ready) = self.look_for_an_answer(patience)? {
            return Ok(ready);
        }
        self.waiter.wait(patience)
    }

    /// Stays awake for a moment after a frame that was passed on alone, where that has helped
    /// lately. `None`: there is nothing to stay awake for.
    fn look_for_an_answer(&mut self, patience: Option<Duration>) -> io::Result<Option<Ready>> {
        let Some((side, limit)) = self.ports.busy_poll.question() else { return Ok(None) };
        let limit = patience.map_or(limit, |patience| patience.min(limit));
        let until = self.clock.now() + limit;
        loop {
            let ready = self.waiter.wait(Some(Duration::ZERO))?;
            let is_answered = match side {
                Side::Radio => ready.radio,
                Side::Tap => ready.tap,
            };
            let is_over = self.clock.now() >= until;
            if is_answered || is_over {
                self.ports.busy_poll.answered(side, is_answered);
            }
            // An alarm that went off, or the bell, is only told once.
            if is_over || ready != Ready::default() {
                return Ok(Some(ready));
            }
            // Whoever is to answer may need this core.
            std::thread::yield_now();
        }
    }

    /// Frames come so fast that it is not worth while to be woken by each.
    fn is_busy(&self) -> bool {
        !self.coalesce.is_zero() && self.radio_last + self.tap_last >= BUSY
    }

    /// An interface or the operator may have something to say.
    fn turn_bell(&mut self) -> Option<Exit> {
        let Self { waiter, links, commands, node, clock, viewers, .. } = self;
        let (change, command, request, clients) = waiter.bell.answer(|cx| {
            let (change, command) = (links.poll_change(cx), commands.poll_command(cx));
            // After the change that makes somebody ask.
            let clients = links.poll_clients(cx);
            let may_ask = !viewers.is_full();
            let request = if may_ask { commands.poll_request(cx) } else { Poll::Pending };
            let mut left = signal::reports::WAITING_MAX;
            while let Poll::Ready(Sample { from, dbm }) = links.poll_signal(cx) {
                trace!(%from, dbm, "signal");
                node.handle_signal(clock.now(), from, dbm);
                left -= 1;
                if left == 0 {
                    waiter.bell.ring();
                    break;
                }
            }
            (change, command, request, clients)
        })?;
        if let Poll::Ready(clients) = clients {
            self.clients_told(&clients);
        }
        if change.is_ready() || command.is_ready() || request.is_ready() {
            // There may be more.
            self.waiter.bell.ring();
        }
        match command {
            Poll::Ready(Command::Report) => self.report(),
            Poll::Ready(Command::Stop) if self.stop_at.is_some() => {
                info!("asked to stop again, stopping at once");
                self.end(self.clock.now());
                return Some(Exit::Forced);
            }
            Poll::Ready(Command::Stop) => self.begin_to_stop(),
            Poll::Pending => {}
        }
        if let Poll::Ready(change) = change {
            self.link_changed(change);
        }
        if let Poll::Ready(request) = request {
            self.answer(request);
        }
        None
    }

    /// Sets the timer to the next deadline, unless it goes off before that anyway.
    fn arm(&mut self) {
        let reopen = self.reopen.map(|reopen| reopen.at);
        let stale = self.ports.way_out.expires();
        let (sum, contact) = (self.events.deadline(), self.first_contact.deadline());
        let viewers = self.viewers.deadline();
        let note = self.keeper.as_ref().map(Keeper::deadline);
        let own = [reopen, stale, sum, contact, viewers, note];
        let deadlines = [self.node.poll_timeout(), self.stop_at].into_iter().chain(own);
        if let Some(next) = deadlines.flatten().min() {
            self.waiter.alarm.set(next);
        }
    }

    /// One burst of control frames from the radio. Returns whether there may be more.
    fn turn_control(&mut self, now: Timestamp) -> bool {
        if self.ports.radio.control_descriptor().is_none() {
            return false;
        }
        self.burst.limit(BURST);
        let received = self.ports.radio.recv_control(&mut self.burst);
        self.tell_burst(now, N::handle_wire);
        received == Received::More
    }

    /// One burst from the radio. Returns whether there may be more.
    fn turn_radio(&mut self, now: Timestamp) -> bool {
        let mut taken = 0;
        let enough = enough_after(self.radio_last);
        let mut more = self.take_from_radio(now, enough, &mut taken);
        if more && taken < BURST {
            // An answer of the host (to a ping, to a segment) is there by the time the frame has
            // been written. What is left of it is still there when its turn comes.
            if std::mem::take(&mut self.ports.tap_written) && !self.ports.way_out.has_data() {
                self.tap_more = self.turn_tap(now);
            }
            more = self.take_from_radio(now, BURST, &mut taken);
        }
        self.radio_last = taken;
        more
    }

    fn take_from_radio(&mut self, now: Timestamp, enough: usize, taken: &mut usize) -> bool {
        // A burst of full bundles is a thousand frames: control, deadlines and the TAP must not
        // wait for so many.
        self.burst.limit(enough.div_ceil(self.per_frame));
        let received = self.ports.radio.recv(&mut self.burst);
        let frames = self.burst.len();
        let heard = self.tell_burst(now, N::handle_wire);
        if frames > 0 {
            self.per_frame = heard.div_ceil(frames).max(1);
        }
        *taken += heard;
        received == Received::More
    }

    /// What the radio gave up, one burst of it. What is left is told of again: a radio that is full
    /// of frames it gives up must not keep us from what comes.
    fn turn_unacknowledged(&mut self, now: Timestamp) {
        self.burst.limit(BURST);
        self.ports.radio.recv_unacknowledged(&mut self.burst);
        self.tell_burst(now, N::handle_unacknowledged);
    }

    /// Tells the node of a burst of the radio, and sends what it answers. Returns how many frames
    /// it was, those in bundles each by itself.
    fn tell_burst(&mut self, now: Timestamp, tell: Tell<N>) -> usize {
        let mut taken = 0;
        for index in 0..self.burst.len() {
            let frame = self.burst.frame(index);
            trace!(len = frame.len(), "from radio");
            if let Some(bundle) = Opened::open(frame) {
                taken += self.take_apart(now, index, bundle, tell);
                continue;
            }
            taken += 1;
            self.replies.lend(index, frame, HEADROOM);
            tell(self.node, now, frame, &mut self.replies);
        }
        self.transmit(now);
        taken
    }

    /// Has each frame in a bundle handled, and says how many these are. None of them is lent: the
    /// next is written over its end.
    fn take_apart(
        &mut self,
        now: Timestamp,
        index: usize,
        mut bundle: Opened,
        tell: Tell<N>,
    ) -> usize {
        while let Some(frame) = bundle.next_in(self.burst.frame_mut(index)) {
            tell(self.node, now, frame, &mut self.replies);
            if self.replies.as_slice().len() >= BURST {
                self.transmit(now);
            }
        }
        self.ports.way_out.count(&bundle)
    }

    /// One burst from the TAP. Returns whether there may be more.
    fn turn_tap(&mut self, now: Timestamp) -> bool {
        let (mut taken, mut enough) = (0, enough_after(self.tap_last));
        let more = loop {
            let before = taken;
            let more = self.take_from_tap(now, enough, &mut taken);
            // Sending took longer than reading: there may be more by now, though there was none a
            // moment ago.
            if taken == before || taken >= BURST || self.ports.way_out.has_data() {
                break more;
            }
            enough = BURST;
        };
        self.tap_last = taken;
        more
    }

    fn take_from_tap(&mut self, now: Timestamp, enough: usize, taken: &mut usize) -> bool {
        self.burst.limit(enough);
        let received = self.ports.tap.recv(&mut self.burst);
        self.ports.tap_lost |= received == Received::Gone;
        let is_end = received != Received::More;
        let is_late = self.ports.way_out.note_tap_read(now, self.burst.len(), is_end);
        for index in 0..self.burst.len() {
            let frame = self.burst.frame(index);
            trace!(len = frame.len(), "from tap");
            self.replies.lend(index, frame, HEADROOM);
            if is_late {
                self.node.handle_tap_late(now, frame, &mut self.replies);
            } else {
                self.node.handle_tap(now, frame, &mut self.replies);
            }
        }
        *taken += self.burst.len();
        self.transmit(now);
        received == Received::More
    }

    /// A deadline has come; the radio may still hold what neighbours said before it.
    fn turn_timeout(&mut self) {
        let keeps_apart = self.ports.radio.control_descriptor().is_some();
        let may_have_word = if keeps_apart { self.control_more } else { self.radio_more };
        if may_have_word && self.overdue_turns < DRAIN_TURNS {
            self.overdue_turns += 1;
            return;
        }
        self.overdue_turns = 0;
        let now = self.clock.now();
        self.node.handle_timeout(now, &mut self.replies);
        self.transmit(now);
    }

    fn link_event(&mut self, event: LinkEvent) {
        let now = self.clock.now();
        self.node.handle_link(now, event, &mut self.replies);
        self.transmit(now);
    }

    fn transmit(&mut self, now: Timestamp) {
        self.ports.transmit(now, &mut self.replies, &mut self.burst);
    }

    fn link_changed(&mut self, change: LinkChange) {
        match change.side {
            Side::Radio => self.radio_changed(change.link),
            Side::Tap => self.tap_changed(change.link),
        }
    }

    fn radio_changed(&mut self, link: Option<Link>) {
        if let Err(error) = self.ports.radio.link_changed(link.as_ref()) {
            // Gone again already: the next change says so.
            debug!(cause = %error.source, "{error}");
        }
        let radio = self.ports.radio.name().to_owned();
        let was_up = self.radio_up;
        let Some(link) = link else {
            warn!(%radio, "radio interface is gone, waiting for it");
            self.radio_up = false;
            if was_up {
                self.link_event(LinkEvent::Down);
            }
            return;
        };
        self.radio_up = link.up;
        let (mac, mtu) = (link.mac, link.mtu);
        let before = std::mem::replace(&mut self.radio, link);
        let recreated = before.index != self.radio.index;
        if recreated {
            info!(%radio, index = self.radio.index, "radio interface is back");
        }
        if was_up && (recreated || !self.radio_up) {
            warn!(%radio, "radio is down, waiting for it");
            self.link_event(LinkEvent::Down);
        }
        if before.mac != mac {
            info!(%radio, %mac, "radio has another address");
            self.link_event(LinkEvent::AddressChanged(mac));
        }
        if before.mtu != mtu {
            self.ports.way_out.set_radio_mtu(mtu);
            self.radio_mtu_changed(&radio, mtu);
        }
        if self.radio_up && (recreated || !was_up) {
            info!(%radio, "radio is up");
            self.link_event(LinkEvent::Up);
        }
    }

    fn radio_mtu_changed(&mut self, radio: &str, mtu: usize) {
        self.link_event(LinkEvent::MtuChanged(mtu));
        match self.tap_mtu.over(mtu) {
            Ok(tap_mtu) => {
                info!(%radio, mtu, tap_mtu, "radio MTU");
                self.links.configure_tap(tap_mtu);
                self.waiter.bell.ring();
            }
            Err(error) => warn!(%radio, mtu, %error, "radio MTU does not fit the TAP"),
        }
    }

    fn tap_changed(&mut self, link: Option<Link>) {
        if let Err(error) = self.ports.tap.link_changed(link.as_ref()) {
            debug!(cause = %error.source, "{error}");
        }
        self.lan_changed(link.as_ref().is_some_and(|link| link.up));
        if link.is_none() {
            // Whether it is ours that was deleted, the descriptor knows.
            self.turn_tap(self.clock.now());
        }
    }

    fn lan_changed(&mut self, up: bool) {
        if std::mem::replace(&mut self.lan_up, up) == up {
            return;
        }
        let tap = self.ports.tap.name();
        if up {
            info!(tap, "TAP is up");
        } else {
            warn!(tap, "TAP is down, gone or out of its bridge: no frame gets through to the LAN");
        }
        self.link_event(if up { LinkEvent::LanUp } else { LinkEvent::LanDown });
    }

    /// Notices that the TAP is gone, and tries to re-create it when the time has come.
    fn turn_reopen(&mut self, now: Timestamp) -> io::Result<()> {
        if std::mem::take(&mut self.ports.tap_lost) && self.reopen.is_none() {
            warn!(tap = self.ports.tap.name(), "TAP was deleted, re-creating it");
            let delay = REOPEN_DELAY_MIN;
            self.reopen = Some(Reopen { at: now + delay, delay, logged: false });
        }
        let Some(reopen) = self.reopen.filter(|reopen| reopen.at <= now) else {
            return Ok(());
        };
        match self.ports.tap.reopen() {
            Ok(()) => {
                self.reopen = None;
                info!(tap = self.ports.tap.name(), "TAP is back");
                self.waiter.watch(Side::Tap, self.ports.tap.descriptor())?;
                if let Ok(mtu) = self.tap_mtu.over(self.radio.mtu) {
                    self.links.configure_tap(mtu);
                    self.waiter.bell.ring();
                }
            }
            Err(error) => {
                if !reopen.logged {
                    warn!(cause = %error.source, "{error}; trying again");
                }
                let delay = (reopen.delay * 2).min(REOPEN_DELAY_MAX);
                self.reopen = Some(Reopen { at: now + delay, delay, logged: true });
            }
        }
        Ok(())
    }

    fn begin_to_stop(&mut self) {
        let now = self.clock.now();
        let linger = self.node.linger();
        info!(linger_ms = u64::try_from(linger.as_millis()).unwrap_or(u64::MAX), "stopping");
        self.node.handle_shutdown(now, &mut self.replies);
        self.transmit(now);
        self.stop_at = Some(now + linger);
    }

    fn clients_told(&mut self, clients: &[Remembered]) {
        let now = self.clock.now();
        self.node.handle_clients(now, clients, &mut self.replies);
        self.transmit(now);
    }

    /// What is left to do at the end.
    fn end(&mut self, now: Timestamp) {
        self.report();
        if let Some(keeper) = self.keeper.take() {
            keeper.finish(now, self.node);
        }
    }

    fn report(&mut self) {
        let Ports { radio, tap, way_out, busy_poll, .. } = &mut self.ports;
        let (bundles, outbox) = (way_out.bundles(), way_out.waited());
        let signal = self.links.signal_counters();
        log::counters(self.node, *radio, *tap, bundles, outbox, busy_poll.counters(), &signal);
    }
}
