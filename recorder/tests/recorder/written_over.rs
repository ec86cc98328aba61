//! A full ring: the oldest file becomes the newest, and nobody takes what it held before for a part
//! of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use node_lib::Timestamp;
use recorder::block::{BlockKind, Head};
use recorder::encode;
use recorder::record::{Record, What};
use recorder::segment::{FROZEN, Limits, Ring, Store};
use recorder::tape::FreezeCause;

use crate::common;

/// Eight files of 128 KiB, with blocks of 9,000 to 10,000 bytes: they never begin where one was.
const LIMITS: u64 = 1 << 20;
const FILE: u64 = LIMITS / 8;
const FRAME: usize = 9000;

/// The writer, block by block.
struct Writer {
    ring: Ring,
    blocks: u64,
}

impl Writer {
    fn open(directory: &Path) -> Self {
        let limits = Limits { bytes: LIMITS, ..Limits::default() };
        Self { ring: Ring::open(directory, common::header(), limits).unwrap(), blocks: 0 }
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            let at = Timestamp::from_millis(self.blocks);
            let frame = vec![self.blocks as u8; FRAME + (self.blocks * 37 % 1000) as usize];
            let mut payload = Vec::new();
            let record = Record { at, what: What::FromRadio((&frame[..]).into()) };
            encode::record(&mut payload, at, &record);
            let sequence = self.blocks;
            let head = Head { kind: BlockKind::Records, records: 1, sequence, first: at, last: at };
            self.ring.write(&head.emit(&payload), &payload, at).unwrap();
            self.blocks += 1;
        }
    }

    /// Until a file has just been begun over an older one.
    fn fill(&mut self, directory: &Path) {
        let begun = |files: &[PathBuf]| files.last().cloned();
        self.write(2 * LIMITS / FRAME as u64);
        let last = begun(&common::files(directory));
        while begun(&common::files(directory)) == last {
            self.write(1);
        }
    }
}

/// Times of the records in these files, in milliseconds, and whether all was in order.
fn read(paths: &[PathBuf]) -> (Vec<u64>, bool) {
    let (records, reports) = common::read(paths);
    let times = records.iter().map(|record| {
        let millis = record.at.as_micros() / 1000;
        let bytes = &record.what.frame().unwrap().bytes;
        assert!(bytes.iter().all(|byte| *byte == millis as u8), "{millis}");
        millis
    });
    (times.collect(), reports.iter().all(|report| report.fault.is_none()))
}

fn inodes(files: &[PathBuf]) -> BTreeSet<u64> {
    files.iter().map(|file| file.metadata().unwrap().ino()).collect()
}

#[test]
fn a_full_ring_asks_for_no_more_room_and_reads_as_if_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path());
    writer.fill(directory.path());
    let before = inodes(&common::files(directory.path()));
    // At every stage of a file on its way over another.
    for _ in 0..100 {
        let files = common::files(directory.path());
        let (times, is_whole) = read(&files);
        let wanted: Vec<_> = (times[0]..writer.blocks).collect();
        assert_eq!((times, is_whole), (wanted, true));
        // The one that grows alone, too.
        let (times, is_whole) = read(&files[files.len() - 1..]);
        assert!(is_whole && times.len() as u64 <= FILE / FRAME as u64, "{times:?}");
        assert_eq!(times.last(), Some(&(writer.blocks - 1)));
        let sum: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!(sum <= LIMITS && sum > LIMITS / 2, "{sum} bytes");
        writer.write(1);
    }
    let files = common::files(directory.path());
    assert_eq!(inodes(&files), before, "they are the same files all the time");
    assert!(writer.ring.tick().0 > 10, "an old file that is written over is gone");
    writer.ring.close();
    let files = common::files(directory.path());
    assert!(files.iter().all(|file| file.extension().unwrap() == "v2xr"), "{files:?}");
    let (times, is_whole) = read(&files);
    assert_eq!(times.last(), Some(&(writer.blocks - 1)));
    assert!(is_whole, "what a finished file held before is cut off");
}

#[test]
fn what_is_kept_is_not_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path());
    writer.write(30);
    writer.ring.freeze(FreezeCause::Panic, Timestamp::from_millis(29));
    let frozen = fs::read_dir(directory.path().join(FROZEN)).unwrap().next().unwrap();
    let kept = common::files(&frozen.unwrap().path());
    writer.fill(directory.path());
    writer.fill(directory.path());
    assert_eq!(read(&kept), ((0..30).collect(), true));
}

/// What somebody else put in place of an old file is not written to, and goes as it did before.
#[test]
fn nothing_is_written_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, vec![1; FILE as usize]).unwrap();
    let mut writer = Writer::open(directory.path());
    writer.fill(directory.path());
    let oldest = &common::files(directory.path())[1];
    assert!(oldest.to_string_lossy().contains("obu-"), "{oldest:?}");
    fs::remove_file(oldest).unwrap();
    symlink(&elsewhere, oldest).unwrap();
    writer.fill(directory.path());
    assert!(fs::symlink_metadata(oldest).is_err(), "the link has gone");
    assert_eq!(fs::read(&elsewhere).unwrap(), vec![1; FILE as usize]);
}

#[test]
fn a_file_that_others_might_read_is_ours_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path());
    writer.fill(directory.path());
    for file in common::files(directory.path()) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    writer.fill(directory.path());
    writer.fill(directory.path());
    for file in common::files(directory.path()) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

/// What was written last need not be on the disk then, and what was there before is.
#[test]
fn after_a_power_cut_older_blocks_are_not_taken_for_newer_ones() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path());
    writer.blocks = 4;
    writer.write(2);
    writer.blocks = 1;
    writer.write(1);
    let files = common::files(directory.path());
    assert!(files[0].to_string_lossy().ends_with(".part"));
    assert_eq!(read(&files), (vec![4, 5], true));
}
