//! Round trips while nothing else happens, of all variants at the same time.
//!
//! A program that waits for frames sleeps, and so does its core. How long that takes to wake up
//! changes within seconds on a machine that is itself a guest, and by more than the variants
//! differ. So all their lines are up at once, and asked in turns for a fraction of a second each:
//! whatever changes, changes for all.

use std::path::Path;

use anyhow::{Context, Result};

use super::measure::{BenchPlan, Idle, PING_EVERY, costs};
use super::variant::BenchVariant;
use crate::daemons::programs::Programs;
use crate::probe::{PingReport, PingStream};
use crate::topology::line::{LineTopology, ROAD_V4};

/// Turns of each variant.
const TURNS: u32 = 20;

/// Asks over the lines of all variants, each with its programs, and tells of each in their order.
pub(super) fn measure<'a>(
    plan: &BenchPlan,
    variants: impl IntoIterator<Item = (BenchVariant, &'a Programs)>,
    logs: &Path,
) -> Result<Vec<Idle>> {
    let mut lines = Vec::new();
    for (number, (variant, programs)) in variants.into_iter().enumerate() {
        let name = variant.name();
        // Places of two lines have the same names, and so have their logs.
        let logs = logs.join(format!("idle-{number}"));
        std::fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        let line = variant.set_up(programs, &logs);
        lines.push((line.with_context(|| format!("start of {name}"))?, Vec::new(), 0));
    }
    for _ in 0..TURNS {
        for (line, turns, cpu_ns) in &mut lines {
            let count = plan.pings.div_ceil(TURNS);
            let before = spent(line)?;
            turns.push(PingStream::count(&line.vehicle, ROAD_V4, count, PING_EVERY)?);
            *cpu_ns += spent(line)? - before;
        }
    }
    let told = lines.into_iter().map(|(_, turns, cpu_ns)| {
        let round_trips = together(turns).into();
        Idle { round_trips, cpu_ns }
    });
    Ok(told.collect())
}

/// Processor time of all programs on a line, nanoseconds.
fn spent(line: &LineTopology) -> Result<u64> {
    Ok(costs(line)?.iter().map(|cost| cost.cpu_ns).sum())
}

/// All turns of one line as one sample.
fn together(turns: Vec<PingReport>) -> PingReport {
    let (sent, lost) =
        turns.iter().fold((0, 0), |(sent, lost), turn| (sent + turn.sent, lost + turn.lost));
    let mut delays: Vec<_> = turns.into_iter().flat_map(|turn| turn.delays).collect();
    delays.sort_unstable();
    PingReport { sent, lost, delays, ..PingReport::default() }
}

#[cfg(test)]
mod tests {
    use super::super::measure::RoundTrips;
    use super::*;
    use std::time::Duration;

    #[test]
    fn answers_of_all_turns_are_one_sample() {
        let turn = |sent, lost, delays: std::ops::RangeInclusive<u64>| PingReport {
            sent,
            lost,
            delays: delays.map(Duration::from_micros).collect(),
            ..PingReport::default()
        };
        let turns = vec![turn(102, 2, 101..=200), turn(101, 1, 1..=100)];
        let RoundTrips { p50_us, p99_us, sent, lost } = together(turns).into();
        assert_eq!((p50_us.round(), p99_us.round(), sent, lost), (101.0, 199.0, 203, 3));
    }
}
