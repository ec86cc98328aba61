//! Files of a recording on disk: a ring of them, of which the oldest go, and moments that are kept:
//! [`Ring`].
//!
//! A file grows by whole blocks under a name that ends in `.part`, and loses that when it is
//! finished. Once the ring is full a new file is the oldest one, written over from its beginning.
//! Memory and disk are there already, and to ask the kernel for both costs several times what it
//! takes to copy the records. Behind the last block of a file that grows is its end, or
//! [zeros](crate::block) and then what the file held before.
//!
//! When a moment is to be kept, the files around it get second names (hard links) in a directory of
//! their own, where the ring does not look. That takes no room, no time, and works on a disk that
//! is full.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use node_lib::Timestamp;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::block::{END, HEAD_LEN, Head};
use crate::header::RecordingHeader;
use crate::read::EXTENSION;
use crate::shared::FreezeCause;

/// Where kept moments are.
pub const FROZEN: &str = "frozen";

/// Moments kept of one node; the oldest go, and when they take more than the ring may.
pub const FROZEN_MAX: usize = 16;

/// A ring has about so many files.
const FILES: u64 = 8;
const FILE_MIN: u64 = 64 << 10;
const FILE_MAX: u64 = 64 << 20;

/// A file is finished after this time, so that what is old can go.
const FILE_AGE_MAX: Duration = Duration::from_secs(600);

/// Who may read and write a file.
const MODE: u32 = 0o600;

/// Names tried for a new file.
const NAMES_MAX: u32 = 10_000;

/// How much is kept, and for how long.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of all files of a node, those of earlier runs among them.
    pub bytes: u64,
    /// Files older than this go; `None`: never because of that.
    pub age: Option<Duration>,
    /// Of a moment that is kept, what came before.
    pub before: Duration,
    /// … and what comes after.
    pub after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            age: None,
            before: Duration::from_secs(15),
            after: Duration::from_secs(5),
        }
    }
}

/// Where the writer takes blocks to.
pub trait Store: Send {
    /// Writes a block whole, or says why not; then nothing of it is there.
    fn write(&mut self, head: &[u8; HEAD_LEN], payload: &[u8], last: Timestamp) -> io::Result<()>;

    /// This moment is to be kept.
    fn freeze(&mut self, cause: FreezeCause, at: Timestamp);

    /// Looks after what is only a matter of time. Returns files removed and moments kept since it
    /// was last asked.
    fn tick(&mut self) -> (u64, u64);

    /// Finishes what is open.
    fn close(&mut self);
}

/// A finished file.
#[derive(Debug)]
struct Finished {
    path: PathBuf,
    bytes: u64,
    /// How old it was when this run first knew of it, and when that was: from then on it ages by a
    /// clock that nobody sets.
    age: Duration,
    known: Instant,
    /// Of this run: when its last record was written.
    last: Option<Timestamp>,
}

/// The file that grows.
#[derive(Debug)]
struct Growing {
    file: File,
    path: PathBuf,
    bytes: u64,
    /// Bytes the file had before it began: less room than these it does not take.
    before: u64,
    has_records: bool,
    last: Timestamp,
    since: Instant,
}

impl Growing {
    /// Appends a block. Its head is what makes it one, so that comes last: whoever reads, and
    /// whenever the process is killed, there is a whole block or none.
    fn append(&mut self, head: &[u8; HEAD_LEN], payload: &[u8]) -> io::Result<()> {
        let at = self.bytes;
        let end = at + (head.len() + payload.len()) as u64;
        self.file.write_all_at(payload, at + head.len() as u64)?;
        if end < self.before {
            self.file.write_all_at(&END, end)?;
        }
        self.file.write_all_at(head, at)?;
        self.bytes = end;
        Ok(())
    }
}

/// A moment that is being kept.
#[derive(Debug)]
struct Freeze {
    directory: PathBuf,
    from: Timestamp,
    until: Timestamp,
    /// By when it is over though nothing more is recorded.
    deadline: Instant,
}

/// The files of one node in a directory.
#[derive(Debug)]
pub struct Ring {
    directory: PathBuf,
    header: RecordingHeader,
    limits: Limits,
    file_len: u64,
    next: u32,
    growing: Option<Growing>,
    finished: VecDeque<Finished>,
    freeze: Option<Freeze>,
    removed: u64,
    frozen: u64,
}

