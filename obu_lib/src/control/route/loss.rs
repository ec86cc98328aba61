//! How the upstream is lost, what that may cost, and how long a long way round is not taken then.

use std::time::Duration;

use node_lib::control::at_risk::BYTES_MAX;
use node_lib::control::duplicates::Duplicates;
use node_lib::control::event::Cause;
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::Replies;
use node_lib::messages::data::{Data, ToUpstream};
use node_lib::{Mac, NodeId, Timestamp};

use super::Route;
use super::doubt::Doubt;
use crate::control::context::Context;
use crate::control::timing;

/// Intervals: one that withdraws has been without a way for about as long as it takes to notice
/// that.
const WITHDRAWN_AFTER: u32 = 3;

/// Why an upstream was lost, and how long it had been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) cause: Cause,
    pub(crate) silence: Duration,
    /// Since when what went through it, up or down, may not have arrived.
    pub(crate) lost_from: Option<Timestamp>,
    /// The last moment there was no reason to doubt it.
    pub(crate) believed_until: Timestamp,
    /// Frames handed to it since then, and to nobody else.
    pub(crate) at_risk: u64,
    /// The second way that was open meanwhile.
    pub(crate) doubt: Option<Doubt>,
}

impl Route {
    /// A neighbour has no way any more: it withdrew, restarted, or fell silent.
    pub(crate) fn drop_candidate(&mut self, now: Timestamp, from: Mac, cause: Cause) {
        let is_rsu = self.id_of(from) == Some(self.rsu);
        self.candidates.forget(from);
        self.end_doubt_through(from);
        if self.upstream == Some(from) {
            self.lose_upstream(now, cause);
        }
        if is_rsu && cause == Cause::Restarted {
            self.spare_the_new_rsu();
        }
    }

    /// An RSU that has just started would not take what goes to it for the second time.
    pub(super) fn spare_the_new_rsu(&mut self) {
        self.kept_since = None;
    }

    /// A neighbour does not hear us: it is no upstream to this RSU either.
    pub(crate) fn leave_silent(&mut self, now: Timestamp, from: Mac) {
        if self.upstream == Some(from) {
            self.drop_candidate(now, from, Cause::Dead);
        }
    }

    /// A neighbour said goodbye: it is not chosen any more, but may carry what is under way until
    /// another way is there. Should it go on advertising, it has not left.
    pub(crate) fn note_goodbye(&mut self, from: Mac, id: NodeId) {
        let rsu_leaves = id == self.rsu;
        for candidate in self.candidates.iter_mut() {
            // With the RSU itself every way to it ends.
            if candidate.mac == from || rsu_leaves {
                candidate.note_goodbye();
            }
        }
    }

    /// The radio is down: nobody can be reached. What was advertised stays advertised.
    pub(crate) fn link_down(&mut self, now: Timestamp) {
        self.candidates.clear();
        if self.upstream.is_some() {
            self.lose_upstream(now, Cause::LinkDown);
        }
        // Nobody can be told, and those behind us notice our silence.
        self.withdrawals.end();
        self.advertised_at = None;
        self.relay_at = None;
    }

    pub(super) fn lose_upstream(&mut self, now: Timestamp, cause: Cause) {
        self.upstream = None;
        self.look_at = None;
        self.lost_at = now;
        self.relay_at = None;
        self.note_loss(self.leave(now, cause));
        self.doubt = None;
        self.told = None;
        self.predicted = None;
    }

    /// Why the upstream was lost or left, and from when on what it was given goes another way.
    pub(super) fn note_loss(&mut self, loss: Loss) {
        self.loss = Some(loss);
        let Some(since) = loss.lost_from else { return };
        for earliest in [&mut self.kept_since, &mut self.untold_since] {
            *earliest = Some(earliest.map_or(since, |before| before.min(since)));
        }
    }

