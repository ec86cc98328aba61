//! Reading recordings, in whatever form and however their writer ended.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use node_lib::Timestamp;

use crate::block::{BlockKind, BlockReader, Fault, Head};
use crate::decode::Records;
use crate::header::RecordingHeader;
use crate::json::{self, Line, LineError};
use crate::record::{Record, What};

/// How the names of files of blocks end; while one is written, `.part` follows.
pub const EXTENSION: &str = "v2xr";
/// How the name of a file that is being written ends.
pub const PART: &str = "part";

/// Something in a recording.
#[derive(Debug)]
pub enum Item<'a> {
    /// Whose it is; at the beginning of each file.
    Header(&'a RecordingHeader),
    /// So many blocks are missing here; at the beginning, before the first.
    Gap(u64),
    /// A record.
    Record(&'a Record<'a>),
}

/// Why a recording cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file does not begin with a header.
    #[error("{}: no recording: {fault}", path.display())]
    NotOne {
        /// Which.
        path: PathBuf,
        /// What stands there.
        fault: String,
    },
    /// A file that was being written has no header yet.
    #[error("{0}")]
    NotBegun(NotBegun),
    /// There is none in the directory.
    #[error("{}: no recording (*.v2xr, *.jsonl) in this directory", .0.display())]
    Empty(PathBuf),
    /// The files are not of one recording.
    #[error(
        "{} is not of the same run as {}: name the files of one run, or a directory with one",
        other.display(), first.display()
    )]
    Mixed {
        /// The first file.
        first: PathBuf,
        /// One that does not go with it.
        other: PathBuf,
    },
}

/// What reading a file showed.
#[derive(Debug)]
pub struct FileReport {
    /// Which.
    pub path: PathBuf,
    /// Whole blocks with records.
    pub blocks: u64,
    /// Records in them.
    pub records: u64,
    /// Records that are missing because there was no room for them.
    pub lost: u64,
    /// Blocks that are missing before or in it.
    pub missing: u64,
    /// Time of the first and the last record.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Bytes up to the end of the last whole block.
    pub good: u64,
    /// Why there is nothing after these.
    pub fault: Option<String>,
}

/// The files of a recording, in order.
#[derive(Clone, Debug)]
pub struct Recording {
    paths: Vec<PathBuf>,
    left_out: Vec<NotBegun>,
    header: RecordingHeader,
}

/// A `.part` whose writer was ended before there was a header. As it has no byte, or the beginning
/// of a header, it belongs to no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: ends before its header does: nothing in it can be read", path.display())]
pub struct NotBegun {
    /// Which.
    pub path: PathBuf,
    /// How much there is of it. Where that is nothing, nothing is lost.
    pub bytes: u64,
}

impl Recording {
    /// What is in these files, or in this directory. Files [without a header](NotBegun) are left
    /// out, but for the only one there is.
    pub fn open(paths: &[PathBuf]) -> Result<Self, ReadError> {
        let mut found = Vec::new();
        for path in paths {
            if path.is_dir() {
                let inside = files_in(path)?;
                if inside.is_empty() {
                    return Err(ReadError::Empty(path.clone()));
                }
                found.extend(inside);
            } else {
                found.push(path.clone());
            }
        }
        let (headed, left_out) = headers_of(found)?;
        let mut files: Vec<_> =
            headed.into_iter().map(|(path, header)| (header.segment, path, header)).collect();
        files.sort_by_key(|(segment, ..)| *segment);
        let mut files = files.into_iter();
        let Some((_, first, header)) = files.next() else {
            return Err(ReadError::Empty(PathBuf::from(".")));
        };
        let mut paths = vec![first];
        for (_, other, theirs) in files {
            if !header.is_same_run(&theirs) {
                let first = paths.swap_remove(0);
                return Err(ReadError::Mixed { first, other });
            }
            paths.push(other);
        }
        Ok(Self { paths, left_out, header })
    }

