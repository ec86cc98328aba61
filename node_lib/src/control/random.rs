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

    /// A number below `limit` (0 if `limit` is 0), by multiply and shift (Lemire, 2019); its bias of
    /// less than `limit`/2³² does not matter for jitter.
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
}
