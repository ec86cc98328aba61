//! The RSU daemon.

mod args;

use std::process::ExitCode;

use args::Args;
use daemon::exit::{self, Failure};
use daemon::start::{self, Devices};
use daemon::{args as shared, logging};
use rsu_lib::Rsu;

fn main() -> ExitCode {
    exit::code("rsu", run())
}

fn run() -> Result<(), Failure> {
    let args: Args = shared::parse(daemon::RSU);
    let _logging = logging::start(&args.common)?;
    start::tokio_runtime()?.block_on(async {
        let checked = start::check(&args.common).await?;
        if args.common.check {
            return start::print_checked(&args.common, &checked);
        }
        let devices = Devices::open(&args.common, checked).await?;
        let config = args.settings().config(&devices.start());
        devices.drive(|now| Rsu::new(config, now))
    })
}
