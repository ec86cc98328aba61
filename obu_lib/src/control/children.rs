//! Who sends through us: [`Children`], all that a relay keeps of the ways down.
//!
//! An RSU writes the way into what it sends down ([`node_lib::messages::way`]). A relay finds the
//! next hop among those that told it who they are: what an OBU says to its RSU passes its upstream
//! first, and names the OBU. So a relay knows a child before the RSU can send anything to it.

use std::time::Duration;

use arrayvec::ArrayVec;
use node_lib::control::next_hop::NextHop;
use node_lib::control::snapshot;
use node_lib::control::table::Table;
use node_lib::messages::{Label, WORDS_BELIEVED};
use node_lib::{Mac, NodeId, Timestamp};

/// Children known at once: as many as there are neighbours. Beyond, a newcomer takes the place of
/// the one unheard for longest of those that were not heard again after their first second. Made-up
/// children are many, and say one word each. If there are none such, the newcomer is refused.
const CHILDREN_MAX: usize = 256;

/// See [`CHILDREN_MAX`].
const HEARD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// RSUs towards which a child sends through us: its own, the next one, and those of others behind
/// it. Beyond, the one unheard for longest goes.
const TOWARDS_MAX: usize = 4;

/// Of children that answer to one name both are sent to, and no more. Two nodes share a label by
/// chance, and a node that has changed its address, or somebody who pretends to be it, has two
/// addresses for a while.
const NAMESAKES_MAX: usize = 2;

/// Where to send what is for one child.
pub(crate) type NextHops = ArrayVec<NextHop, NAMESAKES_MAX>;

/// What we know of one child.
#[derive(Clone, Debug)]
struct Child {
    id: NodeId,
    label: Label,
    /// The longest packet of its radio, in bytes.
    mtu: u16,
    /// When it became one.
    since: Timestamp,
    towards: ArrayVec<ChildsRsu, TOWARDS_MAX>,
}

/// It sends to this RSU through us.
#[derive(Clone, Copy, Debug)]
struct ChildsRsu {
    rsu: NodeId,
    heard: Timestamp,
    /// Its next word comes within this.
    within: Duration,
    /// Until then somebody is believed to be reached from there through it: the child itself, or
    /// others behind it. A child that only says who its own upstream is, because others once came
    /// through it, is not reached.
    reached_until: Timestamp,
}

/// What an OBU says of itself, in a reply or an announcement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) id: NodeId,
    pub(crate) mtu: u16,
    pub(crate) rsu: NodeId,
    pub(crate) within: Duration,
    /// The RSU will send to it: it is attached there, or waits for an acknowledgement.
    pub(crate) is_reached: bool,
}

/// Neighbours whose upstream we are, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children {
    by_mac: Table<Mac, Child>,
}

impl ChildsRsu {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.heard) < self.within * WORDS_BELIEVED
    }
}

impl Child {
    fn heard(&self) -> Timestamp {
        self.towards.iter().map(|towards| towards.heard).max().unwrap_or_default()
    }

    fn is_towards(&self, now: Timestamp, rsu: NodeId) -> bool {
        self.towards.iter().any(|towards| towards.rsu == rsu && towards.is_fresh(now))
    }

    fn is_reached(&self, now: Timestamp, rsu: NodeId) -> bool {
        let is_reached = |towards: &ChildsRsu| towards.is_fresh(now) && now < towards.reached_until;
        self.towards.iter().any(|towards| towards.rsu == rsu && is_reached(towards))
    }
}

impl Children {
    /// A neighbour said, with a word of its own, that we are its upstream. Returns how many were
    /// evicted for it, or refused.
    pub(crate) fn hear(&mut self, now: Timestamp, mac: Mac, said: Said) -> u64 {
        let Said { id, mtu, rsu, within, is_reached } = said;
        let mut evicted = 0;
        if !self.by_mac.contains_key(&mac) && self.by_mac.len() >= CHILDREN_MAX {
            evicted = 1;
            let is_weak =
                |(_, child): &(&Mac, &Child)| child.heard().since(child.since) < HEARD_AGAIN_AFTER;
            let weak = self.by_mac.iter().filter(is_weak).min_by_key(|(_, child)| child.heard());
            let Some(weak) = weak.map(|(mac, _)| *mac) else { return evicted };
            self.by_mac.remove(&weak);
        }
        let label = Label::of(id);
        let new = || Child { id, label, mtu, since: now, towards: ArrayVec::new() };
        let child = self.by_mac.get_or_insert_with(mac, new);
        if child.id != id {
            *child = new();
        }
        child.mtu = mtu;
        let known = child.towards.iter_mut().find(|towards| towards.rsu == rsu);
        let before = known.as_ref().map_or(Timestamp::ZERO, |known| known.reached_until);
        let reached_until = if is_reached { now + within * WORDS_BELIEVED } else { before };
        let heard = ChildsRsu { rsu, heard: now, within, reached_until };
        if let Some(known) = known {
            *known = heard;
        } else {
            if child.towards.is_full() {
                child.towards.sort_unstable_by_key(|towards| towards.heard);
                child.towards.remove(0);
            }
            child.towards.push(heard);
        }
        evicted
    }

