//! A node that starts again is heard again, however much its boot count has grown meanwhile: by
//! one, as with a state file, or by as many quarters of a second as it was alive, and whatever the
//! low byte of that. And so it is with the boot counts simulated nodes have by themselves, which
//! are those of the programs; and where a clock was set back in between, and nothing else counts,
//! with fewer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use node_lib::start::boot;
use node_lib::{Boot, Start, Timestamp};
use sim::topology::Graph;
use sim::{Counting, Dice, Factory, Fault, Link, NodeIndex, Place, Role, World};

use crate::common::{
    self, HEARTBEAT, HOST_MAC, Town, at, broken, ms, radio, rider_mac, run_all, seeds, spread,
    wrong,
};

const RSU: NodeIndex = NodeIndex(0);
const RELAY: NodeIndex = NodeIndex(1);
const BEHIND: NodeIndex = NodeIndex(2);

/// The first start of a node, as the programs count: quarters of a second since 2024.
const FIRST: i32 = 365_000_000;

/// A day has so many quarters of a second, which is 0 in the low byte.
const DAY: i32 = 4 * 60 * 60 * 24;

/// RSU – relay – vehicle, every node with boot counts `FIRST`, `FIRST + delta`, …
fn town(seed: u64, delta: i32) -> Town {
    let counted = move |make: fn(usize) -> Factory, n: usize| -> Factory {
        let starts = AtomicU32::new(0);
        let make = make(n);
        Box::new(move |start, now| {
            let before = starts.fetch_add(1, Ordering::Relaxed) as i32;
            let boot = Boot((FIRST + n as i32 + before * delta) as u32);
            make(&Start { boot, ..*start }, now)
        })
    };
    let mut world = World::new(seed);
    // Starts that do not wait.
    world.count_starts(Counting::StateFile);
    let lan = world.add_lan();
    let host = world.add_client(HOST_MAC, Place::Lan(lan));
    world.add_node(Role::Rsu, radio(0), counted(common::rsu, 0));
    world.plug(RSU, lan);
    let mut riders = std::collections::BTreeMap::new();
    for n in 1..3 {
        let node = world.add_node(Role::Obu, radio(n), counted(common::obu, n));
        riders.insert(node, world.add_client(rider_mac(n), Place::Tap(node)));
    }
    world.link_all(&Graph::new(3, [(0, 1), (1, 2)]), Link::CLEAN);
    Town { world, lan, host, riders }
}

/// Restarts `node`, with traffic both ways, over one hop and over two. From `silent_for` after that
/// nothing may be lost, and nothing may come twice.
fn restart(test: &str, node: NodeIndex, silent_for: Duration) {
    let deltas: Vec<i32> = (1..=256).chain([DAY, DAY + 128, 365 * DAY]).collect();
    restart_with(test, node, silent_for, &deltas);
}

fn restart_with(test: &str, node: NodeIndex, silent_for: Duration, deltas: &[i32]) {
    run_all(test, seeds(deltas.len() as u64), |seed| {
        let delta = deltas[seed as usize % deltas.len()];
        let mut town = town(seed, delta);
        let every = ms(10);
        let both = [RELAY, BEHIND];
        let ups = both.map(|n| town.up(n, at(2000), every, 500));
        let downs = both.map(|n| (town.down(n, at(2000), every, 500), n));
        town.world.at(at(4000), Fault::Restart(node, ms(50)));
        town.world.run_until(at(8000)).map_err(broken)?;
        let doubled = |flow, client| town.world.flow(flow).unwrap().doubled(client).len();
        let up = ups.iter().map(|up| doubled(*up, town.host)).sum::<usize>();
        let down = downs.iter().map(|(down, n)| doubled(*down, town.riders[n])).sum::<usize>();
        if up + down > 0 {
            return Err(wrong(&town, format!("{up} frames up and {down} down came twice")));
        }
        let (from, to) = (at(4000) + silent_for, at(6980));
        let gaps = ups.iter().map(|up| town.gap_up(*up, from, to));
        let gaps = gaps.chain(downs.iter().map(|(down, n)| town.gap_down(*down, *n, from, to)));
        match gaps.max() {
            Some(gap) if gap <= every * 2 => Ok(()),
            gap => Err(wrong(&town, format!("{gap:?} without a frame after boot count {delta:+}"))),
        }
    });
}

