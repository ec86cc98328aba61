//! Real daemons that restart after a minute of life and after a day: whoever starts again is heard.
//!
//! The state file tells a daemon how long it has lived; `make restarts` waits for it on the clock.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use testbed::Programs;
use testbed::endurance::restarts::{Ending, RestartTown, promise, worst};

use crate::harness::{Area, ms};

pub(crate) const AREA: Area = Area {
    name: "restarts",
    alone: &[],
    together: &[("whoever_restarts_after_a_life_is_heard", whoever_restarts_is_heard)],
};

/// Quarters of a second: a minute, a day, and what differs by 128 to 256 in the low byte, which is
/// all that data frames carry of a boot count. A day is a multiple of 256. No two neighbours add up
/// to one: two lives in a row that do take 64 s, and a receiver remembers the first of them for 10
/// s.
const LIVES: [u32; 8] = [240, 345_600, 128, 129, 192, 254, 255, 345_600 + 131];
/// How long a node is away, in turn: unnoticed, noticed, forgotten as neighbour.
const AWAY: [Duration; 3] = [ms(0), ms(400), ms(1200)];

/// Each node of a row restarts by each of kill and TERM after each life; one town for each, side by
/// side.
fn whoever_restarts_is_heard() -> Result<()> {
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let who = ["the RSU", "the relay", "the vehicle behind it"];
    std::thread::scope(|scope| {
        let towns = who.iter().enumerate().map(|(index, who)| {
            let programs = &programs;
            scope.spawn(move || restarts_of(index, programs).context(*who))
        });
        // All of them started before the first is waited for.
        let towns: Vec<_> = towns.collect();
        towns.into_iter().try_for_each(|town| town.join().map_err(|_| anyhow!("a town died"))?)
    })
}

fn restarts_of(index: usize, programs: &Programs) -> Result<()> {
    let town = RestartTown::lay(programs, &format!("t{index}"), 2)?;
    town.keep_boot_counts();
    let run = || {
        town.start()?;
        let node = town.nodes().get(index).context("a row of three nodes")?;
        let within = promise(node.role);
        let mut longest = Duration::ZERO;
        let endings = [Ending::Kill, Ending::Term];
        let restarts = endings.iter().flat_map(|ending| LIVES.map(|life| (ending, life)));
        for ((ending, life), away) in restarts.zip(AWAY.iter().cycle()) {
            let outages = town.restart(node, *ending, *away, Some(life))?;
            let outage = worst(&outages);
            ensure!(
                outage <= within,
                "{ending:?} after a life of {life} quarters of a second, {away:?} away: no traffic \
                 for {outage:?}, promised were {within:?} ({outages:?})"
            );
            longest = longest.max(outage);
        }
        let (name, longest) = (node.name(), longest.as_millis());
        println!("    {name}: traffic at most {longest} ms after each of 16 starts");
        Ok(())
    };
    run().map_err(|error: anyhow::Error| anyhow!("{error:#}\n{}", town.log_tails()))
}
