//! Which RSU the OBU is attached to, and keeping the alternatives proven.

use std::time::Duration;

use node_lib::control::event::{Cause, Event};
use node_lib::control::node::Replies;
use node_lib::messages::Cost;
use node_lib::{Mac, NodeId, Timestamp};

use super::super::route::{Loss, Route, is_better};
use super::super::timing;
use super::{Attached, Obu};

/// Changing RSU costs an announcement and a flood on the LAN: another RSU must be so much cheaper
/// than another upstream to the same one.
const RSU_CHANGE_COST: Cost = Cost(32);

/// Other RSUs whose best neighbour is kept proven.
const OTHER_RSUS_READY: usize = 3;

impl Obu {
    /// Chooses the RSU, and notices when the upstream changed.
    pub(super) fn choose_attachment(&mut self, now: Timestamp) {
        let core = &self.core;
        let rank = |route: &Route| route.rank(core, now);
        let current = self.attached.map(|attached| attached.rsu);
        let stays = current.and_then(|rsu| Some((rsu, self.routes.get(&rsu).and_then(rank)?)));
        let others = self.routes.iter().filter(|(rsu, _)| Some(**rsu) != current);
        let patience = self.routes.values().filter_map(|route| route.patience(core, now)).min();
        let best = others
            .filter_map(|(rsu, route)| Some((rank(route)?, *rsu)))
            .filter(|(rank, _)| stays.is_some() || patience.is_none_or(|most| rank.hops <= most))
            .min();
        let mut cause = Cause::First;
        let chosen = match (stays, best) {
            (None, best) => best.map(|(_, rsu)| rsu),
            (Some((rsu, _)), None) => {
                self.better_rsu = None;
                Some(rsu)
            }
            (Some((rsu, ours)), Some((theirs, other))) => {
                let is_better = !theirs.is_late
                    && is_better(theirs.cost.saturating_add(RSU_CHANGE_COST), ours.cost);
                let since = match self.better_rsu {
                    Some((candidate, since)) if candidate == other && is_better => Some(since),
                    _ => is_better.then_some(now),
                };
                self.better_rsu = since.map(|since| (other, since));
                let settled = self
                    .routes
                    .get(&rsu)
                    .is_none_or(|route| now.since(route.changed_at()) >= timing::SETTLE_FOR);
                let is_leaving = self
                    .routes
                    .get(&rsu)
                    .and_then(Route::parent_candidate)
                    .is_some_and(|candidate| candidate.leaving);
                if is_leaving {
                    cause = Cause::Goodbye;
                    Some(other)
                } else if settled
                    && since.is_some_and(|since| now.since(since) >= timing::BETTER_FOR)
                {
                    cause = Cause::Better;
                    Some(other)
                } else {
                    Some(rsu)
                }
            }
        };
        let upstream = |rsu: NodeId| self.routes.get(&rsu).and_then(Route::parent);
        let chosen = chosen.and_then(|rsu| Some(Attached { rsu, upstream: upstream(rsu)? }));
        // A lost parent is reported once, whoever takes its place.
        let loss = current.and_then(|rsu| self.routes.get_mut(&rsu)).and_then(Route::take_loss);
        if chosen != self.attached {
            self.attach(now, chosen, loss, cause);
        }
    }

    fn attach(&mut self, now: Timestamp, to: Option<Attached>, loss: Option<Loss>, cause: Cause) {
        let from = self.reported;
        self.attached = to;
        let attachment = self.attachment();
        self.reported = attachment;
        self.better_rsu = None;
        let cause = loss.map_or(cause, |loss| loss.cause);
        let silence = loss.map_or(Duration::ZERO, |loss| loss.silence);
        self.core.counters.upstream_changes += 1;
        if from.map(|from| from.rsu) != attachment.map(|to| to.rsu) {
            self.core.counters.rsu_changes += 1;
        }
        self.core.event(Event::UpstreamChanged { from, to: attachment, cause, silence });
        match to {
            Some(to) => {
                if let Some(route) = self.routes.get_mut(&to.rsu) {
                    let seq = route.newest().seq;
                    self.registration.begin(&mut self.core, now, route.reply_every());
                    self.registration.note_heartbeat(now, seq);
                }
            }
            None => {
                self.registration.end();
                self.solicitation.begin(&mut self.core, now);
            }
        }
    }

    /// Keeps the best candidates proven, and the link to the upstream measured.
    pub(super) fn probe_candidates(&mut self, now: Timestamp, out: &mut Replies) {
        if now < self.probe_candidates_at || !self.core.link_is_up {
            return;
        }
        let Some(attached) = self.attached else { return };
        let Some(route) = self.routes.get(&attached.rsu) else { return };
        // The upstream, the best beside it, and the best towards other RSUs.
        let mut targets = vec![(attached.upstream, attached.rsu)];
        targets.extend(route.ready(&self.core, now).into_iter().map(|mac| (mac, attached.rsu)));
        let others = self.routes.iter().filter(|(rsu, _)| **rsu != attached.rsu);
        let mut others: Vec<_> =
            others.map(|(rsu, route)| (route.likely_cost(&self.core, now), *rsu)).collect();
        others.sort_unstable();
        for (_, rsu) in others.into_iter().take(OTHER_RSUS_READY) {
            let best = self.routes.get(&rsu).and_then(|route| route.best_known(&self.core, now));
            if let Some(mac) = best.filter(|mac| targets.iter().all(|(known, _)| known != mac)) {
                targets.push((mac, rsu));
            }
        }
        let every = route.probe_every(targets.len());
        self.probe_candidates_at = now + self.core.random.jitter(every, 25);
        // Whoever was asked longest ago; the upstream twice as often as the others.
        let age = |(mac, _): &(Mac, NodeId)| {
            let probed = self.core.neighbours.get(*mac).and_then(|neighbour| neighbour.probed);
            let age = probed.map_or(Duration::MAX, |probed| now.since(probed));
            if *mac == attached.upstream { age.saturating_mul(2) } else { age }
        };
        if let Some((mac, rsu)) = targets.into_iter().rev().max_by_key(age) {
            self.core.probe(now, mac, rsu, out);
        }
    }
}
