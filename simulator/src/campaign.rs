//! Many runs at once: every variant of a scenario with every seed, on several threads ([`Campaign`]).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cast::Cast;
use crate::cost::{Cost, Meter};
use crate::measure::{self, Broken, Done, Record, Run, Suite};
use crate::scenario::{Override, Scenario, ScenarioError, Source};
use crate::stage;

/// A scenario with some fields changed.
pub struct Variant {
    /// What was changed for this variant alone; empty if there is only one.
    pub changes: Vec<Override>,
    /// The scenario.
    pub scenario: Scenario,
    /// Who takes part.
    pub cast: Cast,
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
    /// Keep the text of traces.
    pub keep_trace: bool,
}

/// One run of a campaign.
pub struct Outcome {
    /// Index of its variant.
    pub variant: usize,
    /// Its seed.
    pub seed: u64,
    /// What came of it.
    pub result: Result<Done, Broken>,
    /// What it cost.
    pub cost: Cost,
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
            let cast = Cast::of(source, &scenario)?;
            variants.push(Self { changes, scenario, cast });
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
                sum + stage::end(&variant.scenario).since(node_lib::Timestamp::ZERO)
            })
    }

    /// Variant and seed of every run.
    fn runs(&self) -> impl Iterator<Item = (usize, u64)> {
        self.variants.iter().enumerate().flat_map(|(index, variant)| {
            let first = self.seed.unwrap_or(variant.scenario.seed);
            let seeds = u64::from(self.seeds.unwrap_or(variant.scenario.seeds));
            (first..first.saturating_add(seeds)).map(move |seed| (index, seed))
        })
    }

    /// Runs everything, in the order of variants and seeds whatever the number of threads. After the
    /// first broken rule no further run is begun.
    pub fn run(&self, progress: impl Fn(Duration) + Sync) -> Vec<Outcome> {
        let runs: Vec<(usize, u64)> = self.runs().collect();
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut done = Vec::new();
            while !is_over.load(Ordering::Relaxed)
                && let Some(&(index, seed)) = runs.get(next.fetch_add(1, Ordering::Relaxed))
                && let Some(variant) = self.variants.get(index)
            {
                let Variant { scenario, cast, .. } = variant;
                let Self { suite, keep_trace, .. } = *self;
                let meter = Meter::start();
                let result =
                    measure::run(&Run { scenario, cast, seed, suite, keep_trace }, &progress);
                let cost = meter.stop();
                is_over.fetch_or(result.is_err(), Ordering::Relaxed);
                done.push(Outcome { variant: index, seed, result, cost });
            }
            done
        };
        let jobs = self.jobs.clamp(1, runs.len().max(1));
        let mut outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            // A thread that panicked has said so; its runs are missing.
            workers.into_iter().filter_map(|worker| worker.join().ok()).flatten().collect()
        });
        outcomes.sort_by_key(|outcome| (outcome.variant, outcome.seed));
        outcomes
    }
}

/// The records of one variant.
pub fn records(outcomes: &[Outcome], variant: usize) -> Vec<Record> {
    let of_variant = outcomes.iter().filter(|outcome| outcome.variant == variant);
    of_variant.filter_map(|outcome| Some(outcome.result.as_ref().ok()?.record.clone())).collect()
}
