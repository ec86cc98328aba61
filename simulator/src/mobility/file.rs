//! Opens a movement file, finds out what it is, and reads it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::error::{MobilityError, MobilityErrorKind};
use super::geographic::{Suspicion, suspect};
use super::{Movement, csv, ns2, sumo_csv, sumo_xml};

/// Reads a movement file of any known kind, compressed or not.
///
/// # Errors
/// The file cannot be read, or is not as its kind should be: the error names file, line and what
/// was expected there. Its positions look like degrees.
pub fn read(path: &Path) -> Result<Movement, MobilityError> {
    let read = || {
        let movement = read_any(open(path)?)?;
        match suspect(&movement) {
            Some(Suspicion { at, speed }) => Err(MobilityErrorKind::Geographic { at, speed }),
            None => Ok(movement),
        }
    };
    read().map_err(|fault: MobilityErrorKind| fault.in_file(path))
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, MobilityErrorKind> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        _ => Box::new(file),
    })
}

fn read_any(mut file: Box<dyn BufRead>) -> Result<Movement, MobilityErrorKind> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD_LEN).read_to_end(&mut head)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let whole = std::io::Cursor::new(head).chain(file);
    match start.chars().next() {
        Some('<') => sumo_xml::read(whole),
        Some('$' | '#') => ns2::read(whole),
        Some(_) if start.lines().next().is_some_and(sumo_csv::is_header) => sumo_csv::read(whole),
        Some(_) => csv::read(whole),
        None => Err(MobilityErrorKind::Empty {
            expected: "CSV, SUMO floating-car data or ns-2 movement",
        }),
    }
}

/// Enough to see a header line.
const HEAD_LEN: u64 = 4096;
