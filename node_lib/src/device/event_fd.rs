//! [`EventFd`]: something that has happened, to be waited for like a frame.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// A count in the kernel (eventfd(2)): readable while it is not zero.
#[derive(Debug)]
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    /// One that has not happened. An error is that of the kernel: too many files are open.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// It has happened, once more. Whoever waits is woken.
    pub(crate) fn raise(&self) {
        // It fails only when nobody has cleared it 2⁶⁴ times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// How often it has happened since this was last asked.
    pub(crate) fn clear(&self) -> u64 {
        let mut count = [0; 8];
        // Not at all is said as an error.
        rustix::io::read(&self.0, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
