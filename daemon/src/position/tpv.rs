//! One line of gpsd: [`parse`].
//!
//! gpsd_json(5) describes them: each line is a JSON object with a `class`. Where the receiver is
//! stands in those of class `TPV` (time, position, velocity), of which we read:
//!
//! | field | meaning |
//! |---|---|
//! | `mode` | 0: not known yet, 1: no fix, 2: 2D, 3: 3D; always there |
//! | `device` | the receiver; one gpsd may have several |
//! | `time` | when, ISO 8601, UTC |
//! | `lat`, `lon` | degrees, north and east positive |
//! | `altHAE`, `altMSL` | metres above the ellipsoid, and above mean sea level |
//! | `speed`, `track` | metres per second, degrees from true north |
//! | `eph` | estimated horizontal error, metres |
//!
//! A field that is not known is absent. `alt`, which older ones have, is deprecated there because
//! nobody can tell above what it is: it is not read.

use std::time::UNIX_EPOCH;

use control_socket::position::Fix;
use serde::Deserialize;

/// A report of time, position and velocity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tpv {
    /// The receiver.
    pub(super) device: Option<String>,
    /// When, as the receiver says.
    pub(super) at_unix_ms: Option<u64>,
    pub(super) says: Says,
}

/// What a report says of the position.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Says {
    /// The receiver has none.
    NoFix,
    /// Here it is.
    Fix(Fix),
    /// Nothing: there is a fix, and its position is in another report.
    Nothing,
}

#[derive(Deserialize)]
struct Class {
    class: String,
}

#[derive(Deserialize)]
struct Fields {
    mode: u8,
    device: Option<String>,
    time: Option<String>,
    lat: Option<f64>,
    lon: Option<f64>,
    #[serde(rename = "altHAE")]
    altitude_hae: Option<f64>,
    #[serde(rename = "altMSL")]
    altitude_msl: Option<f64>,
    speed: Option<f64>,
    track: Option<f64>,
    eph: Option<f64>,
}

/// Reads a line. `None`: it is of another class. The error says why it cannot be one of gpsd.
pub(super) fn parse(line: &[u8]) -> Result<Option<Tpv>, String> {
    let Class { class } = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if class != "TPV" {
        return Ok(None);
    }
    let fields: Fields = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let at_unix_ms = fields.time.as_deref().map(unix_ms).transpose()?;
    let position = fields.lat.zip(fields.lon);
    let says = match (fields.mode, position) {
        (0 | 1, _) => Says::NoFix,
        (2 | 3, None) => Says::Nothing,
        (mode @ (2 | 3), Some((latitude_deg, longitude_deg))) => {
            // In a 2D fix the altitude is assumed and not measured.
            let measured = |altitude: Option<f64>| altitude.filter(|_| mode == 3);
            let fix = Fix {
                latitude_deg,
                longitude_deg,
                altitude_hae_m: measured(fields.altitude_hae),
                altitude_msl_m: measured(fields.altitude_msl),
                speed_mps: fields.speed,
                track_deg: fields.track,
                accuracy_m: fields.eph,
                at_unix_ms,
            };
            possible(&fix)?;
            Says::Fix(fix)
        }
        (mode, _) => return Err(format!("mode {mode}: expected 0 to 3")),
    };
    Ok(Some(Tpv { device: fields.device, at_unix_ms, says }))
}

fn unix_ms(time: &str) -> Result<u64, String> {
    let expected = || "time: expected such as 2026-11-25T09:00:00.000Z".to_owned();
    let at = humantime::parse_rfc3339(time).map_err(|_| expected())?;
    let since = at.duration_since(UNIX_EPOCH).map_err(|_| expected())?;
    u64::try_from(since.as_millis()).map_err(|_| expected())
}

