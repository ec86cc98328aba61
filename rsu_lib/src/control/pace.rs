//! How often heartbeats are sent: [`Pace`].
//!
//! All times of all OBUs are multiples of the interval that heartbeats carry. A short one finds a
//! lost upstream soon. But a radio has no more time when it is short: with 20 ms an upstream is
//! dead after 45 ms of silence, and where 60 OBUs share the radio what one of them says waits that
//! long now and then. So an RSU with many OBUs sends rarer than it was told to. That scales
//! whatever is said for its sake, as the rate does that LIMERIC and ETSI TS 102 687 §5.4 set by the
//! load.

use std::time::Duration;

use crate::settings::HELLO_PERIODICITY;

/// So much time for each OBU of the RSU: in each interval it asks or answers something, with its
/// acknowledgement 0.4 ms of a radio of 6 Mbit/s, on two to three hops, beside the clients' frames.
const EACH_OBU: Duration = Duration::from_millis(2);

/// Heartbeats become no rarer than this for the number of OBUs: the default, with which there are
/// other rules for crowds.
const PACED_MAX: Duration = HELLO_PERIODICITY;

/// The time between two heartbeats.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// As the RSU was told.
    asked: Duration,
    period: Duration,
}

impl Pace {
    /// As it was told, until OBUs are there.
    pub(super) fn new(asked: Duration) -> Self {
        let asked = asked.max(Duration::from_millis(1));
        Self { asked, period: asked }
    }

    /// The time between two heartbeats.
    pub(super) fn period(&self) -> Duration {
        self.period
    }

    /// So many OBUs are attached: called once a second. The period is a multiple of what the RSU
    /// was told. It grows at once. It shrinks by one step a second, and only when half as many OBUs
    /// again would not need it: OBUs that miss a change take numbers that grow much faster than
    /// they expect for those of a restart.
    pub(super) fn note_obus(&mut self, obus: usize) {
        let obus = u32::try_from(obus).unwrap_or(u32::MAX);
        let wanted = self.wanted(obus);
        if wanted > self.period {
            self.period = wanted;
        } else if self.wanted(obus.saturating_add(obus / 2)) < self.period {
            self.period = (self.period - self.asked).max(wanted);
        }
    }

    fn wanted(&self, obus: u32) -> Duration {
        let most = PACED_MAX.max(self.asked);
        let needed = EACH_OBU.saturating_mul(obus).min(most);
        let steps = needed.as_micros().div_ceil(self.asked.as_micros());
        let steps = u32::try_from(steps).unwrap_or(u32::MAX).max(1);
        self.asked.saturating_mul(steps).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In milliseconds, after each of these numbers of OBUs in turn.
    fn periods(asked_ms: u64, obus: &[usize]) -> Vec<u128> {
        let mut pace = Pace::new(Duration::from_millis(asked_ms));
        let after = |&obus: &usize| {
            pace.note_obus(obus);
            pace.period().as_millis()
        };
        obus.iter().map(after).collect()
    }

    #[test]
    fn what_leaves_each_obu_its_time_stays_as_it_was_told() {
        for asked_ms in [10, 20, 50, 100, 250, 10_000] {
            let few = usize::try_from(asked_ms / 2).unwrap().min(50);
            assert_eq!(periods(asked_ms, &[0, 1, few]), [u128::from(asked_ms); 3]);
        }
    }

    #[test]
    fn the_default_and_more_are_never_changed() {
        for asked_ms in [100, 250, 1000, 10_000] {
            assert_eq!(periods(asked_ms, &[51, 200, 1024]), [u128::from(asked_ms); 3]);
        }
    }

    #[test]
    fn it_grows_with_the_obus_up_to_the_default() {
        assert_eq!(periods(20, &[10, 11, 30, 60, 1024]), [20, 40, 60, 100, 100]);
        assert_eq!(periods(30, &[16, 60]), [60, 100]);
    }

    #[test]
    fn it_shrinks_step_by_step_and_not_for_a_few() {
        let left = periods(20, &[45, 40, 35, 30, 20, 0, 0, 0, 0]);
        assert_eq!(left, [100, 100, 100, 100, 80, 60, 40, 20, 20]);
    }
}
