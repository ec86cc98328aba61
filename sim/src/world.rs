//! Nodes, links, clients and one queue of what happens next: [`World`].

mod air;
mod engine;
mod host;
mod life;
mod placed;

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;

use crate::check::{Checker, Segment, Violation};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::frame::Flight;
use crate::guest::Guest;
use crate::index::{ClientIndex, FlowIndex, LanIndex, NodeIndex};
use crate::lan::{Lan, LanPort};
use crate::link::Link;
use crate::link_trace::LinkSteps;
use crate::medium::Step;
use crate::mobility::Body;
use crate::radio::Strength;
use crate::stats::Stats;
use crate::topology::Graph;
use crate::trace::Trace;
use crate::traffic::{Flow, FlowLog};
pub use air::Air;
use air::Deeds;
use host::Host;
pub use host::TapCounters;
pub use life::{Counting, DAY_OFF_MAX};
use node_lib::control::event::{Attachment, Event};
use node_lib::control::node::{Node, Replies};
use node_lib::control::positions::Located;
use node_lib::mac::{Mac, NodeId};
use node_lib::order::Boot;
use node_lib::settings::LoopSettings;
use node_lib::start::clients::{Notes, Remembered};
use node_lib::start::{RADIO_MTU, Start};
use node_lib::time::Timestamp;
use node_lib::transport::mtu::TapMtu;
pub use placed::Delivery;
use placed::PlacedMedium;

/// What a node is, as far as the world must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// In a vehicle.
    Obu,
    /// At the road side.
    Rsu,
}

/// Makes a node for one start, at this time of its own clock. What it returns is to be made as a
/// daemon makes it: by `Settings::config` of its role.
pub type Factory = Box<dyn Fn(&Start, Timestamp) -> Box<dyn Guest> + Send>;

/// Where a client lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the TAP of this node: on its LAN, if it is plugged into one.
    Tap(NodeIndex),
    /// On a LAN.
    Lan(LanIndex),
}

/// A frame a node handed to its TAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapDelivery {
    /// When.
    pub time: Timestamp,
    /// Which node.
    pub node: NodeIndex,
    /// The whole Ethernet frame.
    pub frame: Vec<u8>,
}

/// A frame a node sent to the radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioFrame {
    /// When.
    pub time: Timestamp,
    /// Which node.
    pub node: NodeIndex,
    /// The whole Ethernet frame.
    pub frame: Vec<u8>,
}

/// One node, running or not: what every frame it hears makes the world look at, one line of 64
/// bytes of a processor's cache.
struct Slot {
    node: Option<Box<dyn Guest>>,
    /// When it wants to be woken, and when that is next looked at: not later.
    wake: Option<Timestamp>,
    wake_planned: Option<Timestamp>,
    /// When its clock showed zero.
    started: Timestamp,
    /// Tells one start from the next.
    life: u32,
    mac: Mac,
    role: Role,
    radio_up: bool,
    lan_up: bool,
    isolated: bool,
    /// Its process is stopped.
    is_stalled: bool,
    /// Frames wait in its outbox.
    is_waiting: bool,
    details: Box<Details>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Slot>() == 64, "one line");

impl Slot {
    /// Can it send and receive at all?
    fn is_on_air(&self) -> bool {
        self.node.is_some() && self.radio_up && !self.isolated
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("mac", &self.mac).finish_non_exhaustive()
    }
}

/// The rest of what the world knows of a node.
struct Details {
    factory: Factory,
    /// A process waits for its boot count.
    is_starting: bool,
    /// Boot count of the last start that began to live: what is in its state file.
    boot: Option<Boot>,
    /// Decides when its clients are noted.
    notes: Notes,
    /// Who was noted last, and when: what is in the file beside its state file.
    noted: Option<(Timestamp, Vec<Remembered>)>,
    /// Wake-ups of late, and since when they are counted.
    spins: u16,
    spins_since: Timestamp,
    id: NodeId,
    stats: Stats,
    /// Frames sent to the radio.
    frames: u64,
    attachment: Option<Attachment>,
    lan: Option<(usize, LanPort)>,
    /// Says what it likes, under any name.
    forges: bool,
    /// Clients behind its TAP.
    clients: Vec<usize>,
    host: Host,
}

