//! Buffers that are used again: a free list per thread, in three classes.
//!
//! | class | for |
//! |------:|-----|
//! | 256   | control messages, small client frames (most of them acknowledgements) |
//! | 512   | announcements of a few dozen clients, most voice and CAM/DENM frames |
//! | 1500  | everything else up to the usual MTU |
//!
//! ```
//! use node_lib::buffer_pool::{get_buffer, return_buffer, stats};
//!
//! let mut buf = get_buffer(300);
//! assert!(buf.is_empty() && buf.capacity() >= 512, "of the smallest class with room");
//! buf.extend_from_slice(b"a frame");
//! return_buffer(buf);
//! let again = get_buffer(400);
//! assert!(again.is_empty(), "what was in it is forgotten");
//! assert_eq!((stats().misses, stats().hits), (1, 1), "allocated once, used twice");
//! ```
//!
//! [`get_buffer`] takes from the smallest class that has room, or allocates; [`return_buffer`] puts
//! back. A buffer is always handed out empty, and never with less capacity than was asked for. The
//! largest class is named after the MTU; its buffers have room for the headers in front as well
//! ([`FRAME_CAPACITY`]), because a full frame is the most frequent size on a busy radio. Beyond
//! that (a jumbo frame) a returned buffer that happens to be large enough is taken, otherwise
//! exactly as much as asked is allocated.
//!
//! A returned buffer is judged by what it is now, not by where it came from: it may have grown, or
//! lost its front to `advance`, or part of itself to `split`. It goes to the largest class it
//! satisfies; below 256 or above [`CAPACITY_MAX`] it goes back to the allocator, and so it does
//! when its class already holds [`KEPT_MAX`].
//!
//! There is no lock, because there is no sharing: the list belongs to the thread. A buffer may be
//! returned on another thread than it was taken from, and then is that thread's. A program that
//! always takes on one thread and returns on the other gets no reuse (every take allocates, every
//! return beyond [`KEPT_MAX`] is dropped), but no leak either.
//!
//! One thing cannot be seen from here: a part split off a larger buffer that is still in use
//! elsewhere keeps all of that buffer alive while it waits in the list. Return the whole, or drop
//! the parts.

use std::cell::RefCell;

use bytes::BytesMut;

/// The classes, in ascending order.
pub const CLASSES: [usize; 3] = [SMALL, MEDIUM, LARGE];

const SMALL: usize = 256;
const MEDIUM: usize = 512;
const LARGE: usize = 1500;

/// What a buffer of the largest class is allocated with: 1500 MTU + 14 Ethernet header + 22 data
/// header.
pub const FRAME_CAPACITY: usize = LARGE + 14 + 22;

/// Buffers kept in each class: one burst of the packet loop, 64 frames.
///
/// Per thread that is 64 × (256 + 512 + 1536) = 147 456 bytes of buffers that were not changed, and
/// at most 64 × (511 + 1499 + 3072) = 325 248 of such as grew.
pub const KEPT_MAX: usize = 64;

/// A buffer with more than this is not kept: the largest class, grown once.
pub const CAPACITY_MAX: usize = 2 * FRAME_CAPACITY;

/// What the pool of this thread did since the thread began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// Buffers taken from the list.
    pub hits: u64,
    /// Buffers that had to be allocated.
    pub misses: u64,
    /// Buffers put into the list.
    pub returned: u64,
    /// Buffers given back to the allocator: too small, too large, or one too many.
    pub dropped: u64,
}

/// An empty buffer with room for at least `size_hint` bytes.
pub fn get_buffer(size_hint: usize) -> BytesMut {
    // The list is gone while the thread ends; then there is only the allocator.
    POOL.try_with(|pool| pool.borrow_mut().take(size_hint))
        .unwrap_or_else(|_| BytesMut::with_capacity(size_hint))
}

/// Puts a buffer back for the next [`get_buffer`] on this thread. What is in it is forgotten.
pub fn return_buffer(buf: BytesMut) {
    // Nothing to do about an error: the thread ends, and the buffer with it.
    let _ = POOL.try_with(|pool| pool.borrow_mut().give(buf));
}

/// What the pool of this thread did so far.
pub fn stats() -> PoolStats {
    POOL.try_with(|pool| pool.borrow().stats).unwrap_or_default()
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool::new()) };
}

/// Free lists, last in first out: the buffer used last is the one still in the cache.
struct Pool {
    small: Vec<BytesMut>,
    medium: Vec<BytesMut>,
    large: Vec<BytesMut>,
    stats: PoolStats,
}

impl Pool {
    const fn new() -> Self {
        Self {
            small: Vec::new(),
            medium: Vec::new(),
            large: Vec::new(),
            stats: PoolStats { hits: 0, misses: 0, returned: 0, dropped: 0 },
        }
    }

