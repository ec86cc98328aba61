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
//!    before. A process that was stopped for three seconds first hears what its neighbours said in
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
pub mod boot;
pub mod busy_poll;
pub mod clients;
pub mod clock;
pub mod command;
pub mod directory;
mod first_contact;
pub mod inside;
mod interfaces;
mod log;
mod ports;
pub mod request;
mod rest;
mod shown;
mod traffic;
mod wait;
mod wakeup;

use std::io;
use std::time::Duration;

use tracing::{info, warn};

use crate::control::event::Event;
use crate::control::node::{LinkEvent, Node, Replies};
use crate::device::{self, Burst, Device, LinkState, Links, Side};
use crate::settings::LoopSettings;
use crate::start::clients::Remembered;
use crate::time::Timestamp;
use crate::transport::mtu::TapMtu;
use crate::transport::{BURST, DRAIN_TURNS, WayOut};
use busy_poll::BusyPoll;
use clients::{ClientFile, Keeper};
use clock::Clock;
use command::Commands;
use first_contact::FirstContact;
use inside::{Pingers, Viewers};
use interfaces::Reopen;
use log::EventLog;
use ports::Ports;
pub use rest::BUSY;
use wait::{Ready, Waiter};

/// Control frames wait no longer than this while nobody asks who has something: a hundredth of a
/// heartbeat's interval, and one system call in some twenty turns.
const CONTROL_WITHIN: Duration = Duration::from_millis(1);

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
    pub radio: LinkState,
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
    pub fn new(clock: Clock, radio: LinkState) -> Self {
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
            replies: Replies::with_spare_buffers(),
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
            tap_has_mtu: self.tap_mtu.over(self.radio.mtu).ok(),
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
    radio: LinkState,
    radio_up: bool,
    /// The radio has had something to tell of frames sent.
    radio_tells: bool,
    /// What is written to the TAP arrives.
    lan_up: bool,
    tap_mtu: TapMtu,
    /// What the TAP has; `None` while there is none.
    tap_has_mtu: Option<usize>,
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
        let others = || self.links.other_ethertypes();
        self.first_contact.drive(now, self.ports.radio, self.radio_up, others);
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

    /// Hosts on the LAN may know our addresses from somewhere else.
    fn say_who_we_are(&mut self, now: Timestamp) {
        for frame in &self.announcements {
            self.replies.lend_nothing();
            self.node.handle_tap(now, frame, &mut self.replies);
        }
        self.transmit(now);
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
}
