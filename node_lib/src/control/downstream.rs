//! The way back to an OBU: learnt from the replies and announcements it sends up.
//!
//! Every reply carries the OBU's own order and counts hops on its way. A node takes over what it
//! says only if it is newer, or equally new and shorter: along the way down the order never falls
//! and, where it is equal, the hops strictly fall, so no frame can come back (the rule of AODV,
//! RFC 3561 §6.2, with the destination's boot count in front of its sequence number).

use std::time::Duration;

use crate::control::table::Table;
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
    /// The RSU the OBU was talking to.
    pub rsu: NodeId,
    /// The OBU is attached to another RSU, and only makes its way known to this one.
    pub standby: bool,
    /// When it came.
    pub seen: Timestamp,
    /// Not renewed for this long, it is not used any more: [`path_lifetime`].
    pub lifetime: Duration,
}

/// What is known of one OBU: the way to it, and whose floods are for it. A relay may be on its way to
/// one RSU and on its way, on standby, to another: what it says to the second renews the way, and does
/// not end the first one's floods.
#[derive(Clone, Copy, Debug)]
struct Entry {
    path: Path,
    /// When the order of `path` came: renewed by newer words only.
    worded: Timestamp,
    /// When the OBU became known.
    since: Timestamp,
    attached: Attached,
}

/// The RSU an OBU is attached to.
#[derive(Clone, Copy, Debug)]
struct Attached {
    /// [`NodeId::NONE`]: none that we are on the way to.
    rsu: NodeId,
    /// The OBU's order this was learnt from.
    order: Order,
    /// When that order came.
    worded: Timestamp,
    seen: Timestamp,
}

/// Paths kept: twice the OBUs an RSU registers, so that there is always one to make room for those.
/// Beyond, a newcomer takes the place of an OBU whose path has lapsed, else of one not attached
/// through us, else of one that was not heard again after its first second; the longest unheard goes
/// first. Who is attached and was heard again is never pushed out: the newcomer is refused.
pub const PATHS_MAX: usize = 2048;

/// Who was heard again so long after its first word is not pushed out by newcomers: made-up OBUs are
/// many, and say one word each.
const HEARD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A full table is looked through at most this often, which bounds the work a flood of made-up OBUs
/// makes to 1 % of a core. Newcomers in between are refused.
const MAKE_ROOM_EVERY: Duration = Duration::from_millis(1);

/// An order not heard for so long no longer bars an older one: no frame is under way for longer, since
/// radios keep one for half a second at most. So a made-up order bars those of the OBU it names only
/// while it is repeated, and an OBU whose boot count went backwards is heard again.
const BARS_FOR: Duration = Duration::from_secs(2);

/// Replies of all OBUs of one RSU together, per ten heartbeat intervals.
const REPLIES_PER_TEN: u32 = 24;

/// Time between two replies of an OBU: ten heartbeat intervals, but in a crowd no more than 2.4
/// per interval by all `obus` of an RSU together. At 100 ms that is 24 a second, each of which takes
/// a radio of 6 Mbit/s for about 0.2 ms with its acknowledgement: 0.5 % on the last hop.
pub fn reply_every(interval: Duration, obus: u16) -> Duration {
    interval * 10 * u32::from(obus).max(REPLIES_PER_TEN) / REPLIES_PER_TEN
}

/// How long the way back to an OBU is believed: three replies that did not come, but 5 s at least.
pub fn path_lifetime(interval: Duration, obus: u16) -> Duration {
    (reply_every(interval, obus) * 3).max(Duration::from_secs(5))
}

/// What is still under way to an OBU that has left is sent after it for so long.
pub const LATE_FOR: Duration = Duration::from_millis(300);

/// Next hops by OBU.
#[derive(Clone, Debug, Default)]
pub struct Downstream {
    entries: Table<NodeId, Entry>,
    made_room: Option<Timestamp>,
}

impl Downstream {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over what a reply or announcement of `obu` says. Returns whether it was news, and how
    /// many entries were evicted for it.
    pub fn learn(&mut self, obu: NodeId, path: Path) -> (bool, u64) {
        if let Some(known) = self.entries.get_mut(&obu) {
            known.attached.learn(&path);
            let is_newer =
                path.order > known.path.order || path.seen.since(known.worded) > BARS_FOR;
            let is_shorter = path.order == known.path.order && path.hops < known.path.hops;
            if is_newer {
                known.worded = path.seen;
            }
            if is_newer || is_shorter {
                known.path = path;
            }
            return (is_newer || is_shorter, 0);
        }
        let evicted = if self.entries.len() >= PATHS_MAX { self.evict(path.seen) } else { 0 };
        if self.entries.len() >= PATHS_MAX {
            return (false, 0);
        }
        self.entries.insert(obu, Entry::new(path, path.seen));
        (true, evicted)
    }

