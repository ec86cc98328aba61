//! How often this OBU may ask its neighbours, and announce its clients: [`Budget`].
//!
//! What is said on a full channel gets lost, or the answer to it does; to say it again then is to
//! fill the channel further, until nothing gets through any more. So all OBUs of a crowd share a
//! budget, each its part: the more there are, the rarer each speaks.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::random::Random;
use node_lib::control::token_bucket::TokenBucket;

/// All OBUs around together: 100 a second. A question takes the radio for about 0.4 ms with its
/// answer and both acknowledgements at 6 Mbit/s, an announcement with its own for half a
/// millisecond on each hop. So this is 4 and 5 % of the time when everybody looks for a way, or has
/// found one.
const SHARED_EVERY: Duration = Duration::from_millis(10);

/// The budgets of one OBU fill up to so many per cent sooner or later than [`SHARED_EVERY`].
/// Those that lost the same RSU, or were switched on together, spend what they may say at once
/// in the same moment. Were they all as fast, they would have the next in the same moment
/// again, and so on; and what they say then is lost (RFC 5148 §3).
const PACES_DIFFER_BY: u32 = 25;

/// So many at once by all together. When its heart stops, all OBUs of a crowd have their part of
/// this to ask at the same time.
const SHARED_BURST: u32 = 160;

/// Questions at once of one OBU: in the largest crowd one to a silent upstream, the others to those
/// that may replace it; and however few there are so many, for anybody may pretend to be a
/// candidate.
const QUESTIONS_BURST: (u32, u32) = (5, 32);

/// Questions kept for finding another upstream: to two neighbours, or to one and then to all.
const KEPT: u32 = 2;

/// Announcements at once of one OBU: in the largest crowd two changes, one of which is announced
/// twice; else as many as anybody may ask for.
const ANNOUNCEMENTS_BURST: (u32, u32) = (3, 100);

/// A token bucket whose rate follows the number of OBUs.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    bucket: TokenBucket,
    /// At least and at most.
    burst: (u32, u32),
    /// [`SHARED_EVERY`], at this OBU's pace.
    every: Duration,
}

impl Budget {
    /// Of an OBU that is alone, for all it knows.
    fn new(burst: (u32, u32), random: &mut Random) -> Self {
        let every = random.jitter(SHARED_EVERY, PACES_DIFFER_BY);
        Self { bucket: TokenBucket::new(burst.1, every), burst, every }
    }

    /// Questions to neighbours.
    pub(crate) fn of_questions(random: &mut Random) -> Self {
        Self::new(QUESTIONS_BURST, random)
    }

    /// Announcements, repeated ones as well.
    pub(crate) fn of_announcements(random: &mut Random) -> Self {
        Self::new(ANNOUNCEMENTS_BURST, random)
    }

    /// So many OBUs share the budget.
    pub(crate) fn share(&mut self, obus: u16) {
        let obus = u32::from(obus.max(1));
        let (least, most) = self.burst;
        self.bucket.set((SHARED_BURST / obus).clamp(least, most), self.every * obus);
    }

    /// Takes one out of the budget, if one is left.
    pub(crate) fn take(&mut self, now: Timestamp) -> bool {
        self.bucket.take(now)
    }

    /// Takes a question out of the budget if enough are left to find another upstream with.
    pub(crate) fn take_spare(&mut self, now: Timestamp) -> bool {
        self.bucket.take_above(now, KEPT)
    }

    /// When the next one is possible, at the earliest.
    pub(crate) fn next_at(&self) -> Timestamp {
        self.bucket.next_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The questions of so many OBUs, each with the luck of its own.
    fn of(obus: u16) -> Vec<Budget> {
        let each = (0..u64::from(obus)).map(|seed| Budget::of_questions(&mut Random::new(seed)));
        let mut each: Vec<_> = each.collect();
        each.iter_mut().for_each(|questions| questions.share(obus));
        each
    }

    fn taken(questions: &mut Budget, seconds: u64) -> usize {
        let every_ms = 1000..1000 + seconds * 1000;
        every_ms.filter(|ms| questions.take(Timestamp::from_millis(*ms))).count()
    }

    #[test]
    fn alone_an_obu_may_ask_about_a_hundred_times_a_second() {
        for seed in 0..100 {
            let asked = taken(&mut Budget::of_questions(&mut Random::new(seed)), 1);
            assert!((32 + 79..=32 + 134).contains(&asked), "{seed}: {asked}");
        }
    }

    #[test]
    fn each_has_a_part_of_it_however_few_they_are() {
        for obus in [2, 5, 10, 20, 31, 200] {
            let all: usize = of(obus).iter_mut().map(|questions| taken(questions, 10)).sum();
            // A hundred a second, and what is in a new bucket.
            let at_once = usize::from(obus) * (160 / usize::from(obus)).clamp(5, 32);
            let lasting = all - at_once;
            assert!((800..=1250).contains(&lasting), "{obus}: {lasting}");
        }
    }

    #[test]
    fn in_a_crowd_each_has_its_share_and_still_a_burst() {
        for mut questions in of(200) {
            // One after each two seconds, or a quarter less or more.
            let asked = taken(&mut questions, 20);
            assert!((5 + 7..=5 + 13).contains(&asked), "{asked}");
        }
    }

    #[test]
    fn who_spent_it_in_the_same_moment_has_the_next_in_another() {
        let at = Timestamp::from_millis(10_000);
        let next_at = |mut questions: Budget| {
            while questions.take(at) {}
            questions.next_at()
        };
        let mut next: Vec<Timestamp> = of(400).into_iter().map(next_at).collect();
        next.sort_unstable();
        // Four seconds, a quarter less to a quarter more. A radio has time for some hundred
        // questions a second; a tenth of all come within a fifth of a second.
        assert!(next.windows(40).all(|some| some[39].since(some[0]) >= Duration::from_millis(80)));
        assert!(next[399].since(next[0]) >= Duration::from_millis(1900));
    }

    #[test]
    fn two_questions_are_kept_for_finding_another_upstream() {
        let mut questions = of(200).remove(0);
        let at = Timestamp::from_millis(10_000);
        assert_eq!((0..5).filter(|_| questions.take_spare(at)).count(), 3);
        assert_eq!((0..5).filter(|_| questions.take(at)).count(), 2);
    }

    #[test]
    fn it_says_when_the_next_question_is_possible() {
        let mut questions = of(50).remove(0);
        let at = Timestamp::from_millis(10_000);
        while questions.take(at) {}
        let next = questions.next_at();
        assert!(next > at && !questions.take(next.before(Duration::from_micros(1))));
        assert!(questions.take(next));
    }
}
