//! How values are spread: [`Spread`].

use serde::Serialize;

/// The smallest value that this share of all values does not exceed: nearest rank, so each is a
/// value that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Half of them.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// All of them.
    pub max: f64,
}

impl Spread {
    /// Of these values; none of none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as u64;
        Self::by_rank(count, |rank| {
            values.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied()
        })
    }

    /// Of so many values, of which `at` says what is at a rank, from 1.
    pub(super) fn by_rank(count: u64, at: impl Fn(u64) -> Option<f64>) -> Option<Self> {
        // In whole numbers: ⌈n·share⌉.
        let percentile = |percent: u64| at((count * percent).div_ceil(100));
        Some(Self {
            p50: percentile(50)?,
            p90: percentile(90)?,
            p99: percentile(99)?,
            max: percentile(100)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let spread = Spread::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(spread, Some(Spread { p50: 100.0, p90: 180.0, p99: 198.0, max: 200.0 }));
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.p50, one.max), (7.0, 7.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
