//! While the upstream is in doubt: a second way for what cannot wait.
//!
//! Between the first questions an upstream leaves unanswered and the moment it is given up lie some
//! 70 ms in which every frame sent to it may be lost. For that moment, and only then, frames of our
//! own clients go through the best other candidate as well, towards the same RSU, which drops the
//! second copy. Candidates are feasible, so both ways are free of loops. Frames of others are not
//! doubled, or a frame that passes several relays in doubt would go twice from each. Towards
//! another RSU nothing is doubled: two RSUs on one LAN cannot drop each other's copies.

use node_lib::{Mac, Timestamp};

use super::super::context::Context;
use super::Route;

/// Intervals: doubt does not last longer. The upstream has answered by then, or has been given up.
const DOUBT_MAX: u32 = 3;

/// Bytes sent twice in one doubt: 300 ms of 1.7 Mbit/s. Beyond, a busy vehicle would take the air
/// from others for frames that most likely arrive anyway.
const BUDGET: usize = 64 * 1024;

/// The second way, while the first is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The other neighbour.
    pub(crate) via: Mac,
    /// Since when.
    pub(crate) since: Timestamp,
    bytes_left: usize,
    /// Frames sent both ways.
    pub(crate) sent_twice: u64,
}

impl Route {
    /// The upstream left questions unanswered. Opens a second way, if there is one.
    pub(super) fn begin_doubt(&mut self, context: &mut Context, now: Timestamp) {
        if self.doubt.is_some() || !context.policy.duplication {
            return;
        }
        let best = self.upstream.and_then(|upstream| self.best_beside(context, now, upstream));
        let Some((_, via)) = best.filter(|(rank, _)| !rank.is_late) else { return };
        let (asked, silence) = (self.asked, now.since(self.believed_since()));
        tracing::debug!(
            rsu = %self.rsu, upstream = ?self.upstream, asked, ?silence, %via, "upstream in doubt"
        );
        context.counters.upstream_doubted += 1;
        self.doubt = Some(Doubt { via, since: now, bytes_left: BUDGET, sent_twice: 0 });
    }

    /// The upstream gave a sign of life.
    pub(super) fn end_doubt(&mut self) {
        self.doubt = None;
    }

    /// A neighbour is no way any more, not the second one either.
    pub(super) fn end_doubt_through(&mut self, mac: Mac) {
        if self.doubt.is_some_and(|doubt| doubt.via == mac) {
            self.end_doubt();
        }
    }

    /// Through whom a frame of our own clients, of this length, goes as well. Frames of others are
    /// not doubled: when several relays of a way are in doubt at once, each would double what the
    /// one before had doubled.
    pub(crate) fn second_way(
        &mut self,
        context: &Context,
        now: Timestamp,
        len: usize,
    ) -> Option<Mac> {
        let via = self.doubt?.via;
        // What we advertised since may have turned it away: it may well send through us by now.
        let judge = self.judge(context, now);
        let is_usable = self.candidates.get(via).is_some_and(|c| judge.is_usable(c));
        if !is_usable {
            self.end_doubt();
            return None;
        }
        let most = self.interval() * DOUBT_MAX;
        let doubt = self.doubt.as_mut()?;
        let is_over = now.since(doubt.since) >= most;
        doubt.bytes_left = if is_over { return None } else { doubt.bytes_left.checked_sub(len)? };
        doubt.sent_twice += 1;
        Some(doubt.via)
    }

    /// Through whom the RSU is to be told of the way down to us, because that has changed with the
    /// second way since it was told. From now on it knows.
    pub(crate) fn tell_second_way(&mut self) -> Option<Mac> {
        let second = self.doubt.map(|doubt| doubt.via);
        let is_told = std::mem::replace(&mut self.told, second) == second;
        if is_told { None } else { second.or(self.upstream) }
    }
}
