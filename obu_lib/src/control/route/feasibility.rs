//! Which advertised routes cannot loop: the feasibility condition of RFC 8966 §2.4.
//!
//! Every node remembers, per RSU, the best distance it ever advertised: its *feasibility distance*.
//! It may send through a neighbour only if that neighbour advertised a distance strictly better.
//! Along any chain of next hops the feasibility distance then strictly improves, so the chain
//! cannot come back to where it was, whatever was lost, delayed or reordered on the way. Ranking by
//! hops alone loops: one RSU and three OBUs suffice.
//!
//! The distance counts hops, never measured cost: it must grow strictly with each hop.

use node_lib::order::Order;

/// A distance to an RSU: how recent the news is, then how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// The heartbeat this distance was learnt from.
    pub order: Order,
    /// Radio hops; 0 at the RSU itself.
    pub hops: u8,
}

impl Distance {
    /// Newer news, or equally new and fewer hops.
    pub fn is_better_than(self, other: Self) -> bool {
        self.order > other.order || (self.order == other.order && self.hops < other.hops)
    }
}

/// The best distance a node ever advertised for one RSU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feasibility(Option<Distance>);

impl Feasibility {
    /// May we send through a neighbour that advertised `distance`?
    pub fn allows(self, distance: Distance) -> bool {
        self.0.is_none_or(|least| distance.is_better_than(least))
    }

    /// The best distance advertised so far.
    pub fn distance(self) -> Option<Distance> {
        self.0
    }

    /// We are about to advertise `distance` ourselves.
    pub fn advertised(&mut self, distance: Distance) {
        if self.allows(distance) {
            self.0 = Some(distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(seq: u32, hops: u8) -> Distance {
        Distance { order: Order::new(1, seq), hops }
    }

    #[test]
    fn before_the_first_advertisement_everything_is_feasible() {
        assert!(Feasibility::default().allows(distance(0, 31)));
    }

    #[test]
    fn at_the_same_order_only_fewer_hops_are_feasible() {
        let mut feasibility = Feasibility::default();
        feasibility.advertised(distance(5, 2));
        assert!(feasibility.allows(distance(5, 1)));
        assert!(!feasibility.allows(distance(5, 2)));
        assert!(!feasibility.allows(distance(5, 3)));
        assert!(!feasibility.allows(distance(4, 0)));
        assert!(feasibility.allows(distance(6, 9)));
    }

    #[test]
    fn advertising_a_worse_distance_does_not_forget_the_better_one() {
        let mut feasibility = Feasibility::default();
        feasibility.advertised(distance(5, 2));
        feasibility.advertised(distance(5, 4));
        assert!(!feasibility.allows(distance(5, 3)));
        feasibility.advertised(distance(6, 4));
        assert!(feasibility.allows(distance(6, 3)));
    }
}
