//! UDP as fast as it can be sent, and how much of it arrives.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Socket, Type};

use crate::arena::netns::Netns;
use crate::arena::sys::{BATCH, discard_batch, send_batch};

/// What was sent and what arrived within the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FloodReport {
    /// Datagrams the stack took, per second.
    pub offered_per_s: f64,
    /// Datagrams a socket at the other end got, per second.
    pub delivered_per_s: f64,
    /// All it got, those before the counting began as well.
    pub delivered: u64,
}

/// Before counting begins: queues must be full.
const SETTLE: Duration = Duration::from_millis(200);
/// How often a thread that has nothing to do looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What the receiving socket holds, so that its own pauses lose nothing.
const RECV_BUFFER: usize = 8 << 20;

/// Sends datagrams with `payload` bytes from `from` to the address `to` of `at`, many with each
/// system call, and counts for `duration`.
pub fn flood(
    from: &Netns,
    at: &Netns,
    to: IpAddr,
    payload: usize,
    duration: Duration,
) -> Result<FloodReport> {
    let receiver = at.run(|| open_receiver(to))?;
    let port = receiver.local_addr()?.as_socket().context("the port of a UDP socket")?.port();
    let sender = from.run(|| open_sender(SocketAddr::new(to, port)))?;
    let payload = vec![0x5a; payload];
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let mut report = std::thread::scope(|scope| {
        scope.spawn(|| count(&received, &is_over, || discard_batch(receiver.as_fd())));
        scope.spawn(|| count(&sent, &is_over, || send_batch(sender.as_fd(), &payload)));
        std::thread::sleep(SETTLE);
        let read =
            || (Instant::now(), sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
        let (start, sent_before, received_before) = read();
        std::thread::sleep(duration);
        let (end, sent_after, received_after) = read();
        is_over.store(true, Ordering::Relaxed);
        let per_s = |before: u64, after: u64| (after - before) as f64 / (end - start).as_secs_f64();
        FloodReport {
            offered_per_s: per_s(sent_before, sent_after),
            delivered_per_s: per_s(received_before, received_after),
            delivered: 0,
        }
    });
    report.delivered = received.into_inner();
    ensure!(report.delivered_per_s > 0.0, "nothing of a UDP flood arrived at {to}: {report:?}");
    Ok(report)
}

fn open_receiver(address: IpAddr) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address((address, 0).into()), Type::DGRAM, None)?;
    if setsockopt(&socket, sockopt::RcvBufForce, &RECV_BUFFER).is_err() {
        socket.set_recv_buffer_size(RECV_BUFFER)?;
    }
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    Ok(socket)
}

fn open_sender(to: SocketAddr) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None)?;
    socket.set_write_timeout(Some(LOOK_EVERY))?;
    socket.connect(&to.into())?;
    Ok(socket)
}

/// Adds up what `work` has done until it is over. What the stack refuses is not counted.
fn count(total: &AtomicU64, is_over: &AtomicBool, work: impl Fn() -> io::Result<usize>) {
    while !is_over.load(Ordering::Relaxed) {
        let done = work().unwrap_or(0);
        debug_assert!(done <= BATCH, "{done} of {BATCH} datagrams");
        total.fetch_add(done as u64, Ordering::Relaxed);
    }
}