    /// Takes over what `obu` says though a higher order is known: whoever knows the OBU better than by
    /// its orders has found that those were not its own. Only an RSU may: nothing passes it on its
    /// way down, so no way through it can lead in a circle.
    pub fn correct(&mut self, obu: NodeId, path: Path) -> (bool, u64) {
        let Some(known) = self.entries.get_mut(&obu) else { return self.learn(obu, path) };
        *known = Entry::new(path, known.since);
        (true, 0)
    }

    fn evict(&mut self, now: Timestamp) -> u64 {
        if self.made_room.is_some_and(|at| now.since(at) < MAKE_ROOM_EVERY) {
            return 0;
        }
        self.made_room = Some(now);
        let value = |entry: &Entry| {
            let is_fresh = entry.path.is_fresh(now);
            (is_fresh, is_fresh && entry.attached.rsu != NodeId::NONE, entry.path.seen)
        };
        let goes = |(_, entry): &(&NodeId, &Entry)| {
            !value(entry).1 || entry.path.seen.since(entry.since) < HEARD_AGAIN_AFTER
        };
        let least = self.entries.iter().filter(goes).min_by_key(|(_, entry)| value(entry));
        let least = least.map(|(id, _)| *id);
        u64::from(least.is_some_and(|least| self.entries.remove(&least).is_some()))
    }

    /// The path to `obu`, if it is fresh.
    #[inline]
    pub fn path(&self, now: Timestamp, obu: NodeId) -> Option<Path> {
        self.entries.get(&obu).map(|entry| entry.path).filter(|path| path.is_fresh(now))
    }

    /// All fresh paths of OBUs attached to `rsu`, by id.
    pub fn attached_to(&self, now: Timestamp, rsu: NodeId) -> impl Iterator<Item = (NodeId, Path)> {
        let attached = move |(_, entry): &(&NodeId, &Entry)| {
            entry.attached.rsu == rsu
                && now.since(entry.attached.seen) < entry.path.lifetime
                && entry.path.is_fresh(now)
        };
        self.entries.iter().filter(attached).map(|(id, entry)| (*id, entry.path))
    }

    /// `obu` told `rsu` that it leaves. Its order stays known, so that a late reply cannot revive it,
    /// and the way to it for [`LATE_FOR`], unless it leads on to another RSU.
    pub fn retire(&mut self, now: Timestamp, obu: NodeId, rsu: NodeId, order: Order) {
        let Some(entry) = self.entries.get_mut(&obu) else { return };
        if order <= entry.path.order && now.since(entry.worded) <= BARS_FOR {
            return;
        }
        (entry.path.order, entry.worded) = (order, now);
        if entry.attached.rsu == rsu {
            entry.attached.rsu = NodeId::NONE;
            (entry.attached.order, entry.attached.worded) = (order, now);
        }
        if entry.attached.rsu == NodeId::NONE {
            entry.path.seen = entry.path.seen.min((now + LATE_FOR).before(entry.path.lifetime));
        }
    }

    /// A frame of `obu`, which is attached, came by `next`: the way to it is there, though its replies may
    /// have been lost.
    #[inline]
    pub fn renew(&mut self, now: Timestamp, obu: NodeId, next: Mac) {
        if let Some(entry) = self.entries.get_mut(&obu)
            && entry.path.next == next
            && entry.attached.rsu != NodeId::NONE
            && entry.path.is_fresh(now)
        {
            entry.path.seen = now;
            entry.attached.seen = now;
        }
    }

    /// The crowd has grown since these ways were learnt, and whoever is in it speaks more rarely now: none is
    /// believed for less than this.
    pub fn believe_for(&mut self, least: Duration) {
        for entry in self.entries.values_mut() {
            entry.path.lifetime = entry.path.lifetime.max(least);
        }
    }

    /// `obu` is not attached to `rsu` any more, though it did not say so; the way to it stays.
    pub fn detach(&mut self, obu: NodeId, rsu: NodeId) {
        if let Some(entry) = self.entries.get_mut(&obu)
            && entry.attached.rsu == rsu
        {
            entry.attached.rsu = NodeId::NONE;
        }
    }

    /// Forgets what is too old to matter.
    pub fn expire(&mut self, now: Timestamp) {
        self.entries
            .retain(|_, entry| entry.path.is_fresh(now) || now.since(entry.worded) <= BARS_FOR);
    }

    /// Paths known, stale ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No path known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Path {
    #[inline]
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.seen) < self.lifetime
    }
}

impl Entry {
    fn new(path: Path, since: Timestamp) -> Self {
        let rsu = if path.standby { NodeId::NONE } else { path.rsu };
        let attached = Attached { rsu, order: path.order, worded: path.seen, seen: path.seen };
        Self { path, worded: path.seen, since, attached }
    }
}

