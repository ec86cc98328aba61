//! F5: a radio whose queue is full all the time (`ENOBUFS`), while poll says that there is room.

use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use node_lib::Timestamp;
use node_lib::messages::control::Control;
use recorder::read::Recording;
use tempfile::TempDir;
use testbed::probe::{StreamReport, UdpStream};
use testbed::{Host, TestbedNode};

use super::{Pair, control_in, pair_with, reaches, seconds};
use crate::harness::ms;

/// The queue of 3,000 bytes is empty then, at 100 kbit/s twice over.
const DRAINED_AFTER: Duration = ms(500);

/// Both nodes in turn are offered more than their radio takes. What the road-side unit says of
/// itself is counted at the vehicle.
pub(super) fn a_shaped_radio_is_not_waited_for() -> Result<()> {
    let recordings = TempDir::new_in(testbed::arena::scratch())?;
    let prepare = |pair: &Pair| record(&pair.obu, &recordings);
    pair_with(prepare, |_, pair| {
        fill_radio(pair, &pair.obu, &pair.obu.host, &pair.server)?;
        fill_radio(pair, &pair.rsu, &pair.server, &pair.obu.host)?;
        pair.obu.stop()?;
        let heard = heartbeats_in(recordings.path(), &pair.rsu)?;
        let (got, said) = heard_of(heard.iter().map(|(_, number)| *number));
        println!("    {got} of {said} heartbeats");
        ensure!(got * 100 >= said * 99, "{got} of {said}");
        Ok(())
    })
}

/// What a vehicle says of itself is counted at the road-side unit. It goes before data: of these
/// hardly one in ten gets through.
pub(super) fn a_vehicle_with_a_full_radio_is_heard() -> Result<()> {
    let recordings = TempDir::new_in(testbed::arena::scratch())?;
    let prepare = |pair: &Pair| record(&pair.rsu, &recordings);
    pair_with(prepare, |_, pair| {
        let full = fill_radio(pair, &pair.obu, &pair.obu.host, &pair.server)?;
        pair.rsu.stop()?;
        let heard = heartbeats_in(recordings.path(), &pair.obu)?;
        let meanwhile = heard.iter().filter(|(at, _)| full.contains(at));
        let (got, said) = heard_of(meanwhile.map(|(_, number)| *number));
        println!("    {got} of {said} heartbeats while its radio was full");
        // One each 100 ms; a vehicle says none while it has no way.
        let due = (full.end - full.start).as_millis() / 100;
        ensure!(u128::from(said) * 2 >= due, "{said} of {due} heartbeats said");
        ensure!(got * 4 >= said * 3, "{got} of {said} heartbeats");
        Ok(())
    })
}

fn record(node: &TestbedNode, into: &TempDir) {
    let flag = ["--record".to_owned(), into.path().display().to_string()];
    node.extra_args.borrow_mut().extend(flag);
}

/// Offers ten times more than the radio of a node takes. When that was.
fn fill_radio(pair: &Pair, node: &TestbedNode, from: &Host, to: &Host) -> Result<Range<Duration>> {
    let frames = 1000 * seconds(5)?;
    shape(node, "tbf rate 100kbit burst 2000 limit 3000")?;
    let (begun, before) = (UNIX_EPOCH.elapsed()?, node.daemon()?.usage()?.cpu);
    let report = offer(from, to, frames)?;
    let (ended, cpu) = (UNIX_EPOCH.elapsed()?, node.daemon()?.usage()?.cpu - before);
    let (sent, got) = (report.sent, report.received);
    println!("    {}: {cpu:?} of a processor, {got} of {sent} frames", node.name());
    ensure!(report.lost * 2 > report.sent, "the radio was not full: {report:?}");
    ensure!(cpu <= ms(frames) / 5, "20 %: {cpu:?}");
    // Who replaces a queue throws away what waits in it.
    std::thread::sleep(DRAINED_AFTER);
    shape(node, "pfifo")?;
    let probes = reaches(pair)?;
    ensure!(probes <= 100, "{probes} probes");
    Ok(begun..ended)
}

/// What is sent on the radio of a node waits in this queueing discipline.
fn shape(node: &TestbedNode, line: &str) -> Result<()> {
    let mut tc = Command::new("tc");
    tc.args(["qdisc", "replace", "dev", "radio0", "root"]).args(line.split(' '));
    let done = node.ns().run(|| Ok(tc.output()?)).context("tc")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// Sends 64 bytes a frame from here to there, so many of them, ten times faster than the radio is.
fn offer(from: &Host, to: &Host, frames: u64) -> Result<StreamReport> {
    let stream = UdpStream::start(&from.ns, &to.ns, to.v4, ms(1), 64)?;
    std::thread::sleep(ms(frames));
    stream.stop()
}

/// The heartbeats of a node that a recording at its neighbour has: when they came, and their
/// numbers.
fn heartbeats_in(recording: &Path, of: &TestbedNode) -> Result<Vec<(Duration, u32)>> {
    let header = Recording::open(&[recording.to_owned()])?.header().clone();
    let began = Duration::from_nanos(header.began_unix_ns);
    let mut heard = Vec::new();
    control_in(recording, |at, said| match said {
        Control::Heartbeat(said) if said.sender.0 == of.radio.0 => {
            heard.push((began + at.since(Timestamp::ZERO), said.hello));
        }
        _ => {}
    })?;
    Ok(heard)
}

/// How many of these heartbeats there are, of how many that were said.
fn heard_of(numbers: impl Iterator<Item = u32> + Clone) -> (u64, u64) {
    let said = numbers.clone().max().zip(numbers.clone().min());
    (numbers.count() as u64, said.map_or(0, |(a, b)| u64::from(a - b) + 1))
}
