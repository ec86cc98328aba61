//! Where a link is going: [`LossCusum`] says that it has got bad, [`SignalTrend`] that it will.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::time::Timestamp;

/// Everything gets through, in the fixed-point form of [`Share`].
pub(super) const WHOLE: u32 = 1 << 16;

/// Weight of one sample in the slow average, as a right shift: 1/32. At ten heartbeats a second it
/// looks back about 3 s; 10 % random loss then makes it wander by ±4 points.
pub(super) const SLOW_SHIFT: u32 = 5;

/// A share between 0 and 1 in 1/65536, averaged over its samples.
///
/// The first samples are averaged plainly, later ones exponentially (`s ← s + (x − s)/2ⁿ`), so that
/// a young link is judged by what was seen, not by where the average started. Integer arithmetic,
/// so that simulations repeat bit for bit. A node keeps three for each neighbour, so each is one
/// word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Samples so far in the highest byte, the value in the others.
    packed: u32,
}

/// Bits of the value in [`Share::packed`].
const VALUE_BITS: u32 = 24;

const _: () = assert!(WHOLE < 1 << VALUE_BITS, "a value has room");
const _: () = assert!(1 << USUAL_SHIFT <= u8::MAX as u32, "a number of samples has room");

impl Share {
    pub(super) fn add(&mut self, hit: bool, shift: u32) {
        let sample = if hit { WHOLE } else { 0 };
        let samples = (self.samples() + 1).min(1 << shift);
        let step = (i64::from(sample) - i64::from(self.value())) / i64::from(samples);
        let value = u32::try_from(i64::from(self.value()) + step).unwrap_or(0);
        self.packed = samples << VALUE_BITS | value;
    }

    fn value(self) -> u32 {
        self.packed & ((1 << VALUE_BITS) - 1)
    }

    fn samples(self) -> u32 {
        self.packed >> VALUE_BITS
    }

    /// How likely the next sample is a hit: one half before the first, and never all (Laplace's
    /// rule of succession).
    pub(super) fn hit(self) -> u32 {
        WHOLE - self.miss()
    }

    /// How likely it is a miss.
    pub(super) fn miss(self) -> u32 {
        ((WHOLE - self.value()) * self.samples() + WHOLE) / (self.samples() + 2)
    }

    /// The share, once at least `samples` were seen.
    pub(super) fn after(self, samples: u32) -> Option<u32> {
        (self.samples() >= samples).then_some(self.value())
    }
}

/// How much more likely it is by now that a link got bad than that it is as it used to be. It is a
/// cumulative sum of log-likelihood ratios that never falls below zero (Page, Biometrika 41, 1954),
/// in 1/1000 nat.
///
/// It is the quickest way to notice that a link got bad at an unknown moment, for a given rate of
/// false alarms, and needs no window: every heartbeat heard or missed counts. Questions count while
/// they stay unanswered, of which there are many just when heartbeats are missed. An answer takes
/// back what they weighed and nothing else: it is one of several, so it proves life, not quality.
/// *Bad* means to lose 40 points more than the link did over the last 13 s; so a link that always
/// lost a fifth, or half, is not called bad for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCusum {
    hellos: u16,
    questions: u16,
    usual: Share,
}

/// Looks back 128 hellos, 13 s at ten a second.
const USUAL_SHIFT: u32 = 7;

/// Before so many hellos a link counts as one that loses a tenth. Found by experiment: with 32
/// links that always lost much are left while they are young.
const USUAL_AFTER: u32 = 8;

/// What each observation weighs, in 1/1000 nat.
struct Weights {
    missed: u16,
    heard: u16,
    unanswered: u16,
}

/// Usual loss *p* of 0.02, 0.1, 0.2, 0.3, 0.5, against *q* = *p* + 0.4: a hello missed weighs
/// ln(q/p), one heard ln((1−p)/(1−q)). A question and its answer pass the link both ways, so for
/// one unanswered 1 − p becomes (1 − p)².
const WEIGHTS: [Weights; 5] = [
    Weights { missed: 3045, heard: 525, unanswered: 2815 },
    Weights { missed: 1609, heard: 588, unanswered: 1373 },
    Weights { missed: 1099, heard: 693, unanswered: 847 },
    Weights { missed: 847, heard: 847, unanswered: 579 },
    Weights { missed: 588, heard: 1609, unanswered: 277 },
];

