//! Changing from one RSU to the next, with clients that speak and one that never does, in both
//! directions, unicast and broadcast: what is planned or predicted loses nothing and doubles
//! nothing. (That nothing is doubled is watched by the checkers in every run.)

use std::collections::BTreeSet;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::event::{Cause, Event, HandOver};
use sim::{ClientIndex, Dice, Fault, Flow, FlowIndex, Link, NodeIndex, Place, Role, Target, World};

use crate::common::{
    HEARTBEAT, HOST_MAC, Wrong, at, broken, ms, obu, obu_with, radio, rider_mac, rsu, run_all,
    seeds, spread,
};

const FIRST: NodeIndex = NodeIndex(0);
const SECOND: NodeIndex = NodeIndex(1);
const CAR: NodeIndex = NodeIndex(2);

/// Two RSUs on one LAN with a host, and a vehicle with a client that speaks and one that never
/// does.
struct Road {
    world: World,
    host: ClientIndex,
    speaker: ClientIndex,
    silent: ClientIndex,
    flows: Vec<(&'static str, FlowIndex, ClientIndex)>,
}

impl Road {
    /// Nobody hears anybody yet. `relays` further OBUs.
    fn new(seed: u64, relays: usize) -> Self {
        let mut road = Self::quiet(seed, relays, |_| ());
        road.world.keep_trace();
        road
    }

    /// Without the text of the trace, and with some settings of the vehicle changed.
    fn quiet(
        seed: u64,
        relays: usize,
        change: impl Fn(&mut obu_lib::Config) + Send + 'static,
    ) -> Self {
        let mut world = World::new(seed);
        let lan = world.add_lan();
        let host = world.add_client(HOST_MAC, Place::Lan(lan));
        for n in [0, 1] {
            let node = world.add_node(Role::Rsu, radio(n), rsu(n));
            world.plug(node, lan);
        }
        // The OBU's own TAP is announced although it never says anything.
        let own_tap = rider_mac(102);
        let factory = obu_with(2, move |config| {
            config.start.tap_mac = Some(own_tap);
            change(config);
        });
        let car = world.add_node(Role::Obu, radio(2), factory);
        for n in 3..3 + relays {
            world.add_node(Role::Obu, radio(n), obu(n));
        }
        let speaker = world.add_client(rider_mac(2), Place::Tap(car));
        let silent = world.add_client(own_tap, Place::Tap(car));
        world.add_flow(Flow::once(speaker, Target::Everyone, at(900)));
        Self { world, host, speaker, silent, flows: Vec::new() }
    }

    /// Frames of every kind from `start` on, for so long.
    fn add_traffic(&mut self, start: Timestamp, span: Duration) {
        let Self { host, speaker, silent, .. } = *self;
        let kinds = [
            ("up", speaker, Target::Client(host), host, 4),
            ("up to all", speaker, Target::Everyone, host, 10),
            ("down", host, Target::Client(speaker), speaker, 4),
            ("down to the silent one", host, Target::Client(silent), silent, 4),
            ("down to all", host, Target::Everyone, silent, 10),
        ];
        for (at, (name, from, to, receiver, every)) in (0u32..).zip(kinds) {
            let every = ms(every);
            let count = u32::try_from(span.as_micros() / every.as_micros()).unwrap();
            let start = start + ms(1) * at;
            let flow = self.world.add_flow(Flow::steady(from, to, start, every, count));
            self.flows.push((name, flow, receiver));
        }
    }

    fn run_until(&mut self, until: Timestamp) -> Result<(), Wrong> {
        self.world.run_until(until).map_err(broken)
    }

    fn wrong(&self, what: String) -> Wrong {
        let trace = self.world.last_lines().join("\n    ");
        format!("    {trace}\n{what}, at {}", self.world.now()).into()
    }

    /// Frames that never arrived, by kind.
    fn missing(&self) -> Vec<(&'static str, usize)> {
        let missing = |&(name, flow, receiver): &(&'static str, FlowIndex, ClientIndex)| {
            let log = self.world.flow(flow).unwrap();
            (name, log.sent().len() - log.received(receiver))
        };
        self.flows.iter().map(missing).filter(|(_, missing)| *missing > 0).collect()
    }

    fn longest_gap(&self, from: Timestamp, to: Timestamp) -> Duration {
        let gap = |&(_, flow, receiver): &(_, FlowIndex, ClientIndex)| {
            self.world.flow(flow).unwrap().longest_gap(receiver, from, to)
        };
        self.flows.iter().map(gap).max().unwrap()
    }

