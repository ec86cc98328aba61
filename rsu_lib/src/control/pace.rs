//! How rarely heartbeats are sent: [`Pace`].
//!
//! All times of all OBUs are multiples of the time between two heartbeats. A short one finds a lost
//! upstream soon. But a radio has no more time when it is short. So an RSU sends rarer than it was
//! told to where it has many OBUs for that, and where its channel is full: every second, fourth or
//! eighth heartbeat. That scales whatever is said for its sake, as the rate does that LIMERIC and
//! ETSI TS 102 687 §5.4 set by the load.
//!
//! * **OBUs.** With 20 ms an upstream is dead after 45 ms of silence, and where 60 OBUs share the
//!   radio what one of them says waits that long now and then.
//! * **Channel.** Where a channel is full frames wait in all queues, and answers come too late for
//!   who asks each few milliseconds. Who is taken for dead for that is replaced, which says more,
//!   and fills the channel further.

use std::time::Duration;

use node_lib::messages::{INTERVAL_MS_MAX, PACE_MAX, Rhythm};
use node_lib::{Seq, Timestamp};

use crate::settings::HELLO_PERIODICITY;

/// So much time for each OBU of the RSU: in each interval it asks or answers something, with its
/// acknowledgement 0.4 ms of a radio of 6 Mbit/s, on two to three hops, beside the clients' frames.
const EACH_OBU: Duration = Duration::from_millis(2);

/// Heartbeats become no rarer than this for the number of OBUs: the default, with which there are
/// other rules for crowds.
const FOR_OBUS_MAX: Duration = HELLO_PERIODICITY;

/// A channel that is busy for so many per cent of a second is full, and heartbeats become rarer …
const FULL_FROM: u8 = 50;

/// … until it is busy for less than so many. The clients' frames are still there when control
/// takes half as much.
const FULL_UNTIL: u8 = 35;

/// Heartbeats become no rarer than this for a full channel: found by experiment
/// (`docs/tried.md`, "A full channel sets the pace").
const FOR_CHANNEL_MAX: Duration = Duration::from_millis(200);

/// What was measured counts for so long. Radios are asked once a second.
const MEASURED_FOR: Duration = Duration::from_secs(3);

/// So many heartbeats say that they become rarer before they do. OBUs believe two in a row; who has
/// heard of it does not ask where the missing ones are.
const SAID_BEFORE: u8 = 3;

/// How rarely heartbeats are sent.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// What heartbeats say. The tick is as the RSU was told …
    said: Rhythm,
    /// … and this pace is followed until the one said was said often enough.
    followed: u8,
    /// Heartbeats left that say it first.
    said_before: u8,
    /// How busy the channel was in per cent, and when that was measured.
    measured: Option<(u8, Timestamp)>,
}

impl Pace {
    /// As it was told, until there is a reason for another.
    pub(super) fn new(tick: Duration) -> Self {
        let tick_ms = u16::try_from(tick.as_millis()).unwrap_or(u16::MAX);
        let said = Rhythm::each(tick_ms.clamp(1, INTERVAL_MS_MAX));
        Self { said, followed: 0, said_before: 0, measured: None }
    }

    /// What heartbeats say.
    pub(super) fn said(&self) -> Rhythm {
        self.said
    }

    /// How busy the channel was lately, in per cent.
    pub(super) fn busy(&self, now: Timestamp) -> Option<u8> {
        let (busy, _) = self.measured.filter(|(_, at)| now.since(*at) < MEASURED_FOR)?;
        Some(busy)
    }

    /// Whether a heartbeat of this number is sent.
    pub(super) fn is_due(&self, seq: Seq) -> bool {
        self.at(self.followed).is_brought(seq, 0)
    }

    /// A heartbeat was sent.
    pub(super) fn note_sent(&mut self) {
        self.said_before = self.said_before.saturating_sub(1);
        if self.said_before == 0 {
            self.followed = self.said.pace;
        }
    }

    /// The channel was busy for so many per cent of the last second.
    pub(super) fn note_busy(&mut self, now: Timestamp, percent: u8) {
        self.measured = Some((percent, now));
    }

    /// So many OBUs are attached: called once a second. Returns whether the pace is another now.
    ///
    /// For OBUs it slows down at once, for the channel by one step. It quickens by one step, and
    /// only if half as many OBUs again would not need it slower: numbers go on as they are, but to
    /// look for what is lost more often than there is room for is what this is against.
    pub(super) fn consider(&mut self, now: Timestamp, obus: usize) -> bool {
        let obus = u32::try_from(obus).unwrap_or(u32::MAX);
        let busy = self.busy(now).unwrap_or_default();
        let (needed, spared) = (self.needed(obus), self.needed(obus.saturating_add(obus / 2)));
        let pace = self.said.pace;
        let is_slower_possible = pace < PACE_MAX && self.at(pace + 1).interval() <= FOR_CHANNEL_MAX;
        let next = if needed > pace {
            needed
        } else if busy >= FULL_FROM && is_slower_possible {
            pace + 1
        } else if busy < FULL_UNTIL && spared < pace {
            pace - 1
        } else {
            return false;
        };
        self.said_before = if next > self.followed { SAID_BEFORE } else { 0 };
        self.followed = self.followed.min(next);
        self.said = self.at(next);
        true
    }

