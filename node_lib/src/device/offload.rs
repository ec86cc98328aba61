//! What a TAP with vnet headers does that a plain one does not: a read may bring a super-frame, a
//! write may hand one over. How they are split and joined is in [`crate::offload`].
//!
//! One system call brings the vnet header and the frame, in one piece. Each further piece of memory
//! named to `readv` or `writev` costs 50 ns, a tenth of what a small frame takes through a TAP.
//! Where to, depends on what came before. An ordinary frame lands in the slot where it is wanted,
//! and a super-frame, which the slots behind that one hold as well, is moved out of their way. In a
//! stream of super-frames it is the other way round: they are read to where they are cut, and the
//! ordinary frame is moved. What a full burst leaves of a super-frame comes with the next.
//!
//! For the same reason a frame that joins no other is copied behind its vnet header.

use std::fs::File;
use std::io::{self, IoSlice, Read};

use tracing::trace;

use super::{Burst, DeviceCounters};
use crate::offload::join::PARTS_MAX;
use crate::offload::{self, Gso, Joiner, Malformed, Segments, VnetHeader, vnet};

/// Bytes of a super-frame, at most: an IP packet behind an Ethernet header with two tags.
const FRAME_MAX: usize = 14 + 2 * 4 + 65_535;
/// What to offer the kernel; one byte more than there can be.
const READ_MAX: usize = vnet::LEN + FRAME_MAX + 1;
/// Ordinary frames in a row after which the next is expected to be one too. Acknowledgements go
/// among the super-frames of another flow.
const STREAK: u8 = 16;

/// Memory and unfinished work of one TAP.
#[derive(Debug)]
pub(super) struct Offload {
    joiner: Joiner,
    /// A super-frame and its vnet header.
    read: Vec<u8>,
    /// Bytes of the super-frame.
    frame_len: usize,
    /// What was not yet cut off it.
    left: Option<Segments>,
    /// Ordinary frames that have to come before no super-frame is expected.
    expected: u8,
    /// A frame to be written, behind its vnet header.
    written: Vec<u8>,
}

impl Offload {
    pub(super) fn boxed() -> Option<Box<Self>> {
        Some(Box::new(Self {
            joiner: Joiner::new(),
            read: vec![0; READ_MAX],
            frame_len: 0,
            left: None,
            expected: 0,
            written: Vec::with_capacity(READ_MAX),
        }))
    }

    /// Reads one frame or super-frame, and puts it into `burst`, as far as there is room.
    pub(super) fn read(
        &mut self,
        mut file: &File,
        burst: &mut Burst,
        counters: &mut DeviceCounters,
    ) -> io::Result<()> {
        let is_expected = self.expected > 0;
        let area = if is_expected { None } else { burst.vacant_area(vnet::LEN, READ_MAX) };
        let len = file.read(area.unwrap_or(&mut self.read))?;
        let len = len.checked_sub(vnet::LEN).ok_or(io::ErrorKind::InvalidData)?;
        match self.take(is_expected, len, burst, counters) {
            Ok(()) => {}
            Err(Malformed::Slot { .. }) => counters.rx_oversize += 1,
            Err(error) => {
                counters.rx_malformed += 1;
                trace!(%error, "frame of the host is malformed");
            }
        }
        Ok(())
    }

    /// Takes the frame of `len` bytes that lies in `self.read` if a super-frame was expected, else
    /// in the burst.
    fn take(
        &mut self,
        was_expected: bool,
        len: usize,
        burst: &mut Burst,
        counters: &mut DeviceCounters,
    ) -> Result<(), Malformed> {
        let Some(area) = burst.vacant_area(vnet::LEN, READ_MAX) else { return Ok(()) };
        let read = if was_expected { self.read.as_slice() } else { &*area };
        let vnet = VnetHeader::parse(*read.first_chunk().ok_or(Malformed::Truncated)?)?;
        let range = vnet::LEN..vnet::LEN + len;
        if vnet.gso == Gso::None {
            self.expected = self.expected.saturating_sub(1);
            let Some(slot) = burst.vacant() else { return Ok(()) };
            let have = slot.len();
            // The slot is a byte longer than a frame may be.
            let frame = slot.get_mut(..len).filter(|_| len < have);
            let frame = frame.ok_or(Malformed::Slot { need: len, have })?;
            if let Some(read) = self.read.get(range).filter(|_| was_expected) {
                frame.copy_from_slice(read);
            }
            offload::complete(&vnet, frame)?;
            counters.count_rx(len);
            burst.commit(len);
            return Ok(());
        }
        self.expected = STREAK;
        let frame = self.read.get_mut(range.clone()).ok_or(Malformed::IpLength)?;
        if let Some(read) = area.get(range).filter(|_| !was_expected) {
            frame.copy_from_slice(read);
        }
        self.left = Some(Segments::plan(&vnet, frame)?);
        self.frame_len = len;
        counters.rx_super_frames += 1;
        self.go_on(burst, counters);
        Ok(())
    }