/// Three heartbeats.
#[test]
fn an_rsu_that_starts_again_is_heard_whatever_its_boot_count() {
    restart("an_rsu_that_starts_again_is_heard_whatever_its_boot_count", RSU, ms(300));
}

#[test]
fn a_relay_that_starts_again_is_heard_whatever_its_boot_count() {
    restart("a_relay_that_starts_again_is_heard_whatever_its_boot_count", RELAY, ms(1000));
}

#[test]
fn a_vehicle_behind_a_relay_that_starts_again_is_heard_whatever_its_boot_count() {
    let test = "a_vehicle_behind_a_relay_that_starts_again_is_heard_whatever_its_boot_count";
    restart(test, BEHIND, ms(1000));
}

/// By a moment, an hour and a year, as many as were before, and one by one.
fn set_back() -> Vec<i32> {
    (1..=16).chain([128, 255, 256, DAY / 24, 365 * DAY]).map(|delta| -delta).collect()
}

/// What was said before has to be silent for three intervals, then two heartbeats to come, and who
/// routes for others waits until nobody counts on what it said of the earlier ones: 6.7 intervals.
#[test]
fn an_rsu_whose_clock_was_set_back_is_heard_again() {
    restart_with("an_rsu_whose_clock_was_set_back_is_heard_again", RSU, ms(1000), &set_back());
}

#[test]
fn a_relay_whose_clock_was_set_back_is_heard_again() {
    restart_with("a_relay_whose_clock_was_set_back_is_heard_again", RELAY, ms(1000), &set_back());
}

#[test]
fn a_vehicle_behind_a_relay_whose_clock_was_set_back_is_heard_again() {
    let test = "a_vehicle_behind_a_relay_whose_clock_was_set_back_is_heard_again";
    restart_with(test, BEHIND, ms(1000), &set_back());
}

/// Restarts `node` after such lives, with the boot counts and the wait of a program.
fn restart_after(test: &str, node: NodeIndex, silent_for: Duration) {
    const LIVES: [u64; 6] = [1, 5, 32, 45, 100, 600];
    run_all(test, seeds(5 * LIVES.len() as u64), |seed| {
        // Not at the same part of a unit each time.
        let life = LIVES[seed as usize % LIVES.len()] * 1000 + 1000 + 97 * seed;
        let mut town = Town::new(seed, &Graph::chain(3), &[0], Link::CLEAN);
        let (start, every) = (at(life - 500), ms(10));
        let both = [RELAY, BEHIND];
        let ups = both.map(|n| town.up(n, start, every, 400));
        let downs = both.map(|n| (town.down(n, start, every, 400), n));
        town.world.at(at(life), Fault::Restart(node, ms(50)));
        town.world.run_until(at(life + 4000)).map_err(broken)?;
        let (from, to) = (at(life + 50) + boot::UNIT + silent_for, at(life + 3480));
        let gaps = ups.iter().map(|up| town.gap_up(*up, from, to));
        let gaps = gaps.chain(downs.iter().map(|(down, n)| town.gap_down(*down, *n, from, to)));
        match gaps.max() {
            Some(gap) if gap <= every * 2 => Ok(()),
            gap => Err(wrong(&town, format!("{gap:?} without a frame after a life of {life} ms"))),
        }
    });
}

/// Three heartbeats.
#[test]
fn an_rsu_is_heard_after_a_restart_however_long_it_lived() {
    restart_after("an_rsu_is_heard_after_a_restart_however_long_it_lived", RSU, ms(300));
}

#[test]
fn a_relay_is_heard_after_a_restart_however_long_it_lived() {
    restart_after("a_relay_is_heard_after_a_restart_however_long_it_lived", RELAY, ms(1000));
}

