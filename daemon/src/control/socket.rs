//! Two Unix sockets for a daemon: one to look, one to change as well.

use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use control_socket::path;
use node_lib::runtime::directory;
use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

use crate::args::Common;
use crate::exit::{Failure, FailureKind};

/// Whoever is in the group of the daemon may connect.
const MODE: u32 = 0o660;

/// The sockets of a daemon, bound.
#[derive(Debug)]
pub struct Sockets {
    pub(super) read_only: Socket,
    pub(super) read_write: Socket,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    guard: Guard,
}

/// Removes the socket when it is dropped, if it is still ours.
#[derive(Debug)]
pub(super) struct Guard {
    path: PathBuf,
    inode: u64,
}

/// Why a socket could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process listens there.
    #[error("{}: process {holder} has this control socket; give another one with \
             --control", path.display())]
    Held {
        /// Where.
        path: PathBuf,
        /// Id and name of the process.
        holder: String,
    },
    /// There is something else.
    #[error("{}: is there, and is no socket; remove it, or give another path with \
             --control", .0.display())]
    NotASocket(PathBuf),
    /// The kernel refuses.
    #[error("{}: cannot make the control socket", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        let kind = match &error {
            SocketError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                FailureKind::Permission
            }
            _ => FailureKind::Usage,
        };
        Self::new(kind, error)
    }
}

impl Sockets {
    /// Looks whether those the user asked for could be made. Makes none, and takes none away.
    pub(super) async fn check(args: &Common) -> Result<(), SocketError> {
        let Some(wanted) = args.control.as_deref().filter(|_| !args.no_control) else {
            return Ok(());
        };
        for path in [wanted, &path::read_write(wanted)] {
            let failed = |source| SocketError::Io { path: path.to_owned(), source };
            directory::takes_files(directory::of(path)).map_err(failed)?;
            match path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                _ => is_left_behind(path).await?,
            }
        }
        Ok(())
    }

    /// Makes those the user wants; none if there are to be none, or if nobody asked for them and
    /// they cannot be had.
    pub(super) async fn open(args: &Common) -> Result<Option<Self>, Failure> {
        if args.no_control {
            return Ok(None);
        }
        if let Some(wanted) = &args.control {
            return Ok(Some(Self::bind(wanted).await?));
        }
        let default = path::of(&args.tap_name);
        let made = make_directory(Path::new(path::DIRECTORY));
        let bound = match made {
            Ok(()) => Self::bind(&default).await,
            Err(source) => Err(SocketError::Io { path: default, source }),
        };
        bound.map(Some).or_else(|error| {
            let cause = format!("{:#}", anyhow!(error));
            warn!(%cause, "no control socket: v2xctl cannot look inside this daemon");
            Ok(None)
        })
    }

    async fn bind(read_only: &Path) -> Result<Self, SocketError> {
        let read_write = path::read_write(read_only);
        Ok(Self {
            read_only: Socket::bind(read_only).await?,
            read_write: Socket::bind(&read_write).await?,
        })
    }
}

fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)
}

impl Socket {
    async fn bind(path: &Path) -> Result<Self, SocketError> {
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                put_aside(path).await?;
                UnixListener::bind(path).map_err(failed)?
            }
            bound => bound.map_err(failed)?,
        };
        let inode = std::fs::symlink_metadata(path).map_err(failed)?.ino();
        let guard = Guard { path: path.to_owned(), inode };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE)).map_err(failed)?;
        Ok(Self { listener, guard })
    }

    pub(super) fn path(&self) -> &Path {
        &self.guard.path
    }

    pub(super) fn split(self) -> (UnixListener, Guard) {
        (self.listener, self.guard)
    }
}

/// Removes a socket behind which nobody is any more.
async fn put_aside(path: &Path) -> Result<(), SocketError> {
    is_left_behind(path).await?;
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    std::fs::remove_file(path).map_err(failed)
}

/// Fails unless what is there is a socket behind which nobody is any more.
async fn is_left_behind(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    let found = std::fs::symlink_metadata(path).map_err(failed)?;
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path).await {
        Ok(stream) => Err(SocketError::Held { path: path.to_owned(), holder: holder(&stream) }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(source) => Err(failed(source)),
    }
}

