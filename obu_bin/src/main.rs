//! The OBU daemon.

mod args;

use std::process::ExitCode;

use args::Args;
use daemon::args::{self as shared, Parsed};
use daemon::control::ControlSocket;
use daemon::exit::{self, Failures};
use daemon::findings::Findings;
use daemon::recording::Plan;
use daemon::reload::Reload;
use daemon::signal::{self, Measured};
use daemon::start::{self, Devices};
use daemon::{logging, privileges};
use obu_lib::Obu;
use recorder::Role;

fn main() -> ExitCode {
    exit::code("obu", run())
}

fn run() -> Result<(), Failures> {
    start::prepare_memory()?;
    let Parsed { args, settings, places } = shared::parse::<Args>(daemon::OBU);
    let privileges = privileges::give_up(&args.common);
    let logging = logging::start(&args.common)?;
    privileges.log();
    start::on_tokio(async {
        let mut findings = Findings::new(&places);
        let checked = start::check(&args.common, &mut findings).await;
        let signal =
            signal::open(&args.signal, Measured::Strength, &args.common.bind, &mut findings).await;
        let (checked, signal) = findings.end(checked.zip(signal))?;
        if args.common.check {
            start::print_checked(&args.common, &checked)?;
            start::print_remembered(args.common.state_file.as_deref())?;
            return Ok(signal::print_checked(Measured::Strength, signal.as_ref())?);
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
        Ok(devices.drive(control, |now| Obu::new(config, now))?)
    })
}
