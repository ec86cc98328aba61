//! A town of square blocks full of vehicles, made from a seed: [`Grid`].

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::Timestamp;
use sim::Dice;

use super::follow::{Ahead, Driver, LENGTH_M, Motion, STEP_S, STEPS_PER_S, can_stop};
use super::{Movement, Point, Vehicle, Waypoint};

/// Who may drive at a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossings {
    /// Lights: half of the cycle one street is free, half of it the other.
    Lights {
        /// From green to green.
        cycle: Duration,
    },
    /// Everybody stops, and drives on in turn.
    Stops,
}

/// Streets a block apart, with a lane each way. At each crossing a vehicle goes straight on or
/// turns, as the seed has it; at the edge of the town it turns. Nobody comes or leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Blocks to the east and to the north.
    pub blocks: [u32; 2],
    /// From one crossing to the next.
    pub block_m: f64,
    /// Vehicles.
    pub vehicles: u32,
    /// Speed on a free street; drivers differ by 15 % from it.
    pub speed_mps: f64,
    /// Who may drive at crossings.
    pub crossings: Crossings,
}

/// From the middle of the street to that of a lane.
const ASIDE_M: f64 = 2.0;
/// From the line one stops at to the middle of the crossing.
const LINE_M: f64 = 8.0;
/// Speed while turning, and how far before the crossing it is reached.
const TURN_MPS: f64 = 6.0;
const TURN_FROM_M: f64 = 25.0;
/// Neither street is free while the crossing clears.
const CLEAR_S: f64 = 4.0;
/// From one vehicle to the next where everybody stops.
const TURN_EVERY_S: f64 = 2.5;
/// So slow at the line is a stop, and so near.
const STOPPED_MPS: f64 = 0.3;
const AT_LINE_M: f64 = 4.0;
/// Time in which queues build up before what is written begins.
const BEFORE_S: u64 = 180;

