//! The only place where a daemon reads the time.

use std::fs::File;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use crate::device;
use crate::time::Timestamp;

/// Time since the process started. It never jumps, and goes on while the machine sleeps
/// (`CLOCK_BOOTTIME`): after waking up, neighbours have been silent for as long as they were.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Duration,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: device::boottime() }
    }

    /// Time since the start.
    pub fn now(&self) -> Timestamp {
        Timestamp::ZERO + device::boottime().saturating_sub(self.start)
    }
}

/// Wakes the loop at a time of its clock.
///
/// A timer of the kernel and not one of tokio's: it goes off on time after the machine was asleep, and a loop that
/// waits for frames does not start and stop a timer with each of them.
#[derive(Debug)]
pub(super) struct Alarm {
    clock: Clock,
    timer: AsyncFd<File>,
    /// When it goes off; `None` if it did or was never set.
    armed: Option<Timestamp>,
}

impl Alarm {
    /// An alarm that is not set. Must be called inside a tokio runtime.
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self { clock, timer: device::timer()?, armed: None })
    }

    /// Goes off at this time, or before: an earlier time that it was set to stays.
    pub(super) fn set(&mut self, at: Timestamp) {
        if self.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        match device::set_timer(&self.timer, self.clock.start + at.since(Timestamp::ZERO)) {
            Ok(()) => self.armed = Some(at),
            Err(error) => debug_assert!(false, "no time is out of range: {error}"),
        }
    }

    /// Ready once when the time has come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let _ = ready!(self.timer.poll_read_ready(cx));
            match device::take_timer(&self.timer) {
                // A readiness of the past.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => break,
            }
        }
        self.armed = None;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes() {
        let clock = Clock::start();
        let before = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.now() - before >= Duration::from_millis(2));
    }
}
