//! Whether two states are the same: a hash over everything in them that decides what comes next.
//!
//! Nodes are read through their derived `Debug`, so that a new field counts without anybody
//! thinking of it here. Left out, by name, is what cannot change which neighbour is upstream or
//! when.

use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use super::world::World;

/// `Type.field`s that do not count.
const LEFT_OUT: &[&str] = &[
    // Counted or reported only.
    "Context.counters",
    "Context.events",
    "Rsu.counters",
    "Rsu.events",
    "Rsu.sent",
    "Obu.reported",
    "Obu.parting",
    "Obu.unsettled",
    "Rsu.held_reports",
    "Route.at_risk",
    "Route.loss",
    // Luck: depends on node and time alone, see `World`.
    "Context.random",
    "Rsu.random",
    // Rate limits far above what a few nodes say.
    "Context.questions",
    "Context.announcing",
    "Obu.complaints",
    "Obu.answers",
    "Obu.conflicts",
    "Rsu.questions",
    "Rsu.tellings",
    "Rsu.answers",
    "Rsu.conflicts",
    // Only of a crowd's questions.
    "Obu.answer_scope",
    "Rsu.answer_scope",
    // Averages and counts of hellos and probes, and what is made of them. They rank candidates that
    // are all feasible; that any other of them is chosen is brought about by cuts.
    "Context.hello",
    "Rsu.hello",
    "Neighbour.hello",
    "Neighbour.history",
    "Neighbour.history_len",
    "Neighbour.received",
    "Neighbour.answered",
    "Neighbour.round_trips",
    "Neighbour.unanswered",
    "Neighbour.signal",
    "Neighbour.strain",
    "Advert.cost",
    // Only tells when it is worth looking whether any is too old.
    "Neighbours.oldest",
    "Candidates.oldest",
    // Paces questions; it moves one by a sixth of an interval at most.
    "Probes.last",
    "Probes.sample_at",
    // Told only.
    "Probes.round_trip_us",
    "Route.ask_at",
    "Solicitation.nonces",
    // Matter after 3 s or more, longer than a run.
    "Context.active_at",
    "Context.obus_at",
    "Route.active_at",
    "Route.consider_at",
    "Route.lost_at",
    "Route.changed_at",
    "Candidate.better_since",
    // Where clients' frames go, not where the ways lead; duplicates are dropped by number.
    "Obu.clients",
    "Obu.duplicates",
    "Obu.floods",
    "Obu.registration",
    "Obu.seq",
    "Flight.serial",
    "Rsu.clients",
    "Rsu.duplicates",
    "Rsu.floods",
    "Rsu.obus",
    "Rsu.late",
    "Rsu.leaving",
    "Rsu.addresses",
    "Rsu.repeats",
    "Rsu.seq",
    "Rsu.wired",
    "Child.since",
    "ChildsRsu.heard",
    // Of all the above; being called early is harmless.
    "Obu.deadline",
    "Obu.due",
    "Rsu.deadline",
];

/// Fields of which only the variant counts: a proof is believed for 3 s, longer than a run.
const ONLY_WHETHER: &[&str] = &["Neighbour.proven"];

/// The hash of a state.
pub fn hash(world: &World) -> u64 {
    let mut flights: Vec<_> = world.flights.iter().collect();
    flights.sort_by_key(|flight| flight.key());
    let mut repairs = world.repairs.clone();
    repairs.sort_unstable();
    let mut sink = Sink {
        hasher: FixedState::with_seed(1).build_hasher(),
        types: Vec::new(),
        last: String::new(),
        skipping: None,
        pieces_left: None,
    };
    for machine in &world.nodes {
        // A sink cannot fail.
        let _ = write!(sink, "{machine:?}");
    }
    let _ = write!(sink, "{:?}{:?}{:?}", world.links, repairs, flights);
    sink.hasher.finish()
}

/// Takes derived `Debug` text piece by piece, as it is written.
struct Sink<H> {
    hasher: H,
    /// The types whose fields are being written, outermost first; empty for lists and maps.
    types: Vec<String>,
    last: String,
    /// A field at this depth is left out.
    skipping: Option<usize>,
    /// Pieces of the present field that count, when only its variant does.
    pieces_left: Option<u8>,
}

impl<H: Hasher> Sink<H> {
    /// Keeps track of what is inside what.
    fn nest(&mut self, piece: &str) {
        for c in piece.bytes() {
            match c {
                b'(' | b'[' | b'{' => {
                    let is_struct = piece == " { ";
                    let name =
                        if is_struct { std::mem::take(&mut self.last) } else { String::new() };
                    self.types.push(name);
                }
                b')' | b']' | b'}' => {
                    self.types.pop();
                }
                _ => {}
            }
        }
    }

    fn is_field_in(&self, piece: &str, list: &[&str]) -> bool {
        let Some(within) = self.types.last().filter(|within| !within.is_empty()) else {
            return false;
        };
        list.iter().any(|full| full.split_once('.') == Some((within, piece)))
    }
}

impl<H: Hasher> Write for Sink<H> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let depth = self.types.len();
        if self.skipping == Some(depth) && piece == ", " {
            self.skipping = None;
        }
        self.nest(piece);
        if self.skipping.is_some_and(|depth| self.types.len() < depth) {
            self.skipping = None;
        }
        if self.skipping.is_some() {
            return Ok(());
        }
        if self.is_field_in(piece, LEFT_OUT) {
            self.skipping = Some(depth);
            return Ok(());
        }
        if self.is_field_in(piece, ONLY_WHETHER) {
            // The colon and the name of the variant.
            self.pieces_left = Some(2);
        } else if let Some(left) = self.pieces_left {
            self.pieces_left = left.checked_sub(1).filter(|left| *left > 0);
            if self.pieces_left.is_none() {
                self.skipping = Some(depth);
            }
        }
        self.hasher.write(piece.as_bytes());
        self.last.clear();
        self.last.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use node_lib::Timestamp;
    use obu_lib::Policy;
    use sim::FrameKind;
    use sim::topology::Graph;

    use super::super::decision::Decision;
    use super::super::world::{Due, Setup};
    use super::*;
    use crate::common::{at, ms};

    fn run(world: &mut World, until: Timestamp) {
        while let Some(due) = world.due(until) {
            world.happen(due).unwrap();
        }
        world.wait_until(until);
    }

    /// Or the search would follow each run that lost one frame to its end.
    #[test]
    fn a_lost_heartbeat_makes_another_state_and_is_forgotten_three_intervals_later() {
        let mut heard = World::new(&Graph::chain(3), Setup { policy: Policy::default(), draw: 0 });
        run(&mut heard, at(600));
        let (flight, from, to) = loop {
            match heard.due(at(800)).unwrap() {
                Due::Frame(n) if heard.flight(n).kind() == FrameKind::HEARTBEAT => {
                    break (n, heard.flight(n).from, heard.flight(n).to);
                }
                due => heard.happen(due).unwrap(),
            }
        };
        let mut lost = heard.clone();
        lost.apply(Decision::Lose { flight, kind: FrameKind::HEARTBEAT, from, to }).unwrap();
        let soon = heard.now() + ms(20);
        run(&mut heard, soon);
        run(&mut lost, soon);
        assert_ne!(hash(&heard), hash(&lost));
        let later = soon + ms(300);
        run(&mut heard, later);
        run(&mut lost, later);
        assert_eq!(hash(&heard), hash(&lost));
    }
}
