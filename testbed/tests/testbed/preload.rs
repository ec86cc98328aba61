//! What the library of `preload.c` does to a daemon that is started with it.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use testbed::TestbedNode;

/// By how much the clocks of one that will have slept are ahead: on a machine that has just
/// started there is no hour to be behind.
const AHEAD: Duration = Duration::from_secs(2 * 3600);

/// What a daemon was told, and can be told while it runs.
pub(crate) struct Told {
    directory: TempDir,
}

impl Told {
    /// The next daemons of this node are started with it: the first will have slept for an hour
    /// when it is told so.
    pub(crate) fn sleeper(node: &TestbedNode) -> Result<Self> {
        node.clock_ahead.set(AHEAD);
        Self::new(node, [0; 6], 1)
    }

    /// The next daemons of this node live so many times as fast as everybody else.
    pub(crate) fn faster(node: &TestbedNode, pace: u32) -> Result<Self> {
        Self::new(node, [1, 0, 0, 0, 0, 0], pace)
    }

    fn new(node: &TestbedNode, told: [u8; 6], pace: u32) -> Result<Self> {
        let this = Self { directory: TempDir::new_in(testbed::arena::scratch())? };
        let (library, program) = (this.path("preload.so"), this.path("program"));
        fs::write(this.path("told"), told)?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/preload.c");
        let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = Command::new(&cc)
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", source, "-o"])
            .arg(&library)
            .output()
            .with_context(|| format!("a C compiler, {}", cc.display()))?;
        ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let script = format!(
            "#!/bin/sh\nexec env LD_PRELOAD={} TESTBED_TOLD={} TESTBED_PACE={pace} {} \"$@\"\n",
            library.display(),
            this.path("told").display(),
            node.program.borrow().display()
        );
        fs::write(&program, script)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        node.program.replace(program);
        Ok(this)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn tell(&self, which: u64, what: u8) -> Result<()> {
        let file = fs::OpenOptions::new().write(true).open(self.path("told"))?;
        Ok(file.write_all_at(&[what], which)?)
    }

    pub(crate) fn hour_has_passed(&self) -> Result<()> {
        self.tell(0, 1)
    }

    pub(crate) fn rights_are_gone(&self) -> Result<()> {
        self.tell(1, 1)
    }

    /// Somebody sets the clock: ten years ahead, or back.
    pub(crate) fn clock_is_set(&self, is_ahead: bool) -> Result<()> {
        self.tell(3, if is_ahead { 1 } else { 2 })
    }

    /// It panics with the next line its packet loop logs, or goes on as before.
    pub(crate) fn panics(&self, does: bool) -> Result<()> {
        self.tell(4, does.into())
    }

    /// From now on it takes 30 ms of a processor to learn the time.
    pub(crate) fn wastes_its_processor(&self) -> Result<()> {
        self.tell(5, 1)
    }

    /// From now on it forgets to give memory back.
    pub(crate) fn leak(&self) -> Result<()> {
        self.tell(2, 1)
    }
}
