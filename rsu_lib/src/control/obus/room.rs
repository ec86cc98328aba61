//! Places for OBUs: who makes room for a newcomer, and who is asked first whether it is there.

use std::collections::BTreeSet;
use std::time::Duration;

use node_lib::{NodeId, Timestamp, messages};

use super::{Obus, Registered, Standing};

/// OBUs remembered.
pub(super) const OBUS_MAX: usize = messages::OBUS_MAX as usize;

/// For a newcomer's place, OBUs unheard for so long are asked …
const SILENT_FOR: Duration = Duration::from_secs(1);

/// … so many at once, this far apart, …
const KNOCKS_AT_ONCE: usize = 8;
const KNOCK_EVERY: Duration = Duration::from_millis(100);

/// … and so often each, before one that says nothing goes. At 10 % loss in either direction an OBU
/// that is there is taken to be gone once in 20,000 times, and its next reply brings it back.
const KNOCKS: u8 = 6;

/// What [`Obus::knock`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Knocked {
    /// To be asked, with the digest of the set we hold.
    pub(crate) asked: Vec<(NodeId, u32)>,
    /// Not there any more.
    pub(crate) gone: Vec<NodeId>,
}

impl Obus {
    /// Whom to ask whether they are still there, now that a newcomer finds no place; and those that
    /// have not answered, whose places it may have.
    pub(crate) fn knock(&mut self, now: Timestamp) -> Knocked {
        let mut knocked = Knocked::default();
        if self.knocked_at.is_some_and(|at| now.since(at) < KNOCK_EVERY) {
            return knocked;
        }
        self.knocked_at = Some(now);
        let silent =
            self.by_id.iter_mut().filter(|(_, known)| now.since(known.heard) >= SILENT_FOR);
        let mut silent: Vec<_> = silent.map(|(obu, known)| (known.heard, *obu, known)).collect();
        silent.sort_unstable_by_key(|(heard, obu, _)| (*heard, *obu));
        for (_, obu, known) in silent.into_iter().take(KNOCKS_AT_ONCE) {
            if known.knocks >= KNOCKS {
                knocked.gone.push(obu);
            } else {
                known.knocks += 1;
                knocked.asked.push((obu, known.digest));
            }
        }
        knocked
    }

    /// There is room for one more, or somebody who makes room.
    pub(super) fn has_room(&self) -> bool {
        self.by_id.len() < OBUS_MAX || self.attached < self.by_id.len()
    }

    /// Makes room for one more. Attached OBUs are not pushed out by new ones, see [`Obus::knock`],
    /// nor are those on whom others' ways lead. First go those that left, then those on standby,
    /// the longest unheard before others. Returns how many went; `None` when there is no room.
    pub(super) fn make_room(&mut self) -> Option<u64> {
        if self.by_id.len() < OBUS_MAX {
            return Some(0);
        }
        if !self.has_room() {
            return None;
        }
        let relays: BTreeSet<_> = self.by_id.values().map(|known| known.edge.via).collect();
        let goes = |(obu, known): &(&NodeId, &Registered)| {
            !known.is_attached() && (known.standing == Standing::Gone || !relays.contains(*obu))
        };
        let least = self.by_id.iter().filter(goes).min_by_key(|(_, k)| (k.standing, k.heard));
        let obu = least.map(|(obu, _)| *obu)?;
        self.forget(obu);
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use node_lib::messages::control::heartbeat::HeartbeatReply;

    use super::super::claim::Claim;
    use super::super::scene::*;
    use super::*;

    #[test]
    fn those_on_standby_make_room_and_those_attached_do_not() {
        let mut obus = Obus::default();
        let id = |n: usize| NodeId([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
        let say = |obus: &mut Obus, n: usize, standby| {
            judge_part(NOW, obus, (id(n), Said(1, 1, 1, standby)), (0, 1), 0, &[])
        };
        for n in 0..OBUS_MAX {
            say(&mut obus, n, n % 2 == 0);
        }
        let evicted: u64 =
            (OBUS_MAX..3 * OBUS_MAX).map(|n| say(&mut obus, n, false).0.evicted).sum();
        assert_eq!((obus.by_id.len(), obus.attached()), (OBUS_MAX, OBUS_MAX));
        assert_eq!(evicted, OBUS_MAX as u64 / 2);
        assert!((1..OBUS_MAX).step_by(2).all(|n| obus.knows(id(n))));
        assert_eq!(say(&mut obus, 9999, true).1, Claim::Refused);
        assert!(!obus.knows(id(9999)));
        let stranger = HeartbeatReply { origin: id(9999), ..reply(Said(1, 1, 2, false), 0) };
        assert!(!must_ask(NOW, &mut obus, &stranger), "or it would be asked for ever");
        obus.lose(NOW, id(1));
        assert!(must_ask(NOW, &mut obus, &stranger), "now there is room");
    }

    #[test]
    fn goodbyes_of_strangers_are_remembered_as_far_as_there_is_room() {
        let mut obus = Obus::default();
        for n in 0..OBUS_MAX as u32 + 9 {
            let [_, b, c, d] = n.to_be_bytes();
            let origin = NodeId([2, 0, 1, b, c, d]);
            hear_goodbye(&mut obus, &HeartbeatReply { origin, ..reply(Said(1, 1, 1, false), 0) });
        }
        assert_eq!(obus.by_id.len(), OBUS_MAX);
    }
}
