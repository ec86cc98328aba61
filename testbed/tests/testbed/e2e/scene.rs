//! Who is there and who hears whom: a chain of vehicles, and a fork with two relays.

use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::{Host, Netns, Testbed, TestbedNode};

use super::look::reaches;
use crate::beds::{self, Fork, with_logs};
use crate::harness::ms;

/// How long a route may take where no time is promised.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// `server`, a road-side unit, and a row of vehicles each of which hears only its neighbours.
/// The test gets the last. The nodes are in this order.
pub(crate) fn chain(
    hops: usize,
    test: impl FnOnce(&mut Testbed, &Host, &TestbedNode) -> Result<()>,
) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let mut last = bed.add_rsu("rsu1")?;
    for n in 1..=hops {
        let next = bed.add_obu(&format!("obu{n}"))?;
        bed.connect(&last, &next)?;
        last = next;
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&last.host, &server, PATIENCE)?;
        test(bed, &server, &last)
    })
}

/// `server`, a road-side unit, two relays and a vehicle that hears only those. The test gets the
/// vehicle and the relays.
pub(crate) fn fork(
    test: impl FnOnce(&mut Testbed, &Host, &TestbedNode, [Rc<TestbedNode>; 2]) -> Result<()>,
) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Fork { server, relays, obu, .. } = beds::fork(&mut bed)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        // Both relays known.
        std::thread::sleep(ms(2000));
        test(bed, &server, &obu, relays)
    })
}

/// A TAP made beforehand, as `ip tuntap` has it, which lacks nothing.
pub(crate) fn make_tap(ns: &Netns, name: &str, what: &str) -> Result<()> {
    for line in
        [format!("tuntap add dev {name} mode {what}"), format!("link set {name} mtu 1500 up")]
    {
        let done = ns.run(|| Ok(Command::new("ip").args(line.split(' ')).status()?))?;
        ensure!(done.success(), "ip {line}: {done}");
    }
    Ok(())
}
