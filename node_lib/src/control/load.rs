//! How full the air around us is of heartbeats: [`AirLoad`].
//!
//! Heartbeats are most of what nodes say whether or not anybody has something to send, and
//! everybody in earshot hears the same ones. They are counted as if nobody held back: one of a
//! relay that brings every fourth counts four times. So the measure does not fall because nodes
//! follow it, and they need not feel their way to a balance, as the adaptive approach of ETSI TS
//! 102 687 (§5.4) does.

use std::fmt;
use std::time::Duration;

use crate::messages::flags::STRIDE_MAX;
use crate::time::Timestamp;

/// Heartbeats are counted for so long …
const BIN: Duration = Duration::from_millis(100);

/// … and the counts averaged exponentially, with this weight as a right shift: over 0.8 s, and 0.4
/// s while they rise.
const WEIGHT_SHIFT: u32 = 3;

/// The air is full from so many heartbeats in each [`BIN`] on: they take 2 % of a radio of 6
/// Mbit/s, on which each takes 0.16 ms …
const FULL_FROM: u32 = 12;

/// … until they are fewer than so many.
const FULL_UNTIL: u32 = 9;

/// For each heartbeat in a [`BIN`] so many OBUs say other things as well, and wait for each other.
const OBUS_PER_HEARTBEAT: u32 = 4;

/// Fixed point of [`AirLoad::average`].
const UNIT: u32 = 256;

/// No more heartbeats are counted in a [`BIN`]: more than a radio carries.
const COUNT_MAX: u32 = 4096;

/// How full the air is.
#[derive(Clone)]
pub struct AirLoad {
    bin_until: Timestamp,
    count: u32,
    /// Heartbeats per bin, in 1/256.
    average: u32,
    is_full: bool,
}

impl AirLoad {
    /// Nothing heard yet.
    pub fn new(now: Timestamp) -> Self {
        Self { bin_until: now + BIN, count: 0, average: 0, is_full: false }
    }

    /// A heartbeat was sent or heard, of somebody of this stride.
    pub fn note(&mut self, now: Timestamp, stride: u8) {
        self.turn_to(now);
        self.count = (self.count + (1 << stride.min(STRIDE_MAX))).min(COUNT_MAX);
    }

    /// Bins that are over count.
    pub fn turn_to(&mut self, now: Timestamp) {
        while now >= self.bin_until {
            let sample = std::mem::take(&mut self.count) * UNIT;
            self.average += sample.saturating_sub(self.average) >> (WEIGHT_SHIFT - 1);
            self.average -= self.average.saturating_sub(sample) >> WEIGHT_SHIFT;
            // After a long silence there is nothing left to forget.
            let from = if self.average < UNIT { now } else { self.bin_until };
            self.bin_until = from + BIN;
        }
        self.is_full = self.average >= UNIT * if self.is_full { FULL_UNTIL } else { FULL_FROM };
    }

    /// Relays bring fewer heartbeats, and nobody asks more than one other on suspicion.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Heartbeats heard each second, as if nobody held back.
    pub fn per_second(&self) -> f64 {
        let bins = 1000.0 / BIN.as_millis() as f64;
        (f64::from(self.average) / f64::from(UNIT) * bins).round()
    }

    /// As many OBUs as would fill the air as it is; one where it is not full.
    pub fn obus(&self) -> u16 {
        if !self.is_full {
            return 1;
        }
        u16::try_from(self.average * OBUS_PER_HEARTBEAT / UNIT).unwrap_or(u16::MAX)
    }
}

/// What follows from it: who compares the states of nodes need not tell apart counts from which
/// nothing does.
impl fmt::Debug for AirLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AirLoad({})", self.obus())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// So many heartbeats of this stride in each 100 ms, for two seconds.
    fn heard(load: &mut AirLoad, from_ms: u64, each: u64, stride: u8) {
        for bin in 0..20 {
            for n in 0..each {
                load.note(at(from_ms + bin * 100 + n * 100 / each), stride);
            }
        }
    }

    #[test]
    fn a_few_relays_do_not_fill_the_air_and_a_dozen_do() {
        let mut load = AirLoad::new(at(0));
        heard(&mut load, 0, 11, 0);
        assert!(!load.is_full());
        assert_eq!(load.obus(), 1);
        heard(&mut load, 2000, 16, 0);
        assert!(load.is_full());
        assert!((58..=64).contains(&load.obus()), "{}", load.obus());
    }

    #[test]
    fn who_holds_back_counts_as_what_it_would_say() {
        let (mut all, mut few) = (AirLoad::new(at(0)), AirLoad::new(at(0)));
        heard(&mut all, 0, 16, 0);
        heard(&mut few, 0, 4, STRIDE_MAX);
        assert_eq!(all.obus(), few.obus());
        assert!(few.is_full());
    }

    #[test]
    fn it_does_not_go_to_and_fro() {
        let mut load = AirLoad::new(at(0));
        heard(&mut load, 0, 16, 0);
        heard(&mut load, 2000, 10, 0);
        assert!(load.is_full());
        heard(&mut load, 4000, 7, 0);
        assert!(!load.is_full());
    }

    #[test]
    fn silence_empties_it_within_seconds() {
        let mut load = AirLoad::new(at(0));
        heard(&mut load, 0, 100, 0);
        assert!(load.is_full());
        load.turn_to(at(6000));
        assert!(!load.is_full());
        load.turn_to(at(100_000_000));
        assert_eq!(load.obus(), 1);
    }

    #[test]
    fn no_count_overflows() {
        let mut load = AirLoad::new(at(0));
        for n in 0..100_000 {
            load.note(at(n / 10), u8::MAX);
        }
        assert!((2000..=4000 * 4).contains(&load.obus()), "{}", load.obus());
    }
}
