//! What is done for speed, where it can be seen: offload, busy polling, bundles.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::endurance::soak::StackErrors;
use testbed::probe::{FrameReceiver, send_frames, transfer};
use testbed::{Testbed, TestbedNode};

use super::look::{all_run, reaches};
use super::numbered::{each_arrived, numbered};
use super::scene::PATIENCE;
use crate::beds::with_logs;
use crate::harness::ms;

/// Super-frames at both ends, at one, at none: the same bytes, and no checksum the kernels find
/// wrong.
pub(crate) fn tcp_crosses_with_offload_at_either_end() -> Result<()> {
    for (at_rsu, at_obu) in [("on", "on"), ("on", "off"), ("off", "auto"), ("off", "off")] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let nodes = [(bed.add_rsu("rsu1")?, at_rsu), (bed.add_obu("obu1")?, at_obu)];
        bed.connect(&nodes[0].0, &nodes[1].0)?;
        with_logs(bed, |bed| {
            for (node, offload) in &nodes {
                node.extra_args.borrow_mut().extend(["--tap-offload", offload].map(str::to_owned));
            }
            bed.start_all()?;
            let vehicle = &nodes[1].0.host;
            reaches(vehicle, &server, PATIENCE)?;
            for (from, at) in [(vehicle, &server), (&server, vehicle)] {
                for to in [at.v4, at.v6] {
                    let way = format!("rsu {at_rsu}, obu {at_obu}: {} to {to}", from.name());
                    let report = transfer(&from.ns, &at.ns, to, 8_000_000).context(way.clone())?;
                    println!("    {way}: {:.0} Mbit/s", report.mbit_per_s());
                }
            }
            for host in [vehicle, &server] {
                let errors = StackErrors::of(&host.ns)?;
                ensure!(errors.is_none(), "{}: {errors:?}", host.name());
            }
            for (node, offload) in &nodes {
                node.daemon()?.signal(Signal::SIGUSR1)?;
                let counters = node.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
                let tap = counters.text("tap");
                for counter in ["rx_super_frames=", "rx_segments=", "tx_super_frames="] {
                    let is_there = tap.contains(counter);
                    ensure!(is_there == (*offload != "off"), "{}: {tap}", node.name());
                }
                ensure!(!tap.contains("malformed") && !tap.contains("errors"), "{tap}");
            }
            all_run(bed)
        })?;
    }
    Ok(())
}

/// A ping over a short way is answered before a daemon goes to sleep, and its counters tell; unless
/// it is told not to look.
pub(crate) fn answers_are_looked_for() -> Result<()> {
    for limit_us in ["1000", "0"] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
        bed.connect(&rsu, &obu)?;
        obu.extra_args.borrow_mut().extend(["--busy-poll", limit_us].map(str::to_owned));
        with_logs(bed, |bed| {
            bed.start_all()?;
            reaches(&obu.host, &server, PATIENCE)?;
            obu.daemon()?.signal(Signal::SIGUSR1)?;
            let counters = obu.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
            let counted = counters.text("busy_poll");
            ensure!(counted.contains("polls=") == (limit_us != "0"), "{limit_us} us: {counted:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Frames that find a daemon asleep leave it in bundles, unless it makes none; a relay takes them
/// apart and puts them together again.
pub(crate) fn what_waits_together_travels_together() -> Result<()> {
    for makes_bundles in [true, false] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let (rsu, relay) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
        let obu = bed.add_obu("obu2")?;
        bed.connect(&rsu, &relay)?;
        bed.connect(&relay, &obu)?;
        let flag = if makes_bundles { "on" } else { "off" };
        obu.extra_args.borrow_mut().extend(["--bundles", flag].map(str::to_owned));
        with_logs(bed, |bed| {
            bed.start_all()?;
            reaches(&obu.host, &server, PATIENCE)?;
            for (from, at, to) in [(&obu.host, &obu, &server), (&server, &rsu, &obu.host)] {
                let frames = numbered(to.mac_now()?, from.mac_now()?, 300);
                let receiver = FrameReceiver::start(&to.ns, &to.interface)?;
                at.daemon()?.signal(Signal::SIGSTOP)?;
                send_frames(&from.ns, &from.interface, &frames, Duration::ZERO)?;
                at.daemon()?.signal(Signal::SIGCONT)?;
                std::thread::sleep(ms(300));
                each_arrived(&frames, &receiver.stop()?, 1)
                    .with_context(|| format!("{} to {}", from.name(), to.name()))?;
            }
            let bundles = |node: &TestbedNode| -> Result<String> {
                node.daemon()?.signal(Signal::SIGUSR1)?;
                let counters = node.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
                Ok(counters.text("bundles"))
            };
            let of_obu = bundles(&obu)?;
            ensure!(of_obu.contains("tx_bundles=") == makes_bundles, "{flag}: {of_obu}");
            ensure!(of_obu.contains("rx_bundles="), "the relay's are understood: {of_obu}");
            for node in [&rsu, &relay] {
                let counted = bundles(node)?;
                ensure!(counted.contains("tx_bundled="), "{}: {counted}", node.name());
                ensure!(!counted.contains("malformed"), "{}: {counted}", node.name());
            }
            Ok(())
        })?;
    }
    Ok(())
}
