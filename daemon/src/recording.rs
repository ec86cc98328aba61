//! The flight recorder of a daemon: `--record` and what goes with it. It can be started and stopped
//! while the daemon runs.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow};
use control_socket::message;
use node_lib::runtime::directory;
use node_lib::{Start, Timestamp};
use recorder::tape::MARK_LEN_MAX;
use recorder::{Handle, Limits, PanicGuard, Recorder, RecordingHeader, Role, Stats, Switch, Tape};
use serde::Serialize;
use tracing::info;

use crate::args::{Common, RecordOptions};
use crate::exit::{Failure, FailureKind};

/// Tries whether recordings can be written in the directory, or whether it can be made where it is
/// missing, and leaves nothing there.
pub fn check(args: &Common) -> Result<(), Failure> {
    args.record.record.as_deref().map_or(Ok(()), usable)
}

fn usable(directory: &Path) -> Result<(), Failure> {
    // The recorder looks for what earlier starts left.
    let tried = match fs::read_dir(directory) {
        Ok(_) => directory::takes_files(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            directory::takes_files(directory::of(directory))
        }
        Err(error) => Err(error),
    };
    tried.map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                FailureKind::Permission
            }
            _ => FailureKind::Usage,
        };
        let what = format!("cannot record into {}: expected a directory", directory.display());
        Failure::new(kind, anyhow!("{what} that can be written: {error}"))
    })
}

/// Makes the directory, for its owner and group, if it is missing. What it would be in must be
/// there: a path with a mistake in it is to be an error.
fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o750).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// What is to be recorded, once there is a node, and how.
#[derive(Debug)]
pub struct Plan {
    options: RecordOptions,
    role: Role,
    settings: serde_json::Value,
}

impl Plan {
    /// What the flags say.
    pub fn new(args: &Common, role: Role, settings: &impl Serialize) -> Result<Self, Failure> {
        let settings = serde_json::to_value(settings)
            .context("cannot write down the settings of this node")
            .map_err(|error| Failure::new(FailureKind::Runtime, error))?;
        Ok(Self { options: args.record.clone(), role, settings })
    }

    /// The recording of a node that is made at this time of its clock. It begins at once, if the
    /// flags say so; the tap is what the node writes to then.
    pub(crate) fn begin(
        self,
        start: &Start,
        now: Timestamp,
        (radio, tap): (&str, &str),
    ) -> Result<(RecordingSwitch, Option<Tape>), Failure> {
        let failed = |error: anyhow::Error| Failure::new(FailureKind::Runtime, error);
        let header = RecordingHeader::new(self.role, start, now, &self.settings)
            .context("cannot write down the start of this node")
            .map_err(failed)?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let began = since_1970.unwrap_or_default().saturating_sub(now.since(Timestamp::ZERO));
        let header = RecordingHeader {
            radio: radio.to_owned(),
            tap: tap.to_owned(),
            began_unix_ns: u64::try_from(began.as_nanos()).unwrap_or(u64::MAX),
            snap: self.options.record_snap,
            ..header
        };
        let wanted = self.options.record.clone();
        let recording = RecordingSwitch(Arc::new(Inner {
            options: self.options,
            header,
            switch: Switch::default(),
            guard: PanicGuard::install(),
            state: Mutex::default(),
        }));
        let tap = wanted.map(|directory| recording.open(&mut recording.lock(), directory, 0));
        Ok((recording, tap.transpose().map_err(failed)?))
    }
}

/// The recording of a running node, for whoever starts and stops it.
#[derive(Clone, Debug)]
pub(crate) struct RecordingSwitch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: RecordOptions,
    header: RecordingHeader,
    switch: Switch,
    guard: PanicGuard,
    state: Mutex<State>,
}

/// What is going on, and what was last.
#[derive(Debug, Default)]
struct State {
    recorder: Option<Recorder>,
    handle: Option<Handle>,
    directory: PathBuf,
    /// Number of the recording in this start; the first that was begun at its making has 0.
    part: u32,
    last_part: u32,
}

