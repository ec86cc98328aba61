//! From the packet loop into blocks: [`Tape`]. It never waits and never allocates.
//!
//! The loop writes records into a block it has to itself, and swaps the block for an empty one when
//! it is full, a second old, or of interest. Full blocks go to the writer through a queue without
//! locks; empty ones come back through another. When there is none, records are dropped and counted
//! until there is.
//!
//! The block is in the loop's hand (`hand.rs`) while it has something to do, and lies where
//! everybody finds it while it waits.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use node_lib::Timestamp;

use crate::encode::{self, OVERHEAD_MAX};
use crate::hand;
use crate::shared::{Block, Counts, Current, Shared};
pub use crate::shared::{FreezeCause, Stats};

/// A block is handed over when it is so old, by the records in it: a process that is killed loses
/// no more.
pub const BLOCK_AGE_MAX: Duration = Duration::from_secs(1);

/// Marks that wait for the loop.
const MARKS_MAX: usize = 16;

/// The longest mark, in bytes.
pub const MARK_LEN_MAX: usize = 1024;

/// The least that is kept of a client's frame: whatever a node reads of one that it passes on as it
/// came. Most of that is a neighbour advertisement with its option (RFC 4861 §4.4): 18 bytes of
/// Ethernet and VLAN tag, 40 of IPv6, 32 of its own.
pub const SNAP_MIN: u32 = 96;

/// Takes records from the packet loop.
#[derive(Debug)]
pub struct Tape {
    shared: Arc<Shared>,
    /// Of a client's frame that was only passed on.
    snap: Option<usize>,
}

/// What a thread writes with that has the block in hand.
pub(crate) struct Pen<'a> {
    shared: &'a Shared,
    current: &'a mut Current,
    now: Timestamp,
}

impl Tape {
    pub(crate) fn new(shared: Arc<Shared>, snap: u32) -> Self {
        let snap = (snap > 0).then_some(snap.max(SNAP_MIN) as usize);
        Self { shared, snap }
    }

