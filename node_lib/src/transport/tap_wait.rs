//! How long frames may have waited in the TAP: `TapWait`.
//!
//! While data waits for the radio the TAP is not read. Nothing tells when a frame was put there;
//! but the TAP's queue is in order and bounded, so there is a moment before which nothing in it can
//! have come.

use std::time::Duration;

use crate::time::Timestamp;

/// Frames that wait at most in a TAP that nobody reads, a super-frame counted once; the newest is
/// dropped (`TUN_READQ_SIZE`, drivers/net/tun.c).
pub const TAP_QUEUE_MAX: usize = 500;

/// What may have waited for so long is late. Two RSUs on one LAN take the same broadcast from it at
/// the same moment. An OBU knows the copy of the second by that moment, which is the moment it was
/// read from the TAP. So this must be clearly less than the 900 ms within which equal broadcasts
/// are one (`obu_lib/control/floods.rs`); the rest is for heartbeats that come late.
pub const TAP_LATE: Duration = Duration::from_millis(400);

/// Since when what is in the TAP may have waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TapWait {
    /// Nothing in the TAP came before; `None`: it has been read to its end since it was last left
    /// alone.
    since: Option<Timestamp>,
    /// A later moment, and the frames read since: with [`TAP_QUEUE_MAX`] of them all is gone that
    /// waited then.
    mark: Timestamp,
    read: usize,
}

impl TapWait {
    /// From now on the TAP is not read.
    pub(super) fn begin(&mut self, now: Timestamp) {
        if self.since.is_none() {
            *self = Self { since: Some(now), mark: now, read: 0 };
        }
    }

    /// There may be something that has waited.
    pub(super) fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// So many frames were read, the last one there was among them or not. Whether they are late.
    pub(super) fn read(&mut self, now: Timestamp, frames: usize, is_end: bool) -> bool {
        let is_late = self.since.is_some_and(|since| now.since(since) >= TAP_LATE);
        self.read += frames;
        if is_end {
            self.since = None;
        } else if self.read >= TAP_QUEUE_MAX {
            self.since = self.since.map(|_| self.mark);
            (self.mark, self.read) = (now, 0);
        }
        is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn left(ms: u64) -> TapWait {
        let mut wait = TapWait::default();
        wait.begin(at(ms));
        wait
    }

    #[test]
    fn what_was_left_for_long_is_late_until_the_tap_is_read_to_its_end() {
        let mut wait = left(1000);
        assert!(!wait.read(at(1399), 1, false));
        wait.begin(at(1399));
        assert!(wait.read(at(1400), 64, false), "what waited since 1000 may be among them");
        assert!(wait.read(at(1401), 3, true));
        assert!(!wait.is_open() && !wait.read(at(9000), 1, true));
        wait.begin(at(9000));
        assert_eq!([9399, 9400].map(|ms| wait.read(at(ms), 1, false)), [false, true]);
    }

    #[test]
    fn what_comes_fast_is_not_late_although_the_tap_is_never_empty() {
        let mut wait = left(1000);
        // 3,000 frames a second: what waits is gone after 167 ms.
        let late = (1..1000).filter(|n| wait.read(at(1000 + n * 20), 60, false)).count();
        assert_eq!(late, 0);
        // 1,000 a second.
        let mut wait = left(1000);
        let late = (1..1000).filter(|n| wait.read(at(1000 + n * 20), 20, false)).count();
        assert!(late > 900, "{late}");
    }

    #[test]
    fn no_more_is_taken_to_be_gone_than_was_read() {
        let mut wait = left(1000);
        assert!(!wait.read(at(1010), TAP_QUEUE_MAX - 1, false));
        assert!(wait.read(at(1400), 1, false), "and what is behind it came after 1000");
        assert!(wait.read(at(1401), TAP_QUEUE_MAX, false));
        assert!(!wait.read(at(1799), 1, false), "none of which came before 1400");
    }
}
