//! The opposite of naive: an end that does for speed what the daemons do, and still decides nothing. It
//! moves up to 64 frames per system call and super-frames across the TAP.
//!
//! It is there to be compared with itself, as one loop over both directions or as a thread for each. What
//! moves the frames is the same; the threads share nothing but what the kernel has behind the descriptors.

use std::array;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use node_lib::Mac;
use node_lib::device::Burst;
use node_lib::offload::join::PARTS_MAX;
use node_lib::offload::{Gso, Joiner, Segments, VnetHeader, complete, vnet};
use node_lib::runtime::BURST;
use socket2::Socket;

use super::{HEADROOM, frame_to, inner, number};

/// A frame of a TAP with an MTU of 1500, and its header.
const SLOT_LEN: usize = 2048;
/// An IP packet of the greatest length behind an Ethernet header.
const SUPER_FRAME_MAX: usize = 14 + 65_535;

/// Carries frames until something fails. The descriptors must not block.
pub(crate) fn run(
    (tap, radio): (File, Socket),
    (own, peer): (Mac, Mac),
    threads: u8,
) -> io::Result<()> {
    let (up_tap, up_radio) = (tap.try_clone()?, radio.try_clone()?);
    let up = move || Up::new(up_tap, Sender::new(up_radio, peer, own));
    let down = move || Down::new(radio, tap, own);
    if threads == 1 {
        let (mut up, mut down) = (up(), down());
        return forever(|| {
            let [radio, tap] = wait([down.radio.as_fd(), up.tap.as_fd()])?;
            if radio {
                down.turn()?;
            }
            if tap { up.turn() } else { Ok(()) }
        });
    }
    // Whichever ends first ends the program.
    let (up_ended, end) = mpsc::channel();
    let down_ended = up_ended.clone();
    thread::spawn(move || {
        let mut up = up();
        up_ended.send(forever(|| wait([up.tap.as_fd()]).and_then(|_| up.turn())))
    });
    thread::spawn(move || {
        let mut down = down();
        down_ended.send(forever(|| wait([down.radio.as_fd()]).and_then(|_| down.turn())))
    });
    end.recv().map_err(io::Error::other)?
}

fn forever(mut turn: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        turn()?;
    }
}

