//! Where the HTTP endpoint listens.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Where the endpoint listens: `PORT`, on this machine only, or `ADDR:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpAddress(pub SocketAddr);

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(port) = text.parse() {
            return Ok(Self((Ipv4Addr::LOCALHOST, port).into()));
        }
        let expected =
            "expected a port such as 8080, or an address with one: 127.0.0.1:8080, [::1]:8080";
        text.parse().map(Self).map_err(|_| expected.to_owned())
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_this_machine_only() {
        let read = |text: &str| text.parse::<HttpAddress>().map(|address| address.to_string());
        assert_eq!(read("8080"), Ok("127.0.0.1:8080".to_owned()));
        assert_eq!(read("[::1]:8080"), Ok("[::1]:8080".to_owned()));
        assert_eq!(read("10.0.0.7:80"), Ok("10.0.0.7:80".to_owned()));
        for bad in ["", "on", "localhost:80", "70000", "10.0.0.7", "::1:", "http://127.0.0.1:80"] {
            assert!(read(bad).unwrap_err().contains("127.0.0.1:8080"), "{bad}");
        }
    }
}
