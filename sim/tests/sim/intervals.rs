//! Heartbeats every 10 ms to every 10 s, as the programs take them: whatever follows from the
//! interval scales with it, so nothing loops and a way is found again within so many intervals.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Timestamp;
use rsu_lib::Rsu;
use sim::topology::Graph;
use sim::{Dice, Fault, Flow, Link, NodeIndex, Place, Role, Target};

use crate::common::{
    HOST_MAC, Town, Wrong, broken, ms, obu, radio, rider_mac, run_all, seeds, wrong,
};

const INTERVALS: [Duration; 7] = [ms(10), ms(30), ms(100), ms(500), ms(2000), ms(5000), ms(10_000)];

/// Linked as in `graph`, node 0 an RSU that speaks once per `interval`.
fn town(seed: u64, graph: &Graph, interval: Duration) -> Town {
    let mut world = Town::world_of_first_starts(seed);
    let lan = world.add_lan();
    let host = world.add_client(HOST_MAC, Place::Lan(lan));
    let rsu = world.add_node(
        Role::Rsu,
        radio(0),
        Box::new(move |start, now| {
            let settings = rsu_lib::Settings { hello_periodicity: interval, ..Default::default() };
            Box::new(Rsu::new(settings.config(start), now))
        }),
    );
    world.plug(rsu, lan);
    let mut riders = BTreeMap::new();
    for n in 1..graph.nodes() {
        let node = world.add_node(Role::Obu, radio(n), obu(n));
        riders.insert(node, world.add_client(rider_mac(n), Place::Tap(node)));
    }
    let quick = Link { delay: ms(1).min(interval / 20), ..Link::CLEAN };
    world.link_all(graph, quick);
    Town { world, lan, host, riders }
}

/// Cuts, crashes and restarts, a few intervals apart, until 20 intervals; then all is mended.
fn plan_faults(town: &mut Town, graph: &Graph, interval: Duration, dice: &mut Dice) -> Timestamp {
    let at = |intervals: u64, dice: &mut Dice| {
        let whole = u32::try_from(intervals).unwrap();
        Timestamp::ZERO + interval * whole + dice.up_to(interval)
    };
    let edges: Vec<_> = graph.edges().collect();
    for step in 0..4 {
        let time = at(12 + 3 * step, dice);
        let &(a, b) = dice.pick(&edges).unwrap();
        let (a, b) = (NodeIndex(a), NodeIndex(b));
        let fault = match dice.index(4) {
            0 => Fault::Cut(a, b),
            1 => Fault::CutOneWay(a, b),
            2 => Fault::Restart(NodeIndex(1 + dice.index(graph.nodes() - 1)), interval / 3),
            _ => Fault::Restart(NodeIndex(0), interval / 3),
        };
        town.world.at(time, fault);
    }
    let mended = at(26, dice);
    for (a, b) in edges {
        town.world.at(mended, Fault::Heal(NodeIndex(a), NodeIndex(b)));
    }
    mended
}

#[test]
fn nothing_loops_and_ways_are_found_again_at_every_interval() {
    let test = "nothing_loops_and_ways_are_found_again_at_every_interval";
    for interval in INTERVALS {
        run_all(test, seeds(60), |seed| {
            run(seed, interval).map_err(|wrong| format!("{wrong} (every {interval:?})").into())
        });
    }
}

fn run(seed: u64, interval: Duration) -> Result<(), Wrong> {
    let mut dice = Dice::new(seed, 3);
    let graph = match dice.index(3) {
        0 => Graph::ring(4 + dice.index(2)),
        1 => Graph::complete(4),
        _ => Graph::random_connected(4 + dice.index(4), 0.4, &mut dice),
    };
    let mut town = town(seed, &graph, interval);
    let mended = plan_faults(&mut town, &graph, interval, &mut dice);
    let first = Timestamp::ZERO + interval * 8;
    for (rider, host) in town.riders.values().map(|rider| (*rider, town.host)).collect::<Vec<_>>() {
        town.world.add_flow(Flow::steady(rider, Target::Client(host), first, interval / 4, 110));
        town.world.add_flow(Flow::steady(host, Target::Client(rider), first, interval / 4, 110));
    }
    // A question and its answer take the same time at every interval.
    town.world.run_until(mended + interval * 6 + ms(150)).map_err(broken)?;
    let lost: Vec<_> =
        town.riders.keys().filter(|n| town.world.attachment(**n).is_none()).collect();
    if !lost.is_empty() {
        return Err(wrong(&town, format!("{lost:?} have no way, all was mended at {mended}")));
    }
    Ok(())
}
