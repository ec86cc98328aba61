//! `v2xsim run`: a scenario, its variants and seeds, and what came of them.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use simulator::campaign::{Campaign, Outcome, Variant, records};
use simulator::cost::{RunCost, peak_memory};
use simulator::report::plots::Series;
use simulator::report::table::VariantRow;
use simulator::report::{csv, json, plots, table};
use simulator::ships::does_not_ship;
use simulator::summary::Summary;

use super::outcome::conclude;
use super::progress::Progress;
use super::stop::Stop;
use super::{jobs, open, write};
use crate::args::RunArgs;

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let stop = Stop::on_signals().context("SIGINT and SIGTERM cannot be handled")?;
    let variants = Variant::all(&source, &set, &args.vary)?;
    if args.trace.is_some() {
        let is_one = variants.len() == 1
            && variants.iter().all(|v| args.runs.seeds.unwrap_or(v.scenario.seeds) == 1);
        ensure!(is_one, "--trace: several runs; expected --seeds 1 and no --vary with it");
    }
    let trace = args
        .trace
        .as_deref()
        .map(|path| File::create(path).with_context(|| path.display().to_string()));
    let campaign = Campaign {
        variants,
        seed: args.runs.seed,
        seeds: args.runs.seeds,
        jobs: jobs(args.runs.jobs),
        suite: args.nodes,
        trace: trace.transpose()?,
        stop: stop.flag(),
    };
    let outcomes = {
        let progress = Progress::new(campaign.simulated());
        campaign.run(|span| progress.pass(span))
    };
    // One that cannot be written takes no other with it. Files come first: whoever reads the tables
    // may be gone, as in a pipe that ended with the same Ctrl-C.
    let written = [
        args.trace.as_deref().map_or(Ok(()), |path| trace_is_whole(path, &outcomes)),
        args.json.as_deref().map_or(Ok(()), |path| write_json(path, args, &campaign, &outcomes)),
        args.csv.as_deref().map_or(Ok(()), |path| {
            let result = csv::write(path, &campaign, &outcomes).map(drop);
            result.with_context(|| path.display().to_string())
        }),
        args.plots.as_deref().map_or(Ok(()), |path| draw(path, &campaign, &outcomes)),
        show(&campaign, &outcomes),
    ];
    let code = conclude(&args.chosen, &campaign, &outcomes, &stop);
    written.into_iter().collect::<Result<()>>()?;
    Ok(code)
}

/// Complains if the trace could not be written.
fn trace_is_whole(path: &Path, outcomes: &[Outcome]) -> Result<()> {
    let error = outcomes.iter().find_map(|outcome| match &outcome.result {
        Ok(done) => done.trace.as_ref().err(),
        Err(broken) => broken.trace.as_ref().err(),
    });
    error.map_or(Ok(()), |error| bail!("{}: {error}", path.display()))
}

fn write_json(
    path: &Path,
    args: &RunArgs,
    campaign: &Campaign,
    outcomes: &[Outcome],
) -> Result<()> {
    let set: Vec<String> = args.chosen.set.iter().map(ToString::to_string).collect();
    let name = args.chosen.file.display().to_string();
    write(path, &json::report(&name, &set, campaign, outcomes, args.cost)?)
}

fn draw(directory: &Path, campaign: &Campaign, outcomes: &[Outcome]) -> Result<()> {
    let series = campaign.variants.iter().enumerate().map(|(index, variant)| {
        let changes: Vec<String> = variant.changes.iter().map(ToString::to_string).collect();
        Series { name: changes.join(" "), records: records(outcomes, index) }
    });
    plots::write(directory, &series.collect::<Vec<_>>())
        .with_context(|| directory.display().to_string())
}

fn show(campaign: &Campaign, outcomes: &[Outcome]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let variants = campaign.variants.iter().enumerate();
    let rows: Vec<VariantRow<'_>> = variants
        .map(|(index, variant)| VariantRow {
            changes: &variant.changes,
            planned: campaign.planned(index),
            summary: Summary::of(&records(outcomes, index)),
        })
        .collect();
    let parts = campaign.variants.iter();
    let parts = parts.flat_map(|variant| does_not_ship(&variant.scenario, campaign.suite));
    // Each once, in the order of variants.
    let mut seen: Vec<String> = Vec::new();
    for part in parts {
        if !seen.contains(&part) {
            seen.push(part);
        }
    }
    match (campaign.variants.as_slice(), rows.as_slice()) {
        ([variant], [row]) => write!(out, "{}", table::one(&variant.scenario, row, &seen))?,
        ([variant, ..], _) => {
            write!(out, "{}", table::many(&variant.scenario, &rows, &seen))?;
        }
        ([], _) => {}
    }
    let mut cost = RunCost::default();
    outcomes.iter().for_each(|outcome| cost += outcome.cost);
    let finished = campaign.simulated_by(outcomes).as_secs_f64();
    writeln!(out, "{}", table::cost(finished, cost, peak_memory()))?;
    Ok(())
}