    /// Data frames that the air lost between the vehicle and an RSU.
    fn lost_on_air(&self) -> usize {
        let mut data = BTreeSet::new();
        let mut lost = 0;
        for line in self.world.trace_text().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let Some(sends) = words.iter().position(|word| *word == "sends") {
                if words[sends + 1].starts_with("to-") {
                    data.insert((*words.last().unwrap()).to_owned());
                }
            } else if let Some(misses) = words.iter().position(|word| *word == "misses") {
                lost += usize::from(data.contains(words[misses + 1]));
            }
        }
        lost
    }

    /// What the vehicle reported of its changes.
    fn hand_overs(&self) -> Vec<HandOver> {
        let record = |(_, node, event): &(Timestamp, NodeIndex, Event)| match event {
            Event::HandOver(record) if *node == CAR => Some(*record),
            _ => None,
        };
        self.world.events().iter().filter_map(record).collect()
    }

    /// Exactly one change, acknowledged, from the first RSU to the second.
    fn the_hand_over(&self) -> Result<HandOver, Wrong> {
        match self.hand_overs()[..] {
            [record] if record.is_settled => {
                let rsus = (record.from.rsu.0, record.to.map(|to| to.rsu.0));
                if rsus == (radio(FIRST.0).0, Some(radio(SECOND.0).0)) {
                    return Ok(record);
                }
                Err(self.wrong(format!("another change: {record:?}")))
            }
            ref others => Err(self.wrong(format!("not one change: {others:?}"))),
        }
    }
}

#[test]
fn a_planned_hand_over_to_a_better_rsu_loses_nothing() {
    run_all("a_planned_hand_over_to_a_better_rsu_loses_nothing", seeds(30), |seed| {
        // Three hops to the first; the second comes into range.
        let mut road = Road::new(seed, 2);
        let [near, far] = [NodeIndex(3), NodeIndex(4)];
        for (a, b) in [(FIRST, far), (far, near), (near, CAR)] {
            road.world.link(a, b, Link::CLEAN);
        }
        road.add_traffic(at(2500), ms(6000));
        road.run_until(at(2000) + Dice::new(seed, 1).up_to(HEARTBEAT))?;
        road.world.link(CAR, SECOND, Link::CLEAN);
        road.run_until(at(9000))?;
        let record = road.the_hand_over()?;
        let is_as_promised = record.cause == Cause::Better
            && record.gap == Duration::ZERO
            && record.lost + record.at_risk + record.sent_twice == 0;
        if !road.missing().is_empty() || !is_as_promised {
            return Err(road.wrong(format!("missing {:?}, {record:?}", road.missing())));
        }
        Ok(())
    });
}

#[test]
fn an_rsu_that_says_goodbye_is_left_without_loss() {
    run_all("an_rsu_that_says_goodbye_is_left_without_loss", seeds(50), |seed| {
        let mut road = both_in_range(seed)?;
        let hit = at(3000) + Dice::new(seed, 1).up_to(HEARTBEAT);
        road.add_traffic(at(2500), ms(1500));
        road.world.at(hit, Fault::Shutdown(FIRST));
        road.run_until(at(4500))?;
        let record = road.the_hand_over()?;
        if !road.missing().is_empty()
            || (record.cause, record.gap) != (Cause::Goodbye, Duration::ZERO)
        {
            return Err(road.wrong(format!("missing {:?}, {record:?}", road.missing())));
        }
        Ok(())
    });
}

#[test]
fn an_rsu_whose_link_fades_is_left_without_losing_more_than_the_link_does() {
    let gaps = run_all(
        "an_rsu_whose_link_fades_is_left_without_losing_more_than_the_link_does",
        seeds(50),
        |seed| {
            let mut road = both_in_range(seed)?;
            road.add_traffic(at(2500), ms(5000));
            let start = at(4000) + Dice::new(seed, 1).up_to(HEARTBEAT);
            for step in 1..=30u32 {
                let link = Link::lossy(f64::from(step) / 30.0);
                road.world.at(start + HEARTBEAT * step, Fault::Relink(FIRST, CAR, link));
            }
            road.run_until(at(8000))?;
            let record = road.the_hand_over()?;
            let missing: usize = road.missing().iter().map(|(_, missing)| missing).sum();
            let lost = road.lost_on_air();
            // At half of the frames lost a silence may be taken for death before the loss is
            // noticed.
            let is_noticed = matches!(record.cause, Cause::Fading | Cause::Dead);
            if missing > lost || record.lost > 0 || !is_noticed || record.gap > ms(300) {
                let what = format!("missing {:?}, on air {lost}, {record:?}", road.missing());
                return Err(road.wrong(what));
            }
            Ok(record.gap)
        },
    );
    let in_time = gaps.iter().filter(|gap| gap.is_zero()).count();
    println!("fading link left before it was lost: {in_time} of {}", gaps.len());
    println!("fading link, gaps as recorded: {}", spread(gaps.clone()));
    assert!(in_time * 10 >= gaps.len() * 9, "{in_time} of {}", gaps.len());
}

