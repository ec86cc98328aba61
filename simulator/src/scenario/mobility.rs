//! Where many vehicles come from: [`Mobility`].

use std::path::PathBuf;

use serde::Deserialize;

use super::Span;

/// Vehicles from a file of movements, or from a town or motorway made from the seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mobility {
    /// The file, relative to that of the scenario.
    pub file: Option<PathBuf>,
    /// A town of square blocks, instead of a file.
    pub grid: Option<GridSpec>,
    /// A motorway, instead of a file.
    pub motorway: Option<MotorwaySpec>,
    /// Name of all of them together.
    #[serde(default = "vehicles")]
    pub id: String,
    /// At most so many of them take part.
    pub count: Option<u32>,
    /// This share of them takes part.
    pub share: Option<f64>,
    /// Which ones.
    pub pick: Option<Pick>,
    /// Time in the file that is the beginning here.
    #[serde(default)]
    pub from: Span,
    /// Time in the file after which nothing is read.
    pub to: Option<Span>,
    /// Added to every position.
    #[serde(default)]
    pub offset_m: [f64; 2],
}

/// Which vehicles take part, where only some do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Others for each seed, all with the same chance.
    #[default]
    Random,
    /// The first the file names.
    First,
}

/// A town of square blocks ([`crate::mobility::grid`]).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "struct Grid")]
pub struct GridSpec {
    /// Blocks to the east and to the north.
    pub blocks: [u32; 2],
    /// From one crossing to the next.
    pub block_m: f64,
    /// Vehicles.
    pub vehicles: Option<u32>,
    /// Vehicles on a kilometre of lane, instead.
    pub density_per_km: Option<f64>,
    /// Speed on a free street.
    pub speed_kmh: f64,
    /// Who may drive at crossings.
    pub crossings: CrossingsSpec,
    /// From green to green, where there are lights.
    pub cycle: Option<Span>,
}

/// Who may drive at a crossing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingsSpec {
    /// Whose light is green.
    #[default]
    Lights,
    /// Everybody stops, and drives on in turn.
    Stops,
}

/// A motorway ([`crate::mobility::motorway`]).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "struct Motorway")]
pub struct MotorwaySpec {
    /// Length.
    pub length_m: f64,
    /// Lanes each way.
    pub lanes: u32,
    /// Vehicles, both ways together.
    pub vehicles: Option<u32>,
    /// Vehicles on a kilometre of lane, instead.
    pub density_per_km: Option<f64>,
    /// Speed on a free road.
    pub speed_kmh: f64,
}

impl Default for GridSpec {
    fn default() -> Self {
        Self {
            blocks: [5, 5],
            block_m: 200.0,
            vehicles: None,
            density_per_km: None,
            speed_kmh: 50.0,
            crossings: CrossingsSpec::Lights,
            cycle: None,
        }
    }
}

impl Default for MotorwaySpec {
    fn default() -> Self {
        Self { length_m: 3000.0, lanes: 3, vehicles: None, density_per_km: None, speed_kmh: 130.0 }
    }
}

/// Vehicles on a kilometre of lane where nothing is said: in a town most of them drive, on a
/// motorway there are waves of slow traffic.
const GRID_PER_KM: f64 = 10.0;
const MOTORWAY_PER_KM: f64 = 35.0;
/// From green to green where nothing is said.
const CYCLE: Span = Span::from_millis(60_000);

impl GridSpec {
    /// What makes the vehicles.
    pub fn maker(&self) -> crate::mobility::grid::Grid {
        use crate::mobility::grid;
        let mut made = grid::Grid {
            blocks: self.blocks,
            block_m: self.block_m,
            vehicles: 0,
            speed_mps: self.speed_kmh / 3.6,
            crossings: match self.crossings {
                CrossingsSpec::Lights => {
                    grid::Crossings::Lights { cycle: self.cycle.unwrap_or(CYCLE).0 }
                }
                CrossingsSpec::Stops => grid::Crossings::Stops,
            },
        };
        let density = self.density_per_km.unwrap_or(GRID_PER_KM);
        made.vehicles = self.vehicles.unwrap_or_else(|| so_many(density, made.lanes_m()));
        made
    }
}

impl MotorwaySpec {
    /// What makes the vehicles.
    pub fn maker(&self) -> crate::mobility::motorway::Motorway {
        let density = self.density_per_km.unwrap_or(MOTORWAY_PER_KM);
        let vehicles = self.vehicles.unwrap_or_else(|| so_many(density, self.lanes_m()));
        let Self { length_m, lanes, speed_kmh, .. } = *self;
        let speed_mps = speed_kmh / 3.6;
        crate::mobility::motorway::Motorway { length_m, lanes, vehicles, speed_mps }
    }

    /// Length of all lanes together.
    pub fn lanes_m(&self) -> f64 {
        2.0 * f64::from(self.lanes) * self.length_m
    }
}

/// At least one.
fn so_many(per_km: f64, lanes_m: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let vehicles = (per_km * lanes_m / 1000.0).round().clamp(1.0, 1e6) as u32;
    vehicles
}

impl Mobility {
    /// Are the vehicles of a run others than those of another seed?
    pub fn is_drawn(&self) -> bool {
        let is_part = self.count.is_some() || self.share.is_some();
        self.file.is_none() || is_part && self.pick() == Pick::Random
    }

    /// [`Mobility::pick`] or its default.
    pub fn pick(&self) -> Pick {
        self.pick.unwrap_or_default()
    }
}

fn vehicles() -> String {
    "vehicles".to_owned()
}
