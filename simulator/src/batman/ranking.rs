//! Which neighbour leads to which originator: [`OriginatorRanking`], by transmission quality (TQ).
//!
//! The rules of B.A.T.M.A.N. IV as `net/batman-adv/bat_iv_ogm.c` has them, for one half-duplex
//! radio:
//!
//! * *Receive quality* RQ of a neighbour: of its last 64 OGMs, how many were heard from itself.
//!   *Echo quality* EQ: of our own last 64, how many it was heard to repeat. The local quality is
//!   EQ / RQ, what gets through from us to it, with asymmetric links made worse: × (1 − (1 − RQ)³).
//! * The TQ of an OGM is what it says × the local quality of who sent it × a penalty for a
//!   half-duplex radio, and whoever repeats it takes [`HOP_PENALTY`] off.
//! * The TQ of a neighbour for an originator is the mean of its last 5 OGMs that were not zero.
//!   With each new OGM of the originator the others' go on by a zero, until that one arrives over
//!   them too. The next hop is the neighbour with the highest; among equals the one that was,
//!   unless another hears us better.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::FixedState;
use node_lib::{Mac, NodeId, Timestamp};

use super::window::{self, WINDOW};
use super::wire::{DIRECT_LINK, NOT_BEST_NEXT_HOP, Ogm, TTL};

/// The best there is.
pub(super) const TQ_MAX: u8 = 255;
/// Taken off at each hop, of 255 (`hop_penalty`), and once more by a radio that cannot send while
/// it hears.
const HOP_PENALTY: u8 = 30;
const MEAN_OF: usize = super::MEAN_OF as usize;
/// A neighbour that has brought no OGM of an originator for so long is forgotten for it, an
/// originator after twice the time (`BATADV_PURGE_TIMEOUT`).
const PURGE: Duration = Duration::from_secs(200);

/// Originators known, and neighbours for each. batman-adv has no such bound; here a newcomer is
/// refused.
const ORIGINATORS_MAX: usize = 2048;
const VIAS_MAX: usize = 256;

/// A neighbour that brings OGMs of an originator.
#[derive(Clone, Debug)]
struct Via {
    neighbour: Mac,
    /// Where the next quality is put.
    place: u8,
    tq: u8,
    tqs: [u8; MEAN_OF],
    /// OGMs it brought, of the originator's last 64.
    heard: u64,
    last_seen: Timestamp,
}

impl Via {
    fn new(neighbour: Mac, now: Timestamp) -> Self {
        Self { neighbour, place: 0, tq: 0, tqs: [0; MEAN_OF], heard: 0, last_seen: now }
    }

    fn note(&mut self, tq: u8) {
        let place = usize::from(self.place);
        if let Some(old) = self.tqs.get_mut(place) {
            *old = tq;
        }
        self.place = if place + 1 < MEAN_OF { self.place + 1 } else { 0 };
        let (sum, count) = self
            .tqs
            .iter()
            .filter(|tq| **tq != 0)
            .fold((0_u16, 0_u16), |of, tq| (of.0 + u16::from(*tq), of.1 + 1));
        self.tq = sum.checked_div(count).and_then(|mean| u8::try_from(mean).ok()).unwrap_or(0);
    }
}

/// Another node.
#[derive(Clone, Debug)]
struct Originator {
    /// Number and hops to go of its newest OGM.
    last: u32,
    ttl: u8,
    reset: Option<Timestamp>,
    /// OGMs that anybody brought, of the last 64.
    heard: u64,
    /// Our own OGMs that it was heard to repeat, of the last 64.
    echoes: u64,
    last_seen: Timestamp,
    vias: Vec<Via>,
    next_hop: Option<Mac>,
    /// Its broadcasts.
    broadcasts: u64,
    last_broadcast: u32,
    broadcast_reset: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Duplicate {
    New,
    /// Another neighbour brought it.
    OfOriginator,
    /// This neighbour brought it.
    OfNeighbour,
    Protected,
}

impl Originator {
    fn new(now: Timestamp) -> Self {
        Self {
            last: 0,
            ttl: 0,
            reset: None,
            heard: 0,
            echoes: 0,
            last_seen: now,
            vias: Vec::new(),
            next_hop: None,
            broadcasts: 0,
            last_broadcast: 0,
            broadcast_reset: None,
        }
    }

    fn via(&self, neighbour: Mac) -> Option<&Via> {
        self.vias.iter().find(|via| via.neighbour == neighbour)
    }

