//! [`EthertypeSurvey`]: in which EtherTypes other than ours nodes are heard on the radio.
//!
//! Nodes that are set to different EtherTypes never hear each other, and all else looks well.
//!
//! * It listens to every EtherType (`ETH_P_ALL`) for 1.2 s of every 10. That is long enough for
//!   whoever speaks once a second, as an OBU does that finds no RSU.
//! * A filter keeps out what is ours, and what begins like no message of ours. Of the rest the
//!   socket keeps the Ethernet header of some dozen frames, and they are looked at ten times a
//!   second. What we send does not come here.
//! * While it listens, each frame costs the kernel more, ours as well. So it does not listen
//!   always: then that is half a percent of a frame's processor time (`docs/tried.md`).
//! * Between times the socket is bound to a number that no frame has. To bind it to 0 would not
//!   help: the kernel takes that as "as before".
//! * Whoever binds such a socket anew, or closes it, waits some 10 ms until no processor uses what
//!   it was bound to (`synchronize_net`). A thread of its own does that, and no frame waits.
//! * An interface that is made again has another index, so each round begins with that of the name.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrayvec::ArrayVec;
use socket2::{Domain, SockFilter, Socket, Type};
use tracing::{debug, info};

use super::error::DeviceError;
use super::packet::is_for_us;
use super::{name, sys};
use crate::messages::Kind;
use crate::messages::prefix::VERSION;

/// The first round begins so long after the start, and so ends before a node that hears nobody says
/// why that may be.
const FIRST_AFTER: Duration = Duration::from_secs(5);
/// From the end of a round to the next.
const REST_FOR: Duration = Duration::from_millis(8800);
/// Between two looks at what has come.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks of a round: 1.2 s.
const LOOKS: u32 = 12;
/// An EtherType that was not heard for so many rounds, a minute, is forgotten.
const ROUNDS_KEPT: u8 = 6;
/// EtherTypes kept.
const KEPT_MAX: usize = 8;
/// As much of a frame as tells its EtherType.
const HEAD_LEN: usize = 14;
/// Offset of a message's type in an Ethernet frame.
const TYPE_AT: u32 = 14;
/// Room for some dozen frames: the kernel counts the whole of each, up to 2304 bytes, and doubles
/// what is asked for.
const RECV_BUFFER: usize = 64 << 10;
/// Frames of every EtherType (`ETH_P_ALL`).
const EVERY_ETHERTYPE: u16 = libc::ETH_P_ALL as u16;
/// Frames of none: a length is no EtherType (IEEE 802.3 §3.2.6).
const NO_ETHERTYPE: u16 = ETHERTYPE_MIN - 1;
const ETHERTYPE_MIN: u16 = 0x0600;

/// EtherTypes of one round.
type Found = ArrayVec<u16, KEPT_MAX>;

/// A packet socket that hears messages like ours in other EtherTypes, from
/// [`EthertypeSurvey::begin`] to [`EthertypeSurvey::end`], and nothing else.
#[derive(Debug)]
pub struct EthertypeSurvey {
    name: String,
    socket: Socket,
    /// The interface it listens on.
    index: Option<u32>,
    found: Found,
}

impl EthertypeSurvey {
    /// For the radio `name` of a node with this EtherType. It needs `CAP_NET_RAW` now, and no right
    /// later.
    ///
    /// # Errors
    /// That right is missing, or the kernel has no room for another socket.
    pub fn open(name: &str, ethertype: u16) -> Result<Self, DeviceError> {
        name::check(name)?;
        let socket = open(ethertype).map_err(|source| {
            DeviceError::new(name, "open a socket for other EtherTypes", source)
        })?;
        Ok(Self { name: name.to_owned(), socket, index: None, found: Found::new() })
    }