impl Ring {
    /// In this directory, which must be there. Files of earlier runs of the same node are part of
    /// it.
    pub fn open(directory: &Path, header: RecordingHeader, limits: Limits) -> io::Result<Self> {
        let stem = header.stem();
        let mut finished = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with(&stem)) else { continue };
            if !name.ends_with(".v2xr") && !name.ends_with(".v2xr.part") {
                continue;
            }
            let known = entry.metadata()?;
            // Of a file of another run there is only its date. One from the future is new.
            let age =
                known.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            let (age, bytes) = (age.unwrap_or_default(), known.len());
            let known = Instant::now();
            finished.push(Finished { path: entry.path(), bytes, age, known, last: None });
        }
        // Boot count and number have leading zeros.
        finished.sort_by(|a, b| a.path.cmp(&b.path));
        let file_len = (limits.bytes / FILES).clamp(FILE_MIN, FILE_MAX);
        let mut ring = Self {
            directory: directory.to_owned(),
            header,
            limits,
            file_len,
            next: 0,
            growing: None,
            finished: finished.into(),
            freeze: None,
            removed: 0,
            frozen: 0,
        };
        // What is wrong with the directory is to be known at the start.
        ring.begin(0)?;
        Ok(ring)
    }

    fn name(&self, number: u32) -> PathBuf {
        let name =
            format!("{}{:010}-{number:06}.{EXTENSION}", self.header.stem(), self.header.boot);
        self.directory.join(name)
    }

    /// Begins a file, with room for so many bytes of records.
    fn begin(&mut self, room: u64) -> io::Result<()> {
        let path = self.free_name()?;
        let header = RecordingHeader { segment: self.next, ..self.header.clone() };
        let payload = header.emit();
        let block = [&Head::of_header().emit(&payload)[..], &payload].concat();
        let (file, before) = match self.write_over_oldest(&path, &block) {
            Some(made) => made,
            None => {
                self.trim(room);
                (create_with(&path, &block)?, 0)
            }
        };
        self.next += 1;
        let (bytes, since) = (block.len() as u64, Instant::now());
        let (last, has_records) = (Timestamp::ZERO, false);
        self.growing = Some(Growing { file, path, bytes, before, has_records, last, since });
        Ok(())
    }

    /// The next name; another run may have had the same boot count.
    fn free_name(&mut self) -> io::Result<PathBuf> {
        for _ in 0..NAMES_MAX {
            let sealed = self.name(self.next);
            let mut path = sealed.clone().into_os_string();
            path.push(".part");
            let path = PathBuf::from(path);
            if !sealed.exists() && !path.exists() {
                return Ok(path);
            }
            self.next += 1;
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where the ring is full, its oldest file becomes the new one, which begins with this block.
    /// Returns how long it is. `None`: there is room, or the file is not ours alone.
    fn write_over_oldest(&mut self, path: &Path, block: &[u8]) -> Option<(File, u64)> {
        let sum: u64 = self.finished.iter().map(|file| file.bytes).sum();
        if sum + self.file_len <= self.limits.bytes {
            return None;
        }
        let oldest = self.finished.front()?;
        let is_no_link = i32::try_from(OFlags::NOFOLLOW.bits()).ok()?;
        let file = OpenOptions::new().write(true).custom_flags(is_no_link).open(&oldest.path);
        let file = file.ok()?;
        let known = file.metadata().ok()?;
        // Second names are those of moments that are kept.
        let is_ours = known.uid() == geteuid().as_raw() && known.nlink() == 1 && known.is_file();
        let begin = [block, &END].concat();
        if !is_ours || known.len() < begin.len() as u64 {
            return None;
        }
        file.set_permissions(Permissions::from_mode(MODE)).ok()?;
        let len = known.len().min(self.file_len);
        if len < known.len() {
            file.set_len(len).ok()?;
        }
        file.write_all_at(&begin, 0).ok()?;
        fs::rename(&oldest.path, path).ok()?;
        self.finished.pop_front();
        self.removed += 1;
        Some((file, len))
    }

    /// Finishes the file that grows: on disk, then under its name.
    fn seal(&mut self) {
        let Some(Growing { file, path, bytes, before, last, .. }) = self.growing.take() else {
            return;
        };
        let cut = if bytes < before { file.set_len(bytes) } else { Ok(()) };
        let sealed = path.with_extension("");
        let done = cut.and_then(|()| file.sync_data()).and_then(|()| fs::rename(&path, &sealed));
        let (path, bytes) = match done {
            Ok(()) => (sealed, bytes),
            Err(error) => {
                warn!(file = %path.display(), %error, "a recording could not be finished: it stays \
                                                       .part");
                (path, bytes.max(before))
            }
        };
        // The name, too, is to outlive a power cut.
        let _ = File::open(&self.directory).and_then(|directory| directory.sync_all());
        let (age, known) = (Duration::ZERO, Instant::now());
        self.finished.push_back(Finished { path, bytes, age, known, last: Some(last) });
    }

    /// Makes room for so many bytes.
    fn trim(&mut self, more: u64) {
        let growing = self.growing.as_ref();
        let growing = growing.map_or(more, |growing| growing.before.max(growing.bytes + more));
        let mut sum = growing + self.finished.iter().map(|file| file.bytes).sum::<u64>();
        while let Some(oldest) = self.finished.front() {
            let age = oldest.age + oldest.known.elapsed();
            let is_old = self.limits.age.is_some_and(|most| age > most);
            if sum <= self.limits.bytes && !is_old {
                return;
            }
            sum -= oldest.bytes;
            match fs::remove_file(&oldest.path) {
                Ok(()) => self.removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let file = oldest.path.display();
                    warn!(%file, %error, "an old recording cannot be removed");
                }
            }
            self.finished.pop_front();
        }
    }

    fn age_of_files(&self) -> Duration {
        let age = self.limits.age.map_or(FILE_AGE_MAX, |age| age / 8);
        age.clamp(Duration::from_secs(1), FILE_AGE_MAX)
    }

    /// Gives the files of the moment their second names, and ends it if it is over.
    fn keep(&mut self, is_over: bool) {
        if is_over {
            self.seal();
        }
        let Some(freeze) = &self.freeze else { return };
        for file in
            self.finished.iter().filter(|file| file.last.is_some_and(|last| last >= freeze.from))
        {
            let Some(name) = file.path.file_name() else { continue };
            match fs::hard_link(&file.path, freeze.directory.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => warn!(file = %file.path.display(), %error, "a moment cannot be kept"),
            }
        }
        if is_over {
            self.freeze = None;
        }
    }

    /// A directory for one more moment; the oldest one goes if there are too many.
    fn directory_for(&mut self, cause: FreezeCause) -> io::Result<PathBuf> {
        let all = self.directory.join(FROZEN);
        fs::create_dir_all(&all)?;
        let stem = self.header.stem();
        let mut kept = Vec::new();
        for entry in fs::read_dir(&all)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(&stem) {
                kept.push(path);
            }
        }
        kept.sort();
        let lens: io::Result<Vec<u64>> = kept.iter().map(|path| len_of(path)).collect();
        let (mut left, mut sum) = (kept.len(), 0u64);
        let lens = lens?;
        lens.iter().for_each(|len| sum += len);
        for (oldest, len) in kept.iter().zip(lens) {
            if left < FROZEN_MAX && sum <= self.limits.bytes {
                break;
            }
            fs::remove_dir_all(oldest)?;
            left -= 1;
            sum -= len;
        }
        // Names sort by age: a number is not used again when its directory is gone.
        let of_this_run = format!("{stem}{:010}-", self.header.boot);
        let numbers = kept.iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_prefix(&of_this_run)?;
            name.split_once('-')?.0.parse::<u32>().ok()
        });
        let number = numbers.max().map_or(0, |last| last.saturating_add(1));
        let directory = all.join(format!("{of_this_run}{number:06}-{}", cause.as_str()));
        fs::create_dir(&directory)?;
        Ok(directory)
    }
}

