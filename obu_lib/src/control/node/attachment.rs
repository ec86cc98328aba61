//! Which RSU the OBU is attached to.

use std::time::Duration;

use node_lib::control::deadline::Deadline;
use node_lib::control::event::{Cause, Event};
use node_lib::control::next_hop::NextHop;
use node_lib::messages::Cost;
use node_lib::{Mac, NodeId, Timestamp};

use crate::control::route::candidates::Rank;

use super::super::route::{Loss, Predicted, Route, ends, is_better};
use super::super::timing;
use super::{AttachedVia, Obu};

/// Clocks that run before an RSU is left that still works.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changing {
    /// Since when another has been better.
    better: Option<Predicted<NodeId>>,
    /// Since when the trend has spoken for another.
    predicted: Option<Predicted<NodeId>>,
    /// Since when there is a reason to go, and the other is waited for.
    planned: Option<Predicted<NodeId>>,
    /// An RSU that did not answer, and until when any other is preferred to it.
    shunned: Option<(NodeId, Timestamp)>,
    /// When the RSU on standby was last worth it.
    standby_wanted: Timestamp,
}

/// An RSU that can be reached, and how good the way is. The best is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RankedRsu {
    rank: Rank,
    rsu: NodeId,
}

/// Changing RSU costs an announcement and a flood on the LAN: another RSU must be so much cheaper
/// than another upstream to the same one.
pub(super) const RSU_CHANGE_COST: Cost = Cost(32);

impl Obu {
    /// Chooses the RSU, and notices when the upstream changed.
    pub(super) fn choose_attachment(&mut self, now: Timestamp) {
        let current = self.attached.map(|attached| attached.rsu);
        let stays = current.and_then(|rsu| Some(RankedRsu { rsu, rank: self.rank_of(now, rsu)? }));
        let next = self.next_rsu(now, current);
        let has_turned = self.leave_unanswered_upstream(now, current, next);
        let next = next.filter(|next| stays.is_some() || self.is_near_enough(now, next.rank));
        let mut cause = Cause::First;
        let chosen = match (stays, next) {
            (None, next) => next.map(|next| next.rsu),
            (Some(ours), None) => {
                let shunned = self.changing.shunned;
                self.changing = Changing { shunned, ..Changing::default() };
                Some(ours.rsu)
            }
            (Some(ours), Some(next)) if !has_turned && self.is_in_vain(now, next) => {
                tracing::debug!(
                    rsu = %ours.rsu, next = %next.rsu, "RSU does not answer, and is shunned"
                );
                self.changing.shunned = Some((ours.rsu, now + timing::SHUN_FOR));
                cause = Cause::Dead;
                Some(next.rsu)
            }
            (Some(ours), Some(next)) => match self.reason_to_go(now, ours, next) {
                Some(reason) if self.may_go(now, next.rsu, reason) => {
                    cause = reason;
                    Some(next.rsu)
                }
                Some(_) => Some(ours.rsu),
                None => {
                    self.changing.planned = None;
                    Some(ours.rsu)
                }
            },
        };
        self.choose_standby(now, stays, next);
        let chosen =
            chosen.and_then(|rsu| Some(AttachedVia { rsu, upstream: self.upstream_of(rsu)? }));
        // Either the route has left the upstream we used, or we leave the RSU.
        let loss = self.attached.and_then(|used| {
            let route = self.routes.get(&used.rsu)?;
            let has_left = route.upstream() != Some(used.upstream);
            let leaves = current != chosen.map(|to| to.rsu) && stays.is_some();
            let loss = if has_left { route.last_loss() } else { None };
            loss.or(leaves.then(|| route.leave(now, cause)))
        });
        if chosen != self.attached {
            self.attach(now, chosen, loss, cause);
        }
    }

    /// Our RSU does not answer. Another upstream is tried first, for the relay may keep what we say
    /// to itself; then another RSU; and where there is none, one upstream after the other.
    fn leave_unanswered_upstream(
        &mut self,
        now: Timestamp,
        rsu: Option<NodeId>,
        next: Option<RankedRsu>,
    ) -> bool {
        if !self.registration.is_unanswered() {
            return false;
        }
        let has_other = next.is_some_and(|next| self.is_in_vain(now, next));
        let route = rsu.and_then(|rsu| self.routes.get_mut(&rsu));
        route.is_some_and(|route| route.leave_unanswered(&self.context, now, has_other))
    }

    /// Our RSU does not answer, and this one may.
    fn is_in_vain(&self, now: Timestamp, next: RankedRsu) -> bool {
        self.registration.is_unanswered() && !next.rank.is_late && !self.is_shunned(now, next.rsu)
    }

    fn is_shunned(&self, now: Timestamp, rsu: NodeId) -> bool {
        self.shunned_until(now, rsu).is_some()
    }

