//! The way to one RSU: who could be upstream, who is, and when that changes.

use std::time::Duration;

use arrayvec::ArrayVec;
use node_lib::control::at_risk::AtRisk;
use node_lib::control::deadline::Deadline;
use node_lib::control::event::Cause;
use node_lib::control::node::Replies;
use node_lib::control::repeated::Repeated;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::flags::CHILDREN_MAX;
use node_lib::messages::{Cost, Rhythm};
use node_lib::{Mac, NodeId, Order, Seq, Timestamp};

use crate::Ranking;
use crate::control::route::candidates::{
    Advert, Candidate, Candidates, Judge, RELAY, Rank, Ranker,
};
use crate::control::route::feasibility::{Distance, Feasibility};

use super::context::Context;
use super::timing;

mod advertise;
pub mod candidates;
mod count;
mod doubt;
pub mod feasibility;
mod headcount;
mod loss;
mod prediction;
mod suppression;
mod upstream;
mod way;

use count::Claim;
pub(crate) use count::Learned;
use doubt::Doubt;
use headcount::Headcount;
pub(crate) use loss::Loss;
pub(crate) use prediction::{Predicted, ends};
use suppression::Suppression;
pub(crate) use upstream::is_better;

/// Upstreams tried in vain that are remembered. With more the oldest is tried again: by then it is
/// not the upstreams.
const SUSPECTS_MAX: usize = 4;

/// The way to one RSU. In memory in this order: first what every heartbeat of it changes, then what
/// is looked at when something is to be done.
#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Route {
    rsu: NodeId,
    /// OBUs attached to the RSU, for all we know.
    obus: Headcount,
    upstream: Option<Mac>,
    /// How far the RSU is through the upstream, or was through the last one.
    last_hops: u8,
    /// How often its heartbeats come, as the RSU says.
    rhythm: Rhythm,
    /// The newest heartbeat heard from anybody, and when.
    newest: Order,
    newest_at: Timestamp,
    /// When the RSU sent it, about: not later than that, however late it came.
    newest_sent: Timestamp,
    /// What contradicts that count.
    claim: Option<Claim>,
    crowd: Suppression,
    candidates: Candidates,
    /// Neighbours through which what we said to the RSU was not answered, and until when others are
    /// preferred to them.
    suspects: ArrayVec<(Mac, Timestamp), SUSPECTS_MAX>,
    /// A better candidate that becomes feasible with the next heartbeat, if its copy comes before
    /// we relay the upstream's.
    preferred: Option<(Mac, Cause)>,
    /// When the upstream last brought news or confirmed its route.
    evidence: Timestamp,
    /// When the upstream last brought a newer heartbeat.
    progress: Timestamp,
    feasibility: Feasibility,
    /// When the candidates are next compared with the upstream.
    consider_at: Timestamp,
    /// Data has gone to the upstream, or it was asked, since this moment without proof that it
    /// arrives.
    unproven_since: Option<Timestamp>,
    /// When a frame last went through the upstream, up or down.
    active_at: Option<Timestamp>,
    /// When somebody last sent, or said it sends, through us.
    child_at: Option<Timestamp>,
    /// Neighbours that the RSU reached through us when they were last counted; saturates.
    children: u8,
    asked: u32,
    /// The wait before the first question has begun.
    is_to_ask: bool,
    /// Our own data goes to this RSU.
    is_ours: bool,
    ask_at: Timestamp,
    /// The order we last relayed, or left to others to relay.
    relayed: Option<Order>,
    relay_at: Option<Timestamp>,
    /// The stride and the interval we said last.
    stride_said: u8,
    interval_said: Duration,
    /// As many OBUs as the air was full of when we last looked.
    obus_heard: u16,
    /// When we last relayed.
    spoke_at: Option<Timestamp>,
    /// When we last said that we have a way; `None` also after a withdrawal.
    advertised_at: Option<Timestamp>,
    /// The same, whether or not it was withdrawn since: not everybody may have heard that.
    said_at: Option<Timestamp>,
    /// Until then nobody but the RSU is routed through, and nobody is routed for.
    quiet_until: Timestamp,
    /// While we were quiet we took back what we may have said before we started.
    told_of_restart: bool,
    /// A heartbeat said another rhythm, which one, and what it said.
    other_rhythm: Option<(Order, Rhythm)>,
    /// The candidate that the trend says to go to.
    predicted: Option<Predicted<Mac>>,
    changed_at: Timestamp,
    /// When there was last a upstream after there had been none.
    attached_at: Timestamp,
    // Only while there is doubt, or no upstream.
    /// Data frames handed to the upstream alone since its last sign of life.
    at_risk: u64,
    /// Copies of them, and of what others sent.
    kept: AtRisk,
    /// The upstream was lost, and what it was given since then goes another way.
    kept_since: Option<Timestamp>,
    /// The same, as long as the RSU may send what is for us there.
    untold_since: Option<Timestamp>,
    doubt: Option<Doubt>,
    /// The second way that the RSU was told of; `None`: the upstream alone.
    told: Option<Mac>,
    withdrawals: Repeated,
    /// In a crowd, when a neighbour may next be asked whether it hears us, without a upstream.
    look_at: Option<Timestamp>,
    /// When the last upstream was lost.
    lost_at: Timestamp,
    /// Why the last upstream was left.
    loss: Option<Loss>,
}

