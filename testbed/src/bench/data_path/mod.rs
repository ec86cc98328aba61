//! The system bench: the daemons against the kernel's own cable and against a naive relay, in
//! turns.
//!
//! Absolute figures of one machine say little and drift while it is measured; what holds is how
//! they compare within one run. So every round measures all variants, each round in another order,
//! and figures are medians over rounds with the least and the most beside them. Every run of every
//! round is in the JSON.
//!
//! A round begins with round trips while nothing else happens, over the lines of all variants in
//! turns (`idle.rs`). Then each run starts its programs anew on a
//! [`LineTopology`](crate::topology::line::LineTopology) of fresh namespaces and takes, one after
//! the other: one
//! TCP flow with round trips meanwhile; four TCP flows; UDP with 64 and with 1400 bytes, sent as
//! fast as the stack takes it. All of it shares the machine's cores: senders, receivers and both
//! ends' programs.
//!
//! Some variants answer a question of their own and take part only when [asked
//! for](BenchVariant::chosen): whether a daemon should have one loop or two threads.

mod chart;
pub mod command;
pub mod compare;
mod full_rsu;
mod goals;
mod idle;
pub mod latency;
mod machine;
mod measure;
mod results;
mod table;
mod variant;

pub use full_rsu::FullRsu;
pub use goals::{BenchGoal, GoalStanding, Standard};
pub use measure::{BenchPlan, BenchRun, Idle, Process, RoundTrips};
pub use results::{BenchFigure, BenchResults, FIGURES, RoundSpread};
pub use variant::BenchVariant;

use std::path::Path;

use anyhow::{Result, ensure};

use crate::daemons::programs::Programs;
use crate::topology::line::has_tap_offload;

/// How far the bench is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A round begins.
    Round,
    /// A variant has been measured.
    Run(&'a BenchRun),
    /// All rounds are over; next is the memory of a full road-side unit.
    FullRsu,
}

/// Measures all rounds of a plan, with the variants [chosen](BenchVariant::chosen) by `only`, and a
/// road-side unit full of vehicles. `tell` hears how it goes on.
///
/// # Errors
/// A program is missing, or does not carry frames.
pub fn run(
    plan: &BenchPlan,
    only: &[String],
    logs: &Path,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<BenchResults> {
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let variants = BenchVariant::chosen(has_tap_offload(&programs)?, only);
    ensure!(!variants.is_empty(), "no variant has one of {only:?} in its name");
    let mut runs = Vec::new();
    for round in 1..=plan.rounds {
        tell(Progress::Round);
        let order = in_turn(&variants, round);
        let with_programs = order.iter().map(|variant| (*variant, &programs));
        let idle = idle::measure(plan, with_programs, logs)?;
        for variant in order.into_iter().zip(idle) {
            let run = measure::measure(plan, round, variant, &programs, logs)?;
            tell(Progress::Run(&run));
            runs.push(run);
        }
    }
    tell(Progress::FullRsu);
    let full_rsu = full_rsu::measure(&programs, plan.vehicles, plan.clients, logs)?;
    Ok(BenchResults { variants, runs, full_rsu })
}

/// The variants in another order each round: each begins once, and two of four rounds go backwards.
/// (Were it every second, two variants would always have the same order.)
fn in_turn<T: Clone>(variants: &[T], round: usize) -> Vec<T> {
    let mut order = variants.to_vec();
    let turn = round % order.len().max(1);
    order.rotate_left(turn);
    if round % 4 >= 2 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_all_variants_and_no_two_the_same_order() {
        let variants = BenchVariant::all(true);
        let orders: Vec<_> = (1..=variants.len()).map(|round| in_turn(&variants, round)).collect();
        for (n, order) in orders.iter().enumerate() {
            assert!(variants.iter().all(|variant| order.contains(variant)), "{order:?}");
            assert_eq!(order.len(), variants.len());
            assert!(!orders[..n].contains(order), "round {n}: {order:?}");
        }
    }

    #[test]
    fn of_two_variants_each_begins_as_often_as_the_other() {
        let begins = |round| in_turn(&BenchVariant::LOOPS, round)[0];
        let first = (1..=8).filter(|round| begins(*round) == BenchVariant::LOOPS[0]).count();
        assert_eq!(first, 4);
    }
}
