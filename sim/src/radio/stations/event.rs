//! What has to be done later, as a medium hands it to its world: [`StationStep`].

use crate::medium::Step;
use crate::radio::occupancy::Use;

/// What has to be done later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StationStep {
    /// A countdown ends, unless it was stopped since.
    Contend { node: usize },
    /// A transmission ends.
    Finish { air: usize },
    /// `from` acknowledges what it received from `to`, a frame of this kind.
    Acknowledge { from: usize, to: usize, kind: Use },
    /// No acknowledgement came, unless it did.
    GiveUp { node: usize, turn: u32 },
    /// A frame that takes no air arrives.
    Land { place: usize },
}

/// Bits of an index, and of a turn: more of either than fit in there are not.
const INDEX_BITS: u32 = 30;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

impl StationStep {
    /// As a medium hands it to its world: what it is in the upper bits, and two numbers.
    pub(crate) fn pack(self) -> Step {
        let (what, a, b) = match self {
            Self::Contend { node } => (0, node, 0),
            Self::Finish { air } => (1, air, 0),
            Self::Acknowledge { from, to, kind: Use::Control } => (2, from, to),
            Self::Acknowledge { from, to, kind: Use::Data } => (3, from, to),
            Self::GiveUp { node, turn } => (4, node, turn as usize),
            Self::Land { place } => (5, place, 0),
        };
        let numbers = (a as u64 & INDEX_MASK) << INDEX_BITS | b as u64 & INDEX_MASK;
        Step(what << (2 * INDEX_BITS) | numbers)
    }

    /// Back again.
    pub(crate) fn unpack(Step(packed): Step) -> Option<Self> {
        let index = |packed: u64| usize::try_from(packed & INDEX_MASK).unwrap_or(0);
        let (a, b) = (index(packed >> INDEX_BITS), index(packed));
        let acknowledge = |kind| Self::Acknowledge { from: a, to: b, kind };
        Some(match packed >> (2 * INDEX_BITS) {
            0 => Self::Contend { node: a },
            1 => Self::Finish { air: a },
            2 => acknowledge(Use::Control),
            3 => acknowledge(Use::Data),
            4 => Self::GiveUp { node: a, turn: u32::try_from(b).unwrap_or(0) },
            5 => Self::Land { place: a },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_as_they_were() {
        for event in [
            StationStep::Contend { node: 0 },
            StationStep::Contend { node: INDEX_MASK as usize },
            StationStep::Finish { air: 77 },
            StationStep::Acknowledge { from: 3, to: 70_000, kind: Use::Data },
            StationStep::Acknowledge { from: 70_000, to: 3, kind: Use::Control },
            StationStep::GiveUp { node: 9, turn: 123_456_789 },
            StationStep::Land { place: 5 },
        ] {
            assert_eq!(StationStep::unpack(event.pack()), Some(event));
        }
        assert_eq!(StationStep::unpack(Step(u64::MAX)), None);
    }
}
