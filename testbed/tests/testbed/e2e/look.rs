//! What a test asks of hosts and daemons: who reaches whom, how long there was no route, who runs.

use std::net::IpAddr;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;
use testbed::daemons::daemon::LogEvent;
use testbed::probe::{PingStream, StreamReport};
use testbed::{Host, Netns, Testbed, TestbedNode, wait_until};

use super::scene::PATIENCE;
use crate::harness::ms;

/// Between probes.
pub(crate) const PROBE_EVERY: Duration = ms(10);

/// What a daemon has counted so far.
pub(crate) fn counters_of(node: &TestbedNode) -> Result<LogEvent> {
    let daemon = node.daemon()?;
    let is_counters = |event: &&LogEvent| event.message() == "counters";
    let before = daemon.events()?.iter().filter(is_counters).count();
    daemon.signal(Signal::SIGUSR1)?;
    wait_until("counters", PATIENCE, || {
        Ok(daemon.events()?.iter().filter(is_counters).nth(before).cloned())
    })
}

/// Waits until one ping is answered, and says how long that took.
pub(crate) fn reaches(from: &Host, to: &Host, timeout: Duration) -> Result<Duration> {
    let start = Instant::now();
    let ping = PingStream::start(&from.ns, to.v4, PROBE_EVERY)?;
    let what = format!("{} reaches {}", from.name(), to.name());
    let reached = wait_until(&what, timeout, || Ok((ping.received() > 0).then(|| start.elapsed())));
    ping.stop()?;
    reached
}

/// A steady ping over IPv4 and IPv6 loses nothing and doubles nothing.
pub(crate) fn answers_all(from: &Host, to: &Host) -> Result<()> {
    for address in [to.v4, to.v6] {
        let report = steady_ping(&from.ns, address)?;
        ensure!(
            report.received == report.sent && report.duplicates == 0,
            "{} to {} ({address}): {report:?}",
            from.name(),
            to.name()
        );
    }
    Ok(())
}

fn steady_ping(from: &Netns, to: IpAddr) -> Result<StreamReport> {
    PingStream::count(from, to, 30, PROBE_EVERY)
}

/// How long there was no route: lost probes in a row, times their distance. Whatever happened,
/// nothing may arrive twice.
pub(crate) fn outage(report: &StreamReport) -> Result<Duration> {
    ensure!(report.duplicates == 0, "{report:?}");
    ensure!(report.received > 0, "no ping was answered");
    let lost_at_the_end = report.sent - 1 - report.last_received;
    ensure!(lost_at_the_end < 5, "the last {lost_at_the_end} pings were lost: {report:?}");
    Ok(PROBE_EVERY * u32::try_from(report.lost_in_a_row)?)
}

/// The node among two that the vehicle uses as upstream, and the other.
pub(crate) fn active_first<'a>(
    obu: &TestbedNode,
    paths: &'a mut [Rc<TestbedNode>; 2],
) -> Result<(&'a Rc<TestbedNode>, &'a Rc<TestbedNode>)> {
    if obu.sends_through(&paths[1])? {
        paths.swap(0, 1);
    }
    let [active, other] = &*paths;
    let says = || format!("{} sends through neither: {:?}", obu.name(), obu.attachment());
    ensure!(obu.sends_through(active)?, says());
    Ok((active, other))
}

/// Waits, and sees to it that the daemon waits too: with nobody to talk to there is hardly a reason
/// to wake up. (A daemon that never sleeps is found by its tests' timeouts.)
pub(crate) fn rests(node: &TestbedNode, time: Duration) -> Result<()> {
    const PER_SECOND_MAX: f64 = 100.0;
    let before = node.daemon()?.sleeps()?;
    std::thread::sleep(time);
    let woken = node.daemon()?.sleeps()? - before;
    println!("    {} woke up {woken} times in {time:?}", node.name());
    ensure!(
        woken as f64 <= time.as_secs_f64() * PER_SECOND_MAX,
        "{} woke up {woken} times in {time:?}",
        node.name()
    );
    Ok(())
}

pub(crate) fn all_run(bed: &Testbed) -> Result<()> {
    for node in bed.nodes() {
        if let Some(status) = node.try_wait()? {
            bail!("{} ended with {status}", node.name());
        }
    }
    Ok(())
}

/// It failed by itself, without panic, and its last words contain this.
pub(crate) fn ended_with_reason(
    node: &TestbedNode,
    status: ExitStatus,
    reason: &str,
) -> Result<()> {
    let said = node.log_tail(20);
    ensure!(status.code().is_some_and(|code| code != 0), "{} ended with {status}", node.name());
    ensure!(!said.contains("panicked"), "{} panicked", node.name());
    ensure!(said.contains(reason), "{} does not say {reason}: {said}", node.name());
    Ok(())
}
