//! What the nodes that never restart hold, minute by minute, in a file for whoever draws it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::daemons::usage::Usage;
use crate::topology::world::TestbedNode;

const EVERY: Duration = Duration::from_secs(60);

/// A file that grows by a line for each node every minute.
#[derive(Debug)]
pub(super) struct Samples {
    file: File,
    next: Duration,
}

impl Samples {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let mut file = File::create(path).with_context(|| path.display().to_string())?;
        writeln!(file, "minute,node,resident_kib,anonymous_kib,descriptors,threads")?;
        Ok(Self { file, next: Duration::ZERO })
    }

    /// After so much of the run: writes down how the nodes are, once a minute.
    pub(super) fn look(&mut self, run: Duration, nodes: &[&TestbedNode]) -> Result<()> {
        if run < self.next {
            return Ok(());
        }
        self.next = run + EVERY;
        for node in nodes {
            let pid = node.daemon()?.pid();
            let Usage { resident, anonymous, threads, .. } = Usage::of(pid)?;
            let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
            let (minute, name) = (run.as_secs_f64() / 60.0, node.name());
            let [resident, anonymous] = [resident, anonymous].map(|bytes| bytes / 1024);
            writeln!(
                self.file,
                "{minute:.1},{name},{resident},{anonymous},{descriptors},{threads}"
            )?;
        }
        Ok(())
    }
}
