//! The only place where a daemon reads the time.

use std::time::Duration;

use crate::device;
use crate::time::Timestamp;

/// Time since the process started. It never jumps, and goes on while the machine sleeps
/// (`CLOCK_BOOTTIME`): after waking up, neighbours have been silent for as long as they were.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Duration,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: device::boottime() }
    }

    /// Time since the start.
    pub fn now(&self) -> Timestamp {
        Timestamp::ZERO + device::boottime().saturating_sub(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes() {
        let clock = Clock::start();
        let before = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.now() - before >= Duration::from_millis(2));
    }
}