    fn take(&mut self, size_hint: usize) -> BytesMut {
        let (found, capacity) = if size_hint <= SMALL {
            (self.small.pop(), SMALL)
        } else if size_hint <= MEDIUM {
            (self.medium.pop(), MEDIUM)
        } else if size_hint <= LARGE {
            (self.large.pop(), FRAME_CAPACITY)
        } else {
            // The newest that is large enough; at most `KEPT_MAX` are looked at.
            let fits = self.large.iter().rposition(|kept| kept.capacity() >= size_hint);
            (fits.map(|index| self.large.swap_remove(index)), size_hint.max(FRAME_CAPACITY))
        };
        if let Some(kept) = found {
            self.stats.hits += 1;
            kept
        } else {
            self.stats.misses += 1;
            BytesMut::with_capacity(capacity)
        }
    }

    fn give(&mut self, mut buf: BytesMut) {
        buf.clear();
        // `capacity` tells what is left behind the read position. `try_reclaim` moves that position
        // back if nobody else holds a part, and says how much there really is; it never allocates.
        let unchanged = [SMALL, MEDIUM, FRAME_CAPACITY].contains(&buf.capacity());
        if !buf.try_reclaim(CAPACITY_MAX + 1) && !unchanged {
            for class in [FRAME_CAPACITY, LARGE, MEDIUM, SMALL] {
                if buf.try_reclaim(class) {
                    break;
                }
            }
        }
        let list = match buf.capacity() {
            SMALL..MEDIUM => &mut self.small,
            MEDIUM..LARGE => &mut self.medium,
            LARGE..=CAPACITY_MAX => &mut self.large,
            _ => {
                self.stats.dropped += 1;
                return;
            }
        };
        if list.len() < KEPT_MAX {
            self.stats.returned += 1;
            list.push(buf);
        } else {
            self.stats.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{Buf, BufMut};
    use proptest::prelude::*;

    /// Each test starts with an empty pool, whatever ran on its thread before.
    fn on_a_fresh_thread<T: Send>(test: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap())
    }

    fn kept() -> [usize; 3] {
        POOL.with_borrow(|pool| [pool.small.len(), pool.medium.len(), pool.large.len()])
    }

    #[test]
    fn hands_out_the_smallest_class_with_room() {
        on_a_fresh_thread(|| {
            for (hint, capacity) in
                [(0, 256), (256, 256), (257, 512), (512, 512), (513, 1536), (1500, 1536)]
            {
                assert_eq!(get_buffer(hint).capacity(), capacity);
            }
            assert!(get_buffer(1537).capacity() >= 1537);
            assert!(get_buffer(100_000).capacity() >= 100_000);
        });
    }

    #[test]
    fn hands_the_same_buffer_out_again_and_empty() {
        on_a_fresh_thread(|| {
            let mut first = get_buffer(1000);
            first.put_slice(&[7; 1000]);
            let address = first.as_ptr();
            return_buffer(first);
            let second = get_buffer(600);
            assert_eq!(second.as_ptr(), address);
            assert!(second.is_empty());
            assert_eq!(stats(), PoolStats { hits: 1, misses: 1, returned: 1, dropped: 0 });
        });
    }

    #[test]
    fn a_full_frame_is_reused_too() {
        on_a_fresh_thread(|| {
            return_buffer(get_buffer(1500));
            return_buffer(get_buffer(1514));
            return_buffer(get_buffer(FRAME_CAPACITY));
            assert_eq!(stats(), PoolStats { hits: 2, misses: 1, returned: 3, dropped: 0 });
        });
    }

    #[test]
    fn a_jumbo_frame_finds_a_buffer_that_grew() {
        on_a_fresh_thread(|| {
            return_buffer(get_buffer(2000));
            return_buffer(get_buffer(3000));
            assert_eq!(stats().misses, 2, "2000 bytes are not enough for 3000");
            return_buffer(get_buffer(1500));
            assert!(get_buffer(2900).capacity() >= 2900);
            assert!(get_buffer(1900).capacity() >= 1900);
            assert_eq!(stats().misses, 2);
        });
    }

    #[test]
    fn a_buffer_that_was_read_from_gets_its_front_back() {
        on_a_fresh_thread(|| {
            let mut buf = get_buffer(512);
            buf.put_slice(&[7; 512]);
            buf.advance(500);
            assert!(buf.capacity() < 256);
            return_buffer(buf);
            assert_eq!(kept(), [0, 1, 0]);
            assert_eq!(get_buffer(512).capacity(), 512);
        });
    }

    #[test]
    fn a_buffer_that_lost_a_part_counts_for_what_it_has() {
        on_a_fresh_thread(|| {
            let mut buf = get_buffer(1500);
            buf.put_slice(&[7; 1200]);
            let part = buf.split_to(1200);
            return_buffer(buf);
            assert_eq!(kept(), [1, 0, 0], "336 bytes are left of 1536");
            // Its other part is still in the list, so this one has 1200.
            return_buffer(part);
            assert_eq!(kept(), [1, 1, 0]);
            assert!(get_buffer(512).capacity() >= 512);
            assert!(get_buffer(256).capacity() >= 256);
        });
    }

    #[test]
    fn a_buffer_whose_other_part_is_gone_is_whole_again() {
        on_a_fresh_thread(|| {
            let mut buf = get_buffer(1500);
            buf.put_slice(&[7; 1400]);
            drop(buf.split().freeze());
            return_buffer(buf);
            assert_eq!(kept(), [0, 0, 1]);
        });
    }

    #[test]
    fn keeps_neither_scraps_nor_giants() {
        on_a_fresh_thread(|| {
            return_buffer(BytesMut::with_capacity(255));
            return_buffer(BytesMut::new());
            return_buffer(BytesMut::with_capacity(CAPACITY_MAX + 1));
            // A giant of which one byte looks like a small buffer is still a giant.
            let mut giant = BytesMut::zeroed(100_000);
            giant.advance(99_700);
            return_buffer(giant);
            assert_eq!(kept(), [0; 3]);
            assert_eq!(stats().dropped, 4);
        });
    }

    #[test]
    fn keeps_no_more_than_its_bound() {
        on_a_fresh_thread(|| {
            for class in CLASSES {
                let many: Vec<_> = (0..KEPT_MAX + 5).map(|_| get_buffer(class)).collect();
                many.into_iter().for_each(return_buffer);
            }
            assert_eq!(kept(), [KEPT_MAX; 3]);
            assert_eq!(stats().dropped, 15);
        });
    }

    #[test]
    fn a_buffer_returned_elsewhere_belongs_to_the_other_thread() {
        on_a_fresh_thread(|| {
            let mut buf = get_buffer(512);
            buf.put_slice(b"from afar");
            let address = buf.as_ptr().addr();
            on_a_fresh_thread(move || {
                return_buffer(buf);
                let again = get_buffer(512);
                assert_eq!(again.as_ptr().addr(), address);
                assert!(again.is_empty());
                return_buffer(again);
            });
            assert_eq!(stats(), PoolStats { hits: 0, misses: 1, returned: 0, dropped: 0 });
        });
    }

    #[test]
    fn a_buffer_kept_by_another_thread_local_may_come_back_while_the_thread_ends() {
        struct Late(Option<BytesMut>);
        impl Drop for Late {
            fn drop(&mut self) {
                self.0.take().into_iter().for_each(return_buffer);
                assert!(get_buffer(10).capacity() >= 10);
            }
        }
        thread_local!(static LATE: RefCell<Late> = const { RefCell::new(Late(None)) });
        on_a_fresh_thread(|| {
            // Destructors run in the order of first use or against it; either way nothing panics.
            LATE.with_borrow_mut(|late| late.0 = Some(get_buffer(10)));
        });
    }

    #[derive(Clone, Debug)]
    enum Step {
        Get(usize),
        Write(usize, usize),
        Advance(usize, usize),
        Split(usize, usize),
        Return(usize),
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let size = prop_oneof![0..4000_usize, Just(256), Just(512), Just(1500), Just(1501)];
        prop_oneof![
            3 => size.clone().prop_map(Step::Get),
            1 => (any::<usize>(), size.clone()).prop_map(|(which, len)| Step::Write(which, len)),
            1 => (any::<usize>(), size.clone()).prop_map(|(which, len)| Step::Advance(which, len)),
            1 => (any::<usize>(), size).prop_map(|(which, len)| Step::Split(which, len)),
            3 => any::<usize>().prop_map(Step::Return),
            1 => any::<usize>().prop_map(Step::Drop),
        ]
    }

    proptest! {
        #[test]
        fn keeps_its_promise_whatever_is_done_to_the_buffers(
            steps in prop::collection::vec(step(), 0..200),
        ) {
            on_a_fresh_thread(|| {
                let mut held: Vec<BytesMut> = Vec::new();
                for step in steps {
                    let count = held.len();
                    match step {
                        Step::Get(hint) => {
                            let buf = get_buffer(hint);
                            assert!(buf.is_empty());
                            assert!(buf.capacity() >= hint, "{} for {hint}", buf.capacity());
                            held.push(buf);
                        }
                        _ if count == 0 => {}
                        Step::Write(which, len) => held[which % count].put_bytes(7, len),
                        Step::Advance(which, len) => {
                            let buf = &mut held[which % count];
                            buf.advance(len.min(buf.len()));
                        }
                        Step::Split(which, at) => {
                            let buf = &mut held[which % count];
                            let part = buf.split_to(at.min(buf.len()));
                            held.push(part);
                        }
                        Step::Return(which) => return_buffer(held.swap_remove(which % count)),
                        Step::Drop(which) => drop(held.swap_remove(which % count)),
                    }
                    assert!(kept().into_iter().all(|count| count <= KEPT_MAX));
                }
                // Two buffers never share bytes: fill all of them, then look.
                for (mark, buf) in (0_u8..).zip(&mut held) {
                    let len = buf.len();
                    buf.clear();
                    buf.put_bytes(mark, len);
                }
                for (mark, buf) in (0_u8..).zip(&held) {
                    assert!(buf.iter().all(|&byte| byte == mark));
                }
            });
        }
    }
}
