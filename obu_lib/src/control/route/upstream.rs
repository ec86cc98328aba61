//! Through whom to the RSU: watching the upstream, leaving it, choosing the next.

use std::time::Duration;

use node_lib::control::deadline::Deadline;
use node_lib::control::event::Cause;
use node_lib::control::node::Replies;
use node_lib::messages::Cost;
use node_lib::{Mac, Timestamp};

use super::super::context::Context;
use super::super::timing::{self, Watch};
use super::Route;
use super::prediction::{Predicted, ends};
use crate::Thresholds;
use crate::control::link::neighbour::Neighbour;
use crate::control::route::candidates::{Candidate, Rank, fresh_for};

impl Route {
    pub(super) fn check_upstream(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        is_ours: bool,
        out: &mut Replies,
    ) {
        let Some(upstream) = self.upstream else { return };
        let Some(candidate) = self.candidates.get(upstream).copied() else {
            return self.lose_upstream(now, Cause::Dead);
        };
        if candidate.advert.via == context.id() {
            return self.drop_candidate(now, upstream, Cause::Withdrawn);
        }
        // Who stood still itself first hears what was said meanwhile.
        let may_judge = now >= context.grace_until;
        if may_judge && now.since(self.progress) >= timing::stuck_after(self.interval()) {
            context.counters.upstream_dead += 1;
            return self.drop_candidate(now, upstream, Cause::Dead);
        }
        if !self.is_watched(now, is_ours) {
            if may_judge && now.since(self.evidence) >= self.lapsed_after() {
                self.drop_candidate(now, upstream, Cause::Dead);
            }
            return;
        }
        let silence = now.since(self.believed_since());
        let watch = self.watch(context, now);
        if silence < watch.late_after {
            self.asked = 0;
            self.ask_at = now;
            self.is_to_ask = false;
            self.end_doubt();
            return;
        }
        let is_dead = (self.asked >= timing::ASKED_MIN && silence >= watch.dead_after)
            || silence >= watch.silence_max;
        if is_dead && may_judge {
            return self.give_up(context, now, upstream);
        }
        if now < self.ask_at {
            return;
        }
        if self.asked == 0 && !self.is_to_ask {
            self.is_to_ask = true;
            self.ask_at = now + context.random.up_to(watch.ask_within);
            if now < self.ask_at {
                return;
            }
        }
        if !self.may_ask(context, now, watch) {
            return self.do_without_asking(context, now, upstream, watch);
        }
        if self.asked + 1 == timing::DOUBTED_AFTER && !self.may_defer(context, now) {
            // If it is dead we want to know at once who else is alive.
            for mac in self.ready(context, now) {
                if !self.is_congested(context) || context.questions.take(now) {
                    context.probe(now, mac, self.rsu, out);
                }
            }
        }
        if self.asked == timing::DOUBTED_AFTER {
            self.begin_doubt(context, now);
        }
        context.probe(now, upstream, self.rsu, out);
        self.asked += 1;
        let jitter = if watch.ask_within.is_zero() { 0 } else { 50 };
        self.ask_at = now + context.random.jitter(watch.ask_again_after(self.asked), jitter);
    }

    /// It did not answer, and is the upstream no more.
    fn give_up(&mut self, context: &mut Context, now: Timestamp, upstream: Mac) {
        let silence = now.since(self.believed_since());
        let id = self.id_of(upstream).map(tracing::field::display);
        tracing::debug!(rsu = %self.rsu, upstream = id, ?silence, "upstream is dead");
        context.counters.upstream_dead += 1;
        context.fell_silent(upstream);
        self.drop_candidate(now, upstream, Cause::Dead);
    }

