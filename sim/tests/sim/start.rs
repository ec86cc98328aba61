//! Simulated nodes start as the daemons do: they wait for a boot count made of the time of day, and
//! their clocks count from their own start.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::start::boot;
use node_lib::{Boot, Timestamp};
use sim::topology::Graph;
use sim::{Counting, DAY_OFF_MAX, Fault, Link, NodeIndex, Role, World};

use crate::common::{Town, at, ms, obu, radio, rsu};

const RSU: NodeIndex = NodeIndex(0);
const OBU: NodeIndex = NodeIndex(1);

fn pair(seed: u64) -> Town {
    Town::new(seed, &Graph::chain(2), &[0], Link::CLEAN)
}

/// When each node sent its first frame.
fn first_frames(world: &World) -> BTreeMap<NodeIndex, Timestamp> {
    let mut first = BTreeMap::new();
    for frame in world.air() {
        first.entry(frame.node).or_insert(frame.time);
    }
    first
}

#[test]
fn nobody_speaks_before_the_unit_of_its_boot_count_has_begun() {
    let mut waits = Vec::new();
    for seed in 0..50 {
        let mut town = pair(seed);
        let world = &mut town.world;
        world.keep_air();
        world.run_until(at(3000)).unwrap();
        for (node, time) in first_frames(world) {
            // Its own clock is off by up to a second.
            let count = world.boot(node).unwrap();
            let begins = boot::EPOCH + boot::UNIT * count.0;
            let day = world.time_of_day().saturating_sub(at(3000).since(time));
            assert!(day + DAY_OFF_MAX >= begins, "seed {seed}, {node}: {day:?} for {count:?}");
            waits.push(time.since(Timestamp::ZERO));
        }
    }
    // Evenly up to a unit, and then up to what a node lets pass before its first word.
    assert!(waits.iter().min() < Some(&ms(20)) && waits.iter().max() > Some(&ms(230)));
}

#[test]
fn no_two_nodes_or_worlds_have_boot_counts_in_step() {
    let boots: Vec<[u32; 2]> = (0..20)
        .map(|seed| {
            let mut town = pair(seed);
            town.world.run_until(at(1000)).unwrap();
            [RSU, OBU].map(|node| town.world.boot(node).unwrap().0)
        })
        .collect();
    let low: std::collections::BTreeSet<u32> = boots.iter().map(|[rsu, _]| rsu & 0xff).collect();
    assert!(low.len() > 15, "{boots:?}");
    assert!(boots.iter().all(|[rsu, obu]| rsu.abs_diff(*obu) <= 9), "{boots:?}");
    assert!(boots.iter().any(|[rsu, obu]| rsu != obu), "{boots:?}");
}

#[test]
fn a_boot_count_grows_by_the_quarters_of_a_second_since_the_last_start() {
    let mut world = World::new(5);
    let node = world.add_node(Role::Obu, radio(1), obu(1));
    world.run_until(at(400)).unwrap();
    let first = world.boot(node).unwrap();
    world.at(at(45_000), Fault::Restart(node, ms(50)));
    world.run_until(at(46_000)).unwrap();
    let grown = world.boot(node).unwrap().0 - first.0;
    assert!((179..=181).contains(&grown), "{grown}");
}

#[test]
fn a_start_with_a_state_file_does_not_wait_and_counts_on() {
    let mut world = World::new(5);
    world.count_starts(Counting::StateFile);
    let node = world.add_node(Role::Obu, radio(1), obu(1));
    let first = world.boot(node).unwrap();
    // Three starts within one unit.
    for more in 1..=3 {
        world.apply(Fault::Restart(node, Duration::ZERO));
        world.run_for(ms(1)).unwrap();
        assert!(world.node(node).is_some());
        assert_eq!(world.boot(node), Some(Boot(first.0 + more)));
    }
    // Its clock was set back to 1970.
    world.set_time_of_day(Duration::ZERO);
    world.apply(Fault::Restart(node, Duration::ZERO));
    world.run_for(ms(1)).unwrap();
    assert_eq!(world.boot(node), Some(Boot(first.0 + 4)));
}

#[test]
fn a_start_that_is_cut_short_leaves_no_trace_of_itself() {
    let mut world = World::new(5);
    world.set_time_of_day(boot::EPOCH + Duration::from_secs(3600));
    let node = world.add_node(Role::Rsu, radio(0), rsu(0));
    assert!(world.node(node).is_none(), "waits");
    world.apply(Fault::Crash(node));
    world.run_until(at(1000)).unwrap();
    assert!(world.node(node).is_none() && world.boot(node).is_none());
    world.apply(Fault::Start(node));
    world.apply(Fault::Shutdown(node));
    world.run_until(at(2000)).unwrap();
    assert!(world.node(node).is_none() && world.boot(node).is_none());
}

#[test]
fn every_clock_counts_from_the_start_of_its_own_node() {
    let mut town = pair(3);
    town.world.run_until(at(10_000)).unwrap();
    let [a, b] = [RSU, OBU].map(|node| town.world.clock(node).unwrap());
    assert_ne!(a, b);
    assert!(a.max(b) <= at(10_000) && a.min(b) >= at(10_000 - 251), "{a} {b}");
    town.world.apply(Fault::Restart(OBU, ms(1000)));
    town.world.run_until(at(12_000)).unwrap();
    let clock = town.world.clock(OBU).unwrap();
    assert!((at(749)..=at(1001)).contains(&clock), "{clock}");
}
