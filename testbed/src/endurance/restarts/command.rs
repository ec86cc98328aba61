//! `testbed restarts`: both roles, lives of seconds to minutes, many towns side by side.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use sim::Role;

use super::{EVERY, Ending, RestartTown, promise, worst};
use crate::daemons::programs::Programs;
use crate::screen::Screen;

/// What is done.
#[derive(Args, Debug)]
pub struct RestartsOptions {
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

/// One restart after which traffic came back.
struct Run {
    town: u32,
    role: Role,
    life: u64,
    outage: Duration,
}

/// What came of all towns.
#[derive(Default)]
struct Outcome {
    runs: Vec<Run>,
    /// Why a town had to be given up, and with it the rest of its restarts.
    failed: Vec<String>,
}

const ROLES: [Role; 2] = [Role::Rsu, Role::Obu];
/// Between the starts of two towns, so that hardly two restart at once.
const STAGGER: Duration = Duration::from_secs(5);

/// Runs all towns inside the arena. Fails unless every restart kept its promise.
pub fn run(options: &RestartsOptions) -> Result<()> {
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
    let Outcome { runs, failed } = all(options, &programs, &screen);
    let mut broken = failed;
    for role in ROLES {
        let within = promise(role);
        let of_role: Vec<_> = runs.iter().filter(|run| run.role == role).collect();
        for life in &options.lives {
            let of_life: Vec<_> = of_role.iter().copied().filter(|run| run.life == *life).collect();
            let good = of_life.iter().filter(|run| run.outage <= within).count();
            let mut outages: Vec<_> = of_life.iter().map(|run| run.outage.as_millis()).collect();
            outages.sort_unstable();
            let median = outages.get(outages.len() / 2).unwrap_or(&0);
            let max = outages.last().unwrap_or(&0);
            screen.remember(
                &format!("{} after {life} s of life", name(role)),
                format!("{good} of {}; median {median} ms, worst {max} ms", options.runs),
            );
        }
        let (good, late): (Vec<&Run>, _) = of_role.iter().partition(|run| run.outage <= within);
        screen.remember(
            &format!("{} within {} ms", name(role), within.as_millis()),
            format!("{} of {}", good.len(), options.runs as usize * options.lives.len()),
        );
        broken.extend(late.iter().map(|run| {
            let Run { town, life, outage, .. } = run;
            format!("town {town}: {} after {life} s: {outage:?}", name(role))
        }));
    }
    screen.end(start.elapsed())?;
    ensure!(broken.is_empty(), "promises broken:\n{}", broken.join("\n"));
    Ok(())
}

fn all(options: &RestartsOptions, programs: &Programs, screen: &Screen) -> Outcome {
    let expected = options.runs as usize * options.lives.len() * ROLES.len();
    // One restart at a time: two would measure each other.
    let turn = Mutex::new(());
    std::thread::scope(|scope| {
        let (done, ended) = channel();
        for n in 0..options.runs {
            let (done, turn) = (done.clone(), &turn);
            scope.spawn(move || {
                std::thread::sleep(STAGGER * n);
                if let Err(error) = town(n, options, programs, turn, &done) {
                    let _ = done.send(Err(format!("town {n}, given up: {error:#}")));
                }
            });
        }
        drop(done);
        let mut outcome = Outcome::default();
        let mut counts = BTreeMap::new();
        for run in ended {
            let Outcome { runs, failed } = &mut outcome;
            match run {
                Ok(run) => {
                    let key = format!("{} after {} s", name(run.role), run.life);
                    *counts.entry(key).or_insert(0_u32) += 1;
                    runs.push(run);
                }
                Err(why) => {
                    screen.plain(&why);
                    failed.push(why);
                    continue;
                }
            }
            if runs.len() % options.runs as usize == 0 || runs.len() == expected {
                let so_far = counts.iter().map(|(key, n)| format!("{key}: {n}"));
                screen.plain(&so_far.collect::<Vec<_>>().join(", "));
            }
        }
        outcome
    })
}

/// One town: life by life, first the road-side unit, then the vehicle.
fn town(
    n: u32,
    options: &RestartsOptions,
    programs: &Programs,
    turn: &Mutex<()>,
    done: &Sender<Result<Run, String>>,
) -> Result<()> {
    let ending = if options.goodbye { Ending::Term } else { Ending::Kill };
    let town = RestartTown::lay(programs, &format!("t{n}"), usize::from(options.hops))?;
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
            let outages = town.restart(node, ending, Duration::ZERO, None);
            drop(held);
            *born = Instant::now();
            let outages = outages.map_err(|error| {
                let after = format!("{} after {life} s of life", name(*role));
                anyhow!("{after}: {error:#}\n{}", town.log_tails())
            })?;
            let run = Run { town: n, role: *role, life: *life, outage: worst(&outages) };
            let _ = done.send(Ok(run));
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
