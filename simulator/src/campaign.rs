//! Many runs at once: every variant of a scenario with every seed, on several threads
//! ([`Campaign`]).

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node_lib::Timestamp;

use crate::casting::Casting;
use crate::cost::{Meter, RunCost};
use crate::measure::{self, Broken, Done, Record, Run, Suite, Unfinished};
use crate::scenario::{Override, Scenario, ScenarioError, Source};
use crate::stage;

/// A scenario with some fields changed.
pub struct Variant {
    /// What was changed for this variant alone; empty if there is only one.
    pub changes: Vec<Override>,
    /// The scenario.
    pub scenario: Scenario,
    /// What those who take part are drawn from.
    pub casting: Casting,
}

/// Variants, seeds and how to run them.
pub struct Campaign {
    /// The variants.
    pub variants: Vec<Variant>,
    /// First seed, if not that of the scenario.
    pub seed: Option<u64>,
    /// Runs of each variant, if not as many as the scenario says.
    pub seeds: Option<u32>,
    /// Runs at the same time.
    pub jobs: usize,
    /// Whose nodes.
    pub suite: Suite,
    /// Where the trace of a single run is written.
    pub trace: Option<File>,
    /// Ends the campaign when it becomes true: with the runs that are finished by then.
    pub stop: Arc<AtomicBool>,
}

/// One run of a campaign that came to its end, by itself or by a broken rule.
pub struct Outcome {
    /// Index of its variant.
    pub variant: usize,
    /// Its seed.
    pub seed: u64,
    /// What came of it.
    pub result: Result<Done, Broken>,
    /// What it cost.
    pub cost: RunCost,
}

impl Variant {
    /// Every combination of the values given for each field, with `set` changed in all.
    ///
    /// # Errors
    /// One of them is no scenario, or its file of movements cannot be used.
    pub fn all(
        source: &Source,
        set: &[Override],
        vary: &[Vec<Override>],
    ) -> Result<Vec<Self>, ScenarioError> {
        let mut combinations: Vec<Vec<Override>> = vec![Vec::new()];
        for values in vary {
            combinations = combinations
                .iter()
                .flat_map(|before| {
                    values.iter().map(|value| {
                        let mut more = before.clone();
                        more.push(value.clone());
                        more
                    })
                })
                .collect();
        }
        let mut variants: Vec<Self> = Vec::new();
        for changes in combinations {
            let overrides: Vec<Override> = set.iter().chain(&changes).cloned().collect();
            let scenario = source.with(&overrides)?;
            let casting = Casting::of(source, &scenario)?;
            variants.push(Self { changes, scenario, casting });
        }
        Ok(variants)
    }
}

impl Campaign {
    /// Simulated time of all runs together.
    pub fn simulated(&self) -> Duration {
        self.runs()
            .filter_map(|(variant, _)| self.variants.get(variant))
            .fold(Duration::ZERO, |sum, variant| {
                sum + stage::end(&variant.scenario).since(Timestamp::ZERO)
            })
    }

    /// Simulated time of these runs: up to a broken rule.
    pub fn simulated_by(&self, outcomes: &[Outcome]) -> Duration {
        let of_one = |outcome: &Outcome| match &outcome.result {
            Ok(_) => {
                let variant = self.variants.get(outcome.variant);
                variant.map_or(Timestamp::ZERO, |variant| stage::end(&variant.scenario))
            }
            Err(broken) => broken.violation.time,
        };
        outcomes.iter().map(|outcome| of_one(outcome).since(Timestamp::ZERO)).sum()
    }

    /// How many runs a variant has when all of them finish.
    pub fn planned(&self, variant: usize) -> usize {
        self.runs().filter(|(of, _)| *of == variant).count()
    }

    /// Variant and seed of every run.
    fn runs(&self) -> impl Iterator<Item = (usize, u64)> {
        self.variants.iter().enumerate().flat_map(|(index, variant)| {
            let first = self.seed.unwrap_or(variant.scenario.seed);
            let seeds = u64::from(self.seeds.unwrap_or(variant.scenario.seeds));
            (first..first.saturating_add(seeds)).map(move |seed| (index, seed))
        })
    }

    /// Runs everything; what came of it is in the order of variants and seeds, whatever the number
    /// of threads. A broken rule ends its own run only.
    ///
    /// Missing are the runs that were not finished when the campaign was told to stop, and the run
    /// of a thread that panicked.
    pub fn run(&self, progress: impl Fn(Duration) + Sync) -> Vec<Outcome> {
        let runs: Vec<(usize, u64)> = self.runs().collect();
        let next = AtomicUsize::new(0);
        // Shared, so that a panic in one run takes no other one with it.
        let outcomes = Mutex::new(Vec::new());
        let work = || {
            while let Some(&(index, seed)) = runs.get(next.fetch_add(1, Ordering::Relaxed))
                && let Some(variant) = self.variants.get(index)
            {
                let Variant { scenario, casting, .. } = variant;
                let cast = &casting.draw(scenario, seed);
                let Self { suite, trace, stop, .. } = self;
                let (suite, trace) = (*suite, trace.as_ref());
                let run = Run { scenario, cast, seed, suite, trace, stop, goes_on: false };
                let meter = Meter::start();
                let result = match measure::run(&run, &progress) {
                    Ok(done) => Ok(done),
                    Err(Unfinished::Broken(broken)) => Err(broken),
                    Err(Unfinished::Stopped) => break,
                };
                let outcome = Outcome { variant: index, seed, result, cost: meter.stop() };
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
            }
        };
        let jobs = self.jobs.clamp(1, runs.len().max(1));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            // A thread that panicked has said so.
            workers.into_iter().for_each(|worker| drop(worker.join()));
        });
        let mut outcomes: Vec<Outcome> =
            outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcomes.sort_by_key(|outcome| (outcome.variant, outcome.seed));
        outcomes
    }
}

/// The records of one variant.
pub fn records(outcomes: &[Outcome], variant: usize) -> Vec<Record> {
    let of_variant = outcomes.iter().filter(|outcome| outcome.variant == variant);
    of_variant.filter_map(|outcome| Some(outcome.result.as_ref().ok()?.record.clone())).collect()
}
