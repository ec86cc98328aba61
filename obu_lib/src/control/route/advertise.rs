//! What is said to others about the way to the RSU: relayed heartbeats, answers, withdrawals.

use std::time::Duration;

use node_lib::control::node::Replies;
use node_lib::messages::Cost;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::probe::AnsweredRoute;
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::messages::flags::STRIDE_MAX;
use node_lib::{Mac, Order, Timestamp};

use crate::control::route::feasibility::Distance;

use super::super::context::Context;
use super::super::timing;
use super::Route;
use super::suppression::Speakers;

/// An RSU more than this much further away than ours is no alternative to anybody who hears us: its
/// news is left to others until we lose ours. With two hops, the air around one RSU is full of the
/// other's.
const DETOUR_MAX: u8 = 1;

impl Route {
    /// News from the upstream is relayed once, after a short random wait.
    pub(super) fn plan_relay(&mut self, context: &mut Context, now: Timestamp) {
        let Some(advert) = self.upstream_candidate().map(|c| c.advert) else { return };
        let is_news = self.relayed.is_none_or(|relayed| advert.distance.order > relayed);
        if !is_news || !self.may_advertise(context, now) || self.relay_at.is_some() {
            return;
        }
        let order = advert.distance.order;
        if self.leaves_out(context, now, order) {
            self.relayed = Some(order);
            context.counters.heartbeat_left += 1;
            return;
        }
        let hops = advert.distance.hops.saturating_add(1);
        let is_in_scope =
            self.is_ours || context.last_relayed.is_none_or(|last| (hops, self.rsu) <= last);
        let has_room = is_in_scope && !self.is_in_crowd(context);
        let is_needed = !context.policy.suppression || has_room || self.has_children(now);
        let is_near =
            is_in_scope && context.hops.is_none_or(|ours| hops <= ours.saturating_add(DETOUR_MAX));
        if !is_needed && !is_near
            || !self.crowd.speaks(
                order,
                is_needed,
                if self.is_ours { Speakers::OURS } else { Speakers::OTHER },
                &mut context.random,
            )
        {
            self.relayed = Some(order);
            context.counters.heartbeat_left += 1;
            return;
        }
        let waits_for_preferred = self.preferred.is_some_and(|(mac, _)| {
            self.candidates
                .get(mac)
                .is_some_and(|c| c.advert.distance.order < advert.distance.order)
        });
        let wait = if waits_for_preferred {
            timing::prefer_for(self.interval())
        } else {
            self.wait_in_crowd(context)
                + context.random.up_to(timing::RELAY_DELAY_MAX.min(self.interval() / 20))
        };
        self.relay_at = Some(now + wait);
    }

    /// Says again what was said last when there has been no news for long, so that those behind us
    /// know that we are still there.
    pub(super) fn plan_keepalive(&mut self, context: &mut Context, now: Timestamp) {
        if self.relay_at.is_none() && self.keepalive_at(context, now).is_some_and(|at| now >= at) {
            self.relay_at = Some(now + context.random.up_to(timing::RELAY_DELAY_MAX / 4));
        }
    }

    /// When those behind us want to hear from us next.
    pub(super) fn keepalive_at(&self, context: &Context, now: Timestamp) -> Option<Timestamp> {
        let is_due = context.policy.suppression
            && self.is_in_crowd(context)
            && self.has_children(now)
            && self.may_advertise(context, now);
        let spoke = self.spoke_at.filter(|_| is_due)?;
        Some(spoke + timing::keepalive_after(self.interval(), self.stride_said))
    }

    /// How much longer we wait with a heartbeat because many relay it.
    fn wait_in_crowd(&self, context: &mut Context) -> Duration {
        if !self.is_in_crowd(context) {
            return Duration::ZERO;
        }
        context.random.up_to(timing::CROWD_DELAY_MAX.min(self.interval() / 4))
    }

    /// Of the heartbeats that the RSU sends a relay brings its share: the same ones as all others
    /// of its stride, or none would get far. More often than it said it may speak at once.
    fn leaves_out(&self, context: &Context, now: Timestamp, order: Order) -> bool {
        let stride = self.stride(context, now).min(self.stride_said);
        !self.rhythm.is_brought(order.seq, stride)
    }

