//! A node that runs between two memory devices, and those that look at its control socket.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use control_socket::client::{ClientError, SocketClient};
use control_socket::message::RefusalKind;
use daemon::args::Common;
use daemon::control::ControlSocket;
use daemon::logging::LogLevel;
use node_lib::control::counters::Counters;
use node_lib::control::event::{Attachment, Cause, Event, HandOver};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::snapshot::{NodeRole, Snapshot};
use node_lib::device::memory::{self, Memory};
use node_lib::device::{Device, LinkState, Outgoing, StaticLinks};
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::{Command, Remote};
use node_lib::runtime::{Exit, Runtime, inside};
use node_lib::transport::mtu::TapMtu;
use node_lib::{Mac, NodeId, Timestamp};

pub(crate) const ID: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

/// Longer than anything takes that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

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

pub(crate) fn event(kind: u8, number: u8) -> Event {
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
                is_settled: true,
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
pub(crate) struct Scene {
    pub(crate) directory: Rc<tempfile::TempDir>,
    pub(crate) host: RefCell<Memory>,
    pub(crate) air: RefCell<Memory>,
    pub(crate) remote: Remote,
    pub(crate) thread: Option<std::thread::JoinHandle<Exit>>,
}

pub(crate) fn runs() -> Scene {
    runs_in(Rc::new(tempfile::tempdir().unwrap()))
}

pub(crate) fn runs_in(directory: Rc<tempfile::TempDir>) -> Scene {
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
            let control = ControlSocket::open(&common, Vec::new(), log).await.unwrap();
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
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("rsu0.sock")
    }

    pub(crate) fn rw(&self) -> PathBuf {
        self.directory.path().join("rsu0.rw.sock")
    }

    pub(crate) fn client(&self) -> SocketClient {
        SocketClient::connect(&self.path()).unwrap()
    }

    /// Something happens to the node.
    pub(crate) fn happens(&self, kind: u8, number: u8) {
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

    pub(crate) fn stop(&mut self) -> Exit {
        self.remote.send(Command::Stop);
        self.thread.take().unwrap().join().unwrap()
    }
}

pub(crate) fn raw(path: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    BufReader::new(stream)
}

pub(crate) fn line(from: &mut BufReader<UnixStream>) -> serde_json::Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

pub(crate) fn refusal(result: Result<control_socket::message::Topics, ClientError>) -> RefusalKind {
    match result.unwrap_err() {
        ClientError::Refused { refusal, .. } => refusal.kind,
        other => panic!("{other}"),
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.remote.send(Command::Stop);
            let _ = thread.join();
        }
    }
}
