//! One broadcast of the LAN, delivered once, although two RSUs on that LAN each send it down.
//!
//! Within one RSU the sequence number tells a copy. Two RSUs number their floods independently, and
//! an OBU that changes from one to the other may have had a broadcast from the first when the
//! second's copy arrives. Both took it from the LAN at the same moment, and each says after which
//! of its heartbeats that was. So a flood is known by what is in it and by that moment, as our
//! clock has it: however late a copy comes, and by whichever RSU.
//!
//! What is for one client is flooded by an RSU that does not know where it is, while the other may
//! know, and send it to its OBU alone.

use std::collections::VecDeque;
use std::time::Duration;

use arrayvec::ArrayVec;
use node_lib::{NodeId, Timestamp};

/// Two RSUs took equal frames from the LAN within this: they are one. It must be less than the
/// second after which ARP and neighbour discovery ask again with an equal frame (arp(7)
/// `retrans_time_ms`; RFC 4861 §10, RETRANS_TIMER). It must be more than what the moments are wrong
/// by. That is an interval, by which the moment is known, and the time by which one RSU's
/// heartbeats come later than those of the other. To that comes the time an RSU that is busy leaves
/// a frame in its TAP. With intervals of a second and more a late copy may be delivered; that is
/// better than a question that is not.
const SAME_WITHIN: Duration = Duration::from_millis(900);

/// Floods are remembered for so long: no frame is under way for longer …
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// … and so many. Beyond, the oldest goes, and a copy of it would be delivered twice.
const REMEMBERED_MAX: usize = 1024;

/// RSUs whose copies of one flood are told apart. A vehicle that changes RSU more often than that
/// within [`REMEMBERED_FOR`] takes every further copy for one.
const RSUS_MAX: usize = 4;

/// One flood that was delivered.
#[derive(Clone, Debug)]
struct HeardFlood {
    /// Digest and length.
    content: (u32, usize),
    /// When the RSU took it from the LAN, by our clock; `None` where we do not hear the heartbeats
    /// of that start of the RSU (any more).
    taken: Option<Timestamp>,
    /// The RSUs that have brought it.
    rsus: ArrayVec<NodeId, RSUS_MAX>,
    at: Timestamp,
}

impl HeardFlood {
    /// This RSU has brought it as well.
    fn note(&mut self, rsu: NodeId) {
        if !self.rsus.is_full() {
            self.rsus.push(rsu);
        }
    }
}

/// Floods delivered lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floods {
    heard: VecDeque<HeardFlood>,
}

impl Floods {
    /// Notes a flood that `rsu` took from the LAN at `taken`; whether it must be delivered, or
    /// another RSU's copy was.
    ///
    /// Where the moment of one of the two is not known, the times at which they came are compared.
    ///
    /// A client may well send equal frames, and only one RSU may have passed on the first of them.
    /// So each RSU brings one copy at most of what was delivered, and of equal frames it is the
    /// nearest in time.
    pub(crate) fn is_new(
        &mut self,
        now: Timestamp,
        rsu: NodeId,
        taken: Option<Timestamp>,
        payload: &[u8],
    ) -> bool {
        while self.heard.front().is_some_and(|heard| now.since(heard.at) > REMEMBERED_FOR) {
            self.heard.pop_front();
        }
        let content = (crc32fast::hash(payload), payload.len());
        let apart = |heard: &HeardFlood| match heard.taken.zip(taken) {
            Some((one, other)) => one.since(other).max(other.since(one)),
            None => now.since(heard.at),
        };
        let copies = self.heard.iter_mut().filter(|heard| {
            heard.content == content && !heard.rsus.contains(&rsu) && apart(heard) <= SAME_WITHIN
        });
        if let Some(first) = copies.min_by_key(|heard| apart(heard)) {
            first.note(rsu);
            return false;
        }
        if self.heard.len() >= REMEMBERED_MAX {
            self.heard.pop_front();
        }
        self.heard.push_back(HeardFlood {
            content,
            taken,
            rsus: [rsu].into_iter().collect(),
            at: now,
        });
        true
    }