/// Id and name of the process at the other end.
fn holder(stream: &UnixStream) -> String {
    let Some(pid) = stream.peer_cred().ok().and_then(|cred| cred.pid()) else {
        return "unknown".to_owned();
    };
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("{pid} ({})", name.trim()),
        Err(_) => pid.to_string(),
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let is_ours = |found: std::fs::Metadata| found.ino() == self.inode;
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // Who removed it before us wanted the same.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::collections::BTreeSet;

    use super::*;

    fn in_runtime<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn a_socket_is_for_its_group_and_gone_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("obu0.sock");
        in_runtime(async {
            let sockets = Sockets::bind(&path).await.unwrap();
            for path in [path.clone(), directory.path().join("obu0.rw.sock")] {
                let mode = std::fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, MODE, "{}", path.display());
            }
            drop(sockets);
        });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn looking_finds_what_making_would_and_leaves_everything_as_it_is() {
        #[derive(Debug, clap::Parser)]
        struct Args {
            #[command(flatten)]
            common: Common,
        }
        let look = |path: &Path| {
            let line = ["obu".into(), "-b".into(), "w".into(), "--control".into(), path.into()];
            let args: Args = crate::args::parse_from(crate::OBU, line).unwrap();
            in_runtime(async { Sockets::check(&args.common).await })
        };
        let directory = tempfile::tempdir().unwrap();
        let [free, dead, file, held, half] =
            ["free.sock", "dead.sock", "file", "held", "half.sock"]
                .map(|name| directory.path().join(name));
        drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
        std::fs::write(&file, "precious").unwrap();
        let _living = std::os::unix::net::UnixListener::bind(&held).unwrap();
        std::fs::create_dir(directory.path().join("half.rw.sock")).unwrap();
        let names = || {
            let entries = std::fs::read_dir(directory.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
        };
        let before = names();
        for path in [&free, &dead] {
            look(path).unwrap();
        }
        let nowhere = directory.path().join("none/x.sock");
        for path in [&file, &held, &half, &nowhere, Path::new("/proc/x.sock")] {
            let seen = anyhow!(look(path).unwrap_err());
            let met = anyhow!(in_runtime(Sockets::bind(path)).unwrap_err());
            assert_eq!(format!("{seen:#}"), format!("{met:#}"));
            // One of the two may have been made, and went away again.
            assert_eq!(names(), before, "{}", path.display());
        }
        look(&dead).unwrap();
    }

    #[test]
    fn a_socket_of_the_dead_is_replaced_and_one_of_the_living_names_its_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("obu0.sock");
        // Whoever is killed leaves it behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        in_runtime(async {
            let first = Sockets::bind(&path).await.unwrap();
            let said = Sockets::bind(&path).await.unwrap_err().to_string();
            assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
            assert!(said.contains("--control"), "{said}");
            drop(first);
        });
    }

    #[test]
    fn a_socket_that_cannot_be_made_says_why_once() {
        let path = Path::new("/nonexistent/obu0.sock");
        let error = in_runtime(Socket::bind(path)).unwrap_err();
        let said = format!("{:#}", Failure::from(error).error);
        let expected = "/nonexistent/obu0.sock: cannot make the control socket: No such file or \
                        directory (os error 2)";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_socket_that_somebody_else_has_put_there_is_left_to_him() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["obu0.sock", "other"].map(|name| directory.path().join(name));
        in_runtime(async {
            let sockets = Sockets::bind(&path).await.unwrap();
            let _theirs = std::os::unix::net::UnixListener::bind(&other).unwrap();
            std::fs::rename(&other, &path).unwrap();
            drop(sockets);
        });
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert!(path.exists() && left.len() == 1, "{left:?}");
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("obu0.sock");
        std::fs::write(&path, "precious").unwrap();
        let said = in_runtime(Sockets::bind(&path)).unwrap_err().to_string();
        assert!(said.contains("no socket"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