impl RecordingSwitch {
    /// What tells the node to record or not.
    pub(crate) fn switch(&self) -> Switch {
        self.0.switch.clone()
    }

    fn open(&self, state: &mut State, directory: PathBuf, part: u32) -> anyhow::Result<Tape> {
        let Inner { options, header, guard, .. } = &*self.0;
        let age = options.record_age;
        let limits = Limits {
            bytes: options.record_size.saturating_mul(1 << 20),
            age: (age > 0).then(|| Duration::from_secs(age)),
            ..Limits::default()
        };
        let header = RecordingHeader { part, ..header.clone() };
        let recorder = make(&directory)
            .and_then(|()| Recorder::start(&directory, header, limits))
            .with_context(|| format!("cannot record into {}", directory.display()))?;
        guard.watch(Some(&recorder));
        info!(directory = %directory.display(), "recording");
        let tap = recorder.tap();
        state.handle = Some(recorder.handle());
        state.recorder = Some(recorder);
        state.directory = directory;
        (state.part, state.last_part) = (part, state.last_part.max(part));
        Ok(tap)
    }

    /// Records into this directory from now on, or where the flags say. The error says why not.
    pub(crate) fn start(&self, directory: Option<&str>) -> Result<(), String> {
        let mut state = self.lock();
        if state.recorder.is_some() {
            return Err(format!("{} is recorded into already", state.directory.display()));
        }
        let wanted = directory.map(PathBuf::from).or_else(|| self.0.options.record.clone());
        let Some(directory) = wanted else {
            return Err("expected a directory: this daemon was started without --record".to_owned());
        };
        if !directory.is_absolute() {
            // The daemon is somewhere else than whoever asks.
            let directory = directory.display();
            return Err(format!("{directory}: expected a path that begins with /"));
        }
        usable(&directory).map_err(|failure| format!("{:#}", failure.error))?;
        let part = state.last_part + 1;
        let tap = self.open(&mut state, directory, part).map_err(|error| format!("{error:#}"))?;
        self.0.switch.turn(Some(tap));
        Ok(())
    }

    /// Records no longer. May wait for the disk, two seconds at most.
    pub(crate) fn stop(&self) -> Result<(), String> {
        let recorder = self.lock().recorder.take();
        let Some(recorder) = recorder else { return Err("nothing is recorded".to_owned()) };
        self.0.switch.turn(None);
        self.0.guard.watch(None);
        end(recorder);
        Ok(())
    }

    /// Puts this text into the recording, and has the moment kept.
    pub(crate) fn mark(&self, text: &str) -> Result<(), String> {
        let state = self.lock();
        if state.recorder.is_none() {
            return Err("nothing is recorded: v2xctl record start".to_owned());
        }
        if text.len() > MARK_LEN_MAX {
            let len = text.len();
            return Err(format!("{len} bytes: expected a mark of at most {MARK_LEN_MAX}"));
        }
        match &state.handle {
            Some(handle) if handle.mark(text) => Ok(()),
            _ => Err("too many marks wait for the next record; try again in a second".to_owned()),
        }
    }

    /// How it stands.
    pub(crate) fn view(&self) -> message::Recording {
        let state = self.lock();
        let stats = state.handle.as_ref().map(Handle::stats);
        message::Recording {
            is_on: state.recorder.is_some(),
            directory: stats.map(|_| state.directory.display().to_string()),
            is_from_start: stats.is_some() && state.part == 0,
            counters: stats.iter().flat_map(Stats::iter).collect(),
        }
    }

    /// The node has ended.
    pub(crate) fn end(&self) {
        let recorder = self.lock().recorder.take();
        if let Some(recorder) = recorder {
            end(recorder);
        }
    }

    /// What is in it is whole between any two operations on it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the recording, and says what became of it.
fn end(recorder: Recorder) {
    let stats = recorder.finish();
    let counted = stats.iter().filter(|(_, value)| *value > 0);
    let text: Vec<_> = counted.map(|(name, value)| format!("{name}={value}")).collect();
    info!(recorder = %text.join(" "), "recording ended");
}
