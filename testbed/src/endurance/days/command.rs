//! `testbed days`: a run with a seed, and what became of it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use clap::Args;

use super::DaysPlan;
use super::report::DaysReport;
use crate::daemons::programs::Programs;
use crate::screen::Screen;

/// How long, and which faults.
#[derive(Args, Debug)]
pub struct DaysOptions {
    /// Minutes that faults go on
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// Seconds that faults go on, instead of minutes
    #[arg(long, conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Seed of the faults; by default another one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Write down every minute, as CSV, what the nodes hold that never restart
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Say what happens, round by round
    #[arg(long, short)]
    verbose: bool,
}

/// Lines about how far it is, in rounds.
const SAY_EVERY: u64 = 25;

/// Runs it inside the arena. Fails when an invariant was broken.
pub fn run(options: &DaysOptions) -> Result<()> {
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seed = options.seed.unwrap_or(seconds % 100_000);
    let lasts = Duration::from_secs(options.seconds.unwrap_or(60 * options.minutes));
    let screen = Screen::new();
    screen.title("A long life in minutes: two RSUs, three vehicles, everything that goes wrong");
    screen.dim(&format!("seed {seed}; faults go on for {} s", lasts.as_secs()));
    let mut broken = 0;
    let plan = DaysPlan { samples: options.samples.clone(), ..DaysPlan::new(seed, lasts) };
    let report = super::run(&plan, &programs, &mut |report: &DaysReport, said| {
        for what in report.broken.iter().skip(broken) {
            screen.plain(&format!("BROKEN {what}"));
        }
        broken = report.broken.len();
        if options.verbose {
            screen.plain(said);
        } else if report.rounds.is_multiple_of(SAY_EVERY) {
            let faults: u64 = report.faults.values().sum();
            screen.plain(&format!("{faults} faults, {broken} invariants broken"));
        }
    })?;
    println!("\n{}", report.text());
    match report.complaint() {
        None => {
            screen.good("0 invariants broken", &format!("again: {}", report.command()));
            Ok(())
        }
        Some(complaint) => Err(anyhow!("{complaint}\n{}", report.logs)),
    }
}
