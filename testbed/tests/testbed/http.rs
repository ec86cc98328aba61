//! The HTTP endpoint of living daemons: what it says is what `v2xctl` says, it moves with what
//! happens, and it is there for this machine only.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use testbed::probe::PingStream;
use testbed::probe::http::{Connection, EventStream, PORT, enable};
use testbed::{Programs, Testbed, TestbedNode, wait_until};

use crate::beds::with_logs;
use crate::harness::{Area, ms};
use crate::row::{PATIENCE, Row, answers, give_sockets, row, socket};

pub(crate) const AREA: Area = Area {
    name: "http",
    alone: &[],
    together: &[
        ("every_table_is_what_v2xctl_shows", every_table_is_what_v2xctl_shows),
        ("metrics_move_with_what_happens", metrics_move_with_what_happens),
        ("what_happens_is_on_the_stream_of_events", what_happens_is_on_the_stream),
        ("only_this_machine_may_look_and_only_when_asked_for", only_this_machine_may_look),
    ],
};

const TABLES: [&[&str]; 16] = [
    &["status"],
    &["neighbors"],
    &["upstreams"],
    &["routes"],
    &["rsus"],
    &["radio"],
    &["clients"],
    &["obus"],
    &["tree"],
    &["handovers"],
    &["why"],
    &["stats"],
    &["config"],
    &["log-level"],
    &["record"],
    &["events", "--past"],
];

fn get(node: &TestbedNode, path: &str) -> Result<String> {
    let (status, body) = Connection::open(node.ns())?.get(path)?;
    ensure!(status == 200, "{path} of {}: {status} {body}", node.name());
    Ok(body)
}

/// Without what differs between two looks: figures, and whether there are any yet.
fn shape(value: Value) -> Value {
    match value {
        Value::Number(_) | Value::Null => Value::Null,
        Value::Array(items) => items.into_iter().map(shape).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, shape(value))).collect()
        }
        other => other,
    }
}

fn every_table_is_what_v2xctl_shows() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, rsu, relay, obu } = row(&mut bed)?;
    give_sockets(&bed);
    enable(&bed);
    with_logs(bed, |bed| {
        bed.start_all()?;
        answers(&obu.host, &server)?;
        for node in [&rsu, &relay, &obu] {
            for line in TABLES {
                let path = format!("/{}", line.join("/").replace("--", ""));
                let (mut told, mut printed) = (Value::Null, Value::Null);
                let same = wait_until("the same answer", PATIENCE, || {
                    told = shape(serde_json::from_str(&get(node, &path)?)?);
                    let mut v2xctl = Command::new(Programs::find()?.v2xctl);
                    v2xctl.arg("-s").arg(socket(node)).args(["-o", "json"]).args(line);
                    printed = shape(serde_json::from_slice(&v2xctl.output()?.stdout)?);
                    Ok((told == printed).then_some(()))
                });
                same.map_err(|error| {
                    anyhow!("{error}: {path} of {}:\n{told}\n{printed}", node.name())
                })?;
                ensure!(told["node"] == node.radio.to_string(), "{told}");
            }
        }
        // What it says is what the scene is.
        let status: Value = serde_json::from_str(&get(&obu, "/status")?)?;
        ensure!(status["attached"]["upstream"] == relay.radio.to_string(), "{status}");
        ensure!(status["attached"]["hops"] == 2, "{status}");
        // The kernel makes clients known while interfaces are young, also between two looks.
        wait_until("as many clients in one table as in the other", PATIENCE, || {
            let status: Value = serde_json::from_str(&get(&obu, "/status")?)?;
            let clients: Value = serde_json::from_str(&get(&obu, "/clients")?)?;
            let listed = clients["clients"].as_array().map(Vec::len);
            Ok(listed.filter(|listed| status["clients"] == *listed))
        })?;
        ensure!(get(&obu, "/healthz")? == "well\n");
        Ok(())
    })
}

/// The value of a metric, labels and all.
fn metric(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("{name} is not in:\n{text}"))?.parse()?)
}

