//! The TAP: an Ethernet interface whose cable ends in this process.
//!
//! Linux, as measured: a read into a buffer that is too short loses the rest of the frame silently;
//! a write to an interface that is down says `EIO`; on one that was deleted everything says
//! `EBADFD`; a write of any length is accepted, so the length is checked here.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tracing::trace;
use tun_tap::{Iface, Mode};

use super::error::{DeviceError, Problem};
use super::{Burst, Counters, Device, Link, Outgoing, Received, Sent, name, sys};

/// Ethernet header, one VLAN tag, and one byte more: a frame that fills the buffer is too long.
const SLACK: usize = 14 + 4 + 1;
/// The smallest buffer: the MTU may grow before we hear of it.
const BUFFER_MIN: usize = 2048;
/// Shorter frames are refused by the kernel.
const HEADER_LEN: usize = 14;

/// An open TAP, or one that was deleted and waits for [`Device::reopen`].
#[derive(Debug)]
pub struct Tap {
    name: String,
    file: Option<AsyncFd<File>>,
    buffer_len: usize,
    counters: Counters,
}

impl Tap {
    /// Creates the TAP `name`, or attaches to a persistent one. Must run inside a tokio runtime.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        name::check(name)?;
        let file = Some(create(name)?);
        let counters = Counters::default();
        Ok(Self { name: name.to_owned(), file, buffer_len: BUFFER_MIN, counters })
    }

    /// Sizes the read buffer for frames with payloads of up to `mtu` bytes.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.buffer_len = mtu.saturating_add(SLACK).max(BUFFER_MIN);
    }

    fn lose(&mut self) {
        // Dropping it also takes it out of the loop: a deleted TAP is readable for ever.
        self.file = None;
    }
}

fn create(name: &str) -> Result<AsyncFd<File>, DeviceError> {
    let error = |problem| DeviceError::new(name, "create the TAP", problem);
    let iface = match Iface::without_packet_info(name, Mode::Tap) {
        Ok(iface) => iface,
        Err(source) => return Err(error(explain(source))),
    };
    let file = sys::tap_file(iface);
    sys::clear_tap_offload(file.as_fd())
        .and_then(|()| sys::set_nonblocking(file.as_fd()))
        .and_then(|()| sys::register(file, Interest::READABLE))
        .map_err(|source| error(source.into()))
}

/// What an error of opening the device node, or of attaching to the interface, means.
fn explain(error: io::Error) -> Problem {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Problem::NoTunDevice,
        Some(libc::EACCES) => Problem::TunNotOpenable,
        Some(libc::EPERM) => Problem::MissingCapability("CAP_NET_ADMIN"),
        Some(libc::EBUSY) => Problem::Busy,
        Some(libc::EINVAL) => Problem::NotTap,
        _ => Problem::Io(error),
    }
}

impl Device for Tap {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.file {
            Some(file) => file.poll_read_ready(cx).map(drop),
            None => Poll::Pending,
        }
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(self.buffer_len);
        let Some(file) = &self.file else {
            return Received::Drained;
        };
        // Frames that are dropped count too, or a stream of them would keep us here for ever.
        for _ in 0..burst.slots() {
            let Some(slot) = burst.vacant() else {
                break;
            };
            match sys::io_with(file, Interest::READABLE, |mut file| file.read(slot)) {
                Ok(len) if len >= slot.len() => self.counters.rx_oversize += 1,
                Ok(len) => {
                    self.counters.count_rx(len);
                    burst.commit(len);
                    if burst.is_enough() {
                        break;
                    }
                }
                Err(error) if sys::is_would_block(&error) => return Received::Drained,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EBADFD) => {
                        self.lose();
                        return Received::Gone;
                    }
                    _ => {
                        self.counters.rx_errors += 1;
                        trace!(tap = %self.name, %error, "read failed");
                        return Received::Drained;
                    }
                },
            }
        }
        Received::More
    }

    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        for (done, Outgoing { bytes, .. }) in frames.iter().enumerate() {
            let Some(file) = &self.file else {
                self.counters.tx_down += 1;
                continue;
            };
            if bytes.len() < HEADER_LEN {
                self.counters.tx_short += 1;
                continue;
            }
            if bytes.len() >= self.buffer_len {
                self.counters.tx_oversize += 1;
                continue;
            }
            let written = file.get_ref().write(bytes);
            match written {
                // A TAP takes all of a frame or nothing.
                Ok(_) => self.counters.count_tx(bytes.len()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EIO) => self.counters.tx_down += 1,
                    // Nothing tells when the host's stack has room again.
                    Some(libc::EAGAIN | libc::ENOBUFS) => self.counters.tx_full += 1,
                    Some(libc::EBADFD) => {
                        self.counters.tx_down += (frames.len() - done) as u64;
                        self.lose();
                        return Sent::Gone;
                    }
                    _ => {
                        self.counters.tx_errors += 1;
                        trace!(tap = %self.name, %error, "write failed");
                    }
                },
            }
        }
        Sent::All
    }

    fn link_changed(&mut self, link: Option<&Link>) -> Result<(), DeviceError> {
        // A deletion is noticed by reading: by now the name may be that of our next TAP.
        if let Some(link) = link {
            self.set_mtu(link.mtu);
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), DeviceError> {
        self.file = None;
        self.file = Some(create(&self.name)?);
        self.counters.reopened += 1;
        Ok(())
    }

    fn counters(&mut self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_kernel_is_explained() {
        let explained = |code| explain(io::Error::from_raw_os_error(code)).to_string();
        assert!(explained(libc::ENOENT).contains("/dev/net/tun does not exist"));
        assert!(explained(libc::EACCES).contains("may not be opened"));
        assert!(explained(libc::EPERM).contains("CAP_NET_ADMIN"));
        assert!(explained(libc::EBUSY).contains("another process"));
        assert!(explained(libc::EINVAL).contains("not a TAP"));
    }
}
