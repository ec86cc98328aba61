//! Positions in a table with a header line: what our CSV and SUMO's have in common.

use std::io::Read;

use csv::{ReaderBuilder, StringRecord};

use super::error::MobilityErrorKind;
use super::{Movement, Point, Recorder, Waypoint, metres, seconds};

/// Names of the columns that are read; others may stand between them.
pub(super) struct Columns {
    pub(super) time: &'static str,
    pub(super) vehicle: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) separator: u8,
}

impl Columns {
    fn names(&self) -> [&'static str; 4] {
        [self.time, self.vehicle, self.x, self.y]
    }

    pub(super) fn read(&self, file: impl Read) -> Result<Movement, MobilityErrorKind> {
        let mut reader = ReaderBuilder::new().delimiter(self.separator).from_reader(file);
        let header = reader.headers().map_err(|error| table_error(&error))?.clone();
        let place = |name: &str| {
            let here = |column: &str| column.trim_start_matches('\u{feff}').trim() == name;
            header.iter().position(here).ok_or_else(|| {
                let found = format!("no column {name}");
                MobilityErrorKind::malformed(
                    1,
                    found,
                    format!("the columns {}", self.names().join(", ")),
                )
            })
        };
        let (time, vehicle, x, y) =
            (place(self.time)?, place(self.vehicle)?, place(self.x)?, place(self.y)?);
        let mut recorder = Recorder::default();
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(|error| table_error(&error))? {
            let line = record.position().map_or(0, csv::Position::line);
            let text = |column: usize| record.get(column).unwrap_or_default();
            let wrong = |name: &str, column: usize, expected: &str| {
                MobilityErrorKind::malformed(line, format!("{name} \"{}\"", text(column)), expected)
            };
            // SUMO writes a line without a vehicle for a time at which there is none.
            if text(vehicle).is_empty() && text(x).is_empty() && text(y).is_empty() {
                continue;
            }
            let when =
                seconds(text(time)).ok_or_else(|| wrong(self.time, time, "seconds, 0 or more"))?;
            let at = |name: &str, column: usize| {
                metres(text(column)).ok_or_else(|| wrong(name, column, "metres, a number"))
            };
            if text(vehicle).is_empty() {
                return Err(wrong(self.vehicle, vehicle, "the name of a vehicle"));
            }
            let waypoint = Waypoint { time: when, at: Point::new(at(self.x, x)?, at(self.y, y)?) };
            recorder
                .add(text(vehicle), waypoint)
                .map_err(|before| wrong(self.time, time, &later_than(text(vehicle), before)))?;
        }
        let movement = recorder.finish();
        if movement.vehicles.is_empty() {
            return Err(MobilityErrorKind::Empty {
                expected: "at least one line after the header",
            });
        }
        Ok(movement)
    }
}

pub(super) fn later_than(vehicle: &str, before: node_lib::Timestamp) -> String {
    format!("a time after {before}, where vehicle {vehicle} was before")
}

fn table_error(error: &csv::Error) -> MobilityErrorKind {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::Io(error) => {
            MobilityErrorKind::Read(std::io::Error::new(error.kind(), error.to_string()))
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let expected = format!("{expected_len} as in the header");
            MobilityErrorKind::malformed(line, format!("{len} columns"), expected)
        }
        csv::ErrorKind::Utf8 { .. } => {
            MobilityErrorKind::malformed(line, "bytes that are no UTF-8", "text")
        }
        _ => MobilityErrorKind::malformed(line, error.to_string(), "a line of a table"),
    }
}
