//! Where links are going, and what follows from it: leaving an upstream before it is lost.
//!
//! Two things are watched of each neighbour ([`crate::control::link::trend`]). How strong its
//! frames come in, where the radio reports it: the line through the last 2 s, extended by half a
//! second, *predicts* before anything is lost that the link will end, because its signal will be
//! weaker than any that is heard; and, where the radio fades and no line says that, who will be
//! stronger. And, where it does not, whether heartbeats and answers come as they used to: when too
//! much speaks against it, the upstream is *fading*.
//! The delay of answers is measured too, but says more about how busy the radio is than about how
//! far away somebody is, so it decides nothing here. Neither does the slope of the share heard: ten
//! heartbeats a second are too few for one.
//!
//! Every threshold was found by experiment: `docs/performance.md`, "How the thresholds were found".

use node_lib::Timestamp;
use node_lib::control::event::Cause;

use super::super::context::Context;
use super::Route;
use crate::Thresholds;
use crate::control::link::trend::Signal;
use crate::control::route::candidates::Candidate;

/// A link as it is and as it will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prediction {
    /// Per cent of the last hellos heard; `None` while the link is too young to judge.
    pub(super) heard: Option<u32>,
    /// How much speaks for the link having got bad, in 1/1000 nat.
    pub(super) strain: u32,
    /// Where the radio reports it.
    pub(super) signal: Option<Signal>,
    /// By its signal it will end.
    ends: bool,
}

impl Route {
    /// Where the link to a candidate is going.
    pub(crate) fn prediction(
        &self,
        context: &Context,
        now: Timestamp,
        candidate: &Candidate,
    ) -> Prediction {
        let neighbour = context.neighbours.get(candidate.mac);
        let window = context.hello_history;
        let heard = neighbour.and_then(|n| n.heard_of_last(window));
        let signal = signal_of(context, now, candidate);
        Prediction {
            heard: heard.map(|heard| heard * 100 / window.max(1)),
            strain: self.strain(context, now, candidate),
            signal,
            ends: ends_by(context, signal),
        }
    }

    /// How much speaks for the link to a candidate having got bad, in 1/1000 nat.
    fn strain(&self, context: &Context, now: Timestamp, candidate: &Candidate) -> u32 {
        // An RSU sends every heartbeat; a relay may leave some to others.
        let every = (candidate.advert.distance.hops == 0).then_some(self.interval());
        let neighbour = context.neighbours.get(candidate.mac);
        neighbour.map_or(0, |n| n.strain(now, every).millinats())
    }
}

/// How strong a candidate comes in, where the radio tells.
fn signal_of(context: &Context, now: Timestamp, candidate: &Candidate) -> Option<Signal> {
    let neighbour = context.neighbours.get(candidate.mac)?;
    neighbour.signal(now, context.thresholds.signal_ahead)
}

fn ends_by(context: &Context, signal: Option<Signal>) -> bool {
    signal.zip(context.floor.cdbm()).is_some_and(|(signal, floor)| signal.ends(floor))
}

/// The link to a candidate will end soon: nobody goes to it because it is better.
pub(crate) fn ends(context: &Context, now: Timestamp, candidate: &Candidate) -> bool {
    context.policy.prediction && ends_by(context, signal_of(context, now, candidate))
}

impl Prediction {
    /// Why to leave this link for any that is strong, if there is a reason: it will end, or has got
    /// bad already where no radio tells that it will. Where one does, what gets lost says little of
    /// a link: on a full channel every link loses.
    pub(crate) fn why_leave(&self, context: &Context, now: Timestamp) -> Option<Cause> {
        if !context.policy.prediction {
            return None;
        }
        let is_told = context.floor.is_told(now);
        let is_bad = !is_told && self.strain >= context.thresholds.fading_millinats;
        if is_bad { Some(Cause::Fading) } else { self.ends.then_some(Cause::Predicted) }
    }

    /// The trend says to leave this link, to `ours`, for `theirs`, a candidate of `other`. It is no
    /// further from its RSU, and see [`Prediction::yields_to`]. Ours fades: where nothing does, who
    /// is stronger is no better.
    pub(crate) fn yields(
        &self,
        context: &Context,
        now: Timestamp,
        ours: &Candidate,
        (other, theirs): (&Route, &Candidate),
    ) -> bool {
        // Most are further, and need not be looked at.
        context.policy.prediction
            && theirs.advert.cost <= ours.advert.cost
            && self.signal.is_some_and(|ours| ours.fades())
            && self.yields_to(&other.prediction(context, now, theirs), &context.thresholds)
    }

    /// Worth leaving a link for that got bad or will end.
    pub(crate) fn is_strong(&self, thresholds: &Thresholds) -> bool {
        !self.ends
            && self.heard.is_some_and(|heard| {
                let has_recovered =
                    self.strain <= RECOVERED_MILLINATS && heard >= RECOVERED_PERCENT;
                heard >= thresholds.strong_percent || has_recovered
            })
    }

    /// The trend says to leave this one: `other` will come in clearly stronger, and is strong or at
    /// least heard as well as this one.
    fn yields_to(&self, other: &Self, thresholds: &Thresholds) -> bool {
        let margin = thresholds.signal_margin_cdb;
        let is_stronger = self.signal.zip(other.signal).is_some_and(|(ours, theirs)| {
            theirs.mean_cdbm - ours.mean_cdbm >= margin / 2
                && theirs.ahead_cdbm - ours.ahead_cdbm >= margin
        });
        let is_heard = other.heard.is_some_and(|theirs| {
            theirs >= thresholds.strong_percent.min(self.heard.unwrap_or(100))
        });
        is_stronger && is_heard
    }
}

/// An alternative that had been out of reach may be strong before enough of its last hellos were
/// heard: when nothing speaks against it any more, and …
const RECOVERED_MILLINATS: u32 = 500;

/// … half of them were.
const RECOVERED_PERCENT: u32 = 50;

/// For how long the trend has spoken for one alternative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicted<T> {
    pub(crate) whom: T,
    pub(crate) since: Timestamp,
}

impl<T: PartialEq> Predicted<T> {
    /// The trend speaks for `whom`, still or anew.
    pub(crate) fn keep(before: Option<Self>, whom: T, now: Timestamp) -> Self {
        before.filter(|before| before.whom == whom).unwrap_or(Self { whom, since: now })
    }
}
