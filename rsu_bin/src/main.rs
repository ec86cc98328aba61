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
        let checked = findings.end(checked)?;
        if args.common.check {
            return Ok(start::print_checked(&args.common, &checked)?);
        }
        let control = ControlSocket::open(&args.common, settings, logging.level()).await?;
        let mut devices = Devices::open(&args.common, checked).await?;
        devices.reload_on_hang_up(Reload::of::<Args>(daemon::RSU, logging.level()));
        let settings = args.settings();
        devices.record(Plan::new(&args.common, Role::Rsu, &settings)?);
        let config = settings.config(&devices.start());
        Ok(devices.drive(control, |now| Rsu::new(config, now))?)
    })
}
