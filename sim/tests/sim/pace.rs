//! An RSU whose channel is full sends rarer, and as often as it was told to when there is room
//! again.

use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::event::Event;
use sim::radio::{Access, Csma, RadioModel};
use sim::topology::Graph;
use sim::{Flow, Link, Location, NodeIndex, Target};

use crate::common::{Town, Wrong, at, broken, run_all, seeds, wrong};

/// OBUs around the RSU.
const OBUS: usize = 8;

/// They send from 2 to 10 s, more than the radio carries.
const FULL: std::ops::Range<u64> = 2..10;

/// An RSU and OBUs in one cell, on a radio with contention.
fn cell(seed: u64) -> Town {
    let mut town = Town::new(seed, &Graph::complete(OBUS + 1), &[0], Link::CLEAN);
    town.world.set_radio(RadioModel {
        access: Access::Csma(Csma::DEFAULT),
        ..RadioModel::disk(300.0, 0.0)
    });
    town.world.tolerate_revisits(2);
    for n in 0..=OBUS {
        town.world.place(NodeIndex(n), Location::new(10.0 * n as f64, 0.0));
    }
    let riders: Vec<_> = town.riders.values().copied().collect();
    for rider in riders {
        let (every, seconds) = (Duration::from_millis(2), FULL.end - FULL.start);
        let count = 500 * seconds as u32;
        let flow =
            Flow::steady(rider, Target::Client(town.host), at(FULL.start * 1000), every, count);
        town.world.add_flow(Flow { size: 400, ..flow });
    }
    town
}

/// When the RSU's heartbeats changed their pace, in ms, and how many ms are between them then.
fn changes(town: &Town) -> Vec<(u64, u64)> {
    let ms = |at: Timestamp| at.as_micros() / 1000;
    let events = town.world.events().iter();
    events
        .filter_map(|(when, _, event)| match event {
            Event::PaceChanged { every, .. } => Some((ms(*when), every.as_millis() as u64)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_rsu_sends_rarer_while_its_channel_is_full() {
    run_all(
        "an_rsu_sends_rarer_while_its_channel_is_full",
        seeds(5),
        |seed| -> Result<(), Wrong> {
            let mut town = cell(seed);
            town.world.run_until(at(20_000)).map_err(broken)?;
            let changes = changes(&town);
            let [slower, usual] = changes[..] else {
                return Err(wrong(&town, format!("{changes:?}")));
            };
            let is_in = |(when, _): (u64, u64), s: u64| (s * 1000..s * 1000 + 3000).contains(&when);
            let is_right = [slower.1, usual.1] == [200, 100]
                && is_in(slower, FULL.start)
                && is_in(usual, FULL.end);
            let without =
                (1..=OBUS).filter(|n| town.world.attachment(NodeIndex(*n)).is_none()).count();
            if !is_right || without > 0 {
                return Err(wrong(&town, format!("{changes:?}, {without} without an RSU")));
            }
            Ok(())
        },
    );
}

#[test]
fn an_rsu_that_nobody_tells_how_busy_its_channel_is_sends_as_it_was_told_to() {
    let mut town = cell(1);
    town.world.report_busy(false);
    town.world.run_until(at(12_000)).unwrap();
    assert_eq!(changes(&town), []);
}
