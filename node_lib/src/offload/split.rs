//! Super-frames to frames: what the kernel's own segmentation (GSO) would have put on the wire.
//!
//! Each segment has the headers of the super-frame, and its own
//!
//! | field | value |
//! |---|---|
//! | IPv4 total length, IPv6 payload length, UDP length | its own |
//! | IPv4 identification | one more than the segment before, wrapping |
//! | TCP sequence number | advanced by the payload before it |
//! | TCP flags FIN, PSH | on the last segment only |
//! | TCP flag CWR | on the first segment only (RFC 3168 §6.1.2: once per reduction) |
//! | checksums | computed; a UDP checksum of zero is sent as `0xffff` (RFC 768) |
//!
//! The checksum of a super-frame holds the sum of its pseudo header. It is taken over with the
//! length exchanged, not computed anew. With an IPv6 routing header the addresses in it are not
//! those of the IPv6 header, and only the sender's stack knows (RFC 8200 §8.1).
//!
//! Of the headers is summed once what all segments have in common, and for each segment only what
//! is its own: to read them where a part of them was just written takes longer.
//!
//! The headers are found by looking. `hdr_len` is not used, and `csum_start` must agree with what
//! was found: whoever may write the vnet header may write anything.

use super::checksum::Sum;
use super::gso::Gso;
use super::headers::{
    CWR, FIN, Headers, PSH, TCP, TCP_CHECK, TCP_FLAGS, TCP_SEQ, UDP, UDP_CHECK, V6_LEN, Version,
    put, u16_at, u32_at,
};
use super::malformed::Malformed;
use super::vnet::VnetHeader;

/// Finishes the checksum of a frame that is not a super-frame, if it is unfinished. Any protocol
/// will do: the vnet header says where to sum from and where the result goes.
pub fn complete(vnet: &VnetHeader, frame: &mut [u8]) -> Result<(), Malformed> {
    if !vnet.needs_csum {
        return Ok(());
    }
    let start = usize::from(vnet.csum_start);
    let summed = frame.get(start..).ok_or(Malformed::Checksum)?;
    let check = match Sum::of(summed).finish() {
        // Zero would mean "no checksum" in UDP and is the same number elsewhere.
        [0, 0] => [0xff, 0xff],
        check => check,
    };
    put(frame, start + usize::from(vnet.csum_offset), check).map_err(|_| Malformed::Checksum)
}

/// What is left to be cut off a super-frame, which is handed in again for each segment: a burst
/// may be full before it ends.
#[derive(Clone, Debug)]
pub struct Segments {
    headers: Headers,
    /// Where the payload begins, and so the length of all headers.
    payload: usize,
    /// Bytes of payload in a segment.
    size: usize,
    /// Where the payload of the next segment begins.
    next: usize,
    /// Segments made so far.
    made: u16,
    /// Sum of the IPv4 header without what differs from segment to segment.
    network_sum: Sum,
    /// The same of the pseudo header and the transport header.
    transport_sum: Sum,
    transport: Transport,
    identification: u16,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    /// `flags` with the length of the header, as they stand in one number.
    Tcp {
        seq: u32,
        flags: u16,
    },
    Udp,
}

impl Segments {
    /// Looks at the super-frame `frame` and what came with it.
    pub fn plan(vnet: &VnetHeader, frame: &[u8]) -> Result<Self, Malformed> {
        let headers = Headers::parse(frame)?;
        if headers.end != frame.len() {
            return Err(Malformed::IpLength);
        }
        let (protocol, check, payload) = match (vnet.gso, headers.version) {
            _ if headers.is_fragment => return Err(Malformed::Protocol(vnet.gso)),
            (Gso::TcpV4, Version::V4) | (Gso::TcpV6, Version::V6) => {
                (TCP, TCP_CHECK, headers.tcp_payload(frame))
            }
            (Gso::Udp, _) => (UDP, UDP_CHECK, headers.udp_payload()),
            _ => return Err(Malformed::Protocol(vnet.gso)),
        };
        if headers.protocol != protocol {
            return Err(Malformed::Protocol(vnet.gso));
        }
        let payload = payload?;
        if vnet.gso_size == 0 {
            return Err(Malformed::GsoSize);
        }
        let start_and_offset = (usize::from(vnet.csum_start), usize::from(vnet.csum_offset));
        if !vnet.needs_csum || start_and_offset != (headers.transport, check) {
            return Err(Malformed::Checksum);
        }
        // Header and payload of an IP packet: at most 65535 bytes.
        let len = u16::try_from(headers.end - headers.transport).unwrap_or(u16::MAX);
        // The sum of the pseudo header stands in it.
        let header = frame.get(headers.transport..payload).ok_or(Malformed::Truncated)?;
        let sum = Sum::of(header).minus_u16(len);
        let (transport, transport_sum) = match protocol {
            TCP => {
                let seq = u32_at(header, TCP_SEQ)?;
                let flags = u16_at(header, TCP_FLAGS - 1)?;
                (Transport::Tcp { seq, flags }, sum.minus_u32(seq).minus_u16(flags))
            }
            _ => (Transport::Udp, sum.minus_u16(u16_at(header, 4)?)),
        };
        let (identification, network_sum) = match headers.version {
            Version::V4 => {
                let header = frame.get(headers.network..headers.transport).unwrap_or_default();
                let (len, check) = (u16_at(header, 2)?, u16_at(header, 10)?);
                let identification = u16_at(header, 4)?;
                let sum = Sum::of(header).minus_u16(len).minus_u16(check);
                (identification, sum.minus_u16(identification))
            }
            Version::V6 => (0, Sum::default()),
        };
        Ok(Self {
            headers,
            payload,
            size: usize::from(vnet.gso_size),
            next: payload,
            made: 0,
            network_sum,
            transport_sum,
            transport,
            identification,
        })
    }

