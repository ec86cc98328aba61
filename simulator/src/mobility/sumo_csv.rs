//! Floating-car data of Eclipse SUMO as CSV (`--fcd-output file.csv`, SUMO 1.21 and later).
//!
//! A header line such as `timestep_time;vehicle_id;vehicle_x;vehicle_y;vehicle_angle;…` and one
//! line per vehicle and time step. Which columns there are, and in which order, is for the user of
//! SUMO to say; time, id, x and y must be among them. A separator chosen with
//! `--output.column-separator` is found in the header.

use std::io::{BufRead as _, BufReader, Read};

use super::Movement;
use super::error::MobilityErrorKind;
use super::table::Columns;

const TIME: &str = "timestep_time";

/// Is this the header of such a file?
pub(super) fn is_header(line: &str) -> bool {
    line.contains(TIME) || line.contains("vehicle_id")
}

pub(super) fn read(file: impl Read) -> Result<Movement, MobilityErrorKind> {
    let mut file = BufReader::new(file);
    let mut header = Vec::new();
    file.read_until(b'\n', &mut header)?;
    let separator = [b';', b',', b'\t'].into_iter().find(|one| header.contains(one));
    let columns = Columns {
        time: TIME,
        vehicle: "vehicle_id",
        x: "vehicle_x",
        y: "vehicle_y",
        separator: separator.unwrap_or(b';'),
    };
    columns.read(std::io::Cursor::new(header).chain(file))
}
