//! Every run with at most so many decisions in it, depth first.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::time::Duration;

use foldhash::fast::FixedState;
use node_lib::Timestamp;
use sim::topology::Graph;

use super::check::Broken;
use super::decision::{Decision, Surroundings};
use super::state;
use super::world::{Due, Setup, World};

/// How many decisions of each kind a run may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    pub all: usize,
    pub cuts: usize,
    pub restarts: usize,
    pub frames: usize,
}

impl Depth {
    fn covers(self, other: Self) -> bool {
        self.all >= other.all
            && self.cuts >= other.cuts
            && self.restarts >= other.restarts
            && self.frames >= other.frames
    }

    fn is_used_up(self) -> bool {
        self.all == 0 || self.cuts + self.restarts + self.frames == 0
    }

    fn may_decide_on_frames(self) -> bool {
        self.all > 0 && self.frames > 0
    }

    fn after(self, decision: Decision) -> Self {
        let mut left = Self { all: self.all - 1, ..self };
        match decision {
            Decision::Cut { .. } => left.cuts -= 1,
            Decision::Restart { .. } => left.restarts -= 1,
            _ => left.frames -= 1,
        }
        left
    }
}

/// What is searched.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub depth: Depth,
    /// Cuts and restarts happen at these times, frames are decided on from the first to one
    /// interval after the last.
    pub slots: Vec<Timestamp>,
    /// A cut link works again after this long, or never.
    pub repairs: Vec<Option<Duration>>,
    /// A restarted node may have moved; if not, it has all the links it had.
    pub elsewhere: bool,
    /// A late frame is this late.
    pub delays: Vec<Duration>,
    /// A run goes on for this long after the last slot.
    pub tail: Duration,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub topologies: u64,
    /// Runs to the end, or to a state known already.
    pub runs: u64,
    pub decisions: u64,
    /// Different states at slots.
    pub states: u64,
    /// Frames heard, calls by timers, moments at which everybody sent.
    pub steps: u64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.topologies += other.topologies;
        self.runs += other.runs;
        self.decisions += other.decisions;
        self.states += other.states;
        self.steps += other.steps;
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} topologies, {} runs, {} decisions, {} states, {} steps",
            self.topologies, self.runs, self.decisions, self.states, self.steps
        )
    }
}

/// A run that broke a rule.
#[derive(Clone, Debug)]
pub struct Found {
    pub broken: Broken,
    pub decisions: usize,
    /// The run in words.
    pub story: String,
}

/// The search of one topology.
struct Search<'a> {
    bounds: &'a Bounds,
    graph: &'a Graph,
    /// What a restarted node may hear, by node.
    surroundings: Vec<Vec<Surroundings>>,
    /// States at slots, with the decisions that were left there.
    known: HashMap<(usize, u64), Vec<Depth>, FixedState>,
    path: Vec<(Timestamp, Decision)>,
    work: Work,
}

/// Searches one topology: the first broken rule, if any, and what was done.
pub fn search(graph: &Graph, setup: Setup, bounds: &Bounds) -> (Option<Found>, Work) {
    let neighbours = |node: usize| -> Vec<usize> {
        (0..graph.nodes()).filter(|other| graph.is_linked(node, *other)).collect()
    };
    let surroundings = (0..graph.nodes()).map(|n| match bounds.elsewhere {
        true => Surroundings::all(&neighbours(n)),
        false => Surroundings::all(&[]),
    });
    let surroundings = surroundings.collect();
    let mut search = Search {
        bounds,
        graph,
        surroundings,
        known: HashMap::default(),
        path: Vec::new(),
        work: Work { topologies: 1, ..Work::default() },
    };
    let found = search.follow(World::new(graph, setup), bounds.depth, 0, 0).err();
    search.work.states = search.known.len() as u64;
    (found.map(|found| *found), search.work)
}

