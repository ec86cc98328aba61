//! What a word of an OBU is worth, after all that was said before.
//!
//! A word that goes on from the last is the newest, or late. One that jumps waits until it is borne
//! out: see the rules at the head of [`super`].

use std::time::Duration;

use node_lib::{Boot, EPOCH_STEP_MAX, Order, Seq, Timestamp};

use super::tree::Edge;
use super::{REMEMBERED_FOR, Registered, Standing};
use crate::control::departed::LATE_FOR;

/// A sequence number further ahead is a jump, and so is an epoch more than [`EPOCH_STEP_MAX`]
/// ahead: an OBU says a word a second when idle, and a few dozen when it moves.
const SEQ_STEP_MAX: u32 = 1024;

/// A jump is believed when it is repeated so long after its first word: no two frames are one then.
/// An OBU repeats an announcement 20, 60, 140 and 300 ms after the first. So one that has started
/// again is believed with its third word, and soon enough if one of them is lost.
const WITNESS_AFTER: Duration = Duration::from_millis(50);

/// A word so many numbers behind the last, or [`LATE_FOR`] after it, is no copy that was overtaken,
/// but most likely the OBU itself, of whom somebody else has spoken.
const CONTESTED_FROM: u32 = 4;

/// What an OBU said, in the order in which it counts: a restart is newer than all before it, then
/// the higher epoch, and of what it says within one the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word {
    pub(super) boot: Boot,
    pub(super) epoch: u32,
    pub(super) seq: Seq,
}

/// The last word of a count that jumps, and when the first came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    word: Word,
    since: Timestamp,
}

/// What each word of an OBU says, whatever else it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    pub(crate) order: Order,
    pub(crate) epoch: u32,
    pub(crate) edge: Edge,
    /// The next one comes within this.
    pub(crate) within: Duration,
    /// What it was sent within this may not have arrived.
    pub(crate) at_risk: Duration,
}

impl Says {
    pub(super) fn word(&self) -> Word {
        Word { boot: self.order.boot, epoch: self.epoch, seq: self.order.seq }
    }
}

/// What a word of an OBU is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordVerdict {
    /// The OBU has not announced itself.
    Unknown,
    /// Newer than all before.
    Newest,
    /// Overtaken by what was said since, or a copy.
    Old,
    /// Far from all that was said: nothing is concluded from it yet.
    Unproven,
    /// Newer than all before, but with it two OBUs would be behind each other: nothing is concluded
    /// from it.
    Circular,
}

/// What a word was judged to be, and what came out by the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) verdict: WordVerdict,
    /// With it two nodes are known to have this id, which is said once.
    pub(crate) is_duel: bool,
    /// OBUs that were pushed out for its sender.
    pub(crate) evicted: u64,
}

impl From<WordVerdict> for Judged {
    fn from(verdict: WordVerdict) -> Self {
        Self { verdict, is_duel: false, evicted: 0 }
    }
}

impl WordVerdict {
    /// What is newest is no more than a word that waits for another while the tree would have a
    /// circle with it.
    pub(super) fn unless(self, is_circular: bool) -> Self {
        if self == Self::Newest && is_circular { Self::Circular } else { self }
    }
}

impl Word {
    /// No OBU can have said both, in whatever order they came: with its epoch its sequence number
    /// grows as well. So two that count alike, for both were started in the same quarter of a
    /// second, are told from one that moves.
    fn contradicts(self, other: Self) -> bool {
        self.boot == other.boot
            && self.epoch != other.epoch
            && self.epoch.cmp(&other.epoch) != self.seq.cmp(&other.seq)
    }

    /// Of one count with `other`: no further from it than an OBU gets while we miss what it says.
    pub(super) fn follows(self, other: Self) -> bool {
        self.boot == other.boot
            && self.epoch.abs_diff(other.epoch) <= EPOCH_STEP_MAX
            && self.seq.0.abs_diff(other.seq.0) <= SEQ_STEP_MAX
    }
}

impl Registered {
    /// This word is not the newest, and says that the newest is not the OBU's own.
    pub(super) fn is_contested(&self, now: Timestamp, seq: Seq, edge: Edge) -> bool {
        match self.word.seq.0.checked_sub(seq.0) {
            None => false,
            Some(0) => edge != self.edge,
            Some(behind) => behind >= CONTESTED_FROM || now.since(self.said) >= LATE_FOR,
        }
    }

