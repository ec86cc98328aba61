//! A node that sends frames from a list, and answers nothing.

use std::collections::VecDeque;

use node_lib::control::node::Replies;
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType};
use node_lib::{Mac, Timestamp};
use sim::Factory;

use crate::puppet::{self, Puppet};

/// Frames and when they are sent.
pub type Script = Vec<(Timestamp, Vec<u8>)>;

/// Sends a script over the radio.
struct Forger {
    mac: Mac,
    script: VecDeque<(Timestamp, Vec<u8>)>,
}

/// A forger with this MAC.
pub fn forger(mac: Mac, script: Script) -> Factory {
    Box::new(move |_, _| {
        let mut script = script.clone();
        script.sort_by_key(|(at, _)| *at);
        puppet::node(Forger { mac, script: script.into() })
    })
}

/// One frame as `from` would send it.
pub fn frame<'a>(from: Mac, to: Mac, packet: impl Into<PacketType<'a>>) -> Vec<u8> {
    (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet: packet.into() }).into()
}

impl Puppet for Forger {
    fn mac(&self) -> Mac {
        self.mac
    }

    fn next(&self) -> Option<Timestamp> {
        self.script.front().map(|(at, _)| *at)
    }

    fn act(&mut self, now: Timestamp, out: &mut Replies) {
        while let Some((_, frame)) = self.script.pop_front_if(|(at, _)| *at <= now) {
            out.wire(|flat| flat.extend_from_slice(&frame));
        }
    }
}