    /// Listens from now on, on the interface that has the name now.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn begin(&mut self) -> io::Result<()> {
        let index = rustix::net::netdevice::name_to_index(self.socket.as_fd(), &self.name)?;
        sys::bind_packet(self.socket.as_fd(), EVERY_ETHERTYPE, index)?;
        // What is left of an interface that went down or was deleted.
        let _ = self.socket.take_error();
        self.index = Some(index);
        Ok(())
    }

    /// Takes notice of what has come. Returns whether more may be waiting.
    pub fn look(&mut self) -> bool {
        let mut heads = [[0; HEAD_LEN]; sys::BATCH];
        let slots = heads.iter_mut().map(|head| &mut head[..]);
        let mut reads = ArrayVec::new();
        // Nothing there, or the interface is down.
        if sys::recv_packets(self.socket.as_fd(), sys::BATCH, slots, &mut reads).is_err() {
            return false;
        }
        let heard = reads.iter().zip(&heads).filter(|(read, _)| is_for_us(read.packet_type));
        for (_, [.., high, low]) in heard {
            let ethertype = u16::from_be_bytes([*high, *low]);
            if !self.found.contains(&ethertype) {
                // More than there is room for are not kept.
                let _ = self.found.try_push(ethertype);
            }
        }
        reads.is_full()
    }

    /// Listens no more, and gives what was heard.
    pub fn end(&mut self) -> Vec<u16> {
        if let Some(index) = self.index.take()
            && let Err(cause) = sys::bind_packet(self.socket.as_fd(), NO_ETHERTYPE, index)
        {
            // Then it has been deleted, and nothing comes from it.
            debug!(radio = self.name, %cause, "the interface listened on is gone");
        }
        // What is left would be of long ago at the next look.
        for _ in 0..LOOKS {
            if !self.look() {
                break;
            }
        }
        self.found.drain(..).collect()
    }

    /// Listens now and then, on a thread of its own, until what is returned is dropped.
    pub(super) fn start(self) -> io::Result<Surveying> {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (end, ended) = mpsc::channel();
        let to = Arc::clone(&heard);
        let rounds = move || self.go_round(&to, &ended);
        std::thread::Builder::new().name("ethertypes".to_owned()).spawn(rounds)?;
        Ok(Surveying { heard, _end: end })
    }

    fn go_round(mut self, heard: &Mutex<Heard>, ended: &Receiver<()>) {
        let is_over = |wait| ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        let mut rest = FIRST_AFTER;
        while !is_over(rest) {
            if let Err(cause) = self.begin() {
                debug!(radio = self.name, %cause, "no other EtherTypes are listened to");
            }
            for _ in 0..LOOKS {
                if is_over(LOOK_EVERY) {
                    return;
                }
                self.look();
            }
            let found = self.end();
            let news = heard.lock().unwrap_or_else(PoisonError::into_inner).note(&found);
            if !news.is_empty() {
                let ethertypes = listed(&news);
                info!(radio = self.name, ethertypes, "nodes with another EtherType are heard");
            }
            rest = REST_FOR;
        }
    }
}

/// As people write them.
pub(crate) fn listed(ethertypes: &[u16]) -> String {
    let each: Vec<_> = ethertypes.iter().map(|ethertype| format!("{ethertype:#06x}")).collect();
    each.join(", ")
}

fn open(ethertype: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), None)?;
    socket.attach_filter(&filter(ethertype))?;
    socket.set_recv_buffer_size(RECV_BUFFER)?;
    if let Err(cause) = sys::ignore_outgoing(socket.as_fd()) {
        // They are told by their mark, too.
        debug!(%cause, "the kernel copies what is sent; expected Linux 4.20 or later");
    }
    Ok(socket)
}

