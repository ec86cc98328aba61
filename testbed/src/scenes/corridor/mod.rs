//! The corridor: a vehicle full of clients drives past road-side units that share a LAN.
//!
//! One [`Corridor`] is driven twice: by the real daemons over the medium ([`daemons`]), and by the
//! same nodes in the simulator ([`simulated`]). Both follow the same link trace and carry the same
//! streams, so the two can be compared hand-over by hand-over ([`drive`]).

pub mod command;
pub mod daemons;
pub mod drive;
pub mod odds;
pub mod report;
pub mod scenario;
pub mod simulated;

use std::time::Duration;

use anyhow::{Context, Result};

use crate::medium::MediumLinkTrace;
use odds::Odds;

/// What is driven, and with which traffic.
#[derive(Clone, Debug)]
pub struct Corridor {
    /// Who hears whom. Radios whose name begins with `rsu` are road-side units, the other is the
    /// vehicle.
    pub trace: MediumLinkTrace,
    /// How often a radio tries a unicast frame again.
    pub retries: u32,
    /// Clients in the vehicle, at most 250.
    pub clients: u8,
    /// How many of them talk; the others are only spoken to.
    pub talking: u8,
    /// Frames per second, in all, in each direction.
    pub frames_per_s: u32,
    /// Seed of the medium's luck, and of the simulator's.
    pub seed: u64,
}

/// Length of a probe, Ethernet header included.
const FRAME_LEN: usize = 200;
/// Streams run so long before the vehicle departs …
const LEAD: Duration = Duration::from_secs(1);
/// … and after it has arrived.
const TAIL: Duration = Duration::from_millis(500);
/// Seven, as Linux drivers do by default: `dot11LongRetryLimit` and its like.
const RETRIES: u32 = 7;

impl Corridor {
    /// Eight clients of which four talk, a thousand frames per second each way.
    pub fn new(trace: MediumLinkTrace) -> Self {
        Self { trace, retries: RETRIES, clients: 8, talking: 4, frames_per_s: 1000, seed: 1 }
    }

    /// Names of the road-side units, in the order of the alphabet.
    pub fn rsus(&self) -> Vec<&str> {
        self.trace.radios().into_iter().filter(|name| name.starts_with(RSU)).collect()
    }

    /// Name of the vehicle.
    pub fn vehicle(&self) -> Result<&str> {
        let mut others = self.trace.radios().into_iter().filter(|name| !name.starts_with(RSU));
        others.next().context("the trace has no vehicle, only names that begin with rsu")
    }

    /// What the links lose by themselves.
    fn odds(&self) -> Result<Odds> {
        Ok(Odds::new(&self.trace, self.vehicle()?, self.retries))
    }

    /// Time between two frames to one client.
    fn down_every(&self) -> Duration {
        Duration::from_secs(self.clients.into()) / self.frames_per_s.max(1)
    }

    /// Time between two frames from one client that talks.
    fn up_every(&self) -> Duration {
        Duration::from_secs(self.talking.into()) / self.frames_per_s.max(1)
    }
}

const RSU: &str = "rsu";
