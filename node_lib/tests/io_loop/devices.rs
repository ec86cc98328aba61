//! Radios, TAPs and interfaces that do one thing a real one does at a bad moment.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::task::{Context, Poll};
use std::time::Instant;

use nix::sys::socket::{MsgFlags, recvmsg, setsockopt, sockopt};
use node_lib::device::memory::Memory;
use node_lib::device::signal::{Reports, Sample};
use node_lib::device::{
    Burst, Device, DeviceCounters, DeviceError, LinkChange, Links, Outgoing, Problem, Received,
    Sent,
};
use node_lib::start::clients::Remembered;

/// Interfaces that never change, on a radio that tells how strong others come in.
pub(crate) struct MeasuredLinks(pub(crate) Reports);

impl Links for MeasuredLinks {
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<LinkChange> {
        Poll::Pending
    }
    fn configure_tap(&mut self, _: usize) {}
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Sample> {
        self.0.poll(cx)
    }
}

/// A radio with more frames than anybody can read.
#[derive(Default)]
pub(crate) struct Flood {
    /// All are like this; empty: 60 bytes of 1.
    pub(crate) frame: Vec<u8>,
    pub(crate) counters: DeviceCounters,
}

impl Device for Flood {
    fn name(&self) -> &str {
        "flood"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        let like = if self.frame.is_empty() { &[1; 60][..] } else { &self.frame };
        burst.reset(like.len());
        while !burst.is_enough() {
            burst.vacant().unwrap()[..like.len()].copy_from_slice(like);
            burst.commit(like.len());
        }
        Received::More
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// A TAP in which so many frames wait, 45 of them in each super-frame.
#[derive(Default)]
pub(crate) struct SuperFrames {
    pub(crate) left: usize,
    pub(crate) counters: DeviceCounters,
}

impl Device for SuperFrames {
    fn name(&self) -> &str {
        "super-frames"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(60);
        while !burst.is_enough() {
            let Some(left) = self.left.checked_sub(1) else { return Received::Drained };
            self.left = left;
            burst.commit(60);
            self.counters.rx_super_frames +=
                u64::from(self.counters.rx_segments.is_multiple_of(45));
            self.counters.rx_segments += 1;
            self.counters.rx_frames += 1;
        }
        Received::More
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// A radio with as much data, and control apart from it.
pub(crate) struct Apart {
    pub(crate) control: Memory,
    pub(crate) data: Flood,
}

impl Device for Apart {
    fn name(&self) -> &str {
        "apart"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn control_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.control.descriptor()
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        self.data.recv(burst)
    }
    fn recv_control(&mut self, burst: &mut Burst) -> Received {
        self.control.recv(burst)
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        self.data.counters()
    }
}

/// A radio that hears nothing, and tells what it gave up as a packet socket does: on the error
/// queue of its descriptor, until that is read. It is a UDP socket, whose datagrams come back from
/// where nobody listens.
pub(crate) struct Telling {
    pub(crate) socket: UdpSocket,
    pub(crate) is_wanted: bool,
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) counters: DeviceCounters,
}

impl Telling {
    pub(crate) fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, is_wanted: false, sent: Vec::new(), counters: DeviceCounters::default() }
    }

    pub(crate) fn give_up(&self, frame: &[u8]) {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // The error of the datagram before may be told in place of sending this one.
        while self.socket.send_to(frame, nobody).is_err() {}
    }
}

impl Device for Telling {
    fn name(&self) -> &str {
        "telling"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(0);
        // As a packet socket does: the error that waits is taken by whoever reads.
        let _ = self.socket.recv(&mut [0]);
        Received::Drained
    }
    fn want_unacknowledged(&mut self) {
        self.is_wanted = true;
    }
    fn recv_unacknowledged(&mut self, burst: &mut Burst) -> Received {
        burst.reset(1500);
        while !burst.is_enough() {
            let mut parts = [IoSliceMut::new(burst.vacant().unwrap())];
            let fd = self.socket.as_raw_fd();
            match recvmsg::<()>(fd, &mut parts, None, MsgFlags::MSG_ERRQUEUE) {
                Ok(message) => {
                    let len = message.bytes;
                    burst.commit(len);
                }
                Err(_) => return Received::Drained,
            }
        }
        Received::More
    }
    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        self.sent.extend(frames.iter().map(|frame| frame.bytes.to_vec()));
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// A radio that hears, and has no room to send.
pub(crate) struct Stalled {
    pub(crate) inner: Memory,
    /// `None`: for good.
    pub(crate) full_until: Option<Instant>,
}

impl Device for Stalled {
    fn name(&self) -> &str {
        "stalled"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        self.inner.recv(burst)
    }
    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        let is_free = self.full_until.is_some_and(|at| Instant::now() >= at);
        if is_free { self.inner.send(frames) } else { Sent::Full(0) }
    }
    fn counters(&mut self) -> &DeviceCounters {
        self.inner.counters()
    }
}

/// A TAP that is dead at first, and refuses to be revived a few times.
#[derive(Default)]
pub(crate) struct Mortal {
    pub(crate) refusals: u32,
    pub(crate) attempts: u32,
    pub(crate) alive: bool,
    pub(crate) counters: DeviceCounters,
}

impl Device for Mortal {
    fn name(&self) -> &str {
        "mortal"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(64);
        if self.alive || self.attempts > 0 { Received::Drained } else { Received::Gone }
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn reopen(&mut self) -> Result<(), DeviceError> {
        self.attempts += 1;
        self.alive = self.attempts > self.refusals;
        if self.alive {
            return Ok(());
        }
        Err(DeviceError {
            interface: "mortal".into(),
            operation: "create the TAP",
            source: Problem::Busy,
        })
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// Reports these changes, one per look, and writes down what the TAP is told.
pub(crate) struct ScriptedLinks {
    pub(crate) changes: VecDeque<LinkChange>,
    pub(crate) clients: VecDeque<Vec<Remembered>>,
    pub(crate) tap_mtus: Vec<usize>,
}

impl ScriptedLinks {
    pub(crate) fn new(changes: impl IntoIterator<Item = LinkChange>) -> Self {
        let changes = changes.into_iter().collect();
        Self { changes, clients: VecDeque::new(), tap_mtus: Vec::new() }
    }
}

impl Links for ScriptedLinks {
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<LinkChange> {
        match self.changes.pop_front() {
            Some(change) => Poll::Ready(change),
            None => Poll::Pending,
        }
    }
    fn poll_clients(&mut self, _: &mut Context<'_>) -> Poll<Vec<Remembered>> {
        self.clients.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
    fn configure_tap(&mut self, mtu: usize) {
        self.tap_mtus.push(mtu);
    }
}
