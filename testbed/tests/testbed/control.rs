//! `v2xctl` against living daemons: every command in both forms, what it shows is what the scene
//! is, and faults are found with it alone.

mod both_forms;
mod ethertypes;
mod watched;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use recorder::read::{Item, Recording};
use recorder::record::What;
use recorder::replay;
use serde_json::Value;
use tempfile::TempDir;
use testbed::probe::{NumberedFrame, PingStream, send_frames, send_raw};
use testbed::{Programs, Testbed, TestbedNode, wait_until};

use crate::beds::with_logs;
use crate::harness::{Area, ms};
use crate::row::{PATIENCE, Row, answers, configure, give_sockets, row, socket};

pub(crate) const AREA: Area = Area {
    name: "control",
    alone: &[],
    together: &[
        ("every_command_shows_the_scene", every_command_shows_the_scene),
        ("a_change_of_upstream_is_explained_afterwards", a_change_is_explained),
        ("a_running_node_is_recorded_and_no_longer", a_running_node_is_recorded),
        ("what_can_be_changed_is_changed_on_the_read_write_socket", what_can_be_changed),
        (
            "what_changes_a_node_answers_in_both_forms",
            both_forms::what_changes_a_node_answers_in_both_forms,
        ),
        ("all_daemons_are_asked_at_once", both_forms::all_daemons_are_asked_at_once),
        ("the_signal_of_a_neighbour_is_shown", both_forms::the_signal_of_a_neighbour_is_shown),
        ("a_configuration_is_checked_and_read_again", a_configuration_is_read_again),
        ("who_is_on_a_way_answers", who_is_on_a_way_answers),
        ("a_ping_that_is_not_answered_says_why", a_ping_not_answered_says_why),
        ("sockets_come_and_go_with_their_daemons", sockets_come_and_go),
        ("what_is_watched_outlives_its_daemon", watched::what_is_watched_outlives_its_daemon),
        ("a_vehicle_whose_data_nobody_accepts_is_found", a_vehicle_nobody_accepts),
        ("a_frame_too_long_is_found", a_frame_too_long_is_found),
        ("a_bridged_host_with_too_large_an_mtu_is_found", a_bridged_host_too_wide_is_found),
        ("two_ethertypes_are_found", ethertypes::two_are_found),
        ("another_ethertype_is_seen_beside_neighbours", ethertypes::another_is_seen),
        ("two_nodes_with_one_id_are_found", two_nodes_with_one_id_are_found),
        ("two_vehicles_with_one_id_are_found_at_their_rsu", two_vehicles_with_one_id_are_found),
        ("a_road_side_unit_without_a_lan_is_found", a_road_side_unit_without_a_lan_is_found),
    ],
};

/// Gives every node a socket of its own, and starts all.
fn start(bed: &Testbed) -> Result<()> {
    give_sockets(bed);
    bed.start_all()
}

