//! What a simulated second of one node costs, as the world grows from 50 to 500 vehicles at equal density,
//! with an RSU for every fifty: as towns out of each other's range, so that nothing but the world grows,
//! and as one town, in which vehicles also have more neighbours than at an edge, and know of more RSUs.
//!
//! First as many worlds of fifty, which take turns: what they cost more than one world of fifty is due to nothing in a
//! world, but to what a processor's cache no longer holds when a world's turn comes again.
//!
//! With `-- --instructions` the towns apart once more, counted in instructions by valgrind(1), which every machine and
//! every run counts alike.

use std::process::Command;
use std::time::{Duration, Instant};

use node_lib::sim::{Dice, NodeIndex, Position, Radio, Role, Track, World};
use node_lib::{Mac, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;

const SIZES: [usize; 4] = [50, 100, 200, LARGEST];
const LARGEST: usize = 500;

/// 25 others within the range of each, away from the edge.
const RANGE_M: f64 = 200.0;
const PER_KM2: f64 = 200.0;

/// One RSU for so many vehicles.
const PER_RSU: usize = 50;

/// The start is another matter: everybody asks at once.
const WARM_UP: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(10);

/// Sizes take turns, so that what disturbs the machine disturbs all.
const ROUNDS: u64 = 3;

/// Before seconds, seed and vehicles: one run without any measurement.
const ONCE: &str = "--once";

/// A turn of one of several worlds: half a heartbeat.
const TURN: Duration = Duration::from_millis(50);

const SPEED_MPS: f64 = 12.0;

/// What one run cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    took: Duration,
    node_seconds: f64,
    heard: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.took += other.took;
        self.node_seconds += other.node_seconds;
        self.heard += other.heard;
    }

    fn per_node_second(&self) -> f64 {
        self.took.as_secs_f64() * 1e6 / self.node_seconds
    }

    fn per_frame(&self) -> f64 {
        self.took.as_secs_f64() * 1e9 / self.heard.max(1) as f64
    }
}

fn main() {
    let args = std::env::args;
    if args().nth(1).is_some_and(|arg| arg == ONCE) {
        return run_once(args().skip(2).map(|n| n.parse().expect("a number")).collect());
    }
    let is_measured = |arg: String| arg == "--bench";
    let is_tried = |arg: String| arg == "--test" || arg == "--list";
    if !args().any(is_measured) || args().any(is_tried) {
        let cost = run(&SIZES[..1], 1);
        assert!(cost.heard > 0, "a town in which nobody hears anybody");
        return;
    }
    if args().any(|arg| arg == "--instructions") {
        return print_instructions();
    }
    print_growth("worlds of 50, in turns", |vehicles, seed| {
        let worlds = 0..(vehicles / PER_RSU) as u64;
        measure(worlds.map(|n| world(&[PER_RSU], seed * 100 + n)).collect())
    });
    print_growth("towns of 50, apart", |vehicles, seed| {
        run(&vec![PER_RSU; vehicles / PER_RSU], seed)
    });
    print_growth("one town", |vehicles, seed| run(&[vehicles], seed));
}

fn print_growth(what: &str, run: impl Fn(usize, u64) -> Cost) {
    let mut sums = [Cost::default(); SIZES.len()];
    for seed in 1..=ROUNDS {
        for (vehicles, sum) in SIZES.iter().zip(&mut sums) {
            // As many vehicles in all of each size: chance plays as small a part in the small ones.
            let runs = (LARGEST / vehicles) as u64;
            (0..runs).for_each(|n| sum.add(run(*vehicles, seed * 100 + n)));
        }
    }
    println!("{what}");
    println!(
        "vehicles | µs per node and second | frames heard per node and second | ns per frame heard"
    );
    for (vehicles, cost) in SIZES.iter().zip(sums) {
        println!(
            "{vehicles:8} | {:22.1} | {:32.1} | {:18.1}",
            cost.per_node_second(),
            cost.heard as f64 / cost.node_seconds,
            cost.per_frame(),
        );
    }
}

/// One run of towns apart: seconds, seed and vehicles. Prints how many frames the vehicles heard.
fn run_once(numbers: Vec<u64>) {
    let [seconds, seed, vehicles] = numbers.try_into().expect("three numbers");
    let towns = vec![PER_RSU; usize::try_from(vehicles).expect("few") / PER_RSU];
    let mut world = [world(&towns, seed)];
    run_for(&mut world, Duration::from_secs(seconds));
    println!("{}", heard(&world[0]));
}

/// What one simulated second of a node takes in instructions, in towns apart.
fn print_instructions() {
    println!("vehicles | instructions per node and second | per frame heard");
    for vehicles in SIZES {
        let (mut instructions, mut frames) = (0, 0);
        let runs = LARGEST / vehicles;
        for seed in 1..=runs {
            // The start and what it takes to set up are in both.
            let begin = count_instructions(WARM_UP, seed, vehicles);
            let end = count_instructions(WARM_UP + MEASURED, seed, vehicles);
            instructions += end.0 - begin.0;
            frames += end.1 - begin.1;
        }
        let node_seconds = (runs * vehicles) as f64 * MEASURED.as_secs_f64();
        println!(
            "{vehicles:8} | {:32.0} | {:15.0}",
            instructions as f64 / node_seconds,
            instructions as f64 / frames as f64,
        );
    }
}

