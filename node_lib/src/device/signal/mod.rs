//! How strong the frames of others come in, and how busy the channel is: where the kernel tells it,
//! and its way to the loop.
//!
//! | source | tells | needs |
//! |---|---|---|
//! | [`nl80211`] | per station, when asked: ten times a second; the channel, once a second | an 802.11 driver that keeps station statistics |
//! | [`monitor`] | per frame, in front of a copy of it ([`radiotap`]) | a monitor interface, `CAP_NET_RAW` |
//!
//! Neither tells it with the frame itself, so a measurement is an event of its own
//! ([`Node::handle_signal`](crate::control::node::Node::handle_signal)). A source is asked by a
//! task beside the packet loop. What it says waits in [`Reports`] until the loop takes it, all at
//! once: so a busy channel wakes the loop twenty times a second, not with each frame.

pub mod monitor;
pub mod nl80211;
pub mod radiotap;
pub mod reports;

use tokio::task::JoinHandle;

use super::DeviceError;
use monitor::Monitor;
use nl80211::Nl80211;
pub use reports::{Reports, Sample, SignalCounters};

/// A source that can be asked.
#[derive(Debug)]
pub enum SignalSource {
    /// Station statistics of an 802.11 driver, and its survey of the channel.
    Nl80211(Nl80211),
    /// The survey alone.
    Channel(Nl80211),
    /// A monitor interface.
    Monitor(Monitor),
}

impl SignalSource {
    /// Station statistics of the driver of this interface.
    ///
    /// # Errors
    /// There is no such interface, or its driver is not one of 802.11.
    pub async fn nl80211(interface: &str) -> Result<Self, DeviceError> {
        Nl80211::open(interface).await.map(Self::Nl80211)
    }

    /// How busy the channel is, as the driver of this interface says, and nothing else.
    ///
    /// # Errors
    /// As of [`SignalSource::nl80211`].
    pub async fn channel(interface: &str) -> Result<Self, DeviceError> {
        Nl80211::open(interface).await.map(Self::Channel)
    }

    /// A monitor interface with radiotap headers.
    ///
    /// # Errors
    /// There is no such interface, it is of another kind, or `CAP_NET_RAW` is missing.
    pub fn radiotap(interface: &str) -> Result<Self, DeviceError> {
        Monitor::open(interface).map(Self::Monitor)
    }

    /// Its name, as `--signal` takes it.
    pub fn name(&self) -> String {
        match self {
            Self::Nl80211(driver) | Self::Channel(driver) => {
                format!("nl80211:{}", driver.interface())
            }
            Self::Monitor(monitor) => format!("radiotap:{}", monitor.interface()),
        }
    }

    /// Asks it from now on, in a task of the tokio runtime this is called in.
    pub(super) fn watch(self) -> Watch {
        let reports = Reports::default();
        let to = reports.clone();
        let task = match self {
            Self::Nl80211(stations) => tokio::spawn(nl80211::watch(stations, to, nl80211::EVERY)),
            Self::Channel(driver) => tokio::spawn(nl80211::watch_channel(driver, to)),
            Self::Monitor(monitor) => tokio::spawn(monitor::watch(monitor, to)),
        };
        Watch { reports, task }
    }
}

/// A source being asked, until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) reports: Reports,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