/// Exit code, standard output, standard error.
pub(crate) fn v2xctl(node: &TestbedNode, line: &[&str]) -> Result<(i32, String, String)> {
    let program = Programs::find()?.v2xctl;
    let output = Command::new(&program).arg("-s").arg(socket(node)).args(line).output();
    let output = output.with_context(|| program.display().to_string())?;
    let code = output.status.code().context("it was killed")?;
    Ok((code, String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
}

fn table(node: &TestbedNode, line: &[&str]) -> Result<String> {
    let (_, out, said) = v2xctl(node, line)?;
    ensure!(said.is_empty() && !out.is_empty(), "{line:?} of {}: {out:?} {said:?}", node.name());
    Ok(out)
}

fn json(node: &TestbedNode, line: &[&str]) -> Result<Value> {
    let line = [&["-o", "json"], line].concat();
    let (_, out, said) = v2xctl(node, &line)?;
    ensure!(said.is_empty() && out.lines().count() == 1, "{line:?} of {}: {said:?}", node.name());
    let value: Value = serde_json::from_str(&out).context(out)?;
    ensure!(value["node"] == node.radio.to_string(), "{line:?} of {}: {value}", node.name());
    Ok(value)
}

/// Waits until what this command shows is accepted.
fn shows(node: &TestbedNode, line: &[&str], accept: impl Fn(&Value) -> bool) -> Result<Value> {
    let what = format!("v2xctl {} of {}", line.join(" "), node.name());
    let mut last = Value::Null;
    let shown = wait_until(&what, PATIENCE, || {
        last = json(node, line)?;
        Ok(accept(&last).then(|| last.clone()))
    });
    shown.map_err(|error| anyhow!("{error:#}: {last}"))
}

/// Waits until this problem is shown, and says what the table says of it.
pub(crate) fn problem(node: &TestbedNode, kind: &str) -> Result<String> {
    shows(node, &["status"], |status| {
        let problems = status["problems"].as_array().into_iter().flatten();
        problems.into_iter().any(|problem| problem["kind"] == kind)
    })?;
    let said = table(node, &["status"])?;
    println!("{}", said.lines().map(|line| format!("    {line}\n")).collect::<String>());
    Ok(said)
}

fn every_command_shows_the_scene() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, relay, obu } = row(&mut bed)?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        let id = |node: &TestbedNode| Value::from(node.radio.to_string());
        // status
        let status = shows(&obu, &["status"], |s| s["attached"]["is_acknowledged"] == true)?;
        let attached = &status["attached"];
        ensure!(attached["rsu"] == id(&rsu) && attached["upstream"] == id(&relay), "{status}");
        ensure!(attached["hops"] == 2 && status["is_healthy"] == true, "{status}");
        let (code, out, _) = v2xctl(&obu, &[])?;
        ensure!(code == 0 && out.contains("well"), "{code}: {out}");
        ensure!(out.contains(&format!("via {}", relay.radio)) && out.contains("2 hops"), "{out}");
        // neighbors: the relay has both, the vehicle only the relay.
        let near = shows(&relay, &["neighbors"], |near| {
            near["neighbours"].as_array().is_some_and(|near| near.len() == 2)
        })?;
        let near = near["neighbours"].as_array().context("neighbours")?;
        let of = |who: &TestbedNode| {
            near.iter().find(|near| near["id"] == id(who)).context("a neighbour")
        };
        ensure!(of(&rsu)?["is_upstream"] == true && of(&obu)?["is_child"] == true, "{near:?}");
        ensure!(of(&rsu)?["round_trip_us"].as_u64().is_some_and(|us| us > 0), "{near:?}");
        ensure!(of(&rsu)?["signal_dbm"].is_null(), "this radio does not tell: {near:?}");
        ensure!(table(&relay, &["neighbors"])?.contains(&obu.radio.to_string()));
        // upstreams
        let routes = json(&relay, &["upstreams"])?;
        let ways = routes["routes"][0]["candidates"].as_array().context("candidates")?;
        let way = |who: &TestbedNode| ways.iter().find(|way| way["id"] == id(who)).context("a way");
        ensure!(way(&rsu)?["is_used"] == true && way(&rsu)?["obstacles"] == Value::Array(vec![]));
        let why = way(&obu)?["obstacles"].as_array().context("obstacles")?;
        ensure!(why.contains(&"through-us".into()), "{why:?}");
        ensure!(table(&relay, &["upstreams"])?.contains("through us"));
        // routes, rsus
        let routes = json(&obu, &["routes"])?;
        ensure!(routes["routes"][0]["hops"] == 2, "{routes}");
        ensure!(table(&obu, &["routes"])?.contains("in use"));
        let rsus = json(&obu, &["rsus"])?;
        ensure!(rsus["routes"][0]["standing"] == "in-use", "{rsus}");
        ensure!(table(&obu, &["rsus"])?.contains(&rsu.radio.to_string()));
        // clients
        let server_mac = server.mac_now()?.to_string();
        let clients = json(&rsu, &["clients"])?;
        let clients = clients["clients"].as_array().context("clients")?;
        let client = |mac: &str| clients.iter().find(|c| c["mac"] == mac).context("a client");
        ensure!(client(&server_mac)?["port"] == "tap", "{clients:?}");
        let behind = client(&obu.host.mac_now()?.to_string())?;
        ensure!(behind["port"] == "obu" && behind["obu"] == id(&obu), "{behind}");
        ensure!(table(&rsu, &["clients"])?.contains(&server_mac));
        // obus, tree
        let obus = json(&rsu, &["obus"])?;
        let obus = obus["obus"].as_array().context("obus")?;
        let behind = obus.iter().find(|known| known["id"] == id(&obu)).context("the vehicle")?;
        ensure!(behind["way"] == Value::from(vec![id(&relay)]), "{behind}");
        ensure!(behind["standing"] == "attached", "{behind}");
        ensure!(table(&rsu, &["obus"])?.contains("attached"));
        let tree = table(&rsu, &["tree"])?;
        let depth = |who: &TestbedNode| {
            let line = tree.lines().find(|line| line.contains(&who.radio.to_string()));
            line.map(|line| line.len() - line.trim_start().len())
        };
        let depths = [depth(&rsu), depth(&relay), depth(&obu)];
        ensure!(depths == [Some(0), Some(2), Some(4)], "{tree}");
        let tree = json(&relay, &["tree"])?;
        ensure!(tree["children"][0]["id"] == id(&obu), "{tree}");
        // radio, stats
        let radio = json(&obu, &["radio"])?;
        ensure!(radio["air"]["ethertype"] == 0x88b5 && radio["radio"]["is_up"] == true, "{radio}");
        ensure!(table(&obu, &["radio"])?.contains("0x88b5"));
        let stats = json(&relay, &["stats"])?;
        ensure!(stats["counters"]["node"]["relayed"].as_u64().is_some_and(|n| n > 0), "{stats}");
        ensure!(table(&relay, &["stats", "relay"])?.contains("relayed"));
        // handovers, why, events
        let changes = json(&obu, &["handovers"])?;
        ensure!(changes["changes"][0]["cause"] == "first", "{changes}");
        ensure!(table(&obu, &["handovers"])?.contains("first"));
        ensure!(table(&obu, &["handovers", "--histogram"])?.contains("to 300"));
        ensure!(table(&obu, &["why"])?.contains("now there are:"));
        let events = json(&obu, &["events", "--past"])?;
        ensure!(events["events"][0]["event"] == "upstream-changed", "{events}");
        ensure!(table(&obu, &["events", "--past"])?.contains("attachment changed"));
        // config, log-level
        let config = json(&obu, &["config", "show"])?;
        let settings = config["config"].as_array().context("config")?;
        let tap = settings.iter().find(|s| s["name"] == "tap-name").context("tap-name")?;
        ensure!(tap["values"][0] == "tap0" && tap["from"] == "flag", "{tap}");
        ensure!(table(&obu, &["config"])?.contains("hello-history"));
        ensure!(table(&obu, &["log-level"])? == "info\n");
        Ok(())
    })
}

