//! Which neighbours could be upstream towards one RSU, best first.

use std::time::Duration;

use node_lib::control::snapshot::Obstacle;
use node_lib::control::table::Table;
use node_lib::mac::{Mac, NodeId};
use node_lib::messages::Cost;
use node_lib::messages::flags::STRIDE_MAX;
use node_lib::order::Order;
use node_lib::time::Timestamp;

use crate::control::link::neighbour::Neighbours;
use crate::control::route::feasibility::{Distance, Feasibility};

/// Neighbours remembered per RSU; more would never be tried. Beyond, the worst goes.
const CANDIDATES_MAX: usize = 16;

/// Time between two heartbeats of a neighbour of this stride.
pub fn period(interval: Duration, stride: u8) -> Duration {
    interval * (1 << stride.min(STRIDE_MAX))
}

/// After so long without another what a neighbour of this stride advertised no longer counts: two
/// of its heartbeats may be lost, and the third may be half an interval late. The quiet period of a
/// restarted node is longer, so by its end nobody sends through it on the strength of old news.
pub fn fresh_for(interval: Duration, stride: u8) -> Duration {
    period(interval, stride) * 5 / 2 + interval / 2
}

/// What a neighbour last said about its way to one RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advert {
    /// How recent, how far.
    pub distance: Distance,
    /// Expected transmissions from it to the RSU.
    pub cost: Cost,
    /// Relays the news may still pass.
    pub hop_limit: u8,
    /// Its own upstream.
    pub via: NodeId,
    /// The longest packet that passes all radios from it to the RSU, in bytes, its own among them.
    pub mtu: u16,
    /// It brings the heartbeats whose number is a multiple of two to this power.
    pub stride: u8,
}

/// A neighbour that advertised a way to the RSU: one line of 64 bytes of a processor's cache.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Where to send.
    pub mac: Mac,
    /// Who it is.
    pub id: NodeId,
    /// What it said.
    pub advert: Advert,
    /// When it said so.
    pub heard: Timestamp,
    /// Newer heartbeats it has to bring until its goodbye no longer counts; 0: it said none.
    leaving: u8,
    /// Neighbours that the RSU reaches through it, as it says.
    pub children: u8,
    /// Since when it has been better than the upstream by the margin.
    pub better_since: Option<Timestamp>,
}

const _: () = assert!(size_of::<Candidate>() == 64, "one line");

/// Who leaves brings no news after its goodbye, but for a heartbeat that was under way already.
const STAYS_AFTER: u8 = 2;

impl Candidate {
    /// What it said counts for so long; `interval`: between two heartbeats of the RSU.
    pub fn fresh_for(&self, interval: Duration) -> Duration {
        fresh_for(interval, self.advert.stride)
    }

    /// Our own distance through it, one more than what it advertises.
    pub fn hops_through(&self) -> u8 {
        self.advert.distance.hops.saturating_add(1)
    }

    /// It said goodbye: it still carries what is under way, and must not be chosen.
    pub fn is_leaving(&self) -> bool {
        self.leaving > 0
    }

    /// It says goodbye, or the RSU does. That no longer counts when it brings a heartbeat of a
    /// later start of the RSU, or two newer ones: it came back, or never left, and the goodbye was
    /// forged.
    pub fn note_goodbye(&mut self) {
        self.leaving = STAYS_AFTER;
    }
}

/// Smaller is better. Field order is priority, because `derive(Ord)` compares top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// What was said through it to the RSU was not answered: it is there for those that hear no
    /// other.
    pub is_suspect: bool,
    /// Its next heartbeat is overdue by more than an interval: maybe gone already.
    pub is_late: bool,
    /// Expected transmissions to the RSU, the link to the candidate included.
    pub cost: Cost,
    /// Radio hops to the RSU.
    pub hops: u8,
    /// Ties fall the same way on every run.
    pub id: NodeId,
}