/// A radio that repeats what is sent to one addressee hides how bad a link is until it is gone.
#[test]
fn a_link_that_fades_is_left_although_the_radio_repeats_what_it_loses() {
    let name = "a_link_that_fades_is_left_although_the_radio_repeats_what_it_loses";
    let left = run_all(name, seeds(200), |seed| drive_away(seed, 6, 7, |_| ()));
    let mut losses: Vec<u32> = left.iter().map(|(_, loss, _)| *loss).collect();
    losses.sort_unstable();
    let (median, worst) = (losses[losses.len() / 2], losses[losses.len() - 1]);
    println!(
        "with 7 repetitions a fading link is left at {median} % loss, at {worst} % at the latest"
    );
    let fading = left.iter().filter(|(cause, ..)| *cause == Cause::Fading).count();
    assert!(fading * 10 >= left.len() * 9 && median <= 55, "{fading} of {}", left.len());
    assert!(left.iter().all(|(.., gap)| *gap <= ms(300)));
}

#[test]
fn a_dead_rsu_is_left_within_300_ms_and_the_record_says_how_long_it_took() {
    let gaps = run_all(
        "a_dead_rsu_is_left_within_300_ms_and_the_record_says_how_long_it_took",
        seeds(50),
        |seed| {
            let mut road = both_in_range(seed)?;
            road.add_traffic(at(5500), ms(1500));
            let hit = at(6000) + Dice::new(seed, 1).up_to(HEARTBEAT);
            road.world.at(hit, Fault::Cut(FIRST, CAR));
            road.run_until(at(7500))?;
            let record = road.the_hand_over()?;
            let seen = road.longest_gap(at(5600), at(6900));
            // It cannot know how long after its last sign of life the upstream died.
            let is_true = record.gap + ms(10) >= seen && record.gap <= seen + HEARTBEAT * 2;
            let is_noticed = [Cause::Dead, Cause::Fading].contains(&record.cause);
            if seen > ms(300) || !is_noticed || !is_true {
                return Err(road.wrong(format!("gap {seen:?}, {record:?}")));
            }
            Ok((seen, record.gap))
        },
    );
    let (seen, recorded): (Vec<_>, Vec<_>) = gaps.into_iter().unzip();
    println!("death of the RSU, seen by clients: {}", spread(seen));
    println!("death of the RSU, as recorded: {}", spread(recorded));
}

/// Parked midway between two equal RSUs, one frame in ten lost in every direction.
#[test]
fn parked_between_two_equal_rsus_it_stays_where_it_is() {
    let minutes = 10;
    let changes =
        run_all("parked_between_two_equal_rsus_it_stays_where_it_is", seeds(10), |seed| {
            parked(seed, 0.1, minutes, |_| ())
        });
    println!("parked between two RSUs, changes in {minutes} minutes: {changes:?}");
    let sum: u64 = changes.iter().sum();
    assert!(sum <= changes.len() as u64, "{sum} in {} runs", changes.len());
}

/// Attached to the first RSU, the second heard as well as it.
fn both_in_range(seed: u64) -> Result<Road, Wrong> {
    let mut road = Road::new(seed, 0);
    road.world.link(CAR, FIRST, Link::CLEAN);
    road.run_until(at(1500))?;
    road.world.link(CAR, SECOND, Link::CLEAN);
    Ok(road)
}

/// How the thresholds were found: a table of those tried, for `docs/performance.md`.
#[test]
#[ignore = "an experiment, not a promise: cargo test -p sim --test sim handover::thresholds -- \
            --ignored --nocapture"]
