//! How often this OBU may ask its neighbours, and announce its clients: [`Budget`].
//!
//! What is said on a full channel gets lost, or the answer to it does; to say it again then is to
//! fill the channel further, until nothing gets through any more. So all OBUs of a crowd share a
//! budget, each its part: the more there are, the rarer each speaks.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::token_bucket::TokenBucket;

/// All OBUs around together: 100 a second. A question takes the radio for about 0.4 ms with its
/// answer and both acknowledgements at 6 Mbit/s, an announcement with its own for half a
/// millisecond on each hop. So this is 4 and 5 % of the time when everybody looks for a way, or has
/// found one.
const SHARED_EVERY: Duration = Duration::from_millis(10);

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
}

impl Budget {
    /// Of an OBU that is alone, for all it knows.
    const fn new(burst: (u32, u32)) -> Self {
        Self { bucket: TokenBucket::new(burst.1, SHARED_EVERY), burst }
    }

    /// Questions to neighbours.
    pub(crate) const fn of_questions() -> Self {
        Self::new(QUESTIONS_BURST)
    }

    /// Announcements, repeated ones as well.
    pub(crate) const fn of_announcements() -> Self {
        Self::new(ANNOUNCEMENTS_BURST)
    }

    /// So many OBUs share the budget.
    pub(crate) fn share(&mut self, obus: u16) {
        let obus = u32::from(obus.max(1));
        let (least, most) = self.burst;
        self.bucket.set((SHARED_BURST / obus).clamp(least, most), SHARED_EVERY * obus);
    }

    /// Takes one out of the budget, if one is left.
    pub(crate) fn take(&mut self, now: Timestamp) -> bool {
        self.bucket.take(now)
    }

    /// Takes a question out of the budget if enough are left to find another upstream with.
    pub(crate) fn take_spare(&mut self, now: Timestamp) -> bool {
        self.bucket.take_above(now, KEPT)
    }

    /// Time between two, once all that is allowed at once is spent.
    pub(crate) fn every(&self) -> Duration {
        self.bucket.every()
    }

    /// When the next one is possible, at the earliest.
    pub(crate) fn next_at(&self) -> Timestamp {
        self.bucket.next_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(questions: &mut Budget, seconds: u64) -> usize {
        let every_ms = 1000..1000 + seconds * 1000;
        every_ms.filter(|ms| questions.take(Timestamp::from_millis(*ms))).count()
    }

    #[test]
    fn alone_an_obu_may_ask_a_hundred_times_a_second() {
        assert_eq!(taken(&mut Budget::of_questions(), 1), 32 + 99);
    }

    #[test]
    fn each_has_a_part_of_it_however_few_they_are() {
        let all = |obus: u16| {
            let mut questions = Budget::of_questions();
            questions.share(obus);
            taken(&mut questions, 10) * usize::from(obus)
        };
        for obus in [2, 5, 10, 20, 31] {
            assert!((1000..=1200).contains(&all(obus)), "{obus}: {}", all(obus));
        }
    }

    #[test]
    fn in_a_crowd_each_has_its_share_and_still_a_burst() {
        let mut questions = Budget::of_questions();
        questions.share(200);
        // One after each two seconds.
        assert_eq!(taken(&mut questions, 20), 5 + 9);
    }

    #[test]
    fn two_questions_are_kept_for_finding_another_upstream() {
        let mut questions = Budget::of_questions();
        questions.share(200);
        let at = Timestamp::from_millis(10_000);
        assert_eq!((0..5).filter(|_| questions.take_spare(at)).count(), 3);
        assert_eq!((0..5).filter(|_| questions.take(at)).count(), 2);
    }

    #[test]
    fn it_says_when_the_next_question_is_possible() {
        let mut questions = Budget::of_questions();
        questions.share(50);
        let at = Timestamp::from_millis(10_000);
        while questions.take(at) {}
        let next = questions.next_at();
        assert!(next > at && !questions.take(next.before(Duration::from_micros(1))));
        assert!(questions.take(next));
    }
}
