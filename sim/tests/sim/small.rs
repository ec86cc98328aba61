//! All small towns: every connected topology up to five nodes with one and with two RSUs, and in
//! each of them every single cut and every single restart. Nothing is left to chance but the
//! phases.
//!
//! `V2X_SIM_RUNS=20` runs each case with that many seeds.

use std::fmt;
use std::time::Duration;

use node_lib::Timestamp;
use sim::topology::{Graph, all_rooted};
use sim::{Fault, Link, NodeIndex};

use crate::common::{
    self, HEARTBEAT, Town, Wrong, at, broken, ms, only_seed, run_all, runs, wrong,
};

const FAULT_AT: Timestamp = at(1200);

/// How long a restarted node is off.
const OFF: Duration = ms(30);

/// From the fault, or from the start of the restarted node, to traffic.
const ROUTE_WITHIN: Duration = HEARTBEAT.saturating_mul(5);

#[derive(Clone, Debug)]
struct Case {
    graph: Graph,
    rsus: Vec<usize>,
    fault: Fault,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edges: Vec<_> = self.graph.edges().map(|(a, b)| format!("{a}-{b}")).collect();
        write!(f, "links {}, RSUs {:?}, {}", edges.join(" "), self.rsus, self.fault)
    }
}

#[test]
fn traffic_comes_back_after_any_single_fault_with_one_rsu() {
    exhaust("traffic_comes_back_after_any_single_fault_with_one_rsu", &cases(2..=5, 1));
}

#[test]
fn traffic_comes_back_after_any_single_fault_with_two_rsus() {
    exhaust("traffic_comes_back_after_any_single_fault_with_two_rsus", &cases(3..=5, 2));
}

fn cases(nodes: std::ops::RangeInclusive<usize>, rsus: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for (graph, rsus) in nodes.flat_map(|nodes| all_rooted(nodes, rsus)) {
        let cuts = graph.edges().map(|(a, b)| Fault::Cut(NodeIndex(a), NodeIndex(b)));
        let restarts = (0..graph.nodes()).map(|n| Fault::Restart(NodeIndex(n), OFF));
        for fault in cuts.chain(restarts) {
            cases.push(Case { graph: graph.clone(), rsus: rsus.clone(), fault });
        }
    }
    cases
}

/// A seed here is the number of the case, and above 10,000 the round.
fn exhaust(test: &str, cases: &[Case]) {
    let rounds = if only_seed().is_some() { 1 } else { runs(1) };
    for round in 0..rounds {
        let seeds = match only_seed() {
            Some(seed) => seed..seed + 1,
            None => round * 10_000..round * 10_000 + cases.len() as u64,
        };
        let run = |seed: u64| {
            let case = &cases[seed as usize % 10_000];
            run(seed, case).map_err(|wrong| Wrong::from(format!("{wrong}, {case}")))
        };
        let gaps = run_all(test, seeds, run);
        let obus = gaps.len();
        let gaps: Vec<Duration> = gaps.into_iter().flatten().collect();
        println!("{obus} cases, round {round}, gaps: {}", common::spread(gaps));
    }
}

/// The gaps of all OBUs that can still reach an RSU.
fn run(seed: u64, case: &Case) -> Result<Vec<Duration>, Wrong> {
    let mut town = Town::new(seed, &case.graph, &case.rsus, Link::CLEAN);
    let riders: Vec<NodeIndex> = town.riders.keys().copied().collect();
    let flows: Vec<_> = riders
        .iter()
        .map(|&node| {
            (node, town.up(node, at(900), ms(10), 160), town.down(node, at(903), ms(10), 160))
        })
        .collect();
    town.world.run_until(FAULT_AT).map_err(broken)?;
    for &(node, up, down) in &flows {
        let (up, down) = (
            town.gap_up(up, at(900), FAULT_AT.before(ms(50))),
            town.gap_down(down, node, at(900), FAULT_AT.before(ms(50))),
        );
        if up + down > Duration::ZERO {
            return Err(wrong(&town, format!("{node} lost frames before any fault")));
        }
    }
    town.world.apply(case.fault);
    let over = match case.fault {
        Fault::Restart(..) => FAULT_AT + OFF,
        _ => FAULT_AT,
    };
    town.world.run_until(over).map_err(broken)?;
    let reachable = town.reachable();
    let routed = over + ROUTE_WITHIN;
    town.world.run_until(routed + ms(500)).map_err(broken)?;
    let mut gaps = Vec::new();
    for &(node, hops) in &reachable {
        let (_, up, down) = flows[riders.iter().position(|&n| n == node).unwrap()];
        let end = routed + ms(400);
        let after = (town.gap_up(up, routed, end), town.gap_down(down, node, routed, end));
        if after.0 + after.1 > Duration::ZERO {
            let gap = (town.gap_up(up, FAULT_AT, end), town.gap_down(down, node, FAULT_AT, end));
            let what = format!(
                "{node}, {hops} hops from an RSU: lost frames later than {ROUTE_WITHIN:?} after \
                 the fault; longest gaps up and down {gap:?}"
            );
            return Err(wrong(&town, what));
        }
        gaps.push(town.gap_up(up, FAULT_AT, end));
        gaps.push(town.gap_down(down, node, FAULT_AT, end));
    }
    Ok(gaps)
}
