//! Where figures come from: without it they mean nothing to anybody else.

use std::fs;

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
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: load.split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}
