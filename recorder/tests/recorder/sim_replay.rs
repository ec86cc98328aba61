//! A town of twenty nodes, each of which is recorded: replayed alone, each does the same again, to
//! the byte; and one altered constant is found where it first matters.
//!
//! `V2X_SIM_RUNS` seeds (quick: 2), `V2X_SIM_SECONDS` long each (quick: 6), or the one in
//! `V2X_SIM_SEED`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::control::positions::Located;
use node_lib::messages::control::position::Coordinates;
use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use recorder::header::Role as Recordable;
use recorder::read::{Item, ReadError, Recording};
use recorder::record::What;
use recorder::replay::{self, Outcome};
use recorder::tape::SNAP_MIN;
use rsu_lib::Rsu;
use sim::topology::Graph;
use sim::{Dice, Fault, Flow, Link, NodeIndex, Place, Role, Target, World};

use crate::living::recorded;

const NODES: usize = 20;
const RSUS: usize = 2;

fn number(name: &str, quick: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(quick, |text| text.parse().unwrap_or_else(|_| panic!("{name}: expected a number")))
}

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("V2X_SIM_SEED") {
        Ok(_) => {
            let seed = number("V2X_SIM_SEED", 0);
            seed..seed + 1
        }
        Err(_) => 0..number("V2X_SIM_RUNS", 2),
    }
}

fn seconds() -> u64 {
    number("V2X_SIM_SECONDS", 6)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn radio(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 0, n as u8 + 1])
}

/// Lives in a town with restarts, cuts, radios that fail and traffic both ways. Returns the
/// recording of every start.
fn live(seed: u64, snap: u32, directory: &Path) -> Vec<PathBuf> {
    let graph = Graph::random_connected(NODES, 0.12, &mut Dice::new(seed, 77));
    let mut world = World::new(seed);
    world.report_unacknowledged(true);
    let lan = world.add_lan();
    let host = world.add_client(Mac([2, 0, 0, 2, 0, 1]), Place::Lan(lan));
    let (mut nodes, mut riders) = (Vec::new(), Vec::new());
    for n in 0..NODES {
        let place = directory.join(format!("{n:02}"));
        let node = if n < RSUS {
            let settings = rsu_lib::Settings { share_position: true, ..Default::default() };
            let make = |settings: &rsu_lib::Settings, start: &Start, now| {
                Rsu::new(settings.config(start), now)
            };
            let factory = recorded(place, Recordable::Rsu, settings, snap, make);
            let node = world.add_node(Role::Rsu, radio(n), factory);
            world.plug(node, lan);
            node
        } else {
            let settings = obu_lib::Settings { share_position: n % 3 != 0, ..Default::default() };
            let make = |settings: &obu_lib::Settings, start: &Start, now| {
                Obu::new(settings.config(start), now)
            };
            let factory = recorded(place, Recordable::Obu, settings, snap, make);
            let node = world.add_node(Role::Obu, radio(n), factory);
            let rider = Mac([2, 0, 0, 1, 0, n as u8 + 1]);
            riders.push(world.add_client(rider, Place::Tap(node)));
            node
        };
        nodes.push(node);
    }
    world.link_all(&graph, Link { duplicate: 0.01, ..Link::lossy(0.05) });
    let millis = seconds() * 1000;
    let count = (millis / 50) as u32;
    // To whom nobody is, who is looked for everywhere.
    let nobody = Target::Nobody(Mac([2, 9, 9, 9, 9, 9]));
    for rider in riders {
        world.add_flow(Flow::steady(rider, Target::Client(host), at(500), ms(50), count));
        world.add_flow(Flow::steady(host, Target::Client(rider), at(520), ms(50), count));
        // Long enough to be cut.
        for (from, to, start, every) in [
            (rider, Target::Client(host), 510, 90),
            (host, Target::Client(rider), 530, 90),
            (rider, Target::Everyone, 540, 1100),
        ] {
            let flow = Flow::steady(from, to, at(start), ms(every), (millis / every) as u32);
            world.add_flow(Flow { size: 400, ..flow });
        }
    }
    for (to, start) in [(Target::Everyone, 550), (nobody, 560)] {
        let flow = Flow::steady(host, to, at(start), ms(70), (millis / 70) as u32);
        world.add_flow(Flow { size: 400, ..flow });
    }
    let mut dice = Dice::new(seed, 78);
    for time in (1500..millis).step_by(700) {
        let node = nodes[dice.index(NODES)];
        let fault = match dice.index(4) {
            0 => Fault::Restart(node, ms(200)),
            1 => Fault::Shutdown(node),
            2 => Fault::RadioDown(node),
            _ => Fault::RadioUp(node),
        };
        world.at(at(time), fault);
        // Whoever was told to stop, or lost its radio, is back after a while.
        world.at(at(time + 600), Fault::RadioUp(node));
        world.at(at(time + 900), Fault::Restart(node, ms(100)));
    }
    // Receivers, some of which lose their fix now and then; those that share say it on the air.
    for time in (0..millis).step_by(500) {
        world.run_until(at(time)).unwrap();
        for node in nodes.iter().filter(|node| (time / 500 + node.0 as u64).is_multiple_of(2)) {
            let latitude = 48.0 + time as f64 * 1e-7 + node.0 as f64 * 1e-3;
            let at = Coordinates::new(latitude, 11.5, Some(3.0)).unwrap();
            let located = Located { at, is_fixed: node.0 < RSUS };
            world.locate(*node, Some(located).filter(|_| dice.index(10) > 0));
        }
    }
    world.run_until(at(millis)).unwrap();
    assert!(nodes.contains(&NodeIndex(NODES - 1)));
    drop(world);
    let mut starts = Vec::new();
    for node in std::fs::read_dir(directory).unwrap() {
        for start in std::fs::read_dir(node.unwrap().path()).unwrap() {
            starts.push(start.unwrap().path());
        }
    }
    starts.sort();
    starts
}

