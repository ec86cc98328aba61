//! What happens to a recording when its process ends as it should not, and when its disk is full:
//! with real processes.
//!
//! This program is also the process that is ended.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "recorder/common.rs"]
mod common;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use node_lib::Timestamp;
use node_lib::control::node::{Node, Replies};
use recorder::read::{ReadError, Recording};
use recorder::record::What;
use recorder::segment::{FROZEN, Limits, Ring};
use recorder::{Recorded, Recorder, Tape};

/// What a child is to do, and where.
const CHILD: &str = "RECORDER_TEST_CHILD";
const DIRECTORY: &str = "RECORDER_TEST_DIRECTORY";

fn main() -> ExitCode {
    if let Ok(job) = std::env::var(CHILD) {
        let directory = std::env::var(DIRECTORY).unwrap();
        child(&job, Path::new(&directory));
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, test: fn() -> Result<(), Failed>| Trial::test(name, test);
    let trials = vec![
        trial("kill_9_at_any_moment_leaves_every_whole_block", kill_9),
        trial("a_full_disk_is_counted_and_survived", full_disk),
        trial("a_panic_saves_what_led_to_it", panics),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn recorder(directory: &Path, limits: Limits) -> Recorder {
    let ring = Ring::open(directory, common::header(), limits).unwrap();
    Recorder::start_into(ring, 0, 4 << 20, 16 << 10).unwrap()
}

/// The bytes of the `n`-th frame.
fn frame(n: u64) -> [u8; 256] {
    std::array::from_fn(|at| (n as u8).wrapping_mul(31).wrapping_add(at as u8))
}

fn put(tap: &Tape, n: u64) {
    tap.from_radio(Timestamp::from_micros(n), &frame(n));
}

fn child(job: &str, directory: &Path) {
    match job {
        // Until it is killed. What it knows to be on disk it says.
        "write" => {
            let recorder = recorder(directory, Limits { bytes: 8 << 20, ..Limits::default() });
            recorder.be_patient();
            let (tap, handle) = (recorder.tap(), recorder.handle());
            for n in 0.. {
                put(&tap, n);
                if n % 64 == 0 {
                    println!("{}", handle.stats().blocks);
                }
            }
        }
        "fill" => {
            let recorder = recorder(directory, Limits::default());
            let (tap, handle) = (recorder.tap(), recorder.handle());
            let mut n = 0;
            let mut write_until = |what: &str, is_done: &dyn Fn() -> bool| {
                for _ in 0..200_000 {
                    put(&tap, n);
                    n += 1;
                    // As fast as a busy radio, not as fast as memory.
                    if n % 100 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if is_done() {
                        return;
                    }
                }
                panic!("never {what}: {:?}", handle.stats());
            };
            write_until("full", &|| handle.stats().write_errors >= 3);
            let full = handle.stats();
            // Somebody tidies up.
            std::fs::remove_file(directory.join("ballast")).unwrap();
            write_until("written again", &|| handle.stats().blocks >= full.blocks + 3);
            let stats = recorder.finish();
            println!("{} {} {}", stats.records, stats.lost, stats.lost_on_disk);
        }
        "panic" => {
            let recorder = recorder(directory, Limits::default());
            // Whatever was recorded before is over.
            std::fs::create_dir(directory.join("before")).unwrap();
            let before = self::recorder(&directory.join("before"), Limits::default());
            let guard = recorder::PanicGuard::install();
            guard.watch(Some(&before));
            guard.watch(Some(&recorder));
            before.finish();
            let tap = recorder.tap();
            (0..99).for_each(|n| put(&tap, n));
            // What came before is in hand, in the midst of a turn; this frame the hook writes.
            let breaks = common::Hears::new(|_, _| panic!("as planned"));
            let mut node = Recorded::new(breaks, Some(tap));
            // As the daemons do, which are built with `panic = "abort"`.
            let after = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                after(panic);
                std::process::abort();
            }));
            node.handle_wire(Timestamp::from_micros(99), &frame(99), &mut Replies::new());
        }
        other => panic!("no such job: {other}"),
    }
}

fn start(job: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(CHILD, job).env(DIRECTORY, directory).stdin(Stdio::null());
    command
}

/// `RECORDER_KILLS`: how often, instead of the quick number.
fn kills() -> u64 {
    let text = std::env::var("RECORDER_KILLS").ok();
    text.map_or(20, |text| text.parse().expect("RECORDER_KILLS: a number"))
}

