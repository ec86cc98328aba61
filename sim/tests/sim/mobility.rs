//! Nodes that have places: who hears whom follows from where they are, and vehicles come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use sim::radio::{Access, RadioModel};
use sim::{
    Counting, Fault, Flow, Link, Location, NodeIndex, Place, Role, Stats, Target, Track, World,
};

use crate::common::{HOST_MAC, at, ms, obu, radio, rider_mac, rsu};

/// An RSU at the origin with a host, then OBUs, one rider each.
struct Road {
    world: World,
    host: sim::ClientIndex,
    riders: Vec<sim::ClientIndex>,
}

impl Road {
    fn new(seed: u64, channel: RadioModel) -> Self {
        let mut world = World::new(seed);
        world.set_radio(channel);
        // Starts that do not wait.
        world.count_starts(Counting::StateFile);
        let node = world.add_node(Role::Rsu, radio(0), rsu(0));
        world.place(node, Location::new(0.0, 0.0));
        let host = world.add_client(HOST_MAC, Place::Tap(node));
        Self { world, host, riders: Vec::new() }
    }

    fn add_obu(&mut self) -> NodeIndex {
        let n = self.riders.len() + 1;
        let node = self.world.add_stopped(Role::Obu, radio(n), obu(n));
        self.riders.push(self.world.add_client(rider_mac(n), Place::Tap(node)));
        node
    }

    fn parked(&mut self, x_m: f64) -> NodeIndex {
        let node = self.add_obu();
        self.world.place(node, Location::new(x_m, 0.0));
        self.world.apply(Fault::Start(node));
        node
    }

    fn passing(&mut self, from: Location, to: Location, speed_mps: f64) -> NodeIndex {
        let node = self.add_obu();
        let track = Track::straight(at(1000), from, to, speed_mps).unwrap();
        self.world.follow(node, track);
        node
    }
}

#[test]
fn the_oracle_counts_hops_by_distance_and_faults_apply_on_top() {
    let mut road = Road::new(1, RadioModel::disk(100.0, 0.0));
    let [a, b, c] = [90.0, 180.0, 281.0].map(|x_m| road.parked(x_m));
    let world = &mut road.world;
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), Some(2), None]);
    world.place(c, Location::new(280.0, 0.0));
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!(world.hearers(b), [a, c]);
    world.apply(Fault::CutOneWay(c, b));
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), Some(2), None]);
    world.apply(Fault::Heal(c, b));
    world.apply(Fault::Isolate(a));
    assert_eq!(world.hops_to_rsu(), [Some(0), None, None, None]);
    world.apply(Fault::Rejoin(a));
    world.apply(Fault::RadioDown(b));
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), None, None]);
    // A link makes no difference where there is a radio.
    world.link(NodeIndex(0), c, Link::CLEAN);
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), None, None]);
}

#[test]
fn links_that_lose_more_than_half_are_no_links_to_the_oracle() {
    for (loss, is_linked) in [(0.5, true), (0.51, false)] {
        let mut road = Road::new(1, RadioModel::disk(100.0, loss));
        let node = road.parked(50.0);
        assert_eq!(road.world.delivery(NodeIndex(0), node), 1.0 - loss);
        assert_eq!(road.world.graph().is_linked(0, node.0), is_linked);
        let both = [(NodeIndex(0), node, 1.0 - loss), (node, NodeIndex(0), 1.0 - loss)];
        let deliveries = road.world.deliveries();
        let heard: Vec<_> =
            deliveries.iter().map(|link| (link.from, link.to, link.share)).collect();
        assert_eq!(heard, both);
        let mean_dbm = RadioModel::disk(100.0, loss).mean_dbm(50.0);
        for link in deliveries {
            let strength = link.strength.unwrap();
            assert!((strength.mean_dbm - mean_dbm).abs() < 0.01, "{strength:?}");
            assert_eq!(strength.deviation_db, 0.0);
        }
    }
}

#[test]
fn frames_reach_who_is_in_range_over_as_many_hops_as_it_takes() {
    let mut road = Road::new(3, RadioModel::disk(100.0, 0.0));
    let nodes = [90.0, 180.0, 270.0].map(|x_m| road.parked(x_m));
    let (to, rider) = (Target::Client(road.host), road.riders[2]);
    let up = road.world.add_flow(Flow::steady(rider, to, at(2000), ms(10), 100));
    // Cut for a while, as over a link.
    road.world.at(at(4000), Fault::Cut(nodes[1], nodes[2]));
    let cut = road.world.add_flow(Flow::steady(rider, to, at(4000), ms(10), 100));
    road.world.run_until(at(6000)).unwrap();
    assert_eq!(road.world.flow(up).unwrap().received(road.host), 100);
    assert_eq!(road.world.flow(cut).unwrap().received(road.host), 0);
    // Three hops for each frame.
    assert!(road.world.stats().data().frames >= 300);
}

