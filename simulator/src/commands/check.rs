//! `v2xsim check`: is a scenario file in order, and what is in it?

use std::process::ExitCode;

use anyhow::Result;
use sim::Role;
use simulator::cast::Cast;

use super::open;
use crate::args::CheckArgs;

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let scenario = source.with(&set)?;
    let cast = Cast::of(&source, &scenario, scenario.seed)?;
    println!(
        "{}: in order. {} simulated, radio {}: {} RSUs on {} LANs, {} OBUs, {} clients, {} flows, \
         {} faults",
        source.path().display(),
        scenario.duration,
        scenario.radio.model.as_str(),
        cast.of_role(Role::Rsu).count(),
        cast.lans.len(),
        cast.of_role(Role::Obu).count(),
        cast.clients.len(),
        cast.flows.len(),
        cast.faults.len(),
    );
    Ok(ExitCode::SUCCESS)
}
