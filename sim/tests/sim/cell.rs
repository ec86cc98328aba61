//! Stations so simple that every outcome is plain: each sends what comes out of its TAP, and hands
//! to its TAP what it hears. [`Cell`] is some of them along a line.

use std::time::Duration;

use node_lib::control::node::Replies;
use node_lib::control::traffic_class;
use node_lib::messages::control::probe::Probe;
use node_lib::messages::message::Message;
use node_lib::messages::packet_type::PacketType;
use node_lib::{Boot, Mac, NodeId, Timestamp};
use sim::{
    ClientIndex, Counting, Factory, Flow, FlowIndex, FlowLog, FrameKind, Location, Medium,
    NodeIndex, Place, RadioModel, Role, Target, World,
};

use crate::puppet::{self, Puppet};

/// Sends what comes out of its TAP in a data frame to the node the client's address names, or as it
/// is if it is a frame of ours already; hands what it hears to its TAP. What its radio gave up it
/// answers with a probe for all.
pub(crate) struct Station {
    n: u8,
    seq: u32,
    dbm: i8,
}

impl Puppet for Station {
    fn mac(&self) -> Mac {
        mac(self.n)
    }

    fn feel(&mut self, dbm: i8) {
        self.dbm = dbm;
    }

    fn hear(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        if FrameKind::of(frame).is_data() {
            out.tap(|flat| {
                // Behind a flood's header stands when it was taken.
                let header = if frame[15] & FLOOD != 0 { 40 } else { 36 };
                flat.extend_from_slice(&frame[header..]);
                flat[59] = self.dbm as u8;
            });
        }
    }

    fn miss(&mut self, frame: &[u8], out: &mut Replies) {
        assert_eq!((&frame[6..12], FrameKind::of(frame).is_data()), (&mac(self.n).0[..], true));
        send_probe(mac(self.n), Mac::BROADCAST, out);
    }

    fn read(&mut self, frame: &[u8], out: &mut Replies) {
        if frame == PROBE || frame == PROBE_OF_1 {
            let to = if frame == PROBE { Mac::BROADCAST } else { mac(1) };
            return send_probe(mac(self.n), to, out);
        }
        self.seq += 1;
        let is_flood = frame[0] & 1 == 1;
        let to = if is_flood { Mac::BROADCAST } else { mac(frame[5]) };
        out.wire(|flat| {
            flat.extend_from_slice(&to.0);
            flat.extend_from_slice(&mac(self.n).0);
            let flags = (u8::from(is_flood) * FLOOD) | traffic_class::of_inner(frame);
            flat.extend_from_slice(&[0x88, 0xb5, 0x29, flags]);
            let header = if is_flood { 26 } else { 22 };
            flat.extend_from_slice(&(header + frame.len() as u16).to_be_bytes());
            flat.extend_from_slice(&to.0);
            flat.extend_from_slice(&mac(self.n).0);
            flat.extend_from_slice(&[0, 1]);
            flat.extend_from_slice(&self.seq.to_be_bytes());
            if is_flood {
                flat.extend_from_slice(&[0; 4]);
            }
            flat.extend_from_slice(frame);
        });
    }
}

/// Flag of data messages on their way down: for all.
const FLOOD: u8 = 8;

/// A station sends a probe.
pub(crate) fn send_probe(from: Mac, to: Mac, out: &mut Replies) {
    let (rsu, asked) = (NodeId::NONE, NodeId::NONE);
    let probe = Probe { sender: from.into(), sender_boot: Boot(1), nonce: 7, rsu, asked };
    let message = Message { to, from, ethertype: 0x88b5, packet: PacketType::from(probe) };
    out.wire(|flat| message.emit(flat));
}

/// Frame out of a TAP that makes a station send a probe.
pub(crate) const PROBE: &[u8] = &[2, 0, 0, 0, 1, 9, 2, 0, 0, 0, 1, 9, 0x88, 0xb5];

/// The same, for station 1 alone.
pub(crate) const PROBE_OF_1: &[u8] = &[2, 0, 0, 0, 1, 8, 2, 0, 0, 0, 1, 9, 0x88, 0xb5];

pub(crate) fn station(n: u8) -> Factory {
    Box::new(move |_, _| puppet::node(Station { n, seq: 0, dbm: 0 }))
}

/// Stations along a line, each with a client whose last byte is its own.
pub(crate) struct Cell {
    pub(crate) world: World,
    pub(crate) clients: Vec<ClientIndex>,
}

impl Cell {
    pub(crate) fn linkless(seed: u64, nodes: usize) -> Self {
        let mut world = World::new(seed);
        world.count_starts(Counting::StateFile);
        // Figures of a channel are those of frames one by one, whatever waits for it.
        world.bundle(false);
        let mut clients = Vec::new();
        for n in 0..nodes {
            let n = (n % 250) as u8;
            let node = world.add_node(Role::Obu, mac(n), station(n));
            clients.push(world.add_client(client_mac(n), Place::Tap(node)));
        }
        Self { world, clients }
    }

    pub(crate) fn new(seed: u64, channel: RadioModel, places_m: &[f64]) -> Self {
        let mut cell = Self::linkless(seed, places_m.len());
        cell.world.set_radio(channel);
        cell.place(places_m);
        cell
    }

    /// The same with a medium of the test's own.
    pub(crate) fn over(seed: u64, medium: impl Medium + 'static, places_m: &[f64]) -> Self {
        let mut cell = Self::linkless(seed, places_m.len());
        cell.world.set_medium(Box::new(medium));
        cell.place(places_m);
        cell
    }

    fn place(&mut self, places_m: &[f64]) {
        for (n, &x_m) in places_m.iter().enumerate() {
            self.world.place(NodeIndex(n), Location::new(x_m, 0.0));
        }
    }

    pub(crate) fn unicast(
        &mut self,
        from: usize,
        to: usize,
        start: Timestamp,
        every: Duration,
        count: u32,
    ) -> FlowIndex {
        let (from, to) = (self.clients[from], Target::Client(self.clients[to]));
        self.world.add_flow(Flow::steady(from, to, start, every, count))
    }

    pub(crate) fn broadcast(
        &mut self,
        from: usize,
        start: Timestamp,
        every: Duration,
        count: u32,
    ) -> FlowIndex {
        let from = self.clients[from];
        self.world.add_flow(Flow::steady(from, Target::Everyone, start, every, count))
    }

    pub(crate) fn log(&self, flow: FlowIndex) -> &FlowLog {
        self.world.flow(flow).unwrap()
    }
}

pub(crate) fn mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, n])
}

pub(crate) fn client_mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, n])
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
