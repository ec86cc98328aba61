//! Processor time and memory of a process, by `/proc`.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, Result};

/// What a process has taken since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on a processor, of all its threads, in user space and in the kernel, as
    /// `/proc/PID/task/*/schedstat` counts it. A thread that has ended no longer counts.
    pub cpu: Duration,
    /// Resident memory (`VmRSS`), bytes.
    pub resident: u64,
    /// What of it no file stands behind (`RssAnon`): what a leak makes larger.
    pub anonymous: u64,
    /// Its threads.
    pub threads: u64,
}

impl Usage {
    /// Of the process with this id.
    pub fn of(pid: u32) -> Result<Self> {
        let cpu = cpu_of(pid, |_| true)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kibibytes = |field| parse_status(&status, field).map(|kib| kib * 1024).context(field);
        let (resident, anonymous) = (kibibytes("VmRSS:")?, kibibytes("RssAnon:")?);
        let threads = parse_status(&status, "Threads:").context("Threads")?;
        Ok(Self { cpu, resident, anonymous, threads })
    }
}

/// Time on a processor of the threads with these names.
pub fn cpu_of(pid: u32, is_meant: impl Fn(&str) -> bool) -> Result<Duration> {
    let mut cpu = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        let read = |file| read_of_thread(&task, file);
        let Some(name) = read("comm")? else { continue };
        if !is_meant(name.trim_end()) {
            continue;
        }
        let Some(text) = read("schedstat")? else { continue };
        cpu += parse_schedstat(&text).with_context(|| format!("schedstat: {text:?}"))?;
    }
    Ok(cpu)
}

/// A file about a thread; nothing where the thread has ended since it was listed.
pub fn read_of_thread(task: &Path, file: &str) -> Result<Option<String>> {
    let path = task.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        // It is gone before the file is opened, or between that and reading.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && !task.exists()
                || error.raw_os_error() == Some(libc::ESRCH) =>
        {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Time on a processor in nanoseconds, time waited for one, and how often (proc(5)).
fn parse_schedstat(text: &str) -> Option<Duration> {
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// A number, or a number of kibibytes.
fn parse_status(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let spent = parse_schedstat("1500000 20 7\n");
        assert_eq!(spent, Some(Duration::from_micros(1500)));
        let status = "VmHWM:\t 9 kB\nVmRSS:\t    5120 kB\nThreads:\t7\n";
        assert_eq!(parse_status(status, "VmRSS:"), Some(5120));
        assert_eq!(parse_status(status, "Threads:"), Some(7));
        assert_eq!(parse_status("VmHWM:\t 9 kB\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_used_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident >= usage.anonymous && usage.anonymous > 0, "{usage:?}");
        assert!(usage.threads > 0, "{usage:?}");
        assert_eq!(cpu_of(std::process::id(), |name| name == "nobody").unwrap(), Duration::ZERO);
        assert!(cpu_of(std::process::id(), |name| name != "nobody").unwrap() > Duration::ZERO);
    }

    #[test]
    fn threads_may_end_while_they_are_counted() {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::thread::scope(|scope| {
                        for _ in 0..8 {
                            scope.spawn(|| ());
                        }
                    });
                }
            });
            let counted = (0..2000).map(|_| cpu_of(std::process::id(), |_| true));
            let counted: Result<Vec<_>> = counted.collect();
            done.store(true, Ordering::Relaxed);
            assert!(counted.unwrap().iter().all(|cpu| !cpu.is_zero()));
        });
    }
}
