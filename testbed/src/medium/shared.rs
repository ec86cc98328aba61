//! The medium without I/O: who hears whom, how well, and when a frame is due.
//!
//! Time is an argument and every direction of a link draws from its own generator, seeded from the
//! medium's seed and the two names. So the same frames at the same times meet the same fate on
//! every run, whatever happens on other links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use node_lib::Mac;
use node_lib::messages::ethernet::addresses;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::quality::{Counters, HELD_BACK, QUEUE_BYTES, Quality, RETRY_AFTER};
use super::trace::MediumLinkStep;

/// Frames on their way, over all links. Beyond, new ones are dropped and counted as overflow.
const FLYING_MAX: usize = 16 * 1024;

/// Who hears whom.
#[derive(Debug)]
pub struct SharedMedium {
    seed: u64,
    /// Addresses of radios, by name.
    radios: BTreeMap<String, Mac>,
    /// Changes of links yet to come, the next one first.
    to_play: VecDeque<Planned>,
    /// By sender, then by receiver.
    links: BTreeMap<String, BTreeMap<String, Link>>,
    flying: BinaryHeap<Reverse<Flying>>,
    /// Frames due at the same moment leave in the order they came.
    sequence: u64,
}

/// A change of one link at a set time.
#[derive(Debug)]
struct Planned {
    at: Instant,
    from: String,
    to: String,
    quality: Quality,
}

#[derive(Debug)]
struct Link {
    quality: Quality,
    counters: Counters,
    random: Pcg32,
    /// For the strength of frames, so that telling it changes no frame's fate.
    fading: Pcg32,
    /// When a rate-limited link has sent what waits, by class: for data that is control as well.
    busy_until: [Option<Instant>; 2],
    /// When the last frame in order is due, by class: the next is not due earlier.
    last_due: [Option<Instant>; 2],
}

/// The queue in which a radio keeps a frame: of two that wait control goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueClass {
    /// What nodes say to each other.
    Control,
    /// Everything else.
    Data,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    due: Instant,
    sequence: u64,
    from: String,
    to: String,
    frame: Rc<[u8]>,
    dbm: Option<i8>,
}

impl SharedMedium {
    /// A medium in which nobody hears anybody.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            radios: BTreeMap::new(),
            to_play: VecDeque::new(),
            links: BTreeMap::new(),
            flying: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Tells the address of a radio: frames to it are tried again where a link's quality says so.
    pub fn attach(&mut self, radio: &str, mac: Mac) {
        self.radios.insert(radio.to_owned(), mac);
    }

    /// Changes links as a trace says, which begins now; whatever was still to be played is not. A
    /// step sets loss, delay and signal; the rest of the quality is `base`.
    pub fn play(&mut self, now: Instant, base: Quality, trace: &[MediumLinkStep]) {
        let planned = |step: &MediumLinkStep| Planned {
            at: now + step.time,
            from: step.from.clone(),
            to: step.to.clone(),
            quality: Quality { loss: step.loss, delay: step.delay, signal: step.signal, ..base },
        };
        self.to_play = trace.iter().map(planned).collect();
        // Stable: of two changes at the same time the one written first comes first.
        self.to_play.make_contiguous().sort_by_key(|planned| planned.at);
    }

    /// Lets `to` hear `from`, or changes how well it does. Frames on their way still arrive.
    pub fn link(&mut self, from: &str, to: &str, quality: Quality) {
        let seed = self.seed;
        let receivers = self.links.entry(from.to_owned()).or_default();
        let seed = seed ^ name_hash(from).rotate_left(17) ^ name_hash(to);
        let link = receivers.entry(to.to_owned()).or_insert_with(|| Link {
            quality,
            counters: Counters::default(),
            random: Pcg32::seed_from_u64(seed),
            fading: Pcg32::seed_from_u64(!seed),
            busy_until: [None; 2],
            last_due: [None; 2],
        });
        link.quality = quality;
    }

    /// What happened so far, by sender and receiver.
    pub fn counters(&self) -> impl Iterator<Item = (&str, &str, Counters)> {
        self.links.iter().flat_map(|(from, receivers)| {
            receivers.iter().map(move |(to, link)| (from.as_str(), to.as_str(), link.counters))
        })
    }

