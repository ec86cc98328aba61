//! What the user typed.

use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use daemon::args::Common;
use daemon::start::Devices;

/// Road-side unit: announces itself to OBUs and puts their LANs on its own
#[derive(Debug, Parser)]
#[command(name = "rsu", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Milliseconds between heartbeats, 10 to 10000
    #[arg(short = 'p', long, value_name = "MS", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(10..=10_000))]
    hello_periodicity: u64,

    /// Without effect: an RSU has no upstream. Taken so that both daemons start with the same flags
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=16))]
    cached_candidates: usize,
}

impl Args {
    /// What it means to the node.
    pub(crate) fn config(&self, devices: &Devices) -> rsu_lib::Config {
        let _ = self.cached_candidates;
        rsu_lib::Config {
            id: devices.id,
            radio_mac: devices.radio_mac(),
            radio_mtu: devices.radio_mtu(),
            ethertype: self.common.ethertype,
            tap_mac: Some(devices.tap_mac),
            boot: devices.boot,
            seed: devices.seed,
            hello_periodicity: Duration::from_millis(self.hello_periodicity),
            hello_history: self.common.hello_history,
        }
    }
}
