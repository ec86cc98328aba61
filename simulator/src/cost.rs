//! What simulating cost: [`RunCost`]. It differs from run to run, and is kept apart from what was
//! measured.

use std::fs;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Time and memory a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RunCost {
    /// Processor time.
    pub cpu_s: f64,
    /// Time that passed meanwhile.
    pub wall_s: f64,
}

impl std::ops::AddAssign for RunCost {
    fn add_assign(&mut self, other: Self) {
        self.cpu_s += other.cpu_s;
        self.wall_s += other.wall_s;
    }
}

/// Measures the thread it is made and asked on.
#[derive(Debug)]
pub struct Meter {
    cpu: Option<Duration>,
    wall: Instant,
}

impl Meter {
    /// From now on.
    pub fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Since the start. Where processor time is not to be had, time that passed stands for it.
    pub fn stop(&self) -> RunCost {
        let wall = self.wall.elapsed();
        let cpu = self.cpu.and_then(|before| Some(cpu_time()?.saturating_sub(before)));
        // The kernel counts in ticks of some milliseconds; below, time that passed says more.
        let cpu = cpu.filter(|cpu| *cpu > TICKS).unwrap_or(wall);
        RunCost { cpu_s: cpu.as_secs_f64(), wall_s: wall.as_secs_f64() }
    }
}

const TICKS: Duration = Duration::from_millis(50);

/// Processor time of this thread: the first number of `schedstat`, in nanoseconds (proc(5)).
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The most memory this process ever had in use, in bytes: `VmHWM` (proc(5)).
pub fn peak_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