/// Whether all of it can be. The error names what cannot.
pub(super) fn possible(fix: &Fix) -> Result<(), String> {
    // Nothing on the ground is higher or lower, nothing that drives is faster; the track is
    // sometimes given as 360.
    for (what, value, least, most) in [
        ("latitude", Some(fix.latitude_deg), -90.0, 90.0),
        ("longitude", Some(fix.longitude_deg), -180.0, 180.0),
        ("altitude", fix.altitude_hae_m, -20_000.0, 100_000.0),
        ("altitude", fix.altitude_msl_m, -20_000.0, 100_000.0),
        ("speed", fix.speed_mps, 0.0, 10_000.0),
        ("track", fix.track_deg, 0.0, 360.0),
        ("eph", fix.accuracy_m, 0.0, 1e8),
    ] {
        if let Some(value) = value
            && !(least..=most).contains(&value)
        {
            return Err(format!("{what} {value}: expected {least} to {most}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(line: &str) -> Says {
        parse(line.as_bytes()).unwrap().unwrap().says
    }

    #[test]
    fn a_report_is_read_whole() {
        let line = concat!(
            r#"{"class":"TPV","device":"/dev/ttyACM0","mode":3,"time":"2026-11-25T09:00:00.250Z","#,
            r#""ept":0.005,"lat":48.137154,"lon":-11.576124,"altHAE":566.2,"altMSL":519.1,"#,
            r#""alt":519.1,"speed":13.9,"track":87.25,"eph":3.2,"later":[1]}"#
        );
        let fix = Fix {
            latitude_deg: 48.137_154,
            longitude_deg: -11.576_124,
            altitude_hae_m: Some(566.2),
            altitude_msl_m: Some(519.1),
            speed_mps: Some(13.9),
            track_deg: Some(87.25),
            accuracy_m: Some(3.2),
            at_unix_ms: Some(1_795_597_200_250),
        };
        let expected = Tpv {
            device: Some("/dev/ttyACM0".to_owned()),
            at_unix_ms: Some(1_795_597_200_250),
            says: Says::Fix(fix),
        };
        assert_eq!(parse(line.as_bytes()), Ok(Some(expected)));
        assert_eq!(parse(format!("{line}\r").as_bytes()).unwrap().unwrap().says, says(line));
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        for mode in [0, 1] {
            let line = format!(r#"{{"class":"TPV","mode":{mode},"lat":0.0,"lon":0.0}}"#);
            assert_eq!(says(&line), Says::NoFix, "an old position beside mode {mode} is none");
        }
        assert_eq!(says(r#"{"class":"TPV","mode":3,"lat":48.1}"#), Says::Nothing);
        let flat = r#"{"class":"TPV","mode":2,"lat":1,"lon":2,"altHAE":9.0,"altMSL":9.0}"#;
        let (latitude_deg, longitude_deg) = (1.0, 2.0);
        assert_eq!(says(flat), Says::Fix(Fix { latitude_deg, longitude_deg, ..Fix::default() }));
    }

    #[test]
    fn other_classes_are_passed_over_whatever_they_hold() {
        for line in [
            r#"{"class":"VERSION","release":"3.25","proto_major":3}"#,
            r#"{"class":"SKY","mode":"x","lat":"y"}"#,
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(None), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_was_expected() {
        for (line, expected) in [
            ("", "EOF"),
            ("hello", "expected value"),
            ("[]", "invalid length"),
            (r#"{"mode":3}"#, "class"),
            (r#"{"class":"TPV"}"#, "mode"),
            (r#"{"class":"TPV","mode":4}"#, "0 to 3"),
            (r#"{"class":"TPV","mode":3,"lat":91,"lon":0}"#, "-90 to 90"),
            (r#"{"class":"TPV","mode":3,"lat":0,"lon":180.1}"#, "-180 to 180"),
            (r#"{"class":"TPV","mode":3,"lat":"48","lon":0}"#, "f64"),
            (r#"{"class":"TPV","mode":3,"lat":nan,"lon":0}"#, "expected"),
            (r#"{"class":"TPV","mode":3,"lat":1e999,"lon":0}"#, "out of range"),
            (r#"{"class":"TPV","mode":3,"lat":0,"lon":0,"speed":-1}"#, "speed"),
            (r#"{"class":"TPV","mode":3,"lat":0,"lon":0,"track":361}"#, "track"),
            (r#"{"class":"TPV","mode":3,"lat":0,"lon":0,"eph":-0.5}"#, "eph"),
            (r#"{"class":"TPV","mode":3,"time":"yesterday"}"#, "2026-"),
            (r#"{"class":"TPV","mode":3,"time":"1969-12-31T23:59:59Z"}"#, "2026-"),
        ] {
            let error = parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn no_line_makes_it_panic() {
        let good =
            r#"{"class":"TPV","mode":3,"time":"2026-11-25T09:00:00Z","lat":48.1,"lon":11.5}"#;
        for at in 0..good.len() {
            for byte in [0, b'"', b'{', b'9', b'-', b'e', 0xff] {
                let mut line = good.as_bytes().to_vec();
                line[at] = byte;
                let _ = parse(&line);
                let _ = parse(&line[..at]);
            }
        }
    }
}