    /// Something for this RSU came through a neighbour: if it is a child, it still is.
    #[inline]
    pub(crate) fn renew(&mut self, now: Timestamp, mac: Mac, rsu: NodeId) {
        if let Some(towards) = self.towards(now, mac, rsu) {
            towards.heard = now;
        }
    }

    /// A word of somebody behind this child came through it.
    pub(crate) fn hear_behind(&mut self, now: Timestamp, mac: Mac, said: Said) {
        if let Some(towards) = self.towards(now, mac, said.rsu).filter(|_| said.is_reached) {
            towards.reached_until = towards.reached_until.max(now + said.within * WORDS_BELIEVED);
        }
    }

    #[inline]
    fn towards(&mut self, now: Timestamp, mac: Mac, rsu: NodeId) -> Option<&mut ChildsRsu> {
        let child = self.by_mac.get_mut(&mac)?;
        child.towards.iter_mut().find(|towards| towards.rsu == rsu && towards.is_fresh(now))
    }

    /// The neighbour sends to some RSU through us.
    pub(crate) fn contains(&self, now: Timestamp, mac: Mac) -> bool {
        let child = self.by_mac.get(&mac);
        child.is_some_and(|child| child.towards.iter().any(|towards| towards.is_fresh(now)))
    }

    /// This RSU sends to somebody through us.
    pub(crate) fn are_reached(&self, now: Timestamp, rsu: NodeId) -> bool {
        self.by_mac.values().any(|child| child.is_reached(now, rsu))
    }

    /// How many this RSU reaches through us: those it sends to, and those through whom it does.
    pub(crate) fn count_towards(&self, now: Timestamp, rsu: NodeId) -> usize {
        self.by_mac.values().filter(|child| child.is_reached(now, rsu)).count()
    }

    /// Where to send what comes from this RSU for the child with this label.
    #[inline]
    pub(crate) fn labelled(&self, now: Timestamp, rsu: NodeId, label: Label) -> NextHops {
        self.namesakes(now, rsu, |child| child.label == label)
    }

    /// Where to send what comes from this RSU for this child.
    #[inline]
    pub(crate) fn named(&self, now: Timestamp, rsu: NodeId, id: NodeId) -> NextHops {
        self.namesakes(now, rsu, |child| child.id == id)
    }

    /// The one known for longest, and the one heard last: who pretends to be a child cannot take
    /// its place while the child was there first, and has it no longer than it speaks.
    #[inline]
    fn namesakes(
        &self,
        now: Timestamp,
        rsu: NodeId,
        is_meant: impl Fn(&Child) -> bool,
    ) -> NextHops {
        let meant =
            self.by_mac.iter().filter(|(_, child)| is_meant(child) && child.is_towards(now, rsu));
        let first = meant.clone().min_by_key(|(mac, child)| (child.since, **mac));
        let last = meant.max_by_key(|(mac, child)| (child.heard(), **mac));
        let last = last.filter(|(mac, _)| first.is_none_or(|(first, _)| first != *mac));
        let hop = |(mac, child): (&Mac, &Child)| NextHop { mac: *mac, mtu: child.mtu };
        first.into_iter().chain(last).map(hop).collect()
    }

    /// Where to send what comes from this RSU for all: to nobody, to the only child, or to all in
    /// earshot; not because of the neighbour `from` whom it came.
    pub(crate) fn all(&self, now: Timestamp, rsu: NodeId, from: Mac) -> Option<NextHop> {
        let is_meant = |(mac, child): &(&Mac, &Child)| **mac != from && child.is_reached(now, rsu);
        let meant = self.by_mac.iter().filter(is_meant);
        NextHop::for_all(meant.map(|(mac, child)| NextHop { mac: *mac, mtu: child.mtu }))
    }

    /// All there are, by address.
    pub(crate) fn view(&self, now: Timestamp) -> Vec<snapshot::KnownChild> {
        let fresh = |child: &Child| -> Vec<NodeId> {
            let towards = child.towards.iter().filter(|towards| towards.is_fresh(now));
            towards.map(|towards| towards.rsu).collect()
        };
        let known = self.by_mac.iter().map(|(mac, child)| snapshot::KnownChild {
            id: child.id,
            mac: *mac,
            towards: fresh(child),
            heard_ms: snapshot::age_ms(now, child.heard()),
            since_ms: snapshot::age_ms(now, child.since),
        });
        known.filter(|child| !child.towards.is_empty()).collect()
    }

