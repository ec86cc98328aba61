//! The OBU daemon.

mod args;

use std::process::ExitCode;

use args::Args;
use daemon::control::ControlSocket;
use daemon::exit::{self, Failure};
use daemon::recording::Plan;
use daemon::reload::Reload;
use daemon::start::{self, Devices};
use daemon::{args as shared, logging, signal};
use obu_lib::Obu;
use recorder::Role;

fn main() -> ExitCode {
    exit::code("obu", run())
}

fn run() -> Result<(), Failure> {
    start::prepare_memory()?;
    let (args, settings) = shared::parse::<Args>(daemon::OBU);
    let logging = logging::start(&args.common)?;
    start::tokio_runtime()?.block_on(async {
        let checked = start::check(&args.common).await?;
        let signal = signal::open(&args.signal, &args.common.bind).await?;
        if args.common.check {
            start::print_checked(&args.common, &checked)?;
            start::print_remembered(args.common.state_file.as_deref())?;
            return signal::print_checked(signal.as_ref());
        }
        let control = ControlSocket::open(&args.common, settings, logging.level()).await?;
        let mut devices = Devices::open(&args.common, checked).await?;
        if let Some(source) = signal {
            devices.watch_signal(source);
        }
        devices.remember_clients(args.common.state_file.as_deref());
        devices.reload_on_hang_up(Reload::of::<Args>(daemon::OBU, logging.level()));
        let settings = args.settings();
        devices.record(Plan::new(&args.common, Role::Obu, &settings)?);
        let config = settings.config(&devices.start());
        devices.drive(control, |now| Obu::new(config, now))
    })
}
