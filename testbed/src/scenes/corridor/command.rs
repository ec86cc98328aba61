//! `testbed corridor`: drives, with a table for each.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::report::{self, Comparison};
use super::{Corridor, daemons, scenario, simulated};
use crate::medium::MediumLinkTrace;
use crate::screen::Screen;

/// What is driven.
#[derive(Args, Debug)]
pub struct CorridorOptions {
    /// Speeds in km/h
    #[arg(long, value_delimiter = ',', default_values_t = [50.0, 90.0, 130.0])]
    speeds: Vec<f64>,
    /// Drive from this metre of the corridor …
    #[arg(long, default_value_t = 0.0)]
    from: f64,
    /// … to this one; there is a road-side unit every 300 m
    #[arg(long, default_value_t = 1200.0)]
    to: f64,
    /// A link trace instead: CSV with time_s, from, to, loss, delay_us, and signal_dbm,
    /// signal_sd_db where they are known
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "from", "to"])]
    links: Option<PathBuf>,
    /// Frames per second, in all, in each direction
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// How often a radio tries a unicast frame again: each number gives a drive. 802.11 has 7, the
    /// scenario itself 0
    #[arg(long, value_delimiter = ',', default_values_t = [0, 7])]
    retries: Vec<u32>,
    /// Whether the vehicle's radio tells how strong road-side units come in
    #[arg(long, value_name = "WHEN", default_value = "both")]
    signal: Told,
    /// Seed of everything random but the daemons themselves
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Drives in the simulator, each with a seed of its own
    #[arg(long, default_value_t = 20)]
    simulated: u64,
}

/// Whether signal strength is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Told {
    /// Two drives of each kind, side by side.
    Both,
    /// One, with it.
    Yes,
    /// One, without.
    No,
}

/// Drives inside the arena. Fails when a frame came twice, a hand-over did not happen, or the
/// bridge did not learn of one.
pub fn run(options: &CorridorOptions) -> Result<()> {
    let start = Instant::now();
    let screen = Screen::new();
    screen.title("The corridor: a vehicle full of clients drives past road-side units on one LAN");
    screen.dim(
        "Real daemons, a Linux bridge between the road-side units; the medium replays who \
                hears whom.",
    );
    let drives: Vec<(String, MediumLinkTrace)> = match &options.links {
        Some(path) => vec![(path.display().to_string(), MediumLinkTrace::open(path)?)],
        None => {
            let drives = options.speeds.iter().map(|speed| {
                let trace = scenario::links(*speed, options.from, options.to, options.seed)?;
                Ok((format!("{speed} km/h"), trace))
            });
            drives.collect::<Result<_>>()?
        }
    };
    for (name, trace) in drives {
        for retries in &options.retries {
            let corridor = Corridor {
                retries: *retries,
                frames_per_s: options.rate,
                seed: options.seed,
                ..Corridor::new(trace.clone())
            };
            let name = match retries {
                0 => format!("{name}, sent once"),
                retries => format!("{name}, {} tries", retries.saturating_add(1)),
            };
            let mut sides = Vec::new();
            for (told, corridor) in sides_of(&corridor, options.signal) {
                let name = format!("{name}, {told}");
                screen.step(&name);
                let comparison = drive(&corridor, options.simulated)?;
                println!("{}", comparison.text(&corridor));
                screen.remember(&name, comparison.summary(&corridor));
                comparison.check(&corridor)?;
                sides.push((told, comparison));
            }
            if sides.len() > 1 {
                println!("  {name}, with and without signal\n{}\n", report::side_by_side(&sides));
            }
        }
    }
    screen.end(start.elapsed())
}

/// The same drive as far as asked: with signal where the trace has it, and without.
fn sides_of(corridor: &Corridor, told: Told) -> Vec<(&'static str, Corridor)> {
    let with = (told != Told::No && corridor.trace.tells_signal())
        .then(|| ("with signal", corridor.clone()));
    let trace = corridor.trace.without_signal();
    let without = (told != Told::Yes || with.is_none())
        .then(|| ("without signal", Corridor { trace, ..corridor.clone() }));
    with.into_iter().chain(without).collect()
}

fn drive(corridor: &Corridor, seeds: u64) -> Result<Comparison> {
    let bar = ProgressBar::new(corridor.trace.end().as_millis() as u64);
    bar.set_style(ProgressStyle::with_template("     {bar:40} {msg}")?);
    let real = daemons::drive(corridor, &mut |time: Duration, attachment| {
        bar.set_position(time.as_millis() as u64);
        bar.set_message(format!("{:.0} s, sends to {attachment}", time.as_secs_f64()));
    })?;
    bar.finish_and_clear();
    let simulated = (0..seeds).map(|n| simulated::drive(corridor, corridor.seed + n));
    Ok(Comparison { simulated: simulated.collect::<Result<_>>()?, real })
}
