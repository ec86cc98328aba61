//! The HTTP endpoint as its clients see it, beside the control socket of the same node. A thread
//! answers as the packet loop does: the view is the same each time, so answers can be compared.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use clap::Parser;
use control_socket::client::SocketClient;
use control_socket::message::{Ask, Topic};
use control_socket::table::TableKind;
use daemon::args::Common;
use daemon::control::ControlSocket;
use daemon::http::{CONNECTIONS_MAX, HEAD_MAX, STREAMS_MAX};
use daemon::logging::LogLevel;
use node_lib::control::event::{Attachment, Cause, Event, HandOver};
use node_lib::control::snapshot::{NodeRole, Snapshot, View};
use node_lib::runtime::command::{Commands as _, Remote};
use node_lib::runtime::inside;
use node_lib::runtime::request::{Request, Told};
use node_lib::{NodeId, Timestamp};
use serde_json::Value;

const ID: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    common: Common,
}

/// An endpoint that answers.
struct Scene {
    directory: tempfile::TempDir,
    address: SocketAddr,
    events: mpsc::Sender<Event>,
    stop: mpsc::Sender<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn view(is_well: bool) -> View {
    let mut view = View::default();
    view.uptime_ms = 1234;
    view.node = Snapshot::of(ID, NodeRole::Rsu);
    (view.radio.is_up, view.tap.is_up) = (is_well, is_well);
    view.counters.node = [("drop_no_route", 3)].into_iter().collect();
    view
}

fn runs(view: View) -> Scene {
    runs_with(view, &[])
}

fn runs_with(view: View, more: &[&str]) -> Scene {
    runs_of_start(view, more, None)
}

/// Of a start that its state file does not have, for this reason.
fn runs_of_start(view: View, more: &[&str], why_unsaved: Option<&'static str>) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("rsu0.sock");
    // Free now, and asked for at once.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = address.to_string();
    let line =
        ["rsu", "-b", "udp:", "-t", "rsu0", "--control", socket.to_str().unwrap(), "--http", &http];
    let line = line.iter().chain(more);
    let Flags { common } = Flags::try_parse_from(line).unwrap();
    let ((events, happening), (stop, stopped)) = (mpsc::channel(), mpsc::channel());
    let (ready, is_ready) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let tokio = daemon::start::tokio_runtime().unwrap();
        let _inside = tokio.enter();
        let log = LogLevel::new("info", Arc::new(|_| Ok(())));
        let control = tokio.block_on(ControlSocket::open(&common, Vec::new(), log)).unwrap();
        let (mut commands, inside) = inside::attend(Remote::new());
        let control = control.with_unsaved_start(why_unsaved.map(str::to_owned));
        let serving = control.serve(inside).unwrap();
        ready.send(()).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        // Ends when the scene does.
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            while let Poll::Ready(Request::View(viewer)) = commands.poll_request(&mut cx) {
                let _ = viewer.send(Arc::new(view.clone()));
            }
            for event in happening.try_iter().take(64) {
                commands.tell(Told { at: Timestamp::ZERO, event, routes: Vec::new() });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(serving);
    });
    is_ready.recv_timeout(Duration::from_secs(10)).unwrap();
    Scene { directory, address, events, stop, thread: Some(thread) }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn field(&self, name: &str) -> Option<&str> {
        let of = |line: &str| line.split_once(": ").map(|(is, _)| is.eq_ignore_ascii_case(name));
        let line = self.head.lines().find(|line| of(line) == Some(true))?;
        line.split_once(": ").map(|(_, value)| value)
    }
}

fn read_head(from: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        // An end in the middle is no answer.
        (from.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    Some(head)
}

fn read(from: &mut BufReader<TcpStream>) -> Option<Answer> {
    let head = read_head(from)?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: String::new() };
    let len = answer.field("content-length").map_or(0, |len| len.parse().unwrap());
    from.take(len).read_to_string(&mut answer.body).ok()?;
    Some(answer)
}

