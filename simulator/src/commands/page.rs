//! `v2xsim page`: a run as one web page.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use simulator::cast::Cast;
use simulator::report::town::{self, PlayedRun};
use simulator::scenario::Span;

use super::{BROKEN, open};
use crate::args::PageArgs;

pub(crate) fn page(args: &PageArgs) -> Result<ExitCode> {
    let (source, set) = open(&args.chosen)?;
    let scenario = source.with(&set)?;
    ensure!(args.every >= Span::from_millis(10), "--every {}: expected 10ms or more", args.every);
    let seed = args.seed.unwrap_or(scenario.seed);
    let cast = Cast::of(&source, &scenario, seed)?;
    let context = || args.output.display().to_string();
    let mut file = BufWriter::new(File::create(&args.output).with_context(context)?);
    let name = args.chosen.file.file_stem().unwrap_or_default().to_string_lossy();
    let played = PlayedRun { name: &name, scenario: &scenario, cast: &cast, seed };
    let written = town::write(&played, args.every.0, &mut file);
    let written = written.and_then(|written| file.flush().map(|()| written));
    let town::Written { looks, every, broken, .. } = written.with_context(context)?;
    println!("{}: {looks} looks, one every {} s", args.output.display(), every.as_secs_f64());
    if let Some((violation, name)) = broken {
        eprintln!("{name}: {violation}");
        return Ok(ExitCode::from(BROKEN));
    }
    Ok(ExitCode::SUCCESS)
}
