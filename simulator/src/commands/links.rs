//! `v2xsim links`: loss and delay of every link over time.

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use simulator::cast::Cast;
use simulator::links;
use simulator::scenario::Span;

use super::open;
use crate::args::LinksArgs;

pub(crate) fn links(args: &LinksArgs) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let scenario = source.with(&set)?;
    ensure!(args.every >= Span::from_millis(1), "--every {}: expected 1ms or more", args.every);
    let seed = args.seed.unwrap_or(scenario.seed);
    let cast = Cast::of(&source, &scenario, seed)?;
    let context = || args.output.display().to_string();
    let file = BufWriter::new(File::create(&args.output).with_context(context)?);
    links::write(&scenario, &cast, seed, args.every, file).with_context(context)?;
    Ok(ExitCode::SUCCESS)
}
