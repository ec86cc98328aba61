//! How nodes start and stop, as the daemons do: boot counts, the wait for them, and clocks.
//!
//! A world begins at a time of day its seed draws, anywhere in the years boot counts last for. Each
//! node's own clock of the day is up to a second off from that ([`DAY_OFF_MAX`]). A start takes its
//! boot count and its wait from there by the arithmetic the daemons use
//! ([`boot`](node_lib::start::boot)); nothing is heard or sent before the wait is over.
//!
//! A node that counts in a state file notes its clients beside it, by the rule of the daemons
//! ([`clients`](node_lib::start::clients)), and is told of them when it starts again. It looks when
//! it is woken by itself, which an OBU is every second; noting takes no time.
//!
//! A node's [`Timestamp`]s count from its own start, as those of a daemon do: what one node calls
//! now says nothing about another.

use std::time::Duration;

use crate::dice::{Dice, subseed};
use crate::index::NodeIndex;
use crate::trace::What;
use crate::world::{Host, Role, SimEvent, Slot, World};
use node_lib::control::node::LinkEvent;
use node_lib::mac::{Mac, NodeId};
use node_lib::order::Boot;
use node_lib::start::Start;
use node_lib::start::boot::{self, Counted};
use node_lib::start::clients::{self, Notes};
use node_lib::time::Timestamp;

/// How nodes count their starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counting {
    /// By the time of day, as a daemon without `--state-file`: a start waits for up to 250 ms.
    #[default]
    Clock,
    /// In a file that outlives the process, as a daemon with `--state-file`: a start does not wait,
    /// and knows the clients of the one before.
    StateFile,
}

/// How far the clock of a node is off at most, early or late: set by NTP now and then, not by GPS.
pub const DAY_OFF_MAX: Duration = Duration::from_secs(1);

/// The latest time of day a world begins at leaves boot counts for so long.
const DAYS_LEFT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A daemon's clock starts when its devices are open; by the time its node is there so much has
/// passed at most.
const CREATED_AFTER_MAX: Duration = Duration::from_millis(1);

/// Purposes of streams of randomness.
const NODE_SEED: u64 = 2 << 60;
const DAY_DICE: u64 = 5 << 60;
const CLOCK_DICE: u64 = 6 << 60;

/// The time of day at which a world with this seed begins, since 1970.
pub(super) fn time_of_day(seed: u64) -> Duration {
    let years = (boot::UNIT * u32::MAX).saturating_sub(DAYS_LEFT);
    boot::EPOCH + DAY_OFF_MAX + Dice::new(seed, DAY_DICE).up_to(years)
}

/// The address of the TAP of a node with this radio: locally administered, as the kernel and the
/// daemons make them, and nobody else's here.
fn tap_mac(radio: Mac) -> Mac {
    let [first, rest @ ..] = radio.0;
    let [r1, r2, r3, r4, r5] = rest;
    Mac([(first | 2) ^ 4, r1, r2, r3, r4, r5])
}

impl World {
    /// How nodes count their starts from now on; by the clock unless told otherwise.
    pub fn count_starts(&mut self, counting: Counting) {
        self.counting = counting;
    }

    /// The time of day now, since 1970, as a node with a true clock has it.
    pub fn time_of_day(&self) -> Duration {
        self.began_at + self.now.since(Timestamp::ZERO)
    }

    /// The time of day now is this, since 1970, for all nodes. Zero is what a machine without a
    /// clock believes when it is switched on.
    pub fn set_time_of_day(&mut self, since_1970: Duration) {
        self.began_at = since_1970.saturating_sub(self.now.since(Timestamp::ZERO));
    }

    /// MTU of the radios of this role, for nodes that start from now on.
    pub fn set_radio_mtu(&mut self, role: Role, mtu: usize) {
        match role {
            Role::Obu => self.radio_mtu.0 = mtu,
            Role::Rsu => self.radio_mtu.1 = mtu,
        }
        self.checker.carry(self.radio_mtu.0.max(self.radio_mtu.1));
    }

    /// What the clock of a running node shows.
    pub fn clock(&self, node: NodeIndex) -> Option<Timestamp> {
        let slot = self.slots.get(node.0).filter(|slot| slot.node.is_some())?;
        Some(slot.clock(self.now))
    }

    /// Usable candidates of a node for its upstream
    /// ([`Node::candidates`](node_lib::control::node::Node::candidates)); `None` if it does not
    /// run.
    pub fn candidates(&self, node: NodeIndex) -> Option<usize> {
        Some(self.node(node)?.candidates(self.clock(node)?))
    }

    /// The neighbour to which a node sends frames for this RSU
    /// ([`Node::upstream_for`](node_lib::control::node::Node::upstream_for)).
    pub fn upstream_for(&self, node: NodeIndex, rsu: NodeId) -> Option<NodeId> {
        self.node(node)?.upstream_for(rsu)
    }

    /// The boot count of the last start of a node that came as far as sending.
    pub fn boot(&self, node: NodeIndex) -> Option<Boot> {
        self.slots.get(node.0)?.details.boot
    }

