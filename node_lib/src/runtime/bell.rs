//! [`Bell`]: asks rarely used sources only when they have something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Remembers that one of its sources wants to be asked.
///
/// A task is polled again whenever anything of it has happened, and cannot tell what. With every frame the loop would
/// ask interfaces and signals as well, which takes longer than the frame. These get a waker of their own,
/// which rings, and wakes the task.
#[derive(Debug)]
pub(super) struct Bell {
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Debug)]
struct Inner {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Bell {
    /// A bell that has been rung: nobody has asked its sources yet.
    pub(super) fn new() -> Self {
        let inner = Arc::new(Inner { rung: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { waker: Waker::from(Arc::clone(&inner)), inner }
    }

    /// The context to ask the sources with, if one of them may have something. To be called whenever the task is
    /// polled: it is the task that gets woken.
    pub(super) fn rung(&self, cx: &Context<'_>) -> Option<Context<'_>> {
        // First of all, so that a source that rings right now wakes somebody.
        self.inner.task.register(cx.waker());
        let rung = self.inner.rung.load(Ordering::Acquire)
            && self.inner.rung.swap(false, Ordering::AcqRel);
        rung.then(|| Context::from_waker(&self.waker))
    }

    /// A source may have more: it is to be asked at the next turn.
    pub(super) fn ring(&self) {
        self.waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn rings_once_at_first_and_then_when_a_source_wakes_it() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        let bell = Bell::new();
        let source = bell.rung(&cx).expect("nobody asked yet").waker().clone();
        assert!(bell.rung(&cx).is_none());
        source.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "the task is woken");
        assert!(bell.rung(&cx).is_some());
        assert!(bell.rung(&cx).is_none());
        bell.ring();
        assert!(bell.rung(&cx).is_some());
    }
}