    /// When [`Route::check_upstream`] next has something to do, and what.
    pub(super) fn upstream_deadline(
        &self,
        context: &Context,
        now: Timestamp,
        is_ours: bool,
    ) -> Deadline {
        // Who stood still itself first hears what was said meanwhile.
        let judged = |at: Timestamp| at.max(context.grace_until);
        let stuck = self.progress + timing::stuck_after(self.interval());
        let mut next = Deadline::new(judged(stuck), "leave an upstream that brings no news");
        if let Some(upstream) = self.upstream_candidate() {
            let forgotten = upstream.heard + self.interval() * timing::CANDIDATE_INTERVALS;
            let forgotten = judged(forgotten) + Duration::from_micros(1);
            next = next.or_at(forgotten, "forget an upstream that is not heard");
        }
        if !self.is_watched(now, is_ours) {
            let lapsed = self.evidence + self.lapsed_after();
            return next.or_at(judged(lapsed), "leave an upstream whose word has lapsed");
        }
        let believed = self.believed_since();
        let watch = self.watch(context, now);
        let late = believed + watch.late_after;
        if now < late {
            return next.or_at(late, "ask an upstream that is late");
        }
        let dead =
            if self.asked >= timing::ASKED_MIN { watch.dead_after } else { watch.silence_max };
        next.or_at(judged(believed + dead), "leave an upstream that is dead")
            .or_at(self.ask_at, "ask an upstream that does not answer")
    }

    /// What clients or others depend on is asked about in any case; the rest within the budget. In
    /// a crowd, who still hears its upstream believes that it is heard as well. Were each frame of
    /// each client a reason to ask, a hundred vehicles that say little would fill the radio with
    /// questions.
    fn may_ask(&self, context: &mut Context, now: Timestamp, watch: Watch) -> bool {
        if self.is_idle(now) {
            return context.questions.take(now);
        }
        let is_heard = now.since(self.evidence) < watch.late_after;
        !(is_heard && self.is_congested(context)) || context.questions.take_spare(now)
    }

    /// The channel is full of questions. As long as the upstream is heard, it is believed to hear
    /// us; when it has not been heard for three intervals, it is dead without them.
    fn do_without_asking(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        upstream: Mac,
        watch: Watch,
    ) {
        context.counters.drop_rate_limit += 1;
        let silence = now.since(self.evidence);
        if silence < watch.late_after {
            self.unproven_since = None;
            self.asked = 0;
        } else if silence >= watch.silence_max && now >= context.grace_until {
            self.give_up(context, now, upstream);
        } else {
            self.ask_at = context.questions.next_at().max(now + watch.ask_every);
        }
    }