/// Frames of another EtherType whose first byte is that of one of our messages. In no other
/// protocol that is common is it: 4 or 6 in front for IP, 0 for ARP and LLDP.
fn filter(ethertype: u16) -> [SockFilter; 8] {
    let code = |parts: u32| u16::try_from(parts).unwrap_or_default();
    let load = |size| code(libc::BPF_LD | size | libc::BPF_ABS);
    let jump = |how| code(libc::BPF_JMP | how | libc::BPF_K);
    let give = code(libc::BPF_RET | libc::BPF_K);
    let first = u32::from(VERSION << 4);
    let last = first + u32::from(Kind::ALL.map(Kind::code).into_iter().max().unwrap_or_default());
    [
        SockFilter::new(load(libc::BPF_H), 0, 0, TYPE_AT - 2),
        // Most frames are ours.
        SockFilter::new(jump(libc::BPF_JEQ), 5, 0, u32::from(ethertype)),
        SockFilter::new(jump(libc::BPF_JGE), 0, 4, u32::from(ETHERTYPE_MIN)),
        SockFilter::new(load(libc::BPF_B), 0, 0, TYPE_AT),
        SockFilter::new(jump(libc::BPF_JGT), 0, 2, first),
        SockFilter::new(jump(libc::BPF_JGT), 1, 0, last),
        SockFilter::new(give, 0, 0, HEAD_LEN as u32),
        SockFilter::new(give, 0, 0, 0),
    ]
}

/// A survey under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Surveying {
    heard: Arc<Mutex<Heard>>,
    _end: Sender<()>,
}

impl Surveying {
    /// Heard in the last minute, in their order.
    pub(super) fn heard(&self) -> Vec<u16> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).all()
    }
}

/// EtherTypes heard, each with the rounds since.
#[derive(Debug, Default)]
struct Heard(ArrayVec<(u16, u8), KEPT_MAX>);

impl Heard {
    /// Takes notice of a round. Returns what is new.
    fn note(&mut self, found: &[u16]) -> Found {
        let before: Found = self.0.iter().map(|(known, _)| *known).collect();
        for (known, rounds) in &mut self.0 {
            *rounds = if found.contains(known) { 0 } else { *rounds + 1 };
        }
        self.0.retain(|(_, rounds)| *rounds < ROUNDS_KEPT);
        let news: Found = found.iter().copied().filter(|found| !before.contains(found)).collect();
        for new in &news {
            self.make_room();
            // Without room all of them were heard in this round.
            let _ = self.0.try_push((*new, 0));
        }
        news
    }

    /// Forgets what was not heard for longest, if there is no room and it was not heard just now.
    fn make_room(&mut self) {
        if !self.0.is_full() {
            return;
        }
        let oldest = self.0.iter().enumerate().max_by_key(|(_, (_, rounds))| *rounds);
        if let Some((at, _)) = oldest.filter(|(_, (_, rounds))| *rounds > 0) {
            self.0.swap_remove(at);
        }
    }

    fn all(&self) -> Vec<u16> {
        let mut all: Vec<_> = self.0.iter().map(|(known, _)| *known).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_is_kept_for_a_minute_and_told_once() {
        let mut heard = Heard::default();
        assert_eq!(heard.note(&[0x88b6, 0x0800])[..], [0x88b6, 0x0800]);
        assert_eq!(heard.note(&[0x88b6])[..], []);
        for _ in 2..ROUNDS_KEPT {
            assert_eq!(heard.all(), [0x0800, 0x88b6]);
            heard.note(&[0x88b6]);
        }
        assert_eq!(heard.note(&[])[..], []);
        assert_eq!(heard.all(), [0x88b6], "the other was not heard for six rounds");
        assert_eq!(heard.note(&[0x0800])[..], [0x0800], "it is new again");
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for_and_the_longest_silent_goes() {
        let mut heard = Heard::default();
        for ethertype in 0x9000..0x9008 {
            heard.note(&[ethertype]);
        }
        // Three are forgotten by now, and five find room in their places and those of the
        // oldest.
        heard.note(&[0xa000, 0xa001, 0xa002, 0xa003, 0xa004]);
        let expected =
            [0x9005, 0x9006, 0x9007, 0xa000, 0xa001, 0xa002, 0xa003, 0xa004].map(|n: u16| n);
        assert_eq!(heard.all(), expected);
        let all: Vec<u16> = (0xb000..0xb008).collect();
        heard.note(&all);
        assert_eq!(heard.all(), all);
        heard.note(&(0xc000..0xc008).collect::<Vec<_>>());
        assert_eq!(heard.all().len(), KEPT_MAX);
    }
}
