//! What is between a node and its interfaces, as the daemons have it: bundles, the outbox for what
//! a full radio does not take, the TAP with its MTU and its queue; and a process that stands still.

use std::sync::Arc;
use std::time::Duration;

use node_lib::transport::mtu::TapMtu;
use node_lib::transport::tap_wait::TAP_QUEUE_MAX;
use sim::radio::{Access, Csma, RadioModel};
use sim::topology::Graph;
use sim::{
    Air, Dice, Fault, Flight, Flow, FlowIndex, FrameKind, Link, Location, Medium, NodeIndex, Role,
    Step, Target, World,
};

use crate::common::{self, Town, Wrong, at, broken, ms, run_all, seeds, wrong};

const RSU: NodeIndex = NodeIndex(0);
const RELAY: NodeIndex = NodeIndex(1);

/// An RSU and OBUs in a line, each in range of the next, on a radio with contention.
fn on_air(seed: u64, nodes: usize, bundles: bool) -> Town {
    let mut world = World::new(seed);
    world.bundle(bundles);
    let mut town = Town::in_world(world, &Graph::chain(nodes), &[0], Link::CLEAN);
    town.world.set_radio(RadioModel {
        access: Access::Csma(Csma::DEFAULT),
        ..RadioModel::disk(300.0, 0.0)
    });
    // Frames wait while routes change.
    town.world.tolerate_revisits(2);
    for n in 0..nodes {
        town.world.place(NodeIndex(n), Location::new(250.0 * n as f64, 0.0));
    }
    town
}

/// Frames of 200 bytes from a rider to the host, so many a second, for two seconds.
fn flood(town: &mut Town, from: NodeIndex, per_s: u64) -> FlowIndex {
    let to = Target::Client(town.host);
    let (every, count) = (Duration::from_micros(1_000_000 / per_s), 2 * per_s as u32);
    let flow = Flow::steady(town.riders[&from], to, at(2000), every, count);
    town.world.add_flow(Flow { size: 200, ..flow })
}

/// Each frame has arrived, or it is known where it was lost.
fn account(town: &Town, flow: FlowIndex) -> Result<(usize, usize), Wrong> {
    let log = town.world.flow(flow).unwrap();
    let (mut arrived, mut in_queue) = (0, 0);
    for number in 0..log.sent().len() as u32 {
        if log.received_at(town.host, number).is_some() {
            arrived += 1;
        } else if log.lost_in_queue(number).is_some() {
            in_queue += 1;
        } else if log.lost_on_air(number).is_none() {
            return Err(wrong(town, format!("frame {number} is lost, and nobody knows where")));
        }
    }
    Ok((arrived, in_queue))
}

/// A rider says three times what the radio can carry: what waits for room leaves together.
#[test]
fn small_frames_that_wait_for_a_full_radio_leave_in_bundles() {
    let run = |seed, bundles| -> Result<usize, Wrong> {
        let mut town = on_air(seed, 2, bundles);
        let flow = flood(&mut town, RELAY, 5000);
        town.world.run_until(at(5000)).map_err(broken)?;
        let (arrived, in_queue) = account(&town, flow)?;
        let [sent, heard] = [RELAY, RSU].map(|node| town.world.bundles(node));
        let on_air = town.world.stats_of(RELAY).of(FrameKind::BUNDLE).frames;
        // Some have waited for too long in the outbox.
        let is_consistent = sent.tx_bundles >= on_air
            && heard.rx_bundles == on_air
            && heard.rx_bundled <= arrived as u64
            && (on_air > 0) == bundles
            && in_queue > 0;
        let what = format!(
            "{arrived} arrived, {in_queue} lost in queues, {on_air} on air, {sent:?}, {heard:?}"
        );
        if !is_consistent || heard.rx_malformed > 0 {
            return Err(wrong(&town, what));
        }
        println!("seed {seed}: {what}");
        Ok(arrived)
    };
    run_all("small_frames_that_wait_for_a_full_radio_leave_in_bundles", seeds(5), |seed| {
        let (with, without) = (run(seed, true)?, run(seed, false)?);
        // Six of 200 bytes fit into one of 1500.
        if with * 10 < without * 13 {
            return Err(format!("{with} arrived in bundles, {without} one by one").into());
        }
        Ok(())
    });
}

