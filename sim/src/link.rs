//! One direction of a radio link: [`Link`].

use std::time::Duration;

/// What happens to frames from one node to another.
///
/// Each frame is lost, delayed and doubled by itself. Jitter may put a later frame first; with no
/// jitter a link keeps the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// Time under way, at least.
    pub delay: Duration,
    /// Added to it, uniformly from zero to this.
    pub jitter: Duration,
    /// Probability that a frame arrives twice, 0 to 1.
    pub duplicate: f64,
}

impl Link {
    /// Loses nothing; 0.5 to 1 ms under way, about what a short frame and the wait for the medium
    /// cost at 6 Mbit/s.
    pub const CLEAN: Self = Self {
        loss: 0.0,
        delay: Duration::from_micros(500),
        jitter: Duration::from_micros(500),
        duplicate: 0.0,
    };

    /// [`Link::CLEAN`], but loses frames with this probability.
    pub const fn lossy(loss: f64) -> Self {
        Self { loss, ..Self::CLEAN }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::CLEAN
    }
}
