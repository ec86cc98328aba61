//! Exhaustive search over the nodes as they ship, for ways that lead in a circle.
//!
//! All connected graphs of a few nodes with one RSU; in each of them every run with at most so many
//! decisions against it: a frame lost, late or doubled at one receiver; a link cut in one direction
//! or both, for three intervals or for good; a node restarted where it was or elsewhere, having
//! lost either direction of any of its links. After every step no way may lead in a circle, no
//! packet come to a node again, and each way must lead to somebody who advertised better (see
//! `check`). Everybody sends after every change of a way.
//!
//! Runs are followed depth first over copies of the nodes; a state that was met before with as many
//! decisions left is not followed again (see `state` for what tells states apart).
//!
//! | variable | meaning |
//! |---|---|
//! | `V2X_SEARCH_NODES` | only graphs of so many nodes |
//! | `V2X_SEARCH_DEPTH` | so many decisions in a run |
//! | `V2X_SEARCH_FRAMES` | at most so many of them about frames; 1 |
//! | `V2X_SEARCH_SLOTS` | cuts and restarts at so many moments, from 300 ms after the start; 5 |
//! | `V2X_SEARCH_EVERY` | … which are so many ms apart; 100 |
//! | `V2X_SEARCH_DRAWS` | so many draws of the nodes' jitter; 1 |
//! | `V2X_SEARCH_WITHOUT` | `feasibility` or `quiet`: switches that rule off, and counts graphs with a loop |
//!
//! The first two ask for the long form; it prints what each graph took.

mod check;
mod decision;
mod explore;
mod state;
mod world;

use std::ops::RangeInclusive;
use std::time::Duration;

use obu_lib::Policy;
use sim::topology::{Graph, all_rooted};

use explore::{Bounds, Depth, Found, Work, edges, search};
use world::Setup;

use crate::common::{Wrong, at, ms, run_all};

/// Three intervals: long enough for an upstream to be given up.
const CUT_FOR: Duration = ms(300);

/// After the last slot: an upstream is found dead within 2.25 intervals, a restarted node routes
/// after 3.5, and then it takes a heartbeat.
const TAIL: Duration = ms(480);

/// Cuts and a restart, two in a run, at two moments: before routes over several hops form (the
/// quiet period after the common start ends at 350 ms), and when they have formed.
fn two_faults() -> Bounds {
    bounds(Depth { all: 2, cuts: 2, restarts: 1, frames: 0 }, 2, 200)
}

fn bounds(depth: Depth, slots: u64, every_ms: u64) -> Bounds {
    Bounds {
        depth,
        slots: (0..slots).map(|n| at(300 + n * every_ms)).collect(),
        repairs: vec![Some(CUT_FOR), None],
        elsewhere: true,
        delays: vec![ms(3), ms(40)],
        tail: TAIL,
    }
}

#[test]
fn no_run_of_the_nodes_as_they_ship_loops() {
    let test = "no_run_of_the_nodes_as_they_ship_loops";
    if let Some((nodes, bounds)) = asked_for() {
        let without = std::env::var("V2X_SEARCH_WITHOUT").unwrap_or_default();
        let mut policy = Policy::default();
        match without.as_str() {
            "feasibility" => policy.feasibility = false,
            "quiet" => policy.quiet_period = false,
            "" => {}
            other => panic!("V2X_SEARCH_WITHOUT={other}: not a rule"),
        }
        let loops = exhaust(test, nodes..=nodes, &bounds, policy, env("V2X_SEARCH_DRAWS", 1));
        assert_eq!(loops == 0, without.is_empty());
        return;
    }
    let one = |frames| Depth { all: 1, cuts: 1, restarts: 1, frames };
    let here = |bounds: Bounds| Bounds { elsewhere: false, ..bounds };
    let ships = Policy::default();
    let mut loops = exhaust(test, 2..=4, &two_faults(), ships, 1);
    loops += exhaust(test, 5..=5, &bounds(one(1), 2, 200), ships, 1);
    loops += exhaust(test, 6..=6, &here(bounds(one(0), 2, 200)), ships, 1);
    assert_eq!(loops, 0);
}

#[test]
fn without_the_feasibility_rule_the_search_finds_a_loop() {
    let policy = Policy { feasibility: false, ..Policy::default() };
    println!("without the feasibility rule:\n{}", shortest_loop(policy));
}

#[test]
fn without_the_quiet_period_the_search_finds_a_loop() {
    let policy = Policy { quiet_period: false, ..Policy::default() };
    println!("without the quiet period:\n{}", shortest_loop(policy));
}

/// The loop that takes fewest decisions, then fewest nodes, then fewest links; of which the same
/// search finds none when all rules hold.
fn shortest_loop(policy: Policy) -> String {
    for all in 1..=2 {
        let mut bounds = two_faults();
        bounds.depth.all = all;
        for graph in (2..=4).flat_map(|nodes| topologies(nodes).into_iter().rev()) {
            let (found, _) = search(&graph, Setup { policy, draw: 0 }, &bounds);
            if let Some(Found { broken, story, .. }) = found {
                assert!(broken.is_loop(), "{story}");
                let ships = Setup { policy: Policy::default(), draw: 0 };
                let (found, work) = search(&graph, ships, &bounds);
                assert!(found.is_none(), "with all rules: {found:?}");
                return format!("{story}\nnone with all rules: {work}");
            }
        }
    }
    panic!("no loop within {:?}", two_faults());
}

/// Nodes and bounds from the environment, if it names any.
fn asked_for() -> Option<(usize, Bounds)> {
    let is_asked = |name| std::env::var_os(name).is_some();
    if !is_asked("V2X_SEARCH_NODES") && !is_asked("V2X_SEARCH_DEPTH") {
        return None;
    }
    let all = env("V2X_SEARCH_DEPTH", 2);
    let depth = Depth { all, cuts: all, restarts: all, frames: env("V2X_SEARCH_FRAMES", 1) };
    let slots = env("V2X_SEARCH_SLOTS", 5) as u64;
    let every = env("V2X_SEARCH_EVERY", 100) as u64;
    Some((env("V2X_SEARCH_NODES", 4), bounds(depth, slots, every)))
}

/// Searches all graphs of these sizes; says what was done, and the shortest run that broke a rule,
/// if any. Returns how many graphs had one.
fn exhaust(
    test: &str,
    nodes: RangeInclusive<usize>,
    bounds: &Bounds,
    policy: Policy,
    draws: usize,
) -> usize {
    let graphs: Vec<Graph> = nodes.clone().flat_map(topologies).collect();
    let seeds = 0..(graphs.len() * draws) as u64;
    let is_long = asked_for().is_some();
    let done = run_all(test, seeds, |seed| {
        let graph = &graphs[seed as usize / draws];
        let draw = seed % draws as u64;
        let (found, work) = search(graph, Setup { policy, draw }, bounds);
        if is_long {
            eprintln!("links {}, draw {draw}: {work}", edges(graph));
        }
        Ok::<_, Wrong>((found, work))
    });
    let mut total = Work::default();
    let mut found = Vec::new();
    for (one, work) in done {
        total += work;
        found.extend(one);
    }
    let Depth { all, cuts, restarts, frames } = bounds.depth;
    println!(
        "{}..{} nodes, {all} decisions of {cuts} cuts, {restarts} restarts, {frames} frames, \
         {} moments, {draws} draws: {total}; {} broke a rule",
        nodes.start(),
        nodes.end(),
        bounds.slots.len(),
        found.len()
    );
    if let Some(shortest) = found.iter().min_by_key(|found| found.decisions) {
        println!("{}", shortest.story);
    }
    found.len()
}

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