    /// Writes what happens now. The block stays in this thread's hand until [`Tape::lay_down`].
    #[inline]
    pub(crate) fn write(&self, now: Timestamp, write: impl FnOnce(&mut Pen<'_>)) {
        self.write_behind(now, None, write);
    }

    /// The same, behind the frame that just went in. With `cut` it is as long as the first and only
    /// so much is kept as the second says.
    ///
    /// It was written whole, so that it is there should the node panic. To write it costs little
    /// as long as nobody but this processor's cache ever sees it.
    #[inline]
    pub(crate) fn write_behind(
        &self,
        now: Timestamp,
        cut: Option<(usize, usize)>,
        write: impl FnOnce(&mut Pen<'_>),
    ) {
        let shared = &*self.shared;
        let has_it = hand::with(&self.shared, |current| {
            if current.is_closed {
                return;
            }
            // Before a mark is written behind it.
            if let Some((len, kept)) = cut {
                current.cut(len, kept);
            }
            let mut pen = Pen { shared, current, now };
            if shared.has_marks.load(Ordering::Relaxed) {
                pen.marks();
            }
            write(&mut pen);
        });
        if has_it.is_none() {
            // Somebody panics, and wants the block.
            shared.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How much is kept of a client's frame that was only passed on; `None`: all.
    #[inline]
    pub(crate) fn snap(&self) -> Option<usize> {
        self.snap
    }

    /// Lets others have the block: there is nothing more to write for now.
    #[inline]
    pub(crate) fn lay_down(&self) {
        hand::lay_down(&self.shared);
    }

    /// Records a frame that came off the radio, and nothing else: what a benchmark measures.
    #[inline]
    pub fn from_radio(&self, now: Timestamp, frame: &[u8]) {
        self.write(now, |pen| pen.input(encode::kind::FROM_RADIO, frame));
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.lay_down();
    }
}

impl Pen<'_> {
    /// Appends a record that takes at most `room` bytes.
    #[inline]
    pub(crate) fn put(&mut self, room: usize, write: impl FnOnce(&mut Vec<u8>, u64)) -> bool {
        let Some((out, since)) = self.begin(room) else { return false };
        write(out, since);
        true
    }

    /// Where a record that takes at most `room` bytes is to be written, and its time. It is counted
    /// already.
    ///
    /// Frames are written with this and without a closure. One that is not inlined is a structure
    /// in memory, and to read it right after it was written the processor waits until all that was
    /// written before has reached the cache: that took more time than all else that is done here.
    #[inline]
    fn begin(&mut self, room: usize) -> Option<(&mut Vec<u8>, u64)> {
        let (now, Shared { counts, .. }) = (self.now, self.shared);
        if self.block(room + 2 * OVERHEAD_MAX).is_none() {
            self.current.lost += 1;
            counts.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let block = self.current.block.as_mut()?;
        block.records += 1;
        block.last = now;
        // Written by this thread alone.
        let records = counts.records.load(Ordering::Relaxed);
        counts.records.store(records + 1, Ordering::Relaxed);
        Some((&mut block.bytes, encode::since(block.first, now)))
    }

    /// The block, with so much room in it.
    #[inline]
    fn block(&mut self, room: usize) -> Option<&mut Block> {
        let fits = self.current.block.as_ref().is_some_and(|block| {
            block.bytes.capacity() - block.bytes.len() >= room
                && (block.records == 0 || self.now.since(block.first) < BLOCK_AGE_MAX)
        });
        if !fits {
            self.another(room)?;
        }
        let Current { block, lost, .. } = self.current;
        let block = block.as_mut()?;
        if block.records == 0 {
            block.first = self.now;
        }
        if *lost > 0 {
            encode::lost(&mut block.bytes, encode::since(block.first, self.now), *lost);
            block.records += 1;
            *lost = 0;
        }
        Some(block)
    }

    #[cold]
    fn another(&mut self, room: usize) -> Option<()> {
        self.shared.hand_over(self.current);
        if self.current.block.is_none() {
            self.current.block = Some(self.shared.empty()?);
        }
        // A frame that fits no block.
        self.current.block.as_ref().filter(|block| block.bytes.capacity() >= room).map(drop)
    }

    /// A frame that goes in.
    #[inline]
    pub(crate) fn input(&mut self, kind: u8, frame: &[u8]) {
        let is_written = self.frame(kind, frame);
        let end = self.current.block.as_ref().map_or(0, |block| block.bytes.len());
        self.current.input = is_written.then_some(end.saturating_sub(frame.len()));
        self.current.kept = usize::MAX;
    }

    /// A whole frame.
    #[inline]
    pub(crate) fn frame(&mut self, kind: u8, frame: &[u8]) -> bool {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let Some((out, since)) = self.begin(frame.len()) else { return false };
        encode::frame(out, kind, since, len, &[], frame);
        true
    }

    /// A part of the frame that went in goes out behind this header.
    #[inline]
    pub(crate) fn passed(&mut self, head: Option<&[u8]>, frame: &[u8], start: usize, end: usize) {
        use encode::kind;
        let payload = frame.get(start..end).unwrap_or_default();
        let bare = head.unwrap_or_default();
        let len = u32::try_from(bare.len() + payload.len()).unwrap_or(u32::MAX);
        // Asked for first: another block does not have the frame.
        let has_room = self.block(bare.len() + 3 * OVERHEAD_MAX).is_some();
        if has_room && self.current.input.is_some() {
            let Some((out, since)) = self.begin(bare.len()) else { return };
            match head {
                Some(head) => encode::passed_to_radio(out, since, len, head, start),
                None => encode::passed_to_tap(out, since, len, start),
            }
        } else {
            let kind = if head.is_some() { kind::TO_RADIO } else { kind::TO_TAP };
            // No more than there is of what went in: a replay has only that.
            let kept = payload.get(..self.current.kept.saturating_sub(start)).unwrap_or(payload);
            let Some((out, since)) = self.begin(bare.len() + kept.len()) else { return };
            encode::frame(out, kind, since, len, bare, kept);
        }
    }

    /// This moment is to be kept: what there is goes to the writer at once.
    pub(crate) fn freeze(&mut self, cause: FreezeCause) {
        if let Some(block) = &mut self.current.block {
            block.freeze = Some(cause);
        }
        self.shared.hand_over(self.current);
    }

    #[cold]
    fn marks(&mut self) {
        let shared = self.shared;
        // Whoever makes marks has it for a moment; then they wait for the next record.
        let Ok(mut marks) = shared.marks.try_lock() else { return };
        shared.has_marks.store(false, Ordering::Relaxed);
        while let Some(text) = marks.pop_front() {
            self.put(text.len(), |out, since| encode::mark(out, since, &text));
        }
        drop(marks);
        self.freeze(FreezeCause::Mark);
    }
}

/// For others than the packet loop: marks moments and reads the counters.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Writes this text into the recording with the next record, and has the moment kept. `false`:
    /// too many marks wait already, or the text is longer than [`MARK_LEN_MAX`].
    pub fn mark(&self, text: &str) -> bool {
        let mut marks = self.0.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() >= MARKS_MAX || text.len() > MARK_LEN_MAX {
            return false;
        }
        marks.push_back(text.to_owned());
        drop(marks);
        self.0.has_marks.store(true, Ordering::Relaxed);
        true
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.0.counts.stats()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::collections::BTreeSet;

    use super::*;
    use crate::shared::WARM;

    /// Memory that nobody has touched yet costs the loop a page fault for each page of it.
    #[test]
    fn blocks_are_used_again_before_any_that_never_were() {
        const WAITING: usize = WARM + 3;
        let shared = Shared::new(4 * WAITING, 1024);
        let mut seen = BTreeSet::new();
        for _ in 0..10 {
            let blocks: Vec<_> = (0..WAITING).filter_map(|_| shared.empty()).collect();
            seen.extend(blocks.iter().map(|block| block.bytes.as_ptr()));
            blocks.into_iter().for_each(|block| shared.give_back(block));
        }
        assert_eq!(seen.len(), WAITING, "as many as ever waited at once");
    }

    /// Lengths of the frames in what is being written.
    fn lens(shared: &Shared) -> Option<Vec<u32>> {
        let current = shared.take()?;
        let lens = current.frames();
        shared.put_back(current);
        Some(lens)
    }

    #[test]
    fn a_thread_that_writes_to_two_in_turn_mixes_nothing() {
        let shared = [(); 2].map(|()| Arc::new(Shared::new(2, 4096)));
        let taps = shared.each_ref().map(|shared| Tape::new(Arc::clone(shared), 0));
        for len in 1..=3 {
            for (tap, first) in taps.iter().zip([10, 20]) {
                tap.from_radio(Timestamp::ZERO, &vec![0; first + len]);
            }
        }
        // The one that was written to last is still in hand.
        assert_eq!(lens(&shared[0]), Some(vec![11, 12, 13]));
        assert_eq!(lens(&shared[1]), None);
        hand::lay_down(&shared[1]);
        assert_eq!(lens(&shared[1]), Some(vec![21, 22, 23]));
    }

    #[test]
    fn what_another_has_in_hand_is_not_waited_for() {
        let shared = Arc::new(Shared::new(2, 4096));
        let tap = Tape::new(Arc::clone(&shared), 0);
        tap.from_radio(Timestamp::ZERO, &[0; 60]);
        std::thread::scope(|scope| {
            scope.spawn(|| tap.from_radio(Timestamp::ZERO, &[0; 70]));
        });
        assert_eq!(shared.counts.stats().lost, 1);
        drop(tap);
        assert_eq!(lens(&shared), Some(vec![60]), "who stops recording lays it down");
    }

    #[test]
    fn a_thread_that_ends_leaves_nothing_behind() {
        let shared = Arc::new(Shared::new(2, 4096));
        let tap = Tape::new(Arc::clone(&shared), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| tap.from_radio(Timestamp::ZERO, &[0; 60])).join().unwrap();
            assert_eq!(lens(&shared), Some(vec![60]));
        });
    }
}
