//! `v2xsim flood`: what routes cost with our rules and with plain flooding.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use simulator::campaign::{Campaign, Variant, records};
use simulator::measure::{Record, Suite};
use simulator::report::table;
use simulator::summary::Summary;

use super::outcome::conclude;
use super::progress::Progress;
use super::stop::Stop;
use super::{jobs, open};
use crate::args::Flood;

pub(crate) fn flood(args: &Flood) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let stop = Stop::on_signals().context("SIGINT and SIGTERM cannot be handled")?;
    let mut finished: Vec<(Suite, Vec<Record>)> = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for suite in [Suite::Daemons, Suite::Flooding] {
        let mut campaign = Campaign {
            variants: Variant::all(&source, &set, &[])?,
            seed: args.runs.seed,
            seeds: args.runs.seeds,
            jobs: jobs(args.runs.jobs),
            suite,
            trace: None,
            stop: stop.flag(),
        };
        // Flooding carries no data: without traffic both do the same work.
        for variant in &mut campaign.variants {
            variant.scenario.flow.clear();
        }
        let progress = Progress::new(campaign.simulated());
        let outcomes = campaign.run(|span| progress.pass(span));
        drop(progress);
        let ended = conclude(&args.chosen, &campaign, &outcomes, &stop);
        if ended != ExitCode::SUCCESS {
            code = ended;
        }
        finished.push((suite, records(&outcomes, 0)));
    }
    // Only what both have finished can be compared.
    let seeds = finished.iter().map(|(_, records)| records.iter().map(|record| record.seed));
    let both: BTreeSet<u64> = seeds
        .map(Iterator::collect::<BTreeSet<u64>>)
        .reduce(|one, other| &one & &other)
        .unwrap_or_default();
    let summaries = finished.into_iter().map(|(suite, mut records)| {
        records.retain(|record| both.contains(&record.seed));
        (suite, Summary::of(&records))
    });
    let summaries: Vec<(Suite, Summary)> = summaries.collect();
    print!("{}", table::flood(&summaries));
    println!("the second row does not ship");
    Ok(code)
}