fn a_change_is_explained() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, first) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (second, obu) = (bed.add_rsu("rsu2")?, bed.add_obu("obu1")?);
    bed.connect(&first, &obu)?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        bed.connect(&second, &obu)?;
        shows(&obu, &["rsus"], |rsus| rsus["routes"].as_array().is_some_and(|r| r.len() == 2))?;
        std::thread::sleep(ms(1000));
        let mut live = Command::new(Programs::find()?.v2xctl);
        live.arg("-s").arg(socket(&obu)).args(["-o", "json", "events"]);
        let mut live = live.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(live.stdout.take().context("a pipe")?).lines();
        let past: Value = serde_json::from_str(&lines.next().context("what has happened")??)?;
        let known = past["events"].as_array().context("events")?.len();
        first.kill()?;
        // As it happens, with the next number.
        let next: Value = serde_json::from_str(&lines.next().context("what happens")??)?;
        ensure!(next["events"][0]["number"] == known, "{past}\n{next}");
        live.kill()?;
        live.wait()?;
        let rsu = second.radio.to_string();
        let status = shows(&obu, &["status"], |status| status["attached"]["rsu"] == rsu)?;
        ensure!(status["is_healthy"] == true, "{status}");
        let changes = shows(&obu, &["handovers"], |changes| {
            let last = changes["changes"].as_array().and_then(|changes| changes.last());
            last.is_some_and(|last| last["cost"]["gap_ms"].is_u64())
        })?;
        let changes = changes["changes"].as_array().context("changes")?;
        let last = changes.last().context("a change")?;
        ensure!(last["to"]["rsu"] == rsu && last["cause"] != "first", "{last}");
        let number = last["number"].to_string();
        let said = table(&obu, &["why", &number])?;
        ensure!(said.contains("it cost a gap of") && said.contains(&rsu), "{said}");
        let why = json(&obu, &["why", &number])?;
        let used = why["change"]["routes"].as_array().into_iter().flatten();
        let used: Vec<_> = used.filter(|route| route["standing"] == "in-use").collect();
        ensure!(used.len() == 1 && used[0]["rsu"] == rsu, "{why}");
        let (code, _, said) = v2xctl(&obu, &["why", "999"])?;
        ensure!(code == 1 && said.contains(&number), "{code}: {said}");
        Ok(())
    })
}

