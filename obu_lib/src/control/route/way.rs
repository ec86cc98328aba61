//! The ways to an RSU as an operator reads them.

use node_lib::NodeId;
use node_lib::Timestamp;
use node_lib::control::snapshot::{self, RouteStanding, age_ms, milli, span_ms};
use node_lib::messages::Cost;

use crate::control::route::candidates::{Candidate, Judge};

use super::super::context::Context;
use super::Route;
use super::upstream::margin_under;

impl Route {
    /// All candidates: usable ones first, and then the best first.
    pub(crate) fn ways(&self, context: &Context, now: Timestamp) -> Vec<snapshot::KnownCandidate> {
        let judge = self.judge(context, now);
        let used = self.upstream_candidate().map(|upstream| judge.ranker.rank(upstream).cost);
        let order = |c: &&Candidate| (!judge.is_usable(c), judge.ranker.rank(c));
        let mut sorted: Vec<_> = self.candidates.iter().collect();
        sorted.sort_by_key(order);
        sorted.into_iter().map(|c| self.way(context, now, &judge, used, c)).collect()
    }

    fn way(
        &self,
        context: &Context,
        now: Timestamp,
        judge: &Judge<'_>,
        used: Option<Cost>,
        candidate: &Candidate,
    ) -> snapshot::KnownCandidate {
        let rank = judge.ranker.rank(candidate);
        let prediction = self.prediction(context, now, candidate);
        let neighbour = context.neighbours.get(candidate.mac);
        let link =
            neighbour.map_or(Cost::ONE, |neighbour| neighbour.link_cost(now, self.interval()));
        let is_used = self.upstream == Some(candidate.mac);
        let used = used.filter(|_| !is_used);
        let transmissions = |cost: Cost| milli(cost.transmissions());
        let dbm = |cdbm: i32| milli(f64::from(cdbm) / 100.0);
        snapshot::KnownCandidate {
            id: candidate.id,
            mac: candidate.mac,
            is_used,
            obstacles: judge.obstacles(candidate).collect(),
            hops: rank.hops,
            cost: transmissions(rank.cost),
            advertised_cost: transmissions(candidate.advert.cost),
            link_cost: transmissions(link),
            relay_cost: transmissions(judge.ranker.relay_cost(candidate)),
            margin: used.map(|used| milli(used.transmissions() - rank.cost.transmissions())),
            margin_needed: used.map(|used| transmissions(margin_under(used))),
            better_for_ms: candidate.better_since.map(|since| age_ms(now, since)),
            heard_ms: age_ms(now, candidate.heard),
            proven_ms: neighbour.and_then(|n| n.proven).map(|at| age_ms(now, at)),
            heard_ratio: prediction.heard.map(|percent| milli(f64::from(percent) / 100.0)),
            strain_nat: f64::from(prediction.strain) / 1000.0,
            signal_dbm: prediction.signal.map(|signal| dbm(signal.mean_cdbm)),
            signal_ahead_dbm: prediction.signal.map(|signal| dbm(signal.ahead_cdbm)),
            via: Some(candidate.advert.via).filter(|via| *via != NodeId::NONE),
            children: candidate.children,
            mtu_bytes: candidate.advert.mtu,
        }
    }

    /// The route with all its candidates, in this standing.
    pub(crate) fn view(
        &self,
        context: &Context,
        now: Timestamp,
        standing: RouteStanding,
        shunned_until: Option<Timestamp>,
    ) -> snapshot::KnownRoute {
        let upstream = self.upstream_candidate();
        let left = |until: Timestamp| span_ms(until.since(now));
        snapshot::KnownRoute {
            rsu: self.rsu,
            standing,
            upstream: upstream.map(|upstream| upstream.id),
            hops: upstream.map(Candidate::hops_through),
            heard_ms: age_ms(now, self.newest_at),
            boot: self.newest.boot.0,
            seq: self.newest.seq.0,
            interval_ms: span_ms(self.interval()),
            obus: self.obus_known(),
            quiet_for_ms: self.is_quiet(context, now).then(|| left(self.quiet_until(context))),
            shunned_for_ms: shunned_until.map(left),
            is_contested: self.claim.is_some(),
            position: context.positions.of(now, self.rsu),
            candidates: self.ways(context, now),
        }
    }

    /// The upstream is in doubt: frames go another way as well.
    pub(crate) fn is_doubted(&self) -> bool {
        self.doubt.is_some()
    }

    /// The upstream last brought news, or confirmed its route.
    pub(crate) fn evidence(&self) -> Timestamp {
        self.evidence
    }
}
