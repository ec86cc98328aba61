//! [`TapAddress`]: an address as the user writes it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// An address for the TAP: `ADDR[/PREFIX]`, by default /24 for IPv4 and /64 for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapAddress {
    /// The address.
    pub ip: IpAddr,
    /// Length of the network prefix.
    pub prefix: u8,
}

/// The text is not an address an interface can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not an interface address ({why}); expected ADDR[/PREFIX] such as 10.0.0.1/24 or \
     fd00::1/64"
)]
pub struct ParseTapAddressError {
    text: String,
    why: &'static str,
}

impl FromStr for TapAddress {
    type Err = ParseTapAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |why| ParseTapAddressError { text: text.to_owned(), why };
        let (ip, prefix) = match text.split_once('/') {
            Some((ip, prefix)) => (ip, Some(prefix)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| error("no IPv4 or IPv6 address"))?;
        let (default, max) = if ip.is_ipv4() { (24, 32) } else { (64, 128) };
        let prefix = match prefix {
            None => default,
            Some(prefix) => match prefix.parse() {
                Ok(prefix) if (1..=max).contains(&prefix) => prefix,
                _ if ip.is_ipv4() => return Err(error("the prefix is not 1 to 32")),
                _ => return Err(error("the prefix is not 1 to 128")),
            },
        };
        if ip.is_unspecified() {
            return Err(error("it is the unspecified address"));
        }
        if ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return Err(error("it is a group address"));
        }
        if ip.is_loopback() {
            return Err(error("it is a loopback address"));
        }
        // A network of one or two addresses has neither (RFC 3021).
        if let IpAddr::V4(v4) = ip
            && prefix < 31
        {
            let hosts = u32::MAX >> prefix;
            if v4.to_bits() & hosts == 0 {
                return Err(error("it is the address of the network itself"));
            }
            if v4.to_bits() & hosts == hosts {
                return Err(error("it is the broadcast address of its network"));
            }
        }
        Ok(Self { ip, prefix })
    }
}

impl fmt::Display for TapAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_the_usual_prefix() {
        for (text, full) in [
            ("10.1.2.3", "10.1.2.3/24"),
            ("10.1.2.3/8", "10.1.2.3/8"),
            ("fd00::1", "fd00::1/64"),
            ("10.0.0.255/16", "10.0.0.255/16"),
            ("10.0.0.0/31", "10.0.0.0/31"),
            ("10.0.0.255/32", "10.0.0.255/32"),
            ("fd00::1/128", "fd00::1/128"),
        ] {
            assert_eq!(text.parse::<TapAddress>().unwrap().to_string(), full);
        }
    }

    #[test]
    fn refuses_what_no_interface_can_have() {
        for text in [
            "",
            "10.0.0",
            "10.0.0.1/33",
            "10.0.0.1/0",
            "10.0.0.1/",
            "10.0.0.1/x",
            "fd00::1/129",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "ff02::1",
            "127.0.0.1",
            "::1",
            "10.0.0.1/24/1",
            "10.0.0.0",
            "10.0.0.255/24",
            "10.0.3.255/22",
            "192.168.7.4/30",
            "host",
        ] {
            let error = text.parse::<TapAddress>().unwrap_err().to_string();
            assert!(error.contains("expected ADDR[/PREFIX]"), "{error}");
        }
    }
}
