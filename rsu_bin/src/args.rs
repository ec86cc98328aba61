//! What the user typed.

use std::time::Duration;

use clap::Parser;
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
}

impl Args {
    /// What it means to the node.
    pub(crate) fn config(&self, devices: &Devices) -> rsu_lib::Config {
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