/// East, north, west, south.
const WAYS: [[i64; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

struct Car {
    driver: Driver,
    motion: Motion,
    /// The lane it takes next.
    next: usize,
    turns: bool,
    /// Steps it has stood at the line.
    stood: u32,
    /// It has stopped, and it is its turn.
    may_go: bool,
    vehicle: usize,
}

/// One lane from a crossing to the next.
struct Lane {
    from: [i64; 2],
    /// Index into [`WAYS`].
    way: usize,
    /// Crossing it leads to.
    to: usize,
    /// The one in front first.
    cars: VecDeque<Car>,
}

struct Town<'a> {
    grid: &'a Grid,
    lanes: Vec<Lane>,
    /// Lane from a crossing this way.
    index: Vec<[Option<usize>; 4]>,
    /// Part of a cycle by which the lights of a crossing are late.
    late: Vec<f64>,
    /// From when on the next one may go where everybody stops.
    free_at_s: Vec<f64>,
    dice: Dice,
    now_s: f64,
}

impl Grid {
    /// Length of all lanes together.
    pub fn lanes_m(&self) -> f64 {
        let [east, north] = self.blocks.map(f64::from);
        2.0 * self.block_m * (east * (north + 1.0) + north * (east + 1.0))
    }

    /// The vehicles from the beginning to this time.
    pub fn drive(&self, seed: u64, until: Timestamp) -> Movement {
        let mut town = Town::new(self, seed);
        for _ in 0..BEFORE_S * STEPS_PER_S {
            town.step();
        }
        let empty = |n: u32| Vehicle { name: (n + 1).to_string(), way: Vec::new(), stays: true };
        let mut vehicles: Vec<Vehicle> = (0..self.vehicles).map(empty).collect();
        let mut time = Timestamp::ZERO;
        loop {
            for lane in &town.lanes {
                for car in &lane.cars {
                    if let Some(vehicle) = vehicles.get_mut(car.vehicle) {
                        vehicle.way.push(Waypoint { time, at: self.place(lane, car.motion.at_m) });
                    }
                }
            }
            if time >= until {
                break;
            }
            for _ in 0..STEPS_PER_S {
                town.step();
            }
            time += Duration::from_secs(1);
        }
        Movement { vehicles }
    }

    /// One drives on the right.
    fn place(&self, lane: &Lane, at_m: f64) -> Point {
        let [dx, dy] = way(lane.way).map(|part| part as f64);
        let [x, y] = lane.from.map(|corner| corner as f64 * self.block_m);
        Point::new(x + dx * at_m + dy * ASIDE_M, y + dy * at_m - dx * ASIDE_M)
    }
}

fn way(index: usize) -> [i64; 2] {
    WAYS.get(index).copied().unwrap_or_default()
}

impl<'a> Town<'a> {
    fn new(grid: &'a Grid, seed: u64) -> Self {
        let [columns, rows] = grid.blocks.map(|blocks| i64::from(blocks) + 1);
        let crossing = |[x, y]: [i64; 2]| {
            let is_there = (0..columns).contains(&x) && (0..rows).contains(&y);
            usize::try_from(y * columns + x).ok().filter(|_| is_there)
        };
        let mut lanes = Vec::new();
        let mut index = Vec::new();
        for from in (0..rows).flat_map(|y| (0..columns).map(move |x| [x, y])) {
            let leads = [0, 1, 2, 3].map(|direction| {
                let ([x, y], [dx, dy]) = (from, way(direction));
                let to = crossing([x + dx, y + dy])?;
                lanes.push(Lane { from, way: direction, to, cars: VecDeque::new() });
                Some(lanes.len() - 1)
            });
            index.push(leads);
        }
        let mut dice = Dice::new(seed, DICE);
        let late = index.iter().map(|_| dice.unit()).collect();
        let free_at_s = vec![0.0; index.len()];
        let mut town = Self { grid, lanes, index, late, free_at_s, dice, now_s: 0.0 };
        town.fill();
        town
    }

    /// Puts vehicles on random lanes, as far apart there as there is room.
    fn fill(&mut self) {
        let mut on_lane = vec![0_u32; self.lanes.len()];
        let most = (self.grid.block_m / (LENGTH_M + 2.0)).floor();
        for _ in 0..self.grid.vehicles {
            // A full lane sends one on to the next one.
            let first = self.dice.index(on_lane.len());
            let lanes = (0..on_lane.len()).map(|n| (first + n) % on_lane.len().max(1));
            let room = |&lane: &usize| on_lane.get(lane).is_some_and(|&n| f64::from(n) < most);
            let lane = lanes.into_iter().find(room).unwrap_or(first);
            if let Some(cars) = on_lane.get_mut(lane) {
                *cars += 1;
            }
        }
        let mut vehicle = 0;
        for (lane, cars) in on_lane.into_iter().enumerate() {
            let apart = self.grid.block_m / f64::from(cars.max(1));
            for n in 0..cars {
                let speed_mps = self.grid.speed_mps * (0.85 + 0.3 * self.dice.unit());
                let motion =
                    Motion { at_m: self.grid.block_m - f64::from(n) * apart, speed_mps: 0.0 };
                let (next, turns) = self.choose(lane);
                let driver = Driver { speed_mps };
                let car = Car { driver, motion, next, turns, stood: 0, may_go: false, vehicle };
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.cars.push_back(car);
                }
                vehicle += 1;
            }
        }
    }

    /// The lane one takes at the end of this one, and whether that is a turn: half of them go
    /// straight on where that can be.
    fn choose(&mut self, lane: usize) -> (usize, bool) {
        let Some(lane) = self.lanes.get(lane) else { return (0, false) };
        let leads = self.index.get(lane.to).copied().unwrap_or_default();
        let to = |by: usize| leads.get((lane.way + by) % 4).copied().flatten();
        let sides: Vec<usize> = [to(1), to(3)].into_iter().flatten().collect();
        match to(0) {
            Some(ahead) if sides.is_empty() || self.dice.chance(0.5) => (ahead, false),
            ahead => {
                let side = self.dice.pick(&sides).copied().or(ahead);
                (side.unwrap_or_default(), true)
            }
        }
    }

    fn step(&mut self) {
        if self.grid.crossings == Crossings::Stops {
            self.take_turns();
        }
        let moved: Vec<Vec<Motion>> = self.lanes.iter().map(|lane| self.drive(lane)).collect();
        for (lane, motions) in self.lanes.iter_mut().zip(moved) {
            for (car, motion) in lane.cars.iter_mut().zip(motions) {
                let left_m = self.grid.block_m - LINE_M - motion.at_m;
                let stands = motion.speed_mps < STOPPED_MPS && left_m < AT_LINE_M;
                car.stood = if stands { car.stood.saturating_add(1) } else { 0 };
                car.motion = motion;
            }
        }
        for lane in 0..self.lanes.len() {
            while let Some(mut car) = self.leaving(lane) {
                car.motion.at_m -= self.grid.block_m;
                (car.stood, car.may_go) = (0, false);
                let entered = car.next;
                (car.next, car.turns) = self.choose(entered);
                if let Some(next) = self.lanes.get_mut(entered) {
                    next.cars.push_back(car);
                }
            }
        }
        self.now_s += STEP_S;
    }

    /// The one in front, if it has come to the end.
    fn leaving(&mut self, lane: usize) -> Option<Car> {
        let lane = self.lanes.get_mut(lane)?;
        let has_left = lane.cars.front()?.motion.at_m >= self.grid.block_m;
        has_left.then(|| lane.cars.pop_front()).flatten()
    }

    /// Where everybody of a lane is a step later. The leader may be over the line, and the line
    /// closed for who comes after it: each looks at both, and does what the nearer of them wants.
    fn drive(&self, lane: &Lane) -> Vec<Motion> {
        let mut before: Option<Motion> = None;
        let motions = lane.cars.iter().map(|car| {
            let leader = match before.replace(car.motion) {
                Some(leader) => Some(Ahead {
                    gap_m: leader.at_m - car.motion.at_m - LENGTH_M,
                    speed_mps: leader.speed_mps,
                }),
                None => self.last_of_next(car),
            };
            let is_near = self.grid.block_m - car.motion.at_m < TURN_FROM_M;
            let speed_mps = car.driver.speed_mps;
            let slow = if car.turns && is_near { TURN_MPS } else { speed_mps };
            let driver = Driver { speed_mps: speed_mps.min(slow) };
            let behind_leader = driver.step(car.motion, leader);
            match self.line(lane, car) {
                Some(line) => {
                    let before_line = driver.step(car.motion, Some(line));
                    if before_line.at_m < behind_leader.at_m { before_line } else { behind_leader }
                }
                None => behind_leader,
            }
        });
        motions.collect()
    }

    /// The last one of the lane the first one takes next.
    fn last_of_next(&self, car: &Car) -> Option<Ahead> {
        let last = self.lanes.get(car.next)?.cars.back()?.motion;
        let gap_m = self.grid.block_m - car.motion.at_m + last.at_m - LENGTH_M;
        Some(Ahead { gap_m, speed_mps: last.speed_mps })
    }

    /// The line, if one has to stop there. Who is too fast for that when a light turns red drives
    /// on.
    fn line(&self, lane: &Lane, car: &Car) -> Option<Ahead> {
        let left_m = self.grid.block_m - LINE_M - car.motion.at_m;
        let is_closed = match self.grid.crossings {
            Crossings::Lights { cycle } => {
                !self.is_green(lane, cycle) && can_stop(car.motion.speed_mps, left_m)
            }
            Crossings::Stops => !car.may_go,
        };
        (left_m > 0.0 && is_closed).then_some(Ahead { gap_m: left_m, speed_mps: 0.0 })
    }

    fn is_green(&self, lane: &Lane, cycle: Duration) -> bool {
        let cycle_s = cycle.as_secs_f64();
        let late = self.late.get(lane.to).copied().unwrap_or_default();
        let half_s = cycle_s / 2.0;
        // The streets to the east and west come first.
        let turn = if lane.way.is_multiple_of(2) { 0.0 } else { half_s };
        let into_s = (self.now_s + late * cycle_s + turn) % cycle_s;
        into_s < half_s - CLEAR_S
    }

    /// Where everybody stops, who has stood longest goes next.
    fn take_turns(&mut self) {
        let mut next: Vec<Option<(u32, usize)>> = vec![None; self.index.len()];
        for (index, lane) in self.lanes.iter().enumerate() {
            if let Some(car) = lane.cars.front()
                && car.stood > 0
                // One whose turn it was waits for room behind the crossing; others may have room.
                && !car.may_go
                && let Some(next) = next.get_mut(lane.to)
                && next.is_none_or(|(stood, _)| car.stood > stood)
            {
                *next = Some((car.stood, index));
            }
        }
        for (next, free_at_s) in next.into_iter().zip(&mut self.free_at_s) {
            if let Some((_, lane)) = next
                && self.now_s >= *free_at_s
                && let Some(car) = self.lanes.get_mut(lane).and_then(|lane| lane.cars.front_mut())
            {
                car.may_go = true;
                *free_at_s = self.now_s + TURN_EVERY_S;
            }
        }
    }
}