impl LossCusum {
    pub(super) fn note_hello(&mut self, heard: bool) {
        let Weights { heard: relief, missed, .. } = *self.weights();
        self.hellos = if heard {
            self.hellos.saturating_sub(relief)
        } else {
            // So that a link that recovers is trusted again within seconds.
            self.hellos.saturating_add(missed).min(STRAIN_MAX)
        };
        self.usual.add(heard, USUAL_SHIFT);
    }

    pub(super) fn note_question(&mut self, was_answered: bool) {
        let load = self.weights().unanswered;
        let sum = if was_answered { 0 } else { self.questions.saturating_add(load) };
        self.questions = sum.min(STRAIN_MAX);
    }

    /// As if so many hellos had been missed on top.
    pub(super) fn with_missed(mut self, missed: u32) -> Self {
        let missed = u16::try_from(missed).unwrap_or(u16::MAX);
        let load = self.weights().missed.saturating_mul(missed);
        self.hellos = self.hellos.saturating_add(load).min(STRAIN_MAX);
        self
    }

    fn weights(&self) -> &'static Weights {
        let [clean, low, middle, high, half] = &WEIGHTS;
        match self.usual.after(USUAL_AFTER) {
            Some(usual) if usual >= WHOLE * 31 / 32 => clean,
            Some(usual) if usual < WHOLE * 13 / 20 => half,
            Some(usual) if usual < WHOLE * 3 / 4 => high,
            Some(usual) if usual < WHOLE * 17 / 20 => middle,
            _ => low,
        }
    }

    /// In 1/1000 nat.
    pub fn millinats(self) -> u32 {
        u32::from(self.hellos) + u32::from(self.questions)
    }
}

const STRAIN_MAX: u16 = 20_000;

/// Frames this close together are averaged before they count, so that a busy link is not judged by
/// its last few milliseconds.
const BIN: Duration = Duration::from_millis(100);

/// Time a signal is looked back on.
const SPAN: Duration = Duration::from_secs(2);

/// Averages within that time: all there are room for.
const BINS_MAX: usize = 20;

/// Fewer do not make a trend.
const BINS_MIN: usize = 5;

/// Nothing heard for this long, and the trend says nothing.
const SIGNAL_AGE_MAX: Duration = Duration::from_millis(500);

/// Signal over [`BIN`], while it lasts.
#[derive(Clone, Copy, Debug)]
struct Bin {
    at: Timestamp,
    sum: i32,
    /// Of squares.
    squares: i32,
    count: i32,
}

/// What is left of a [`Bin`] that is over.
#[derive(Clone, Copy, Debug)]
struct Mean {
    /// When it began: the low 32 bits of its microseconds, of which [`SPAN`] needs 21.
    at: u32,
    cdbm: i16,
    /// Standard deviation of its frames, in 1/100 dB.
    spread_cdb: u16,
}

/// Signal strength of what a neighbour sends, over the last 2 s: a line through the averages of
/// each 100 ms (least squares), in integers, so that simulations repeat bit for bit.
#[derive(Clone, Debug, Default)]
pub struct SignalTrend {
    newest: Option<Bin>,
    /// Those before it, oldest first. The first may be older than [`SPAN`]: who adds to a list does
    /// not touch its other end in memory, as long as there is room.
    over: VecDeque<Mean>,
}

/// A line through the signal of the last moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Average of the last 2 s, in 1/100 dBm.
    pub mean_cdbm: i32,
    /// Expected at the time asked for, in 1/100 dBm.
    pub ahead_cdbm: i32,
    /// Standard deviation of frames from the line, in 1/100 dB: much where the radio fades.
    pub spread_cdb: i32,
}

