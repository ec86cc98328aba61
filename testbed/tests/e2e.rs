//! The real daemons, end to end.

mod harness;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(&[])
}
