//! One node at the channel: its queues, its countdown and what it hears, [`Station`].

use std::collections::VecDeque;
use std::sync::Arc;

use super::BACKOFF;
use super::lock::Lock;
use crate::dice::{Luck, subseed};
use crate::frame::Flight;
use crate::radio::access::CATEGORIES;
use crate::radio::airtime::{CCA_TIME, SLOT};
use node_lib::time::Timestamp;

#[derive(Clone, Debug, Default)]
pub(super) struct Station {
    /// By category: frames and when they were handed over.
    pub(super) queues: [VecDeque<(Timestamp, Arc<Flight>)>; CATEGORIES],
    pub(super) heads: [Option<Head>; CATEGORIES],
    /// Its node was told that the queue is full.
    pub(super) is_waited_for: [bool; CATEGORIES],
    /// The category whose head counts down or is on air.
    pub(super) active: usize,
    pub(super) phase: Phase,
    /// When its countdown is next looked at: not later than it ends. Most countdowns are stopped
    /// and end later, which costs nothing this way.
    pub(super) looked_at: Option<Timestamp>,
    /// Tells a wait for an acknowledgement from those before it.
    pub(super) turn: u32,
    /// Transmits, be it an acknowledgement.
    pub(super) is_sending: bool,
    /// Everything that arrives, in attowatts.
    pub(super) energy: u64,
    pub(super) lock: Option<Lock>,
    /// In the future while an acknowledgement is expected, and kept free for it.
    pub(super) idle_since: Timestamp,
    /// By the duration field of the last frame received (NAV).
    pub(super) reserved_until: Timestamp,
    /// Because the last frame could not be read, and may be acknowledged (EIFS, up to DIFS).
    pub(super) unsure_until: Timestamp,
    pub(super) busy_since: Timestamp,
    /// For how many per cent of the last second its channel was busy.
    pub(super) busy_percent: u8,
    /// The countdown after the last frame ends.
    pub(super) not_before: Timestamp,
    /// Transmissions and random numbers so far.
    pub(super) sent: u64,
    pub(super) drawn: u64,
    pub(super) dropped: u64,
}

/// The frame of a category that is next.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) flight: Arc<Flight>,
    pub(super) since: Timestamp,
    pub(super) slots: u32,
    pub(super) window: u16,
    pub(super) tries: u8,
    pub(super) was_heard: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing to send, or the channel is busy.
    #[default]
    Idle,
    /// Slots are counted from `start`; at `end` it sends.
    Waiting { start: Timestamp, end: Timestamp },
    /// Its frame is on air.
    Sending,
    /// For an acknowledgement.
    Awaiting,
}

impl Station {
    pub(super) fn is_busy(&self, threshold: u64) -> bool {
        self.is_sending || self.lock.is_some() || self.energy >= threshold
    }

    pub(super) fn active_head(&mut self) -> Option<&mut Head> {
        self.heads.get_mut(self.active)?.as_mut()
    }

    /// Keeps the slots not yet counted. Who would send before it can have noticed goes on and
    /// sends.
    pub(super) fn stop_counting(&mut self, now: Timestamp) {
        let Phase::Waiting { start, end } = self.phase else { return };
        if end <= now + CCA_TIME {
            return;
        }
        let counted = now.since(start).as_micros() / SLOT.as_micros();
        if let Some(head) = self.active_head() {
            head.slots = head.slots.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
        }
        self.phase = Phase::Idle;
    }

    /// Slots to wait, evenly from 0 to `window`.
    pub(super) fn draw(&mut self, seed: u64, node: usize, window: u16) -> u32 {
        self.drawn += 1;
        let mut luck = Luck::new(subseed(seed, BACKOFF), node, node, self.drawn);
        luck.below(u32::from(window) + 1)
    }
}