impl Scene {
    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        BufReader::new(stream)
    }

    /// Sends this head, with a `Host` if it has none.
    fn ask_with(&self, first: &str, fields: &str) -> Answer {
        let mut client = self.connect();
        let host =
            if fields.contains("Host:") { String::new() } else { "Host: localhost\r\n".to_owned() };
        write!(client.get_mut(), "{first} HTTP/1.1\r\n{host}{fields}\r\n").unwrap();
        read(&mut client).unwrap_or_else(|| panic!("no answer to {first}"))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask_with(&format!("GET {path}"), "")
    }

    /// Begins to listen.
    fn listen(&self, query: &str) -> BufReader<TcpStream> {
        let mut client = self.connect();
        write!(client.get_mut(), "GET /events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let head = read_head(&mut client).unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        client
    }

    fn client(&self) -> SocketClient {
        SocketClient::connect(&self.directory.path().join("rsu0.sock")).unwrap()
    }
}

/// A message of a stream: kind, id, data.
fn message(from: &mut BufReader<TcpStream>) -> (String, Option<u64>, Value) {
    let (mut kind, mut id) = (String::new(), None);
    loop {
        let mut line = String::new();
        assert!(from.read_line(&mut line).unwrap() > 0, "the stream has ended");
        // Between them are lines of the chunks.
        match line.trim_end().split_once(": ") {
            Some(("event", is)) => is.clone_into(&mut kind),
            Some(("id", number)) => id = number.parse().ok(),
            Some(("data", data)) => return (kind, id, serde_json::from_str(data).unwrap()),
            _ => {}
        }
    }
}

fn detached(n: u8) -> Event {
    Event::ObuDetached { obu: NodeId([2, 0, 0, 0, 0, n]) }
}

/// Two events: a change of upstream, and what it cost.
fn a_change(gap_ms: u64) -> [Event; 2] {
    let place = |n| Attachment { rsu: NodeId([2, 0, 0, 0, 1, n]), upstream: ID, hops: 2 };
    let (from, to, cause) = (place(1), Some(place(2)), Cause::Dead);
    let silence = Duration::from_millis(230);
    let cost = HandOver {
        from,
        to,
        cause,
        is_settled: true,
        gap: Duration::from_millis(gap_ms),
        lost: 1,
        at_risk: 0,
        doubled: 0,
        sent_twice: 0,
    };
    [Event::UpstreamChanged { from: Some(from), to, cause, silence }, Event::HandOver(cost)]
}

/// Without what differs from one moment to the next.
fn timeless(mut table: Value) -> Value {
    table.as_object_mut().unwrap().remove("at_unix_ms").unwrap();
    table
}