    /// Whether `rsu` sends to us alone what another RSU flooded a moment ago, because it did not
    /// know whom it is for.
    pub(crate) fn has_brought(&mut self, now: Timestamp, rsu: NodeId, payload: &[u8]) -> bool {
        let lately = |heard: &&mut HeardFlood| now.since(heard.at) <= SAME_WITHIN;
        let mut others = self.heard.iter_mut().rev().take_while(lately).filter(|heard| {
            // Most differ in length, and the digest is made for the rest only.
            heard.content.1 == payload.len()
                && !heard.rsus.contains(&rsu)
                && heard.content.0 == crc32fast::hash(payload)
        });
        let Some(first) = others.next() else { return false };
        first.note(rsu);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OTHER: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    const THIRD: NodeId = NodeId([2, 0, 0, 0, 0, 3]);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// This flood comes at `now`; its RSU took it from the LAN at `taken`. Whether it is delivered.
    fn hears(floods: &mut Floods, now: u64, (rsu, taken): (NodeId, u64), payload: &[u8]) -> bool {
        floods.is_new(at(now), rsu, Some(at(taken)), payload)
    }

    #[test]
    fn what_an_unheard_rsu_brings_is_known_by_when_it_comes() {
        for (apart, is_new) in [(0, false), (900, false), (901, true)] {
            for taken in [[Some(at(1000)), None], [None, Some(at(1000))], [None, None]] {
                let mut floods = Floods::default();
                assert!(floods.is_new(at(5000), ONE, taken[0], b"who has"));
                let heard = floods.is_new(at(5000 + apart), OTHER, taken[1], b"who has");
                assert_eq!(heard, is_new, "{apart} ms apart, {taken:?}");
            }
        }
    }

    #[test]
    fn another_rsus_copy_is_known_however_late_it_comes() {
        for late in [0, 100, 3000, 10_000] {
            let mut floods = Floods::default();
            assert!(hears(&mut floods, 1000, (ONE, 1000), b"who has"));
            let copy = hears(&mut floods, 1000 + late, (OTHER, 1100), b"who has");
            assert!(!copy, "{late} ms late");
        }
    }

    #[test]
    fn what_was_asked_again_on_the_lan_a_second_later_is_no_copy() {
        for (apart, is_new) in [(0, false), (900, false), (901, true), (1000, true)] {
            for (first, second) in [(5000, 5000 + apart), (5000 + apart, 5000)] {
                let mut floods = Floods::default();
                assert!(hears(&mut floods, 6000, (ONE, first), b"who has"));
                let heard = hears(&mut floods, 6000, (OTHER, second), b"who has");
                assert_eq!(heard, is_new, "{first} {second}");
            }
        }
    }

    #[test]
    fn other_bytes_and_another_length_are_other_frames() {
        let mut floods = Floods::default();
        assert!(hears(&mut floods, 0, (ONE, 0), b"who has"));
        assert!(hears(&mut floods, 0, (OTHER, 0), b"who had"));
        assert!(hears(&mut floods, 0, (OTHER, 0), b"who has it"));
        assert!(!hears(&mut floods, 0, (OTHER, 0), b"who has"));
    }

    #[test]
    fn a_frame_that_a_client_sent_twice_is_delivered_twice_whoever_brings_them() {
        let mut floods = Floods::default();
        // Both by one RSU, which numbers them itself; then both copies.
        assert!(hears(&mut floods, 0, (ONE, 0), b"who has"));
        assert!(hears(&mut floods, 1, (ONE, 0), b"who has"));
        assert!(!hears(&mut floods, 2, (OTHER, 0), b"who has"));
        assert!(!hears(&mut floods, 3, (OTHER, 0), b"who has"));
        assert!(hears(&mut floods, 4, (OTHER, 0), b"who has"), "a third, of which it is the first");
        assert!(!hears(&mut floods, 5, (ONE, 0), b"who has"));
        // In turns.
        let mut floods = Floods::default();
        assert!(hears(&mut floods, 0, (ONE, 0), b"who has"));
        assert!(!hears(&mut floods, 1, (OTHER, 0), b"who has"));
        assert!(hears(&mut floods, 2, (OTHER, 0), b"who has"));
        assert!(!hears(&mut floods, 3, (ONE, 0), b"who has"));
    }

    #[test]
    fn a_copy_belongs_to_the_frame_nearest_in_time() {
        let mut floods = Floods::default();
        assert!(hears(&mut floods, 2000, (ONE, 1000), b"who has"));
        assert!(hears(&mut floods, 2000, (ONE, 1400), b"who has"));
        // Of the second. Were it taken for the first's, the first's own copy would be delivered
        // again.
        assert!(!hears(&mut floods, 2000, (OTHER, 1450), b"who has"));
        assert!(!hears(&mut floods, 2000, (OTHER, 850), b"who has"));
    }

    #[test]
    fn what_one_rsu_flooded_and_another_knows_whom_it_is_for_comes_once() {
        let mut floods = Floods::default();
        assert!(hears(&mut floods, 1000, (ONE, 1000), b"for you"));
        assert!(!floods.has_brought(at(1900), ONE, b"for you"), "the same RSU: a further frame");
        assert!(!floods.has_brought(at(1900), OTHER, b"for her"), "another frame");
        assert!(!floods.has_brought(at(1901), OTHER, b"for you"), "too late to be the same");
        assert!(floods.has_brought(at(1900), OTHER, b"for you"));
        assert!(!floods.has_brought(at(1900), OTHER, b"for you"), "the client was sent it again");
    }

    #[test]
    fn of_three_rsus_copies_one_is_delivered() {
        let mut floods = Floods::default();
        assert!(hears(&mut floods, 0, (ONE, 0), b"who has"));
        assert!(!hears(&mut floods, 1, (OTHER, 0), b"who has"));
        assert!(!hears(&mut floods, 2, (THIRD, 0), b"who has"));
    }

    #[test]
    fn memory_is_bounded_in_number_and_in_time() {
        let mut floods = Floods::default();
        for n in 0..5000_u32 {
            hears(&mut floods, 0, (ONE, 0), &n.to_be_bytes());
        }
        assert_eq!(floods.heard.len(), 1024);
        let oldest = 5000 - 1024_u32;
        assert!(!hears(&mut floods, 0, (OTHER, 0), &oldest.to_be_bytes()));
        // The oldest goes for each that comes.
        assert!(hears(&mut floods, 0, (OTHER, 0), &(oldest - 1).to_be_bytes()));
        assert!(hears(&mut floods, 0, (THIRD, 0), &oldest.to_be_bytes()));
        assert!(hears(&mut floods, 10_001, (OTHER, 0), &4999_u32.to_be_bytes()));
        assert_eq!(floods.heard.len(), 1, "it is too old to be under way");
    }
}