    /// Until when any other RSU is preferred to this one.
    pub(super) fn shunned_until(&self, now: Timestamp, rsu: NodeId) -> Option<Timestamp> {
        let (shunned, until) = self.changing.shunned?;
        (shunned == rsu && now < until).then_some(until)
    }

    /// An idle OBU in a crowd that has just lost its upstream does not go to any RSU there is.
    fn is_near_enough(&self, now: Timestamp, rank: Rank) -> bool {
        let hold_down =
            self.routes.values().filter_map(|route| route.hold_down(&self.context, now)).min();
        hold_down.is_none_or(|most| rank.hops <= most)
    }

    pub(super) fn upstream_of(&self, rsu: NodeId) -> Option<Mac> {
        self.routes.get(&rsu).and_then(Route::upstream)
    }

    /// The longest packet that passes all radios we know of between this RSU and us, in bytes.
    pub(super) fn mtu_to(&self, rsu: NodeId) -> u16 {
        self.routes
            .get(&rsu)
            .map_or(self.context.radio.said_mtu(), |route| route.mtu(&self.context))
    }

    /// Where to send data for this RSU if this neighbour is the next on the way.
    #[inline]
    pub(in crate::control) fn hop(&self, rsu: NodeId, mac: Mac) -> NextHop {
        let route = self.routes.get(&rsu);
        NextHop { mac, mtu: route.map_or(u16::MAX, |route| route.mtu_beyond(mac)) }
    }

    fn rank_of(&self, now: Timestamp, rsu: NodeId) -> Option<Rank> {
        self.routes.get(&rsu).and_then(|route| route.rank(&self.context, now))
    }

    /// The best RSU beside the one we are attached to. The one that expects us already is preferred
    /// unless another is clearly better.
    fn next_rsu(&self, now: Timestamp, current: Option<NodeId>) -> Option<RankedRsu> {
        let others = self.routes.iter().filter(|(rsu, _)| Some(**rsu) != current);
        let stays = |(rsu, route): (&NodeId, &Route)| {
            route.upstream_candidate().filter(|upstream| !upstream.is_leaving())?;
            Some(RankedRsu { rank: route.rank(&self.context, now)?, rsu: *rsu })
        };
        // One that does not answer is for those that hear no other.
        let is_shunned =
            |way: &RankedRsu| self.is_shunned(now, way.rsu) && current != Some(way.rsu);
        let best = others.filter_map(stays).min_by_key(|way| (is_shunned(way), *way))?;
        if current.is_some() && is_shunned(&best) {
            return None;
        }
        let expected = self.registration.standby_at().filter(|rsu| Some(*rsu) != current);
        let expected =
            expected.and_then(|rsu| Some(RankedRsu { rank: self.rank_of(now, rsu)?, rsu }));
        let is_as_good =
            |way: &RankedRsu| !way.rank.is_late && !is_better(best.rank.cost, way.rank.cost);
        Some(expected.filter(is_as_good).unwrap_or(best))
    }

    /// Why to leave an RSU that still works for this one. *Better* needs margin and time,
    /// *predicted* and *fading* a strong alternative, and none follows a change at once.
    fn reason_to_go(&mut self, now: Timestamp, ours: RankedRsu, next: RankedRsu) -> Option<Cause> {
        let context = &self.context;
        let (route, other) = (self.routes.get(&ours.rsu)?, self.routes.get(&next.rsu)?);
        let is_there = !next.rank.is_late;
        let thresholds = context.thresholds;
        let (upstream, there) = (route.upstream_candidate()?, other.upstream_candidate()?);
        let is_better = is_there
            && is_better(next.rank.cost.saturating_add(RSU_CHANGE_COST), ours.rank.cost)
            && !ends(context, now, there);
        // A link that gets bad is as bad for the other RSU.
        let is_another_link = route.upstream() != other.upstream();
        let link = (is_another_link && is_there).then(|| route.prediction(context, now, upstream));
        let yields = link.is_some_and(|link| link.yields(context, now, upstream, (other, there)));
        let changing = &mut self.changing;
        changing.better = is_better.then(|| Predicted::keep(changing.better, next.rsu, now));
        changing.predicted = yields.then(|| Predicted::keep(changing.predicted, next.rsu, now));
        let since_change = now.since(route.changed_at());
        let has_lasted = |clock: Option<Predicted<NodeId>>, span| {
            clock.is_some_and(|clock| now.since(clock.since) >= span)
        };
        if upstream.is_leaving() {
            Some(Cause::Goodbye)
        } else if has_lasted(changing.better, timing::BETTER_FOR) {
            Some(Cause::Better)
        } else if since_change >= thresholds.rest_for
            && has_lasted(changing.predicted, thresholds.trend_for)
        {
            Some(Cause::Predicted)
        } else if since_change >= thresholds.rest_for
            && let Some(cause) = link.and_then(|link| link.why_leave(context, now))
            && other.prediction(context, now, there).is_strong(&thresholds)
        {
            Some(cause)
        } else {
            None
        }
    }

