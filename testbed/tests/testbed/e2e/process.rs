//! What the machine asks of a daemon: signals, its file read again, its supervisor, its log.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use testbed::daemons::daemon::{Daemon, LogEvent};
use testbed::probe::PingStream;
use testbed::{Programs, Testbed, wait_until};

use super::look::{all_run, answers_all, reaches};
use super::scene::{PATIENCE, chain};
use crate::harness::ms;

/// A terminal that is closed ends a daemon with its goodbye; what means nothing ends nothing.
pub(crate) fn every_signal_ends_in_order_or_not_at_all() -> Result<()> {
    chain(1, |_, server, obu| {
        obu.daemon()?.signal(Signal::SIGUSR2)?;
        std::thread::sleep(ms(300));
        answers_all(&obu.host, server)?;
        // As many as in a long life: what tokio watches answers a task 128 times.
        wait_until("150 reports", Duration::from_secs(30), || {
            obu.daemon()?.signal(Signal::SIGUSR1)?;
            std::thread::sleep(ms(5));
            let is_report = |event: &&LogEvent| event.message() == "counters";
            Ok((obu.daemon()?.events()?.iter().filter(is_report).count() >= 150).then_some(()))
        })?;
        for _ in 0..2 {
            obu.daemon()?.signal(Signal::SIGHUP)?;
            std::thread::sleep(ms(20));
        }
        let status = obu.wait(Duration::from_secs(3))?;
        ensure!(status.success(), "after SIGHUP it ended with {status}");
        let said = obu.log_tail(5);
        ensure!(said.contains("\"stopped\""), "no goodbye: {said}");
        Ok(())
    })
}

/// An OBU that nobody else starts, with these words before its line and these after it.
pub(crate) fn alone(
    test: impl FnOnce(&dyn Fn(&[&str], &[&str]) -> Result<Daemon>, &Path) -> Result<()>,
) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let node = bed.add_obu("obu1")?;
    let scratch = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let log = scratch.path().join("obu.log");
    let start = |before: &[&str], after: &[&str]| {
        let obu = programs.obu.to_str().context("a path in UTF-8")?;
        let line = [before, &[obu, "--log-format", "json"], after].concat();
        let line: Vec<_> = line.into_iter().map(str::to_owned).collect();
        Daemon::start(node.ns(), Path::new("env"), &line, &log)
    };
    let result = test(&start, scratch.path());
    result.map_err(|error| anyhow!("{error:#}\n{}", testbed::daemons::daemon::tail(&log, 20)))
}

/// SIGHUP: what is logged changes, the rest is named and waits, and a file with a fault changes
/// nothing.
pub(crate) fn a_file_is_read_again() -> Result<()> {
    const READ: &str = "the configuration was read again";
    const WAITING: &str = "the configuration was read again; these wait for the next start";
    const REFUSED: &str = "the configuration is not taken, all settings stay as they are";
    alone(|start, scratch| {
        let file = scratch.join("car.toml");
        let write = |text: &str| std::fs::write(&file, format!("bind = 'radio0'\n{text}"));
        write("log = 'info'\nmtu = 1400\n")?;
        let mut daemon = start(&[], &["--config", file.to_str().context("a path in UTF-8")?])?;
        daemon.wait_for_event("running", PATIENCE, |_| true)?;
        let hang_up = |text: &str, message: &str, field: &str, value: &str| -> Result<()> {
            write(text)?;
            daemon.signal(Signal::SIGHUP)?;
            let is_it = |event: &LogEvent| field.is_empty() || event.text(field).contains(value);
            daemon.wait_for_event(message, PATIENCE, is_it).map(drop)
        };
        hang_up("log = 'info'\nmtu = 1400\n", READ, "", "")?;
        hang_up("log = 'info'\nmtu = 1300\n", WAITING, "settings", "mtu")?;
        hang_up("log = 'loud'\nmtu = 1300\n", REFUSED, "error", "car.toml:2: log")?;
        hang_up("log = 'debug'\nmtu = 1400\n", "what is logged has changed", "log", "debug")?;
        // What is only told at DEBUG is told now.
        daemon.signal(Signal::SIGUSR2)?;
        daemon.wait_for_event("SIGUSR2 means nothing", PATIENCE, |_| true)?;
        ensure!(daemon.try_wait()?.is_none(), "it ended");
        daemon.terminate()
    })
}

