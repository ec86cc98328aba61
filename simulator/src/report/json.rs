//! Results as JSON: everything that was measured, run by run, and the sums over all runs.

use serde::Serialize;

use crate::campaign::{Campaign, Outcome, records};
use crate::cost::{Cost, peak_memory};
use crate::measure::{Record, Suite};
use crate::ships::does_not_ship;
use crate::summary::Summary;

#[derive(Serialize)]
struct Report {
    scenario: String,
    set: Vec<String>,
    nodes: &'static str,
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
    summary: Summary,
    runs: Vec<Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Vec<Cost>>,
}

/// The whole report. With `with_cost` it also says what the runs cost, and is no longer the same every
/// time.
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
        let costs = outcomes.iter().filter(|outcome| outcome.variant == index);
        VariantReport {
            changes: variant.changes.iter().map(ToString::to_string).collect(),
            does_not_ship: does_not_ship(&variant.scenario, campaign.suite),
            duration_s: variant.scenario.duration.0.as_secs_f64(),
            summary: Summary::of(&runs),
            runs,
            cost: with_cost.then(|| costs.map(|outcome| outcome.cost).collect()),
        }
    });
    let report = Report {
        scenario: scenario.to_owned(),
        set: set.to_vec(),
        nodes: match campaign.suite {
            Suite::Daemons => "daemons",
            Suite::Flooding => "flooding",
            Suite::Silence => "silence",
        },
        variants: variants.collect(),
        peak_memory_bytes: peak_memory().filter(|_| with_cost),
    };
    serde_json::to_string_pretty(&report).map(|text| text + "\n")
}
