//! Where the sender of a heartbeat is: the optional end of a
//! [heartbeat](super::heartbeat#where-the-sender-is).
//!
//! Coordinates are whole numbers, so there is nothing on the air that is not a number. A value that
//! is no place on Earth is refused where it enters, from the air and from a receiver alike.

use crate::messages::{Kind, ParseError};

/// Bytes that a position makes a heartbeat longer.
pub const LEN: usize = 12;

/// A fix is used, told on and shown for so long. Receivers report once a second: five reports have
/// failed to come. At 50 m/s a vehicle is then 250 m away, about as far as its radio reaches in a
/// town.
pub const AGE_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// [`AGE_MAX`] in the unit of the field.
pub const AGE_MS_MAX: u16 = 5000;

const _: () = assert!(AGE_MAX.as_millis() == AGE_MS_MAX as u128);

/// In units of the fields: 10⁷ to a degree, about 11 mm.
const PER_DEGREE: f64 = 1e7;
const LATITUDE_E7_MAX: u32 = 900_000_000;
const LONGITUDE_E7_MAX: u32 = 1_800_000_000;

/// How far off it may be is not known.
const ACCURACY_UNKNOWN: u16 = u16::MAX;

layout! {
    struct Wire: LEN {
        0 latitude_e7: 4,
        4 longitude_e7: 4,
        8 accuracy_dm: 2,
        10 age_ms: 2,
    }
}

/// A place on Earth (WGS 84), and how far off it may be. There is none that is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coordinates {
    latitude_e7: i32,
    longitude_e7: i32,
    accuracy_dm: Option<u16>,
}

impl Coordinates {
    /// The place with these degrees; `None` if there is none. The accuracy, in metres, is left out
    /// if it is no length, and saturates at 6553.4 m.
    pub fn new(latitude_deg: f64, longitude_deg: f64, accuracy_m: Option<f64>) -> Option<Self> {
        let is_place =
            (-90.0..=90.0).contains(&latitude_deg) && (-180.0..=180.0).contains(&longitude_deg);
        if !is_place {
            return None;
        }
        let accuracy = accuracy_m.filter(|metres| metres.is_finite() && *metres >= 0.0);
        let most = f64::from(ACCURACY_UNKNOWN - 1);
        Some(Self {
            // In range, as was just seen.
            latitude_e7: (latitude_deg * PER_DEGREE).round() as i32,
            longitude_e7: (longitude_deg * PER_DEGREE).round() as i32,
            accuracy_dm: accuracy.map(|metres| (metres * 10.0).round().min(most) as u16),
        })
    }

    /// The place with these 10⁻⁷ degrees and 0.1 metres; `None` if there is none.
    pub fn from_units(
        latitude_e7: i32,
        longitude_e7: i32,
        accuracy_dm: Option<u16>,
    ) -> Option<Self> {
        let is_place = latitude_e7.unsigned_abs() <= LATITUDE_E7_MAX
            && longitude_e7.unsigned_abs() <= LONGITUDE_E7_MAX
            && accuracy_dm != Some(ACCURACY_UNKNOWN);
        is_place.then_some(Self { latitude_e7, longitude_e7, accuracy_dm })
    }

    /// In 10⁻⁷ degrees, north is positive.
    pub const fn latitude_e7(&self) -> i32 {
        self.latitude_e7
    }

    /// In 10⁻⁷ degrees, east is positive.
    pub const fn longitude_e7(&self) -> i32 {
        self.longitude_e7
    }

    /// How far off it may be, in 0.1 metres, if that is known.
    pub const fn accuracy_dm(&self) -> Option<u16> {
        self.accuracy_dm
    }

    /// In degrees, north is positive.
    pub fn latitude_deg(&self) -> f64 {
        f64::from(self.latitude_e7) / PER_DEGREE
    }

    /// In degrees, east is positive.
    pub fn longitude_deg(&self) -> f64 {
        f64::from(self.longitude_e7) / PER_DEGREE
    }

    /// How far off it may be, in metres, if that is known.
    pub fn accuracy_m(&self) -> Option<f64> {
        self.accuracy_dm.map(|dm| f64::from(dm) / 10.0)
    }
}

/// Where the sender was, and how long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The place.
    pub at: Coordinates,
    /// So long before it was said, at most [`AGE_MS_MAX`].
    pub age_ms: u16,
}

