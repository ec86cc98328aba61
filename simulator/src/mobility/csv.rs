//! Our own CSV: `time_s,vehicle,x_m,y_m,speed_mps,heading_deg`, separated by commas.
//!
//! The first four columns are needed, in any order; speed and heading follow from two positions and
//! are not read. Lines of one vehicle are in order of time; those of several may mix.

use std::io::Read;

use super::Movement;
use super::error::MobilityErrorKind;
use super::table::Columns;

pub(super) fn read(file: impl Read) -> Result<Movement, MobilityErrorKind> {
    const COLUMNS: Columns =
        Columns { time: "time_s", vehicle: "vehicle", x: "x_m", y: "y_m", separator: b',' };
    COLUMNS.read(file)
}
