//! What the user typed.

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use daemon::args::Common;
use daemon::start::Devices;

/// On-board unit: puts the vehicle's LAN on the road-side LAN, through whichever RSU is best, over
/// other OBUs where needed
#[derive(Debug, Parser)]
#[command(name = "obu", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Neighbours kept ready to take over from the current upstream, 0 to 16
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=16))]
    cached_candidates: usize,
}

impl Args {
    /// What it means to the node.
    pub(crate) fn config(&self, devices: &Devices) -> obu_lib::Config {
        obu_lib::Config {
            id: devices.id,
            radio_mac: devices.radio_mac(),
            radio_mtu: devices.radio_mtu(),
            ethertype: self.common.ethertype,
            tap_mac: Some(devices.tap_mac),
            boot: devices.boot,
            seed: devices.seed,
            hello_history: self.common.hello_history,
            cached_candidates: self.cached_candidates,
            policy: obu_lib::Policy::default(),
            thresholds: obu_lib::Thresholds::default(),
        }
    }
}
