//! Randomness that repeats: [`Dice`], one stream per purpose.

use std::time::Duration;

use rand_core::Rng;
use rand_pcg::Pcg32;

/// One stream of random numbers. Each purpose (a link, a node's seed, a topology) has its own, so
/// that one more frame here does not change the luck of a link there.
#[derive(Clone, Debug)]
pub struct Dice(Pcg32);

/// Spreads every bit of `x` over all bits (the finaliser of SplitMix64, Steele et al., OOPSLA
/// 2014).
const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seed for one part of a world, independent of the seeds of its other parts.
pub const fn subseed(seed: u64, purpose: u64) -> u64 {
    mix(seed.wrapping_add(mix(purpose.wrapping_add(0x9e37_79b9_7f4a_7c15))))
}

/// The luck of one frame at one receiver: a short stream that needs no memory between frames, for
/// worlds in which each node hears hundreds of others (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Luck(u64);

impl Luck {
    /// The luck of the `event`-th of whatever happens between these two.
    pub(super) fn new(seed: u64, from: usize, to: usize, event: u64) -> Self {
        Self(mix(subseed(seed, (from as u64) << 32 | to as u64).wrapping_add(mix(event))))
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Evenly from 0 to 1, neither included.
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        let product = u64::from(bound) * (self.next_u64() >> 32);
        u32::try_from(product >> 32).unwrap_or(0)
    }

    /// True with this probability. Draws nothing when the answer is certain.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.unit() < probability)
    }
}

impl Dice {
    /// The stream for this purpose.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self(Pcg32::new(subseed(seed, purpose), mix(purpose)))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Evenly from 0, included, to 1, not included.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability. Draws nothing when the answer is certain.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        if probability >= 1.0 {
            return true;
        }
        f64::from(self.0.next_u32()) < probability * (f64::from(u32::MAX) + 1.0)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias of the fixed-point product is below
    /// `bound` / 2⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// An index below `len`; 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// A span from zero up to and including `max`, in whole microseconds. Draws nothing for zero.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        let micros = u64::try_from(max.as_micros()).unwrap_or(u64::MAX);
        if micros == 0 {
            return Duration::ZERO;
        }
        Duration::from_micros(self.below(micros.saturating_add(1)))
    }

    /// One of `items`; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// Puts `items` into a random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_repeats_and_differs_from_its_neighbours() {
        let draw = |seed, purpose| {
            let mut dice = Dice::new(seed, purpose);
            [dice.next_u64(), dice.next_u64()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn chances_come_out_as_asked() {
        let mut dice = Dice::new(7, 0);
        let hits = (0..100_000).filter(|_| dice.chance(0.1)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
        assert!(!dice.chance(0.0) && dice.chance(1.0));
    }

    #[test]
    fn parts_of_one_are_even() {
        let mut dice = Dice::new(7, 2);
        let mut tenths = [0_u32; 10];
        for _ in 0..100_000 {
            tenths[(dice.unit() * 10.0) as usize] += 1;
        }
        // Three standard deviations are 285.
        assert!(tenths.iter().all(|n| (9_700..10_300).contains(n)), "{tenths:?}");
    }

    #[test]
    fn spans_and_indices_stay_within_their_bound() {
        let mut dice = Dice::new(7, 1);
        let max = Duration::from_micros(3);
        let spans: std::collections::BTreeSet<_> = (0..200).map(|_| dice.up_to(max)).collect();
        assert_eq!(spans.len(), 4);
        assert_eq!(spans.last(), Some(&max));
        assert!((0..200).all(|_| dice.index(5) < 5));
        assert_eq!(dice.index(0), 0);
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut items: Vec<_> = (0..20).collect();
        Dice::new(1, 1).shuffle(&mut items);
        assert_ne!(items, (0..20).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..20).collect::<Vec<_>>());
    }
}
