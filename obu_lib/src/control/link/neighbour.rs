//! Who is in radio range, and how well each direction of the link works.
//!
//! A link has two directions, and only an answer to something we sent proves ours: `send()`
//! succeeding proves nothing. What we hear is judged by the *hello* number every node counts up
//! with each heartbeat it sends, so gaps are exact losses. What gets through to the other side is
//! judged by the share of our probes that are answered, and without those taken to be as much.

use std::time::Duration;

use node_lib::control::table::Table;
use node_lib::mac::{Mac, NodeId};
use node_lib::messages::Cost;
use node_lib::order::Boot;
use node_lib::time::Timestamp;

use crate::control::link::trend::{LossCusum, SLOW_SHIFT, Share, Signal, SignalTrend, WHOLE};

/// Neighbours remembered. Beyond, the one silent for longest goes.
const NEIGHBOURS_MAX: usize = 256;

/// A probe under way.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    nonce: u32,
    sent: Timestamp,
    /// Counted as unanswered already, for [`Neighbour::strain`].
    overdue: bool,
    /// Of one sample of the link with the one before.
    is_repeat: bool,
}

/// Probes to one neighbour that may be under way at once; an older one counts as lost.
const OUTSTANDING_MAX: usize = 8;

/// An answer takes about 2 ms. One that is not there when we ask again, at least this later, is
/// missed.
const OVERDUE_AFTER: Duration = Duration::from_millis(10);

/// For so many intervals a proof is believed, and the share answered counts after the last probe. A
/// neighbour that once left many unanswered costs so much that nobody asks it again, and without
/// this it would for good.
pub(crate) const PROOF_INTERVALS: u32 = 100;

/// The share answered counts from so many samples on. A question is tried once, so of a link that
/// brings half of them four in a row stay unanswered in one of sixteen cases. Where each OBU has a
/// question in seconds, what few of them tell made ways a third longer.
const ANSWERED_MIN: u32 = 16;

/// Intervals for which a link between vehicles lasts: 5 s at 100 ms. Found by experiment; 100 are
/// as good where there are frames, and leave more idle ways with a link that is gone.
const LINK_INTERVALS: u64 = 50;

/// One neighbour.
///
/// Thousands of these are looked at for every second of a large simulation, and with each heartbeat
/// those of all candidates. So they are two lines of 64 bytes of a processor's cache, side by side,
/// in this order: what is asked of every candidate and what a heartbeat changes, then signal and
/// questions.
#[repr(C, align(128))]
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// When it last proved that it hears us.
    pub proven: Option<Timestamp>,
    received: Share,
    answered: Share,
    /// When any control frame of it was last heard.
    pub heard: Timestamp,
    /// When a heartbeat of it was last heard.
    hello_at: Option<Timestamp>,
    /// One bit per hello, newest lowest; 1 = heard.
    history: u64,
    strain: LossCusum,
    /// The number of that heartbeat; means nothing before the first.
    hello: u32,
    /// Its boot count.
    pub boot: Boot,
    /// Its node id.
    pub id: NodeId,
    history_len: u8,
    /// Probes in a row without an answer.
    pub unanswered: u8,
    signal: SignalTrend,
    /// Most neighbours are never probed.
    probes: Option<Box<Probes>>,
}

const _: () = assert!(size_of::<Neighbour>() == 128, "two lines");

/// Probes of one neighbour.
#[derive(Clone, Debug, Default)]
struct Probes {
    /// Under way, the oldest first.
    outstanding: Vec<Outstanding>,
    /// When the last one went out.
    last: Timestamp,
    /// When the first of the last sample did.
    sample_at: Option<Timestamp>,
    /// From a probe to its answer, smoothed, in microseconds.
    round_trip_us: Option<u32>,
}

impl Neighbour {
    fn new(id: NodeId, boot: Boot, now: Timestamp) -> Self {
        Self {
            proven: None,
            received: Share::default(),
            answered: Share::default(),
            heard: now,
            hello_at: None,
            history: 0,
            strain: LossCusum::default(),
            hello: 0,
            boot,
            id,
            history_len: 0,
            unanswered: 0,
            signal: SignalTrend::default(),
            probes: None,
        }
    }