    /// The next RSU expects us; or has not answered for so long that we do not wait.
    fn may_go(&mut self, now: Timestamp, next: NodeId, cause: Cause) -> bool {
        if !self.context.policy.standby || self.registration.is_expected_at(next) {
            return true;
        }
        let planned = Predicted::keep(self.changing.planned, next, now);
        self.changing.planned = Some(planned);
        now.since(planned.since) >= timing::wait_for_standby(cause)
    }

    /// Which RSU is told that we may come: the next one, while it is nearly as good as ours, is
    /// becoming better, or ours will not last.
    fn choose_standby(
        &mut self,
        now: Timestamp,
        stays: Option<RankedRsu>,
        next: Option<RankedRsu>,
    ) {
        let may_stand_by = self.context.policy.standby && !self.context.is_leaving;
        let Some(ours) = stays.filter(|_| may_stand_by) else {
            return;
        };
        // In a crowd only those whose clients would notice stand by.
        let next = next.filter(|_| !self.context.may_defer(now));
        let wanted =
            next.filter(|next| self.is_worth_standby(ours.rank, *next)).map(|next| next.rsu);
        let current = self.registration.standby_at();
        if wanted.is_some() {
            self.changing.standby_wanted = now;
        } else if current.is_some() && now.since(self.changing.standby_wanted) < timing::STANDBY_FOR
        {
            return;
        }
        if wanted != current {
            tracing::debug!(?wanted, ?current, ways = %self.weighed(now), "standby chosen");
            self.registration.stand_by(now, wanted);
        }
    }

    fn is_worth_standby(&self, here: Rank, next: RankedRsu) -> bool {
        if self.parting.is_some_and(|parting| parting.rsu == next.rsu) {
            // It still forwards what is late, as the one we were attached to.
            return false;
        }
        let is_nearly_as_good = !is_better(here.cost, next.rank.cost);
        let planned = &self.changing;
        let is_coming = [planned.better, planned.predicted, planned.planned]
            .iter()
            .any(|clock| clock.is_some_and(|clock| clock.whom == next.rsu));
        !next.rank.is_late && (is_nearly_as_good || is_coming)
    }

    /// When a clock of [`Obu::choose_attachment`] next runs out.
    pub(super) fn changing_deadline(&self, now: Timestamp) -> Option<Deadline> {
        let Changing { better, predicted, planned, .. } = self.changing;
        let thresholds = &self.context.thresholds;
        let end = |clock: Option<Predicted<NodeId>>, span, reason| {
            clock.map(|clock| Deadline::new(clock.since + span, reason))
        };
        const WAITS: &str = "do not wait for the next RSU any longer";
        let clocks = [
            end(better, timing::BETTER_FOR, "go to the better RSU"),
            end(predicted, thresholds.trend_for, "go to the RSU that will be better"),
            end(planned, timing::wait_for_standby(Cause::Goodbye), WAITS),
            end(planned, timing::wait_for_standby(Cause::Predicted), WAITS),
        ];
        clocks.into_iter().flatten().filter(|clock| clock.at > now).reduce(Deadline::or)
    }

    fn attach(
        &mut self,
        now: Timestamp,
        to: Option<AttachedVia>,
        loss: Option<Loss>,
        cause: Cause,
    ) {
        if let Some(left) = self.attached {
            self.context.last = Some((left.rsu, now));
        }
        let from = self.reported;
        let left = self.attached.map(|attached| attached.upstream);
        self.attached = to;
        let attachment = self.attachment();
        self.reported = attachment;
        let shunned = self.changing.shunned;
        self.changing = Changing { standby_wanted: now, shunned, ..Changing::default() };
        let cause = loss.map_or(cause, |loss| loss.cause);
        let silence = loss.map_or(Duration::ZERO, |loss| loss.silence);
        tracing::debug!(%cause, ?silence, ways = %self.weighed(now), "upstream chosen");
        self.context.counters.upstream_changes += 1;
        if from.map(|from| from.rsu) != attachment.map(|to| to.rsu) {
            self.context.counters.rsu_changes += 1;
        }
        self.context.event(Event::UpstreamChanged { from, to: attachment, cause, silence });
        self.note_change(now, from, attachment, left, loss, cause);
        match to {
            Some(to) => {
                if let Some(route) = self.routes.get_mut(&to.rsu) {
                    route.begin_watch(&self.context, now);
                    let (seq, heard_at) = (route.newest().seq, route.newest_at());
                    let every = route.reply_every();
                    let via = route.id_of(to.upstream).unwrap_or(NodeId::NONE);
                    self.registration.begin(&mut self.context, now, (to.rsu, via), every);
                    self.registration.note_heartbeat(heard_at, seq);
                }
            }
            None => {
                self.registration.end();
                self.solicitation.begin(&mut self.context, now);
            }
        }
    }
}
