//! What is wrong with a scenario: [`ScenarioError`].

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::mobility::MobilityError;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioProblem {
    /// Line of the file, from 1; `None` for what came from the command line.
    pub line: Option<usize>,
    /// The field, such as `rsu.0.lan`; empty for the whole file.
    pub field: String,
    /// What stands there and what was expected.
    pub what: String,
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it says cannot be.
    #[error("{}", Listed(file, problems))]
    Wrong {
        /// The file, or what was typed.
        file: String,
        /// All that was found.
        problems: Vec<ScenarioProblem>,
    },
    /// Its file of movements cannot be used.
    #[error(transparent)]
    Mobility(#[from] MobilityError),
}

struct Listed<'a>(&'a str, &'a [ScenarioProblem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(file, problems) = self;
        for (index, ScenarioProblem { line, field, what }) in problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            f.write_str(file)?;
            if let Some(line) = line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
            if !field.is_empty() {
                write!(f, "{field}: ")?;
            }
            f.write_str(what)?;
        }
        Ok(())
    }
}
