//! Where nodes are, and how they move: [`Location`] and [`Track`].
//!
//! Metres on a plane. Files of movements are read elsewhere; this is what they become.

use std::time::Duration;

use node_lib::time::Timestamp;

/// A place on the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Location {
    /// Metres to the east.
    pub x_m: f64,
    /// Metres to the north.
    pub y_m: f64,
}

impl Location {
    /// The place `x_m` east and `y_m` north of the origin.
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m }
    }

    /// Metres between the two. A square root is exact to the last bit on every machine (IEEE 754).
    pub fn distance_m(self, other: Self) -> f64 {
        let (dx, dy) = (self.x_m - other.x_m, self.y_m - other.y_m);
        (dx * dx + dy * dy).sqrt()
    }

    fn is_finite(self) -> bool {
        self.x_m.is_finite() && self.y_m.is_finite()
    }

    /// The point this share of the way to `other`.
    fn towards(self, other: Self, share: f64) -> Self {
        Self {
            x_m: self.x_m + (other.x_m - self.x_m) * share,
            y_m: self.y_m + (other.y_m - self.y_m) * share,
        }
    }
}

/// The movement of one vehicle: waypoints in time, straight lines between them.
///
/// A vehicle exists from its first waypoint to its last and at no other time.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// In the order of time; never empty.
    waypoints: Vec<(Timestamp, Location)>,
}

/// Waypoints that are no movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrackError {
    /// There are none.
    #[error("a track needs a waypoint")]
    Empty,
    /// This one is not later than the one before.
    #[error("waypoint {0} is not later than the one before it")]
    Order(usize),
    /// A coordinate of this one is not a number.
    #[error("waypoint {0} has a coordinate that is not a finite number")]
    NotFinite(usize),
    /// A straight line needs a speed above zero.
    #[error("the speed must be a finite number of metres per second above 0")]
    Speed,
}

impl Track {
    /// A movement over these waypoints.
    ///
    /// # Errors
    /// There are none, they are not in the order of time, or one is not a place.
    pub fn new(
        waypoints: impl IntoIterator<Item = (Timestamp, Location)>,
    ) -> Result<Self, TrackError> {
        let waypoints: Vec<_> = waypoints.into_iter().collect();
        if waypoints.is_empty() {
            return Err(TrackError::Empty);
        }
        for (index, pair) in waypoints.windows(2).enumerate() {
            if let [(before, _), (after, _)] = pair
                && after <= before
            {
                return Err(TrackError::Order(index + 1));
            }
        }
        match waypoints.iter().position(|(_, position)| !position.is_finite()) {
            Some(index) => Err(TrackError::NotFinite(index)),
            None => Ok(Self { waypoints }),
        }
    }

    /// From one place straight to another at one speed.
    ///
    /// # Errors
    /// The speed is not above zero, a coordinate is not a number, or the two places are the same.
    pub fn straight(
        start: Timestamp,
        from: Location,
        to: Location,
        speed_mps: f64,
    ) -> Result<Self, TrackError> {
        if !(speed_mps.is_finite() && speed_mps > 0.0) {
            return Err(TrackError::Speed);
        }
        let seconds = from.distance_m(to) / speed_mps;
        let span = Duration::try_from_secs_f64(seconds).map_err(|_| TrackError::NotFinite(1))?;
        Self::new([(start, from), (start + span, to)])
    }

    /// When the vehicle appears.
    pub fn start(&self) -> Timestamp {
        self.waypoints.first().map_or(Timestamp::ZERO, |(time, _)| *time)
    }

    /// When it is gone.
    pub fn end(&self) -> Timestamp {
        self.waypoints.last().map_or(Timestamp::ZERO, |(time, _)| *time)
    }

    /// Where it is at this time; `None` before its start and after its end.
    pub fn position_at(&self, time: Timestamp) -> Option<Location> {
        let after = self.waypoints.partition_point(|(waypoint, _)| *waypoint <= time);
        let (t0, from) = *self.waypoints.get(after.checked_sub(1)?)?;
        let Some(&(t1, to)) = self.waypoints.get(after) else {
            return (t0 == time).then_some(from);
        };
        let share = time.since(t0).as_micros() as f64 / t1.since(t0).as_micros() as f64;
        Some(from.towards(to, share))
    }

    /// The waypoints, in the order of time.
    pub fn waypoints(&self) -> &[(Timestamp, Location)] {
        &self.waypoints
    }
}

/// Where one node is, and how it moves.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) position: Option<Location>,
    pub(super) track: Option<Track>,
}

impl Body {
    /// Moves it to where its track has it now; true if it is somewhere else than before.
    pub(super) fn advance(&mut self, now: Timestamp) -> bool {
        let Some(track) = &self.track else { return false };
        let position = track.position_at(now);
        let has_moved = position != self.position;
        self.position = position;
        has_moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn moves_straight_between_waypoints_and_exists_only_from_first_to_last() {
        let [a, b, c] = [(0.0, 0.0), (10.0, 0.0), (10.0, 20.0)].map(|(x, y)| Location::new(x, y));
        let track = Track::new([(at(1000), a), (at(2000), b), (at(4000), c)]).unwrap();
        let places = [999, 1000, 1500, 2000, 3000, 4000, 4001].map(|ms| track.position_at(at(ms)));
        let [half, late] = [Location::new(5.0, 0.0), Location::new(10.0, 10.0)];
        assert_eq!(places, [None, Some(a), Some(half), Some(b), Some(late), Some(c), None]);
        assert_eq!((track.start(), track.end()), (at(1000), at(4000)));
    }

    #[test]
    fn a_straight_line_takes_its_length_over_its_speed() {
        let [from, to] = [Location::new(0.0, 0.0), Location::new(300.0, 400.0)];
        let track = Track::straight(at(100), from, to, 25.0).unwrap();
        assert_eq!(track.end(), at(20_100));
        assert_eq!(track.position_at(at(10_100)), Some(Location::new(150.0, 200.0)));
    }

    #[test]
    fn refuses_what_is_no_movement() {
        let here = Location::new(0.0, 0.0);
        assert_eq!(Track::new([]), Err(TrackError::Empty));
        assert_eq!(Track::new([(at(5), here), (at(5), here)]), Err(TrackError::Order(1)));
        let nowhere = Location::new(f64::NAN, 0.0);
        assert_eq!(Track::new([(at(5), nowhere)]), Err(TrackError::NotFinite(0)));
        for speed in [0.0, -1.0, f64::NAN] {
            assert_eq!(Track::straight(at(0), here, here, speed), Err(TrackError::Speed));
        }
        assert_eq!(Track::straight(at(0), here, here, 1.0), Err(TrackError::Order(1)));
    }
}
