//! The RSU daemon.

mod args;

use std::process::ExitCode;

use args::Args;
use daemon::control::ControlSocket;
use daemon::exit::{self, Failure};
use daemon::recording::Plan;
use daemon::reload::Reload;
use daemon::start::{self, Devices};
use daemon::{args as shared, logging};
use recorder::Role;
use rsu_lib::Rsu;

fn main() -> ExitCode {
    exit::code("rsu", run())
}

fn run() -> Result<(), Failure> {
    start::prepare_memory()?;
    let (args, settings) = shared::parse::<Args>(daemon::RSU);
    let logging = logging::start(&args.common)?;
    start::tokio_runtime()?.block_on(async {
        let checked = start::check(&args.common).await?;
        if args.common.check {
            return start::print_checked(&args.common, &checked);
        }
        let control = ControlSocket::open(&args.common, settings, logging.level()).await?;
        let mut devices = Devices::open(&args.common, checked).await?;
        devices.reload_on_hang_up(Reload::of::<Args>(daemon::RSU, logging.level()));
        let settings = args.settings();
        devices.record(Plan::new(&args.common, Role::Rsu, &settings)?);
        let config = settings.config(&devices.start());
        devices.drive(control, |now| Rsu::new(config, now))
    })
}