/// One direction between two nodes.
struct Path {
    link: Link,
    /// How strong frames come in, where that is known.
    strength: Option<Strength>,
    cut: bool,
    dice: Dice,
}

/// What is plugged into a port of a LAN.
#[derive(Clone, Copy)]
enum Plug {
    Node(usize),
    Client(usize),
}

#[derive(Default)]
struct LanSlot {
    switch: Lan,
    plugs: Vec<Plug>,
}

struct Client {
    mac: Mac,
    home: Home,
}

#[derive(Clone, Copy)]
enum Home {
    Tap(usize),
    Lan(usize, LanPort),
}

enum SimEvent {
    Arrive { to: usize, life: u32, flight: Arc<Flight> },
    Hear { node: usize, dbm: Option<i8>, flight: Arc<Flight> },
    Step { step: Step, medium: u32 },
    Move,
    Second,
    Replay { pair: usize, step: usize },
    Appear { node: usize },
    Disappear { node: usize },
    Begin { node: usize, life: u32, boot: Boot },
    Wake { node: usize, life: u32 },
    Room { node: usize },
    Resume { node: usize, life: u32 },
    Unacknowledged { node: usize, life: u32, flight: Arc<Flight> },
    IntoTap { node: usize, frame: Arc<[u8]> },
    Reach { client: usize, by: usize, frame: Arc<[u8]> },
    Emit { flow: usize },
    // Boxed: it is rare, and larger than all the others.
    Change(Box<Fault>),
    Gone { node: usize, life: u32 },
}

/// What happens at one time. Of two things at the same time the one planned first comes first.
struct Entry {
    time: Timestamp,
    serial: u64,
    what: SimEvent,
}

impl Entry {
    fn key(&self) -> (Timestamp, u64) {
        (self.time, self.serial)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// A network of nodes in virtual time. See the [crate](crate) for what it does and how to use
/// it.
pub struct World {
    seed: u64,
    now: Timestamp,
    /// The time of day at time zero, since 1970.
    began_at: Duration,
    counting: Counting,
    /// Of OBUs and of RSUs.
    radio_mtu: (usize, usize),
    tap_mtu: (TapMtu, TapMtu),
    bundles: bool,
    holds_to_rules: bool,
    serial: u64,
    queue: BinaryHeap<Reverse<Entry>>,
    slots: Vec<Slot>,
    /// By sender, then by receiver.
    paths: Vec<BTreeMap<usize, Path>>,
    /// Where each node is.
    bodies: Vec<Body>,
    /// The radio channel between positions, instead of paths.
    placed: Option<Box<PlacedMedium>>,
    /// Links that change as recorded.
    replays: Vec<LinkSteps>,
    ids: HashMap<NodeId, usize, FixedState>,
    macs: HashMap<Mac, usize, FixedState>,
    /// Starts of RSUs so far.
    rsu_starts: u32,
    lans: Vec<LanSlot>,
    clients: Vec<Client>,
    flows: Vec<(Flow, FlowLog)>,
    trace: Trace,
    checker: Checker,
    next_turn: Timestamp,
    violation: Option<Box<Violation>>,
    /// Rules broken so far, where that does not end the run.
    breaches: Option<u64>,
    events: Vec<(Timestamp, NodeIndex, Event)>,
    taps: Option<Vec<TapDelivery>>,
    air: Option<Vec<RadioFrame>>,
    hears_all: bool,
    /// Media there were: tells what one planned from what the next plans.
    mediums: u32,
    reports_signal: bool,
    /// … and which frames nobody acknowledged.
    reports_unacknowledged: bool,
    retries: u32,
    event_count: u64,
    replies: Replies,
    /// Memory for what a medium says.
    spare_deeds: Vec<Deeds>,
}

/// Time through a switch and the cables to it.
const LAN_DELAY: Duration = Duration::from_micros(20);

/// Between two tries of one unicast frame over a [`Link`]: about the airtime of a short frame at
/// 6 Mbit/s, with the wait for its acknowledgement and the back-off.
const RETRY_AFTER: Duration = Duration::from_micros(500);

/// No packet lives longer than this: hop limit times the longest delay a link here has, with room.
const PACKET_LIFE: Duration = Duration::from_secs(10);

/// Wake-ups a node may ask for within [`SPINS_WITHIN`], and events it may have at once. More would
/// be a daemon that burns a whole processor.
const SPINS_MAX: u16 = 1000;

const SPINS_WITHIN: Duration = Duration::from_millis(100);

/// Purposes of streams of randomness.
const PATH_DICE: u64 = 1 << 60;
const STRENGTH_SEED: u64 = 7 << 60;
const FLOW_SEED: u64 = 8 << 60;

impl World {
    /// An empty world. Everything random in it comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Timestamp::ZERO,
            began_at: life::time_of_day(seed),
            counting: Counting::default(),
            radio_mtu: (RADIO_MTU, RADIO_MTU),
            tap_mtu: Default::default(),
            bundles: LoopSettings::DEFAULT.bundles,
            holds_to_rules: true,
            serial: 0,
            queue: BinaryHeap::new(),
            slots: Vec::new(),
            paths: Vec::new(),
            bodies: Vec::new(),
            placed: None,
            replays: Vec::new(),
            ids: HashMap::default(),
            macs: HashMap::default(),
            rsu_starts: 0,
            lans: Vec::new(),
            clients: Vec::new(),
            flows: Vec::new(),
            trace: Trace::new(),
            checker: Checker::new(),
            next_turn: Timestamp::ZERO + PACKET_LIFE,
            violation: None,
            breaches: None,
            events: Vec::new(),
            taps: None,
            air: None,
            hears_all: false,
            mediums: 0,
            reports_signal: true,
            reports_unacknowledged: false,
            retries: 0,
            event_count: 0,
            replies: Replies::new(),
            spare_deeds: Vec::new(),
        }
    }

