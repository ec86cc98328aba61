//! Which heartbeats of an RSU are believed: those of its present count.
//!
//! An RSU numbers its heartbeats: boot count, then sequence ([`Order`]). Everything rests on that
//! number, so one frame with a wrong one, forged or damaged, must not move it far:
//!
//! * What was sent up to [`LATE`] before the newest heartbeat, lies up to [`STRAY`] behind it, or
//!   up to [`STRAY`] ahead of it and of what may have been missed since, is of the present count.
//! * A *later* number, as of an RSU that restarted, is believed when the present count is so late
//!   that an upstream would be asked. Where that is patient, it is believed when the present count
//!   misses a heartbeat and a second one of the later count has come.
//! * An *earlier* number is believed when the present count has been silent for as long as an
//!   upstream may be, and the earlier one goes on meanwhile. So what a forger said is forgotten
//!   soon after it stops; and so is what an RSU said whose clock was set back.
//!
//! Going back breaks the order on which feasibility rests. It is the same as a restart of this
//! node, for this RSU only: what was advertised is forgotten, and nobody is routed through, nor
//! for, until nobody counts on it any more.
//!
//! The time from one number to the next is a constant of an RSU; how many of them it sends is not.
//! Another [`Rhythm`] is believed when two heartbeats in a row say so.

use std::time::Duration;

use node_lib::control::event::Cause;
use node_lib::messages::Rhythm;
use node_lib::{Boot, Order, Timestamp};

use crate::control::route::candidates::fresh_for;
use crate::control::route::feasibility::Feasibility;

use super::super::context::Context;
use super::super::timing::{self, Watch};
use super::Route;
use super::suppression::Suppression;

/// Heartbeats by which one way may bring news later than another: a number so far ahead is believed
/// at once, and a forged one holds up what is true for so many intervals.
const STRAY: u32 = 8;

/// Over several relays whose queues are full heartbeats come so late, however short the interval,
/// and what is late is no restart.
const LATE: Duration = Duration::from_secs(2);

/// Ticks may be longer than said by a fiftieth: RSUs jitter each by up to a tenth, which over
/// fifty of them is half an interval.
const DRIFT: u32 = 50;

/// Of one count, though they came by different ways.
fn is_near(one: Order, other: Order) -> bool {
    one.boot == other.boot && one.seq.0.abs_diff(other.seq.0) <= STRAY
}

/// The last number that was not of the present count. One near it confirms it, any other takes its
/// place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim(Order);

/// What [`Route::hear`] made of a neighbour's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It is of the RSU's present count.
    Present,
    /// The RSU counts anew; before, it had this boot count.
    Anew(Boot),
    /// It contradicts what is alive and well, and is ignored.
    Doubtful,
}

impl Route {
    /// Whether this number is believed. If so, it may have become the newest.
    #[inline]
    pub(super) fn believe(
        &mut self,
        context: &Context,
        now: Timestamp,
        order: Order,
        rhythm: Rhythm,
    ) -> Learned {
        if !self.is_of_present_count(now, order) {
            return self.weigh(context, now, order, rhythm);
        }
        if order > self.newest {
            // Numbers that count another time than we think do not tell when it was sent.
            let is_usual = rhythm.tick_ms == self.rhythm.tick_ms;
            self.newest_sent = if is_usual { self.sent_by(now, order) } else { now };
            self.newest = order;
            self.newest_at = now;
            self.claim = None;
            self.note_rhythm(order, rhythm);
        }
        Learned::Present
    }

    /// When the RSU sent this heartbeat at the latest, which comes now: as many ticks after the
    /// newest as its number says. Over several full relays it may come a second late, and the
    /// earliest that came tells best (the minimum filter of RFC 5905 §10).
    fn sent_by(&self, now: Timestamp, order: Order) -> Timestamp {
        match order.ahead_of(self.newest) {
            Some(ahead) if self.newest != Order::default() => {
                let span = self.rhythm.tick().saturating_mul(ahead);
                now.min(self.newest_sent + span + span / DRIFT)
            }
            _ => now,
        }
    }

