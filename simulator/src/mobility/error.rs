//! Why a movement file cannot be used: [`MobilityError`].

use std::io;
use std::path::{Path, PathBuf};

use super::Point;

/// Why a movement file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MobilityError {
    /// It cannot be opened or read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it is not as it should be.
    #[error("{}:{line}: {found}; expected {expected}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What stands there.
        found: String,
        /// What should stand there.
        expected: String,
    },
    /// No vehicle in it.
    #[error("{}: no vehicle in it; expected {expected}", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// What makes a vehicle in a file of this kind.
        expected: &'static str,
    },
    /// Its positions are no metres.
    #[error(
        "{}: positions such as ({}, {}), and who moves does so by {speed:.6} a second: these look \
         like degrees of longitude and latitude; expected metres (from SUMO: without \
         --fcd-output.geo)",
        file.display(), at.x_m, at.y_m
    )]
    Geographic {
        /// The file.
        file: PathBuf,
        /// One of the positions.
        at: Point,
        /// How fast vehicles move that do, on average, a second.
        speed: f64,
    },
}

/// A complaint before the name of the file is added to it.
#[derive(Debug)]
pub(super) enum MobilityErrorKind {
    Read(io::Error),
    Malformed { line: u64, found: String, expected: String },
    Empty { expected: &'static str },
    Geographic { at: Point, speed: f64 },
}

impl MobilityErrorKind {
    pub(super) fn malformed(
        line: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Malformed { line, found: found.into(), expected: expected.into() }
    }

    pub(super) fn in_file(self, file: &Path) -> MobilityError {
        let file = file.to_owned();
        match self {
            Self::Read(source) => MobilityError::Read { file, source },
            Self::Malformed { line, found, expected } => {
                MobilityError::Malformed { file, line, found, expected }
            }
            Self::Empty { expected } => MobilityError::Empty { file, expected },
            Self::Geographic { at, speed } => MobilityError::Geographic { file, at, speed },
        }
    }
}

impl From<io::Error> for MobilityErrorKind {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}
