//! From the decision to change to the moment the old way is closed: both ways are listened to, the
//! old RSU is told last, and a record says what it cost.

use std::time::Duration;

use node_lib::control::event::{Attachment, Cause, Event, HandOver};
use node_lib::control::node::Replies;
use node_lib::{Mac, NodeId, Timestamp};

use super::super::registration::Flags;
use super::super::route::{Loss, Route};
use super::super::timing;
use super::super::towards::{Standing, Towards};
use super::{AttachedVia, Obu};

/// The RSU we left: what is on its way from there is still taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parting {
    pub(super) rsu: NodeId,
    /// As it was told.
    upstream: NodeId,
    until: Timestamp,
    /// The new RSU has acknowledged: the old one may be told that we left.
    is_over: bool,
}

/// A change that is not settled yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsettled {
    record: HandOver,
    /// From when on no way was believed.
    lost_at: Timestamp,
    /// When the first frame went over the new way.
    found_at: Option<Timestamp>,
    acknowledged_at: Option<Timestamp>,
    /// The upstream left, and when.
    left: Option<(Mac, Timestamp)>,
}

impl Obu {
    /// The attachment changed: opens the record of it, and keeps an ear on the old RSU.
    pub(super) fn note_change(
        &mut self,
        now: Timestamp,
        from: Option<Attachment>,
        to: Option<Attachment>,
        left: Option<Mac>,
        loss: Option<Loss>,
        cause: Cause,
    ) {
        if let Some(from) = from.filter(|from| to.is_some_and(|to| to.rsu != from.rsu)) {
            let until = now + timing::PART_FOR;
            let Attachment { rsu, upstream, .. } = from;
            self.parting = Some(Parting { rsu, upstream, until, is_over: false });
        } else if let (Some(parting), Some(to)) = (self.parting, to)
            && parting.rsu == to.rsu
        {
            self.parting = None;
        }
        let found_at = to.map(|to| match loss.and_then(|loss| loss.doubt) {
            // The second way has become the first: frames have been going over it already.
            Some(doubt) if Some(doubt.via) == self.upstream_of(to.rsu) => doubt.since,
            _ => now,
        });
        let mut lost_at = loss.map_or(now, |loss| loss.believed_until);
        if let Some(before) = self.unsettled.take() {
            if before.record.to.is_none() && before.acknowledged_at.is_none() {
                // Nothing was found until now: it is still the same change.
                let record = HandOver { to, ..before.record };
                self.unsettled = Some(Unsettled { record, found_at, ..before });
                return;
            }
            if before.acknowledged_at.is_none() {
                lost_at = lost_at.min(before.lost_at);
            }
            self.close_record(now, before, false);
        }
        let Some(from) = from else { return };
        self.unsettled = Some(Unsettled {
            record: HandOver {
                from,
                to,
                cause,
                is_settled: false,
                gap: Duration::ZERO,
                lost: 0,
                at_risk: loss.map_or(0, |loss| loss.at_risk),
                doubled: 0,
                sent_twice: loss.and_then(|loss| loss.doubt).map_or(0, |doubt| doubt.sent_twice),
            },
            lost_at,
            found_at,
            acknowledged_at: None,
            left: left.map(|mac| (mac, now)),
        });
    }

