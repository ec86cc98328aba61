//! What every part of the OBU works with: [`Context`].

use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::{Event, Events};
use node_lib::control::load::AirLoad;
use node_lib::control::node::Replies;
use node_lib::control::positions::Positions;
use node_lib::control::radio::Radio;
use node_lib::control::random::Random;
use node_lib::messages::control::probe::Probe;
use node_lib::{Mac, NodeId, Timestamp};

use super::budget::Budget;
use super::timing;
use crate::control::link::floor::SignalFloor;
use crate::control::link::neighbour::Neighbours;
use crate::{Policy, Thresholds};

/// The node's radio, its neighbours, its counts and its randomness. In memory in this order, as
/// [`super::node::Obu`] is: first what every frame heard looks at.
#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) radio: Radio,
    pub(crate) neighbours: Neighbours,
    /// How many of them were heard lately, as of the last second.
    pub(crate) heard_lately: usize,
    /// How often neighbours may be asked.
    pub(crate) questions: Budget,
    /// How full the air is.
    pub(crate) load: AirLoad,
    /// How often clients may be announced.
    pub(crate) announcing: Budget,
    /// OBUs that share the radio with us: those attached to our RSU, or the last one, and to others
    /// about as near.
    pub(crate) obus: u16,
    /// Between two heartbeats of the RSU the node is attached to, or was last.
    pub(crate) interval: Duration,
    /// When an RSU last said so.
    pub(crate) obus_at: Timestamp,
    /// Radio hops to the RSU the node is attached to.
    pub(crate) hops: Option<u8>,
    /// The farthest RSU whose heartbeats we relay for others: hops to it, and its id. `None`: we
    /// relay all.
    pub(crate) last_relayed: Option<(u8, NodeId)>,
    /// The radio can send.
    pub(crate) link_is_up: bool,
    /// The node has said goodbye.
    pub(crate) is_leaving: bool,
    /// Rules followed.
    pub(crate) policy: Policy,
    pub(crate) random: Random,
    /// When the node was started.
    pub(crate) started: Timestamp,
    pub(crate) events: Events,
    /// Upstreams just found not to hear us, until every route has left them.
    pub(crate) silent: Vec<Mac>,
    /// The RSU we were attached to last, and until when.
    pub(crate) last: Option<(NodeId, Timestamp)>,
    /// When a frame last came from our clients or went to them.
    pub(crate) active_at: Option<Timestamp>,
    /// We were late ourselves: until then nobody is declared dead.
    pub(crate) grace_until: Timestamp,
    /// Candidates kept ready beside the upstream.
    pub(crate) cached_candidates: usize,
    /// Heartbeats sent, for [`node_lib::messages::control::heartbeat::Heartbeat::hello`].
    pub(crate) hello: u32,
    /// Hellos over which a link is judged fading.
    pub(crate) hello_history: u32,
    /// How weak a signal may get before its link ends.
    pub(crate) floor: SignalFloor,
    /// When the trend of a link is reason to leave it.
    pub(crate) thresholds: Thresholds,
    /// Where we and our neighbours are.
    pub(crate) positions: Positions,
    pub(crate) counters: Counters,
}

impl Context {
    pub(crate) fn id(&self) -> NodeId {
        self.radio.id
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.counters.events_lost += self.events.push(event);
    }

    /// So many OBUs share the radio with us, as RSUs say. What we hear ourselves may say more.
    pub(crate) fn note_obus(&mut self, now: Timestamp, obus: u16) {
        self.obus_at = now;
        self.share_with(now, obus);
    }

    /// Without heartbeats the crowd fades from memory: by half each second, as fast as after a
    /// restart of its RSU. Else a vehicle that left a jam would have its manners at the next RSU.
    /// Called once a second.
    pub(crate) fn age_obus(&mut self, now: Timestamp) {
        if now.since(self.obus_at) >= OBUS_FRESH_FOR.max(self.interval * 3) {
            self.share_with(now, self.obus / 2);
        }
    }