fn what_can_be_changed() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, obu, .. } = row(&mut bed)?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        ensure!(table(&obu, &["log-level", "debug"])? == "debug\n");
        ensure!(table(&obu, &["log-level"])? == "debug\n");
        let (code, _, said) = v2xctl(&obu, &["log-level", "loud"])?;
        ensure!(code == 1 && said.contains("expected off, error"), "{code}: {said}");
        let mac = server.mac_now()?.to_string();
        let has_it = |clients: &Value| {
            let clients = clients["clients"].as_array().into_iter().flatten();
            clients.into_iter().any(|client| client["mac"] == mac.as_str())
        };
        ensure!(has_it(&json(&rsu, &["clients"])?));
        let flushed = table(&rsu, &["clients", "flush", &mac])?;
        ensure!(flushed == "1 clients forgotten\n", "{flushed}");
        // Who speaks is known again.
        answers(&server, &obu.host)?;
        shows(&rsu, &["clients"], has_it)?;
        // Whoever sends in the server's name, it is behind the vehicle, and nobody reaches it.
        let id = obu.radio.to_string();
        ensure!(table(&rsu, &["clients", "pin", &mac, &id])? == "pinned\n");
        ensure!(table(&rsu, &["clients"])?.contains(" pinned"));
        let silent = PingStream::count(&obu.host.ns, server.v4, 10, ms(10))?;
        ensure!(silent.received == 0, "{silent:?}");
        let held = json(&rsu, &["stats"])?.to_string();
        ensure!(held.contains("\"pins_held\":"), "{held}");
        let (code, _, said) = v2xctl(&obu, &["clients", "pin", &mac, &id])?;
        ensure!(code == 1 && said.contains("at road-side units only"), "{code}: {said}");
        ensure!(table(&rsu, &["clients", "unpin", &mac])? == "1 pins taken off\n");
        answers(&server, &obu.host)?;
        Ok(())
    })
}

fn a_running_node_is_recorded() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, obu, relay, .. } = row(&mut bed)?;
    let directory = TempDir::new_in(testbed::arena::scratch())?;
    let place = directory.path().display().to_string();
    with_logs(bed, |bed| {
        relay.extra_args.borrow_mut().extend(["--record".to_owned(), place.clone()]);
        start(bed)?;
        answers(&obu.host, &server)?;
        // Begun with the daemon.
        let state = json(&relay, &["record"])?;
        ensure!(state["recording"]["is_on"] == true, "{state}");
        ensure!(state["recording"]["is_from_start"] == true, "{state}");
        let (code, _, said) = v2xctl(&relay, &["record", "start"])?;
        ensure!(code == 1 && said.contains("recorded into already"), "{code}: {said}");
        // Begun while it runs.
        ensure!(table(&obu, &["record"])? == "off\n");
        for (line, why) in [
            (&["record", "start"][..], "without --record"),
            (&["record", "start", "here"], "begins with /"),
            (&["record", "start", "/no/where"], "a directory"),
            (&["record", "stop"], "nothing is recorded"),
            (&["record", "mark", "a"], "record start"),
        ] {
            let (code, _, said) = v2xctl(&obu, line)?;
            ensure!(code == 1 && said.contains(why), "{line:?}: {code}: {said}");
        }
        let said = table(&obu, &["record", "start", &place])?;
        ensure!(said.starts_with("on, begun while") && said.contains(&place), "{said}");
        answers(&obu.host, &server)?;
        table(&obu, &["record", "mark", "the", "light", "went", "out"])?;
        shows(&obu, &["record"], |s| s["recording"]["counters"]["frozen"] == 1)?;
        let said = table(&obu, &["record", "stop"])?;
        ensure!(said.starts_with("off\n"), "{said}");
        let state = json(&relay, &["record", "stop"])?;
        ensure!(state["recording"]["is_on"] == false, "{state}");
        // Nothing of it cost the daemons anything.
        answers(&obu.host, &server)?;
        table(&relay, &["record", "start"])?;
        relay.stop()?;
        obu.stop()?;
        let of = |node: &TestbedNode| -> Result<Vec<Recording>> {
            let id = node.radio.to_string().replace(':', "");
            let mut files: Vec<_> = std::fs::read_dir(directory.path())?
                .map(|entry| Ok(entry?.path()))
                .collect::<Result<_>>()?;
            files.retain(|file| file.display().to_string().contains(&id));
            files.sort();
            files.iter().map(|file| Ok(Recording::open(std::slice::from_ref(file))?)).collect()
        };
        // What there was from the making of the node on is replayed; what was begun later is read.
        let recordings = of(&relay)?;
        ensure!(recordings.len() == 2, "{recordings:?}");
        let outcome = replay::replay(&recordings[0])?;
        ensure!(outcome.difference.is_none() && outcome.outputs > 10, "{outcome:?}");
        ensure!(replay::replay(&recordings[1]).is_err(), "it was begun later");
        let [begun] = &of(&obu)?[..] else { return Err(anyhow!("one recording of the vehicle")) };
        let (mut marks, mut frames) = (Vec::new(), 0);
        begun.read(|item| {
            if let Item::Record(record) = item {
                match &record.what {
                    What::Mark(text) => marks.push(text.to_string()),
                    what => frames += usize::from(what.frame().is_some()),
                }
            }
            Ok::<_, recorder::read::ReadError>(true)
        })?;
        ensure!(marks == ["the light went out"] && frames > 2, "{marks:?}, {frames} frames");
        Ok(())
    })
}

