//! What must hold at every moment of every run.

use std::fmt;
use std::time::Duration;

use obu_lib::control::route::feasibility::Distance;
use sim::Packet;

use super::world::{Machine, RSU, World};
use crate::common::radio;

/// The quiet period after a start, 3.5 intervals, as `docs/architecture.md` promises it.
pub const QUIET_FOR: Duration = Duration::from_millis(350);

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The ways to the RSU lead in a circle.
    Cycle(Vec<usize>),
    /// One copy of a data packet came to a node it had been to.
    VisitedTwice { node: usize, packet: Packet },
    /// A node sends through another that did not advertise better than the node itself did.
    NotBetter { node: usize, ours: Option<Distance>, via: usize, theirs: Option<Distance> },
}

impl Broken {
    /// A frame could go round, or went round.
    pub fn is_loop(&self) -> bool {
        matches!(self, Self::Cycle(_) | Self::VisitedTwice { .. })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distance = |d: &Option<Distance>| match d {
            Some(d) => format!("heartbeat {}, {} hops", d.order, d.hops),
            None => "nothing".to_owned(),
        };
        match self {
            Self::Cycle(way) => {
                let way: Vec<_> = way.iter().map(usize::to_string).collect();
                write!(f, "LOOP {}", way.join(" → "))
            }
            Self::VisitedTwice { node, packet } => {
                write!(f, "LOOP a packet came to {node} again: {packet:?}")
            }
            Self::NotBetter { node, ours, via, theirs } => write!(
                f,
                "{node}, which advertised {}, sends through {via}, which advertised {}",
                distance(ours),
                distance(theirs)
            ),
        }
    }
}

fn advertised(world: &World, index: usize) -> Option<Distance> {
    match &world.nodes[index] {
        Machine::Obu(obu) => obu.advertised_for(radio(RSU).into()),
        Machine::Rsu(_) => None,
    }
}

/// No circle; and, which is why there is none, along each way what was advertised gets better.
pub fn check_ways(world: &World) -> Result<(), Broken> {
    for node in 1..world.nodes.len() {
        let Some(via) = world.ways[node] else { continue };
        let mut way = vec![node];
        let mut at = via;
        while way.len() <= world.nodes.len() {
            way.push(at);
            if at == node {
                return Err(Broken::Cycle(way));
            }
            match world.ways[at] {
                Some(next) => at = next,
                None => break,
            }
        }
        if via == RSU || !world.policy().feasibility || !world.policy().quiet_period {
            continue;
        }
        let (ours, theirs) = (advertised(world, node), advertised(world, via));
        let is_better = match (ours, theirs) {
            (Some(ours), Some(theirs)) => theirs.is_better_than(ours),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        // Restarted, it forgot what it advertised; until we notice, it uses nobody but the RSU.
        let is_harmless = world.is_quiet(via) && matches!(world.ways[via], None | Some(RSU));
        if !is_better && !is_harmless {
            return Err(Broken::NotBetter { node, ours, via, theirs });
        }
    }
    Ok(())
}