/// So many standard deviations off its line a frame is at most, in 19 of 20 cases.
const DEVIATIONS: i32 = 2;

/// From here on a radio fades. Whole dBm alone are 0.3 dB off a line, radios that fade more than
/// 2 dB. Found by experiment: 0.5 to 2 dB are equally good.
const FADES_CDB: i32 = 100;

impl Signal {
    /// It falls, and will be weaker than this, in 1/100 dBm, whatever frames do about the line. One
    /// that does not fall goes on: the weakest neighbour may be as good as any.
    pub(crate) fn ends(&self, floor_cdbm: i32) -> bool {
        self.ahead_cdbm < self.mean_cdbm
            && self.ahead_cdbm + DEVIATIONS * self.spread_cdb < floor_cdbm
    }

    /// Frames are far off the line. So many of them get lost long before their average is too weak,
    /// and the line does not say when the link ends.
    pub(crate) fn fades(&self) -> bool {
        self.spread_cdb >= FADES_CDB
    }
}

impl Bin {
    /// Average in 1/100 dBm: between -12,800 and 12,700.
    fn cdbm(&self) -> i16 {
        let mean = i64::from(self.sum) * 100 / i64::from(self.count.max(1));
        i16::try_from(mean).unwrap_or(i16::MIN)
    }

    /// Standard deviation of its frames, in 1/100 dB: at most 12,750.
    fn spread_cdb(&self) -> u16 {
        let (sum, squares, count) =
            (i64::from(self.sum), i64::from(self.squares), i64::from(self.count.max(1)));
        let variance = (squares - sum * sum / count) * 10_000 / count;
        u16::try_from(u64::try_from(variance).unwrap_or(0).isqrt()).unwrap_or(u16::MAX)
    }

    fn over(&self) -> Mean {
        Mean { at: low_micros(self.at), cdbm: self.cdbm(), spread_cdb: self.spread_cdb() }
    }
}

impl Mean {
    /// Microseconds since it began: less than a minute, for a pause of [`SPAN`] ends the list.
    fn age(self, now: Timestamp) -> u32 {
        low_micros(now).wrapping_sub(self.at)
    }
}

fn low_micros(time: Timestamp) -> u32 {
    time.as_micros() as u32
}

/// [`SPAN`] in microseconds.
const SPAN_US: u32 = SPAN.as_micros() as u32;

impl SignalTrend {
    /// A frame came in this strong.
    pub(super) fn add(&mut self, now: Timestamp, dbm: i8) {
        let dbm = i32::from(dbm);
        match &mut self.newest {
            Some(last) if now.since(last.at) < BIN => {
                // A bin holds what one radio can receive in its time, thousands of frames at most.
                last.sum = last.sum.saturating_add(dbm);
                last.squares = last.squares.saturating_add(dbm * dbm);
                last.count = last.count.saturating_add(1);
                return;
            }
            Some(last) if now.since(last.at) <= SPAN => {
                if self.over.len() == self.over.capacity() {
                    self.over.retain(|mean| mean.age(now) <= SPAN_US);
                }
                self.over.push_back(last.over());
            }
            _ => self.over.clear(),
        }
        if self.over.len() >= BINS_MAX {
            self.over.pop_front();
        }
        self.newest = Some(Bin { at: now, sum: dbm, squares: dbm * dbm, count: 1 });
    }

