//! When a node wants to be called, and why: [`Deadline`].
//!
//! A node has many clocks and one next deadline. Whoever asks why a node wakes needs the clock that
//! ran out. So each time is kept together with its reason, from where it is set to whoever drives
//! the node.

use std::time::Duration;

use crate::time::Timestamp;

/// A time, and what is due then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Timestamp,
    /// What is due, in a few words for people.
    pub reason: &'static str,
}

impl Deadline {
    /// This is due then.
    #[inline]
    pub const fn new(at: Timestamp, reason: &'static str) -> Self {
        Self { at, reason }
    }

    /// The earlier one of this and the other, if there is another. At the same time it is this one.
    #[inline]
    #[must_use]
    pub fn or(self, other: impl Into<Option<Self>>) -> Self {
        other.into().filter(|other| other.at < self.at).unwrap_or(self)
    }

    /// The earlier one of this and that which is due then, if there is such a time.
    #[inline]
    #[must_use]
    pub fn or_at(self, at: impl Into<Option<Timestamp>>, reason: &'static str) -> Self {
        self.or(at.into().map(|at| Self::new(at, reason)))
    }

    /// The same, but no earlier than that.
    #[inline]
    #[must_use]
    pub fn not_before(self, soonest: Timestamp) -> Self {
        Self { at: self.at.max(soonest), ..self }
    }

    /// The same, but after `now`: what cannot be done yet must not keep a driver busy.
    #[inline]
    #[must_use]
    pub fn after(self, now: Timestamp) -> Self {
        self.not_before(now + Duration::from_micros(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn the_earliest_is_kept_with_its_own_reason() {
        let first = Deadline::new(at(20), "tidy");
        assert_eq!(first.or_at(at(10), "ask"), Deadline::new(at(10), "ask"));
        assert_eq!(first.or_at(at(30), "ask"), first);
        assert_eq!(first.or_at(None, "ask"), first);
        assert_eq!(first.or(Deadline::new(at(20), "ask")), first, "at the same time");
        assert_eq!(first.or(None::<Deadline>), first);
    }

    #[test]
    fn one_that_is_put_off_keeps_its_reason() {
        let asked = Deadline::new(at(20), "ask");
        assert_eq!(asked.not_before(at(10)), asked);
        assert_eq!(asked.not_before(at(30)), Deadline::new(at(30), "ask"));
        let soonest = at(20) + Duration::from_micros(1);
        assert_eq!(asked.after(at(20)), Deadline::new(soonest, "ask"));
        assert_eq!(asked.after(at(10)), asked);
    }
}