    /// `from` sends a frame. Calls `deliver` for what arrives at once, with its strength in dBm
    /// where the link has one; the rest waits for [`SharedMedium::handle_timeout`].
    pub fn send(
        &mut self,
        now: Instant,
        from: &str,
        class: QueueClass,
        frame: &[u8],
        deliver: &mut impl FnMut(&str, &[u8], Option<i8>),
    ) {
        let Some(receivers) = self.links.get_mut(from) else { return };
        let addressee = addresses(frame).map(|(to, _)| to).filter(|mac| mac.is_unicast());
        let mut shared: Option<Rc<[u8]>> = None;
        for (to, link) in receivers {
            let is_for_it = addressee.is_some() && self.radios.get(to) == addressee.as_ref();
            let Some(fate) = link.decide(now, class, frame.len(), is_for_it) else { continue };
            let mut harmed = None;
            if let Some(bit) = fate.flipped_bit {
                harmed = Some(flip(frame, bit));
            }
            for due in [Some(fate.due), fate.copy_due].into_iter().flatten() {
                if due <= now {
                    link.counters.forwarded += 1;
                    deliver(to, harmed.as_deref().unwrap_or(frame), fate.dbm);
                } else if self.flying.len() >= FLYING_MAX {
                    link.counters.overflow += 1;
                } else {
                    let frame = match &harmed {
                        Some(harmed) => Rc::clone(harmed),
                        None => Rc::clone(shared.get_or_insert_with(|| frame.into())),
                    };
                    let (from, to) = (from.to_owned(), to.clone());
                    self.sequence += 1;
                    let sequence = self.sequence;
                    let dbm = fate.dbm;
                    self.flying.push(Reverse(Flying { due, sequence, from, to, frame, dbm }));
                }
            }
        }
    }

    /// When to call [`SharedMedium::handle_timeout`]. Coming early is harmless.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let frame = self.flying.peek().map(|Reverse(next)| next.due);
        let change = self.to_play.front().map(|next| next.at);
        frame.into_iter().chain(change).min()
    }

    /// Delivers what is due, and changes the links whose time has come.
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        deliver: &mut impl FnMut(&str, &[u8], Option<i8>),
    ) {
        while self.flying.peek().is_some_and(|Reverse(next)| next.due <= now) {
            let Some(Reverse(due)) = self.flying.pop() else { return };
            if let Some(link) = self.links.get_mut(&due.from).and_then(|l| l.get_mut(&due.to)) {
                link.counters.forwarded += 1;
            }
            deliver(&due.to, &due.frame, due.dbm);
        }
        while self.to_play.front().is_some_and(|next| next.at <= now) {
            let Some(Planned { from, to, quality, .. }) = self.to_play.pop_front() else { return };
            self.link(&from, &to, quality);
        }
    }
}

/// What becomes of one frame on one link.
struct Fate {
    due: Instant,
    copy_due: Option<Instant>,
    flipped_bit: Option<u32>,
    /// How strong it comes in, where the link's quality says.
    dbm: Option<i8>,
}

impl Link {
    /// `None`: it does not arrive.
    fn decide(
        &mut self,
        now: Instant,
        class: QueueClass,
        len: usize,
        is_for_it: bool,
    ) -> Option<Fate> {
        let quality = self.quality;
        let retries = if is_for_it { quality.retries } else { 0 };
        let mut tries_lost = 0;
        while self.chance(quality.loss) {
            if tries_lost == retries {
                self.counters.lost += 1;
                return None;
            }
            tries_lost += 1;
            self.counters.retried += 1;
        }
        let Some(sent) = self.transmit(now, class, len as u64) else {
            self.counters.overflow += 1;
            return None;
        };
        let arrives =
            sent + RETRY_AFTER * tries_lost + quality.delay + self.part_of(quality.jitter);
        let in_order = self.last_due(class).map_or(arrives, |last| arrives.max(last));
        let due = if self.chance(quality.reorder) {
            self.counters.reordered += 1;
            in_order + HELD_BACK
        } else {
            *self.last_due(class) = Some(in_order);
            in_order
        };
        let copy_due = self.chance(quality.duplicate).then_some(due);
        self.counters.duplicated += u64::from(copy_due.is_some());
        let flipped_bit = self.chance(quality.corrupt).then(|| self.random.next_u32());
        self.counters.corrupted += u64::from(flipped_bit.is_some());
        let dbm = quality.signal.map(|signal| signal.draw(&mut self.fading));
        Some(Fate { due, copy_due, flipped_bit, dbm })
    }

