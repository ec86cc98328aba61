//! `v2xsim run`: a scenario, its variants and seeds, and what came of them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use simulator::campaign::{Campaign, Outcome, Variant, records};
use simulator::cost::{Cost, peak_memory};
use simulator::measure::Suite;
use simulator::report::{csv, json, plots, table};
use simulator::scenario::Override;
use simulator::ships::does_not_ship;
use simulator::summary::Summary;

use super::progress::Progress;
use super::{BROKEN, complain, jobs, open, write};
use crate::args::Run;

pub(crate) fn run(args: &Run) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let campaign = Campaign {
        variants: Variant::all(&source, &set, &args.vary)?,
        seed: args.runs.seed,
        seeds: args.runs.seeds,
        jobs: jobs(&args.runs),
        suite: Suite::Daemons,
        keep_trace: args.trace.is_some(),
    };
    if args.trace.is_some() {
        let is_one = campaign.variants.len() == 1
            && campaign.variants.iter().all(|v| args.runs.seeds.unwrap_or(v.scenario.seeds) == 1);
        ensure!(is_one, "--trace: several runs; expected --seeds 1 and no --vary with it");
    }
    let outcomes = {
        let progress = Progress::new(campaign.simulated());
        campaign.run(|span| progress.pass(span))
    };
    if let Some(path) = &args.trace {
        let trace = outcomes.first().and_then(|outcome| match &outcome.result {
            Ok(done) => done.trace.as_deref(),
            Err(broken) => broken.trace.as_deref(),
        });
        write(path, trace.unwrap_or_default())?;
    }
    for outcome in &outcomes {
        if let Err(broken) = &outcome.result {
            let changes = campaign.variants.get(outcome.variant).map(|v| v.changes.as_slice());
            complain(&args.chosen, changes.unwrap_or_default(), outcome, broken);
            return Ok(ExitCode::from(BROKEN));
        }
    }
    show(&campaign, &outcomes)?;
    if let Some(path) = &args.json {
        let set: Vec<String> = args.chosen.set.iter().map(ToString::to_string).collect();
        let name = args.chosen.file.display().to_string();
        write(path, &json::report(&name, &set, &campaign, &outcomes, args.cost)?)?;
    }
    if let Some(path) = &args.csv {
        csv::write(path, &campaign, &outcomes).with_context(|| path.display().to_string())?;
    }
    if let Some(directory) = &args.plots {
        let all = (0..campaign.variants.len()).flat_map(|variant| records(&outcomes, variant));
        plots::write(directory, &all.collect::<Vec<_>>())
            .with_context(|| directory.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(campaign: &Campaign, outcomes: &[Outcome]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let summaries: Vec<Summary> = (0..campaign.variants.len())
        .map(|variant| Summary::of(&records(outcomes, variant)))
        .collect();
    let both = campaign.variants.iter().zip(summaries);
    if campaign.variants.len() == 1 {
        for (variant, summary) in both {
            let parts = does_not_ship(&variant.scenario, campaign.suite);
            write!(out, "{}", table::one(&variant.scenario, &summary, &parts))?;
        }
    } else {
        let rows: Vec<(&[Override], Summary)> =
            both.map(|(variant, summary)| (variant.changes.as_slice(), summary)).collect();
        let parts = campaign.variants.iter();
        let parts = parts.flat_map(|variant| does_not_ship(&variant.scenario, campaign.suite));
        // Each once, in the order of variants.
        let mut seen: Vec<String> = Vec::new();
        for part in parts {
            if !seen.contains(&part) {
                seen.push(part);
            }
        }
        write!(out, "{}", table::many(&rows, &seen))?;
    }
    let mut cost = Cost::default();
    outcomes.iter().for_each(|outcome| cost += outcome.cost);
    let simulated_s = campaign.simulated().as_secs_f64();
    writeln!(out, "{}", table::cost(simulated_s, cost, peak_memory()))?;
    Ok(())
}
