//! `testbed latency`: round trips on an idle line, beside as many busy programs as are asked for.
//!
//! The system bench wants the machine for itself, and a vehicle's computer has other things to do.
//! A daemon that waits for frames competes with programs that never wait, and how soon it gets a
//! processor when a frame comes is up to the scheduler, and to how the daemon waits.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;

use super::measure::BenchPlan;
use super::results::RoundSpread;
use super::{BenchVariant, Idle, idle, in_turn};
use crate::arena;
use crate::daemons::programs::Programs;
use crate::screen::Screen;
use crate::topology::line::has_tap_offload;

/// What is measured, and beside what.
#[derive(Args, Debug)]
pub struct LatencyOptions {
    /// Programs that want a processor each all the time
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=64))]
    busy: u32,
    /// How often all variants are measured, in turns of 50 ms
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Only variants whose name has this in it, such as "1 hop"; several times for any of several
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Directory with another `obu` and `rsu`, to be measured as well
    #[arg(long, value_name = "DIR")]
    with: Option<PathBuf>,
}

/// One that is measured.
#[derive(Clone, Copy)]
struct Contestant<'a> {
    number: usize,
    variant: BenchVariant,
    programs: &'a Programs,
}

/// A figure of the round trips of one round.
type Figure = fn(&Idle) -> f64;

const P50: Figure = |idle| idle.round_trips.p50_us;
const P99: Figure = |idle| idle.round_trips.p99_us;

/// Runs it inside the arena.
pub fn run(options: &LatencyOptions) -> Result<()> {
    let own = Programs::find()?;
    own.require_daemons()?;
    let other = options.with.as_ref().map(|with| own.clone().with_daemons_of(with)).transpose()?;
    let variants = BenchVariant::chosen(has_tap_offload(&own)?, &options.only);
    let ours = variants.iter().filter(|variant| matches!(variant, BenchVariant::Ours { .. }));
    let again = ours.filter_map(|variant| other.as_ref().map(|other| (variant, other)));
    let all = variants.iter().map(|variant| (variant, &own)).chain(again).enumerate();
    let contestants: Vec<_> = all
        .map(|(number, (variant, programs))| Contestant { number, variant: *variant, programs })
        .collect();
    let screen = Screen::new();
    screen.title(&format!("Round trips on an idle line, beside {} busy programs", options.busy));
    let logs = tempfile::TempDir::new_in(arena::scratch())?;
    let _busy = (0..options.busy).map(|_| Busy::start()).collect::<Result<Vec<_>>>()?;
    let mut rounds = vec![Vec::new(); contestants.len()];
    for round in 1..=usize::from(options.rounds) {
        let order = in_turn(&contestants, round);
        let with_programs = order.iter().map(|one| (one.variant, one.programs));
        let told = idle::measure(&BenchPlan::full(1), with_programs, logs.path())?;
        for (one, idle) in order.iter().zip(told) {
            rounds.get_mut(one.number).context("a contestant")?.push(idle);
        }
    }
    for one in &contestants {
        let is_other = !std::ptr::eq(one.programs, &own);
        let name = one.variant.name() + if is_other { ", the other build" } else { "" };
        let of = rounds.get(one.number).context("a contestant")?;
        let naive = contestants.iter().find(|naive| is_measure_of(naive.variant, one.variant));
        let naive = naive.and_then(|naive| rounds.get(naive.number));
        screen.plain(&row(&name, of, naive.map(Vec::as_slice))?);
    }
    Ok(())
}

/// Whether the one is the naive relay over as many hops as the other.
fn is_measure_of(naive: BenchVariant, ours: BenchVariant) -> bool {
    use BenchVariant::{Naive, Ours};
    matches!((naive, ours), (Naive { hops }, Ours { hops: of, .. }) if hops == of)
}

/// Medians over rounds, the least and most of them, and the median ratio to the naive relay.
fn row(name: &str, rounds: &[Idle], naive: Option<&[Idle]>) -> Result<String> {
    let mut row = format!("{name:<36}");
    for (title, figure) in [("p50", P50), ("p99", P99)] {
        let RoundSpread { min, median, max } =
            RoundSpread::of(rounds.iter().map(figure)).context("no rounds")?;
        row += &format!("  {title} {median:>7.0} µs ({min:.0}–{max:.0})");
        let ratios = naive.and_then(|naive| ratios(rounds, naive, figure));
        row += &ratios.map_or(String::new(), |ratios| format!(", {:.2} of naive", ratios.median));
    }
    let (sent, lost) = rounds.iter().fold((0, 0), |(sent, lost), idle| {
        (sent + idle.round_trips.sent, lost + idle.round_trips.lost)
    });
    let cpu_us = rounds.iter().map(|idle| idle.cpu_ns).sum::<u64>() as f64 / 1e3;
    let answered = sent.saturating_sub(lost).max(1) as f64;
    Ok(row + &format!("  CPU {:.0} µs each, {lost} of {sent} lost", cpu_us / answered))
}

/// Round by round, because what else the machine does changes in between.
fn ratios(ours: &[Idle], naive: &[Idle], figure: Figure) -> Option<RoundSpread> {
    RoundSpread::of(ours.iter().zip(naive).map(|(ours, naive)| figure(ours) / figure(naive)))
}

/// A program that never waits. It ends with this.
struct Busy(Child);

impl Busy {
    fn start() -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Ok(Self(command.spawn().context("sh")?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
