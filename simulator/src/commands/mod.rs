//! What each subcommand does.

pub(crate) mod check;
pub(crate) mod links;
pub(crate) mod map;
mod outcome;
pub(crate) mod page;
mod progress;
pub(crate) mod protocols;
pub(crate) mod run;
mod stop;
pub(crate) mod sweep;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use simulator::scenario::{Override, Source};

use crate::args::Chosen;

/// Exit code: a rule was broken.
pub(crate) const BROKEN: u8 = 1;
/// Exit code: the scenario or the command line is wrong, or a file cannot be written.
pub(crate) const UNUSABLE: u8 = 2;

/// The file, and all that was changed on the command line.
fn open(chosen: &Chosen) -> Result<(Source, Vec<Override>)> {
    let source = Source::open(&chosen.file)?;
    let mut set = chosen.set.clone();
    if let Some(file) = &chosen.mobility {
        set.push(mobility(file)?);
    }
    Ok((source, set))
}

/// The change that `--mobility` makes.
fn mobility(file: &Path) -> Result<Override> {
    // Other than in a scenario, a path on the command line is relative to where one is.
    let file = std::path::absolute(file).with_context(|| file.display().to_string())?;
    Ok(Override::text("mobility.file", &file.to_string_lossy()))
}

/// `--jobs`, or its default.
fn jobs(jobs: Option<u16>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(all, usize::from)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let context = || path.display().to_string();
    let mut file = BufWriter::new(File::create(path).with_context(context)?);
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).with_context(context)
}