impl Search<'_> {
    /// Follows one run to its end, and every other that leaves it from here on. The slot `slot`
    /// comes next, of which the first `tried` decisions were tried.
    fn follow(
        &mut self,
        mut world: World,
        left: Depth,
        mut slot: usize,
        mut tried: usize,
    ) -> Result<(), Box<Found>> {
        let bounds = self.bounds;
        let first = bounds.slots.first().copied().unwrap_or_default();
        let last = bounds.slots.last().copied().unwrap_or_default();
        let end = last + bounds.tail;
        if left.is_used_up() {
            slot = bounds.slots.len();
        }
        loop {
            let until = bounds.slots.get(slot).copied().unwrap_or(end);
            match world.due(until) {
                Some(due) => {
                    let is_in_window = world.now() >= first && world.now() < last + INTERVAL;
                    if let Due::Frame(flight) = due
                        && is_in_window
                        && left.may_decide_on_frames()
                    {
                        self.decide_on_frame(&world, flight, left, slot)?;
                    }
                    self.work.steps += 1;
                    world.happen(due).map_err(|broken| self.found(&world, broken))?;
                }
                None if slot < bounds.slots.len() => {
                    world.wait_until(until);
                    if tried == 0 && self.is_known(&world, left, slot) {
                        break;
                    }
                    self.decide_at_slot(&world, left, slot, tried)?;
                    (slot, tried) = (slot + 1, 0);
                }
                None => break,
            }
        }
        self.work.runs += 1;
        Ok(())
    }

    /// Whether the same state was met with as many decisions left; notes it if not.
    fn is_known(&mut self, world: &World, left: Depth, slot: usize) -> bool {
        let known = self.known.entry((slot, state::hash(world))).or_default();
        if known.iter().any(|before| before.covers(left)) {
            return true;
        }
        known.retain(|before| !left.covers(*before));
        known.push(left);
        false
    }

    fn decide_on_frame(
        &mut self,
        world: &World,
        flight: usize,
        left: Depth,
        slot: usize,
    ) -> Result<(), Box<Found>> {
        let what = world.flight(flight);
        let (kind, from, to) = (what.kind(), what.from, what.to);
        if !what.is_open() || !world.hears(from, to) {
            return Ok(());
        }
        self.take(world, Decision::Lose { flight, kind, from, to }, left, slot, 0)?;
        for by in self.bounds.delays.clone() {
            self.take(world, Decision::Delay { flight, kind, from, to, by }, left, slot, 0)?;
            self.take(world, Decision::Double { flight, kind, from, to, by }, left, slot, 0)?;
        }
        Ok(())
    }

    fn decide_at_slot(
        &mut self,
        world: &World,
        left: Depth,
        slot: usize,
        tried: usize,
    ) -> Result<(), Box<Found>> {
        let decisions = self.decisions_at_slot();
        for (number, decision) in decisions.into_iter().enumerate().skip(tried) {
            let (may, works) = match decision {
                Decision::Cut { from, to, both, .. } => {
                    (left.cuts > 0, world.hears(from, to) || (both && world.hears(to, from)))
                }
                _ => (left.restarts > 0, true),
            };
            if may && works {
                self.take(world, decision, left, slot, number + 1)?;
            }
        }
        Ok(())
    }

    fn decisions_at_slot(&self) -> Vec<Decision> {
        let mut all = Vec::new();
        for (a, b) in self.graph.edges() {
            for repaired_after in self.bounds.repairs.iter().copied() {
                for (from, to, both) in [(a, b, true), (a, b, false), (b, a, false)] {
                    all.push(Decision::Cut { from, to, both, repaired_after });
                }
            }
        }
        for (node, surroundings) in self.surroundings.iter().enumerate() {
            all.extend(
                surroundings.iter().map(|hearing| Decision::Restart { node, hearing: *hearing }),
            );
        }
        all
    }

    /// Decides so, and follows the run.
    fn take(
        &mut self,
        world: &World,
        decision: Decision,
        left: Depth,
        slot: usize,
        tried: usize,
    ) -> Result<(), Box<Found>> {
        self.work.decisions += 1;
        self.path.push((world.now(), decision));
        let mut world = world.clone();
        world.apply(decision).map_err(|broken| self.found(&world, broken))?;
        self.follow(world, left.after(decision), slot, tried)?;
        self.path.pop();
        Ok(())
    }

    fn found(&self, world: &World, broken: Broken) -> Box<Found> {
        let mut story = String::new();
        let _ = writeln!(story, "links {}; 0 is the RSU", edges(self.graph));
        for (time, decision) in &self.path {
            let _ = writeln!(story, "  {time}  {decision}");
        }
        let _ = write!(story, "  {}  {broken}", world.now());
        Box::new(Found { broken, decisions: self.path.len(), story })
    }
}

/// The links in words.
pub fn edges(graph: &Graph) -> String {
    graph.edges().map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>().join(" ")
}

/// Between two heartbeats.
const INTERVAL: Duration = Duration::from_millis(100);