    /// The neighbour's entry, made if there is none and room for one.
    fn via_mut(&mut self, neighbour: Mac, now: Timestamp) -> Option<&mut Via> {
        match self.vias.iter().position(|via| via.neighbour == neighbour) {
            Some(known) => self.vias.get_mut(known),
            None if self.vias.len() < VIAS_MAX => {
                self.vias.push(Via::new(neighbour, now));
                self.vias.last_mut()
            }
            None => None,
        }
    }

    /// TQ over the next hop.
    fn tq(&self) -> u8 {
        self.next_hop.and_then(|next| self.via(next)).map_or(0, |via| via.tq)
    }

    /// An OGM with this number came from a neighbour.
    fn note(&mut self, now: Timestamp, from: Mac, number: u32) -> Duplicate {
        let ahead = window::ahead(number, self.last);
        if self.vias.is_empty() {
            return Duplicate::New;
        }
        if window::is_protected(now, ahead, &mut self.reset) {
            return Duplicate::Protected;
        }
        let mut duplicate = match window::is_marked(self.heard, ahead) {
            true => Duplicate::OfOriginator,
            false => Duplicate::New,
        };
        let mut is_of_via = false;
        if let Some(via) = self.vias.iter().find(|via| via.neighbour == from) {
            is_of_via = true;
            if window::is_marked(via.heard, ahead) {
                duplicate = Duplicate::OfNeighbour;
            }
        }
        if window::note(&mut self.heard, ahead, is_of_via) {
            self.last = number;
            for via in &mut self.vias {
                window::note(&mut via.heard, ahead, via.neighbour == from);
            }
        } else if let Some(via) = self.vias.iter_mut().find(|via| via.neighbour == from) {
            window::note(&mut via.heard, ahead, true);
        }
        duplicate
    }
}

/// What to do with an OGM.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OgmVerdict<'a> {
    /// Nothing: it is an echo, comes from who has a better way, or might lead in a circle.
    Ignored,
    /// Read what else it says, and repeat this.
    Taken(Option<Ogm<'a>>),
}

/// A way to an originator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OriginatorWay {
    pub(super) next_hop: Mac,
    pub(super) tq: u8,
    /// Hops, 1 for a neighbour.
    pub(super) hops: u8,
    /// Neighbours over which it is heard.
    pub(super) choices: usize,
}

/// Originators and the ways to them.
#[derive(Debug)]
pub(super) struct OriginatorRanking {
    us: Mac,
    originators: HashMap<Mac, Originator, FixedState>,
    /// Number of the OGM of ours that was sent last.
    sent: u32,
    /// Originators that found no room.
    pub(super) refused: u64,
}

/// Local quality of a link, as [the module](self) says: EQ / RQ, worse if asymmetric. 0 if it works
/// one way only.
fn local_quality(echoes: u64, heard: u64) -> (u32, u32) {
    let (rq, max) = (heard.count_ones(), u32::from(TQ_MAX));
    let own = (max * echoes.count_ones().min(rq)).checked_div(rq).unwrap_or(0);
    let missed = WINDOW - rq;
    (own, max - max * missed.pow(3) / WINDOW.pow(3))
}

fn after_hop(tq: u8) -> u8 {
    let left = u16::from(tq) * u16::from(TQ_MAX - HOP_PENALTY) / u16::from(TQ_MAX);
    u8::try_from(left).unwrap_or(TQ_MAX)
}

impl OriginatorRanking {
    pub(super) fn new(us: Mac) -> Self {
        Self { us, originators: HashMap::default(), sent: 0, refused: 0 }
    }

    fn make(&mut self, now: Timestamp, orig: Mac) -> bool {
        if self.originators.contains_key(&orig) {
            return true;
        }
        if self.originators.len() >= ORIGINATORS_MAX {
            self.refused += 1;
            return false;
        }
        self.originators.insert(orig, Originator::new(now)).is_none()
    }

    fn echoes(&self, neighbour: Mac) -> u32 {
        self.originators.get(&neighbour).map_or(0, |of| of.echoes.count_ones())
    }

    /// Our own OGM with this number is the last that was sent: echoes count from it on.
    pub(super) fn note_sent(&mut self, number: u32) {
        self.sent = number;
        for of in self.originators.values_mut() {
            window::note(&mut of.echoes, 1, false);
        }
    }

