//! Two nodes in one process, without sockets and without a clock: a client behind an OBU and a host
//! on the LAN behind an RSU greet each other.
//!
//! ```sh
//! cargo run -p sim --example two_nodes
//! ```
//!
//! This is how a simulator drives nodes: it says what time it is, carries frames from one node to
//! the other, and asks when each wants to be woken. `sim::World` does the same for any number of
//! nodes, with loss, delay and faults; here nothing is hidden.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::control::node::{Interface, Node, Replies};
use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;

const CLIENT: Mac = Mac([2, 0, 0, 0, 1, 1]);
const HOST: Mac = Mac([2, 0, 0, 0, 2, 1]);

fn main() {
    let now = Timestamp::ZERO;
    let start = |n| Start::new(Mac([2, 0, 0, 0, 0, n]));
    let obu = obu_lib::Settings::default().config(&start(1));
    let rsu = rsu_lib::Settings::default().config(&start(2));
    let mut pair =
        Pair { obu: Obu::new(obu, now), rsu: Rsu::new(rsu, now), air: VecDeque::new(), now };

    // The nodes find each other: heartbeat, probe, answer, announcement.
    pair.run_for(Duration::from_millis(500));
    while let Some(event) = pair.obu.poll_event() {
        println!("OBU: {event:?}");
    }

    // A frame goes up, and one comes back down.
    pair.tap(Side::Obu, &frame(HOST, CLIENT, "ping"));
    pair.run_for(Duration::from_millis(10));
    pair.tap(Side::Rsu, &frame(CLIENT, HOST, "pong"));
    pair.run_for(Duration::from_millis(10));

    for (name, counters) in [("OBU", pair.obu.counters()), ("RSU", pair.rsu.counters())] {
        let counts: Vec<_> = counters.iter().filter(|(_, count)| *count > 0).collect();
        println!("{name} counted {counts:?}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Obu,
    Rsu,
}

/// Time a frame is in the air.
const DELAY: Duration = Duration::from_micros(500);

/// Two nodes, and the frames on their way to one of them, first come first.
struct Pair {
    obu: Obu,
    rsu: Rsu,
    air: VecDeque<(Timestamp, Side, Vec<u8>)>,
    now: Timestamp,
}

impl Pair {
    /// Hands a frame to a node as if a client had sent it.
    fn tap(&mut self, side: Side, frame: &[u8]) {
        self.drive(side, |node, now, out| node.handle_tap(now, frame, out));
    }

    /// Runs from one thing that happens to the next.
    fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.air.front().map(|(time, ..)| *time);
            let (obu, rsu) = (self.obu.poll_timeout(), self.rsu.poll_timeout());
            let first = [arrival, obu, rsu].into_iter().flatten().min();
            let Some(next) = first.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == first
                && let Some((_, side, frame)) = self.air.pop_front()
            {
                self.drive(side, |node, now, out| node.handle_wire(now, &frame, out));
            } else {
                let side = if obu == first { Side::Obu } else { Side::Rsu };
                self.drive(side, |node, now, out| node.handle_timeout(now, out));
            }
        }
        self.now = until;
    }

    /// Calls a node and sends what it wants sent: over the air to the other, or to its client.
    fn drive(&mut self, side: Side, call: impl FnOnce(&mut dyn Node, Timestamp, &mut Replies)) {
        let mut out = Replies::new();
        let (node, other): (&mut dyn Node, _) = match side {
            Side::Obu => (&mut self.obu, Side::Rsu),
            Side::Rsu => (&mut self.rsu, Side::Obu),
        };
        call(node, self.now, &mut out);
        for reply in out.take() {
            match reply.interface() {
                Interface::Radio => {
                    self.air.push_back((self.now + DELAY, other, reply.into_frame()));
                }
                Interface::Tap => self.show(side, &reply.frame()),
            }
        }
    }

    fn show(&self, side: Side, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame.get(14..).unwrap_or_default());
        let (now, len, text) = (self.now, frame.len(), text.trim_end_matches('\0'));
        println!("{now} {side:?} hands {len} bytes to its TAP: {text}");
    }
}

/// An Ethernet frame with some text in it.
fn frame(to: Mac, from: Mac, text: &str) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb6], text.as_bytes()].concat();
    frame.resize(60, 0);
    frame
}
