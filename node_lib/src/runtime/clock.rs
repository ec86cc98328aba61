//! The only place where a daemon reads the time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

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
/// A timer of the kernel (timerfd_create(2)) and not the time limit of poll(2). It goes off on time
/// after the machine was asleep, and a loop that waits for frames does not start and stop a timer
/// with each of them.
#[derive(Debug)]
pub(super) struct Alarm {
    clock: Clock,
    timer: OwnedFd,
    /// When it goes off; `None` if it did or was never set.
    armed: Option<Timestamp>,
}

impl Alarm {
    /// An alarm that is not set.
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Self { clock, timer, armed: None })
    }

    /// Becomes readable when it goes off.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Goes off at this time, or before: an earlier time that it was set to stays.
    pub(super) fn set(&mut self, at: Timestamp) {
        if self.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        // A time of zero would turn it off.
        let time = (self.clock.start + at.since(Timestamp::ZERO)).max(Duration::from_nanos(1));
        match device::set_alarm(self.timer.as_fd(), time) {
            Ok(()) => self.armed = Some(at),
            Err(error) => debug_assert!(false, "no time is out of range: {error}"),
        }
    }

    /// Takes notice that it went off. How often it did is left unread: setting it anew clears that.
    pub(super) fn went_off(&mut self) {
        self.armed = None;
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
