//! Whom an answer goes to when many ask the same question at once: [`AnswerScope`].
//!
//! When two nodes that do not hear each other send a heartbeat in the same moment, half of those
//! who wait for one of them miss it. In a crowd that is sixty OBUs that soon all ask whether it is
//! still there. Each of them listens, so one answer can be for all, and whoever has not asked yet
//! need not.
//!
//! Who is not behind us yet is answered alone: it waits for a proof of its own, which a broadcast
//! may fail to bring.

use std::time::Duration;

use crate::mac::{Mac, NodeId};
use crate::time::Timestamp;

/// OBUs of an RSU from which on they are a crowd: relays take turns, and what is said has a budget.
/// Sixteen heartbeats per interval of 100 ms take a radio of 6 Mbit/s for 2.6 % of the time. That
/// is little, but all that sixteen ask at once, because one heartbeat was lost, fills it.
pub const CROWD: u16 = 16;

/// Questions of two nodes this close together are of many. Half the time over which those in a
/// crowd that miss a heartbeat ask, so two of them are enough to notice.
const MANY_WITHIN: Duration = Duration::from_millis(25);

/// Who asked us alone last.
#[derive(Clone, Debug, Default)]
pub struct AnswerScope {
    last: Option<(Timestamp, Mac, NodeId)>,
}

impl AnswerScope {
    /// `asker` asks us alone for our way to `rsu`: whom to answer, one of `obus` that share the
    /// radio. `is_child`: whoever asks sends through us.
    pub fn addressee(
        &mut self,
        now: Timestamp,
        asker: Mac,
        rsu: NodeId,
        obus: usize,
        is_child: bool,
    ) -> Mac {
        let is_for_all =
            self.is_one_of_many(now, asker, rsu) && obus >= usize::from(CROWD) && is_child;
        if is_for_all { Mac::BROADCAST } else { asker }
    }

    /// Whether somebody else just asked the same.
    fn is_one_of_many(&mut self, now: Timestamp, asker: Mac, rsu: NodeId) -> bool {
        let last = self.last.replace((now, asker, rsu));
        last.is_some_and(|(at, other, about)| {
            other != asker && about == rsu && now.since(at) < MANY_WITHIN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_who_ask_the_same_at_once_are_many() {
        const A: Mac = Mac([2, 0, 0, 0, 0, 0x0a]);
        const B: Mac = Mac([2, 0, 0, 0, 0, 0x0b]);
        const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
        const OTHER: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
        let mut scope = AnswerScope::default();
        let mut asks =
            |ms, asker, rsu| scope.is_one_of_many(Timestamp::from_millis(ms), asker, rsu);
        assert!(!asks(1000, A, RSU), "the first");
        assert!(!asks(1010, A, RSU), "the same again");
        assert!(asks(1034, B, RSU));
        assert!(!asks(1059, A, RSU), "too late");
        assert!(!asks(1060, B, OTHER), "about another");
    }
}
