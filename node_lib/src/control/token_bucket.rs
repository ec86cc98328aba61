//! A limit on how often something may happen: [`TokenBucket`].

use std::time::Duration;

use crate::time::Timestamp;

/// Allows `burst` events at once and one more every `every` (a token bucket, RFC 2697 §3 with one
/// bucket). Integer arithmetic, so that simulations repeat bit for bit.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    every: Duration,
    burst: u32,
    tokens: u32,
    /// When the last whole token was added; when it was last looked at, if it was full then.
    filled: Timestamp,
}

impl TokenBucket {
    /// A full bucket. `every` must not be zero.
    pub const fn new(burst: u32, every: Duration) -> Self {
        Self { every, burst, tokens: burst, filled: Timestamp::ZERO }
    }

    /// From now on another rate and burst; what is in the bucket stays, up to the new burst.
    pub fn set(&mut self, burst: u32, every: Duration) {
        (self.burst, self.every) = (burst, every);
    }

    /// When there is a token, at the earliest: not in the future if there is one already.
    pub fn next_at(&self) -> Timestamp {
        if self.tokens > 0 { self.filled } else { self.filled + self.every }
    }

    /// Takes one token if there is one.
    pub fn take(&mut self, now: Timestamp) -> bool {
        self.take_above(now, 0)
    }

    /// Takes one token if so many are left then.
    pub fn take_above(&mut self, now: Timestamp, left_min: u32) -> bool {
        self.take_some(now, 1, left_min)
    }

    /// Takes so many tokens if there are as many.
    pub fn take_many(&mut self, now: Timestamp, count: u32) -> bool {
        self.take_some(now, count, 0)
    }

    fn take_some(&mut self, now: Timestamp, count: u32, left_min: u32) -> bool {
        let every = self.every.as_micros().max(1);
        let new = now.since(self.filled).as_micros() / every;
        let new = u32::try_from(new).unwrap_or(u32::MAX);
        self.filled += self.every.saturating_mul(new);
        self.tokens = self.tokens.saturating_add(new).min(self.burst);
        if self.tokens == self.burst {
            // Full: the next token comes a whole `every` after this one goes. Else all buckets of
            // one rate, on every node that was started at the same time, would be filled at the
            // same moments.
            self.filled = now;
        }
        match self.tokens.checked_sub(count) {
            Some(left) if left >= left_min => {
                self.tokens = left;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_so_many_for_others() {
        let mut bucket = TokenBucket::new(3, Duration::from_millis(10));
        let at = Timestamp::from_millis(1000);
        assert!(bucket.take_above(at, 2));
        assert!(!bucket.take_above(at, 2));
        assert!(bucket.take_above(at, 1) && bucket.take(at) && !bucket.take(at));
    }

    #[test]
    fn gives_many_or_none() {
        let mut bucket = TokenBucket::new(5, Duration::from_millis(10));
        let at = Timestamp::from_millis;
        assert!(bucket.take_many(at(1000), 3));
        assert!(!bucket.take_many(at(1000), 3) && bucket.take_many(at(1000), 2));
        assert!(!bucket.take_many(at(1029), 3) && bucket.take_many(at(1030), 3));
    }

    #[test]
    fn buckets_first_used_at_different_times_are_filled_at_different_times() {
        let at = Timestamp::from_millis;
        let next = |first: u64| {
            let mut bucket = TokenBucket::new(1, Duration::from_millis(1000));
            assert!(bucket.take(at(first)) && !bucket.take(at(first + 999)));
            bucket.next_at()
        };
        assert_eq!([next(1001), next(1700)], [at(2001), at(2700)]);
    }

    #[test]
    fn allows_a_burst_and_then_the_rate() {
        let mut bucket = TokenBucket::new(3, Duration::from_millis(10));
        let at = Timestamp::from_millis;
        let taken = (0..5).filter(|_| bucket.take(at(1000))).count();
        assert_eq!(taken, 3);
        assert!(!bucket.take(at(1009)));
        assert!(bucket.take(at(1010)));
        assert!(!bucket.take(at(1011)));
    }

    #[test]
    fn does_not_save_up_more_than_a_burst() {
        let mut bucket = TokenBucket::new(2, Duration::from_millis(10));
        assert!(bucket.take(Timestamp::from_millis(100)));
        let taken = (0..9).filter(|_| bucket.take(Timestamp::from_millis(90_000))).count();
        assert_eq!(taken, 2);
    }

    #[test]
    fn another_rate_counts_from_now_on_and_what_is_saved_stays_up_to_the_new_burst() {
        let at = Timestamp::from_millis;
        let taken = |bucket: &mut TokenBucket, ms| (0..99).filter(|_| bucket.take(at(ms))).count();
        let mut bucket = TokenBucket::new(10, Duration::from_millis(10));
        assert!(bucket.take(at(1000)));
        bucket.set(4, Duration::from_millis(1000));
        assert_eq!(taken(&mut bucket, 1001), 4);
        assert_eq!((taken(&mut bucket, 1900), taken(&mut bucket, 2001)), (0, 1));
        bucket.set(10, Duration::from_millis(10));
        assert_eq!(taken(&mut bucket, 2051), 5, "no more than came since");
    }

    #[test]
    fn while_there_is_a_token_the_next_is_not_waited_for() {
        let at = Timestamp::from_millis;
        let mut bucket = TokenBucket::new(2, Duration::from_millis(10));
        assert!(bucket.take(at(1000)));
        assert!(bucket.next_at() <= at(1000));
        assert!(bucket.take(at(1000)));
        assert_eq!(bucket.next_at(), at(1010));
        assert!(!bucket.take(at(1009)) && bucket.take(at(1010)));
    }
}
