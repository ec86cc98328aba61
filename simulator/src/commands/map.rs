//! `v2xsim map`: where everybody is, who hears whom and who sends through whom at a moment.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use simulator::cast::Cast;
use simulator::measure::run_to;
use simulator::report::plots;

use super::{BROKEN, open, write};
use crate::args::MapArgs;

pub(crate) fn map(args: &MapArgs) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let scenario = source.with(&set)?;
    ensure!(
        args.at <= scenario.duration,
        "--at {}: expected at most the duration, {}",
        args.at,
        scenario.duration
    );
    let seed = args.seed.unwrap_or(scenario.seed);
    let cast = Cast::of(&source, &scenario, seed)?;
    match run_to(&scenario, &cast, seed, args.at.after_start()) {
        Ok(world) => {
            write(&args.output, &plots::map(&cast, &world)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(broken) => {
            eprintln!("{}", broken.violation);
            Ok(ExitCode::from(BROKEN))
        }
    }
}
