//! What a TAP with vnet headers does that a plain one does not: a read may bring a super-frame, a
//! write may hand one over. How they are split and joined is in [`crate::offload`].
//!
//! One `readv` brings the vnet header, as much of the frame as fits into the slot of the burst, and the
//! rest behind it. So an ordinary frame lands where it is wanted, and only the head of a super-frame
//! is moved once. What a full burst leaves of a super-frame comes with the next.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};

use tracing::trace;

use super::{Burst, Counters};
use crate::offload::join::PARTS_MAX;
use crate::offload::{self, Gso, Joiner, Malformed, Segments, VnetHeader, vnet};

/// Bytes of a super-frame, at most: an IP packet behind an Ethernet header with two tags.
const FRAME_MAX: usize = 14 + 2 * 4 + 65_535;

/// Memory and unfinished work of one TAP.
#[derive(Debug)]
pub(super) struct Offload {
    joiner: Joiner,
    vnet: [u8; vnet::LEN],
    /// A super-frame: the first bytes moved here from the slot, the rest read here.
    frame: Vec<u8>,
    frame_len: usize,
    /// What was not yet cut off it.
    left: Option<Segments>,
}

impl Offload {
    pub(super) fn boxed() -> Option<Box<Self>> {
        let (joiner, vnet) = (Joiner::new(), [0; vnet::LEN]);
        Some(Box::new(Self { joiner, vnet, frame: Vec::new(), frame_len: 0, left: None }))
    }

    /// Reads one frame or super-frame. Returns its length, of which up to that of `slot` is there.
    pub(super) fn read(&mut self, mut file: &File, slot: &mut [u8]) -> io::Result<usize> {
        // One byte more: what fills it all is too long.
        if self.frame.len() <= slot.len() + FRAME_MAX {
            self.frame.resize(slot.len() + FRAME_MAX + 1, 0);
        }
        let rest = self.frame.get_mut(slot.len()..).unwrap_or_default();
        let mut parts =
            [IoSliceMut::new(&mut self.vnet), IoSliceMut::new(slot), IoSliceMut::new(rest)];
        let len = file.read_vectored(&mut parts)?;
        len.checked_sub(vnet::LEN).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Puts what was just read, `len` bytes of it, into `burst`, as far as there is room.
    pub(super) fn take(&mut self, len: usize, burst: &mut Burst, counters: &mut Counters) {
        match self.open(len, burst, counters) {
            Ok(()) => {}
            Err(Malformed::Slot { .. }) => counters.rx_oversize += 1,
            Err(error) => {
                counters.rx_malformed += 1;
                trace!(%error, "frame of the host is malformed");
            }
        }
    }

    fn open(
        &mut self,
        len: usize,
        burst: &mut Burst,
        counters: &mut Counters,
    ) -> Result<(), Malformed> {
        let vnet = VnetHeader::parse(self.vnet)?;
        let Some(slot) = burst.vacant() else { return Ok(()) };
        let have = slot.len();
        if vnet.gso == Gso::None {
            // One that fills the slot may have been longer.
            let frame = slot.get_mut(..len).filter(|_| len < have);
            offload::complete(&vnet, frame.ok_or(Malformed::Slot { need: len, have })?)?;
            counters.count_rx(len);
            burst.commit(len);
            return Ok(());
        }
        let frame = self.frame.get_mut(..len).ok_or(Malformed::IpLength)?;
        let head = have.min(len);
        if let (Some(to), Some(from)) = (frame.get_mut(..head), slot.get(..head)) {
            to.copy_from_slice(from);
        }
        self.left = Some(Segments::plan(&vnet, frame)?);
        self.frame_len = len;
        counters.rx_super_frames += 1;
        self.go_on(burst, counters);
        Ok(())
    }

    /// Cuts segments off the super-frame at hand until `burst` is full or nothing is left.
    pub(super) fn go_on(&mut self, burst: &mut Burst, counters: &mut Counters) {
        let Some(segments) = &mut self.left else { return };
        let frame = self.frame.get(..self.frame_len).unwrap_or_default();
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

    /// The writes that hand `frames` over.
    pub(super) fn join<'a, F: AsRef<[u8]>>(
        &'a mut self,
        frames: &'a [F],
    ) -> impl Iterator<Item = offload::Write<'a, F>> {
        self.joiner.join(frames)
    }
}

/// The parts of a write as the kernel takes them.
pub(super) fn gather<'a, F: AsRef<[u8]>>(
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
