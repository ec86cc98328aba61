//! Real daemons with `--record`: a drive with traffic, a fail-over and a killed vehicle is replayed
//! to the byte.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use recorder::read::{Item, ReadError, Recording};
use recorder::record::What;
use recorder::replay;
use testbed::probe::{PingStream, transfer};
use testbed::{Testbed, TestbedNode, wait_until};

use crate::beds::{self, Fork, with_logs};
use crate::harness::{Area, ms};

pub(crate) const AREA: Area = Area {
    name: "recording",
    alone: &[],
    together: &[
        ("a_drive_is_replayed_to_the_byte", a_drive_is_replayed),
        ("a_disk_that_is_full_costs_no_frame", a_full_disk_costs_no_frame),
    ],
};

const PATIENCE: Duration = Duration::from_secs(10);

/// How the names of recordings end.
fn recordings(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn record(node: &TestbedNode, directory: &Path) {
    let flag = ["--record".to_owned(), directory.display().to_string()];
    node.extra_args.borrow_mut().extend(flag);
}

/// A vehicle behind two relays. TCP runs both ways, then the relay in use dies. All four are
/// recorded, the one that is killed too.
fn a_drive_is_replayed() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Fork { server, rsu, relays, obu } = beds::fork(&mut bed)?;
    let directory = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let [left, right] = &relays;
    for node in [&rsu, left, right, &obu] {
        let place = directory.path().join(node.name());
        std::fs::create_dir(&place)?;
        record(node, &place);
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        let ping = PingStream::start(&obu.host.ns, server.v4, ms(10))?;
        wait_until("a ping is answered", PATIENCE, || Ok((ping.received() > 0).then_some(())))?;
        transfer(&obu.host.ns, &server.ns, server.v4, 4_000_000).context("TCP up")?;
        transfer(&server.ns, &obu.host.ns, obu.host.v4, 4_000_000).context("TCP down")?;
        let used = if obu.sends_through(left)? { left } else { right };
        used.kill()?;
        let before = ping.received();
        wait_until("pings are answered again", PATIENCE, || {
            Ok((ping.received() > before + 20).then_some(()))
        })?;
        std::thread::sleep(ms(1500));
        // The others end as they should.
        obu.stop()?;
        rsu.stop()?;
        let stays = if std::ptr::eq(used, left) { right } else { left };
        stays.stop()
    })?;
    for node in [&rsu, left, right, &obu] {
        let files = recordings(&directory.path().join(node.name()))?;
        let recording = Recording::open(&files)?;
        let outcome = replay::replay(&recording)?;
        if let Some(difference) = outcome.difference {
            return Err(anyhow!("{}: {difference}", node.name()));
        }
        // A `.part` may end anywhere.
        let was_killed = files.iter().any(|file| file.extension().is_some_and(|e| e == "part"));
        ensure!(was_killed || outcome.ended.is_none(), "{}: {:?}", node.name(), outcome.ended);
        ensure!(outcome.outputs > 100, "{}: only {} outputs", node.name(), outcome.outputs);
        println!(
            "    {}: {} inputs, {} outputs the same",
            node.name(),
            outcome.inputs,
            outcome.outputs
        );
    }
    // The vehicle left an upstream: what led to it is kept.
    let kept = directory.path().join(obu.name()).join(recorder::segment::FROZEN);
    let moments: Vec<_> = std::fs::read_dir(&kept).context("kept moments")?.collect();
    ensure!(!moments.is_empty(), "no moment was kept");
    for moment in moments {
        let mut left_upstream = 0;
        Recording::open(&[moment?.path()])?.read(|item| {
            if let Item::Record(record) = item {
                left_upstream += u32::from(matches!(record.what, What::Event(_)));
            }
            Ok::<_, ReadError>(true)
        })?;
        ensure!(left_upstream > 0, "a moment without an event");
    }
    Ok(())
}

/// The directory is a file system of 256 KiB: pings pass, and the log says once that the recording
/// does not.
fn a_full_disk_costs_no_frame() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    let directory = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    // The arena has a mount namespace of its own.
    nix::mount::mount(
        Some("recordings"),
        directory.path(),
        Some("tmpfs"),
        nix::mount::MsFlags::empty(),
        Some("size=256k"),
    )
    .context("mount a tmpfs")?;
    record(&obu, directory.path());
    let result = with_logs(bed, |bed| {
        bed.start_all()?;
        let ping = PingStream::start(&obu.host.ns, server.v4, ms(5))?;
        wait_until("a ping is answered", PATIENCE, || Ok((ping.received() > 0).then_some(())))?;
        transfer(&obu.host.ns, &server.ns, server.v4, 4_000_000).context("TCP up")?;
        let full = "the recording cannot be written: records are lost until it can";
        obu.daemon()?.wait_for_event(full, PATIENCE, |_| true)?;
        transfer(&server.ns, &obu.host.ns, obu.host.v4, 4_000_000).context("TCP down")?;
        let before = ping.received();
        wait_until("pings are still answered", PATIENCE, || {
            Ok((ping.received() > before + 50).then_some(()))
        })?;
        let said = obu.times_logged(full)?;
        ensure!(said == 1, "it is said {said} times");
        obu.stop()?;
        let log = std::fs::read_to_string(obu.log_path())?;
        let ended = log.lines().find(|line| line.contains("recording ended"));
        let counted = ended.context("no word at the end")?;
        ensure!(counted.contains("lost_on_disk="), "{counted}");
        Ok(())
    });
    nix::mount::umount2(directory.path(), nix::mount::MntFlags::MNT_DETACH)?;
    result
}
