//! A drive that its nodes recorded, run again in the simulator: about the same happens, and with a
//! worse policy worse.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use recorder::cli::{self, TraceCommand, TraceError};
use recorder::header::Role as Recordable;
use recorder::tape::SNAP_MIN;
use rsu_lib::Rsu;
use sim::{Fault, Flow, Link, NodeIndex, Place, Role, Target, World};
use simulator::campaign::{Campaign, Variant, records};
use simulator::measure::Suite;
use simulator::scenario::{Override, Source};
use simulator::summary::{Spread, Summary};

use crate::living::recorded;

const RSU: NodeIndex = NodeIndex(0);
const LEFT: NodeIndex = NodeIndex(1);
const RIGHT: NodeIndex = NodeIndex(2);
const CAR: NodeIndex = NodeIndex(3);

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A car behind two relays, of which now the one falls silent and now the other, so that it changes
/// between them; one restarts. Every node is recorded, each with a clock of its own.
fn drive(directory: &Path, seconds: u64, is_busy: bool) {
    let mut world = World::new(7);
    let lan = world.add_lan();
    let server = world.add_client(Mac([2, 0, 0, 2, 0, 1]), Place::Lan(lan));
    for n in 0..4_u8 {
        let mac = Mac([2, 0, 0, 0, 0, n + 1]);
        let place = directory.join(n.to_string());
        if n == 0 {
            let make = |settings: &rsu_lib::Settings, start: &Start, now| {
                Rsu::new(settings.config(start), now)
            };
            let settings = rsu_lib::Settings::default();
            let factory = recorded(place, Recordable::Rsu, settings, SNAP_MIN, make);
            let rsu = world.add_node(Role::Rsu, mac, factory);
            world.plug(rsu, lan);
        } else {
            let make = |settings: &obu_lib::Settings, start: &Start, now| {
                Obu::new(settings.config(start), now)
            };
            let settings = obu_lib::Settings::default();
            let factory = recorded(place, Recordable::Obu, settings, 0, make);
            let obu = world.add_node(Role::Obu, mac, factory);
            let rider = world.add_client(Mac([2, 0, 0, 1, 0, n]), Place::Tap(obu));
            let frames = if is_busy && obu == CAR { (seconds - 1) as u32 * 50 } else { 0 };
            for (from, to) in [(rider, server), (server, rider)] {
                let every = Duration::from_millis(20);
                world.add_flow(Flow::steady(from, Target::Client(to), at(900), every, frames));
            }
        }
    }
    for relay in [LEFT, RIGHT] {
        world.link(RSU, relay, Link::lossy(0.02));
        world.link(relay, CAR, Link::lossy(0.05));
    }
    for (turn, second) in (4..seconds).step_by(4).enumerate() {
        let relay = [LEFT, RIGHT][turn % 2];
        world.at(at(second * 1000), Fault::Cut(relay, CAR));
        world.at(at(second * 1000 + 2000), Fault::Heal(relay, CAR));
    }
    world.at(at(seconds * 500), Fault::Restart(RIGHT, Duration::from_millis(1500)));
    world.run_until(at(seconds * 1000)).unwrap();
}

/// The directories of all lives.
fn lives(directory: &Path) -> Vec<PathBuf> {
    let mut lives = Vec::new();
    for node in std::fs::read_dir(directory).unwrap() {
        let node = node.unwrap().path();
        if node.is_dir() {
            lives.extend(std::fs::read_dir(node).unwrap().map(|life| life.unwrap().path()));
        }
    }
    lives.sort();
    lives
}

fn links(paths: Vec<PathBuf>, output: PathBuf) -> Result<String, TraceError> {
    let mut said = Vec::new();
    let command = TraceCommand::Links { paths, output, slot: Duration::from_millis(500) };
    cli::run(&command, &mut said)?;
    Ok(String::from_utf8(said).unwrap())
}