/// Purpose of the stream of randomness.
const DICE: u64 = 0x6772_6964;

#[cfg(test)]
mod tests {
    use super::*;

    const LIGHTS: Crossings = Crossings::Lights { cycle: Duration::from_secs(60) };
    const TOWN: Grid =
        Grid { blocks: [4, 3], block_m: 150.0, vehicles: 100, speed_mps: 14.0, crossings: LIGHTS };
    const END: Timestamp = Timestamp::from_millis(180_000);

    /// Metres each vehicle drives, and the share of seconds in which vehicles stand.
    fn driven(movement: &Movement) -> (Vec<f64>, f64) {
        let (mut stands, mut all) = (0.0, 0.0);
        let metres = movement.vehicles.iter().map(|vehicle| {
            let legs = vehicle.way.windows(2).map(|pair| pair[0].at.distance_m(pair[1].at));
            legs.inspect(|leg| {
                all += 1.0;
                stands += f64::from(u8::from(*leg < 0.3));
            })
            .sum()
        });
        (metres.collect(), stands / all)
    }

    #[test]
    fn everybody_stays_on_the_streets_and_gets_around() {
        for crossings in [LIGHTS, Crossings::Stops] {
            let movement = Grid { crossings, ..TOWN }.drive(1, END);
            assert_eq!(movement.vehicles.len(), 100);
            for vehicle in &movement.vehicles {
                assert_eq!(vehicle.way.len(), 181, "{}", vehicle.name);
                for at in vehicle.way.iter().map(|waypoint| waypoint.at) {
                    let off =
                        |metres: f64| (metres / 150.0 - (metres / 150.0).round()).abs() * 150.0;
                    assert!(off(at.x_m).min(off(at.y_m)) < ASIDE_M + 0.01, "{at:?}");
                    assert!((-3.0..=603.0).contains(&at.x_m) && (-3.0..=453.0).contains(&at.y_m));
                }
            }
            let (metres, stands) = driven(&movement);
            // Waits at lights, but no town that stands still.
            let least = if crossings == LIGHTS { 0.1 } else { 0.0 };
            assert!((least..0.8).contains(&stands), "{crossings:?}: {stands}");
            let moved = metres.iter().filter(|metres| **metres > 300.0).count();
            assert!(moved > 80, "{crossings:?}: {moved} of 100");
            // No faster than its driver wants: 16 m/s, and the step aside while turning.
            let legs = movement.vehicles.iter().flat_map(|vehicle| vehicle.way.windows(2));
            let fastest = legs.map(|pair| pair[0].at.distance_m(pair[1].at)).fold(0.0, f64::max);
            assert!(fastest < 17.0, "{fastest}");
        }
    }

