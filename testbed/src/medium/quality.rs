//! What a radio link does to frames.

use std::time::Duration;

use rand_core::Rng;
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

/// One direction of a radio link. The default carries everything, at once and unharmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quality {
    /// Share of frames lost, 0 to 1.
    pub loss: f64,
    /// Time from one antenna to the other.
    pub delay: Duration,
    /// Added to the delay, evenly from nothing to this much; the order of frames stays.
    pub jitter: Duration,
    /// Share of frames that arrive twice.
    pub duplicate: f64,
    /// Share of frames held back by [`HELD_BACK`], so that later ones overtake them.
    pub reorder: f64,
    /// Share of frames in which one bit is flipped, anywhere in the frame.
    pub corrupt: f64,
    /// How often a frame is tried again that the radio it is addressed to lost, as an 802.11 radio
    /// does when no acknowledgement comes: each try has its own luck and takes [`RETRY_AFTER`].
    /// Broadcasts, and what others overhear, have one try.
    pub retries: u32,
    /// Bits per second; frames wait in a queue of [`QUEUE_BYTES`], control in one of its own that
    /// is sent first. What does not fit is dropped.
    pub rate_bps: Option<u64>,
    /// How strong frames come in; unknown if it is not said. Told to a receiver that has a monitor
    /// interface.
    pub signal: Option<SignalStrength>,
}

/// Strength of the frames that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalStrength {
    /// Their mean, in dBm.
    pub dbm: f64,
    /// Standard deviation from frame to frame, in dB.
    pub sd_db: f64,
}

impl SignalStrength {
    /// The strength of one frame, in whole dBm as drivers report it.
    pub(super) fn draw(self, random: &mut Pcg32) -> i8 {
        let mut unit = || (f64::from(random.next_u32()) + 0.5) / (f64::from(u32::MAX) + 1.0);
        // Box and Muller, Annals of Mathematical Statistics 29, 1958.
        let normal = (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos();
        #[allow(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
        let dbm = (self.dbm + self.sd_db * normal).round() as i8;
        // Nobody reports 0: drivers say so when they know nothing.
        dbm.min(-1)
    }
}

/// By how much a reordered frame is late: some frames' worth in any test stream.
pub const HELD_BACK: Duration = Duration::from_millis(5);
/// Between two tries of one frame: about the airtime of a short frame at 6 Mbit/s with its
/// acknowledgement timeout and back-off.
pub const RETRY_AFTER: Duration = Duration::from_micros(500);
/// Queue of a rate-limited link: 43 full frames, as a driver's transmit ring has some dozen.
pub const QUEUE_BYTES: u64 = 64 * 1024;

impl Quality {
    /// Nothing arrives.
    pub const CUT: Self = Self {
        loss: 1.0,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        duplicate: 0.0,
        reorder: 0.0,
        corrupt: 0.0,
        retries: 0,
        rate_bps: None,
        signal: None,
    };

    /// A clean link that loses this share of frames.
    pub fn lossy(loss: f64) -> Self {
        Self { loss, ..Self::default() }
    }
}

/// What happened on one direction of a link, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Handed to the receiver, copies included.
    pub forwarded: u64,
    /// Lost by chance, on every try.
    pub lost: u64,
    /// Tries beyond the first, of frames that arrived and of frames that did not.
    pub retried: u64,
    /// Dropped because the link's queue, or the medium itself, was full.
    pub overflow: u64,
    /// Sent a second time.
    pub duplicated: u64,
    /// Held back behind later ones.
    pub reordered: u64,
    /// Delivered with a flipped bit.
    pub corrupted: u64,
}
