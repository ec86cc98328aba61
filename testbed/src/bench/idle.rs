//! Round trips while nothing else happens, of all variants at the same time.
//!
//! A program that waits for frames sleeps, and so does its core. How long that takes to wake up changes within
//! seconds on a machine that is itself a guest, and by more than the variants differ. So all their lines are up at
//! once, and asked in turns for a fraction of a second each: whatever changes, changes for all.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::measure::{PING_EVERY, Plan, RoundTrips};
use super::variant::Variant;
use crate::line::ROAD_V4;
use crate::probe::Ping;
use crate::programs::Programs;

/// Turns of each variant.
const TURNS: u32 = 20;

/// Asks over the lines of all variants, and tells of each in their order.
pub(super) fn measure(
    plan: &Plan,
    variants: &[Variant],
    programs: &Programs,
    logs: &Path,
) -> Result<Vec<RoundTrips>> {
    let mut lines = Vec::new();
    for (number, variant) in variants.iter().enumerate() {
        let name = variant.name();
        // Places of two lines have the same names, and so have their logs.
        let logs = logs.join(format!("idle-{number}"));
        std::fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        let line = variant.set_up(programs, &logs);
        lines.push((line.with_context(|| format!("start of {name}"))?, Answers::default()));
    }
    for _ in 0..TURNS {
        for (line, answers) in &mut lines {
            let count = plan.pings.div_ceil(TURNS);
            let ping = Ping::count(&line.vehicle, ROAD_V4, count, PING_EVERY)?;
            answers.sent += ping.sent;
            answers.delays.extend(ping.delays);
        }
    }
    Ok(lines.into_iter().map(|(_, answers)| answers.into()).collect())
}

/// All that was heard over one line.
#[derive(Default)]
struct Answers {
    sent: u64,
    delays: Vec<Duration>,
}

impl From<Answers> for RoundTrips {
    fn from(answers: Answers) -> Self {
        let Answers { sent, mut delays } = answers;
        delays.sort_unstable();
        let at = |share: usize| delays.get(delays.len() * share / 100).copied().unwrap_or_default();
        Self {
            p50_us: at(50).as_secs_f64() * 1e6,
            p99_us: at(99).as_secs_f64() * 1e6,
            sent,
            lost: sent - (delays.len() as u64).min(sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_turns_are_one_sample() {
        let delays = (1..=200).rev().map(Duration::from_micros).collect();
        let RoundTrips { p50_us, p99_us, sent, lost } = Answers { sent: 203, delays }.into();
        assert_eq!((p50_us.round(), p99_us.round(), sent, lost), (101.0, 199.0, 203, 3));
    }
}