fn a_configuration_is_read_again() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, obu, .. } = row(&mut bed)?;
    let directory = TempDir::new_in(testbed::arena::scratch())?;
    let file = configure(&obu, &directory, "log = 'info'\nhello_history = 10\n")?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        ensure!(table(&obu, &["config", "check"])? == "nothing to change\n");
        std::fs::write(&file, "log = 'debug'\nhello_history = 20\n")?;
        let said = table(&obu, &["config", "check"])?;
        ensure!(
            said.contains("log: would change") && said.contains("hello_history: waits"),
            "{said}"
        );
        ensure!(table(&obu, &["log-level"])? == "info\n", "looking changes nothing");
        let done = json(&obu, &["config", "reload"])?;
        ensure!(done["reloaded"]["taken"] == Value::from(vec!["log"]), "{done}");
        ensure!(done["reloaded"]["waiting"] == Value::from(vec!["hello_history"]), "{done}");
        ensure!(table(&obu, &["log-level"])? == "debug\n");
        // Everything that is wrong, with its line; and nothing is taken.
        std::fs::write(&file, "log = 'trace'\nhello_history = 99\nmtuu = 3\n")?;
        for command in ["check", "reload"] {
            let (code, _, said) = v2xctl(&obu, &["config", command])?;
            let names_both = said.contains("node.toml:2: hello_history") && said.contains(":3: ");
            ensure!(code == 1 && names_both, "{code}: {said}");
        }
        ensure!(table(&obu, &["log-level"])? == "debug\n");
        let (code, _, said) = v2xctl(&rsu, &["config", "reload"])?;
        ensure!(code == 1 && said.contains("without --config"), "{code}: {said}");
        // One setting.
        table(&obu, &["config", "set", "log", "warn"])?;
        let got = table(&obu, &["config", "get", "log"])?;
        ensure!(
            got.contains("warn") && got.contains("v2xctl") && got.lines().count() == 2,
            "{got}"
        );
        let (code, _, said) = v2xctl(&obu, &["config", "set", "mtu", "1400"])?;
        ensure!(code == 1 && said.contains("start the daemon again"), "{code}: {said}");
        let (code, _, said) = v2xctl(&obu, &["config", "get", "nonsense"])?;
        ensure!(code == 1 && said.contains("no such setting"), "{code}: {said}");
        Ok(())
    })
}

