//! The way to one RSU: who could be upstream, who is, and when that changes.

use std::time::Duration;

use node_lib::control::candidates::{Advert, Candidate, Candidates, Judge, Rank};
use node_lib::control::event::Cause;
use node_lib::control::feasibility::{Distance, Feasibility};
use node_lib::control::node::Replies;
use node_lib::messages::Cost;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::probe::AnsweredRoute;
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::{Mac, NodeId, Order, Timestamp};

use super::core::Core;
use super::timing;

/// Why an upstream was lost, and how long it had been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) cause: Cause,
    pub(crate) silence: Duration,
}

/// A candidate must cost at most three quarters of the upstream …
const MARGIN_NUMERATOR: u32 = 3;
const MARGIN_DENOMINATOR: u32 = 4;

/// … and save at least 0.75 transmissions to be called better. Slow link averages over two hops
/// with 10 % loss wander by about 0.15.
const MARGIN_LEAST: Cost = Cost(48);

/// The way to one RSU.
#[derive(Debug)]
pub(crate) struct Route {
    rsu: NodeId,
    /// Between two heartbeats, as the RSU says.
    interval: Duration,
    /// The newest heartbeat heard from anybody, and when.
    newest: Order,
    newest_at: Timestamp,
    feasibility: Feasibility,
    candidates: Candidates,
    parent: Option<Mac>,
    /// When the parent last brought news or confirmed its route.
    evidence: Timestamp,
    /// When the parent last brought a newer heartbeat.
    progress: Timestamp,
    /// The parent's own way to the RSU is another one than before.
    path_changed: bool,
    /// Data has gone to the parent since this moment without proof that it arrives.
    unproven_since: Option<Timestamp>,
    asked: u32,
    ask_at: Timestamp,
    changed_at: Timestamp,
    /// Why the last parent was lost, until it is reported.
    loss: Option<Loss>,
    /// The order we last relayed; `None` also after a withdrawal.
    relayed: Option<Order>,
    relay_at: Option<Timestamp>,
    /// A better candidate that becomes feasible with the next heartbeat, if its copy comes before
    /// we relay the parent's.
    preferred: Option<(Mac, Cause)>,
    /// When somebody last sent, or said it sends, through us.
    child_at: Option<Timestamp>,
    withdrawals_left: u8,
    withdraw_at: Timestamp,
}

