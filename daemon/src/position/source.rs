//! What `--position` takes.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use control_socket::position::Fix;

/// Who tells where the node is.
#[derive(Clone, Debug, PartialEq)]
pub enum PositionSource {
    /// The user: it stays there.
    Fixed(Fix),
    /// A gpsd.
    Gpsd {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A file with what a gpsd once said.
    File(PathBuf),
}

/// Where a gpsd listens unless it is told otherwise.
const GPSD: (&str, u16) = ("127.0.0.1", 2947);

/// The names of hosts are no longer (RFC 1035 §2.3.4).
const HOST_LEN_MAX: usize = 253;

impl FromStr for PositionSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(place) = text.strip_prefix("gpsd://") {
            return gpsd(place);
        }
        match text.strip_prefix("file:") {
            Some("") => Err("expected a file after file:".to_owned()),
            Some(path) => Ok(Self::File(path.into())),
            None => fixed(text).map(Self::Fixed),
        }
    }
}

impl fmt::Display for PositionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(_) => f.write_str("fixed"),
            Self::Gpsd { host, port } if host.contains(':') => write!(f, "gpsd://[{host}]:{port}"),
            Self::Gpsd { host, port } => write!(f, "gpsd://{host}:{port}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

fn gpsd(place: &str) -> Result<PositionSource, String> {
    let expected = || {
        "expected gpsd://HOST:PORT, such as gpsd://127.0.0.1:2947 or gpsd://[::1]:2947; without a \
         port 2947 is meant, and without a host this machine"
            .to_owned()
    };
    // An IPv6 address has colons of its own, and so stands in brackets.
    let (host, port) = match place.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, port))) if host.contains(':') => (host, port),
        Some(_) => return Err(expected()),
        None => {
            let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
            (if host.is_empty() { GPSD.0 } else { host }, port)
        }
    };
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    if host.len() > HOST_LEN_MAX || !host.chars().all(is_of_a_name) {
        return Err(expected());
    }
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(expected)?,
        None if port.is_empty() => GPSD.1,
        None => return Err(expected()),
    };
    Ok(PositionSource::Gpsd { host: host.to_owned(), port })
}

fn fixed(text: &str) -> Result<Fix, String> {
    let numbers: Option<Vec<f64>> =
        text.split(',').map(|number| number.trim().parse().ok()).collect();
    let (latitude_deg, longitude_deg, altitude_hae_m) = match numbers.as_deref() {
        Some([latitude, longitude]) => (*latitude, *longitude, None),
        Some([latitude, longitude, altitude]) => (*latitude, *longitude, Some(*altitude)),
        _ => {
            let text = "expected LAT,LON[,ALT] in degrees and metres, such as 48.1372,11.5761,519, \
                        or gpsd://HOST:PORT, or file:PATH";
            return Err(text.to_owned());
        }
    };
    let fix = Fix { latitude_deg, longitude_deg, altitude_hae_m, ..Fix::default() };
    super::tpv::possible(&fix).map(|()| fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<PositionSource>().map(|source| source.to_string())
    }

    #[test]
    fn a_place_is_degrees_and_metres() {
        let fixed = |text: &str| match text.parse() {
            Ok(PositionSource::Fixed(fix)) => {
                (fix.latitude_deg, fix.longitude_deg, fix.altitude_hae_m)
            }
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(fixed("48.1372,11.5761"), (48.1372, 11.5761, None));
        assert_eq!(fixed("-33.9, 151.2, -3.5"), (-33.9, 151.2, Some(-3.5)));
        assert_eq!(fixed("90,-180"), (90.0, -180.0, None));
        for bad in ["", "48", "48;11", "48,11,5,6", "48,east", "48,", "wlan0", "GPSD://a:1"] {
            assert!(read(bad).unwrap_err().contains("LAT,LON[,ALT]"), "{bad}");
        }
        for (bad, expected) in [
            ("90.1,0", "-90 to 90"),
            ("nan,0", "-90 to 90"),
            ("0,-180.5", "-180 to 180"),
            ("0,inf", "-180 to 180"),
            ("0,0,1e9", "altitude"),
        ] {
            assert!(read(bad).unwrap_err().contains(expected), "{bad}: {:?}", read(bad));
        }
    }

    #[test]
    fn a_gpsd_has_a_host_and_a_port_or_those_it_has_by_itself() {
        for (text, expected) in [
            ("gpsd://", "gpsd://127.0.0.1:2947"),
            ("gpsd://:3000", "gpsd://127.0.0.1:3000"),
            ("gpsd://gnss.local", "gpsd://gnss.local:2947"),
            ("gpsd://10.0.0.7:1", "gpsd://10.0.0.7:1"),
            ("gpsd://[::1]", "gpsd://[::1]:2947"),
            ("gpsd://[fe80::1%eth0]:7", "gpsd://[fe80::1%eth0]:7"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for bad in ["::1", "a:0", "a:65536", "a:", "a b", "[::1", "[]:1", "[a]:1", "a/b", "[::1]x"]
        {
            let bad = format!("gpsd://{bad}");
            assert!(read(&bad).unwrap_err().contains("gpsd://HOST:PORT"), "{bad}");
        }
    }

    #[test]
    fn a_file_has_a_path() {
        assert_eq!(read("file:/a/b.json").as_deref(), Ok("file:/a/b.json"));
        assert!(read("file:").unwrap_err().contains("a file"));
    }
}
