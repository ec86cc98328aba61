//! A motorway full of vehicles, made from a seed: [`Motorway`].

use node_lib::Timestamp;
use sim::Dice;

use super::follow::{Ahead, Driver, LENGTH_M, Motion, STEPS_PER_S};
use super::{Movement, Point, Vehicle, Waypoint};

/// A straight motorway with as many lanes each way, driven from one end to the other. Who leaves at
/// the end is followed by another one at the beginning, so that there are always as many. There is
/// no changing of lanes. Density alone makes waves of slow traffic, as the Intelligent Driver Model
/// has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motorway {
    /// Length.
    pub length_m: f64,
    /// Lanes each way.
    pub lanes: u32,
    /// Vehicles that are there at once, both ways together.
    pub vehicles: u32,
    /// Speed on a free road; drivers differ by 15 % from it.
    pub speed_mps: f64,
}

/// Width of a lane, and of the strip between the two ways.
const LANE_M: f64 = 3.5;
/// Time in which waves build up before what is written begins.
const BEFORE_S: u64 = 600;

/// A vehicle of a lane; its `at_m` goes on growing, once round after another.
struct Car {
    driver: Driver,
    motion: Motion,
    rounds: f64,
    /// What it is now: an index into the vehicles.
    vehicle: usize,
}

impl Motorway {
    /// The vehicles from the beginning to this time.
    pub fn drive(&self, seed: u64, until: Timestamp) -> Movement {
        let mut dice = Dice::new(seed, DICE);
        let mut vehicles = Vec::new();
        let lanes = 2 * self.lanes;
        for lane in 0..lanes {
            // The remainder goes to the first lanes.
            let cars = self.vehicles / lanes + u32::from(lane < self.vehicles % lanes);
            self.drive_lane(lane, cars, &mut dice, until, &mut vehicles);
        }
        let named = vehicles.into_iter().enumerate();
        let named = named.map(|(n, way)| Vehicle { name: (n + 1).to_string(), ..way });
        Movement { vehicles: named.collect() }
    }

    fn drive_lane(
        &self,
        lane: u32,
        cars: u32,
        dice: &mut Dice,
        until: Timestamp,
        vehicles: &mut Vec<Vehicle>,
    ) {
        let apart = self.length_m / f64::from(cars.max(1));
        let slack = (apart - LENGTH_M).max(0.0) / 2.0;
        let mut cars: Vec<Car> = (0..cars)
            .map(|n| {
                let speed_mps = self.speed_mps * (0.85 + 0.3 * dice.unit());
                let at_m = f64::from(n) * apart + slack * dice.unit();
                let motion = Motion { at_m, speed_mps: 0.0 };
                Car { driver: Driver { speed_mps }, motion, rounds: 0.0, vehicle: 0 }
            })
            .collect();
        for _ in 0..BEFORE_S * STEPS_PER_S {
            self.step(&mut cars);
        }
        for car in &mut cars {
            car.rounds = self.rounds(car.motion);
            car.vehicle = vehicles.len();
            let way = vec![Waypoint { time: Timestamp::ZERO, at: self.place(lane, car) }];
            vehicles.push(Vehicle { name: String::new(), way, stays: true });
        }
        let mut time = Timestamp::ZERO;
        while time < until {
            for _ in 0..STEPS_PER_S {
                self.step(&mut cars);
            }
            time += std::time::Duration::from_secs(1);
            for car in &mut cars {
                let rounds = self.rounds(car.motion);
                if rounds > car.rounds {
                    if let Some(gone) = vehicles.get_mut(car.vehicle) {
                        let at = self.point(lane, self.length_m);
                        gone.way.push(Waypoint { time, at });
                        gone.stays = false;
                    }
                    (car.rounds, car.vehicle) = (rounds, vehicles.len());
                    vehicles.push(Vehicle { name: String::new(), way: Vec::new(), stays: true });
                }
                if let Some(vehicle) = vehicles.get_mut(car.vehicle) {
                    vehicle.way.push(Waypoint { time, at: self.place(lane, car) });
                }
            }
        }
    }