    /// The RSU knows where we are now.
    pub(super) fn note_acknowledged(&mut self, now: Timestamp) {
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.acknowledged_at.get_or_insert(now);
        }
        if let Some(parting) = &mut self.parting
            && !parting.is_over
        {
            parting.is_over = true;
            parting.until = now + timing::PART_FOR;
        }
    }

    /// A frame of a client had nowhere to go.
    pub(in crate::control) fn note_lost(&mut self) {
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.record.lost += 1;
        }
    }

    /// A frame from above came a second time.
    pub(in crate::control) fn note_doubled(&mut self) {
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.record.doubled += 1;
        }
    }

    /// Floods of this RSU are for us: we are attached to it, or were a moment ago.
    pub(in crate::control) fn listens_to(&self, now: Timestamp, rsu: NodeId) -> bool {
        self.is_attached_to(rsu)
            || self.parting.is_some_and(|parting| parting.rsu == rsu && now < parting.until)
    }

    /// This RSU was left a moment ago, and still finds the way to us: what is late comes from
    /// there.
    pub(super) fn is_parting_from(&self, rsu: NodeId) -> bool {
        let upstream = self.upstream_for(rsu);
        self.parting.is_some_and(|from| from.rsu == rsu && Some(from.upstream) == upstream)
    }

    /// Tells the old RSU that we left when nothing can be on its way from there any more, and
    /// closes the record of a change that is settled.
    pub(super) fn settle(&mut self, now: Timestamp, out: &mut Replies) {
        if let Some(parting) = self.parting.filter(|parting| now >= parting.until) {
            self.parting = None;
            // Others may still go there through us: then it must know our upstream.
            let is_next = self.registration.standby_at() == Some(parting.rsu);
            let stays = is_next || self.children.are_reached(now, parting.rsu);
            if let Some(upstream) = self.upstream_of(parting.rsu).filter(|_| !stays)
                && parting.is_over
            {
                self.say(
                    now,
                    parting.rsu,
                    upstream,
                    Flags { goodbye: true, ..Flags::default() },
                    out,
                );
            } else if stays && !is_next {
                self.register_for_others(now, parting.rsu, out);
            }
        }
        if self.parting.is_none()
            && let Some(unsettled) = self.unsettled.filter(|u| u.acknowledged_at.is_some())
        {
            self.unsettled = None;
            self.close_record(now, unsettled, false);
        }
    }

    /// Nothing goes over the new way. The RSU was told of it, and need not answer.
    pub(super) fn note_mentioned(&mut self, now: Timestamp) {
        if let Some(unsettled) = self.unsettled.take_if(|unsettled| unsettled.found_at.is_some()) {
            self.close_record(now, unsettled, true);
        }
    }

    fn close_record(&mut self, now: Timestamp, unsettled: Unsettled, is_mentioned: bool) {
        let Unsettled { mut record, mut lost_at, found_at, acknowledged_at, left } = unsettled;
        let lives = left.is_some_and(|(mac, at)| {
            self.context.neighbours.get(mac).is_some_and(|neighbour| neighbour.heard > at)
        });
        let was_in_doubt = left.is_some_and(|(_, at)| lost_at < at);
        let is_foreseen = matches!(record.cause, Cause::Fading | Cause::Predicted);
        if is_foreseen && lives {
            // It was slow to answer, not gone.
            (lost_at, record.at_risk) = (now, 0);
        } else if is_foreseen && was_in_doubt {
            // It left questions unanswered, and has not been heard since: it was dying, and we did
            // not know yet.
            record.cause = Cause::Dead;
        }
        record.is_settled = acknowledged_at.is_some() || is_mentioned;
        let until = found_at.filter(|_| record.is_settled).unwrap_or(now);
        record.gap = until.since(lost_at);
        if record.is_settled {
            let gap_us = u64::try_from(record.gap.as_micros()).unwrap_or(u64::MAX);
            let counters = &mut self.context.counters;
            counters.hand_overs += 1;
            counters.gap_sum_us = counters.gap_sum_us.saturating_add(gap_us);
            counters.gap_max_us = counters.gap_max_us.max(gap_us);
        }
        self.context.event(Event::HandOver(record));
    }

    /// While the upstream is in doubt the way down to us is the second way, and then the first
    /// again. That it is over the RSU has to acknowledge: it would send the other way until the
    /// next reply, and nobody watches that one any more.
    pub(super) fn tell_second_way(&mut self, now: Timestamp, out: &mut Replies) {
        let Some(AttachedVia { rsu, upstream }) = self.attached else { return };
        match self.routes.get_mut(&rsu).and_then(Route::tell_second_way) {
            Some(through) if through == upstream => self.registration.return_to_upstream(now),
            Some(through) => self.say(now, rsu, through, Flags::default(), out),
            None => {}
        }
    }

    /// Says to the RSU, through this neighbour, how things are.
    pub(super) fn say(
        &mut self,
        now: Timestamp,
        rsu: NodeId,
        upstream: Mac,
        flags: Flags,
        out: &mut Replies,
    ) {
        let Some(route) = self.routes.get(&rsu) else { return };
        let Some(candidate) = route.candidate(upstream) else { return };
        let (via, hops) = (candidate.id, candidate.hops_through());
        let standing = Standing::Attached;
        let at_risk_10ms = route.at_risk_10ms(&self.context, now);
        let towards = Towards { rsu, upstream, via, hops, standing, is_used: false, at_risk_10ms };
        let every = route.reply_every();
        self.registration.reply(&mut self.context, now, towards, every, flags, out);
    }

    /// When [`Obu::settle`] next has something to do.
    pub(super) fn settle_at(&self) -> Option<Timestamp> {
        self.parting.map(|parting| parting.until)
    }
}
