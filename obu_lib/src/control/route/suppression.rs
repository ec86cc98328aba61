//! Who speaks in a crowd: [`Suppression`].
//!
//! Were every OBU in a jam to relay every heartbeat, the radio would be full of them, and all but a
//! few would tell nobody anything new. So each OBU counts how many others relay a heartbeat from at
//! most one hop further away than itself, and takes part in a lottery. With too few speakers some
//! of the silent ones start, with too many some of those that speak fall silent. It is the
//! counter-based scheme of Ni et al. (MobiCom 1999, §3.2) with two changes. The choice is kept from
//! one heartbeat to the next, because a neighbour counts as a candidate only while it speaks
//! regularly. And whoever is needed always speaks: others route through it.

use node_lib::Order;
use node_lib::control::random::Random;

/// How many shall speak: with fewer in earshot some of the silent ones start to, with more some of
/// those that speak fall silent. Between the two nothing changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speakers {
    least: u32,
    most: u32,
}

impl Speakers {
    /// Of the RSU we are attached to: three candidates for everybody.
    pub(super) const OURS: Self = Self { least: 3, most: 5 };

    /// Of another: enough to know that it is there.
    pub(super) const OTHER: Self = Self { least: 1, most: 2 };
}

/// Of those that could, one in four starts to speak at a time when nobody does, in proportion fewer
/// when some do: all at once would be the crowd again.
const START_ONE_IN: u32 = 4;

/// At most one in two falls silent at a time.
const STOP_ONE_IN: u32 = 2;

/// Fixed point of [`Suppression::average`].
const UNIT: u32 = 16;

/// Whether we relay the heartbeats of one RSU.
#[derive(Clone, Debug)]
pub(super) struct Suppression {
    /// The heartbeat being counted, and its relays heard so far.
    order: Order,
    heard: u32,
    /// Relays per heartbeat, in 1/16: `a ← a + (heard − a)/4`.
    average: u32,
    is_speaker: bool,
}

impl Suppression {
    /// Nobody heard yet: who comes new speaks until it knows better.
    pub(super) fn new() -> Self {
        Self { order: Order::default(), heard: 0, average: 0, is_speaker: true }
    }

    /// A neighbour relayed this heartbeat from at most one hop further away than we are.
    pub(super) fn hear_relay(&mut self, order: Order) {
        self.turn_to(order);
        if order == self.order {
            self.heard += 1;
        }
    }

    /// A newer heartbeat: the count of the last one is complete.
    fn turn_to(&mut self, order: Order) {
        if order > self.order {
            if self.order != Order::default() {
                self.average = (self.average * 3 + self.heard * UNIT) / 4;
            }
            self.order = order;
            self.heard = 0;
        }
    }

    /// There is a way again where there was none: somebody behind us may wait for it.
    pub(super) fn speak_up(&mut self) {
        self.is_speaker = true;
    }

    /// Whether to relay this heartbeat. `is_needed`: others route through us.
    pub(super) fn speaks(
        &mut self,
        order: Order,
        is_needed: bool,
        speakers: Speakers,
        random: &mut Random,
    ) -> bool {
        self.turn_to(order);
        let (least, most) = (speakers.least * UNIT, speakers.most * UNIT);
        if is_needed {
            self.is_speaker = true;
        } else if self.is_speaker {
            let surplus = self.average.saturating_sub(most);
            self.is_speaker = random.below(self.average * STOP_ONE_IN) >= surplus;
        } else {
            let missing = least.saturating_sub(self.average);
            self.is_speaker = random.below(least * START_ONE_IN) < missing;
        }
        self.is_speaker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell in which everybody hears everybody: speakers after each heartbeat.
    fn cell(nodes: usize, beats: u32, needed: usize) -> Vec<usize> {
        let mut random = Random::new(nodes as u64);
        let mut crowd = vec![Suppression::new(); nodes];
        let mut counts = Vec::new();
        for beat in 1..=beats {
            let order = Order::new(1, beat);
            let speakers: Vec<usize> = (0..nodes)
                .filter(|n| crowd[*n].speaks(order, *n < needed, Speakers::OURS, &mut random))
                .collect();
            for speaker in &speakers {
                for (n, node) in crowd.iter_mut().enumerate() {
                    if n != *speaker {
                        node.hear_relay(order);
                    }
                }
            }
            counts.push(speakers.len());
        }
        counts
    }

    #[test]
    fn in_a_crowd_few_speak_and_never_too_few_for_long() {
        for nodes in [20, 80, 250] {
            let counts = cell(nodes, 300, 0);
            let settled = &counts[50..];
            let sum: usize = settled.iter().sum();
            let mean = sum as f64 / settled.len() as f64;
            assert!((4.0..10.0).contains(&mean), "{nodes} nodes: {mean} speak");
            let poor = settled.iter().filter(|count| **count < 3).count();
            assert!(poor * 50 < settled.len(), "{nodes} nodes: fewer than 3 speak {poor} times");
        }
    }

    #[test]
    fn where_few_are_all_speak() {
        assert!(cell(5, 100, 0).iter().all(|count| *count == 5));
    }

    #[test]
    fn who_is_needed_always_speaks() {
        let counts = cell(60, 200, 20);
        assert!(counts[50..].iter().all(|count| *count >= 20));
        assert!(counts[100..].iter().all(|count| *count <= 21), "{counts:?}");
    }

    #[test]
    fn who_has_a_way_again_speaks_and_falls_silent_only_in_a_crowd() {
        let mut random = Random::new(3);
        let mut crowd = Suppression::new();
        crowd.is_speaker = false;
        crowd.average = 4 * UNIT;
        let speaks = |crowd: &mut Suppression, random: &mut Random| {
            crowd.speaks(Order::default(), false, Speakers::OURS, random)
        };
        assert!(!speaks(&mut crowd, &mut random));
        crowd.speak_up();
        assert!((0..100).all(|_| speaks(&mut crowd, &mut random)));
        crowd.average = 20 * UNIT;
        assert!(!(0..100).all(|_| speaks(&mut crowd, &mut random)));
    }
}