    /// Segments still to come.
    pub fn remaining(&self) -> usize {
        let segments = self.headers.end.saturating_sub(self.next).div_ceil(self.size);
        // A super-frame without payload is one frame.
        if self.made == 0 { segments.max(1) } else { segments }
    }

    /// Writes the next segment to the start of `slot` and returns its length; `None` when there are
    /// no more. `frame` is the one [`Segments::plan`] saw. An error ends it.
    #[inline]
    pub fn next_into(&mut self, frame: &[u8], slot: &mut [u8]) -> Option<Result<usize, Malformed>> {
        if self.remaining() == 0 {
            return None;
        }
        let segment = self.write(frame, slot);
        if segment.is_err() {
            self.made = self.made.max(1);
            self.next = self.headers.end;
        }
        Some(segment)
    }

    #[inline]
    fn write(&mut self, frame: &[u8], slot: &mut [u8]) -> Result<usize, Malformed> {
        let Headers { version, network, transport, end, .. } = self.headers;
        let from = self.next;
        let to = from.saturating_add(self.size).min(end);
        let header = frame.get(..self.payload).ok_or(Malformed::Truncated)?;
        let payload = frame.get(from..to).ok_or(Malformed::Truncated)?;

        let len = header.len() + payload.len();
        let have = slot.len();
        let slot = slot.get_mut(..len).ok_or(Malformed::Slot { need: len, have })?;
        let (to_header, to_payload) = slot.split_at_mut(header.len());
        to_header.copy_from_slice(header);
        let payload_sum = Sum::of_copied(payload, to_payload);

        match version {
            Version::V4 => {
                let len = length(len - network);
                let identification = self.identification.wrapping_add(self.made);
                put(slot, network + 2, len.to_be_bytes())?;
                put(slot, network + 4, identification.to_be_bytes())?;
                let sum = self.network_sum.plus_u16(len).plus_u16(identification);
                put(slot, network + 10, sum.finish())?;
            }
            Version::V6 => put(slot, network + 4, length(len - network - V6_LEN).to_be_bytes())?,
        }

        let transport_len = length(len - transport);
        let sum = self.transport_sum.plus_u16(transport_len).plus(payload_sum);
        match self.transport {
            Transport::Tcp { seq, flags } => {
                // At most 65535 bytes of payload.
                let seq = seq.wrapping_add((from - self.payload) as u32);
                put(slot, transport + TCP_SEQ, seq.to_be_bytes())?;
                let not_first = if self.made == 0 { 0 } else { CWR };
                let not_last = if to == end { 0 } else { FIN | PSH };
                let flags = flags & !u16::from(not_first | not_last);
                put(slot, transport + TCP_FLAGS - 1, flags.to_be_bytes())?;
                let check = sum.plus_u32(seq).plus_u16(flags).finish();
                put(slot, transport + TCP_CHECK, check)?;
            }
            Transport::Udp => {
                put(slot, transport + 4, transport_len.to_be_bytes())?;
                let check = match sum.plus_u16(transport_len).finish() {
                    [0, 0] => [0xff, 0xff],
                    check => check,
                };
                put(slot, transport + UDP_CHECK, check)?;
            }
        }

        self.next = to;
        self.made = self.made.wrapping_add(1);
        Ok(len)
    }
}

/// A length as the headers have it. Those of a segment are no longer than those of the super-frame,
/// which came out of such a field.
#[inline]
fn length(len: usize) -> u16 {
    debug_assert!(len <= usize::from(u16::MAX), "a part of a packet whose length fits");
    len as u16
}