#[test]
fn every_table_is_the_json_of_the_control_socket() {
    let scene = runs(view(true));
    for event in a_change(170) {
        scene.events.send(event).unwrap();
    }
    let until = Instant::now() + Duration::from_secs(10);
    while scene.get("/handovers").json()["changes"][0]["cost"].is_null() {
        assert!(Instant::now() < until, "the change is not told");
    }
    let mut client = scene.client();
    for table in TableKind::ALL.into_iter().chain([TableKind::Why(Some(0))]) {
        let path = match table {
            TableKind::Events => "/events/past".to_owned(),
            TableKind::Why(Some(id)) => format!("/why?id={id}"),
            other => format!("/{}", other.name()),
        };
        let answer = scene.get(&path);
        assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")));
        let topics = client.ask(Ask::Get(table.topics().to_vec())).unwrap();
        let told = table.json("rsu0", &table.narrowed(topics).unwrap());
        assert_eq!(timeless(answer.json()), timeless(told), "{path}");
    }
    assert_eq!(scene.get("/handovers").json()["histogram"][4]["count"], 1);
    assert_eq!(scene.get("/why?id=0").json()["change"]["silence_ms"], 230);
    let metrics = scene.get("/metrics");
    assert_eq!(metrics.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in ["v2x_drops_total{reason=\"no_route\"} 3", "v2x_hand_over_gap_seconds_sum 0.17"] {
        assert!(metrics.body.lines().any(|said| said == line), "{line}: {}", metrics.body);
    }
}

#[test]
fn where_the_node_is_stands_in_its_status_and_goes_to_subscribers() {
    let scene = runs_with(view(true), &["--position", "48.5,-11.5,519"]);
    let position = &scene.get("/status").json()["position"];
    assert_eq!((&position["state"], &position["source"]), (&"known".into(), &"fixed".into()));
    assert_eq!(position["fix"]["latitude_deg"], 48.5);
    assert_eq!(position["fix"]["altitude_hae_m"], 519.0);
    assert!(position["age_ms"].is_null() && position["fix"]["speed_mps"].is_null(), "{position}");
    let metrics = scene.get("/metrics").body;
    for line in ["v2x_position_known 1", "v2x_position_longitude_degrees -11.5"] {
        assert!(metrics.lines().any(|said| said == line), "{line}: {metrics}");
    }
    let mut client = scene.client();
    let first = client.ask(Ask::Subscribe(vec![Topic::View])).unwrap();
    let later = client.next_update().unwrap().topics;
    for topics in [&first, &later] {
        let fix = topics.position.as_ref().and_then(|position| position.fix.as_ref());
        assert_eq!(fix.map(|fix| fix.longitude_deg), Some(-11.5), "{topics:?}");
    }
    assert_eq!(client.ask(Ask::Get(vec![Topic::Log])).unwrap().position, None, "not asked for");
    let nowhere = runs(view(true));
    assert!(nowhere.get("/status").json()["position"].is_null());
    assert_eq!(nowhere.client().ask(Ask::Get(vec![Topic::View])).unwrap().position, None);
}

#[test]
fn health_is_a_status_and_the_reason() {
    let well = runs(view(true)).get("/healthz");
    assert_eq!((well.status, &*well.body), (200, "well\n"));
    let ill = runs(view(false)).get("/healthz");
    assert_eq!(ill.status, 503);
    assert!(ill.body.contains("no-lan: ") && ill.body.contains("radio-down: "), "{}", ill.body);
}

#[test]
fn a_start_that_is_not_saved_is_a_problem_everywhere_and_the_node_is_well() {
    let scene = runs_of_start(view(true), &[], Some("state file /s/boots: no space"));
    let status = scene.get("/status").json();
    assert_eq!(status["is_healthy"], true, "{status}");
    let problem = &status["problems"][0];
    assert_eq!(problem["kind"], "unsaved-start", "{status}");
    assert!(problem["text"].as_str().unwrap().contains("/s/boots: no space"), "{status}");
    assert_eq!(scene.get("/healthz").status, 200);
    let metrics = scene.get("/metrics").body;
    assert!(metrics.contains("v2x_problem{kind=\"unsaved-start\"} 1\n"), "{metrics}");
    let told = scene.client().ask(Ask::Subscribe(vec![Topic::Problems])).unwrap();
    assert_eq!(told.problems.unwrap()[0].kind, "unsaved-start");
    assert_eq!(runs(view(true)).get("/status").json()["problems"], Value::Array(Vec::new()));
}

#[test]
fn a_name_of_somebody_else_gets_nothing() {
    let scene = runs(view(true));
    let port = scene.address.port();
    for bad in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example", ""] {
        let answer = scene.ask_with("GET /status", &format!("Host: {bad}\r\n"));
        assert_eq!(answer.status, 421, "{bad}: {answer:?}");
        assert!(!answer.body.contains("uptime") && answer.body.contains("expected"), "{answer:?}");
    }
    for good in ["127.0.0.1", &format!("localhost:{port}"), "[::1]:1"] {
        let answer = scene.ask_with("GET /status", &format!("Host: {good}\r\n"));
        assert_eq!(answer.status, 200, "{good}: {answer:?}");
    }
    let absolute = scene.ask_with("GET http://evil.example/status", "Host: localhost\r\n");
    assert_eq!(absolute.status, 421, "{absolute:?}");
}

