//! What the kernel's network stack found wrong with what it received.

use anyhow::{Context, Result};

use crate::arena::netns::Netns;

/// Errors a namespace has counted since it exists. A program that carries frames must cause none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackErrors {
    /// IPv4 headers with a wrong checksum or impossible fields.
    pub ip_headers: u64,
    /// TCP segments with a wrong checksum, of both IP versions.
    pub tcp_checksums: u64,
    /// TCP segments otherwise wrong, such as one shorter than its header. Not a SYN on an open
    /// connection (RFC 5961 §4): the other end sends its SYN again when the answer was lost.
    pub tcp_segments: u64,
    /// UDP datagrams with a wrong checksum.
    pub udp_checksums: u64,
    /// ICMP messages with a wrong checksum.
    pub icmp_checksums: u64,
}

impl StackErrors {
    /// What a namespace has counted so far.
    pub fn of(ns: &Netns) -> Result<Self> {
        let (v4, extended, v6) = ns.run(|| {
            // Without IPv6 there is no third table.
            Ok((read("snmp")?, read("netstat")?, read("snmp6").unwrap_or_default()))
        })?;
        Self::parse(&v4, &extended, &v6).context(MISSING)
    }

    /// SYNs on an open connection that a namespace has answered so far, which are no errors.
    pub fn challenges(ns: &Netns) -> Result<u64> {
        challenges(&ns.run(|| Ok(read("netstat")?))?).context(MISSING)
    }

    /// Nothing was wrong.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn parse(v4: &str, extended: &str, v6: &str) -> Option<Self> {
        let tcp_checksums = paired(v4, "Tcp:", "InCsumErrors")?;
        Some(Self {
            ip_headers: paired(v4, "Ip:", "InHdrErrors")?
                + paired(extended, "IpExt:", "InCsumErrors")?,
            tcp_checksums,
            // The kernel counts those with a wrong checksum here as well, and each SYN on an open
            // connection.
            tcp_segments: paired(v4, "Tcp:", "InErrs")?
                .saturating_sub(tcp_checksums)
                .saturating_sub(challenges(extended)?),
            udp_checksums: paired(v4, "Udp:", "InCsumErrors")? + listed(v6, "Udp6InCsumErrors"),
            icmp_checksums: paired(v4, "Icmp:", "InCsumErrors")? + listed(v6, "Icmp6InCsumErrors"),
        })
    }
}

const MISSING: &str = "a counter is missing in /proc/net/snmp or netstat";

/// A table of the namespace the thread is in.
fn read(name: &str) -> std::io::Result<String> {
    std::fs::read_to_string(format!("/proc/thread-self/net/{name}"))
}

fn challenges(extended: &str) -> Option<u64> {
    paired(extended, "TcpExt:", "TCPSYNChallenge")
}

/// A counter of a table with a line of names and below it one of numbers, both beginning alike.
fn paired(table: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(prefix));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs.find(|(have, _)| *have == name)?.1.parse().ok()
}

/// A counter of a table with a name and a number on each line; 0 when it is not there.
fn listed(table: &str, name: &str) -> u64 {
    let mut pairs = table.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let found = pairs.find(|(have, _)| *have == name);
    found.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let v4 = "Ip: Forwarding InHdrErrors\nIp: 2 1\nIcmp: InMsgs InCsumErrors\nIcmp: 9 2\n\
                  Tcp: InErrs InCsumErrors\nTcp: 9 3\nUdp: InErrors InCsumErrors\nUdp: 0 5\n\
                  UdpLite: InErrors InCsumErrors\nUdpLite: 0 99\n";
        let extended =
            "TcpExt: A TCPSYNChallenge\nTcpExt: 1 2\nIpExt: InOctets InCsumErrors\nIpExt: 8 10\n";
        let v6 = "Ip6InReceives     5\nUdp6InCsumErrors   \t20\nIcmp6InCsumErrors 30\n";
        let expected = StackErrors {
            ip_headers: 11,
            tcp_checksums: 3,
            tcp_segments: 4,
            udp_checksums: 25,
            icmp_checksums: 32,
        };
        assert_eq!(StackErrors::parse(v4, extended, v6), Some(expected));
        assert!(!expected.is_none());
        assert_eq!(StackErrors::parse("", extended, v6), None);
    }
}
