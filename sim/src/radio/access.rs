//! How a frame gets on the air: [`Access`].

use std::time::Duration;

use crate::radio::airtime::{DataRate, SIFS, SLOT};

/// How a frame gets on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// At once: frames take no air and cannot collide. For tests of pure logic.
    Instant {
        /// Time under way, at least.
        delay: Duration,
        /// Added to it per frame, uniformly from zero to this; the same for all who hear it.
        jitter: Duration,
    },
    /// As in 802.11p: listen, wait, send, perhaps collide.
    Csma(Csma),
}

impl Access {
    /// 0.5 to 1 ms under way, as [`Link::CLEAN`](crate::Link::CLEAN).
    pub const INSTANT: Self =
        Self::Instant { delay: Duration::from_micros(500), jitter: Duration::from_micros(500) };
}

/// Contention for the channel, the same at every node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Csma {
    /// Of every frame.
    pub rate: DataRate,
    /// How often a unicast frame is sent again that was not acknowledged: one less than
    /// dot11ShortRetryLimit, which counts all attempts. With 0 nothing is acknowledged either.
    pub retries: u8,
    /// Frames waiting in each of the four queues of a node; what comes on top is dropped.
    pub queue_len_max: usize,
    /// Frames not sent within this time are dropped, as of no use any more
    /// (dot11EDCATableMSDULifetime).
    pub lifetime: Duration,
    /// The best first. Which one a frame is in, its user priority says: that of the daemons
    /// ([`traffic_class`](node_lib::control::traffic_class)).
    pub categories: [Category; CATEGORIES],
}

/// Access categories of 802.11, and queues of a station.
pub const CATEGORIES: usize = 4;

/// An access category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// AIFSN: slots to wait after SIFS before anything else.
    pub aifsn: u8,
    /// CWmin: a random number of slots up to this comes on top.
    pub cw_min: u16,
    /// CWmax: the window doubles with every retry up to this.
    pub cw_max: u16,
}

impl Category {
    /// AC_VO outside the context of a BSS: 802.11-2016 table 9-138, aCWmin 15.
    pub const VOICE: Self = Self { aifsn: 2, cw_min: 3, cw_max: 7 };

    /// AC_VI, the same.
    pub const VIDEO: Self = Self { aifsn: 3, cw_min: 7, cw_max: 15 };

    /// AC_BE, the same.
    pub const BEST_EFFORT: Self = Self { aifsn: 6, cw_min: 15, cw_max: 1023 };

    /// AC_BK, the same.
    pub const BACKGROUND: Self = Self { aifsn: 9, cw_min: 15, cw_max: 1023 };

    /// Place in [`Csma::categories`] of a user priority: 802.11-2020 table 10-1.
    pub(super) fn place_of(user_priority: u8) -> usize {
        match user_priority {
            6.. => 0,
            4 | 5 => 1,
            1 | 2 => 3,
            _ => 2,
        }
    }

    /// AIFS: how long the channel must be idle before slots are counted.
    pub fn aifs(self) -> Duration {
        SIFS + SLOT * u32::from(self.aifsn)
    }
}

impl Csma {
    /// 6 Mbit/s, seven attempts (the default of dot11ShortRetryLimit), 64 frames a queue, for 500
    /// units of 1024 µs (the default of dot11EDCATableMSDULifetime).
    pub const DEFAULT: Self = Self {
        rate: DataRate::Mbps6,
        retries: 6,
        queue_len_max: 64,
        lifetime: Duration::from_micros(500 * 1024),
        categories: [Category::VOICE, Category::VIDEO, Category::BEST_EFFORT, Category::BACKGROUND],
    };

    pub(super) fn category(&self, place: usize) -> Category {
        self.categories.get(place).copied().unwrap_or(Category::BEST_EFFORT)
    }
}

impl Default for Csma {
    fn default() -> Self {
        Self::DEFAULT
    }
}
