//! Exit codes, and the error that carries one.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use node_lib::device::DeviceError;
use node_lib::runtime::boot::BootError;
use rustix::event::{self, PollFd, PollFlags, Timespec};

/// Exit codes as `--help` tells them.
pub const HELP: &str = "\
Exit codes:
  0  stopped as asked, or --check found nothing wrong
  1  failed while running
  2  wrong arguments or configuration
  3  a capability or permission is missing
  4  an interface does not exist or cannot be used

Signals: SIGTERM, SIGINT and SIGHUP say goodbye and stop, a second SIGTERM or SIGINT stops at once;
with --config, SIGHUP reads the file again instead, and what can change does;
SIGUSR1 logs all counters; SIGUSR2 is ignored.";

/// How long the end of the program waits for its last words to be taken.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);

/// Bytes that a pipe with room takes at once.
const PAGE: usize = 4096;

/// What kind of failure ended the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Something failed that had worked.
    Runtime = 1,
    /// What the user asked for cannot work.
    Usage = 2,
    /// The kernel does not let us.
    Permission = 3,
    /// An interface is missing or cannot be used.
    Interface = 4,
}

/// Why the daemon ended.
#[derive(Debug)]
pub struct Failure {
    /// Decides the exit code.
    pub kind: FailureKind,
    /// What to print, with its causes.
    pub error: anyhow::Error,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, error: error.into() }
    }
}

/// What ended the daemon: one failure, or everything that kept it from starting.
#[derive(Debug)]
pub struct Failures(pub Vec<Failure>);

impl Failures {
    /// Decides the exit code: the first that waiting does not mend, since by the code a supervisor
    /// decides whether to try again; otherwise the first.
    pub fn kind(&self) -> FailureKind {
        let Self(failures) = self;
        let mut kinds = failures.iter().map(|failure| failure.kind);
        let first = kinds.clone().next().unwrap_or(FailureKind::Runtime);
        let lasts =
            |kind: &FailureKind| matches!(kind, FailureKind::Usage | FailureKind::Permission);
        kinds.find(lasts).unwrap_or(first)
    }
}

impl From<Failure> for Failures {
    fn from(failure: Failure) -> Self {
        Self(vec![failure])
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        let kind = if error.is_usage() {
            FailureKind::Usage
        } else if error.is_permission() {
            FailureKind::Permission
        } else {
            FailureKind::Interface
        };
        Self::new(kind, error)
    }
}

impl From<BootError> for Failure {
    fn from(error: BootError) -> Self {
        let kind = match &error {
            BootError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                FailureKind::Permission
            }
            _ => FailureKind::Usage,
        };
        Self::new(kind, error)
    }
}

/// Prints the failures, if there are any, each with its chain of causes on one line, and tells the
/// shell.
pub fn code(name: &str, result: Result<(), Failures>) -> ExitCode {
    let Err(failures) = result else { return ExitCode::SUCCESS };
    let kind = failures.kind();
    let line = |failure: Failure| format!("{name}: {:#}\n", failure.error);
    say(&failures.0.into_iter().map(line).collect::<String>());
    ExitCode::from(kind as u8)
}

/// Last words on standard error. If nobody takes them the program ends all the same, and soon.
pub(crate) fn say(text: &str) {
    // Not locked: a thread that waits for whoever reads the log has the lock.
    let stderr = io::stderr();
    let limit = Timespec::try_from(LAST_WORDS_MAX).ok();
    for page in text.as_bytes().chunks(PAGE) {
        let mut word = [PollFd::new(&stderr, PollFlags::OUT)];
        let is_taken = event::poll(&mut word, limit.as_ref()).is_ok_and(|ready| ready > 0);
        if !is_taken || rustix::io::write(&stderr, page).is_err() {
            return;
        }
    }
}

/// Writes what the user asked for.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        // Who closed the pipe did not want to know; the exit code says it all.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            FailureKind::Runtime,
            anyhow!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::device::Problem;

    #[test]
    fn each_kind_of_problem_has_its_code() {
        let kind = |source: Problem| {
            let error = DeviceError { interface: "x0".into(), operation: "be tried", source };
            Failure::from(error).kind
        };
        assert_eq!(kind(Problem::NameLength(16)), FailureKind::Usage);
        assert_eq!(kind(Problem::MissingCapability("CAP_NET_RAW")), FailureKind::Permission);
        assert_eq!(kind(Problem::NoSuchInterface), FailureKind::Interface);
        assert_eq!(kind(Problem::Busy), FailureKind::Interface);
    }

    #[test]
    fn the_code_is_that_of_the_first_failure_that_waiting_does_not_mend() {
        use FailureKind::{Interface, Permission, Runtime, Usage};
        for (kinds, expected) in [
            (&[Interface, Runtime][..], Interface),
            (&[Runtime, Interface], Runtime),
            (&[Interface, Permission, Usage], Permission),
            (&[Usage, Permission], Usage),
        ] {
            let failure = |&kind: &FailureKind| Failure::new(kind, anyhow!("no"));
            assert_eq!(Failures(kinds.iter().map(failure).collect()).kind(), expected);
        }
    }

    #[test]
    fn help_lists_every_code() {
        for kind in [
            FailureKind::Runtime,
            FailureKind::Usage,
            FailureKind::Permission,
            FailureKind::Interface,
        ] {
            assert!(HELP.contains(&format!("\n  {}  ", kind as u8)), "{kind:?}");
        }
    }
}
