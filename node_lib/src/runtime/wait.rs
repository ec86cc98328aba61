//! [`Waiter`]: sleeps until there is something to do.
//!
//! One poll(2) over at most four descriptors, and not tokio's readiness: a task that waits for a frame is woken by an
//! event queue, a waker and a scheduler, which take several times as long as the frame, and learns that
//! there is no more of them by one read more.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use arrayvec::ArrayVec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::bell::Bell;
use super::clock::{Alarm, Clock};

/// What can wake the loop, apart from its devices.
#[derive(Debug)]
pub(super) struct Waiter {
    /// Set to the next deadline.
    pub(super) alarm: Alarm,
    /// Rung by interfaces and instructions.
    pub(super) bell: Bell,
}

/// A device to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited<'a> {
    pub(super) descriptor: BorrowedFd<'a>,
    /// Frames to read are waited for, or only room for some that wait to be sent.
    pub(super) to_read: bool,
    /// Room is waited for.
    pub(super) to_write: bool,
}

/// Devices that are worth a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) radio: bool,
    /// The radio was full and has room again.
    pub(super) radio_room: bool,
    pub(super) tap: bool,
}

impl Ready {
    /// Nobody was asked, so everything may be.
    pub(super) const UNKNOWN: Self = Self { radio: true, radio_room: true, tap: true };
}

impl Waiter {
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self { alarm: Alarm::new(clock)?, bell: Bell::new()? })
    }

    /// Waits for a device, the alarm or the bell, and no longer than `patience`; without one for as long as it takes.
    pub(super) fn wait(
        &mut self,
        radio: Option<Awaited<'_>>,
        tap: Option<Awaited<'_>>,
        patience: Option<Duration>,
    ) -> io::Result<Ready> {
        let mut fds: ArrayVec<PollFd<'_>, 4> = ArrayVec::new();
        for descriptor in [self.alarm.descriptor(), self.bell.descriptor()] {
            fds.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        }
        for awaited in [radio, tap].into_iter().flatten() {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, awaited.to_read);
            wanted.set(PollFlags::OUT, awaited.to_write);
            fds.push(PollFd::from_borrowed_fd(awaited.descriptor, wanted));
        }
        // More than a `Timespec` holds is for ever.
        let limit = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut fds, limit.as_ref()) {
            // A signal; whoever handles it rings if it means something to us.
            Ok(0) | Err(Errno::INTR) => return Ok(Ready::default()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = fds.iter().map(PollFd::revents);
        let alarm = events.next().is_some_and(|events| !events.is_empty());
        // The bell knows by itself that it was rung.
        events.next();
        let mut next = |is_awaited: bool| if is_awaited { events.next() } else { None };
        let radio = next(radio.is_some()).unwrap_or(PollFlags::empty());
        let tap = next(tap.is_some()).unwrap_or(PollFlags::empty());
        drop(fds);
        if alarm {
            self.alarm.stop();
        }
        Ok(Ready {
            // An error is said to whoever reads.
            radio: radio.intersects(PollFlags::OUT.complement()),
            radio_room: radio.contains(PollFlags::OUT),
            tap: !tap.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::memory::pair;
    use crate::device::{Device, Outgoing};
    use crate::time::Timestamp;

    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    fn reader(device: &impl Device) -> Option<Awaited<'_>> {
        device.descriptor().map(|descriptor| Awaited { descriptor, to_read: true, to_write: false })
    }

    #[test]
    fn tells_who_has_something() {
        let mut waiter = Waiter::new(Clock::start()).unwrap();
        let ((mut air, radio), (mut host, tap)) = (pair(1500).unwrap(), pair(1500).unwrap());
        let look =
            |waiter: &mut Waiter| waiter.wait(reader(&radio), reader(&tap), AT_ONCE).unwrap();
        assert_eq!(look(&mut waiter), Ready::default());
        host.send(&[Outgoing::new(&[0; 60])]);
        assert_eq!(look(&mut waiter), Ready { tap: true, ..Ready::default() });
        air.send(&[Outgoing::new(&[0; 60])]);
        assert_eq!(look(&mut waiter), Ready { radio: true, radio_room: false, tap: true });
        let room = reader(&radio).map(|radio| Awaited { to_read: false, to_write: true, ..radio });
        let ready = waiter.wait(room, None, AT_ONCE).unwrap();
        assert_eq!(ready, Ready { radio_room: true, ..Ready::default() });
        let ready = waiter.wait(None, reader(&tap), AT_ONCE).unwrap();
        assert_eq!(ready, Ready { tap: true, ..Ready::default() });
    }

    #[test]
    fn the_alarm_and_the_bell_end_a_wait_without_end() {
        let mut waiter = Waiter::new(Clock::start()).unwrap();
        waiter.alarm.set(Timestamp::from_millis(5));
        assert_eq!(waiter.wait(None, None, None).unwrap(), Ready::default());
        // It went off once; then the bell.
        let bell = waiter.bell.answer().expect("rung at first").waker().clone();
        let ringer = std::thread::spawn(move || bell.wake());
        assert_eq!(waiter.wait(None, None, None).unwrap(), Ready::default());
        assert!(waiter.bell.is_rung());
        ringer.join().unwrap();
    }
}