/// A rider says ten times what gets through: what the radio has no room for waits in the outbox, a
/// burst at most and no longer than 50 ms, for the TAP is not read meanwhile; it fills, and drops
/// what comes on top. Control goes on.
#[test]
fn what_a_full_radio_does_not_take_waits_in_the_outbox_and_then_in_the_tap() {
    let test = "what_a_full_radio_does_not_take_waits_in_the_outbox_and_then_in_the_tap";
    run_all(test, seeds(5), |seed| {
        let mut town = on_air(seed, 3, false);
        let far = NodeIndex(2);
        let flow = flood(&mut town, far, 4000);
        town.world.run_until(at(3900)).map_err(broken)?;
        let is_attached = [RELAY, far].iter().all(|node| town.world.attachment(*node).is_some());
        town.world.run_until(at(6000)).map_err(broken)?;
        let (arrived, in_queue) = account(&town, flow)?;
        let [relay, origin] = [RELAY, far].map(|node| town.world.waited(node));
        let taps = [RELAY, far].map(|node| town.world.tap_counters(node).full);
        let drops = [RELAY, far].map(|node| town.world.queue_drops(node));
        let what = format!(
            "{arrived} arrived, {in_queue} lost in queues, {relay:?}, {origin:?}, {taps:?}"
        );
        // A burst never fills the outbox.
        let is_bounded = origin.held > 0 && origin.late > 0 && origin.full == 0;
        let is_counted = drops.iter().sum::<u64>() == in_queue as u64 && taps[0] == 0;
        if !is_attached || arrived == 0 || !is_bounded || taps[1] == 0 || !is_counted {
            return Err(wrong(&town, format!("{what}, {drops:?}")));
        }
        println!("seed {seed}: {what}");
        Ok(())
    });
}

#[test]
fn a_tap_refuses_what_is_longer_than_its_mtu_and_a_vlan_tag() {
    let mut town = Town::new(1, &Graph::chain(2), &[0], Link::CLEAN);
    let to = Target::Client(town.host);
    let from = town.riders[&RELAY];
    let flow = |size| Flow { size, ..Flow::steady(from, to, at(2000), ms(10), 20) };
    let [fits, too_long] = [1518, 1519].map(|size| town.world.add_flow(flow(size)));
    town.world.run_until(at(3000)).unwrap();
    assert_eq!(town.world.tap_mtu(RELAY), Some(1500));
    assert_eq!((town.arrived_up(fits), town.arrived_up(too_long)), (20, 0));
    assert_eq!(town.world.tap_counters(RELAY).oversize, 20);
}

/// As a daemon: the operator's, or what the radio carries; and a pair that cannot be is refused at
/// the start.
#[test]
fn the_mtu_of_a_tap_is_what_a_daemon_makes_it() {
    let fixed = |mtu| TapMtu { fixed: Some(mtu), ipv6: false };
    for (radio, tap, becomes) in [
        (1500, TapMtu::default(), Some(1500)),
        (150, TapMtu::default(), Some(8 * (150 - 12) - 68)),
        (1500, fixed(9000), Some(9000)),
        (1500, fixed(12_000), None),
        (100, TapMtu::default(), None),
    ] {
        let mut world = World::new(1);
        world.set_radio_mtu(Role::Obu, radio);
        world.set_tap_mtu(Role::Obu, tap);
        let town = &mut Town::in_world(world, &Graph::chain(2), &[0], Link::CLEAN);
        town.world.run_until(at(500)).unwrap();
        assert_eq!(town.world.tap_mtu(RELAY), becomes, "{radio}, {tap:?}");
        assert_eq!(town.world.node(RELAY).is_some(), becomes.is_some());
        assert_eq!(town.world.tap_mtu(RSU), Some(1500));
    }
}

