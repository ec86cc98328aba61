//! Why a super-frame cannot be what it says.

use super::gso::Gso;

/// A frame cannot be what its vnet header or its own headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends within a header.
    #[error("the frame ends within its headers")]
    Truncated,
    /// Neither IPv4 nor IPv6.
    #[error("EtherType {0:#06x} where a super-frame has IPv4 or IPv6")]
    NotIp(u16),
    /// The IP version does not agree with the EtherType, or the header is too short.
    #[error("the IP header has another version than the EtherType, or an impossible length")]
    IpHeader,
    /// The lengths in the IP header and the frame do not agree.
    #[error("the length in the IP header does not agree with the frame")]
    IpLength,
    /// The TCP or UDP header is cut off or has an impossible length.
    #[error("the TCP or UDP header is cut off or has an impossible length")]
    TransportHeader,
    /// A kind of segmentation that was not asked for.
    #[error("segmentation of kind {0:#04x}; expected 0 (none), 1, 4 (TCP) or 5 (UDP)")]
    GsoType(u8),
    /// Segments without payload.
    #[error("segments of 0 bytes")]
    GsoSize,
    /// The frame is of another protocol or version than the kind of segmentation, or a fragment.
    #[error("{0:?} segmentation of a frame that is something else")]
    Protocol(Gso),
    /// Segmentation without, or with the wrong place of, an unfinished checksum.
    #[error("the place of the checksum is not that of the frame's protocol")]
    Checksum,
    /// The slot is too short for a segment.
    #[error("a segment of {need} bytes; there is room for {have}")]
    Slot {
        /// Bytes of the segment.
        need: usize,
        /// Bytes of the slot.
        have: usize,
    },
}
