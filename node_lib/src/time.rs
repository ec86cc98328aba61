//! Virtual or real time, as a number that only ever grows.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Microseconds since an arbitrary start (process start, or the beginning of a simulation).
///
/// A node never reads a clock; whoever drives it says what time it is. All arithmetic saturates, so
/// no input can make it panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The start.
    pub const ZERO: Self = Self(0);

    /// `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// `self` moved back by `span`, at most to the start.
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Timestamp {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::ZERO.before(Duration::from_secs(1)), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO - Timestamp::from_millis(5), Duration::ZERO);
        let end = Timestamp::from_micros(u64::MAX);
        assert_eq!(end + Duration::MAX, end);
    }

    #[test]
    fn prints_seconds() {
        assert_eq!(Timestamp::from_micros(1_500_000).to_string(), "1.500000 s");
    }
}
