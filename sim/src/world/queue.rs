//! What happens next, and in which order.

use std::sync::Arc;

use node_lib::order::Boot;
use node_lib::time::Timestamp;

use crate::fault::Fault;
use crate::frame::Flight;
use crate::medium::Step;

pub(super) enum SimEvent {
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
pub(super) struct Entry {
    pub(super) time: Timestamp,
    pub(super) serial: u64,
    pub(super) what: SimEvent,
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
