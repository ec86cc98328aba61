//! [`Waiter`]: sleeps until there is something to do.
//!
//! One epoll(7) over four descriptors, and not tokio's readiness. A task that waits for a frame is
//! woken through a waker and a scheduler, and has to find the end of every queue by one read more.
//!
//! Unlike poll(2) it asks only the device for its state that woke it, and enters no queue before it
//! sleeps.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::clock::{Alarm, Clock};
use super::wakeup::Wakeup;
use crate::device::Side;

/// What can wake the loop.
#[derive(Debug)]
pub(super) struct Waiter {
    epoll: OwnedFd,
    /// Set to the next deadline.
    pub(super) alarm: Alarm,
    /// Rung by interfaces and instructions.
    pub(super) wakeup: Wakeup,
    /// What radio and TAP are watched for.
    radio: EventFlags,
    tap: EventFlags,
}

/// Devices that are worth a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) radio: bool,
    /// The radio was full and has room again.
    pub(super) radio_room: bool,
    /// The radio has an error to tell, or what became of frames.
    pub(super) radio_error: bool,
    pub(super) tap: bool,
    /// The radio has control frames that it keeps apart.
    pub(super) control: bool,
    /// The alarm went off, or the wake-up was raised.
    pub(super) other: bool,
}

impl Ready {
    /// Nobody was asked, so everything may be.
    pub(super) const UNKNOWN: Self = Self {
        radio: true,
        radio_room: true,
        // What is told can wait until somebody is asked who has something.
        radio_error: false,
        tap: true,
        control: true,
        other: true,
    };
}

/// Who an event is about.
#[derive(Clone, Copy)]
enum Source {
    Radio,
    Control,
    Tap,
    Alarm,
    Wakeup,
}

impl Source {
    const ALL: [Self; 5] = [Self::Radio, Self::Control, Self::Tap, Self::Alarm, Self::Wakeup];

    const fn data(self) -> EventData {
        EventData::new_u64(self as u64)
    }
}

/// Told once, so that nobody has to read it off: for timers and events.
const ONCE: EventFlags = EventFlags::IN.union(EventFlags::ET);

