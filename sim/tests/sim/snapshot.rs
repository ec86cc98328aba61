//! What nodes tell of themselves, in towns where it is known how things are.

use node_lib::NodeId;
use node_lib::control::snapshot::{
    ClientPort, NodeRole, Obstacle, ObuStanding, RouteStanding, Snapshot,
};
use sim::topology::Graph;
use sim::{Fault, Link, NodeIndex};

use crate::common::{HOST_MAC, Town, at, ms, radio, rider_mac};

const RSU: NodeIndex = NodeIndex(0);
const RELAY: NodeIndex = NodeIndex(1);
const BEHIND: NodeIndex = NodeIndex(2);

fn id(node: NodeIndex) -> NodeId {
    radio(node.0).into()
}

/// The RSU, a relay in its range, and a vehicle behind that.
fn row() -> Town {
    let graph = Graph::chain(3);
    let mut town = Town::new(1, &graph, &[0], Link::CLEAN);
    for node in [RELAY, BEHIND] {
        town.up(node, at(500), ms(20), 200);
        town.down(node, at(510), ms(20), 200);
    }
    town.world.run_until(at(3000)).unwrap();
    town
}

fn look(town: &Town, node: NodeIndex) -> Snapshot {
    town.world.node(node).expect("it runs").snapshot(town.world.now())
}

#[test]
fn a_vehicle_tells_where_it_is_attached_and_how_well() {
    let town = row();
    let seen = look(&town, BEHIND);
    assert_eq!((seen.id, seen.role), (id(BEHIND), NodeRole::Obu));
    let attached = seen.attached.expect("attached");
    assert_eq!((attached.rsu, attached.upstream, attached.hops), (id(RSU), id(RELAY), 2));
    assert!(attached.is_acknowledged && !attached.is_unanswered && !attached.is_doubted);
    assert!(attached.since_ms > 1000 && attached.heard_ms < 350, "{attached:?}");
    assert_eq!(seen.neighbours.len(), 1);
    let relay = &seen.neighbours[0];
    assert_eq!((relay.id, relay.mac), (id(RELAY), radio(1)));
    assert!(relay.is_upstream && !relay.is_child);
    assert_eq!((relay.loss_rx_ratio, relay.link_cost), (Some(0.0), Some(1.063)));
    let round_trip = relay.round_trip_us.expect("it was asked");
    assert!((1..100_000).contains(&round_trip), "{round_trip} µs");
    assert_eq!(relay.signal_dbm, None, "this radio does not tell");
    let air = seen.air.expect("a radio");
    assert!(air.is_up && air.is_full == Some(false));
}

#[test]
fn a_vehicle_tells_through_whom_it_could_send_and_why_not() {
    let mut town = row();
    let seen = look(&town, RELAY);
    let [route] = &seen.routes[..] else { panic!("one RSU: {:?}", seen.routes) };
    assert_eq!((route.rsu, route.standing, route.hops), (id(RSU), RouteStanding::InUse, Some(1)));
    let [rsu, behind] = &route.candidates[..] else { panic!("{:?}", route.candidates) };
    assert!(rsu.is_used && rsu.obstacles.is_empty() && rsu.margin.is_none());
    assert_eq!((rsu.id, rsu.via, rsu.cost), (id(RSU), None, 1.063));
    assert_eq!(behind.id, id(BEHIND));
    assert!(behind.obstacles.contains(&Obstacle::ThroughUs), "{behind:?}");
    assert!(behind.margin.expect("the RSU is in use") < 0.0, "it is dearer");
    let sum = behind.advertised_cost + behind.link_cost + behind.relay_cost;
    assert!((sum - behind.cost).abs() < 0.01, "{behind:?}");
    // A link that works one way only: heard, and not used.
    let now = town.world.now();
    town.world.at(now, Fault::CutOneWay(RELAY, RSU));
    town.world.run_until(now + ms(2000)).unwrap();
    let seen = look(&town, RELAY);
    let route = &seen.routes[0];
    assert_eq!((route.standing, route.upstream), (RouteStanding::NoUpstream, None));
    let rsu = route.candidates.iter().find(|c| c.id == id(RSU)).expect("it is heard");
    assert_eq!(rsu.obstacles, [Obstacle::OneWay]);
    assert_eq!(seen.attached, None);
    assert!(seen.neighbours.iter().any(|n| n.id == id(RSU) && n.proven_ms.is_none()));
}

