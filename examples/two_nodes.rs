//! Two nodes in one process, without sockets and without a clock: a client behind an OBU pings a host
//! on the LAN behind an RSU.
//!
//! ```sh
//! cargo run -p node_lib --example two_nodes
//! ```
//!
//! This is how a simulator drives nodes: it says what time it is, carries frames from one node to the
//! other, and asks when each wants to be woken. `node_lib::sim::World` does the same for any number
//! of nodes, with loss, delay and faults; here nothing is hidden.

use std::time::Duration;

use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::{Boot, Mac, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;

const CLIENT: Mac = Mac([2, 0, 0, 0, 1, 1]);
const HOST: Mac = Mac([2, 0, 0, 0, 2, 1]);

fn main() {
    let start = Timestamp::ZERO;
    let obu =
        obu_lib::Config { boot: Boot(1), seed: 1, ..obu_lib::Config::new(Mac([2, 0, 0, 0, 0, 1])) };
    let rsu =
        rsu_lib::Config { boot: Boot(1), seed: 2, ..rsu_lib::Config::new(Mac([2, 0, 0, 0, 0, 2])) };
    let mut pair = Pair {
        nodes: [Box::new(Obu::new(obu, start)), Box::new(Rsu::new(rsu, start))],
        air: Vec::new(),
        now: start,
    };

    // The nodes find each other: heartbeat, probe, answer.
    pair.run_for(Duration::from_millis(500));
    while let Some(event) = pair.nodes[OBU].poll_event() {
        println!("{} OBU: {event:?}", pair.now);
    }

    // A frame goes up, and one comes back down.
    pair.tap(OBU, &frame(HOST, CLIENT, "ping"));
    pair.run_for(Duration::from_millis(10));
    pair.tap(RSU, &frame(CLIENT, HOST, "pong"));
    pair.run_for(Duration::from_millis(10));

    for (name, node) in ["OBU", "RSU"].iter().zip(&pair.nodes) {
        let counts: Vec<_> = node.counters().iter().filter(|(_, count)| *count > 0).collect();
        println!("{name} counted {counts:?}");
    }
}

const OBU: usize = 0;
const RSU: usize = 1;

/// Time a frame is in the air.
const DELAY: Duration = Duration::from_micros(500);

/// Two nodes, and the frames on their way to one of them.
struct Pair {
    nodes: [Box<dyn Node>; 2],
    air: Vec<(Timestamp, usize, Vec<u8>)>,
    now: Timestamp,
}

impl Pair {
    /// Hands a frame to a node as if a client had sent it.
    fn tap(&mut self, node: usize, frame: &[u8]) {
        let mut out = Replies::new();
        self.nodes[node].handle_tap(self.now, frame, &mut out);
        self.carry(node, out);
    }

    /// Runs from one thing that happens to the next.
    fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.air.iter().map(|(time, ..)| *time).min();
            let wakes = [OBU, RSU].map(|node| self.nodes[node].poll_timeout());
            let times = [arrival, wakes[OBU], wakes[RSU]];
            let Some(next) = times.into_iter().flatten().min().filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                self.deliver_first();
            } else {
                let node = if wakes[OBU] == Some(next) { OBU } else { RSU };
                let mut out = Replies::new();
                self.nodes[node].handle_timeout(self.now, &mut out);
                self.carry(node, out);
            }
        }
        self.now = until;
    }

    /// The frame that arrives first goes to its node.
    fn deliver_first(&mut self) {
        let Some(first) = (0..self.air.len()).min_by_key(|&index| self.air[index].0) else {
            return;
        };
        let (_, node, frame) = self.air.remove(first);
        let mut out = Replies::new();
        self.nodes[node].handle_wire(self.now, &frame, &mut out);
        self.carry(node, out);
    }

    /// Sends what a node wants sent: to the other over the air, or to its client.
    fn carry(&mut self, node: usize, mut out: Replies) {
        for reply in out.take() {
            match reply {
                ReplyType::WireFlat(frame) => self.air.push((self.now + DELAY, 1 - node, frame)),
                ReplyType::Wire(parts) => {
                    self.air.push((self.now + DELAY, 1 - node, parts.concat()));
                }
                ReplyType::TapFlat(frame) => self.show(node, &frame),
                ReplyType::Tap(parts) => self.show(node, &parts.concat()),
            }
        }
    }

    fn show(&self, node: usize, frame: &[u8]) {
        let name = if node == OBU { "OBU" } else { "RSU" };
        let text = String::from_utf8_lossy(frame.get(14..).unwrap_or_default());
        println!(
            "{} {name} hands {} bytes to its TAP: {}",
            self.now,
            frame.len(),
            text.trim_end_matches('\0')
        );
    }
}

/// An Ethernet frame with some text in it.
fn frame(to: Mac, from: Mac, text: &str) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb6], text.as_bytes()].concat();
    frame.resize(60, 0);
    frame
}
