//! `v2xsim protocols`: the same worlds with our protocol and with others.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use simulator::campaign::{Campaign, Variant, records};
use simulator::measure::{Record, Suite};
use simulator::report::table;
use simulator::ships::{does_not_ship, in_words};

use super::outcome::conclude;
use super::progress::Progress;
use super::stop::Stop;
use super::{jobs, open};
use crate::args::ProtocolsArgs;

pub(crate) fn protocols(args: &ProtocolsArgs) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let stop = Stop::on_signals().context("SIGINT and SIGTERM cannot be handled")?;
    let mut finished: Vec<(Suite, Vec<Record>)> = Vec::new();
    let mut ships: Vec<String> = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for &suite in &args.nodes {
        let mut campaign = Campaign {
            variants: Variant::all(&source, &set, &[])?,
            seed: args.runs.seed,
            seeds: args.runs.seeds,
            jobs: jobs(args.runs.jobs),
            suite,
            trace: None,
            stop: stop.flag(),
        };
        for variant in &mut campaign.variants {
            if !suite.carries_traffic() {
                variant.scenario.flow.clear();
            }
            let parts = does_not_ship(&variant.scenario, suite);
            ships.push(format!("{}: {}", suite.as_str(), in_words(&parts)));
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
    // Only what all have finished can be compared.
    let seeds = finished.iter().map(|(_, records)| records.iter().map(|record| record.seed));
    let all: BTreeSet<u64> = seeds
        .map(Iterator::collect::<BTreeSet<u64>>)
        .reduce(|one, other| &one & &other)
        .unwrap_or_default();
    for (_, records) in &mut finished {
        records.retain(|record| all.contains(&record.seed));
    }
    print!("{}", table::protocols(&finished));
    for line in ships {
        println!("{line}");
    }
    Ok(code)
}