    fn last_due(&mut self, class: QueueClass) -> &mut Option<Instant> {
        let [control, data] = &mut self.last_due;
        if class == QueueClass::Control { control } else { data }
    }

    /// When the frame has left the sender; `None` when the queue is full. Control is sent before
    /// data that waits, which is sent that much later, but for what waits already.
    fn transmit(&mut self, now: Instant, class: QueueClass, len: u64) -> Option<Instant> {
        let Some(rate) = self.quality.rate_bps.filter(|rate| *rate > 0) else { return Some(now) };
        let takes = |bytes: u64| {
            Duration::from_nanos(bytes.saturating_mul(8_000_000_000).checked_div(rate).unwrap_or(0))
        };
        let [control, data] = self.busy_until.map(|busy| busy.map_or(now, |busy| busy.max(now)));
        let free_at = if class == QueueClass::Control { control } else { data };
        if free_at.saturating_duration_since(now) > takes(QUEUE_BYTES) {
            return None;
        }
        let sent = free_at + takes(len);
        self.busy_until = match class {
            QueueClass::Control => [Some(sent), Some(data + takes(len))],
            QueueClass::Data => [Some(control), Some(sent)],
        };
        Some(sent)
    }

    fn chance(&mut self, share: f64) -> bool {
        // A clean link draws nothing, so that turning one fault on does not shift the others.
        share > 0.0 && f64::from(self.random.next_u32()) < share * (f64::from(u32::MAX) + 1.0)
    }

    fn part_of(&mut self, limit: Duration) -> Duration {
        if limit.is_zero() {
            return limit;
        }
        limit.mul_f64(f64::from(self.random.next_u32()) / f64::from(u32::MAX))
    }
}

fn flip(frame: &[u8], bit: u32) -> Rc<[u8]> {
    let mut harmed = frame.to_vec();
    let bit = bit as usize % (harmed.len() * 8).max(1);
    if let Some(byte) = harmed.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
    harmed.into()
}

