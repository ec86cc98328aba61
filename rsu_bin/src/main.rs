//! The RSU daemon.

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
use recorder::Role;
use rsu_lib::Rsu;

fn main() -> ExitCode {
    exit::code("rsu", run())
}

fn run() -> Result<(), Failures> {
    start::prepare_memory()?;
    let Parsed { args, settings, places } = shared::parse::<Args>(daemon::RSU);
    let privileges = privileges::give_up(&args.common);
    let logging = logging::start(&args.common)?;
    privileges.log();
    start::on_tokio(async {
        let mut findings = Findings::new(&places);
        let checked = start::check(&args.common, &mut findings).await;
        let (signal, bind) = (&args.signal, &args.common.bind);
        let signal = signal::open(signal, Measured::Channel, bind, &mut findings).await;
        let (checked, signal) = findings.end(checked.zip(signal))?;
        if args.common.check {
            start::print_checked(&args.common, &checked)?;
            return Ok(signal::print_checked(Measured::Channel, signal.as_ref())?);
        }
        let control = ControlSocket::open(&args.common, settings, logging.level()).await?;
        let mut devices = Devices::open(&args.common, checked).await?;
        if let Some(source) = signal {
            devices.watch_signal(source);
        }
        devices.reload_on_hang_up(Reload::of::<Args>(daemon::RSU, logging.level()));
        let settings = args.settings();
        devices.record(Plan::new(&args.common, Role::Rsu, &settings)?);
        let config = settings.config(&devices.start());
        Ok(devices.drive(control, |now| Rsu::new(config, now))?)
    })
}
