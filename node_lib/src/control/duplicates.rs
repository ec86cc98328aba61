//! Whether a data frame was seen before: a sliding window per source.
//!
//! The window is that of RFC 6479 in its simplest form: the highest sequence number seen and a
//! bitmap of the [`WINDOW`] numbers up to it. A source that restarts has another boot byte and
//! starts a fresh window.

use crate::control::table::Table;
use crate::mac::NodeId;
use crate::order::Seq;
use crate::time::Timestamp;

/// Sequence numbers remembered per source. At 100,000 frames/s it spans 5 ms, far more than two
/// paths of a vehicle differ while both are in use for a moment.
pub const WINDOW: u32 = 512;

/// Sources remembered. Beyond, the one silent for longest is forgotten.
const SOURCES_MAX: usize = 1024;

/// So many frames in a row that look too old, yet rise among themselves, mean that the window is
/// wrong (one corrupted number far ahead is enough), not the source: it starts afresh.
const RESYNC_AFTER: u32 = 16;

const WORDS: usize = (WINDOW / 64) as usize;

#[derive(Clone, Debug)]
struct Window {
    boot: u8,
    highest: u32,
    seen: [u64; WORDS],
    old_in_a_row: u32,
    last_old: u32,
    used: Timestamp,
}

impl Window {
    fn new(boot: u8, seq: u32, now: Timestamp) -> Self {
        let mut window =
            Self { boot, highest: seq, seen: [0; WORDS], old_in_a_row: 0, last_old: 0, used: now };
        window.mark(seq);
        window
    }

    fn slot(seq: u32) -> (usize, u64) {
        ((seq / 64) as usize % WORDS, 1 << (seq % 64))
    }

    fn is_marked(&self, seq: u32) -> bool {
        let (word, bit) = Self::slot(seq);
        self.seen.get(word).is_some_and(|w| w & bit != 0)
    }

    fn mark(&mut self, seq: u32) {
        let (word, bit) = Self::slot(seq);
        if let Some(w) = self.seen.get_mut(word) {
            *w |= bit;
        }
    }

    fn unmark(&mut self, seq: u32) {
        let (word, bit) = Self::slot(seq);
        if let Some(w) = self.seen.get_mut(word) {
            *w &= !bit;
        }
    }

    fn accept(&mut self, seq: u32) -> bool {
        // Serial-number order (RFC 1982 §3.2): up to 2³¹ − 1 steps ahead is newer.
        let ahead = seq.wrapping_sub(self.highest);
        if ahead == 0 {
            return false;
        }
        if ahead <= u32::MAX / 2 {
            if ahead >= WINDOW {
                self.seen = [0; WORDS];
            } else {
                for step in 1..=ahead {
                    self.unmark(self.highest.wrapping_add(step));
                }
            }
            self.highest = seq;
            self.mark(seq);
            self.old_in_a_row = 0;
            return true;
        }
        let behind = self.highest.wrapping_sub(seq);
        if behind < WINDOW {
            self.old_in_a_row = 0;
            let is_new = !self.is_marked(seq);
            self.mark(seq);
            return is_new;
        }
        let rises = seq.wrapping_sub(self.last_old).wrapping_sub(1) < WINDOW;
        self.old_in_a_row = if rises { self.old_in_a_row + 1 } else { 1 };
        self.last_old = seq;
        if self.old_in_a_row >= RESYNC_AFTER {
            *self = Self::new(self.boot, seq, self.used);
            return true;
        }
        false
    }
}

/// One window per source of data frames.
#[derive(Clone, Debug, Default)]
pub struct Duplicates {
    windows: Table<NodeId, Window>,
}

impl Duplicates {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the frame; `false` if it was seen before, or is too old to tell.
    #[inline]
    pub fn accept(&mut self, now: Timestamp, source: NodeId, boot: u8, seq: Seq) -> bool {
        if let Some(window) = self.windows.get_mut(&source) {
            window.used = now;
            // Serial order for the boot byte as well: a frame from before the restart comes late.
            match boot.wrapping_sub(window.boot) {
                0 => return window.accept(seq.0),
                1..=127 => *window = Window::new(boot, seq.0, now),
                _ => return false,
            }
            return true;
        }
        self.begin(source, Window::new(boot, seq.0, now));
        true
    }

    #[cold]
    fn begin(&mut self, source: NodeId, window: Window) {
        if self.windows.len() >= SOURCES_MAX {
            let oldest = self.windows.iter().min_by_key(|(_, w)| w.used).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.windows.remove(&oldest);
            }
        }
        self.windows.insert(source, window);
    }

    /// Sources remembered.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Nothing remembered.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::ZERO;
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

    fn accept(memory: &mut Duplicates, boot: u8, seq: u32) -> bool {
        memory.accept(NOW, OBU, boot, Seq(seq))
    }

    #[test]
    fn a_frame_is_accepted_once_in_any_order() {
        let mut memory = Duplicates::new();
        for seq in [10, 8, 9, 12, 11] {
            assert!(accept(&mut memory, 0, seq), "{seq}");
            assert!(!accept(&mut memory, 0, seq), "{seq} again");
        }
    }

    #[test]
    fn the_sequence_may_wrap() {
        let mut memory = Duplicates::new();
        for seq in [u32::MAX - 1, u32::MAX, 0, 1] {
            assert!(accept(&mut memory, 0, seq));
        }
        assert!(!accept(&mut memory, 0, u32::MAX));
    }

    #[test]
    fn a_restarted_source_is_heard_at_once_and_its_late_frames_are_not() {
        let mut memory = Duplicates::new();
        assert!(accept(&mut memory, 255, 70_000));
        assert!(accept(&mut memory, 0, 1));
        assert!(!accept(&mut memory, 255, 70_001));
        assert!(accept(&mut memory, 0, 2));
    }

    #[test]
    fn one_number_far_ahead_blinds_only_for_a_moment() {
        let mut memory = Duplicates::new();
        assert!(accept(&mut memory, 0, 100));
        assert!(accept(&mut memory, 0, 1_000_000));
        let lost = (101..200).filter(|seq| !accept(&mut memory, 0, *seq)).count();
        assert_eq!(lost as u32, RESYNC_AFTER - 1);
    }

    #[test]
    fn sources_are_bounded_and_the_longest_silent_goes_first() {
        let mut memory = Duplicates::new();
        let id = |n: usize| NodeId([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
        for n in 0..=SOURCES_MAX {
            memory.accept(Timestamp::from_millis(n as u64), id(n), 0, Seq(1));
        }
        assert_eq!(memory.len(), SOURCES_MAX);
        assert!(memory.accept(Timestamp::from_millis(9999), id(0), 0, Seq(1)), "was forgotten");
        assert!(!memory.accept(Timestamp::from_millis(9999), id(9), 0, Seq(1)), "was kept");
    }

    proptest! {
        /// Against the oracle: a set of everything seen, judged only inside the window.
        #[test]
        fn never_accepts_twice_and_never_refuses_a_new_frame_in_the_window(
            steps in prop::collection::vec(0u32..600, 1..400)
        ) {
            let mut memory = Duplicates::new();
            let mut seen = HashSet::new();
            let mut highest = 5_000;
            accept(&mut memory, 0, highest);
            seen.insert(highest);
            for step in steps {
                let seq = highest + 100 - step.min(highest);
                if highest.saturating_sub(seq) >= WINDOW {
                    continue;
                }
                prop_assert_eq!(accept(&mut memory, 0, seq), seen.insert(seq));
                highest = highest.max(seq);
            }
        }
    }
}