    /// A heartbeat with this hello number came.
    pub fn note_hello(&mut self, now: Timestamp, hello: u32) {
        let is_first = self.hello_at.replace(now).is_none();
        let missed = match hello.wrapping_sub(self.hello) {
            _ if is_first => 0,
            0 => return,
            ahead @ 1..=64 => ahead - 1,
            // Very late, or the numbers make no sense: start counting here.
            _ => 0,
        };
        self.hello = hello;
        for _ in 0..missed {
            self.note(false);
        }
        self.note(true);
    }

    fn note(&mut self, heard: bool) {
        self.history = self.history << 1 | u64::from(heard);
        self.history_len = (self.history_len + 1).min(64);
        self.received.add(heard, SLOW_SHIFT);
        self.strain.note_hello(heard);
    }

    /// Of the last `window` hellos, how many were heard; `None` before so many were due.
    pub fn heard_of_last(&self, window: u32) -> Option<u32> {
        let window = window.clamp(1, 64);
        let mask = u64::MAX >> (64 - window);
        (u32::from(self.history_len) >= window).then(|| (self.history & mask).count_ones())
    }

    /// A probe with this nonce goes out. Those of one interval are one sample of the link: what
    /// loses one loses the next. The probes of ETX are a second apart (De Couto et al., §3.2).
    pub fn note_probe(&mut self, now: Timestamp, nonce: u32, interval: Duration) {
        let probes = &mut **self.probes.get_or_insert_default();
        let Probes { outstanding, last, sample_at, .. } = probes;
        if now.since(*last) >= interval * PROOF_INTERVALS {
            self.answered = Share::default();
            outstanding.clear();
        }
        *last = now;
        let is_repeat = sample_at.is_some_and(|at| now.since(at) < interval);
        if !is_repeat {
            *sample_at = Some(now);
        }
        if outstanding.len() >= OUTSTANDING_MAX && !outstanding.remove(0).is_repeat {
            self.answered.add(false, SLOW_SHIFT);
        }
        for probe in outstanding.iter_mut() {
            if !probe.overdue && now.since(probe.sent) >= OVERDUE_AFTER {
                probe.overdue = true;
                self.strain.note_question(false);
            }
        }
        outstanding.push(Outstanding { nonce, sent: now, overdue: false, is_repeat });
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// When we last probed it.
    pub fn probed(&self) -> Option<Timestamp> {
        self.probes.as_ref().map(|probes| probes.last)
    }

    /// An answer came; `true` if it answers a probe of ours, and so proves both directions.
    pub fn note_answer(&mut self, now: Timestamp, nonce: u32) -> bool {
        let Some(Probes { outstanding, round_trip_us, .. }) = self.probes.as_deref_mut() else {
            return false;
        };
        let Some(at) = outstanding.iter().position(|probe| probe.nonce == nonce) else {
            return false;
        };
        // Samples before it were overtaken: lost, or their answers were. Where none begins there is
        // none to count: another probe of this one was answered already.
        let begins = |probe: &&Outstanding| !probe.is_repeat;
        if let Some(lost) = outstanding.iter().take(at + 1).filter(begins).count().checked_sub(1) {
            (0..lost).for_each(|_| self.answered.add(false, SLOW_SHIFT));
            self.answered.add(true, SLOW_SHIFT);
        }
        if let Some(probe) = outstanding.drain(..=at).next_back() {
            let sample = u32::try_from(now.since(probe.sent).as_micros()).unwrap_or(u32::MAX);
            // As RFC 6298 §2.3: srtt ← 7/8·srtt + 1/8·sample.
            let smoothed = round_trip_us.map_or(sample, |srtt| srtt - srtt / 8 + sample / 8);
            *round_trip_us = Some(smoothed);
            if !probe.overdue {
                self.strain.note_question(true);
            }
        }
        self.note_proof(now);
        true
    }

    /// From a probe to its answer, smoothed; `None` before the first.
    pub fn round_trip(&self) -> Option<Duration> {
        let micros = self.probes.as_ref()?.round_trip_us?;
        Some(Duration::from_micros(u64::from(micros)))
    }

    /// The share of our probes that are answered; `None` while there were too few to say.
    pub fn answered(&self) -> Option<f64> {
        self.answered.after(4).map(|share| f64::from(share) / f64::from(WHOLE))
    }

    /// It said something only a node that hears us can say.
    pub fn note_proof(&mut self, now: Timestamp) {
        self.proven = Some(now);
        self.unanswered = 0;
    }

    /// It did not answer when asked: whatever it proved before no longer counts.
    pub fn note_silence(&mut self) {
        self.proven = None;
    }

    /// How much speaks for its link having got bad. `every`: the time between its heartbeats, if it
    /// sends every one; then those overdue count as missed already.
    pub fn strain(&self, now: Timestamp, every: Option<Duration>) -> LossCusum {
        self.strain.with_missed(self.overdue(now, every))
    }

    /// Heartbeats that should have come since the last one, but for a fifth of an interval.
    fn overdue(&self, now: Timestamp, every: Option<Duration>) -> u32 {
        let Some((every, heard)) = every.zip(self.hello_at) else { return 0 };
        let silence = now.since(heard).saturating_sub(every / 5).as_micros();
        u32::try_from(silence / every.as_micros().max(1)).unwrap_or(u32::MAX)
    }

    /// A frame of it came in this strong.
    pub fn note_signal(&mut self, now: Timestamp, dbm: i8) {
        self.signal.add(now, dbm);
    }

    /// How strong it comes in, and will `ahead` from now; `None` where the radio does not tell.
    pub fn signal(&self, now: Timestamp, ahead: Duration) -> Option<Signal> {
        self.signal.look(now, ahead)
    }

    /// Of what it says to all more than every tenth frame is lost.
    pub fn loses_many(&self) -> bool {
        self.received.after(4).is_some_and(|heard| heard < WHOLE / 10 * 9)
    }

    /// So many heartbeats in a row of who brings one each `1 << stride` intervals must stay away
    /// until it is less likely that chance did it, as it loses them, than that the link ended
    /// within the last of these periods; `most` at most.
    pub fn missed_by_chance(&self, stride: u8, most: u32) -> u32 {
        let lost = u64::from(self.received.miss());
        let ended = (u64::from(WHOLE) << stride) / LINK_INTERVALS;
        let (mut chance, mut missed) = (lost, 1);
        while missed < most && chance > ended {
            chance = chance * lost / u64::from(WHOLE);
            missed += 1;
        }
        missed
    }

    /// Expected transmissions until a frame is through and acknowledged, the ETX of De Couto et
    /// al., MobiCom 2003, §4: 1 / (share that arrives there × share that comes back).
    ///
    /// What comes back is told by heartbeats. What arrives there, with what comes back, by answers;
    /// of a link that has not been asked lately, or not often enough, it is taken to be as much.
    pub fn link_cost(&self, now: Timestamp, interval: Duration) -> Cost {
        // Never all, so there is room for its square.
        let heard = self.received.hit();
        let likely = heard * heard / WHOLE;
        let lately = self.probed().is_some_and(|at| now.since(at) < interval * PROOF_INTERVALS);
        let answered = self.answered.after(ANSWERED_MIN).filter(|_| lately);
        let round_trip = answered.unwrap_or(likely).min(likely).max(WHOLE / 64);
        let cost = u64::from(Cost::ONE.0) * u64::from(WHOLE) / u64::from(round_trip);
        Cost(u16::try_from(cost).unwrap_or(u16::MAX))
    }
}

/// Neighbours by the MAC their frames come from.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    table: Table<Mac, Neighbour>,
    /// None was heard longer ago.
    oldest: Timestamp,
    /// What contradicts a neighbour that is alive and well, until something confirms it; the oldest
    /// first, at most [`CLAIMS_MAX`].
    claims: Vec<RestartClaim>,
}

