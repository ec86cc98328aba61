//! Times as people write them: [`Span`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use node_lib::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A span of time, written as a number and a unit, or several: `"250us"`, `"1.5s"`, `"1h30min"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The time so long after the beginning.
    pub fn after_start(self) -> Timestamp {
        Timestamp::ZERO + self.0
    }
}

/// What a time looks like, for messages.
pub const EXPECTED: &str =
    "a time with its unit, such as \"100ms\", \"1.5s\", \"2min\" or \"1h30min\"";

/// In seconds. Either sign for micro is fine: keyboards and editors make different ones.
const UNITS: [(&str, f64); 7] = [
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
];

/// The text is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\"; expected {EXPECTED}")]
pub struct ParseSpanError(String);

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (mut sum, mut rest) = (Duration::ZERO, text.trim());
            loop {
                let (part, after) = first_part(rest)?;
                sum = sum.checked_add(part)?;
                rest = after.trim_start();
                if rest.is_empty() {
                    return Some(sum);
                }
            }
        };
        read().map(Self).ok_or_else(|| ParseSpanError(text.to_owned()))
    }
}

/// The first number with its unit, and what follows.
fn first_part(text: &str) -> Option<(Duration, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let end = rest.find(|letter: char| !letter.is_alphabetic()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
    let micros = (number.parse::<f64>().ok()? * unit * 1e6).round();
    // Whole microseconds, as the simulator counts; and below 2^53, where they are exact.
    let span = Duration::try_from_secs_f64(micros / 1e6).ok()?;
    let whole = u64::try_from(span.as_nanos().saturating_add(500) / 1000).ok()?;
    (micros < 9e15).then_some((Duration::from_micros(whole), rest))
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            0 => f.write_str("0s"),
            _ if micros.is_multiple_of(1_000_000) => write!(f, "{}s", micros / 1_000_000),
            _ if micros.is_multiple_of(1000) && micros < 1_000_000 => {
                write!(f, "{}ms", micros / 1000)
            }
            _ if micros < 1_000_000 => write!(f, "{micros}us"),
            _ => write!(f, "{}s", self.0.as_secs_f64()),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_times() {
        for (text, micros, shown) in [
            ("250us", 250, "250us"),
            ("100ms", 100_000, "100ms"),
            ("1.5s", 1_500_000, "1.5s"),
            ("2 min", 120_000_000, "120s"),
            ("0s", 0, "0s"),
            ("0.1ms", 100, "100us"),
            ("1h", 3_600_000_000, "3600s"),
            ("1.5h", 5_400_000_000, "5400s"),
            ("1h30min", 5_400_000_000, "5400s"),
            ("1min 30.5s", 90_500_000, "90.5s"),
            ("250µs", 250, "250us"),
            ("250\u{3bc}s", 250, "250us"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0.as_micros(), micros, "{text}");
            assert_eq!(span.to_string(), shown);
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in
            ["", "5", "ms", "-1s", "1m", "1h30", "1h min", "1 h 5", "nans", "infs", "1e300s"]
        {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert_eq!(error, format!("\"{text}\"; expected {EXPECTED}"));
        }
    }
}
