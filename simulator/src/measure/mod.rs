//! One run and what came of it: [`run`] makes a [`Record`].

mod control;
mod delay;
mod flows;
mod hand_over;
mod record;
mod routes;
mod spread;

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use node_lib::Timestamp;
use sim::{NodeIndex, Violation, World};

pub use delay::{Delays, Direction};
pub use record::{
    AirtimeShares, CandidateSamples, ControlTraffic, End, FlowDelays, FlowRecord, HandOverRecord,
    KindCount, Lost, OwnRecord, Record, RouteShare, Second, Share,
};
pub use spread::Spread;

use control::ControlCount;

use crate::cast::Cast;
use crate::scenario::Scenario;
pub use crate::stage::Suite;
use crate::stage::{self, Stage};

/// How a run is made.
pub struct Run<'a> {
    /// What happens in it.
    pub scenario: &'a Scenario,
    /// Who takes part.
    pub cast: &'a Cast,
    /// Its seed.
    pub seed: u64,
    /// Whose nodes.
    pub suite: Suite,
    /// Where the trace is written, as it comes.
    pub trace: Option<&'a File>,
    /// Ends the run before its time when it becomes true.
    pub stop: &'a AtomicBool,
    /// A broken rule does not end the run: it is counted.
    pub goes_on: bool,
}

/// What a run leaves.
pub struct Done {
    /// What was measured.
    pub record: Record,
    /// Whether the trace could be written, if that was asked for.
    pub trace: io::Result<()>,
    /// The first rule that was broken, in a run that went on.
    pub violation: Option<Box<Violation>>,
    /// How often rules were broken.
    pub breaches: u64,
}

/// A rule that was broken.
pub struct Broken {
    /// Which rule, when, by whom.
    pub violation: Box<Violation>,
    /// The name of who did it.
    pub node: String,
    /// Whether the trace up to then could be written, if that was asked for.
    pub trace: io::Result<()>,
}

/// Why a run left no record.
pub enum Unfinished {
    /// A rule was broken.
    Broken(Broken),
    /// It was told to stop.
    Stopped,
}

/// Runs a scenario with one seed. `progress` is told of simulated time as it passes.
///
/// # Errors
/// A rule was broken that is watched in every run ([`sim::Rule`]) and ends this one, or it was
/// told to stop.
pub fn run(run: &Run<'_>, progress: impl Fn(Duration)) -> Result<Done, Unfinished> {
    let Run { scenario, cast, seed, suite, trace, stop, goes_on } = *run;
    let mut stage = Stage::new(scenario, cast, seed, suite);
    if goes_on {
        stage.world.go_on_when_broken();
    }
    let begun = trace.map_or(Ok(()), |file| {
        stage.world.write_trace(Box::new(BufWriter::new(file.try_clone()?)));
        Ok(())
    });
    let mut observer = Observer::new(scenario, cast);
    let end = stage::end(scenario);
    while stage.world.now() < end {
        let sample = (stage.world.now() + scenario.sample_every.0).min(end);
        while stage.world.now() < sample {
            if stop.load(Ordering::Relaxed) {
                return Err(Unfinished::Stopped);
            }
            let before = stage.world.now();
            if let Err(violation) = stage.run_until((before + STEP_MAX).min(sample)) {
                let trace = begun.and_then(|()| stage.world.end_trace());
                let node = cast.name(violation.node).to_owned();
                return Err(Unfinished::Broken(Broken { violation, node, trace }));
            }
            progress(stage.world.now().since(before));
        }
        observer.look(&mut stage);
    }
    let trace = begun.and_then(|()| stage.world.end_trace());
    let violation = stage.world.violation().cloned().map(Box::new);
    let breaches = stage.world.breaches();
    Ok(Done { record: observer.finish(&stage, seed), trace, violation, breaches })
}

/// Simulated time after which it is looked whether to stop, however rare samples are.
const STEP_MAX: Duration = Duration::from_secs(1);

/// Runs a scenario up to a moment and hands over the world as it is then.
///
/// # Errors
/// As [`run`].
pub fn run_to(scenario: &Scenario, cast: &Cast, seed: u64, at: Timestamp) -> Result<World, Broken> {
    let mut stage = Stage::new(scenario, cast, seed, Suite::Daemons);
    match stage.world.run_until(at) {
        Ok(()) => Ok(stage.world),
        Err(violation) => {
            let node = cast.name(violation.node).to_owned();
            Err(Broken { violation, node, trace: Ok(()) })
        }
    }
}

/// Looks at a world now and then.
struct Observer<'a> {
    scenario: &'a Scenario,
    cast: &'a Cast,
    routes: routes::Routes,
    changes: hand_over::Changes,
    control: ControlCount,
}

impl<'a> Observer<'a> {
    fn new(scenario: &'a Scenario, cast: &'a Cast) -> Self {
        Self {
            scenario,
            cast,
            routes: routes::Routes::new(scenario, cast),
            changes: hand_over::Changes::default(),
            control: ControlCount::default(),
        }
    }

    fn look(&mut self, stage: &mut Stage) {
        let Stage { world, journal, .. } = stage;
        if let Ok(mut journal) = journal.lock() {
            let of_mac = |mac| self.cast.node_of(mac);
            journal.judge(|from, to| of_mac(to).is_some_and(|to| is_link(world, from, to)));
        }
        self.routes.sample(world);
        self.control.look(world, self.scenario);
        for (time, node, event) in world.take_events() {
            self.changes.note(time, node, &event);
        }
    }

    fn finish(self, stage: &Stage, seed: u64) -> Record {
        let Stage { world, journal, flows, .. } = stage;
        let journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        let reach = self.routes.reach();
        let frames = flows::Frames {
            cast: self.cast,
            world,
            journal: &journal,
            reach,
            sample: self.scenario.sample_every.0,
            indices: flows,
        };
        let changes = self.changes.since(self.scenario.warm_up.after_start());
        let (flows, delays) = frames.records(self.scenario);
        Record {
            seed,
            trace_hash: format!("{:016x}", world.trace_hash()),
            flows,
            delays,
            hand_overs: hand_over::records(&frames, &changes),
            routes: self.routes.share(),
            candidates: self.routes.candidates(),
            control: self.control.finish(world, self.scenario),
        }
    }
}

/// Does a frame from the one reach the other more often than not?
fn is_link(world: &World, from: NodeIndex, to: NodeIndex) -> bool {
    world.delivery(from, to) >= LINKED_FROM
}

/// As the oracle has it ([`World::graph`]).
const LINKED_FROM: f64 = 0.5;
