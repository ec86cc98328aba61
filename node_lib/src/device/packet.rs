//! A raw packet socket on the radio interface (packet(7)).
//!
//! * Created with protocol 0, and given EtherType and interface in `bind`: otherwise frames of every
//!   interface arrive until then.
//! * Only what the kernel marks as for us, for a group or for everybody is taken. What it marks as
//!   for another host is dropped **even if the destination is our address**: that is how a
//!   VLAN-tagged frame arrives, stripped of its tag, which belongs to somebody else's network.
//! * A deleted interface leaves the descriptor dead; when one of that name comes back, `bind` on the
//!   same descriptor revives it and needs no capability.
//! * `send` succeeding means nothing but that a queue took the frame. After `ENOBUFS` (the queue of the interface
//!   is full) poll still says "writable", so there is no point in waiting: counted and dropped. After
//!   `EAGAIN` (our own buffer is full of what the interface has not sent yet) it tells when there is room.
//! * Up to 64 frames per system call both ways. A call that gets fewer than it has room for found the end
//!   of the queue and is not repeated.
//! * `SO_PRIORITY` 256 + user priority is what mac80211 takes as the class to send in; elsewhere a queueing
//!   discipline may look at it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use arrayvec::ArrayVec;
use socket2::{Domain, Socket, Type};
use tracing::trace;

use super::error::{DeviceError, Problem};
use super::{Burst, Counters, Device, Link, Outgoing, Received, Sent, name, sys};

/// Ethernet header and one byte more, so that a frame that is too long is told from one that fits.
const SLACK: usize = 14 + 1;
/// The smallest buffer: the MTU may grow before we hear of it.
const BUFFER_MIN: usize = 2048;
/// Frames asked for in one call when there were few.
const ASK_MIN: usize = 4;
/// Room for about 1800 full frames, as the kernel counts 2304 bytes for each: 20 ms at 1 Gbit/s.
const RECV_BUFFER: i32 = 4 << 20;
/// Room for about 450 full frames on their way out.
const SEND_BUFFER: i32 = 1 << 20;

/// An open packet socket.
#[derive(Debug)]
pub struct Packet {
    name: String,
    socket: Socket,
    ethertype: u16,
    /// Interface the socket is bound to; `None` while there is none.
    index: Option<u32>,
    buffer_len: usize,
    /// Frames to ask for next: preparing room for many costs time that one frame alone would have to wait.
    ask_for: usize,
    /// The user priority of what was sent last.
    priority: Option<u8>,
    counters: Counters,
}

impl Packet {
    /// Opens a socket for frames of `ethertype` on interface `name`, whose state is `link`.
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
        sys::set_buffers(socket.as_fd(), RECV_BUFFER, SEND_BUFFER)
            .map_err(error("enlarge the buffers of the packet socket"))?;
        let counters = Counters::default();
        let mut packet = Self {
            name: name.to_owned(),
            socket,
            ethertype,
            index: None,
            buffer_len: 0,
            ask_for: ASK_MIN,
            priority: None,
            counters,
        };
        packet.bind(link)?;
        Ok(packet)
    }

    fn bind(&mut self, link: &Link) -> Result<(), DeviceError> {
        self.clear_error();
        sys::bind_packet(self.socket.as_fd(), self.ethertype, link.index).map_err(|source| {
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

    /// Keeps, or leaves out and counts, the frame in the burst's next slot.
    fn take(&mut self, burst: &mut Burst, read: sys::PacketRead) {
        if is_for_us(read.packet_type) && read.len < self.buffer_len {
            self.counters.count_rx(read.len);
            return burst.commit(read.len);
        }
        if is_for_us(read.packet_type) {
            self.counters.rx_oversize += 1;
        } else {
            self.counters.rx_foreign += 1;
        }
        burst.skip();
    }

    fn count_refused(&mut self, frame: &Outgoing<'_>, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => self.counters.tx_down += 1,
            Some(libc::ENOBUFS | libc::ENOMEM) => self.counters.tx_full += 1,
            Some(libc::EMSGSIZE) => self.counters.tx_oversize += 1,
            Some(libc::EINVAL) if frame.bytes.len() < SLACK => self.counters.tx_short += 1,
            _ => {
                self.counters.tx_errors += 1;
                trace!(radio = %self.name, %error, "send failed");
            }
        }
    }

    /// What is sent from now on is of this user priority.
    fn set_priority(&mut self, priority: u8) {
        if self.priority == Some(priority) {
            return;
        }
        if let Err(cause) = sys::set_priority(self.socket.as_fd(), priority)
            && self.priority.is_none()
        {
            // Above 6 needs CAP_NET_ADMIN. Without it we compete like everybody else.
            tracing::debug!(radio = %self.name, %cause, "sending without a priority");
        }
        self.priority = Some(priority);
    }

    /// Takes the error waiting on the socket, which otherwise the next call would return instead of
    /// doing its work.
    fn clear_error(&self) {
        let _ = self.socket.take_error();
    }
}

/// The socket, for options and filters of one's own.
impl AsFd for Packet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for Packet {
    fn name(&self) -> &str {
        &self.name
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(self.buffer_len);
        let mut reads = ArrayVec::new();
        // A call that fails counts too, or an error that stays would keep us here for ever.
        for _ in 0..burst.slots() {
            if burst.is_enough() {
                break;
            }
            let most = self.ask_for.min(burst.wanted());
            let slots = burst.vacant_slots();
            let result = sys::recv_packets(self.socket.as_fd(), most, slots, &mut reads);
            for read in &reads {
                self.take(burst, *read);
            }
            self.ask_for = (2 * burst.len()).clamp(ASK_MIN, sys::BATCH);
            match result {
                // Fewer than there is room for: the queue was empty, and need not be asked again.
                Ok(asked) if reads.len() < asked => return Received::Drained,
                Ok(_) => {}
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

    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        if self.index.is_none() {
            self.counters.tx_down += frames.len() as u64;
            return Sent::All;
        }
        let mut done = 0;
        while let Some(first) = frames.get(done) {
            self.set_priority(first.priority);
            // One call for all that follow in the same class.
            let rest = frames.get(done..).unwrap_or_default().iter();
            let alike = rest.take_while(|frame| frame.priority == first.priority);
            let end = done + alike.take(sys::BATCH).count();
            let batch = frames.get(done..end).unwrap_or_default();
            match sys::send_packets(self.socket.as_fd(), batch) {
                Ok(sent) => {
                    batch
                        .iter()
                        .take(sent)
                        .for_each(|frame| self.counters.count_tx(frame.bytes.len()));
                    done += sent;
                }
                Err(error) if sys::is_would_block(&error) => return Sent::Full(done),
                Err(error) => {
                    self.count_refused(first, &error);
                    done += 1;
                }
            }
        }
        Sent::All
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
        if let Ok(drops) = sys::packet_drops(self.socket.as_fd()) {
            self.counters.rx_kernel_drops += u64::from(drops);
        }
        &self.counters
    }
}

/// Sent to this interface, to a group or to everybody; not to others, and not by us.
fn is_for_us(packet_type: u8) -> bool {
    matches!(packet_type, libc::PACKET_HOST | libc::PACKET_BROADCAST | libc::PACKET_MULTICAST)
}