    // Building it.

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

    /// Whether nodes are held to the [rules](super::Rule) of ours. A model of another protocol is
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

    // Running it.

    /// Runs until this time, everything at that time included.
    ///
    /// # Errors
    /// A rule was broken; the world stands still from then on and gives the same answer again. Not
    /// after [`World::go_on_when_broken`].
    pub fn run_until(&mut self, until: Timestamp) -> Result<(), Box<Violation>> {
        while (self.violation.is_none() || self.breaches.is_some())
            && let Some(Reverse(next)) = self.queue.peek()
            && next.time <= until
            && let Some(Reverse(entry)) = self.queue.pop()
        {
            self.now = self.now.max(entry.time);
            self.event_count += 1;
            if self.now >= self.next_turn {
                self.checker.forget_old();
                self.next_turn = self.now + PACKET_LIFE;
            }
            self.handle(entry.what);
        }
        match &self.violation {
            Some(violation) if self.breaches.is_none() => Err(violation.clone()),
            _ => {
                self.now = self.now.max(until);
                Ok(())
            }
        }
    }

    /// Runs for this long.
    ///
    /// # Errors
    /// As [`World::run_until`].
    pub fn run_for(&mut self, span: Duration) -> Result<(), Box<Violation>> {
        self.run_until(self.now + span)
    }

    // Looking at it.

