//! Where the headers of an Ethernet frame stand: up to two VLAN tags, IPv4 with options, IPv6 with
//! extension headers.

use super::malformed::Malformed;
use crate::messages::ethernet::{IPV4, IPV6, Protocol, protocol};

/// IP protocol numbers (IANA).
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Where the checksum stands in a TCP header.
pub(crate) const TCP_CHECK: usize = 16;
/// Where the checksum stands in a UDP header.
pub(crate) const UDP_CHECK: usize = 6;
/// Bytes of a UDP header.
pub(crate) const UDP_LEN: usize = 8;
/// Bytes of a TCP header without options.
pub(crate) const TCP_LEN_MIN: usize = 20;
/// Bytes of an IPv6 header.
pub(crate) const V6_LEN: usize = 40;

/// Where the sequence number stands in a TCP header.
pub(crate) const TCP_SEQ: usize = 4;
/// Where the flags stand in a TCP header, behind the length of the header.
pub(crate) const TCP_FLAGS: usize = 13;
pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const URG: u8 = 0x20;
pub(crate) const CWR: u8 = 0x80;

const V4_LEN_MIN: usize = 20;

/// Version of the Internet protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// The headers of one IP packet in an Ethernet frame. Offsets are in bytes from the frame's start,
/// ascending, and none is beyond its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) version: Version,
    /// Where the IP header begins.
    pub(crate) network: usize,
    /// Where the header of `protocol` begins.
    pub(crate) transport: usize,
    /// Where the packet ends by what its IP header says; padding may follow.
    pub(crate) end: usize,
    /// What follows the last extension header we know.
    pub(crate) protocol: u8,
    pub(crate) is_fragment: bool,
    /// The IP header has no options and no extension headers.
    pub(crate) is_plain: bool,
}

impl Headers {
    /// Finds the headers of `frame`.
    #[inline]
    pub(crate) fn parse(frame: &[u8]) -> Result<Self, Malformed> {
        let Protocol { at: network, ethertype } = protocol(frame).ok_or(Malformed::Truncated)?;
        match ethertype {
            IPV4 => Self::parse_v4(frame, network),
            IPV6 => Self::parse_v6(frame, network),
            other => Err(Malformed::NotIp(other)),
        }
    }

    #[inline]
    fn parse_v4(frame: &[u8], network: usize) -> Result<Self, Malformed> {
        let first = u8_at(frame, network)?;
        let header_len = usize::from(first & 0x0f) * 4;
        if first >> 4 != 4 || header_len < V4_LEN_MIN {
            return Err(Malformed::IpHeader);
        }
        let transport = network + header_len;
        let end = network + usize::from(u16_at(frame, network + 2)?);
        if transport > end || end > frame.len() {
            return Err(Malformed::IpLength);
        }
        Ok(Self {
            version: Version::V4,
            network,
            transport,
            end,
            protocol: u8_at(frame, network + 9)?,
            // More fragments, or an offset.
            is_fragment: u16_at(frame, network + 6)? & 0x3fff != 0,
            is_plain: header_len == V4_LEN_MIN,
        })
    }

    #[inline]
    fn parse_v6(frame: &[u8], network: usize) -> Result<Self, Malformed> {
        if u8_at(frame, network)? >> 4 != 6 {
            return Err(Malformed::IpHeader);
        }
        let end = network + V6_LEN + usize::from(u16_at(frame, network + 4)?);
        if end > frame.len() {
            return Err(Malformed::IpLength);
        }
        let mut protocol = u8_at(frame, network + 6)?;
        let mut transport = network + V6_LEN;
        let mut is_fragment = false;
        // Each takes at least eight bytes, so this ends.
        while let Some(kind) = Extension::of(protocol) {
            let next = u8_at(frame, transport)?;
            transport += match kind {
                Extension::Fragment => 8,
                Extension::Options => usize::from(u8_at(frame, transport + 1)?) * 8 + 8,
            };
            if transport > end {
                return Err(Malformed::IpLength);
            }
            is_fragment |= matches!(kind, Extension::Fragment);
            protocol = next;
        }
        let is_plain = transport == network + V6_LEN;
        Ok(Self { version: Version::V6, network, transport, end, protocol, is_fragment, is_plain })
    }

    /// Where the payload of a TCP segment begins.
    #[inline]
    pub(crate) fn tcp_payload(&self, frame: &[u8]) -> Result<usize, Malformed> {
        let header_len = usize::from(u8_at(frame, self.transport + 12)? >> 4) * 4;
        let payload = self.transport + header_len;
        if header_len < TCP_LEN_MIN || payload > self.end {
            return Err(Malformed::TransportHeader);
        }
        Ok(payload)
    }

    /// Where the payload of a UDP datagram begins.
    #[inline]
    pub(crate) fn udp_payload(&self) -> Result<usize, Malformed> {
        let payload = self.transport + UDP_LEN;
        if payload > self.end {
            return Err(Malformed::TransportHeader);
        }
        Ok(payload)
    }

    /// Source and destination address, one after the other.
    #[inline]
    pub(crate) fn addresses<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        match self.version {
            Version::V4 => frame.get(self.network + 12..self.network + 20),
            Version::V6 => frame.get(self.network + 8..self.network + 40),
        }
    }
}

/// An IPv6 extension header TCP or UDP may follow (RFC 8200 §4).
enum Extension {
    Fragment,
    /// Hop-by-hop and destination options, and routing: the second byte is the length.
    Options,
}

impl Extension {
    fn of(protocol: u8) -> Option<Self> {
        match protocol {
            0 | 43 | 60 => Some(Self::Options),
            44 => Some(Self::Fragment),
            _ => None,
        }
    }
}

#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Result<u8, Malformed> {
    bytes.get(at).copied().ok_or(Malformed::Truncated)
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    array_at(bytes, at).map(u32::from_be_bytes)
}

#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Malformed> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Malformed::Truncated)
}

/// Writes `value` at `at`, where there must be room.
#[inline]
pub(crate) fn put<const N: usize>(
    bytes: &mut [u8],
    at: usize,
    value: [u8; N],
) -> Result<(), Malformed> {
    let place = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    *place.ok_or(Malformed::Truncated)? = value;
    Ok(())
}
