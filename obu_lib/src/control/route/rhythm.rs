//! How often the heartbeats of an RSU come: [`Rhythm`].
//!
//! An RSU numbers its heartbeats by time, each number one *tick* after the one before, and sends
//! those whose number is a multiple of two to the power of its pace. So where its channel is full
//! it sends fewer, all that is a multiple of the interval becomes rarer with it, and the numbers
//! tell the time as before.

use std::time::Duration;

use node_lib::Seq;
use node_lib::messages::PACE_MAX;

/// What an RSU says of its own heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rhythm {
    /// From one number to the next, as the RSU was told.
    pub(crate) tick_ms: u16,
    /// The power of two of which the numbers that are sent are multiples.
    pub(crate) pace: u8,
}

impl Rhythm {
    /// From one number to the next.
    pub(crate) fn tick(self) -> Duration {
        Duration::from_millis(self.tick_ms.into())
    }

    /// From one heartbeat that the RSU sends to the next: *I*, of which all other times are
    /// multiples.
    pub(crate) fn interval(self) -> Duration {
        self.tick() * (1 << self.pace.min(PACE_MAX))
    }

    /// Whether who is of this stride brings the heartbeat of this number.
    pub(crate) fn is_brought(self, seq: Seq, stride: u8) -> bool {
        seq.0.is_multiple_of(1 << (self.pace.min(PACE_MAX) + stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_numbers_sent_a_relay_brings_its_share() {
        let rhythm = Rhythm { tick_ms: 100, pace: 1 };
        assert_eq!((rhythm.tick().as_millis(), rhythm.interval().as_millis()), (100, 200));
        let brought = |stride| (0..16).filter(|n| rhythm.is_brought(Seq(*n), stride)).count();
        assert_eq!([0, 1, 2].map(brought), [8, 4, 2]);
    }
}
