//! An allocator that counts, for benches and examples that promise something about allocations.
//!
//! It counts only inside [`count`]. Outside, an allocation costs one load and one predicted branch
//! more than the system allocator, so that timed code is hardly changed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ON: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

struct Counting;

impl Counting {
    #[inline]
    fn note(bytes: usize) {
        if ON.load(Relaxed) {
            ALLOCATIONS.fetch_add(1, Relaxed);
            BYTES.fetch_add(bytes as u64, Relaxed);
        }
    }
}

// SAFETY: every call goes to `System` unchanged, which keeps the contract; counting does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller's promises are those of `System::alloc`.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: `address` came from `System` through this allocator, with this layout.
        unsafe { System.dealloc(address, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller's promises are those of `System::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note(size);
        // SAFETY: `address` came from `System` through this allocator, with this layout.
        unsafe { System.realloc(address, layout, size) }
    }
}

/// What was asked of the allocator; a reallocation counts as an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

/// Runs `work` and counts what it asks of the allocator. Threads running beside it are counted too.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, Counted) {
    let before = start();
    let result = work();
    (result, stop(before))
}

/// Counts from now on; what has been counted so far is for [`stop`].
pub(crate) fn start() -> Counted {
    let before = so_far();
    ON.store(true, Relaxed);
    before
}

/// Counts no more, and says what was counted since `before`.
pub(crate) fn stop(before: Counted) -> Counted {
    ON.store(false, Relaxed);
    let now = so_far();
    Counted { allocations: now.allocations - before.allocations, bytes: now.bytes - before.bytes }
}

fn so_far() -> Counted {
    Counted { allocations: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed) }
}
