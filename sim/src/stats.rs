//! What went over the air: [`Stats`], frames and bytes by kind.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::frame::FrameKind;

/// Frames and the bytes in them, Ethernet header included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames.
    pub frames: u64,
    /// Bytes.
    pub bytes: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

impl Sub for Tally {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(earlier.frames),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// Frames sent to the radio, by kind. A broadcast counts once, however many hear it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    kinds: [Tally; FrameKind::COUNT],
}

impl Stats {
    /// Counts one frame.
    pub(super) fn count(&mut self, kind: FrameKind, bytes: usize) {
        if let Some(tally) = self.kinds.get_mut(usize::from(kind.0)) {
            *tally += Tally { frames: 1, bytes: bytes as u64 };
        }
    }

    /// Frames of one kind.
    pub fn of(&self, kind: FrameKind) -> Tally {
        self.kinds.get(usize::from(kind.0)).copied().unwrap_or_default()
    }

    /// Everything that is not a client's frame.
    pub fn control(&self) -> Tally {
        self.sum(|kind| !kind.is_data())
    }

    /// Clients' frames, each hop counted.
    pub fn data(&self) -> Tally {
        self.sum(FrameKind::is_data)
    }

    fn sum(&self, of: impl Fn(FrameKind) -> bool) -> Tally {
        let mut sum = Tally::default();
        for (kind, &tally) in (0..).map(FrameKind).zip(&self.kinds) {
            if of(kind) {
                sum += tally;
            }
        }
        sum
    }
}

impl Add for Stats {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        for (kind, more) in self.kinds.iter_mut().zip(other.kinds) {
            *kind += more;
        }
        self
    }
}

impl Sub for Stats {
    type Output = Self;
    /// What was sent since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        let mut kinds = self.kinds;
        for (kind, before) in kinds.iter_mut().zip(earlier.kinds) {
            *kind = *kind - before;
        }
        Self { kinds }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        for (kind, tally) in (0..).map(FrameKind).zip(&self.kinds) {
            if tally.frames > 0 {
                write!(f, "{gap}{kind} {} ({} B)", tally.frames, tally.bytes)?;
                gap = ", ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_and_summed() {
        let mut stats = Stats::default();
        stats.count(FrameKind::HEARTBEAT, 60);
        let before = stats;
        stats.count(FrameKind::HEARTBEAT, 60);
        stats.count(FrameKind::TO_UPSTREAM, 100);
        assert_eq!(stats.of(FrameKind::HEARTBEAT), Tally { frames: 2, bytes: 120 });
        assert_eq!((stats - before).control(), Tally { frames: 1, bytes: 60 });
        assert_eq!(stats.data(), Tally { frames: 1, bytes: 100 });
        assert_eq!(stats.to_string(), "heartbeat 2 (120 B), to-upstream 1 (100 B)");
    }
}
