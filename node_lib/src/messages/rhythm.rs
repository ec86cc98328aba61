//! How often the heartbeats of an RSU come: [`Rhythm`].
//!
//! An RSU numbers its heartbeats by time, each number one *tick* after the one before, and sends
//! those whose number is a multiple of two to the power of its *pace*. So where its channel is full
//! it sends fewer, all that is a multiple of the interval becomes rarer with it, and the numbers
//! tell the time as before.

use std::time::Duration;

use super::{INTERVAL_MS_MAX, Kind, ParseError};
use crate::order::Seq;

/// The bits of an interval field that hold the pace. No tick is so long that it has them set.
const PACE: u16 = 0xc000;

/// The largest pace there is.
pub const PACE_MAX: u8 = (PACE >> PACE.trailing_zeros()) as u8;

const _: () = assert!(INTERVAL_MS_MAX < 1 << PACE.trailing_zeros());

/// What an RSU says of its own heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// From one number to the next.
    pub tick_ms: u16,
    /// The power of two of which the numbers that are sent are multiples, at most [`PACE_MAX`].
    pub pace: u8,
}

impl Rhythm {
    /// Every number is sent.
    pub const fn each(tick_ms: u16) -> Self {
        Self { tick_ms, pace: 0 }
    }

    /// From one number to the next.
    pub fn tick(self) -> Duration {
        Duration::from_millis(self.tick_ms.into())
    }

    /// From one heartbeat that the RSU sends to the next: *I*, of which all other times are
    /// multiples.
    pub fn interval(self) -> Duration {
        self.tick() * (1 << self.pace.min(PACE_MAX))
    }

    /// Whether who is of this stride brings the heartbeat of this number. The stride of the RSU
    /// itself is 0.
    pub fn is_brought(self, seq: Seq, stride: u8) -> bool {
        seq.0.is_multiple_of(1 << (self.pace.min(PACE_MAX) + stride))
    }

    /// An interval field: the tick with the pace above it.
    #[inline]
    pub(super) const fn field(self) -> [u8; 2] {
        let Self { tick_ms, pace } = self;
        debug_assert!(tick_ms & PACE == 0 && pace <= PACE_MAX);
        (tick_ms & !PACE | (pace as u16) << PACE.trailing_zeros()).to_be_bytes()
    }

    /// What stands in an interval field: an interval of at most [`INTERVAL_MS_MAX`].
    #[inline]
    pub(super) fn read(kind: Kind, bytes: [u8; 2]) -> Result<Self, ParseError> {
        let field = u16::from_be_bytes(bytes);
        let (tick_ms, pace) = (field & !PACE, (field >> PACE.trailing_zeros()) as u8);
        let have = u32::from(tick_ms) << pace;
        if !(1..=u32::from(INTERVAL_MS_MAX)).contains(&have) {
            return Err(kind.value("interval_ms", "1 to 10000", have));
        }
        Ok(Self { tick_ms, pace })
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
