//! One broadcast of the LAN, delivered once, although two RSUs on that LAN each send it down.
//!
//! Within one RSU the sequence number tells a copy. Two RSUs number their floods independently, and
//! an OBU that changes from one to the other may have had a broadcast from the first when the
//! second's copy arrives. For that short time it compares contents.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::{NodeId, Timestamp};

/// Two copies of one broadcast are hardly ever further apart: each hop's radio may keep a frame for half a second
/// when there is a queue. It must be less than the second after which ARP and neighbour discovery ask again with an
/// equal frame (arp(7) `retrans_time_ms`; RFC 4861 §10, RETRANS_TIMER), which may be the first that comes by the other RSU.
const SAME_WITHIN: Duration = Duration::from_millis(900);

/// Floods remembered: 256 in that time is more broadcast than a LAN bears for long. Beyond, the
/// oldest goes, and a copy of it would be delivered twice.
const REMEMBERED_MAX: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Timestamp,
    rsu: NodeId,
    len: usize,
    digest: u32,
}

/// Floods heard lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floods {
    heard: VecDeque<Heard>,
}

impl Floods {
    /// Notes a flood of `rsu`; whether it must be delivered, or another RSU's copy just was.
    ///
    /// A client may well send equal frames, and only one RSU may have passed on the first of them. So
    /// the *n*-th of one RSU is a copy if another has brought *n* already.
    pub(crate) fn is_new(&mut self, now: Timestamp, rsu: NodeId, payload: &[u8]) -> bool {
        while self.heard.front().is_some_and(|oldest| now.since(oldest.at) > SAME_WITHIN) {
            self.heard.pop_front();
        }
        let (len, digest) = (payload.len(), crc32fast::hash(payload));
        let equal = |heard: &&Heard| heard.digest == digest && heard.len == len;
        let by_it = self.heard.iter().filter(equal).filter(|heard| heard.rsu == rsu).count();
        let by_others = self
            .heard
            .iter()
            .filter(equal)
            .filter(|heard| heard.rsu != rsu)
            .map(|other| self.heard.iter().filter(equal).filter(|h| h.rsu == other.rsu).count())
            .max();
        if self.heard.len() >= REMEMBERED_MAX {
            self.heard.pop_front();
        }
        self.heard.push_back(Heard { at: now, rsu, len, digest });
        by_it >= by_others.unwrap_or(0)
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
    }
}
