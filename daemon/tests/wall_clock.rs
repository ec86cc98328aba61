//! A running daemon does not look at the time of day, so nobody who sets the clock can disturb it.
//! What it shows to people has a date, and so have the files of a recording. Read by name: what the
//! sources of the daemons and their libraries say.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// Ways to read the time of day, of `std` and of the crates that are linked.
const READS: &[&str] = &[
    "SystemTime::now",
    "CLOCK_REALTIME",
    "ClockId::Realtime",
    "RealtimeCoarse",
    "gettimeofday",
    "libc::time(",
    "UtcTime",
    "LocalTime",
    "OffsetDateTime",
    "chrono::",
];

/// Where it is read: at the start, for the boot count and the age of the client file; for the date
/// of what a control socket shows; for that of a recording, and the age of its files.
const READERS: &[(&str, &str)] = &[
    ("daemon/src/control/keeper.rs", "SystemTime::now"),
    ("daemon/src/recording.rs", "SystemTime::now"),
    ("node_lib/src/runtime/boot.rs", "SystemTime::now"),
    ("recorder/src/segment.rs", "SystemTime::now"),
];

/// What a daemon consists of.
const PACKAGES: &[&str] = &[
    "node_lib",
    "obu_lib",
    "rsu_lib",
    "control_socket",
    "recorder",
    "daemon",
    "obu_bin",
    "rsu_bin",
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_the_start_reads_the_time_of_day() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for package in PACKAGES {
        sources(&root.join(package).join("src"), &mut files);
    }
    assert!(files.len() > 100, "{} files", files.len());
    files.sort();
    let mut readers = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        readers.extend(
            READS.iter().filter(|read| text.contains(**read)).map(|read| (name.to_owned(), *read)),
        );
    }
    let expected: Vec<_> = READERS.iter().map(|(file, read)| ((*file).to_owned(), *read)).collect();
    assert_eq!(readers, expected);
}

/// What reads it is called by what runs before the loop does, and by the thread that writes the
/// client file.
#[test]
fn nothing_in_the_loop_asks_for_what_the_start_reads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for package in PACKAGES {
        sources(&root.join(package).join("src"), &mut files);
    }
    let calls = ["wall_clock()", "time_of_day()", "clock_is_set()"];
    let mut callers: Vec<_> = files
        .iter()
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            calls.iter().any(|call| text.contains(call))
        })
        .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    callers.sort();
    let expected =
        ["daemon/src/start.rs", "node_lib/src/runtime/boot.rs", "node_lib/src/runtime/clients.rs"];
    assert_eq!(callers, expected);
}