    /// Nothing goes through the upstream.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.active_at.is_none_or(|at| now.since(at) >= timing::IDLE_AFTER)
    }

    /// How closely the upstream is watched.
    pub(super) fn watch(&self, context: &Context, now: Timestamp) -> Watch {
        let (is_idle, is_congested) = (self.is_idle(now), self.is_congested(context));
        let (stride, is_urgent) = (self.upstream_stride(), !is_idle && !is_congested);
        let most = match (is_congested, is_idle) {
            (true, _) => timing::MISSED_MAX,
            (false, true) => timing::MISSED_IDLE,
            (false, false) => 1,
        };
        // Nobody waits for an OBU through which nothing goes: it bears with most.
        let is_needed = !is_idle || self.has_children(now);
        let link = self.upstream_link(context).filter(|_| is_needed);
        let missed = link.map_or(most, |link| link.missed_by_chance(stride, most));
        let watch = Watch::new(self.interval(), stride, missed, is_urgent);
        if is_urgent { watch.in_turn(self.interval(), context.in_earshot()) } else { watch }
    }

    /// So much of what the upstream says to all gets lost that its silence says little.
    pub(super) fn upstream_loses_many(&self, context: &Context) -> bool {
        self.upstream_link(context).is_some_and(Neighbour::loses_many)
    }

    fn upstream_link<'a>(&self, context: &'a Context) -> Option<&'a Neighbour> {
        context.neighbours.get(self.upstream?)
    }

    /// The upstream has not said for so long what it would have said by now that nothing it said
    /// counts.
    pub(super) fn lapsed_after(&self) -> Duration {
        fresh_for(self.interval(), self.upstream_stride())
    }

    /// How rarely the upstream brings heartbeats.
    pub(super) fn upstream_stride(&self) -> u8 {
        self.upstream_candidate().map_or(0, |upstream| upstream.advert.stride)
    }

    /// The last moment we had no reason to doubt the upstream.
    pub(super) fn believed_since(&self) -> Timestamp {
        self.unproven_since.map_or(self.evidence, |since| since.min(self.evidence))
    }

    /// There is a reason to ask the upstream, whether it is watched or not.
    pub(super) fn is_late(&self, context: &Context, now: Timestamp) -> bool {
        now.since(self.believed_since()) >= self.watch(context, now).late_after
    }

    /// We are attached through it from now on. Nobody has asked it while it was not watched. So
    /// that it has proven nothing is no reason to leave it yet, but to ask at once.
    pub(crate) fn begin_watch(&mut self, context: &Context, now: Timestamp) {
        let Some(since) = self.unproven_since.filter(|_| !self.has_children(now)) else { return };
        self.unproven_since = Some(since.max(now.before(self.watch(context, now).late_after)));
        self.asked = 0;
        self.ask_at = now;
    }

    pub(super) fn is_watched(&self, now: Timestamp, is_ours: bool) -> bool {
        is_ours || self.has_children(now)
    }

    /// Others send through us.
    pub(crate) fn has_children(&self, now: Timestamp) -> bool {
        let lately = timing::child_for(self.interval(), self.obus_known());
        self.child_at.is_some_and(|at| now.since(at) < lately)
    }

    /// Neighbours no further away than we are that could be upstream with the next heartbeat, the
    /// upstream among them.
    pub(crate) fn candidates_in_reach(&self, context: &Context, now: Timestamp) -> usize {
        let judge = self.judge(context, now);
        // Whoever is further away than we are may well be behind us.
        let ours = self.hops().unwrap_or(u8::MAX);
        let could_be = |c: &&Candidate| {
            c.advert.distance.hops <= ours && judge.is_eligible_next(c, self.newest)
        };
        self.candidates.iter().filter(could_be).count()
    }

    /// The best candidates beside the upstream, at most `cached_candidates`.
    pub(crate) fn ready(&self, context: &Context, now: Timestamp) -> Vec<Mac> {
        let mut ranked: Vec<_> = self.ranked_beside(context, now).collect();
        ranked.sort_unstable();
        ranked.truncate(context.cached_candidates);
        ranked.into_iter().map(|(_, mac)| mac).collect()
    }

    /// The first of [`Route::ready`]. An OBU without a way asks with every frame it hears.
    pub(super) fn first_ready(&self, context: &Context, now: Timestamp) -> Option<Mac> {
        let best = self.ranked_beside(context, now).min().filter(|_| context.cached_candidates > 0);
        best.map(|(_, mac)| mac)
    }

    /// There are any of them.
    pub(super) fn has_ready(&self, context: &Context, now: Timestamp) -> bool {
        context.cached_candidates > 0 && self.ranked_beside(context, now).next().is_some()
    }

    /// Those beside the upstream of whom there is fresh news, and how good they are.
    fn ranked_beside<'a>(
        &'a self,
        context: &'a Context,
        now: Timestamp,
    ) -> impl Iterator<Item = (Rank, Mac)> + 'a {
        let ranker = self.ranker(context, now);
        let is_fresh = move |c: &&Candidate| {
            !c.is_leaving()
                && Some(c.mac) != self.upstream
                && c.advert.via != context.id()
                && now.since(c.heard) < c.fresh_for(self.interval())
        };
        self.candidates.iter().filter(is_fresh).map(move |c| (ranker.rank(c), c.mac))
    }

    /// Where to send what the radio did not get through to this neighbour: to the best other one,
    /// or to the upstream after all.
    pub(crate) fn way_beside(&self, context: &Context, now: Timestamp, mac: Mac) -> Option<Mac> {
        self.best_beside(context, now, mac).map(|(_, other)| other).or(self.upstream)
    }

    /// The best that is usable now, but for this neighbour.
    pub(super) fn best_beside(
        &self,
        context: &Context,
        now: Timestamp,
        mac: Mac,
    ) -> Option<(Rank, Mac)> {
        let judge = self.judge(context, now);
        let others = self.candidates.iter().filter(|c| c.mac != mac && judge.is_usable(c));
        others.map(|c| (judge.ranker.rank(c), c.mac)).min()
    }

    pub(super) fn leave_a_leaving_upstream(&mut self, context: &Context, now: Timestamp) {
        let Some(upstream) = self.upstream_candidate().filter(|c| c.is_leaving()).map(|c| c.mac)
        else {
            return;
        };
        if self.candidates.best(&self.judge(context, now)).is_some() {
            self.drop_candidate(now, upstream, Cause::Goodbye);
        }
    }

    pub(super) fn adopt_best(&mut self, context: &Context, now: Timestamp) {
        let most = self.hold_down(context, now).unwrap_or(u8::MAX);
        let judge = self.judge(context, now);
        let usable = self.candidates.iter().filter(|c| judge.is_usable(c));
        let near = usable.filter(|c| c.advert.distance.hops < most);
        if let Some(best) = near.min_by_key(|c| judge.ranker.rank(c)).map(|c| c.mac) {
            self.adopt(context, best, now);
        }
    }

    /// What we said to the RSU through the upstream was not answered. Whether another neighbour
    /// takes its place, and the upstream is for a minute one for those that hear no other. Where
    /// all others are that already, the one that became it first is tried again: words get lost
    /// over honest relays too. `as_first`: only if no other has been tried in that time, and only
    /// if the upstream is a relay: it may pass on everything but words.
    pub(crate) fn leave_unanswered(
        &mut self,
        context: &Context,
        now: Timestamp,
        as_first: bool,
    ) -> bool {
        let Some(upstream) = self.upstream_candidate().copied() else { return false };
        let judge = self.judge(context, now);
        let ranked = self.candidates.iter().filter_map(|c| {
            let rank = judge.ranker.rank(c);
            let may_come = c.mac != upstream.mac && judge.is_usable(c) && !rank.is_late;
            may_come.then(|| (judge.ranker.suspect_until(c.mac), rank, c.mac))
        });
        let best = ranked.min();
        self.suspects.retain(|(mac, until)| now < *until && *mac != upstream.mac);
        let is_wanted = !as_first || self.suspects.is_empty() && upstream.advert.distance.hops > 0;
        let Some((_, _, best)) = best.filter(|_| is_wanted) else { return false };
        self.suspects.retain(|(mac, _)| *mac != best);
        if self.suspects.is_full() {
            // The oldest gives way, and so is the next to be tried.
            self.suspects.remove(0);
        }
        tracing::debug!(rsu = %self.rsu, upstream = %upstream.id, "RSU does not answer through it");
        self.suspects.push((upstream.mac, now + timing::SHUN_FOR));
        self.note_loss(self.leave(now, Cause::Dead));
        self.adopt(context, best, now);
        true
    }

    fn adopt(&mut self, context: &Context, mac: Mac, now: Timestamp) {
        let Some(candidate) = self.candidates.get(mac) else { return };
        self.last_hops = candidate.hops_through();
        self.evidence = candidate.heard;
        self.progress = now;
        if self.upstream.is_none() {
            self.attached_at = now;
            self.crowd.speak_up();
        }
        self.upstream = Some(mac);
        self.unproven_since = None;
        if !self.is_in_crowd(context) && !self.is_proven_lately(context, now, mac) {
            // What it proved seconds ago may be over: it is asked at once, as if it were late.
            self.unproven_since = Some(now.before(self.watch(context, now).late_after));
        }
        self.at_risk = 0;
        self.doubt = None;
        self.told = None;
        self.predicted = None;
        self.asked = 0;
        self.ask_at = now;
        self.is_to_ask = false;
        self.changed_at = now;
        self.relay_at = None;
        self.preferred = None;
        if now >= self.quiet_until {
            self.withdrawals.end();
        }
        for candidate in self.candidates.iter_mut() {
            candidate.better_since = None;
        }
    }

    /// Without a usable candidate, asks those that would be usable if they heard us.
    pub(super) fn look_for_proof(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        out: &mut Replies,
    ) {
        let may_defer = self.may_defer(context, now);
        if may_defer {
            // Many may have lost the same upstream in this moment.
            let wait = timing::ask_every(self.interval());
            if now < *self.look_at.get_or_insert_with(|| now + context.random.up_to(wait)) {
                return;
            }
        }
        let judge = self.judge(context, now);
        let is_due =
            |c: &&Candidate| self.proof_due_at(context, c.mac).is_none_or(|due| now >= due);
        let unproven = |c: &&Candidate| judge.is_eligible(c) && !judge.is_proven(c.mac);
        let mut asked: Vec<_> = self
            .candidates
            .iter()
            .filter(unproven)
            .filter(is_due)
            .map(|c| (judge.ranker.rank(c), c.mac))
            .collect();
        asked.sort_unstable();
        asked.truncate(if may_defer { 1 } else { LOOK_AT_ONCE });
        if may_defer && !asked.is_empty() {
            let wait = timing::ask_every(self.interval());
            self.look_at = Some(now + context.random.jitter(wait, 25));
        }
        for (_, mac) in asked {
            self.ask_for_proof(context, now, mac, out);
        }
    }

    /// In a crowd, an OBU through which nothing goes: many others are in its place, and it has
    /// time.
    pub(super) fn may_defer(&self, context: &Context, now: Timestamp) -> bool {
        self.is_in_crowd(context) && self.is_idle(now) && context.is_idle(now)
    }

    /// A candidate is left the upstream for only when it has just proven that it hears us: what it
    /// proved seconds ago may be over.
    pub(super) fn prove_preferred(&self, context: &mut Context, now: Timestamp, out: &mut Replies) {
        if let Some((mac, _)) = self.preferred
            && !self.is_proven_lately(context, now, mac)
        {
            self.ask_for_proof(context, now, mac, out);
        }
    }

    fn is_proven_lately(&self, context: &Context, now: Timestamp, mac: Mac) -> bool {
        let proven = context.neighbours.get(mac).and_then(|neighbour| neighbour.proven);
        proven.is_some_and(|at| now.since(at) < timing::lapsed_after(self.interval()))
    }

    /// The best neighbour that answers questions, if it has not proven lately that it hears us, and
    /// what a way through it would cost where a relay costs this.
    pub(crate) fn best_is_unproven(
        &self,
        context: &Context,
        now: Timestamp,
        relay: Cost,
    ) -> Option<(Cost, Mac)> {
        let mut judge = self.judge(context, now);
        judge.ranker.relay = relay;
        let could_be = |c: &&Candidate| {
            judge.is_eligible(c) && context.neighbours.get(c.mac).is_some_and(answers)
        };
        let ranked = self.candidates.iter().filter(could_be).map(|c| (judge.ranker.rank(c), c.mac));
        let (rank, mac) = ranked.min()?;
        let is_there = !rank.is_late && !rank.is_suspect;
        (is_there && !self.is_proven_lately(context, now, mac)).then_some((rank.cost, mac))
    }

    /// Asks a neighbour whether it hears us, unless it was asked just now.
    fn ask_for_proof(&self, context: &mut Context, now: Timestamp, mac: Mac, out: &mut Replies) {
        if self.proof_due_at(context, mac).is_some_and(|due| now < due) {
            return;
        }
        if context.questions.take(now) {
            context.probe(now, mac, self.rsu, out);
        } else {
            context.counters.drop_rate_limit += 1;
        }
    }

    /// When a neighbour may be asked for proof again: each question it did not answer doubles the
    /// wait, up to once per interval while there is no way at all, or ten intervals.
    fn proof_due_at(&self, context: &Context, mac: Mac) -> Option<Timestamp> {
        let neighbour = context.neighbours.get(mac)?;
        let longest = if context.hops.is_some() { self.interval() * 10 } else { self.interval() };
        let wait = timing::ask_every(self.interval()) * (1 << neighbour.unanswered.min(8));
        Some(neighbour.probed()? + wait.min(longest))
    }

    /// When the next question for proof is due, without an upstream.
    pub(super) fn next_proof_at(&self, context: &Context, now: Timestamp) -> Option<Timestamp> {
        let judge = self.judge(context, now);
        let unproven = |c: &&Candidate| judge.is_eligible(c) && !judge.is_proven(c.mac);
        let due = |c: &Candidate| self.proof_due_at(context, c.mac).unwrap_or(now);
        self.candidates.iter().filter(unproven).map(due).min()
    }

    /// Dead switches at once; better needs margin and time; a link that is bad or will end needs a
    /// strong alternative.
    pub(super) fn consider_better(&mut self, context: &Context, now: Timestamp) {
        let Some(upstream) = self.upstream_candidate().copied() else { return };
        let judge = self.judge(context, now);
        let current = judge.ranker.rank(&upstream);
        let ours = self.prediction(context, now, &upstream);
        let leaves = ours.why_leave(context, now);
        let mut rising: Option<(Rank, Mac)> = None;
        let mut choice: Option<(Rank, Mac, Cause)> = None;
        let is_suspect = judge.ranker.is_suspect(&upstream);
        // What there is to know of a link lies elsewhere in memory. Most neighbours of a crowd are
        // none to go to however good it is, and need not be asked about it.
        let may_be_chosen = |c: &Candidate| {
            leaves.is_some()
                || is_suspect
                || c.advert.cost <= upstream.advert.cost
                || is_better(judge.ranker.least_cost(c), current.cost)
                || self.predicted.is_some_and(|predicted| predicted.whom == c.mac)
        };
        // Whether it is heard just now, and has proven that it hears us, does not stop the clock:
        // on a full channel heartbeats and answers get lost all the time.
        let is_possible = |c: &Candidate| {
            (is_suspect || !judge.ranker.is_suspect(c))
                && may_be_chosen(c)
                && judge.will_be_eligible(c, self.newest)
        };
        let better_for = timing::better_for(now.since(self.attached_at));
        let mut verdicts = Vec::new();
        for candidate in self.candidates.iter() {
            if candidate.mac == upstream.mac {
                continue;
            }
            let rank = is_possible(candidate).then(|| judge.ranker.rank(candidate));
            let is_better = rank.is_some_and(|rank| is_better(rank.cost, current.cost))
                && !ends(context, now, candidate);
            let since = if is_better { candidate.better_since.or(Some(now)) } else { None };
            if since != candidate.better_since {
                verdicts.push((candidate.mac, since));
            }
            let may_come = || {
                !judge.ranker.is_late(candidate)
                    && judge.is_fresh(candidate)
                    && (judge.is_proven(candidate.mac)
                        || self.is_worth_asking(context, now, candidate.mac))
            };
            let Some(rank) = rank.filter(|_| may_come()) else { continue };
            if ours.yields(context, now, &upstream, (self, candidate))
                && rising.is_none_or(|(best, _)| rank < best)
            {
                rising = Some((rank, candidate.mac));
            }
            let is_due = since.is_some_and(|at| now.since(at) >= better_for);
            let cause = if is_due || is_suspect && !rank.is_suspect {
                Cause::Better
            } else if let Some(cause) = leaves
                && self.prediction(context, now, candidate).is_strong(&context.thresholds)
            {
                cause
            } else if self.is_predicted(context, now, candidate.mac) {
                Cause::Predicted
            } else {
                continue;
            };
            if choice.is_none_or(|(best, _, _)| rank < best) {
                choice = Some((rank, candidate.mac, cause));
            }
        }
        let usable = choice.and_then(|(_, mac, cause)| {
            let is_usable = self.candidates.get(mac).is_some_and(|c| judge.is_usable(c));
            (is_usable && self.is_proven_lately(context, now, mac)).then_some((mac, cause))
        });
        self.predicted = rising.map(|(_, mac)| Predicted::keep(self.predicted, mac, now));
        for (mac, since) in verdicts {
            if let Some(candidate) = self.candidates.get_mut(mac) {
                candidate.better_since = since;
            }
        }
        self.preferred = choice.map(|(_, mac, cause)| (mac, cause));
        if let Some((mac, cause)) = usable {
            self.note_loss(self.leave(now, cause));
            self.adopt(context, mac, now);
        }
    }

    /// Where frames go through us a neighbour that has not proven that it hears us is asked,
    /// instead of waiting for its turn: the rarer, the more questions it left unanswered.
    fn is_worth_asking(&self, context: &Context, now: Timestamp, mac: Mac) -> bool {
        let is_due = || self.proof_due_at(context, mac).is_none_or(|due| now >= due);
        let neighbour = context.neighbours.get(mac);
        !self.is_idle(now) && neighbour.is_some_and(|neighbour| answers(neighbour) || is_due())
    }

    /// The trend has spoken for this candidate long enough, and the last change is long enough ago.
    fn is_predicted(&self, context: &Context, now: Timestamp, mac: Mac) -> bool {
        let Thresholds { trend_for, rest_for, .. } = context.thresholds;
        now.since(self.changed_at) >= rest_for
            && self.predicted.is_some_and(|p| p.whom == mac && now.since(p.since) >= trend_for)
    }
}

