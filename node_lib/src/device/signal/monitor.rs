//! Signal from a monitor interface: every frame on the channel, with a [`radiotap`] header.
//!
//! * Read all at once, twenty times a second, and only the beginning of each frame: nobody is woken
//!   by a frame, and what is copied of it is its headers.
//! * An interface that is down tells nothing until it is up; the socket stays bound to it.
//! * A deleted one leaves the descriptor dead. One of that name that comes back is bound on the
//!   same descriptor, which needs no capability.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use arrayvec::ArrayVec;
use socket2::{Domain, Socket, Type};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use super::radiotap::{self, FrameSignal};
use super::reports::{Reports, Sample, WAITING_MAX};
use crate::device::error::{DeviceError, Problem};
use crate::device::{name, sys};

/// Between two looks: half of what a trend averages over (`obu_lib`, `link/trend.rs`).
pub const EVERY: Duration = Duration::from_millis(50);
/// Between two attempts to bind to an interface that has vanished.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Frames of one look at most: ten times what 802.11p carries meanwhile. The rest waits in the
/// socket.
const LOOK_MAX: usize = WAITING_MAX;
/// What is read of a frame: radiotap headers have some dozen bytes, an 802.11 header 16 up to the
/// sender's address.
const HEAD_LEN: usize = 256;
/// Room for about 1800 full frames, as the kernel counts 2304 bytes for each.
const RECV_BUFFER: usize = 4 << 20;
/// Nothing is sent.
const SEND_BUFFER: usize = 4096;
/// Every EtherType: frames of a monitor interface have none.
const ETH_P_ALL: u16 = libc::ETH_P_ALL as u16;

/// A packet socket on a monitor interface.
#[derive(Debug)]
pub struct Monitor {
    name: String,
    socket: Socket,
    state: State,
    heads: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Bound, and it may be up.
    Bound,
    /// Bound, and down.
    Down,
    /// There is no such interface, or it is another now; when to try again.
    Gone(Instant),
}

/// What one look has brought.
#[derive(Debug, Default, PartialEq, Eq)]
struct Look {
    samples: Vec<Sample>,
    malformed: u64,
    bad_fcs: u64,
}

impl Monitor {
    /// Opens the monitor interface `name`.
    ///
    /// # Errors
    /// There is no such interface, it carries other headers than radiotap, or `CAP_NET_RAW` is
    /// missing.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        name::check(name)?;
        let error =
            |operation| move |source: io::Error| DeviceError::new(name, operation, problem(source));
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), None)
            .map_err(error("open a packet socket for the signal"))?;
        sys::set_buffers(socket.as_fd(), RECV_BUFFER, SEND_BUFFER)
            .map_err(error("enlarge the buffers of the packet socket"))?;
        let heads = vec![0; HEAD_LEN * sys::BATCH];
        let mut monitor = Self { name: name.to_owned(), socket, state: State::Bound, heads };
        monitor.bind()?;
        Ok(monitor)
    }

    /// Its interface.
    pub fn interface(&self) -> &str {
        &self.name
    }

    fn bind(&mut self) -> Result<(), DeviceError> {
        let fd = self.socket.as_fd();
        let bound = rustix::net::netdevice::name_to_index(fd, &self.name)
            .map_err(io::Error::from)
            .and_then(|index| sys::bind_packet(fd, ETH_P_ALL, index))
            .and_then(|()| sys::bound_link_type(fd));
        let problem = match bound {
            Ok(libc::ARPHRD_IEEE80211_RADIOTAP) => {
                // Binding to an interface that is down leaves an error that says so.
                let is_down = matches!(self.socket.take_error(), Ok(Some(_)));
                self.note(if is_down { State::Down } else { State::Bound });
                return Ok(());
            }
            Ok(other) => Problem::NotMonitor(other),
            Err(error) => problem(error),
        };
        Err(DeviceError::new(&self.name, "read the signal of frames", problem))
    }

    /// Reads what has come since the last look.
    fn look(&mut self) -> Look {
        let mut look = Look::default();
        self.bind_again();
        let mut reads = ArrayVec::new();
        let mut left = LOOK_MAX;
        while left > 0 && !matches!(self.state, State::Gone(_)) {
            let fd = self.socket.as_fd();
            let slots = self.heads.chunks_exact_mut(HEAD_LEN);
            match sys::recv_packets(fd, sys::BATCH, slots, &mut reads) {
                Ok(asked) => {
                    self.note(State::Bound);
                    let slots = self.heads.chunks_exact(HEAD_LEN);
                    for (read, slot) in reads.iter().zip(slots) {
                        look.add(*read, slot.get(..read.len).unwrap_or(slot));
                    }
                    left = left.saturating_sub(reads.len());
                    if reads.len() < asked {
                        break;
                    }
                }
                Err(error) if sys::is_would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Down or deleted; said once.
                Err(error) => {
                    debug!(monitor = %self.name, cause = %error, "read failed");
                    let is_there = self.is_bound();
                    self.note(if is_there { State::Down } else { State::Gone(Instant::now()) });
                    break;
                }
            }
        }
        look
    }

    /// Whether the interface the socket was bound to still exists.
    fn is_bound(&self) -> bool {
        sys::bound_link_type(self.socket.as_fd())
            .is_ok_and(|kind| kind == libc::ARPHRD_IEEE80211_RADIOTAP)
    }

    /// If the interface has vanished, looks whether it has come back.
    fn bind_again(&mut self) {
        // One that was down already vanishes without an error.
        if self.state == State::Down && !self.is_bound() {
            self.note(State::Gone(Instant::now()));
        }
        let State::Gone(at) = self.state else { return };
        if at > Instant::now() {
            return;
        }
        match self.bind() {
            Ok(()) => info!(monitor = %self.name, "monitor interface is back"),
            Err(error) => {
                debug!(cause = %error.source, "{error}");
                self.state = State::Gone(Instant::now() + RETRY_EVERY);
            }
        }
    }

    /// Says a change of state, once.
    fn note(&mut self, state: State) {
        let monitor = &self.name;
        match (self.state, state) {
            (State::Bound, State::Down) => {
                warn!(%monitor, "monitor interface is down: no signal strength until it is up");
            }
            (State::Down, State::Bound) => info!(%monitor, "monitor interface is up"),
            (_, State::Gone(_)) => {
                warn!(%monitor, "monitor interface is gone, waiting for it: no signal strength");
            }
            _ => {}
        }
        self.state = state;
    }
}

