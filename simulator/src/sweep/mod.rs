//! Many places, towns, radios and loads at once, held against goals: [`Sweep`].
//!
//! What is measured in one place says little about another. A sweep makes scenes from a seed
//! ([`Scene`]), runs them all, and says of each kind of scene ([`SceneKind`]) what is usual, what
//! is worst, and how many meet the [goals](goal::GOALS).
//!
//! | module | what it is |
//! |---|---|
//! | [`scene`] | one scene: its name, and its scenario file |
//! | [`town`] | where vehicles drive, and where road-side units stand |
//! | [`figures`] | what is taken from a run |
//! | [`goal`] | what a figure should be |
//! | [`results`] | what came of all scenes, as a file |
//! | [`shrink`] | from a scene in which a rule is broken to a small one |
//! | [`kinds`] | the results of one kind together, and of two sweeps beside each other |

pub mod figures;
pub mod goal;
pub mod kinds;
pub mod results;
pub mod scene;
pub mod shrink;
pub mod town;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::casting::Casting;
use crate::cost::Meter;
use crate::measure::{self, Run, Suite, Unfinished};
use crate::scenario::{Override, Scenario, ScenarioError, Source};

use figures::Figures;
use results::{Breach, SceneResult};
pub use scene::{Class, Load, Scene, SceneKind};

/// Scenes, and how they are run.
pub struct Sweep<'a> {
    /// The scenes.
    pub scenes: &'a [Scene],
    /// Changed in all of them.
    pub set: &'a [Override],
    /// Whose nodes.
    pub suite: Suite,
    /// Runs at the same time.
    pub jobs: usize,
    /// Ends the sweep when it becomes true: with the scenes that are finished by then.
    pub stop: &'a AtomicBool,
}

impl Sweep<'_> {
    /// Is every scene a scenario with what was changed? Files of movements are not looked at.
    ///
    /// # Errors
    /// The first that is none.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.scenes.iter().try_for_each(|scene| opened(scene, self.set).map(drop))
    }

    /// Runs all scenes; `finished` is told of each. A broken rule ends no scene: its figures count,
    /// and what was broken is told beside them.
    ///
    /// # Errors
    /// A scene is no scenario: what was changed does not go with it.
    pub fn run(&self, finished: impl Fn(SceneResult) + Sync) -> Result<(), ScenarioError> {
        let next = AtomicUsize::new(0);
        let error = Mutex::new(None);
        let has_failed = AtomicBool::new(false);
        let work = || {
            while let Some(scene) = self.scenes.get(next.fetch_add(1, Ordering::Relaxed))
                && !has_failed.load(Ordering::Relaxed)
            {
                match self.run_scene(scene) {
                    Ok(Some(result)) => finished(result),
                    Ok(None) => break,
                    Err(what) => {
                        has_failed.store(true, Ordering::Relaxed);
                        *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let jobs = self.jobs.clamp(1, self.scenes.len().max(1));
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            // A thread that panicked has said so.
            workers.into_iter().for_each(|worker| drop(worker.join()));
        });
        error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// `None` if it was told to stop.
    fn run_scene(&self, scene: &Scene) -> Result<Option<SceneResult>, ScenarioError> {
        let meter = Meter::start();
        let Self { set, suite, stop, .. } = *self;
        let (scenario, casting) = staged(scene, set)?;
        let (scenario, cast) = (&scenario, &casting.draw(&scenario, scene.seed));
        let seed = scene.seed;
        let run = Run { scenario, cast, seed, suite, trace: None, stop, goes_on: true };
        let (figures, breaches, violation) = match measure::run(&run, |_| ()) {
            Ok(done) => (Some(Figures::of(&done.record, cast)), done.breaches, done.violation),
            // One that ends a run all the same.
            Err(Unfinished::Broken(broken)) => (None, 1, Some(broken.violation)),
            Err(Unfinished::Stopped) => return Ok(None),
        };
        let broken = violation.map(|violation| Breach {
            rule: format!("{:?}", violation.rule),
            time_s: violation.time.as_micros() as f64 / 1e6,
            node: cast.name(violation.node).to_owned(),
            detail: violation.detail.clone(),
            breaches,
        });
        let Scene { kind, town, places, radio, .. } = scene;
        Ok(Some(SceneResult {
            name: scene.name(),
            kind: *kind,
            town: town.name.clone(),
            places: places.name.clone(),
            radio: radio.to_string(),
            seed,
            figures,
            broken,
            wall_s: meter.stop().wall_s,
        }))
    }
}

/// The scenario of a scene.
fn opened(scene: &Scene, set: &[Override]) -> Result<(Source, Scenario), ScenarioError> {
    let source = Source::from_text(Path::new(&scene.file_name()), scene.text())?;
    let scenario = source.with(set)?;
    Ok((source, scenario))
}

/// The scenario of a scene, and what its casts are drawn from.
fn staged(scene: &Scene, set: &[Override]) -> Result<(Scenario, Casting), ScenarioError> {
    let (source, scenario) = opened(scene, set)?;
    let casting = Casting::of(&source, &scenario)?;
    Ok((scenario, casting))
}
