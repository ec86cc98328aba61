//! Who has a route, compared with who could have one: [`Routes`].

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::{NodeId, Timestamp};
use sim::topology::Graph;
use sim::{NodeIndex, Role, World};

use super::record::{CandidateSamples, RouteShare};
use crate::cast::{Cast, radio_mac};
use crate::scenario::Scenario;

/// Samples so far.
pub(super) struct Routes {
    /// Samples count from here on, and up to the end: not while the last frames arrive.
    warm_up: Timestamp,
    end: Timestamp,
    grace: Duration,
    obus: Vec<NodeIndex>,
    rsus: Vec<NodeIndex>,
    ids: BTreeMap<NodeId, NodeIndex>,
    /// Since when each OBU can reach an RSU.
    reachable_since: BTreeMap<NodeIndex, Timestamp>,
    reach: ReachTimes,
    share: RouteShare,
    candidates: CandidateSamples,
}

/// Numbers of candidates told apart; a node keeps no more than 16 per RSU.
const CANDIDATES_MAX: usize = 33;

impl Routes {
    pub(super) fn new(scenario: &Scenario, cast: &Cast) -> Self {
        let ids = (0..cast.nodes.len()).map(|n| (NodeId::from(radio_mac(n)), NodeIndex(n)));
        Self {
            warm_up: scenario.warm_up.after_start(),
            end: scenario.duration.after_start(),
            grace: scenario.grace.0,
            obus: cast.of_role(Role::Obu).collect(),
            rsus: cast.of_role(Role::Rsu).collect(),
            ids: ids.collect(),
            reachable_since: BTreeMap::new(),
            reach: ReachTimes::default(),
            share: RouteShare::default(),
            candidates: CandidateSamples {
                histogram: vec![0; CANDIDATES_MAX],
                ..CandidateSamples::default()
            },
        }
    }

    pub(super) fn sample(&mut self, world: &World) {
        let now = world.now();
        let counts = (self.warm_up..=self.end).contains(&now);
        let graph = world.graph();
        let roots = self.rsus.iter().filter(|&&rsu| world.node(rsu).is_some());
        let hops = graph.hops_to(roots.map(|rsu| rsu.0));
        let hops_of = |node: usize| hops.get(node).copied().flatten();
        let mut no_farther = vec![0_u32; hops.len()];
        for (a, b) in graph.edges() {
            if let (Some(of_a), Some(of_b)) = (hops_of(a), hops_of(b)) {
                for (node, is_one) in [(a, of_b <= of_a), (b, of_a <= of_b)] {
                    if let Some(count) = no_farther.get_mut(node) {
                        *count += u32::from(is_one);
                    }
                }
            }
        }
        for &obu in &self.obus {
            let hops_least = hops_of(obu.0);
            self.reach.note(now, obu, hops_least.is_some());
            let Some(hops_least) = hops_least else {
                self.reachable_since.remove(&obu);
                self.share.unreachable += u64::from(counts && world.node(obu).is_some());
                continue;
            };
            let since = *self.reachable_since.entry(obu).or_insert(now);
            if !counts || now.since(since) < self.grace {
                continue;
            }
            self.share.reachable += 1;
            if world.attachment(obu).is_some()
                && let Some(count) = world.candidates(obu)
            {
                self.share.routed += 1;
                if let Some(hops) = self.working_hops(world, &graph, obu) {
                    self.share.working += 1;
                    self.share.hops += hops;
                    self.share.hops_least += hops_least as u64;
                }
                if let Some(samples) =
                    self.candidates.histogram.get_mut(count.min(CANDIDATES_MAX - 1))
                {
                    *samples += 1;
                }
                if no_farther.get(obu.0).is_some_and(|&count| count >= 3) {
                    self.candidates.could_have_three += 1;
                    self.candidates.have_three += u64::from(count >= 3);
                }
            }
        }
    }

    /// After how many hops upstreams lead from here to the RSU it is attached to, over links that
    /// are there. A relay may be attached to another one: its way to this one counts.
    fn working_hops(&self, world: &World, graph: &Graph, obu: NodeIndex) -> Option<u64> {
        let rsu = world.attachment(obu)?.rsu;
        let end = *self.ids.get(&rsu)?;
        let mut at = obu;
        for hops in 0..HOPS_MAX {
            if at == end {
                return Some(hops);
            }
            let next = *self.ids.get(&world.upstream_for(at, rsu)?)?;
            if !graph.is_linked(at.0, next.0) {
                return None;
            }
            at = next;
        }
        None
    }

    /// Who could reach an RSU when.
    pub(super) fn reach(&self) -> &ReachTimes {
        &self.reach
    }

    pub(super) fn share(&self) -> RouteShare {
        self.share
    }

    pub(super) fn candidates(self) -> CandidateSamples {
        self.candidates
    }
}

/// Which OBUs could reach an RSU when, as far as samples tell.
#[derive(Debug, Default)]
pub(super) struct ReachTimes {
    /// Times at which each OBU was found to have come into reach or to have left it, in turns. All
    /// begin out of reach.
    changes: BTreeMap<NodeIndex, Vec<Timestamp>>,
}

impl ReachTimes {
    fn note(&mut self, now: Timestamp, obu: NodeIndex, is_reachable: bool) {
        let changes = self.changes.entry(obu).or_default();
        if is_reachable == changes.len().is_multiple_of(2) {
            changes.push(now);
        }
    }

    /// Could it reach an RSU at this time, and at the samples before and after?
    pub(super) fn could_reach(&self, obu: NodeIndex, time: Timestamp, sample: Duration) -> bool {
        let Some(changes) = self.changes.get(&obu) else { return false };
        let was = |time| changes.partition_point(|change| *change <= time) % 2 == 1;
        was(time) && was(time + sample)
    }
}

/// Hop limit of the data plane.
const HOPS_MAX: u64 = 16;
