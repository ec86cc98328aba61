//! Which neighbours are asked now and then whether they hear us, and who comes first.

use std::time::Duration;

use node_lib::control::node::Replies;
use node_lib::messages::Cost;
use node_lib::{Mac, NodeId, Timestamp};

use crate::control::route::candidates::RELAY;

use super::super::route::{Route, is_better};
use super::attachment::RSU_CHANGE_COST;
use super::{AttachedVia, Obu};

/// Other RSUs whose best neighbour is kept proven.
const OTHER_RSUS_READY: usize = 3;

impl Obu {
    /// Keeps the best candidates proven, and the link to the upstream measured. The upstream's
    /// answer is also what shows an OBU whose clients are still that it is heard.
    ///
    /// In a crowd each has few questions. So one that may change something comes before those that
    /// only keep what there is.
    pub(super) fn probe_candidates(&mut self, now: Timestamp, out: &mut Replies) {
        if now < self.probe_candidates_at || !self.context.link_is_up {
            return;
        }
        let Some(attached) = self.attached else { return };
        let Some(route) = self.routes.get(&attached.rsu) else { return };
        let targets = self.probe_targets(now, attached, route);
        let every = route.probe_every(&self.context, targets.len());
        self.probe_candidates_at = now + self.context.random.jitter(every, 25);
        // Whoever was asked longest ago; the upstream twice as often as the others.
        let age = |(mac, _): &(Mac, NodeId)| {
            let probed = self.context.neighbours.get(*mac).and_then(|neighbour| neighbour.probed());
            let age = probed.map_or(Duration::MAX, |probed| now.since(probed));
            if *mac == attached.upstream { age.saturating_mul(2) } else { age }
        };
        let in_turn = || targets.into_iter().rev().max_by_key(age);
        let Some((mac, rsu)) = self.better_if_proven(now, attached).or_else(in_turn) else {
            return;
        };
        self.context.probe(now, mac, rsu, out);
        if mac == attached.upstream
            && let Some(route) = self.routes.get_mut(&rsu)
        {
            route.note_question(now);
        }
    }

    /// The upstream, the best beside it, and the best towards other RSUs.
    fn probe_targets(
        &self,
        now: Timestamp,
        attached: AttachedVia,
        route: &Route,
    ) -> Vec<(Mac, NodeId)> {
        let mut targets = vec![(attached.upstream, attached.rsu)];
        targets.extend(route.ready(&self.context, now).into_iter().map(|mac| (mac, attached.rsu)));
        let others = self.routes.iter().filter(|(rsu, _)| **rsu != attached.rsu);
        let mut others: Vec<_> =
            others.map(|(rsu, route)| (route.likely_cost(&self.context, now), *rsu)).collect();
        others.sort_unstable();
        for (_, rsu) in others.into_iter().take(OTHER_RSUS_READY) {
            let best = self.routes.get(&rsu).and_then(|route| route.best_known(&self.context, now));
            if let Some(mac) = best.filter(|mac| targets.iter().all(|(known, _)| known != mac)) {
                targets.push((mac, rsu));
            }
        }
        targets
    }

    /// The neighbour through which a way would be better by the margin, towards our RSU or another
    /// one, and that has not proven lately that it hears us: the best of them.
    fn better_if_proven(&self, now: Timestamp, attached: AttachedVia) -> Option<(Mac, NodeId)> {
        let ours = self.routes.get(&attached.rsu)?;
        // One that is shunned would be better, and is not gone to: it would take all questions.
        let may_come = |(rsu, _): &(&NodeId, &Route)| self.shunned_until(now, **rsu).is_none();
        let wanted = self.routes.iter().filter(may_come).filter_map(|(rsu, route)| {
            let (relay, change) = if *rsu == attached.rsu {
                (RELAY, Cost::ZERO)
            } else {
                (Cost::ZERO, RSU_CHANGE_COST)
            };
            let (cost, mac) = route.best_is_unproven(&self.context, now, relay)?;
            let here = ours.rank_where(&self.context, now, relay)?.cost;
            is_better(cost.saturating_add(change), here).then_some((cost, mac, *rsu))
        });
        wanted.min().map(|(_, mac, rsu)| (mac, rsu))
    }
}