/// Candidates towards one RSU, by MAC.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    table: Table<Mac, Candidate>,
    /// None said anything longer ago.
    oldest: Timestamp,
}

/// What is needed to say how good a candidate is.
#[derive(Clone, Copy, Debug)]
pub struct Ranker<'a> {
    /// Now.
    pub now: Timestamp,
    /// The RSU's heartbeat interval.
    pub interval: Duration,
    /// The links.
    pub neighbours: &'a Neighbours,
    /// The upstream: of the children it counts we are one.
    pub upstream: Option<Mac>,
    /// Neighbours through which what was said to the RSU was not answered, and until when that
    /// counts.
    pub suspects: &'a [(Mac, Timestamp)],
    /// What a relay costs, shared by all that send through it: [`RELAY`], or nothing.
    pub relay: Cost,
    /// Every link counts as perfect, so that hops alone rank.
    pub by_hops: bool,
}

/// What is needed to say as well whether it may be upstream.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// How good it is.
    pub ranker: Ranker<'a>,
    /// Ourselves: a candidate that sends through us is none.
    pub us: NodeId,
    /// What we advertised for this RSU.
    pub feasibility: Feasibility,
    /// Only the RSU itself may be upstream: we have just restarted.
    pub is_quiet: bool,
    /// How long a proof that a neighbour hears us is believed.
    pub proven_for: Duration,
}

/// Questions in a row a proof outlives. At 10 % loss in each direction four stay unanswered with
/// probability 0.19⁴ ≈ 10⁻³.
const UNANSWERED_MAX: u8 = 3;

/// What a relay costs all that send through it together: a transmission. It sends every heartbeat,
/// and must tell the RSU of its own upstream. Each of them bears its share, so those behind an
/// RSU's range gather at few relays, and the others may stay silent. Who has a relay for itself
/// alone leaves it for one that seven share and that is no further.
pub const RELAY: Cost = Cost::ONE;

impl Ranker<'_> {
    /// What was said through it to the RSU was not answered.
    pub fn is_suspect(&self, candidate: &Candidate) -> bool {
        self.suspect_until(candidate.mac).is_some()
    }

    /// Until when it counts that what was said through this neighbour was not answered.
    pub fn suspect_until(&self, mac: Mac) -> Option<Timestamp> {
        self.suspects.iter().find(|(m, until)| *m == mac && self.now < *until).map(|(_, at)| *at)
    }

    /// Its next heartbeat is overdue by more than an interval: maybe gone already.
    pub fn is_late(&self, candidate: &Candidate) -> bool {
        let due = period(self.interval, candidate.advert.stride);
        self.now.since(candidate.heard) > due + self.interval * 5 / 4
    }

    /// How good it is.
    pub fn rank(&self, candidate: &Candidate) -> Rank {
        let link = self
            .neighbours
            .get(candidate.mac)
            .map_or(Cost::ONE, |n| n.link_cost(self.now, self.interval));
        Rank {
            is_suspect: self.is_suspect(candidate),
            is_late: self.is_late(candidate),
            cost: self.cost_over(link, candidate),
            hops: candidate.hops_through(),
            id: candidate.id,
        }
    }

    /// The least it can cost, over a link that loses nothing.
    pub fn least_cost(&self, candidate: &Candidate) -> Cost {
        self.cost_over(Cost::ONE, candidate)
    }

    /// What of [`Rank::cost`] is our share of what it costs that the candidate is a relay.
    pub fn relay_cost(&self, candidate: &Candidate) -> Cost {
        self.share(candidate)
    }

    fn cost_over(&self, link: Cost, candidate: &Candidate) -> Cost {
        let cost = if self.by_hops {
            Cost(Cost::ONE.0.saturating_mul(u16::from(candidate.hops_through())))
        } else {
            candidate.advert.cost.saturating_add(link)
        };
        cost.saturating_add(self.share(candidate))
    }

    /// Our share of what it costs that the candidate is a relay. An RSU sends its heartbeats in any
    /// case.
    fn share(&self, candidate: &Candidate) -> Cost {
        if candidate.advert.distance.hops == 0 {
            return Cost::ZERO;
        }
        let is_ours = self.upstream == Some(candidate.mac);
        let others = candidate.children.saturating_sub(u8::from(is_ours));
        Cost(self.relay.0 / (u16::from(others) + 1))
    }
}

