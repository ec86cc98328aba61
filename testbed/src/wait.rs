//! Waiting for something that others bring about.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Between two looks: short against anything worth waiting for, long against a look's own cost.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until there is something to see. Fails with `what` when there is nothing in time.
pub fn wait_until<T>(
    what: &str,
    timeout: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        if start.elapsed() > timeout {
            bail!("not within {timeout:?}: {what}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
