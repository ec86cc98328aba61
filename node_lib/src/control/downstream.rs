//! The way back to an OBU: learnt from the replies and announcements it sends up.
//!
//! Every reply carries the OBU's own order and counts hops on its way. A node takes over what it
//! says only if it is newer, or equally new and shorter: along the way down the order never falls
//! and, where it is equal, the hops strictly fall, so no frame can come back (the rule of AODV,
//! RFC 3561 §6.2, with the destination's boot count in front of its sequence number).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::mac::{Mac, NodeId};
use crate::order::Order;
use crate::time::Timestamp;

/// The next hop towards one OBU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The OBU's order this was learnt from.
    pub order: Order,
    /// Radio hops to the OBU.
    pub hops: u8,
    /// The neighbour it came from.
    pub next: Mac,
    /// The RSU the OBU is attached to.
    pub rsu: NodeId,
    /// When it came.
    pub seen: Timestamp,
    /// Not renewed for this long, it is not used any more: [`path_lifetime`].
    pub lifetime: Duration,
}

/// Paths kept. Beyond, the one unused for longest goes.
const PATHS_MAX: usize = 1024;

/// Replies of all OBUs of one RSU together, per ten heartbeat intervals.
const REPLIES_PER_TEN: u32 = 40;

/// Time between two replies of an OBU: ten heartbeat intervals, but in a crowd no more than 4 per
/// interval by all `obus` of an RSU together. At 100 ms that is 40 a second, each of which takes a
/// radio of 6 Mbit/s for about 0.2 ms with its acknowledgement: 0.8 %.
pub fn reply_every(interval: Duration, obus: u16) -> Duration {
    interval * 10 * u32::from(obus).max(REPLIES_PER_TEN) / REPLIES_PER_TEN
}

/// How long the way back to an OBU is believed: three replies that did not come, but 5 s at least.
pub fn path_lifetime(interval: Duration, obus: u16) -> Duration {
    (reply_every(interval, obus) * 3).max(Duration::from_secs(5))
}

/// Next hops by OBU.
#[derive(Debug, Default)]
pub struct Downstream {
    paths: BTreeMap<NodeId, Path>,
}

impl Downstream {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over what a reply of `obu` says. Returns whether it was news, and how many entries were
    /// evicted for it.
    pub fn learn(&mut self, obu: NodeId, path: Path) -> (bool, u64) {
        if let Some(known) = self.paths.get_mut(&obu) {
            let is_news = path.order > known.order
                || (path.order == known.order && path.hops < known.hops)
                || path.seen.since(known.seen) > known.bars_for();
            if is_news {
                *known = path;
            }
            return (is_news, 0);
        }
        let mut evicted = 0;
        if self.paths.len() >= PATHS_MAX {
            let oldest = self.paths.iter().min_by_key(|(_, p)| p.seen).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.paths.remove(&oldest);
                evicted = 1;
            }
        }
        self.paths.insert(obu, path);
        (true, evicted)
    }

    /// The path to `obu`, if it is fresh.
    pub fn path(&self, now: Timestamp, obu: NodeId) -> Option<Path> {
        self.paths.get(&obu).copied().filter(|path| path.is_fresh(now))
    }

    /// All fresh paths of OBUs attached to `rsu`, by id.
    pub fn attached_to(&self, now: Timestamp, rsu: NodeId) -> impl Iterator<Item = (NodeId, Path)> {
        let fresh = move |(_, path): &(&NodeId, &Path)| path.rsu == rsu && path.is_fresh(now);
        self.paths.iter().filter(fresh).map(|(id, path)| (*id, *path))
    }

    /// `obu` said that it leaves. Its order stays known, so that a late reply cannot revive it.
    pub fn retire(&mut self, now: Timestamp, obu: NodeId) {
        if let Some(path) = self.paths.get_mut(&obu) {
            path.seen = now.before(path.lifetime);
        }
    }

    /// Forgets what is too old to matter.
    pub fn expire(&mut self, now: Timestamp) {
        self.paths.retain(|_, path| now.since(path.seen) <= path.bars_for());
    }

    /// Paths known, stale ones included.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// No path known.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

impl Path {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.seen) < self.lifetime
    }

    /// An order not heard for this long no longer bars an older one: by then no frame and no path from
    /// its time can be left, and an OBU whose boot count went backwards is heard again.
    fn bars_for(&self) -> Duration {
        self.lifetime * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 9]);

    fn path(seq: u32, hops: u8, next: u8, seconds: u64) -> Path {
        Path {
            order: Order::new(1, seq),
            hops,
            next: Mac([2, 0, 0, 0, 1, next]),
            rsu: RSU,
            seen: Timestamp::from_millis(seconds * 1000),
            lifetime: Duration::from_secs(5),
        }
    }

    #[test]
    fn only_newer_or_shorter_paths_are_taken_over() {
        let mut downstream = Downstream::new();
        assert!(downstream.learn(OBU, path(5, 2, 1, 0)).0);
        assert!(!downstream.learn(OBU, path(4, 1, 2, 0)).0, "older");
        assert!(!downstream.learn(OBU, path(5, 2, 3, 0)).0, "same");
        assert!(downstream.learn(OBU, path(5, 1, 4, 0)).0, "shorter");
        assert!(downstream.learn(OBU, path(6, 7, 5, 0)).0, "newer");
        assert_eq!(downstream.path(Timestamp::ZERO, OBU), Some(path(6, 7, 5, 0)));
    }

    #[test]
    fn a_path_ages_out_but_its_order_still_bars_older_ones_for_a_while() {
        let mut downstream = Downstream::new();
        downstream.learn(OBU, path(5, 1, 1, 0));
        assert_eq!(downstream.path(Timestamp::from_millis(5000), OBU), None);
        assert!(!downstream.learn(OBU, path(4, 1, 1, 6)).0);
        assert!(downstream.learn(OBU, path(4, 1, 1, 11)).0);
        downstream.expire(Timestamp::from_millis(22_000));
        assert!(downstream.is_empty());
    }

    #[test]
    fn a_retired_obu_is_not_reachable_and_not_listed() {
        let mut downstream = Downstream::new();
        let now = Timestamp::from_millis(60_000);
        downstream.learn(OBU, path(5, 1, 1, 60));
        assert_eq!(downstream.attached_to(now, RSU).count(), 1);
        downstream.retire(now, OBU);
        assert_eq!(downstream.path(now, OBU), None);
        assert_eq!(downstream.attached_to(now, RSU).count(), 0);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut downstream = Downstream::new();
        for n in 0..2000u32 {
            let [_, _, high, low] = n.to_be_bytes();
            downstream.learn(NodeId([2, 0, 0, 0, high, low]), path(1, 1, 1, u64::from(n)));
        }
        assert_eq!(downstream.len(), PATHS_MAX);
    }
}
