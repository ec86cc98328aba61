//! `testbed soak`: every case, and one line about each.

use std::time::Instant;

use anyhow::Result;
use clap::Args;

use super::{Case, CaseReport, SoakPlan};
use crate::arena;
use crate::daemons::programs::Programs;
use crate::screen::Screen;
use crate::topology::line::has_tap_offload;

/// How much is sent.
#[derive(Args, Debug)]
pub struct SoakOptions {
    /// MiB checked in each direction and case
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    mib: u64,
    /// Only cases whose name has this in it, such as "2 hops" or "on/off"
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Runs all cases inside the arena. Fails at the first in which anything was harmed.
pub fn run(options: &SoakOptions) -> Result<()> {
    let start = Instant::now();
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let logs = tempfile::TempDir::new_in(arena::scratch())?;
    let plan = SoakPlan::full(options.mib);
    let screen = Screen::new();
    screen.title("The data path under load, every byte checked");
    screen.dim(&format!(
        "In each case {} MiB each way, iperf3 with {} flows each way, fragments, and changes of \
         the MTU.",
        options.mib, plan.flows
    ));
    let mut all = Case::all(has_tap_offload(&programs)?);
    all.retain(|case| case.name().contains(&options.only));
    for case in &all {
        let report = super::run(&plan, *case, &programs, logs.path())?;
        screen.plain(&line(*case, &report));
    }
    screen.remember("Cases", all.len().to_string());
    let mebibytes = 2 * options.mib * all.len() as u64;
    screen.remember("Bytes checked", format!("{mebibytes} MiB, none harmed"));
    screen.remember("Checksum errors counted by the kernel", "0".to_owned());
    screen.end(start.elapsed())
}

fn line(case: Case, report: &CaseReport) -> String {
    let CaseReport { iperf3, transfers: [up, down], mtu_changes, datagrams } = report;
    format!(
        "✓ {:<38} checked {:>5.0} and {:>5.0} Mbit/s, iperf3 {:>5.0} and {:>5.0}; {mtu_changes} \
         MTUs, {datagrams} datagrams in fragments, {} segments sent again",
        case.name(),
        up.mbit_per_s(),
        down.mbit_per_s(),
        iperf3.bits_per_s / 1e6,
        iperf3.back_bits_per_s / 1e6,
        iperf3.retransmits,
    )
}