    #[inline]
    fn is_of_present_count(&self, now: Timestamp, order: Order) -> bool {
        if order.boot != self.newest.boot {
            // Nothing heard yet.
            return self.newest == Order::default();
        }
        is_near(order, self.newest)
            || self.newest.ahead_of(order).is_some_and(|behind| self.may_be_late(behind))
            || order.ahead_of(self.newest).is_some_and(|ahead| self.may_have_missed(now, ahead))
    }

    /// A heartbeat so many numbers behind the newest may only now have come.
    fn may_be_late(&self, behind: u32) -> bool {
        self.rhythm.tick().saturating_mul(behind) <= LATE
    }

    /// So many heartbeats may have been sent since the newest one that was heard.
    #[cold]
    fn may_have_missed(&self, now: Timestamp, ahead: u32) -> bool {
        let tick = self.rhythm.tick().as_micros().max(1);
        let ticks = now.since(self.newest_at).as_micros() / tick;
        u128::from(ahead) <= ticks.saturating_mul(2).saturating_add(STRAY.into())
    }

    /// A number from elsewhere: is there reason enough to believe it?
    #[cold]
    fn weigh(
        &mut self,
        context: &Context,
        now: Timestamp,
        order: Order,
        rhythm: Rhythm,
    ) -> Learned {
        let before = self.claim_near(order);
        let advances = before.is_none_or(|claimed| order > claimed);
        let is_second = before.is_some() && advances;
        if advances {
            self.note_rhythm(order, rhythm);
        }
        let silence = now.since(self.newest_at);
        let is_believed = if order > self.newest {
            let late = self.watch(context, now).late_after;
            let late_after = |missed| Watch::new(self.interval(), 0, missed, false).late_after;
            let late = late.min(late_after(timing::MISSED_IDLE));
            silence >= late || (is_second && silence >= late_after(1))
        } else {
            // Who brings every fourth heartbeat may bring old ones meanwhile.
            is_second && silence >= fresh_for(self.interval(), self.candidates.stride_max())
        };
        if !is_believed {
            if advances {
                self.claim = Some(Claim(order));
            }
            return Learned::Doubtful;
        }
        tracing::debug!(rsu = %self.rsu, before = %self.newest, %order, "RSU counts anew");
        let is_later = order > self.newest;
        let boot = self.newest.boot;
        self.newest_sent = self.sent_by(now, order);
        self.newest = order;
        self.newest_at = now;
        self.claim = None;
        self.obus.start_over();
        if !is_later {
            self.start_over(now);
        }
        if order.boot != boot {
            self.spare_the_new_rsu();
        }
        Learned::Anew(boot)
    }

    /// A neighbour that is not believed itself says this number: it confirms nothing, but may be
    /// confirmed.
    pub(crate) fn note_doubtful(&mut self, now: Timestamp, order: Order) {
        if self.claim_near(order).is_none() && !self.is_of_present_count(now, order) {
            self.claim = Some(Claim(order));
        }
    }

    /// What this number can confirm. A claim that is far from it does not stand in its way: whoever
    /// made it up may be gone for good.
    fn claim_near(&self, order: Order) -> Option<Order> {
        self.claim.map(|Claim(claimed)| claimed).filter(|claimed| is_near(*claimed, order))
    }

    /// A heartbeat says this rhythm. A second one in a row must say the same.
    fn note_rhythm(&mut self, order: Order, rhythm: Rhythm) {
        if rhythm == self.rhythm {
            self.other_rhythm = None;
        } else {
            match self.other_rhythm {
                Some((said, other)) if other == rhythm && said != order => {
                    self.rhythm = rhythm;
                    self.other_rhythm = None;
                }
                Some((said, _)) if said == order => {}
                _ => self.other_rhythm = Some((order, rhythm)),
            }
        }
    }

    /// The count went back: all that rests on it goes, as if the node had restarted. Whoever heard
    /// us advertise it may count on that for a while yet.
    fn start_over(&mut self, now: Timestamp) {
        if self.upstream.is_some() {
            self.lose_upstream(now, Cause::Restarted);
        }
        self.candidates.clear();
        self.feasibility = Feasibility::default();
        if let Some(said) = self.said_at {
            self.quiet_until = said + self.counted_on_for();
        }
        if self.advertised_at.take().is_some() {
            self.withdrawals.begin(now);
        }
        self.relayed = None;
        self.relay_at = None;
        self.preferred = None;
        self.crowd = Suppression::new();
    }
}
