//! A daemon that panics, in its own process.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use node_lib::messages::control::Control;
use tempfile::TempDir;
use testbed::{Programs, Testbed, TestbedNode};

use super::{PATIENCE, PROBE_EVERY, Pair, control_in, reaches};
use crate::beds::with_logs;
use crate::preload::Told;

/// From the end of the one process to the first answer through the next (row F23).
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// `RestartSec` of the units: it counts as well.
const RESTARTED_AFTER: Duration = Duration::from_secs(1);

/// F23: the packet loop panics in its midst, in what logs for it. The process ends with what the
/// panic says, and without a goodbye; what it recorded is whole; whoever started it starts it
/// again.
pub(super) fn a_daemon_that_panics() -> Result<()> {
    for is_rsu in [false, true] {
        let mut bed = Testbed::new(1)?;
        let pair = Pair::add_to(&mut bed)?;
        let recordings = TempDir::new_in(testbed::arena::scratch())?;
        let of = |node: &TestbedNode| recordings.path().join(node.name());
        for node in [&pair.obu, &pair.rsu] {
            std::fs::create_dir(of(node))?;
            let flag = ["--record".to_owned(), of(node).display().to_string()];
            node.extra_args.borrow_mut().extend(flag);
        }
        let (node, other) = if is_rsu { (&pair.rsu, &pair.obu) } else { (&pair.obu, &pair.rsu) };
        let told = Told::faster(node, 1)?;
        with_logs(bed, |bed| {
            bed.start_all()?;
            reaches(&pair)?;
            told.panics(true)?;
            // It logs its counters.
            node.daemon()?.signal(Signal::SIGUSR1)?;
            let status = node.wait(PATIENCE)?;
            told.panics(false)?;
            // On-failure restarts who ends so.
            ensure!(status.signal() == Some(Signal::SIGABRT as i32), "{status}");
            let said = std::fs::read_to_string(node.log_path())?;
            let is_told = said.contains(" panicked at ") && said.contains("InvalidInput");
            ensure!(is_told, "it does not say so");
            let files = files(&of(node))?;
            ensure!(!files.is_empty(), "nothing was recorded");
            for file in &files {
                let what = Command::new(Programs::find()?.v2xctl)
                    .args(["trace", "info"])
                    .arg(file)
                    .output()?;
                let told = String::from_utf8_lossy(&what.stdout);
                ensure!(what.status.success(), "{}: {told}", file.display());
                ensure!(file.extension().is_some_and(|end| end == "v2xr"), "{}", file.display());
            }
            let mut kept = std::fs::read_dir(of(node).join(recorder::segment::FROZEN))?;
            let is_kept = |moment: std::io::Result<std::fs::DirEntry>| {
                moment.is_ok_and(|one| one.file_name().to_string_lossy().ends_with("-panic"))
            };
            ensure!(kept.any(is_kept), "the moment was not kept");
            std::thread::sleep(RESTARTED_AFTER);
            node.start()?;
            let probes = reaches(&pair)?;
            println!("    {}: {probes} probes", node.name());
            let left = (BACK_WITHIN - RESTARTED_AFTER).as_millis() / PROBE_EVERY.as_millis();
            ensure!(u128::from(probes) <= left, "{}: {probes} probes", node.name());
            other.stop()?;
            node.stop()
        })?;
        let heard = goodbyes_in(&files(&of(other))?)?;
        ensure!(heard == 0, "{} heard {heard} goodbyes of one that panicked", other.name());
        // Otherwise that would say nothing.
        ensure!(goodbyes_in(&files(&of(node))?)? > 0, "{} heard no goodbye at all", node.name());
    }
    Ok(())
}

/// What a node recorded.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.is_file());
    Ok(files)
}

/// How many goodbyes there are in these recordings.
fn goodbyes_in(recordings: &[PathBuf]) -> Result<usize> {
    let mut heard = 0;
    for file in recordings {
        control_in(file, |_, said| {
            heard += usize::from(match said {
                Control::HeartbeatReply(reply) => reply.goodbye,
                Control::Withdrawal(withdrawal) => withdrawal.goodbye,
                _ => false,
            });
        })?;
    }
    Ok(heard)
}
