//! A drive past five RSUs, 300 m apart, over a radio as measured in a suburb: what a hand-over
//! costs the clients of a moving vehicle, and which thresholds make it cost least.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::event::{Cause, Event};
use sim::radio::RadioModel;
use sim::{
    ClientIndex, Flow, FlowIndex, FlowLog, Location, NodeIndex, Place, Role, Target, Track, World,
};

use crate::common::{
    HOST_MAC, Wrong, at, broken, ms, obu_with, percentile, radio, rider_mac, rsu, run_all, seeds,
    spread,
};

const RSUS: usize = 5;
const SPACING_M: f64 = 300.0;

/// What a drive cost.
#[derive(Default)]
struct Cost {
    sent: usize,
    arrived: usize,
    /// Neither arrived nor lost by the radio.
    lost_by_us: usize,
    gaps: Vec<Duration>,
    causes: Vec<Cause>,
    rsu_changes: usize,
}

/// A vehicle from before the first RSU to behind the last at this speed, `every` between the frames
/// of each flow.
fn drive(
    seed: u64,
    kmh: f64,
    every: Duration,
    change: impl Fn(&mut obu_lib::Config) + Send + 'static,
) -> Result<Cost, Wrong> {
    let (mut world, host, car) = corridor(seed, change);
    let speed = kmh / 3.6;
    // Before the first frame it has been in range for a while.
    let (from, to) = (Location::new(-60.0, 8.0), Location::new(1260.0, 8.0));
    let track = Track::straight(Timestamp::ZERO, from, to, speed)?;
    let end = track.end();
    world.follow(car, track);
    let (start, last) = (at(1500), end.before(ms(1000)));
    let flows = add_flows(&mut world, host, car, start, last.since(start), every);
    world.run_until(end).map_err(broken)?;
    let mut cost = Cost::default();
    for (flow, receiver) in flows {
        let log = world.flow(flow).unwrap();
        cost.sent += log.sent().len();
        cost.arrived += log.received(receiver);
        cost.lost_by_us += unexplained(log, receiver);
    }
    for (_, node, event) in world.events() {
        if let Event::HandOver(record) = event
            && *node == car
        {
            cost.rsu_changes += usize::from(record.to.is_some_and(|to| to.rsu != record.from.rsu));
            cost.gaps.push(record.gap);
            cost.causes.push(record.cause);
        }
    }
    Ok(cost)
}

fn unexplained(log: &FlowLog, receiver: ClientIndex) -> usize {
    let count = u32::try_from(log.sent().len()).unwrap();
    (0..count)
        .filter(|&number| {
            log.received_at(receiver, number).is_none()
                && log.lost_on_air(number).is_none()
                && log.lost_in_queue(number).is_none()
        })
        .count()
}

/// Five RSUs on one LAN with a host, and a vehicle somewhere.
fn corridor(
    seed: u64,
    change: impl Fn(&mut obu_lib::Config) + Send + 'static,
) -> (World, ClientIndex, NodeIndex) {
    let mut world = World::new(seed);
    world.set_radio(RadioModel::suburb_shadowed());
    let lan = world.add_lan();
    let host = world.add_client(HOST_MAC, Place::Lan(lan));
    for n in 0..RSUS {
        let node = world.add_node(Role::Rsu, radio(n), rsu(n));
        world.plug(node, lan);
        world.place(node, Location::new(SPACING_M * n as f64, 0.0));
    }
    let factory = obu_with(RSUS, move |config| {
        config.start.tap_mac = Some(rider_mac(100));
        change(config);
    });
    let car = world.add_node(Role::Obu, radio(RSUS), factory);
    (world, host, car)
}

/// Up from a client that speaks, down to it and to the OBU's own TAP, which never does.
fn add_flows(
    world: &mut World,
    host: ClientIndex,
    car: NodeIndex,
    start: Timestamp,
    span: Duration,
    every: Duration,
) -> [(FlowIndex, ClientIndex); 3] {
    let speaker = world.add_client(rider_mac(RSUS), Place::Tap(car));
    let silent = world.add_client(rider_mac(100), Place::Tap(car));
    let count = u32::try_from(span.as_micros() / every.as_micros()).unwrap();
    [(speaker, host), (host, speaker), (host, silent)].map(|(from, to)| {
        let flow = Flow::steady(from, Target::Client(to), start, every, count);
        (world.add_flow(flow), to)
    })
}

