//! Log lines on standard error, through a [`Sink`].

use std::fmt::Display;
use std::io::IsTerminal;

use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::args::{Common, LogFormat};
use crate::exit::{Failure, Kind};
use crate::sink::Sink;

/// Logging under way. When it is dropped the last lines are written, in bounded time.
#[derive(Debug)]
pub struct Logging(Sink);

impl Drop for Logging {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Starts logging as the user wants it.
pub fn start(args: &Common) -> Result<Logging, Failure> {
    let filter = filter(&args.log).map_err(|error| Failure::new(Kind::Usage, anyhow!(error)))?;
    let failed = |error: &dyn Display| Failure::new(Kind::Runtime, anyhow!("logging: {error}"));
    let sink = Sink::start(std::io::stderr(), args.log_format).map_err(|error| failed(&error))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(sink.clone())
        .with_ansi(std::io::stderr().is_terminal())
        // It would complain on the very descriptor that fails, with a macro that panics.
        .log_internal_errors(false);
    let started = match args.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| failed(&error))?;
    Ok(Logging(sink))
}

/// What is to be logged; an error says what it has to look like.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, String> {
    let refuse = |why: String| {
        let expected = "expected off, error, warn, info, debug or trace, alone or as MODULE=LEVEL, \
                        separated by commas";
        format!("{why}; {expected}")
    };
    // Taken alone, an unknown word would be a module, and silence everything else.
    for part in text.split(',').filter(|part| !part.contains(['=', '['])) {
        // The parser takes an empty word for "error".
        if part.trim().is_empty() || part.trim().parse::<LevelFilter>().is_err() {
            return Err(refuse(format!("{part:?} is not a level")));
        }
    }
    EnvFilter::builder().parse(text).map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