fn thresholds_tried() {
    println!(
        "fading percent rest | parked: changes/10 min | ramp s: left at loss p50, \
         predicted/fading/dead, lost"
    );
    for (fading, percent, rest) in tried() {
        let change = move |config: &mut obu_lib::Config| {
            config.settings.thresholds.strong_percent = percent;
            config.settings.thresholds.fading_millinats = fading;
            config.settings.thresholds.rest_for = ms(rest);
        };
        let mut row = format!("{fading:>6} {percent:>3} {rest:>5} |");
        for loss in [0.05, 0.1, 0.2] {
            let parked =
                run_all("thresholds_tried", seeds(20), |seed| parked(seed, loss, 10, change));
            let mean = parked.iter().sum::<u64>() as f64 / parked.len() as f64;
            row.push_str(&format!(" {mean:>5.2}"));
        }
        for span in [3, 6, 12] {
            let left =
                run_all("thresholds_tried", seeds(60), |seed| drive_away(seed, span, 0, change));
            let mut at: Vec<u32> = left.iter().map(|(_, loss, _)| *loss).collect();
            at.sort_unstable();
            let of = |cause| left.iter().filter(|(c, ..)| *c == cause).count();
            let (predicted, fading, dead) =
                (of(Cause::Predicted), of(Cause::Fading), of(Cause::Dead));
            let gap: u128 = left.iter().map(|(.., gap)| gap.as_millis()).sum();
            row.push_str(&format!(
                " | {span:>2}: {:>3} % {predicted}/{fading}/{dead} gap {:>3}",
                at[at.len() / 2],
                gap / left.len() as u128
            ));
        }
        println!("{row}");
    }
}

/// Thresholds to try: `V2X_SIM_THRESHOLDS`, rows of three numbers separated by commas, or the
/// default.
fn tried() -> Vec<(u32, u32, u64)> {
    let text = std::env::var("V2X_SIM_THRESHOLDS").unwrap_or_else(|_| "9000 80 1000".into());
    let row = |row: &str| {
        let n: Vec<u64> = row.split_whitespace().map(|n| n.parse().unwrap()).collect();
        (n[0] as u32, n[1] as u32, n[2])
    };
    text.split(',').map(row).collect()
}

/// Changes of RSU while parked between two that lose as much.
fn parked(
    seed: u64,
    loss: f64,
    minutes: u32,
    change: impl Fn(&mut obu_lib::Config) + Send + 'static,
) -> Result<u64, Wrong> {
    let mut road = Road::quiet(seed, 0, change);
    road.world.link(CAR, FIRST, Link::lossy(loss));
    road.world.link(CAR, SECOND, Link::lossy(loss));
    let Road { speaker, host, .. } = road;
    let to = Target::Client(host);
    road.world.add_flow(Flow::steady(speaker, to, at(1000), ms(200), minutes * 60 * 5));
    road.run_until(at(u64::from(minutes) * 60_000))?;
    let node = road.world.node(CAR).unwrap();
    Ok(node.counters().rsu_changes - 1)
}

/// The first RSU fades from nothing lost to everything within so many seconds; the second is there.
/// Why the vehicle left, at which loss in per cent, and with which gap.
fn drive_away(
    seed: u64,
    seconds: u32,
    tries_more: u32,
    change: impl Fn(&mut obu_lib::Config) + Send + 'static,
) -> Result<(Cause, u32, Duration), Wrong> {
    let mut road = Road::quiet(seed, 0, change);
    road.world.try_again(tries_more);
    road.world.link(CAR, FIRST, Link::CLEAN);
    road.run_until(at(1500))?;
    road.world.link(CAR, SECOND, Link::lossy(0.02));
    let start = at(5000) + Dice::new(seed, 1).up_to(HEARTBEAT);
    for step in 1..=seconds * 20 {
        let link = Link::lossy(f64::from(step) / f64::from(seconds * 20));
        road.world.at(start + ms(50) * step, Fault::Relink(FIRST, CAR, link));
    }
    let Road { speaker, host, .. } = road;
    let to = Target::Client(host);
    road.world.add_flow(Flow::steady(speaker, to, at(1000), ms(20), (5 + seconds) * 50));
    road.run_until(start + ms(1000) * seconds + ms(1000))?;
    let left = |(time, node, event): &(Timestamp, NodeIndex, Event)| match event {
        Event::UpstreamChanged { from: Some(_), cause, .. } if *node == CAR => {
            Some((*cause, *time))
        }
        _ => None,
    };
    let (cause, time) = road.world.events().iter().find_map(left).unwrap();
    let gap = road.hand_overs().first().map_or(Duration::ZERO, |record| record.gap);
    let percent = time.since(start).as_millis() / u128::from(seconds * 10);
    Ok((cause, u32::try_from(percent).unwrap(), gap))
}
