//! What a simulated second of one node costs, as the world grows from 50 to 500 vehicles at equal
//! density.
//!
//! On a ring road, which has no end, so that a vehicle's surroundings are the same at each size and
//! nothing but the world grows. And in a square town, the smaller ones of which are mostly edge:
//! vehicles there have fewer neighbours, and know of fewer RSUs.
//!
//! Beside each ring road as many vehicles on rings of fifty, which take turns. What these cost more
//! than one ring of fifty is due to nothing in a world, but to what a processor's cache no longer
//! holds when a world's turn comes again. So what a larger world costs by itself is the ratio of
//! the two.
//!
//! With `-- --large` two towns of thousands of vehicles, each in one run: how much of one core a
//! simulated second takes. `--only` and the name of one leaves the other out.
//!
//! With `-- --instructions` the ring road once more, and pieces of those towns, counted in
//! instructions by valgrind(1), which every machine and every run counts alike.

#![allow(clippy::disallowed_methods, reason = "a bench reads clocks; what it measures does not")]

use std::f64::consts::TAU;
use std::process::Command;
use std::time::{Duration, Instant};

use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::radio::{Access, Csma};
use sim::{Dice, Guest, Location, NodeIndex, RadioModel, Role, Track, World};

const SIZES: [usize; 4] = [SMALLEST, 100, 200, LARGEST];
const SMALLEST: usize = 50;
const LARGEST: usize = 500;

/// Towns are also measured larger than that, for the edge of 500 is still long.
const TOWN_SIZES: [usize; 6] = [50, 100, 200, 500, 1000, 2000];

const RANGE_M: f64 = 200.0;

/// A square of vehicles that drive, with RSUs on a grid.
struct Town {
    per_km2: f64,
    per_rsu: usize,
    radio: RadioModel,
}

impl Town {
    /// 25 others are within the range of each, away from the edge, and there is one RSU for 50.
    fn small() -> Self {
        Self { per_km2: 200.0, per_rsu: 50, radio: RadioModel::disk(RANGE_M, 0.0) }
    }

    /// As dense as the town of `examples/scenarios/bologna.toml`: 64 others within the range of
    /// each.
    fn large(access: Access) -> Self {
        Self {
            per_km2: 225.0,
            per_rsu: 250,
            radio: RadioModel { access, ..RadioModel::disk(300.0, 0.0) },
        }
    }
}

/// Large towns: how many vehicles, and whether frames take air.
const LARGE: [(usize, &str, Access); 2] = [
    (5000, "with contention", Access::Csma(Csma::DEFAULT)),
    (10_000, "frames take no air", Access::INSTANT),
];

/// Vehicles of a town in which instructions are counted.
const PIECE: usize = 250;

/// On a ring road, ten others are within the range of each. Fifty have a ring of 2 km, which is
/// wide enough to be nearly straight within their range: 200 m as the crow flies are 203 m of road.
const GAP_M: f64 = 40.0;
const RSU_EVERY_M: f64 = 250.0;

/// The start is another matter: everybody asks at once.
const WARM_UP: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(10);

/// Runs of each size, each with another seed.
const ROUNDS: u64 = 5;

/// Before seconds, seed and vehicles: one run without any measurement.
const ONCE: &str = "--once";

/// A turn of one of several worlds: so short that hardly any vehicle speaks twice in it, as in a
/// large world hardly any does before all others have.
const TURN: Duration = Duration::from_millis(10);

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
        let csma = Town::large(Access::Csma(Csma::DEFAULT));
        for world in
            [ring_road(SMALLEST, 1), town(&Town::small(), SMALLEST, 1), town(&csma, SMALLEST, 1)]
        {
            assert!(measure(vec![world]).heard > 0, "a world in which nobody hears anybody");
        }
        return;
    }
    if args().any(|arg| arg == "--instructions") {
        return print_instructions();
    }
    if args().any(|arg| arg == "--large") {
        return print_large();
    }
    let in_turns = |vehicles, seed| {
        let worlds = 0..(vehicles / SMALLEST) as u64;
        measure(worlds.map(|n| ring_road(SMALLEST, seed * 100 + n)).collect())
    };
    let ring = |vehicles, seed| measure(vec![ring_road(vehicles, seed)]);
    let town = |vehicles, seed| measure(vec![town(&Town::small(), vehicles, seed)]);
    let costs = growth(&SIZES, [&in_turns, &ring]);
    print_growth("ring roads of 50, in turns", &SIZES, costs.iter().map(|[in_turns, _]| in_turns));
    print_growth("one ring road", &SIZES, costs.iter().map(|[_, ring]| ring));
    println!("one ring road against rings of 50 in turns");
    for (vehicles, [in_turns, ring]) in SIZES.iter().zip(&costs) {
        println!("{vehicles:8} | {:22.2}", ring.per_node_second() / in_turns.per_node_second());
    }
    print_growth("one town", &TOWN_SIZES, growth(&TOWN_SIZES, [&town]).iter().flatten());
}

