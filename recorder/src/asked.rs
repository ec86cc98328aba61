//! The frame a node is just being asked about.
//!
//! A frame is written when the node has answered. How much of it is to be kept is known only then,
//! and with what came out it is written in one go. If the node panics over it, the hook of the
//! panic, which runs on the thread that panics, finds it here and writes it. Without a hook it is
//! written as the stack unwinds.

use std::cell::Cell;
use std::sync::Arc;

use node_lib::Timestamp;

use crate::memory;
use crate::shared::Shared;

/// What is to be known of a frame beside its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) now: Timestamp,
    pub(crate) kind: u8,
    /// Writes it.
    pub(crate) write: fn(&Arc<Shared>, Timestamp, u8, &[u8]),
}

thread_local! {
    /// With the recording it belongs to, which is only ever compared.
    static ASKED: Cell<Option<(*const Shared, Asked)>> = const { Cell::new(None) };
}

/// Asks a node about this frame, which the caller writes afterwards.
#[inline]
pub(crate) fn during<T>(
    shared: &Arc<Shared>,
    asked: Asked,
    frame: &[u8],
    ask: impl FnOnce() -> T,
) -> T {
    struct Unwinding<'a>(&'a Arc<Shared>);

    impl Drop for Unwinding<'_> {
        fn drop(&mut self) {
            write(self.0);
        }
    }

    ASKED.set(Some((Arc::as_ptr(shared), asked)));
    memory::lend(frame, || {
        let unwinding = Unwinding(shared);
        let answer = ask();
        std::mem::forget(unwinding);
        answer
    })
}

/// Writes the frame that a node of this recording is just being asked about on this thread, if it
/// has not been written.
pub(crate) fn write(shared: &Arc<Shared>) {
    if let Some((of, Asked { now, kind, write })) = ASKED.get()
        && of == Arc::as_ptr(shared)
    {
        memory::with_lent(|frame| {
            ASKED.set(None);
            write(shared, now, kind, frame);
        });
    }
}
