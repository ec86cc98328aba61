//! What is said to people and to the shell.

use std::io::Write as _;

/// What the shell is told. The worst of all daemons counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Done = 0,
    Unhealthy = 4,
    Refused = 1,
    Usage = 2,
    Unreachable = 3,
}

/// Writes to standard output. Who closed it has seen enough.
pub(crate) fn print(text: &str) {
    let mut out = anstream::stdout();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

pub(crate) fn complain(text: &str) {
    // Nobody is left to tell.
    let _ = writeln!(anstream::stderr(), "v2xctl: {text}");
}