/// FNV-1a: the same on every machine, unlike the standard library's hashes.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_hear_the_sender_receive() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality::default());
        medium.link("c", "a", Quality::default());
        assert_eq!(sent(&mut medium, Instant::now(), "a", 1), ["b"]);
        assert_eq!(sent(&mut medium, Instant::now(), "b", 1), [""; 0]);
        assert_eq!(sent(&mut medium, Instant::now(), "c", 1), ["a"]);
    }

    #[test]
    fn a_cut_link_loses_everything_and_a_healed_one_nothing() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality::CUT);
        assert_eq!(sent(&mut medium, Instant::now(), "a", 1000).len(), 0);
        medium.link("a", "b", Quality::default());
        assert_eq!(sent(&mut medium, Instant::now(), "a", 1000).len(), 1000);
        assert_eq!(
            counters(&medium),
            Counters { forwarded: 1000, lost: 1000, ..Counters::default() }
        );
    }

    #[test]
    fn loss_is_the_share_asked_for_and_the_same_for_the_same_seed() {
        let run = |seed| {
            let mut medium = SharedMedium::new(seed);
            medium.link("a", "b", Quality::lossy(0.1));
            sent(&mut medium, Instant::now(), "a", 10_000);
            counters(&medium).lost
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        assert!((900..1100).contains(&run(7)), "{}", run(7));
    }

    #[test]
    fn delayed_frames_keep_their_order_whatever_the_jitter() {
        let mut medium = SharedMedium::new(1);
        let ms = Duration::from_millis;
        medium.link("a", "b", Quality { delay: ms(5), jitter: ms(20), ..Quality::default() });
        let start = Instant::now();
        for n in 0..50 {
            medium.send(start + ms(n), "a", QueueClass::Data, &[n as u8], &mut |_, _, _| {
                panic!("not yet")
            });
        }
        let mut order = Vec::new();
        medium.handle_timeout(start + ms(100), &mut |_, frame, _| order.push(frame[0]));
        assert_eq!(order, (0..50).collect::<Vec<u8>>());
    }

    #[test]
    fn reordered_frames_come_after_later_ones() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality { reorder: 0.5, ..Quality::default() });
        let mut order = Vec::new();
        let now = Instant::now();
        for n in 0..20 {
            medium.send(now, "a", QueueClass::Data, &[n], &mut |_, frame, _| order.push(frame[0]));
        }
        medium.handle_timeout(now + HELD_BACK, &mut |_, frame, _| order.push(frame[0]));
        assert_eq!(order.len(), 20);
        assert!(!order.is_sorted());
    }

    #[test]
    fn duplicates_arrive_twice_and_harmed_frames_differ_in_one_bit() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality { duplicate: 1.0, corrupt: 1.0, ..Quality::default() });
        let mut seen = Vec::new();
        medium.send(Instant::now(), "a", QueueClass::Data, &[0; 8], &mut |_, f, _| {
            seen.push(f.to_vec())
        });
        assert_eq!(seen.len(), 2);
        for frame in seen {
            assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        }
    }

    #[test]
    fn a_rate_limit_spaces_frames_and_bounds_its_queue() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality { rate_bps: Some(8_000_000), ..Quality::default() });
        let now = Instant::now();
        for _ in 0..100 {
            medium.send(now, "a", QueueClass::Data, &[0; 1000], &mut |_, _, _| {
                panic!("takes a millisecond")
            });
        }
        let mut got = 0;
        medium.handle_timeout(now + Duration::from_millis(10), &mut |_, _, _| got += 1);
        assert_eq!(got, 10);
        // 64 KiB wait, one more was admitted while the queue was just not full.
        assert_eq!(counters(&medium).overflow, 100 - 66);
    }

    #[test]
    fn control_is_sent_before_data_that_waits() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality { rate_bps: Some(8_000_000), ..Quality::default() });
        let now = Instant::now();
        let mut send = |class, n| {
            medium.send(now, "a", class, &[n; 1000], &mut |_, _, _| panic!("takes a millisecond"));
        };
        (1..=10).for_each(|n| send(QueueClass::Data, n));
        (11..=12).for_each(|n| send(QueueClass::Control, n));
        send(QueueClass::Data, 13);
        let mut order = Vec::new();
        let mut at = |medium: &mut SharedMedium, ms| {
            let then = now + Duration::from_millis(ms);
            medium.handle_timeout(then, &mut |_, frame, _| order.push(frame[0]));
            order.clone()
        };
        assert_eq!(at(&mut medium, 2), [1, 11, 2, 12]);
        assert_eq!(at(&mut medium, 12).len(), 12, "what control took the data behind it lacks");
        assert_eq!(at(&mut medium, 13).last(), Some(&13));
    }

    #[test]
    fn only_the_addressee_of_a_unicast_frame_is_tried_again() {
        let mac = |n| Mac([2, 0, 0, 0, 0, n]);
        let counted = |to: Mac| {
            let mut medium = SharedMedium::new(1);
            for (name, n) in [("b", 2), ("c", 3)] {
                medium.attach(name, mac(n));
                medium.link("a", name, Quality { retries: 7, ..Quality::lossy(0.5) });
            }
            let now = Instant::now();
            let frame = [to.0, mac(1).0].concat();
            for _ in 0..1000 {
                medium.send(now, "a", QueueClass::Data, &frame, &mut |_, _, _| ());
            }
            medium.handle_timeout(now + RETRY_AFTER * 7, &mut |_, _, _| ());
            let lost: Vec<_> = medium.counters().map(|(_, _, c)| (c.lost, c.retried)).collect();
            [lost[0], lost[1]]
        };
        let [b, c] = counted(mac(2));
        // Half of the frames are tried again, half of those once more, and so on: 0.5⁸ are lost.
        assert!(b.0 < 20 && (900..1100).contains(&b.1), "{b:?}");
        assert!((400..600).contains(&c.0) && c.1 == 0, "{c:?}");
        for (lost, retried) in counted(Mac::BROADCAST) {
            assert!((400..600).contains(&lost) && retried == 0, "{lost} lost, {retried} retried");
        }
    }

    #[test]
    fn a_try_takes_time_and_later_frames_wait_for_it() {
        let mac = Mac([2, 0, 0, 0, 0, 2]);
        let mut medium = SharedMedium::new(1);
        medium.attach("b", mac);
        medium.link("a", "b", Quality { retries: 20, ..Quality::lossy(0.5) });
        let (start, mut order) = (Instant::now(), Vec::new());
        let mut sent_at_once = 0;
        for n in 0..100 {
            let frame = [&mac.0[..], &mac.0, &[n]].concat();
            medium.send(start, "a", QueueClass::Data, &frame, &mut |_, _, _| sent_at_once += 1);
        }
        assert!(sent_at_once < 5, "{sent_at_once} frames did not wait for the one before");
        assert!(medium.poll_timeout().unwrap() >= start + RETRY_AFTER);
        medium.handle_timeout(start + RETRY_AFTER * 20, &mut |_, frame, _| order.push(frame[12]));
        assert_eq!(order.len() + sent_at_once, 100);
        assert!(order.is_sorted());
    }

    #[test]
    fn a_trace_changes_links_at_its_times_and_the_last_row_holds() {
        let ms = Duration::from_millis;
        let step = |time, loss| {
            let (from, to) = ("a".to_owned(), "b".to_owned());
            MediumLinkStep { time, from, to, loss, delay: Duration::ZERO, signal: None }
        };
        let mut medium = SharedMedium::new(1);
        let start = Instant::now();
        // Not in order, as nobody asks for.
        medium.play(start, Quality::default(), &[step(ms(200), 1.0), step(ms(100), 0.0)]);
        let mut heard = Vec::new();
        for time in (0..400).step_by(50) {
            let now = start + ms(time);
            medium.handle_timeout(now, &mut |_, _, _| ());
            medium.send(now, "a", QueueClass::Data, &[0], &mut |_, _, _| heard.push(time));
        }
        assert_eq!(heard, [100, 150]);
        assert_eq!(medium.poll_timeout(), None);
    }

    #[test]
    fn a_trace_keeps_the_rest_of_the_quality_and_replaces_an_earlier_trace() {
        let step = |seconds, to: &str| MediumLinkStep {
            time: Duration::from_secs(seconds),
            from: "a".to_owned(),
            to: to.to_owned(),
            loss: 0.0,
            delay: Duration::from_millis(5),
            signal: None,
        };
        let mut medium = SharedMedium::new(1);
        let start = Instant::now();
        medium.play(start, Quality::default(), &[step(0, "x"), step(1, "x")]);
        let doubled = Quality { duplicate: 1.0, ..Quality::default() };
        medium.play(start, doubled, &[step(0, "b")]);
        medium.handle_timeout(start, &mut |_, _, _| ());
        medium.send(start, "a", QueueClass::Data, &[0], &mut |_, _, _| panic!("5 ms under way"));
        let mut heard = Vec::new();
        medium.handle_timeout(start + Duration::from_secs(9), &mut |to, _, _| {
            heard.push(to.to_owned())
        });
        assert_eq!(heard, ["b", "b"]);
        assert_eq!(medium.counters().count(), 1);
    }

    #[test]
    fn the_medium_never_holds_more_than_its_bound() {
        let mut medium = SharedMedium::new(1);
        medium.link("a", "b", Quality { delay: Duration::from_secs(1), ..Quality::default() });
        assert_eq!(sent(&mut medium, Instant::now(), "a", FLYING_MAX + 5).len(), 0);
        assert_eq!(counters(&medium).overflow, 5);
    }

    fn sent(medium: &mut SharedMedium, now: Instant, from: &str, times: usize) -> Vec<String> {
        let mut heard = Vec::new();
        for _ in 0..times {
            medium.send(now, from, QueueClass::Data, &[1, 2, 3], &mut |to, _, _| {
                heard.push(to.to_owned())
            });
        }
        heard
    }

    fn counters(medium: &SharedMedium) -> Counters {
        medium.counters().next().unwrap().2
    }
}
