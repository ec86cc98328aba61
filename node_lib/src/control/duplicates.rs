//! Whether a data frame was seen before: a sliding window per source.
//!
//! The window is that of RFC 6479 in its simplest form: the highest sequence number seen and a
//! bitmap of at least the [`WINDOW`] numbers up to it, cleared a word at a time.
//!
//! A source that restarts counts from the beginning again, under another boot byte. Eight bits do
//! not tell which of two starts came first: boot counts follow the clock and jump by any number. So
//! nothing is concluded from their order. A source has two windows, each for one boot byte: that of
//! its present start, and that of the one before, whose last frames may still come. A third takes
//! the place of the one unused for longer. So a restart is heard with its first frame, and a frame
//! with a wrong boot byte takes nothing from the source it pretends to be.

use std::time::Duration;

use crate::control::table::Table;
use crate::mac::NodeId;
use crate::order::{Boot, Seq};
use crate::time::Timestamp;

/// Sequence numbers remembered per source, at least. A radio may keep a frame for half a second,
/// and one that goes another way then overtakes as many as its source sends meanwhile, an RSU to
/// all its OBUs together. This is enough for 8,000 frames/s.
pub const WINDOW: u32 = 64 * (WORDS as u32 - 1);

/// Of a window: 512 bytes. A power of two, so that numbers may wrap.
const WORDS: usize = 64;

/// Sources remembered. Beyond, the quarter silent for longest is forgotten; one at a time would
/// mean to look at all of them for each frame of a made-up source.
const SOURCES_MAX: usize = 1024;

/// A window unused for so long begins anew: no frame is under way for longer. With 256 boot bytes
/// two starts share one now and then.
const WINDOW_AGE_MAX: Duration = Duration::from_secs(10);

/// Most frames that are sent one right after the other and come in another order do so within this:
/// the bursts that wait in a TAP or a radio. On a full channel one class of traffic overtakes
/// another by more; of such frames a node that has just started loses some.
const REORDERED_FOR: Duration = Duration::from_millis(20);

/// One number far ahead makes all that follow look too old. If it was corrupted or forged, the
/// source goes on where it was. After so many frames in a row that rise among themselves from
/// there, the window is the one it was before the jump. Numbers from before the jump never count:
/// whoever sends old frames again opens nothing with them.
const RESYNC_AFTER: u32 = 16;

#[derive(Clone, Debug)]
struct Window {
    boot: u8,
    highest: u32,
    seen: [u64; WORDS],
    old_in_a_row: u32,
    last_old: u32,
    used: Timestamp,
    /// As it was before it jumped by a window or more, until it is used again or forgotten.
    before: Option<Box<Window>>,
    /// Its first number, and when that came.
    first: (u32, Timestamp),
}

impl Window {
    fn new(boot: u8, seq: u32, now: Timestamp) -> Self {
        let mut window = Self {
            boot,
            highest: seq,
            seen: [0; WORDS],
            old_in_a_row: 0,
            last_old: 0,
            used: now,
            before: None,
            first: (seq, now),
        };
        window.mark(seq);
        window
    }

    /// The first number of this window has overtaken this one, and not just now.
    fn is_overtaken(&self, now: Timestamp, seq: u32) -> bool {
        let (first, at) = self.first;
        now >= at + REORDERED_FOR && first.wrapping_sub(seq).wrapping_sub(1) < u32::MAX / 2
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

    /// The words from that of `highest`, which stays, to that of `seq`, which is ahead of it.
    fn clear_up_to(&mut self, seq: u32) {
        let words = (seq / 64).wrapping_sub(self.highest / 64) % (1 << 26);
        if words >= WORDS as u32 {
            self.seen = [0; WORDS];
            return;
        }
        for word in 1..=words {
            let place = (self.highest / 64).wrapping_add(word) as usize % WORDS;
            if let Some(w) = self.seen.get_mut(place) {
                *w = 0;
            }
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
                self.remember_jump();
            }
            self.clear_up_to(seq);
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
        let Some(before) = &self.before else { return false };
        // Ahead of what was seen before the jump.
        let is_next = seq.wrapping_sub(before.highest).wrapping_sub(1) < u32::MAX / 2;
        if !is_next {
            return false;
        }
        let rises = seq.wrapping_sub(self.last_old).wrapping_sub(1) < WINDOW;
        self.old_in_a_row = if rises { self.old_in_a_row + 1 } else { 1 };
        self.last_old = seq;
        if self.old_in_a_row < RESYNC_AFTER {
            return false;
        }
        let (used, before) = (self.used, self.before.take());
        if let Some(before) = before {
            *self = Self { used, ..*before };
        }
        self.accept(seq)
    }

    /// Of several jumps the first counts: what came before it was the source's own.
    #[cold]
    fn remember_jump(&mut self) {
        let before = self.before.take().unwrap_or_else(|| Box::new(self.clone()));
        self.before = Some(before);
    }
}

/// The windows of one source.
#[derive(Clone, Debug)]
struct Source {
    /// Each for another boot byte.
    windows: [Option<Box<Window>>; 2],
}

impl Source {
    fn used(&self) -> Option<Timestamp> {
        self.windows.iter().flatten().map(|window| window.used).max()
    }