/// Changes of RSU of a vehicle parked midway between two for so many minutes.
fn parked(
    seed: u64,
    minutes: u64,
    change: impl Fn(&mut obu_lib::Config) + Send + 'static,
) -> Result<u64, Wrong> {
    let (mut world, host, car) = corridor(seed, change);
    world.set_radio(RadioModel::suburb());
    world.place(car, Location::new(SPACING_M * 1.5, 0.0));
    add_flows(&mut world, host, car, at(2000), ms(minutes * 60_000 - 2000), ms(200));
    world.run_until(at(minutes * 60_000)).map_err(broken)?;
    Ok(world.node(car).unwrap().counters().rsu_changes.saturating_sub(1))
}

/// A client of a vehicle at 130 km/h: its frames arrive, and no hand-over loses what the radio did
/// not.
#[test]
fn a_vehicle_that_drives_past_five_rsus_is_handed_over_before_it_is_lost() {
    let name = "a_vehicle_that_drives_past_five_rsus_is_handed_over_before_it_is_lost";
    let run = |seed| drive(seed, 130.0, ms(5), |_| ());
    let costs = run_all(name, seeds(20), run);
    let gaps: Vec<_> = costs.iter().flat_map(|cost| cost.gaps.clone()).collect();
    let sum = |pick: fn(&Cost) -> usize| costs.iter().map(pick).sum::<usize>();
    let [sent, arrived, lost] = [sum(|c| c.sent), sum(|c| c.arrived), sum(|c| c.lost_by_us)];
    println!("corridor at 130 km/h: {arrived} of {sent} frames arrived, {lost} lost by us");
    println!("corridor at 130 km/h, gaps: {}", spread(gaps.clone()));
    assert!(sum(|c| c.rsu_changes) >= costs.len() * (RSUS - 1));
    assert!(arrived * 100 >= sent * 95, "{arrived} of {sent}");
    assert!(lost * 1000 <= sent, "{lost} of {sent}");
    let with_gap = gaps.iter().filter(|gap| !gap.is_zero()).count();
    assert!(with_gap * 6 <= gaps.len(), "{with_gap} of {}", gaps.len());
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    assert!(percentile(&sorted, 0.95) <= ms(300), "{}", spread(gaps));
}

/// How the thresholds were found: a table of those tried, for `docs/performance.md`.
#[test]
#[ignore = "an experiment, not a promise; see docs/performance.md, \"How the thresholds were \
            found\""]
fn signal_thresholds_tried() {
    println!(
        "fading strong% margin ahead for rest | parked | km/h: changes, gap p50/p99/max, by \
         fading/predicted/better/dead, arrived, lost by us"
    );
    for [fading, strong, margin, ahead, trend_for, rest] in tried() {
        let change = move |config: &mut obu_lib::Config| {
            let t = &mut config.settings.thresholds;
            t.fading_millinats = fading;
            t.strong_percent = strong;
            t.signal_margin_cdb = i32::try_from(margin).unwrap();
            (t.signal_ahead, t.trend_for) = (ms(ahead.into()), ms(trend_for.into()));
            t.rest_for = ms(rest.into());
        };
        let run = |seed| parked(seed, 5, change);
        let still = run_all("signal_thresholds_tried", seeds(8), run);
        let mean = still.iter().sum::<u64>() as f64 / still.len() as f64 * 2.0;
        print!("{fading} {strong} {margin} {ahead} {trend_for} {rest} | {mean:.2}");
        for kmh in [50.0, 90.0, 130.0] {
            let run = |seed| drive(seed, kmh, ms(10), change);
            let costs = run_all("signal_thresholds_tried", seeds(30), run);
            let mut gaps: Vec<_> = costs.iter().flat_map(|cost| cost.gaps.clone()).collect();
            gaps.sort_unstable();
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|s| percentile(&gaps, s).as_millis());
            let of = |cause| costs.iter().flat_map(|c| &c.causes).filter(|c| **c == cause).count();
            let [f, p, b, d] =
                [Cause::Fading, Cause::Predicted, Cause::Better, Cause::Dead].map(of);
            let sum = |pick: fn(&Cost) -> usize| costs.iter().map(pick).sum::<usize>();
            print!(
                " | {kmh:.0}: {:.1} {p50}/{p99}/{max} {f}/{p}/{b}/{d} {:.2} % {}",
                sum(|c| c.rsu_changes) as f64 / costs.len() as f64,
                sum(|c| c.arrived) as f64 * 100.0 / sum(|c| c.sent) as f64,
                sum(|c| c.lost_by_us),
            );
        }
        println!();
    }
}

/// Thresholds to try: `V2X_SIM_THRESHOLDS`, rows of six numbers separated by commas, or the
/// default.
fn tried() -> Vec<[u32; 6]> {
    let text = std::env::var("V2X_SIM_THRESHOLDS")
        .unwrap_or_else(|_| "9000 80 1200 500 100 1000".to_owned());
    let row = |row: &str| {
        let numbers: Vec<u32> = row.split_whitespace().map(|n| n.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    text.split(',').map(row).collect()
}