impl Store for Ring {
    fn write(&mut self, head: &[u8; HEAD_LEN], payload: &[u8], last: Timestamp) -> io::Result<()> {
        let len = (head.len() + payload.len()) as u64;
        let age = self.age_of_files();
        let is_enough = |growing: &Growing| {
            growing.has_records && growing.bytes + len > self.file_len
                || growing.since.elapsed() > age
        };
        if self.growing.as_ref().is_some_and(is_enough) {
            self.seal();
        }
        if self.growing.is_none() {
            self.begin(len)?;
        }
        self.trim(len);
        let Some(growing) = &mut self.growing else { return Ok(()) };
        if let Err(error) = growing.append(head, payload) {
            // A piece of a block would hide those that come after it.
            growing.before = growing.before.min(growing.bytes);
            if growing.file.set_len(growing.bytes).is_err() {
                self.seal();
            }
            return Err(error);
        }
        growing.has_records = true;
        growing.last = last;
        if self.freeze.as_ref().is_some_and(|freeze| last >= freeze.until) {
            self.keep(true);
        }
        Ok(())
    }

    fn freeze(&mut self, cause: FreezeCause, at: Timestamp) {
        if self.freeze.is_some() && cause != FreezeCause::Panic {
            // It is being kept.
            return;
        }
        let after = if cause == FreezeCause::Panic { Duration::ZERO } else { self.limits.after };
        match self.directory_for(cause) {
            Ok(directory) => {
                info!(cause = cause.as_str(), directory = %directory.display(), "a moment is kept");
                self.freeze = Some(Freeze {
                    directory,
                    from: at.before(self.limits.before),
                    until: at + after,
                    deadline: Instant::now() + after + Duration::from_secs(1),
                });
                self.frozen += 1;
                self.keep(after.is_zero());
            }
            Err(error) => warn!(cause = cause.as_str(), %error, "a moment cannot be kept"),
        }
    }

    fn tick(&mut self) -> (u64, u64) {
        if self.freeze.as_ref().is_some_and(|freeze| freeze.deadline <= Instant::now()) {
            self.keep(true);
        }
        if self.limits.age.is_some() {
            self.trim(0);
        }
        (std::mem::take(&mut self.removed), std::mem::take(&mut self.frozen))
    }

    fn close(&mut self) {
        self.seal();
        if self.freeze.is_some() {
            self.keep(true);
        }
    }
}

/// Bytes of all files in a directory.
fn len_of(directory: &Path) -> io::Result<u64> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

/// A new file that only its owner reads: it holds what clients say.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)
}

/// The same, with its header.
fn create_with(path: &Path, header: &[u8]) -> io::Result<File> {
    let file = create(path)?;
    if let Err(error) = file.write_all_at(header, 0) {
        // Without a header it is of no use to anybody.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}
