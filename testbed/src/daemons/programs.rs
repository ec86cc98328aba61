//! Where the programs under test are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Paths of the programs a testbed starts.
#[derive(Clone, Debug)]
pub struct Programs {
    /// This crate's own binary, which carries the medium.
    pub testbed: PathBuf,
    /// The vehicle's daemon.
    pub obu: PathBuf,
    /// The road-side daemon.
    pub rsu: PathBuf,
    /// What looks inside them.
    pub v2xctl: PathBuf,
    /// What looks at recordings.
    pub v2xtrace: PathBuf,
    /// What simulates towns.
    pub v2xsim: PathBuf,
    /// What the daemons are measured against.
    pub naive_relay: PathBuf,
}

impl Programs {
    /// `TESTBED_BIN`, `OBU_BIN`, `RSU_BIN`, `V2XCTL_BIN`, `V2XTRACE_BIN`, `V2XSIM_BIN` and
    /// `NAIVE_RELAY_BIN` when set; otherwise beside the running program, where cargo puts all
    /// binaries of a profile.
    pub fn find() -> Result<Self> {
        let program = std::env::current_exe().context("path of this program")?;
        let dir = program.parent().context("directory of this program")?;
        // Tests are one level deeper.
        let dir = if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir };
        let path = |variable, name| {
            std::env::var_os(variable).map_or_else(|| dir.join(name), PathBuf::from)
        };
        Ok(Self {
            testbed: existing(path("TESTBED_BIN", "testbed"))?,
            obu: path("OBU_BIN", "obu"),
            rsu: path("RSU_BIN", "rsu"),
            v2xctl: path("V2XCTL_BIN", "v2xctl"),
            v2xtrace: path("V2XTRACE_BIN", "v2xtrace"),
            v2xsim: path("V2XSIM_BIN", "v2xsim"),
            naive_relay: path("NAIVE_RELAY_BIN", "naive_relay"),
        })
    }

    /// The same with the daemons of this directory.
    pub fn with_daemons_of(mut self, dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().with_context(|| dir.display().to_string())?;
        (self.obu, self.rsu) = (dir.join("obu"), dir.join("rsu"));
        self.require_daemons()?;
        Ok(self)
    }

    /// Fails unless the daemons are there.
    pub fn require_daemons(&self) -> Result<()> {
        for daemon in [&self.obu, &self.rsu] {
            existing(daemon.clone())?;
        }
        Ok(())
    }
}

fn existing(path: PathBuf) -> Result<PathBuf> {
    if !Path::new(&path).is_file() {
        bail!("{} is not built; build everything first: cargo build --workspace", path.display());
    }
    Ok(path)
}
