//! How a campaign ended: which rules were broken and how to see that again, and the exit code.

use std::process::ExitCode;

use simulator::campaign::{Campaign, Outcome};
use simulator::measure::Broken;
use simulator::scenario::Override;

use super::BROKEN;
use super::stop::Stop;
use crate::args::Chosen;

/// Says on standard error why runs are missing, and returns the exit code: what was asked by signal
/// before what the runs said.
pub(super) fn conclude(
    chosen: &Chosen,
    campaign: &Campaign,
    outcomes: &[Outcome],
    stop: &Stop,
) -> ExitCode {
    let changes = |variant: usize| campaign.variants.get(variant).map(|v| v.changes.as_slice());
    let broken: Vec<(&Outcome, &Broken)> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.result.as_ref().err()?)))
        .collect();
    for (index, (outcome, broken)) in broken.iter().take(SHOWN_MAX).enumerate() {
        // What led to it, of one: the others can be seen again.
        match index {
            0 => eprintln!("{}", broken.violation),
            _ => eprintln!("{}", broken.violation.in_a_line()),
        }
        let changes = changes(outcome.variant).unwrap_or_default();
        eprintln!("to see it again:\n  {}", again(chosen, changes, outcome.seed));
    }
    if let Some(more @ 1..) = broken.len().checked_sub(SHOWN_MAX) {
        eprintln!("and {more} more runs broke a rule; --json FILE names them all");
    }
    let planned: usize = (0..campaign.variants.len()).map(|v| campaign.planned(v)).sum();
    exit_code(stop, "run", planned, outcomes.len(), !broken.is_empty())
}

/// Says on standard error why some of what was planned is missing, and returns the exit code.
/// `what` is one of them.
pub(super) fn exit_code(
    stop: &Stop,
    what: &str,
    planned: usize,
    finished: usize,
    is_broken: bool,
) -> ExitCode {
    let missing = planned.saturating_sub(finished);
    let are_missing = |one: &str, several: &str| {
        let s = if planned == 1 { "" } else { "s" };
        format!("{missing} of {planned} {what}{s} {}", if missing == 1 { one } else { several })
    };
    match stop.exit_code() {
        Some(code) => {
            eprintln!("interrupted: {}", are_missing("was not finished", "were not finished"));
            code
        }
        None if missing > 0 => {
            let what = are_missing("is missing", "are missing");
            eprintln!("{what}: the simulator panicked, see above");
            ExitCode::from(BROKEN)
        }
        None if is_broken => ExitCode::from(BROKEN),
        None => ExitCode::SUCCESS,
    }
}

/// Broken runs that are named.
const SHOWN_MAX: usize = 10;

/// The command that makes one run again.
fn again(chosen: &Chosen, changes: &[Override], seed: u64) -> String {
    let mut words = vec![format!("v2xsim run {}", quoted(&chosen.file.display().to_string()))];
    let set = chosen.set.iter().chain(changes);
    words.extend(set.map(|change| format!("--set {}", quoted(&change.to_string()))));
    if let Some(file) = &chosen.mobility {
        words.push(format!("--mobility {}", quoted(&file.display().to_string())));
    }
    words.push(format!("--seed {seed} --seeds 1 --trace trace.txt"));
    words.join(" ")
}

/// As a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
