//! The real daemons, in network namespaces, on interfaces they cannot tell from those of a machine.

#![allow(clippy::indexing_slicing, reason = "test code: an index out of range is a failed test")]

mod arena;
mod beds;
mod control;
mod day;
mod days;
mod disk;
mod e2e;
mod faults;
mod harness;
mod http;
mod plain_user;
mod preload;
mod recording;
mod restarts;
mod row;
mod soak;

use std::process::ExitCode;

/// Areas with long tests come first: what is long and starts last is waited for by all.
fn main() -> ExitCode {
    harness::main(&[
        days::AREA,
        day::AREA,
        e2e::AREA,
        restarts::AREA,
        faults::AREA,
        control::AREA,
        recording::AREA,
        http::AREA,
        arena::AREA,
        soak::AREA,
    ])
}
