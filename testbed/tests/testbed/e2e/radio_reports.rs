//! What the radio tells a daemon: how strong frames arrive, and which were acknowledged.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::medium;
use testbed::{Programs, Quality, Testbed, asks_for_acknowledgements, wait_until};

use super::look::{all_run, counters_of, rests};
use super::scene::{PATIENCE, chain};
use crate::beds::with_logs;
use crate::harness::ms;

/// Nothing here has a radio that could tell; but it is asked, by whoever makes something of the
/// answer.
pub(crate) fn a_vehicle_asks_its_radio() -> Result<()> {
    chain(1, |bed, _, obu| {
        let rsu = bed.nodes().first().context("a road-side unit")?;
        ensure!(asks_for_acknowledgements(obu.daemon()?.pid())?, "the vehicle does not ask");
        ensure!(
            !asks_for_acknowledgements(rsu.daemon()?.pid())?,
            "nobody needs what the road-side unit asks"
        );
        Ok(())
    })
}

/// What was named and cannot be used ends the start, with a reason; `auto` goes on without.
pub(crate) fn a_source_of_signal_that_cannot_be_used() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    // With a bridge, whose address leads to a multicast group.
    let (node, _) = bed.add_obu_with_host("obu1", "laptop")?;
    let programs = Programs::find()?;
    let checked = |line: &str| -> Result<(Option<i32>, String)> {
        let line = line.replace("OBU", &programs.obu.display().to_string());
        let line = line.replace("RSU", &programs.rsu.display().to_string());
        let line = line.replace("udp:", &format!("udp:@{}", node.host.v4));
        let (program, args) = line.split_once(' ').context("a command line")?;
        let output = node.ns().run(|| {
            Ok(Command::new(program)
                .args(args.split(' '))
                .args(["-t", "tap0", "--check"])
                .output()?)
        })?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    };
    let refused = |line: &str, code: i32, reason: &str| -> Result<()> {
        let (ended, said) = checked(line)?;
        ensure!(ended == Some(code) && said.contains(reason), "{line}: {ended:?}, {said}");
        Ok(())
    };
    refused("OBU -b radio0 --signal radiotap:radio0", 4, "it is of link type 1;")?;
    refused("OBU -b radio0 --signal radiotap:mon0", 4, "mon0: cannot read the signal")?;
    refused("OBU -b radio0 --signal radiotap:mon0", 4, "no such interface")?;
    refused("OBU -b radio0 --signal nl80211", 4, "expected an interface of an 802.11 driver")?;
    refused("OBU -b udp: --signal nl80211", 4, "a multicast group has no radio")?;
    refused("RSU -b radio0 --signal nl80211", 4, "expected an interface of an 802.11 driver")?;
    refused("RSU -b radio0 --signal radiotap:mon0", 2, "does not tell how busy its channel is")?;
    // A radio of UDP needs no packet socket, a monitor does.
    let unprivileged =
        "setpriv --bounding-set=-net_raw --inh-caps=-net_raw --ambient-caps=-net_raw";
    let line = format!("{unprivileged} OBU -b udp: --signal radiotap:radio0");
    refused(&line, 3, "CAP_NET_RAW is missing")?;
    for (line, source) in [
        ("OBU -b radio0", "signal strength: not told"),
        ("OBU -b radio0 --signal off", "signal strength: not told"),
        ("OBU -b udp: --signal auto", "signal strength: not told"),
        ("RSU -b radio0", "how busy the channel is: not told"),
        ("RSU -b radio0 --signal off", "how busy the channel is: not told"),
    ] {
        refused(line, 0, source)?;
    }
    bed.add_monitor(&node)?;
    refused("OBU -b radio0 --signal radiotap:mon0", 0, "signal strength: radiotap:mon0")
}

/// Signal is told again by a monitor interface of the same name, without a restart.
pub(crate) fn a_monitor_is_deleted_and_made_again() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let signal = Some(medium::SignalStrength { dbm: -60.0, sd_db: 1.0 });
    bed.connect_with(&rsu, &obu, Quality { signal, ..Quality::default() })?;
    bed.tell_signal(&obu)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        let samples = || -> Result<u64> {
            let text = counters_of(&obu)?.text("signal");
            let count = text.split(' ').find_map(|one| one.strip_prefix("samples="));
            Ok(count.map_or(Ok(0), str::parse)?)
        };
        let grows = |from: u64| {
            wait_until("more signal", PATIENCE, || Ok((samples()? > from).then_some(())))
        };
        grows(0)?;
        for _ in 0..2 {
            let times = |message| obu.times_logged(message);
            let (gone, back) = (
                "monitor interface is gone, waiting for it: no signal strength",
                "monitor interface is back",
            );
            let before = (times(gone)?, times(back)?);
            obu.ns().delete(testbed::MONITOR)?;
            wait_until(gone, PATIENCE, || Ok((times(gone)? > before.0).then_some(())))?;
            rests(&obu, ms(1000))?;
            let silent = samples()?;
            bed.add_monitor(&obu)?;
            wait_until(back, PATIENCE, || Ok((times(back)? > before.1).then_some(())))?;
            grows(silent)?;
        }
        all_run(bed)
    })
}
