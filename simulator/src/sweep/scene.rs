//! One scene of a sweep: [`Scene`], by its name, and as a scenario file.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sim::Dice;

use super::town::{Places, Town};

/// What a radio is like, as far as goals are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Who hears whom follows from the distance: disk and dual slope.
    Steady,
    /// Shadows, and fading of every frame.
    Fading,
}

/// What clients send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing; there are none.
    Idle,
    /// A frame a second from each vehicle, and one to each, as a Poisson process.
    Busy,
}

/// What is held against the same goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SceneKind {
    /// What its radio is like.
    pub class: Class,
    /// What clients send.
    pub load: Load,
    /// Vehicles at once, about.
    pub vehicles: u32,
}

impl fmt::Display for SceneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.class, self.load, self.vehicles)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steady => "steady",
            Self::Fading => "fading",
        })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
        })
    }
}

/// A radio of a sweep; all have contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SceneRadio {
    /// Everybody within 300 m.
    Disk,
    /// Path loss alone.
    DualSlope,
    /// Path loss, shadows, and Nakagami fading.
    Fading,
}

impl fmt::Display for SceneRadio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "disk",
            Self::DualSlope => "slope",
            Self::Fading => "fading",
        })
    }
}

impl SceneRadio {
    /// As a scenario has it.
    const fn text(self) -> &'static str {
        match self {
            Self::Disk => "model = \"disk\"\nrange_m = 300\n",
            Self::DualSlope => "model = \"dual-slope\"\n",
            Self::Fading => {
                "model = \"dual-slope\"\nshadowing = true\nfading = \"nakagami-suburb\"\n"
            }
        }
    }
}

/// One scene.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What it is held against.
    pub kind: SceneKind,
    /// Where vehicles drive.
    pub town: Arc<Town>,
    /// Where road-side units stand.
    pub places: Places,
    /// Its radio.
    pub radio: SceneRadio,
    /// Its seed.
    pub seed: u64,
    /// Seconds that are measured.
    pub measured_s: u32,
}

/// Everybody starts at once; that is not measured.
pub const WARM_UP_S: u32 = 5;

impl Scene {
    /// Its name, which no other scene of a sweep has.
    pub fn name(&self) -> String {
        let Self { kind, town, places, radio, seed, .. } = self;
        let SceneKind { load, vehicles, .. } = kind;
        format!("{radio}-{load}-{vehicles}-{}-{}-s{seed}", town.name, places.name)
    }

    /// The file it is written to.
    pub fn file_name(&self) -> String {
        self.name() + ".toml"
    }

    /// Its scenario file.
    pub fn text(&self) -> String {
        let Self { kind, town, places, radio, seed, measured_s } = self;
        let share = (f64::from(kind.vehicles) / town.at_once).min(1.0);
        let mut text = format!(
            "about = \"{}: {kind} vehicles\"\nduration = \"{}s\"\nwarm_up = \"{WARM_UP_S}s\"\n\
             sample_every = \"1s\"\nseed = {seed}\n\n[radio]\n{}\n[[lan]]\nid = \"city\"\n",
            self.name(),
            WARM_UP_S + measured_s,
            radio.text(),
        );
        for (number, [x, y]) in (1..).zip(&places.at_m) {
            // A string takes whatever is written into it.
            let _ = write!(
                text,
                "\n[[rsu]]\nid = \"rsu{number}\"\nposition_m = [{x:.1}, {y:.1}]\nlan = \"city\"\n"
            );
        }
        let _ = write!(text, "\n[mobility]\nshare = {share:.4}\n{}", town.mobility);
        if kind.load == Load::Busy {
            text += BUSY;
        }
        text
    }
}

const BUSY: &str = r#"
[[client]]
id = "server"
lan = "city"

[[client]]
id = "tablet"
behind = "vehicles"

[[flow]]
id = "up"
from = "tablet"
to = "server"
frames_per_s = 1

[[flow]]
id = "down"
from = "server"
to = "tablet"
frames_per_s = 1
"#;

/// What is swept over.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where vehicles drive.
    pub towns: Vec<Arc<Town>>,
    /// Kinds of scenes.
    pub kinds: Vec<SceneKind>,
    /// Scenes of each kind.
    pub scenes: u32,
    /// Where everything random comes from.
    pub seed: u64,
    /// Seconds of each scene that are measured.
    pub measured_s: u32,
}

/// The kinds of scenes of a whole sweep. Fading radios are not held against a full channel.
pub const KINDS: [SceneKind; 10] = {
    const fn kind(class: Class, load: Load, vehicles: u32) -> SceneKind {
        SceneKind { class, load, vehicles }
    }
    use Class::{Fading, Steady};
    use Load::{Busy, Idle};
    [
        kind(Steady, Idle, 100),
        kind(Steady, Idle, 300),
        kind(Steady, Idle, 500),
        kind(Steady, Busy, 100),
        kind(Steady, Busy, 300),
        kind(Steady, Busy, 500),
        kind(Fading, Idle, 100),
        kind(Fading, Idle, 300),
        kind(Fading, Busy, 100),
        kind(Fading, Busy, 300),
    ]
};

impl Plan {
    /// The scenes: towns take turns, and within a town radios and places of road-side units. Of
    /// each kind the `n`-th scene has the same town, places and seed. The first scenes of all kinds
    /// come first, so that a sweep that is ended early has seen something of each.
    pub fn scenes(&self) -> Vec<Scene> {
        let orders: Vec<Vec<usize>> = (0_u64..)
            .zip(&self.towns)
            .map(|(number, town)| {
                let mut order: Vec<usize> = (0..town.places.len()).collect();
                // The first is the one the town is known by.
                if let Some(others) = order.get_mut(1..) {
                    Dice::new(self.seed, ORDER_DICE + number).shuffle(others);
                }
                order
            })
            .collect();
        let mut scenes = Vec::new();
        for number in 0..self.scenes as usize {
            let round = number / self.towns.len().max(1);
            let town = number % self.towns.len().max(1);
            let (Some(town), Some(order)) = (self.towns.get(town), orders.get(town)) else {
                continue;
            };
            let places = order.get(round % order.len().max(1));
            let Some(places) = places.and_then(|&index| town.places.get(index)) else { continue };
            // A town that is come to again with the same places has another radio.
            let turn = round + round / order.len().max(1);
            for &kind in &self.kinds {
                let radio = match kind.class {
                    Class::Steady if turn.is_multiple_of(2) => SceneRadio::Disk,
                    Class::Steady => SceneRadio::DualSlope,
                    Class::Fading => SceneRadio::Fading,
                };
                scenes.push(Scene {
                    kind,
                    town: Arc::clone(town),
                    places: places.clone(),
                    radio,
                    seed: self.seed + round as u64,
                    measured_s: self.measured_s,
                });
            }
        }
        scenes
    }
}

/// Purpose of the streams of randomness, one for each town.
const ORDER_DICE: u64 = 0x6f72_6465_7200;
