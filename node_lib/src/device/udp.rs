//! Ethernet frames in UDP multicast datagrams: a shared medium any user may have, to try things
//! without a radio. Every process that joins the same group and port hears every other.
//!
//! It behaves like a packet socket: one EtherType, no frame of our own, none to another address.
//! The address is random and locally administered (IEEE 802-2014 §8.4.4.2); there is no protection
//! of any kind, and the time to live is 1, so nothing leaves the local network.

use std::fmt;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tracing::trace;

use super::error::{DeviceError, Problem};
use super::{Burst, Device, DeviceCounters, LinkState, Outgoing, Received, Sent, sys};
use crate::mac::Mac;
use crate::messages::ethernet::{HEADER_LEN, Header};

/// The group unless another is named: in the range for private use (RFC 2365 §6.2).
pub const GROUP_DEFAULT: Ipv4Addr = Ipv4Addr::new(239, 118, 122, 98);
/// The port unless another is named: the number of our default EtherType.
pub const PORT_DEFAULT: u16 = 0x88b5;
/// Payload of an Ethernet frame that fits a datagram on a 1500-byte network: 1500 − 20 (IPv4) − 8
/// (UDP) − 14 (the frame's own header).
pub const MTU: usize = 1458;

/// Header and payload of the longest frame.
const FRAME_MAX: usize = MTU + HEADER_LEN;
const RECV_BUFFER: usize = 4 << 20;

/// Where the link is: `udp:[GROUP[:PORT]][@IFACE_ADDR]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpAddress {
    /// Multicast group and port.
    pub group: SocketAddrV4,
    /// Address of the interface to use; unspecified lets the routing table decide.
    pub interface: Ipv4Addr,
}

impl UdpAddress {
    /// What such an address begins with.
    pub const PREFIX: &str = "udp:";
}

/// The text does not say where a UDP link is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not a UDP link ({why}); expected udp:GROUP:PORT[@IFACE_ADDR] such as \
     udp:239.118.122.98:34997@127.0.0.1"
)]
pub struct ParseUdpError {
    text: String,
    why: &'static str,
}

impl FromStr for UdpAddress {
    type Err = ParseUdpError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |why| ParseUdpError { text: text.to_owned(), why };
        let rest = text.strip_prefix(Self::PREFIX).ok_or(error("no udp: in front"))?;
        let (group, interface) = match rest.split_once('@') {
            Some((group, interface)) => {
                (group, interface.parse().map_err(|_| error("no IPv4 address after the @"))?)
            }
            None => (rest, Ipv4Addr::UNSPECIFIED),
        };
        let (ip, port) = group.split_once(':').unwrap_or((group, ""));
        let ip = match ip {
            "" => GROUP_DEFAULT,
            ip => ip.parse().map_err(|_| error("the group is no IPv4 address"))?,
        };
        let port = match port {
            "" => PORT_DEFAULT,
            port => port.parse().map_err(|_| error("the port is not 1 to 65535"))?,
        };
        if !ip.is_multicast() {
            return Err(error("the group is not in 224.0.0.0/4"));
        }
        if port == 0 {
            return Err(error("the port is not 1 to 65535"));
        }
        Ok(Self { group: SocketAddrV4::new(ip, port), interface })
    }
}

impl fmt::Display for UdpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.group)?;
        if self.interface.is_unspecified() { Ok(()) } else { write!(f, "@{}", self.interface) }
    }
}

/// One member of a UDP link.
#[derive(Debug)]
pub struct Udp {
    name: String,
    socket: Socket,
    group: SockAddr,
    mac: Mac,
    ethertype: u16,
    counters: DeviceCounters,
}

impl Udp {
    /// Joins the link with a random address.
    pub fn open(address: &UdpAddress, ethertype: u16) -> Result<Self, DeviceError> {
        let name = address.to_string();
        let error = |operation| {
            move |source: io::Error| DeviceError::new(address.to_string(), operation, source)
        };
        let [a, rest @ ..] = sys::random::<6>().map_err(error("choose a random address"))?;
        let [b, c, d, e, f] = rest;
        // Locally administered, and not a group.
        let mac = Mac([(a | 0x02) & !0x01, b, c, d, e, f]);
        let socket =
            Socket::new(Domain::IPV4, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))
                .map_err(error("open a UDP socket"))?;
        let group = SockAddr::from(address.group);
        let join = || {
            socket.set_reuse_address(true)?;
            // More than the system's limit is cut down to it.
            socket.set_recv_buffer_size(RECV_BUFFER)?;
            socket.bind(&group)?;
            socket.join_multicast_v4(address.group.ip(), &address.interface)?;
            socket.set_multicast_if_v4(&address.interface)?;
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(1)
        };
        join().map_err(|source| explain(&name, source))?;
        Ok(Self { name, socket, group, mac, ethertype, counters: DeviceCounters::default() })
    }

    /// Whether the link could be joined, as far as can be seen without telling the network.
    pub fn check(address: &UdpAddress) -> Result<(), DeviceError> {
        let look = || {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
            let group = SockAddr::from(address.group);
            socket.set_reuse_address(true)?;
            socket.set_multicast_if_v4(&address.interface)?;
            socket.bind(&group)?;
            // Asks the routing table, and sends nothing.
            socket.connect(&group)
        };
        look().map_err(|source| explain(&address.to_string(), source))
    }

    /// Our address on the link.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// The link, as if it were an interface.
    pub fn link(&self) -> LinkState {
        LinkState { index: 0, mac: self.mac, mtu: MTU, up: true }
    }
}