#[test]
fn a_relay_and_its_rsu_tell_the_same_tree() {
    let town = row();
    let relay = look(&town, RELAY);
    let [child] = &relay.children[..] else { panic!("{:?}", relay.children) };
    assert_eq!((child.id, child.mac, &child.towards[..]), (id(BEHIND), radio(2), &[id(RSU)][..]));
    assert!(relay.neighbours.iter().any(|n| n.id == id(BEHIND) && n.is_child));
    let rsu = look(&town, RSU);
    assert_eq!(rsu.role, NodeRole::Rsu);
    let way = |of| {
        let obu = rsu.obus.iter().find(|obu| obu.id == id(of)).expect("it is known");
        assert!(obu.standing == ObuStanding::Attached && obu.is_complete, "{obu:?}");
        (obu.upstream, obu.mac, obu.way.clone().expect("a way"))
    };
    assert_eq!(way(RELAY), (id(RSU), Some(radio(1)), vec![]));
    assert_eq!(way(BEHIND), (id(RELAY), None, vec![id(RELAY)]));
    let near: Vec<_> = rsu.neighbours.iter().map(|neighbour| neighbour.id).collect();
    assert_eq!(near, [id(RELAY)]);
}

#[test]
fn clients_are_told_where_they_are_and_can_be_forgotten() {
    let town = row();
    let rsu = look(&town, RSU);
    let find = |mac| rsu.clients.iter().find(|client| client.mac == mac).expect("it spoke");
    assert_eq!((find(HOST_MAC).port, find(HOST_MAC).obu), (ClientPort::Tap, None));
    let rider = find(rider_mac(BEHIND.0));
    assert_eq!((rider.port, rider.obu), (ClientPort::Obu, Some(id(BEHIND))));
    assert!(rider.heard_ms.is_some() && !rider.is_held);
    let vehicle = look(&town, BEHIND);
    let own: Vec<_> = vehicle.clients.iter().map(|client| client.mac).collect();
    assert!(own.contains(&rider_mac(BEHIND.0)), "{own:?}");
    assert!(vehicle.clients.iter().all(|client| client.port == ClientPort::Tap));
}

#[test]
fn rsus_that_are_heard_and_not_used_say_why() {
    let graph = Graph::chain(3);
    // Two RSUs, and a vehicle between them.
    let mut town = Town::new(3, &graph, &[0, 2], Link::CLEAN);
    town.up(RELAY, at(500), ms(20), 200);
    town.world.run_until(at(3000)).unwrap();
    let seen = look(&town, RELAY);
    let used = seen.attached.expect("attached").rsu;
    let standings: Vec<_> = seen.routes.iter().map(|r| (r.rsu == used, r.standing)).collect();
    assert!(standings.contains(&(true, RouteStanding::InUse)), "{standings:?}");
    assert!(standings.contains(&(false, RouteStanding::Standby)), "{standings:?}");
    assert_eq!(seen.standby.map(|standby| standby.is_acknowledged), Some(true));
}

#[test]
fn a_node_that_has_just_started_says_that_it_listens() {
    let graph = Graph::chain(3);
    let mut town = Town::new(4, &graph, &[0], Link::CLEAN);
    town.world.run_until(at(2000)).unwrap();
    town.world.at(at(2000), Fault::Restart(BEHIND, ms(30)));
    town.world.run_until(at(2250)).unwrap();
    // Its clock begins with each start.
    let seen = town.world.node(BEHIND).expect("it runs").snapshot(at(220));
    let [route] = &seen.routes[..] else { panic!("{:?}", seen.routes) };
    assert_eq!(route.standing, RouteStanding::Quiet, "{route:?}");
    assert!(route.quiet_for_ms.is_some_and(|left| (1..350).contains(&left)), "{route:?}");
    assert!(route.candidates[0].obstacles.contains(&Obstacle::Quiet));
}
