//! A bar that shows how much of the simulated time has passed; on terminals only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The bar.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// For so much simulated time in all.
    pub(super) fn new(simulated: Duration) -> Self {
        // Hidden by itself where standard error is no terminal.
        let bar = ProgressBar::new(millis(simulated));
        let style = "{bar:40} {percent} %, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// So much more has passed.
    pub(super) fn pass(&self, span: Duration) {
        self.0.inc(millis(span));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
