//! A raw packet socket on the radio interface (packet(7)).
//!
//! * Created with protocol 0, and given EtherType and interface in `bind`: otherwise frames of
//!   every interface arrive until then.
//! * Only what the kernel marks as for us, for a group or for everybody is taken. What it marks as
//!   for another host is dropped **even if the destination is our address**: that is how a
//!   VLAN-tagged frame arrives, stripped of its tag, which belongs to somebody else's network.
//! * A deleted interface leaves the descriptor dead; when one of that name comes back, `bind` on
//!   the same descriptor revives it and needs no capability.
//! * `send` succeeding means nothing but that a queue took the frame. After `ENOBUFS` (the queue of
//!   the interface is full) poll still says "writable", so there is no point in waiting: data is
//!   counted and dropped, and control [tried again](crate::transport::outbox). After `EAGAIN` (our
//!   own buffer is full of what the interface has not sent yet) it tells when there is room.
//! * Up to 64 frames per system call both ways. A call that gets fewer than it has room for found
//!   the end of the queue and is not repeated.
//! * Control frames have a socket of their own, told apart by a filter on the type of the message.
//!   Behind the data of a client that floods, heartbeats and answers would come late or, with the
//!   buffer full, not at all, and every neighbour would seem to be dying. It is bound after the one
//!   for data, so that the kernel offers it each frame first: who is last need not share the frame,
//!   which would cost a copy of its head.
//! * `SO_PRIORITY` 256 + user priority is what mac80211 takes as the class to send in; elsewhere a
//!   queueing discipline may look at it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use arrayvec::ArrayVec;
use socket2::{Domain, SockFilter, Socket, Type};
use tracing::trace;

use super::error::{DeviceError, Problem};
use super::{Burst, Device, DeviceCounters, LinkState, Outgoing, Received, Sent, name, sys};
use crate::control::event::{Limit, TooLong};
use crate::control::traffic_class;
use crate::messages::Kind;
use crate::messages::prefix::VERSION;
use crate::transport::socket::{RECV_BUFFER, SEND_BUFFER};

/// Ethernet header and one byte more, so that a frame that is too long is told from one that fits.
const SLACK: usize = 14 + 1;
/// The smallest buffer: the MTU may grow before we hear of it.
const BUFFER_MIN: usize = 2048;
/// Frames asked for in one call when there were few.
const ASK_MIN: usize = 4;
/// In the first byte of the address of a group, or of everybody. The kernel never marks a frame to
/// these as for another host but for a VLAN tag, of a VLAN that this interface is not in.
const GROUP_BIT: u8 = 1;
/// Offset of a message's type in an Ethernet frame.
const TYPE_AT: u32 = 14;

/// An open packet socket.
#[derive(Debug)]
pub struct PacketSocket {
    name: String,
    data: Queue,
    control: Queue,
    ethertype: u16,
    /// Interface the sockets are bound to; `None` while there is none.
    index: Option<u32>,
    buffer_len: usize,
    too_long: Option<TooLong>,
    counters: DeviceCounters,
}

/// Whether another program hears frames of this EtherType on this interface, as a node does. Two
/// nodes on one radio do not hear each other, because a packet socket does not get what another on
/// its interface sends. `false` also where the kernel does not tell.
pub fn is_in_use(index: u32, ethertype: u16) -> bool {
    sockets_on(index, ethertype) > 0
}

/// PacketSocket sockets bound to this EtherType on this interface, in this network namespace.
fn sockets_on(index: u32, ethertype: u16) -> usize {
    let table = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
    table.lines().filter(|line| is_on(line, index, ethertype)).count()
}

/// A line of `/proc/net/packet`: address, references, type, EtherType in hexadecimal, interface,
/// and more.
fn is_on(line: &str, index: u32, ethertype: u16) -> bool {
    let mut fields = line.split_whitespace().skip(3);
    let bound = fields.next().and_then(|field| u16::from_str_radix(field, 16).ok());
    bound == Some(ethertype) && fields.next().and_then(|field| field.parse().ok()) == Some(index)
}

/// A socket for one sort of frames.
#[derive(Debug)]
struct Queue {
    socket: Socket,
    /// Frames to ask for next: preparing room for many costs time that one frame alone would have
    /// to wait.
    ask_for: usize,
    /// The user priority of what was sent last.
    priority: Option<u8>,
}

