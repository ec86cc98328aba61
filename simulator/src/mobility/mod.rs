//! Where vehicles drive: [`Movement`], read from the files of others, drawn as straight lines, or
//! made from a seed as a town ([`grid`]) or a motorway ([`motorway`]).
//!
//! | file | read by | known by |
//! |---|---|---|
//! | our own CSV | [`csv`] | columns `time_s,vehicle,x_m,y_m` |
//! | SUMO floating-car data, XML | [`sumo_xml`] | `<` as the first character |
//! | SUMO floating-car data, CSV | [`sumo_csv`] | columns `timestep_time;vehicle_id;…` |
//! | ns-2 movement | [`ns2`] | `$` or `#` as the first character |
//!
//! Any of them may be compressed with gzip. A file is known by what is in it, not by its name.
//! Positions are metres in a plane; degrees are refused. Between two positions a vehicle drives
//! straight and evenly.

pub mod csv;
mod error;
mod file;
mod follow;
mod geographic;
pub mod grid;
pub mod line;
pub mod motorway;
pub mod ns2;
pub mod sumo_csv;
pub mod sumo_xml;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Timestamp;

pub use error::MobilityError;
pub use file::read;

/// A place in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// To the east.
    pub x_m: f64,
    /// To the north.
    pub y_m: f64,
}

impl Point {
    /// The point at these coordinates.
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m }
    }

    /// Metres to another point.
    pub fn distance_m(self, other: Self) -> f64 {
        let (dx, dy) = (other.x_m - self.x_m, other.y_m - self.y_m);
        (dx * dx + dy * dy).sqrt()
    }

    /// The point this share of the way to `other`.
    pub fn towards(self, other: Self, share: f64) -> Self {
        let part = |from: f64, to: f64| from + (to - from) * share;
        Self { x_m: part(self.x_m, other.x_m), y_m: part(self.y_m, other.y_m) }
    }
}

/// A vehicle is here at this time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// When.
    pub time: Timestamp,
    /// Where.
    pub at: Point,
}

/// One vehicle: its way, in order of time. It is on the road from its first waypoint on.
#[derive(Clone, Debug, PartialEq)]
pub struct Vehicle {
    /// What the file calls it.
    pub name: String,
    /// Never empty; times strictly increase.
    pub way: Vec<Waypoint>,
    /// It stays where its way ends, and is otherwise gone.
    pub stays: bool,
}

impl Vehicle {
    /// Where it is at this time; `None` while it is not on the road.
    pub fn position_at(&self, time: Timestamp) -> Option<Point> {
        let next = self.way.partition_point(|waypoint| waypoint.time <= time);
        let before = self.way.get(next.checked_sub(1)?)?;
        match self.way.get(next) {
            Some(after) => {
                let leg = after.time.since(before.time).as_secs_f64();
                let share = time.since(before.time).as_secs_f64() / leg;
                Some(before.at.towards(after.at, share))
            }
            None => (self.stays || time == before.time).then_some(before.at),
        }
    }
}

/// Vehicles and their ways, in the order in which the file first names them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Movement {
    /// The vehicles.
    pub vehicles: Vec<Vehicle>,
}

impl Movement {
    /// Keeps what happens in a window of time, and lets time begin with it. Vehicles that are not
    /// on the road in the window are left out.
    pub fn cut(&mut self, from: Timestamp, to: Option<Timestamp>) {
        for vehicle in &mut self.vehicles {
            let ends_after = |end: &Timestamp| {
                vehicle.stays || vehicle.way.last().is_some_and(|last| last.time > *end)
            };
            let leaves_window = to.is_some_and(|end| ends_after(&end));
            let mut edges = [Some(from), to]
                .map(|edge| edge.and_then(|time| Some((time, vehicle.position_at(time)?))));
            let [first, last] = &mut edges;
            let inside = |waypoint: &Waypoint| {
                waypoint.time > from && to.is_none_or(|end| waypoint.time < end)
            };
            let kept = vehicle.way.iter().copied().filter(inside);
            let edge = |edge: &mut Option<(Timestamp, Point)>| {
                edge.take().map(|(time, at)| Waypoint { time, at })
            };
            let way = edge(first).into_iter().chain(kept).chain(edge(last));
            vehicle.way = way
                .map(|Waypoint { time, at }| Waypoint {
                    time: Timestamp::ZERO + time.since(from),
                    at,
                })
                .collect();
            vehicle.way.dedup_by_key(|waypoint| waypoint.time);
            vehicle.stays |= leaves_window;
        }
        self.vehicles.retain(|vehicle| !vehicle.way.is_empty());
    }