impl Route {
    pub(crate) fn new(rsu: NodeId, interval: Duration, now: Timestamp) -> Self {
        Self {
            rsu,
            interval,
            newest: Order::default(),
            newest_at: now,
            feasibility: Feasibility::default(),
            candidates: Candidates::default(),
            parent: None,
            evidence: now,
            progress: now,
            path_changed: false,
            unproven_since: None,
            asked: 0,
            ask_at: now,
            changed_at: now,
            loss: None,
            relayed: None,
            relay_at: None,
            preferred: None,
            child_at: None,
            withdrawals_left: 0,
            withdraw_at: now,
        }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn newest(&self) -> Order {
        self.newest
    }

    /// The neighbour frames for this RSU go to.
    pub(crate) fn parent(&self) -> Option<Mac> {
        self.parent
    }

    pub(crate) fn parent_candidate(&self) -> Option<&Candidate> {
        self.candidates.get(self.parent?)
    }

    /// Why the last parent was lost; asked once.
    pub(crate) fn take_loss(&mut self) -> Option<Loss> {
        self.loss.take()
    }

    /// Whether the way beyond the parent changed; asked once.
    pub(crate) fn take_path_changed(&mut self) -> bool {
        std::mem::take(&mut self.path_changed)
    }

    /// How good the route is, for choosing between RSUs.
    pub(crate) fn rank(&self, core: &Core, now: Timestamp) -> Option<Rank> {
        let candidate = self.parent_candidate()?;
        Some(self.judge(core, now).rank(candidate))
    }

    pub(crate) fn changed_at(&self) -> Timestamp {
        self.changed_at
    }

    pub(crate) fn is_forgettable(&self, now: Timestamp) -> bool {
        now.since(self.newest_at) > timing::FORGET_AFTER
    }

    pub(crate) fn newest_at(&self) -> Timestamp {
        self.newest_at
    }

    /// Still listening after our restart: this RSU is not routed to through others, nor for others.
    pub(crate) fn is_quiet(&self, core: &Core, now: Timestamp) -> bool {
        now < core.started + timing::quiet_for(self.interval)
    }

    /// A neighbour advertised its way: by heartbeat, or by answering a probe.
    pub(crate) fn hear(
        &mut self,
        now: Timestamp,
        from: Mac,
        id: NodeId,
        advert: Advert,
        interval: Duration,
    ) {
        let known = self.candidates.get(from).map(|c| c.advert);
        if !self.candidates.hear(now, from, id, advert) {
            return;
        }
        let order = advert.distance.order;
        if order > self.newest {
            self.newest = order;
            self.newest_at = now;
            self.interval = interval;
        }
        if self.parent == Some(from) {
            self.evidence = now;
            if known.is_none_or(|known| order > known.distance.order) {
                self.progress = now;
            }
            self.path_changed |= known.is_some_and(|known| known.path != advert.path);
        }
    }

    /// A neighbour named us as its upstream, or sent something for this RSU through us.
    pub(crate) fn note_child(&mut self, now: Timestamp) {
        self.child_at = Some(now);
    }

    /// Data goes to the parent.
    pub(crate) fn note_sent(&mut self, now: Timestamp) {
        self.unproven_since.get_or_insert(now);
    }

    /// The parent proved that it hears us.
    pub(crate) fn note_proof(&mut self, from: Mac) {
        if self.parent == Some(from) {
            self.unproven_since = None;
            self.asked = 0;
        }
    }

    /// A neighbour has no way any more: it withdrew, restarted, or fell silent.
    pub(crate) fn drop_candidate(&mut self, now: Timestamp, from: Mac, cause: Cause) {
        self.candidates.forget(from);
        if self.parent == Some(from) {
            self.lose_parent(now, cause);
        }
    }

    /// A neighbour does not hear us: it is no upstream to this RSU either.
    pub(crate) fn leave_silent(&mut self, now: Timestamp, from: Mac) {
        if self.parent == Some(from) {
            self.drop_candidate(now, from, Cause::Dead);
        }
    }

    /// A neighbour said goodbye: it is not chosen any more, but may carry what is under way until
    /// another way is there.
    pub(crate) fn note_goodbye(&mut self, from: Mac, id: NodeId) {
        let rsu_leaves = id == self.rsu;
        for candidate in self.candidates.iter_mut() {
            // With the RSU itself every way to it ends.
            if candidate.mac == from || rsu_leaves {
                candidate.leaving = true;
            }
        }
    }

    /// The radio is down: nobody can be reached. What was advertised stays advertised.
    pub(crate) fn link_down(&mut self, now: Timestamp) {
        self.candidates.clear();
        if self.parent.is_some() {
            self.lose_parent(now, Cause::LinkDown);
        }
        // Nobody can be told, and those behind us notice our silence.
        self.withdrawals_left = 0;
        self.relayed = None;
        self.relay_at = None;
    }

    fn lose_parent(&mut self, now: Timestamp, cause: Cause) {
        self.parent = None;
        self.relay_at = None;
        self.loss = Some(Loss { cause, silence: now.since(self.evidence) });
    }

    fn judge<'a>(&self, core: &'a Core, now: Timestamp) -> Judge<'a> {
        Judge {
            now,
            us: core.id(),
            interval: self.interval,
            feasibility: self.feasibility,
            neighbours: &core.neighbours,
            is_quiet: self.is_quiet(core, now),
        }
    }

    /// Does whatever is due. `is_ours`: our own data goes to this RSU.
    pub(crate) fn drive(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        is_ours: bool,
        out: &mut Replies,
    ) {
        self.candidates.expire(now, self.interval * 10);
        self.check_parent(core, now, is_ours, out);
        self.leave_a_leaving_parent(core, now);
        if self.parent.is_none() {
            self.adopt_best(core, now);
        }
        if self.parent.is_none() {
            self.look_for_proof(core, now, out);
            self.withdraw_if_advertised(now);
        } else {
            self.consider_better(core, now);
            self.plan_relay(core, now);
        }
        self.relay_if_due(core, now, out);
        self.say_withdrawal_if_due(core, now, out);
    }

    fn check_parent(&mut self, core: &mut Core, now: Timestamp, is_ours: bool, out: &mut Replies) {
        let Some(parent) = self.parent else { return };
        let Some(candidate) = self.candidates.get(parent).copied() else {
            return self.lose_parent(now, Cause::Dead);
        };
        if candidate.advert.via == core.id() {
            return self.drop_candidate(now, parent, Cause::Withdrawn);
        }
        if now.since(self.progress) >= timing::stuck_after(self.interval) {
            core.counters.upstream_dead += 1;
            return self.drop_candidate(now, parent, Cause::Dead);
        }
        if !self.is_watched(now, is_ours) {
            if now.since(self.evidence) >= timing::lapsed_after(self.interval) {
                self.drop_candidate(now, parent, Cause::Dead);
            }
            return;
        }
        let silence = now.since(self.believed_since());
        if silence < timing::late_after(self.interval) {
            self.asked = 0;
            return;
        }
        if now < self.ask_at && self.asked > 0 {
            return;
        }
        if self.asked >= timing::ASKED_MIN
            && silence >= timing::dead_after(self.interval)
            && now >= core.grace_until
        {
            tracing::debug!(rsu = %self.rsu, upstream = %candidate.id, ?silence, "upstream is dead");
            core.counters.upstream_dead += 1;
            core.fell_silent(parent);
            return self.drop_candidate(now, parent, Cause::Dead);
        }
        if self.asked == 0 {
            // If it is dead we want to know at once who else is alive.
            for mac in self.ready(core, now) {
                core.probe(now, mac, self.rsu, out);
            }
        }
        core.probe(now, parent, self.rsu, out);
        self.asked += 1;
        self.ask_at = now + timing::ask_every(self.interval);
    }

    /// The last moment we had no reason to doubt the parent.
    fn believed_since(&self) -> Timestamp {
        self.unproven_since.map_or(self.evidence, |since| since.min(self.evidence))
    }

    fn is_watched(&self, now: Timestamp, is_ours: bool) -> bool {
        let has_children =
            self.child_at.is_some_and(|at| now.since(at) < timing::child_for(self.interval));
        is_ours || has_children
    }

    /// The best candidates beside the parent, at most `cached_candidates`.
    pub(crate) fn ready(&self, core: &Core, now: Timestamp) -> Vec<Mac> {
        let judge = self.judge(core, now);
        let is_fresh = |c: &&Candidate| {
            !c.leaving
                && Some(c.mac) != self.parent
                && c.advert.via != core.id()
                && now.since(c.heard) < timing::lapsed_after(self.interval)
        };
        let mut ranked: Vec<_> =
            self.candidates.iter().filter(is_fresh).map(|c| (judge.rank(c), c.mac)).collect();
        ranked.sort_unstable();
        ranked.truncate(core.cached_candidates);
        ranked.into_iter().map(|(_, mac)| mac).collect()
    }

    fn leave_a_leaving_parent(&mut self, core: &Core, now: Timestamp) {
        let Some(parent) = self.parent_candidate().filter(|c| c.leaving).map(|c| c.mac) else {
            return;
        };
        if self.candidates.best(&self.judge(core, now)).is_some() {
            self.drop_candidate(now, parent, Cause::Goodbye);
        }
    }

    fn adopt_best(&mut self, core: &Core, now: Timestamp) {
        if let Some(best) = self.candidates.best(&self.judge(core, now)).map(|c| c.mac) {
            self.adopt(best, now);
        }
    }

    fn adopt(&mut self, mac: Mac, now: Timestamp) {
        let Some(candidate) = self.candidates.get(mac) else { return };
        self.evidence = candidate.heard;
        self.progress = now;
        self.path_changed = false;
        self.parent = Some(mac);
        self.unproven_since = None;
        self.asked = 0;
        self.changed_at = now;
        self.relay_at = None;
        self.preferred = None;
        self.withdrawals_left = 0;
        for candidate in self.candidates.iter_mut() {
            candidate.better_since = None;
        }
    }

    /// Without a usable candidate, asks those that would be usable if they heard us.
    fn look_for_proof(&mut self, core: &mut Core, now: Timestamp, out: &mut Replies) {
        let judge = self.judge(core, now);
        let mut unproven: Vec<_> = self
            .candidates
            .iter()
            .filter(|c| judge.is_eligible(c) && !judge.is_proven(c.mac))
            .map(|c| (judge.rank(c), c.mac))
            .collect();
        unproven.sort_unstable();
        unproven.truncate(LOOK_AT_ONCE);
        for (_, mac) in unproven {
            let probed = core.neighbours.get(mac).and_then(|n| n.probed);
            let is_due = probed.is_none_or(|at| now.since(at) >= timing::ask_every(self.interval));
            if !is_due {
                continue;
            }
            if core.searches.take(now) {
                core.probe(now, mac, self.rsu, out);
            } else {
                core.counters.drop_rate_limit += 1;
            }
        }
    }

    /// Dead switches at once; better needs margin and time; fading needs a much better alternative.
    fn consider_better(&mut self, core: &Core, now: Timestamp) {
        let Some(parent) = self.parent_candidate().copied() else { return };
        let judge = self.judge(core, now);
        let current = judge.rank(&parent);
        let fading = self.is_fading(core, parent.mac);
        let mut choice: Option<(Rank, Mac, Cause)> = None;
        let feasible_next = |c: &Candidate| {
            // Judged as if it had just brought the next heartbeat.
            let next = Distance { order: self.newest.next(), hops: c.advert.distance.hops };
            let mut c = *c;
            c.advert.distance = next;
            judge.is_usable(&c)
        };
        let mut verdicts = Vec::new();
        for candidate in self.candidates.iter() {
            if candidate.mac == parent.mac {
                continue;
            }
            let rank = judge.rank(candidate);
            let is_possible = !rank.is_late && feasible_next(candidate);
            let is_better = is_possible && is_better(rank.cost, current.cost);
            let since = if is_better { candidate.better_since.or(Some(now)) } else { None };
            verdicts.push((candidate.mac, since));
            let settled = now.since(self.changed_at) >= timing::SETTLE_FOR;
            let cause = if since.is_some_and(|at| now.since(at) >= timing::BETTER_FOR) && settled {
                Cause::Better
            } else if fading && is_possible && self.is_strong(core, candidate.mac) {
                Cause::Fading
            } else {
                continue;
            };
            if choice.is_none_or(|(best, _, _)| rank < best) {
                choice = Some((rank, candidate.mac, cause));
            }
        }
        let usable = choice.and_then(|(_, mac, cause)| {
            let is_usable = self.candidates.get(mac).is_some_and(|c| judge.is_usable(c));
            is_usable.then_some((mac, cause))
        });
        for (mac, since) in verdicts {
            if let Some(candidate) = self.candidates.get_mut(mac) {
                candidate.better_since = since;
            }
        }
        self.preferred = choice.map(|(_, mac, cause)| (mac, cause));
        if let Some((mac, cause)) = usable {
            self.loss = Some(Loss { cause, silence: now.since(self.evidence) });
            self.adopt(mac, now);
        }
    }

    /// Most of the last hellos were lost.
    fn is_fading(&self, core: &Core, mac: Mac) -> bool {
        let window = core.hello_history;
        core.neighbours
            .get(mac)
            .and_then(|n| n.heard_of_last(window))
            .is_some_and(|heard| heard * 10 <= window * FADING_TENTHS)
    }

    fn is_strong(&self, core: &Core, mac: Mac) -> bool {
        let window = core.hello_history;
        core.neighbours
            .get(mac)
            .and_then(|n| n.heard_of_last(window))
            .is_some_and(|heard| heard * 10 >= window * STRONG_TENTHS)
    }

    /// News from the parent is relayed once, after a short random wait.
    fn plan_relay(&mut self, core: &mut Core, now: Timestamp) {
        let Some(advert) = self.parent_candidate().map(|c| c.advert) else { return };
        let is_news = self.relayed.is_none_or(|relayed| advert.distance.order > relayed);
        let may_relay = !core.is_leaving && !self.is_quiet(core, now) && advert.hop_limit > 0;
        if !is_news || !may_relay || self.relay_at.is_some() {
            return;
        }
        let waits_for_preferred = self.preferred.is_some_and(|(mac, _)| {
            self.candidates
                .get(mac)
                .is_some_and(|c| c.advert.distance.order < advert.distance.order)
        });
        let wait = if waits_for_preferred {
            timing::prefer_for(self.interval)
        } else {
            let longest = timing::RELAY_DELAY_MAX.min(self.interval / 20);
            core.random.up_to(longest)
        };
        self.relay_at = Some(now + wait);
    }

    fn relay_if_due(&mut self, core: &mut Core, now: Timestamp, out: &mut Replies) {
        if self.relay_at.is_none_or(|at| now < at) {
            return;
        }
        self.relay_at = None;
        let Some(route) = self.advertise(core, now) else { return };
        self.relayed = Some(route.order);
        core.hello = core.hello.wrapping_add(1);
        let heartbeat = Heartbeat {
            rsu: self.rsu,
            order: route.order,
            interval_ms: route.interval_ms,
            hop_limit: route.hop_limit,
            hops: route.hops,
            cost: route.cost,
            sender: core.id(),
            sender_boot: core.radio.boot,
            hello: core.hello,
            via: route.via,
            path: route.path,
        };
        core.radio.control(Mac::BROADCAST, heartbeat, out, &mut core.counters);
    }

    /// What we tell others about our way, if we have one to offer; binds us to it.
    pub(crate) fn advertise(&mut self, core: &Core, now: Timestamp) -> Option<AnsweredRoute> {
        if core.is_leaving || self.is_quiet(core, now) {
            return None;
        }
        let candidate = *self.parent_candidate()?;
        let hop_limit = candidate.advert.hop_limit.checked_sub(1)?;
        let parent = candidate.advert.distance;
        let distance = Distance { order: parent.order, hops: parent.hops.saturating_add(1) };
        self.feasibility.advertised(distance);
        let link = core.neighbours.get(candidate.mac).map_or(Cost::ONE, |n| n.link_cost());
        Some(AnsweredRoute {
            order: distance.order,
            interval_ms: u16::try_from(self.interval.as_millis()).unwrap_or(u16::MAX).max(1),
            hops: distance.hops,
            hop_limit,
            cost: candidate.advert.cost.saturating_add(link),
            via: candidate.id,
            path: candidate.advert.path.behind(core.id()),
        })
    }

    /// Others may still send through us: they must hear that there is no way any more.
    fn withdraw_if_advertised(&mut self, now: Timestamp) {
        if self.relayed.take().is_some() {
            self.withdrawals_left = timing::SAID_TIMES;
            self.withdraw_at = now;
        }
    }

    fn say_withdrawal_if_due(&mut self, core: &mut Core, now: Timestamp, out: &mut Replies) {
        if self.withdrawals_left == 0 || now < self.withdraw_at || !core.link_is_up {
            return;
        }
        self.withdrawals_left -= 1;
        self.withdraw_at = now + timing::SAID_EVERY;
        self.say_withdrawal(core, Mac::BROADCAST, out);
    }

    /// Says that there is no way to this RSU through us.
    pub(crate) fn say_withdrawal(&self, core: &mut Core, to: Mac, out: &mut Replies) {
        let Ok(rsus) = NodeIds::parse(&self.rsu.0) else { return };
        let withdrawal =
            Withdrawal { sender: core.id(), sender_boot: core.radio.boot, goodbye: false, rsus };
        core.radio.control(to, withdrawal, out, &mut core.counters);
    }

    /// When [`Route::drive`] next has something to do.
    pub(crate) fn deadline(&self, core: &Core, now: Timestamp, is_ours: bool) -> Timestamp {
        let mut next = self.newest_at + timing::FORGET_AFTER;
        if self.is_quiet(core, now) {
            next = next.min(core.started + timing::quiet_for(self.interval));
        }
        if let Some(at) = self.relay_at {
            next = next.min(at);
        }
        if self.withdrawals_left > 0 {
            next = next.min(self.withdraw_at);
        }
        if self.parent.is_none() {
            let waits_for_proof = self.candidates.iter().any(|c| {
                let judge = self.judge(core, now);
                judge.is_eligible(c) && !judge.is_proven(c.mac)
            });
            if waits_for_proof {
                next = next.min(now + timing::ask_every(self.interval));
            }
            return next;
        }
        next = next.min(self.progress + timing::stuck_after(self.interval));
        if !self.is_watched(now, is_ours) {
            return next.min(self.evidence + timing::lapsed_after(self.interval));
        }
        let late = self.believed_since() + timing::late_after(self.interval);
        next.min(if now >= late && self.asked > 0 { self.ask_at } else { late })
    }
}

/// Unproven candidates asked at once.
const LOOK_AT_ONCE: usize = 3;

/// An upstream of which at most 4 of the last 10 hellos were heard is fading. With 10 % random loss
/// that happens by chance once in 7,000 windows.
const FADING_TENTHS: u32 = 4;

/// Only a candidate of which 8 of 10 were heard is worth leaving a fading upstream for.
const STRONG_TENTHS: u32 = 8;

/// Better by the margin, in proportion and in absolute terms.
pub(crate) fn is_better(cost: Cost, than: Cost) -> bool {
    let (cost, than) = (u32::from(cost.0), u32::from(than.0));
    cost * MARGIN_DENOMINATOR <= than * MARGIN_NUMERATOR
        && than.saturating_sub(cost) >= u32::from(MARGIN_LEAST.0)
}
