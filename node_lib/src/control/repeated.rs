//! What is said several times because nobody acknowledges it: [`Repeated`].

use std::time::Duration;

use crate::time::Timestamp;

/// How often a withdrawal or a goodbye is said …
const TIMES: u8 = 3;

/// … and how far apart.
const EVERY: Duration = Duration::from_millis(15);

/// How long a node keeps forwarding after its goodbye.
pub const LINGER: Duration = Duration::from_millis(200);

const _: () = assert!(EVERY.as_millis() * (TIMES as u128) < LINGER.as_millis());

/// What is still to be said, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    left: u8,
    at: Timestamp,
}

impl Repeated {
    /// From now on, as often as it is said.
    pub fn begin(&mut self, now: Timestamp) {
        *self = Self { left: TIMES, at: now };
    }

    /// It is not to be said any more.
    pub fn end(&mut self) {
        self.left = 0;
    }

    /// Whether it is said now. If so, once less is left.
    pub fn take(&mut self, now: Timestamp) -> bool {
        let is_due = self.due_at().is_some_and(|at| now >= at);
        if is_due {
            *self = Self { left: self.left - 1, at: now + EVERY };
        }
        is_due
    }

    /// When it is said next.
    pub fn due_at(&self) -> Option<Timestamp> {
        (self.left > 0).then_some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_three_times_unless_it_ends_before() {
        let mut goodbye = Repeated::default();
        let said = |goodbye: &mut Repeated| {
            (100..200).filter(|ms| goodbye.take(Timestamp::from_millis(*ms))).collect::<Vec<_>>()
        };
        assert!(said(&mut goodbye).is_empty());
        goodbye.begin(Timestamp::from_millis(100));
        assert_eq!(goodbye.due_at(), Some(Timestamp::from_millis(100)));
        assert_eq!(said(&mut goodbye), [100, 115, 130]);
        assert_eq!(goodbye.due_at(), None);
        goodbye.begin(Timestamp::from_millis(100));
        goodbye.end();
        assert!(said(&mut goodbye).is_empty());
    }
}