fn metrics_move_with_what_happens() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, first) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (second, obu) = (bed.add_rsu("rsu2")?, bed.add_obu("obu1")?);
    bed.connect(&first, &obu)?;
    enable(&bed);
    with_logs(bed, |bed| {
        bed.start_all()?;
        answers(&obu.host, &server)?;
        let before = get(&obu, "/metrics")?;
        let up = "v2x_data_frames_total{way=\"tap-to-radio\"}";
        let gaps = "v2x_hand_over_gap_seconds_count";
        ensure!(metric(&before, gaps)? == 0.0 && metric(&before, "v2x_attached")? == 1.0);
        PingStream::count(&obu.host.ns, server.v4, 50, ms(2))?;
        let after = get(&obu, "/metrics")?;
        ensure!(metric(&after, up)? >= metric(&before, up)? + 50.0, "{before}\n{after}");
        // Not frames: those that waited together on a busy machine leave in one.
        let radio = "v2x_device_bytes_total{device=\"radio\",direction=\"tx\"}";
        let pings = 50.0 * 98.0;
        ensure!(metric(&after, radio)? >= metric(&before, radio)? + pings, "{before}\n{after}");
        bed.connect(&second, &obu)?;
        wait_until("a second RSU", PATIENCE, || {
            Ok((metric(&get(&obu, "/metrics")?, "v2x_rsus")? == 2.0).then_some(()))
        })?;
        std::thread::sleep(ms(1000));
        first.kill()?;
        // The counters are those of the last view, and the gaps those of now.
        let hand_overs = "v2x_node_events_total{kind=\"hand_overs\"}";
        let after = wait_until("the gap of a hand-over", PATIENCE, || {
            let text = get(&obu, "/metrics")?;
            let is_told = metric(&text, gaps)? == 1.0 && metric(&text, hand_overs)? == 1.0;
            Ok(is_told.then_some(text))
        })?;
        let counted = metric(&after, "v2x_gap_seconds_total")?;
        let told = metric(&after, "v2x_hand_over_gap_seconds_sum")?;
        // One counts in microseconds, the other in milliseconds.
        ensure!((counted - told).abs() < 0.002, "{counted} {told}");
        second.kill()?;
        wait_until("ill health", PATIENCE, || {
            let (status, body) = Connection::open(obu.ns())?.get("/healthz")?;
            Ok((status == 503 && body.contains("no-upstream")).then_some(()))
        })?;
        ensure!(metric(&get(&obu, "/metrics")?, "v2x_healthy")? == 0.0);
        Ok(())
    })
}

/// Begins to listen, and what there is already.
fn listen(node: &TestbedNode) -> Result<(EventStream, Value)> {
    let mut stream = wait_until("an endpoint", PATIENCE, || Ok(EventStream::open(node.ns()).ok()))?;
    let (kind, now) = stream.message()?;
    ensure!(kind == "now" && now["node"] == node.radio.to_string(), "{kind}: {now}");
    Ok((stream, now))
}

/// Waits until the stream has told of one of these in an update.
fn told(stream: &mut EventStream, topic: &str, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
    let until = Instant::now() + PATIENCE;
    let mut before = Vec::new();
    while Instant::now() < until {
        let (kind, said) = stream.message()?;
        ensure!(kind == "update", "{kind}: {said}");
        let found = said[topic].as_array().and_then(|news| news.iter().find(|one| is_it(one)));
        if let Some(found) = found {
            return Ok(found.clone());
        }
        before.push(said);
    }
    Err(anyhow!("it is not among the {topic}: {before:?}"))
}

/// A vehicle comes, and its road-side unit dies: whoever listens hears of it without asking.
fn what_happens_is_on_the_stream() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    enable(&bed);
    with_logs(bed, |_| {
        rsu.start()?;
        let (mut at_rsu, now) = listen(&rsu)?;
        ensure!(now["events"].as_array().is_some_and(Vec::is_empty), "{now}");
        obu.start()?;
        let came = told(&mut at_rsu, "events", |one| one["event"] == "obu-attached")?;
        ensure!(came["obu"] == obu.radio.to_string(), "{came}");
        // What was before is whole in the first message, what comes is numbered on from there.
        let (mut at_obu, now) = listen(&obu)?;
        let first = now["events"][0].clone();
        ensure!(first["event"] == "upstream-changed" && first["to"]["rsu"].is_string(), "{now}");
        rsu.kill()?;
        let of_rsu = Value::from(rsu.radio.to_string());
        let lost = told(&mut at_obu, "events", |one| one["from"]["rsu"] == of_rsu)?;
        ensure!(lost["event"] == "upstream-changed" && lost["cause"] == "dead", "{lost}");
        ensure!(lost["to"].is_null(), "{lost}");
        ensure!(lost["number"].as_u64() > first["number"].as_u64(), "{first} {lost}");
        told(&mut at_obu, "problems", |one| one["kind"] == "no-upstream")?;
        Ok(())
    })
}

fn only_this_machine_may_look() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { server, obu, rsu, .. } = row(&mut bed)?;
    give_sockets(&bed);
    obu.extra_args.borrow_mut().extend(["--http".to_owned(), PORT.to_string()]);
    with_logs(bed, |bed| {
        bed.start_all()?;
        answers(&server, &obu.host)?;
        ensure!(Connection::open(rsu.ns()).is_err(), "it is off unless it is asked for");
        let (status, body) = Connection::open(obu.ns())?.get_of("/status", "evil.example")?;
        ensure!(status == 421 && !body.contains("uptime"), "{status} {body}");
        // The server can reach the vehicle, and not its endpoint.
        let outside = SocketAddr::new(obu.host.v4, PORT);
        let refused = server.ns.run(|| Ok(TcpStream::connect(outside).is_err()))?;
        ensure!(refused, "{outside} answers the server");
        let mut check = Command::new(Programs::find()?.obu);
        check.args(["-b", "radio0", "-t", "tap9", "--check", "--http", &PORT.to_string()]);
        let output = obu.ns().run(|| Ok(check.output()?))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(2), "{}: {said}", output.status);
        ensure!(said.contains("127.0.0.1:8080") && said.contains("another program"), "{said}");
        obu.stop()?;
        ensure!(Connection::open(obu.ns()).is_err(), "it ends with the daemon");
        Ok(())
    })
}