fn who_is_on_a_way_answers() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, relay, obu } = row(&mut bed)?;
    // Another vehicle, beside the road-side unit.
    let other = bed.add_obu("obu2")?;
    bed.connect(&rsu, &other)?;
    let directory = TempDir::new_in(testbed::arena::scratch())?;
    let names = directory.path().join("names");
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        answers(&other.host, &server)?;
        let id = |node: &TestbedNode| node.radio.to_string();
        let server_mac = server.mac_now()?.to_string();
        let lines = |from: &TestbedNode, line: &[&str]| -> Result<Vec<Value>> {
            let (code, out, said) = v2xctl(from, &[&["-o", "json"], line].concat())?;
            ensure!(
                code == 0 && said.is_empty(),
                "{line:?} of {}: {code} {said}{out}",
                from.name()
            );
            out.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
        };
        // Each way is that of data, and each answer comes from who is on it.
        let traces: [(&TestbedNode, String, &str, &[&TestbedNode]); 6] = [
            (&obu, id(&rsu), "reached", &[&relay, &rsu]),
            (&obu, id(&relay), "reached", &[&relay]),
            (&obu, server_mac.clone(), "client", &[&relay, &rsu]),
            (&rsu, id(&obu), "reached", &[&relay, &obu]),
            (&rsu, obu.host.mac_now()?.to_string(), "client", &[&relay, &obu]),
            (&obu, other.host.mac_now()?.to_string(), "client", &[&relay, &rsu, &other]),
        ];
        for (from, target, verdict, way) in traces {
            let hops = lines(from, &["traceroute", &target])?;
            let by: Vec<_> = hops.iter().filter_map(|hop| hop["by"].as_str()).collect();
            let expected: Vec<_> = way.iter().map(|node| id(node)).collect();
            ensure!(by == expected, "{} to {target}: {hops:?}", from.name());
            let last = hops.last().context("a hop")?;
            ensure!(last["answer"]["verdict"] == verdict, "{last}");
            let times = last["round_trips_us"].as_array().context("times")?;
            ensure!(times.len() == 3 && times.iter().all(|us| us.as_u64() > Some(0)), "{last}");
            let pings = lines(from, &["ping", "-c", "2", "-i", "0.1", &target])?;
            ensure!(pings.len() == 3 && pings[2]["answered"] == 2, "{pings:?}");
            let path = pings[0]["answer"]["path"].as_array().context("a path")?;
            ensure!(path.len() == 1 + way.len() && path[0] == id(from).as_str(), "{pings:?}");
        }
        // By name, for people; itself, and its own client.
        std::fs::write(&names, format!("{server_mac} server\n{} relay\n", id(&relay)))?;
        let names = names.display().to_string();
        let said = table(&obu, &["--names", &names, "traceroute", "server"])?;
        let lines_of: Vec<_> = said.lines().collect();
        ensure!(lines_of.len() == 3 && lines_of[1].contains(" 1  relay  "), "{said}");
        ensure!(lines_of[2].contains("(server is its client)"), "{said}");
        println!("{}", said.lines().map(|line| format!("    {line}\n")).collect::<String>());
        let said = table(&obu, &["ping", "-c", "1", &id(&obu)])?;
        ensure!(said.contains("0 hops") && said.contains("1 answered"), "{said}");
        let (code, _, said) = v2xctl(&obu, &["ping", "nobody"])?;
        ensure!(code == 2 && said.contains("names file"), "{code}: {said}");
        Ok(())
    })
}

fn a_ping_not_answered_says_why() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, relay, obu } = row(&mut bed)?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        let ping = |target: &str| -> Result<String> {
            let (code, out, said) = v2xctl(&obu, &["ping", "-c", "1", "-W", "0.3", target])?;
            ensure!(code == 4 && said.is_empty(), "{code}: {said}{out}");
            println!("{}", out.lines().map(|line| format!("    {line}\n")).collect::<String>());
            Ok(out)
        };
        let said = ping("02:00:00:00:77:77")?;
        ensure!(said.contains("knows no such node or client"), "{said}");
        // The RSU is there for the relay's control and stands still: who comes before it answers.
        rsu.daemon()?.signal(Signal::SIGSTOP)?;
        let said = ping(&rsu.radio.to_string())?;
        rsu.daemon()?.signal(Signal::SIGCONT)?;
        let is_said = said.contains(&relay.radio.to_string()) || said.contains("silent");
        ensure!(is_said || said.contains("no way on") || said.contains("no upstream"), "{said}");
        relay.kill()?;
        shows(&obu, &["status"], |status| status["attached"].is_null())?;
        let said = ping(&rsu.radio.to_string())?;
        ensure!(said.contains("this node has no way on"), "{said}");
        Ok(())
    })
}