    /// An OGM came from this neighbour.
    pub(super) fn hear<'a>(&mut self, now: Timestamp, from: Mac, ogm: Ogm<'a>) -> OgmVerdict<'a> {
        if ogm.orig == self.us {
            if ogm.flags & DIRECT_LINK != 0 && self.make(now, from) {
                let ahead = window::ahead(ogm.seqno, self.sent);
                if let Some(of) = self.originators.get_mut(&from)
                    && (-(WINDOW.cast_signed()) < ahead && ahead <= 0)
                {
                    window::note(&mut of.echoes, ahead, true);
                }
            }
            return OgmVerdict::Ignored;
        }
        if ogm.prev_sender == self.us
            || ogm.flags & NOT_BEST_NEXT_HOP != 0
            || !self.make(now, ogm.orig)
        {
            return OgmVerdict::Ignored;
        }
        let is_neighbour = from == ogm.orig;
        let Some(of) = self.originators.get_mut(&ogm.orig) else { return OgmVerdict::Ignored };
        let duplicate = of.note(now, from, ogm.seqno);
        if duplicate == Duplicate::Protected || ogm.tq == 0 {
            return OgmVerdict::Ignored;
        }
        let (next_hop, tq) = (of.next_hop, of.tq());
        let is_from_next_hop = next_hop == Some(from) && tq != 0;
        // Our next hop, a neighbour, sent it to who now repeats it: a way over that one leads back.
        if let Some(next) = next_hop
            && next == ogm.prev_sender
            && next != ogm.orig
            && self.originators.get(&next).is_some_and(|of| of.next_hop == Some(next))
        {
            return OgmVerdict::Ignored;
        }
        if !is_neighbour {
            let has_way = self.make(now, from)
                && self.originators.get(&from).is_some_and(|of| of.next_hop.is_some());
            if !has_way {
                return OgmVerdict::Taken(None);
            }
        }
        let tq = self.quality(now, from, &ogm);
        self.rank(now, from, &ogm, tq, duplicate);
        if !is_neighbour && (tq == 0 || duplicate == Duplicate::OfNeighbour) {
            return OgmVerdict::Taken(None);
        }
        OgmVerdict::Taken(repeated(ogm, from, tq, is_from_next_hop))
    }

    /// Quality of the way an OGM shows, up to here.
    fn quality(&mut self, now: Timestamp, from: Mac, ogm: &Ogm<'_>) -> u8 {
        if let Some(of) = self.originators.get_mut(&ogm.orig) {
            of.last_seen = now;
        }
        let Some(neighbour) = self.originators.get_mut(&from) else { return 0 };
        let echoes = neighbour.echoes;
        let Some(direct) = neighbour.via_mut(from, now) else { return 0 };
        if from == ogm.orig {
            direct.last_seen = now;
        }
        let (own, symmetric) = local_quality(echoes, direct.heard);
        let max = u32::from(TQ_MAX);
        // 255⁴ is less than 2³².
        let tq = u32::from(ogm.tq) * own * symmetric * u32::from(after_hop(TQ_MAX)) / max.pow(3);
        u8::try_from(tq).unwrap_or(TQ_MAX)
    }

    /// A neighbour brought an OGM of this quality.
    fn rank(&mut self, now: Timestamp, from: Mac, ogm: &Ogm<'_>, tq: u8, duplicate: Duplicate) {
        let Some(of) = self.originators.get_mut(&ogm.orig) else { return };
        let is_new = duplicate == Duplicate::New;
        let is_like_it = of.last == ogm.seqno && i16::from(of.ttl) - 3 <= i16::from(ogm.ttl);
        if tq == 0 || !(is_new || is_like_it) {
            return;
        }
        if is_new {
            of.vias.iter_mut().filter(|via| via.neighbour != from).for_each(|via| via.note(0));
            of.ttl = ogm.ttl;
        }
        let Some(via) = of.via_mut(from, now) else { return };
        via.last_seen = now;
        via.note(tq);
        let tq = via.tq;
        let is_better = match of.next_hop {
            Some(next) if next == from => false,
            Some(next) => {
                let before = of.tq();
                before < tq || before == tq && self.echoes(next) < self.echoes(from)
            }
            None => true,
        };
        if is_better && let Some(of) = self.originators.get_mut(&ogm.orig) {
            of.next_hop = Some(from);
        }
    }

    /// The way to an originator, if there is one.
    pub(super) fn way(&self, to: Mac) -> Option<OriginatorWay> {
        let of = self.originators.get(&to)?;
        let via = of.via(of.next_hop?)?;
        Some(OriginatorWay {
            next_hop: via.neighbour,
            tq: via.tq,
            hops: (TTL + 1).saturating_sub(of.ttl).max(1),
            choices: of.vias.iter().filter(|via| via.tq > 0).count(),
        })
    }

    /// When a neighbour last brought an OGM of an originator.
    pub(super) fn heard_over(&self, orig: Mac, neighbour: NodeId) -> Option<Timestamp> {
        let vias = &self.originators.get(&orig)?.vias;
        let via = vias.iter().find(|via| NodeId::from(via.neighbour) == neighbour)?;
        Some(via.last_seen)
    }

    /// Is this broadcast of an originator new? One of an originator nobody has heard of is not
    /// taken.
    pub(super) fn is_new_broadcast(&mut self, now: Timestamp, orig: Mac, number: u32) -> bool {
        let Some(of) = self.originators.get_mut(&orig) else { return false };
        let ahead = window::ahead(number, of.last_broadcast);
        if window::is_marked(of.broadcasts, ahead)
            || window::is_protected(now, ahead, &mut of.broadcast_reset)
        {
            return false;
        }
        if window::note(&mut of.broadcasts, ahead, true) {
            of.last_broadcast = number;
        }
        true
    }

    /// Forgets who has not been heard of for long; returns the originators to which there is no way
    /// any more.
    pub(super) fn purge(&mut self, now: Timestamp) -> Vec<Mac> {
        let mut gone = Vec::new();
        self.originators.retain(|orig, of| {
            let stays = now.since(of.last_seen) <= 2 * PURGE;
            if !stays {
                gone.push(*orig);
            }
            stays
        });
        for (orig, of) in &mut self.originators {
            let before = of.vias.len();
            of.vias.retain(|via| now.since(via.last_seen) <= PURGE);
            if of.vias.len() < before {
                let best = of.vias.iter().max_by_key(|via| via.tq);
                let next_hop = best.map(|via| via.neighbour);
                if next_hop.is_none() && of.next_hop.is_some() {
                    gone.push(*orig);
                }
                of.next_hop = next_hop;
            }
        }
        gone.sort_unstable_by_key(|mac| mac.0);
        gone
    }
}

