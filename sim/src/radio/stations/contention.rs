//! Whose turn it is: queues, countdowns and repeats of every station.

use std::collections::VecDeque;
use std::sync::Arc;

use super::air::Transmission;
use super::event::StationStep;
use super::station::{Head, Phase, Station};
use super::{GivenUp, Scene, Stations, use_of};
use crate::frame::Flight;
use crate::radio::access::{CATEGORIES, Category};
use crate::radio::airtime::{SIFS, SLOT};
use node_lib::time::Timestamp;

impl Stations {
    /// Is there room for a frame of this user priority? If not, the node is among
    /// [`Stations::roomy`] as soon as half of the queue is empty: the socket of a kernel is
    /// writable again then (`sock_writeable`, include/net/sock.h).
    pub(crate) fn has_room(&mut self, node: usize, priority: u8) -> bool {
        let category = Category::place_of(priority);
        let Some(station) = self.stations.get_mut(node) else { return true };
        let len = station.queues.get(category).map_or(0, VecDeque::len);
        let has_room = len < self.csma.queue_len_max;
        if !has_room && let Some(is_waited_for) = station.is_waited_for.get_mut(category) {
            *is_waited_for = true;
        }
        has_room
    }

    /// A node wants this sent, and there is room for it.
    pub(crate) fn push(&mut self, now: Timestamp, node: usize, flight: Arc<Flight>) {
        let category = Category::place_of(flight.priority);
        let Some(station) = self.stations.get_mut(node) else { return };
        let Some(queue) = station.queues.get_mut(category) else { return };
        queue.push_back((now, flight));
        self.load(now, node, category);
        // A better category goes before what waits already.
        if let Some(station) = self.stations.get_mut(node)
            && category < station.active
        {
            station.stop_counting(now);
        }
        self.consider(now, node);
    }

    /// A node went silent: what it wanted to send is forgotten.
    pub(crate) fn silence(&mut self, node: usize) {
        if let Some(station) = self.stations.get_mut(node) {
            station.queues = Default::default();
            station.heads = Default::default();
            station.phase = Phase::Idle;
            // Nobody looks while it is off.
            station.looked_at = None;
            station.turn += 1;
            if std::mem::take(&mut station.is_waited_for) != [false; CATEGORIES] {
                self.roomy.push(node);
            }
        }
    }

    /// A countdown may have ended: the frame goes on air.
    pub(crate) fn contend(&mut self, now: Timestamp, node: usize, scene: Scene<'_>) {
        let Some(station) = self.stations.get_mut(node) else { return };
        if station.looked_at == Some(now) {
            station.looked_at = None;
        }
        let Phase::Waiting { end, .. } = station.phase else { return };
        if end > now {
            return self.look_at(node, end);
        }
        let Some(Some(head)) = station.heads.get_mut(station.active) else { return };
        head.slots = 0;
        if station.is_sending {
            // An acknowledgement began within the last microseconds; it goes on afterwards.
            station.phase = Phase::Idle;
            return;
        }
        let flight = Arc::clone(&head.flight);
        station.phase = Phase::Sending;
        self.transmit(now, node, Transmission::Frame(flight), scene);
    }

    /// The addressee has the frame its sender is waiting to see acknowledged.
    pub(crate) fn received(&mut self, now: Timestamp, flight: &Flight, by: usize) {
        if let Some(head) = self.stations.get_mut(flight.from).and_then(Station::active_head) {
            head.was_heard = true;
        }
        let step = StationStep::Acknowledge { from: by, to: flight.from, kind: use_of(flight) };
        self.plans.push((now + SIFS, step));
    }

    pub(super) fn acknowledged(&mut self, now: Timestamp, node: usize) {
        if let Some(station) = self.stations.get_mut(node)
            && station.phase == Phase::Awaiting
        {
            station.turn += 1;
            self.done(now, node);
            self.consider(now, node);
        }
    }

