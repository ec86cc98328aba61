//! Random towns with cuts, restarts and loss: nothing loops, and all who can reach an RSU do.
//!
//! | variable | meaning |
//! |---|---|
//! | `V2X_SIM_RUNS` | so many towns, instead of the 10,000 of every run |
//! | `V2X_SIM_FAULTS` | at least so many faults in each town, one every 80 ms on average, with less traffic |
//!
//! Counted as faults are changes made to a town: cuts, heals, crashes, starts and so on. The frames
//! that bad links lose on their own are not.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Timestamp;
use sim::topology::Graph;
use sim::{Dice, Fault, Flow, Link, NodeIndex, Role, Target};

use crate::common::{HEARTBEAT, Town, Wrong, at, broken, ms, run_all, seeds, wrong};

/// Everything is let run in before the first fault.
const CALM: Timestamp = at(1000);

/// Faults happen until here; at the end of it all links are clean again.
const FAULTS_UNTIL: Timestamp = at(3000);

/// When a number of faults is asked for, so much time is given to each.
const PER_FAULT: Duration = ms(80);

/// … and most are over after this.
const OVER_WITHIN: Duration = ms(1500);

/// Where two RSUs send the LAN's broadcasts a process stands still no longer than this. A relay
/// that slept sends on old heartbeats and old floods as if they were of now; who is two hops away
/// takes the second copy for a new frame.
const STALL_MAX: Duration = ms(900);

/// With faults up to the end, the reply that shows the way down to an OBU may be lost in one of the
/// last; the next comes 12.5 intervals later at most.
const DOWN_WITHIN: Duration = HEARTBEAT.saturating_mul(15);

/// From the last fault to a route.
const ROUTE_WITHIN: Duration = HEARTBEAT.saturating_mul(5);

#[test]
fn whoever_can_reach_an_rsu_does_and_no_packet_goes_in_circles() {
    let done =
        run_all("whoever_can_reach_an_rsu_does_and_no_packet_goes_in_circles", seeds(10_000), run);
    let sum = |of: fn(&Outcome) -> u64| done.iter().map(of).sum::<u64>();
    let mut faults = Faults::new();
    for (name, count) in done.iter().flat_map(|outcome| &outcome.faults) {
        *faults.entry(name).or_default() += count;
    }
    println!("{} topologies, {} faults: {faults:?}", done.len(), faults.values().sum::<u64>());
    println!(
        "{} events, {} OBUs that could reach an RSU in the end, {} that could not",
        sum(|o| o.events),
        sum(|o| o.reachable),
        sum(|o| o.unreachable),
    );
    println!("{} data packets sent, {} of them repeats", sum(|o| o.data), sum(|o| o.repeats));
}

/// Links that lose, double and reorder all the time: nothing is promised to arrive, but no rule may
/// break.
#[test]
fn no_packet_goes_in_circles_on_the_worst_of_links() {
    let test = "no_packet_goes_in_circles_on_the_worst_of_links";
    let done = run_all(test, seeds(300), |seed| {
        let mut dice = Dice::new(seed, 1);
        let graph = Graph::random_connected(3 + dice.index(8), 0.3, &mut dice);
        let rsus: &[usize] = if dice.chance(0.5) { &[0, 1] } else { &[0] };
        let mut town = Town::new(seed, &graph, rsus, Link::CLEAN);
        for (a, b) in graph.edges() {
            for (a, b) in [(a, b), (b, a)] {
                let link = Link {
                    loss: [0.0, 0.1, 0.3, 0.5][dice.index(4)],
                    delay: dice.up_to(ms(5)),
                    jitter: dice.up_to(ms(40)),
                    duplicate: [0.0, 0.1, 0.3][dice.index(3)],
                };
                town.world.link_one_way(NodeIndex(a), NodeIndex(b), link);
            }
        }
        if seed % 2 == 1 {
            // What radios give up goes once more, perhaps another way.
            town.world.try_again(1);
            town.world.report_unacknowledged(true);
        }
        plan_faults(&mut town, &graph, FAULTS_UNTIL, None, &mut dice);
        let riders: Vec<NodeIndex> = town.riders.keys().copied().collect();
        for &node in &riders {
            town.up(node, at(300), ms(20), 180);
            town.down(node, at(310), ms(20), 180);
        }
        // Frames here are under way for up to 45 ms, longer than a change of upstream takes.
        town.world.tolerate_revisits(1);
        // Two RSUs send one broadcast twice, and an OBU that changes between them hears both
        // copies.
        if rsus.len() == 1 {
            let host = town.host;
            town.world.add_flow(Flow::steady(host, Target::Everyone, at(330), ms(50), 70));
        }
        town.world.run_until(at(4000)).map_err(broken)?;
        Ok((town.world.stats().data().frames, town.world.repeats()))
    });
    let data: u64 = done.iter().map(|(data, _)| data).sum();
    let repeats: u64 = done.iter().map(|(_, repeats)| repeats).sum();
    println!("{} topologies, {data} data packets sent, {repeats} of them repeats", done.len());
}

/// How often each kind of fault was made.
type Faults = BTreeMap<&'static str, u64>;

struct Outcome {
    faults: Faults,
    events: u64,
    reachable: u64,
    unreachable: u64,
    data: u64,
    repeats: u64,
}