impl Attached {
    fn learn(&mut self, path: &Path) {
        let is_news = path.order >= self.order || path.seen.since(self.worded) > BARS_FOR;
        if is_news && (!path.standby || self.rsu == path.rsu) {
            self.rsu = if path.standby { NodeId::NONE } else { path.rsu };
            (self.order, self.worded, self.seen) = (path.order, path.seen, path.seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 9]);
    const OTHER_RSU: NodeId = NodeId([2, 0, 0, 0, 0, 8]);

    fn path(seq: u32, hops: u8, next: u8, seconds: u64) -> Path {
        Path {
            order: Order::new(1, seq),
            hops,
            next: Mac([2, 0, 0, 0, 1, next]),
            rsu: RSU,
            standby: false,
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
    fn a_path_ages_out_and_its_order_bars_older_ones_for_a_moment_only() {
        let mut downstream = Downstream::new();
        downstream.learn(OBU, path(5, 1, 1, 0));
        assert!(!downstream.learn(OBU, path(4, 1, 1, 2)).0);
        assert!(downstream.learn(OBU, path(4, 1, 1, 3)).0);
        assert_eq!(downstream.path(Timestamp::from_millis(8000), OBU), None);
        downstream.expire(Timestamp::from_millis(8_000));
        assert!(downstream.is_empty());
    }

    #[test]
    fn frames_renew_a_path_and_not_the_order_that_bars_others() {
        let mut downstream = Downstream::new();
        let next = path(9000, 1, 7, 0).next;
        downstream.learn(OBU, path(9000, 1, 7, 0));
        for seconds in 1..=3 {
            downstream.renew(Timestamp::from_millis(seconds * 1000), OBU, next);
        }
        assert!(downstream.learn(OBU, path(6, 1, 1, 3)).0, "the made-up order is not repeated");
    }

    #[test]
    fn an_rsu_that_knows_better_takes_a_lower_order() {
        let mut downstream = Downstream::new();
        downstream.learn(OBU, path(9000, 1, 7, 0));
        assert_eq!(downstream.correct(OBU, path(6, 2, 1, 0)), (true, 0));
        assert_eq!(downstream.path(Timestamp::ZERO, OBU), Some(path(6, 2, 1, 0)));
    }

    fn attached(downstream: &Downstream, rsu: NodeId) -> usize {
        downstream.attached_to(Timestamp::ZERO, rsu).count()
    }

    #[test]
    fn an_obu_that_left_is_not_listed_and_reachable_for_a_moment_only() {
        let mut downstream = Downstream::new();
        let now = Timestamp::from_millis(60_000);
        downstream.learn(OBU, path(5, 1, 1, 60));
        assert_eq!(downstream.attached_to(now, RSU).count(), 1);
        for (seq, attached) in [(4, 1), (5, 1), (6, 0)] {
            downstream.retire(now, OBU, RSU, Order::new(1, seq));
            assert_eq!(downstream.attached_to(now, RSU).count(), attached, "word {seq} after 5");
        }
        assert!(downstream.path(Timestamp::from_millis(60_299), OBU).is_some());
        assert_eq!(downstream.path(Timestamp::from_millis(60_300), OBU), None);
        assert!(!downstream.learn(OBU, path(5, 1, 1, 60)).0, "a late reply");
    }

    #[test]
    fn on_standby_the_way_is_renewed_and_floods_of_the_rsu_in_use_go_on() {
        let mut relay = Downstream::new();
        relay.learn(OBU, path(5, 2, 1, 0));
        let standby = Path { rsu: OTHER_RSU, standby: true, ..path(6, 1, 2, 0) };
        assert!(relay.learn(OBU, standby).0);
        assert_eq!(relay.path(Timestamp::ZERO, OBU), Some(standby));
        assert_eq!((attached(&relay, RSU), attached(&relay, OTHER_RSU)), (1, 0));
        // What it said before to the RSU in use comes late: the way is newer, the attachment is not.
        assert!(!relay.learn(OBU, path(5, 2, 1, 0)).0);
        assert_eq!(attached(&relay, RSU), 1);
        // It goes over.
        relay.learn(OBU, Path { rsu: OTHER_RSU, ..path(7, 1, 2, 0) });
        assert_eq!((attached(&relay, RSU), attached(&relay, OTHER_RSU)), (0, 1));
        // A goodbye to the old RSU does not cut the way from the new one.
        relay.retire(Timestamp::ZERO, OBU, RSU, Order::new(1, 8));
        assert_eq!(attached(&relay, OTHER_RSU), 1);
        assert!(relay.path(Timestamp::from_millis(4000), OBU).is_some());
    }

    #[test]
    fn standby_at_the_rsu_in_use_means_that_it_is_in_use_no_more() {
        let mut rsu = Downstream::new();
        rsu.learn(OBU, path(5, 1, 1, 0));
        rsu.learn(OBU, Path { standby: true, ..path(6, 1, 1, 0) });
        assert_eq!(attached(&rsu, RSU), 0);
        assert!(rsu.path(Timestamp::ZERO, OBU).is_some());
        rsu.learn(OBU, path(5, 1, 1, 0));
        assert_eq!(attached(&rsu, RSU), 0, "a late reply");
    }

    #[test]
    fn an_attachment_not_renewed_ends_though_standby_renews_the_way() {
        let mut relay = Downstream::new();
        relay.learn(OBU, path(5, 1, 1, 0));
        relay.learn(OBU, Path { rsu: OTHER_RSU, standby: true, ..path(6, 1, 1, 4) });
        let now = Timestamp::from_millis(5000);
        assert!(relay.path(now, OBU).is_some());
        assert_eq!(relay.attached_to(now, RSU).count(), 0);
    }

    #[test]
    fn a_frame_by_the_known_way_renews_it_and_one_by_another_does_not() {
        let mut downstream = Downstream::new();
        downstream.learn(OBU, path(5, 1, 1, 0));
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1000);
        downstream.renew(at(4), OBU, Mac([2, 0, 0, 0, 1, 1]));
        assert!(downstream.path(at(8), OBU).is_some());
        downstream.renew(at(8), OBU, Mac([2, 0, 0, 0, 1, 2]));
        assert_eq!(downstream.path(at(9), OBU), None);
        downstream.renew(at(9), OBU, Mac([2, 0, 0, 0, 1, 1]));
        assert_eq!(downstream.path(at(9), OBU), None, "what has lapsed stays lapsed");
    }

    fn id(n: u64) -> NodeId {
        let [.., a, b, c] = n.to_be_bytes();
        NodeId([2, 0, 0, a, b, c])
    }

    fn said(order: u32, ms: u64) -> Path {
        Path { seen: Timestamp::from_millis(ms), ..path(order, 1, 1, 0) }
    }

    #[test]
    fn in_a_crowd_that_grows_a_way_learnt_before_is_believed_for_longer() {
        let mut downstream = Downstream::new();
        downstream.learn(OBU, path(5, 1, 1, 0));
        downstream.believe_for(Duration::from_secs(2));
        assert!(downstream.path(Timestamp::from_millis(4999), OBU).is_some());
        downstream.believe_for(Duration::from_secs(30));
        assert!(downstream.path(Timestamp::from_millis(29_999), OBU).is_some());
        assert_eq!(downstream.attached_to(Timestamp::from_millis(29_999), RSU).count(), 1);
        assert_eq!(downstream.path(Timestamp::from_millis(30_000), OBU), None);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut downstream = Downstream::new();
        for n in 0..3000 {
            downstream.learn(id(n), path(1, 1, 1, n));
        }
        assert_eq!(downstream.len(), PATHS_MAX);
    }

    #[test]
    fn whoever_says_one_word_does_not_push_out_those_heard_again() {
        let mut downstream = Downstream::new();
        let honest = 0..500;
        for n in honest.clone() {
            downstream.learn(id(n), said(1, 0));
            downstream.learn(id(n), said(2, 1000));
        }
        for n in 1000..100_000 {
            downstream.learn(id(n), said(1, 1000 + n / 100));
        }
        let now = Timestamp::from_millis(2000);
        assert!(honest.clone().all(|n| downstream.path(now, id(n)).is_some()));
        assert_eq!(downstream.len(), PATHS_MAX);
        // Who is new does get in, and stays when it is heard again.
        assert!(downstream.learn(id(1), said(3, 2000)).0);
        assert!(downstream.learn(id(999), said(1, 2001)).0);
    }

    #[test]
    fn a_full_table_of_those_heard_again_refuses_newcomers() {
        let mut downstream = Downstream::new();
        for n in 0..PATHS_MAX as u64 {
            downstream.learn(id(n), said(1, 0));
            downstream.learn(id(n), said(2, 1000));
        }
        assert_eq!(downstream.learn(id(9999), said(1, 1001)), (false, 0));
        assert_eq!(downstream.learn(id(9999), said(1, 6001)), (true, 1), "one has lapsed");
    }

    #[test]
    fn who_is_only_on_standby_goes_first() {
        let mut downstream = Downstream::new();
        for n in 0..PATHS_MAX as u64 {
            downstream.learn(id(n), Path { standby: n == 500, ..said(1, n) });
        }
        assert_eq!(downstream.learn(id(9999), said(1, 2100)), (true, 1));
        let now = Timestamp::from_millis(2100);
        assert_eq!(downstream.path(now, id(500)), None);
        assert!(downstream.path(now, id(0)).is_some());
    }
}
