//! What the user typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use simulator::measure::Suite;
use simulator::scenario::{Override, Span, parse_variants};

/// Runs scenarios of vehicles and road-side units in virtual time, on the nodes the daemons run
///
/// docs/simulator.md describes scenario files and results. Exit code: 0 when all is well, 1 when a
/// rule was broken that is watched in every run, 2 when a scenario or the command line is wrong,
/// 130 or 143 when SIGINT or SIGTERM ended it before its time.
#[derive(Debug, Parser)]
#[command(name = "v2xsim", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Run a scenario and show what came of it
    Run(RunArgs),
    /// Say whether a scenario file is in order, and what is in it
    Check(CheckArgs),
    /// Draw nodes, links and routes at a moment
    Map(MapArgs),
    /// Run a scenario once, and write it as a web page that plays it
    Page(PageArgs),
    /// Write loss and delay of every link over time, for replaying them elsewhere
    Links(LinksArgs),
    /// Run a scenario with our protocol and with others: what each delivers, and what its routes
    /// cost
    Protocols(ProtocolsArgs),
    /// Run scenes of many places, towns, radios and loads, and hold them against goals
    Sweep(SweepArgs),
    /// Show two sweeps beside each other
    Compare(CompareArgs),
}

/// A scenario and what to change in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// Scenario file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Change a field, such as radio.range_m=250 or obu.speed_kmh=90; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Override>,

    /// Take vehicles from this file of movements, whatever the scenario names
    #[arg(long, value_name = "FILE")]
    pub(crate) mobility: Option<PathBuf>,
}

/// How often and how fast.
#[derive(Debug, clap::Args)]
pub(crate) struct Runs {
    /// Runs, each with the next seed, instead of as many as the scenario says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: Option<u32>,

    /// First seed, instead of that of the scenario
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Runs at the same time [default: one per processor]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    #[command(flatten)]
    pub(crate) runs: Runs,

    /// Whose nodes, as with protocols: those that carry traffic
    #[arg(long, value_name = "NODES", value_parser = suite_with_traffic, default_value = "daemons")]
    pub(crate) nodes: Suite,

    /// Run once with each of these values of a field; repeated, every combination
    #[arg(long, value_name = "KEY=A,B,C", value_parser = parse_variants)]
    pub(crate) vary: Vec<Vec<Override>>,

    /// Write everything that was measured as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write it as CSV: runs here; flows, hand-overs and seconds in files beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Draw gaps and airtime into this directory, as SVG
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    /// Write every event of the run, line by line; for one seed
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Add processor time and memory to the JSON, which is then another one each time
    #[arg(long, requires = "json")]
    pub(crate) cost: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) chosen: Chosen,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MapArgs {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// The moment, such as 12.5s
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Span,

    /// Seed, instead of that of the scenario
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Picture, as SVG
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Time from one look to the next; it doubles as often as the page would be too large
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) every: Span,

    /// Seed, instead of that of the scenario
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Page, as HTML
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    /// Time from one look to the next
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) every: Span,

    /// Seed, instead of that of the scenario
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Table, as CSV
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProtocolsArgs {
    #[command(flatten)]
    pub(crate) chosen: Chosen,

    #[command(flatten)]
    pub(crate) runs: Runs,

    /// Whose nodes: daemons (what ships), flooding (plain, carries no traffic), batman-model (the
    /// published rules of B.A.T.M.A.N. IV), ideal-routing (that know everything and say nothing)
    #[arg(
        long,
        value_name = "A,B,C",
        value_delimiter = ',',
        value_parser = suite,
        default_value = "daemons,flooding,batman-model"
    )]
    pub(crate) nodes: Vec<Suite>,
}

fn suite(typed: &str) -> Result<Suite, String> {
    suite_of(typed, Suite::CHOICE.to_vec())
}

fn suite_with_traffic(typed: &str) -> Result<Suite, String> {
    suite_of(typed, Suite::CHOICE.into_iter().filter(|suite| suite.carries_traffic()).collect())
}

fn suite_of(typed: &str, choice: Vec<Suite>) -> Result<Suite, String> {
    let names: Vec<_> = choice.iter().map(|suite| suite.as_str()).collect();
    let found = choice.into_iter().find(|suite| suite.as_str() == typed);
    found.ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

#[derive(Debug, clap::Args)]
pub(crate) struct SweepArgs {
    /// Scenario with a file of movements: its vehicles and road-side units are one more town
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Take its vehicles from this file of movements, whatever the scenario names
    #[arg(long, value_name = "FILE", requires = "file")]
    pub(crate) mobility: Option<PathBuf>,

    /// Results of all scenes, as JSON, kept up to date; beside it a table (.csv), and a directory
    /// with all scenes (.scenes)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// Six scenes of each kind, 30 s each, instead of 48 with 60 s
    #[arg(long)]
    pub(crate) quick: bool,

    /// Scenes of each kind
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) scenes: Option<u32>,

    /// Simulated time of each scene that is measured
    #[arg(long, value_name = "TIME")]
    pub(crate) measured: Option<Span>,

    /// Only kinds with this in their name, such as steady-busy-300, idle or 500; may be repeated
    #[arg(long, value_name = "PART")]
    pub(crate) kind: Vec<String>,

    /// Where everything random comes from
    #[arg(long, value_name = "S", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(..1_000_000))]
    pub(crate) seed: u64,

    /// Scenes at the same time [default: one per processor]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// Whose nodes, as with protocols: those that carry traffic
    #[arg(long, value_name = "NODES", value_parser = suite_with_traffic, default_value = "daemons")]
    pub(crate) nodes: Suite,

    /// Change a field in every scene, such as settings.obu.policy.suppression=false; may be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Override>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Results before
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// Results after
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
}
