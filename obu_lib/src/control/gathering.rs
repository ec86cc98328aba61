//! Replies of OBUs behind us, kept for a moment so that several go on in one frame: [`Gathering`].
//!
//! When a relay that a hundred route through has driven off, all of them show their new way back, and every
//! relay in front of them says it again. Most of such a frame is preamble and headers.

use node_lib::messages::control::replies::ShortReply;
use node_lib::{Mac, NodeId, Timestamp};

/// As many replies do not wait for more. Four full frames.
const WAITING_MAX: usize = 240;

/// One reply, where it goes and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gathered {
    pub(crate) rsu: NodeId,
    pub(crate) from: Mac,
    pub(crate) reply: ShortReply,
}

/// Replies that wait to be passed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathering {
    waiting: Vec<Gathered>,
    /// When the first of them must go; all others go with it.
    due: Option<Timestamp>,
}

impl Gathering {
    /// Keeps a reply, at most until `due`. Of two replies of one OBU to one RSU the newer one is kept.
    pub(crate) fn add(&mut self, due: Timestamp, new: Gathered) {
        let is_same =
            |old: &&mut Gathered| (old.rsu, old.reply.origin) == (new.rsu, new.reply.origin);
        match self.waiting.iter_mut().find(is_same) {
            Some(old) if old.reply.order < new.reply.order => *old = new,
            Some(_) => {}
            None => self.waiting.push(new),
        }
        let due = if self.is_full() { Timestamp::ZERO } else { due };
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// There are so many that all of them are to go now.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// What must go now, by RSU, at most so many in one frame.
    pub(crate) fn take(&mut self, now: Timestamp, room: usize) -> Vec<(NodeId, Vec<Gathered>)> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.due = None;
        let mut waiting = std::mem::take(&mut self.waiting);
        // In the order they came, for each RSU.
        waiting.sort_by_key(|gathered| gathered.rsu);
        let by_rsu = waiting.chunk_by(|one, other| one.rsu == other.rsu);
        let frames = by_rsu.flat_map(|of_one| of_one.chunks(room));
        frames.filter_map(|frame| Some((frame.first()?.rsu, frame.to_vec()))).collect()
    }

    /// When something must go.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::Order;

    const NOW: Timestamp = Timestamp::from_millis(1000);
    const LATER: Timestamp = Timestamp::from_millis(1100);

    fn gathered(rsu: u8, obu: u8, seq: u32) -> Gathered {
        Gathered {
            rsu: NodeId([2, 0, 0, 0, 9, rsu]),
            from: Mac([2, 0, 0, 0, 1, 1]),
            reply: ShortReply {
                origin: NodeId([2, 0, 0, 0, 0, obu]),
                order: Order::new(1, seq),
                hop_limit: 15,
                hops: 1,
                epoch: 1,
                digest: 0,
            },
        }
    }

    #[test]
    fn what_comes_soon_goes_together_when_the_first_must() {
        let mut gathering = Gathering::default();
        gathering.add(LATER, gathered(1, 1, 1));
        gathering.add(LATER + std::time::Duration::from_millis(50), gathered(1, 2, 1));
        assert_eq!(gathering.deadline(), Some(LATER));
        assert!(gathering.take(NOW, 60).is_empty());
        let frames = gathering.take(LATER, 60);
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0].1, [gathered(1, 1, 1), gathered(1, 2, 1)]);
        assert_eq!(gathering.deadline(), None);
        assert!(gathering.take(LATER, 60).is_empty(), "once");
    }

    #[test]
    fn of_one_obu_only_the_last_word_goes() {
        let mut gathering = Gathering::default();
        for seq in [2, 3, 1] {
            gathering.add(NOW, gathered(1, 1, seq));
        }
        // A copy that came another way is no newer word.
        gathering.add(NOW, Gathered { from: Mac([2, 0, 0, 0, 1, 2]), ..gathered(1, 1, 3) });
        assert_eq!(gathering.take(NOW, 60), [(gathered(1, 1, 3).rsu, vec![gathered(1, 1, 3)])]);
    }

    #[test]
    fn each_rsu_has_frames_of_its_own_and_none_is_too_long() {
        let mut gathering = Gathering::default();
        for obu in 0..10 {
            gathering.add(NOW, gathered(obu % 2, obu, 1));
        }
        let frames = gathering.take(NOW, 3);
        let sizes: Vec<_> = frames.iter().map(|(rsu, said)| (rsu.0[5], said.len())).collect();
        assert_eq!(sizes, [(0, 3), (0, 2), (1, 3), (1, 2)]);
    }

    #[test]
    fn too_many_do_not_wait() {
        let mut gathering = Gathering::default();
        for obu in 0..=255 {
            assert_eq!(gathering.is_full(), usize::from(obu) >= WAITING_MAX);
            gathering.add(LATER, gathered(1, obu, 1));
        }
        assert_eq!(gathering.take(NOW, 60).iter().map(|(_, said)| said.len()).sum::<usize>(), 256);
    }
}