    /// How rarely we bring heartbeats from now on. Where the air is full a relay through which
    /// nothing goes brings every fourth. One through which frames go brings every second in a place
    /// that is congested, unless many get lost on their way to it. Nobody brings them more often
    /// than its upstream does.
    fn stride(&self, context: &Context, now: Timestamp) -> u8 {
        let ours = if !context.policy.suppression || !context.load.is_full() {
            0
        } else if self.is_idle(now) {
            STRIDE_MAX
        } else {
            u8::from(self.is_congested(context) && !self.upstream_loses_many(context))
        };
        ours.max(self.upstream_stride().min(STRIDE_MAX))
    }

    pub(super) fn relay_if_due(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        out: &mut Replies,
    ) {
        if self.relay_at.is_none_or(|at| now < at) {
            return;
        }
        self.relay_at = None;
        let Some(route) = self.advertise(context, now) else { return };
        self.relayed = Some(route.order);
        self.spoke_at = Some(now);
        context.hello = context.hello.wrapping_add(1);
        (self.stride_said, self.interval_said) = (route.stride, self.interval());
        context.load.note(now, route.stride);
        let heartbeat = Heartbeat {
            rsu: self.rsu,
            order: route.order,
            rhythm: route.rhythm,
            hop_limit: route.hop_limit,
            hops: route.hops,
            cost: route.cost,
            sender: context.id(),
            sender_boot: context.radio.boot,
            hello: context.hello,
            via: route.via,
            obus: self.obus(),
            mtu: self.mtu(context),
            children: self.children,
            stride: route.stride,
            position: context.positions.to_say(now),
        };
        context.radio.control(Mac::BROADCAST, heartbeat, out, &mut context.counters);
    }

    /// There is a way that others may be told of.
    fn may_advertise(&self, context: &Context, now: Timestamp) -> bool {
        !context.is_leaving
            && !self.is_quiet(context, now)
            && self.upstream_candidate().is_some_and(|upstream| upstream.advert.hop_limit > 0)
    }

    /// What we tell others about our way, if we have one to offer; binds us to it.
    pub(crate) fn advertise(&mut self, context: &Context, now: Timestamp) -> Option<AnsweredRoute> {
        if context.is_leaving || self.is_quiet(context, now) {
            return None;
        }
        let candidate = *self.upstream_candidate()?;
        let hop_limit = candidate.advert.hop_limit.checked_sub(1)?;
        let upstream = candidate.advert.distance;
        let distance = Distance { order: upstream.order, hops: upstream.hops.saturating_add(1) };
        self.feasibility.advertised(distance);
        self.advertised_at = Some(now);
        self.said_at = Some(now);
        let link = context
            .neighbours
            .get(candidate.mac)
            .map_or(Cost::ONE, |n| n.link_cost(now, self.interval()));
        Some(AnsweredRoute {
            order: distance.order,
            rhythm: self.rhythm,
            hops: distance.hops,
            hop_limit,
            cost: candidate.advert.cost.saturating_add(link),
            via: candidate.id,
            stride: self.stride(context, now),
        })
    }

    /// Others may still send through us: they must hear that there is no way any more.
    pub(super) fn withdraw_if_advertised(&mut self, context: &Context, now: Timestamp) {
        if self.hold_down(context, now).is_some() {
            return;
        }
        // Later than that nobody counts on what we said.
        let believed_for = self.interval() * timing::CANDIDATE_INTERVALS;
        let is_believed = |at| now.since(at) <= believed_for;
        if self.advertised_at.take().is_some_and(is_believed) {
            self.withdrawals.begin(now);
        }
    }

    pub(super) fn say_withdrawal_if_due(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        out: &mut Replies,
    ) {
        if context.link_is_up && self.withdrawals.take(now) {
            self.say_withdrawal(context, Mac::BROADCAST, out);
        }
    }

    /// Says that there is no way to this RSU through us.
    pub(crate) fn say_withdrawal(&self, context: &mut Context, to: Mac, out: &mut Replies) {
        let Ok(rsus) = NodeIds::parse(&self.rsu.0) else { return };
        let withdrawal = Withdrawal {
            sender: context.id(),
            sender_boot: context.radio.boot,
            goodbye: false,
            rsus,
        };
        context.radio.control(to, withdrawal, out, &mut context.counters);
    }
}