impl Route {
    /// `obus`: how many may be attached to it, until it says so.
    pub(crate) fn new(rsu: NodeId, rhythm: Rhythm, obus: u16, now: Timestamp) -> Self {
        Self {
            rsu,
            rhythm,
            obus: Headcount::new(obus),
            newest: Order::default(),
            newest_at: now,
            newest_sent: now,
            claim: None,
            other_rhythm: None,
            quiet_until: Timestamp::ZERO,
            told_of_restart: false,
            said_at: None,
            feasibility: Feasibility::default(),
            candidates: Candidates::default(),
            suspects: ArrayVec::new(),
            upstream: None,
            evidence: now,
            progress: now,
            unproven_since: None,
            active_at: None,
            at_risk: 0,
            kept: AtRisk::roomy(),
            kept_since: None,
            untold_since: None,
            doubt: None,
            told: None,
            predicted: None,
            asked: 0,
            is_to_ask: false,
            ask_at: now,
            changed_at: now,
            attached_at: now,
            look_at: None,
            lost_at: now,
            last_hops: u8::MAX,
            loss: None,
            relayed: None,
            relay_at: None,
            spoke_at: None,
            stride_said: 0,
            interval_said: rhythm.interval(),
            obus_heard: 1,
            crowd: Suppression::new(),
            is_ours: false,
            advertised_at: None,
            consider_at: now,
            preferred: None,
            child_at: None,
            children: 0,
            withdrawals: Repeated::default(),
        }
    }

    pub(crate) fn newest(&self) -> Order {
        self.newest
    }

    /// Between two heartbeats of the RSU.
    pub(crate) fn interval(&self) -> Duration {
        self.rhythm.interval()
    }

    /// The neighbour frames for this RSU go to.
    pub(crate) fn upstream(&self) -> Option<Mac> {
        self.upstream
    }

    /// The best distance ever advertised.
    pub(crate) fn advertised(&self) -> Option<Distance> {
        self.feasibility.distance()
    }

    pub(crate) fn upstream_candidate(&self) -> Option<&Candidate> {
        self.candidates.get(self.upstream?)
    }

    /// The longest packet that passes all radios between the RSU and us, in bytes, ours among them.
    pub(crate) fn mtu(&self, context: &Context) -> u16 {
        self.upstream
            .map_or(u16::MAX, |upstream| self.mtu_beyond(upstream))
            .min(context.radio.said_mtu())
    }

