//! What came of a sweep, as a file: [`Results`].

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::figures::{Figure, Figures};
use super::scene::SceneKind;

/// What came of the scenes that finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// What was typed, without where results go.
    pub command: String,
    /// Where everything random came from.
    pub seed: u64,
    /// Seconds of each scene that were measured.
    pub measured_s: u32,
    /// Scenes there are when all finish.
    pub planned: usize,
    /// Those that finished, by name.
    pub scenes: Vec<SceneResult>,
}

/// What came of one scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SceneResult {
    /// Its name.
    pub name: String,
    /// What it is held against.
    pub kind: SceneKind,
    /// Where vehicles drive.
    pub town: String,
    /// Where road-side units stand.
    pub places: String,
    /// Its radio.
    pub radio: String,
    /// Its seed.
    pub seed: u64,
    /// What was measured; none if a broken rule ended it.
    pub figures: Option<Figures>,
    /// The first rule that was broken, and how often rules were.
    pub broken: Option<Breach>,
    /// Time it took; another one each time.
    pub wall_s: f64,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breach {
    /// The rule ([`sim::Rule`]).
    pub rule: String,
    /// When.
    pub time_s: f64,
    /// Who broke it.
    pub node: String,
    /// The frame or packet in question.
    pub detail: String,
    /// How often rules were broken in this scene.
    pub breaches: u64,
}

impl SceneResult {
    /// A figure; none where it was not measured.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        if figure == Figure::Broken {
            return Some(self.broken.as_ref().map_or(0.0, |broken| broken.breaches as f64));
        }
        let figures = self.figures.as_ref()?;
        match figure {
            Figure::Routed => figures.routed,
            Figure::RoutedOfAll => figures.routed_of_all,
            Figure::Working => figures.working,
            Figure::WorkingOfAll => figures.working_of_all,
            Figure::ControlMean => figures.control_mean,
            Figure::ControlWorst => figures.control_worst,
            Figure::Lost => figures.lost,
            Figure::LostOfAll => figures.lost_of_all,
            Figure::DelayP99 => figures.delay_p99_ms,
            Figure::Broken => None,
        }
    }
}

impl Results {
    /// Reads a file that [`Results::write`] wrote.
    ///
    /// # Errors
    /// It cannot be read, or is no such file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("no results of a sweep: {error}"))
        })
    }

    /// Adds a scene, in its place.
    pub fn add(&mut self, result: SceneResult) {
        let place = self.scenes.partition_point(|before| before.name < result.name);
        self.scenes.insert(place, result);
    }

    /// Writes the file: whole, or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        fs::write(&name, text)?;
        fs::rename(&name, path)
    }

    /// Writes a table with a row for each scene.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_csv(&self, path: &Path) -> Result<(), csv::Error> {
        let mut table = csv::Writer::from_path(path)?;
        table.write_record([
            "scene",
            "class",
            "load",
            "vehicles_wanted",
            "town",
            "places",
            "radio",
            "seed",
            "vehicles",
            "reachable",
            "routed",
            "routed_of_all",
            "working",
            "working_of_all",
            "control_mean",
            "control_worst",
            "busy_mean",
            "lost",
            "lost_of_all",
            "delay_p50_ms",
            "delay_p99_ms",
            "breaches",
            "rule",
            "wall_s",
        ])?;
        for scene in &self.scenes {
            let SceneResult { name, kind, town, places, radio, seed, figures, broken, wall_s } =
                scene;
            let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
            let f = figures.as_ref();
            let of = |value: fn(&Figures) -> Option<f64>| number(f.and_then(value));
            table.write_record([
                name.clone(),
                kind.class.to_string(),
                kind.load.to_string(),
                kind.vehicles.to_string(),
                town.clone(),
                places.clone(),
                radio.clone(),
                seed.to_string(),
                of(|f| Some(f.vehicles)),
                of(|f| f.reachable),
                of(|f| f.routed),
                of(|f| f.routed_of_all),
                of(|f| f.working),
                of(|f| f.working_of_all),
                of(|f| f.control_mean),
                of(|f| f.control_worst),
                of(|f| f.busy_mean),
                of(|f| f.lost),
                of(|f| f.lost_of_all),
                of(|f| f.delay_p50_ms),
                of(|f| f.delay_p99_ms),
                broken.as_ref().map_or(0, |broken| broken.breaches).to_string(),
                broken.as_ref().map(|broken| broken.rule.clone()).unwrap_or_default(),
                wall_s.to_string(),
            ])?;
        }
        table.flush()?;
        Ok(())
    }
}
