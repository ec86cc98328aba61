//! SIGINT (Ctrl-C) and SIGTERM: the first one ends a campaign with the runs that are finished, the
//! second one the program.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What is asked for by signal.
pub(super) struct Stop {
    is_asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// From now on signals end campaigns.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn on_signals() -> io::Result<Self> {
        let stop = Self { is_asked: Arc::default(), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order: the shutdown sees the flag as the signal before left it.
            flag::register_conditional_shutdown(
                signal,
                AFTER_SIGNAL + signal,
                stop.is_asked.clone(),
            )?;
            flag::register(signal, stop.is_asked.clone())?;
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, stop.signal.clone(), number)?;
        }
        Ok(stop)
    }

    /// Becomes true with the first signal.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.is_asked.clone()
    }

    /// The exit code that says which signal it was; none if there was none.
    pub(super) fn exit_code(&self) -> Option<ExitCode> {
        let signal = self.signal.load(Ordering::Relaxed);
        let code = || u8::try_from(signal).ok()?.checked_add(u8::try_from(AFTER_SIGNAL).ok()?);
        (signal > 0).then(|| ExitCode::from(code().unwrap_or(super::UNUSABLE)))
    }
}

/// Shells say 128 and the number of the signal of a program that a signal ended (POSIX.1-2017,
/// XCU 2.8.2).
const AFTER_SIGNAL: i32 = 128;