/// What runs of so many vehicles, and with this seed, cost.
type Run<'a> = &'a dyn Fn(usize, u64) -> Cost;

/// What each kind of run costs at each size. Kinds and sizes take turns, so that what disturbs the
/// machine disturbs all.
fn growth<const KINDS: usize>(sizes: &[usize], kinds: [Run<'_>; KINDS]) -> Vec<[Cost; KINDS]> {
    let mut sums = vec![[Cost::default(); KINDS]; sizes.len()];
    for seed in 1..=ROUNDS {
        for (vehicles, sums) in sizes.iter().zip(&mut sums) {
            // As many vehicles in all of each size: chance plays as small a part in the small ones.
            let runs = (LARGEST / vehicles).max(1) as u64;
            for n in 0..runs {
                for (run, sum) in kinds.iter().zip(&mut *sums) {
                    sum.add(run(*vehicles, seed * 100 + n));
                }
            }
        }
    }
    sums
}

fn print_growth<'a>(what: &str, sizes: &[usize], costs: impl Iterator<Item = &'a Cost>) {
    println!("{what}");
    println!(
        "vehicles | µs per node and second | frames heard per node and second | ns per frame heard"
    );
    for (vehicles, cost) in sizes.iter().zip(costs) {
        println!(
            "{vehicles:8} | {:22.1} | {:32.1} | {:18.1}",
            cost.per_node_second(),
            cost.heard as f64 / cost.node_seconds,
            cost.per_frame(),
        );
    }
}

/// One run: seconds, seed, vehicles, and 0 for a ring road or which of [`LARGE`]. Prints how many
/// frames the vehicles heard.
fn run_once(numbers: Vec<u64>) {
    let [seconds, seed, vehicles, kind] = numbers.try_into().expect("four numbers");
    let vehicles = usize::try_from(vehicles).expect("few");
    let mut world = [match LARGE.get((kind as usize).wrapping_sub(1)) {
        Some((_, _, access)) => town(&Town::large(*access), vehicles, seed),
        None => ring_road(vehicles, seed),
    }];
    run_for(&mut world, Duration::from_secs(seconds));
    println!("{}", heard(&world[0]));
}

/// How fast large towns run on one core.
fn print_large() {
    let args = std::env::args;
    println!("vehicles | | s of one core a simulated second: start | later | trace");
    let is_asked = |what: &str| !args().any(|arg| arg == "--only") || args().any(|arg| arg == what);
    for (vehicles, what, access) in LARGE.into_iter().filter(|(_, what, _)| is_asked(what)) {
        let mut world = [town(&Town::large(access), vehicles, 1)];
        let mut spent = |time: Duration| {
            let began = processor_time();
            run_for(&mut world, time);
            (processor_time() - began).as_secs_f64() / time.as_secs_f64()
        };
        let (start, later) = (spent(WARM_UP), spent(MEASURED));
        println!(
            "{vehicles:8} | {what:18} | {start:5.2} | {later:5.2} | {:016x}",
            world[0].trace_hash(),
        );
    }
}

/// What one simulated second of a node takes in instructions.
fn print_instructions() {
    println!("vehicles | instructions per node and second | per frame heard");
    for vehicles in SIZES {
        print_instructions_of("one ring road", vehicles, LARGEST / vehicles, 0);
    }
    for (kind, (_, what, _)) in (1..).zip(LARGE) {
        print_instructions_of(what, PIECE, 1, kind);
    }
}

