//! [`RadioDevice`]: the packet socket or the UDP link, whichever the user bound to.

use std::os::fd::BorrowedFd;

use node_lib::control::event::TooLong;
use node_lib::device::packet::PacketSocket;
use node_lib::device::udp::Udp;
use node_lib::device::{
    Burst, Device, DeviceCounters, DeviceError, LinkState, Outgoing, Received, Sent,
};

#[derive(Debug)]
pub(crate) enum RadioDevice {
    Packet(PacketSocket),
    Udp(Udp),
}

/// Calls the same method of whichever it is.
macro_rules! either {
    ($self:ident, $device:ident => $call:expr) => {
        match $self {
            RadioDevice::Packet($device) => $call,
            RadioDevice::Udp($device) => $call,
        }
    };
}

impl Device for RadioDevice {
    fn name(&self) -> &str {
        either!(self, device => device.name())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        either!(self, device => device.descriptor())
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        either!(self, device => device.recv(burst))
    }

    fn control_descriptor(&self) -> Option<BorrowedFd<'_>> {
        either!(self, device => device.control_descriptor())
    }

    fn recv_control(&mut self, burst: &mut Burst) -> Received {
        either!(self, device => device.recv_control(burst))
    }

    fn want_unacknowledged(&mut self) {
        either!(self, device => device.want_unacknowledged());
    }

    fn recv_unacknowledged(&mut self, burst: &mut Burst) -> Received {
        either!(self, device => device.recv_unacknowledged(burst))
    }

    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        either!(self, device => device.send(frames))
    }

    fn link_changed(&mut self, link: Option<&LinkState>) -> Result<(), DeviceError> {
        either!(self, device => device.link_changed(link))
    }

    fn reopen(&mut self) -> Result<(), DeviceError> {
        either!(self, device => device.reopen())
    }

    fn take_too_long(&mut self) -> Option<TooLong> {
        either!(self, device => device.take_too_long())
    }

    fn is_shared(&self) -> bool {
        either!(self, device => device.is_shared())
    }

    fn counters(&mut self) -> &DeviceCounters {
        either!(self, device => device.counters())
    }
}
