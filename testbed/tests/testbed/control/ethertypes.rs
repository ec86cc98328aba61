//! Nodes that are set to different EtherTypes, alone and beside others.

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::Testbed;
use testbed::probe::PingStream;

use super::{json, problem, shows, start, table, v2xctl};
use crate::beds::with_logs;
use crate::harness::ms;
use crate::row::answers;

pub(super) fn two_are_found() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |bed| {
        obu.extra_args.borrow_mut().extend(["--ethertype", "0x88b6"].map(str::to_owned));
        start(bed)?;
        let said = problem(&obu, "alone")?;
        ensure!(said.contains("--ethertype") && said.contains("0x88b5"), "{said}");
        ensure!(v2xctl(&obu, &["status"])?.0 == 4);
        Ok(())
    })
}

/// Two that have each other, and a third that nobody understands.
pub(super) fn another_is_seen() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, other) = (bed.add_obu("obu1")?, bed.add_obu("obu2")?);
    bed.connect(&rsu, &obu)?;
    bed.connect(&obu, &other)?;
    with_logs(bed, |bed| {
        other.extra_args.borrow_mut().extend(["--ethertype", "0x88b6"].map(str::to_owned));
        start(bed)?;
        answers(&obu.host, &server)?;
        let ping = PingStream::start(&obu.host.ns, server.v4, ms(10))?;
        shows(&obu, &["radio"], |radio| others(radio) == [0x88b6])?;
        shows(&other, &["radio"], |radio| others(radio) == [0x88b5])?;
        let report = ping.stop()?;
        ensure!(report.received == report.sent && report.sent > 200, "{report:?}");
        let said = table(&obu, &["radio"])?;
        let row = |name: &str, value: &str| {
            said.lines().any(|line| line.split_whitespace().eq([name, value]))
        };
        ensure!(row("ethertype", "0x88b5") && row("other_ethertypes", "0x88b6"), "{said}");
        ensure!(v2xctl(&obu, &["status"])?.0 == 0, "that is no problem of the pair");
        // It does not hear the third, so all that is there is its own.
        let radio = json(&rsu, &["radio"])?;
        ensure!(others(&radio).is_empty(), "{radio}");
        // Made again, the radio is another interface.
        bed.delete_radio(&obu)?;
        bed.create_radio(&obu)?;
        other.stop()?;
        for arg in other.extra_args.borrow_mut().iter_mut().filter(|arg| *arg == "0x88b6") {
            "0x88b7".clone_into(arg);
        }
        other.start()?;
        shows(&obu, &["radio"], |radio| others(radio) == [0x88b6, 0x88b7])?;
        answers(&obu.host, &server)
    })
}

fn others(radio: &Value) -> Vec<u64> {
    radio["other_ethertypes"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}
