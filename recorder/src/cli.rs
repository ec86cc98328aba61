//! The tools, as a command line: [`Args`], or only its [`TraceCommand`] for who mounts it, and
//! [`run`].

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use node_lib::Timestamp;

use crate::export::{self, ExportError};
use crate::links::{Drive, DriveError, Found};
use crate::page::{self, PageError};
use crate::read::{
    FileReport, Item, NotBegun, ReadError, Recording, files_in, header_of, headers_of, is_growing,
};
use crate::record::Record;
use crate::replay::{self, ReplayError, describe};
use crate::write::FileWriter;
use crate::{json, segment};

/// Looks at recordings of `obu` and `rsu`, repairs, exports and replays them
#[derive(Clone, Debug, Parser)]
#[command(name = "v2xtrace", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// What to do with a recording. PATH is a file (*.v2xr, *.v2xr.part, *.jsonl), several of one run,
/// or a directory with those of one run.
#[derive(Clone, Debug, Subcommand)]
pub enum TraceCommand {
    /// Whose recordings these are, and what is in them; of any number of runs
    Info {
        /// Recordings
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Read everything; exit code 1 if something is damaged or missing
    Verify {
        /// Recordings
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Copy what is whole of a file whose writer was ended
    Repair {
        /// A file, as a rule one that ends in .part
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Where to; by default the same name without .part
        #[arg(value_name = "TO")]
        to: Option<PathBuf>,
    },
    /// Copy a part of a recording into one file; a name that ends in .jsonl gets JSON lines
    Cut {
        /// The recording
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Where to
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Seconds on the node's clock, as `info` tells them
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        from: Option<Timestamp>,
        /// Likewise
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        to: Option<Timestamp>,
    },
    /// Write a capture for Wireshark (.pcapng), or JSON lines (.jsonl)
    Export {
        /// The recording
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Where to
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Run the node again and write what it was like into one web page with a time bar, that needs
    /// nothing else
    Page {
        /// The recording, from the start of the node on
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Where to
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Seconds from one look to the next
        #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = page::every)]
        every: Duration,
    },
    /// Make a scenario for `v2xsim` of what the nodes of a drive recorded: who heard how much of
    /// whom when
    Links {
        /// The recordings of two or more nodes, of the same time
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The scenario; its table of links is put beside it, and its name ends in .csv
        #[arg(short, long, value_name = "FILE.toml")]
        output: PathBuf,
        /// Seconds over which the share of lost frames is taken
        #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = slot)]
        slot: Duration,
    },
    /// Run the node again and compare, to the byte; exit code 1 at the first difference
    Replay {
        /// The recording, from the start of the node on
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Compare two recordings, record by record; exit code 1 at the first difference
    Diff {
        /// A recording
        #[arg(value_name = "PATH")]
        one: PathBuf,
        /// Another
        #[arg(value_name = "PATH")]
        other: PathBuf,
    },
}

fn seconds(text: &str) -> Result<Timestamp, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, such as 12.5")?;
    let span = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    Ok(Timestamp::ZERO + span)
}

/// From a heartbeat to a minute.
fn slot(text: &str) -> Result<Duration, String> {
    let wrong = || "expected seconds from 0.1 to 60".to_owned();
    let span = Duration::try_from_secs_f64(text.parse().map_err(|_| wrong())?);
    let span = span.map_err(|_| wrong())?;
    let range = Duration::from_millis(100)..=Duration::from_secs(60);
    range.contains(&span).then_some(span).ok_or_else(wrong)
}

/// Why a tool could not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Recordings are no drive.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// Its page cannot be written.
    #[error(transparent)]
    Page(#[from] PageError),
    /// It cannot be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The name says nothing of the form.
    #[error("{}: expected a name that ends in .pcapng or .jsonl", .0.display())]
    Form(PathBuf),
    /// A scenario has another name.
    #[error("{}: expected the name of a scenario, which ends in .toml", .0.display())]
    Scenario(PathBuf),
    /// Nothing was left to say it to.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

/// Does it, and says on `out` what it found. Exit code 1: there is a difference, or a recording is
/// not whole.
pub fn run(command: &TraceCommand, out: &mut impl Write) -> Result<ExitCode, TraceError> {
    let result = match command {
        TraceCommand::Info { paths } => info(paths, out),
        TraceCommand::Verify { paths } => verify(paths, out),
        TraceCommand::Repair { file, to } => repair(file, to.as_deref(), out),
        TraceCommand::Cut { paths, output, from, to } => cut(paths, output, *from, *to, out),
        TraceCommand::Export { paths, output } => export(paths, output, out),
        TraceCommand::Page { paths, output, every } => page(paths, output, *every, out),
        TraceCommand::Links { paths, output, slot } => links(paths, output, *slot, out),
        TraceCommand::Replay { paths } => replay(paths, out),
        TraceCommand::Diff { one, other } => diff(one, other, out),
    };
    match result {
        // Who closed the pipe did not want to know.
        Err(TraceError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        other => other,
    }
}

fn say(out: &mut impl Write, text: &str) -> Result<(), TraceError> {
    writeln!(out, "{text}").map_err(TraceError::Output)
}

fn code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Names files that have no header yet: a reader must know that something was not looked at.
fn say_left_out(files: &[NotBegun], out: &mut impl Write) -> Result<(), TraceError> {
    files.iter().try_for_each(|file| say(out, &format!("left out {file}")))
}

/// Names files that could not be read to their end: what follows there is in no copy. Whether all
/// were whole, but for the end of one that is being written.
fn say_cut_short(reports: &[FileReport], out: &mut impl Write) -> Result<bool, TraceError> {
    let mut is_whole = true;
    for FileReport { path, good, fault, .. } in reports {
        let Some(fault) = fault else { continue };
        is_whole &= is_growing(path);
        say(out, &format!("left out what follows byte {good} of {}: {fault}", path.display()))?;
    }
    Ok(is_whole)
}

/// One recording.
fn open(paths: &[PathBuf], out: &mut impl Write) -> Result<Recording, TraceError> {
    let recording = Recording::open(paths)?;
    say_left_out(recording.left_out(), out)?;
    Ok(recording)
}

/// The recordings in these files and directories, by run, and files that have no header yet.
fn runs(paths: &[PathBuf]) -> Result<(Vec<Recording>, Vec<NotBegun>), TraceError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_in(path)?);
        } else {
            files.push(path.clone());
        }
    }
    if files.is_empty() {
        return Err(ReadError::Empty(paths.first().cloned().unwrap_or_default()).into());
    }
    let mut runs: Vec<Vec<PathBuf>> = Vec::new();
    let mut headers = Vec::new();
    let (headed, left_out) = headers_of(files)?;
    for (file, header) in headed {
        let known =
            headers.iter().position(|known: &crate::RecordingHeader| known.is_same_run(&header));
        match known.and_then(|index| runs.get_mut(index)) {
            Some(run) => run.push(file),
            None => {
                headers.push(header);
                runs.push(vec![file]);
            }
        }
    }
    let runs: Result<_, TraceError> = runs.iter().map(|run| Ok(Recording::open(run)?)).collect();
    Ok((runs?, left_out))
}

fn info(paths: &[PathBuf], out: &mut impl Write) -> Result<ExitCode, TraceError> {
    let (runs, left_out) = runs(paths)?;
    for recording in runs {
        let header = recording.header();
        let (role, id) = (header.role.as_str(), header.start().id);
        say(out, &format!("{role} {id}, boot {}, written by {}", header.boot, header.software))?;
        say(
            out,
            &format!("  radio {}, TAP {}, seed {:#x}", header.radio, header.tap, header.seed),
        )?;
        say(out, &format!("  settings {}", header.settings))?;
        let mut kinds: Vec<(&'static str, u64)> = Vec::new();
        let reports = recording.read(|item| {
            if let Item::Record(record) = item {
                let name = record.what.name();
                match kinds.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, count)) => *count += 1,
                    None => kinds.push((name, 1)),
                }
            }
            Ok::<_, TraceError>(true)
        })?;
        for report in &reports {
            say(out, &format!("  {}", line(report)))?;
        }
        let kinds: Vec<_> = kinds.iter().map(|(name, count)| format!("{count} {name}")).collect();
        say(out, &format!("  {}", kinds.join(", ")))?;
        let is_from_start = reports.first().is_some_and(|report| report.missing == 0);
        if header.snap > 0 {
            let snap = header.snap;
            say(out, &format!("  {snap} bytes of clients' frames that were only passed on"))?;
        }
        say(
            out,
            match is_from_start {
                _ if header.part > 0 => "  cannot be replayed: it was begun while the node ran",
                true => "  can be replayed",
                false => "  cannot be replayed: its beginning is missing",
            },
        )?;
    }
    say_left_out(&left_out, out)?;
    Ok(ExitCode::SUCCESS)
}

