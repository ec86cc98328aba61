//! Straight lines: a vehicle that drives from corner to corner at an even speed.

use std::time::Duration;

use node_lib::Timestamp;
use serde::Deserialize;

use super::{Point, Vehicle, Waypoint};

/// What a vehicle does where its way ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// Stays there.
    #[default]
    Stay,
    /// Drives the same way back, and again.
    Return,
    /// Is gone.
    Leave,
}

/// A way along corners.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Where it begins, and each corner.
    pub corners: Vec<Point>,
    /// Metres per second.
    pub speed_mps: f64,
    /// Waits so long at the beginning.
    pub depart: Duration,
    /// And then?
    pub at_end: AtEnd,
}

impl Line {
    /// The vehicle on this way, up to this time.
    pub fn drive(&self, name: String, until: Timestamp) -> Vehicle {
        let stays = self.at_end != AtEnd::Leave;
        let mut way = Vec::new();
        let Some(&first) = self.corners.first() else { return Vehicle { name, way, stays } };
        way.push(Waypoint { time: Timestamp::ZERO, at: first });
        if self.speed_mps <= 0.0 {
            return Vehicle { name, way, stays: true };
        }
        let mut time = Timestamp::ZERO + self.depart;
        if time > Timestamp::ZERO {
            way.push(Waypoint { time, at: first });
        }
        let mut at = first;
        let there: Vec<Point> = self.corners.iter().skip(1).copied().collect();
        let back: Vec<Point> = self.corners.iter().rev().skip(1).copied().collect();
        for leg in [&there, &back].into_iter().cycle() {
            let began = time;
            for &corner in leg {
                let span = Duration::try_from_secs_f64(at.distance_m(corner) / self.speed_mps);
                let arrival = time + span.unwrap_or(Duration::MAX);
                if arrival > time {
                    way.push(Waypoint { time: arrival, at: corner });
                }
                (time, at) = (arrival, corner);
            }
            if self.at_end != AtEnd::Return || time >= until || time == began {
                break;
            }
        }
        Vehicle { name, way, stays }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(line: &Line) -> Vec<(u64, f64)> {
        let vehicle = line.drive("v".into(), Timestamp::from_millis(25_000));
        vehicle.way.iter().map(|w| (w.time.as_micros() / 1_000_000, w.at.x_m)).collect()
    }

    fn line(at_end: AtEnd) -> Line {
        let corners = vec![Point::new(0.0, 0.0), Point::new(30.0, 0.0), Point::new(100.0, 0.0)];
        Line { corners, speed_mps: 10.0, depart: Duration::from_secs(2), at_end }
    }

    #[test]
    fn waits_drives_and_stays() {
        assert_eq!(way(&line(AtEnd::Stay)), [(0, 0.0), (2, 0.0), (5, 30.0), (12, 100.0)]);
        assert!(!line(AtEnd::Leave).drive("v".into(), Timestamp::ZERO).stays);
    }

    #[test]
    fn drives_back_until_time_is_up() {
        let way = way(&line(AtEnd::Return));
        assert_eq!(way[4..], [(19, 30.0), (22, 0.0), (25, 30.0), (32, 100.0)]);
    }

    #[test]
    fn stands_without_speed_and_does_not_turn_on_the_spot() {
        let standing = Line { speed_mps: 0.0, ..line(AtEnd::Leave) };
        assert_eq!(way(&standing), [(0, 0.0)]);
        let nowhere = Line { corners: vec![Point::default()], ..line(AtEnd::Return) };
        assert_eq!(way(&nowhere).len(), 2);
    }
}
