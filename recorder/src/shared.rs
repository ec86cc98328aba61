//! What the packet loop and the writer share: [`Shared`], blocks on their way to disk, empty ones
//! on their way back, and what was counted.
//!
//! Both ways are queues without locks. There is one block that is being written, and who wants to
//! write to it takes it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use node_lib::Timestamp;

/// Blocks that are used again first, because a processor's cache may still hold them.
pub(crate) const WARM: usize = 4;

/// Why the moment is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeCause {
    /// The node left its upstream or its RSU.
    FailOver,
    /// Somebody said so.
    Mark,
    /// The program panicked.
    Panic,
}

impl FreezeCause {
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
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// So many bytes of it have been asked for ([`crate::memory::fetch_ahead`]).
    pub(crate) fetched: usize,
    pub(crate) records: u32,
    pub(crate) sequence: u64,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) freeze: Option<FreezeCause>,
}

impl Block {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
            fetched: 0,
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
    pub(crate) has_marks: AtomicBool,
    pub(crate) marks: Mutex<VecDeque<String>>,
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
    pub(crate) block: Option<Block>,
    pub(crate) sequence: u64,
    /// Records dropped since the last that was not.
    pub(crate) lost: u64,
    /// Nobody will write any more.
    pub(crate) is_closed: bool,
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
        let first = Current { block: None, sequence: 0, lost: 0, is_closed: false };
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

    /// An empty block; `None` where there is none, unless a simulation has the time to wait.
    pub(crate) fn empty(&self) -> Option<Block> {
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
        block.fetched = 0;
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

    /// What was written goes to the writer.
    pub(crate) fn hand_over(&self, current: &mut Current) {
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

    /// There is something for the writer.
    pub(crate) fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Hands over what there is, for good; after a panic or at the end. Gives up when somebody has
    /// it in hand and does not lay it down.
    pub(crate) fn close(&self, freeze: Option<FreezeCause>) {
        const TRIES: u32 = 50;
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
