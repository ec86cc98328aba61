//! Degrees of longitude and latitude where metres are expected ([`suspect`]): read as metres, a
//! whole town would lie within a hand's breadth, and everybody would hear everybody.

use super::{Movement, Point};

/// Movements that look geographic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Suspicion {
    /// One of their positions.
    pub(super) at: Point,
    /// How fast those move that do, on average, a second.
    pub(super) speed: f64,
}

/// What it is that looks geographic, if it does: every position could be one of the earth, and who
/// moves does so by less than [`SPEED_MAX`]. Where nobody moves nothing can be told.
pub(super) fn suspect(movement: &Movement) -> Option<Suspicion> {
    let (mut way, mut span_s) = (0.0, 0.0);
    for vehicle in &movement.vehicles {
        let is_on_earth = |at: Point| at.x_m.abs() <= 180.0 && at.y_m.abs() <= 90.0;
        if !vehicle.way.iter().all(|waypoint| is_on_earth(waypoint.at)) {
            return None;
        }
        let legs = vehicle.way.iter().zip(vehicle.way.iter().skip(1));
        for (from, to) in legs.filter(|(from, to)| from.at != to.at) {
            way += from.at.distance_m(to.at);
            span_s += to.time.since(from.time).as_secs_f64();
        }
    }
    let speed = way / span_s;
    let at = movement.vehicles.first()?.way.first()?.at;
    (span_s > 0.0 && speed < SPEED_MAX).then_some(Suspicion { at, speed })
}

/// A second. In degrees 400 km/h, which no vehicle drives; in metres 4 m an hour, at which none
/// drives.
const SPEED_MAX: f64 = 0.001;
