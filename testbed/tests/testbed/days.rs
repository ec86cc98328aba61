//! A long life in a minute, and that what is planted in it is found.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use sim::Role;
use testbed::endurance::days::fault::{FaultKind, Script, Targets};
use testbed::endurance::days::report::DaysReport;
use testbed::endurance::days::{self, DaysPlan};
use testbed::{Programs, Quality, arena};

use crate::harness::{Area, ms};

pub(crate) const AREA: Area = Area {
    name: "days",
    alone: &[("planted_daemons_and_links_are_found", planted_daemons_and_links_are_found)],
    together: &[
        ("a_life_of_a_minute_breaks_nothing", a_life_of_a_minute_breaks_nothing),
        ("a_way_that_never_comes_back_is_found", a_way_that_never_comes_back_is_found),
    ],
};

/// Each kind of fault twice or more. `make days` is the long form.
fn a_life_of_a_minute_breaks_nothing() -> Result<()> {
    let stall_max = ms(3000);
    let report = run(&DaysPlan { stall_max, ..DaysPlan::new(SEED, Duration::from_secs(75)) })?;
    println!("\n{}", report.text());
    if let Some(complaint) = report.complaint() {
        return Err(anyhow!("{complaint}\n{}", report.logs));
    }
    for kind in FaultKind::ALL {
        ensure!(report.faults.contains_key(&kind), "there was no {}", kind.name());
    }
    Ok(())
}

/// Instead of each daemon a program that starts it and does something no daemon may; over links
/// that flip bits.
fn planted_daemons_and_links_are_found() -> Result<()> {
    let programs = Programs::find()?;
    let mischief = [
        ("rsu1", "dies", "((ticks > 30)) && { kill -KILL $child; exit 1; }"),
        ("rsu2", "leaks", "exec {leak}</dev/null"),
        ("obu1", "errs", "((ticks == 5)) && echo '{\"level\":\"ERROR\"}' >&2; after=3"),
        ("obu2", "storms", "for n in {1..200}; do echo '{\"level\":\"INFO\"}' >&2; done"),
        ("obu3", "burns", "for ((n = 0; n < 30000; n++)); do :; done"),
    ];
    let mut plan = DaysPlan::new(SEED, Duration::from_secs(15));
    plan.quality = Quality { corrupt: 0.02, ..Quality::default() };
    for (index, (node, name, body)) in mischief.iter().enumerate() {
        let real = if node.starts_with("rsu") { &programs.rsu } else { &programs.obu };
        plan.planted.insert(index, wrapper(name, real, body)?);
    }
    let report = run(&plan)?;
    let broken = report.broken.join("\n");
    for found in [
        "rsu1 ended with exit status: 1",
        "descriptors, ",
        "obu1: {\"level\":\"ERROR\"}",
        "ended with exit status: 3",
        "lines logged, ",
        "% of a core at rest",
        "arrived with other bytes than were sent",
        "drop_malformed=",
    ] {
        ensure!(broken.contains(found), "not found: {found}\n{broken}");
    }
    Ok(())
}

fn a_way_that_never_comes_back_is_found() -> Result<()> {
    let roles = vec![Role::Rsu, Role::Rsu, Role::Obu, Role::Obu, Role::Obu];
    let targets = Targets { roles, elders: vec![1, 2], links: 7 };
    let stall_max = ms(1000);
    let is_partition = |seed: &u64| {
        let first = Script::new(*seed, targets.clone(), stall_max).next_round();
        matches!(first[..], [only] if only.kind == FaultKind::Partition)
    };
    let seed = (1..1000).find(is_partition).ok_or_else(|| anyhow!("no such script"))?;
    let plan =
        DaysPlan { never_heals: true, stall_max, ..DaysPlan::new(seed, Duration::from_secs(1)) };
    let report = run(&plan)?;
    let found = "all RSUs out of reach (everywhere";
    let first = report.broken.first().cloned().unwrap_or_default();
    ensure!(first.starts_with(found), "{:?}", report.broken);
    ensure!(first.contains("no traffic to host1, from host1, to host2"), "{first}");
    let complaint = report.complaint().unwrap_or_default();
    ensure!(complaint.ends_with(&format!("--seed {seed} --seconds 1")), "{complaint}");
    Ok(())
}

const SEED: u64 = 14;

fn run(plan: &DaysPlan) -> Result<DaysReport> {
    let programs = Programs::find()?;
    programs.require_daemons()?;
    days::run(plan, &programs, &mut |_, _| ())
}

/// A program that runs a daemon, does something ten times a second, and passes SIGTERM on.
fn wrapper(name: &str, real: &Path, body: &str) -> Result<PathBuf> {
    let path = arena::scratch().join(name);
    let real = real.display();
    let text = format!(
        "#!/bin/bash\n\
         setpriv --pdeathsig KILL {real} \"$@\" &\n\
         child=$! ticks=0 after=0\n\
         trap 'kill -TERM $child; wait $child; exit $after' TERM\n\
         trap 'kill -USR1 $child' USR1\n\
         while kill -0 $child 2>/dev/null; do\n\
           ((ticks += 1))\n\
           {body}\n\
           sleep 0.1 & wait $!\n\
         done\n\
         wait $child\n"
    );
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