impl Judge<'_> {
    /// Could be upstream, were it proven that it hears us.
    pub fn is_eligible(&self, candidate: &Candidate) -> bool {
        self.is_fresh(candidate) && self.may_follow(candidate, candidate.advert.distance)
    }

    /// Could be upstream once it brings the heartbeat after `newest` from where it is now.
    pub fn is_eligible_next(&self, candidate: &Candidate, newest: Order) -> bool {
        self.is_fresh(candidate) && self.will_be_eligible(candidate, newest)
    }

    /// The same, however long ago it was heard.
    pub fn will_be_eligible(&self, candidate: &Candidate, newest: Order) -> bool {
        let next = Distance { order: newest.next(), ..candidate.advert.distance };
        self.may_follow(candidate, next)
    }

    /// What it said last still counts.
    pub fn is_fresh(&self, candidate: &Candidate) -> bool {
        self.ranker.now.since(candidate.heard) < candidate.fresh_for(self.ranker.interval)
    }

    /// A way through it, were it at this distance, would not lead back to us.
    fn may_follow(&self, candidate: &Candidate, distance: Distance) -> bool {
        !candidate.is_leaving()
            && candidate.advert.via != self.us
            && (!self.is_quiet || distance.hops == 0)
            && self.feasibility.allows(distance)
    }

    /// The neighbour has proven that it hears us, not too long ago, and has not left more than
    /// three questions in a row unanswered since.
    pub fn is_proven(&self, mac: Mac) -> bool {
        let neighbour = self.ranker.neighbours.get(mac);
        let proven = neighbour.filter(|n| n.unanswered <= UNANSWERED_MAX).and_then(|n| n.proven);
        proven.is_some_and(|at| self.ranker.now.since(at) < self.proven_for)
    }

    /// Each thing that keeps it from being upstream right now. That it is late, or that the RSU
    /// does not answer through it, keeps it only while there is another.
    pub fn obstacles(&self, candidate: &Candidate) -> impl Iterator<Item = Obstacle> {
        let hops = candidate.advert.distance.hops;
        [
            (self.ranker.is_late(candidate), Obstacle::Late),
            (self.ranker.is_suspect(candidate), Obstacle::Unanswered),
            (candidate.is_leaving(), Obstacle::Leaving),
            (!self.is_proven(candidate.mac), Obstacle::OneWay),
            (candidate.advert.via == self.us, Obstacle::ThroughUs),
            (self.is_quiet && hops > 0, Obstacle::Quiet),
            (!self.is_fresh(candidate), Obstacle::Stale),
            (!self.feasibility.allows(candidate.advert.distance), Obstacle::Infeasible),
        ]
        .into_iter()
        .filter_map(|(is_so, obstacle)| is_so.then_some(obstacle))
    }

    /// Can be upstream right now.
    pub fn is_usable(&self, candidate: &Candidate) -> bool {
        self.is_eligible(candidate) && self.is_proven(candidate.mac)
    }
}

impl Candidates {
    /// A neighbour advertised a way. News older than what it said before is ignored: `false`. So is
    /// a newcomer to a full table that is no better than those in it; `upstream` is never pushed
    /// out.
    pub fn hear(
        &mut self,
        now: Timestamp,
        mac: Mac,
        id: NodeId,
        advert: Advert,
        upstream: Option<Mac>,
    ) -> bool {
        if let Some(known) = self.get_mut(mac) {
            let (before, order) = (known.advert.distance.order, advert.distance.order);
            if order < before {
                return false;
            }
            if known.leaving > 0 && order > before {
                let is_back = order.boot != before.boot;
                known.leaving = if is_back { 0 } else { known.leaving - 1 };
            }
            known.advert = advert;
            known.heard = now;
            known.id = id;
            return true;
        }
        if self.table.len() >= CANDIDATES_MAX && !self.make_room(advert, upstream) {
            return false;
        }
        let new =
            Candidate { mac, id, advert, heard: now, leaving: 0, children: 0, better_since: None };
        self.table.insert(mac, new);
        true
    }

