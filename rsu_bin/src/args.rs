//! What the user typed.

use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use daemon::args::{Common, PmtuDiscovery};
use daemon::signal::{Signal, of_channel};
use rsu_lib::Settings;
use rsu_lib::settings::{
    GROUP_RATE, GROUP_RATE_RANGE, HELLO_PERIODICITY, HELLO_PERIODICITY_RANGE_MS,
};

/// Road-side unit: announces itself to OBUs and puts their LANs on its own
#[derive(Debug, Parser)]
#[command(name = "rsu", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Milliseconds between heartbeats, 10 to 10000
    #[arg(short = 'p', long, value_name = "MS", default_value_t = millis(HELLO_PERIODICITY),
        value_parser = clap::value_parser!(u64).range(HELLO_PERIODICITY_RANGE_MS))]
    hello_periodicity: u64,

    /// Without effect: an RSU has no upstream. Taken so that both daemons start with the same flags
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=16))]
    cached_candidates: usize,

    /// Broadcast and multicast sent over the radio, in kB a second, 0 for no limit; as much again
    /// for ARP, DHCP, neighbour discovery and other groups of the link
    #[arg(long, value_name = "KB", default_value_t = GROUP_RATE,
        value_parser = clap::value_parser!(u32).range(GROUP_RATE_RANGE))]
    group_rate: u32,

    /// Who tells how busy the channel is, so that heartbeats become rarer where it is full: auto
    /// (nl80211 if the radio has it), off, nl80211, or nl80211:IFACE
    #[arg(long, value_name = "SOURCE", default_value = "auto", value_parser = of_channel)]
    pub(crate) signal: Signal,
}

impl Args {
    /// What it means to the node.
    pub(crate) fn settings(&self) -> Settings {
        let _ = self.cached_candidates;
        Settings {
            ethertype: self.common.ethertype,
            hello_periodicity: Duration::from_millis(self.hello_periodicity),
            pmtu_discovery: self.common.pmtu_discovery == PmtuDiscovery::On,
            share_position: self.common.share_position,
            hello_history: self.common.hello_history,
            group_rate: self.group_rate,
            rerouting: Settings::default().rerouting,
        }
    }
}

/// As `--hello-periodicity` has it.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_is_told_nothing_runs_as_the_library_does_by_itself() {
        let line = ["rsu", "-b", "wlan0"].map(Into::into);
        let args: Args = daemon::args::parse_from(daemon::RSU, line).unwrap();
        assert_eq!(args.settings(), Settings::default());
    }
}
