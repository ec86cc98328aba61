//! What the user typed.

use std::str::FromStr;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use daemon::args::{Common, PmtuDiscovery};
use daemon::signal::Signal;
use obu_lib::Settings;
use obu_lib::settings::{CACHED_CANDIDATES, CACHED_CANDIDATES_RANGE};

/// On-board unit: puts the vehicle's LAN on the road-side LAN, through whichever RSU is best, over
/// other OBUs where needed
#[derive(Debug, Parser)]
#[command(name = "obu", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Neighbours kept ready to take over from the current upstream, 0 to 16
    #[arg(long, value_name = "N", default_value_t = CACHED_CANDIDATES,
        value_parser = RangedU64ValueParser::<usize>::new().range(CACHED_CANDIDATES_RANGE))]
    cached_candidates: usize,

    /// Who tells how strong others come in, so that the vehicle leaves a fading neighbour in time:
    /// auto (nl80211 if the radio has it), off, nl80211, nl80211:IFACE, or radiotap:IFACE (a
    /// monitor interface)
    #[arg(long, value_name = "SOURCE", default_value = "auto", value_parser = Signal::from_str)]
    pub(crate) signal: Signal,
}

impl Args {
    /// What it means to the node.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            ethertype: self.common.ethertype,
            pmtu_discovery: self.common.pmtu_discovery == PmtuDiscovery::On,
            share_position: self.common.share_position,
            hello_history: self.common.hello_history,
            cached_candidates: self.cached_candidates,
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_is_told_nothing_runs_as_the_library_does_by_itself() {
        let line = ["obu", "-b", "wlan0"].map(Into::into);
        let args: Args = daemon::args::parse_from(daemon::OBU, line).unwrap();
        assert_eq!(args.settings(), Settings::default());
    }
}
