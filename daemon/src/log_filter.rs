//! What is to be logged, as the user says it.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

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
