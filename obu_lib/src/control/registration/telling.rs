//! What one RSU is being told: the word that waits for an answer, and when the next reply is due.

use std::time::Duration;

use node_lib::control::deadline::Deadline;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::{NodeId, Order, Seq, Timestamp};

use crate::control::announcements::{Acked, Announcements};

/// First repetition of a word that is not acknowledged, for each radio hop to the RSU; each further
/// one waits twice as long. Before the RSU can answer, all relays on the way must have said who
/// their upstream is; repeated sooner, words are in the way of each other's answers. Found by
/// experiment.
pub(super) const REPEAT_FIRST: Duration = Duration::from_millis(40);

/// What is to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Who our upstream is, and why that is said.
    Upstream(Why),
    /// That, and all clients. These parts are known.
    Set(Acked),
}

/// Why an RSU is told who our upstream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The RSU may know nothing of us.
    News,
    /// The RSU knows where we were before: as long as nothing goes this way, the word may be
    /// mentioned only.
    Change,
    /// It is no news: only whether it is answered counts.
    Check,
}

/// How far a word has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for its turn.
    Unsaid,
    /// It was mentioned, and waits until it matters.
    Mentioned,
    /// There was no budget for it.
    PutOff,
    /// The RSU asked for it, and takes it out of a budget of its own.
    AskedFor,
    /// It was said, and is repeated.
    Said,
}

/// A word not acknowledged yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) word: Word,
    pub(super) stage: Stage,
    /// An answer to an older word of ours says nothing.
    pub(super) since: Seq,
    pub(super) attempts: u32,
    pub(super) next: Timestamp,
    /// It is repeated slowly until it matters.
    pub(super) is_slow: bool,
}

impl Pending {
    pub(super) fn is_mentioned(&self) -> bool {
        self.stage == Stage::Mentioned
    }
}

/// What one RSU has been told.
#[derive(Clone, Debug)]
pub(super) struct Telling {
    /// Our upstream, as it was last told.
    pub(super) via: NodeId,
    pub(super) pending: Option<Pending>,
    pub(super) reply_at: Timestamp,
    /// Replies since one was last to be acknowledged.
    pub(super) replies: u8,
}

impl Telling {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { via: NodeId::NONE, pending: None, reply_at: now, replies: 0 }
    }

    pub(super) fn tell(&mut self, word: Word, last: Order, at: Timestamp) {
        self.replies = 0;
        self.pending = Some(Pending {
            word,
            stage: Stage::Unsaid,
            since: last.next().seq,
            attempts: 0,
            next: at,
            is_slow: false,
        });
    }

    /// The RSU asks for all clients. What is on its way already is not said once more.
    pub(super) fn note_asked(&mut self, now: Timestamp) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        let is_unsaid = pending.stage == Stage::PutOff || pending.attempts == 0;
        if is_unsaid {
            pending.stage = Stage::AskedFor;
            pending.next = now;
        }
        is_unsaid
    }

    /// Our upstream is another one now: whatever is under way says the old one.
    pub(super) fn note_upstream(&mut self, via: NodeId, last: Order, at: Timestamp) {
        let before = std::mem::replace(&mut self.via, via);
        if before == via {
            return;
        }
        let is_known = before != NodeId::NONE;
        match &self.pending {
            Some(Pending { word: Word::Set(_), .. }) => {
                self.tell(Word::Set(Acked::default()), last, at);
            }
            None | Some(Pending { word: Word::Upstream(Why::Change), .. }) if is_known => {
                self.tell(Word::Upstream(Why::Change), last, at);
            }
            _ => self.tell(Word::Upstream(Why::News), last, at),
        }
    }

    /// The RSU was told of another upstream of ours than the one that is: only an answer to what is
    /// said from now on counts.
    pub(super) fn tell_anew(&mut self, last: Order, at: Timestamp) {
        if let Some(pending) = &mut self.pending {
            pending.since = last.next().seq;
            pending.next = at;
            if pending.is_mentioned() {
                self.reply_at = at;
            }
            return;
        }
        self.tell(Word::Upstream(Why::Check), last, at);
    }

    /// The RSU answers: the attempts it took, once all is known that it was to know.
    pub(super) fn note_ack(
        &mut self,
        of: &Announcements,
        ack: &AnnouncementAck<'_>,
    ) -> Option<u32> {
        let pending = self.pending.as_mut().filter(|pending| ack.seq >= pending.since)?;
        let is_done = match (&mut pending.word, ack.status) {
            (Word::Upstream(_), AckStatus::Accepted | AckStatus::Known) => true,
            (Word::Set(acked), AckStatus::Accepted) => {
                acked.note(ack.part);
                of.is_complete(acked)
            }
            _ => false,
        };
        let attempts = pending.attempts;
        is_done.then(|| {
            self.pending = None;
            attempts
        })
    }

    pub(super) fn deadline(&self) -> Deadline {
        let word = self.pending.as_ref().map(|pending| pending.next);
        Deadline::new(self.reply_at, "reply to an RSU")
            .or_at(word, "say a word that is to be acknowledged")
    }
}
