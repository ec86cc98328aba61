//! Virtual or real time, as a number that only ever grows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Microseconds since an arbitrary start (process start, or the beginning of a simulation).
///
/// A node never reads a clock; whoever drives it says what time it is. All arithmetic saturates, so
/// no input can make it panic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// One more than the microseconds: an `Option` of a time, of which every table is full, is then
    /// no larger than a time. The microsecond it cannot hold is 584,000 years away.
    plus_one: NonZeroU64,
}

impl Timestamp {
    /// The start.
    pub const ZERO: Self = Self { plus_one: NonZeroU64::MIN };

    /// `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self { plus_one: NonZeroU64::MIN.saturating_add(micros) }
    }

    /// `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_micros(millis.saturating_mul(1000))
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.plus_one.get() - 1
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.plus_one.get().saturating_sub(earlier.plus_one.get()))
    }

    /// `self` moved back by `span`, at most to the start.
    pub fn before(self, span: Duration) -> Self {
        Self::from_micros(self.as_micros().saturating_sub(micros(span)))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_micros().hash(state);
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timestamp").field(&self.as_micros()).finish()
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self { plus_one: self.plus_one.saturating_add(micros(span)) }
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
        let micros = self.as_micros();
        write!(f, "{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
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
    fn no_time_takes_no_room_of_its_own() {
        assert_eq!(size_of::<Option<Timestamp>>(), size_of::<Timestamp>());
        let micros = [0, 1, 1_500_000, u64::MAX - 1];
        assert_eq!(micros.map(|n| Timestamp::from_micros(n).as_micros()), micros);
        assert_eq!(Timestamp::default(), Timestamp::ZERO);
    }

    #[test]
    fn prints_seconds() {
        assert_eq!(Timestamp::from_micros(1_500_000).to_string(), "1.500000 s");
    }
}