    /// `is_careful`: what was overtaken is refused.
    #[inline]
    fn accept(&mut self, now: Timestamp, boot: u8, seq: u32, is_careful: bool) -> bool {
        let known = self.windows.iter_mut().flatten().find(|window| window.boot == boot);
        if let Some(window) = known
            && now.since(window.used) < WINDOW_AGE_MAX
        {
            let is_new = !(is_careful && window.is_overtaken(now, seq)) && window.accept(seq);
            if is_new {
                // What is refused keeps no window alive.
                window.used = now;
            }
            return is_new;
        }
        self.begin(Box::new(Window::new(boot, seq, now)));
        true
    }

    /// In place of one for the same boot byte, or of the one unused for longer.
    #[cold]
    fn begin(&mut self, new: Box<Window>) {
        let boot = new.boot;
        let rank = |window: &Option<Box<Window>>| match window {
            Some(window) if window.boot == boot => (0, Timestamp::ZERO),
            None => (1, Timestamp::ZERO),
            Some(window) => (2, window.used),
        };
        let [first, second] = &mut self.windows;
        *(if rank(first) <= rank(second) { first } else { second }) = Some(new);
    }

    fn forget(&mut self, boot: u8) {
        for window in &mut self.windows {
            window.take_if(|window| window.boot == boot);
        }
    }
}

/// Two windows per source of data frames.
#[derive(Clone, Debug, Default)]
pub struct Duplicates {
    sources: Table<NodeId, Source>,
    /// Until then what was overtaken is refused: this node started lately.
    careful_until: Timestamp,
}

impl Duplicates {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// That of a node which starts `now` and has forgotten what it received before. For as long as
    /// a frame may be under way it refuses those that the first one of their source has overtaken
    /// by more than 20 ms: a relay that stood still has them, and they have come another way since.
    pub fn starting(now: Timestamp) -> Self {
        Self { careful_until: now + WINDOW_AGE_MAX, ..Self::default() }
    }

    /// Notes the frame; `false` if it was seen before, or is too old to tell.
    #[inline]
    pub fn accept(&mut self, now: Timestamp, source: NodeId, boot: u8, seq: Seq) -> bool {
        if let Some(source) = self.sources.get_mut(&source) {
            return source.accept(now, boot, seq.0, now < self.careful_until);
        }
        self.begin(source, Box::new(Window::new(boot, seq.0, now)));
        true
    }

    /// A source that started `before` has started `again`, as its control frames say. Only where
    /// both have the same low byte must its old numbers be forgotten: otherwise they have a window
    /// of their own, and the new one may be in use already.
    pub fn note_restart(&mut self, source: NodeId, before: Boot, again: Boot) {
        if before != again
            && before.low_byte() == again.low_byte()
            && let Some(source) = self.sources.get_mut(&source)
        {
            source.forget(again.low_byte());
        }
    }

    #[cold]
    fn begin(&mut self, source: NodeId, window: Box<Window>) {
        if self.sources.len() >= SOURCES_MAX {
            let mut used: Vec<_> = self.sources.values().map(Source::used).collect();
            let (_, last, _) = used.select_nth_unstable(SOURCES_MAX / 4 - 1);
            let last = *last;
            self.sources.retain(|_, source| source.used() > last);
        }
        self.sources.insert(source, Source { windows: [Some(window), None] });
    }