    fn at(&self, pace: u8) -> Rhythm {
        Rhythm { pace, ..self.said }
    }

    /// The pace that leaves so many OBUs their time.
    fn needed(&self, obus: u32) -> u8 {
        let interval = EACH_OBU.saturating_mul(obus).min(FOR_OBUS_MAX);
        (0..PACE_MAX).find(|pace| self.at(*pace).interval() >= interval).unwrap_or(PACE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(1000 * s)
    }

    /// Between heartbeats in milliseconds, after each of these numbers of OBUs in turn.
    fn for_obus(tick_ms: u64, obus: &[usize]) -> Vec<u128> {
        let mut pace = Pace::new(Duration::from_millis(tick_ms));
        let after = |&obus: &usize| {
            pace.consider(at(0), obus);
            pace.said().interval().as_millis()
        };
        obus.iter().map(after).collect()
    }

    /// The same, after each of these shares of time in turn.
    fn for_channel(tick_ms: u64, busy: &[u8]) -> Vec<u128> {
        let mut pace = Pace::new(Duration::from_millis(tick_ms));
        let after = |&busy: &u8| {
            pace.note_busy(at(0), busy);
            pace.consider(at(0), 1);
            pace.said().interval().as_millis()
        };
        busy.iter().map(after).collect()
    }

    #[test]
    fn what_leaves_each_obu_its_time_stays_as_it_was_told() {
        for tick_ms in [10, 20, 50, 100, 250, 10_000] {
            let few = usize::try_from(tick_ms / 2).unwrap().min(50);
            assert_eq!(for_obus(tick_ms, &[0, 1, few]), [u128::from(tick_ms); 3]);
        }
    }

    #[test]
    fn the_default_and_more_are_not_changed_for_many_obus() {
        for tick_ms in [100, 250, 1000, 10_000] {
            assert_eq!(for_obus(tick_ms, &[51, 200, 1024]), [u128::from(tick_ms); 3]);
        }
    }

    #[test]
    fn it_slows_down_with_the_obus_until_it_is_about_the_default() {
        assert_eq!(for_obus(20, &[10, 11, 30, 60, 1024]), [20, 40, 80, 160, 160]);
        assert_eq!(for_obus(30, &[16, 60]), [60, 120]);
        assert_eq!(for_obus(10, &[1024]), [80]);
    }

    #[test]
    fn it_quickens_step_by_step_and_not_for_a_few() {
        assert_eq!(for_obus(20, &[45, 35, 20, 10, 0, 0]), [160, 160, 80, 40, 20, 20]);
    }

    #[test]
    fn a_full_channel_slows_it_down_step_by_step_to_a_limit() {
        assert_eq!(for_channel(100, &[49, 50, 90]), [100, 200, 200]);
        assert_eq!(for_channel(20, &[90; 4]), [40, 80, 160, 160]);
        assert_eq!(for_channel(250, &[90; 2]), [250; 2]);
    }

    #[test]
    fn it_quickens_when_the_channel_has_room_again() {
        assert_eq!(for_channel(50, &[90, 90, 35, 34, 34, 0]), [100, 200, 200, 100, 50, 50]);
    }

    #[test]
    fn what_was_measured_long_ago_does_not_count() {
        let mut pace = Pace::new(Duration::from_millis(100));
        pace.note_busy(at(0), 90);
        assert!(!pace.consider(at(3), 1));
        assert_eq!(pace.busy(at(3)), None);
        assert!(pace.consider(at(2), 1));
    }

    #[test]
    fn heartbeats_say_first_that_they_become_rarer() {
        let mut pace = Pace::new(Duration::from_millis(100));
        pace.note_busy(at(0), 90);
        assert!(pace.consider(at(0), 1));
        let mut sent = Vec::new();
        for seq in 1..12 {
            if pace.is_due(Seq(seq)) {
                sent.push((seq, pace.said().pace));
                pace.note_sent();
            }
        }
        assert_eq!(sent, [1, 2, 3, 4, 6, 8, 10].map(|seq| (seq, 1)));
        pace.note_busy(at(1), 0);
        assert!(pace.consider(at(1), 1));
        assert!(pace.is_due(Seq(11)), "at once");
    }
}
