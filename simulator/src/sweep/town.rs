//! Where vehicles drive, and where road-side units stand: [`Town`].

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Timestamp;
use sim::Dice;

use crate::mobility::{self, Movement, Point};
use crate::scenario::{GridSpec, MotorwaySpec, Scenario, ScenarioError, Source};

/// A town with sets of places for road-side units.
#[derive(Clone, Debug)]
pub struct Town {
    /// Its name.
    pub name: String,
    /// What `[mobility]` has of it.
    pub mobility: String,
    /// Vehicles on the road at once, on average.
    pub at_once: f64,
    /// Sets of places.
    pub places: Vec<Places>,
}

/// Where the road-side units of a scene stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// What this set is called.
    pub name: String,
    /// In metres.
    pub at_m: Vec<[f64; 2]>,
}

/// Sets of places in each town.
pub const SETS: usize = 16;
/// Road-side units of the sets that stand where most vehicles are.
const DENSEST: [usize; 3] = [2, 1, 4];
/// Road-side units of a random set, at most.
const RANDOM_MAX: usize = 6;
/// Side of the squares in which vehicles are counted.
const SQUARE_M: f64 = 50.0;
/// Road-side units where most vehicles are have this distance at least: else they stood at one
/// crossing.
const APART_M: f64 = 200.0;

impl Town {
    /// A Manhattan grid, and a motorway jam. Their streets are the same for every seed; who drives
    /// where is not.
    pub fn made(seed: u64, measured: Duration) -> Vec<Self> {
        let until = Timestamp::ZERO + measured;
        let (blocks, block_m, grid_per_km) = ([8, 8], 200.0, 10.0);
        let density_per_km = Some(grid_per_km);
        let grid = GridSpec { blocks, block_m, density_per_km, ..GridSpec::default() };
        let grid_text = format!(
            "[mobility.grid]\nblocks = {blocks:?}\nblock_m = {block_m:?}\n\
             density_per_km = {grid_per_km:?}\n"
        );
        let (length_m, lanes, motorway_per_km) = (3000.0, 3, 35.0);
        let density_per_km = Some(motorway_per_km);
        let motorway = MotorwaySpec { length_m, lanes, density_per_km, ..MotorwaySpec::default() };
        let motorway_text = format!(
            "[mobility.motorway]\nlength_m = {length_m:?}\nlanes = {lanes}\n\
             density_per_km = {motorway_per_km:?}\n"
        );
        let of = |name: &str, text: String, movement: &Movement| {
            Self::of(name, text, movement, until, None, seed)
        };
        vec![
            of("grid", grid_text, &grid.maker().drive(seed, until)),
            of("motorway", motorway_text, &motorway.maker().drive(seed, until)),
        ]
    }

    /// The town of a scenario that takes its vehicles from a file: the part of it, so long, in
    /// which most vehicles are on the road. Its road-side units are the first set of places.
    ///
    /// # Errors
    /// Its file of movements cannot be used, there is none, or no vehicle is in it.
    pub fn of_scenario(
        source: &Source,
        scenario: &Scenario,
        seed: u64,
        measured: Duration,
    ) -> Result<Self, ScenarioError> {
        let file = scenario.mobility.as_ref().and_then(|mobility| mobility.file.as_ref());
        let Some((mobility, file)) = scenario.mobility.as_ref().zip(file) else {
            let what = "vehicles of no file; expected a scenario with mobility.file".to_owned();
            return Err(source.wrong(scenario, "mobility".to_owned(), what));
        };
        let file = source.beside(file);
        let file = std::path::absolute(&file).unwrap_or(file);
        let mut movement = mobility::read(&file)?;
        let from = busiest(&movement, measured);
        movement.cut(from, Some(from + measured));
        if movement.vehicles.is_empty() {
            let what = format!("{}: no vehicle; expected some", file.display());
            return Err(source.wrong(scenario, "mobility.file".to_owned(), what));
        }
        let [x, y] = mobility.offset_m;
        movement.shift(Point::new(x, y));
        let text = format!(
            "file = {}\nfrom = \"{}us\"\noffset_m = [{x:?}, {y:?}]\n",
            quoted(&file.to_string_lossy()),
            from.as_micros(),
        );
        let stem = source.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = stem.unwrap_or_default().chars().map(plain).collect();
        let at_m: Vec<[f64; 2]> = scenario.rsu.iter().filter_map(|rsu| rsu.position_m).collect();
        let own = (!at_m.is_empty()).then(|| Places { name: "file".to_owned(), at_m });
        let until = Timestamp::ZERO + measured;
        Ok(Self::of(&name, text, &movement, until, own, seed))
    }