fn line(report: &FileReport) -> String {
    let mut text = format!(
        "{}: {} records in {} blocks",
        report.path.display(),
        report.records,
        report.blocks
    );
    if let Some((first, last)) = report.span {
        text += &format!(", {first} to {last}");
    }
    if report.lost > 0 {
        text += &format!(", {} records lost", report.lost);
    }
    if report.missing > 0 {
        text += &format!(", {} blocks missing", report.missing);
    }
    if let Some(fault) = &report.fault {
        text += &format!("; {fault} at byte {}", report.good);
    }
    text
}

fn verify(paths: &[PathBuf], out: &mut impl Write) -> Result<ExitCode, TraceError> {
    let (runs, left_out) = runs(paths)?;
    // A file without a byte lost none.
    let mut is_whole = left_out.iter().all(|file| file.bytes == 0);
    for recording in runs {
        let reports = recording.read(|_| Ok::<_, TraceError>(true))?;
        for (index, report) in reports.iter().enumerate() {
            // A ring begins anywhere, but has no holes.
            let has_hole = index > 0 && report.missing > 0;
            let is_good = report.fault.is_none() && report.lost == 0 && !has_hole;
            is_whole &= is_good;
            say(out, &format!("{} {}", if is_good { "whole  " } else { "damaged" }, line(report)))?;
        }
    }
    say_left_out(&left_out, out)?;
    Ok(code(is_whole))
}

