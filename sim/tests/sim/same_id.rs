//! Two vehicles with one id that do not hear each other: only their RSU can tell. And vehicles that
//! do what looks like it.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use sim::topology::Graph;
use sim::{Fault, Flow, Guest, Link, NodeIndex, Place, Role, Target, World};

use crate::common::*;

const RSU: NodeIndex = NodeIndex(0);
const VEHICLE: NodeIndex = NodeIndex(1);
const RELAY: NodeIndex = NodeIndex(2);
const OTHER_RELAY: NodeIndex = NodeIndex(3);

/// When the RSU said that two vehicles have one id.
fn told(town: &Town) -> Vec<Timestamp> {
    let events = town.world.events().iter();
    let of_rsu = events
        .filter(|(_, node, event)| *node == RSU && matches!(event, Event::ObuIdConflict { .. }));
    of_rsu.map(|(when, ..)| *when).collect()
}

/// A relay hears the RSU, the vehicle hears either of them, and so does another with the id of the
/// vehicle. Nobody sends anything.
fn twins(world: World, whom: [NodeIndex; 2], later: Timestamp) -> Town {
    let graph = Graph::new(3, [(RSU.0, RELAY.0), (whom[0].0, VEHICLE.0)]);
    let mut town = Town::in_world(world, &graph, &[0], Link::CLEAN);
    let make = |start: &Start, now| -> Box<dyn Guest> {
        let start = Start { id: radio(VEHICLE.0).into(), ..*start };
        Box::new(Obu::new(obu_lib::Settings::default().config(&start), now))
    };
    let mac = Mac([2, 0, 0, 0, 0xee, 1]);
    let twin = town.world.add_stopped(Role::Obu, mac, Box::new(make));
    town.world.link(whom[1], twin, Link::CLEAN);
    town.world.at(later, Fault::Start(twin));
    town.world.run_until(later + Duration::from_secs(10)).unwrap();
    town
}

#[test]
fn the_rsu_tells_of_two_vehicles_with_one_id_that_say_nothing_and_hear_each_other_not() {
    for seed in 0..8 {
        let pairs = [([RSU, RSU], 5000), ([RSU, RELAY], 5000), ([RELAY, RELAY], 10_000)];
        for (whom, within) in pairs {
            for later in [at(0), at(40), at(3000)] {
                let by_clock = twins(World::new(seed), whom, later);
                // Started in the same quarter of a second they count alike.
                let alike = twins(Town::world_of_first_starts(seed), whom, later);
                for town in [by_clock, alike] {
                    let first = told(&town).first().map(|at| at.since(later));
                    let what = format!("{seed}, {whom:?}, {later:?}: {first:?}");
                    assert!(first.is_some_and(|after| after < ms(within)), "{what}");
                }
            }
        }
    }
}

#[test]
fn one_vehicle_that_goes_to_and_fro_and_starts_again_is_one() {
    for seed in 0..8 {
        // It hears two relays in turn, and each turn is shorter than it takes to trust one.
        let graph = Graph::new(4, [(0, 2), (0, 3), (1, 2), (1, 3)]);
        let mut town = Town::new(seed, &graph, &[0], Link::CLEAN);
        let mut changes = 0;
        for turn in 4..80 {
            let now = at(500 * turn);
            let (from, to) =
                if turn % 2 == 0 { (RELAY, OTHER_RELAY) } else { (OTHER_RELAY, RELAY) };
            town.world.at(now, Fault::Cut(VEHICLE, from));
            town.world.at(now, Fault::Heal(VEHICLE, to));
            if turn % 20 == 0 {
                town.world.at(now, Fault::Restart(VEHICLE, ms(100)));
            }
            // A host comes just when nobody can be told.
            let guest = Mac([2, 0, 0, 0, 0xd0, turn as u8]);
            let guest = town.world.add_client(guest, Place::Tap(VEHICLE));
            let to = Target::Client(town.host);
            town.world.add_flow(Flow::steady(guest, to, now + ms(50), ms(100), 1));
            changes += 1;
        }
        town.up(VEHICLE, at(3000), ms(10), 3700);
        town.world.run_until(at(42_000)).unwrap();
        let upstreams = town.changes(at(2000)).len();
        assert!(upstreams > changes / 2, "{seed}: {upstreams} changes of upstream");
        assert_eq!(told(&town), [], "{seed}");
    }
}