    fn step(&self, cars: &mut [Car]) {
        let before: Vec<Motion> = cars.iter().map(|car| car.motion).collect();
        let count = cars.len();
        for (index, car) in cars.iter_mut().enumerate() {
            // The first of the lane follows the last one, a round ahead.
            let (next, round) =
                if index + 1 < count { (index + 1, 0.0) } else { (0, self.length_m) };
            let ahead = before.get(next).filter(|_| count > 1).map(|ahead| Ahead {
                gap_m: ahead.at_m + round - car.motion.at_m - LENGTH_M,
                speed_mps: ahead.speed_mps,
            });
            car.motion = car.driver.step(car.motion, ahead);
        }
    }

    fn rounds(&self, motion: Motion) -> f64 {
        (motion.at_m / self.length_m).floor()
    }

    fn place(&self, lane: u32, car: &Car) -> Point {
        self.point(lane, car.motion.at_m - car.rounds * self.length_m)
    }

    /// Even lanes lead east, odd ones west; one drives on the right.
    fn point(&self, lane: u32, at_m: f64) -> Point {
        let aside = LANE_M * (1.0 + f64::from(lane / 2));
        if lane.is_multiple_of(2) {
            Point::new(at_m, -aside)
        } else {
            Point::new(self.length_m - at_m, aside)
        }
    }
}

/// Purpose of the stream of randomness.
const DICE: u64 = 0x6d6f_746f_7277_6179;

#[cfg(test)]
mod tests {
    use super::*;

    const JAM: Motorway = Motorway { length_m: 2000.0, lanes: 2, vehicles: 280, speed_mps: 36.0 };
    const END: Timestamp = Timestamp::from_millis(120_000);

    fn at(movement: &Movement, second: u64) -> Vec<(Point, f64)> {
        let (time, next) =
            (Timestamp::from_millis(1000 * second), Timestamp::from_millis(1000 * second + 999));
        let seen = movement.vehicles.iter().filter_map(|vehicle| {
            let (at, then) = (vehicle.position_at(time)?, vehicle.position_at(next)?);
            Some((at, at.distance_m(then)))
        });
        seen.collect()
    }

    #[test]
    fn there_are_always_as_many_in_their_lanes() {
        let movement = JAM.drive(1, END);
        for second in [0, 60, 119] {
            let there = at(&movement, second);
            // One that passes the end within the second is not counted.
            assert!((270..=280).contains(&there.len()), "{second}: {}", there.len());
            let east = there.iter().filter(|(at, _)| at.y_m < 0.0).count();
            assert!((132..=140).contains(&east), "{east}");
            assert!(there.iter().all(|(at, _)| (0.0..=2000.0).contains(&at.x_m)));
        }
        assert!(movement.vehicles.iter().any(|vehicle| !vehicle.stays), "nobody leaves");
    }

    #[test]
    fn a_dense_motorway_has_waves_and_an_empty_one_flows() {
        let speeds = |motorway: Motorway| {
            let mut speeds: Vec<f64> =
                at(&motorway.drive(2, END), 60).into_iter().map(|(_, speed)| speed).collect();
            speeds.sort_by(f64::total_cmp);
            speeds
        };
        let jam = speeds(JAM);
        let (slow, fast) = (jam[jam.len() / 20], jam[jam.len() * 19 / 20]);
        assert!(slow < 6.0 && fast > 15.0, "{slow} {fast}");
        let free = speeds(Motorway { vehicles: 8, ..JAM });
        assert!(free[0] > 25.0, "{free:?}");
    }

    #[test]
    fn nobody_drives_through_another() {
        let movement = JAM.drive(3, END);
        let mut lane: Vec<f64> = at(&movement, 100)
            .into_iter()
            .filter(|(at, _)| at.y_m == -LANE_M)
            .map(|(at, _)| at.x_m)
            .collect();
        lane.sort_by(f64::total_cmp);
        assert!(lane.windows(2).all(|pair| pair[1] - pair[0] > LENGTH_M), "{lane:?}");
    }

    #[test]
    fn a_seed_makes_the_same_and_another_one_another() {
        assert_eq!(JAM.drive(1, END), JAM.drive(1, END));
        assert_ne!(JAM.drive(1, END), JAM.drive(2, END));
    }
}