/// Nothing is lost that there is room for: what the rider said meanwhile is sent late, what was for
/// it comes late, and what neighbours said tells the node that they are there. So it changes
/// nothing, however long it stood still.
#[test]
fn a_vehicle_that_stood_still_hears_first_what_was_said_and_goes_on() {
    let test = "a_vehicle_that_stood_still_hears_first_what_was_said_and_goes_on";
    let every = ms(10);
    run_all(test, seeds(200), |seed| {
        let mut town = Town::new(seed, &Graph::chain(3), &[0], Link::CLEAN);
        let far = NodeIndex(2);
        let up = town.up(far, at(1500), every, 550);
        let down = town.down(far, at(1500), every, 550);
        let mut dice = Dice::new(seed, 1);
        let (from, span) = (at(2000) + dice.up_to(ms(100)), ms(200) + dice.up_to(ms(2800)));
        town.world.at(from, Fault::Stall(far, span));
        town.world.run_until((from + span).before(ms(1))).map_err(broken)?;
        let during = town.world.flow(up).unwrap();
        let heard = (0..during.sent().len() as u32)
            .filter_map(|n| during.received_at(town.host, n))
            .filter(|time| *time > from + ms(5))
            .count();
        town.world.run_until(at(7500)).map_err(broken)?;
        let changes = town.changes(from);
        let arrived = (town.arrived_up(up), town.arrived_down(down, far));
        if heard > 0 || arrived != (550, 550) || !changes.is_empty() {
            let what = format!(
                "{span:?} still: {heard} frames of it heard meanwhile, {arrived:?} of 550, \
                 {changes:?}"
            );
            return Err(wrong(&town, what));
        }
        Ok(())
    });
}

/// A relay that stands still is left like one that died, and nothing it says late does harm.
#[test]
fn a_relay_that_stands_still_is_left_and_may_come_back() {
    let test = "a_relay_that_stands_still_is_left_and_may_come_back";
    let (ups, downs): (Vec<_>, Vec<_>) = run_all(test, seeds(200), |seed| {
        let mut town = Town::new(seed, &Graph::ring(4), &[0], Link::CLEAN);
        let x = NodeIndex(2);
        let (up, down) = (town.up(x, at(1500), ms(2), 2700), town.down(x, at(1501), ms(2), 2700));
        let mut dice = Dice::new(seed, 1);
        let (from, span) = (at(2000) + dice.up_to(ms(100)), ms(500) + dice.up_to(ms(2500)));
        town.world.run_until(from).map_err(broken)?;
        let Some(relay) = town.upstream(x) else {
            return Err(wrong(&town, "X has no upstream".to_owned()));
        };
        town.world.apply(Fault::Stall(relay, span));
        town.world.run_until(at(7000)).map_err(broken)?;
        let until = at(6880);
        // Whatever was given to it may come late; what was not is with somebody else by then.
        let (flows, clients) = ([up, down], [town.host, town.riders[&x]]);
        for (flow, client) in flows.into_iter().zip(clients) {
            let log = town.world.flow(flow).unwrap();
            let late = (0..).zip(log.sent()).find(|(number, sent)| {
                let came = log.received_at(client, *number);
                (from + ms(300)..until).contains(*sent)
                    && came.is_none_or(|came| came.since(**sent) > ms(50))
            });
            if let Some((number, sent)) = late {
                let after = sent.since(from);
                let what =
                    format!("frame {number} of {flow:?} is late, sent after {after:?} of {span:?}");
                return Err(wrong(&town, what));
            }
        }
        Ok((town.gap_up(up, from, until), town.gap_down(down, x, from, until)))
    })
    .into_iter()
    .unzip();
    println!("a relay stands still, upward: {}", common::spread(ups.clone()));
    println!("a relay stands still, downward: {}", common::spread(downs.clone()));
    for mut gaps in [ups, downs] {
        gaps.sort_unstable();
        assert!(common::percentile(&gaps, 0.99) <= ms(300), "{gaps:?}");
    }
}

/// A machine that sleeps for an hour hears nothing meanwhile. When it wakes up it knows nobody, and
/// whoever was behind it has long given it up.
#[test]
fn after_an_hour_of_sleep_there_is_a_way_within_three_heartbeats() {
    let test = "after_an_hour_of_sleep_there_is_a_way_within_three_heartbeats";
    let hour = Duration::from_secs(3600);
    let gaps = run_all(test, seeds(6), |seed| {
        let sleeper = [RSU, RELAY, NodeIndex(2)][seed as usize % 3];
        let far = NodeIndex(2);
        let mut town = Town::new(seed, &Graph::chain(3), &[0], Link::CLEAN);
        let from = at(2000) + Dice::new(seed, 1).up_to(ms(100));
        let wakes = from + hour;
        for (time, fault) in [
            (from, Fault::Isolate(sleeper)),
            (from, Fault::Stall(sleeper, hour)),
            (wakes, Fault::Rejoin(sleeper)),
        ] {
            town.world.at(time, fault);
        }
        let (up, down) = (town.up(far, wakes, ms(10), 200), town.down(far, wakes, ms(10), 200));
        town.world.run_until(wakes + ms(2500)).map_err(broken)?;
        let until = wakes + ms(2000);
        let gap = town.gap_up(up, wakes, until).max(town.gap_down(down, far, wakes, until));
        Ok((sleeper, gap))
    });
    println!("after an hour of sleep: {gaps:?}");
    for (sleeper, gap) in gaps {
        assert!(gap <= ms(300), "{sleeper:?} slept: {gap:?}");
    }
}

