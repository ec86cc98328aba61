//! Nodes, links, clients and one queue of what happens next: [`World`].

mod air;
mod build;
mod engine;
mod host;
mod life;
mod look;
mod placed;
mod queue;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fmt;
use std::time::Duration;

use foldhash::fast::FixedState;

use crate::check::{Checker, Violation};
use crate::dice::Dice;
use crate::guest::Guest;
use crate::index::{LanIndex, NodeIndex};
use crate::lan::{Lan, LanPort};
use crate::link::Link;
use crate::link_trace::LinkSteps;
use crate::mobility::Body;
use crate::radio::Strength;
use crate::stats::Stats;
use crate::trace::Trace;
use crate::traffic::{Flow, FlowLog};
pub use air::Air;
use air::Deeds;
use host::Host;
pub use host::TapCounters;
pub use life::{Counting, DAY_OFF_MAX};
use node_lib::control::event::{Attachment, Event};
use node_lib::control::node::Replies;
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
use queue::{Entry, SimEvent};

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
    /// … and how busy their channel is.
    reports_busy: bool,
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
            reports_busy: true,
            retries: 0,
            event_count: 0,
            replies: Replies::new(),
            spare_deeds: Vec::new(),
        }
    }

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

    /// Tells a running node where it is, as a receiver does; `None`: that is not known any more.
    /// Where its radio reaches has nothing to do with it.
    pub fn locate(&mut self, node: NodeIndex, located: Option<Located>) {
        self.drive(node.0, None, |node, now, _| node.handle_position(now, located));
    }
}