/// A frame said that a neighbour started again, or is somebody else.
#[derive(Clone, Copy, Debug)]
struct RestartClaim {
    mac: Mac,
    id: NodeId,
    boot: Boot,
    at: Timestamp,
}

/// What [`Neighbours::hear`] found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeardAs {
    /// A neighbour we knew.
    Known,
    /// One we did not know.
    New,
    /// One we knew, started again: what it said before is void.
    Restarted,
    /// One we knew is said to have started again, though it was heard a moment ago: to be ignored,
    /// unless something confirms it.
    Doubtful,
    /// From before its restart: to be ignored.
    Stale,
}

impl Neighbours {
    /// Nobody known.
    pub fn new() -> Self {
        Self::default()
    }

    /// A control frame came from `mac`, sent by node `id` in its start number `boot`. `interval`:
    /// between two heartbeats around here.
    ///
    /// One frame never replaces a neighbour that is alive and well, for it may be forged or
    /// damaged. A later boot count, or another node at this MAC, is believed when a second frame
    /// says the same and none of the known one came between. It is also believed when the known one
    /// has been silent for 2.4 intervals. An earlier boot count comes from a frame that was late on
    /// its way, or from a node without a state file whose clock was set back. It is believed when
    /// the later one has been silent for 3 intervals.
    pub fn hear(
        &mut self,
        now: Timestamp,
        mac: Mac,
        id: NodeId,
        boot: Boot,
        interval: Duration,
    ) -> (HeardAs, &mut Neighbour) {
        let mut heard = HeardAs::Known;
        if !self.table.contains_key(&mac) {
            heard = HeardAs::New;
            self.make_room();
        }
        let neighbour = self.table.get_or_insert_with(mac, || Neighbour::new(id, boot, now));
        if heard == HeardAs::Known && (neighbour.id != id || neighbour.boot != boot) {
            let silence = now.since(neighbour.heard);
            if neighbour.id == id && boot < neighbour.boot {
                if silence < interval * EARLIER_AFTER {
                    return (HeardAs::Stale, neighbour);
                }
            } else if silence < interval * 12 / 5 {
                let claim = RestartClaim { mac, id, boot, at: now };
                if !claim.is_confirmed(&mut self.claims) {
                    return (HeardAs::Doubtful, neighbour);
                }
            }
            *neighbour = Neighbour::new(id, boot, now);
            heard = HeardAs::Restarted;
        }
        if !self.claims.is_empty() {
            self.claims.retain(|claim| claim.mac != mac);
        }
        neighbour.heard = now;
        (heard, neighbour)
    }

