//! Where the node is and where its neighbours are, as far as they say: [`Positions`].
//!
//! It decides nothing: no route depends on it. What others say of themselves is believed, as there
//! is nothing to hold it against; it is shown with its age, and forgotten when that is too high.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::control::snapshot::{KnownPosition, span_ms};
use crate::mac::NodeId;
use crate::messages::control::position::{AGE_MAX, Coordinates, Position};
use crate::time::Timestamp;

/// Positions of others kept: as many as an OBU has neighbours. Beyond, the one unheard for longest
/// goes.
const HEARD_MAX: usize = 256;

/// A position is said this often at most: receivers report once a second. In each of ten heartbeats
/// a second it would cost ten times as much of the radio.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Where the node is, as a driver tells it
/// ([`handle_position`](super::node::Node::handle_position)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The place.
    pub at: Coordinates,
    /// The node stays there: this does not age.
    pub is_fixed: bool,
}

/// Where the node is, and where others say that they are.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// Others may know where we are.
    is_shared: bool,
    /// Where we are, and since when that is known.
    own: Option<(Located, Timestamp)>,
    said_at: Option<Timestamp>,
    heard: BTreeMap<NodeId, HeardPosition>,
}

/// Where another says that it was.
#[derive(Clone, Copy, Debug)]
struct HeardPosition {
    position: Position,
    at: Timestamp,
}

impl HeardPosition {
    fn age(&self, now: Timestamp) -> Duration {
        now.since(self.at) + Duration::from_millis(self.position.age_ms.into())
    }
}

impl Positions {
    /// Nothing is known yet. With `is_shared` others are told where we are.
    pub fn new(is_shared: bool) -> Self {
        Self { is_shared, ..Self::default() }
    }

    /// The driver says where we are; `None`: that is not known any more.
    pub fn locate(&mut self, now: Timestamp, located: Option<Located>) {
        self.own = located.map(|located| (located, now));
    }

    fn known(&self, now: Timestamp) -> Option<(Coordinates, Option<Duration>)> {
        let (Located { at, is_fixed }, since) = self.own?;
        let age = (!is_fixed).then(|| now.since(since));
        age.is_none_or(|age| age <= AGE_MAX).then_some((at, age))
    }

    /// What the heartbeat that goes out now says of it: nothing as a rule.
    #[inline]
    pub fn to_say(&mut self, now: Timestamp) -> Option<Position> {
        if !self.is_shared || self.said_at.is_some_and(|at| now.since(at) < SAY_EVERY) {
            return None;
        }
        let (at, age) = self.known(now)?;
        let age_ms = u16::try_from(age.unwrap_or_default().as_millis()).ok()?;
        self.said_at = Some(now);
        Some(Position { at, age_ms })
    }

    /// A node says where it is. One that says nothing this time has not taken back what it said.
    #[inline]
    pub fn hear(&mut self, now: Timestamp, id: NodeId, position: Option<Position>) {
        let Some(position) = position else { return };
        if self.heard.len() >= HEARD_MAX && !self.heard.contains_key(&id) {
            let oldest = self.heard.iter().min_by_key(|(_, heard)| heard.at).map(|(id, _)| *id);
            oldest.and_then(|id| self.heard.remove(&id));
        }
        self.heard.insert(id, HeardPosition { position, at: now });
    }

    /// Lets go of what is too old. Called once a second.
    pub fn tidy(&mut self, now: Timestamp) {
        self.heard.retain(|_, heard| heard.age(now) <= AGE_MAX);
    }

    /// Where we are, if that is known.
    pub fn own(&self, now: Timestamp) -> Option<KnownPosition> {
        self.known(now).map(|(at, age)| KnownPosition::new(at, age.map(span_ms)))
    }