    /// Forgets who has gone.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.by_mac.retain(|_, child| child.towards.iter().any(|towards| towards.is_fresh(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

    fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 1, last])
    }

    fn node(last: u8) -> NodeId {
        NodeId([2, 0, 0, 0, 2, last])
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn said(id: u8, rsu: NodeId) -> Said {
        Said { id: node(id), mtu: 1500, rsu, within: Duration::from_secs(1), is_reached: true }
    }

    #[test]
    fn a_child_is_found_by_its_name_until_three_words_are_missing() {
        let mut children = Children::default();
        children.hear(at(0), mac(1), said(1, RSU));
        children.hear(at(0), mac(2), said(2, RSU));
        let found = |children: &Children, ms| {
            let hops = children.named(at(ms), RSU, node(1));
            (hops.len(), hops == children.labelled(at(ms), RSU, Label::of(node(1))))
        };
        assert_eq!(children.named(at(0), RSU, node(1))[0].mac, mac(1));
        assert_eq!(found(&children, 2_999), (1, true));
        assert_eq!(found(&children, 3_000), (0, true));
        children.renew(at(2_999), mac(1), RSU);
        assert_eq!(found(&children, 5_998), (1, true));
        assert!(children.named(at(10), node(9), node(1)).is_empty(), "another RSU");
        children.expire(at(5_998));
        assert!(children.contains(at(5_998), mac(1)) && !children.by_mac.contains_key(&mac(2)));
    }

    #[test]
    fn a_flood_goes_to_the_only_child_alone_and_to_two_by_broadcast() {
        let mut children = Children::default();
        assert_eq!(children.all(at(0), RSU, mac(9)), None);
        children.hear(at(0), mac(1), Said { mtu: 1400, ..said(1, RSU) });
        assert_eq!(children.all(at(0), RSU, mac(9)), Some(NextHop { mac: mac(1), mtu: 1400 }));
        assert_eq!(children.all(at(0), RSU, mac(1)), None, "it came from there");
        children.hear(at(0), mac(2), said(2, RSU));
        let all = NextHop { mac: Mac::BROADCAST, mtu: 1400 };
        assert_eq!(children.all(at(0), RSU, mac(9)), Some(all));
    }

    #[test]
    fn those_are_counted_that_an_rsu_reaches_through_us() {
        let mut children = Children::default();
        let counted = |children: &Children, ms| children.count_towards(at(ms), RSU);
        assert_eq!(counted(&children, 0), 0);
        children.hear(at(0), mac(1), said(1, RSU));
        children.hear(at(0), mac(2), said(2, node(9)));
        children.hear(at(0), mac(3), Said { is_reached: false, ..said(3, RSU) });
        assert_eq!(counted(&children, 0), 1, "neither to another RSU nor on standby");
        children.hear_behind(at(10), mac(3), said(4, RSU));
        assert_eq!(counted(&children, 10), 2, "somebody is reached through it");
        assert_eq!(counted(&children, 3_000), 0);
    }

    #[test]
    fn who_pretends_to_be_a_child_takes_nothing_from_it() {
        let mut children = Children::default();
        children.hear(at(0), mac(1), said(1, RSU));
        for forger in 100..200 {
            children.hear(at(u64::from(forger)), mac(forger), said(1, RSU));
            let hops = children.named(at(u64::from(forger)), RSU, node(1));
            assert_eq!(hops.iter().map(|hop| hop.mac).collect::<Vec<_>>(), [mac(1), mac(forger)]);
        }
    }

    #[test]
    fn made_up_children_push_out_each_other() {
        let mut children = Children::default();
        for n in 0..=255 {
            assert_eq!(children.hear(at(u64::from(n)), mac(n), said(n, RSU)), 0);
        }
        children.renew(at(1_000), mac(0), RSU);
        let newcomer = |n| Mac([2, 0, 0, 0, 9, n]);
        assert_eq!(children.hear(at(1_000), newcomer(0), said(7, RSU)), 1);
        let is_there = |children: &Children, mac| children.contains(at(1_001), mac);
        assert!(is_there(&children, mac(0)) && !is_there(&children, mac(1)));
        for n in 2..=255 {
            children.renew(at(1_300), mac(n), RSU);
        }
        children.renew(at(2_001), newcomer(0), RSU);
        assert_eq!(children.hear(at(2_001), newcomer(1), said(8, RSU)), 1);
        assert!(!children.contains(at(2_001), newcomer(1)), "all are there to stay");
    }

    #[test]
    fn an_address_that_another_node_has_now_is_that_node() {
        let mut children = Children::default();
        children.hear(at(0), mac(1), said(1, RSU));
        children.hear(at(10), mac(1), said(2, RSU));
        assert!(children.named(at(10), RSU, node(1)).is_empty());
        assert_eq!(children.named(at(10), RSU, node(2)).len(), 1);
    }
}
