//! `v2xsim flood`: what routes cost with our rules and with plain flooding.

use std::process::ExitCode;

use anyhow::Result;
use simulator::campaign::{Campaign, Variant, records};
use simulator::measure::Suite;
use simulator::report::table;
use simulator::summary::Summary;

use super::progress::Progress;
use super::{BROKEN, complain, jobs, open};
use crate::args::Flood;

pub(crate) fn flood(args: &Flood) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let mut summaries = Vec::new();
    for suite in [Suite::Daemons, Suite::Flooding] {
        let mut campaign = Campaign {
            variants: Variant::all(&source, &set, &[])?,
            seed: args.runs.seed,
            seeds: args.runs.seeds,
            jobs: jobs(&args.runs),
            suite,
            keep_trace: false,
        };
        // Flooding carries no data: without traffic both do the same work.
        for variant in &mut campaign.variants {
            variant.cast.flows.clear();
        }
        let progress = Progress::new(campaign.simulated());
        let outcomes = campaign.run(|span| progress.pass(span));
        drop(progress);
        for outcome in &outcomes {
            if let Err(broken) = &outcome.result {
                complain(&args.chosen, &[], outcome, broken);
                return Ok(ExitCode::from(BROKEN));
            }
        }
        summaries.push((suite, Summary::of(&records(&outcomes, 0))));
    }
    print!("{}", table::flood(&summaries));
    println!("the second row does not ship");
    Ok(ExitCode::SUCCESS)
}
