//! One broadcast of the LAN, delivered once, although two RSUs on that LAN each send it down.
//!
//! Within one RSU the sequence number tells a copy. Two RSUs number their floods independently, and
//! an OBU that changes from one to the other may have had a broadcast from the first when the
//! second's copy arrives. For that short time it compares contents.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::control::table::Table;
use node_lib::{NodeId, Timestamp};

/// Two copies of one broadcast are hardly ever further apart: each hop's radio may keep a frame for half a second
/// when there is a queue. It must be less than the second after which ARP and neighbour discovery ask again with an
/// equal frame (arp(7) `retrans_time_ms`; RFC 4861 §10, RETRANS_TIMER), which may be the first that comes by the other RSU.
const SAME_WITHIN: Duration = Duration::from_millis(900);

/// Floods remembered: 256 in that time is more broadcast than a LAN bears for long. Beyond, the
/// oldest goes, and a copy of it would be delivered twice.
const REMEMBERED_MAX: usize = 256;

/// What a frame is known by: digest and length.
type Content = (u32, usize);

/// Floods heard lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floods {
    heard: VecDeque<(Timestamp, Content, NodeId)>,
    /// How many of `heard` have this content and came by this RSU. Its size is that of `heard` at most.
    counts: Table<(Content, NodeId), u32>,
    /// How many of `heard` came by each RSU: two, but for the moment of a change.
    rsus: Table<NodeId, u32>,
}

impl Floods {
    /// Notes a flood of `rsu`; whether it must be delivered, or another RSU's copy just was.
    ///
    /// A client may well send equal frames, and only one RSU may have passed on the first of them. So
    /// the *n*-th of one RSU is a copy if another has brought *n* already.
    pub(crate) fn is_new(&mut self, now: Timestamp, rsu: NodeId, payload: &[u8]) -> bool {
        while self.heard.front().is_some_and(|(at, ..)| now.since(*at) > SAME_WITHIN) {
            self.forget_oldest();
        }
        let content = (crc32fast::hash(payload), payload.len());
        let brought = |rsu| self.counts.get(&(content, rsu)).copied().unwrap_or(0);
        let others = self.rsus.iter().map(|(other, _)| *other).filter(|other| *other != rsu);
        let is_new = others.map(brought).max().is_none_or(|most| brought(rsu) >= most);
        if self.heard.len() >= REMEMBERED_MAX {
            self.forget_oldest();
        }
        self.heard.push_back((now, content, rsu));
        *self.counts.get_or_insert_with((content, rsu), || 0) += 1;
        *self.rsus.get_or_insert_with(rsu, || 0) += 1;
        is_new
    }

    fn forget_oldest(&mut self) {
        let Some((_, content, rsu)) = self.heard.pop_front() else { return };
        take_one(&mut self.counts, (content, rsu));
        take_one(&mut self.rsus, rsu);
    }
}

/// Counts one less of this key.
fn take_one<K: Ord>(counts: &mut Table<K, u32>, key: K) {
    let left = counts.get_mut(&key).map(|count| {
        *count = count.saturating_sub(1);
        *count
    });
    if left == Some(0) {
        counts.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OTHER: NodeId = NodeId([2, 0, 0, 0, 0, 2]);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_copy_by_another_rsu_is_known_and_a_repetition_by_the_same_is_not_one() {
        let mut floods = Floods::default();
        assert!(floods.is_new(at(0), ONE, b"who has"));
        assert!(floods.is_new(at(1), ONE, b"who has"));
        assert!(!floods.is_new(at(2), OTHER, b"who has"));
        assert!(!floods.is_new(at(2), OTHER, b"who has"));
        assert!(floods.is_new(at(3), OTHER, b"something else"));
    }

    #[test]
    fn of_equal_frames_as_many_are_delivered_as_the_rsu_that_brought_most() {
        let mut floods = Floods::default();
        assert!(floods.is_new(at(0), ONE, b"who has"));
        assert!(!floods.is_new(at(1), OTHER, b"who has"));
        assert!(floods.is_new(at(2), OTHER, b"who has"), "its second, and nobody else's");
        assert!(!floods.is_new(at(3), ONE, b"who has"));
    }

    #[test]
    fn what_is_long_ago_is_not_a_copy_and_memory_is_bounded() {
        let mut floods = Floods::default();
        assert!(floods.is_new(at(0), ONE, b"who has"));
        assert!(!floods.is_new(at(900), OTHER, b"who has"), "it waited in a queue");
        assert!(floods.is_new(at(1000), ONE, b"who else has"));
        assert!(floods.is_new(at(2000), OTHER, b"who else has"), "asked again a second later");
        for n in 0..1000u32 {
            floods.is_new(at(2100), ONE, &n.to_be_bytes());
        }
        assert_eq!(floods.heard.len(), REMEMBERED_MAX);
        assert_eq!((floods.counts.len(), floods.rsus.len()), (REMEMBERED_MAX, 1));
        assert!(floods.is_new(at(9000), ONE, b"who has"));
        assert_eq!((floods.counts.len(), floods.rsus.len()), (1, 1), "what was looked through");
    }

    #[test]
    fn equal_floods_are_counted_as_if_all_were_looked_through() {
        let mut floods = Floods::default();
        let mut heard: Vec<(u64, u32, NodeId)> = Vec::new();
        let mut dice = 1_u64;
        for n in 0..5000_u64 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (ms, word) = (n * 7, (dice >> 33) as u32 % 5);
            let rsu = NodeId([2, 0, 0, 0, 0, (dice >> 40) as u8 % 3]);
            heard.retain(|(at, ..)| ms - at <= 900);
            let by = |who| heard.iter().filter(|(_, w, r)| (*w, *r) == (word, who)).count();
            let others = heard.iter().map(|(.., r)| *r).filter(|r| *r != rsu);
            let expected = by(rsu) >= others.map(by).max().unwrap_or(0);
            assert_eq!(floods.is_new(at(ms), rsu, &word.to_be_bytes()), expected, "{n}");
            heard.push((ms, word, rsu));
        }
    }
}
