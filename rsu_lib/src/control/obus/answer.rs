//! What an OBU is answered, and when it is asked for its clients.

use std::time::Duration;

use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{NodeId, Timestamp};

use super::tree::Edge;
use super::word::WordVerdict;
use super::{Obus, Registered, Standing};

/// A missing client set is asked for at most this often.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The LAN side hears of the clients of one OBU by what the OBU says; that they are alive is noted
/// this often, however often it says so.
const REFRESH_EVERY: Duration = Duration::from_millis(500);

/// What an OBU is told of its last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    pub(crate) status: AckStatus,
    /// The epoch this is about.
    pub(crate) epoch: u32,
}

impl Obus {
    /// What this reply is answered. The answer is that its upstream is known,
    /// if it wants to know. Or it is that its clients are to be announced, if the set we hold is
    /// not the one it names; or that somebody else speaks for it.
    pub(crate) fn answer(
        &self,
        now: Timestamp,
        reply: &HeartbeatReply,
        edge: Edge,
        verdict: WordVerdict,
    ) -> Option<Acknowledgement> {
        if verdict == WordVerdict::Circular {
            return None;
        }
        let with = |status, epoch| Acknowledgement { status, epoch };
        let ask = with(AckStatus::SendAll, reply.epoch);
        let Some(known) = self.by_id.get(&reply.origin) else {
            // Nothing is kept for an OBU that has not announced itself: it may be a forgery.
            return (!reply.standby && self.has_room()).then_some(ask);
        };
        let is_contested = known.word.boot != reply.order.boot
            || known.word.epoch != reply.epoch
            || known.is_contested(now, reply.order.seq, edge);
        let wants = (reply.acknowledge && verdict == WordVerdict::Newest).then_some(reply.epoch);
        if reply.standby {
            // Those that may come announce themselves; of the others nothing more need be known.
            let is_old = verdict == WordVerdict::Old && is_contested;
            return match wants {
                _ if is_old => Some(with(AckStatus::StaleEpoch, known.word.epoch)),
                wants => wants.map(|epoch| with(AckStatus::Known, epoch)),
            };
        }
        let matches = known.standing == Standing::Attached
            && !is_contested
            && known.digest == reply.digest
            && known.is_complete();
        if matches {
            return wants.map(|epoch| with(AckStatus::Accepted, epoch));
        }
        Some(ask)
    }

    /// Whether an OBU whose frame came is to be asked for its clients now: it has not announced
    /// itself, or has left `long_ago`.
    pub(crate) fn must_ask_sender(&self, now: Timestamp, obu: NodeId, gone: Duration) -> bool {
        match self.by_id.get(&obu) {
            None => self.has_room(),
            Some(known) => known.standing == Standing::Gone && now.since(known.heard) >= gone,
        }
    }

    /// The OBU was not asked just now; then it is.
    pub(crate) fn may_ask(&mut self, now: Timestamp, obu: NodeId) -> bool {
        self.by_id.get_mut(&obu).is_none_or(|known| known.may_ask(now))
    }

    /// The OBU is attached, the set we hold is the one its reply names, and that has not been noted
    /// for a while.
    pub(crate) fn refreshes(&mut self, now: Timestamp, obu: NodeId, digest: u32) -> bool {
        let Some(known) = self.by_id.get_mut(&obu) else { return false };
        let is_due = known.refreshed_at.is_none_or(|at| now.since(at) >= REFRESH_EVERY);
        let refreshes =
            is_due && known.is_attached() && known.digest == digest && known.is_complete();
        if refreshes {
            known.refreshed_at = Some(now);
        }
        refreshes
    }
}

impl Registered {
    fn may_ask(&mut self, now: Timestamp) -> bool {
        let is_due = self.asked_at.is_none_or(|at| now.since(at) >= ASK_EVERY);
        if is_due {
            self.asked_at = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use node_lib::messages::control::announcement::client_digest;

    use super::super::scene::*;
    use super::*;

    #[test]
    fn a_set_that_differs_is_asked_for_but_not_all_the_time() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 1, 1, false), &[client(1)]);
        let other = reply(Said(1, 1, 2, false), client_digest(&[client(2)]));
        assert!(must_ask(Timestamp::from_millis(1), &mut obus, &other));
        assert!(!must_ask(Timestamp::from_millis(50), &mut obus, &other));
        assert!(must_ask(Timestamp::from_millis(101), &mut obus, &other));
    }

    #[test]
    fn on_standby_the_set_is_kept_and_the_obu_is_not_attached() {
        let mut obus = Obus::default();
        let set = [client(1), client(2)];
        assert_eq!(claim(&mut obus, Said(1, 5, 1, true), &set), waiting(&set));
        assert_eq!((obus.attached(), obus.is_here(OBU)), (0, true));
        let same = reply(Said(1, 5, 2, true), client_digest(&set));
        assert!(!must_ask(NOW, &mut obus, &same));
        assert!(!obus.refreshes(NOW, OBU, client_digest(&set)));
        let other = HeartbeatReply { digest: 7, ..same };
        assert!(!must_ask(NOW, &mut obus, &other), "it announces itself, if it is to be known");
    }
}