fn kill_9() -> Result<(), Failed> {
    let (mut torn, mut records_sum) = (0, 0);
    for round in 0..kills() {
        let directory = tempfile::tempdir()?;
        let mut child = start("write", directory.path()).stdout(Stdio::piped()).spawn()?;
        // At random moments: after another number of words each time, and whatever the scheduler
        // adds.
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut blocks) = (String::new(), 0u64);
        for _ in 0..(round * 7919) % 1500 + 1 {
            line.clear();
            said.read_line(&mut line)?;
            blocks = line.trim().parse()?;
        }
        child.kill()?;
        child.wait()?;
        // What it had said before it was killed, too.
        let mut rest = String::new();
        said.read_to_string(&mut rest)?;
        blocks = rest.lines().filter_map(|line| line.parse().ok()).next_back().unwrap_or(blocks);
        let files = common::files(directory.path());
        // Killed between making its first file and writing the header.
        if blocks == 0 && matches!(Recording::open(&files), Err(ReadError::NotBegun(_))) {
            continue;
        }
        let (records, reports) = common::read(&files);
        let first = reports[0].missing;
        let read: u64 = reports.iter().map(|report| report.blocks).sum();
        if first + read < blocks {
            return Err(format!(
                "round {round}: {blocks} blocks were on disk, {first} removed by \
                                the ring, {read} read"
            )
            .into());
        }
        let (holes, faults): (Vec<_>, Vec<_>) = reports
            .iter()
            .enumerate()
            .map(|(index, report)| (index > 0 && report.missing > 0, report.fault.is_some()))
            .unzip();
        // Only the last file may end in the middle of a block.
        if holes.contains(&true) || faults.iter().rev().skip(1).any(|fault| *fault) {
            return Err(format!("round {round}: {reports:?}").into());
        }
        torn += u64::from(faults.contains(&true));
        records_sum += records.len();
        let begin = records.first().map_or(0, |record| record.at.as_micros());
        for (n, record) in (begin..).zip(&records) {
            let bytes = &record.what.frame().unwrap().bytes;
            if record.at.as_micros() != n || **bytes != frame(n) {
                return Err(format!("round {round}: record {n} is another: {record:?}").into());
            }
        }
    }
    println!("{} kills, {torn} in the middle of a block, {records_sum} records restored", kills());
    Ok(())
}

/// On a file system of 1 MiB of its own, in a mount namespace that ends with the child.
fn full_disk() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let script = "mount -t tmpfs -o size=1m recorder \"$RECORDER_TEST_DIRECTORY\" \
                  && head -c 600000 /dev/zero > \"$RECORDER_TEST_DIRECTORY/ballast\" && \"$0\" \
                  && cp \"$RECORDER_TEST_DIRECTORY\"/*.v2xr \"$RECORDER_TEST_KEEP\"";
    let keep = tempfile::tempdir()?;
    let out = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe()?)
        .env(CHILD, "fill")
        .env(DIRECTORY, directory.path())
        .env("RECORDER_TEST_KEEP", keep.path())
        .output()
        .map_err(|error| format!("unshare (util-linux) is needed: {error}"))?;
    let (said, failed) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if !out.status.success() {
        return Err(format!("{}\n{said}{failed}", out.status).into());
    }
    let numbers: Vec<u64> = said.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let [records, lost, lost_on_disk] = numbers[..] else {
        return Err(format!("{said}{failed}").into());
    };
    let (read, reports) = common::read(&common::files(keep.path()));
    let holes: u64 = reports.iter().map(|report| report.missing).sum();
    if lost_on_disk == 0 || holes < 3 || reports.iter().any(|report| report.fault.is_some()) {
        return Err(format!("{numbers:?} {reports:?}").into());
    }
    let frames = read.iter().filter(|record| matches!(record.what, What::FromRadio(_))).count();
    // Each is on disk or counted.
    if lost != 0 || frames as u64 + lost_on_disk != records {
        return Err(format!("{numbers:?}, {frames} frames read").into());
    }
    Ok(())
}

fn panics() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let out = start("panic", directory.path()).output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    if out.status.success() || !said.contains("as planned") {
        return Err(format!("it did not panic: {said}").into());
    }
    for place in [directory.path().to_owned(), kept(&directory.path().join(FROZEN))?] {
        let (records, reports) = common::read(&common::files(&place));
        if records.len() != 100 || reports[0].fault.is_some() {
            return Err(format!("{}: {reports:?}", place.display()).into());
        }
    }
    Ok(())
}

/// The one moment in there, which must be because of a panic.
fn kept(directory: &Path) -> Result<std::path::PathBuf, Failed> {
    let kept: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    match &kept[..] {
        [one] if one.file_name().to_string_lossy().ends_with("-panic") => Ok(one.path()),
        other => Err(format!("{other:?}").into()),
    }
}