#[test]
fn every_node_of_a_town_replayed_alone_gives_the_same_bytes() {
    assert_eq!(all_again(0), 0, "frames were cut");
}

/// Of clients' frames that were only passed on there are the first 96 bytes: the node does the same
/// without the rest.
#[test]
fn with_a_snap_length_they_do_the_same_again() {
    let cut = all_again(SNAP_MIN);
    println!("{cut} frames were cut");
    assert!(cut > 1000 * seeds().count(), "{cut}");
}

/// Replays every start of every node. Returns how many frames that went in are not whole.
fn all_again(snap: u32) -> usize {
    let (mut starts, mut outputs, mut cut) = (0, 0, 0);
    for seed in seeds() {
        let directory = tempfile::tempdir().unwrap();
        for start in live(seed, snap, directory.path()) {
            let recording = Recording::open(std::slice::from_ref(&start)).unwrap();
            let Outcome { difference, ended, inputs, outputs: same, .. } =
                replay::replay(&recording).unwrap();
            if let Some(difference) = difference {
                panic!("seed {seed}, {}: {difference}", start.display());
            }
            assert_eq!(ended, None, "seed {seed}, {}", start.display());
            assert!(inputs > 0, "seed {seed}, {}", start.display());
            starts += 1;
            outputs += same;
            cut += cut_inputs(&recording);
        }
    }
    println!("{starts} starts replayed, {outputs} outputs the same");
    assert!(starts > NODES * seeds().count(), "some restarted: {starts}");
    assert!(outputs > 1000 * seeds().end.saturating_sub(seeds().start));
    cut
}

fn cut_inputs(recording: &Recording) -> usize {
    let mut cut = 0;
    recording
        .read(|item| {
            if let Item::Record(record) = item
                && !record.what.is_output()
                && let Some(frame) = record.what.frame()
            {
                cut += usize::from(!frame.is_whole());
            }
            Ok::<_, ReadError>(true)
        })
        .unwrap();
    cut
}

/// All that comes out of a node for the inputs of a recording.
fn outputs(recording: &Recording, mut node: Box<dyn Node>) -> Vec<Vec<u8>> {
    let (mut out, mut all) = (Replies::new(), Vec::new());
    recording
        .read(|item| {
            let Item::Record(record) = item else { return Ok(true) };
            let now = record.at;
            match &record.what {
                What::FromRadio(frame) => node.handle_wire(now, &frame.bytes, &mut out),
                What::FromTap(frame) => node.handle_tap(now, &frame.bytes, &mut out),
                What::FromTapLate(frame) => node.handle_tap_late(now, &frame.bytes, &mut out),
                What::Unacknowledged(frame) => {
                    node.handle_unacknowledged(now, &frame.bytes, &mut out);
                }
                What::Link(event) => node.handle_link(now, *event, &mut out),
                What::Timeout => node.handle_timeout(now, &mut out),
                What::Shutdown => node.handle_shutdown(now, &mut out),
                What::Clients(clients) => node.handle_clients(now, clients, &mut out),
                _ => return Ok(true),
            }
            all.extend(out.take().into_iter().map(ReplyType::into_frame));
            while let Some(event) = node.poll_event() {
                all.push(format!("{event:?}").into_bytes());
            }
            Ok::<_, ReadError>(true)
        })
        .unwrap();
    all
}

/// One constant is another in the program that replays: what is reported is the first output that
/// is not what it was.
#[test]
fn an_altered_constant_is_found_at_its_first_effect() {
    for seed in seeds() {
        let found = found_in(seed);
        assert!(found > 0, "seed {seed}: in no recording does the constant matter");
    }
}

/// In how many recordings of this town an altered constant matters: each time it is found where it
/// does first.
fn found_in(seed: u64) -> u32 {
    let directory = tempfile::tempdir().unwrap();
    let mut found = 0;
    for start in live(seed, 0, directory.path()) {
        let recording = Recording::open(std::slice::from_ref(&start)).unwrap();
        if recording.header().role != Recordable::Obu {
            continue;
        }
        let altered = || {
            let mut header = recording.header().clone();
            header.settings["cached_candidates"] = 2.into();
            replay::make(&header).unwrap()
        };
        let then = outputs(&recording, replay::make(recording.header()).unwrap());
        let now = outputs(&recording, altered());
        let same = then.iter().zip(&now).take_while(|(then, now)| then == now).count();
        let outcome = replay::replay_with(&recording, altered()).unwrap();
        if then == now {
            assert!(outcome.difference.is_none(), "{}", start.display());
            continue;
        }
        found += 1;
        assert_eq!(outcome.outputs, same as u64, "{}", start.display());
        let difference = outcome.difference.unwrap();
        assert!(difference.recorded.is_some() || difference.replayed.is_some());
        let text = difference.to_string();
        assert!(text.contains("first difference at record"), "{text}");
    }
    found
}
