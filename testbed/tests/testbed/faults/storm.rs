//! Storms on the radio, and what the log says of them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_lib::messages::control::announcement::{Announcement, Clients, client_digest};
use node_lib::{Boot, NodeId, Order, Seq};
use serde_json::Value;
use testbed::TestbedNode;
use testbed::probe::send_raw;
use testbed::wait_until;

use super::{lines, pair, reaches, seconds};
use crate::harness::ms;

/// Of two kinds of events, who attaches and who is gone, and a few of what else there is. The
/// promise is a hundred.
const LINES_A_MINUTE: u64 = 2 * 26 + 8;
/// An RSU takes so many strangers a second at least, or nothing would be shown.
const TAKEN_A_SECOND: u64 = 10;
/// A summary comes within ten seconds.
const SUMMED_WITHIN: Duration = Duration::from_secs(20);

/// F21: what nobody can read, as fast as it goes.
pub(super) fn garbage_storms_no_log() -> Result<()> {
    const STORM: u32 = 20_000;
    pair(|_, pair| {
        let said = [lines(&pair.rsu)?, lines(&pair.obu)?];
        let to = [0xff; 6];
        let from = [2, 0x0b, 0, 0, 0x77, 1];
        let mut frames = Vec::new();
        for n in 0..STORM {
            // Of our EtherType, with the type and length of each message there is and is not.
            let mut frame = [&to[..], &from, &[0x88, 0xb5], &n.to_be_bytes().repeat(12)].concat();
            frame[14] = 0x20 | (n % 16) as u8;
            frames.push(frame);
        }
        // What one node sends only the other one hears.
        for node in [&pair.rsu, &pair.obu] {
            send_raw(node.ns(), "radio0", frames.iter().map(Vec::as_slice), Duration::ZERO)?;
        }
        reaches(pair)?;
        for (node, said) in [&pair.rsu, &pair.obu].iter().zip(said) {
            let more = lines(node)? - said;
            println!("    {} said {more} lines", node.name());
            ensure!(more <= 20, "{}: {more} lines", node.name());
            ensure!(node.try_wait()?.is_none(), "{} ended", node.name());
        }
        Ok(())
    })
}

/// F21: a hundred vehicles a second that are not there say that they are attached, each of which is
/// worth a line. Lines stay few, and who has none is counted.
pub(super) fn strangers_storm_no_log() -> Result<()> {
    let seconds = seconds(6)?;
    pair(|_, pair| {
        let before = lines(&pair.rsu)?;
        let rsu = NodeId(pair.rsu.radio.0);
        let frames: Vec<_> = (0..seconds * 100).map(|n| attached(rsu, n)).collect();
        send_raw(pair.obu.ns(), "radio0", frames.iter().map(Vec::as_slice), ms(10))?;
        reaches(pair)?;
        let more = lines(&pair.rsu)? - before;
        let most = seconds.div_ceil(60) * LINES_A_MINUTE;
        println!("    {} strangers, {more} lines", frames.len());
        ensure!(more as u64 <= most, "{more} lines");
        let told = wait_until("they are counted", SUMMED_WITHIN, || {
            let told = told_of(&pair.rsu, "OBU attached")?;
            Ok((told > seconds * TAKEN_A_SECOND).then_some(told))
        })?;
        println!("    {told} attached");
        Ok(())
    })
}

/// Of how many events of this kind there is a line, or that there is none.
fn told_of(node: &TestbedNode, kind: &str) -> Result<u64> {
    let log = std::fs::read_to_string(node.log_path())?;
    let told = log.lines().map(|line| -> Result<u64> {
        let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        if line["message"] == kind {
            return Ok(1);
        }
        Ok(if line["kind"] == kind { line["more"].as_u64().unwrap_or(0) } else { 0 })
    });
    told.sum()
}

/// This stranger is behind the RSU, with no client.
fn attached(rsu: NodeId, n: u64) -> Vec<u8> {
    let [.., a, b] = n.to_be_bytes();
    let origin = NodeId([2, 0x0b, 0, 1, a, b]);
    let word = Announcement {
        rsu,
        origin,
        order: Order { boot: Boot(1), seq: Seq(1) },
        epoch: 1,
        via: rsu,
        digest: client_digest(&[]),
        part: 0,
        parts: 1,
        within_ds: 600,
        at_risk_10ms: 0,
        mtu: 1500,
        hops: 0,
        standby: false,
        clients: Clients::parse(&[]).unwrap_or_default(),
    };
    let word: Vec<u8> = (&word).into();
    [&rsu.0[..], &origin.0, &[0x88, 0xb5], &word].concat()
}