/// Told to stop meanwhile it says goodbye as soon as it runs; a kill does not wait.
#[test]
fn signals_and_interfaces_are_heard_of_when_the_process_runs_again() {
    for fault in [Fault::Shutdown(RELAY), Fault::Crash(RELAY)] {
        let mut town = Town::new(1, &Graph::chain(2), &[0], Link::CLEAN);
        town.world.run_until(at(2000)).unwrap();
        let linger = town.world.node(RELAY).unwrap().linger().as_millis() as u64;
        let waits = matches!(fault, Fault::Shutdown(_));
        let ends = if waits { 500 + linger } else { 100 };
        town.world.apply(Fault::Stall(RELAY, ms(500)));
        town.world.at(at(2100), fault);
        town.world.at(at(2200), Fault::LanDown(RELAY));
        town.world.run_until(at(2000 + ends - 1)).unwrap();
        assert_eq!(town.world.is_stalled(RELAY), !waits);
        assert!(town.world.node(RELAY).is_some());
        let said = town.world.stats_of(RELAY).of(FrameKind::WITHDRAWAL).frames;
        assert_eq!(said > 0, waits, "goodbyes");
        town.world.run_until(at(2000 + ends)).unwrap();
        assert!(town.world.node(RELAY).is_none(), "{fault}");
        assert!(!town.world.is_stalled(RELAY));
    }
}

/// Nobody reads the TAP: it holds so many frames, and drops the newest.
#[test]
fn the_tap_of_a_process_that_stands_still_fills_and_drops() {
    let mut town = Town::new(1, &Graph::chain(2), &[0], Link::CLEAN);
    let up = town.up(RELAY, at(2000), ms(1), 800);
    town.world.at(at(1999), Fault::Stall(RELAY, ms(700)));
    town.world.run_until(at(4000)).unwrap();
    let full = town.world.tap_counters(RELAY).full;
    // Those of the first 700 ms, and of the rest nothing.
    assert!((198..=200).contains(&full), "{full}");
    assert_eq!(town.arrived_up(up) as u64, 800 - full);
    let log = town.world.flow(up).unwrap();
    assert!(log.received_at(town.host, TAP_QUEUE_MAX as u32 - 1).is_some());
    assert!(log.lost_in_queue(TAP_QUEUE_MAX as u32).is_some());
}

/// A radio that never has room.
struct Full;

impl Medium for Full {
    fn look(&mut self, _: &[Option<Location>]) {}
    fn has_room(&mut self, _: NodeIndex, _: u8) -> bool {
        false
    }
    fn send(&mut self, _: Arc<Flight>, _: &mut Air<'_>) {}
    fn step(&mut self, _: Step, _: &mut Air<'_>) {}
    fn delivery(&self, _: NodeIndex, _: NodeIndex) -> f64 {
        0.0
    }
    fn hearers(&self, _: NodeIndex, _: &mut dyn FnMut(NodeIndex)) {}
}

/// A node is woken for it: between two heartbeats nothing else happens.
#[test]
fn what_waits_for_a_full_radio_is_dropped_in_time_though_the_node_is_still() {
    let mut town = Town::new(1, &Graph::chain(1), &[0], Link::CLEAN);
    town.world.set_medium(Box::new(Full));
    town.world.place(RSU, Location::new(0.0, 0.0));
    while town.world.waited(RSU).held == 0 {
        town.world.run_for(ms(1)).unwrap();
        assert!(town.world.now() < at(2000), "an RSU speaks");
    }
    assert_eq!(town.world.waited(RSU).late, 0);
    town.world.run_for(ms(51)).unwrap();
    let waited = town.world.waited(RSU);
    assert_eq!((waited.held, waited.late), (1, 1));
}