fn sockets_come_and_go() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { rsu, obu, .. } = row(&mut bed)?;
    with_logs(bed, |bed| {
        start(bed)?;
        shows(&rsu, &["status"], |_| true)?;
        rsu.stop()?;
        ensure!(!socket(&rsu).exists(), "after a clean end");
        let (code, _, said) = v2xctl(&rsu, &["status"])?;
        ensure!(code == 3 && said.contains("no such socket"), "{code}: {said}");
        obu.kill()?;
        ensure!(socket(&obu).exists(), "nobody has removed it");
        let (code, _, said) = v2xctl(&obu, &["status"])?;
        ensure!(code == 3 && said.contains("start it again"), "{code}: {said}");
        obu.start()?;
        let status = shows(&obu, &["status"], |_| true);
        // There is nobody to be attached to any more.
        ensure!(status?["is_healthy"] == false);
        ensure!(v2xctl(&obu, &["status"])?.0 == 4);
        // A second one is told who has it.
        let program = Programs::find()?.obu;
        let mut second = Command::new(program);
        second.args(["-b", "radio0", "-t", "tap9", "--control"]).arg(socket(&obu));
        let output = obu.ns().run(|| Ok(second.output()?))?;
        let said = String::from_utf8(output.stderr)?;
        let pid = obu.daemon()?.pid().to_string();
        ensure!(output.status.code() == Some(2), "{}: {said}", output.status);
        ensure!(said.contains(&format!("process {pid} (obu)")), "{said}");
        shows(&obu, &["status"], |_| true).context("it goes on")?;
        Ok(())
    })
}

/// Somebody sends data in the vehicle's name, with numbers far ahead of its own: control is well,
/// and of what the vehicle sends nothing arrives.
fn a_vehicle_nobody_accepts() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, forger) = (bed.add_obu("obu1")?, bed.add_obu("forger")?);
    bed.connect(&rsu, &obu)?;
    bed.connect(&rsu, &forger)?;
    with_logs(bed, |_| {
        for node in [&rsu, &obu] {
            let control = ["--control".to_owned(), socket(node).display().to_string()];
            node.extra_args.borrow_mut().extend(control);
            node.start()?;
        }
        answers(&obu.host, &server)?;
        let obus = shows(&rsu, &["obus"], |obus| obus["obus"][0]["boot"].is_u64())?;
        let boot = obus["obus"][0]["boot"].as_u64().context("a boot count")?;
        let dropped = || -> Result<u64> {
            let stats = json(&rsu, &["stats"])?;
            stats["counters"]["node"]["drop_duplicate"].as_u64().context("drop_duplicate")
        };
        let before = dropped()?;
        // docs/wire-format.md, ToUpstream.
        let frame = |number: u32| {
            let inner = [&[0xff; 6][..], &[2, 0, 0, 0, 0x66, 1], &[0x88, 0xb6], &[0; 46]].concat();
            let mut frame = [&rsu.radio.0[..], &forger.radio.0, &[0x88, 0xb5, 0x28, 0]].concat();
            frame.extend((22 + inner.len() as u16).to_be_bytes());
            frame.extend([&rsu.radio.0[..], &obu.radio.0, &[15, boot as u8]].concat());
            frame.extend(number.wrapping_mul(100_000).to_be_bytes());
            frame.extend(inner);
            frame
        };
        let frames: Vec<_> = (1..1500).map(frame).collect();
        let (report, said, rsu_said) = std::thread::scope(|scope| {
            let ns = forger.ns();
            let all = frames.iter().map(Vec::as_slice);
            let storm = scope.spawn(move || send_raw(ns, "radio0", all, ms(2)));
            std::thread::sleep(ms(200));
            let report = PingStream::count(&obu.host.ns, server.v4, 50, ms(10))?;
            // What one types.
            let said = table(&obu, &["ping", "-c", "2", &rsu.radio.to_string()])?;
            let status = json(&obu, &["status"])?;
            ensure!(status["is_healthy"] == true, "{status}");
            let rsu_said = table(&rsu, &["stats", "drop_"])?;
            storm.join().map_err(|_| anyhow!("the forger died"))??;
            Ok::<_, anyhow::Error>((report, said, rsu_said))
        })?;
        ensure!(report.received * 4 < report.sent, "it gets through: {report:?}");
        ensure!(said.contains("2 asked, 2 answered"), "{said}");
        ensure!(rsu_said.contains("drop_duplicate"), "{rsu_said}");
        let after = dropped()?;
        println!("    drop_duplicate {before}, then {after}");
        ensure!(after >= before + 40, "{before}, then {after}");
        answers(&obu.host, &server)?;
        Ok(())
    })
}