    /// What this word is worth, after all that was said before.
    pub(super) fn judge(&mut self, now: Timestamp, says: &Says) -> Judged {
        let word = says.word();
        if word.follows(self.word) {
            let turns_with = match self.rival {
                Some(rival) if word > self.word => Some(rival.word.boot),
                _ => word.contradicts(self.word).then_some(word.boot),
            };
            let is_duel = turns_with.is_some_and(|other| self.duel.note(now, word.boot, other));
            if word <= self.word {
                return Judged { is_duel, ..WordVerdict::Old.into() };
            }
            self.rival = None;
            return Judged { is_duel, ..WordVerdict::Newest.into() };
        }
        let is_bound = self.standing != Standing::Gone || word < self.word;
        let is_over = now.since(self.heard) > REMEMBERED_FOR && self.standing == Standing::Gone;
        if !is_bound || is_over {
            self.rival = None;
            return WordVerdict::Newest.into();
        }
        if let Some((before, edge)) = self.left.outweighed_by(now, says) {
            self.rival = None;
            let is_duel = self.duel.note(now, word.boot, self.word.boot);
            // As if the OBU had not jumped.
            (self.word, self.edge) = (before, edge);
            return Judged { is_duel, ..WordVerdict::Newest.into() };
        }
        match self.rival {
            Some(rival) if word.follows(rival.word) => {
                if word <= rival.word {
                    return WordVerdict::Unproven.into();
                }
                self.rival = Some(Rival { word, ..rival });
                if now.since(rival.since) < WITNESS_AFTER {
                    return WordVerdict::Unproven.into();
                }
                self.rival = None;
                let is_duel = self.duel.note(now, word.boot, self.word.boot);
                Judged { is_duel, ..WordVerdict::Newest.into() }
            }
            _ => {
                self.rival = Some(Rival { word, since: now });
                WordVerdict::Unproven.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use node_lib::messages::control::announcement::client_digest;
    use node_lib::messages::control::heartbeat::HeartbeatReply;

    use super::super::claim::{Accepted, Claim};
    use super::super::scene::*;
    use super::super::{Obus, REMEMBERED_FOR};
    use super::*;

    #[test]
    fn what_one_obu_says_never_contradicts_itself_and_two_that_count_alike_do() {
        let word = |epoch, seq| Word { boot: Boot(7), epoch, seq: Seq(seq) };
        let said = [word(1, 1), word(1, 2), word(2, 3), word(5, 4), word(5, 9)];
        assert!(said.iter().all(|one| said.iter().all(|other| !one.contradicts(*other))));
        for other in [word(3, 3), word(3, 2), word(4, 10), word(1, 3), word(6, 9)] {
            assert!(said.iter().any(|one| other.contradicts(*one)), "{other:?}");
        }
        let restarted = Word { boot: Boot(8), ..word(6, 1) };
        assert!(said.iter().all(|one| !restarted.contradicts(*one)));
    }

    #[test]
    fn what_was_said_with_a_lower_epoch_is_told_the_higher() {
        let mut obus = Obus::default();
        assert_eq!(claim(&mut obus, Said(1, 5, 1, false), &[client(1)]), come(&[client(1)]));
        assert_eq!(claim(&mut obus, Said(1, 4, 2, false), &[client(2)]), Claim::Stale(5));
        let now = accepted(claim(&mut obus, Said(1, 6, 3, false), &[client(2)]));
        assert_eq!((now.is_new, now.set), (true, Some(vec![client(2)])));
    }

    #[test]
    fn a_restarted_obu_is_accepted_when_it_repeats_itself_and_what_it_said_before_no_more() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(9, 500, 1, false), &[client(1)]);
        for boot in [10, 3] {
            let again = |obus: &mut Obus, ms, seq| {
                claim_at(ms, obus, Said(boot, 1, seq, false), &[client(1)])
            };
            assert_eq!(again(&mut obus, 1000, 1), Claim::Unproven, "{boot}");
            assert_eq!(again(&mut obus, 1049, 2), Claim::Unproven, "{boot}");
            assert_eq!(again(&mut obus, 1050, 2), Claim::Unproven, "{boot}: a copy");
            assert!(accepted(again(&mut obus, 1050, 3)).is_new, "{boot}");
            assert_eq!(again(&mut obus, 1051, 2), accepted_copy(), "{boot}");
            let late = claim_at(1051, &mut obus, Said(9, 500, 2, false), &[client(1)]);
            assert_eq!(late, Claim::Unproven, "{boot}");
        }
    }

    fn accepted_copy() -> Claim {
        Claim::Accepted(Accepted { is_attached: true, ..Accepted::default() })
    }

    #[test]
    fn a_jump_is_not_believed_while_the_count_that_is_known_goes_on() {
        for jump in [Said(u32::MAX, 9, 9, false), Said(1, u32::MAX, 9, false)] {
            let mut obus = Obus::default();
            claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
            let mut duels = 0;
            for n in 0..50 {
                let Said(boot, epoch, seq, standby) = jump;
                let forged = Said(boot, epoch, seq + n, standby);
                let at = NOW + Duration::from_millis(u64::from(n) * 100);
                let (judged, heard) = judge_at(at, &mut obus, forged, &[client(2)]);
                assert_eq!(heard, Claim::Unproven, "{n}");
                let ours = reply(Said(1, 5, 2 + n, false), client_digest(&[client(1)]));
                let (answered, _) = obus.hear_reply(at, &ours, says_of(&ours));
                duels += u32::from(judged.is_duel) + u32::from(answered.is_duel);
            }
            assert_eq!(obus.claimant(client(1)), Some(OBU));
            assert_eq!(obus.claimant(client(2)), None);
            assert_eq!(duels, 1, "and reported, once");
        }
    }

    #[test]
    fn the_obu_itself_is_told_when_others_spoke_for_it_and_wins_with_its_next_word() {
        let forged = [
            Said(1, 5, 1000, false), // a step of the sequence, and another set
            Said(1, 40, 3, false),   // a step of the epoch
            Said(1, 5, 900, true),   // on standby
        ];
        for forged in forged {
            let mut obus = Obus::default();
            claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
            claim(&mut obus, forged, &[client(2)]);
            let ours = reply(Said(1, 5, 2, false), client_digest(&[client(1)]));
            assert_eq!(hear_reply(&mut obus, &ours), None);
            assert!(must_ask(NOW, &mut obus, &ours), "{forged:?}");
            let Claim::Stale(epoch) = claim(&mut obus, Said(1, 5, 3, false), &[client(1)]) else {
                panic!("{forged:?}");
            };
            let last = claim(&mut obus, Said(1, epoch + 1, 4, false), &[client(1)]);
            assert_eq!(accepted(last).set, Some(vec![client(1)]), "{forged:?}");
        }
    }

    #[test]
    fn once_a_false_count_was_believed_the_true_one_wins_when_the_false_one_stops() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        for (ms, seq) in [(0, u32::MAX - 1), (300, u32::MAX)] {
            claim_at(ms, &mut obus, Said(u32::MAX, u32::MAX, seq, false), &[client(2)]);
        }
        assert_eq!(obus.claimant(client(2)), Some(OBU));
        assert!(must_ask(
            NOW,
            &mut obus,
            &reply(Said(1, 5, 2, false), client_digest(&[client(1)]))
        ));
        for (ms, seq) in [(400, 3), (420, 4), (449, 5)] {
            let heard = claim_at(ms, &mut obus, Said(1, 5, seq, false), &[client(1)]);
            assert_eq!(heard, Claim::Unproven);
        }
        assert!(accepted(claim_at(450, &mut obus, Said(1, 5, 6, false), &[client(1)])).is_new);
        assert_eq!((obus.claimant(client(1)), obus.claimant(client(2))), (Some(OBU), None));
    }

    #[test]
    fn who_left_begins_a_higher_count_at_once_and_a_lower_one_when_the_old_is_forgotten() {
        let left = |boot| {
            let mut obus = Obus::default();
            claim(&mut obus, Said(boot, 5, 1, false), &[client(1)]);
            let goodbye = HeartbeatReply { goodbye: true, ..reply(Said(boot, 5, 2, false), 0) };
            assert!(hear_goodbye(&mut obus, &goodbye));
            obus
        };
        let comes = |obus: &mut Obus, at, boot| {
            let set = [client(1)];
            let says = (OBU, Said(boot, 1, 1, false));
            let claim = claim_part_at(at, obus, says, (0, 1), client_digest(&set), &set);
            matches!(claim, Claim::Accepted(Accepted { is_attached: true, .. }))
        };
        assert!(comes(&mut left(500), NOW, 900));
        assert!(!comes(&mut left(500), NOW, 100), "a late word of an earlier life");
        let long_after = NOW + REMEMBERED_FOR * 2;
        assert!(comes(&mut left(500), long_after, 100), "its clock was set back");
    }
}