/// The OGM as it is passed on.
fn repeated<'a>(ogm: Ogm<'a>, from: Mac, tq: u8, is_from_next_hop: bool) -> Option<Ogm<'a>> {
    let is_neighbour = from == ogm.orig;
    if ogm.ttl <= 1 || !(is_from_next_hop || is_neighbour) {
        return None;
    }
    // That of a neighbour is repeated in any case: by it the neighbour knows that we hear it.
    let flags = if is_neighbour { DIRECT_LINK } else { 0 }
        | if is_from_next_hop { 0 } else { NOT_BEST_NEXT_HOP };
    Some(Ogm { ttl: ogm.ttl - 1, flags, prev_sender: from, tq: after_hop(tq), ..ogm })
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const NEAR: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 3]);
    const FAR: Mac = Mac([2, 0, 0, 0, 0, 4]);

    fn own(orig: Mac, seqno: u32) -> Ogm<'static> {
        Ogm { ttl: TTL, flags: 0, seqno, orig, prev_sender: orig, tq: TQ_MAX, tvlvs: &[] }
    }

    fn at(second: u32) -> Timestamp {
        Timestamp::from_millis(1000 * u64::from(second))
    }

    /// A second passes: each neighbour sends its OGM, and repeats ours if `echoes`.
    fn second(ranking: &mut OriginatorRanking, second: u32, neighbours: &[(Mac, bool)]) {
        ranking.note_sent(second);
        for &(neighbour, echoes) in neighbours {
            if echoes {
                let echo =
                    Ogm { flags: DIRECT_LINK, ttl: TTL - 1, prev_sender: US, ..own(US, second) };
                ranking.hear(at(second), neighbour, echo);
            }
            ranking.hear(at(second), neighbour, own(neighbour, second));
        }
    }

    fn of_far(seqno: u32, tq: u8) -> Ogm<'static> {
        Ogm { ttl: TTL - 1, tq, prev_sender: FAR, ..own(FAR, seqno) }
    }

    #[test]
    fn quality_is_echoes_over_what_is_heard_and_asymmetry_is_made_worse() {
        assert_eq!(local_quality(u64::MAX, u64::MAX), (255, 255));
        // All our OGMs come back, but half of theirs are lost: 1 - (1 - 1/2)³.
        assert_eq!(local_quality(u64::MAX, 0xffff_ffff), (255, 224));
        // Theirs all arrive, a quarter of ours.
        assert_eq!(local_quality(0xffff, u64::MAX), (63, 255));
        assert_eq!(local_quality(0, u64::MAX), (0, 255));
        assert_eq!(local_quality(u64::MAX, 0), (0, 0));
        assert_eq!((after_hop(255), after_hop(100), after_hop(1)), (225, 88, 0));
    }

    #[test]
    fn a_neighbour_that_does_not_hear_us_is_no_next_hop_and_its_ogm_is_repeated_all_the_same() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..70 {
            second(&mut ranking, n, &[(NEAR, true), (OTHER, false)]);
        }
        let near = ranking.way(NEAR).unwrap();
        assert_eq!((near.next_hop, near.tq, near.hops), (NEAR, 225, 1));
        assert_eq!(ranking.way(OTHER), None);
        let OgmVerdict::Taken(Some(repeated)) = ranking.hear(at(70), OTHER, own(OTHER, 70)) else {
            panic!("an OGM of a neighbour is an echo for it");
        };
        assert_eq!(repeated.flags, DIRECT_LINK | NOT_BEST_NEXT_HOP);
        assert_eq!((repeated.tq, repeated.ttl, repeated.prev_sender), (0, TTL - 1, OTHER));
    }

    #[test]
    fn of_two_ways_the_better_wins_and_an_asymmetric_link_loses() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..70 {
            // OTHER hears one of four of ours.
            second(&mut ranking, n, &[(NEAR, true), (OTHER, n % 4 == 0)]);
            // It offers more, but not over its own link.
            ranking.hear(at(n), OTHER, of_far(n, 225));
            ranking.hear(at(n), NEAR, of_far(n, 150));
        }
        let way = ranking.way(FAR).unwrap();
        assert_eq!((way.next_hop, way.hops, way.choices), (NEAR, 2, 2));
        // 150 × 225 / 255.
        assert_eq!(way.tq, 132);
        // Only what came over the next hop is repeated.
        let seqno = 70;
        second(&mut ranking, seqno, &[(NEAR, true), (OTHER, false)]);
        let over_other = ranking.hear(at(seqno), OTHER, of_far(seqno, 225));
        assert_eq!(over_other, OgmVerdict::Taken(None));
        let over_near = ranking.hear(at(seqno), NEAR, of_far(seqno, 150));
        let OgmVerdict::Taken(Some(repeated)) = over_near else { panic!("{over_near:?}") };
        assert_eq!((repeated.tq, repeated.flags), (after_hop(132), 0));
    }

    /// The best next hop is silent from second 70 on, and the other offers this.
    fn left_at(offer: u8) -> Option<u32> {
        let mut ranking = OriginatorRanking::new(US);
        let mut left = None;
        for n in 1..80 {
            let is_silent = n >= 70;
            let neighbours = [(NEAR, true), (OTHER, true)];
            second(&mut ranking, n, if is_silent { &neighbours[1..] } else { &neighbours });
            if !is_silent {
                ranking.hear(at(n), NEAR, of_far(n, 200));
            }
            ranking.hear(at(n), OTHER, of_far(n, offer));
            let next = ranking.way(FAR).map(|way| way.next_hop);
            assert!(n != 69 || next == Some(NEAR), "it was the best");
            if is_silent && left.is_none() && next == Some(OTHER) {
                left = Some(n);
            }
        }
        left
    }

    #[test]
    fn a_next_hop_that_is_silent_is_left_when_its_last_ogms_are_out_of_the_mean() {
        assert_eq!(left_at(190), Some(74), "at the fifth it did not bring");
        assert_eq!(left_at(20), Some(74));
    }

    #[test]
    fn what_came_from_our_next_hop_or_from_us_is_no_way() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..10 {
            second(&mut ranking, n, &[(NEAR, true), (OTHER, true)]);
            ranking.hear(at(n), NEAR, of_far(n, 200));
        }
        let over = |prev_sender| Ogm { prev_sender, ..of_far(10, 255) };
        assert_eq!(ranking.hear(at(10), OTHER, over(US)), OgmVerdict::Ignored);
        assert_eq!(ranking.hear(at(10), OTHER, over(NEAR)), OgmVerdict::Ignored);
        let marked = Ogm { flags: NOT_BEST_NEXT_HOP, ..over(FAR) };
        assert_eq!(ranking.hear(at(10), OTHER, marked), OgmVerdict::Ignored);
    }

    #[test]
    fn an_ogm_that_was_heard_before_or_comes_a_long_way_round_is_neither_repeated_nor_ranked() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..10 {
            second(&mut ranking, n, &[(NEAR, true), (OTHER, true)]);
            ranking.hear(at(n), NEAR, of_far(n, 200));
        }
        let way = ranking.way(FAR);
        assert_eq!(way.map(|way| way.next_hop), Some(NEAR));
        // The last, and the one before it, by the same neighbour.
        for n in [9, 8] {
            assert_eq!(ranking.hear(at(9), NEAR, of_far(n, 255)), OgmVerdict::Taken(None), "{n}");
        }
        let way = ranking.way(FAR);
        // By another: one that is old, and one that took four hops more.
        assert_eq!(ranking.hear(at(9), OTHER, of_far(8, 255)), OgmVerdict::Taken(None));
        let long = Ogm { ttl: TTL - 5, ..of_far(9, 255) };
        assert_eq!(ranking.hear(at(9), OTHER, long), OgmVerdict::Taken(None));
        assert_eq!(ranking.way(FAR), way);
        let shorter = Ogm { ttl: TTL - 4, ..of_far(9, 255) };
        ranking.hear(at(9), OTHER, shorter);
        assert_eq!(ranking.way(FAR).map(|way| way.next_hop), Some(OTHER));
    }

    #[test]
    fn who_starts_anew_is_believed_once_in_thirty_seconds() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..10 {
            second(&mut ranking, n, &[(NEAR, true)]);
        }
        let mut hear = |second, seqno| ranking.hear(at(second), NEAR, own(NEAR, seqno));
        assert!(matches!(hear(10, 1_000_000), OgmVerdict::Taken(Some(_))));
        assert_eq!(hear(39, 2_000_000), OgmVerdict::Ignored);
        assert!(matches!(hear(39, 1_000_001), OgmVerdict::Taken(Some(_))));
        assert!(matches!(hear(40, 2_000_000), OgmVerdict::Taken(Some(_))));
    }

    #[test]
    fn echoes_of_the_last_sixty_four_of_ours_count() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..100 {
            // It stops to hear us.
            second(&mut ranking, n, &[(NEAR, n < 36)]);
            let tq = ranking.way(NEAR).map(|way| way.tq);
            match n {
                // 35 of 64, all echoed: 204; a mean of five with those before.
                35 => assert_eq!(tq, Some(197)),
                // Half of the last 64: 255 × 32 / 64, and the penalty.
                67 => assert!((112..120).contains(&tq.unwrap()), "{tq:?}"),
                // Nothing, and the mean of five goes with it.
                99 => assert!(tq < Some(10), "{tq:?}"),
                _ => {}
            }
        }
    }

    #[test]
    fn who_is_silent_is_forgotten_and_tables_are_bounded() {
        let mut ranking = OriginatorRanking::new(US);
        for n in 1..10 {
            second(&mut ranking, n, &[(NEAR, true)]);
        }
        assert!(ranking.purge(at(209)).is_empty());
        assert!(ranking.way(NEAR).is_some());
        assert_eq!(ranking.purge(at(210)), [NEAR]);
        assert_eq!(ranking.way(NEAR), None, "no neighbour is left");
        assert_eq!(ranking.purge(at(410)), [NEAR]);

        for n in 0..3000_u32 {
            let [_, _, high, low] = n.to_be_bytes();
            ranking.hear(
                at(500),
                Mac([2, 9, 0, 0, high, low]),
                own(Mac([2, 9, 0, 0, high, low]), 1),
            );
        }
        assert_eq!((ranking.originators.len(), ranking.refused), (2048, 952));
        for n in 0..300_u32 {
            let [_, _, high, low] = n.to_be_bytes();
            let from = Mac([2, 9, 0, 0, high, low]);
            if let Some(of) = ranking.originators.get_mut(&from) {
                (of.next_hop, of.echoes) = (Some(from), u64::MAX);
            }
            ranking.hear(at(501), from, own(from, 2));
            ranking.hear(at(502), from, own(from, 3));
            ranking.hear(at(503), from, of_far(n, 200));
        }
        let most = ranking.originators.values().map(|of| of.vias.len()).max();
        assert!(most <= Some(VIAS_MAX));
    }
}
