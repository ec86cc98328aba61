//! A node of a test's own: [`Puppet`] says what it does, and all else a node must do is done here.

use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::{Mac, NodeId, Timestamp};
use sim::Guest;

/// What a test wants of a node. Without more than its address it listens to nobody and says
/// nothing.
pub(crate) trait Puppet {
    /// Its radio, and so its id.
    fn mac(&self) -> Mac;

    /// A frame came off the radio.
    fn hear(&mut self, _now: Timestamp, _frame: &[u8], _out: &mut Replies) {}

    /// What it hears comes in this strong, in dBm.
    fn feel(&mut self, _dbm: i8) {}

    /// The radio gave this frame up.
    fn miss(&mut self, _frame: &[u8], _out: &mut Replies) {}

    /// A frame came out of the TAP.
    fn read(&mut self, _frame: &[u8], _out: &mut Replies) {}

    /// When it next does something by itself.
    fn next(&self) -> Option<Timestamp> {
        None
    }

    /// That time has come.
    fn act(&mut self, _now: Timestamp, _out: &mut Replies) {}
}

/// A node that does what this one says.
pub(crate) fn node(puppet: impl Puppet + Send + 'static) -> Box<dyn Guest> {
    Box::new(OnStrings { puppet, counters: Counters::default() })
}

struct OnStrings<P> {
    puppet: P,
    counters: Counters,
}

impl<P: Puppet> Node for OnStrings<P> {
    fn id(&self) -> NodeId {
        self.puppet.mac().into()
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.puppet.hear(now, frame, out);
    }

    fn handle_signal(&mut self, _: Timestamp, _: Mac, dbm: i8) {
        self.puppet.feel(dbm);
    }

    fn handle_unacknowledged(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.puppet.miss(frame, out);
    }

    fn handle_tap(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.puppet.read(frame, out);
    }

    fn handle_link(&mut self, _: Timestamp, _: LinkEvent, _: &mut Replies) {}

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.puppet.act(now, out);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.puppet.next()
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
