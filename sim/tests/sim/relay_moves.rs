//! A relay that has another upstream says so once, and everybody behind it is reached over the new
//! way: those behind it say nothing, however many they are.
//!
//! `V2X_SIM_RUNS` for more seeds than the 8 of every run.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::messages::control::Control;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, NodeId, Timestamp};
use sim::topology::Graph;
use sim::{Fault, Link, NodeIndex};

use crate::common::{Town, Wrong, at, broken, ms, radio, run_all, seeds, spread, wrong};

/// R – A, B – M – fifty vehicles.
const A: NodeIndex = NodeIndex(1);
const B: NodeIndex = NodeIndex(2);
const MOVES: usize = 3;
const BEHIND: std::ops::Range<usize> = 4..54;

/// The LAN sends to each vehicle this often.
const EVERY: Duration = ms(10);

fn graph() -> Graph {
    let up = [(0, 1), (0, 2), (1, MOVES), (2, MOVES)];
    Graph::new(BEHIND.end, up.into_iter().chain(BEHIND.map(|n| (MOVES, n))))
}

/// Words (replies and announcements) that began at each node after `from`.
fn words(town: &Town, from: Timestamp, to: Timestamp) -> BTreeMap<NodeId, usize> {
    let mut words = BTreeMap::new();
    for sent in town.world.air().iter().filter(|sent| from <= sent.time && sent.time < to) {
        let message = Message::try_from(&sent.frame[..]).unwrap();
        let origin = match message.packet {
            PacketType::Control(Control::HeartbeatReply(said)) if said.acknowledge => said.origin,
            PacketType::Control(Control::Announcement(said)) => said.origin,
            _ => continue,
        };
        if Mac(origin.0) == message.from {
            *words.entry(origin).or_default() += 1;
        }
    }
    words
}

#[test]
fn fifty_vehicles_behind_a_relay_that_moves_are_reached_at_once_and_say_nothing() {
    let test = "fifty_vehicles_behind_a_relay_that_moves_are_reached_at_once_and_say_nothing";
    let cut_off = run_all(test, seeds(8), |seed| {
        let mut town = Town::new(seed, &graph(), &[0], Link::CLEAN);
        // Whose client has never spoken announces none, and what is for it would be flooded.
        for n in BEHIND {
            town.up(NodeIndex(n), at(2000), EVERY, 1);
        }
        town.world.run_until(at(5000)).map_err(broken)?;
        let moves = NodeIndex(MOVES);
        let Some(left) = town.upstream(moves) else { return Err("no way".into()) };
        let taken = if left == A { B } else { A };
        let frames = 200;
        let flows: Vec<_> =
            BEHIND.map(|n| (town.down(NodeIndex(n), at(5000), EVERY, frames), n)).collect();
        town.world.at(at(6000), Fault::Cut(left, moves));
        town.world.keep_air();
        town.world.run_until(at(7500)).map_err(broken)?;
        if town.upstream(moves) != Some(taken) {
            return Err(wrong(&town, "the relay has not moved".into()));
        }
        let has_moved = |event: &Event| matches!(event, Event::UpstreamChanged { to: Some(_), .. });
        let events = town.world.events().iter();
        let moved = events
            .filter(|(time, node, event)| *time > at(6000) && *node == moves && has_moved(event))
            .map(|(time, ..)| *time)
            .next();
        let Some(moved) = moved else { return Err(wrong(&town, "no change".into())) };
        let others = town.changes(at(6000)).iter().filter(|(_, node, _)| *node != moves).count();
        // The two it may go through ask for an answer now and then, whether anybody moves or not:
        // every third reply, so once at most in this time.
        let mut said = words(&town, moved, at(7500));
        let in_turn = [A, B].map(|n| NodeId::from(radio(n.0)));
        said.retain(|origin, times| *times > 1 || !in_turn.contains(origin));
        let by_the_relay = said.get(&radio(MOVES).into()).copied().unwrap_or(0);
        if others > 0 || by_the_relay != 1 || said.len() != 1 {
            let what = format!("{others} others changed; words: {said:?}");
            return Err(wrong(&town, what));
        }
        // From the change on; what was sent to the relay it could not hear any more is lost.
        let last_lost = |(flow, n): &(_, usize)| {
            let rider = town.riders[&NodeIndex(*n)];
            town.world.flow(*flow).unwrap().last_lost(rider, at(5000), at(7000))
        };
        let last = flows.iter().filter_map(last_lost).max();
        let after = last.map_or(Duration::ZERO, |lost| lost.since(moved));
        if after > ms(100) {
            return Err(wrong(&town, format!("frames lost {after:?} after the relay moved")));
        }
        Ok::<_, Wrong>(after)
    });
    println!("frames lost after the relay had another upstream: {}", spread(cut_off));
}
