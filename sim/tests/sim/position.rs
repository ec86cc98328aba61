//! Nodes that tell their neighbours where they are, and nodes that do not.

use node_lib::control::positions::Located;
use node_lib::control::snapshot::{KnownPosition, Snapshot};
use node_lib::messages::control::position::Coordinates;
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::topology::Graph;
use sim::{Factory, Fault, Link, NodeIndex, Role, World};

use crate::common::{at, radio};

const RSU: NodeIndex = NodeIndex(0);
const RELAY: NodeIndex = NodeIndex(1);
const BEHIND: NodeIndex = NodeIndex(2);

/// An RSU, a relay in its range, and a vehicle behind that.
fn row(is_shared: bool) -> World {
    let mut world = World::new(7);
    let lan = world.add_lan();
    for n in 0..3 {
        let make: Factory = if n == 0 {
            Box::new(move |start, now| {
                let settings =
                    rsu_lib::Settings { share_position: is_shared, ..Default::default() };
                Box::new(Rsu::new(settings.config(start), now))
            })
        } else {
            Box::new(move |start, now| {
                let settings =
                    obu_lib::Settings { share_position: is_shared, ..Default::default() };
                Box::new(Obu::new(settings.config(start), now))
            })
        };
        let role = if n == 0 { Role::Rsu } else { Role::Obu };
        let node = world.add_node(role, radio(n), make);
        if n == 0 {
            world.plug(node, lan);
        }
    }
    world.link_all(&Graph::chain(3), Link::CLEAN);
    world
}

fn located(latitude: f64, is_fixed: bool) -> Option<Located> {
    Some(Located { at: Coordinates::new(latitude, 11.5, Some(2.5)).unwrap(), is_fixed })
}

/// Each knows where it is: the RSU stays, the others hear it from a receiver once a second.
fn drive(world: &mut World, seconds: std::ops::Range<u64>) {
    for second in seconds {
        world.run_until(at(second * 1000)).unwrap();
        world.locate(RSU, located(48.0, true));
        world.locate(RELAY, located(48.1, false));
        world.locate(BEHIND, located(48.2, false));
        world.run_until(at(second * 1000 + 999)).unwrap();
    }
}

fn look(world: &World, node: NodeIndex) -> Snapshot {
    world.node(node).unwrap().snapshot(world.clock(node).unwrap())
}

/// Neighbours with where they say that they are.
fn neighbours(world: &World, node: NodeIndex) -> Vec<(usize, Option<KnownPosition>)> {
    let seen = look(world, node).neighbours;
    seen.into_iter().map(|near| (usize::from(near.mac.0[5]), near.position)).collect()
}

fn latitudes(of: Vec<(usize, Option<KnownPosition>)>) -> Vec<(usize, Option<f64>)> {
    of.into_iter().map(|(node, at)| (node, at.map(|at| at.latitude_deg))).collect()
}

fn last(node: NodeIndex) -> usize {
    usize::from(radio(node.0).0[5])
}

#[test]
fn neighbours_know_where_each_other_are_and_no_farther() {
    let mut world = row(true);
    drive(&mut world, 0..6);
    let (rsu, relay, behind) = (last(RSU), last(RELAY), last(BEHIND));
    assert_eq!(latitudes(neighbours(&world, RSU)), [(relay, Some(48.1))]);
    assert_eq!(latitudes(neighbours(&world, RELAY)), [(rsu, Some(48.0)), (behind, Some(48.2))]);
    assert_eq!(latitudes(neighbours(&world, BEHIND)), [(relay, Some(48.1))]);
    let near = neighbours(&world, BEHIND)[0].1.clone().unwrap();
    assert_eq!((near.longitude_deg, near.accuracy_m), (11.5, Some(2.5)));
    assert!(near.age_ms.is_some_and(|age| age < 2500), "{near:?}");
    // An RSU is shown where it is if it is heard itself, and an OBU to an RSU likewise.
    let rsu_at = |node| look(&world, node).routes[0].position.clone().map(|at| at.latitude_deg);
    assert_eq!((rsu_at(RELAY), rsu_at(BEHIND)), (Some(48.0), None));
    let obus = look(&world, RSU).obus;
    let obus: Vec<_> = obus.into_iter().map(|obu| obu.position.map(|at| at.latitude_deg)).collect();
    assert_eq!(obus, [Some(48.1), None]);
    let own = look(&world, RSU).position.unwrap();
    assert_eq!((own.latitude_deg, own.age_ms), (48.0, None));
}

#[test]
fn a_position_ages_here_and_there_and_is_then_unknown() {
    let mut world = row(true);
    drive(&mut world, 0..6);
    // The receiver of the relay is gone: it says on what it knew, as old as it is.
    world.run_until(at(8_000)).unwrap();
    let age = neighbours(&world, BEHIND)[0].1.clone().and_then(|near| near.age_ms);
    // Since the fix, whatever was said when; the radio takes a millisecond.
    assert!(age.is_some_and(|age| (2_990..3_000).contains(&age)), "{age:?}");
    world.run_until(at(10_010)).unwrap();
    assert_eq!(latitudes(neighbours(&world, BEHIND)), [(last(RELAY), None)]);
    assert_eq!(look(&world, RELAY).position, None);
    assert_eq!(look(&world, RELAY).routes[0].position.clone().unwrap().latitude_deg, 48.0);
    // The RSU is cut off: what it said is forgotten 5 s later, and not before.
    world.apply(Fault::Isolate(RSU));
    world.run_until(at(14_000)).unwrap();
    let routes = look(&world, RELAY).routes;
    assert!(routes.first().is_none_or(|route| route.position.is_some()));
    world.run_until(at(15_100)).unwrap();
    let seen = neighbours(&world, RELAY);
    assert!(seen.iter().all(|(_, place)| place.is_none()), "{seen:?}");
}

#[test]
fn one_that_loses_its_fix_says_no_more() {
    let mut world = row(true);
    drive(&mut world, 0..6);
    let before = neighbours(&world, BEHIND)[0].1.clone().unwrap().age_ms.unwrap();
    world.locate(RELAY, None);
    assert_eq!(look(&world, RELAY).position, None);
    world.run_until(at(8_000)).unwrap();
    let after = neighbours(&world, BEHIND)[0].1.clone().unwrap().age_ms.unwrap();
    assert_eq!(after, before + 2_001, "nothing newer came");
}

#[test]
fn without_being_told_to_share_no_byte_on_the_air_is_another() {
    let run = |is_shared, is_located| {
        let mut world = row(is_shared);
        world.keep_trace();
        if is_located {
            drive(&mut world, 0..4);
        }
        world.run_until(at(4_000)).unwrap();
        world.trace_text().to_owned()
    };
    let plain = run(false, false);
    assert!(plain.lines().count() > 100);
    assert_eq!(run(false, true), plain, "it knows where it is");
    assert_eq!(run(true, false), plain, "it may tell, and does not know");
    let shared = run(true, true);
    // With the header of Ethernet 62 bytes, or 74.
    let heartbeats = |text: &str, len: &str| {
        let is_one = |line: &&str| line.contains(" sends heartbeat to ") && line.contains(len);
        text.lines().filter(is_one).count()
    };
    assert_eq!(heartbeats(&plain, ", 74 B "), 0);
    let said = heartbeats(&shared, ", 74 B ");
    assert!((6..=12).contains(&said), "three nodes, each once a second, for four: {said}");
    assert!(heartbeats(&shared, ", 62 B ") > 50, "the others are as long as ever");
}
