//! Recorded runs of the protocol, replayed: `recordings/*.txt` each have a drawn topology, what
//! happens, and every frame on the radio that follows, in words.
//!
//! A change of the protocol changes them, and shows in a review what it does:
//! `V2X_WRITE_RECORDINGS=1 cargo test -p sim --test recordings` writes them anew. The topology is a
//! drawing: `──` is a radio link that loses nothing and takes a millisecond, `══` a client behind a
//! TAP. Names that begin with "rsu" are RSUs, those with "obu" OBUs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a test that panics has failed"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::messages::control::Control;
use node_lib::messages::data::{Data, Destination};
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, NodeId, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::{ClientIndex, Fault, Flow, Link, NodeIndex, Place, Role, Target, World};

#[test]
fn nodes_do_what_they_did_when_it_was_recorded() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    let mut changed = String::new();
    for file in files {
        let kept = fs::read_to_string(&file).unwrap();
        let input = kept.split("\noutput\n").next().unwrap();
        let made = format!("{}\n\noutput\n{}", input.trim_end(), Scene::read(input).run());
        if std::env::var_os("V2X_WRITE_RECORDINGS").is_some() {
            fs::write(&file, &made).unwrap();
        } else if let Some((line, (was, is))) = first_difference(&kept, &made) {
            let name = file.file_name().unwrap().to_string_lossy();
            write!(changed, "\n{name}:{line}\n  recorded: {was}\n  now:      {is}").unwrap();
        }
    }
    assert!(changed.is_empty(), "{changed}\nV2X_WRITE_RECORDINGS=1 writes them anew");
}

/// Number and text of the first line that differs.
fn first_difference<'a>(a: &'a str, b: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    let lines = a.lines().count().max(b.lines().count());
    let line = |text: &'a str, n| text.lines().nth(n).unwrap_or("(nothing)");
    let differs = |n: &usize| line(a, *n) != line(b, *n);
    (0..lines).find(differs).map(|n| (n + 1, (line(a, n), line(b, n))))
}

/// A topology, and what happens in it.
struct Scene<'a> {
    world: World,
    nodes: BTreeMap<&'a str, NodeIndex>,
    clients: BTreeMap<&'a str, ClientIndex>,
    /// Every address by its name.
    names: BTreeMap<Mac, &'a str>,
    until: Timestamp,
}

impl<'a> Scene<'a> {
    /// Reads the sections "topology" and "input" of a file.
    fn read(text: &'a str) -> Self {
        let (head, input) = text.split_once("\ninput\n").expect("a section `input`");
        let (_, topology) = head.split_once("\ntopology\n").expect("a section `topology`");
        let mut scene = Self {
            world: World::new(1),
            nodes: BTreeMap::new(),
            clients: BTreeMap::new(),
            names: BTreeMap::from([(Mac::BROADCAST, "all")]),
            until: Timestamp::ZERO,
        };
        scene.world.keep_air();
        topology.lines().for_each(|line| scene.draw(line));
        for line in input.lines().filter(|line| !line.trim().is_empty()) {
            scene.plan(line);
        }
        scene
    }

