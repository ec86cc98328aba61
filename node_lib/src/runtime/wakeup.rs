//! [`Wakeup`]: asks rarely used sources only when they have something.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::device::EventFd;

/// Remembers that one of its sources wants to be asked, and can be waited for like a frame.
///
/// Interfaces and signals are watched by tokio, on a thread of its own: for what comes once in a
/// while its tasks and wakers are the simplest. Their wakers raise it.
#[derive(Debug)]
pub(super) struct Wakeup {
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Debug)]
struct Inner {
    raised: AtomicBool,
    event: EventFd,
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.event.raise();
        }
    }
}

impl Wakeup {
    /// Raised: nobody has asked its sources yet.
    pub(super) fn new() -> io::Result<Self> {
        let inner = Arc::new(Inner { raised: AtomicBool::new(true), event: EventFd::new()? });
        Ok(Self { waker: Waker::from(Arc::clone(&inner)), inner })
    }

    /// Becomes readable, or more so, whenever it is raised after an answer. Nobody reads it.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.inner.event.as_fd()
    }

    /// One of the sources may have something.
    pub(super) fn is_raised(&self) -> bool {
        self.inner.raised.load(Ordering::Acquire)
    }

    /// Asks the sources, if one of them may have something.
    pub(super) fn answer<T>(&self, ask: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        if !self.is_raised() {
            return None;
        }
        // Before they are asked, so that a source that raises it right now is heard the next time.
        self.inner.raised.store(false, Ordering::Release);
        // What tokio watches answers a task 128 times, and then only wakes it, until the task has
        // returned to its executor (tokio::task::coop). The loop never returns.
        let mut ask = Some(ask);
        let asked = poll_fn(|cx| ask.take().map_or(Poll::Pending, |ask| Poll::Ready(ask(cx))));
        let asked = pin!(tokio::task::unconstrained(asked));
        match asked.poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    /// A source may have more: it is to be asked at the next turn.
    pub(super) fn raise(&self) {
        self.waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_raised_at_first_and_then_when_a_source_wakes_it() {
        let wakeup = Wakeup::new().unwrap();
        let source = wakeup.answer(|cx| cx.waker().clone()).expect("nobody asked yet");
        assert_eq!(wakeup.answer(|_| ()), None);
        assert_eq!(wakeup.inner.event.clear(), 0);
        source.wake_by_ref();
        source.wake_by_ref();
        assert!(wakeup.is_raised());
        assert_eq!(wakeup.inner.event.clear(), 1, "whoever waits is woken");
        assert_eq!(wakeup.answer(|_| 1), Some(1));
        assert_eq!(wakeup.answer(|_| 2), None);
        wakeup.raise();
        assert_eq!(wakeup.answer(|_| 3), Some(3));
        assert_eq!(wakeup.inner.event.clear(), 1);
    }
}
