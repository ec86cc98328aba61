//! `v2xtrace`: the tools for recordings, by themselves.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use recorder::cli::{self, Args};

fn main() -> ExitCode {
    let args = Args::parse();
    match cli::run(&args.command, &mut io::stdout().lock()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "v2xtrace: {error}");
            ExitCode::from(2)
        }
    }
}
