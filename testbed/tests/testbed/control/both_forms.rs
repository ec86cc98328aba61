//! Commands in both forms, at all daemons at once too: what the table says the JSON says as well.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::medium::SignalStrength;
use testbed::{Programs, Quality, Testbed, TestbedNode};

use super::{json, shows, start, table};
use crate::beds::with_logs;
use crate::row::{Row, answers, configure, row};

/// Each line is asked for as a table and as JSON, in this order. Of the JSON the value at this
/// pointer is compared; the table has these words.
fn both(node: &TestbedNode, line: &[&str], at: &str, value: &Value, words: &str) -> Result<()> {
    let got = json(node, line)?;
    ensure!(got.pointer(at) == Some(value), "{line:?}: expected {value} at {at}: {got}");
    let got = table(node, line)?;
    ensure!(got.contains(words), "{line:?}: expected \"{words}\": {got}");
    Ok(())
}

pub(super) fn what_changes_a_node_answers_in_both_forms() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, obu, .. } = row(&mut bed)?;
    let directory = TempDir::new_in(testbed::arena::scratch())?;
    let file = configure(&obu, &directory, "log = 'info'\nhello_history = 10\n")?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        // Settings.
        let (log, history) = (json!("info"), json!("10"));
        both(&obu, &["config", "get", "log"], "/config/0/values/0", &log, "file")?;
        both(&obu, &["config", "get", "hello_history"], "/config/0/values/0", &history, "10")?;
        let socket = json!("socket");
        both(&obu, &["config", "set", "log", "warn"], "/config/0/from", &socket, "v2xctl")?;
        both(&obu, &["log-level"], "/log", &json!("warn"), "warn")?;
        both(&obu, &["log-level", "debug"], "/log", &json!("debug"), "debug")?;
        std::fs::write(&file, "log = 'info'\nhello_history = 20\n")?;
        let waiting = json!(["hello_history"]);
        both(&obu, &["config", "check"], "/reloaded/waiting", &waiting, "hello_history: waits")?;
        both(&obu, &["config", "reload"], "/reloaded/waiting", &waiting, "hello_history")?;
        both(&obu, &["config", "show"], "/schema", &json!(1), "hello-history")?;
        // Clients.
        let (mac, id) = (server.mac_now()?.to_string(), obu.radio.to_string());
        answers(&server, &obu.host)?;
        let flushed = json(&rsu, &["clients", "flush", &mac])?;
        ensure!(flushed["flushed"] == 1, "{flushed}");
        let pinned = json(&rsu, &["clients", "pin", &mac, &id])?;
        let shown = json(&rsu, &["clients"])?;
        let clients = shown["clients"].as_array().context("clients")?;
        let client = clients.iter().find(|client| client["mac"] == mac).context("a client")?;
        ensure!(pinned["pins"] == 1 && client["pinned"]["obu"] == id, "{pinned} {client}");
        let unpinned = json(&rsu, &["clients", "unpin", &mac])?;
        ensure!(unpinned["pins"] == 1, "{unpinned}");
        // The recorder, which makes the directory.
        let place = directory.path().join("drive").display().to_string();
        both(&obu, &["record"], "/recording/is_on", &json!(false), "off")?;
        let begun = json(&obu, &["record", "start", &place])?;
        ensure!(begun["recording"]["is_on"] == true, "{begun}");
        let on = json!(true);
        both(&obu, &["record", "mark", "a", "bump"], "/recording/is_on", &on, "on, begun while")?;
        both(&obu, &["record"], "/recording/directory", &json!(place), &place)?;
        let ended = json(&obu, &["record", "stop"])?;
        ensure!(ended["recording"]["is_on"] == false, "{ended}");
        // What has happened.
        let first = json!("first");
        both(&obu, &["handovers", "--histogram"], "/changes/0/cause", &first, "to 300")?;
        both(&obu, &["why"], "/attached/rsu", &json!(rsu.radio.to_string()), "now there are:")
    })
}

/// Who names no socket means all in `/run/v2x`, and so does `--all`: an answer of each.
pub(super) fn all_daemons_are_asked_at_once() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, relay, obu } = row(&mut bed)?;
    let all = [&rsu, &relay, &obu];
    with_logs(bed, |bed| {
        std::fs::create_dir_all("/run/v2x")?;
        for node in all {
            let socket = format!("/run/v2x/{}.sock", node.name());
            node.extra_args.borrow_mut().extend(["--control".to_owned(), socket]);
        }
        bed.start_all()?;
        answers(&obu.host, &server)?;
        let program = Programs::find()?.v2xctl;
        let ask = |line: &[&str]| -> Result<String> {
            let output = Command::new(&program).args(line).output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(output.status.success() && said.is_empty(), "{line:?}: {said}");
            Ok(String::from_utf8(output.stdout)?)
        };
        let expected: BTreeSet<_> = all.iter().map(|node| node.radio.to_string()).collect();
        for line in [&["-o", "json", "--all", "status"][..], &["-o", "json", "status"]] {
            let lines = ask(line)?;
            let nodes = lines.lines().map(|line| {
                let status: Value = serde_json::from_str(line)?;
                Ok(status["node"].as_str().context("a node")?.to_owned())
            });
            let nodes: BTreeSet<_> = nodes.collect::<Result<_>>()?;
            ensure!(nodes == expected, "{line:?}: {lines}");
        }
        let tables = ask(&["--all", "neighbors"])?;
        // Each under the name of its TAP, which all of these share.
        ensure!(tables.lines().filter(|line| *line == "tap0:").count() == 3, "{tables}");
        // One that is gone is named, and the others answer.
        relay.kill()?;
        let output = Command::new(&program).args(["-o", "json", "--all", "neighbors"]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        ensure!(output.status.code() == Some(3) && lines == 2, "{output:?}");
        ensure!(said.contains("/run/v2x/relay.sock"), "{said}");
        Ok(())
    })
}

/// The medium tells a monitor interface how strong frames come in, as an 802.11 radio does.
pub(super) fn the_signal_of_a_neighbour_is_shown() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let signal = Some(SignalStrength { dbm: -61.0, sd_db: 0.0 });
    bed.connect_with(&rsu, &obu, Quality { signal, ..Quality::default() })?;
    bed.tell_signal(&obu)?;
    with_logs(bed, |bed| {
        start(bed)?;
        shows(&obu, &["neighbors"], |near| near["neighbours"][0]["signal_dbm"] == -61.0)?;
        for line in ["neighbors", "upstreams", "radio"] {
            let shown = table(&obu, &[line])?;
            ensure!(shown.contains("-61"), "{line}: {shown}");
        }
        // The road-side unit has no monitor.
        let near = shows(&rsu, &["neighbors"], |near| !near["neighbours"][0].is_null())?;
        ensure!(near["neighbours"][0]["signal_dbm"].is_null(), "{near}");
        Ok(())
    })
}
