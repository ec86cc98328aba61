//! What makes one message newer than another: [`Boot`], [`Seq`] and both together, [`Order`].

use std::fmt;

/// Boot count of a node: grows by at least one with every start of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Boot(pub u32);

impl Boot {
    /// The low 8 bits, which stand in the header of data frames.
    pub const fn low_byte(self) -> u8 {
        self.0.to_be_bytes()[3]
    }
}

/// Sequence number within one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u32);

/// Boot count ‖ sequence: a message sent after a restart is always newer than one sent before it.
///
/// Sixty-four bits do not wrap (ten heartbeats a second need 13 years for one sequence space), so a
/// plain comparison is enough. [`Order::next`] carries into the boot count.
///
/// Field order is priority: `derive(Ord)` compares top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Order {
    /// Starts of the node.
    pub boot: Boot,
    /// Messages since that start.
    pub seq: Seq,
}

impl Order {
    /// The order with these parts.
    pub const fn new(boot: u32, seq: u32) -> Self {
        Self { boot: Boot(boot), seq: Seq(seq) }
    }

    /// The order after this one; saturates at the very end.
    #[must_use]
    pub const fn next(self) -> Self {
        self.later(1)
    }

    /// So many orders after this one, or the first of the next boot count; saturates at the very
    /// end.
    #[must_use]
    pub const fn later(self, by: u32) -> Self {
        match self.seq.0.checked_add(by) {
            Some(seq) => Self::new(self.boot.0, seq),
            None => match self.boot.0.checked_add(1) {
                Some(boot) => Self::new(boot, 0),
                None => self,
            },
        }
    }

    /// How many orders `self` is ahead of `earlier`, within one boot; `None` across boots or
    /// backwards.
    pub fn ahead_of(self, earlier: Self) -> Option<u32> {
        if self.boot == earlier.boot { self.seq.0.checked_sub(earlier.seq.0) } else { None }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.boot.0, self.seq.0)
    }
}

/// An RSU believes a higher epoch of an OBU at once if it is no further ahead, and an OBU goes
/// above one it is told of if it is no further ahead. It takes one more with each attachment, and a
/// few may be missed. What is further ahead is more likely forged than missed.
pub const EPOCH_STEP_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_always_newer() {
        assert!(Order::new(2, 0) > Order::new(1, u32::MAX));
        assert!(Order::new(1, 5) > Order::new(1, 4));
    }

    #[test]
    fn the_last_sequence_number_is_followed_by_the_next_boot() {
        assert_eq!(Order::new(1, u32::MAX).next(), Order::new(2, 0));
        assert_eq!(Order::new(u32::MAX, u32::MAX).next(), Order::new(u32::MAX, u32::MAX));
    }

    #[test]
    fn distance_is_known_only_within_one_boot() {
        assert_eq!(Order::new(1, 9).ahead_of(Order::new(1, 4)), Some(5));
        assert_eq!(Order::new(1, 4).ahead_of(Order::new(1, 9)), None);
        assert_eq!(Order::new(2, 4).ahead_of(Order::new(1, 4)), None);
    }
}