/// A host on the LAN, and its road-side unit, with a larger MTU than the vehicle.
fn a_frame_too_long_is_found() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |bed| {
        const LONG: u32 = 9000;
        rsu.extra_args.borrow_mut().extend(["--mtu".to_owned(), LONG.to_string()]);
        for (ns, interface) in
            [(&server.ns, "eth0"), (bed.lan(), "server"), (bed.lan(), "rsu1"), (rsu.ns(), "eth0")]
        {
            ns.set_mtu(interface, LONG)?;
        }
        start(bed)?;
        answers(&obu.host, &server)?;
        bed.lan().set_mtu("lan0", LONG)?;
        rsu.ns().set_mtu("br0", LONG)?;
        let (to, from) = (obu.host.mac_now()?, server.mac_now()?);
        let frame = NumberedFrame { to, from, vlan: None, number: 0, payload_len: 4000 };
        send_frames(&server.ns, &server.interface, &[frame], ms(0))?;
        let said = problem(&obu, "frame-too-long")?;
        ensure!(said.contains(&format!("from {from}")) && said.contains("bytes 4014"), "{said}");
        ensure!(said.contains("cure: give all nodes the same --mtu"), "{said}");
        Ok(())
    })
}

/// What it sends that is too long gets lost in the bridge, which nobody counts.
fn a_bridged_host_too_wide_is_found() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, host) = bed.add_obu_with_host("obu1", "host1")?;
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&host, &server)?;
        ensure!(v2xctl(&obu, &["status"])?.0 == 0);
        let set = |mtu| obu.ns().set_mtu("eth0", mtu).and_then(|()| host.ns.set_mtu("eth0", mtu));
        set(9000)?;
        let said = problem(&obu, "wider-port")?;
        ensure!(said.contains("port eth0") && said.contains("9000"), "{said}");
        ensure!(said.contains("1500"), "{said}");
        set(1500)?;
        wait_until("nothing is wrong any more", PATIENCE, || {
            Ok(!table(&obu, &["status"])?.contains("port eth0")).map(|well| well.then_some(()))
        })
    })
}

/// They do not hear each other, nobody sends anything, and they start together, so that their
/// starts may count alike.
fn two_vehicles_with_one_id_are_found() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let rsu = bed.add_rsu("rsu1")?;
    let (obu, other) = (bed.add_obu("obu1")?, bed.add_obu("obu2")?);
    bed.connect(&rsu, &obu)?;
    bed.connect(&rsu, &other)?;
    with_logs(bed, |bed| {
        let id = obu.radio.to_string();
        other.extra_args.borrow_mut().extend(["--node-id".to_owned(), id.clone()]);
        start(bed)?;
        let said = problem(&rsu, "two-obus-use-one-node-id")?;
        ensure!(said.contains(&id) && said.contains("--node-id"), "{said}");
        // It hears what fills the air: its own heartbeats, and those that are brought back.
        let air = json(&rsu, &["radio"])?;
        ensure!(air["air"]["heartbeats_per_s"].as_f64().is_some_and(|n| n > 5.0), "{air}");
        Ok(())
    })
}

fn two_nodes_with_one_id_are_found() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let rsu = bed.add_rsu("rsu1")?;
    let (obu, other) = (bed.add_obu("obu1")?, bed.add_obu("obu2")?);
    bed.connect(&rsu, &obu)?;
    bed.connect(&rsu, &other)?;
    bed.connect(&obu, &other)?;
    with_logs(bed, |bed| {
        let id = obu.radio.to_string();
        other.extra_args.borrow_mut().extend(["--node-id".to_owned(), id]);
        start(bed)?;
        let said = problem(&obu, "another-node-uses-our-node-id")?;
        ensure!(said.contains(&other.radio.to_string()), "{said}");
        ensure!(said.contains("--node-id"), "{said}");
        Ok(())
    })
}

fn a_road_side_unit_without_a_lan_is_found() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, relay, obu } = row(&mut bed)?;
    with_logs(bed, |bed| {
        start(bed)?;
        answers(&obu.host, &server)?;
        rsu.ns().set_down("tap0")?;
        let said = problem(&rsu, "no-lan")?;
        ensure!(said.contains("TAP tap0 is down"), "{said}");
        ensure!(v2xctl(&rsu, &["status"])?.0 == 4);
        // The vehicle has left it, and says why it has no other.
        let said = problem(&obu, "no-upstream")?;
        ensure!(said.contains("v2xctl upstreams"), "{said}");
        let relay = relay.radio.to_string();
        shows(&obu, &["upstreams"], |upstreams| {
            let near = &upstreams["without_way"][0];
            near["id"] == relay.as_str() && near["obstacles"][0] == "no-way"
        })?;
        let said = table(&obu, &["upstreams"])?;
        ensure!(said.contains(&relay) && said.contains("no way"), "{said}");
        Ok(())
    })
}
