//! `testbed restarts`: both roles, lives of seconds to minutes, many towns side by side.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use super::{EVERY, Ending, Town, promise, worst};
use crate::programs::Programs;
use crate::screen::Screen;
use crate::world::Role;

/// What is done.
#[derive(Args, Debug)]
pub struct Options {
    /// Towns, each of which restarts each role once after each life
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=60))]
    runs: u32,
    /// Lives after which a node is ended, in seconds
    #[arg(long, value_delimiter = ',', default_value = "5,45,600")]
    lives: Vec<u64>,
    /// How far away the vehicle is; it is the one that restarts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    hops: u8,
    /// End nodes with a goodbye (SIGTERM) instead of kill -9
    #[arg(long)]
    goodbye: bool,
}

/// One restart.
struct Run {
    role: Role,
    life: u64,
    outage: Result<Duration>,
}

const ROLES: [Role; 2] = [Role::Rsu, Role::Obu];
/// Between the starts of two towns, so that hardly two restart at once.
const STAGGER: Duration = Duration::from_secs(5);

/// Runs all towns inside the arena. Fails unless every restart kept its promise.
pub fn run(options: &Options) -> Result<()> {
    ensure!(!options.lives.is_empty(), "no life to restart after");
    let start = Instant::now();
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let screen = Screen::new();
    screen.title("Restarts after a life");
    let ending = if options.goodbye { "SIGTERM" } else { "kill -9" };
    screen.dim(&format!(
        "{} towns side by side, {} hop(s); {ending}; a frame each way every {} ms.",
        options.runs,
        options.hops,
        EVERY.as_millis()
    ));
    let runs = all(options, &programs, &screen)?;
    let mut broken = Vec::new();
    for role in ROLES {
        let within = promise(role);
        let kept = |run: &&Run| matches!(run.outage, Ok(outage) if outage <= within);
        let of_role: Vec<_> = runs.iter().filter(|run| run.role == role).collect();
        for life in &options.lives {
            let of_life: Vec<_> = of_role.iter().filter(|run| run.life == *life).collect();
            let good = of_life.iter().copied().copied().filter(kept).count();
            let mut outages: Vec<_> =
                of_life.iter().filter_map(|run| run.outage.as_ref().ok()).collect();
            outages.sort_unstable();
            let median = outages.get(outages.len() / 2).map_or(0, |outage| outage.as_millis());
            let max = outages.last().map_or(0, |outage| outage.as_millis());
            screen.remember(
                &format!("{} after {life} s of life", name(role)),
                format!("{good} of {}; median {median} ms, worst {max} ms", of_life.len()),
            );
        }
        let good = of_role.iter().copied().filter(kept).count();
        screen.remember(
            &format!("{} within {} ms", name(role), within.as_millis()),
            format!("{good} of {}", of_role.len()),
        );
        for run in of_role.iter().filter(|run| !kept(run)) {
            broken.push(match &run.outage {
                Ok(outage) => format!("{} after {} s: {outage:?}", name(role), run.life),
                Err(error) => format!("{} after {} s: {error:#}", name(role), run.life),
            });
        }
    }
    ensure!(broken.is_empty(), "promises broken:\n{}", broken.join("\n"));
    screen.end(start.elapsed())
}

fn all(options: &Options, programs: &Programs, screen: &Screen) -> Result<Vec<Run>> {
    let expected = options.runs as usize * options.lives.len() * ROLES.len();
    // One restart at a time: two would measure each other.
    let turn = Mutex::new(());
    std::thread::scope(|scope| {
        let (done, runs) = channel();
        for n in 0..options.runs {
            let (done, turn) = (done.clone(), &turn);
            scope.spawn(move || {
                std::thread::sleep(STAGGER * n);
                if let Err(error) = town(n, options, programs, turn, &done) {
                    let run = |role| Run { role, life: 0, outage: Err(anyhow!("{error:#}")) };
                    let _ = done.send(run(Role::Obu));
                }
            });
        }
        drop(done);
        let mut all = Vec::new();
        let mut counts = BTreeMap::new();
        for run in runs {
            let key = format!("{} after {} s", name(run.role), run.life);
            *counts.entry(key).or_insert(0_u32) += 1;
            all.push(run);
            if all.len() % options.runs as usize == 0 || all.len() == expected {
                let so_far = counts.iter().map(|(key, n)| format!("{key}: {n}"));
                screen.plain(&so_far.collect::<Vec<_>>().join(", "));
            }
        }
        ensure!(all.len() >= expected, "{} of {expected} restarts", all.len());
        Ok(all)
    })
}

/// One town: life by life, first the road-side unit, then the vehicle.
fn town(
    n: u32,
    options: &Options,
    programs: &Programs,
    turn: &Mutex<()>,
    done: &Sender<Run>,
) -> Result<()> {
    let ending = if options.goodbye { Ending::Term } else { Ending::Kill };
    let town = Town::lay(programs, &format!("t{n}"), usize::from(options.hops))?;
    town.start()?;
    let mut born = [Instant::now(); ROLES.len()];
    for life in &options.lives {
        for (role, born) in ROLES.iter().zip(&mut born) {
            let nodes = town.nodes();
            let node = match role {
                Role::Rsu => nodes.first(),
                Role::Obu => nodes.last(),
            };
            let node = node.context("a town has nodes")?;
            std::thread::sleep(Duration::from_secs(*life).saturating_sub(born.elapsed()));
            let held = turn.lock();
            let outage = town.restart(node, ending, Duration::ZERO, None);
            drop(held);
            *born = Instant::now();
            let outage = outage
                .map(|outages| worst(&outages))
                .map_err(|error| anyhow!("{}\n{error:#}", town.log_tails()));
            let is_over = outage.is_err();
            let _ = done.send(Run { role: *role, life: *life, outage });
            if is_over {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Rsu => "RSU",
        Role::Obu => "OBU",
    }
}
