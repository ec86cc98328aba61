//! Building a [`World`]: its nodes, links, LANs, clients and flows, and what it keeps and allows.

use std::collections::BTreeMap;
use std::io;

use crate::check::Segment;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::guest::Guest;
use crate::index::{ClientIndex, FlowIndex, LanIndex, NodeIndex};
use crate::lan::LanPort;
use crate::link::Link;
use crate::mobility::Body;
use crate::stats::Stats;
use crate::topology::Graph;
use crate::traffic::{Flow, FlowLog};
use crate::world::host::Host;
use crate::world::queue::SimEvent;
use crate::world::{
    Client, Details, Factory, Home, LanSlot, PATH_DICE, Path, Place, Plug, Role, Slot, World,
};
use node_lib::mac::{Mac, NodeId};
use node_lib::start::Start;
use node_lib::start::clients::Notes;
use node_lib::time::Timestamp;

impl World {
    /// Adds a node with this radio MAC and starts it: it lives when it has waited for its boot
    /// count, as [`World::count_starts`] says. Nobody hears it until it is linked or placed.
    pub fn add_node(&mut self, role: Role, mac: Mac, factory: Factory) -> NodeIndex {
        let node = self.add_stopped(role, mac, factory);
        self.start(node.0);
        node
    }

    /// The same for a node whose maker need not be boxed.
    pub fn add<N: Guest>(
        &mut self,
        role: Role,
        mac: Mac,
        make: impl Fn(&Start, Timestamp) -> N + Send + 'static,
    ) -> NodeIndex {
        self.add_node(role, mac, Box::new(move |start, now| Box::new(make(start, now))))
    }

    /// Adds a node that is off, until [`Fault::Start`] or the first waypoint of its track
    /// ([`World::follow`]).
    pub fn add_stopped(&mut self, role: Role, mac: Mac, factory: Factory) -> NodeIndex {
        let index = self.slots.len();
        self.slots.push(Slot {
            node: None,
            wake: None,
            wake_planned: None,
            started: Timestamp::ZERO,
            life: 0,
            mac,
            role,
            radio_up: true,
            lan_up: true,
            isolated: false,
            is_stalled: false,
            is_waiting: false,
            details: Box::new(Details {
                factory,
                is_starting: false,
                boot: None,
                notes: Notes::new(Timestamp::ZERO),
                noted: None,
                spins: 0,
                spins_since: Timestamp::ZERO,
                id: NodeId::NONE,
                stats: Stats::default(),
                frames: 0,
                attachment: None,
                lan: None,
                clients: Vec::new(),
                forges: false,
                host: Host::default(),
            }),
        });
        self.paths.push(BTreeMap::new());
        self.bodies.push(Body::default());
        self.macs.insert(mac, index);
        NodeIndex(index)
    }

    /// This node may send what no honest one does: under another's address, for one. Checkers let
    /// it pass.
    pub fn let_forge(&mut self, node: NodeIndex) {
        if let Some(slot) = self.slots.get_mut(node.0) {
            slot.details.forges = true;
        }
    }

    /// Lets frames from `from` reach `to`. Linked before, the link is replaced and heals.
    pub fn link_one_way(&mut self, from: NodeIndex, to: NodeIndex, link: Link) {
        let purpose = PATH_DICE | (from.0 as u64) << 24 | to.0 as u64;
        let dice = Dice::new(self.seed, purpose);
        if from != to
            && to.0 < self.slots.len()
            && let Some(paths) = self.paths.get_mut(from.0)
        {
            let path = paths.entry(to.0).or_insert(Path { link, strength: None, cut: false, dice });
            (path.link, path.strength) = (link, None);
            path.cut = false;
        }
    }

    /// Lets frames pass both ways.
    pub fn link(&mut self, a: NodeIndex, b: NodeIndex, link: Link) {
        self.link_one_way(a, b, link);
        self.link_one_way(b, a, link);
    }

    /// Links nodes as in `graph`, whose node `n` is the `n`-th node here.
    pub fn link_all(&mut self, graph: &Graph, link: Link) {
        for (a, b) in graph.edges() {
            self.link(NodeIndex(a), NodeIndex(b), link);
        }
    }

    /// Adds a LAN behind one switch.
    pub fn add_lan(&mut self) -> LanIndex {
        self.lans.push(LanSlot::default());
        LanIndex(self.lans.len() - 1)
    }

    /// Plugs the TAP of a node into a LAN. To be done before clients are added behind it.
    pub fn plug(&mut self, node: NodeIndex, lan: LanIndex) {
        if let (Some(slot), Some(lan_slot)) = (self.slots.get_mut(node.0), self.lans.get_mut(lan.0))
        {
            let port = lan_slot.switch.add_port();
            lan_slot.plugs.push(Plug::Node(node.0));
            slot.details.lan = Some((lan.0, port));
        }
    }

