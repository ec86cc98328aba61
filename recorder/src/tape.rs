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

use crate::asked::{self, Asked};
use crate::encode::{self, OVERHEAD_MAX, PassedOn};
use crate::shared::{Block, Counts, Current, Shared};
pub use crate::shared::{FreezeCause, Stats};
use crate::{hand, memory};

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
    /// So much of the frame that went in is kept.
    kept: usize,
    /// It stands in this block.
    has_input: bool,
}

impl Tape {
    pub(crate) fn new(shared: Arc<Shared>, snap: u32) -> Self {
        let snap = (snap > 0).then_some(snap.max(SNAP_MIN) as usize);
        Self { shared, snap }
    }

    /// Asks a node about a frame, which the caller writes when it has answered. If the node panics
    /// over it the hook of the panic writes it.
    #[inline]
    pub(crate) fn while_asked<T>(
        &self,
        now: Timestamp,
        kind: u8,
        frame: &[u8],
        ask: impl FnOnce() -> T,
    ) -> T {
        asked::during(&self.shared, Asked { now, kind, write: write_whole }, frame, ask)
    }

    /// Writes what happens now. The block stays in this thread's hand until [`Tape::lay_down`].
    #[inline]
    pub(crate) fn write(&self, now: Timestamp, write: impl FnOnce(&mut Pen<'_>)) {
        let shared = &*self.shared;
        let has_it = hand::with(&self.shared, |current| {
            if current.is_closed {
                return;
            }
            let mut pen = Pen { shared, current, now, kept: usize::MAX, has_input: false };
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
        self.write(now, |pen| pen.input(encode::kind::FROM_RADIO, frame, frame.len()));
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }
}

/// Writes a frame that the node did not live to answer.
fn write_whole(shared: &Arc<Shared>, now: Timestamp, kind: u8, frame: &[u8]) {
    let tape = Tape { shared: Arc::clone(shared), snap: None };
    tape.write(now, |pen| pen.input(kind, frame, frame.len()));
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
        let Some((out, since)) = self.begin(1, room) else { return false };
        write(out, since);
        true
    }

    /// Where so many records that take at most `room` bytes together are to be written, and their
    /// time. They are counted already.
    ///
    /// Frames are written with this and without a closure. One that is not inlined is a structure
    /// in memory, and to read it right after it was written the processor waits until all that was
    /// written before has reached the cache: that took more time than all else that is done here.
    #[inline]
    fn begin(&mut self, count: u32, room: usize) -> Option<(&mut Vec<u8>, u64)> {
        if !self.has_room(room) && !self.make_room(count, room) {
            return None;
        }
        let counts = &self.shared.counts;
        let block = self.current.block.as_mut()?;
        memory::fetch_ahead(&block.bytes, room, &mut block.fetched);
        block.records += count;
        block.last = self.now;
        // Written by this thread alone.
        let records = counts.records.load(Ordering::Relaxed);
        counts.records.store(records + u64::from(count), Ordering::Relaxed);
        Some((&mut block.bytes, encode::since(block.first, self.now)))
    }

    /// A record that takes at most so many bytes fits behind those that are in the block.
    #[inline]
    fn has_room(&self, room: usize) -> bool {
        let Current { block: Some(block), lost: 0, .. } = &*self.current else { return false };
        block.bytes.capacity() - block.bytes.len() >= room + 2 * OVERHEAD_MAX
            && block.records > 0
            && self.now.since(block.first) < BLOCK_AGE_MAX
    }

    /// Begins a block, unless there is one that is empty, and says in it what was lost. `false`:
    /// there is none, and so many records are lost.
    #[cold]
    fn make_room(&mut self, count: u32, room: usize) -> bool {
        let room = room + 2 * OVERHEAD_MAX;
        let Self { shared, current, now, has_input, .. } = self;
        let is_long = |block: &Block| block.bytes.capacity() - block.bytes.len() >= room;
        let is_empty = current.block.as_ref().is_some_and(|block| block.records == 0);
        // What was lost is said in the block that is there, if it has room.
        let is_young = current.block.as_ref().is_some_and(|block| {
            current.lost > 0 && is_long(block) && now.since(block.first) < BLOCK_AGE_MAX
        });
        if !is_empty && !is_young {
            *has_input = false;
            shared.hand_over(current);
        }
        if current.block.is_none() {
            current.block = shared.empty();
        }
        let Some(block) = current.block.as_mut().filter(|block| is_long(block)) else {
            // None is left, or the frame fits into no block.
            current.lost += u64::from(count);
            shared.counts.lost.fetch_add(count.into(), Ordering::Relaxed);
            return false;
        };
        if block.records == 0 {
            block.first = *now;
        }
        if current.lost > 0 {
            encode::lost(&mut block.bytes, encode::since(block.first, *now), current.lost);
            block.records += 1;
            current.lost = 0;
        }
        true
    }

    /// A frame that goes in, of which so many bytes are kept.
    #[inline]
    pub(crate) fn input(&mut self, kind: u8, frame: &[u8], kept: usize) {
        let kept = frame.get(..kept).unwrap_or(frame);
        self.kept = kept.len();
        self.has_input = self.put_frame(kind, frame.len(), &[], kept);
    }

    /// A frame that goes in, of which so many bytes are kept, and is passed on.
    #[inline]
    pub(crate) fn input_passed_on(
        &mut self,
        kind: u8,
        frame: &[u8],
        kept: usize,
        to: PassedOn<'_>,
    ) {
        let kept = frame.get(..kept).unwrap_or(frame);
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let room = kept.len() + to.head.unwrap_or_default().len();
        if let Some((out, since)) = self.begin(2, room) {
            encode::frame_passed_on(out, kind, since, (len, kept), to);
        }
    }

    /// A frame that comes out, of which so many bytes are kept.
    #[inline]
    pub(crate) fn frame(&mut self, kind: u8, frame: &[u8], kept: usize) {
        self.put_frame(kind, frame.len(), &[], frame.get(..kept).unwrap_or(frame));
    }

    /// A frame of this length, of which these two parts are kept.
    #[inline]
    fn put_frame(&mut self, kind: u8, len: usize, head: &[u8], payload: &[u8]) -> bool {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let Some((out, since)) = self.begin(1, head.len() + payload.len()) else { return false };
        encode::frame(out, kind, since, len, head, payload);
        true
    }

    /// A part of the frame that went in goes out behind this header.
    #[inline]
    pub(crate) fn passed(&mut self, head: Option<&[u8]>, frame: &[u8], start: usize, end: usize) {
        use encode::kind;
        let payload = frame.get(start..end).unwrap_or_default();
        let bare = head.unwrap_or_default();
        let len = bare.len() + payload.len();
        // Asked for first: another block does not have the frame.
        if self.has_input && self.has_room(bare.len()) {
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            let Some((out, since)) = self.begin(1, bare.len()) else { return };
            match head {
                Some(head) => encode::passed_to_radio(out, since, len, head, start),
                None => encode::passed_to_tap(out, since, len, start),
            }
        } else {
            let kind = if head.is_some() { kind::TO_RADIO } else { kind::TO_TAP };
            // No more than there is of what went in: a replay has only that.
            let kept = self.kept.saturating_sub(start);
            self.put_frame(kind, len, bare, payload.get(..kept).unwrap_or(payload));
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

    /// What refers to a frame stands in the same block; in another it is written by itself, and no
    /// more of it than there is of the frame.
    #[test]
    fn what_is_passed_on_does_not_refer_to_another_block() {
        let shared = Arc::new(Shared::new(4, 1024));
        let tap = Tape::new(Arc::clone(&shared), 0);
        let frame = [1; 600];
        tap.write(Timestamp::ZERO, |pen| {
            pen.input(encode::kind::FROM_RADIO, &frame, 200);
            pen.passed(None, &frame, 100, 600);
            pen.passed(Some(&[2; 800]), &frame, 150, 600);
        });
        hand::lay_down(&shared);
        let full = shared.next().unwrap();
        let current = shared.take().unwrap();
        let blocks = [&full, current.block.as_ref().unwrap()].map(|block| {
            let records = crate::decode::Records::new(&block.bytes, Timestamp::ZERO);
            let frame = |record: crate::record::Record<'_>| {
                record.what.frame().map(|frame| (frame.len, frame.bytes.len()))
            };
            records.map(|record| frame(record.unwrap()).unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(blocks, [vec![(600, 200), (500, 100)], vec![(1250, 850)]]);
    }

    #[test]
    fn a_frame_that_was_passed_on_is_two_records_also_where_it_is_lost() {
        let shared = Arc::new(Shared::new(2, 256));
        let tap = Tape::new(Arc::clone(&shared), 0);
        let to = PassedOn { head: None, start: 0 };
        // One fits into each of the two blocks.
        for _ in 0..3 {
            tap.write(Timestamp::ZERO, |pen| {
                pen.input_passed_on(encode::kind::FROM_TAP, &[0; 100], 100, to);
            });
        }
        let Stats { records, lost, .. } = shared.counts.stats();
        assert_eq!((records, lost), (4, 2));
        assert_eq!(shared.next().unwrap().records, 2);
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
