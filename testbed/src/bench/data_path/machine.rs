//! Where figures come from, and who else was there: without it they mean nothing to anybody else.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::{SysconfVar, sysconf};
use serde::Serialize;

/// The machine, as the kernel describes it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) processor: String,
    pub(super) cores: usize,
    pub(super) kernel: String,
    /// Load averages over 1, 5 and 15 minutes before the first run.
    pub(super) load_before: String,
}

impl Machine {
    pub(super) fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
        let load = read("/proc/loadavg");
        Self {
            processor: model.unwrap_or("unknown").trim_start_matches([' ', '\t', ':']).to_owned(),
            cores: cores(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: load.split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor time spent so far, by the whole machine and by us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    at: Instant,
    busy: Duration,
    ours: Duration,
}

impl Spent {
    /// Until now. Programs of ours count once they have ended.
    pub(super) fn now() -> Result<Self> {
        let ticks_per_s = sysconf(SysconfVar::CLK_TCK)?.context("ticks per second")?;
        let stat = fs::read_to_string("/proc/stat")?;
        let ticks = busy_ticks(&stat).context("/proc/stat")?;
        let mut ours = Duration::ZERO;
        for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
            let usage = getrusage(who)?;
            ours += duration(usage.user_time()) + duration(usage.system_time());
        }
        let busy = Duration::from_secs_f64(ticks as f64 / ticks_per_s as f64);
        Ok(Self { at: Instant::now(), busy, ours })
    }

    /// The share of all cores that was spent by neither us nor nobody since then.
    pub(super) fn others_since(self, before: Self) -> f64 {
        let others = (self.busy - before.busy).saturating_sub(self.ours - before.ours);
        let whole = (self.at - before.at).as_secs_f64() * cores() as f64;
        others.as_secs_f64() / whole
    }
}

/// Ticks of all cores that were not idle: the columns of proc(5) but `idle`, `iowait`, and those of
/// guests, which are in `user` already. What a hypervisor took away (`steal`) is somebody's as
/// well.
fn busy_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_whitespace().map_while(|column| column.parse().ok()).collect();
    let [user, nice, system, _, _, irq, softirq, steal, ..] = *ticks else { return None };
    Some(user + nice + system + irq + softirq + steal)
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_ticks("cpu  1 2 3 1000 1000 4 5 6 1 0\ncpu0 9 9\n"), Some(21));
        assert_eq!(busy_ticks("intr 5\n"), None);
    }

    #[test]
    fn what_we_spend_is_not_others() {
        let before = Spent::now().unwrap();
        let mut after = before;
        after.at += Duration::from_secs(1);
        after.busy += Duration::from_millis(700);
        after.ours += Duration::from_millis(200);
        let others = after.others_since(before) * cores() as f64;
        assert!((others - 0.5).abs() < 1e-9, "{others}");
    }
}
