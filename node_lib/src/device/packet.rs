//! A raw packet socket on the radio interface (packet(7)).
//!
//! * Created with protocol 0, and given EtherType and interface in `bind`: otherwise frames of every
//!   interface arrive until then.
//! * Only what the kernel marks as for us, for a group or for everybody is taken. What it marks as
//!   for another host is dropped **even if the destination is our address**: that is how a
//!   VLAN-tagged frame arrives, stripped of its tag, which belongs to somebody else's network.
//! * A deleted interface leaves the descriptor dead; when one of that name comes back, `bind` on the
//!   same descriptor revives it and needs no capability.
//! * `send` succeeding means nothing but that a queue took the frame. After `ENOBUFS` poll still
//!   says "writable", so there is no point in waiting: counted and dropped.

use std::io::IoSlice;
use std::task::{Context, Poll};

use socket2::{Domain, Socket, Type};
use tokio::io::unix::AsyncFd;
use tracing::trace;

use super::error::{DeviceError, Problem};
use super::{Burst, Counters, Device, Link, Received, Sent, name, sys};

/// Ethernet header and one byte more, so that a frame that is too long is told from one that fits.
const SLACK: usize = 14 + 1;
/// The smallest buffer: the MTU may grow before we hear of it.
const BUFFER_MIN: usize = 2048;
/// Room for about 1800 full frames, as the kernel counts 2304 bytes for each: 20 ms at 1 Gbit/s.
const RECV_BUFFER: i32 = 4 << 20;
/// Room for about 450 full frames on their way out.
const SEND_BUFFER: i32 = 1 << 20;
/// 256 + user priority (IEEE 802.1D): mac80211 takes it as the class to send in. 4 is "video": ahead
/// of best effort, behind the "voice" class of safety messages; and the normal band elsewhere.
const PRIORITY: i32 = 256 + 4;

/// An open packet socket.
#[derive(Debug)]
pub struct Packet {
    name: String,
    fd: AsyncFd<Socket>,
    ethertype: u16,
    /// Interface the socket is bound to; `None` while there is none.
    index: Option<u32>,
    buffer_len: usize,
    counters: Counters,
}

impl Packet {
    /// Opens a socket for frames of `ethertype` on interface `name`, whose state is `link`. Must run
    /// inside a tokio runtime.
    pub fn open(name: &str, link: &Link, ethertype: u16) -> Result<Self, DeviceError> {
        name::check(name)?;
        let error = |operation| {
            move |source: std::io::Error| {
                let problem = match source.raw_os_error() {
                    Some(libc::EPERM | libc::EACCES) => Problem::MissingCapability("CAP_NET_RAW"),
                    Some(libc::ENODEV | libc::ENXIO) => Problem::NoSuchInterface,
                    _ => Problem::Io(source),
                };
                DeviceError::new(name, operation, problem)
            }
        };
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), None)
            .map_err(error("open a packet socket"))?;
        let fd = sys::register(socket).map_err(error("watch the packet socket"))?;
        sys::set_buffers(sys::borrow(&fd), RECV_BUFFER, SEND_BUFFER)
            .map_err(error("enlarge the buffers of the packet socket"))?;
        if let Err(cause) = sys::set_priority(sys::borrow(&fd), PRIORITY) {
            // Above 6 needs CAP_NET_ADMIN. Without it we compete like everybody else.
            tracing::debug!(radio = name, %cause, "sending without a priority");
        }
        let counters = Counters::default();
        let mut packet =
            Self { name: name.to_owned(), fd, ethertype, index: None, buffer_len: 0, counters };
        packet.bind(link)?;
        Ok(packet)
    }

    fn bind(&mut self, link: &Link) -> Result<(), DeviceError> {
        self.clear_error();
        sys::bind_packet(sys::borrow(&self.fd), self.ethertype, link.index).map_err(|source| {
            let problem = match source.raw_os_error() {
                Some(libc::ENODEV | libc::ENXIO) => Problem::NoSuchInterface,
                _ => Problem::Io(source),
            };
            DeviceError::new(&self.name, "bind the packet socket", problem)
        })?;
        // Binding to an interface that is down leaves an error that the next call would return.
        self.clear_error();
        self.index = Some(link.index);
        self.size_buffer(link.mtu);
        Ok(())
    }

    fn size_buffer(&mut self, mtu: usize) {
        self.buffer_len = mtu.saturating_add(SLACK).max(BUFFER_MIN);
    }

    /// Takes the error waiting on the socket, which otherwise the next call would return instead of
    /// doing its work.
    fn clear_error(&self) {
        let _ = self.fd.get_ref().take_error();
    }
}

impl Device for Packet {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.fd.poll_read_ready(cx).map(drop)
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(self.buffer_len);
        // Frames that are dropped count too, or a stream of them would keep us here for ever.
        for _ in 0..burst.slots() {
            let Some(slot) = burst.vacant() else {
                break;
            };
            let read = sys::read_with(&self.fd, |socket| {
                sys::recv_packet(std::os::fd::AsFd::as_fd(socket), slot)
            });
            match read {
                Ok(read) if !is_for_us(read.packet_type) => self.counters.rx_foreign += 1,
                Ok(read) if read.len >= slot.len() => self.counters.rx_oversize += 1,
                Ok(read) => {
                    self.counters.count_rx(read.len);
                    burst.commit(read.len);
                }
                Err(error) if sys::is_would_block(&error) => return Received::Drained,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // Said once; the next call reads on, or says that nothing is there.
                    Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => self.counters.rx_down += 1,
                    _ => {
                        self.counters.rx_errors += 1;
                        trace!(radio = %self.name, %error, "read failed");
                    }
                },
            }
        }
        Received::More
    }

    fn send(&mut self, parts: &[IoSlice<'_>]) -> Sent {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.index.is_none() {
            self.counters.tx_down += 1;
            return Sent::Dropped;
        }
        let socket = self.fd.get_ref();
        let sent = match parts {
            [whole] => socket.send(whole),
            parts => socket.send_vectored(parts),
        };
        match sent {
            Ok(_) => {
                self.counters.count_tx(len);
                return Sent::Done;
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => self.counters.tx_down += 1,
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => self.counters.tx_full += 1,
                Some(libc::EMSGSIZE) => self.counters.tx_oversize += 1,
                Some(libc::EINVAL) if len < SLACK => self.counters.tx_short += 1,
                _ => {
                    self.counters.tx_errors += 1;
                    trace!(radio = %self.name, %error, "send failed");
                }
            },
        }
        Sent::Dropped
    }

    fn link_changed(&mut self, link: Option<&Link>) -> Result<(), DeviceError> {
        match link {
            None => self.index = None,
            Some(link) if self.index == Some(link.index) => {
                self.size_buffer(link.mtu);
                if link.up {
                    self.clear_error();
                }
            }
            Some(link) => {
                self.bind(link)?;
                self.counters.reopened += 1;
            }
        }
        Ok(())
    }

    fn counters(&mut self) -> &Counters {
        // The kernel starts again from zero with every answer.
        if let Ok(drops) = sys::packet_drops(sys::borrow(&self.fd)) {
            self.counters.rx_kernel_drops += u64::from(drops);
        }
        &self.counters
    }
}

/// Sent to this interface, to a group or to everybody; not to others, and not by us.
fn is_for_us(packet_type: u8) -> bool {
    matches!(packet_type, libc::PACKET_HOST | libc::PACKET_BROADCAST | libc::PACKET_MULTICAST)
}