    fn draw(&mut self, line: &'a str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for name in words.iter().filter(|word| word.starts_with("rsu") || word.starts_with("obu")) {
            self.node(name);
        }
        for [a, how, b] in words.windows(3).filter_map(|three| <[&str; 3]>::try_from(three).ok()) {
            match how {
                "──" => {
                    let link = Link { delay: Duration::from_millis(1), ..Link::CLEAN };
                    let (a, b) = (self.node(a), self.node(b));
                    self.world.link(a, b, link);
                }
                "══" => {
                    let (client, node) = if self.nodes.contains_key(a) { (b, a) } else { (a, b) };
                    let mac = Mac([2, 0, 0, 0, 1, u8::try_from(self.clients.len()).unwrap()]);
                    let place = Place::Tap(self.node(node));
                    self.clients.insert(client, self.world.add_client(mac, place));
                    self.names.insert(mac, client);
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, name: &'a str) -> NodeIndex {
        if let Some(known) = self.nodes.get(name) {
            return *known;
        }
        let mac = Mac([2, 0, 0, 0, 0, u8::try_from(self.nodes.len() + 1).unwrap()]);
        self.names.insert(mac, name);
        let node = if name.starts_with("rsu") {
            self.world.add(Role::Rsu, mac, |start, now| {
                Rsu::new(rsu_lib::Settings::default().config(start), now)
            })
        } else {
            self.world.add(Role::Obu, mac, |start, now| {
                Obu::new(obu_lib::Settings::default().config(start), now)
            })
        };
        self.nodes.insert(name, node);
        node
    }

    /// One line of input: a time in milliseconds, and what happens then.
    fn plan(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (at, what) = words.split_first().unwrap();
        let at = Timestamp::from_millis(at.parse().unwrap_or_else(|_| panic!("no time: {line}")));
        let node = |name: &str| self.nodes[name];
        match *what {
            [from, "→", to] => {
                let to = Target::Client(self.clients[to]);
                let flow = Flow::once(self.clients[from], to, at);
                self.world.add_flow(flow);
            }
            ["cut", a, b] => self.world.at(at, Fault::Cut(node(a), node(b))),
            ["heal", a, b] => self.world.at(at, Fault::Heal(node(a), node(b))),
            ["crash", a] => self.world.at(at, Fault::Crash(node(a))),
            ["start", a] => self.world.at(at, Fault::Start(node(a))),
            ["goodbye", a] => self.world.at(at, Fault::Shutdown(node(a))),
            ["end"] => self.until = at,
            _ => panic!("not understood: {line}"),
        }
    }

    /// Every frame on the radio, and what nodes report, one a line.
    fn run(mut self) -> String {
        self.world.run_until(self.until).unwrap();
        let frames = self.world.air().iter().map(|sent| {
            let words = self.words(&Message::try_from(&sent.frame[..]).unwrap());
            (sent.time, words)
        });
        let events = self.world.events().iter().map(|(time, node, event)| {
            (*time, format!("{:<5} ! {}", self.name_of(*node), self.event(event)))
        });
        let mut lines: Vec<(Timestamp, String)> = frames.chain(events).collect();
        lines.sort_by_key(|(time, _)| *time);
        lines.iter().fold(String::new(), |mut text, (time, words)| {
            let ms = time.as_micros() as f64 / 1000.0;
            writeln!(text, "{ms:9.3}  {words}").unwrap();
            text
        })
    }

    fn name_of(&self, node: NodeIndex) -> &str {
        self.nodes.iter().find(|(_, known)| **known == node).map_or("?", |(name, _)| name)
    }

    fn mac(&self, mac: Mac) -> String {
        match self.names.get(&mac) {
            Some(name) => (*name).to_owned(),
            None if mac == Mac::ZERO => "nobody".to_owned(),
            // A node's own TAP, as a rule.
            None => mac.to_string(),
        }
    }

    fn id(&self, id: NodeId) -> String {
        self.mac(Mac(id.0))
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::UpstreamChanged { to, cause, .. } => match to {
                Some(to) => format!(
                    "attached to {} through {}, {} hops: {cause:?}",
                    self.id(to.rsu),
                    self.id(to.upstream),
                    to.hops
                ),
                None => format!("attached to nobody: {cause:?}"),
            },
            // The rest by its name.
            other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
        }
    }

    fn words(&self, message: &Message<'_>) -> String {
        let said = match &message.packet {
            PacketType::Control(control) => self.control(control),
            PacketType::Data(Data::Upstream(up)) => format!(
                "data up, from {} to {}, seq {}, {} bytes",
                self.id(up.source),
                self.id(up.destination),
                up.seq.0,
                up.payload.len()
            ),
            PacketType::Data(Data::Downstream(down)) => {
                let to = match down.destination {
                    Destination::Node { id, .. } => self.id(id),
                    Destination::All { .. } => "all".to_owned(),
                };
                let (from, seq) = (self.id(down.source), down.seq.0);
                format!("data down, from {from} to {to}, seq {seq}, {} bytes", down.payload.len())
            }
            PacketType::Fragment(part) => format!("fragment of {} bytes", part.part.len()),
        };
        format!("{:<5} > {:<5} {said}", self.mac(message.from), self.mac(message.to))
    }

    fn control(&self, control: &Control<'_>) -> String {
        match control {
            Control::Heartbeat(h) => format!(
                "heartbeat of {}, seq {}, {} hops, cost {}, {} OBUs",
                self.id(h.rsu),
                h.order.seq.0,
                h.hops,
                h.cost.0,
                h.obus
            ),
            Control::HeartbeatReply(r) => format!(
                "reply of {} to {}, via {}, {} clients{}{}",
                self.id(r.origin),
                self.id(r.rsu),
                self.id(r.via),
                r.clients,
                if r.standby { ", standby" } else { "" },
                if r.goodbye { ", goodbye" } else { "" }
            ),
            Control::Probe(p) if p.asked == NodeId::NONE => "probe: any RSU?".to_owned(),
            Control::Probe(p) => {
                format!("probe: does {} hear me, and what of {}?", self.id(p.asked), self.id(p.rsu))
            }
            Control::ProbeAnswer(a) => match a.route {
                Some(route) => format!(
                    "answer: {} is {} hops away, cost {}",
                    self.id(a.rsu),
                    route.hops,
                    route.cost.0
                ),
                None => format!("answer: no way to {}", self.id(a.rsu)),
            },
            Control::Withdrawal(w) => {
                let rsus: Vec<String> = w.rsus.iter().map(|rsu| self.id(rsu)).collect();
                let what = if w.goodbye { "goodbye" } else { "withdrawal" };
                format!("{what}: {}", rsus.join(", "))
            }
            Control::Announcement(a) => {
                let clients: Vec<String> =
                    a.clients.iter().map(|client| self.mac(client.mac)).collect();
                format!(
                    "announcement of {} to {}, epoch {}, part {} of {}{}: {}",
                    self.id(a.origin),
                    self.id(a.rsu),
                    a.epoch,
                    a.part + 1,
                    a.parts,
                    if a.standby { ", standby" } else { "" },
                    clients.join(", ")
                )
            }
            Control::AnnouncementAck(a) => format!(
                "acknowledgement to {}, epoch {}: {:?}",
                self.id(a.destination),
                a.epoch,
                a.status
            ),
            Control::Echo(e) => {
                let what = if e.verdict.is_some() { "echo answered" } else { "echo" };
                format!("{what}: to {}, place {}", self.mac(e.target), e.at)
            }
        }
    }
}
