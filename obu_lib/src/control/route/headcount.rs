//! How many OBUs share an RSU: [`Headcount`].

use node_lib::Order;
use node_lib::messages::OBUS_MAX;

use super::super::timing;

/// What the heartbeats of one RSU say about how many OBUs are attached to it, and what of that is
/// believed.
///
/// * Of the copies of one heartbeat the highest number counts. A relay that has only been answered
///   about the RSU so far guesses, and a guess that is too low must not make a crowd forget that it
///   is one.
/// * Believed is the median of what the last two heartbeats said and what was believed before. So a
///   number that is forged, or damaged, moves nothing, unless two heartbeats in a row say it; and
///   then it is gone two heartbeats later.
/// * An RSU that starts again knows nobody at first, and those it had are no smaller a crowd for
///   that. So when it counts anew, what is believed falls by a sixteenth per heartbeat at most,
///   from what has lasted: that rises by a sixteenth per heartbeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headcount {
    /// The heartbeat being counted, and the highest number in its copies.
    order: Option<Order>,
    said: u16,
    /// What the heartbeat before said.
    said_before: u16,
    /// What was believed before this heartbeat, and is now.
    before: u16,
    count: u16,
    /// What of that has lasted.
    lasting: u16,
    /// Not fewer, since the RSU counts anew.
    least: u16,
}

impl Headcount {
    /// Before the first heartbeat there is a guess.
    pub(super) fn new(guess: u16) -> Self {
        let count = guess.min(OBUS_MAX);
        Self {
            order: None,
            said: count,
            said_before: count,
            before: count,
            count,
            lasting: count,
            least: count,
        }
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The RSU counts its heartbeats anew.
    pub(super) fn start_over(&mut self) {
        *self = Self::new(self.lasting);
    }

    /// A copy of this heartbeat says so many. `at_least`: what we know better.
    pub(super) fn hear(&mut self, order: Order, obus: u16, at_least: u16) {
        let obus = obus.min(OBUS_MAX);
        match self.order {
            Some(known) if order < known => return,
            Some(known) if order == known => self.said = self.said.max(obus),
            known => {
                self.order = Some(order);
                self.said_before = if known.is_none() { obus } else { self.said };
                self.said = obus;
                self.before = self.count;
                let more = self.lasting.div_ceil(timing::CROWD_LEAVES_BY).max(1);
                self.lasting = self.lasting.saturating_add(more).min(self.count);
                self.least -= self.least.div_ceil(timing::CROWD_LEAVES_BY);
            }
        }
        let (low, high) = (self.said.min(self.said_before), self.said.max(self.said_before));
        self.count = self.before.clamp(low, high).max(self.least).max(at_least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seq: u32) -> Order {
        Order::new(1, seq)
    }

    /// What is believed after each of these heartbeats.
    fn believed(headcount: &mut Headcount, said: &[u16]) -> Vec<u16> {
        let first = headcount.order.map_or(1, |order| order.seq.0 + 1);
        let each = (first..).zip(said);
        each.map(|(seq, said)| {
            headcount.hear(order(seq), *said, 0);
            headcount.count()
        })
        .collect()
    }

    #[test]
    fn what_one_heartbeat_says_alone_moves_nothing() {
        let mut headcount = Headcount::new(0);
        assert_eq!(believed(&mut headcount, &[9, 9, u16::MAX, 9, 9, 0, 9]), [9; 7]);
    }

    #[test]
    fn what_two_forged_ones_said_is_gone_with_two_others() {
        let mut headcount = Headcount::new(0);
        let max = OBUS_MAX;
        let believed = believed(&mut headcount, &[9, u16::MAX, u16::MAX, u16::MAX, 9, 9]);
        assert_eq!(believed, [9, 9, max, max, max, 9]);
    }

    #[test]
    fn a_crowd_that_grows_is_followed_one_heartbeat_later() {
        let mut headcount = Headcount::new(0);
        assert_eq!(believed(&mut headcount, &[10, 50, 200, 500]), [10, 10, 50, 200]);
    }

    #[test]
    fn of_the_copies_of_one_heartbeat_the_highest_counts() {
        let mut headcount = Headcount::new(0);
        believed(&mut headcount, &[100, 100]);
        for seq in 3..9 {
            for copy in [1, 100, 2] {
                headcount.hear(order(seq), copy, 0);
            }
            assert_eq!(headcount.count(), 100);
        }
    }

    #[test]
    fn a_crowd_that_was_said_for_a_moment_is_not_remembered_when_the_rsu_starts_again() {
        let mut headcount = Headcount::new(0);
        believed(&mut headcount, &[3; 10]);
        believed(&mut headcount, &[1024; 10]);
        assert_eq!(headcount.count(), 1024);
        headcount.start_over();
        assert!(headcount.count() < 20, "{}", headcount.count());
    }

    #[test]
    fn a_crowd_does_not_forget_itself_when_its_rsu_starts_again() {
        let mut headcount = Headcount::new(0);
        believed(&mut headcount, &[160; 100]);
        headcount.start_over();
        assert_eq!(believed(&mut headcount, &[0, 0, 0]), [150, 140, 131]);
        assert!(believed(&mut headcount, &[0; 100]).ends_with(&[0]));
    }
}