    /// The candidate with this MAC.
    pub fn get(&self, mac: Mac) -> Option<&Candidate> {
        self.table.get(&mac)
    }

    /// The candidate with this MAC.
    pub fn get_mut(&mut self, mac: Mac) -> Option<&mut Candidate> {
        self.table.get_mut(&mac)
    }

    /// Forgets one.
    pub fn forget(&mut self, mac: Mac) {
        self.table.remove(&mac);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Forgets those that said nothing for `span`.
    pub fn expire(&mut self, now: Timestamp, span: Duration) {
        if now.since(self.oldest) > span {
            self.table.retain(|_, c| now.since(c.heard) <= span);
            self.oldest = self.iter().map(|c| c.heard).min().unwrap_or(now);
        }
    }

    /// The rarest any of them brings heartbeats.
    pub fn stride_max(&self) -> u8 {
        self.iter().map(|c| c.advert.stride).max().unwrap_or(0)
    }

    /// The best that is usable now.
    pub fn best(&self, judge: &Judge<'_>) -> Option<&Candidate> {
        self.iter().filter(|c| judge.is_usable(c)).min_by_key(|c| judge.ranker.rank(c))
    }

    /// All, by MAC.
    pub fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.table.values()
    }

    /// All, by MAC.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.table.values_mut()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// None.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Drops the one with the oldest news, if that is old, or else the furthest and dearest, if the
    /// newcomer is neither. In a crowd more neighbours speak than fit: who is in stays in, or
    /// candidates would come and go with every heartbeat.
    fn make_room(&mut self, newcomer: Advert, upstream: Option<Mac>) -> bool {
        let is_old = |c: &Candidate| {
            (1..OLD_ORDERS).fold(c.advert.distance.order, |order, _| order.next())
                < newcomer.distance.order
        };
        let merit = |advert: &Advert| (advert.distance.hops, advert.cost);
        let others = self.iter().filter(|c| Some(c.mac) != upstream);
        let worst = others.max_by_key(|c| (is_old(c), merit(&c.advert), c.mac));
        let Some(worst) = worst else { return false };
        let makes_way = is_old(worst) || merit(&newcomer) < merit(&worst.advert);
        if makes_way {
            self.forget(worst.mac);
        }
        makes_way
    }
}

