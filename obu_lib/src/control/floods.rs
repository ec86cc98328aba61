//! One broadcast of the LAN, delivered once, although two RSUs on that LAN each send it down.
//!
//! Within one RSU the sequence number tells a copy. Two RSUs number their floods independently, and
//! an OBU that changes from one to the other may have had a broadcast from the first when the
//! second's copy arrives. For that short time it compares contents.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::{NodeId, Timestamp};

/// Two copies of one broadcast cannot be further apart: longer than frames wait in any queue here.
const SAME_WITHIN: Duration = Duration::from_millis(500);

/// Floods remembered: 128 in half a second is more broadcast than a LAN bears for long. Beyond, the
/// oldest goes, and a copy of it would be delivered twice.
const REMEMBERED_MAX: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Delivered {
    at: Timestamp,
    rsu: NodeId,
    len: usize,
    digest: u32,
}

/// Floods delivered lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floods {
    delivered: VecDeque<Delivered>,
}

impl Floods {
    /// Notes a flood of `rsu` about to be delivered; `false` if another RSU's copy just was.
    pub(crate) fn is_new(&mut self, now: Timestamp, rsu: NodeId, payload: &[u8]) -> bool {
        while self.delivered.front().is_some_and(|oldest| now.since(oldest.at) > SAME_WITHIN) {
            self.delivered.pop_front();
        }
        let (len, digest) = (payload.len(), crc32fast::hash(payload));
        // The same RSU may well send equal frames: a client that asks twice, say.
        let is_copy = |d: &Delivered| d.digest == digest && d.len == len && d.rsu != rsu;
        if self.delivered.iter().any(is_copy) {
            return false;
        }
        if self.delivered.len() >= REMEMBERED_MAX {
            self.delivered.pop_front();
        }
        self.delivered.push_back(Delivered { at: now, rsu, len, digest });
        true
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
        assert!(floods.is_new(at(3), OTHER, b"something else"));
    }

    #[test]
    fn what_is_long_ago_is_not_a_copy_and_memory_is_bounded() {
        let mut floods = Floods::default();
        assert!(floods.is_new(at(0), ONE, b"who has"));
        assert!(floods.is_new(at(501), OTHER, b"who has"));
        for n in 0..1000u32 {
            floods.is_new(at(600), ONE, &n.to_be_bytes());
        }
        assert_eq!(floods.delivered.len(), REMEMBERED_MAX);
    }
}