    /// The longest packet that passes all radios between the RSU and this neighbour, in bytes, its
    /// own among them.
    #[inline]
    pub(crate) fn mtu_beyond(&self, mac: Mac) -> u16 {
        self.candidates.get(mac).map_or(u16::MAX, |candidate| candidate.advert.mtu)
    }

    /// Why the last upstream was left.
    pub(crate) fn last_loss(&self) -> Option<Loss> {
        self.loss
    }

    /// How good the route is, for choosing between RSUs. One whose upstream has yet to prove that
    /// it hears us is as good as one that is late.
    pub(crate) fn rank(&self, context: &Context, now: Timestamp) -> Option<Rank> {
        let rank = self.rank_where(context, now, Cost::ZERO)?;
        let is_late = rank.is_late || self.is_late(context, now);
        Some(Rank { is_late, ..rank })
    }

    /// How good the route is where a relay costs this. How many share one says nothing about RSUs:
    /// between them it costs nothing.
    pub(crate) fn rank_where(
        &self,
        context: &Context,
        now: Timestamp,
        relay: Cost,
    ) -> Option<Rank> {
        let ranker = Ranker { relay, ..self.ranker(context, now) };
        self.upstream_candidate().map(|upstream| ranker.rank(upstream))
    }

    /// The upstream, or else the neighbour most likely to become it.
    pub(crate) fn best_known(&self, context: &Context, now: Timestamp) -> Option<Mac> {
        self.upstream.or_else(|| self.first_ready(context, now))
    }

    /// Of the way through [`Route::best_known`].
    pub(crate) fn likely_cost(&self, context: &Context, now: Timestamp) -> Cost {
        let best = self.best_known(context, now).and_then(|mac| self.candidates.get(mac));
        let ranker = Ranker { relay: Cost::ZERO, ..self.ranker(context, now) };
        best.map_or(Cost::MAX, |best| ranker.rank(best).cost)
    }

    pub(crate) fn changed_at(&self) -> Timestamp {
        self.changed_at
    }

    pub(crate) fn is_forgettable(&self, now: Timestamp) -> bool {
        now.since(self.newest_at) >= timing::forget_after(self.interval())
    }

    /// Somebody may still send through us on the strength of what we said.
    pub(crate) fn is_counted_on(&self, now: Timestamp) -> bool {
        self.said_at.is_some_and(|said| now < said + self.counted_on_for())
    }

    /// How long somebody may count on what we said last. Who has not heard that the RSU's
    /// heartbeats come more often now waits for them as long as before.
    fn counted_on_for(&self) -> Duration {
        timing::counted_on_for(self.interval().max(self.interval_said), self.stride_said)
    }

    pub(crate) fn newest_at(&self) -> Timestamp {
        self.newest_at
    }

    /// Still listening after our restart: this RSU is not routed to through others, nor for others.
    pub(crate) fn is_quiet(&self, context: &Context, now: Timestamp) -> bool {
        context.policy.quiet_period && now < self.quiet_until(context)
    }

    fn quiet_until(&self, context: &Context) -> Timestamp {
        self.quiet_until.max(context.started + timing::quiet_for(self.interval()))
    }

    /// A neighbour advertised its way: by heartbeat, or by answering a probe.
    pub(crate) fn hear(
        &mut self,
        context: &Context,
        now: Timestamp,
        from: Mac,
        id: NodeId,
        advert: Advert,
        rhythm: Rhythm,
    ) -> Learned {
        let order = advert.distance.order;
        let learned = self.believe(context, now, order, rhythm);
        if learned == Learned::Doubtful {
            return learned;
        }
        let is_borne_with = advert.stride > 0 || self.is_in_crowd(context);
        if is_borne_with && !self.told_of_restart && self.is_quiet(context, now) {
            // Before a restart we may have been its way, and somebody may bear with us for longer
            // than we are quiet.
            self.told_of_restart = true;
            self.withdrawals.begin(now);
        }
        let known = self.candidates.get(from).map(|c| c.advert);
        if !self.candidates.hear(now, from, id, advert, self.upstream) {
            return learned;
        }
        if advert.via == context.id() && context.policy.feasibility {
            self.stand_by_what_is_believed(now, advert.distance);
        }
        if self.upstream == Some(from) {
            self.last_hops = advert.distance.hops.saturating_add(1);
            self.evidence = now;
            if known.is_none_or(|known| order > known.distance.order) {
                self.progress = now;
            }
        }
        learned
    }