/// Heartbeats after which what a neighbour said is old enough to make way for anybody.
const OLD_ORDERS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::order::{Boot, Order};

    const US: NodeId = NodeId([2, 0, 0, 0, 0, 0xff]);
    const INTERVAL: Duration = Duration::from_millis(100);
    const PROVEN_FOR: Duration = Duration::from_secs(3);

    fn mac(n: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, n])
    }

    fn advert(seq: u32, hops: u8) -> Advert {
        Advert {
            distance: Distance { order: Order::new(1, seq), hops },
            cost: Cost(Cost::ONE.0 * u16::from(hops)),
            hop_limit: 15,
            via: NodeId::NONE,
            mtu: 1500,
            stride: 0,
        }
    }

    struct Setup {
        candidates: Candidates,
        neighbours: Neighbours,
        feasibility: Feasibility,
    }

    fn setup(adverts: &[(u8, Advert)]) -> Setup {
        let mut candidates = Candidates::default();
        let mut neighbours = Neighbours::new();
        for (n, advert) in adverts {
            candidates.hear(Timestamp::ZERO, mac(*n), mac(*n).into(), *advert, None);
            let (_, neighbour) =
                neighbours.hear(Timestamp::ZERO, mac(*n), mac(*n).into(), Boot(1), INTERVAL);
            neighbour.note_proof(Timestamp::ZERO);
        }
        Setup { candidates, neighbours, feasibility: Feasibility::default() }
    }

    impl Setup {
        fn best(&self, ms: u64, is_quiet: bool) -> Option<Mac> {
            let ranker = Ranker {
                now: Timestamp::from_millis(ms),
                interval: INTERVAL,
                neighbours: &self.neighbours,
                upstream: None,
                suspects: &[],
                relay: RELAY,
                by_hops: false,
            };
            let feasibility = self.feasibility;
            let judge = Judge { ranker, us: US, feasibility, is_quiet, proven_for: PROVEN_FOR };
            self.candidates.best(&judge).map(|c| c.mac)
        }
    }

    #[test]
    fn the_cheapest_is_best_and_ties_fall_to_the_lowest_id() {
        let s = setup(&[(3, advert(1, 2)), (2, advert(1, 1)), (1, advert(1, 1))]);
        assert_eq!(s.best(0, false), Some(mac(1)));
    }

    #[test]
    fn those_behind_a_relay_share_what_it_costs() {
        let mut s = setup(&[(1, advert(1, 1)), (2, advert(1, 0))]);
        let cost = |s: &Setup, of: u8, upstream| {
            let (now, neighbours) = (Timestamp::ZERO, &s.neighbours);
            let ranker = Ranker {
                suspects: &[],
                now,
                interval: INTERVAL,
                neighbours,
                upstream,
                relay: RELAY,
                by_hops: false,
            };
            ranker.rank(s.candidates.get(mac(of)).unwrap()).cost
        };
        let link = s.neighbours.get(mac(2)).unwrap().link_cost(Timestamp::ZERO, INTERVAL);
        assert_eq!(cost(&s, 2, None), link, "an RSU sends in any case");
        let way = link.saturating_add(Cost::ONE);
        for (children, alone, among_them) in [(0, 64, 64), (1, 32, 64), (3, 16, 21), (7, 8, 9)] {
            s.candidates.get_mut(mac(1)).unwrap().children = children;
            assert_eq!(cost(&s, 1, None), way.saturating_add(Cost(alone)), "{children}");
            assert_eq!(
                cost(&s, 1, Some(mac(1))),
                way.saturating_add(Cost(among_them)),
                "{children}"
            );
        }
    }

    #[test]
    fn what_is_not_feasible_is_never_chosen() {
        let mut s = setup(&[(1, advert(7, 1)), (2, advert(7, 2))]);
        s.feasibility.advertised(Distance { order: Order::new(1, 7), hops: 2 });
        s.candidates.forget(mac(1));
        assert_eq!(s.best(0, false), None);
        s.candidates.hear(Timestamp::ZERO, mac(2), mac(2).into(), advert(8, 2), None);
        assert_eq!(s.best(0, false), Some(mac(2)), "newer news is feasible");
    }

    #[test]
    fn every_reason_not_to_use_a_candidate_has_its_name() {
        type Change = fn(&mut Candidate);
        let suspects = [(mac(7), Timestamp::from_millis(5000))];
        let cases: [(&[Obstacle], u64, bool, u8, Change); 10] = [
            (&[], 0, false, 9, |_| {}),
            (&[Obstacle::Unanswered], 0, false, 9, |c| c.mac = mac(7)),
            (&[Obstacle::Late], 226, false, 9, |_| {}),
            (&[Obstacle::Late, Obstacle::Stale], 300, false, 9, |_| {}),
            (&[Obstacle::Leaving], 0, false, 9, Candidate::note_goodbye),
            (&[Obstacle::OneWay], 0, false, 9, |c| c.mac = mac(9)),
            (&[Obstacle::ThroughUs], 0, false, 9, |c| c.advert.via = US),
            (&[Obstacle::Quiet], 0, true, 9, |_| {}),
            (&[Obstacle::Infeasible], 0, false, 1, |_| {}),
            (&[Obstacle::Quiet, Obstacle::Infeasible], 0, true, 1, |_| {}),
        ];
        for (expected, ms, is_quiet, advertised, change) in cases {
            let mut s = setup(&[(1, advert(7, 1)), (7, advert(7, 1))]);
            s.feasibility.advertised(Distance { order: Order::new(1, 7), hops: advertised });
            let ranker = Ranker {
                now: Timestamp::from_millis(ms),
                interval: INTERVAL,
                neighbours: &s.neighbours,
                upstream: None,
                suspects: &suspects,
                relay: RELAY,
                by_hops: false,
            };
            let feasibility = s.feasibility;
            let judge = Judge { ranker, us: US, feasibility, is_quiet, proven_for: PROVEN_FOR };
            let mut candidate = *s.candidates.get(mac(1)).unwrap();
            change(&mut candidate);
            let named: Vec<_> = judge.obstacles(&candidate).collect();
            assert_eq!(named, expected);
            let is_hindrance = |o: &Obstacle| !matches!(o, Obstacle::Late | Obstacle::Unanswered);
            let is_usable = !named.iter().any(is_hindrance);
            assert_eq!(judge.is_usable(&candidate), is_usable, "{named:?}");
        }
    }

    #[test]
    fn a_candidate_must_be_proven_fresh_and_not_send_through_us() {
        let mut s = setup(&[(1, advert(1, 1))]);
        assert_eq!(s.best(299, false), Some(mac(1)));
        assert_eq!(s.best(300, false), None, "silent for three intervals");
        s.candidates.get_mut(mac(1)).unwrap().advert.via = US;
        assert_eq!(s.best(0, false), None, "sends through us");
        let mut unproven = setup(&[(1, advert(1, 1))]);
        unproven.neighbours.get_mut(mac(1)).unwrap().proven = None;
        assert_eq!(unproven.best(0, false), None, "one-way, for all we know");
        let mut heard_again = |ms| {
            s.candidates.hear(
                Timestamp::from_millis(ms),
                mac(1),
                mac(1).into(),
                advert(2, 1),
                None,
            );
            s.best(ms, false)
        };
        assert_eq!(heard_again(2999), Some(mac(1)));
        assert_eq!(heard_again(3000), None, "proven too long ago");
    }

    #[test]
    fn a_proof_lapses_with_the_fourth_question_without_an_answer() {
        let mut s = setup(&[(1, advert(1, 1))]);
        let mut ask = |nonce| {
            s.neighbours.get_mut(mac(1)).unwrap().note_probe(Timestamp::ZERO, nonce, INTERVAL);
            s.best(0, false)
        };
        assert_eq!([1, 2, 3].map(&mut ask), [Some(mac(1)); 3]);
        assert_eq!(ask(4), None);
        assert!(s.neighbours.get_mut(mac(1)).unwrap().note_answer(Timestamp::ZERO, 4));
        assert_eq!(s.best(0, false), Some(mac(1)), "it answered after all");
    }

    #[test]
    fn while_quiet_only_the_rsu_itself_is_used() {
        let s = setup(&[(1, advert(1, 1))]);
        assert_eq!(s.best(0, true), None);
        let s = setup(&[(1, advert(1, 0))]);
        assert_eq!(s.best(0, true), Some(mac(1)));
    }

    #[test]
    fn old_news_is_ignored_and_the_table_is_bounded() {
        let mut s = setup(&[(1, advert(5, 1))]);
        assert!(!s.candidates.hear(Timestamp::ZERO, mac(1), mac(1).into(), advert(4, 0), None));
        for n in 0..40 {
            s.candidates.hear(Timestamp::ZERO, mac(n), mac(n).into(), advert(9, n), Some(mac(1)));
        }
        assert_eq!(s.candidates.len(), CANDIDATES_MAX);
        assert!(s.candidates.get(mac(0)).is_some(), "the cheapest stays");
    }
}
