//! Where an OBU was before what was last said for it.
//!
//! Somebody else may have said it. So the OBU is told where it was what was said: who has said it
//! knows the answer for one to a word of its own, and anybody else goes above it at once. That
//! costs a frame for each change, and idle vehicles on a radio that fades change often. So it is
//! told with the first frame that goes down to it, or through it. It is told at once only if its
//! clients are not behind it any more, for then no frame shows that they are missed. Who has
//! clients that speak is not told either: the next frame of theirs comes the way that was said, as
//! long and through the same neighbour of ours, or it does not.
//!
//! It is kept until the OBU says its next word in any case.

use std::time::Duration;

use arrayvec::ArrayVec;
use node_lib::messages::control::ack::AckStatus;
use node_lib::{NodeId, Timestamp};

use super::tree::{Edge, HOPS_MAX};
use super::{Obus, Registered, Says, Standing, Word};
use crate::control::about::About;

/// Ways kept of one OBU. An OBU moves once within the time of a word, or there and back; of forged
/// moves the first counts, for it is the one from where the OBU is.
const LEFT_MAX: usize = 3;

/// An OBU is told no more often than this.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// An OBU whose clients have sent something within this need not be told: which way their next
/// frame comes shows where it is.
const SPEAKS_FOR: Duration = Duration::from_millis(1100);

/// Who has been told says where it is within this.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

/// OBUs on one way.
type OnWay = ArrayVec<NodeId, HOPS_MAX>;

/// Where an OBU was.
#[derive(Clone, Copy, Debug)]
struct Left {
    edge: Edge,
    /// The last that was said there.
    word: Word,
    /// It had not jumped there itself.
    is_settled: bool,
    is_told: bool,
    /// A word with a number that somebody else had used before came from there.
    is_contradicted: bool,
    until: Timestamp,
}

/// Where an OBU was, the first way first.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftWays {
    ways: ArrayVec<Left, LEFT_MAX>,
    /// Without being told the OBU is not missed by anybody.
    is_urgent: bool,
    told_at: Option<Timestamp>,
    /// The count that is known has come by a jump, and may be false until then.
    jumped_until: Timestamp,
}

/// What an OBU is told on a way it was on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Telling {
    pub(crate) edge: Edge,
    pub(crate) status: AckStatus,
    pub(crate) about: About,
}

impl LeftWays {
    /// What was said before a jump, and where, if this goes on from it: two witnesses against the
    /// jump. What was still under way when an OBU started again has no higher epoch; who was told
    /// has.
    pub(super) fn outweighed_by(&mut self, now: Timestamp, says: &Says) -> Option<(Word, Edge)> {
        let word = says.word();
        let goes_on = |left: &&Left| {
            left.is_settled
                && now < left.until
                && left.edge == says.edge
                && word.follows(left.word)
                && word.epoch > left.word.epoch
        };
        let before = self.ways.iter().find(goes_on).map(|left| (left.word, left.edge));
        if before.is_some() {
            *self = Self::default();
        }
        before
    }

    /// A word that is not the newest, and says that the newest is not the OBU's own, came from
    /// where the OBU was. What it is answered may be lost, and by its number alone the OBU could
    /// not tell the newest from its own. Whether it is to be told.
    pub(super) fn contradict(&mut self, now: Timestamp, edge: Edge) -> bool {
        for left in self.ways.iter_mut().filter(|left| left.edge == edge) {
            left.is_contradicted = true;
            left.is_told = false;
        }
        self.is_untold(now)
    }

    /// It is to be told now, or has just been.
    fn is_unsettled(&self, now: Timestamp) -> bool {
        match self.told_at.map(|at| now.since(at)) {
            Some(ago) if ago < TELL_EVERY => ago < SETTLED_AFTER,
            _ => self.is_untold(now),
        }
    }

    fn is_untold(&self, now: Timestamp) -> bool {
        self.ways.iter().any(|left| !left.is_told && now < left.until)
    }
}

impl Registered {
    /// Notes where the OBU is before it is taken to have said this. Whether it is to be told.
    pub(super) fn leave(
        &mut self,
        now: Timestamp,
        standing: Standing,
        says: &Says,
        is_other_set: bool,
    ) -> bool {
        if self.standing == Standing::Gone {
            return false;
        }
        let is_jump = !says.word().follows(self.word);
        let is_elsewhere = says.edge != self.edge;
        let is_missed = self.is_attached() && standing != Standing::Attached;
        if is_jump || is_elsewhere || is_missed {
            let left = Left {
                edge: self.edge,
                word: self.word,
                is_settled: now >= self.left.jumped_until,
                is_told: false,
                is_contradicted: false,
                until: now + self.within,
            };
            self.left.ways.retain(|left| now < left.until && left.edge != says.edge);
            // A forger may say as much as it likes: where the OBU itself was is kept.
            let _ = self.left.ways.try_push(left);
            self.left.is_urgent |= is_missed || self.is_attached() && (is_jump || is_other_set);
        }
        if is_jump {
            self.left.jumped_until = now + self.within;
        }
        self.left.is_untold(now)
    }
}

