//! Network namespaces held by file descriptor: nothing is mounted, so nothing is left behind.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace. It lives as long as a handle, a socket or a process in it.
#[derive(Clone, Debug)]
pub struct Netns {
    name: Arc<str>,
    fd: Arc<OwnedFd>,
}

impl Netns {
    /// Creates an empty namespace: `lo` up, no IPv6 duplicate address detection.
    pub fn create(name: &str) -> Result<Self> {
        let fd = on_a_thread(|| -> Result<OwnedFd> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // A fresh address is usable at once; the testbed hands out each address once.
            // A kernel without IPv6 has no such files, and needs none.
            for scope in ["all", "default"] {
                for (file, value) in [("accept_dad", "0"), ("router_solicitations", "0")] {
                    let _ =
                        std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/{file}"), value);
                }
            }
            Ok(File::open("/proc/thread-self/ns/net")?.into())
        })
        .with_context(|| format!("network namespace {name}"))?;
        let namespace = Self { name: name.into(), fd: Arc::new(fd) };
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// Creates an empty namespace whose interfaces send nothing of their own accord: without
    /// addresses there is no ARP, and IPv6, which would invent an address, is off.
    pub fn create_silent(name: &str) -> Result<Self> {
        let namespace = Self::create(name)?;
        namespace.run(|| {
            for scope in ["all", "default"] {
                let file = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
                if std::fs::exists(&file)? {
                    std::fs::write(file, "1")?;
                }
            }
            Ok(())
        })?;
        Ok(namespace)
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` on a thread inside the namespace. Sockets opened and processes spawned there
    /// stay in the namespace wherever they are used afterwards.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_a_thread(|| {
            setns(self.fd.as_fd(), CloneFlags::CLONE_NEWNET).context("setns")?;
            work()
        })
        .with_context(|| format!("in {}", self.name))
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A thread may change its namespace without the others; it must not go back to other work.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
