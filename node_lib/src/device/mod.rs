//! Where frames come from and go to: TAP, packet socket, UDP multicast and an in-memory pair.
//!
//! The loop in [`crate::runtime`] sees only [`Device`], so it cannot tell them apart. The shape is
//! *batch in, batch out*. [`Device::recv`] fills a [`Burst`] the loop owns, with as few system
//! calls as the device can manage. [`Device::send`] is given all that there is to send, so that a
//! device can gather it into one system call (`sendmmsg`) or one super-frame (TAP offload).
//!
//! | file | device | needs |
//! |---|---|---|
//! | [`tap`] | the interface hosts and bridges see | `CAP_NET_ADMIN`, `/dev/net/tun` |
//! | [`packet`] | a raw socket on the radio | `CAP_NET_RAW` |
//! | [`udp`] | frames in multicast datagrams, to try things without a radio | nothing |
//! | [`memory`] | two ends in one process, for tests and benches | nothing |
//! | [`netlink`] | not a device: reads, watches and configures interfaces | `CAP_NET_ADMIN` to configure |
//! | [`ethertypes`] | not a device: nodes set to another EtherType | `CAP_NET_RAW` |
//! | [`signal`] | not a device: how strong others come in | see there |
//!
//! `unsafe` is confined to `sys.rs`. Nothing here is fatal once a device is open: what the kernel
//! refuses is counted in [`DeviceCounters`] and dropped.

mod burst;
mod counters;
mod error;
pub mod ethertypes;
mod event_fd;
mod link;
pub mod memory;
pub mod name;
pub mod netlink;
mod offload;
pub mod packet;
pub mod signal;
mod sys;
pub mod tap;
mod tap_owner;
pub mod udp;

use std::os::fd::BorrowedFd;

use crate::transport::Sink;
pub use crate::transport::{Outgoing, Sent};
pub use burst::{Burst, HEADROOM};
pub use counters::DeviceCounters;
pub use error::{DeviceError, Problem};
pub(crate) use event_fd::EventFd;
pub use link::{BridgePort, LinkChange, LinkState, Links, Side, StaticLinks};
pub(crate) use sys::{boottime, set_alarm, sleep_precisely};
pub use sys::{keep_little_memory, random};
pub use tap_owner::TapOwner;

use crate::control::event::TooLong;

/// What [`Device::recv`] left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing more is waiting: [`Device::descriptor`] will tell when that changes.
    Drained,
    /// The burst is full and there may be more.
    More,
    /// The interface behind the descriptor no longer exists; see [`Device::reopen`].
    Gone,
}

/// Something that takes and gives whole Ethernet frames, without ever blocking.
pub trait Device {
    /// The interface, for logs.
    fn name(&self) -> &str;

    /// What to wait on with epoll(7): readable, or in error, as long as [`Device::recv`] is worth
    /// calling, and writable when a device that was full is worth another try. Early is harmless.
    /// `None` while there is nothing to wait for. It changes with [`Device::reopen`] and at no
    /// other time.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// The same for [`Device::recv_control`]. `None` where that has nothing to tell.
    fn control_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Like [`Device::recv`], for control frames where a device keeps them apart: they overtake the
    /// data that waits, and a flood of data takes no room of theirs. Elsewhere they come with the
    /// rest.
    fn recv_control(&mut self, burst: &mut Burst) -> Received {
        burst.reset(0);
        Received::Drained
    }

    /// Moves waiting frames into `burst` until it is full or none is left. Asks the kernel even
    /// when no readiness was signalled, so a late process sees what is queued before it acts on a
    /// timer.
    fn recv(&mut self, burst: &mut Burst) -> Received;

    /// From now on [`Device::recv_unacknowledged`] is asked, where the device can tell.
    fn want_unacknowledged(&mut self) {}

    /// Moves unicast frames of ours that the radio gave up, because nobody acknowledged them, into
    /// `burst`, as they were sent, until it is full or none is left. For devices that tell; they
    /// say so by an error on [`Device::descriptor`], which lasts until all of it is read.
    fn recv_unacknowledged(&mut self, burst: &mut Burst) -> Received {
        burst.reset(0);
        Received::Drained
    }

    /// Sends frames in this order, each as exactly one. After [`Sent::Full`],
    /// [`Device::descriptor`] will tell when there is room; after [`Sent::Gone`], see
    /// [`Device::reopen`].
    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent;

    /// The interface changed, appeared (again) or, with `None`, disappeared.
    fn link_changed(&mut self, link: Option<&LinkState>) -> Result<(), DeviceError> {
        let _ = link;
        Ok(())
    }

    /// Tries to create the interface anew after it was found to be gone.
    fn reopen(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// The last frame that was dropped because of its length, if that is news.
    fn take_too_long(&mut self) -> Option<TooLong> {
        None
    }

    /// Another program of this host uses the interface as we do, so that neither hears the other.
    fn is_shared(&self) -> bool {
        false
    }

    /// What was counted since the start, including what the kernel counted for us.
    fn counters(&mut self) -> &DeviceCounters;
}

impl<D: Device> Sink for D {
    fn take(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        self.send(frames)
    }
}