    #[test]
    fn vehicles_turn_and_differ_by_seed() {
        let movement = TOWN.drive(1, END);
        let turned = movement.vehicles.iter().filter(|vehicle| {
            let span = |of: fn(Point) -> f64| {
                let all = || vehicle.way.iter().map(|waypoint| of(waypoint.at));
                all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min)
            };
            span(|at| at.x_m) > 50.0 && span(|at| at.y_m) > 50.0
        });
        assert!(turned.count() > 60);
        assert_eq!(movement, TOWN.drive(1, END));
        assert_ne!(movement, TOWN.drive(2, END));
    }

    #[test]
    fn where_everybody_stops_who_crosses_has_stopped() {
        for vehicles in [100, 400] {
            let grid = Grid { crossings: Crossings::Stops, vehicles, ..TOWN };
            let mut town = Town::new(&grid, 1);
            // Of each vehicle: the lane it came to from its beginning, and whether it has stopped
            // there.
            let mut seen: Vec<Option<(usize, bool)>> = vec![None; vehicles as usize];
            let mut crossed = 0;
            for _ in 0..180 * STEPS_PER_S {
                town.step();
                for (index, lane) in town.lanes.iter().enumerate() {
                    for car in &lane.cars {
                        let left_m = grid.block_m - LINE_M - car.motion.at_m;
                        let seen = &mut seen[car.vehicle];
                        if seen.is_none_or(|(lane, _)| lane != index) {
                            *seen = (left_m > grid.block_m / 2.0).then_some((index, false));
                        }
                        let Some((_, has_stopped)) = seen else { continue };
                        *has_stopped |= car.motion.speed_mps < STOPPED_MPS && left_m < AT_LINE_M;
                        if left_m < 0.0 {
                            assert!(*has_stopped, "{} did not stop", car.vehicle);
                            crossed += 1;
                        }
                    }
                }
            }
            assert!(crossed > 1000, "{crossed}");
        }
    }

    #[test]
    fn who_crosses_has_a_green_light_or_could_not_stop_when_it_ended() {
        for vehicles in [100, 400] {
            let grid = Grid { vehicles, ..TOWN };
            let mut town = Town::new(&grid, 1);
            let Crossings::Lights { cycle } = TOWN.crossings else { unreachable!() };
            // Of each vehicle: the lane on which it has to stop.
            let mut must_stop: Vec<Option<usize>> = vec![None; vehicles as usize];
            let (mut stopped, mut crossed) = (0, 0);
            for _ in 0..240 * STEPS_PER_S {
                for (index, lane) in town.lanes.iter().enumerate() {
                    for car in &lane.cars {
                        let left_m = TOWN.block_m - LINE_M - car.motion.at_m;
                        let must_stop = &mut must_stop[car.vehicle];
                        let is_red = !town.is_green(lane, cycle);
                        if !is_red || must_stop.is_some_and(|lane| lane != index) {
                            *must_stop = None;
                        }
                        if left_m > 0.0 && is_red && can_stop(car.motion.speed_mps, left_m) {
                            stopped += u32::from(must_stop.replace(index).is_none());
                        }
                    }
                }
                town.step();
                for (index, lane) in town.lanes.iter().enumerate() {
                    for car in &lane.cars {
                        let is_over = car.motion.at_m > TOWN.block_m - LINE_M;
                        crossed += u32::from(is_over);
                        let is_wrong = is_over && must_stop[car.vehicle] == Some(index);
                        assert!(!is_wrong, "{} drove on at a red light", car.vehicle);
                    }
                }
            }
            assert!(stopped > 300 && crossed > 300, "{stopped} {crossed}");
        }
    }
}
