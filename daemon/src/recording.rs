//! The flight recorder of a daemon: `--record` and what goes with it.

use std::io;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow};
use node_lib::{Start, Timestamp};
use recorder::segment::check_directory;
use recorder::{Header, Limits, Recorder, Role};
use serde::Serialize;
use tracing::info;

use crate::args::{Common, RecordOptions};
use crate::exit::{Failure, Kind};

/// Looks at the directory, and changes nothing there.
pub fn check(args: &Common) -> Result<(), Failure> {
    let Some(directory) = &args.record.record else { return Ok(()) };
    check_directory(directory).map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Kind::Permission,
            _ => Kind::Usage,
        };
        let what = format!("cannot record into {}: expected a directory", directory.display());
        Failure::new(kind, anyhow!("{what} that can be written: {error}"))
    })
}

/// What is to be recorded, once there is a node.
#[derive(Debug)]
pub struct Plan {
    options: RecordOptions,
    role: Role,
    settings: serde_json::Value,
}

impl Plan {
    /// What the flags say; `None` without `--record`.
    pub fn new(
        args: &Common,
        role: Role,
        settings: &impl Serialize,
    ) -> Result<Option<Self>, Failure> {
        if args.record.record.is_none() {
            return Ok(None);
        }
        let settings = serde_json::to_value(settings)
            .context("cannot write down the settings of this node")
            .map_err(|error| Failure::new(Kind::Runtime, error))?;
        Ok(Some(Self { options: args.record.clone(), role, settings }))
    }

    /// Starts the recorder of a node that is made at this time of its clock.
    pub(crate) fn begin(
        self,
        start: &Start,
        now: Timestamp,
        (radio, tap): (&str, &str),
    ) -> Result<Recorder, Failure> {
        let failed = |error: anyhow::Error| Failure::new(Kind::Runtime, error);
        let directory = self.options.record.unwrap_or_default();
        let header = Header::new(self.role, start, now, &self.settings)
            .context("cannot write down the start of this node")
            .map_err(failed)?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let began = since_1970.unwrap_or_default().saturating_sub(now.since(Timestamp::ZERO));
        let header = Header {
            radio: radio.to_owned(),
            tap: tap.to_owned(),
            began_unix_ns: u64::try_from(began.as_nanos()).unwrap_or(u64::MAX),
            snap: self.options.record_snap,
            ..header
        };
        let age = self.options.record_age;
        let limits = Limits {
            bytes: self.options.record_size.saturating_mul(1 << 20),
            age: (age > 0).then(|| Duration::from_secs(age)),
            ..Limits::default()
        };
        let recorder = Recorder::start(&directory, header, limits)
            .with_context(|| format!("cannot record into {}", directory.display()))
            .map_err(failed)?;
        recorder.save_on_panic();
        info!(directory = %directory.display(), "recording");
        Ok(recorder)
    }
}

/// Ends the recording, and says what became of it.
pub(crate) fn end(recorder: Recorder) {
    let stats = recorder.finish();
    let counted = stats.iter().filter(|(_, value)| *value > 0);
    let text: Vec<_> = counted.map(|(name, value)| format!("{name}={value}")).collect();
    info!(recorder = %text.join(" "), "recording ended");
}