    /// Time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The first rule that was broken, if one was.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_deref()
    }

    /// How often rules were broken so far, after [`World::go_on_when_broken`].
    pub fn breaches(&self) -> u64 {
        self.breaches.unwrap_or_default()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many things happened: a measure of work.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// Hash over the whole trace so far.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// The trace since [`World::keep_trace`].
    pub fn trace_text(&self) -> &str {
        self.trace.text()
    }

    /// The last lines of the trace, always kept.
    pub fn last_lines(&self) -> Vec<String> {
        self.trace.last()
    }

    /// Tells a running node where it is, as a receiver does; `None`: that is not known any more.
    /// Where its radio reaches has nothing to do with it.
    pub fn locate(&mut self, node: NodeIndex, located: Option<Located>) {
        self.drive(node.0, None, |node, now, _| node.handle_position(now, located));
    }

    /// A running node.
    pub fn node(&self, node: NodeIndex) -> Option<&dyn Node> {
        let guest = self.slots.get(node.0)?.node.as_deref()?;
        Some(guest)
    }

    /// A running node as what it is, with its tables and all else its type shows; `None` also if it
    /// is something else.
    ///
    /// ```
    /// use node_lib::Mac;
    /// use sim::{Link, NodeIndex, Role, World, topology::Graph};
    /// use node_lib::Timestamp;
    /// use obu_lib::Obu;
    /// use rsu_lib::Rsu;
    ///
    /// let radio = |n| Mac([2, 0, 0, 0, 0, n]);
    /// let mut world = World::new(7);
    /// let rsu = world.add_node(Role::Rsu, radio(1), Box::new(|start, now| {
    ///     Box::new(Rsu::new(rsu_lib::Settings::default().config(start), now))
    /// }));
    /// let obu = world.add_node(Role::Obu, radio(2), Box::new(|start, now| {
    ///     Box::new(Obu::new(obu_lib::Settings::default().config(start), now))
    /// }));
    /// world.link_all(&Graph::chain(2), Link::CLEAN);
    /// world.run_until(Timestamp::from_millis(3000))?;
    ///
    /// let attached = world.node_as::<Rsu>(rsu).unwrap().attached();
    /// assert_eq!(attached.len(), 1, "the RSU knows its OBU");
    /// assert!(world.node_as::<Obu>(obu).unwrap().attachment().is_some());
    /// assert!(world.node_as::<Obu>(rsu).is_none(), "it is no OBU");
    /// # Ok::<(), Box<sim::Violation>>(())
    /// ```
    pub fn node_as<N: Node + 'static>(&self, node: NodeIndex) -> Option<&N> {
        let guest: &dyn Any = self.slots.get(node.0)?.node.as_deref()?;
        guest.downcast_ref()
    }

    /// Nodes of this role, running or not.
    pub fn nodes(&self, role: Role) -> impl Iterator<Item = NodeIndex> {
        let of_role = move |(_, slot): &(usize, &Slot)| slot.role == role;
        self.slots.iter().enumerate().filter(of_role).map(|(index, _)| NodeIndex(index))
    }

    /// What the node last said it sends through.
    pub fn attachment(&self, node: NodeIndex) -> Option<Attachment> {
        self.slots.get(node.0)?.details.attachment
    }

    /// What nodes reported, in order, since [`World::take_events`].
    pub fn events(&self) -> &[(Timestamp, NodeIndex, Event)] {
        &self.events
    }

    /// Takes what nodes reported: long runs of many nodes would fill the memory with it.
    pub fn take_events(&mut self) -> Vec<(Timestamp, NodeIndex, Event)> {
        std::mem::take(&mut self.events)
    }

    /// What nodes handed to their TAPs since [`World::keep_taps`].
    pub fn taps(&self) -> &[TapDelivery] {
        self.taps.as_deref().unwrap_or_default()
    }

    /// What nodes sent to the radio since [`World::keep_air`].
    pub fn air(&self) -> &[RadioFrame] {
        self.air.as_deref().unwrap_or_default()
    }

    /// What became of a flow.
    pub fn flow(&self, flow: FlowIndex) -> Option<&FlowLog> {
        self.flows.get(flow.0 as usize).map(|(_, log)| log)
    }

    /// What one node sent over the air.
    pub fn stats_of(&self, node: NodeIndex) -> Stats {
        self.slots.get(node.0).map(|slot| slot.details.stats).unwrap_or_default()
    }

    /// What all nodes sent over the air.
    pub fn stats(&self) -> Stats {
        self.slots.iter().fold(Stats::default(), |sum, slot| sum + slot.details.stats)
    }

    /// Data packets a node sent more than once to the same neighbour: no loop, but wasted air.
    pub fn repeats(&self) -> u64 {
        self.checker.repeats()
    }

    /// Who can now hear whom in both directions. The graph has all nodes; those that are off have
    /// no edges. Left out are links that lose everything and, under a [`RadioModel`], those that
    /// lose more than half.
    ///
    /// [`RadioModel`]: crate::radio::RadioModel
    pub fn graph(&self) -> Graph {
        if self.placed.is_some() {
            return self.graph_of_places();
        }
        let mut graph = Graph::empty(self.slots.len());
        for (from, paths) in self.paths.iter().enumerate() {
            for &to in paths.keys().filter(|&&to| to > from) {
                if self.passes(from, to) && self.passes(to, from) {
                    graph.link(from, to);
                }
            }
        }
        graph
    }

    /// The oracle: hops from each node to the nearest running RSU over present links.
    pub fn hops_to_rsu(&self) -> Vec<Option<usize>> {
        let running = |node: &NodeIndex| self.node(*node).is_some();
        self.graph().hops_to(self.nodes(Role::Rsu).filter(running).map(|node| node.0))
    }
}
