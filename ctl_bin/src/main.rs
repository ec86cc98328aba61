//! `v2xctl`: looks inside running daemons, and asks them why.

mod args;
mod ask;
mod names;
mod probe;
mod say;
mod show;
mod tell;
mod text;
mod top;
mod watch;

use std::process::ExitCode;

use args::Args;
use clap::Parser;

fn main() -> ExitCode {
    ask::run(&Args::parse())
}
