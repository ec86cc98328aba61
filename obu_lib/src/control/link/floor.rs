//! How weak a frame may come in and still be heard: [`SignalFloor`].

use std::time::Duration;

use node_lib::time::Timestamp;

/// The weakest frames of anybody that were heard lately: below them a link ends.
///
/// No data sheet says so. Radios on the market are better than the standard demands by more or less
/// than 10 dB, and drivers differ in what they call a dBm. So each node learns it where it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignalFloor {
    weakest_dbm: Option<i8>,
    weakest_before_dbm: Option<i8>,
    since: Timestamp,
}

/// The weakest frame is remembered for so long at least, and twice as long at most: in half a
/// minute a vehicle in a town hears somebody come or go.
const WINDOW: Duration = Duration::from_secs(30);

/// So far above the weakest frame a link ends, in 1/100 dB: signals are told in whole dBm. Found by
/// experiment; with 2 dB links are left that would last, with none ended ones are used.
const STEP_CDB: i32 = 100;

/// No link ends as strong as this, in 1/100 dBm: it is what the standard demands of a radio at the
/// rate that needs most (54 Mbit/s on 20 MHz; IEEE 802.11-2020, table 17-18). Where all neighbours
/// are near, the weakest of them says nothing.
const HIGHEST_CDBM: i32 = -6_500;

impl SignalFloor {
    /// A frame came in this strong.
    pub fn note(&mut self, now: Timestamp, dbm: i8) {
        if now.since(self.since) >= WINDOW {
            self.weakest_before_dbm = self.weakest_dbm.take();
            self.since = now;
        }
        self.weakest_dbm = Some(self.weakest_dbm.map_or(dbm, |weakest| weakest.min(dbm)));
    }

    /// The radio tells how strong frames come in: it has done so within the last minute.
    pub fn is_told(&self, now: Timestamp) -> bool {
        self.weakest_dbm.is_some() && now.since(self.since) < WINDOW * 2
    }

    /// Below this a link ends, in 1/100 dBm; `None` before the first frame.
    pub fn cdbm(&self) -> Option<i32> {
        let weakest = self.weakest_dbm.into_iter().chain(self.weakest_before_dbm).min()?;
        Some((i32::from(weakest) * 100 + STEP_CDB).min(HIGHEST_CDBM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(s * 1000)
    }

    #[test]
    fn the_floor_is_a_step_above_the_weakest_frame_of_the_last_minute() {
        let mut floor = SignalFloor::default();
        assert_eq!(floor.cdbm(), None);
        for (second, dbm) in [(40, -80), (41, -91), (42, -70)] {
            floor.note(at(second), dbm);
        }
        assert_eq!(floor.cdbm(), Some(-9000));
        floor.note(at(71), -84);
        assert_eq!(floor.cdbm(), Some(-9000), "half a minute ago");
        floor.note(at(102), -85);
        assert_eq!(floor.cdbm(), Some(-8400), "a minute ago");
    }

    #[test]
    fn neighbours_that_are_all_near_say_nothing_of_where_links_end() {
        let mut floor = SignalFloor::default();
        floor.note(at(40), -40);
        assert_eq!(floor.cdbm(), Some(-6500));
    }

    #[test]
    fn a_radio_that_tells_no_more_is_known_within_a_minute() {
        let mut floor = SignalFloor::default();
        assert!(!floor.is_told(at(1)));
        for second in 1..100 {
            floor.note(at(second), -80);
            assert!(floor.is_told(at(second)), "{second}");
        }
        assert!(floor.is_told(at(110)));
        assert!(!floor.is_told(at(99 + 60)));
    }
}