impl Waiter {
    /// With no device yet.
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let (alarm, wakeup) = (Alarm::new(clock)?, Wakeup::new()?);
        epoll::add(&epoll, alarm.descriptor(), Source::Alarm.data(), ONCE)?;
        epoll::add(&epoll, wakeup.descriptor(), Source::Wakeup.data(), ONCE)?;
        Ok(Self { epoll, alarm, wakeup, radio: EventFlags::empty(), tap: EventFlags::empty() })
    }

    /// Watches a device for frames from now on. A descriptor that is closed is forgotten by the
    /// kernel.
    pub(super) fn watch(
        &mut self,
        side: Side,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let Some(descriptor) = descriptor else { return Ok(()) };
        let (source, flags) = self.watched(side);
        *flags = EventFlags::IN;
        Ok(epoll::add(&self.epoll, descriptor, source.data(), EventFlags::IN)?)
    }

    /// Watches the radio for control frames it keeps apart from now on.
    pub(super) fn watch_control(&mut self, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let Some(descriptor) = descriptor else { return Ok(()) };
        Ok(epoll::add(&self.epoll, descriptor, Source::Control.data(), EventFlags::IN)?)
    }

    /// Waits for frames of a device, for room to send, for both or neither from now on.
    pub(super) fn expect(
        &mut self,
        side: Side,
        descriptor: Option<BorrowedFd<'_>>,
        frames: bool,
        room: bool,
    ) -> io::Result<()> {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, frames);
        wanted.set(EventFlags::OUT, room);
        let (source, flags) = self.watched(side);
        let Some(descriptor) = descriptor.filter(|_| *flags != wanted) else { return Ok(()) };
        *flags = wanted;
        Ok(epoll::modify(&self.epoll, descriptor, source.data(), wanted)?)
    }

    fn watched(&mut self, side: Side) -> (Source, &mut EventFlags) {
        match side {
            Side::Radio => (Source::Radio, &mut self.radio),
            Side::Tap => (Source::Tap, &mut self.tap),
        }
    }

    /// Waits for a device, the alarm or the wake-up, no longer than `patience`; without one for as
    /// long as it takes.
    pub(super) fn wait(&mut self, patience: Option<Duration>) -> io::Result<Ready> {
        // More than a `Timespec` holds is for ever.
        let limit = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut room = [const { MaybeUninit::<Event>::uninit() }; Source::ALL.len()];
        let events = match epoll::wait(&self.epoll, &mut room, limit.as_ref()) {
            Ok((events, _)) => events,
            // A signal; whoever handles it raises the wake-up if it means something to us.
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        };
        let mut ready = Ready::default();
        for &mut Event { flags, data, .. } in events {
            let source = Source::ALL.into_iter().find(|source| source.data().u64() == data.u64());
            match source {
                Some(Source::Radio) => {
                    // An error is said to whoever reads.
                    ready.radio |= flags.intersects(EventFlags::OUT.complement());
                    ready.radio_room |= flags.contains(EventFlags::OUT);
                    ready.radio_error |= flags.contains(EventFlags::ERR);
                }
                Some(Source::Control) => ready.control = true,
                Some(Source::Tap) => ready.tap = true,
                Some(Source::Alarm) => {
                    self.alarm.went_off();
                    ready.other = true;
                }
                // It knows by itself that it was raised.
                Some(Source::Wakeup) => ready.other = true,
                None => {}
            }
        }
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::memory::pair;
    use crate::device::{Burst, Device, Outgoing};
    use crate::time::Timestamp;

    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);
    const NOTHING: Ready = Ready {
        radio: false,
        radio_room: false,
        radio_error: false,
        tap: false,
        control: false,
        other: false,
    };
    const OTHER: Ready = Ready { other: true, ..NOTHING };

    #[test]
    fn tells_who_has_what_is_waited_for() {
        let mut waiter = Waiter::new(Clock::start()).unwrap();
        let ((mut air, radio), (mut host, mut tap)) = (pair(1500).unwrap(), pair(1500).unwrap());
        let frame = [Outgoing::new(&[0; 60])];
        host.send(&frame);
        waiter.watch(Side::Radio, radio.descriptor()).unwrap();
        waiter.watch(Side::Tap, tap.descriptor()).unwrap();
        for _ in 0..2 {
            assert_eq!(waiter.wait(AT_ONCE).unwrap(), Ready { tap: true, ..NOTHING });
        }
        air.send(&frame);
        let both = Ready { radio: true, tap: true, ..NOTHING };
        assert_eq!(waiter.wait(AT_ONCE).unwrap(), both);
        waiter.expect(Side::Radio, radio.descriptor(), true, true).unwrap();
        waiter.expect(Side::Tap, tap.descriptor(), false, false).unwrap();
        let but_tap = Ready { radio: true, radio_room: true, ..NOTHING };
        assert_eq!(waiter.wait(AT_ONCE).unwrap(), but_tap);
        waiter.expect(Side::Radio, radio.descriptor(), true, false).unwrap();
        waiter.expect(Side::Tap, tap.descriptor(), true, false).unwrap();
        assert_eq!(waiter.wait(AT_ONCE).unwrap(), both);
        tap.recv(&mut Burst::new(4));
        assert_eq!(waiter.wait(AT_ONCE).unwrap(), Ready { radio: true, ..NOTHING });
    }

    #[test]
    fn one_that_takes_the_place_of_another_is_watched_anew() {
        let mut waiter = Waiter::new(Clock::start()).unwrap();
        for _ in 0..3 {
            let (mut host, tap) = pair(1500).unwrap();
            waiter.watch(Side::Tap, tap.descriptor()).unwrap();
            assert_eq!(waiter.wait(AT_ONCE).unwrap(), NOTHING);
            host.send(&[Outgoing::new(&[0; 60])]);
            assert_eq!(waiter.wait(AT_ONCE).unwrap(), Ready { tap: true, ..NOTHING });
        }
    }

    #[test]
    fn the_alarm_and_the_bell_end_a_wait_without_end_each_time() {
        let mut waiter = Waiter::new(Clock::start()).unwrap();
        for n in 1..4 {
            waiter.alarm.set(Timestamp::from_millis(5 * n));
            assert_eq!(waiter.wait(None).unwrap(), OTHER);
            let wakeup = waiter.wakeup.answer(|cx| cx.waker().clone());
            let wakeup = wakeup.expect("raised at first, and then by the thread");
            let raiser = std::thread::spawn(move || wakeup.wake());
            assert_eq!(waiter.wait(None).unwrap(), OTHER);
            assert!(waiter.wakeup.is_raised());
            raiser.join().unwrap();
        }
    }
}