#[test]
fn every_answer_tells_browsers_to_keep_it_to_themselves() {
    let scene = runs(view(true));
    for path in ["/", "/page.js", "/page.css", "/status", "/metrics", "/healthz", "/nowhere"] {
        let answer = scene.get(path);
        let policy = answer.field("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.field(name), Some(value), "{path}");
        }
        assert_eq!(answer.field("access-control-allow-origin"), None, "{path}");
    }
    let page = scene.get("/");
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.field("content-security-policy").unwrap().contains("script-src 'self'"));
}

#[test]
fn nothing_can_be_changed() {
    let scene = runs(view(true));
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let answer = scene.ask_with(&format!("{method} /clients"), "Content-Length: 0\r\n");
        assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    let answer = scene.ask_with("GET /status", "Content-Length: 1000000\r\n");
    assert_eq!(answer.status, 413, "{answer:?}");
    let mut client = scene.connect();
    write!(client.get_mut(), "HEAD /status HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let head = read_head(&mut client).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

#[test]
fn what_is_no_question_is_told_what_was_expected() {
    let scene = runs(view(true));
    for (path, status, said) in [
        ("/nowhere", 404, "see /"),
        ("/why?id=x", 400, "expected such as /why?id=7"),
        ("/why?id=7", 404, "expected one of: there are none"),
        ("/events?topics=views", 400, "expected some of view"),
    ] {
        let answer = scene.get(path);
        assert_eq!(answer.status, status, "{path}");
        let text = answer.json()["error"]["text"].to_string();
        assert!(text.contains(said), "{path}: {text}");
    }
}

#[test]
fn a_request_that_is_too_long_ends_its_connection() {
    let scene = runs(view(true));
    let long = "x".repeat(HEAD_MAX);
    let many = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect::<String>();
    for fields in [format!("X: {long}\r\n"), many] {
        let mut client = scene.connect();
        let request = format!("GET /status HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        // The answer may come before all of it is sent.
        let _ = client.get_mut().write_all(request.as_bytes());
        let answer = read(&mut client).unwrap();
        assert_eq!(answer.status, 431, "{answer:?}");
        assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0, "the end");
    }
    assert_eq!(scene.get(&format!("/{}", "x".repeat(8000))).status, 404, "and one that is not");
    assert_eq!(scene.get("/status").status, 200);
}

#[test]
fn who_does_not_finish_a_request_is_left() {
    let scene = runs(view(true));
    let mut clients: Vec<_> = (0..2).map(|_| scene.connect()).collect();
    write!(clients[0].get_mut(), "GET /status HTTP/1.1\r\nHost: local").unwrap();
    for client in &mut clients {
        let mut rest = String::new();
        // Within the 30 s that a read may take here.
        client.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("200 OK"), "{rest}");
    }
}

#[test]
fn so_many_connections_are_served_and_one_more_is_told() {
    let scene = runs(view(true));
    let ask = |client: &mut BufReader<TcpStream>| {
        write!(client.get_mut(), "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        read(client)
    };
    let mut clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| scene.connect()).collect();
    for client in &mut clients {
        assert_eq!(ask(client).unwrap().status, 200);
    }
    let refused = ask(&mut scene.connect()).unwrap();
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("64 connections are open"), "{refused:?}");
    // Those that were there are served as before, and whoever goes makes room.
    assert_eq!(ask(&mut clients[0]).unwrap().status, 200);
    clients.pop();
    let until = Instant::now() + Duration::from_secs(10);
    while ask(&mut scene.connect()).is_none_or(|answer| answer.status != 200) {
        assert!(Instant::now() < until, "there is no room");
    }
}