/// SIGHUP while the file cannot be read, as on a disk that hangs: here it is a pipe into which
/// nobody writes. Everything else goes on, and the end comes in time.
pub(crate) fn a_file_that_hangs() -> Result<()> {
    alone(|start, scratch| {
        let file = scratch.join("car.toml");
        std::fs::write(&file, "bind = 'radio0'\n")?;
        let mut daemon = start(&[], &["--config", file.to_str().context("a path in UTF-8")?])?;
        daemon.wait_for_event("running", PATIENCE, |_| true)?;
        std::fs::remove_file(&file)?;
        mkfifo(&file, Mode::S_IRUSR | Mode::S_IWUSR)?;
        daemon.signal(Signal::SIGHUP)?;
        std::thread::sleep(ms(200));
        daemon.signal(Signal::SIGUSR1)?;
        daemon.wait_for_event("counters", ms(2000), |_| true).context("signals are not heard")?;
        daemon.terminate()
    })
}

/// What systemd hears of a daemon: that it is ready, that its loop turns, and that it stops.
pub(crate) fn a_supervisor_is_told() -> Result<()> {
    alone(|start, scratch| {
        let name = scratch.join("notify");
        let supervisor = UnixDatagram::bind(&name)?;
        supervisor.set_read_timeout(Some(PATIENCE))?;
        let heard = || -> Result<String> {
            let mut buffer = [0; 100];
            let len = supervisor.recv(&mut buffer).context("nothing was told")?;
            Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
        };
        let socket = format!("NOTIFY_SOCKET={}", name.display());
        let mut daemon = start(&[&socket, "WATCHDOG_USEC=400000"], &["-b", "radio0"])?;
        ensure!(heard()? == "READY=1");
        daemon.wait_for_event("running", PATIENCE, |_| true)?;
        for _ in 0..5 {
            ensure!(heard()? == "WATCHDOG=1");
        }
        daemon.signal(Signal::SIGSTOP)?;
        std::thread::sleep(ms(100));
        supervisor.set_nonblocking(true)?;
        while heard().is_ok() {}
        std::thread::sleep(ms(1000));
        ensure!(heard().is_err(), "a loop that stands still gives no sign of life");
        supervisor.set_nonblocking(false)?;
        daemon.signal(Signal::SIGCONT)?;
        ensure!(heard()? == "WATCHDOG=1");
        daemon.terminate()?;
        while heard()? != "STOPPING=1" {}
        Ok(())
    })
}

/// Nobody reads the log, somebody closed it, the disk is full: frames pass, and SIGTERM ends it.
pub(crate) fn daemons_outlive_their_log() -> Result<()> {
    chain(1, |bed, server, obu| {
        // One line per frame, so that a pipe of 64 KiB is full in no time.
        obu.extra_args.borrow_mut().extend(["--log", "trace"].map(str::to_owned));
        let (reader, unread) = std::io::pipe()?;
        let (closed_reader, closed) = std::io::pipe()?;
        drop(closed_reader);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
        let sinks: [(&str, Stdio); 3] =
            [("unread", unread.into()), ("closed", closed.into()), ("full", full.into())];
        for (name, stderr) in sinks {
            obu.stop().with_context(|| format!("before {name}"))?;
            obu.stderr.replace(Some(stderr));
            obu.launch()?;
            // Its log does not tell when it is ready.
            wait_until("the TAP is up", PATIENCE, || {
                Ok(obu.ns().find("tap0")?.filter(|tap| tap.is_up))
            })?;
            std::thread::sleep(ms(300));
            reaches(&obu.host, server, PATIENCE).with_context(|| name.to_owned())?;
            let report = PingStream::count(obu.ns(), server.v4, 300, ms(2))?;
            ensure!(report.received == report.sent, "{name}: {report:?}");
            all_run(bed).with_context(|| name.to_owned())?;
        }
        obu.stop()?;
        drop(reader);
        Ok(())
    })
}