fn run(seed: u64) -> Result<Outcome, Wrong> {
    let mut dice = Dice::new(seed, 0);
    let nodes = 2 + dice.index(11);
    let density = [0.0, 0.1, 0.2, 0.4][dice.index(4)];
    let graph = match dice.index(4) {
        0 => Graph::random(nodes, 0.25, &mut dice),
        _ => Graph::random_connected(nodes, density, &mut dice),
    };
    let rsus: &[usize] = if nodes > 3 && dice.chance(0.4) { &[0, 1] } else { &[0] };
    let mut town = Town::new(seed, &graph, rsus, Link::CLEAN);
    let wanted = faults_asked();
    let until = wanted.map_or(FAULTS_UNTIL, |faults| CALM + PER_FAULT * faults);
    let faults = plan_faults(&mut town, &graph, until, wanted, &mut dice);

    // Everyone talks all the time, so that a loop has something to carry.
    let riders: Vec<NodeIndex> = town.riders.keys().copied().collect();
    let every = if wanted.is_some() { ms(100) } else { ms(40) };
    let count = u32::try_from((until + ms(1700)).as_micros() / every.as_micros() as u64).unwrap();
    for &node in &riders {
        let phase = dice.up_to(every);
        town.up(node, at(300) + phase, every, count);
        town.down(node, at(320) + phase, every, count);
    }
    let host = town.host;
    let count = if wanted.is_some() { count } else { 20 };
    town.world.add_flow(Flow::steady(host, Target::Everyone, at(330), every * 5, count / 5));

    town.world.run_until(until).map_err(broken)?;
    let reachable = town.reachable();
    let routed = until + ROUTE_WITHIN;
    town.world.run_until(routed).map_err(broken)?;
    for &(node, hops) in &reachable {
        if town.world.attachment(node).is_none() {
            return Err(wrong(&town, format!("{node}, {hops} hops from an RSU, has no route")));
        }
    }
    // The truth: frames get through, both ways.
    let routed = if wanted.is_some() { until + DOWN_WITHIN } else { routed };
    let flows: Vec<_> = reachable
        .iter()
        .map(|&(node, hops)| {
            (node, hops, town.up(node, routed, ms(20), 5), town.down(node, routed, ms(20), 5))
        })
        .collect();
    town.world.run_until(routed + ms(500)).map_err(broken)?;
    for (node, hops, up, down) in flows {
        let (up, down) = (town.arrived_up(up), town.arrived_down(down, node));
        if up < 5 || down < 5 {
            let what = format!("{node}, {hops} hops from an RSU: {up} up and {down} down of 5");
            return Err(wrong(&town, what));
        }
    }
    Ok(Outcome {
        faults,
        events: town.world.event_count(),
        reachable: reachable.len() as u64,
        unreachable: (riders.len() - reachable.len()) as u64,
        data: town.world.stats().data().frames,
        repeats: town.world.repeats(),
    })
}

/// `V2X_SIM_FAULTS`: at least so many faults in each town.
fn faults_asked() -> Option<u32> {
    let text = std::env::var("V2X_SIM_FAULTS").ok()?;
    Some(text.parse().expect("V2X_SIM_FAULTS: a number"))
}

/// Cuts, one-way cuts, restarts, isolation, radios that go down, processes that stand still and
/// loss at random times; some are over some time later, some stay. Without a number wanted, a few.
fn plan_faults(
    town: &mut Town,
    graph: &Graph,
    until: Timestamp,
    wanted: Option<u32>,
    dice: &mut Dice,
) -> Faults {
    let edges: Vec<_> = graph.edges().map(|(a, b)| (NodeIndex(a), NodeIndex(b))).collect();
    let span = until - CALM;
    let mut faults = Faults::new();
    let mut plan = |town: &mut Town, time, name, fault| {
        town.world.at(time, fault);
        *faults.entry(name).or_default() += 1;
        faults.values().sum::<u64>()
    };
    let is_shared = town.world.nodes(Role::Rsu).count() > 1;
    let few = 1 + dice.index(8);
    let mut planned = 0;
    for turn in 0.. {
        let is_enough = match wanted {
            Some(wanted) => planned >= u64::from(wanted),
            None => turn >= few,
        };
        if is_enough {
            break;
        }
        let time = CALM + dice.up_to(span);
        let longest = if wanted.is_some() { OVER_WITHIN } else { span };
        let later = time + dice.up_to(longest.min(until - time));
        let node = NodeIndex(dice.index(graph.nodes()));
        let edge = dice.pick(&edges).copied();
        let heals = dice.chance(if wanted.is_some() { 0.95 } else { 0.5 });
        let ((name, fault), (cured, cure)) = match (dice.index(9), edge) {
            (0 | 1, Some((a, b))) => (("cut", Fault::Cut(a, b)), ("heal", Fault::Heal(a, b))),
            (2, Some((a, b))) => {
                (("cut one way", Fault::CutOneWay(a, b)), ("heal one way", Fault::HealOneWay(a, b)))
            }
            (3, Some((a, b))) => {
                let link = Link { duplicate: 0.05, ..Link::lossy(0.3) };
                plan(town, later, "relink", Fault::Relink(a, b, Link::CLEAN));
                planned = plan(town, time, "relink", Fault::Relink(a, b, link));
                continue;
            }
            (4, _) => (("isolate", Fault::Isolate(node)), ("rejoin", Fault::Rejoin(node))),
            (5, _) => (("crash", Fault::Crash(node)), ("start", Fault::Start(node))),
            (6, _) => (("radio down", Fault::RadioDown(node)), ("radio up", Fault::RadioUp(node))),
            (7, _) => {
                let stall = if is_shared { STALL_MAX.min(later - time) } else { later - time };
                planned = plan(town, time, "stall", Fault::Stall(node, stall));
                continue;
            }
            _ => {
                let off = dice.up_to(ms(400)).min(until - time);
                planned = plan(town, time, "restart", Fault::Restart(node, off));
                continue;
            }
        };
        planned = plan(town, time, name, fault);
        if heals {
            planned = plan(town, later, cured, cure);
        }
    }
    faults
}