    /// What its first file says about it.
    pub fn header(&self) -> &RecordingHeader {
        &self.header
    }

    /// Its files, in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Files among those named that have no header.
    pub fn left_out(&self) -> &[NotBegun] {
        &self.left_out
    }

    /// Shows everything in it to `visit`, first to last, until that says `false`. Returns what was
    /// found in each file.
    pub fn read<E: From<ReadError>>(
        &self,
        mut visit: impl FnMut(Item<'_>) -> Result<bool, E>,
    ) -> Result<Vec<FileReport>, E> {
        let mut reports = Vec::new();
        let mut next = 0;
        for path in &self.paths {
            let mut pass = Pass { path, next: &mut next, report: FileReport::of(path), go: true };
            pass.read(&mut visit)?;
            let go = pass.go;
            reports.push(pass.report);
            if !go {
                break;
            }
        }
        Ok(reports)
    }
}

impl FileReport {
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            blocks: 0,
            records: 0,
            lost: 0,
            missing: 0,
            span: None,
            good: 0,
            fault: None,
        }
    }

    fn note(&mut self, record: &Record<'_>) {
        self.records += 1;
        if let What::Lost(count) = record.what {
            self.lost = self.lost.saturating_add(count);
        }
        let first = self.span.map_or(record.at, |(first, _)| first);
        self.span = Some((first, record.at));
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == json::EXTENSION)
}

/// Whether a file is being written, or was when its writer ended.
pub(crate) fn is_growing(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == PART)
}

