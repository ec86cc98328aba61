//! Results as JSON: everything that was measured, run by run, and the sums over all runs.

use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::campaign::{Campaign, Outcome, records};
use crate::cost::{RunCost, peak_memory};
use crate::measure::{Broken, Record};
use crate::ships::does_not_ship;
use crate::summary::Summary;

#[derive(Serialize)]
struct Report {
    scenario: String,
    set: Vec<String>,
    nodes: &'static str,
    /// It was told to stop before all runs were finished.
    interrupted: bool,
    variants: Vec<VariantReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct VariantReport {
    changes: Vec<String>,
    /// What of it no daemon does.
    does_not_ship: Vec<String>,
    duration_s: f64,
    /// Runs there are when all of them finish.
    planned: usize,
    summary: Summary,
    /// Those that finished.
    runs: Vec<Record>,
    /// Those that broke a rule.
    broken: Vec<BrokenRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Vec<RunCost>>,
}

/// A run that broke a rule.
#[derive(Serialize)]
struct BrokenRun {
    seed: u64,
    /// The rule ([`sim::Rule`]).
    rule: String,
    time_s: f64,
    /// Who broke it.
    node: String,
    /// The frame or packet in question.
    detail: String,
}

impl BrokenRun {
    fn of(seed: u64, broken: &Broken) -> Self {
        let Broken { violation, node, .. } = broken;
        Self {
            seed,
            rule: format!("{:?}", violation.rule),
            time_s: violation.time.as_micros() as f64 / 1e6,
            node: node.clone(),
            detail: violation.detail.clone(),
        }
    }
}

/// The whole report. With `with_cost` it also says what the runs cost, and is no longer the same
/// every time.
///
/// # Errors
/// None that is known: everything in it can be written.
pub fn report(
    scenario: &str,
    set: &[String],
    campaign: &Campaign,
    outcomes: &[Outcome],
    with_cost: bool,
) -> serde_json::Result<String> {
    let variants = campaign.variants.iter().enumerate().map(|(index, variant)| {
        let runs = records(outcomes, index);
        let of_variant = || outcomes.iter().filter(|outcome| outcome.variant == index);
        let broken = of_variant().filter_map(|outcome| {
            Some(BrokenRun::of(outcome.seed, outcome.result.as_ref().err()?))
        });
        VariantReport {
            changes: variant.changes.iter().map(ToString::to_string).collect(),
            does_not_ship: does_not_ship(&variant.scenario, campaign.suite),
            duration_s: variant.scenario.duration.0.as_secs_f64(),
            planned: campaign.planned(index),
            summary: Summary::of(&runs),
            runs,
            broken: broken.collect(),
            cost: with_cost.then(|| of_variant().map(|outcome| outcome.cost).collect()),
        }
    });
    let report = Report {
        scenario: scenario.to_owned(),
        set: set.to_vec(),
        nodes: campaign.suite.as_str(),
        interrupted: campaign.stop.load(Ordering::Relaxed),
        variants: variants.collect(),
        peak_memory_bytes: peak_memory().filter(|_| with_cost),
    };
    serde_json::to_string_pretty(&report).map(|text| text + "\n")
}