/// Why a link cannot be joined.
fn explain(name: &str, source: io::Error) -> DeviceError {
    let problem = match source.raw_os_error() {
        Some(libc::ENODEV | libc::EADDRNOTAVAIL | libc::ENETUNREACH) => {
            Problem::Io(io::Error::new(
                source.kind(),
                "no interface to reach the group through; name one by its address after an @, \
                 for example @127.0.0.1",
            ))
        }
        _ => Problem::Io(source),
    };
    DeviceError::new(name, "join the multicast group", problem)
}

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ours,
    Own,
    Foreign,
}

/// What the kernel does for a packet socket.
fn judge(frame: &[u8], mac: Mac, ethertype: u16) -> Verdict {
    let Some((header, _)) = Header::read(frame) else { return Verdict::Foreign };
    if header.from == mac {
        Verdict::Own
    } else if header.ethertype == ethertype && (header.to == mac || header.to.is_group()) {
        Verdict::Ours
    } else {
        Verdict::Foreign
    }
}

impl Device for Udp {
    fn name(&self) -> &str {
        &self.name
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(FRAME_MAX + 1);
        // Frames that are dropped count too, or a stream of them would keep us here for ever.
        for _ in 0..burst.slots() {
            let Some(slot) = burst.vacant() else {
                break;
            };
            let len = match (&self.socket).read(slot) {
                Ok(len) => len,
                Err(error) if sys::is_would_block(&error) => return Received::Drained,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    _ => {
                        // Once per error, such as one of a former send; the next call reads on.
                        self.counters.rx_errors += 1;
                        trace!(radio = %self.name, %error, "read failed");
                        continue;
                    }
                },
            };
            if len > FRAME_MAX {
                self.counters.rx_oversize += 1;
                continue;
            }
            match judge(slot.get(..len).unwrap_or_default(), self.mac, self.ethertype) {
                Verdict::Ours => {
                    self.counters.count_rx(len);
                    burst.commit(len);
                }
                Verdict::Own => self.counters.rx_own += 1,
                Verdict::Foreign => self.counters.rx_foreign += 1,
            }
        }
        Received::More
    }

    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        for (done, Outgoing { bytes, .. }) in frames.iter().enumerate() {
            if bytes.len() < HEADER_LEN {
                self.counters.tx_short += 1;
                continue;
            }
            if bytes.len() > FRAME_MAX {
                self.counters.tx_oversize += 1;
                continue;
            }
            match self.socket.send_to(bytes, &self.group) {
                Ok(_) => self.counters.count_tx(bytes.len()),
                Err(error) if sys::is_would_block(&error) => return Sent::Full(done),
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENETDOWN | libc::ENETUNREACH | libc::ENODEV) => {
                        self.counters.tx_down += 1;
                    }
                    Some(libc::ENOBUFS) => self.counters.tx_full += 1,
                    Some(libc::EMSGSIZE) => self.counters.tx_oversize += 1,
                    _ => {
                        self.counters.tx_errors += 1;
                        trace!(radio = %self.name, %error, "send failed");
                    }
                },
            }
        }
        Sent::All
    }

    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        for text in ["udp:239.1.2.3:4000", "udp:239.1.2.3:4000@127.0.0.1"] {
            assert_eq!(text.parse::<UdpAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn fills_in_group_and_port() {
        for text in ["udp:", "udp:239.118.122.98", "udp::34997"] {
            let address: UdpAddress = text.parse().unwrap();
            assert_eq!(address.group, SocketAddrV4::new(GROUP_DEFAULT, PORT_DEFAULT));
        }
    }

    #[test]
    fn says_what_is_wrong_with_an_address() {
        for (text, why) in [
            ("239.1.2.3:4000", "no udp: in front"),
            ("udp:10.0.0.1:4000", "not in 224.0.0.0/4"),
            ("udp:239.1.2.3:0", "port"),
            ("udp:239.1.2.3:70000", "port"),
            ("udp:ff02::1", "group is no IPv4"),
            ("udp:@lo", "after the @"),
        ] {
            let error = text.parse::<UdpAddress>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("expected udp:GROUP"), "{error}");
        }
    }

    #[test]
    fn takes_only_frames_a_packet_socket_would_deliver() {
        let us = Mac([2, 0, 0, 0, 0, 1]);
        let frame = |dest: Mac, source: Mac, ethertype: u16| {
            [&dest.0[..], &source.0[..], &ethertype.to_be_bytes()[..], b"x"].concat()
        };
        let other = Mac([2, 0, 0, 0, 0, 2]);
        let judged = |frame: &[u8]| judge(frame, us, 0x88b5);
        assert_eq!(judged(&frame(us, other, 0x88b5)), Verdict::Ours);
        assert_eq!(judged(&frame(Mac::BROADCAST, other, 0x88b5)), Verdict::Ours);
        assert_eq!(judged(&frame(other, other, 0x88b5)), Verdict::Foreign);
        assert_eq!(judged(&frame(us, other, 0x0800)), Verdict::Foreign);
        assert_eq!(judged(&frame(Mac::BROADCAST, us, 0x88b5)), Verdict::Own);
        assert_eq!(judged(&[0; 13]), Verdict::Foreign);
    }
}