#[test]
fn a_vehicle_behind_a_relay_is_heard_after_a_restart_however_long_it_lived() {
    let test = "a_vehicle_behind_a_relay_is_heard_after_a_restart_however_long_it_lived";
    restart_after(test, BEHIND, ms(1000));
}

/// A client that speaks once and never again; then its vehicle starts again, whatever way it ended,
/// and the RSU in use goes. A vehicle with a state file knows it still, and the other RSU hears of
/// it.
#[test]
fn a_client_that_never_speaks_again_is_reached_after_a_restart_and_a_hand_over() {
    let test = "a_client_that_never_speaks_again_is_reached_after_a_restart_and_a_hand_over";
    const CAR: NodeIndex = NodeIndex(2);
    let gaps = run_all(test, seeds(20), |seed| {
        let mut world = World::new(seed);
        world.count_starts(Counting::StateFile);
        let two_rsus = Graph::new(3, [(0, 2), (1, 2)]);
        let mut town = Town::in_world(world, &two_rsus, &[0, 1], Link::CLEAN);
        town.up(CAR, at(2000), ms(10), 1);
        let down = town.down(CAR, at(8000), ms(10), 400);
        // After the first note, and a second restart before the note of the first.
        town.world.at(at(5000), Fault::Restart(CAR, ms(50)));
        town.world.at(at(6000), Fault::Restart(CAR, ms(50)));
        town.world.run_until(at(9000)).map_err(broken)?;
        let Some(rsu) = town.upstream(CAR) else {
            return Err(wrong(&town, "without a way".to_owned()));
        };
        town.world.apply(Fault::Crash(rsu));
        town.world.run_until(at(13_000)).map_err(broken)?;
        let gap = town.gap_down(down, CAR, at(8000), at(11_980));
        if gap > ms(300) {
            return Err(wrong(&town, format!("{gap:?} without a frame")));
        }
        Ok(gap)
    });
    println!("after the crash: {}", spread(gaps));
}

/// An RSU that says goodbye and is back before anybody has forgotten it: 250 to 425 ms later, for
/// the goodbye itself takes 200 ms. The vehicle hears it and a relay, which hears it too.
#[test]
fn an_rsu_that_is_back_soon_after_its_goodbye_is_a_way_again_for_all() {
    let test = "an_rsu_that_is_back_soon_after_its_goodbye_is_a_way_again_for_all";
    const BACK_AFTER_MS: [u64; 8] = [250, 275, 300, 325, 350, 375, 400, 425];
    let car = BEHIND;
    let gaps = run_all(test, seeds(25 * BACK_AFTER_MS.len() as u64), |seed| {
        let back_after = ms(BACK_AFTER_MS[seed as usize % BACK_AFTER_MS.len()]);
        let mut world = World::new(seed);
        // It is back when the test says so.
        world.count_starts(Counting::StateFile);
        let mut town = Town::in_world(world, &Graph::ring(3), &[0], Link::CLEAN);
        let every = ms(10);
        let both = [RELAY, car];
        let ups = both.map(|n| town.up(n, at(2000), every, 450));
        let downs = both.map(|n| (town.down(n, at(2000), every, 450), n));
        let left = at(3000) + Dice::new(seed, 1).up_to(HEARTBEAT);
        let back = left + back_after;
        town.world.at(left, Fault::Shutdown(RSU));
        town.world.at(back, Fault::Start(RSU));
        // Then the vehicle needs the relay, which must be a way again too.
        let cut = back + ms(1000) + Dice::new(seed, 2).up_to(HEARTBEAT);
        town.world.at(cut, Fault::Cut(RSU, car));
        town.world.run_until(at(7000)).map_err(broken)?;
        let until = at(6480);
        let gap = |from, to| {
            let up = ups.iter().map(|up| town.gap_up(*up, from, to));
            up.chain(downs.iter().map(|(down, n)| town.gap_down(*down, *n, from, to)))
                .max()
                .unwrap()
        };
        // Three heartbeats after it is back, at both; and 300 ms after the link is gone.
        let (late, without_link) = (gap(back + ms(300), cut), gap(cut, until));
        if late > every * 2 || without_link > ms(300) || town.upstream(car) != Some(RELAY) {
            let what = format!(
                "back after {back_after:?}: {late:?} without a frame from 300 ms on, and \
                 {without_link:?} after the cut"
            );
            return Err(wrong(&town, what));
        }
        Ok(without_link)
    });
    println!("after the cut: {}", spread(gaps));
}