    /// A process starts; the node is there when it has waited for its boot count.
    pub(super) fn start(&mut self, index: usize) {
        self.stop(index);
        let off = Dice::new(self.seed, CLOCK_DICE | index as u64).up_to(2 * DAY_OFF_MAX);
        let day = (self.time_of_day() + off).saturating_sub(DAY_OFF_MAX);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Counted { boot, wait } = match self.counting {
            Counting::Clock => boot::by_clock(day),
            Counting::StateFile => match boot::after(slot.details.boot, day) {
                Some(boot) => Counted { boot, wait: Duration::ZERO },
                // A daemon would refuse to start.
                None => return,
            },
        };
        slot.life += 1;
        slot.details.is_starting = true;
        let life = slot.life;
        if wait.is_zero() {
            self.begin(index, life, boot);
        } else {
            self.plan(self.now + wait, SimEvent::Begin { node: index, life, boot });
        }
    }

    /// A start has its boot count: the node begins to live.
    pub(super) fn begin(&mut self, index: usize, life: u32, boot: Boot) {
        let now = self.now;
        let purpose = NODE_SEED | (index as u64) << 32 | u64::from(life);
        let seed = subseed(self.seed, purpose);
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.life != life || !slot.details.is_starting {
            return;
        }
        slot.details.is_starting = false;
        let (radio_mtu, tap_mtu) = match slot.role {
            Role::Obu => (self.radio_mtu.0, self.tap_mtu.0),
            Role::Rsu => (self.radio_mtu.1, self.tap_mtu.1),
        };
        // A daemon would refuse to start.
        let Ok(tap_mtu) = tap_mtu.over(radio_mtu) else { return };
        slot.details.host = Host::new(radio_mtu, tap_mtu, self.bundles);
        slot.is_waiting = false;
        slot.details.boot = Some(boot);
        slot.started = now.before(Dice::new(seed, CLOCK_DICE).up_to(CREATED_AFTER_MAX));
        let start = Start {
            id: NodeId::from(slot.mac),
            radio_mac: slot.mac,
            radio_mtu,
            tap_mac: Some(tap_mac(slot.mac)),
            boot,
            seed,
        };
        let node = (slot.details.factory)(&start, slot.clock(now));
        slot.details.id = node.id();
        slot.node = Some(node);
        slot.details.notes = Notes::new(slot.clock(now));
        let noted = slot.details.noted.clone().filter(|_| self.counting == Counting::StateFile);
        self.rsu_starts += u32::from(slot.role == Role::Rsu);
        self.ids.insert(slot.details.id, index);
        self.trace.add(now, What::Started { node: index, boot: boot.0 });
        // Asks it when it wants to be woken.
        self.drive(index, None, |_, _, _| ());
        if let Some((at, noted)) = noted {
            let known = clients::after(noted, now.since(at));
            self.drive(index, None, |node, now, out| node.handle_clients(now, &known, out));
        }
        if self.slots.get(index).is_some_and(|slot| !slot.radio_up) {
            self.drive(index, None, |node, now, out| node.handle_link(now, LinkEvent::Down, out));
        }
        if self.slots.get(index).is_some_and(|slot| !slot.lan_up) {
            let event = LinkEvent::LanDown;
            self.drive(index, None, |node, now, out| node.handle_link(now, event, out));
        }
    }

    /// Notes who is behind the node's TAP, if it has a file for that and the time has come.
    pub(super) fn note_clients(&mut self, index: usize) {
        let (now, counting) = (self.now, self.counting);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let clock = slot.clock(now);
        let Some(node) = slot.node.as_deref().filter(|_| counting == Counting::StateFile) else {
            return;
        };
        if let Some(clients) = slot.details.notes.drive(clock, || node.clients(clock)) {
            slot.details.noted = Some((now, clients));
        }
    }

    /// The node ends in order, and notes them a last time.
    pub(super) fn note_last(&mut self, index: usize) {
        let (now, counting) = (self.now, self.counting);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let clock = slot.clock(now);
        if let Some(node) = slot.node.as_deref().filter(|_| counting == Counting::StateFile) {
            slot.details.noted = Some((now, node.clients(clock)));
        }
    }

    /// Ends a process at once, whether its node is there already or not.
    pub(super) fn stop(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.wake = None;
        slot.wake_planned = None;
        slot.details.attachment = None;
        slot.details.is_starting = false;
        slot.is_stalled = false;
        if slot.node.take().is_some() {
            self.trace.add(self.now, What::Stopped { node: index });
            self.silence(index);
        }
    }

    /// Is there a process, be it one that waits for its boot count?
    pub(super) fn is_on(&self, index: usize) -> bool {
        let is_on = |slot: &Slot| slot.node.is_some() || slot.details.is_starting;
        self.slots.get(index).is_some_and(is_on)
    }

    pub(super) fn shut_down(&mut self, index: usize) {
        if self.is_put_off(index, None) {
            return;
        }
        self.drive(index, None, |node, now, out| node.handle_shutdown(now, out));
        let Some(slot) = self.slots.get_mut(index) else { return };
        match &slot.node {
            Some(node) => {
                let (linger, life) = (node.linger(), slot.life);
                self.plan(self.now + linger, SimEvent::Gone { node: index, life });
            }
            // It has nothing to say goodbye to.
            None => slot.details.is_starting = false,
        }
    }
}

impl Slot {
    /// What the node's clock shows at this time of the world.
    pub(super) fn clock(&self, now: Timestamp) -> Timestamp {
        Timestamp::ZERO + now.since(self.started)
    }

    /// When in the world the node's clock shows this.
    pub(super) fn when(&self, clock: Timestamp) -> Timestamp {
        self.started + clock.since(Timestamp::ZERO)
    }
}
