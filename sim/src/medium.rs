//! What carries frames between nodes that have places: [`Medium`], the seam for radios of your own.
//!
//! [`RadioModel`](crate::RadioModel) is one. [`Reach`](crate::Reach) makes one of a function from
//! two places to a probability. [`World::set_medium`](crate::World::set_medium) takes any other:
//!
//! ```
//! use std::collections::VecDeque;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use sim::{Air, Flight, Medium, NodeIndex, Location, Role, Step, World};
//! use node_lib::{Mac, Timestamp};
//! use obu_lib::Obu;
//! use rsu_lib::Rsu;
//!
//! /// Whoever is within a hundred metres hears everything, a millisecond later.
//! #[derive(Default)]
//! struct Lanterns {
//!     places: Vec<Option<Location>>,
//!     under_way: VecDeque<Arc<Flight>>,
//! }
//!
//! impl Medium for Lanterns {
//!     fn look(&mut self, places: &[Option<Location>]) {
//!         self.places = places.to_vec();
//!     }
//!
//!     fn send(&mut self, frame: Arc<Flight>, air: &mut Air<'_>) {
//!         // All take the same time, so the frame that is due is always the oldest.
//!         self.under_way.push_back(frame);
//!         air.plan(air.now() + Duration::from_millis(1), Step(0));
//!     }
//!
//!     fn step(&mut self, _: Step, air: &mut Air<'_>) {
//!         let Some(frame) = self.under_way.pop_front() else { return };
//!         let mut has_arrived = false;
//!         self.hearers(frame.from(), &mut |node| {
//!             has_arrived |= air.hear(&frame, node, None) && air.addressee(&frame) == Some(node);
//!         });
//!         if !has_arrived {
//!             air.undelivered(&frame);
//!         }
//!     }
//!
//!     fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64 {
//!         let place = |node: NodeIndex| self.places.get(node.0).copied().flatten();
//!         match (place(from), place(to)) {
//!             (Some(here), Some(there)) if here.distance_m(there) <= 100.0 => 1.0,
//!             _ => 0.0,
//!         }
//!     }
//!
//!     fn hearers(&self, from: NodeIndex, take: &mut dyn FnMut(NodeIndex)) {
//!         let all = (0..self.places.len()).map(NodeIndex).filter(|&to| to != from);
//!         all.filter(|&to| self.delivery(from, to) > 0.0).for_each(take);
//!     }
//! }
//!
//! let radio = |n| Mac([2, 0, 0, 0, 0, n]);
//! let mut world = World::new(7);
//! world.set_medium(Box::new(Lanterns::default()));
//! let rsu = world.add_node(Role::Rsu, radio(1), Box::new(|start, now| {
//!     Box::new(Rsu::new(rsu_lib::Settings::default().config(start), now))
//! }));
//! let mut obus = [2, 3].map(|n| world.add_node(Role::Obu, radio(n), Box::new(|start, now| {
//!     Box::new(Obu::new(obu_lib::Settings::default().config(start), now))
//! })));
//! for (node, x_m) in [(rsu, 0.0), (obus[0], 90.0), (obus[1], 180.0)] {
//!     world.place(node, Location::new(x_m, 0.0));
//! }
//! world.run_until(Timestamp::from_millis(5000))?;
//! assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), Some(2)]);
//! assert!(world.attachment(obus[1]).is_some(), "over two hops");
//! # Ok::<(), Box<sim::Violation>>(())
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::frame::Flight;
use crate::index::NodeIndex;
use crate::mobility::Location;
use crate::radio::{AirtimeSecond, LOOK_EVERY, Strength};
pub use crate::world::Air;
use node_lib::time::Timestamp;

/// What carries frames between nodes that have places. See the [module](self) for a whole one.
///
/// It is told where nodes are and what they send, and says through [`Air`] who hears it, and when
/// it wants to be called again. Nothing else happens in between: it needs no clock and no thread.
/// For the same calls it must do the same, or the same seed gives another run; for randomness there
/// is [`Dice`](crate::Dice), from the world's seed.
pub trait Medium: Send {
    /// Where everybody is, by node; who is nowhere hears and sends nothing. Called before anything
    /// else, and again when somebody came, went, was placed, or has moved.
    fn look(&mut self, places: &[Option<Location>]);

    /// How often it is looked whether somebody has moved; at most a thousand times a second.
    fn look_every(&self) -> Duration {
        LOOK_EVERY
    }

    /// Is there room for one more frame of a node, of this user priority? A node that was told
    /// there is none keeps its frames until [`Air::room`] says there is.
    fn has_room(&mut self, _node: NodeIndex, _priority: u8) -> bool {
        true
    }

    /// A node sends this; it has been asked for room before. Who hears it at once does so when that
    /// node is done.
    fn send(&mut self, frame: Arc<Flight>, air: &mut Air<'_>);

    /// The time has come that [`Air::plan`] was given with this step.
    fn step(&mut self, step: Step, air: &mut Air<'_>);

    /// A node is off: what it still wanted to send is forgotten.
    fn silence(&mut self, _node: NodeIndex, _air: &mut Air<'_>) {}

    /// Frames of a node that waited in its radio for too long and were never sent.
    fn dropped(&self, _node: NodeIndex) -> u64 {
        0
    }

    /// Probability that a frame from the one reaches the other when nobody disturbs it, from where
    /// they were at the last look. Faults are seen to elsewhere.
    fn delivery(&self, from: NodeIndex, to: NodeIndex) -> f64;

    /// How strong frames come in then, where that is known.
    fn strength(&self, _from: NodeIndex, _to: NodeIndex) -> Option<Strength> {
        None
    }

    /// Hands over everybody whom frames of this node may reach, in the order of nodes.
    fn hearers(&self, from: NodeIndex, take: &mut dyn FnMut(NodeIndex));

    /// How full the channel was in the second that ends now, over these receivers. By default
    /// nothing is known of that.
    fn take_second(
        &mut self,
        _now: Timestamp,
        _is_receiver: &dyn Fn(NodeIndex) -> bool,
    ) -> AirtimeSecond {
        AirtimeSecond::default()
    }

    /// For how many per cent of the last second that was taken the channel was busy at this node,
    /// where a radio can tell.
    fn busy_percent(&self, _node: NodeIndex) -> Option<u8> {
        None
    }
}

/// Something a medium will do: a number it makes and understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step(pub u64);