/// Runs a world in a process of its own, below valgrind: its instructions, and the frames its vehicles heard.
fn count_instructions(time: Duration, seed: usize, vehicles: usize) -> (u64, u64) {
    let program = std::env::current_exe().expect("this program");
    let numbers = [time.as_secs(), seed as u64, vehicles as u64].map(|n| n.to_string());
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    let output = valgrind.arg(program).arg(ONCE).args(numbers).output();
    let output = output.expect("valgrind, of the Debian package of that name");
    let told = String::from_utf8_lossy(&output.stderr);
    let counted = told.lines().find_map(|line| line.split_once(" refs:")).map(|(_, count)| count);
    let instructions = counted.and_then(|count| count.replace(',', "").trim().parse().ok());
    let heard = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
    instructions.zip(heard).ok_or(told).expect("valgrind counts")
}

/// One world with towns of so many vehicles each.
fn run(towns: &[usize], seed: u64) -> Cost {
    measure(vec![world(towns, seed)])
}

fn world(towns: &[usize], seed: u64) -> World {
    let mut world = World::new(seed);
    world.set_radio(Radio::disk(RANGE_M, 0.0));
    let mut dice = Dice::new(seed, 1);
    for (n, vehicles) in towns.iter().enumerate() {
        let west_m = n as f64 * (side_m(*vehicles) + 3.0 * RANGE_M);
        add_town(&mut world, &mut dice, *vehicles, west_m);
    }
    world
}

fn measure(mut worlds: Vec<World>) -> Cost {
    run_for(&mut worlds, WARM_UP);
    let all_heard = |worlds: &[World]| worlds.iter().map(heard).sum::<u64>();
    let heard_before = all_heard(&worlds);
    let began = processor_time();
    run_for(&mut worlds, MEASURED);
    let vehicles = worlds.iter().map(|world| world.nodes(Role::Obu).count()).sum::<usize>();
    Cost {
        took: processor_time() - began,
        node_seconds: vehicles as f64 * MEASURED.as_secs_f64(),
        heard: all_heard(&worlds) - heard_before,
    }
}

fn run_for(worlds: &mut [World], time: Duration) {
    for _ in 0..time.as_millis() / TURN.as_millis() {
        for world in &mut *worlds {
            world.run_for(TURN).expect("no rule broken");
        }
    }
}

fn side_m(vehicles: usize) -> f64 {
    (vehicles as f64 / PER_KM2).sqrt() * 1000.0
}

/// A square of vehicles that drive, and RSUs on a grid.
fn add_town(world: &mut World, dice: &mut Dice, vehicles: usize, west_m: f64) {
    let side = side_m(vehicles);
    let mut anywhere = || {
        let mut along = || side * dice.index(10_000) as f64 / 10_000.0;
        Position::new(west_m + along(), along())
    };
    let rsus = vehicles.div_ceil(PER_RSU);
    let columns = (rsus as f64).sqrt().ceil();
    let step = side / columns;
    for n in 0..rsus {
        let mac = next_address(world);
        let node = world.add_node(
            Role::Rsu,
            mac,
            Box::new(move |boot, now, seed| {
                Box::new(Rsu::new(rsu_lib::Config { boot, seed, ..rsu_lib::Config::new(mac) }, now))
            }),
        );
        let (column, row) = (n as f64 % columns, (n as f64 / columns).floor());
        world.place(node, Position::new(west_m + (column + 0.5) * step, (row + 0.5) * step));
    }
    for _ in 0..vehicles {
        let mac = next_address(world);
        let node = world.add_node(
            Role::Obu,
            mac,
            Box::new(move |boot, now, seed| {
                Box::new(Obu::new(obu_lib::Config { boot, seed, ..obu_lib::Config::new(mac) }, now))
            }),
        );
        // Far enough to be on the way until the end.
        let way = loop {
            let (from, to) = (anywhere(), anywhere());
            if from.distance_m(to) > SPEED_MPS * (WARM_UP + MEASURED).as_secs_f64() + 1.0 {
                break Track::straight(Timestamp::ZERO, from, to, SPEED_MPS).expect("a way");
            }
        };
        world.follow(node, way);
    }
}

fn next_address(world: &World) -> Mac {
    let n = world.nodes(Role::Obu).chain(world.nodes(Role::Rsu)).count();
    let [high, low] = u16::try_from(n + 1).expect("a small town").to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

fn heard(world: &World) -> u64 {
    let obus = world.nodes(Role::Obu);
    obus.filter_map(|n: NodeIndex| world.node(n)).map(|node| node.counters().ctl_rx_frames).sum()
}

/// Of this thread, in nanoseconds, where Linux tells; else the time that passed.
fn processor_time() -> Duration {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let told = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    told.map_or_else(|| BEGAN.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}
