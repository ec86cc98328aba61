//! The opposite of naive: an end that does for speed what the daemons do, and still decides
//! nothing. It moves up to 64 frames per system call and super-frames across the TAP.
//!
//! It is there to be compared with itself, as one loop over both directions or as a thread for
//! each. What moves the frames is the same; the threads share nothing but what the kernel has
//! behind the descriptors.

use std::array;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::mpsc;
use std::thread;

use arrayvec::ArrayVec;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use node_lib::Mac;
use node_lib::device::Burst;
use node_lib::offload::join::PARTS_MAX;
use node_lib::offload::{Gso, Joiner, Segments, VnetHeader, complete, vnet};
use node_lib::transport::BURST;
use socket2::Socket;

use super::{HEADROOM, frame_to, inner, number};

/// A frame of a TAP with an MTU of 1500, and its header.
const SLOT_LEN: usize = 2048;
/// Frames to have room for at least: preparing it for many costs time.
const ASK_MIN: usize = 4;
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
        let (mut up_last, mut down_last) = (0, 0);
        return forever(|| {
            let [radio, tap] = wait([down.radio.as_fd(), up.tap.as_fd()])?;
            if radio {
                turn(&mut down_last, |enough| down.take(enough))?;
            }
            if tap { turn(&mut up_last, |enough| up.take(enough)) } else { Ok(()) }
        });
    }
    // Whichever ends first ends the program.
    let (up_ended, end) = mpsc::channel();
    let down_ended = up_ended.clone();
    thread::spawn(move || {
        let (mut up, mut last) = (up(), 0);
        up_ended.send(forever(|| {
            wait([up.tap.as_fd()])?;
            turn(&mut last, |enough| up.take(enough))
        }))
    });
    thread::spawn(move || {
        let (mut down, mut last) = (down(), 0);
        down_ended.send(forever(|| {
            wait([down.radio.as_fd()])?;
            turn(&mut last, |enough| down.take(enough))
        }))
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

/// Takes frames and sends them on. As in the daemons, where one came alone the last time the next
/// does too: it goes on before the system call that finds no other. Otherwise up to twice as many
/// as then.
fn turn(last: &mut usize, mut take: impl FnMut(usize) -> io::Result<usize>) -> io::Result<()> {
    let is_alone = *last <= 1;
    let enough = (2 * *last).clamp(ASK_MIN, BURST);
    let mut taken = take(if is_alone { 1 } else { enough })?;
    if is_alone && taken == 1 {
        taken += take(enough)?;
    }
    *last = taken;
    Ok(())
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

    /// Moves about `enough` frames, and returns how many it were.
    fn take(&mut self, enough: usize) -> io::Result<usize> {
        self.burst.reset(SLOT_LEN);
        self.burst.limit(enough);
        let mut count = 0;
        while !self.burst.is_enough() {
            match self.read() {
                Ok(frames) => count += frames,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.radio.send(&mut self.burst);
        Ok(count)
    }

    /// Reads a frame or super-frame: the vnet header, what the slot holds, and the rest behind.
    /// Returns how many frames that gave; when they are more than a burst the first are sent at
    /// once.
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
        let frames: ArrayVec<_, BURST> = (0..count).map(part).collect();
        let mut done = 0;
        while let Some(left) = frames.get(done..).filter(|left| !left.is_empty()) {
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

    /// Moves up to `most` frames, and returns how many it were.
    fn take(&mut self, most: usize) -> io::Result<usize> {
        let Self { radio, tap, own, headers, burst, joiner } = self;
        let count = receive(radio, headers, burst, most)?;
        let inner = burst.frames().filter_map(|frame| inner(frame, *own));
        let frames: ArrayVec<_, BURST> = inner.collect();
        for write in joiner.join(&frames) {
            let parts: ArrayVec<_, PARTS_MAX> = write.parts().map(IoSlice::new).collect();
            let _ = tap.write_vectored(&parts);
        }
        Ok(count)
    }
}

/// Fills a burst with what is waiting, in one call; returns how many frames that was.
fn receive(
    radio: &Socket,
    headers: &mut MultiHeaders<()>,
    burst: &mut Burst,
    most: usize,
) -> io::Result<usize> {
    burst.reset(SLOT_LEN);
    let mut lens = [0; BURST];
    let mut count = 0;
    {
        let mut vacant = burst.vacant_slots().take(most);
        let mut slots: [_; BURST] =
            array::from_fn(|_| [IoSliceMut::new(vacant.next().unwrap_or_default())]);
        let (fd, slots) = (radio.as_raw_fd(), slots.iter_mut().take(most));
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
