//! Every `unsafe` of this crate: a frame that its thread may look at while it is lent, and memory
//! that is asked for before it is written.

use std::cell::Cell;

thread_local! {
    static LENT: Cell<Option<*const [u8]>> = const { Cell::new(None) };
}

/// Lets [`with_lent`] have the frame while this works, on this thread.
#[inline]
pub(crate) fn lend<T>(frame: &[u8], work: impl FnOnce() -> T) -> T {
    /// Takes it back, also when the work panics and somebody lives on. What was lent around it is
    /// lent again.
    struct TakeBack(Option<*const [u8]>);

    impl Drop for TakeBack {
        fn drop(&mut self) {
            LENT.set(self.0);
        }
    }

    let _take_back = TakeBack(LENT.replace(Some(frame)));
    work()
}

/// Shows what is lent on this thread, if something is.
pub(crate) fn with_lent(look: impl FnOnce(&[u8])) {
    let Some(frame) = LENT.get() else { return };
    // SAFETY: only `lend` sets it, on this thread, to a frame it has borrowed, and puts back what
    // was there before that borrow ends. So we are inside the `work` of the one that set it: the
    // frame is there, and nobody writes to it.
    look(unsafe { &*frame });
}

/// So far ahead memory is asked for: the records of some microseconds. That is longer than it takes
/// to come from another processor.
const AHEAD: usize = 1024;

/// Memory that comes in one piece.
const LINE: usize = 64;

/// Asks for the memory behind what is there, so that it has come when `room` bytes and the next
/// records are written. `fetched` is how far it has been asked for.
///
/// The writer on another processor has read a block before it is used again. What is written to
/// memory that is still there waits, and all that is written after it, until the processor can take
/// no more and waits as well. With small frames that took longer than to make the records.
#[inline]
pub(crate) fn fetch_ahead(bytes: &Vec<u8>, room: usize, fetched: &mut usize) {
    let end = bytes.capacity().min(bytes.len() + room + AHEAD);
    while *fetched < end {
        fetch(bytes.as_ptr().wrapping_add(*fetched));
        *fetched += LINE;
    }
}

/// Asks for the memory at this address, to write there.
#[inline]
fn fetch(at: *const u8) {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    use std::arch::asm;

    // SAFETY: a hint. It changes neither memory nor registers, and fails for no address.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: the same.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use std::panic::catch_unwind;

    use super::*;

    fn lent() -> Option<Vec<u8>> {
        let mut seen = None;
        with_lent(|frame| seen = Some(frame.to_vec()));
        seen
    }

    #[test]
    fn a_frame_is_there_while_it_is_lent_and_on_that_thread_alone() {
        assert_eq!(lent(), None);
        let frame = vec![1, 2, 3];
        assert_eq!(lend(&frame, lent), Some(frame.clone()));
        assert_eq!(lent(), None);
        assert_eq!(
            lend(&frame, || (lend(&[9], lent), lent())),
            (Some(vec![9]), Some(frame.clone()))
        );
        let others = lend(&frame, || std::thread::spawn(lent).join().unwrap());
        assert_eq!(others, None);
        catch_unwind(|| lend(&[4], || panic!("as planned"))).unwrap_err();
        assert_eq!(lent(), None, "nor does it outlive a panic");
    }

    #[test]
    fn memory_is_asked_for_once_and_not_behind_its_end() {
        let mut bytes = Vec::with_capacity(4096);
        let mut fetched = 0;
        fetch_ahead(&bytes, 100, &mut fetched);
        assert_eq!(fetched, (100 + AHEAD).next_multiple_of(LINE));
        fetch_ahead(&bytes, 20, &mut fetched);
        assert_eq!(fetched, (100 + AHEAD).next_multiple_of(LINE), "it is on its way");
        bytes.extend([0; 4000]);
        fetch_ahead(&bytes, 96, &mut fetched);
        assert_eq!(fetched, bytes.capacity().next_multiple_of(LINE));
    }
}