impl Look {
    fn add(&mut self, read: sys::PacketRead, head: &[u8]) {
        if read.packet_type == libc::PACKET_OUTGOING {
            return;
        }
        match radiotap::read(head) {
            Ok(FrameSignal::Sample(sample)) => self.samples.push(sample),
            Ok(FrameSignal::BadFcs) => self.bad_fcs += 1,
            Ok(FrameSignal::Nothing) => {}
            Err(_) => self.malformed += 1,
        }
    }
}

fn problem(error: io::Error) -> Problem {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Problem::MissingCapability("CAP_NET_RAW"),
        Some(libc::ENODEV | libc::ENXIO) => Problem::NoSuchInterface,
        _ => Problem::Io(error),
    }
}

/// Hands over what `monitor` hears, for ever.
pub(super) async fn watch(mut monitor: Monitor, reports: Reports) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Look { samples, malformed, bad_fcs } = monitor.look();
        if malformed + bad_fcs > 0 {
            reports.count(|counters| {
                counters.malformed += malformed;
                counters.bad_fcs += bad_fcs;
            });
        }
        reports.add(samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Mac;

    #[test]
    fn what_is_missing_is_named() {
        let problem = |code| problem(io::Error::from_raw_os_error(code));
        assert!(matches!(problem(libc::EPERM), Problem::MissingCapability("CAP_NET_RAW")));
        assert!(matches!(problem(libc::ENODEV), Problem::NoSuchInterface));
        assert!(matches!(problem(libc::ENOMEM), Problem::Io(_)));
    }

    #[test]
    fn of_what_is_read_samples_count_and_the_rest_is_counted() {
        let of = |packet_type, head: &[u8]| {
            let mut look = Look::default();
            look.add(sys::PacketRead { len: head.len(), packet_type }, head);
            look
        };
        let from = Mac([2, 0, 0, 0, 0, 1]);
        let mut head = vec![0, 0, 10, 0, 0x22, 0, 0, 0, 0, 0xc4, 8, 0, 0, 0];
        head.extend([0xff; 6]);
        head.extend(from.0);
        let (host, outgoing) = (libc::PACKET_OTHERHOST, libc::PACKET_OUTGOING);
        assert_eq!(of(host, &head).samples, [Sample { from, dbm: -60 }]);
        assert_eq!(of(outgoing, &head), Look::default(), "our own");
        assert_eq!(of(host, &head[..20]).malformed, 1);
        head[8] = 0x40;
        assert_eq!(of(host, &head), Look { bad_fcs: 1, ..Look::default() });
    }
}