    /// Now, and `ahead` from now. `None` without enough frames lately.
    pub fn look(&self, now: Timestamp, ahead: Duration) -> Option<Signal> {
        let newest = self.newest.filter(|newest| now.since(newest.at) <= SIGNAL_AGE_MAX)?;
        // Oldest first, and the first few may be too old.
        let is_old = |mean: &&Mean| mean.age(now) > SPAN_US;
        let fresh = self.over.iter().skip_while(is_old);
        let newest = newest.over();
        let oldest = fresh.clone().next().unwrap_or(&newest).age(now);
        let (mut n, mut sum_t, mut sum_y) = (0i64, 0i64, 0i64);
        let (mut sum_tt, mut sum_ty, mut sum_yy, mut sum_within) = (0i64, 0i64, 0i64, 0i64);
        fresh.chain([&newest]).for_each(|mean| {
            let t = i64::from(oldest.saturating_sub(mean.age(now)) / 1000);
            let y = i64::from(mean.cdbm);
            n += 1;
            sum_t += t;
            sum_y += y;
            sum_tt += t * t;
            sum_ty += t * y;
            sum_yy += y * y;
            sum_within += i64::from(mean.spread_cdb).pow(2);
        });
        let breadth = n * sum_tt - sum_t * sum_t;
        if n < BINS_MIN as i64 || breadth <= 0 {
            return None;
        }
        let mean = sum_y / n;
        // From the middle of the samples to the time asked for, on a line of this slope.
        let now_ms = i64::from(oldest / 1000);
        let reach = n * (now_ms + i64::try_from(ahead.as_millis()).unwrap_or(0)) - sum_t;
        let slope = n * sum_ty - sum_t * sum_y;
        let ahead = mean + slope * reach / (breadth * n);
        // What the line leaves of the squares, for each average beyond the two it takes to draw it;
        // and what averages hide of their frames.
        let drawn = i128::from(slope).pow(2) / i128::from(breadth);
        let left = i128::from(n * sum_yy - sum_y * sum_y) - drawn;
        let between = u32::try_from(left / i128::from(n * (n - 2))).unwrap_or(0);
        let within = u32::try_from(sum_within / n).unwrap_or(0);
        let variance = between.saturating_add(within);
        let cdbm = |value: i64| i32::try_from(value.clamp(-20_000, 5_000)).unwrap_or(0);
        Some(Signal {
            mean_cdbm: cdbm(mean),
            ahead_cdbm: cdbm(ahead),
            spread_cdb: cdbm(i64::from(variance.isqrt())),
        })
    }
}

#[cfg(test)]
mod tests {
    use node_lib::control::random::Random;

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_link_that_suddenly_loses_half_is_noticed_within_two_seconds() {
        let mut strain = LossCusum::default();
        (0..100).for_each(|n| strain.note_hello(n % 10 != 0));
        assert!(strain.millinats() < 2000, "{strain:?}");
        (0..20).for_each(|n| strain.note_hello(n % 2 != 0));
        assert!(strain.millinats() > 6000, "{strain:?}");
        (0..20).for_each(|_| strain.note_hello(true));
        assert_eq!(strain.millinats(), 0);
    }

    #[test]
    fn unanswered_questions_weigh_as_well_and_a_dead_link_is_forgiven_within_seconds() {
        let mut strain = LossCusum::default();
        strain.note_hello(true);
        (0..6).for_each(|_| strain.note_question(false));
        assert!(strain.millinats() > 8000, "{strain:?}");
        strain.note_question(true);
        assert_eq!(strain.millinats(), 0, "an answer proves life");
        (0..100).for_each(|_| strain.note_hello(false));
        strain.note_question(true);
        assert_eq!(strain.millinats(), u32::from(STRAIN_MAX), "and not quality");
        (0..35).for_each(|_| strain.note_hello(true));
        assert_eq!(strain.millinats(), 0);
    }

    /// It does so by chance, and not in turn; a link is fading from 9,000 on.
    #[test]
    fn a_link_that_always_lost_a_third_or_half_is_not_called_bad_for_it() {
        for one_in in [3, 2] {
            let (mut random, mut strain) = (Random::new(7), LossCusum::default());
            let mut is_bad = 0;
            for _ in 0..30_000 {
                strain.note_hello(!random.number().is_multiple_of(one_in));
                is_bad += u32::from(strain.millinats() >= 9000);
            }
            assert!(is_bad < 30, "one in {one_in} lost: bad after {is_bad} of 30,000");
        }
    }