/// Were it our upstream, it would not be in doubt.
fn answers(neighbour: &Neighbour) -> bool {
    u32::from(neighbour.unanswered) < timing::DOUBTED_AFTER
}

/// A candidate must save at least seven eighths of a transmission to be called better: as much as a
/// relay that seven share saves over one that nobody shares. Link averages over two hops with 10 %
/// loss wander by about 0.15.
const MARGIN_LEAST: Cost = Cost(56);

/// Unproven candidates asked at once; by those that have time, one.
const LOOK_AT_ONCE: usize = 3;

/// So much cheaper than this a candidate has to be to be called better: by an eighth, and
/// [`MARGIN_LEAST`]. A quarter is a whole hop of a way of four, and ways stay a hop too long. With
/// no such part all who are many hops away change for each relay that comes nearer.
pub(super) fn margin_under(cost: Cost) -> Cost {
    Cost(cost.0.div_ceil(8)).max(MARGIN_LEAST)
}

/// Better by the margin.
pub(crate) fn is_better(cost: Cost, than: Cost) -> bool {
    Cost(than.0.saturating_sub(cost.0)) >= margin_under(than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_who_costs_seven_eighths_at_most_and_saves_enough() {
        for than in (0..2000).chain(u16::MAX - 100..=u16::MAX) {
            let saves =
                |by: u16| than.checked_sub(by).map(|cost| is_better(Cost(cost), Cost(than)));
            for by in (0..600).chain([than / 8, than / 8 + 1, than / 2, than]) {
                let is_enough = u32::from(by) * 8 >= u32::from(than) && by >= 56;
                assert_eq!(saves(by), (by <= than).then_some(is_enough), "{by} of {than}");
            }
            assert!(!is_better(Cost(than.saturating_add(1)), Cost(than)), "dearer than {than}");
        }
    }
}