    /// A neighbour says that its way leads through us, this far. So it believes that we advertised
    /// one hop less: we did, or did before we restarted, or somebody did in our name. Whichever it
    /// was, it binds us, or we might send through whoever is behind that neighbour.
    fn stand_by_what_is_believed(&mut self, now: Timestamp, theirs: Distance) {
        let Some(hops) = theirs.hops.checked_sub(1).filter(|hops| *hops > 0) else { return };
        self.feasibility.advertised(Distance { hops, ..theirs });
        let upstream = self.upstream_candidate().map(|upstream| upstream.advert.distance);
        if upstream.is_some_and(|distance| !self.feasibility.allows(distance)) {
            self.lose_upstream(now, Cause::Withdrawn);
        }
    }

    /// Whether what this neighbour just said can change anything before the next deadline. In a
    /// crowd most of what is heard cannot, and need not be thought about.
    pub(crate) fn is_moved_by(&self, context: &Context, now: Timestamp, from: Mac) -> bool {
        match self.upstream_candidate() {
            Some(upstream) => {
                upstream.mac == from
                    || upstream.is_leaving()
                    || self.preferred.is_some_and(|(mac, _)| mac == from)
            }
            None => {
                self.wants_proof(context, now, false) || self.judge(context, now).is_proven(from)
            }
        }
    }

    /// A neighbour relayed a heartbeat, or the RSU sent one: who else speaks.
    pub(crate) fn note_heartbeat(
        &mut self,
        context: &Context,
        now: Timestamp,
        from: Mac,
        heard: &Heartbeat,
    ) {
        self.obus.hear(heard.order, heard.obus, context.obus_at_least(now));
        if let Some(candidate) = self.candidates.get_mut(from) {
            candidate.children = heard.children;
        }
        let Some(hops) = self.hops() else { return };
        if heard.hops > 0 && heard.hops <= hops.saturating_add(1) {
            self.crowd.hear_relay(heard.order);
        }
    }

    /// OBUs attached to the RSU.
    pub(crate) fn obus(&self) -> u16 {
        self.obus.count()
    }

    /// Ours to the RSU.
    pub(crate) fn hops(&self) -> Option<u8> {
        self.upstream.map(|_| self.last_hops)
    }

    /// OBUs that want something of this RSU: as many as it says, or as fill the air around us.
    fn obus_known(&self) -> u16 {
        self.obus().max(self.obus_heard)
    }

    /// OBUs that share the radio with what we say about this RSU: its own, and those around us.
    fn crowd_size(&self, context: &Context) -> u16 {
        self.obus().max(context.obus)
    }

    /// As [`Context::is_in_crowd`], but with this RSU's own OBUs.
    fn is_in_crowd(&self, context: &Context) -> bool {
        self.crowd_size(context) >= timing::CROWD
    }

    /// As [`Context::is_congested`], but with this RSU's own OBUs.
    fn is_congested(&self, context: &Context) -> bool {
        self.is_in_crowd(context) && context.hears_many()
    }

    /// A neighbour has a way, and all that keeps us from using it is that we are still quiet.
    pub(crate) fn waits_out_quiet(&self, context: &Context, now: Timestamp) -> bool {
        self.is_quiet(context, now) && (self.upstream.is_some() || self.has_ready(context, now))
    }

    /// Time between two of our replies to this RSU.
    pub(crate) fn reply_every(&self) -> Duration {
        timing::reply_every(self.interval(), self.obus_known())
    }

