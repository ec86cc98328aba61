//! Processor time and memory of a process, by `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// What a process has taken since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on a processor, of all its threads, in user space and in the kernel: what `utime` and
    /// `stime` of `/proc/PID/stat` count in ticks of 10 ms. A thread that has ended no longer
    /// counts.
    pub cpu: Duration,
    /// Resident memory (`VmRSS`), bytes.
    pub resident: u64,
}

impl Usage {
    /// Of the process with this id.
    pub fn of(pid: u32) -> Result<Self> {
        let cpu = cpu_of(pid, |_| true)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(Self { cpu, resident: parse_resident(&status).context("VmRSS")? })
    }
}

/// Time on a processor of the threads with these names.
pub fn cpu_of(pid: u32, is_meant: impl Fn(&str) -> bool) -> Result<Duration> {
    let mut cpu = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        if is_meant(fs::read_to_string(task.join("comm"))?.trim_end()) {
            let text = fs::read_to_string(task.join("schedstat"))?;
            cpu += parse_schedstat(&text).context("schedstat")?;
        }
    }
    Ok(cpu)
}

/// Time on a processor in nanoseconds, time waited for one, and how often (proc(5)).
fn parse_schedstat(text: &str) -> Option<Duration> {
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let spent = parse_schedstat("1500000 20 7\n");
        assert_eq!(spent, Some(Duration::from_micros(1500)));
        assert_eq!(parse_resident("VmHWM:\t 9 kB\nVmRSS:\t    5120 kB\n"), Some(5_242_880));
        assert_eq!(parse_resident("VmHWM:\t 9 kB\n"), None);
    }

    #[test]
    fn this_process_has_used_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 0, "{usage:?}");
        assert_eq!(cpu_of(std::process::id(), |name| name == "nobody").unwrap(), Duration::ZERO);
        assert!(cpu_of(std::process::id(), |name| name != "nobody").unwrap() > Duration::ZERO);
    }
}
