//! A node that sends frames from a list, and answers nothing.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType};
use node_lib::sim::Factory;
use node_lib::{Mac, NodeId, Timestamp};

/// Frames and when they are sent.
pub type Script = Vec<(Timestamp, Vec<u8>)>;

/// Sends a script over the radio.
pub struct Forger {
    mac: Mac,
    script: VecDeque<(Timestamp, Vec<u8>)>,
    counters: Counters,
}

/// A forger with this MAC.
pub fn forger(mac: Mac, script: Script) -> Factory {
    Box::new(move |_, _| {
        let mut script = script.clone();
        script.sort_by_key(|(at, _)| *at);
        Box::new(Forger { mac, script: script.into(), counters: Counters::default() })
    })
}

/// One frame as `from` would send it.
pub fn frame<'a>(from: Mac, to: Mac, packet: impl Into<PacketType<'a>>) -> Vec<u8> {
    (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet: packet.into() }).into()
}

impl Node for Forger {
    fn id(&self) -> NodeId {
        self.mac.into()
    }

    fn handle_wire(&mut self, _: Timestamp, _: &[u8], _: &mut Replies) {}

    fn handle_tap(&mut self, _: Timestamp, _: &[u8], _: &mut Replies) {}

    fn handle_link(&mut self, _: Timestamp, _: LinkEvent, _: &mut Replies) {}

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        while let Some((_, frame)) = self.script.pop_front_if(|(at, _)| *at <= now) {
            out.wire(|flat| flat.extend_from_slice(&frame));
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.script.front().map(|(at, _)| *at)
    }

    fn handle_shutdown(&mut self, _: Timestamp, _: &mut Replies) {}

    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
