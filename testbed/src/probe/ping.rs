//! ICMP echo at a steady rate.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};

use super::tally::{StreamReport, StreamTally};
use crate::arena::netns::Netns;

/// The outcome of a ping: arrivals are replies, the delay is the round trip.
pub type PingReport = StreamReport;

/// A ping under way.
#[derive(Debug)]
pub struct PingStream {
    stop: Arc<AtomicBool>,
    replies: Arc<AtomicU64>,
    thread: JoinHandle<PingReport>,
}

/// How long after the last request a reply still counts.
const GRACE: Duration = Duration::from_millis(500);
/// Type, code, checksum, identifier, sequence.
const HEADER_LEN: usize = 8;
/// Payload as of `ping`.
const PAYLOAD_LEN: usize = 56;

impl PingStream {
    /// Starts asking `to` every `interval` out of `ns`, until [`PingStream::stop`].
    pub fn start(ns: &Netns, to: IpAddr, interval: Duration) -> Result<Self> {
        Self::start_with_limit(ns, to, interval, PAYLOAD_LEN, None)
    }

    fn start_with_limit(
        ns: &Netns,
        to: IpAddr,
        interval: Duration,
        payload_len: usize,
        limit: Option<u32>,
    ) -> Result<Self> {
        let socket = ns.run(|| Ok(open(to)?))?;
        let stop = Arc::new(AtomicBool::new(false));
        let replies = Arc::new(AtomicU64::new(0));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&replies));
        let thread = std::thread::spawn(move || {
            run(&socket, to, (interval, payload_len), limit, &stopped, &counted)
        });
        Ok(Self { stop, replies, thread })
    }

    /// Replies so far.
    pub fn received(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }

    /// Stops asking, waits a moment for the last replies, and reports.
    pub fn stop(self) -> Result<PingReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the ping died"))
    }

    /// Asks `count` times and reports.
    pub fn count(ns: &Netns, to: IpAddr, count: u32, interval: Duration) -> Result<PingReport> {
        Self::count_long(ns, to, count, interval, PAYLOAD_LEN)
    }

    /// As [`PingStream::count`], with this many bytes in each request, at least 4 (`ping -s`).
    pub fn count_long(
        ns: &Netns,
        to: IpAddr,
        count: u32,
        interval: Duration,
        payload_len: usize,
    ) -> Result<PingReport> {
        let ping = Self::start_with_limit(ns, to, interval, payload_len, Some(count))?;
        ping.thread.join().map_err(|_| anyhow!("the ping died"))
    }
}

fn open(to: IpAddr) -> io::Result<Socket> {
    let (domain, protocol) = match to {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    socket.connect(&SocketAddr::new(to, 0).into())?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn run(
    socket: &Socket,
    to: IpAddr,
    (interval, payload_len): (Duration, usize),
    limit: Option<u32>,
    stop: &AtomicBool,
    replies: &AtomicU64,
) -> PingReport {
    static NEXT_ID: AtomicU16 = AtomicU16::new(1);
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let mut tally = StreamTally::default();
    let mut next_send = Instant::now();
    let (mut sent, mut ends) = (0, None);
    loop {
        let now = Instant::now();
        if ends.is_none() && (stop.load(Ordering::Relaxed) || limit == Some(sent)) {
            ends = Some(now + GRACE);
        }
        if ends.is_some_and(|at| now >= at || tally.is_complete()) {
            return tally.report();
        }
        if ends.is_none() && now >= next_send {
            let request = request(to.is_ipv6(), id, tally.send(now), payload_len);
            // What the stack refuses to send is a request without reply, like any other.
            let _ = socket.send(&request);
            sent += 1;
            next_send += interval;
        }
        let wake = ends.unwrap_or(next_send).saturating_duration_since(Instant::now());
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(wake)), None);
        let mut buf = [0; 2048];
        // An error is an ICMP complaint about an earlier request; the next read gets on.
        while let Ok(n) = (&*socket).read(&mut buf) {
            let reply = buf.get(..n).unwrap_or_default();
            if let Some(number) = parse_reply(to.is_ipv6(), id, reply) {
                tally.arrive(Instant::now(), number);
                replies.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Identifier and low half of the number in the header, the whole number first in the payload.
fn request(is_v6: bool, id: u16, number: u32, payload_len: usize) -> Vec<u8> {
    let kind = if is_v6 { ECHO_REQUEST_V6 } else { ECHO_REQUEST_V4 };
    let [_, _, s0, s1] = number.to_be_bytes();
    let [i0, i1] = id.to_be_bytes();
    let mut message = vec![kind, 0, 0, 0, i0, i1, s0, s1];
    message.extend(number.to_be_bytes());
    message.resize(HEADER_LEN + payload_len, 0xa5);
    // The kernel fills in the checksum of ICMPv6, which covers the addresses.
    if !is_v6 {
        let sum = checksum(&message).to_be_bytes();
        if let Some(field) = message.get_mut(2..4) {
            field.copy_from_slice(&sum);
        }
    }
    message
}

fn parse_reply(is_v6: bool, id: u16, packet: &[u8]) -> Option<u32> {
    // A raw IPv4 socket shows the IP header, a raw IPv6 socket does not.
    let skip = if is_v6 { 0 } else { usize::from(packet.first()? & 0x0f) * 4 };
    let kind = if is_v6 { ECHO_REPLY_V6 } else { ECHO_REPLY_V4 };
    match packet.get(skip..)? {
        [have, 0, _, _, i0, i1, _, _, n0, n1, n2, n3, ..]
            if *have == kind && id.to_be_bytes() == [*i0, *i1] =>
        {
            Some(u32::from_be_bytes([*n0, *n1, *n2, *n3]))
        }
        _ => None,
    }
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_recognised_by_its_identifier() {
        let mut reply = request(true, 7, 70_000, PAYLOAD_LEN);
        reply[0] = ECHO_REPLY_V6;
        assert_eq!(parse_reply(true, 7, &reply), Some(70_000));
        assert_eq!(parse_reply(true, 8, &reply), None);
        assert_eq!(parse_reply(true, 7, &reply[..11]), None);
    }

    #[test]
    fn a_message_with_its_checksum_sums_to_nothing() {
        assert_eq!(checksum(&request(false, 7, 70_000, 1472)), 0);
    }
}