    fn make_room(&mut self) {
        if self.table.len() >= NEIGHBOURS_MAX
            && let Some((silent, _)) = self.iter().min_by_key(|(_, n)| n.heard)
        {
            self.forget(silent);
        }
    }

    /// The neighbour with this MAC.
    pub fn get(&self, mac: Mac) -> Option<&Neighbour> {
        self.table.get(&mac)
    }

    /// The neighbour with this MAC.
    pub fn get_mut(&mut self, mac: Mac) -> Option<&mut Neighbour> {
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

    /// Forgets those silent for longer than `span`.
    pub fn expire(&mut self, now: Timestamp, span: Duration) {
        if now.since(self.oldest) > span {
            self.table.retain(|_, neighbour| now.since(neighbour.heard) <= span);
            self.oldest = self.table.values().map(|n| n.heard).min().unwrap_or(now);
        }
    }

    /// All, by MAC.
    pub fn iter(&self) -> impl Iterator<Item = (Mac, &Neighbour)> {
        self.table.iter().map(|(mac, neighbour)| (*mac, neighbour))
    }

    /// How many were heard since then.
    pub fn heard_since(&self, then: Timestamp) -> usize {
        self.table.values().filter(|neighbour| neighbour.heard >= then).count()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Nobody.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

impl RestartClaim {
    /// Whether another frame said the same a while ago; if not, it is noted in `claims`.
    fn is_confirmed(self, claims: &mut Vec<Self>) -> bool {
        let is_same = |c: &&mut Self| (c.mac, c.id, c.boot) == (self.mac, self.id, self.boot);
        if let Some(before) = claims.iter_mut().find(is_same) {
            return self.at.since(before.at) >= TWICE_AFTER;
        }
        // One claim for each neighbour: two that contradict each other confirm neither.
        claims.retain(|claim| claim.mac != self.mac);
        if claims.len() >= CLAIMS_MAX {
            claims.remove(0);
        }
        claims.push(self);
        false
    }
}

/// Neighbours that may be contradicted at once. Beyond, the oldest claim goes.
const CLAIMS_MAX: usize = 16;

/// A radio may bring one frame twice; the copy confirms nothing.
const TWICE_AFTER: Duration = Duration::from_millis(5);

/// Intervals of silence after which an earlier boot count is believed. Whoever restarted routes for
/// nobody in that time, so nothing it said before can lead in a circle.
const EARLIER_AFTER: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const ID: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn neighbour() -> Neighbour {
        Neighbour::new(ID, Boot(1), at(0))
    }

    #[test]
    fn gaps_in_the_hello_numbers_are_losses() {
        let mut n = neighbour();
        for hello in [1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 12] {
            n.note_hello(at(0), hello);
        }
        assert_eq!(n.heard_of_last(12), Some(10));
        assert_eq!(n.heard_of_last(3), Some(2));
        assert_eq!(n.heard_of_last(13), None);
    }

    #[test]
    fn the_more_a_link_loses_the_more_heartbeats_stay_away_by_chance() {
        // Of so many hellos one each so many is lost; for strides of 0, 1 and 2.
        let missed = |hellos, one_in: u32| {
            let mut n = neighbour();
            let heard = |hello: &u32| one_in == 0 || !hello.is_multiple_of(one_in);
            (1..=hellos).filter(heard).for_each(|hello| n.note_hello(at(0), hello));
            [0, 1, 2].map(|stride| n.missed_by_chance(stride, 9))
        };
        assert_eq!(missed(0, 0), [6, 5, 4], "a half, as far as is known: 1/64, 1/32 and 1/16");
        assert_eq!(missed(8, 0), [2, 2, 2], "a tenth");
        assert_eq!(missed(100, 0), [2, 1, 1], "one in 34");
        assert_eq!(missed(101, 10), [2, 2, 2], "nearly an eighth");
        assert_eq!(missed(101, 4), [3, 3, 2], "a quarter");
        assert_eq!(missed(101, 2), [6, 5, 4], "a half");
        assert_eq!(neighbour().missed_by_chance(0, 4), 4, "at most");
    }

    #[test]
    fn an_answer_proves_both_directions() {
        let mut n = neighbour();
        n.note_probe(at(10), 77, INTERVAL);
        assert!(!n.note_answer(at(11), 78), "not asked by us");
        assert_eq!(n.proven, None);
        assert!(n.note_answer(at(12), 77));
        assert_eq!((n.proven, n.unanswered), (Some(at(12)), 0));
        assert!(!n.note_answer(at(13), 77), "answered already");
    }

    #[test]
    fn the_round_trip_is_smoothed_over_answers() {
        let mut n = neighbour();
        assert_eq!(n.round_trip(), None);
        for (nonce, took) in [(1, 8), (2, 16)] {
            n.note_probe(at(100 * nonce), nonce as u32, INTERVAL);
            assert!(n.note_answer(at(100 * nonce + took), nonce as u32));
        }
        assert_eq!(n.round_trip(), Some(Duration::from_millis(9)), "7/8 of 8 and 1/8 of 16");
    }

    /// A probe each 200 ms from here on, and whether it is answered.
    fn ask(n: &mut Neighbour, from_ms: u64, answered: &[bool]) {
        for (k, is_answered) in (0_u32..).zip(answered) {
            let (now, nonce) = (from_ms + u64::from(k) * 200, from_ms as u32 + k);
            n.note_probe(at(now), nonce, INTERVAL);
            if *is_answered {
                assert!(n.note_answer(at(now + 2), nonce));
            }
        }
    }

    #[test]
    fn a_link_costs_what_is_sent_there_and_back() {
        let cost_of = |hellos: &[u32]| {
            let mut n = neighbour();
            hellos.iter().for_each(|hello| n.note_hello(at(0), *hello));
            n.link_cost(at(0), INTERVAL).transmissions()
        };
        // Laplace: (heard + 1) / (due + 2), and the same the other way.
        let by = |heard: f64, due: f64| ((due + 2.0) / (heard + 1.0)).powi(2);
        let every = |nth: u32, upto: u32| (0..upto).step_by(nth as usize).collect::<Vec<_>>();
        for (hellos, expected) in [
            (every(1, 0), 4.0),
            (every(1, 1), by(1.0, 1.0)),
            (every(1, 4), by(4.0, 4.0)),
            (every(2, 4), by(2.0, 3.0)),
            (every(1, 400), by(32.0, 32.0)),
            (every(2, 4000), 4.0),
        ] {
            let (cost, heard) = (cost_of(&hellos), hellos.len());
            assert!((cost / expected - 1.0).abs() < 0.1, "{heard}: {cost} for {expected}");
        }
    }

    #[test]
    fn a_link_that_is_heard_and_brings_no_answer_costs_much() {
        let mut n = neighbour();
        (0..100).for_each(|hello| n.note_hello(at(0), hello));
        ask(&mut n, 0, &[false; 64]);
        let cost = n.link_cost(at(64 * 200), INTERVAL);
        assert!(cost > Cost(1000), "nothing is answered: {cost:?}");
    }

    #[test]
    fn questions_in_a_row_are_one_sample_of_the_link() {
        let mut n = neighbour();
        for (start, is_answered) in [(0, true), (1000, false), (2000, false), (3000, true)] {
            for nonce in 0..6 {
                n.note_probe(at(start + 16 * nonce), (start + nonce) as u32, INTERVAL);
            }
            if is_answered {
                // The third, and later the last.
                assert!(n.note_answer(at(start + 90), start as u32 + 2));
                assert!(n.note_answer(at(start + 95), start as u32 + 5));
            }
        }
        n.note_probe(at(4000), 4000, INTERVAL);
        assert!(n.note_answer(at(4002), 4000));
        let answered = n.answered().unwrap();
        assert!((0.59..0.61).contains(&answered), "{answered} in place of three of five");
    }

    #[test]
    fn what_was_unanswered_is_forgotten_when_nobody_has_asked_for_long() {
        let mut n = neighbour();
        (0..100).for_each(|hello| n.note_hello(at(0), hello));
        let heard = n.link_cost(at(0), INTERVAL);
        ask(&mut n, 0, &[[false; 14].as_slice(), &[true]].concat());
        assert_eq!(n.link_cost(at(2800), INTERVAL), heard, "too few to tell");
        ask(&mut n, 3000, &[false, true]);
        assert!(n.link_cost(at(13_199), INTERVAL) > Cost(3 * Cost::ONE.0));
        assert_eq!(n.link_cost(at(13_200), INTERVAL), heard, "ten seconds after the last question");
        ask(&mut n, 30_000, &[true; 16]);
        assert_eq!(
            n.link_cost(at(33_001), INTERVAL),
            heard,
            "what was before does not count again"
        );
    }

    const INTERVAL: Duration = Duration::from_millis(100);

    fn heard(all: &mut Neighbours, ms: u64, boot: u32) -> HeardAs {
        all.hear(at(ms), MAC, ID, Boot(boot), INTERVAL).0
    }

    #[test]
    fn a_restart_voids_what_was_known_and_late_frames_of_the_old_life_are_ignored() {
        let mut all = Neighbours::new();
        assert_eq!(heard(&mut all, 0, 1), HeardAs::New);
        all.get_mut(MAC).unwrap().note_proof(at(0));
        assert_eq!(heard(&mut all, 1, 1), HeardAs::Known);
        assert_eq!(heard(&mut all, 20, 2), HeardAs::Doubtful);
        assert_eq!(heard(&mut all, 21, 2), HeardAs::Doubtful, "the same frame, doubled on its way");
        assert!(all.get(MAC).unwrap().proven.is_some());
        assert_eq!(heard(&mut all, 40, 2), HeardAs::Restarted);
        assert_eq!(all.get(MAC).unwrap().proven, None);
        assert_eq!(heard(&mut all, 339, 1), HeardAs::Stale);
        assert_eq!(heard(&mut all, 340, 1), HeardAs::Restarted, "its clock was set back");
    }

    #[test]
    fn only_the_known_ones_own_word_voids_the_claim_that_it_started_again() {
        let other = Mac([2, 0, 0, 0, 0, 2]);
        for (between, expected) in [(other, HeardAs::Restarted), (MAC, HeardAs::Doubtful)] {
            let mut all = Neighbours::new();
            heard(&mut all, 0, 1);
            all.hear(at(0), other, other.into(), Boot(1), INTERVAL);
            assert_eq!(heard(&mut all, 20, 2), HeardAs::Doubtful);
            assert_eq!(
                all.hear(at(30), between, between.into(), Boot(1), INTERVAL).0,
                HeardAs::Known
            );
            assert_eq!(heard(&mut all, 40, 2), expected);
        }
    }

    #[test]
    fn after_some_silence_a_restart_is_believed_at_once() {
        let mut all = Neighbours::new();
        heard(&mut all, 0, 1);
        assert_eq!(heard(&mut all, 239, 9), HeardAs::Doubtful);
        assert_eq!(heard(&mut all, 240, 2), HeardAs::Restarted);
    }

    #[test]
    fn no_single_frame_replaces_who_is_alive_and_well() {
        let mut all = Neighbours::new();
        for beat in 0..100 {
            assert_ne!(heard(&mut all, 100 * beat, 1), HeardAs::Restarted);
            let forged = if beat % 2 == 0 { 2 } else { u32::MAX };
            assert_eq!(heard(&mut all, 100 * beat + 50, forged), HeardAs::Doubtful);
            let (heard, _) = all.hear(at(100 * beat + 60), MAC, NodeId([9; 6]), Boot(1), INTERVAL);
            assert_eq!(heard, HeardAs::Doubtful, "somebody else's id");
        }
        assert_eq!((all.len(), all.claims.len()), (1, 1));
    }

    #[test]
    fn what_two_frames_forged_is_over_three_intervals_after_the_last() {
        let mut all = Neighbours::new();
        heard(&mut all, 0, 1);
        heard(&mut all, 10, u32::MAX);
        assert_eq!(heard(&mut all, 20, u32::MAX), HeardAs::Restarted);
        assert_eq!(heard(&mut all, 120, 1), HeardAs::Stale);
        assert_eq!(heard(&mut all, 220, 1), HeardAs::Stale);
        assert_eq!(heard(&mut all, 320, 1), HeardAs::Restarted);
    }

    #[test]
    fn the_table_is_bounded_and_the_longest_silent_goes_first() {
        let mut all = Neighbours::new();
        for n in 0..=NEIGHBOURS_MAX {
            let mac = Mac([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
            all.hear(at(n as u64), mac, mac.into(), Boot(1), INTERVAL);
        }
        assert_eq!(all.len(), NEIGHBOURS_MAX);
        assert!(all.get(Mac([2, 0, 0, 0, 0, 0])).is_none());
        all.expire(at(1000), std::time::Duration::from_millis(900));
        assert_eq!(all.len(), NEIGHBOURS_MAX - 99);
    }
}
