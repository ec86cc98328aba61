//! From the packet loop into blocks: [`Tap`]. It never waits and never allocates.
//!
//! The loop writes records into a block it has to itself, and swaps the block for an empty one when
//! it is full, a second old, or of interest. Full blocks go to the writer through a queue without
//! locks; empty ones come back through another. When there is none, records are dropped and counted
//! until there is.
//!
//! The block is in the loop's [hand](crate::hand) while it has something to do, and lies where
//! everybody finds it while it waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use node_lib::Timestamp;

use crate::encode::{self, OVERHEAD_MAX};
use crate::hand;

/// A block is handed over when it is so old, by the records in it: a process that is killed loses
/// no more.
pub const BLOCK_AGE_MAX: Duration = Duration::from_secs(1);

/// Blocks that are used again first, because a processor's cache may still hold them.
const WARM: usize = 4;

/// Marks that wait for the loop.
const MARKS_MAX: usize = 16;

/// The longest mark, in bytes.
pub const MARK_LEN_MAX: usize = 1024;

/// Why the moment is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The node left its upstream or its RSU.
    FailOver,
    /// Somebody said so.
    Mark,
    /// The program panicked.
    Panic,
}

impl Cause {
    /// As names of directories have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailOver => "fail-over",
            Self::Mark => "mark",
            Self::Panic => "panic",
        }
    }
}

/// Records on their way to disk.
#[derive(Debug)]
pub struct Block {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u32,
    pub(crate) sequence: u64,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) freeze: Option<Cause>,
}

impl Block {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
            records: 0,
            sequence: 0,
            first: Timestamp::ZERO,
            last: Timestamp::ZERO,
            freeze: None,
        }
    }
}

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What was counted since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// Name and value of each counter, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            pub(crate) fn stats(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

stats! {
    /// Records written into blocks.
    records,
    /// Records dropped: no block was free, because the disk is slower than the traffic.
    lost,
    /// Blocks on disk.
    blocks,
    /// Bytes on disk.
    bytes,
    /// Records dropped: their block could not be written.
    lost_on_disk,
    /// Attempts to write that failed.
    write_errors,
    /// Files removed because the ring was full or they were too old.
    files_removed,
    /// Moments kept.
    frozen,
    /// Events dropped because nobody read them.
    events_lost,
}

/// What loop and writer share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// One, or none: then somebody has it in hand.
    current: ArrayQueue<Box<Current>>,
    full: ArrayQueue<Block>,
    /// Empty blocks, to be used in this order: those that a cache may still hold, those whose
    /// memory has been touched, and the others.
    warm: ArrayQueue<Block>,
    used: ArrayQueue<Block>,
    fresh: ArrayQueue<Block>,
    pub(crate) writer: OnceLock<Thread>,
    pub(crate) counts: Counts,
    /// There are marks.
    has_marks: AtomicBool,
    marks: Mutex<VecDeque<String>>,
    /// The writer is to write what there is and to end.
    pub(crate) closing: AtomicBool,
    /// Whoever records waits for the disk: a simulation has the time.
    pub(crate) is_patient: AtomicBool,
    /// The writer has ended.
    pub(crate) is_closed: AtomicBool,
}

/// What is being written.
#[derive(Debug)]
pub(crate) struct Current {
    block: Option<Block>,
    sequence: u64,
    /// Records dropped since the last that was not.
    lost: u64,
    /// The last frame that went in is in this block.
    has_input: bool,
    /// Nobody will write any more.
    is_closed: bool,
}

#[cfg(test)]
impl Current {
    /// Lengths of the frames in it.
    pub(crate) fn frames(&self) -> Vec<u32> {
        let bytes = self.block.as_ref().map_or(&[][..], |block| &block.bytes);
        let records = crate::decode::Records::new(bytes, Timestamp::ZERO).flatten();
        records.filter_map(|record| Some(record.what.frame()?.len)).collect()
    }
}

