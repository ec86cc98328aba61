//! Log lines on standard error, through a [`LogSink`].

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Display};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

use crate::args::{Common, LogFormat};
use crate::exit::{self, Failure, FailureKind};
use crate::log_filter::filter;
use crate::sink::LogSink;

/// Logging under way. When it is dropped the last lines are written, in bounded time.
#[derive(Debug)]
pub struct Logging {
    sink: LogSink,
    level: LogLevel,
}

impl Logging {
    /// What is logged, to be changed.
    pub fn level(&self) -> LogLevel {
        self.level.clone()
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        self.sink.flush();
    }
}

/// Has something else logged.
pub type Replace = dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync;

/// What is logged. It can be changed while the daemon runs.
#[derive(Clone)]
pub struct LogLevel {
    current: Arc<Mutex<String>>,
    replace: Arc<Replace>,
}

impl LogLevel {
    /// This is logged; `replace` has something else logged.
    pub fn new(current: &str, replace: Arc<Replace>) -> Self {
        Self { current: Arc::new(Mutex::new(current.to_owned())), replace }
    }

    /// As `--log` takes it.
    pub fn current(&self) -> String {
        self.lock().clone()
    }

    /// Logs this from now on.
    ///
    /// # Errors
    /// Says what it has to look like.
    pub fn set(&self, text: &str) -> Result<(), String> {
        let filter = filter(text)?;
        let mut current = self.lock();
        (self.replace)(filter)?;
        *current = text.to_owned();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogLevel").field(&self.current()).finish()
    }
}

/// Starts logging as the user wants it.
pub fn start(args: &Common) -> Result<Logging, Failure> {
    let filter =
        filter(&args.log).map_err(|error| Failure::new(FailureKind::Usage, anyhow!(error)))?;
    let failed =
        |error: &dyn Display| Failure::new(FailureKind::Runtime, anyhow!("logging: {error}"));
    let sink =
        LogSink::start(std::io::stderr(), args.log_format).map_err(|error| failed(&error))?;
    end_on_panic(sink.clone());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(sink.clone())
        .with_ansi(std::io::stderr().is_terminal())
        // It would complain on the very descriptor that fails, with a macro that panics.
        .log_internal_errors(false);
    let (replace, started): (Arc<Replace>, _) = match args.log_format {
        LogFormat::Text => {
            let lines = lines.with_filter_reloading();
            let handle = lines.reload_handle();
            (Arc::new(move |to| handle.reload(to).map_err(|e| e.to_string())), lines.try_init())
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_filter_reloading();
            let handle = lines.reload_handle();
            (Arc::new(move |to| handle.reload(to).map_err(|e| e.to_string())), lines.try_init())
        }
    };
    started.map_err(|error| failed(&error))?;
    Ok(Logging { sink, level: LogLevel::new(&args.log, replace) })
}

/// A panic ends the process, on whatever thread it is, and in every build: a daemon that lost a
/// thread would look well. What waits for the log is written before, and what the panic says, also
/// with `--log off`. Not as the library does it: that waits for whoever reads the log, if need be
/// for ever.
fn end_on_panic(sink: LogSink) {
    std::panic::set_hook(Box::new(move |panic| {
        sink.flush();
        let thread = std::thread::current();
        let backtrace = Backtrace::capture();
        let mut said = format!("thread {} {panic}\n", thread.name().unwrap_or("without a name"));
        if backtrace.status() == BacktraceStatus::Captured {
            said += &backtrace.to_string();
        }
        exit::say(&said);
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_can_be_changed_to_what_can_be_logged() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let level = LogLevel::new(
            "info",
            Arc::new(move |to| {
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(to.to_string());
                Ok(())
            }),
        );
        assert_eq!(level.set("warn,node_lib=debug"), Ok(()));
        assert!(level.set("loud").unwrap_err().contains("expected off, error"));
        assert_eq!(level.current(), "warn,node_lib=debug");
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(seen.len(), 1, "{seen:?}");
    }

    #[test]
    fn takes_levels_and_levels_of_modules() {
        for text in ["info", "off", "warn,node_lib=debug", "obu=trace", "DEBUG"] {
            filter(text).unwrap();
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "verbose", "info,", "node_lib=loud", "info,,warn", "a=b=c"] {
            let error = filter(text).unwrap_err();
            assert!(error.contains("expected off, error"), "{text}");
        }
    }
}