    /// What is said of so many is shared with them, or with as many as fill the air around us. RSUs
    /// alone do not tell: where there are many of them each has few OBUs.
    pub(crate) fn share_with(&mut self, now: Timestamp, obus: u16) {
        self.obus = obus.max(self.obus_at_least(now)).max(self.load.obus());
        self.questions.share(self.obus);
        self.announcing.share(if self.is_congested() { self.obus } else { 1 });
    }

    /// So many share the radio with us that each must do with its part of it.
    pub(crate) fn is_in_crowd(&self) -> bool {
        self.obus >= timing::CROWD
    }

    /// In a crowd of whom we hear many ourselves: not spread along a road, or over a town. What
    /// clients depend on must do with its part of the radio here as well.
    pub(crate) fn is_congested(&self) -> bool {
        self.is_in_crowd() && self.hears_many()
    }

    /// Counts the neighbours heard lately. Called once a second.
    pub(crate) fn count_neighbours(&mut self, now: Timestamp) {
        let then = now.before(timing::heard_lately(self.interval));
        self.heard_lately = self.neighbours.heard_since(then);
    }

    /// So many neighbours that their frames meet on the radio.
    pub(crate) fn hears_many(&self) -> bool {
        self.heard_lately >= usize::from(timing::CROWD)
    }

    /// Who may ask the same as we in the same moment, and be in our way.
    pub(crate) fn in_earshot(&self) -> u16 {
        self.obus.min(u16::try_from(self.heard_lately).unwrap_or(u16::MAX))
    }

    /// How many OBUs share the radio at least, by what is heard of them, until RSUs know. Zero
    /// unless they are a crowd: fewer do no harm whatever they think.
    pub(crate) fn obus_at_least(&self, now: Timestamp) -> u16 {
        if now >= self.started + timing::COLD_FOR {
            return 0;
        }
        let heard = u16::try_from(self.neighbours.len()).unwrap_or(u16::MAX);
        if heard < timing::CROWD { 0 } else { heard.saturating_mul(timing::OBUS_PER_NEIGHBOUR) }
    }

    /// Our clients have been still for a while.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.active_at.is_none_or(|at| now.since(at) >= timing::IDLE_AFTER)
    }

    /// One of a crowd, whose clients are still: many others may be in its place, and nobody waits
    /// for it.
    pub(crate) fn may_defer(&self, now: Timestamp) -> bool {
        self.is_in_crowd() && self.is_idle(now)
    }

    /// A random time to wait before something many others may have to say as well: where all answer
    /// to what all hear, their frames meet (RFC 5148 §4).
    pub(crate) fn turn_wait(&mut self) -> Duration {
        self.random.up_to(timing::turn(self.obus))
    }

    /// An upstream did not answer. We may well go on hearing it: then the link works one way only,
    /// and nothing it proved before counts any more.
    pub(crate) fn fell_silent(&mut self, mac: Mac) {
        if let Some(neighbour) = self.neighbours.get_mut(mac) {
            neighbour.note_silence();
        }
        self.silent.push(mac);
    }

    /// Asks one neighbour whether it hears us, and for its way to `rsu`. By broadcast, for no radio
    /// repeats that: a question of which seven tries get one through says little of a link, and one
    /// to who is gone takes the air of seven.
    pub(crate) fn probe(&mut self, now: Timestamp, whom: Mac, rsu: NodeId, out: &mut Replies) {
        let nonce = self.random.number();
        // Whoever is not remembered is not known by its id, and cannot be asked.
        let Some(neighbour) = self.neighbours.get_mut(whom) else { return };
        neighbour.note_probe(now, nonce, self.interval);
        let (sender, sender_boot) = (self.radio.id, self.radio.boot);
        let probe = Probe { sender, sender_boot, nonce, rsu, asked: neighbour.id };
        self.radio.control(Mac::BROADCAST, probe, out, &mut self.counters);
    }
}

/// Without a heartbeat for so long, and three intervals, the number of OBUs around is old.
const OBUS_FRESH_FOR: Duration = Duration::from_secs(1);
