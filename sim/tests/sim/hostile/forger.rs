//! A node that says what a test wants it to say, under any name and address.

use std::time::Duration;

use node_lib::control::node::Replies;
use node_lib::messages::control::Control;
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::probe::Probe;
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType};
use node_lib::{Mac, Timestamp};
use sim::Factory;

use crate::common::radio;
use crate::puppet::{self, Puppet};

/// What the forger has heard.
#[derive(Clone, Debug, Default)]
pub struct Ears {
    /// The last heartbeat of the RSU itself.
    pub heartbeat: Option<Heartbeat>,
    /// Frames forged so far.
    pub forged: u32,
    /// Questions to the forger, not answered yet, and who asked.
    pub probes: Vec<(Mac, Probe)>,
}

/// One forged frame: from, to, and what it says.
pub type Forged = (Mac, Mac, PacketType<'static>);

/// What to say now.
pub type Script = fn(&mut Ears) -> Vec<Forged>;

/// When a script runs.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub from: Timestamp,
    pub count: u32,
    pub every: Duration,
}

impl Times {
    /// The last time.
    pub fn last(&self) -> Timestamp {
        self.from + self.every * self.count.saturating_sub(1)
    }
}

/// The `n`-th node forges.
pub fn forger(n: usize, times: Times, script: Script) -> Factory {
    Box::new(move |_, _| {
        puppet::node(Forger { mac: radio(n), times, done: 0, script, ears: Ears::default() })
    })
}

struct Forger {
    mac: Mac,
    times: Times,
    done: u32,
    script: Script,
    ears: Ears,
}

impl Forger {
    fn speak(&mut self, out: &mut Replies) {
        for (from, to, packet) in (self.script)(&mut self.ears) {
            let message = Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet };
            out.wire(|flat| flat.extend_from_slice(&Vec::from(&message)));
        }
    }
}

impl Puppet for Forger {
    fn mac(&self) -> Mac {
        self.mac
    }

    fn hear(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Ok(message) = Message::try_from(frame) else { return };
        match message.packet {
            PacketType::Control(Control::Heartbeat(heartbeat)) if heartbeat.hops == 0 => {
                self.ears.heartbeat = Some(heartbeat);
            }
            PacketType::Control(Control::Probe(probe)) => {
                self.ears.probes.push((message.from, probe));
                if now >= self.times.from && self.next().is_some() {
                    self.speak(out);
                }
            }
            _ => {}
        }
    }

    fn next(&self) -> Option<Timestamp> {
        (self.done < self.times.count).then(|| self.times.from + self.times.every * self.done)
    }

    fn act(&mut self, now: Timestamp, out: &mut Replies) {
        if self.next().is_some_and(|at| now >= at) {
            self.done += 1;
            self.ears.forged += 1;
            self.speak(out);
        }
    }
}