/// The recordings in a directory, by name.
pub(crate) fn files_in(directory: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |source| ReadError::Io { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.strip_suffix(".part").unwrap_or(name);
        if name.ends_with(".v2xr") || name.ends_with(".jsonl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn open(path: &Path) -> Result<BufReader<File>, ReadError> {
    let opened = File::open(path).map(|file| BufReader::with_capacity(256 << 10, file));
    opened.map_err(|source| ReadError::Io { path: path.to_owned(), source })
}

/// A file, and what it says about itself.
type Headed = (PathBuf, RecordingHeader);

/// What each of these files says about itself, and those of them that say nothing yet. It is an
/// error when that is all there are.
pub(crate) fn headers_of(paths: Vec<PathBuf>) -> Result<(Vec<Headed>, Vec<NotBegun>), ReadError> {
    let (mut headed, mut left_out) = (Vec::new(), Vec::new());
    for path in paths {
        match header_of(&path) {
            Ok(header) => headed.push((path, header)),
            Err(ReadError::NotBegun(file)) => left_out.push(file),
            Err(error) => return Err(error),
        }
    }
    match left_out.first() {
        Some(first) if headed.is_empty() => Err(ReadError::NotBegun(first.clone())),
        _ => Ok((headed, left_out)),
    }
}

/// What a file says about itself.
pub fn header_of(path: &Path) -> Result<RecordingHeader, ReadError> {
    let not_one = |fault: String| ReadError::NotOne { path: path.to_owned(), fault };
    let mut input = open(path)?;
    if is_json(path) {
        let mut buffer = Vec::new();
        let line = json::next_line(&mut input, &mut buffer);
        let line = line.map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        let line = std::str::from_utf8(line.unwrap_or_default());
        let line = line.map_err(|error| not_one(error.to_string()))?;
        return match json::parse(line) {
            Ok(Line::Header(header)) => Ok(*header),
            Ok(_) => Err(not_one("the first line is not a header".to_owned())),
            Err(error) => Err(not_one(error.to_string())),
        };
    }
    let is_growing = is_growing(path);
    let bytes = input.get_ref().metadata().map_or(0, |known| known.len());
    let mut blocks = if is_growing { BlockReader::growing(input) } else { BlockReader::new(input) };
    match blocks.next_block() {
        Ok(Some((Head { kind: BlockKind::Header, .. }, payload))) => {
            RecordingHeader::parse(payload).map_err(|error| not_one(format!("its header: {error}")))
        }
        Ok(None) | Err(Fault::Torn) if is_growing => {
            Err(ReadError::NotBegun(NotBegun { path: path.to_owned(), bytes }))
        }
        Ok(_) => Err(not_one("it does not begin with a header".to_owned())),
        Err(Fault::Io(source)) => Err(ReadError::Io { path: path.to_owned(), source }),
        Err(fault) => Err(not_one(fault.to_string())),
    }
}

/// One file on its way to whoever reads it.
struct Pass<'a> {
    path: &'a Path,
    /// Sequence of the block that should come next.
    next: &'a mut u64,
    report: FileReport,
    go: bool,
}

impl Pass<'_> {
    fn read<E: From<ReadError>>(
        &mut self,
        visit: &mut impl FnMut(Item<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let input = open(self.path)?;
        if is_json(self.path) { self.lines(input, visit) } else { self.blocks(input, visit) }
    }

    fn blocks<E: From<ReadError>>(
        &mut self,
        input: BufReader<File>,
        visit: &mut impl FnMut(Item<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let is_growing = is_growing(self.path);
        let mut blocks =
            if is_growing { BlockReader::growing(input) } else { BlockReader::new(input) };
        loop {
            let (head, payload) = match blocks.next_block() {
                Ok(Some(block)) => block,
                Ok(None) => return Ok(()),
                Err(fault) => {
                    self.report.fault = Some(fault.to_string());
                    return Ok(());
                }
            };
            match head.kind {
                BlockKind::Header => match RecordingHeader::parse(payload) {
                    Ok(header) => self.go = visit(Item::Header(&header))?,
                    Err(error) => {
                        self.report.fault = Some(format!("its header: {error}"));
                        return Ok(());
                    }
                },
                // After a power cut there may be blocks of what the file held before.
                BlockKind::Records if is_growing && head.sequence < *self.next => return Ok(()),
                BlockKind::Records => {
                    let missing = head.sequence.saturating_sub(*self.next);
                    *self.next = head.sequence.saturating_add(1);
                    if missing > 0 {
                        self.report.missing = self.report.missing.saturating_add(missing);
                        self.go = visit(Item::Gap(missing))?;
                    }
                    self.report.blocks += 1;
                    for record in Records::new(payload, head.first) {
                        if !self.go {
                            return Ok(());
                        }
                        match record {
                            Ok(record) => {
                                self.report.note(&record);
                                self.go = visit(Item::Record(&record))?;
                            }
                            Err(error) => {
                                self.report.fault = Some(Fault::Record(error).to_string());
                                return Ok(());
                            }
                        }
                    }
                }
            }
            if !self.go {
                return Ok(());
            }
            self.report.good = blocks.good();
        }
    }

    fn lines<E: From<ReadError>>(
        &mut self,
        mut input: BufReader<File>,
        visit: &mut impl FnMut(Item<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut buffer = Vec::new();
        for number in 1u64.. {
            let line = match json::next_line(&mut input, &mut buffer) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.report.fault = Some(format!("line {number}: {error}"));
                    break;
                }
            };
            let parsed = std::str::from_utf8(line).map_err(|error| error.to_string());
            let parsed =
                parsed.and_then(|line| json::parse(line).map_err(|e: LineError| e.to_string()));
            self.go = match parsed {
                Ok(Line::Header(header)) => visit(Item::Header(&header))?,
                Ok(Line::Gap(blocks)) => {
                    self.report.missing = self.report.missing.saturating_add(blocks);
                    visit(Item::Gap(blocks))?
                }
                Ok(Line::Record(record)) => {
                    self.report.note(&record);
                    visit(Item::Record(&record))?
                }
                Err(error) => {
                    self.report.fault = Some(format!("line {number}: {error}"));
                    break;
                }
            };
            self.report.good += line.len() as u64;
            if !self.go {
                break;
            }
        }
        Ok(())
    }
}