fn print_instructions_of(what: &str, vehicles: usize, runs: usize, kind: usize) {
    let (mut instructions, mut frames) = (0, 0);
    for seed in 1..=runs {
        // The start and what it takes to set up are in both.
        let begin = count_instructions(WARM_UP, seed, vehicles, kind);
        let end = count_instructions(WARM_UP + MEASURED, seed, vehicles, kind);
        instructions += end.0 - begin.0;
        frames += end.1 - begin.1;
    }
    let node_seconds = (runs * vehicles) as f64 * MEASURED.as_secs_f64();
    println!(
        "{vehicles:8} | {:32.0} | {:15.0} | {what}",
        instructions as f64 / node_seconds,
        instructions as f64 / frames as f64,
    );
}

/// Runs a world in a process of its own, below valgrind: its instructions, and the frames its
/// vehicles heard.
fn count_instructions(time: Duration, seed: usize, vehicles: usize, kind: usize) -> (u64, u64) {
    let program = std::env::current_exe().expect("this program");
    let numbers = [time.as_secs(), seed as u64, vehicles as u64, kind as u64];
    let numbers = numbers.map(|n| n.to_string());
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

fn empty_world(seed: u64, radio: RadioModel) -> World {
    let mut world = World::new(seed);
    world.set_radio(radio);
    world
}

/// Vehicles that drive round, every second one the other way.
fn ring_road(vehicles: usize, seed: u64) -> World {
    let mut world = empty_world(seed, RadioModel::disk(RANGE_M, 0.0));
    let length_m = vehicles as f64 * GAP_M;
    let at = |along_m: f64| {
        let (angle, radius_m) = (along_m / length_m * TAU, length_m / TAU);
        Location::new(radius_m * angle.cos(), radius_m * angle.sin())
    };
    for n in 0..(length_m / RSU_EVERY_M).round() as usize {
        let node = add_rsu(&mut world);
        world.place(node, at(n as f64 * RSU_EVERY_M));
    }
    let mut dice = Dice::new(seed, 1);
    for n in 0..vehicles {
        let start_m = (n as f64 + dice.index(1000) as f64 / 1000.0) * GAP_M;
        let speed_mps = if n % 2 == 0 { SPEED_MPS } else { -SPEED_MPS };
        let seconds = 0..=(WARM_UP + MEASURED).as_secs() + 1;
        let waypoint = |s| (Timestamp::from_millis(s * 1000), at(start_m + speed_mps * s as f64));
        let node = add_obu(&mut world);
        world.follow(node, Track::new(seconds.map(waypoint)).expect("a way"));
    }
    world
}

fn town(town: &Town, vehicles: usize, seed: u64) -> World {
    let mut world = empty_world(seed, town.radio.clone());
    let mut dice = Dice::new(seed, 1);
    let side_m = (vehicles as f64 / town.per_km2).sqrt() * 1000.0;
    let mut anywhere = || {
        let mut along = || side_m * dice.index(10_000) as f64 / 10_000.0;
        Location::new(along(), along())
    };
    let rsus = vehicles.div_ceil(town.per_rsu);
    let columns = (rsus as f64).sqrt().ceil();
    let step_m = side_m / columns;
    for n in 0..rsus {
        let node = add_rsu(&mut world);
        let (column, row) = (n as f64 % columns, (n as f64 / columns).floor());
        world.place(node, Location::new((column + 0.5) * step_m, (row + 0.5) * step_m));
    }
    for _ in 0..vehicles {
        // Far enough to be on the way until the end.
        let way = loop {
            let (from, to) = (anywhere(), anywhere());
            if from.distance_m(to) > SPEED_MPS * (WARM_UP + MEASURED).as_secs_f64() + 1.0 {
                break Track::straight(Timestamp::ZERO, from, to, SPEED_MPS).expect("a way");
            }
        };
        let node = add_obu(&mut world);
        world.follow(node, way);
    }
    world
}

fn add_rsu(world: &mut World) -> NodeIndex {
    let mac = next_address(world);
    let config = |start: &Start| rsu_lib::Settings::default().config(start);
    let rsu = move |start: &Start, now| Box::new(Rsu::new(config(start), now)) as Box<dyn Guest>;
    world.add_node(Role::Rsu, mac, Box::new(rsu))
}

fn add_obu(world: &mut World) -> NodeIndex {
    let mac = next_address(world);
    let config = |start: &Start| obu_lib::Settings::default().config(start);
    let obu = move |start: &Start, now| Box::new(Obu::new(config(start), now)) as Box<dyn Guest>;
    world.add_node(Role::Obu, mac, Box::new(obu))
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
