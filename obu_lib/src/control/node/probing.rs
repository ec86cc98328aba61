//! Which neighbours are asked now and then whether they hear us.

use std::time::Duration;

use node_lib::control::node::Replies;
use node_lib::{Mac, NodeId, Timestamp};

use super::Obu;

/// Other RSUs whose best neighbour is kept proven.
const OTHER_RSUS_READY: usize = 3;

impl Obu {
    /// Keeps the best candidates proven, and the link to the upstream measured. The upstream's
    /// answer is also what shows an OBU whose clients are still that it is heard.
    pub(super) fn probe_candidates(&mut self, now: Timestamp, out: &mut Replies) {
        if now < self.probe_candidates_at || !self.context.link_is_up {
            return;
        }
        let Some(attached) = self.attached else { return };
        let Some(route) = self.routes.get(&attached.rsu) else { return };
        // The upstream, the best beside it, and the best towards other RSUs.
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
        let every = route.probe_every(&self.context, targets.len());
        self.probe_candidates_at = now + self.context.random.jitter(every, 25);
        // Whoever was asked longest ago; the upstream twice as often as the others.
        let age = |(mac, _): &(Mac, NodeId)| {
            let probed = self.context.neighbours.get(*mac).and_then(|neighbour| neighbour.probed());
            let age = probed.map_or(Duration::MAX, |probed| now.since(probed));
            if *mac == attached.upstream { age.saturating_mul(2) } else { age }
        };
        if let Some((mac, rsu)) = targets.into_iter().rev().max_by_key(age) {
            self.context.probe(now, mac, rsu, out);
            if mac == attached.upstream
                && let Some(route) = self.routes.get_mut(&rsu)
            {
                route.note_question(now);
            }
        }
    }
}