impl Shared {
    /// With so many blocks of this size.
    pub(crate) fn new(blocks: usize, block_len: usize) -> Self {
        let blocks = blocks.max(2);
        let fresh = ArrayQueue::new(blocks);
        for _ in 0..blocks {
            // There is room for all of them.
            let _ = fresh.push(Block::with_capacity(block_len));
        }
        let current = ArrayQueue::new(1);
        let first =
            Current { block: None, sequence: 0, lost: 0, has_input: false, is_closed: false };
        // There is room for it.
        let _ = current.push(Box::new(first));
        Self {
            current,
            full: ArrayQueue::new(blocks),
            warm: ArrayQueue::new(WARM),
            used: ArrayQueue::new(blocks),
            fresh,
            writer: OnceLock::new(),
            counts: Counts::default(),
            has_marks: AtomicBool::new(false),
            marks: Mutex::default(),
            closing: AtomicBool::new(false),
            is_patient: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    /// What is being written, unless somebody has it.
    pub(crate) fn take(&self) -> Option<Box<Current>> {
        self.current.pop()
    }

    /// Puts back what was taken.
    pub(crate) fn put_back(&self, current: Box<Current>) {
        // There is room for it.
        let _ = self.current.push(current);
    }

    fn empty(&self) -> Option<Block> {
        loop {
            let block = self.warm.pop().or_else(|| self.used.pop()).or_else(|| self.fresh.pop());
            if block.is_some() || !self.is_patient.load(Ordering::Relaxed) {
                return block;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Takes a block back.
    pub(crate) fn give_back(&self, mut block: Block) {
        block.bytes.clear();
        block.records = 0;
        block.freeze = None;
        if let Err(block) = self.warm.push(block) {
            // There is room for all of them.
            let _ = self.used.push(block);
        }
    }

    /// The oldest block that is to be written.
    pub(crate) fn next(&self) -> Option<Block> {
        self.full.pop()
    }

    fn hand_over(&self, current: &mut Current) {
        current.has_input = false;
        let Some(mut block) = current.block.take() else { return };
        if block.records == 0 {
            current.block = Some(block);
            return;
        }
        block.sequence = current.sequence;
        current.sequence += 1;
        // There is room for all of them.
        let _ = self.full.push(block);
        self.wake();
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Hands over what there is, for good; after a panic or at the end. Gives up when another
    /// thread does not let go of it.
    pub(crate) fn close(self: &Arc<Self>, freeze: Option<Cause>) {
        const TRIES: u32 = 50;
        hand::lay_down(self);
        for _ in 0..TRIES {
            if let Some(mut current) = self.take() {
                if let Some(block) = &mut current.block {
                    block.freeze = freeze.or(block.freeze);
                }
                self.hand_over(&mut current);
                current.is_closed = true;
                self.put_back(current);
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.closing.store(true, Ordering::Release);
        self.wake();
    }
}

/// Takes records from the packet loop.
#[derive(Debug)]
pub struct Tap {
    shared: Arc<Shared>,
    snap: usize,
}

/// What a thread writes with that has the block in hand.
pub(crate) struct Pen<'a> {
    shared: &'a Shared,
    current: &'a mut Current,
    now: Timestamp,
    snap: usize,
}

impl Tap {
    pub(crate) fn new(shared: Arc<Shared>, snap: u32) -> Self {
        let snap = if snap == 0 { usize::MAX } else { snap as usize };
        Self { shared, snap }
    }

    /// Writes what happens now. The block stays in this thread's hand until [`Tap::lay_down`].
    #[inline]
    pub(crate) fn write(&self, now: Timestamp, write: impl FnOnce(&mut Pen<'_>)) {
        let shared = &*self.shared;
        let has_it = hand::with(&self.shared, |current| {
            if current.is_closed {
                return;
            }
            let mut pen = Pen { shared, current, now, snap: self.snap };
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

impl Drop for Tap {
    fn drop(&mut self) {
        self.lay_down();
    }
}

impl Pen<'_> {
    /// Appends a record that takes at most `room` bytes.
    #[inline]
    pub(crate) fn put(&mut self, room: usize, write: impl FnOnce(&mut Vec<u8>, u64)) -> bool {
        let now = self.now;
        let Some(block) = self.block(room + 2 * OVERHEAD_MAX) else {
            self.current.lost += 1;
            self.shared.counts.lost.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let since = encode::since(block.first, now);
        write(&mut block.bytes, since);
        block.records += 1;
        block.last = now;
        // Written by this thread alone.
        let counted = &self.shared.counts.records;
        counted.store(counted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        true
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
        let written = self.frame(kind, &[], frame);
        self.current.has_input = written;
    }

    /// A frame in two parts.
    #[inline]
    pub(crate) fn frame(&mut self, kind: u8, head: &[u8], payload: &[u8]) -> bool {
        let len = u32::try_from(head.len() + payload.len()).unwrap_or(u32::MAX);
        let head = head.get(..self.snap).unwrap_or(head);
        let payload = payload.get(..self.snap - head.len()).unwrap_or(payload);
        self.put(head.len() + payload.len(), |out, since| {
            encode::frame(out, kind, since, len, head, payload);
        })
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
        if has_room && self.current.has_input {
            self.put(bare.len(), |out, since| match head {
                Some(head) => encode::passed_to_radio(out, since, len, head, start),
                None => encode::passed_to_tap(out, since, len, start),
            });
        } else {
            let kind = if head.is_some() { kind::TO_RADIO } else { kind::TO_TAP };
            self.frame(kind, bare, payload);
        }
    }

    /// This moment is to be kept: what there is goes to the writer at once.
    pub(crate) fn freeze(&mut self, cause: Cause) {
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
        self.freeze(Cause::Mark);
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
    use std::collections::BTreeSet;

    use super::*;

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
}
