//! A radio of one's own in one line: [`Reach`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dice::Luck;
use crate::frame::Flight;
use crate::index::NodeIndex;
use crate::medium::{Air, Medium, Step};
use crate::mobility::Location;
use node_lib::time::Timestamp;

/// A [`Medium`] that is told by a function how likely a frame gets from one place to another. Every
/// frame takes the same time, and none disturbs another: there is no airtime and no repetition.
///
/// ```
/// use std::time::Duration;
/// use sim::{Location, Reach, World};
///
/// let mut world = World::new(7);
/// let hears = |from: Location, to: Location| match from.distance_m(to) {
///     ..=100.0 => 0.99,
///     _ => 0.0,
/// };
/// world.set_medium(Box::new(Reach::new(world.seed(), Duration::from_millis(1), hears)));
/// ```
///
/// `cargo run -p sim --example own_radio` is a whole simulation with one.
pub struct Reach<F> {
    seed: u64,
    delay: Duration,
    delivery: F,
    places: Vec<Option<Location>>,
    /// In order of arrival, as all take the same time.
    under_way: VecDeque<(Timestamp, Arc<Flight>)>,
    sent: u64,
}

impl<F: Fn(Location, Location) -> f64 + Send> Reach<F> {
    /// A frame takes `delay` (a microsecond at least), and arrives with the probability that
    /// `delivery` gives for where its sender and a receiver are. Luck comes from `seed`.
    pub fn new(seed: u64, delay: Duration, delivery: F) -> Self {
        let (places, under_way) = (Vec::new(), VecDeque::new());
        let delay = delay.max(Duration::from_micros(1));
        Self { seed, delay, delivery, places, under_way, sent: 0 }
    }
}

impl<F> fmt::Debug for Reach<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("delay", &self.delay).finish_non_exhaustive()
    }
}

impl<F: Fn(Location, Location) -> f64 + Send> Medium for Reach<F> {
    fn look(&mut self, places: &[Option<Location>]) {
        places.clone_into(&mut self.places);
    }

    fn send(&mut self, frame: Arc<Flight>, air: &mut Air<'_>) {
        let at = air.now() + self.delay;
        self.under_way.push_back((at, frame));
        air.plan(at, Step(0));
    }

    fn step(&mut self, _: Step, air: &mut Air<'_>) {
        let Some((_, frame)) = self.under_way.pop_front() else { return };
        self.sent += 1;
        let addressee = air.addressee(&frame);
        let mut has_arrived = false;
        self.hearers(frame.from(), &mut |node| {
            let probability = self.delivery(frame.from(), node);
            if Luck::new(self.seed, frame.from().0, node.0, self.sent).chance(probability) {
                has_arrived |= air.hear(&frame, node, None) && addressee == Some(node);
            } else {
                air.lost(&frame, node);
            }
        });
        if !has_arrived {
            air.undelivered(&frame);
            air.unacknowledged(&frame);
        }
    }

    fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64 {
        let place = |node: NodeIndex| self.places.get(node.0).copied().flatten();
        match (place(from), place(to)) {
            (Some(here), Some(there)) => (self.delivery)(here, there),
            _ => 0.0,
        }
    }

    fn hearers(&self, from: NodeIndex, take: &mut dyn FnMut(NodeIndex)) {
        let others = (0..self.places.len()).map(NodeIndex).filter(|&to| to != from);
        others.filter(|&to| self.delivery(from, to) > 0.0).for_each(take);
    }
}
