//! `v2xtrace`: the tools for recordings, by themselves.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use recorder::cli::{self, Command};

/// Looks at recordings of `obu` and `rsu`, repairs, exports and replays them
#[derive(Debug, Parser)]
#[command(name = "v2xtrace", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

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