    /// Sources remembered.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Nothing remembered.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
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
    fn a_restarted_source_is_heard_at_once_whatever_its_boot_byte() {
        for before in 0..=u8::MAX {
            for delta in 1..=u8::MAX {
                let mut memory = Duplicates::new();
                assert!(accept(&mut memory, before, 70_000));
                let again = before.wrapping_add(delta);
                let heard = (1..=20).filter(|seq| accept(&mut memory, again, *seq)).count();
                assert_eq!(heard, 20, "{before} then {again}");
                assert!(!accept(&mut memory, again, 20), "a copy");
            }
        }
    }

    #[test]
    fn what_comes_late_from_before_a_restart_is_delivered_once() {
        let mut memory = Duplicates::new();
        assert!(accept(&mut memory, 255, 70_000));
        assert!(accept(&mut memory, 0, 1));
        assert!(!accept(&mut memory, 255, 70_000), "a copy");
        assert!(accept(&mut memory, 255, 69_999), "overtaken by the restart");
        assert!(!accept(&mut memory, 255, 69_999));
        assert!(accept(&mut memory, 0, 2));
    }

    #[test]
    fn who_has_just_started_refuses_what_the_first_frame_has_overtaken_by_long() {
        let mut memory = Duplicates::starting(NOW);
        let mut at = |ms, boot, seq| memory.accept(Timestamp::from_millis(ms), OBU, boot, Seq(seq));
        assert!(at(1000, 7, 500) && at(1000, 7, 502));
        assert!(at(1019, 7, 499) && !at(1019, 7, 499), "one of those sent with it");
        for old in [498, 450, 448, 447, 400, 1] {
            assert!(!at(1020, 7, old), "{old}");
        }
        for seq in [501, 511, 512, 503, 4000, 3999, 600] {
            assert!(at(1100, 7, seq), "{seq}");
            assert!(!at(1100, 7, seq), "{seq} again");
        }
        // Of another start of the source nothing is known either.
        assert!(at(2000, 8, 10) && !at(2100, 8, 9));
        // Ten seconds after its start nothing is under way from before.
        assert!(at(9_999, 7, 4001) && !at(9_999, 7, 498));
        assert!(at(10_000, 7, 498) && at(10_000, 9, 10) && at(10_200, 9, 9));
    }

    #[test]
    fn frames_with_forged_boot_bytes_take_nothing_from_the_source() {
        let mut memory = Duplicates::new();
        for seq in 1..=1000 {
            assert!(accept(&mut memory, 7, seq), "{seq}");
            assert!(!accept(&mut memory, 7, seq), "{seq} again");
            accept(&mut memory, 8 + (seq % 200) as u8, seq.wrapping_mul(0x9e37_79b9));
        }
    }

    #[test]
    fn a_window_that_nobody_used_for_ten_seconds_is_no_reason_to_refuse() {
        let mut memory = Duplicates::new();
        let mut at = |ms, seq| memory.accept(Timestamp::from_millis(ms), OBU, 7, Seq(seq));
        assert!(at(0, 70_000));
        assert!(!at(9_999, 1), "too old to tell");
        assert!(at(10_000, 2), "the source has started again");
        assert!(!at(10_000, 2), "a copy");
    }

