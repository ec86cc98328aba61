//! Exhaustive search over the nodes as they ship, for ways that lead in a circle.
//!
//! All connected graphs of a few nodes with one RSU; in each of them every run with at most so many
//! decisions: a frame lost, late or doubled at one receiver, a link cut in one direction or both, for
//! a while or for good, a node restarted where it was or elsewhere. After every step nothing may loop,
//! and each way must lead to somebody who advertised better (see `check`).

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
#![allow(unreachable_pub, reason = "modules of a test")]

mod check;
mod decision;
mod explore;
#[path = "../sim_common/mod.rs"]
mod sim_common;
mod state;
mod world;

use std::time::Instant;

use node_lib::sim::topology::{Graph, all_rooted};
use obu_lib::Policy;

use explore::{Bounds, Depth, Found, Work, search};
use sim_common::{at, ms, run_all};
use world::Setup;

/// Graphs of this size up to renaming of OBUs, node 0 the RSU; those with most work first.
fn topologies(nodes: usize) -> Vec<Graph> {
    let mut all: Vec<Graph> = all_rooted(nodes, 1)
        .into_iter()
        .map(|(graph, roots)| {
            let rename = |n: usize| {
                if n == roots[0] {
                    0
                } else if n == 0 {
                    roots[0]
                } else {
                    n
                }
            };
            Graph::new(
                nodes,
                graph.edges().map(|(a, b)| (rename(a), rename(b))).collect::<Vec<_>>(),
            )
        })
        .collect();
    all.sort_by_key(|graph| std::cmp::Reverse(graph.edges().count()));
    all
}

fn env(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

#[test]
fn measure() {
    let nodes = env("N", 4);
    let depth = Depth {
        all: env("K", 2),
        cuts: env("CUTS", 2),
        restarts: env("RESTARTS", 1),
        frames: env("FRAMES", 0),
    };
    let slots = env("SLOTS", 5) as u64;
    let every = env("EVERY", 100) as u64;
    let first = env("FIRST", 300) as u64;
    let bounds = Bounds {
        depth,
        slots: (0..slots).map(|n| at(first + n * every)).collect(),
        repairs: vec![Some(ms(300)), None],
        delays: vec![ms(3), ms(40)],
        tail: ms(600),
    };
    let policy = Policy {
        feasibility: env("FEAS", 1) == 1,
        quiet_period: env("QUIET", 1) == 1,
        ..Policy::default()
    };
    let all = topologies(nodes);
    let began = Instant::now();
    let done = run_all("search", "measure", 0..all.len() as u64, |n| {
        let t = Instant::now();
        let r = search(&all[n as usize], Setup { policy, draw: env("DRAW", 0) as u64 }, &bounds);
        println!("{n}: {} {:?} loop {:?}", r.1, t.elapsed(), r.0.as_ref().map(|f| &f.story));
        Ok(r)
    });
    let mut work = Work::default();
    for (_, w) in &done {
        work += *w;
    }
    let loops = done.iter().filter(|(f, _)| f.is_some()).count();
    println!("{work}, {loops} with a loop, {:?}", began.elapsed());
    let shortest: Option<&Found> =
        done.iter().filter_map(|(f, _)| f.as_ref()).min_by_key(|f| f.decisions);
    println!("{}", shortest.map(|f| f.story.clone()).unwrap_or_default());
}