    /// Time between two probes, one to each of so many targets in turn.
    pub(crate) fn probe_every(&self, context: &Context, targets: usize) -> Duration {
        timing::probe_every(self.interval(), self.crowd_size(context), targets)
    }

    /// When the RSU sent its heartbeat of this number, by our clock and about: as many ticks
    /// before or after it sent the newest we have heard, and not later than now. `None`: we have
    /// heard none of that start of the RSU, or of a later one already.
    pub(crate) fn when(&self, now: Timestamp, boot: u8, seq: Seq) -> Option<Timestamp> {
        if boot != self.newest.boot.low_byte() {
            return None;
        }
        let before = self.newest.seq.0.saturating_sub(seq.0);
        let after = seq.0.saturating_sub(self.newest.seq.0);
        let sent = self.newest_sent.before(self.rhythm.tick().saturating_mul(before));
        Some(now.min(sent + self.rhythm.tick().saturating_mul(after)))
    }

    /// What is known of this candidate.
    pub(crate) fn candidate(&self, mac: Mac) -> Option<&Candidate> {
        self.candidates.get(mac)
    }

    /// Who this candidate is.
    pub(crate) fn id_of(&self, mac: Mac) -> Option<NodeId> {
        self.candidate(mac).map(|candidate| candidate.id)
    }

