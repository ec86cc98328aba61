//! TAP and radio are missing, down, deleted, made beforehand or taken out of their bridge.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::{Programs, Testbed, wait_until};

use super::look::{all_run, answers_all, ended_with_reason, reaches, rests};
use super::scene::{PATIENCE, chain, make_tap};
use super::warnings::{LAN_DOWN, RADIO_GONE};
use crate::beds::with_logs;
use crate::harness::ms;

/// `--bridge` puts it there at the start, again when it was deleted, and again when it was taken
/// out; and a daemon that ends in order has nothing to warn of. Without the flag somebody else puts
/// it there and takes it out, and only a TAP that was deleted is put there again.
pub(crate) fn a_tap_stays_in_its_bridge() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |_| {
        // A socket of its own: both TAPs have one name, and who comes second is warned.
        let args = ["--bridge", "br0", "--control", "/run/rsu1.sock"];
        rsu.extra_args.borrow_mut().extend(args.map(str::to_owned));
        // Nobody but the daemon puts it into the bridge.
        rsu.launch()?;
        obu.start()?;
        reaches(&obu.host, &server, PATIENCE).context("at the start")?;
        rsu.stop()?;
        let said = rsu.log_tail(100);
        ensure!(!said.contains("WARN"), "a warning at a clean end: {said}");
        rsu.launch()?;
        reaches(&obu.host, &server, PATIENCE).context("after a restart")?;
        rsu.ns().delete("tap0")?;
        std::thread::sleep(ms(500));
        reaches(&obu.host, &server, PATIENCE).context("after the TAP was deleted")?;
        rsu.ns().release("tap0")?;
        rsu.daemon()?.wait_for_event(LAN_DOWN, PATIENCE, |_| true)?;
        reaches(&obu.host, &server, PATIENCE).context("after it was taken out of the bridge")?;
        rsu.stop()?;
        rsu.extra_args.borrow_mut().clear();
        rsu.start()?;
        reaches(&obu.host, &server, PATIENCE).context("put there by hand")?;
        for round in 1..=2 {
            rsu.ns().delete("tap0")?;
            std::thread::sleep(ms(500));
            reaches(&obu.host, &server, PATIENCE)
                .with_context(|| format!("put there by hand, and deleted {round} times"))?;
        }
        let is_out = |when: &str| -> Result<()> {
            // Longer than until it would be put back.
            std::thread::sleep(ms(2500));
            let tap = rsu.ns().state("tap0")?;
            ensure!(tap.is_up && tap.bridge.is_none(), "{when}: {tap:?}");
            Ok(())
        };
        rsu.ns().release("tap0")?;
        is_out("taken out by hand")?;
        rsu.ns().delete("tap0")?;
        is_out("taken out by hand, and deleted")?;
        rsu.stop()
    })
}

/// A healthy one is beside it. With a TAP as the flags say a vehicle needs `CAP_NET_RAW` and
/// nothing else; without one it says what it lacks.
pub(crate) fn a_prepared_tap_takes_no_right_to_change_it() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    let scratch = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let program = scratch.path().join("obu");
    let without =
        ["bounding-set", "inh-caps", "ambient-caps"].map(|set| format!("--{set}=-net_admin"));
    let daemon = Programs::find()?.obu;
    let script =
        format!("#!/bin/sh\nexec setpriv {} {} \"$@\"\n", without.join(" "), daemon.display());
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    obu.program.replace(program);
    with_logs(bed, |_| {
        rsu.start()?;
        obu.launch()?;
        let status = obu.wait(PATIENCE)?;
        ended_with_reason(&obu, status, "CAP_NET_ADMIN")?;
        make_tap(obu.ns(), "tap0", "tap user 0")?;
        obu.ns().add_address("tap0", obu.host.v4, 24)?;
        obu.start()?;
        reaches(&obu.host, &server, PATIENCE)?;
        answers_all(&obu.host, &server)
    })
}

pub(crate) fn radio_goes_down_and_up() -> Result<()> {
    chain(2, |bed, server, obu| {
        for node in bed.nodes() {
            node.ns().set_down("radio0")?;
            rests(node, ms(1000))?;
            node.ns().set_up("radio0")?;
            let took =
                reaches(&obu.host, server, PATIENCE).with_context(|| node.name().to_owned())?;
            println!("    {}: traffic after {} ms", node.name(), took.as_millis());
        }
        all_run(bed)
    })
}

pub(crate) fn radio_is_deleted_and_made_again() -> Result<()> {
    chain(2, |bed, server, obu| {
        for node in bed.nodes().to_vec() {
            bed.delete_radio(&node)?;
            rests(&node, ms(1000))?;
            bed.create_radio(&node)?;
            let took =
                reaches(&obu.host, server, PATIENCE).with_context(|| node.name().to_owned())?;
            println!("    {}: traffic after {} ms", node.name(), took.as_millis());
        }
        all_run(bed)
    })
}

/// Under another name an interface is not the one the flags name, though the daemon still has it:
/// it is waited for.
pub(crate) fn interfaces_are_renamed() -> Result<()> {
    chain(1, |bed, server, obu| {
        for node in bed.nodes() {
            for (interface, gone) in [("radio0", RADIO_GONE), ("tap0", LAN_DOWN)] {
                let what = || format!("{} of {}", interface, node.name());
                let times = || node.times_logged(gone);
                let before = times()?;
                node.ns().rename(interface, "other0").with_context(what)?;
                wait_until(gone, PATIENCE, || Ok((times()? > before).then_some(())))
                    .with_context(what)?;
                rests(node, ms(1000)).with_context(what)?;
                node.ns().rename("other0", interface).with_context(what)?;
                let took = reaches(&obu.host, server, PATIENCE).with_context(what)?;
                println!("    {}: traffic after {} ms", what(), took.as_millis());
            }
        }
        all_run(bed)
    })
}

/// Either it says so and ends, or it works as soon as the radio is up.
pub(crate) fn start_on_a_radio_that_is_down() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu, obu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |_| {
        rsu.start()?;
        obu.ns().set_down("radio0")?;
        obu.launch()?;
        std::thread::sleep(ms(1000));
        if let Some(status) = obu.try_wait()? {
            return ended_with_reason(&obu, status, "radio0");
        }
        obu.ns().set_up("radio0")?;
        obu.adopt_tap()?;
        reaches(&obu.host, &server, PATIENCE)?;
        obu.stop()
    })
}

pub(crate) fn start_without_a_radio() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let nodes = [bed.add_rsu("rsu1")?, bed.add_obu("obu1")?];
    with_logs(bed, |bed| {
        for node in &nodes {
            bed.delete_radio(node)?;
            node.launch()?;
            let status = node.wait(Duration::from_secs(3))?;
            ended_with_reason(node, status, "radio0")?;
        }
        Ok(())
    })
}

/// Either it says so and ends, or it makes a new one; it does not hang.
pub(crate) fn tap_vanishes() -> Result<()> {
    chain(1, |bed, server, obu| {
        for node in bed.nodes() {
            let deleted = node.ns().delete("tap0");
            deleted.with_context(|| format!("delete the TAP of {}", node.name()))?;
            std::thread::sleep(ms(1000));
            if let Some(status) = node.try_wait()? {
                ended_with_reason(node, status, "tap0")?;
                node.start()?;
            } else {
                node.adopt_tap()?;
            }
            reaches(&obu.host, server, PATIENCE).with_context(|| node.name().to_owned())?;
        }
        bed.nodes().iter().try_for_each(|node| node.stop())
    })
}