/// Runs the scenario with these settings, over ten seeds.
fn run(source: &Source, set: &[&str]) -> Summary {
    let set: Vec<Override> = set.iter().map(|typed| typed.parse().unwrap()).collect();
    let campaign = Campaign {
        variants: Variant::all(source, &set, &[]).unwrap(),
        seed: Some(1),
        seeds: Some(10),
        jobs: 2,
        suite: Suite::Daemons,
        trace: None,
        stop: Arc::new(AtomicBool::new(false)),
    };
    Summary::of(&records(&campaign.run(|_| ()), 0))
}

/// What is recorded of a drive, and the scenario that is made of it.
fn recorded_drive(directory: &Path, is_busy: bool) -> (Source, Vec<f64>) {
    drive(directory, 60, is_busy);
    let output = directory.join("drive.toml");
    let said = links(lives(directory), output.clone()).unwrap();
    println!("{said}");
    assert!(said.contains(": 4 nodes, 8 directions of links, "), "{said}");
    // The relay that restarts ends and begins again, and nobody else.
    let written = std::fs::read_to_string(&output).unwrap();
    let faults: Vec<_> = written.lines().filter(|line| line.starts_with("what = ")).collect();
    assert_eq!(faults, ["what = \"crash\"", "what = \"start\""], "{written}");
    let source = Source::open(&output).unwrap();
    let recorded = source.with(&[]).unwrap().recorded();
    assert!(recorded.len() >= 10, "{recorded:?}");
    (source, recorded)
}

/// Hand-overs a run, and their gaps, as the vehicles wrote them down, with these settings.
fn gaps(source: &Source, set: &[&str]) -> (f64, Spread) {
    let summary = run(source, set);
    assert_eq!(summary.runs, 10, "a rule was broken");
    let own = summary.all_hand_overs.own;
    let a_run = own.records as f64 / summary.runs as f64;
    println!("{set:?}: {a_run} hand-overs a run, {:?} ms", own.gap_ms);
    (a_run, own.gap_ms.unwrap())
}

#[test]
fn the_same_policy_gives_about_the_gaps_recorded_and_a_worse_one_more() {
    // A busy vehicle notices earlier that its upstream is gone.
    let mut medians = Vec::new();
    for is_busy in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (source, recorded) = recorded_drive(directory.path(), is_busy);
        let was = Spread::of(recorded.clone()).unwrap();
        println!("{} recorded, {was:?} ms", recorded.len());
        let (a_run, gap) = gaps(&source, &[]);
        let all = recorded.len() as f64;
        assert!((all * 0.6..=all * 1.6).contains(&a_run), "{a_run} a run, {all} were recorded");
        assert!((gap.p50 - was.p50).abs() < 30.0, "{gap:?} where {was:?} was recorded");
        // Nobody else is ready when the upstream dies.
        let (_, worse) = gaps(&source, &["settings.obu.cached_candidates=0"]);
        assert!(worse.p50 > gap.p50, "{worse:?} with no candidates, {gap:?} with some");
        medians.push(gap.p50);
    }
    assert!(medians[1] + 50.0 < medians[0], "{medians:?}");
}

#[test]
fn recordings_that_are_no_drive_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    drive(directory.path(), 6, true);
    let all = lives(directory.path());
    let of = |which: &[&str], output: &str| {
        let is_it = |path: &&PathBuf| {
            let node = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
            node.is_some_and(|node| which.contains(&node))
        };
        let paths = all.iter().filter(is_it).cloned().collect();
        links(paths, directory.path().join(output)).unwrap_err().to_string()
    };
    assert!(of(&["0"], "a.toml").contains("recordings of 1 nodes; expected those of two"));
    assert!(of(&["1", "2", "3"], "a.toml").contains("no recording of a road-side unit"));
    assert!(of(&["0", "3"], "a.toml").contains("nobody heard anybody"));
    assert!(of(&["0", "1"], "a.csv").contains("ends in .toml"));
}
