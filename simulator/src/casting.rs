//! What casts are drawn from: [`Casting`], a scenario with the movements it names, read once for
//! all seeds.

use std::borrow::Cow;

use sim::Dice;

use crate::cast::Cast;
use crate::link_file::LinkFile;
use crate::mobility::{self, MobilityError, Movement, Point, Vehicle};
use crate::scenario::{Mobility, Pick, Scenario, ScenarioError, Source};

/// What the cast of every seed is drawn from.
#[derive(Clone, Debug)]
pub struct Casting {
    /// Vehicles of a file, in the window of time that is wanted; none where they are made from the
    /// seed.
    read: Option<Movement>,
    /// How links change.
    links: Option<LinkFile>,
}

impl Casting {
    /// Reads movements.
    ///
    /// # Errors
    /// The file of movements cannot be used, or a name stands for nobody.
    pub fn of(source: &Source, scenario: &Scenario) -> Result<Self, ScenarioError> {
        let file = scenario.mobility.as_ref().and_then(|mobility| mobility.file.as_ref());
        let file = file.map(|file| source.beside(file));
        let read = file.map(|file| {
            mobility::read(&file).map_err(|error| match error {
                // The file is not to blame, but who named it.
                MobilityError::Read { source: error, .. } => source.wrong(
                    scenario,
                    "mobility.file".to_owned(),
                    format!("{}: {error}; expected a file of movements", file.display()),
                ),
                other => other.into(),
            })
        });
        let mut read = read.transpose()?;
        if let (Some(movement), Some(mobility)) = (&mut read, &scenario.mobility) {
            let end = mobility.from.after_start() + scenario.duration.0;
            let until = mobility.to.map_or(end, |to| end.min(to.after_start()));
            movement.cut(mobility.from.after_start(), Some(until));
            shift(movement, mobility);
        }
        let links = scenario.radio.trace.as_ref().map(|file| {
            let file = source.beside(file);
            LinkFile::open(&file).map_err(|what| {
                let what = format!("{}: {what}; expected a file of links", file.display());
                source.wrong(scenario, "radio.trace".to_owned(), what)
            })
        });
        let casting = Self { read, links: links.transpose()? };
        // What is wrong with the names of one seed is so with those of all.
        let (_, problems) = casting.draw_with_problems(scenario, scenario.seed);
        match problems.into_iter().next() {
            Some((field, what)) => Err(source.wrong(scenario, field, what)),
            None => Ok(casting),
        }
    }

    /// The cast of a seed. The scenario is that of [`Casting::of`]; traffic and faults may differ.
    pub fn draw(&self, scenario: &Scenario, seed: u64) -> Cast {
        self.draw_with_problems(scenario, seed).0
    }

    fn draw_with_problems(&self, scenario: &Scenario, seed: u64) -> (Cast, Vec<(String, String)>) {
        let (mut cast, mut problems) = Cast::with(scenario, &self.vehicles(scenario, seed));
        if let Some(links) = &self.links {
            match links.of(&cast.nodes) {
                Ok(trace) => cast.trace = trace,
                Err(what) => problems.push(("radio.trace".to_owned(), what)),
            }
        }
        (cast, problems)
    }

    /// The vehicles of `mobility` that take part in the run of a seed.
    pub(crate) fn vehicles(&self, scenario: &Scenario, seed: u64) -> Cow<'_, [Vehicle]> {
        let Some(mobility) = &scenario.mobility else { return Cow::Borrowed(&[]) };
        let all: Cow<'_, [Vehicle]> = match &self.read {
            Some(movement) => Cow::Borrowed(&movement.vehicles),
            None => Cow::Owned(made(mobility, scenario, seed).vehicles),
        };
        match chosen(mobility, all.len(), seed) {
            None => all,
            Some(chosen) => chosen.into_iter().filter_map(|i| all.get(i).cloned()).collect(),
        }
    }
}

/// Vehicles that come from the seed.
fn made(mobility: &Mobility, scenario: &Scenario, seed: u64) -> Movement {
    let until = scenario.duration.after_start();
    let mut movement = match (&mobility.grid, &mobility.motorway) {
        (Some(grid), _) => grid.maker().drive(seed, until),
        (None, Some(motorway)) => motorway.maker().drive(seed, until),
        (None, None) => Movement::default(),
    };
    shift(&mut movement, mobility);
    movement
}

fn shift(movement: &mut Movement, mobility: &Mobility) {
    let [x, y] = mobility.offset_m;
    movement.shift(Point::new(x, y));
}

/// Which of so many vehicles take part, in order; `None` if all do. Of one seed a smaller part is a
/// part of a larger one.
fn chosen(mobility: &Mobility, all: usize, seed: u64) -> Option<Vec<usize>> {
    let by_count = mobility.count.map(|count| count as usize);
    let by_share = mobility.share.map(|share| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to `all`")]
        let part = (all as f64 * share).round() as usize;
        part.max(1)
    });
    let wanted = by_count.or(by_share)?.min(all);
    let mut order: Vec<usize> = (0..all).collect();
    if mobility.pick() == Pick::Random {
        Dice::new(seed, DICE).shuffle(&mut order);
    }
    order.truncate(wanted);
    order.sort_unstable();
    Some(order)
}

/// Purpose of the stream of randomness.
const DICE: u64 = 0x7069_636b;

impl Cast {
    /// Reads movements, and draws the cast of this seed.
    ///
    /// # Errors
    /// As [`Casting::of`].
    pub fn of(source: &Source, scenario: &Scenario, seed: u64) -> Result<Self, ScenarioError> {
        Ok(Casting::of(source, scenario)?.draw(scenario, seed))
    }
}
