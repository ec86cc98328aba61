//! Two OBUs with one id, known by their taking turns.

use std::time::Duration;

use node_lib::{Boot, Timestamp};

use crate::control::departed::LATE_FOR;

/// Two starts of one OBU that take turns so often, within [`DUEL_WITHIN`], are two OBUs. An OBU
/// that starts again and again is one: each start is another. Two that have the same count take
/// turns as one start does with itself.
const DUEL_AFTER: u8 = 3;

/// See [`DUEL_AFTER`].
const DUEL_WITHIN: Duration = Duration::from_secs(10);

/// How often two starts under one id have taken turns. What is late of a start that is over makes
/// one turn with its successor at most: it has all come within [`LATE_FOR`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duel {
    between: [Boot; 2],
    times: u8,
    since: Timestamp,
    last: Timestamp,
}

impl Duel {
    /// The one start has taken its turn after the other. Returns whether that makes it a duel,
    /// once.
    pub(super) fn note(&mut self, now: Timestamp, one: Boot, other: Boot) -> bool {
        let between = [one.min(other), one.max(other)];
        if self.between != between || now.since(self.since) > DUEL_WITHIN {
            *self = Self { between, since: now, ..Self::default() };
        } else if now.since(self.last) < LATE_FOR {
            return false;
        }
        self.last = now;
        self.times = self.times.saturating_add(1);
        self.times == DUEL_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::super::Obus;
    use super::super::claim::Claim;
    use super::super::scene::*;
    use super::*;

    #[test]
    fn a_restart_is_no_duel() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        let mut is_believed = false;
        for n in 0..20 {
            let again = Said(100, 1, n, false);
            let at = NOW + Duration::from_millis(u64::from(n) * 100);
            let (judged, heard) = judge_at(at, &mut obus, again, &[client(1)]);
            is_believed |= matches!(heard, Claim::Accepted(_));
            assert!(!judged.is_duel, "{n}");
        }
        assert!(is_believed);
    }

    #[test]
    fn two_obus_with_one_id_are_noticed() {
        let mut obus = Obus::default();
        let duels = (0..20).filter(|n| {
            let boot = 7 + 100 * (n / 4 % 2);
            let at = NOW + Duration::from_millis(u64::from(*n) * 100);
            judge_at(at, &mut obus, Said(boot, 1, *n, false), &[client(boot as u8)]).0.is_duel
        });
        assert_eq!(duels.count(), 1);
    }
}
