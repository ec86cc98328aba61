//! [`Home`]: the bridge somebody put the TAP into by hand, so that one made again goes there too.
//!
//! Whoever takes the TAP out of its bridge, or deletes the bridge, means it. Whoever deletes the
//! TAP gets another one, which the bridge does not know. The kernel tells the two apart: of a TAP
//! that is being deleted it does not say that it left its bridge.

use super::interface::Seen;

/// Where the TAP was put last, if it is not to stay out of bridges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Home(Option<Place>);

/// Both by index: what is made again has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    tap: u32,
    bridge: u32,
}

impl Home {
    /// The TAP is in this state now.
    pub(super) fn note_tap(&mut self, tap: &Seen) {
        if self.way_back(tap).is_none() {
            // What is no bridge takes its ports back by itself (Open vSwitch), or is no LAN.
            let bridge = tap.controller.filter(|_| tap.is_bridge_port);
            self.0 = bridge.map(|bridge| Place { tap: tap.link.index, bridge });
        }
    }

    /// There is no interface of this index any more. Returns whether it was the bridge.
    pub(super) fn note_gone(&mut self, index: u32) -> bool {
        self.0.take_if(|place| place.bridge == index).is_some()
    }

    /// The bridge, whether the TAP is in it or not.
    pub(super) fn bridge(self) -> Option<u32> {
        self.0.map(|place| place.bridge)
    }

    /// The bridge into which this TAP has to be put, because the one before it was there.
    pub(super) fn way_back(self, tap: &Seen) -> Option<u32> {
        let is_another = |place: &Place| place.tap != tap.link.index;
        self.0.filter(|place| tap.controller.is_none() && is_another(place)).map(|at| at.bridge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::LinkState;
    use crate::mac::Mac;

    const BRIDGE: u32 = 2;

    fn tap(index: u32, bridge: Option<u32>) -> Seen {
        let link = LinkState { index, mac: Mac::ZERO, mtu: 1500, up: true };
        Seen { link, controller: bridge, is_bridge_port: bridge.is_some() }
    }

    fn put_into_the_bridge() -> Home {
        let mut home = Home::default();
        home.note_tap(&tap(7, None));
        home.note_tap(&tap(7, Some(BRIDGE)));
        home
    }

    #[test]
    fn a_tap_made_again_goes_back_until_it_is_there() {
        let mut home = put_into_the_bridge();
        for _ in 0..2 {
            assert_eq!(home.way_back(&tap(8, None)), Some(BRIDGE));
            home.note_tap(&tap(8, None));
        }
        home.note_tap(&tap(8, Some(BRIDGE)));
        assert_eq!(home.way_back(&tap(8, None)), None, "now whoever takes it out means it");
        assert_eq!(home.way_back(&tap(9, None)), Some(BRIDGE));
    }

    #[test]
    fn a_tap_taken_out_stays_out() {
        let mut home = put_into_the_bridge();
        assert_eq!(home.way_back(&tap(7, None)), None);
        home.note_tap(&tap(7, None));
        assert_eq!((home.bridge(), home.way_back(&tap(8, None))), (None, None));
    }

    #[test]
    fn a_tap_that_somebody_else_put_elsewhere_is_left_there() {
        let mut home = put_into_the_bridge();
        assert_eq!(home.way_back(&tap(8, Some(3))), None);
        home.note_tap(&tap(8, Some(3)));
        assert_eq!(home.way_back(&tap(9, None)), Some(3));
        home.note_tap(&Seen { is_bridge_port: false, ..tap(9, Some(4)) });
        assert_eq!(home.way_back(&tap(10, None)), None, "that was no bridge");
    }

    #[test]
    fn there_is_no_way_back_into_a_bridge_that_is_gone() {
        let mut home = put_into_the_bridge();
        assert!(!home.note_gone(7) && home.bridge() == Some(BRIDGE), "only the TAP");
        assert!(home.note_gone(BRIDGE) && !home.note_gone(BRIDGE));
        assert_eq!(home.way_back(&tap(8, None)), None);
    }
}