    /// Where this node is, if it says so and that is not too old.
    pub fn of(&self, now: Timestamp, id: NodeId) -> Option<KnownPosition> {
        let heard = self.heard.get(&id)?;
        let age = Some(heard.age(now)).filter(|age| *age <= AGE_MAX)?;
        Some(KnownPosition::new(heard.position.at, Some(span_ms(age))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn place(latitude: f64) -> Coordinates {
        Coordinates::new(latitude, 11.5, Some(2.5)).unwrap()
    }

    fn node(n: usize) -> NodeId {
        NodeId([2, 0, 0, 0, (n >> 8) as u8, n as u8])
    }

    fn moving(latitude: f64) -> Option<Located> {
        Some(Located { at: place(latitude), is_fixed: false })
    }

    /// Heartbeats of ten seconds, ten a second, that say something: when, and how old it was.
    fn said(positions: &mut Positions) -> Vec<(u64, u16)> {
        let beats = (0..10_000).step_by(100);
        beats.filter_map(|ms| Some((ms, positions.to_say(at(ms))?.age_ms))).collect()
    }

    #[test]
    fn nothing_is_said_that_was_not_asked_for() {
        let mut positions = Positions::new(false);
        positions.locate(at(0), Some(Located { at: place(48.0), is_fixed: true }));
        assert_eq!(said(&mut positions), []);
        assert_eq!(positions.own(at(0)).map(|place| place.latitude_deg), Some(48.0));
        assert_eq!(said(&mut Positions::new(true)), [], "and nothing that is not known");
    }

    #[test]
    fn a_position_is_said_once_a_second_with_its_age_and_no_longer_than_it_is_known() {
        let mut positions = Positions::new(true);
        positions.locate(at(0), moving(48.0));
        let expected = [(0, 0), (1000, 1000), (2000, 2000), (3000, 3000), (4000, 4000)];
        assert_eq!(said(&mut positions)[..5], expected);
        let mut positions = Positions::new(true);
        positions.locate(at(0), moving(48.0));
        assert_eq!(said(&mut positions).last(), Some(&(5000, 5000)));
        assert_eq!(positions.own(at(5001)), None);
        positions.locate(at(6000), moving(49.0));
        assert_eq!(positions.to_say(at(6010)).map(|said| said.age_ms), Some(10));
        positions.locate(at(7500), None);
        assert_eq!(positions.to_say(at(7600)), None, "it has lost its fix");
    }

    #[test]
    fn a_fixed_position_is_always_new() {
        let mut positions = Positions::new(true);
        positions.locate(at(0), Some(Located { at: place(48.0), is_fixed: true }));
        assert_eq!(said(&mut positions).last(), Some(&(9000, 0)));
        let own = positions.own(at(1 << 40)).unwrap();
        assert_eq!((own.age_ms, own.accuracy_m), (None, Some(2.5)));
    }

    #[test]
    fn what_others_say_is_as_old_as_they_say_and_older_by_the_time_here() {
        let mut positions = Positions::default();
        positions.hear(at(10), node(1), Some(Position { at: place(1.0), age_ms: 700 }));
        // A heartbeat without a position takes nothing back.
        positions.hear(at(60), node(1), None);
        let age = |positions: &Positions, ms| positions.of(at(ms), node(1)).map(|p| p.age_ms);
        assert_eq!(age(&positions, 10), Some(Some(700)), "on a clock that shows less");
        assert_eq!(age(&positions, 4310), Some(Some(5000)));
        assert_eq!(age(&positions, 4311), None);
        assert_eq!(positions.of(at(10), node(2)), None);
        positions.tidy(at(4310));
        assert_eq!(positions.heard.len(), 1);
        positions.tidy(at(4311));
        assert_eq!(positions.heard.len(), 0);
    }

    #[test]
    fn those_heard_last_are_kept() {
        let mut positions = Positions::default();
        let mut say = |ms, n| {
            positions.hear(at(ms), node(n), Some(Position { at: place(1.0), age_ms: 0 }));
        };
        for n in 0..HEARD_MAX {
            say(n as u64, n);
        }
        say(1000, 0);
        say(1001, 7000);
        assert_eq!(positions.heard.len(), HEARD_MAX);
        for (n, is_known) in [(0, true), (1, false), (2, true), (7000, true)] {
            assert_eq!(positions.of(at(1001), node(n)).is_some(), is_known, "{n}");
        }
    }
}
