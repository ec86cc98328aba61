//! What a thread has in hand: the block it writes to, without a lock.
//!
//! The loop writes for each frame, and everybody else wants the block once in its life: when
//! the program panics, or the recording ends. A lock that is taken and given back around each
//! record costs more than the record. With each of these steps the processor waits until all that
//! was written before has reached the cache, a large frame among it. So a thread takes the block up
//! with the first record and lays it down before it waits, once for a burst of frames.
//!
//! It lies in a variable of the thread meanwhile: the hook of a panic runs on the thread that
//! panics, and is to find what that has in hand. A thread has one hand; who writes to several
//! recordings in turn, as a simulation does, lays down the one when it takes up the next.

use std::cell::RefCell;
use std::sync::Arc;

use crate::shared::{Current, Shared};

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
