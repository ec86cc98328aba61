//! The table of links: who heard how much of whom when, and how strong it came in.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Write};

use super::clocks::DELAY_US;
use super::life::{Life, Sending};
use super::loss::{Step, steps};
use super::{Drive, Found, Micros};

/// A frame that took longer than this was heard by somebody else's clock.
const UNDER_WAY_MAX: Micros = 1_000_000;

/// How far before its sending a frame may seem to be heard, as clocks drift.
const AHEAD_MAX: Micros = 50_000;

/// Who broadcasts less often than this in a slot is judged by unicast frames as well.
const BROADCASTS_MIN: usize = 2;

/// Mean and standard deviation, in dBm and dB.
type Signal = (f64, f64);

impl Drive {
    /// Writes who heard how much of whom when, as a table that `v2xsim` and the testbed replay.
    pub fn write_links(&self, out: &mut impl Write) -> io::Result<Found> {
        writeln!(out, "time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db")?;
        let mut found = Found {
            nodes: self.names().len(),
            directions: 0,
            frames: 0,
            heard: 0,
            hand_overs: self.lives.iter().map(|life| life.hand_overs.len()).sum(),
            clocks: self.lives.iter().map(|life| (life.name(), life.offset)).collect(),
        };
        // A node with several lives is one node: what holds, and since when, of each pair of names.
        let mut rows: BTreeMap<(String, String), Vec<(Micros, String)>> = BTreeMap::new();
        for from in &self.lives {
            for to in self.lives.iter().filter(|to| to.header.id != from.header.id) {
                let samples = self.samples(from, to);
                if samples.iter().all(|(_, is_heard)| !is_heard) {
                    continue;
                }
                found.frames += samples.len() as u64;
                found.heard += samples.iter().filter(|(_, is_heard)| *is_heard).count() as u64;
                let delay = self.delay(from, to);
                let all = rows.entry((from.name(), to.name())).or_default();
                for (at, loss, signal) in self.with_signal(from, to, &steps(&samples, self.slot)) {
                    let (mean, deviation) = signal.map_or_else(Default::default, |(mean, sd)| {
                        (format!("{mean:.1}"), format!("{sd:.1}"))
                    });
                    all.push((at, format!("{loss:.4},{delay},{mean},{deviation}")));
                }
            }
        }
        let mut lines = Vec::new();
        found.directions = rows.len();
        for ((from, to), mut steps) in rows {
            steps.sort_by_key(|(at, _)| *at);
            let mut last: Option<(Micros, String)> = None;
            for (at, what) in steps {
                let is_news =
                    last.as_ref().is_none_or(|(then, known)| *then < at && *known != what);
                if is_news {
                    lines.push((at, format!("{from},{to},{what}")));
                    last = Some((at, what));
                }
            }
        }
        lines.sort();
        for (at, line) in lines {
            writeln!(out, "{:.6},{line}", self.seconds(at))?;
        }
        Ok(found)
    }

    /// What the one sent while the other was there, and whether that heard it.
    fn samples(&self, from: &Life, to: &Life) -> Vec<(Micros, bool)> {
        let mut heard = to.heard.clone();
        let mut of = |wanted: &dyn Fn(&Sending) -> bool| -> Vec<(Micros, bool)> {
            let there = |sent: &&Sending| (to.began..=to.ended).contains(&sent.at) && wanted(sent);
            let sent = from.sent.iter().filter(there);
            sent.map(|sent| (sent.at, take(&mut heard, sent))).collect()
        };
        let broadcasts = of(&|sent| sent.to.is_none());
        let unicasts = of(&|sent| sent.to.is_some_and(|mac| to.macs.contains(&mac)));
        // Where it broadcasts nothing, and only there, it is known by what it said to this one.
        let mut all = broadcasts;
        let mut per_slot: BTreeMap<Micros, usize> = BTreeMap::new();
        for (at, _) in &all {
            *per_slot.entry(at / self.slot).or_default() += 1;
        }
        let is_silent =
            |at: &Micros| per_slot.get(&(at / self.slot)).is_none_or(|n| *n < BROADCASTS_MIN);
        all.extend(unicasts.into_iter().filter(|(at, _)| is_silent(at)));
        all.sort_unstable();
        all
    }

    /// What a frame takes from the one to the other.
    fn delay(&self, from: &Life, to: &Life) -> Micros {
        from.quickest(to).unwrap_or(DELAY_US).max(0)
    }

    /// Steps, with mean and deviation of how strong frames came in from each on.
    fn with_signal(
        &self,
        from: &Life,
        to: &Life,
        steps: &[Step],
    ) -> Vec<(Micros, f64, Option<Signal>)> {
        let mut signals: Vec<(Micros, f64)> = Vec::new();
        for mac in &from.macs {
            let told = to.signals.get(mac).into_iter().flatten();
            signals.extend(told.map(|(at, dbm)| (*at, f64::from(*dbm))));
        }
        if signals.is_empty() {
            return steps.iter().map(|step| (step.at, step.loss, None)).collect();
        }
        signals.sort_by_key(|(at, _)| *at);
        // A slot with a signal begins a step of its own.
        let mut slots: BTreeMap<Micros, Vec<f64>> = BTreeMap::new();
        for (at, dbm) in signals {
            slots.entry(at - at.rem_euclid(self.slot)).or_default().push(dbm);
        }
        let mut times: Vec<Micros> = steps.iter().map(|step| step.at).collect();
        let first = times.first().copied().unwrap_or(self.start);
        times.extend(slots.keys().map(|at| (*at).max(first)));
        times.sort_unstable();
        times.dedup();
        let loss_at = |at: Micros| {
            let before = steps.partition_point(|step| step.at <= at);
            before.checked_sub(1).and_then(|index| steps.get(index)).map_or(1.0, |step| step.loss)
        };
        let signal_at = |at: Micros| {
            let (_, all) = slots.range(..=at).next_back().or_else(|| slots.iter().next())?;
            let n = all.len() as f64;
            let mean = all.iter().sum::<f64>() / n;
            let variance = all.iter().map(|dbm| (dbm - mean).powi(2)).sum::<f64>() / n;
            Some((mean, variance.sqrt()))
        };
        times.into_iter().map(|at| (at, loss_at(at), signal_at(at))).collect()
    }
}

/// Whether this frame was heard; each hearing is of one frame.
fn take(heard: &mut HashMap<u64, VecDeque<Micros>>, sent: &Sending) -> bool {
    let Some(times) = heard.get_mut(&sent.hash) else { return false };
    let fits = |at: &Micros| (-AHEAD_MAX..=UNDER_WAY_MAX).contains(&(at - sent.at));
    match times.iter().position(fits) {
        Some(index) => times.remove(index).is_some(),
        None => false,
    }
}
