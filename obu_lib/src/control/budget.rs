//! How often this OBU may ask its neighbours, and announce its clients: [`Budget`].
//!
//! What is said on a full channel gets lost, or the answer to it does; to say it again then is to
//! fill the channel further, until nothing gets through any more. So all OBUs of a crowd share a
//! budget, each its part: the more there are, the rarer each speaks.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::random::Random;
use node_lib::control::token_bucket::TokenBucket;

/// Questions of all OBUs around together: 333 a second. One takes a radio of 6 Mbit/s for 0.13 ms,
/// and its answer with the acknowledgement for 0.3 ms. So this is 4 to 14 % of the time when
/// everybody looks for a way, the less the more of them get lost. Found by experiment: with 200
/// fewer idle vehicles on a radio that fades have a way, and with 400 busy ones take more air.
const QUESTION_EVERY: Duration = Duration::from_millis(3);

/// Announcements of all together: 100 a second. One takes half a millisecond on each hop with its
/// acknowledgement, so this is 5 % of the time when everybody has found a way.
const ANNOUNCEMENT_EVERY: Duration = Duration::from_millis(10);

/// The budgets of one OBU fill up to so many per cent sooner or later than those of another. Those
/// that lost the same RSU, or were switched on together, spend what they may say at once in the
/// same moment. Were they all as fast, they would have the next in the same moment again, and so
/// on; and what they say then is lost (RFC 5148 §3).
const PACES_DIFFER_BY: u32 = 25;

/// All together may say at once what they may in so long. When its heart stops, all OBUs of a crowd
/// have their part of this to ask at the same time.
const BURST_OF: Duration = Duration::from_millis(1600);

/// Questions at once of one OBU: in the largest crowd four to a silent upstream, the others to
/// those that may replace it; and however few there are so many, for anybody may pretend to be a
/// candidate.
const QUESTIONS_BURST: (u32, u32) = (15, 96);

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
    /// Of all together, at this OBU's pace.
    every: Duration,
    /// Of all together.
    at_once: u32,
}

impl Budget {
    /// Of an OBU that is alone, for all it knows.
    fn new(every: Duration, burst: (u32, u32), random: &mut Random) -> Self {
        let at_once = u32::try_from(BURST_OF.as_millis() / every.as_millis()).unwrap_or(u32::MAX);
        let every = random.jitter(every, PACES_DIFFER_BY);
        Self { bucket: TokenBucket::new(burst.1, every), burst, every, at_once }
    }

    /// Questions to neighbours.
    pub(crate) fn of_questions(random: &mut Random) -> Self {
        Self::new(QUESTION_EVERY, QUESTIONS_BURST, random)
    }

    /// Announcements, repeated ones as well.
    pub(crate) fn of_announcements(random: &mut Random) -> Self {
        Self::new(ANNOUNCEMENT_EVERY, ANNOUNCEMENTS_BURST, random)
    }

    /// So many OBUs share the budget.
    pub(crate) fn share(&mut self, obus: u16) {
        let obus = u32::from(obus.max(1));
        let (least, most) = self.burst;
        self.bucket.set((self.at_once / obus).clamp(least, most), self.every * obus);
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
    fn alone_an_obu_may_ask_about_three_hundred_times_a_second() {
        for seed in 0..100 {
            let asked = taken(&mut Budget::of_questions(&mut Random::new(seed)), 1);
            assert!((96 + 266..=96 + 445).contains(&asked), "{seed}: {asked}");
        }
    }

    #[test]
    fn each_has_a_part_of_it_however_few_they_are() {
        for obus in [2, 5, 10, 20, 31, 200] {
            let all: usize = of(obus).iter_mut().map(|questions| taken(questions, 10)).sum();
            // A third of a thousand a second, and what is in a new bucket.
            let at_once = usize::from(obus) * (533 / usize::from(obus)).clamp(15, 96);
            let lasting = all - at_once;
            assert!((2660..=4170).contains(&lasting), "{obus}: {lasting}");
        }
    }

    #[test]
    fn in_a_crowd_each_has_its_share_and_still_a_burst() {
        for mut questions in of(200) {
            // One after each 0.6 s, or a quarter less or more.
            let asked = taken(&mut questions, 20);
            assert!((15 + 26..=15 + 44).contains(&asked), "{asked}");
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
        // 1.2 s, a quarter less to a quarter more. A tenth of all come within 60 ms, and take the
        // radio for 17 with their answers.
        assert!(next.windows(40).all(|some| some[39].since(some[0]) >= Duration::from_millis(24)));
        assert!(next[399].since(next[0]) >= Duration::from_millis(570));
    }

    #[test]
    fn two_questions_are_kept_for_finding_another_upstream() {
        let mut questions = of(200).remove(0);
        let at = Timestamp::from_millis(10_000);
        assert_eq!((0..20).filter(|_| questions.take_spare(at)).count(), 13);
        assert_eq!((0..20).filter(|_| questions.take(at)).count(), 2);
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
