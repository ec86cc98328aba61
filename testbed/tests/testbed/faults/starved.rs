//! A daemon that gets a hundredth of a processor while it is offered more data than that carries.
//!
//! Not by a control group, which a plain user may not make: the process is stopped for
//! ninety-nine times as long as it ran. Who runs for less is stopped for less. So what else the
//! machine does takes nothing from its hundredth.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use node_lib::messages::control::Control;
use tempfile::TempDir;
use testbed::Testbed;
use testbed::probe::UdpStream;

use super::{Pair, control_in, reaches, seconds};
use crate::beds::with_logs;
use crate::harness::ms;
use crate::preload::Told;

/// Of a processor, one part in so many.
const SHARE: u32 = 100;
/// It is let run for so long at a time.
const TURN: Duration = ms(1);
/// It is not stopped for longer in one go, whatever it owes.
const STOPPED_MAX: Duration = ms(500);
/// Twenty thousand frames a second. A hundredth of a fast processor carries six thousand.
const FRAME_EVERY: Duration = Duration::from_micros(50);

/// F25: of what is offered most is lost, and nine of ten heartbeats are sent in time.
pub(super) fn heartbeats_go_before_data() -> Result<()> {
    let span = Duration::from_secs(seconds(15)?);
    let heard = heard_of_starved(span, |_| Ok(()))?;
    ensure!(is_enough(heard, span), "{heard} heartbeats in {span:?}");
    Ok(())
}

/// Otherwise that would say nothing.
pub(super) fn one_that_wastes_its_processor() -> Result<()> {
    let span = Duration::from_secs(10);
    let heard = heard_of_starved(span, Told::wastes_its_processor)?;
    ensure!(!is_enough(heard, span), "{heard} heartbeats in {span:?}");
    Ok(())
}

/// Nine of ten, of one a second.
fn is_enough(heard: u64, span: Duration) -> bool {
    heard * 10 >= span.as_secs() * 9
}

/// How many heartbeats a vehicle hears in so long of a road-side unit that is to say one a second.
fn heard_of_starved(span: Duration, prepare: impl FnOnce(&Told) -> Result<()>) -> Result<u64> {
    let mut bed = Testbed::new(1)?;
    let pair = Pair::add_to(&mut bed)?;
    let recordings = TempDir::new_in(testbed::arena::scratch())?;
    let record = ["--record".to_owned(), recordings.path().display().to_string()];
    pair.obu.extra_args.borrow_mut().extend(record);
    let rarely = ["--hello-periodicity", "1000"].map(str::to_owned);
    pair.rsu.extra_args.borrow_mut().extend(rarely);
    let told = Told::faster(&pair.rsu, 1)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&pair)?;
        let pid = pair.rsu.daemon()?.pid();
        let before = ran(pid)?;
        prepare(&told)?;
        let is_over = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            let starving = scope.spawn(|| starve(pid, &is_over));
            let (from, to) = (&pair.server, &pair.obu.host);
            let offered = UdpStream::start(&from.ns, &to.ns, to.v4, FRAME_EVERY, 64);
            std::thread::sleep(span);
            let report = offered.and_then(UdpStream::stop);
            is_over.store(true, Ordering::Relaxed);
            starving.join().map_err(|_| anyhow::anyhow!("who starves it"))??;
            report
        })?;
        let ran = ran(pid)? - before;
        println!("    {ran:?} of {span:?}, {} of {} frames", report.received, report.sent);
        ensure!(ran < span / 10, "it was not starved: {ran:?} of {span:?}");
        ensure!(report.received * 2 < report.sent, "it had time for data: {report:?}");
        pair.obu.stop()
    })?;
    let mut heard = Vec::new();
    let end = control_in(recordings.path(), |at, said| match said {
        // Those that the RSU itself said.
        Control::Heartbeat(said) if said.hops == 0 => heard.push(at),
        _ => {}
    })?;
    let heard = heard.iter().filter(|at| end.since(**at) <= span).count() as u64;
    println!("    {heard} heartbeats in {span:?}");
    Ok(heard)
}

/// For how long its packet loop, which is its first thread, ran.
fn ran(pid: u32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let nanos = text.split_whitespace().next().context("schedstat")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}

fn starve(pid: u32, is_over: &AtomicBool) -> Result<()> {
    let process = Pid::from_raw(pid.try_into()?);
    let mut known = ran(pid)?;
    let starved = loop {
        std::thread::sleep(TURN);
        if is_over.load(Ordering::Relaxed) {
            break Ok(());
        }
        kill(process, Signal::SIGSTOP)?;
        let Ok(now) = ran(pid) else { break Err(anyhow::anyhow!("it has ended")) };
        let owed = (now - known) * (SHARE - 1);
        known = now;
        std::thread::sleep(owed.min(STOPPED_MAX));
        kill(process, Signal::SIGCONT)?;
    };
    kill(process, Signal::SIGCONT)?;
    starved
}