    /// No acknowledgement came: once more, or the frame is returned.
    pub(crate) fn give_up(&mut self, now: Timestamp, node: usize, turn: u32) -> Option<GivenUp> {
        let retries = self.csma.retries;
        let station = self.stations.get_mut(node)?;
        if station.turn != turn || station.phase != Phase::Awaiting {
            return None;
        }
        let category = self.csma.category(station.active);
        let head = station.active_head()?;
        if head.tries >= retries {
            let given_up = GivenUp { flight: Arc::clone(&head.flight), was_heard: head.was_heard };
            self.done(now, node);
            self.consider(now, node);
            return Some(given_up);
        }
        head.tries += 1;
        head.window = head.window.saturating_mul(2).saturating_add(1).min(category.cw_max);
        let window = head.window;
        let slots = station.draw(self.seed, node, window);
        if let Some(head) = station.active_head() {
            head.slots = slots;
        }
        station.phase = Phase::Idle;
        self.consider(now, node);
        None
    }

    /// The frame of the active category is dealt with.
    pub(super) fn done(&mut self, now: Timestamp, node: usize) {
        let Some(station) = self.stations.get_mut(node) else { return };
        let (active, category) = (station.active, self.csma.category(station.active));
        if let Some(head) = station.heads.get_mut(active) {
            *head = None;
        }
        station.phase = Phase::Idle;
        let slots = station.draw(self.seed, node, category.cw_min);
        station.not_before = now + category.aifs() + SLOT * slots;
        self.load(now, node, active);
    }

    /// Takes the next frame of a category, and its luck.
    fn load(&mut self, now: Timestamp, node: usize, index: usize) {
        let category = self.csma.category(index);
        let busy = self.limits.busy;
        let Some(station) = self.stations.get_mut(node) else { return };
        if !matches!(station.heads.get(index), Some(None)) {
            return;
        }
        let Some(queue) = station.queues.get_mut(index) else { return };
        let Some((since, flight)) = queue.pop_front() else { return };
        if let Some(is_waited_for) = station.is_waited_for.get_mut(index)
            && *is_waited_for
            && queue.len() <= self.csma.queue_len_max / 2
        {
            *is_waited_for = false;
            self.roomy.push(node);
        }
        let is_free = !station.is_busy(busy)
            && now >= station.idle_since + category.aifs()
            && now >= station.not_before;
        let window = category.cw_min;
        let slots = if is_free { 0 } else { station.draw(self.seed, node, window) };
        if let Some(head) = station.heads.get_mut(index) {
            *head = Some(Head { flight, since, slots, window, tries: 0, was_heard: false });
        }
    }

    /// Drops what has waited for too long.
    fn expire(&mut self, now: Timestamp, node: usize) {
        for index in 0..CATEGORIES {
            loop {
                let Some(station) = self.stations.get_mut(node) else { return };
                let Some(head) = station.heads.get_mut(index) else { return };
                let is_over = |head: &mut Head| now.since(head.since) > self.csma.lifetime;
                let Some(head) = head.take_if(is_over) else { break };
                if !head.was_heard {
                    station.dropped += 1;
                    self.expired.push(head.flight);
                }
                self.load(now, node, index);
            }
        }
    }

    /// Begins to count down if there is something to send and the channel is idle.
    pub(super) fn consider(&mut self, now: Timestamp, node: usize) {
        let busy = self.limits.busy;
        let may_count = |station: &Station| station.phase == Phase::Idle && !station.is_busy(busy);
        if !self.stations.get(node).is_some_and(may_count) {
            return;
        }
        self.expire(now, node);
        let Some(station) = self.stations.get_mut(node) else { return };
        let Some(active) = station.heads.iter().position(Option::is_some) else { return };
        station.active = active;
        let aifs = self.csma.category(active).aifs();
        let Some(slots) = station.active_head().map(|head| head.slots) else { return };
        let start = now.max(station.idle_since + aifs);
        let end = start + SLOT * slots;
        station.phase = Phase::Waiting { start, end };
        self.look_at(node, end);
    }

    fn look_at(&mut self, node: usize, end: Timestamp) {
        let Some(station) = self.stations.get_mut(node) else { return };
        if station.looked_at.is_none_or(|planned| end < planned) {
            station.looked_at = Some(end);
            self.plans.push((end, StationStep::Contend { node }));
        }
    }
}
