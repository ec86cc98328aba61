//! How often this OBU may ask its neighbours: [`Questions`].
//!
//! A question on a full channel gets lost, or its answer does; to ask again then is to fill the channel
//! further, until nothing gets through any more. So all OBUs of a crowd share a budget, each its part:
//! the more there are, the rarer each asks.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::token_bucket::TokenBucket;

use super::timing;

/// Where there is no crowd: 200 questions a second, 32 at once. Anybody may pretend to be a candidate.
const ALONE: (Duration, u32) = (Duration::from_millis(5), 32);

/// Time between two questions of all OBUs of an RSU together: 100 a second. Each takes the radio for
/// about 0.4 ms with its answer and both acknowledgements at 6 Mbit/s, so this is 4 % of the time when
/// everybody looks for a way.
const SHARED_EVERY: Duration = Duration::from_millis(10);

/// Questions at once in a crowd: one or two to a silent upstream, the others to those that may replace it.
/// When its heart stops, a hundred OBUs have this much to ask at the same time.
const SHARED_BURST: u32 = 5;

/// Questions kept for finding another upstream: to two neighbours, or to one and then to all.
const KEPT: u32 = 2;

/// A token bucket whose rate follows the number of OBUs.
#[derive(Clone, Debug)]
pub(crate) struct Questions(TokenBucket);

impl Questions {
    /// A full budget of an OBU that is alone, for all it knows.
    pub(crate) const fn new() -> Self {
        let (every, burst) = ALONE;
        Self(TokenBucket::new(burst, every))
    }

    /// So many OBUs share the budget.
    pub(crate) fn share(&mut self, obus: u16) {
        let (every, burst) = if obus < timing::CROWD {
            ALONE
        } else {
            (SHARED_EVERY * u32::from(obus), SHARED_BURST)
        };
        self.0.set(burst, every);
    }

    /// Takes a question out of the budget, if one is left.
    pub(crate) fn take(&mut self, now: Timestamp) -> bool {
        self.0.take(now)
    }

    /// Takes a question out of the budget if enough are left to find another upstream with.
    pub(crate) fn take_spare(&mut self, now: Timestamp) -> bool {
        self.0.take_above(now, KEPT)
    }

    /// When the next question is possible, at the earliest.
    pub(crate) fn next_at(&self) -> Timestamp {
        self.0.next_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(questions: &mut Questions, seconds: u64) -> usize {
        let every_ms = 1000..1000 + seconds * 1000;
        every_ms.filter(|ms| questions.take(Timestamp::from_millis(*ms))).count()
    }

    #[test]
    fn alone_an_obu_may_ask_two_hundred_times_a_second() {
        assert_eq!(taken(&mut Questions::new(), 1), 32 + 199);
    }

    #[test]
    fn in_a_crowd_each_has_its_share_and_still_a_burst() {
        let mut questions = Questions::new();
        questions.share(200);
        assert_eq!(taken(&mut questions, 20), 5 + 10);
    }

    #[test]
    fn two_questions_are_kept_for_finding_another_upstream() {
        let mut questions = Questions::new();
        questions.share(200);
        let at = Timestamp::from_millis(10_000);
        assert_eq!((0..5).filter(|_| questions.take_spare(at)).count(), 3);
        assert_eq!((0..5).filter(|_| questions.take(at)).count(), 2);
    }

    #[test]
    fn it_says_when_the_next_question_is_possible() {
        let mut questions = Questions::new();
        questions.share(50);
        let at = Timestamp::from_millis(10_000);
        while questions.take(at) {}
        let next = questions.next_at();
        assert!(next > at && !questions.take(next.before(Duration::from_micros(1))));
        assert!(questions.take(next));
    }
}
