//! Frames longer than the radios carry, over hops of different MTU.

use node_lib::Start;
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::{Factory, Flow, Link, Place, Role, Target, World};

use crate::common::{HOST_MAC, at, ms, radio, rider_mac};

/// A frame of 1500 with a VLAN tag.
const LONGEST: usize = 14 + 4 + 1500;
/// What a radio of 1500 carries in one frame, on ways of up to eight hops.
const FITS: usize = 14 + 4 + 1448;

fn rsu(radio_mtu: usize) -> Factory {
    Box::new(move |start, now| {
        let start = Start { radio_mtu, ..*start };
        Box::new(Rsu::new(rsu_lib::Settings::default().config(&start), now))
    })
}

fn obu(radio_mtu: usize) -> Factory {
    Box::new(move |start, now| {
        let start = Start { radio_mtu, ..*start };
        Box::new(Obu::new(obu_lib::Settings::default().config(&start), now))
    })
}

/// Frames that came: up, down, and broadcasts of the host. Of an RSU and two OBUs in a line, with
/// radios of these MTUs. Each link loses this part of what is sent.
fn delivered(seed: u64, mtus: [usize; 3], loss: f64, size: usize) -> ([usize; 3], World) {
    let mut world = World::new(seed);
    let lan = world.add_lan();
    let host = world.add_client(HOST_MAC, Place::Lan(lan));
    let road = world.add_node(Role::Rsu, radio(0), rsu(mtus[0]));
    world.plug(road, lan);
    let relay = world.add_node(Role::Obu, radio(1), obu(mtus[1]));
    let car = world.add_node(Role::Obu, radio(2), obu(mtus[2]));
    let rider = world.add_client(rider_mac(2), Place::Tap(car));
    let link = Link::lossy(loss);
    world.link(road, relay, link);
    world.link(relay, car, link);
    let mut flow = |from, to, start| {
        let flow = Flow::steady(from, to, at(start), ms(5), COUNT as u32);
        world.add_flow(Flow { size, ..flow })
    };
    let flows = [
        flow(rider, Target::Client(host), 2000),
        flow(host, Target::Client(rider), 2100),
        flow(host, Target::Everyone, 2200),
    ];
    world.run_until(at(5000)).unwrap_or_else(|violation| panic!("{violation}"));
    let hears = [host, rider, rider];
    let came = [0, 1, 2].map(|n| world.flow(flows[n]).unwrap().received(hears[n]));
    (came, world)
}

const COUNT: usize = 200;

#[test]
fn a_radio_in_the_middle_that_carries_less_is_no_obstacle() {
    for mtus in [[1500; 3], [1500, 800, 1500], [1500, 300, 1500], [300, 1500, 700]] {
        for seed in 0..5 {
            let (came, world) = delivered(seed, mtus, 0.0, LONGEST);
            assert_eq!(came, [COUNT; 3], "{mtus:?}, seed {seed}");
            for (n, node) in world.nodes(Role::Obu).enumerate() {
                let counters = world.node(node).unwrap().counters();
                assert!(counters.reassembled > 0, "{mtus:?}, OBU {n}: {counters:?}");
                assert_eq!(counters.drop_oversize, 0);
            }
        }
    }
}

/// The world ends at the first frame that is handed over twice, or that nobody sent.
#[test]
fn what_is_lost_costs_a_frame_and_no_frame_comes_twice() {
    for seed in 0..20 {
        let (came, _) = delivered(seed, [1500, 900, 1500], 0.05, LONGEST);
        for came in came {
            // Four frames on the air for each.
            assert!((COUNT / 2..=COUNT).contains(&came), "seed {seed}: {came} of {COUNT}");
        }
    }
}

#[test]
fn frames_that_fit_are_never_cut_up() {
    let (came, world) = delivered(1, [1500; 3], 0.0, FITS);
    assert_eq!(came, [COUNT; 3]);
    for role in [Role::Rsu, Role::Obu] {
        for node in world.nodes(role) {
            assert_eq!(world.node(node).unwrap().counters().fragments_tx, 0);
        }
    }
}
