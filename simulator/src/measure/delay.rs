//! How long delivered frames were under way, from client to client: [`Delays`], and which way they
//! went: [`Direction`].

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::Spread;

/// Which way the frames of a flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum Direction {
    /// From a vehicle to the road side.
    Up,
    /// From the road side to a vehicle.
    Down,
    /// From one vehicle to another.
    BetweenVehicles,
    /// From the road side to the road side.
    Wired,
}

impl Direction {
    /// Of frames between two clients, of which this is known: are they in a vehicle?
    pub(super) const fn of(from_vehicle: bool, to_vehicle: bool) -> Self {
        match (from_vehicle, to_vehicle) {
            (true, false) => Self::Up,
            (false, true) => Self::Down,
            (true, true) => Self::BetweenVehicles,
            (false, false) => Self::Wired,
        }
    }

    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::BetweenVehicles => "between vehicles",
            Self::Wired => "wired",
        }
    }
}

impl From<Direction> for &'static str {
    fn from(direction: Direction) -> Self {
        direction.as_str()
    }
}

/// Delays of many frames, each to three digits: however many frames, there are some thousand
/// different ones at most. Written as their [`Spread`] in milliseconds.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Delays {
    /// Frames by delay, in microseconds.
    frames: BTreeMap<u64, u64>,
}

impl Delays {
    /// One more.
    pub fn note(&mut self, delay: Duration) {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        *self.frames.entry(to_three_digits(micros)).or_default() += 1;
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        for (delay, frames) in &other.frames {
            *self.frames.entry(*delay).or_default() += frames;
        }
    }

    /// In milliseconds; none without frames.
    pub fn spread(&self) -> Option<Spread> {
        Spread::by_rank(self.frames.values().sum(), |rank| {
            let mut up_to = 0;
            let reaches = |frames: &u64| {
                up_to += frames;
                up_to >= rank
            };
            let place = self.frames.values().position(reaches)?;
            self.frames.keys().nth(place).map(|micros| *micros as f64 / 1e3)
        })
    }
}

/// What a failed test prints of them.
impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spread().fmt(f)
    }
}

impl Serialize for Delays {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.spread().serialize(serializer)
    }
}

/// Rounded; the error is at most half a percent.
fn to_three_digits(number: u64) -> u64 {
    let mut step = 1;
    while number / step >= 1000 {
        step *= 10;
    }
    number.saturating_add(step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(micros: impl IntoIterator<Item = u64>) -> Delays {
        let mut delays = Delays::default();
        micros.into_iter().for_each(|micros| delays.note(Duration::from_micros(micros)));
        delays
    }

    #[test]
    fn a_delay_has_three_digits() {
        for (number, rounded) in [
            (0, 0),
            (999, 999),
            (1004, 1000),
            (1005, 1010),
            (123_456, 123_000),
            (999_999, 1_000_000),
        ] {
            assert_eq!(to_three_digits(number), rounded, "{number}");
        }
    }

    #[test]
    fn percentiles_are_those_of_all_frames_together() {
        assert_eq!(delays([]).spread(), None);
        let mut all = delays((1..=100).map(|n| 10 * n));
        all.add(&delays((101..=200).map(|n| 10 * n)));
        let spread = Spread { p50: 1.0, p90: 1.8, p99: 1.98, max: 2.0 };
        assert_eq!(all.spread(), Some(spread));
        assert_eq!(serde_json::to_value(&all).unwrap(), serde_json::to_value(spread).unwrap());
    }
}