    /// Adds a client with this address.
    pub fn add_client(&mut self, mac: Mac, place: Place) -> ClientIndex {
        let index = self.clients.len();
        let segment = match place {
            Place::Tap(node) => self.segment_of(node.0),
            Place::Lan(lan) => Segment::Lan(lan.0),
        };
        let home = match segment {
            Segment::Tap(node) => Home::Tap(node),
            Segment::Lan(lan) => match self.lans.get_mut(lan) {
                Some(slot) => {
                    slot.plugs.push(Plug::Client(index));
                    Home::Lan(lan, slot.switch.add_port())
                }
                None => Home::Lan(lan, LanPort(0)),
            },
        };
        if let Home::Tap(node) = home
            && let Some(slot) = self.slots.get_mut(node)
        {
            slot.details.clients.push(index);
        }
        self.checker.settle(mac, segment);
        self.clients.push(Client { mac, home });
        ClientIndex(index)
    }

    /// Lets numbered frames flow.
    pub fn add_flow(&mut self, flow: Flow) -> FlowIndex {
        let index = self.flows.len();
        self.flows.push((flow, FlowLog::default()));
        self.plan_frame(index, 0, flow.start);
        FlowIndex(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Plans a fault.
    pub fn at(&mut self, time: Timestamp, fault: Fault) {
        self.plan(time, SimEvent::Change(Box::new(fault)));
    }

    /// A frame comes out of a node's TAP at this time.
    pub fn inject_tap(&mut self, time: Timestamp, node: NodeIndex, frame: &[u8]) {
        self.plan(time, SimEvent::IntoTap { node: node.0, frame: frame.into() });
    }

    /// Keeps the text of the trace from here on, in memory.
    pub fn keep_trace(&mut self) {
        self.trace.keep_text();
    }

    /// Writes the text of the trace from here on, line by line as things happen; give it a buffer.
    pub fn write_trace(&mut self, to: Box<dyn io::Write + Send>) {
        self.trace.write_to(to);
    }

    /// Writes it no more.
    ///
    /// # Errors
    /// A line could not be written: the first error, after which nothing was written any more.
    pub fn end_trace(&mut self) -> io::Result<()> {
        self.trace.end_writing()
    }

    /// Keeps the frames handed to TAPs from here on.
    pub fn keep_taps(&mut self) {
        self.taps.get_or_insert_default();
    }

    /// Keeps the frames sent to the radio from here on.
    pub fn keep_air(&mut self) {
        self.air.get_or_insert_default();
    }

    /// Lets a copy of a packet come to a node again, so often. Where frames are under way for
    /// longer than a node takes to change its upstream, a packet may be overtaken by the change;
    /// that the upstreams themselves never form a cycle is still watched.
    pub fn tolerate_revisits(&mut self, times: usize) {
        self.checker.revisits_max = times;
    }

    /// Whether nodes are held to the [rules](crate::Rule) of ours. A model of another protocol is
    /// not: what it loses, doubles or sends in a circle is measured, and does not end the run. It
    /// may not spin either.
    pub fn hold_to_rules(&mut self, holds: bool) {
        self.holds_to_rules = holds;
    }

    /// Lets nodes hear frames addressed to others too, as a radio without a filter would.
    pub fn hear_all(&mut self) {
        self.hears_all = true;
    }

    /// Whether radios tell nodes how strong frames come in, as far as that is known: from a
    /// [`RadioModel`](crate::RadioModel), or from a [`LinkTrace`](crate::LinkTrace) that says it.
    /// They do unless told otherwise; drivers without nl80211 statistics and without a monitor do
    /// not.
    pub fn report_signal(&mut self, reports: bool) {
        self.reports_signal = reports;
    }

    /// Whether radios tell nodes which unicast frames they gave up, because no acknowledgement
    /// came. They do not unless told to: the daemons do not ask theirs yet.
    pub fn report_unacknowledged(&mut self, reports: bool) {
        self.reports_unacknowledged = reports;
    }

    /// Whether radios tell nodes once a second how busy their channel is, as far as that is known:
    /// from a [`RadioModel`](crate::RadioModel) with contention. They do unless told otherwise, as
    /// drivers with an nl80211 survey do, and whatever follows ETSI TS 102 687.
    pub fn report_busy(&mut self, reports: bool) {
        self.reports_busy = reports;
    }

    /// Lets a radio try a unicast frame again that its addressee lost, so often, as one of 802.11
    /// does. Each try has its own luck, and takes half a millisecond. For worlds without a
    /// [`RadioModel`](crate::RadioModel), whose access to the medium has retries of its own.
    pub fn try_again(&mut self, retries: u32) {
        self.retries = retries;
    }

    /// Goes on when a rule is broken, and counts: for measuring what is not in order. The first
    /// violation is kept ([`World::violation`]). A node that spins ends the run all the same.
    pub fn go_on_when_broken(&mut self) {
        self.breaches.get_or_insert_default();
    }
}
