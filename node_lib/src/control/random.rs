//! Randomness from a seed: [`Random`].

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// A stream of random numbers that is the same for the same seed, on every machine.
#[derive(Clone, Debug)]
pub struct Random(Pcg32);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg32::seed_from_u64(seed))
    }

    /// Any number.
    pub fn number(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number below `limit` (0 if `limit` is 0), by multiply and shift (Lemire, 2019); its bias
    /// of less than `limit`/2³² does not matter for jitter.
    pub fn below(&mut self, limit: u32) -> u32 {
        let product = u64::from(self.0.next_u32()) * u64::from(limit);
        (product >> 32) as u32
    }

    /// A time from zero up to `max`.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        let max = u32::try_from(max.as_micros()).unwrap_or(u32::MAX);
        Duration::from_micros(u64::from(self.below(max.saturating_add(1))))
    }

    /// `span`, up to `percent` per cent shorter or longer.
    pub fn jitter(&mut self, span: Duration, percent: u32) -> Duration {
        let slack = span * percent.min(100) / 100;
        span - slack + self.up_to(slack * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        let stream = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<u32, 4, _>(|_| random.number())
        };
        assert_eq!(stream(1), stream(1));
        assert_ne!(stream(1), stream(2));
    }

    #[test]
    fn jitter_stays_within_its_bounds() {
        let mut random = Random::new(7);
        let span = Duration::from_millis(100);
        for _ in 0..1000 {
            let jittered = random.jitter(span, 10).as_millis();
            assert!((90..=110).contains(&jittered), "{jittered}");
        }
        assert_eq!(random.below(0), 0);
        assert_eq!(random.up_to(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn jitter_reaches_as_far_to_either_side_and_is_even() {
        let mut random = Random::new(7);
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let late = random.jitter(Duration::from_millis(100), 10) - Duration::from_millis(90);
            tenths[(late.as_micros() * 10 / 20_001) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }

    #[test]
    fn every_number_below_a_limit_comes_equally_often() {
        let mut random = Random::new(7);
        let mut counts = [0; 7];
        (0..7000).for_each(|_| counts[random.below(7) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn jitter_of_more_than_everything_is_everything() {
        let mut random = Random::new(7);
        let span = Duration::from_millis(100);
        let longest = (0..1000).map(|_| random.jitter(span, 500)).max();
        assert!(longest.is_some_and(|longest| longest <= span * 2 && longest > span));
    }
}