/// Waits until one of these can be read, and says which.
fn wait<const N: usize>(fds: [BorrowedFd<'_>; N]) -> io::Result<[bool; N]> {
    let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    poll(&mut fds, PollTimeout::NONE)?;
    Ok(fds.map(|fd| fd.any().unwrap_or(true)))
}

/// How many frames the next turn may bring: one that comes alone goes on before the system call that finds no
/// other, as in the daemons.
fn enough_after(last: usize) -> usize {
    if last <= 1 { 1 } else { BURST }
}

/// TAP to radio.
struct Up {
    tap: File,
    radio: Sender,
    burst: Burst,
    vnet: [u8; vnet::LEN],
    super_frame: Vec<u8>,
}

impl Up {
    fn new(tap: File, radio: Sender) -> Self {
        let super_frame = vec![0; SLOT_LEN + SUPER_FRAME_MAX];
        Self { tap, radio, burst: Burst::new(BURST), vnet: [0; vnet::LEN], super_frame }
    }

    fn turn(&mut self) -> io::Result<()> {
        self.burst.reset(SLOT_LEN);
        let mut count = 0;
        while !self.burst.is_enough() {
            match self.read() {
                Ok(frames) => count += frames,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.radio.send(&mut self.burst);
        self.burst.limit(enough_after(count));
        Ok(())
    }

    /// Reads a frame or super-frame: the vnet header, what the slot holds, and the rest behind. Returns how
    /// many frames that gave; when they are more than a burst the first are sent at once.
    fn read(&mut self) -> io::Result<usize> {
        let Self { tap, radio, burst, vnet, super_frame } = self;
        let Some(slot) = burst.vacant() else { return Ok(0) };
        let have = slot.len();
        let rest = super_frame.get_mut(have..).unwrap_or_default();
        let mut parts = [IoSliceMut::new(vnet), IoSliceMut::new(slot), IoSliceMut::new(rest)];
        let len = tap.read_vectored(&mut parts)?.saturating_sub(vnet::LEN);
        let Ok(vnet) = VnetHeader::parse(*vnet) else { return Ok(0) };
        if vnet.gso == Gso::None {
            let frame = slot.get_mut(..len);
            let is_whole = frame.is_some_and(|frame| complete(&vnet, frame).is_ok());
            if is_whole {
                burst.commit(len);
            }
            return Ok(usize::from(is_whole));
        }
        let Some(frame) = super_frame.get_mut(..len) else { return Ok(0) };
        let head = have.min(len);
        if let (Some(to), Some(from)) = (frame.get_mut(..head), slot.get(..head)) {
            to.copy_from_slice(from);
        }
        let Ok(mut segments) = Segments::plan(&vnet, frame) else { return Ok(0) };
        let mut count = 0;
        loop {
            let Some(slot) = burst.vacant() else {
                radio.send(burst);
                burst.reset(SLOT_LEN);
                continue;
            };
            let Some(Ok(len)) = segments.next_into(frame, slot) else { return Ok(count) };
            burst.commit(len);
            count += 1;
        }
    }
}

/// Puts the header in front of frames and sends them.
struct Sender {
    radio: Socket,
    header: Vec<u8>,
    seq: u32,
    headers: MultiHeaders<()>,
}

impl Sender {
    fn new(radio: Socket, peer: Mac, own: Mac) -> Self {
        let header = frame_to(peer, own).get(..HEADROOM).unwrap_or_default().to_vec();
        Self { radio, header, seq: 0, headers: MultiHeaders::preallocate(BURST, None) }
    }

    fn send(&mut self, burst: &mut Burst) {
        let count = burst.len();
        for index in 0..count {
            self.seq = self.seq.wrapping_add(1);
            number(&mut self.header, HEADROOM + burst.frame(index).len(), self.seq);
            burst.put_head(index, 0, &self.header);
        }
        let part = |index| [IoSlice::new(burst.part(index, HEADROOM, 0..usize::MAX))];
        let frames: [_; BURST] = array::from_fn(part);
        let mut done = 0;
        while done < count {
            let left = frames.get(done..count).unwrap_or_default();
            let control: [ControlMessage<'_>; 0] = [];
            let (fd, flags) = (self.radio.as_raw_fd(), MsgFlags::empty());
            match sendmmsg(fd, &mut self.headers, left, [None; BURST], control, flags) {
                Ok(sent) => done += sent.count(),
                // What a full socket refuses is lost, as on air.
                Err(Errno::EAGAIN) => return,
                Err(_) => done += 1,
            }
        }
    }
}

/// Radio to TAP.
struct Down {
    radio: Socket,
    tap: File,
    own: Mac,
    headers: MultiHeaders<()>,
    burst: Burst,
    joiner: Joiner,
}

impl Down {
    fn new(radio: Socket, tap: File, own: Mac) -> Self {
        let headers = MultiHeaders::preallocate(BURST, None);
        Self { radio, tap, own, headers, burst: Burst::new(BURST), joiner: Joiner::new() }
    }

    fn turn(&mut self) -> io::Result<()> {
        let Self { radio, tap, own, headers, burst, joiner } = self;
        let count = receive(radio, headers, burst)?;
        burst.limit(enough_after(count));
        let mut frames = [&[][..]; BURST];
        let mut ours = 0;
        let inner = burst.frames().filter_map(|frame| inner(frame, *own));
        for (slot, frame) in frames.iter_mut().zip(inner) {
            *slot = frame;
            ours += 1;
        }
        for write in joiner.join(frames.get(..ours).unwrap_or_default()) {
            let mut parts = [IoSlice::new(&[]); PARTS_MAX];
            let mut count = 0;
            for (slice, part) in parts.iter_mut().zip(write.parts()) {
                *slice = IoSlice::new(part);
                count += 1;
            }
            let _ = tap.write_vectored(parts.get(..count).unwrap_or_default());
        }
        Ok(())
    }
}

/// Fills a burst with what is waiting, in one call; returns how many frames that was.
fn receive(radio: &Socket, headers: &mut MultiHeaders<()>, burst: &mut Burst) -> io::Result<usize> {
    burst.reset(SLOT_LEN);
    let wanted = burst.wanted();
    let mut lens = [0; BURST];
    let mut count = 0;
    {
        let mut vacant = burst.vacant_slots();
        let mut slots: [_; BURST] =
            array::from_fn(|_| [IoSliceMut::new(vacant.next().unwrap_or_default())]);
        let (fd, slots) = (radio.as_raw_fd(), slots.iter_mut().take(wanted));
        match recvmmsg(fd, headers, slots, MsgFlags::empty(), None) {
            Ok(read) => {
                for (len, message) in lens.iter_mut().zip(read) {
                    *len = message.bytes;
                    count += 1;
                }
            }
            Err(Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    lens.iter().take(count).for_each(|len| burst.commit(*len));
    Ok(count)
}
