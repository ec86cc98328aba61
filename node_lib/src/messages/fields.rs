//! Judges of fields that several messages have: each takes what stands in the field, and gives its
//! value or the error that names message and field.

use super::flags::{STRIDE, STRIDE_MAX};
use super::{Kind, ParseError, way};
use crate::mac::NodeId;

impl Kind {
    /// The error for a value out of range.
    pub(super) const fn value(
        self,
        field: &'static str,
        need: &'static str,
        have: u32,
    ) -> ParseError {
        ParseError::Value { message: self.name(), field, need, have }
    }

    /// The node named in a field; nobody is refused.
    #[inline]
    pub(super) fn node(self, field: &'static str, bytes: [u8; 6]) -> Result<NodeId, ParseError> {
        if bytes == NodeId::NONE.0 {
            return Err(ParseError::NoNode { message: self.name(), field });
        }
        Ok(NodeId(bytes))
    }

    /// A hop count, at most [`super::MAX_HOPS`].
    #[inline]
    pub(super) fn hops(self, hops: u8) -> Result<u8, ParseError> {
        if hops > super::MAX_HOPS {
            return Err(self.value("hops", "at most 32", u32::from(hops)));
        }
        Ok(hops)
    }

    /// A stride, from the flags.
    #[inline]
    pub(super) fn stride(self, flags: u8) -> Result<u8, ParseError> {
        const { assert!(STRIDE_MAX == 2, "as the error says") };
        let stride = (flags & STRIDE) >> STRIDE.trailing_zeros();
        if stride > STRIDE_MAX {
            return Err(self.value("stride", "at most 2", stride.into()));
        }
        Ok(stride)
    }

    /// The upstream of `origin`, which is not itself.
    #[inline]
    pub(super) fn upstream(self, via: [u8; 6], origin: [u8; 6]) -> Result<NodeId, ParseError> {
        if via == origin {
            return Err(ParseError::Via { message: self.name(), have: NodeId(via) });
        }
        self.node("via", via)
    }

    /// When the next word comes, in 0.1 s: at least 1.
    #[inline]
    pub(super) fn within(self, bytes: [u8; 2]) -> Result<u16, ParseError> {
        match u16::from_be_bytes(bytes) {
            0 => Err(self.value("within_ds", "at least 1", 0)),
            within => Ok(within),
        }
    }

    /// Hops of `sender` from `rsu`: none exactly at the RSU itself, and nobody else is without an
    /// upstream of its own.
    #[inline]
    pub(super) fn hops_from(
        self,
        hops: u8,
        (rsu, sender, via): (NodeId, NodeId, NodeId),
    ) -> Result<u8, ParseError> {
        let is_rsu = sender == rsu;
        if is_rsu != (hops == 0) {
            return Err(self.value("hops", "0 at the RSU, and nowhere else", hops.into()));
        }
        if is_rsu != (via == NodeId::NONE) {
            return Err(ParseError::Via { message: self.name(), have: via });
        }
        self.hops(hops)
    }

    /// Relays yet to pass, at most [`way::RELAYS_MAX`].
    #[inline]
    pub(super) fn relays(self, relays: u8) -> Result<u8, ParseError> {
        const { assert!(way::RELAYS_MAX == 15, "as the error says") };
        if relays > way::RELAYS_MAX {
            return Err(self.value("relays", "at most 15", relays.into()));
        }
        Ok(relays)
    }

    /// `part` of `parts`, counted from zero.
    #[inline]
    pub(super) fn part(self, part: u8, parts: u8) -> Result<(), ParseError> {
        if part >= parts {
            return Err(self.value("part", "below parts", u32::from(part)));
        }
        Ok(())
    }
}
