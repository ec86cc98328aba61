//! The same seed is the same run, to the byte.

use std::collections::BTreeSet;

use sim::topology::Graph;
use sim::{Dice, Fault, Link, NodeIndex};

use crate::common::{Town, at, ms};

fn trace(seed: u64) -> (u64, String) {
    let graph = Graph::random_connected(8, 0.2, &mut Dice::new(0, 0));
    let link = Link { duplicate: 0.02, ..Link::lossy(0.1) };
    let mut town = Town::new(seed, &graph, &[0, 1], link);
    town.world.keep_trace();
    let riders: Vec<_> = town.riders.keys().copied().collect();
    for node in riders {
        town.up(node, at(500), ms(50), 40);
        town.down(node, at(520), ms(50), 40);
    }
    town.world.at(at(1000), Fault::Restart(NodeIndex(3), ms(100)));
    town.world.at(at(1500), Fault::Shutdown(NodeIndex(1)));
    town.world.at(at(2000), Fault::RadioDown(NodeIndex(4)));
    town.world.run_until(at(3000)).unwrap();
    (town.world.trace_hash(), town.world.trace_text().to_owned())
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (first, second) = (trace(1), trace(1));
    assert!(first.1.lines().count() > 1000, "a run with something in it");
    assert!(first == second, "two runs from one seed differ");
}

#[test]
fn different_seeds_give_different_runs() {
    let hashes: BTreeSet<u64> = (0..10).map(|seed| trace(seed).0).collect();
    assert_eq!(hashes.len(), 10);
}