impl Queue {
    /// Hears control only, or everything else; nothing at all before it is bound.
    fn open(takes_control: bool) -> Result<Self, (&'static str, io::Error)> {
        let at = |operation| move |error| (operation, error);
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), None)
            .map_err(at("open a packet socket"))?;
        sys::set_buffers(socket.as_fd(), RECV_BUFFER, SEND_BUFFER)
            .map_err(at("enlarge the buffers of the packet socket"))?;
        socket
            .attach_filter(&filter(takes_control))
            .map_err(at("give a filter to the packet socket"))?;
        Ok(Self { socket, ask_for: ASK_MIN, priority: None })
    }

    /// What is sent from now on is of this user priority.
    fn set_priority(&mut self, name: &str, priority: u8) {
        if self.priority == Some(priority) {
            return;
        }
        if let Err(cause) = sys::set_priority(self.socket.as_fd(), priority)
            && self.priority.is_none()
        {
            // Above 6 needs CAP_NET_ADMIN. Without it we compete like everybody else.
            tracing::debug!(radio = name, %cause, "sending without a priority");
        }
        self.priority = Some(priority);
    }

    fn send(&mut self, name: &str, priority: u8, batch: &[Outgoing<'_>]) -> io::Result<usize> {
        self.set_priority(name, priority);
        sys::send_packets(self.socket.as_fd(), batch)
    }
}

/// Lets control pass, or everything else: compares the type of a message with those of control
/// (classic BPF, socket(7) `SO_ATTACH_FILTER`). It takes all frames to be of our EtherType.
pub fn filter(takes_control: bool) -> Vec<SockFilter> {
    let code = |parts: u32| u16::try_from(parts).unwrap_or_default();
    let load_byte = code(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS);
    let jump_if_equal = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
    let give = code(libc::BPF_RET | libc::BPF_K);
    let types: Vec<_> = Kind::ALL
        .into_iter()
        .filter(|kind| traffic_class::is_control(*kind))
        .map(|kind| u32::from(VERSION << 4 | kind.code()))
        .collect();
    let [of_control, of_data] = if takes_control { [u32::MAX, 0] } else { [0, u32::MAX] };
    let mut program = vec![SockFilter::new(load_byte, 0, 0, TYPE_AT)];
    for (n, first_byte) in types.iter().enumerate() {
        // Over the comparisons that are left, and the answer for data.
        let over = u8::try_from(types.len() - n).unwrap_or(u8::MAX);
        program.push(SockFilter::new(jump_if_equal, over, 0, *first_byte));
    }
    program.push(SockFilter::new(give, 0, 0, of_data));
    program.push(SockFilter::new(give, 0, 0, of_control));
    program
}

impl PacketSocket {
    /// Opens a socket for frames of `ethertype` on interface `name`, whose state is `link`.
    pub fn open(name: &str, link: &LinkState, ethertype: u16) -> Result<Self, DeviceError> {
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
        let open = |takes_control| {
            Queue::open(takes_control).map_err(|(operation, source)| error(operation)(source))
        };
        let (data, control) = (open(false)?, open(true)?);
        let counters = DeviceCounters::default();
        let mut packet = Self {
            name: name.to_owned(),
            data,
            control,
            ethertype,
            index: None,
            buffer_len: 0,
            too_long: None,
            counters,
        };
        packet.bind(link)?;
        Ok(packet)
    }

    fn bind(&mut self, link: &LinkState) -> Result<(), DeviceError> {
        self.clear_error();
        for queue in [&self.data, &self.control] {
            sys::bind_packet(queue.socket.as_fd(), self.ethertype, link.index).map_err(
                |source| {
                    let problem = match source.raw_os_error() {
                        Some(libc::ENODEV | libc::ENXIO) => Problem::NoSuchInterface,
                        _ => Problem::Io(source),
                    };
                    DeviceError::new(&self.name, "bind the packet socket", problem)
                },
            )?;
        }
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
        let begin = burst.vacant().unwrap_or_default();
        if is_for_us(read.packet_type) {
            self.counters.rx_oversize += 1;
            let most = self.buffer_len - 1;
            self.too_long = Some(TooLong::new(begin, read.len, most, Limit::Radio));
        } else if begin.first().is_some_and(|first| first & GROUP_BIT != 0) {
            self.counters.rx_tagged += 1;
        } else {
            self.counters.rx_foreign += 1;
        }
        burst.skip();
    }

