//! When the loop rests, and what ends its rest: something to read, a deadline, or the wake-up.

use std::io;
use std::task::Poll;
use std::time::Duration;

use tracing::{info, trace};

use super::busy_poll::Came;
use super::clients::Keeper;
use super::command::{Command, Commands};
use super::ports::Ports;
use super::wait::Ready;
use super::{Exit, Running};
use crate::control::node::{LinkEvent, Node};
use crate::device::signal::{self, Sample};
use crate::device::{Device, Links, Side};

/// Frames of a turn, both sides together, from which on there is traffic, and more of it on its
/// way. To be woken by the next frame costs its sender an interrupt and us a context switch, often
/// several times per burst; not to be woken costs nothing but the wait. It is what a network card
/// does with `rx-usecs` (ethtool(8)).
pub const BUSY: usize = 8;

/// Whoever takes the core for so long beyond the end of a look does more with it than to answer.
const CORE_LOST: Duration = Duration::from_micros(500);

impl<N: Node, R: Device, T: Device, L: Links, C: Commands> Running<'_, N, R, T, L, C> {
    /// Waits for something to do, unless there is.
    pub(super) fn wait(&mut self, patience: Option<Duration>) -> io::Result<Ready> {
        let reads_tap = !self.ports.way_out.has_data();
        let has_left = self.radio_more || self.control_more || self.tap_more && reads_tap;
        if has_left || self.waiter.wakeup.is_raised() {
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
            let now = self.clock.now();
            let is_over = now >= until;
            if is_answered || is_over {
                let came = match is_answered {
                    _ if now >= until + CORE_LOST.max(limit) => Came::CoreLost,
                    true if !is_over => Came::InTime,
                    _ => Came::TooLate,
                };
                self.ports.busy_poll.came(side, came);
            }
            // An alarm that went off, or the wake-up, is only told once.
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
    pub(super) fn turn_bell(&mut self) -> Option<Exit> {
        let Self { waiter, links, commands, node, clock, viewers, .. } = self;
        let (change, command, request, clients, busy) = waiter.wakeup.answer(|cx| {
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
                    waiter.wakeup.raise();
                    break;
                }
            }
            (change, command, request, clients, links.poll_channel_busy(cx))
        })?;
        if let Poll::Ready(percent) = busy {
            trace!(percent, "channel busy");
            self.link_event(LinkEvent::ChannelBusy(percent));
        }
        if let Poll::Ready(clients) = clients {
            self.clients_told(&clients);
        }
        if change.is_ready() || command.is_ready() || request.is_ready() {
            // There may be more.
            self.waiter.wakeup.raise();
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
}
