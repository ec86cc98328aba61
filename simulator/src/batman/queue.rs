//! OGMs that wait to be sent: [`Queue`], which joins those of others into one frame
//! (`batadv_iv_ogm_queue_add`).

use std::time::Duration;

use node_lib::Timestamp;

use super::wire::{DIRECT_LINK, Ogm};

/// OGMs wait so long for others (`BATADV_MAX_AGGREGATION_MS`).
const HOLD: Duration = Duration::from_millis(100);
/// A frame has no more bytes (`BATADV_MAX_AGGREGATION_BYTES`), nor OGMs
/// (`BATADV_MAX_AGGREGATION_PACKETS`).
const BYTES_MAX: usize = 512;
const OGMS_MAX: u8 = 32;
/// Frames that wait (`BATADV_BATMAN_QUEUE_LEN`); another is dropped.
const FRAMES_MAX: usize = 256;

/// OGMs that will be one frame.
#[derive(Debug)]
pub(super) struct Aggregate {
    at: Timestamp,
    /// Behind the Ethernet header.
    pub(super) ogms: Vec<u8>,
    count: u8,
    pub(super) is_own: bool,
    /// Of the first.
    is_direct: bool,
    ttl: u8,
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The newest last.
    waiting: Vec<Aggregate>,
    earliest: Option<Timestamp>,
    /// OGMs that found no room.
    pub(super) dropped: u64,
}

impl Queue {
    /// Our own OGM, to be sent at this time.
    pub(super) fn add_own(&mut self, at: Timestamp, ogm: &Ogm<'_>) {
        self.push(at, ogm, true);
    }

    /// Another's OGM, which could go at this time, alone or with others.
    pub(super) fn add(&mut self, at: Timestamp, ogm: &Ogm<'_>) {
        let len = super::wire::OGM_LEN + ogm.tvlvs.len();
        let is_direct = ogm.flags & DIRECT_LINK != 0;
        // One that measures a link goes alone: its flag is that of the frame it is in.
        let goes_with = |into: &&mut Aggregate| {
            let is_alike = if is_direct {
                ogm.ttl == 1 && into.is_direct
            } else {
                !into.is_direct && into.ttl != 1
            };
            is_alike
                && at < into.at
                && at + HOLD >= into.at
                && into.ogms.len() + len <= BYTES_MAX
                && into.count < OGMS_MAX
        };
        if let Some(into) = self.waiting.iter_mut().rev().find(goes_with) {
            ogm.emit(&mut into.ogms);
            into.count += 1;
        } else if self.waiting.len() < FRAMES_MAX {
            self.push(at + HOLD, ogm, false);
        } else {
            self.dropped += 1;
        }
    }

    fn push(&mut self, at: Timestamp, ogm: &Ogm<'_>, is_own: bool) {
        let mut ogms = Vec::new();
        ogm.emit(&mut ogms);
        let is_direct = ogm.flags & DIRECT_LINK != 0;
        self.waiting.push(Aggregate { at, ogms, count: 1, is_own, is_direct, ttl: ogm.ttl });
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }

    /// When the next frame goes.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.earliest
    }

    /// The frame to be sent by now, if there is one.
    pub(super) fn take(&mut self, now: Timestamp) -> Option<Aggregate> {
        if self.earliest.is_none_or(|at| at > now) {
            return None;
        }
        let (index, _) = self.waiting.iter().enumerate().min_by_key(|(_, one)| one.at)?;
        let taken = self.waiting.remove(index);
        self.earliest = self.waiting.iter().map(|one| one.at).min();
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use node_lib::Mac;

    use super::*;

    fn ogm(flags: u8) -> Ogm<'static> {
        let (orig, prev_sender) = (Mac([2; 6]), Mac([4; 6]));
        Ogm { ttl: 49, flags, seqno: 1, orig, prev_sender, tq: 200, tvlvs: &[0; 28] }
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn ogms_of_others_go_together_and_those_that_measure_a_link_alone() {
        let mut queue = Queue::default();
        for ms in 0..11 {
            queue.add(at(ms), &ogm(0));
        }
        queue.add(at(11), &ogm(DIRECT_LINK));
        assert_eq!(queue.next(), Some(at(100)));
        assert!(queue.take(at(99)).is_none());
        // 512 bytes hold nine of 52.
        let lens: Vec<usize> =
            std::iter::from_fn(|| queue.take(at(1000))).map(|one| one.ogms.len()).collect();
        assert_eq!((lens, queue.next()), (vec![9 * 52, 2 * 52, 52], None));
    }

    #[test]
    fn ours_takes_others_along_and_the_queue_is_bounded() {
        let mut queue = Queue::default();
        queue.add_own(at(1000), &ogm(0));
        queue.add(at(950), &ogm(0));
        queue.add(at(899), &ogm(0));
        let alone = queue.take(at(999)).unwrap();
        assert!(!alone.is_own && alone.ogms.len() == 52);
        let ours = queue.take(at(1000)).unwrap();
        assert!(ours.is_own && ours.ogms.len() == 104);
        for _ in 0..=FRAMES_MAX {
            queue.add(at(0), &ogm(DIRECT_LINK));
        }
        assert_eq!((queue.waiting.len(), queue.dropped), (FRAMES_MAX, 1));
    }
}
