//! Log lines on standard error.

use std::io::IsTerminal;

use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::args::{Common, LogFormat};
use crate::exit::{Failure, Kind};

/// Starts logging as the user wants it.
pub fn start(args: &Common) -> Result<(), Failure> {
    let filter = filter(&args.log)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match args.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::new(Kind::Runtime, anyhow!("logging: {error}")))
}

fn filter(text: &str) -> Result<EnvFilter, Failure> {
    let refuse = |why: String| {
        let expected = "expected off, error, warn, info, debug or trace, alone or as MODULE=LEVEL, \
                        separated by commas";
        Failure::new(Kind::Usage, anyhow!("--log {text:?}: {why}; {expected}"))
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
            let failure = filter(text).unwrap_err();
            assert_eq!(failure.kind, Kind::Usage);
            assert!(failure.error.to_string().contains("expected off, error"), "{text}");
        }
    }
}
