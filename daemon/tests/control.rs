//! The control socket of a node that runs between two memory devices, as its clients see it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use control_socket::client::{Client, ClientError};
use control_socket::feed::{Backoff, Feed, News};
use control_socket::message::{
    Access, Ask, CLIENTS_MAX, PinAsk, PingAsk, REQUEST_MAX, RefusalKind, SUBSCRIPTIONS_MAX, SetAsk,
    Topic,
};
use daemon::args::Common;
use daemon::control::Control;
use daemon::logging::LogLevel;
use node_lib::control::counters::Counters;
use node_lib::control::event::{Attachment, Cause, Event, HandOver};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::snapshot::{NodeRole, Snapshot};
use node_lib::device::memory::{self, Memory};
use node_lib::device::{Burst, Device, LinkState, Outgoing, StaticLinks};
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::{Command, Remote};
use node_lib::runtime::{Exit, Runtime, inside};
use node_lib::transport::mtu::TapMtu;
use node_lib::{Mac, NodeId, Timestamp};

const ID: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

/// Hands every frame of the TAP to the radio. One that begins with 0xee is an event instead.
struct Wire {
    counters: Counters,
    events: VecDeque<Event>,
    forgotten: Option<Mac>,
}

impl Node for Wire {
    fn id(&self) -> NodeId {
        ID
    }
    fn handle_wire(&mut self, _: Timestamp, _: &[u8], _: &mut Replies) {}
    fn handle_tap(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        match frame {
            [0xee, kind, number, ..] => self.events.push_back(event(*kind, *number)),
            _ => out.wire(|flat| flat.extend_from_slice(frame)),
        }
    }
    fn handle_link(&mut self, _: Timestamp, _: LinkEvent, _: &mut Replies) {}
    fn handle_timeout(&mut self, _: Timestamp, _: &mut Replies) {}
    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn handle_shutdown(&mut self, _: Timestamp, _: &mut Replies) {}
    fn linger(&self) -> Duration {
        Duration::ZERO
    }
    fn snapshot(&self, _: Timestamp) -> Snapshot {
        Snapshot::of(ID, NodeRole::Rsu)
    }
    fn forget_clients(&mut self, _: Timestamp, which: Option<Mac>, _: &mut Replies) -> usize {
        self.forgotten = which;
        3
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

fn event(kind: u8, number: u8) -> Event {
    let obu = NodeId([2, 0, 0, 0, 0, number]);
    match kind {
        0 => Event::ObuDetached { obu },
        1 => Event::IdConflict { mac: Mac(obu.0) },
        2 => {
            let to = Some(Attachment { rsu: obu, upstream: obu, hops: 1 });
            let silence = Duration::from_millis(7);
            Event::UpstreamChanged { from: None, to, cause: Cause::First, silence }
        }
        _ => {
            let from = Attachment { rsu: obu, upstream: obu, hops: 1 };
            Event::HandOver(HandOver {
                from,
                to: Some(from),
                cause: Cause::First,
                acknowledged: true,
                gap: Duration::from_millis(70),
                lost: 1,
                at_risk: 0,
                doubled: 0,
                sent_twice: 0,
            })
        }
    }
}

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    common: Common,
}

/// A node that runs, with its control socket.
struct Scene {
    directory: Rc<tempfile::TempDir>,
    host: RefCell<Memory>,
    air: RefCell<Memory>,
    remote: Remote,
    thread: Option<std::thread::JoinHandle<Exit>>,
}

fn runs() -> Scene {
    runs_in(Rc::new(tempfile::tempdir().unwrap()))
}

fn runs_in(directory: Rc<tempfile::TempDir>) -> Scene {
    let path = directory.path().join("rsu0.sock");
    let (mut radio, air) = memory::pair(1500).unwrap();
    let (mut tap, host) = memory::pair(1500).unwrap();
    let remote = Remote::new();
    let line = ["rsu", "-b", "udp:", "-t", "rsu0", "--control", path.to_str().unwrap()];
    let Flags { common } = Flags::try_parse_from(line).unwrap();
    let commands = remote.clone();
    let thread = std::thread::spawn(move || {
        let tokio = daemon::start::tokio_runtime().unwrap();
        tokio.block_on(async {
            let log = LogLevel::new("info", Arc::new(|_| Ok(())));
            let control = Control::open(&common, Vec::new(), log).await.unwrap();
            let (mut commands, inside) = inside::attend(commands);
            let serving = control.serve(inside).unwrap();
            let counters = Counters::default();
            let mut node = Wire { counters, events: VecDeque::new(), forgotten: None };
            let runtime = Runtime {
                clock: Clock::start(),
                radio: LinkState { index: 1, mac: Mac(ID.0), mtu: 1500, up: true },
                tap_mtu: TapMtu::default(),
                bundles: false,
                coalesce: Duration::ZERO,
                busy_poll: Duration::ZERO,
                announcements: Vec::new(),
                remembered: Vec::new(),
                client_file: None,
            };
            let exit = runtime
                .run(&mut node, &mut radio, &mut tap, &mut StaticLinks, &mut commands)
                .unwrap();
            drop(serving);
            exit
        })
    });
    let (host, air) = (RefCell::new(host), RefCell::new(air));
    let scene = Scene { directory, host, air, remote, thread: Some(thread) };
    let until = Instant::now() + Duration::from_secs(10);
    while !(scene.path().exists() && scene.rw().exists()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    scene
}

impl Scene {
    fn path(&self) -> PathBuf {
        self.directory.path().join("rsu0.sock")
    }

    fn rw(&self) -> PathBuf {
        self.directory.path().join("rsu0.rw.sock")
    }

    fn client(&self) -> Client {
        Client::connect(&self.path()).unwrap()
    }

    /// Something happens to the node.
    fn happens(&self, kind: u8, number: u8) {
        let mut frame = [0; 60];
        frame[..3].copy_from_slice(&[0xee, kind, number]);
        let mut host = self.host.borrow_mut();
        loop {
            // A full queue drops the newest, and counts it.
            let full = host.counters().tx_full;
            host.send(&[Outgoing::new(&frame)]);
            if host.counters().tx_full == full {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn stop(&mut self) -> Exit {
        self.remote.send(Command::Stop);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn raw(path: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    BufReader::new(stream)
}

fn line(from: &mut BufReader<UnixStream>) -> serde_json::Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn refusal(result: Result<control_socket::message::Topics, ClientError>) -> RefusalKind {
    match result.unwrap_err() {
        ClientError::Refused { refusal, .. } => refusal.kind,
        other => panic!("{other}"),
    }
}

#[test]
fn a_client_is_greeted_and_gets_what_it_asks_for_and_no_more() {
    let scene = runs();
    let mut client = scene.client();
    let hello = client.hello();
    assert_eq!((&*hello.name, hello.access), ("rsu0", Access::ReadOnly));
    assert_eq!(hello.pid, std::process::id());
    let topics = client.ask(Ask::Get(vec![Topic::View, Topic::Log])).unwrap();
    assert_eq!((topics.node, topics.role), (ID, NodeRole::Rsu));
    assert_eq!(topics.view.unwrap().node.id, ID);
    assert_eq!(topics.log.as_deref(), Some("info"));
    assert!(topics.events.is_none() && topics.changes.is_none() && topics.problems.is_none());
    assert_eq!(client.ask(Ask::Get(vec![Topic::Problems])).unwrap().problems, Some(vec![]));
}

#[test]
fn only_the_read_write_socket_changes_anything() {
    let scene = runs();
    for ask in [Ask::FlushClients(None), Ask::SetLog("debug".to_owned())] {
        assert_eq!(refusal(scene.client().ask(ask)), RefusalKind::ReadOnly);
    }
    let mut client = Client::connect(&scene.rw()).unwrap();
    assert_eq!(client.hello().access, Access::ReadWrite);
    assert_eq!(client.ask(Ask::FlushClients(Some(Mac([2; 6])))).unwrap().flushed, Some(3));
    let set = client.ask(Ask::SetLog("warn,node_lib=debug".to_owned())).unwrap();
    assert_eq!(set.log.as_deref(), Some("warn,node_lib=debug"));
    assert_eq!(refusal(client.ask(Ask::SetLog("loud".to_owned()))), RefusalKind::Invalid);
}

#[test]
fn what_a_program_does_not_have_is_refused_with_the_reason() {
    let scene = runs();
    let set = |name: &str, value: &str| {
        Ask::Set(SetAsk { name: name.to_owned(), value: value.to_owned() })
    };
    let pin = |mac, vlan| Ask::PinClient(PinAsk { mac, vlan, obu: ID });
    let ping = |target, hop_limit, within_ms| Ask::Ping(PingAsk { target, hop_limit, within_ms });
    for ask in [
        Ask::Reload,
        Ask::RecordStart(None),
        Ask::RecordStop,
        Ask::RecordMark("x".to_owned()),
        ping(Mac([2; 6]), 1, 1),
        pin(Mac([2; 6]), 0),
        Ask::UnpinClients(None),
        set("log", "info"),
    ] {
        assert_eq!(refusal(scene.client().ask(ask)), RefusalKind::ReadOnly);
    }
    // To look what a reload would do changes nothing.
    assert_eq!(refusal(scene.client().ask(Ask::Check)), RefusalKind::Unable);
    let mut client = Client::connect(&scene.rw()).unwrap();
    assert_eq!(refusal(client.ask(Ask::Reload)), RefusalKind::Unable);
    assert_eq!(refusal(client.ask(Ask::RecordStart(None))), RefusalKind::Unable);
    assert_eq!(refusal(client.ask(set("mtu", "1400"))), RefusalKind::Invalid);
    assert_eq!(refusal(client.ask(set("log", "loud"))), RefusalKind::Invalid);
    let (one, all) = (Mac([2; 6]), Mac([0xff; 6]));
    let most = node_lib::messages::MAX_HOPS;
    for bad in [
        ping(all, 1, 100),
        ping(one, 0, 100),
        ping(one, most + 1, 100),
        ping(one, 1, 0),
        ping(one, 1, 10_001),
        pin(all, 0),
        pin(one, 4095),
    ] {
        let text = format!("{bad:?}");
        assert_eq!(refusal(client.ask(bad)), RefusalKind::Invalid, "{text}");
    }
    // The node of this test has no place for pins.
    assert_eq!(refusal(client.ask(pin(one, 0))), RefusalKind::Unable);
    assert!(client.ask(set("log", "debug")).is_ok());
    let log = client.ask(Ask::Get(vec![Topic::Log])).unwrap().log;
    assert_eq!(log.as_deref(), Some("debug"));
}

#[test]
fn a_subscriber_gets_what_there_is_and_then_what_is_new() {
    let scene = runs();
    scene.happens(2, 7);
    let mut client = scene.client();
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        // What happened must have come to the one who keeps it.
        let known = client.ask(Ask::Get(vec![Topic::Changes])).unwrap().changes.unwrap();
        if !known.is_empty() || Instant::now() > until {
            break;
        }
    }
    let wanted = vec![Topic::Events, Topic::Changes];
    let before = client.ask(Ask::Subscribe(wanted)).unwrap();
    let changes = before.changes.unwrap();
    assert_eq!((changes.len(), changes[0].number, changes[0].silence_ms), (1, 0, 7));
    assert_eq!(before.events.unwrap()[0].event, event(2, 7));
    scene.happens(0, 9);
    let update = client.next_update().unwrap();
    let events = update.topics.events.unwrap();
    assert_eq!((events[0].number, &events[0].event), (1, &event(0, 9)));
    assert_eq!((update.missed, update.topics.changes, update.topics.node), (None, None, ID));
}

#[test]
fn what_a_change_cost_is_told_with_the_change() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    writeln!(client.get_mut(), "{{\"id\":2,\"subscribe\":[\"changes\"]}}").unwrap();
    assert_eq!(line(&mut client)["ok"]["changes"], serde_json::json!([]));
    scene.happens(2, 7);
    scene.happens(3, 7);
    let costs = [(); 2].map(|()| {
        let update = line(&mut client);
        let change = &update["changes"][0];
        assert_eq!(change["number"], 0, "{update}");
        change["cost"]["lost"].as_u64()
    });
    assert_eq!(costs, [None, Some(1)]);
}

#[test]
fn a_subscription_is_replaced_by_one_of_its_id_and_ends_when_its_client_says_so() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    let mut say = |what: &str| {
        writeln!(client.get_mut(), "{what}").unwrap();
        line(&mut client)
    };
    for id in [2, 3, 3, 4] {
        let answer = say(&format!("{{\"id\":{id},\"subscribe\":[\"events\"]}}"));
        assert_eq!(answer["ok"]["events"], serde_json::json!([]), "{answer}");
    }
    say("{\"id\":9,\"unsubscribe\":2}");
    (0..2).for_each(|n| scene.happens(0, n));
    let told = [(); 4].map(|()| {
        let update = line(&mut client);
        (update["update"].as_u64().unwrap(), update["events"][0]["number"].as_u64().unwrap())
    });
    assert_eq!(told, [(3, 0), (4, 0), (3, 1), (4, 1)]);
}

#[test]
fn the_view_is_told_whole_again_and_again() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    writeln!(client.get_mut(), "{{\"id\":2,\"subscribe\":[\"view\"]}}").unwrap();
    let told = [(); 3].map(|()| line(&mut client));
    let first = told[0]["ok"]["view"]["uptime_ms"].as_u64().unwrap();
    let uptimes = [1, 2].map(|n| told[n]["view"]["uptime_ms"].as_u64().unwrap());
    assert!(first < uptimes[0] && uptimes[0] < uptimes[1], "{first} {uptimes:?}");
    assert!(told.iter().all(|told| told["problems"].is_null()), "{told:?}");
}

#[test]
fn a_client_that_takes_nothing_is_left() {
    let scene = runs();
    let mut lazy = raw(&scene.path());
    line(&mut lazy);
    writeln!(lazy.get_mut(), "{{\"id\":2,\"subscribe\":[\"events\"]}}").unwrap();
    // More than fits into the socket.
    for n in 0..5_000 {
        scene.happens(0, n as u8);
        if n % 64 == 63 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // Longer than a daemon waits; then what fits into the socket is there, and no more.
    std::thread::sleep(Duration::from_secs(7));
    let mut lines = 0;
    let mut text = String::new();
    while lazy.read_line(&mut text).is_ok_and(|len| len > 0) {
        lines += 1;
        text.clear();
        assert!(lines < 5_000, "it goes on and on");
    }
    let last = lazy.into_inner().write(b"{\"id\":3,\"get\":[]}\n");
    assert!(last.is_err(), "nobody is there any more, after {lines} lines");
}

#[test]
fn a_fault_becomes_a_problem_that_subscribers_are_told() {
    let scene = runs();
    let mut client = scene.client();
    let before = client.ask(Ask::Subscribe(vec![Topic::Problems])).unwrap();
    assert_eq!(before.problems, Some(vec![]));
    scene.happens(1, 5);
    let problems = client.next_update().unwrap().topics.problems.unwrap();
    assert_eq!(problems[0].kind, "another-node-uses-our-node-id");
    assert!(problems[0].text.contains("02:00:00:00:00:05"), "{problems:?}");
    assert!(problems[0].cure.contains("--node-id"), "{problems:?}");
    // It is noticed again, and by now is older: both are no news.
    scene.happens(1, 6);
    client.ask(Ask::Subscribe(vec![Topic::View])).unwrap();
    for _ in 0..3 {
        let told = client.next_update().unwrap().topics;
        assert!(told.view.is_some() && told.problems.is_none(), "{:?}", told.problems);
    }
    let now = client.ask(Ask::Get(vec![Topic::Problems])).unwrap().problems.unwrap();
    assert_eq!(now[0].noticed.map(|noticed| noticed.times), Some(2));
}

#[test]
fn what_is_no_request_is_refused_and_the_next_one_answered() {
    let scene = runs();
    let mut client = raw(&scene.path());
    assert_eq!(line(&mut client)["v2x_control"], 1);
    for bad in ["", "x", "[]", "{\"id\":1}", "{\"id\":-1,\"get\":[]}", "{\"id\":1,\"get\":[\"x\"]}"]
    {
        writeln!(client.get_mut(), "{bad}").unwrap();
        let answer = line(&mut client);
        assert_eq!(answer["error"]["kind"], "malformed", "{bad:?}: {answer}");
        assert!(answer["error"]["text"].as_str().unwrap().contains("expected"), "{answer}");
    }
    client.get_mut().write_all(&[0xff, 0xfe, b'\n']).unwrap();
    assert_eq!(line(&mut client)["error"]["kind"], "malformed");
    // In two pieces, with a pause.
    client.get_mut().write_all(b"{\"id\":7,").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    client.get_mut().write_all(b"\"get\":[\"log\"]}\n").unwrap();
    let answer = line(&mut client);
    assert_eq!((&answer["id"], &answer["ok"]["log"]), (&7.into(), &"info".into()));
}

#[test]
fn a_line_without_end_ends_the_connection() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    client.get_mut().write_all(&vec![b' '; REQUEST_MAX + 1]).unwrap();
    assert_eq!(line(&mut client)["error"]["kind"], "too-long");
    assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0, "the end");
}

#[test]
fn so_many_clients_are_served_and_one_more_is_told() {
    let scene = runs();
    let mut clients: Vec<_> = (0..CLIENTS_MAX).map(|_| scene.client()).collect();
    match Client::connect(&scene.path()) {
        Err(ClientError::Refused { refusal, .. }) => {
            assert_eq!(refusal.kind, RefusalKind::TooMany);
        }
        other => panic!("{other:?}"),
    }
    clients[0].ask(Ask::Get(vec![])).unwrap();
    for id in 0..SUBSCRIPTIONS_MAX {
        clients[1].ask(Ask::Subscribe(vec![])).unwrap_or_else(|e| panic!("{id}: {e}"));
    }
    assert_eq!(refusal(clients[1].ask(Ask::Subscribe(vec![]))), RefusalKind::TooMany);
}

#[test]
fn the_place_of_a_client_that_goes_is_free_again() {
    let scene = runs();
    for _ in 0..2 * CLIENTS_MAX {
        // The daemon may not have noticed yet that those before have gone.
        let until = Instant::now() + PATIENCE;
        while let Err(error) = Client::connect(&scene.path()) {
            assert!(Instant::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn who_does_not_read_costs_no_frame_and_hears_of_its_gap() {
    let scene = runs();
    let mut lazy = scene.client();
    lazy.ask(Ask::Subscribe(vec![Topic::Events])).unwrap();
    // More than fits into the socket and all queues.
    let sent = 20_000;
    for n in 0..sent {
        scene.happens(0, n as u8);
        if n % 64 == 63 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // The others are served meanwhile.
    scene.client().ask(Ask::Get(vec![Topic::View])).unwrap();
    let (mut told, mut missed) = (0, 0);
    let mut last = 0;
    while last + 1 < sent {
        let update = lazy.next_update().unwrap();
        missed += update.missed.unwrap_or(0);
        for happened in update.topics.events.into_iter().flatten() {
            told += 1;
            last = happened.number;
        }
    }
    assert!(missed > 0, "it read too fast for this test: {told}");
    assert!(told <= sent && last < sent);
}

#[test]
fn a_thousand_requests_a_second_cost_no_frame() {
    let scene = runs();
    let asked = AtomicUsize::new(0);
    let frames = 2000;
    let path = scene.path();
    let until = Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(&path).unwrap();
                while Instant::now() < until {
                    client.ask(Ask::Get(vec![Topic::View])).unwrap();
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut arrived = 0;
        let mut burst = Burst::new(64);
        for n in 0..frames {
            scene.host.borrow_mut().send(&[Outgoing::new(&[n as u8 & 0x7f; 100])]);
            std::thread::sleep(Duration::from_millis(1));
            scene.air.borrow_mut().recv(&mut burst);
            arrived += burst.len();
        }
        let end = Instant::now() + Duration::from_secs(10);
        while arrived < frames && Instant::now() < end {
            scene.air.borrow_mut().recv(&mut burst);
            arrived += burst.len();
        }
        assert_eq!(arrived, frames);
    });
    let asked = asked.into_inner();
    println!("{asked} requests in two seconds");
    assert!(asked > 0);
}

#[test]
fn at_a_clean_end_clients_are_left_and_the_sockets_are_gone() {
    let mut scene = runs();
    let mut client = scene.client();
    client.ask(Ask::Subscribe(vec![Topic::Events])).unwrap();
    assert_eq!(scene.stop(), Exit::Clean);
    assert!(client.next_update().is_err());
    assert!(!scene.path().exists() && !scene.rw().exists());
}

/// Hands bytes to the socket behind it, and ends each connection after so many.
struct Cutter {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Cutter {
    fn before(socket: PathBuf, path: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for (number, near) in listener.incoming().enumerate() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (mut near, mut far) = (near.unwrap(), UnixStream::connect(&socket).unwrap());
                let (mut near_in, mut far_out) =
                    (near.try_clone().unwrap(), far.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut near_in, &mut far_out);
                    // Or else who still reads there would wait for ever.
                    let _ = far_out.shutdown(Shutdown::Both);
                });
                // From the middle of the greeting, over the answer, to some way into the updates.
                let most = 40 + number as u64 * 7919 % 64_000;
                let _ = std::io::copy(&mut (&mut far).take(most), &mut near);
                let _ = near.shutdown(Shutdown::Both);
                let _ = far.shutdown(Shutdown::Both);
            }
        });
        Self { path, is_over, thread: Some(thread) }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = UnixStream::connect(&self.path);
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn over_many_reconnects_nothing_is_missed_or_doubled_or_the_gap_is_told() {
    // `make long` asks for a thousand.
    let reconnects = std::env::var("V2X_RECONNECTS");
    let reconnects: u64 = reconnects.map_or(100, |number| number.parse().unwrap());
    let scene = runs();
    let cutter = Cutter::before(scene.path(), scene.directory.path().join("cut.sock"));
    let (least, most) = (Duration::from_micros(100), Duration::from_millis(2));
    let mut feed = Feed::with_backoff(cutter.path.clone(), Backoff::new(least, most));
    let listeners: Vec<_> =
        (0..50).map(|n| feed.subscribe(&[[Topic::Events, Topic::Changes][n % 2]])).collect();
    // As much as the daemon keeps, so that its answers are long.
    let mut sent = 600;
    (0..sent).for_each(|n| scene.happens(0, n as u8));
    let (mut told, mut missed) = (0, 0);
    // The number that comes next, unless a gap is told.
    let mut next = None;
    let mut take = |feed: &Feed, news: News| match news {
        News::Gap(missing) => {
            missed += missing.unwrap();
            *next.as_mut().unwrap() += missing.unwrap();
        }
        News::Topics(topics) => {
            assert_eq!(feed.wanted().is_for(listeners[0], &topics), topics.events.is_some());
            for happened in topics.events.into_iter().flatten() {
                // What was before it listened is not missed.
                let next = next.get_or_insert(happened.number);
                assert_eq!(happened.number, *next, "twice, out of order, or a gap that is hidden");
                *next += 1;
                told += 1;
            }
        }
        News::Restarted => panic!("it is the same daemon"),
        News::Connected(_) | News::Away(..) => {}
    };
    while feed.connections() < reconnects {
        for _ in 0..3 {
            scene.happens(0, sent as u8);
            sent += 1;
        }
        if feed.connections() == reconnects / 2 {
            // So much happens while nobody listens that the daemon cannot have kept it.
            (0..2000).for_each(|n| scene.happens(0, n as u8));
            sent += 2000;
        }
        while let Some(news) = feed.next(Duration::from_millis(1)).unwrap() {
            take(&feed, news);
        }
    }
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until
        && let Some(news) = feed.next(Duration::from_secs(1)).unwrap()
    {
        take(&feed, news);
    }
    assert_eq!(next, Some(sent), "the last one came");
    assert!(missed > 0 && told > missed / 4, "{told} told, {missed} in gaps");
    println!("{told} told, {missed} in gaps, {} connections", feed.connections());
}

#[test]
fn a_daemon_that_starts_again_is_told_of_and_waited_for() {
    let mut scene = runs();
    let (least, most) = (Duration::from_millis(1), Duration::from_millis(5));
    let mut feed = Feed::with_backoff(scene.path(), Backoff::new(least, most));
    feed.subscribe(&[Topic::Events]);
    let kinds = |feed: &mut Feed, until: &str| {
        let mut kinds = Vec::new();
        while kinds.last().map(String::as_str) != Some(until) {
            let news = feed.next(Duration::from_secs(10)).unwrap().unwrap();
            kinds.push(format!("{news:?}").split(['(', ' ']).next().unwrap().to_owned());
        }
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&mut feed, "Topics"), ["Connected", "Topics"]);
    scene.stop();
    assert_eq!(kinds(&mut feed, "Away"), ["Away"]);
    let again = runs_in(Rc::clone(&scene.directory));
    again.happens(0, 1);
    let said = kinds(&mut feed, "Topics");
    assert!(said.ends_with(&["Restarted", "Connected", "Topics"].map(str::to_owned)), "{said:?}");
    // What cannot get better is an error.
    let file = scene.directory.path().join("file");
    let listener = UnixListener::bind(&file).unwrap();
    let foreign = std::thread::spawn(move || writeln!(listener.accept().unwrap().0, "hello"));
    assert!(matches!(Feed::new(file).next(PATIENCE), Err(ClientError::Foreign { .. })));
    foreign.join().unwrap().unwrap();
}

const PATIENCE: Duration = Duration::from_secs(10);

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.remote.send(Command::Stop);
            let _ = thread.join();
        }
    }
}