impl Obus {
    /// The OBUs on the way to this one, itself among them, that are to be told where they were.
    #[cold]
    pub(crate) fn untold_on_way(&self, obu: NodeId) -> OnWay {
        let mut untold = self.upwards(obu);
        untold.retain(|obu| self.untold.contains(obu));
        untold
    }

    /// The first relay, on the ways this OBU was on, that is to say first where it is.
    pub(crate) fn unsettled_towards(&self, now: Timestamp, obu: NodeId) -> Option<NodeId> {
        let ways = self.by_id.get(&obu)?.left.ways.iter();
        let beyond = ways.filter(|left| !left.is_told && left.edge.mac.is_none());
        let mut relays = beyond.flat_map(|left| self.upwards(left.edge.via));
        let is_unsettled = |known: &Registered| known.left.is_unsettled(now);
        relays.find(|relay| *relay != obu && self.by_id.get(relay).is_some_and(is_unsettled))
    }

    /// This OBU and the relays on the way to it.
    fn upwards(&self, obu: NodeId) -> OnWay {
        let mut all = OnWay::new();
        let mut at = obu;
        while let Some(known) = self.by_id.get(&at)
            && all.try_push(at).is_ok()
            && known.edge.mac.is_none()
        {
            at = known.edge.via;
        }
        all
    }

    /// Clients of this OBU have sent something lately, and go on, most likely.
    pub(crate) fn speaks(&self, now: Timestamp, obu: NodeId) -> bool {
        let spoke_at = self.by_id.get(&obu).and_then(|known| known.spoke_at);
        spoke_at.is_some_and(|at| now.since(at) < SPEAKS_FOR)
    }

    /// The OBU is where it is said to be.
    pub(crate) fn confirm(&mut self, obu: NodeId) {
        self.untold.remove(&obu);
        if let Some(known) = self.by_id.get_mut(&obu) {
            known.left.is_urgent = false;
            known.left.ways.iter_mut().for_each(|left| left.is_told = true);
        }
    }

    /// Somebody is to be told where it was.
    #[inline]
    pub(crate) fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// This OBU is to be told where it was.
    pub(crate) fn is_untold(&self, obu: NodeId) -> bool {
        self.untold.contains(&obu)
    }

    /// OBUs that are to be told, though nothing is sent down to them.
    pub(crate) fn urgent(&self) -> Vec<NodeId> {
        let is_urgent = |obu: &&NodeId| self.by_id.get(*obu).is_some_and(|k| k.left.is_urgent);
        self.untold.iter().filter(is_urgent).copied().collect()
    }

    /// This OBU is to be told, though nothing is sent down to it.
    pub(crate) fn is_urgent(&self, obu: NodeId) -> bool {
        self.untold.contains(&obu) && self.by_id.get(&obu).is_some_and(|k| k.left.is_urgent)
    }

    /// The OBU was not told anything just now.
    pub(crate) fn may_tell(&self, now: Timestamp, obu: NodeId) -> bool {
        let told_at = self.by_id.get(&obu).and_then(|known| known.left.told_at);
        told_at.is_none_or(|at| now.since(at) >= TELL_EVERY)
    }

    /// What the OBU is told where it was; it counts as told then.
    pub(crate) fn take_untold(
        &mut self,
        now: Timestamp,
        obu: NodeId,
    ) -> ArrayVec<Telling, LEFT_MAX> {
        self.untold.remove(&obu);
        let Some(known) = self.by_id.get_mut(&obu) else { return ArrayVec::new() };
        known.left.told_at = Some(now);
        known.left.is_urgent = false;
        let (word, digest) = (known.word, known.digest);
        let untold = known.left.ways.iter_mut().filter(|left| !left.is_told && now < left.until);
        untold
            .map(|left| {
                left.is_told = true;
                // From a jump it might not see that it is another's: it is told which of its own
                // words is known.
                let (status, epoch) = match word.follows(left.word) {
                    true if left.is_contradicted => (AckStatus::StaleEpoch, word.epoch),
                    true => (AckStatus::Known, word.epoch),
                    false => (AckStatus::StaleEpoch, left.word.epoch),
                };
                let about = About { seq: word.seq, epoch, digest, ..About::default() };
                Telling { edge: left.edge, status, about }
            })
            .collect()
    }

    /// Who has said another word since need not be told.
    pub(crate) fn forget_left(&mut self, now: Timestamp) {
        let by_id = &self.by_id;
        self.untold.retain(|obu| by_id.get(obu).is_some_and(|known| known.left.is_untold(now)));
    }
}
