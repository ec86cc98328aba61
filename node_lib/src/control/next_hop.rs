//! Where a data frame goes next.

use crate::mac::Mac;

/// Who a data frame is sent to, and the longest packet that gets there, in bytes. Where the
/// neighbour is on a way, and the smallest radio of that is known, it is what passes all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The neighbour, or broadcast.
    pub mac: Mac,
    /// MTU of its radio, of the smallest one for a broadcast or on the way; ours may be smaller.
    pub mtu: u16,
}

impl NextHop {
    /// The next hop that reaches all of `neighbours`: nobody, the only one, or a broadcast with the
    /// smallest MTU of them.
    pub fn for_all(neighbours: impl Iterator<Item = NextHop>) -> Option<NextHop> {
        neighbours.reduce(|to, one| NextHop {
            mac: if to.mac == one.mac { to.mac } else { Mac::BROADCAST },
            mtu: to.mtu.min(one.mtu),
        })
    }
}
