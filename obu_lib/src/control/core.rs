//! What every part of the OBU works with: [`Core`].

use node_lib::control::counters::Counters;
use node_lib::control::event::{Event, Events};
use node_lib::control::neighbour::Neighbours;
use node_lib::control::node::Replies;
use node_lib::control::radio::Radio;
use node_lib::control::random::Random;
use node_lib::control::token_bucket::TokenBucket;
use node_lib::messages::control::probe::Probe;
use node_lib::{Mac, NodeId, Timestamp};

use crate::{Policy, Thresholds};

/// The node's radio, its neighbours, its counts and its randomness.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) radio: Radio,
    pub(crate) neighbours: Neighbours,
    pub(crate) random: Random,
    pub(crate) counters: Counters,
    pub(crate) events: Events,
    /// When the node was started.
    pub(crate) started: Timestamp,
    /// The radio can send.
    pub(crate) link_is_up: bool,
    /// Radio hops to the RSU the node is attached to.
    pub(crate) hops: Option<u8>,
    /// The node has said goodbye.
    pub(crate) is_leaving: bool,
    /// We were late ourselves: until then nobody is declared dead.
    pub(crate) grace_until: Timestamp,
    /// Heartbeats sent, for [`node_lib::messages::control::heartbeat::Heartbeat::hello`].
    pub(crate) hello: u32,
    /// Limits questions to candidates while there is no way: anybody may pretend to be one.
    pub(crate) searches: TokenBucket,
    /// Upstreams just found not to hear us, until every route has left them.
    pub(crate) silent: Vec<Mac>,
    /// Candidates kept ready beside the upstream.
    pub(crate) cached_candidates: usize,
    /// Hellos over which a link is judged fading.
    pub(crate) hello_history: u32,
    /// Rules followed.
    pub(crate) policy: Policy,
    /// When the trend of a link is reason to leave it.
    pub(crate) thresholds: Thresholds,
}

impl Core {
    pub(crate) fn id(&self) -> NodeId {
        self.radio.id
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.counters.events_lost += self.events.push(event);
    }

    /// An upstream did not answer. We may well go on hearing it: then the link works one way only, and
    /// nothing it proved before counts any more.
    pub(crate) fn fell_silent(&mut self, mac: Mac) {
        if let Some(neighbour) = self.neighbours.get_mut(mac) {
            neighbour.note_silence();
        }
        self.silent.push(mac);
    }

    /// Asks one neighbour whether it hears us, and for its way to `rsu`.
    pub(crate) fn probe(&mut self, now: Timestamp, to: Mac, rsu: NodeId, out: &mut Replies) {
        let nonce = self.random.number();
        if let Some(neighbour) = self.neighbours.get_mut(to) {
            neighbour.note_probe(now, nonce);
        }
        let probe = Probe { sender: self.radio.id, sender_boot: self.radio.boot, nonce, rsu };
        self.radio.control(to, probe, out, &mut self.counters);
    }
}