    #[test]
    fn a_restart_that_comes_to_the_same_boot_byte_is_known_from_the_control_plane() {
        let mut memory = Duplicates::new();
        assert!(accept(&mut memory, 7, 70_000));
        memory.note_restart(OBU, Boot(7), Boot(7));
        assert!(!accept(&mut memory, 7, 1), "the same start");
        memory.note_restart(OBU, Boot(7), Boot(256 + 7));
        assert!(accept(&mut memory, 7, 1));
        // With another byte the new start has a window of its own, which may be in use already.
        assert!(accept(&mut memory, 8, 1));
        memory.note_restart(OBU, Boot(256 + 7), Boot(256 + 8));
        assert!(!accept(&mut memory, 8, 1));
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
    fn frames_sent_again_open_no_window_however_many_come_in_a_row() {
        let mut memory = Duplicates::new();
        for seq in 1..=20_000 {
            assert!(accept(&mut memory, 0, seq));
        }
        assert!((1..=20_000).all(|seq| !accept(&mut memory, 0, seq)));
        // Nor after a jump, be it forged, and nor when the source has come back from it.
        for jump in [1_000_000, 2_000_000_000] {
            assert!(accept(&mut memory, 0, jump), "{jump}");
            assert!((1..=20_000).all(|seq| !accept(&mut memory, 0, seq)), "{jump}");
        }
        let heard = (20_001..20_101).filter(|seq| accept(&mut memory, 0, *seq)).count();
        assert_eq!(heard as u32, 100 - (RESYNC_AFTER - 1));
        assert!((1..=20_000).all(|seq| !accept(&mut memory, 0, seq)));
    }

    #[test]
    fn of_a_start_that_is_over_nothing_is_delivered_again_within_ten_seconds() {
        let mut memory = Duplicates::new();
        let mut at = |ms, boot, seq| memory.accept(Timestamp::from_millis(ms), OBU, boot, Seq(seq));
        for seq in 1..=40 {
            assert!(at(0, 7, seq));
        }
        assert!((1..=40).all(|seq| at(9000, 8, seq)), "it has started again");
        assert!((1..=40).all(|seq| !at(9999, 7, seq)));
        // Eight bits do not tell an old start from a new one.
        assert!((1..=40).all(|seq| at(10_000, 7, seq)));
    }

    #[test]
    fn sources_are_bounded_and_the_longest_silent_go_first() {
        let mut memory = Duplicates::new();
        let id = |n: usize| NodeId([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
        for n in 0..=SOURCES_MAX {
            memory.accept(Timestamp::from_millis(n as u64), id(n), 0, Seq(1));
        }
        assert_eq!(memory.len(), SOURCES_MAX * 3 / 4 + 1);
        assert!(!memory.accept(Timestamp::from_millis(9999), id(256), 0, Seq(1)), "was kept");
        assert!(memory.accept(Timestamp::from_millis(9999), id(255), 0, Seq(1)), "was forgotten");
    }

    #[test]
    fn made_up_sources_do_not_make_a_busy_one_forgotten() {
        let mut memory = Duplicates::new();
        let id = |n: u64| NodeId([2, 9, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8]);
        for n in 0..100_000 {
            let now = Timestamp::from_millis(n / 5);
            memory.accept(now, id(n), 0, Seq(1));
            if n % 100 == 0 {
                let seq = Seq((n / 100) as u32 + 1);
                assert!(memory.accept(now, OBU, 7, seq), "{n}");
                assert!(!memory.accept(now, OBU, 7, seq), "{n} again");
            }
            assert!(memory.len() <= SOURCES_MAX);
        }
    }

    #[test]
    fn a_frame_that_a_radio_kept_for_half_a_second_is_delivered_though_3000_a_second_went_by() {
        let mut memory = Duplicates::new();
        // Numbers of an RSU, of which this OBU gets every fifth by another way.
        let now = |seq: u32| Timestamp::from_millis(u64::from(seq) / 3);
        for seq in (1..=30_000).filter(|seq| seq % 5 == 0 && seq % 1500 != 0) {
            assert!(memory.accept(now(seq), OBU, 7, Seq(seq)), "{seq}");
            if seq > 1505 && (seq - 1505) % 1500 == 0 {
                let late = seq - 1505;
                assert!(memory.accept(now(seq), OBU, 7, Seq(late)), "{late}, late");
                assert!(!memory.accept(now(seq), OBU, 7, Seq(late)), "{late} again");
            }
        }
    }

    proptest! {
        /// Against the oracle: a set of everything seen, judged only inside the window.
        #[test]
        fn never_accepts_twice_and_never_refuses_a_new_frame_in_the_window(
            steps in prop::collection::vec(0u32..WINDOW + 300, 1..400)
        ) {
            let mut memory = Duplicates::new();
            let mut seen = HashSet::new();
            let mut highest = 50_000;
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