    fn count_refused(&mut self, frame: &Outgoing<'_>, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => self.counters.tx_down += 1,
            Some(libc::ENOBUFS | libc::ENOMEM) => self.counters.tx_full += 1,
            Some(libc::EMSGSIZE) => {
                self.counters.tx_oversize += 1;
                let (bytes, most) = (frame.bytes, self.buffer_len - 1);
                self.too_long = Some(TooLong::new(bytes, bytes.len(), most, Limit::Radio));
            }
            Some(libc::EINVAL) if frame.bytes.len() < SLACK => self.counters.tx_short += 1,
            _ => {
                self.counters.tx_errors += 1;
                trace!(radio = %self.name, %error, "send failed");
            }
        }
    }

    /// Keeps what came back unacknowledged. All else that comes back must be taken off the queue as
    /// well.
    fn take_returned(&self, burst: &mut Burst) -> io::Result<()> {
        let Some(slot) = burst.vacant() else { return Ok(()) };
        let returned = sys::recv_returned(self.data.socket.as_fd(), slot)?;
        if returned.acknowledged == Some(false) && returned.len < self.buffer_len {
            burst.commit(returned.len);
        } else {
            burst.skip();
        }
        Ok(())
    }

    /// Takes the error waiting on the sockets, which otherwise the next call would return instead
    /// of doing its work.
    fn clear_error(&self) {
        for queue in [&self.data, &self.control] {
            let _ = queue.socket.take_error();
        }
    }

    fn queue(&mut self, is_control: bool) -> &mut Queue {
        if is_control { &mut self.control } else { &mut self.data }
    }

    fn recv_from(&mut self, is_control: bool, burst: &mut Burst) -> Received {
        burst.reset(self.buffer_len);
        let mut reads = ArrayVec::new();
        // A call that fails counts too, or an error that stays would keep us here for ever.
        for _ in 0..burst.slots() {
            if burst.is_enough() {
                break;
            }
            let queue = self.queue(is_control);
            let most = queue.ask_for.min(burst.wanted());
            let slots = burst.vacant_slots();
            let result = sys::recv_packets(queue.socket.as_fd(), most, slots, &mut reads);
            for read in &reads {
                self.take(burst, *read);
            }
            self.queue(is_control).ask_for = (2 * burst.len()).clamp(ASK_MIN, sys::BATCH);
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
}

/// The socket for data, to look at its options.
impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.data.socket.as_fd()
    }
}

impl Device for PacketSocket {
    fn name(&self) -> &str {
        &self.name
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.data.socket.as_fd())
    }

    fn control_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.control.socket.as_fd())
    }

    fn recv_control(&mut self, burst: &mut Burst) -> Received {
        self.recv_from(true, burst)
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        self.recv_from(false, burst)
    }

    fn want_unacknowledged(&mut self) {
        if let Err(cause) = sys::want_wifi_status(self.data.socket.as_fd()) {
            tracing::warn!(
                radio = self.name,
                %cause,
                "the kernel does not tell which frames nobody acknowledged; expected Linux 3.3 or \
                 later"
            );
        }
    }

    fn recv_unacknowledged(&mut self, burst: &mut Burst) -> Received {
        burst.reset(self.buffer_len);
        for _ in 0..burst.slots() {
            if burst.is_enough() {
                break;
            }
            match self.take_returned(burst) {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => {
                    return Received::Drained;
                }
                _ => {}
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
            // One call for all that follow in the same class.
            let rest = frames.get(done..).unwrap_or_default().iter();
            let alike = rest.take_while(|frame| frame.priority == first.priority);
            let end = done + alike.take(sys::BATCH).count();
            let batch = frames.get(done..end).unwrap_or_default();
            let is_control = first.priority == traffic_class::CONTROL;
            let Self { name, data, control, .. } = self;
            // What the one for control has no room for waits for the one for data, as that is the
            // one whose room is waited for.
            let sent = match is_control.then(|| control.send(name, first.priority, batch)) {
                Some(Err(error)) if sys::is_would_block(&error) => {
                    data.send(name, first.priority, batch)
                }
                Some(sent) => sent,
                None => data.send(name, first.priority, batch),
            };
            match sent {
                Ok(sent) => {
                    batch
                        .iter()
                        .take(sent)
                        .for_each(|frame| self.counters.count_tx(frame.bytes.len()));
                    done += sent;
                }
                Err(error) if sys::is_would_block(&error) => return Sent::Full(done),
                Err(error) if is_control && error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Sent::Refused(done);
                }
                Err(error) => {
                    self.count_refused(first, &error);
                    done += 1;
                }
            }
        }
        Sent::All
    }

    fn link_changed(&mut self, link: Option<&LinkState>) -> Result<(), DeviceError> {
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

    fn take_too_long(&mut self) -> Option<TooLong> {
        self.too_long.take()
    }

    fn is_shared(&self) -> bool {
        // Two are ours.
        self.index.is_some_and(|index| sockets_on(index, self.ethertype) > 2)
    }

    fn counters(&mut self) -> &DeviceCounters {
        // The kernel starts again from zero with every answer.
        for queue in [&self.data, &self.control] {
            if let Ok(drops) = sys::packet_drops(queue.socket.as_fd()) {
                self.counters.rx_kernel_drops += u64::from(drops);
            }
        }
        &self.counters
    }
}

/// Sent to this interface, to a group or to everybody; not to others, and not by us.
pub(super) fn is_for_us(packet_type: u8) -> bool {
    matches!(packet_type, libc::PACKET_HOST | libc::PACKET_BROADCAST | libc::PACKET_MULTICAST)
}
