//! A drive in tables, with the simulator's beside it.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Result, ensure};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::Corridor;
use super::daemons::RealDrive;
use super::drive::{Drive, HandOver, Record};

/// Two gaps that differ by no more than this are the same.
pub const SAME_WITHIN: Duration = Duration::from_millis(20);

/// What is promised even when an upstream dies without a word.
pub const GAP_MAX: Duration = Duration::from_millis(300);

/// A drive with the real programs, and drives of the same trace in the simulator.
#[derive(Debug)]
pub struct Comparison {
    /// The real one.
    pub real: RealDrive,
    /// The simulated ones: the first has the seed of the real one.
    pub simulated: Vec<Drive>,
}

/// One hand-over, and what the simulator says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// With the real programs.
    pub real: HandOver,
    /// The hand-over to the same road-side unit in the simulator, at the same seed.
    pub same_seed: Option<HandOver>,
    /// Gaps of that hand-over at all seeds, the shortest first.
    pub gaps: Vec<Duration>,
}

impl Compared {
    /// By how much the real gap differs from the simulated one at the same seed.
    pub fn difference(&self) -> Option<Duration> {
        self.same_seed.as_ref().map(|same| self.real.gap.abs_diff(same.gap))
    }

    /// Whether the real gap is one of those the simulator has at some seed.
    pub fn is_among_the_simulated(&self) -> bool {
        let (Some(min), Some(max)) = (self.gaps.first(), self.gaps.last()) else { return false };
        self.real.gap + SAME_WITHIN >= *min && self.real.gap <= *max + SAME_WITHIN
    }

    /// Within [`SAME_WITHIN`], or why not.
    pub fn verdict(&self) -> &'static str {
        match self.difference() {
            Some(difference) if difference <= SAME_WITHIN => "same",
            _ if self.is_among_the_simulated() => "within the simulator's range over seeds",
            _ if self.gaps.is_empty() => "the simulator has no such hand-over",
            _ => "different",
        }
    }
}

impl Comparison {
    /// All hand-overs of the real drive.
    pub fn hand_overs(&self) -> Vec<Compared> {
        let simulated: Vec<Vec<HandOver>> = self.simulated.iter().map(Drive::hand_overs).collect();
        let real = self.real.drive.hand_overs();
        let compare = |(index, hand_over): (usize, &HandOver)| {
            // The n-th time to this road-side unit.
            let is_to = |other: &&HandOver| other.to == hand_over.to;
            let before = real.iter().take(index).filter(is_to).count();
            let like_it = |drive: &Vec<HandOver>| drive.iter().filter(is_to).nth(before).cloned();
            let mut gaps: Vec<_> =
                simulated.iter().filter_map(like_it).map(|other| other.gap).collect();
            gaps.sort_unstable();
            let same_seed = simulated.first().and_then(like_it);
            Compared { real: hand_over.clone(), same_seed, gaps }
        };
        real.iter().enumerate().map(compare).collect()
    }

    /// What must hold however busy the machine is: a promise counts in lost frames, and a machine that
    /// makes everybody wait loses none.
    pub fn check(&self, corridor: &Corridor) -> Result<()> {
        let drive = &self.real.drive;
        ensure!(drive.doubled() == 0, "{} frames arrived twice", drive.doubled());
        let (hand_overs, least) = (drive.hand_overs(), corridor.rsus().len() - 1);
        ensure!(hand_overs.len() >= least, "{} hand-overs, not {least}", hand_overs.len());
        let moves = self.real.moves(corridor.talking.into());
        for (HandOver { from, to, gap, .. }, moves) in hand_overs.iter().zip(moves) {
            let way = format!("{from} to {to}");
            ensure!(*gap <= GAP_MAX, "{way}: a client was cut off for {gap:?}");
            let known = (moves.clients, usize::from(corridor.clients));
            ensure!(
                known.0 == known.1,
                "{way}: the bridge knew {} of {} clients",
                known.0,
                known.1
            );
        }
        let silent_sent = self.real.silent_sent;
        ensure!(silent_sent == 0, "clients that never speak sent {silent_sent} frames");
        Ok(())
    }

    /// For a person to read.
    pub fn tables(&self, corridor: &Corridor) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{}\n{}", self.hand_over_table(corridor), self.gap_table());
        let drive = &self.real.drive;
        let (down, up) = drive.rates();
        let medium = &self.real.medium;
        let _ = writeln!(
            text,
            "  {:.0} frames/s down and {:.0} up: {} sent, {} lost, {} arrived twice.\n  \
             The silent clients sent {} frames. On air {} frames arrived after {} repetitions, {} \
             were lost.\n  The sender of probes waited for the processor for {} at worst.",
            down,
            up,
            drive.sent(),
            drive.lost(),
            drive.doubled(),
            self.real.silent_sent,
            medium.forwarded,
            medium.retried,
            medium.lost,
            in_ms(self.real.late_max),
        );
        text
    }

    fn hand_over_table(&self, corridor: &Corridor) -> Table {
        let talking = usize::from(corridor.talking);
        let silent = usize::from(corridor.clients - corridor.talking);
        let mut table = table(&[
            "hand-over",
            "at",
            "cause",
            "node: gap",
            "dropped",
            "at risk",
            "both ways",
            "clients: gap",
            "lost",
            "twice",
            "bridge learnt",
            "silent",
            "after",
        ]);
        for (hand_over, moves) in self.real.drive.hand_overs().iter().zip(self.real.moves(talking))
        {
            let said = |of: fn(&Record) -> String| {
                hand_over.record.as_ref().map_or_else(|| "–".to_owned(), of)
            };
            table.add_row([
                format!("{} → {}", hand_over.from, hand_over.to),
                format!("{:.2} s", hand_over.at.as_secs_f64()),
                hand_over.cause.clone(),
                said(|record| in_ms(record.gap)),
                said(|record| record.lost.to_string()),
                said(|record| record.at_risk.to_string()),
                said(|record| record.sent_twice.to_string()),
                in_ms(hand_over.gap),
                format!("{} of {}", hand_over.lost, hand_over.sent),
                hand_over.doubled.to_string(),
                format!("{} of {}", moves.clients, corridor.clients),
                format!("{} of {silent}", moves.silent),
                in_ms(moves.last),
            ]);
        }
        table
    }

    fn gap_table(&self) -> Table {
        let mut table = table(&[
            "hand-over",
            "real: at",
            "gap",
            "lost",
            "simulated: at",
            "cause",
            "gap",
            "lost",
            "other seeds",
            "",
        ]);
        for compared in self.hand_overs() {
            let Compared { real, same_seed, gaps } = &compared;
            let of =
                |show: fn(&HandOver) -> String| same_seed.as_ref().map_or("–".to_owned(), show);
            let at = |hand_over: &HandOver| format!("{:.2} s", hand_over.at.as_secs_f64());
            let range = match (gaps.first(), gaps.get(gaps.len() / 2), gaps.last()) {
                (Some(min), Some(median), Some(max)) => {
                    format!("{} … {} … {} ms", min.as_millis(), median.as_millis(), max.as_millis())
                }
                _ => "–".to_owned(),
            };
            table.add_row([
                format!("{} → {}", real.from, real.to),
                at(real),
                in_ms(real.gap),
                real.lost.to_string(),
                of(at),
                of(|same| same.cause.clone()),
                of(|same| in_ms(same.gap)),
                of(|same| same.lost.to_string()),
                range,
                compared.verdict().to_owned(),
            ]);
        }
        table
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn in_ms(span: Duration) -> String {
    format!("{} ms", span.as_millis())
}
