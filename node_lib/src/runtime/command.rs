//! What the operator tells a running node: [`Commands`], as signals or from within the process.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::debug;

use super::request::{Request, Told};

/// An instruction to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Say goodbye and stop; the second time, stop at once.
    Stop,
    /// Log all counters.
    Report,
}

/// Where instructions come from.
pub trait Commands {
    /// The next instruction, if there is one.
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command>;

    /// The next question, if there is one; see [`inside`](super::inside).
    fn poll_request(&mut self, _cx: &mut Context<'_>) -> Poll<Request> {
        Poll::Pending
    }

    /// Somebody wants to be told of events.
    fn has_listeners(&self) -> bool {
        false
    }

    /// Something happened. Must not wait.
    fn tell(&mut self, _told: Told) {}
}

/// SIGTERM and SIGINT stop, SIGUSR1 reports. SIGHUP stops as well, unless it is
/// [taken](Self::take_hang_up): without a file to read again, whoever hangs up a terminal wants
/// what was started there to end. SIGUSR2 is ignored.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
    /// A terminal that is closed says so twice, by the kernel and by the shell: no reason for
    /// haste.
    hung_up: bool,
    user1: Signal,
    user2: Signal,
}

impl Signals {
    /// Takes over these signals. Must run inside a tokio runtime.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: Some(signal(SignalKind::hangup())?),
            hung_up: false,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// For a program that has a file to read again: SIGHUP does not stop the loop any more.
    pub fn take_hang_up(&mut self) -> Option<Signal> {
        self.hang_up.take()
    }
}

impl Commands for Signals {
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        while let Poll::Ready(Some(())) = self.user2.poll_recv(cx) {
            debug!("SIGUSR2 means nothing");
        }
        while let Some(hang_up) = &mut self.hang_up
            && let Poll::Ready(Some(())) = hang_up.poll_recv(cx)
        {
            if !std::mem::replace(&mut self.hung_up, true) {
                return Poll::Ready(Command::Stop);
            }
        }
        for (source, command) in [
            (&mut self.terminate, Command::Stop),
            (&mut self.interrupt, Command::Stop),
            (&mut self.user1, Command::Report),
        ] {
            // `None` would mean that no signal can come any more: nothing to tell the loop.
            if let Poll::Ready(Some(())) = source.poll_recv(cx) {
                return Poll::Ready(command);
            }
        }
        Poll::Pending
    }
}

#[derive(Debug, Default)]
struct Mailbox {
    waiting: VecDeque<Command>,
    waker: Option<Waker>,
}

/// Gives instructions from within the process, from any thread: for tests and for programs that run
/// a node themselves.
#[derive(Clone, Debug, Default)]
pub struct Remote(Arc<Mutex<Mailbox>>);

impl Remote {
    /// A remote, and by [`Clone`] as many as needed, for one loop.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives an instruction.
    pub fn send(&self, command: Command) {
        let waker = {
            let mut mailbox = self.lock();
            mailbox.waiting.push_back(command);
            mailbox.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The mailbox is whole between any two operations on it.
    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Commands for Remote {
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        let mut mailbox = self.lock();
        match mailbox.waiting.pop_front() {
            Some(command) => Poll::Ready(command),
            None => {
                mailbox.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