    /// Moves everything.
    pub fn shift(&mut self, by: Point) {
        for waypoint in self.vehicles.iter_mut().flat_map(|vehicle| &mut vehicle.way) {
            waypoint.at = Point::new(waypoint.at.x_m + by.x_m, waypoint.at.y_m + by.y_m);
        }
    }
}

/// Puts positions together into a [`Movement`], in whatever order vehicles take turns.
#[derive(Debug, Default)]
struct Recorder {
    vehicles: Vec<Vehicle>,
    index: BTreeMap<String, usize>,
}

impl Recorder {
    /// Notes a position. `Err` with the time of the one before when it is not later.
    fn add(&mut self, name: &str, waypoint: Waypoint) -> Result<(), Timestamp> {
        let index = match self.index.get(name) {
            Some(&index) => index,
            None => {
                let index = self.vehicles.len();
                self.index.insert(name.to_owned(), index);
                self.vehicles.push(Vehicle {
                    name: name.to_owned(),
                    way: Vec::new(),
                    stays: false,
                });
                index
            }
        };
        let Some(vehicle) = self.vehicles.get_mut(index) else { return Ok(()) };
        match vehicle.way.last() {
            Some(last) if last.time >= waypoint.time => Err(last.time),
            _ => {
                vehicle.way.push(waypoint);
                Ok(())
            }
        }
    }

    fn finish(self) -> Movement {
        Movement { vehicles: self.vehicles }
    }
}

/// Seconds as a number in a file, as a time; `None` for negative, endless or no numbers.
fn seconds(text: &str) -> Option<Timestamp> {
    let seconds: f64 = text.trim().parse().ok()?;
    time_of(seconds)
}

/// Seconds as a time, to the microsecond; `None` for negative and endless ones.
fn time_of(seconds: f64) -> Option<Timestamp> {
    let micros = Duration::try_from_secs_f64(seconds).ok()?.as_nanos().saturating_add(500) / 1000;
    u64::try_from(micros).ok().map(Timestamp::from_micros)
}

/// Metres as a number in a file; `None` for what is no finite number.
fn metres(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waypoint(seconds: u64, x_m: f64) -> Waypoint {
        Waypoint { time: Timestamp::from_millis(1000 * seconds), at: Point::new(x_m, 0.0) }
    }

    fn vehicle(way: &[(u64, f64)]) -> Vehicle {
        let way = way.iter().map(|&(time, x)| waypoint(time, x)).collect();
        Vehicle { name: "v".into(), way, stays: false }
    }

    #[test]
    fn drives_evenly_between_waypoints_and_is_nowhere_before_and_after() {
        let vehicle = vehicle(&[(10, 0.0), (20, 100.0)]);
        let at = |millis| vehicle.position_at(Timestamp::from_millis(millis));
        assert_eq!(at(9_999), None);
        assert_eq!(at(10_000), Some(Point::new(0.0, 0.0)));
        assert_eq!(at(12_500), Some(Point::new(25.0, 0.0)));
        assert_eq!(at(20_000), Some(Point::new(100.0, 0.0)));
        assert_eq!(at(20_001), None);
        assert_eq!(
            Vehicle { stays: true, ..vehicle.clone() }.position_at(Timestamp::from_millis(99_000)),
            Some(Point::new(100.0, 0.0))
        );
    }

    #[test]
    fn a_window_begins_at_zero_and_interpolates_at_its_edges() {
        let vehicles = vec![vehicle(&[(0, 0.0), (20, 200.0)]), vehicle(&[(0, 0.0), (3, 3.0)])];
        let mut movement = Movement { vehicles };
        movement.cut(Timestamp::from_millis(5000), Some(Timestamp::from_millis(15_000)));
        assert_eq!(movement.vehicles.len(), 1);
        assert_eq!(movement.vehicles[0].way, [waypoint(0, 50.0), waypoint(10, 150.0)]);
        movement.shift(Point::new(1.0, 2.0));
        assert_eq!(movement.vehicles[0].way[0].at, Point::new(51.0, 2.0));
    }

    #[test]
    fn times_are_rounded_to_microseconds() {
        assert_eq!(seconds("0.1"), Some(Timestamp::from_millis(100)));
        assert_eq!(seconds(" 1.0000015"), Some(Timestamp::from_micros(1_000_002)));
        for text in ["-1", "nan", "inf", "1e300", "", "1,5"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