    fn of(
        name: &str,
        mobility: String,
        movement: &Movement,
        until: Timestamp,
        own: Option<Places>,
        seed: u64,
    ) -> Self {
        let seconds = until.as_micros() / 1_000_000;
        let (mut squares, mut seen) = (BTreeMap::<(i64, i64), u64>::new(), 0_u64);
        for vehicle in &movement.vehicles {
            for at in (0..seconds).filter_map(|second| vehicle.position_at(second_of(second))) {
                #[allow(clippy::cast_possible_truncation, reason = "up to a million metres")]
                let square = |metres: f64| (metres / SQUARE_M).floor() as i64;
                *squares.entry((square(at.x_m), square(at.y_m))).or_default() += 1;
                seen += 1;
            }
        }
        let middle = |(x, y): (i64, i64)| [x, y].map(|n| (n as f64 + 0.5) * SQUARE_M);
        let mut places: Vec<Places> = own.into_iter().collect();
        let by_density = by_density(&squares).map(middle).collect::<Vec<_>>();
        for count in DENSEST {
            let at_m = apart(&by_density, count);
            places.push(Places { name: format!("densest{count}"), at_m });
        }
        let streets: Vec<(i64, i64)> = squares.keys().copied().collect();
        let mut dice = Dice::new(seed, PLACES_DICE);
        for number in 0..SETS.saturating_sub(places.len()) {
            let count = number % RANDOM_MAX + 1;
            let at_m = (0..count).filter_map(|_| dice.pick(&streets).copied().map(middle));
            let letter = char::from(b'a' + u8::try_from(number / RANDOM_MAX).unwrap_or(25));
            places.push(Places { name: format!("random{count}{letter}"), at_m: at_m.collect() });
        }
        let at_once = (seen as f64 / seconds.max(1) as f64).max(1.0);
        Self { name: name.to_owned(), mobility, at_once, places }
    }
}

/// The squares with most vehicles first.
fn by_density(squares: &BTreeMap<(i64, i64), u64>) -> impl Iterator<Item = (i64, i64)> {
    let mut order: Vec<_> = squares.iter().map(|(&square, &seen)| (seen, square)).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    order.into_iter().map(|(_, square)| square)
}

/// The first so many of them that are apart from each other.
fn apart(places: &[[f64; 2]], count: usize) -> Vec<[f64; 2]> {
    let mut chosen: Vec<[f64; 2]> = Vec::new();
    for &[x, y] in places {
        let here = Point::new(x, y);
        if chosen.len() < count
            && chosen.iter().all(|&[x, y]| here.distance_m(Point::new(x, y)) >= APART_M)
        {
            chosen.push([x, y]);
        }
    }
    chosen
}

/// The whole second from which on most vehicles are on the road for so long.
fn busiest(movement: &Movement, measured: Duration) -> Timestamp {
    let mut on_road: Vec<u64> = Vec::new();
    for vehicle in &movement.vehicles {
        let (first, last) = (vehicle.way.first(), vehicle.way.last());
        let Some((first, last)) = first.zip(last) else { continue };
        let [first, last] = [first, last]
            .map(|edge| usize::try_from(edge.time.as_micros() / 1_000_000).unwrap_or(usize::MAX));
        // A day, as no scenario is longer.
        let last = last.min(24 * 3600);
        if on_road.len() <= last {
            on_road.resize(last + 1, 0);
        }
        on_road.get_mut(first..=last).into_iter().flatten().for_each(|n| *n += 1);
    }
    // Both ends count: whoever was last seen in a second is gone before the next one.
    let length = usize::try_from(measured.as_secs()).unwrap_or(usize::MAX).saturating_add(1);
    let length = length.clamp(1, on_road.len().max(1));
    let sums = on_road.windows(length).map(|window| window.iter().sum::<u64>());
    // The first of several.
    let best = sums.enumerate().max_by_key(|&(start, sum)| (sum, std::cmp::Reverse(start)));
    second_of(best.map_or(0, |(start, _)| start as u64))
}

fn second_of(second: u64) -> Timestamp {
    Timestamp::from_millis(second.saturating_mul(1000))
}

/// As TOML has it.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Purpose of the stream of randomness.
const PLACES_DICE: u64 = 0x706c_6163_6573;