#[test]
fn a_vehicle_exists_from_its_first_waypoint_to_its_last() {
    let mut road = Road::new(4, RadioModel::disk(100.0, 0.0));
    let ends = [Location::new(-300.0, 10.0), Location::new(300.0, 10.0)];
    let car = road.passing(ends[0], ends[1], 20.0);
    let flow = Flow::steady(road.riders[0], Target::Client(road.host), at(0), ms(10), 4000);
    let flow = road.world.add_flow(flow);

    road.world.run_until(at(999)).unwrap();
    assert!(road.world.node(car).is_none());
    assert_eq!(road.world.stats_of(car), Stats::default());
    road.world.run_until(at(1000)).unwrap();
    assert!(road.world.node(car).is_some());
    assert_eq!(road.world.position(car), Some(ends[0]));
    road.world.run_until(at(31_000)).unwrap();
    assert!(road.world.node(car).is_none());
    assert_eq!(road.world.position(car), None);
    let said = road.world.stats_of(car);
    road.world.run_until(at(40_000)).unwrap();
    assert_eq!(road.world.stats_of(car), said, "silent and gone");

    // Within 100 m of the RSU from 11.025 s to 20.975 s; seen every 100 ms, routed soon after.
    let log = road.world.flow(flow).unwrap();
    let arrived: Vec<_> = (0..4000).filter_map(|n| log.received_at(road.host, n)).collect();
    assert!(arrived[0] > at(11_000) && arrived[0] < at(11_500), "{}", arrived[0]);
    let last = arrived[arrived.len() - 1];
    assert!(last > at(20_900) && last < at(21_200), "{last}");
    assert!(arrived.len() > 900);
}

#[test]
fn loss_of_a_disk_comes_out_as_asked_and_is_each_receivers_own() {
    let mut road = Road::new(5, RadioModel::disk(100.0, 0.2));
    let [a, b] = [50.0, 60.0].map(|x_m| road.parked(x_m));
    road.world.keep_trace();
    road.world.run_until(at(60_000)).unwrap();
    let text = road.world.trace_text();
    // Broadcasts of the RSU, by checksum, and those each node missed.
    let after = |mark: &'static str| text.lines().filter_map(move |line| line.split_once(mark));
    let sent: BTreeSet<&str> = after(" n0 sends ")
        .filter(|(_, what)| what.contains("to ff:ff"))
        .filter_map(|(_, what)| what.split(' ').next_back())
        .collect();
    let lost_by = |node: NodeIndex| -> BTreeSet<&str> {
        let ours = after(" misses ").filter(|(who, _)| who.ends_with(&node.to_string()));
        let crc = ours.filter_map(|(_, what)| what.strip_suffix(" from n0"));
        crc.filter(|crc| sent.contains(crc)).collect()
    };
    let [a, b] = [a, b].map(lost_by);
    let share = |lost: usize| lost as f64 / sent.len() as f64;
    assert!(sent.len() > 500);
    assert!((0.15..0.25).contains(&share(a.len())), "{}", share(a.len()));
    assert!((0.15..0.25).contains(&share(b.len())), "{}", share(b.len()));
    let both = share(a.intersection(&b).count());
    assert!((0.02..0.07).contains(&both), "{both}");
}

#[test]
fn the_same_seed_repeats_and_another_does_not() {
    let run = |seed| {
        let mut road = Road::new(seed, RadioModel::disk(120.0, 0.1));
        for n in 0..12 {
            let y_m = f64::from(n) * 10.0;
            road.passing(Location::new(-200.0, y_m), Location::new(200.0, -y_m), 15.0 + y_m / 10.0);
        }
        road.world.run_until(at(20_000)).unwrap();
        road.world.trace_hash()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Vehicles crossing a square at one density: what happens per vehicle must not depend on how many
/// there are elsewhere.
#[test]
fn work_per_vehicle_stays_the_same_from_50_to_500_vehicles() {
    let work = |vehicles: u32, side_m: f64| {
        let mut channel = RadioModel::disk(120.0, 0.0);
        channel.access = Access::Instant { delay: ms(1), jitter: Duration::from_millis(1) };
        let mut road = Road::new(6, channel);
        let columns = f64::from(vehicles).sqrt().ceil();
        for n in 0..vehicles {
            let (row, column) = (f64::from(n) / columns, f64::from(n) % columns);
            let place = |x: f64, y: f64| Location::new((x - 0.5) * side_m, (y - 0.5) * side_m);
            let (x, y) = (column / columns, row.floor() / columns);
            road.passing(place(x, y), place(x + 0.2, y), 10.0);
        }
        road.world.run_until(at(5000)).unwrap();
        road.world.event_count() as f64 / f64::from(vehicles)
    };
    let [few, many] = [work(50, 500.0), work(500, 500.0 * 10_f64.sqrt())];
    assert!((0.6..1.7).contains(&(many / few)), "{few:.0} and {many:.0}");
}
