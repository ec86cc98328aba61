//! What a thread has in hand: the block it writes to, without a lock.
//!
//! The loop writes twice for each frame, and everybody else wants the block once in its life: when
//! the program panics, or the recording ends. A lock that is taken and given back around each
//! record costs more than the record: with each of these steps the processor waits until all that
//! was written before has reached the cache, a large frame among it. So a thread takes the block up
//! with the first record and lays it down before it waits, once for a burst of frames.
//!
//! It lies in a variable of the thread meanwhile: the hook of a panic runs on the thread that
//! panics, and is to find what that has in hand. A thread has one hand; who writes to several
//! recordings in turn, as a simulation does, lays down the one when it takes up the next.

use std::cell::RefCell;
use std::sync::Arc;

use crate::tap::{Current, Shared};

thread_local! {
    static HAND: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Taken up; laid down when it is dropped, and when the thread ends.
struct Held {
    shared: Arc<Shared>,
    current: Option<Box<Current>>,
}

impl Held {
    fn take_up(shared: &Arc<Shared>) -> Option<Self> {
        let current = Some(shared.take()?);
        Some(Self { shared: Arc::clone(shared), current })
    }

    fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(current) = self.current.take() {
            self.shared.put_back(current);
        }
    }
}

/// Works on what is being written, which is then in this thread's hand. `None`: another has it.
#[inline]
pub(crate) fn with<T>(shared: &Arc<Shared>, work: impl FnOnce(&mut Current) -> T) -> Option<T> {
    let worked = HAND.try_with(|hand| {
        // Borrowed by who panicked while it wrote.
        let mut hand = hand.try_borrow_mut().ok()?;
        if !hand.as_ref().is_some_and(|held| held.is_of(shared)) {
            *hand = Held::take_up(shared);
        }
        hand.as_mut()?.current.as_deref_mut().map(work)
    });
    worked.ok().flatten()
}

/// Lets others have it, if this thread has it in hand.
#[inline]
pub(crate) fn lay_down(shared: &Arc<Shared>) {
    // Where the thread is ending, it has been laid down.
    let _ = HAND.try_with(|hand| {
        if let Ok(mut hand) = hand.try_borrow_mut()
            && hand.as_ref().is_some_and(|held| held.is_of(shared))
        {
            *hand = None;
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use node_lib::Timestamp;

    use super::*;
    use crate::tap::Tap;

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
        let taps = shared.each_ref().map(|shared| Tap::new(Arc::clone(shared), 0));
        for len in 1..=3 {
            for (tap, first) in taps.iter().zip([10, 20]) {
                tap.from_radio(Timestamp::ZERO, &vec![0; first + len]);
            }
        }
        // The one that was written to last is still in hand.
        assert_eq!(lens(&shared[0]), Some(vec![11, 12, 13]));
        assert_eq!(lens(&shared[1]), None);
        lay_down(&shared[1]);
        assert_eq!(lens(&shared[1]), Some(vec![21, 22, 23]));
    }

    #[test]
    fn what_another_has_in_hand_is_not_waited_for() {
        let shared = Arc::new(Shared::new(2, 4096));
        let tap = Tap::new(Arc::clone(&shared), 0);
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
        let tap = Tap::new(Arc::clone(&shared), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| tap.from_radio(Timestamp::ZERO, &[0; 60])).join().unwrap();
            assert_eq!(lens(&shared), Some(vec![60]));
        });
    }
}
