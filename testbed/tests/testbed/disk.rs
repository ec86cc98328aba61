//! A disk of its own, which can be made read-only under running daemons.

use std::path::PathBuf;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount, umount};
use tempfile::TempDir;
use testbed::TestbedNode;

/// Mounted until it is dropped. The arena has a mount namespace of its own.
pub(crate) struct Disk(TempDir);

impl Disk {
    /// An empty one that can be written.
    pub(crate) fn new() -> Result<Self> {
        let at = TempDir::new_in(testbed::arena::scratch())?;
        let disk = Self(at);
        disk.mount(MsFlags::empty()).context("mount a tmpfs")?;
        Ok(disk)
    }

    /// Nobody can write to it from now on, or everybody again.
    pub(crate) fn set_read_only(&self, is_read_only: bool) -> Result<()> {
        let flags = if is_read_only { MsFlags::MS_RDONLY } else { MsFlags::empty() };
        self.mount(MsFlags::MS_REMOUNT | flags)
            .with_context(|| format!("make it read-only: {is_read_only}"))
    }

    fn mount(&self, flags: MsFlags) -> nix::Result<()> {
        mount(Some("disk"), self.0.path(), Some("tmpfs"), flags, None::<&str>)
    }

    /// The state file of a node on it.
    pub(crate) fn state_file(&self, node: &TestbedNode) -> PathBuf {
        self.0.path().join(node.name())
    }

    /// The node has its state file on it, from its next start on.
    pub(crate) fn give_to(&self, node: &TestbedNode) {
        let file = self.state_file(node).display().to_string();
        node.extra_args.borrow_mut().extend(["--state-file".to_owned(), file]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What is still open keeps it, and goes with the arena.
        let _ = umount(self.0.path());
    }
}