    #[test]
    fn a_signal_that_falls_steadily_is_seen_where_it_will_be() {
        let mut trend = SignalTrend::default();
        // 4 dB a second, from −60 dBm.
        for n in 0..=20 {
            trend.add(at(n * 100), -60 - i8::try_from(n * 4 / 10).unwrap());
        }
        let Signal { mean_cdbm, ahead_cdbm, spread_cdb } =
            trend.look(at(2000), Duration::from_secs(1)).unwrap();
        assert!((-6450..=-6350).contains(&mean_cdbm), "{mean_cdbm}");
        assert!((-7250..=-7100).contains(&ahead_cdbm), "{ahead_cdbm}");
        assert!((20..40).contains(&spread_cdb), "whole dBm: {spread_cdb}");
    }

    #[test]
    fn a_link_ends_where_even_a_frame_above_its_falling_line_is_too_weak() {
        let signal = |ahead_cdbm, spread_cdb| Signal { mean_cdbm: -8500, ahead_cdbm, spread_cdb };
        for (ahead, spread, ends) in [
            (-9000, 0, false),
            (-9001, 0, true),
            (-9001, 1, false),
            (-9100, 49, true),
            (-9100, 50, false),
        ] {
            assert_eq!(signal(ahead, spread).ends(-9000), ends, "{ahead} ± {spread}");
        }
        let level = Signal { mean_cdbm: -9200, ahead_cdbm: -9200, spread_cdb: 0 };
        assert!(!level.ends(-9000), "it does not fall");
        assert!(!signal(-8600, 99).fades() && signal(-8600, 100).fades());
    }

    #[test]
    fn the_spread_is_what_the_line_leaves() {
        let mut trend = SignalTrend::default();
        // 1 dB off a line that falls by 10 dB a second, this way and that.
        for n in 0..20_i8 {
            trend.add(at(u64::try_from(n).unwrap() * 100), -60 - n + 2 * (n % 2));
        }
        let Signal { spread_cdb, .. } = trend.look(at(1950), Duration::ZERO).unwrap();
        assert!((95..115).contains(&spread_cdb), "{spread_cdb}");
    }

    #[test]
    fn what_averages_hide_of_their_frames_is_spread_as_well() {
        let mut trend = SignalTrend::default();
        // Fifty frames in each 100 ms, 4 dB above and below the same average.
        for ms in (0..2000).step_by(2) {
            trend.add(at(ms), if ms % 4 == 0 { -74 } else { -66 });
        }
        let Signal { mean_cdbm, spread_cdb, .. } = trend.look(at(1999), Duration::ZERO).unwrap();
        assert_eq!((mean_cdbm, spread_cdb), (-7000, 400));
    }

    #[test]
    fn a_burst_of_frames_weighs_as_much_as_one_and_memory_is_bounded() {
        let mut trend = SignalTrend::default();
        for ms in 0..10_000 {
            trend.add(at(ms), -70);
        }
        assert_eq!(trend.over.len() + 1, BINS_MAX);
        let level = trend.look(at(10_000), Duration::from_secs(1)).unwrap();
        assert_eq!(level, Signal { mean_cdbm: -7000, ahead_cdbm: -7000, spread_cdb: 0 });
    }

    #[test]
    fn what_was_heard_an_hour_ago_is_not_taken_for_new_when_32_bits_have_wrapped() {
        let wrap = Duration::from_micros(1 << 32);
        let mut trend = SignalTrend::default();
        (0..10).for_each(|n| trend.add(at(n * 100), -70));
        (0..4).for_each(|n| trend.add(at(1000 + n * 100) + wrap, -70));
        assert_eq!(trend.look(at(1300) + wrap, Duration::from_secs(1)), None, "four bins");
        trend.add(at(1400) + wrap, -70);
        assert!(trend.look(at(1400) + wrap, Duration::from_secs(1)).is_some());
    }

    #[test]
    fn too_few_frames_or_old_ones_say_nothing() {
        let mut trend = SignalTrend::default();
        (0..4).for_each(|n| trend.add(at(n * 100), -70));
        assert_eq!(trend.look(at(400), Duration::from_secs(1)), None);
        trend.add(at(400), -70);
        assert!(trend.look(at(400), Duration::from_secs(1)).is_some());
        assert_eq!(trend.look(at(901), Duration::from_secs(1)), None);
    }
}