#[test]
fn listeners_leave_room_for_questions() {
    let scene = runs(view(true));
    let _listeners: Vec<_> = (0..STREAMS_MAX).map(|_| scene.listen("")).collect();
    let refused = scene.get("/events");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(scene.get("/status").status, 200);
}

#[test]
fn a_listener_gets_what_there_is_and_then_what_is_new() {
    let scene = runs(view(true));
    let mut client = scene.listen("?topics=view,events,changes,problems");
    let (kind, _, now) = message(&mut client);
    assert_eq!((&*kind, &now["view"]["uptime_ms"]), ("now", &1234.into()));
    assert_eq!((&now["events"], &now["problems"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    scene.events.send(detached(7)).unwrap();
    let [change, _] = a_change(170);
    scene.events.send(change).unwrap();
    let mut told = Vec::new();
    let mut has_view = false;
    while told.len() < 2 || !has_view {
        let (kind, id, update) = message(&mut client);
        assert_eq!((&*kind, &update["node"]), ("update", &ID.to_string().into()));
        assert!(update["problems"].is_null(), "they have not changed: {update}");
        has_view |= update["view"].is_object();
        if update["events"].is_array() {
            assert_eq!(update["events"][0]["number"], id.unwrap());
            told.push((id.unwrap(), update["changes"][0]["number"].as_u64()));
        }
    }
    assert_eq!(told, [(0, None), (1, Some(1))]);
}

#[test]
fn who_reads_slowly_hears_of_its_gap_and_keeps_nobody_waiting() {
    let scene = runs(view(true));
    let mut lazy = scene.listen("?topics=events");
    // More than fits into the ring and into all buffers on the way.
    let sent = 30_000;
    for n in 0..sent {
        scene.events.send(detached(n as u8)).unwrap();
    }
    let mut brisk = scene.listen("?topics=events");
    let mut last = message(&mut brisk).2["events"].as_array().unwrap().last().map_or(0, number);
    while last + 1 < sent {
        // As it happens, and the others are served as well.
        let (kind, id, _) = message(&mut brisk);
        if kind == "update" {
            last = id.unwrap();
        }
    }
    assert_eq!(scene.get("/status").status, 200);
    let (mut told, mut missed) = (0, 0);
    let mut last = 0;
    while last + 1 < sent {
        let (kind, id, data) = message(&mut lazy);
        match &*kind {
            "missed" => missed += data["missed"].as_u64().unwrap(),
            "update" => {
                assert!(id.unwrap() >= last);
                last = id.unwrap();
                told += 1;
            }
            _ => {}
        }
    }
    assert!(missed > 0, "it read too fast for this test: {told}");
    println!("{told} told, {missed} missed");
}

fn number(event: &Value) -> u64 {
    event["number"].as_u64().unwrap()
}

#[test]
fn at_the_end_connections_end_and_the_port_is_free() {
    let scene = runs(view(true));
    let address = scene.address;
    let mut client = scene.listen("");
    message(&mut client);
    drop(scene);
    let mut rest = String::new();
    // An end or a reset, and nothing more.
    let _ = client.read_to_string(&mut rest);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_port_that_is_taken_is_an_error_that_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = taken.local_addr().unwrap().to_string();
    let line = ["rsu", "-b", "udp:", "-t", "rsu0", "--no-control", "--http", &http];
    let Flags { common } = Flags::try_parse_from(line).unwrap();
    let tokio = daemon::start::tokio_runtime().unwrap();
    let _inside = tokio.enter();
    let error = daemon::http::check(&common).unwrap_err();
    assert!(format!("{error:?}").contains("another program listens there"), "{error:?}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let line = ["rsu", "-b", "udp:", "-t", "rsu0", "--no-control", "--http", &free];
    let Flags { common } = Flags::try_parse_from(line).unwrap();
    daemon::http::check(&common).unwrap();
    TcpListener::bind(free).expect("the check leaves nothing behind");
}