    /// The RSU knows who our upstream is: what it sends since goes there.
    pub(crate) fn note_told(&mut self) {
        self.untold_since = None;
    }

    /// For how long, in 10 ms, what came down may not have reached us or those behind us: since the
    /// last sign of life of an upstream that is in doubt, or was lost and the RSU may not know.
    pub(crate) fn at_risk_10ms(&self, context: &Context, now: Timestamp) -> u8 {
        if !context.policy.rerouting {
            return 0;
        }
        let doubted = self.doubt.map(|_| self.believed_since());
        let since = doubted.into_iter().chain(self.untold_since).min();
        let at_risk = since.map_or(0, |since| now.since(since).as_millis().div_ceil(10));
        u8::try_from(at_risk).unwrap_or(u8::MAX)
    }

    /// A frame goes to the upstream alone. Should that be lost it may go another way, if it has not
    /// done so before. `from`: who sent it to us.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        context: &Context,
        now: Timestamp,
        from: Option<Mac>,
        data: ToUpstream<'_>,
    ) {
        if context.policy.rerouting && !data.again {
            self.kept.keep(now, from, Data::Upstream(data), BYTES_MAX);
        }
    }

    /// What a lost upstream was given since its last sign of life goes to the next one, as soon as
    /// there is one. Of our own clients nothing goes to an RSU any more that we are not attached
    /// to, or its LAN would take them to be there. `is_ours`: we are. `sent_again`: what the radio
    /// gave up has gone once more already.
    pub(crate) fn reroute(
        &mut self,
        context: &mut Context,
        sent_again: &mut Duplicates,
        now: Timestamp,
        is_ours: bool,
        out: &mut Replies,
    ) {
        let Some(upstream) = self.upstream else { return };
        let Some(since) = self.kept_since.take() else { return };
        let hop = NextHop { mac: upstream, mtu: self.mtu_beyond(upstream) };
        let Context { radio, counters, .. } = context;
        self.kept.reroute(now, since, upstream, |data| {
            let Data::Upstream(data) = data else { return };
            if (is_ours || data.source != radio.id)
                && sent_again.accept(now, data.source, data.boot, data.seq)
            {
                let is_sent = radio.data(hop, ToUpstream { again: true, ..data }, out, counters);
                counters.rerouted += u64::from(is_sent);
            }
        });
    }

    /// What leaving the upstream now, for this reason, may cost.
    pub(crate) fn leave(&self, now: Timestamp, cause: Cause) -> Loss {
        let is_doubted = match cause {
            Cause::Dead | Cause::Restarted => true,
            Cause::Fading | Cause::Predicted => self.asked > timing::DOUBTED_AFTER,
            // It said so itself, it still works, or we know at once.
            _ => false,
        };
        let lost_from = match cause {
            Cause::Withdrawn => Some(now.before(self.interval() * WITHDRAWN_AFTER)),
            _ => is_doubted.then(|| self.believed_since()),
        };
        Loss {
            cause,
            lost_from,
            silence: now.since(self.evidence),
            believed_until: if is_doubted { self.believed_since() } else { now },
            at_risk: if is_doubted { self.at_risk } else { 0 },
            doubt: self.doubt,
        }
    }

    /// In a crowd, an OBU that is idle or congested and has just lost its upstream does not take
    /// any long way there is. The next heartbeat may bring one as good as the last. Otherwise
    /// whenever the vehicle that many route through drives off, all of them would go round by the
    /// other end of the town, and come back three seconds later. Where the air is full of data,
    /// each frame would fill it on every hop of that way. Returns the most hops it accepts.
    pub(crate) fn hold_down(&self, context: &Context, now: Timestamp) -> Option<u8> {
        let waits = context.policy.suppression
            && self.upstream.is_none()
            && now < self.lost_at + timing::hold_down(self.interval())
            && (self.may_defer(context, now) || self.is_congested(context));
        waits.then(|| self.last_hops.saturating_add(1))
    }
}