fn repair(file: &Path, to: Option<&Path>, out: &mut impl Write) -> Result<ExitCode, TraceError> {
    let header = header_of(file)?;
    let recording = Recording::open(&[file.to_owned()])?;
    let report = recording.read(|_| Ok::<_, TraceError>(true))?.into_iter().next();
    let good = report.as_ref().map_or(0, |report| report.good);
    let to = match to {
        Some(to) => to.to_owned(),
        None if is_growing(file) => file.with_extension(""),
        None => {
            let source = io::Error::new(io::ErrorKind::AlreadyExists, "say where to");
            return Err(TraceError::Write { path: file.to_owned(), source });
        }
    };
    let failed = |source| TraceError::Write { path: to.clone(), source };
    // Byte by byte: block numbers stay what they are.
    let mut source = io::Read::take(File::open(file).map_err(failed)?, good);
    let mut copy = segment::create(&to).map_err(failed)?;
    io::copy(&mut source, &mut copy).map_err(failed)?;
    copy.sync_data().map_err(failed)?;
    let records = report.map_or(0, |report| report.records);
    let (role, id) = (header.role.as_str(), header.start().id);
    say(out, &format!("{}: {records} records of {role} {id}, {good} bytes", to.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn cut(
    paths: &[PathBuf],
    output: &Path,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    out: &mut impl Write,
) -> Result<ExitCode, TraceError> {
    let failed = |source| TraceError::Write { path: output.to_owned(), source };
    let recording = open(paths, out)?;
    let mut copy = FileWriter::create(
        output,
        &crate::RecordingHeader { segment: 0, ..recording.header().clone() },
    )
    .map_err(failed)?;
    let (mut records, mut has_left_out) = (0u64, false);
    let reports = recording.read(|item| {
        match item {
            Item::Header(_) => {}
            Item::Gap(blocks) => copy.gap(blocks).map_err(failed)?,
            Item::Record(record) if from.is_some_and(|from| record.at < from) => {
                if !has_left_out {
                    // So that nobody takes it for a recording from the start.
                    copy.gap(1).map_err(failed)?;
                    has_left_out = true;
                }
            }
            Item::Record(record) if to.is_some_and(|to| record.at > to) => return Ok(false),
            Item::Record(record) => {
                copy.record(record).map_err(failed)?;
                records += 1;
            }
        }
        Ok::<_, TraceError>(true)
    })?;
    copy.finish().map_err(failed)?;
    say(out, &format!("{}: {records} records", output.display()))?;
    Ok(code(say_cut_short(&reports, out)?))
}

fn export(paths: &[PathBuf], output: &Path, out: &mut impl Write) -> Result<ExitCode, TraceError> {
    match output.extension().and_then(|extension| extension.to_str()) {
        Some(json::EXTENSION) => cut(paths, output, None, None, out),
        Some("pcapng") => {
            let recording = open(paths, out)?;
            let file = segment::create(output)
                .map_err(|source| TraceError::Write { path: output.to_owned(), source })?;
            let (frames, reports) = export::pcapng(&recording, BufWriter::new(file))?;
            say(out, &format!("{}: {frames} frames", output.display()))?;
            Ok(code(say_cut_short(&reports, out)?))
        }
        _ => Err(TraceError::Form(output.to_owned())),
    }
}

fn page(
    paths: &[PathBuf],
    output: &Path,
    every: Duration,
    out: &mut impl Write,
) -> Result<ExitCode, TraceError> {
    let recording = open(paths, out)?;
    let failed = |source| TraceError::Write { path: output.to_owned(), source };
    let mut file = BufWriter::new(segment::create(output).map_err(failed)?);
    let (looks, outcome) = page::write(&recording, every, &mut file)?;
    file.flush().map_err(failed)?;
    say(out, &format!("{}: {looks} looks", output.display()))?;
    if let Some(difference) = &outcome.difference {
        say(out, &difference.to_string())?;
    }
    if let Some(ended) = &outcome.ended {
        say(out, &format!("ended early: {ended}"))?;
    }
    Ok(code(outcome.difference.is_none()))
}

fn links(
    paths: &[PathBuf],
    output: &Path,
    slot: Duration,
    out: &mut impl Write,
) -> Result<ExitCode, TraceError> {
    let table = output.with_extension("csv");
    let name = table.file_name().and_then(|name| name.to_str());
    let is_toml = output.extension().is_some_and(|extension| extension == "toml");
    // It stands in the scenario, between quotes.
    let plain = |name: &&str| !name.contains(['"', '\\']) && !name.contains(char::is_control);
    let Some(name) = name.filter(|_| is_toml).filter(plain) else {
        return Err(TraceError::Scenario(output.to_owned()));
    };
    let (runs, left_out) = runs(paths)?;
    say_left_out(&left_out, out)?;
    let drive = Drive::of(&runs, slot)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| TraceError::Write { path, source }
    };
    let mut file = BufWriter::new(segment::create(&table).map_err(failed(&table))?);
    let found = drive.write_links(&mut file).map_err(failed(&table))?;
    file.flush().map_err(failed(&table))?;
    let mut file = BufWriter::new(segment::create(output).map_err(failed(output))?);
    drive.write_scenario(name, &mut file).map_err(failed(output))?;
    file.flush().map_err(failed(output))?;
    let Found { nodes, directions, frames, heard, hand_overs, clocks } = found;
    say(
        out,
        &format!(
            "{}: {nodes} nodes, {directions} directions of links, {heard} of {frames} frames \
             heard, {hand_overs} hand-overs",
            output.display()
        ),
    )?;
    for (name, micros) in clocks.iter().filter(|(_, micros)| *micros != 0) {
        say(out, &format!("  clock of {name} moved by {:.3} ms", *micros as f64 / 1000.0))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn replay(paths: &[PathBuf], out: &mut impl Write) -> Result<ExitCode, TraceError> {
    let outcome = replay::replay(&open(paths, out)?)?;
    let replay::Outcome { records, inputs, outputs, difference, ended } = &outcome;
    say(out, &format!("{records} records: {inputs} inputs, {outputs} outputs the same"))?;
    if let Some(difference) = difference {
        say(out, &difference.to_string())?;
    }
    if let Some(ended) = ended {
        say(out, &format!("ended early: {ended}"))?;
    }
    Ok(code(difference.is_none()))
}

/// Records of one recording that wait for those of the other.
const AHEAD: usize = 1024;

/// Reads a recording on a thread of its own, record by record.
fn records_of(recording: Recording) -> mpsc::Receiver<Result<Record<'static>, TraceError>> {
    let (give, take) = mpsc::sync_channel(AHEAD);
    std::thread::spawn(move || {
        let read = recording.read(|item| match item {
            // Nobody wants more once a difference was found.
            Item::Record(record) => Ok(give.send(Ok(record.clone().into_owned())).is_ok()),
            _ => Ok::<_, TraceError>(true),
        });
        if let Err(error) = read {
            let _ = give.send(Err(error));
        }
    });
    take
}

fn diff(one: &Path, other: &Path, out: &mut impl Write) -> Result<ExitCode, TraceError> {
    let ours = open(&[one.to_owned()], out)?;
    let mut theirs = records_of(open(&[other.to_owned()], out)?).into_iter();
    let (mut index, mut difference) = (0u64, None);
    ours.read(|item| {
        let Item::Record(record) = item else { return Ok(true) };
        let their = theirs.next().transpose()?;
        if their.as_ref() != Some(record) {
            let their = their.map_or_else(|| "nothing".to_owned(), |record| describe(&record));
            difference = Some((describe(record), their));
            return Ok(false);
        }
        index += 1;
        Ok::<_, TraceError>(true)
    })?;
    if difference.is_none()
        && let Some(more) = theirs.next().transpose()?
    {
        difference = Some(("nothing".to_owned(), describe(&more)));
    }
    match difference {
        None => say(out, &format!("the same: {index} records"))?,
        Some((ours, theirs)) => {
            say(out, &format!("first difference at record {index}"))?;
            say(out, &format!("  {}: {ours}", one.display()))?;
            say(out, &format!("  {}: {theirs}", other.display()))?;
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