impl Position {
    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            latitude_e7: self.at.latitude_e7.to_be_bytes(),
            longitude_e7: self.at.longitude_e7.to_be_bytes(),
            accuracy_dm: self.at.accuracy_dm.unwrap_or(ACCURACY_UNKNOWN).to_be_bytes(),
            age_ms: self.age_ms.to_be_bytes(),
        }
    }

    #[inline]
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        self.wire().append(out);
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        self.wire().push_parts(parts);
    }

    /// Reads the end of a message of this kind, all of it.
    pub(super) fn read(kind: Kind, bytes: &[u8; LEN]) -> Result<Self, ParseError> {
        let Some((wire, [])) = Wire::read(bytes) else {
            return Err(ParseError::Truncated {
                message: kind.name(),
                need: LEN,
                have: bytes.len(),
            });
        };
        let Wire { latitude_e7, longitude_e7, accuracy_dm, age_ms } = wire;
        let latitude_e7 = i32::from_be_bytes(latitude_e7);
        let longitude_e7 = i32::from_be_bytes(longitude_e7);
        let accuracy_dm = Some(u16::from_be_bytes(accuracy_dm)).filter(|dm| *dm < ACCURACY_UNKNOWN);
        let Some(at) = Coordinates::from_units(latitude_e7, longitude_e7, accuracy_dm) else {
            let latitude = latitude_e7.unsigned_abs();
            return Err(if latitude > LATITUDE_E7_MAX {
                kind.value("latitude_e7", "at most 900000000 either way", latitude)
            } else {
                let longitude = longitude_e7.unsigned_abs();
                kind.value("longitude_e7", "at most 1800000000 either way", longitude)
            });
        };
        match u16::from_be_bytes(age_ms) {
            age_ms @ 0..=AGE_MS_MAX => Ok(Self { at, age_ms }),
            have => Err(kind.value("age_ms", "at most 5000", have.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: [u8; LEN]) -> Result<Position, String> {
        Position::read(Kind::Heartbeat, &bytes).map_err(|error| error.to_string())
    }

    fn units(latitude: i32, longitude: i32, accuracy: u16, age: u16) -> [u8; LEN] {
        let bytes = [
            &latitude.to_be_bytes()[..],
            &longitude.to_be_bytes(),
            &accuracy.to_be_bytes(),
            &age.to_be_bytes(),
        ];
        bytes.concat().try_into().unwrap()
    }

    #[test]
    fn a_place_is_on_earth() {
        for bad in [
            (f64::NAN, 0.0),
            (0.0, f64::NAN),
            (f64::INFINITY, 0.0),
            (0.0, f64::NEG_INFINITY),
            (90.000_001, 0.0),
            (-90.1, 0.0),
            (0.0, 180.1),
            (0.0, -180.000_001),
        ] {
            assert_eq!(Coordinates::new(bad.0, bad.1, None), None, "{bad:?}");
        }
        let at = Coordinates::new(-90.0, 180.0, None).unwrap();
        assert_eq!((at.latitude_e7(), at.longitude_e7()), (-900_000_000, 1_800_000_000));
        let at = Coordinates::new(48.137_2, -11.576_1, Some(2.46)).unwrap();
        assert_eq!((at.latitude_e7(), at.longitude_e7()), (481_372_000, -115_761_000));
        assert_eq!((at.latitude_deg(), at.longitude_deg()), (48.137_2, -11.576_1));
        assert_eq!(at.accuracy_m(), Some(2.5));
        let at = Coordinates::new(0.000_000_99, -0.000_000_99, None).unwrap();
        assert_eq!((at.latitude_e7(), at.longitude_e7()), (10, -10), "rounded");
    }

    #[test]
    fn an_accuracy_that_is_no_length_is_none_and_a_large_one_saturates() {
        let accuracy =
            |metres| Coordinates::new(0.0, 0.0, Some(metres)).and_then(|at| at.accuracy_dm());
        for bad in [f64::NAN, f64::INFINITY, -0.1] {
            assert_eq!(accuracy(bad), None, "{bad}");
        }
        assert_eq!(accuracy(0.0), Some(0));
        assert_eq!(accuracy(6553.4), Some(65_534));
        assert_eq!(accuracy(1e9), Some(65_534));
    }

    #[test]
    fn a_position_reads_as_it_was_written_and_no_farther_than_the_poles() {
        for (latitude, longitude, accuracy, age) in [
            (0, 0, 0, 0),
            (900_000_000, 1_800_000_000, 65_534, 5000),
            (-900_000_000, -1_800_000_000, 65_535, 1),
        ] {
            let bytes = units(latitude, longitude, accuracy, age);
            let position = read(bytes).unwrap();
            assert_eq!(position.at.accuracy_dm(), Some(accuracy).filter(|dm| *dm < 65_535));
            let mut out = Vec::new();
            position.emit(&mut out);
            assert_eq!(out, bytes);
        }
        for (bytes, expected) in [
            (units(900_000_001, 0, 0, 0), "latitude_e7 900000001"),
            (units(-900_000_001, 0, 0, 0), "latitude_e7 900000001"),
            (units(i32::MIN, i32::MIN, 0, 0), "latitude_e7 2147483648"),
            (units(0, 1_800_000_001, 0, 0), "longitude_e7 1800000001"),
            (units(0, i32::MIN, 0, 0), "longitude_e7 2147483648"),
            (units(0, 0, 0, 5001), "age_ms 5001"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.starts_with("Heartbeat: ") && error.contains(expected), "{error}");
        }
    }
}