    /// Cuts segments off the super-frame at hand until `burst` is full or nothing is left.
    pub(super) fn go_on(&mut self, burst: &mut Burst, counters: &mut DeviceCounters) {
        let Some(segments) = &mut self.left else { return };
        let frame = self.read.get(vnet::LEN..vnet::LEN + self.frame_len).unwrap_or_default();
        while let Some(slot) = burst.vacant() {
            let dropped = segments.remaining();
            match segments.next_into(frame, slot) {
                Some(Ok(len)) if len < slot.len() => {
                    counters.count_rx(len);
                    counters.rx_segments += 1;
                    burst.commit(len);
                }
                Some(Ok(_) | Err(Malformed::Slot { .. })) => {
                    counters.rx_oversize += dropped as u64;
                    self.left = None;
                    return;
                }
                Some(Err(_)) => {
                    counters.rx_malformed += 1;
                    self.left = None;
                    return;
                }
                None => {
                    self.left = None;
                    return;
                }
            }
        }
        if segments.remaining() == 0 {
            self.left = None;
        }
    }

    /// Forgets what is left of a super-frame.
    pub(super) fn forget(&mut self) {
        self.left = None;
    }

    /// Has `write` make the writes that hand `frames` over, until it says that there is no use.
    pub(super) fn write_all<'a, F: AsRef<[u8]>>(
        &'a mut self,
        frames: &'a [F],
        mut write: impl FnMut(Shape, &[IoSlice<'_>]) -> bool,
    ) -> bool {
        let Self { joiner, written, .. } = self;
        // It joins nothing: a host that waits for it need not wait for the joiner.
        if let [alone] = frames {
            let alone = alone.as_ref();
            return write(Shape::of_frame(alone), &[as_it_is(alone, written)]);
        }
        joiner.join(frames).all(|planned| {
            if let Some(frame) = planned.whole() {
                return write(Shape::of_frame(frame), &[as_it_is(frame, written)]);
            }
            let mut parts = [IoSlice::new(&[]); PARTS_MAX];
            write(Shape::of(&planned), gather(&planned, &mut parts))
        })
    }
}

/// A frame that needs nothing done to it, behind a vnet header that says so; both put into `room`.
fn as_it_is<'a>(frame: &[u8], room: &'a mut Vec<u8>) -> IoSlice<'a> {
    room.clear();
    room.extend_from_slice(&VnetHeader::default().emit());
    room.extend_from_slice(frame);
    IoSlice::new(room)
}

/// What is in one write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Frames.
    pub(super) frames: usize,
    /// Bytes of all of them together.
    pub(super) bytes: usize,
    /// Bytes of the longest.
    pub(super) longest: usize,
}

impl Shape {
    /// Of a frame by itself.
    pub(super) fn of_frame(frame: &[u8]) -> Self {
        Self { frames: 1, bytes: frame.len(), longest: frame.len() }
    }

    fn of<F: AsRef<[u8]>>(write: &offload::Write<'_, F>) -> Self {
        Self { frames: write.segments(), bytes: write.bytes(), longest: write.longest() }
    }
}

/// The parts of a write as the kernel takes them.
fn gather<'a, F: AsRef<[u8]>>(
    write: &'a offload::Write<'a, F>,
    parts: &'a mut [IoSlice<'a>; PARTS_MAX],
) -> &'a [IoSlice<'a>] {
    let mut count = 0;
    for (slice, part) in parts.iter_mut().zip(write.parts()) {
        *slice = IoSlice::new(part);
        count += 1;
    }
    parts.get(..count).unwrap_or_default()
}