/// An RSU, two relays that hear it, and a vehicle that hears only these. Three times the RSU starts
/// again, for which it takes 20 to 400 ms, and what the vehicle or a relay has sent one way may go
/// the other one. `also`: what happens to one of the three at that time. Returns how many frames
/// came twice, in each run.
fn twice_over_two_relays(
    test: &str,
    also: fn(&mut Dice, Timestamp) -> (Timestamp, Also),
) -> Vec<usize> {
    run_all(test, seeds(100), |seed| {
        let mut world = World::new(seed);
        world.count_starts(Counting::StateFile);
        let graph = Graph::new(4, [(0, 1), (0, 2), (1, 3), (2, 3)]);
        let mut town = Town::in_world(world, &graph, &[0], Link::CLEAN);
        let nodes = [NodeIndex(1), NodeIndex(2), NodeIndex(3)];
        let ups = nodes.map(|n| town.up(n, at(2000), ms(10), 1300));
        let downs = nodes.map(|n| (town.down(n, at(2000), ms(10), 1300), n));
        let mut dice = Dice::new(seed, 1);
        for round in 0..3 {
            let begins = at(4000 + 4000 * round) + dice.up_to(ms(1000));
            town.world.at(begins, Fault::Restart(RSU, ms(20) + dice.up_to(ms(380))));
            let node = nodes[dice.below(3) as usize];
            let (then, what) = also(&mut dice, begins);
            match what {
                Also::Nothing => {}
                Also::Restart(lasting) => town.world.at(then, Fault::Restart(node, lasting)),
                Also::Stall(lasting) => town.world.at(then, Fault::Stall(node, lasting)),
            }
        }
        town.world.run_until(at(16_000)).map_err(broken)?;
        let doubled = |flow, client| town.world.flow(flow).unwrap().doubled(client).len();
        let up = ups.iter().map(|up| doubled(*up, town.host)).sum::<usize>();
        let down = downs.iter().map(|(down, n)| doubled(*down, town.riders[n])).sum::<usize>();
        Ok(up + down)
    })
}

enum Also {
    Nothing,
    Restart(Duration),
    Stall(Duration),
}

/// The new RSU does not know what the one before has received.
#[test]
fn from_an_rsu_that_starts_again_nothing_comes_twice_where_there_is_another_way() {
    let test = "from_an_rsu_that_starts_again_nothing_comes_twice_where_there_is_another_way";
    let alone = twice_over_two_relays(test, |_, begins| (begins, Also::Nothing));
    let both = twice_over_two_relays(test, |dice, begins| {
        (begins + dice.up_to(ms(300)), Also::Restart(ms(20) + dice.up_to(ms(380))))
    });
    assert_eq!((alone.iter().sum::<usize>(), both.iter().sum::<usize>()), (0, 0));
}

/// A relay that stands still while the RSU starts again has frames that came the other way in the
/// meantime. If they are the first that the new RSU hears of their vehicle it cannot tell.
#[test]
fn from_an_rsu_that_starts_again_while_a_relay_stands_still_next_to_nothing_comes_twice() {
    let test =
        "from_an_rsu_that_starts_again_while_a_relay_stands_still_next_to_nothing_comes_twice";
    let stalled = twice_over_two_relays(test, |dice, begins| {
        (begins.before(dice.up_to(ms(1000))), Also::Stall(dice.up_to(ms(2000))))
    });
    let runs = stalled.iter().filter(|twice| **twice > 0).count();
    println!("{runs} of {} runs", stalled.len());
    assert!(runs * 10 <= stalled.len(), "{runs} of {} runs", stalled.len());
}