    /// A neighbour named us as its upstream, or sent something for this RSU through us.
    pub(crate) fn note_child(&mut self, now: Timestamp) {
        self.child_at = Some(now);
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn tidy(&mut self, now: Timestamp) {
        self.kept.tidy(now);
    }

    /// So many neighbours are reached from the RSU through us. Counted once a second.
    pub(crate) fn count_children(&mut self, children: usize) {
        self.children = u8::try_from(children).unwrap_or(u8::MAX).min(CHILDREN_MAX);
    }

    /// Data goes to the upstream, and to nobody else or by a second way as well. Returns the time
    /// after which the upstream's silence is asked about, if that may be sooner than planned:
    /// because there was no traffic, or because all the traffic before has been proven to arrive.
    pub(crate) fn note_sent(
        &mut self,
        context: &Context,
        now: Timestamp,
        sent_twice: bool,
    ) -> Option<Duration> {
        let is_planned = self.unproven_since.is_some() && !self.is_idle(now);
        if self.unproven_since.is_none() && !self.is_trusted(context, now) {
            self.unproven_since = Some(now);
        }
        self.active_at = Some(now);
        self.at_risk += u64::from(!sent_twice);
        (!is_planned).then(|| self.watch(context, now).late_after)
    }

    /// Where it is congested, what the upstream has proven lately need not be asked again for each
    /// frame.
    fn is_trusted(&self, context: &Context, now: Timestamp) -> bool {
        // Asked for each frame: who the upstream is lies elsewhere in memory.
        self.is_congested(context) && {
            let proven =
                self.upstream.and_then(|upstream| context.neighbours.get(upstream)?.proven);
            proven.is_some_and(|at| now.since(at) < timing::trusted_for(self.interval()))
        }
    }

    /// The upstream was asked in its turn. Should it not answer it is watched as if it were silent,
    /// for all its heartbeats. An OBU whose clients are still would not know else that nobody hears
    /// it, and that the LAN cannot reach it.
    pub(crate) fn note_question(&mut self, now: Timestamp) {
        self.unproven_since.get_or_insert(now);
    }

    /// A frame came down from the upstream.
    pub(crate) fn note_received(&mut self, now: Timestamp) {
        self.active_at = Some(now);
    }

    /// The upstream proved that it hears us.
    pub(crate) fn note_proof(&mut self, from: Mac) {
        if self.upstream == Some(from) {
            self.unproven_since = None;
            self.at_risk = 0;
            self.asked = 0;
            self.end_doubt();
        }
    }

    /// How good a candidate is.
    fn ranker<'a>(&'a self, context: &'a Context, now: Timestamp) -> Ranker<'a> {
        Ranker {
            now,
            interval: self.interval(),
            neighbours: &context.neighbours,
            upstream: self.upstream,
            suspects: &self.suspects,
            relay: RELAY,
            by_hops: context.policy.ranking == Ranking::Hops,
        }
    }

    fn judge<'a>(&'a self, context: &'a Context, now: Timestamp) -> Judge<'a> {
        Judge {
            ranker: self.ranker(context, now),
            us: context.id(),
            feasibility: if context.policy.feasibility {
                self.feasibility
            } else {
                Feasibility::default()
            },
            is_quiet: self.is_quiet(context, now),
            proven_for: timing::proven_for(self.interval()),
        }
    }

    /// Does whatever is due. `is_ours`: our own data goes to this RSU.
    pub(crate) fn drive(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        is_ours: bool,
        out: &mut Replies,
    ) {
        self.is_ours = is_ours;
        self.obus_heard = context.load.obus();
        if now >= context.grace_until {
            self.candidates.expire(now, self.interval() * timing::CANDIDATE_INTERVALS);
        }
        self.check_upstream(context, now, is_ours, out);
        self.leave_a_leaving_upstream(context, now);
        if self.upstream.is_none() {
            self.adopt_best(context, now);
        }
        if self.upstream.is_none() {
            if self.wants_proof(context, now, is_ours) {
                self.look_for_proof(context, now, out);
            }
            self.withdraw_if_advertised(context, now);
        } else {
            if now >= self.consider_at || self.preferred.is_some() {
                self.consider_at = now + timing::consider_every(self.interval());
                self.consider_better(context, now);
            }
            self.prove_preferred(context, now, out);
            self.plan_relay(context, now);
            self.plan_keepalive(context, now);
        }
        self.relay_if_due(context, now, out);
        self.say_withdrawal_if_due(context, now, out);
    }

    /// Whether neighbours are asked for proof as soon as they could be upstream. In a crowd, those
    /// towards another RSU wait for their turn among the probes, and without a way until there has
    /// been time to find one to the last RSU.
    fn wants_proof(&self, context: &Context, now: Timestamp, is_ours: bool) -> bool {
        let is_other = context.last.is_some_and(|(rsu, lost_at)| {
            rsu != self.rsu && now < lost_at + timing::hold_down(self.interval())
        });
        let waits = is_other && context.is_idle(now);
        is_ours || !self.is_in_crowd(context) || (context.hops.is_none() && !waits)
    }

    /// When [`Route::drive`] next has something to do, and what.
    pub(crate) fn deadline(&self, context: &Context, now: Timestamp, is_ours: bool) -> Deadline {
        // What is old is forgotten as the node tidies up, which has a time of its own.
        let mut next = Deadline::new(now + timing::forget_after(self.interval()), "forget an RSU");
        if self.is_quiet(context, now) {
            next = next.or_at(self.quiet_until(context), "end the quiet period");
        }
        next = next.or_at(self.relay_at, "relay a heartbeat");
        let withdrawal = self.withdrawals.due_at().filter(|_| context.link_is_up);
        next = next.or_at(withdrawal, "say a withdrawal");
        if self.upstream.is_some() {
            if self.relay_at.is_none() {
                next = next.or_at(self.keepalive_at(context, now), "repeat a heartbeat");
            }
            return next.or(self.upstream_deadline(context, now, is_ours));
        }
        if self.hold_down(context, now).is_some() {
            let over = self.lost_at + timing::hold_down(self.interval());
            next = next.or_at(over, "end the hold-down");
        } else if self.advertised_at.is_some() {
            next = next.or_at(now, "withdraw a way that is lost");
        }
        if !self.wants_proof(context, now, is_ours) {
            return next;
        }
        // A question may be due and wait for the rate limit.
        let soonest = now + timing::ask_every(self.interval());
        let soonest = self.look_at.filter(|at| *at > now).unwrap_or(soonest);
        let proof_at = self.next_proof_at(context, now).map(|at| at.max(soonest));
        next.or_at(proof_at, "ask a neighbour for proof")
    }
}
