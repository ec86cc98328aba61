//! The data plane: a client's Ethernet frame, whole, on its way to the RSU or from it.
//!
//! Both messages begin with the same fields: a table each in [`upstream`] and [`downstream`].
//!
//! Source, `boot` and `seq` together suppress duplicates. Eight bits of boot count only have to
//! differ from those of the start before. Which of two is the later one they do not tell.
//!
//! The user priority stands in the header so that a relay need not look for it in the inner frame,
//! which may be encrypted some day.
//!
//! What is before the inner frame has 22 bytes and a multiple of 4 more, 50 at most: ≡ 2 mod 4.
//! Behind 14 bytes of outer Ethernet and 14 of inner, the inner IP header starts at byte 50 of the
//! frame or a multiple of 4 later, ≡ 14 mod 4. A receiver that places frames so that the IP header
//! after one Ethernet header is aligned (Linux: `NET_IP_ALIGN`) has this one aligned too.

pub mod downstream;
pub mod upstream;

use std::mem::offset_of;

use self::downstream::way_len;
#[doc(no_inline)]
pub use self::downstream::{Destination, ToDownstream};
#[doc(no_inline)]
pub use self::upstream::ToUpstream;
use super::format::Format;
use super::way::LABELS_MAX;
use super::{ETHERNET_HEADER_LEN, Kind, ParseError};

/// Length of the fields both messages begin with: all that is before the inner frame, but for ways
/// and floods.
pub const HEADER_LEN: usize = 22;

/// The longest header: that of a way with as many labels as there may be.
pub const HEADER_LEN_MAX: usize = HEADER_LEN + way_len(LABELS_MAX);

/// Kept for a way's labels in each frame of the radio: ways of eight hops. What goes farther takes
/// longer headers, and a full frame then goes in two fragments.
pub const WAY_KEPT: usize = way_len(6);

/// Where `hop_limit` (1 byte) of a [`ToUpstream`] stands, from the prefix on.
pub const HOP_LIMIT_OFFSET: usize = offset_of!(Wire, limit);

// A field of its own keeps the payload aligned; see above.
const _: () = assert!(HEADER_LEN % 4 == 2 && HEADER_LEN <= 24);

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 destination: 6,
        10 source: 6,
        16 limit: 1,
        17 boot: 1,
        18 seq: 4,
    }
}

/// Any message of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// To an RSU.
    Upstream(ToUpstream<'a>),
    /// To OBUs.
    Downstream(ToDownstream<'a>),
}

impl Data<'_> {
    /// Which message this is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Upstream(_) => Kind::ToUpstream,
            Self::Downstream(_) => Kind::ToDownstream,
        }
    }

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        match self {
            Self::Upstream(message) => message.wire_len(),
            Self::Downstream(message) => message.wire_len(),
        }
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Upstream(message) => message.emit(out),
            Self::Downstream(message) => message.emit(out),
        }
    }

    /// Bytes of the message before its payload.
    #[inline]
    pub const fn head_len(&self) -> usize {
        match self {
            Self::Upstream(_) => HEADER_LEN,
            Self::Downstream(message) => message.head_len(),
        }
    }

    /// Appends the message up to its payload, for a sender that has that in place.
    #[inline]
    pub fn emit_head(&self, out: &mut Vec<u8>) {
        match self {
            Self::Upstream(message) => message.wire().append(out),
            Self::Downstream(message) => message.emit_head(out),
        }
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        match self {
            Self::Upstream(message) => message.push_parts(parts),
            Self::Downstream(message) => message.push_parts(parts),
        }
    }
}

impl<'a> Data<'a> {
    /// Reads a message of the data plane. `None` if it is another, or malformed.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        match Kind::peek(bytes) {
            Ok(Kind::ToUpstream) => ToUpstream::try_from(bytes).ok().map(Self::Upstream),
            Ok(Kind::ToDownstream) => ToDownstream::try_from(bytes).ok().map(Self::Downstream),
            _ => None,
        }
    }

    /// User priority of the inner frame, at most 7.
    #[inline]
    pub const fn priority(&self) -> u8 {
        match self {
            Self::Upstream(message) => message.priority,
            Self::Downstream(message) => message.priority,
        }
    }

    /// The inner frame.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        match self {
            Self::Upstream(message) => message.payload,
            Self::Downstream(message) => message.payload,
        }
    }
}

impl<'a> From<ToUpstream<'a>> for Data<'a> {
    #[inline]
    fn from(message: ToUpstream<'a>) -> Self {
        Self::Upstream(message)
    }
}

impl<'a> From<ToDownstream<'a>> for Data<'a> {
    #[inline]
    fn from(message: ToDownstream<'a>) -> Self {
        Self::Downstream(message)
    }
}

/// Flags and fields of either message, and what follows them.
#[inline]
fn open(format: Format, bytes: &[u8]) -> Result<(u8, Wire, &[u8]), ParseError> {
    let (flags, body) = format.open(bytes)?;
    let Some((wire, rest)) = Wire::read(body) else {
        return Err(format.truncated(body.len()));
    };
    Ok((flags, wire, rest))
}

/// What is left of `rest` behind `len` bytes, which holds a frame with its header.
#[inline]
fn payload(kind: Kind, rest: &[u8], len: usize) -> Result<(&[u8], &[u8]), ParseError> {
    match rest.split_at_checked(len) {
        Some(parts) if parts.1.len() >= ETHERNET_HEADER_LEN => Ok(parts),
        _ => Err(ParseError::Length {
            message: kind.name(),
            need: HEADER_LEN + len + ETHERNET_HEADER_LEN,
            have: HEADER_LEN + rest.len(),
        }),
    }
}

conversions!(Data<'_>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::NodeId;
    use crate::messages::way::{LABEL_LEN, RELAYS_MAX, Way};
    use crate::order::Seq;

    pub(super) const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    pub(super) const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    pub(super) const FRAME: [u8; 20] = [0x55; 20];
    pub(super) const FLOOD_TO_ALL: Destination<'static> =
        Destination::All { except: NodeId::NONE, hop_limit: 14, taken_at: Seq(0x0a0b_0c0d) };

    /// More labels than any way has; no two alike, none zero.
    pub(super) fn labels() -> [[u8; LABEL_LEN]; LABELS_MAX + 1] {
        std::array::from_fn(|index| [0xa0, u8::try_from(index).unwrap() + 1])
    }

    pub(super) fn to_obu(way: Way<'_>) -> Destination<'_> {
        Destination::Node { id: OBU, way }
    }

    pub(super) fn up() -> ToUpstream<'static> {
        ToUpstream {
            destination: RSU,
            source: OBU,
            hop_limit: 8,
            boot: 9,
            seq: Seq(0x0102_0304),
            again: false,
            priority: 5,
            payload: &FRAME,
        }
    }

    pub(super) fn down(destination: Destination<'_>) -> ToDownstream<'_> {
        ToDownstream {
            destination,
            source: RSU,
            boot: 3,
            seq: Seq(5),
            priority: 6,
            payload: &FRAME,
        }
    }

    #[test]
    fn every_priority_stands_in_the_flags() {
        for priority in 0..=7 {
            let message = ToUpstream { priority, ..up() };
            let flat: Vec<u8> = (&message).into();
            assert_eq!(flat[1], priority);
            assert_eq!(Data::read(&flat), Some(message.into()));
            for (destination, flags) in
                [(to_obu(Way::END), priority), (FLOOD_TO_ALL, 0x08 | priority)]
            {
                let message = ToDownstream { priority, ..down(destination) };
                let flat: Vec<u8> = (&message).into();
                assert_eq!(flat[1], flags);
                let read = Data::read(&flat).unwrap();
                assert_eq!((read, read.priority()), (message.into(), priority));
            }
        }
    }

    #[test]
    fn a_flood_goes_no_way_up() {
        let mut flat: Vec<u8> = (&up()).into();
        flat[1] |= 0x08;
        let need = ParseError::Flags { message: "ToUpstream", need: 0x17, have: 0x0d };
        assert_eq!(ToUpstream::try_from(&flat[..]), Err(need));
        let mut flat: Vec<u8> = (&down(FLOOD_TO_ALL)).into();
        flat[1] |= 0x10;
        let need = ParseError::Flags { message: "ToDownstream", need: 0x0f, have: 0x1e };
        assert_eq!(ToDownstream::try_from(&flat[..]), Err(need));
    }

    #[test]
    fn one_addressee_has_a_name() {
        let nobody = Destination::Node { id: NodeId::NONE, way: Way::END };
        let flat: Vec<u8> = (&down(nobody)).into();
        let need = ParseError::NoNode { message: "ToDownstream", field: "destination" };
        assert_eq!(ToDownstream::try_from(&flat[..]), Err(need));
        let flat: Vec<u8> = (&ToUpstream { destination: NodeId::NONE, ..up() }).into();
        let need = ParseError::NoNode { message: "ToUpstream", field: "destination" };
        assert_eq!(ToUpstream::try_from(&flat[..]), Err(need));
    }

    #[test]
    fn the_inner_frame_has_a_header() {
        let flat: Vec<u8> = (&ToUpstream { payload: &FRAME[..13], ..up() }).into();
        let need = ParseError::Length { message: "ToUpstream", need: 36, have: 35 };
        assert_eq!(ToUpstream::try_from(&flat[..]), Err(need));
        let flat: Vec<u8> = (&ToUpstream { payload: &FRAME[..14], ..up() }).into();
        assert!(ToUpstream::try_from(&flat[..]).is_ok());
        let labels = labels();
        for (destination, need) in [
            (to_obu(Way::END), 36),
            (to_obu(Way::new(2, &labels[..1]).unwrap()), 40),
            (to_obu(Way::new(RELAYS_MAX, &labels[..LABELS_MAX]).unwrap()), 64),
            (FLOOD_TO_ALL, 40),
        ] {
            let message = ToDownstream { payload: &FRAME[..13], ..down(destination) };
            let flat: Vec<u8> = (&message).into();
            let error = ParseError::Length { message: "ToDownstream", need, have: need - 1 };
            assert_eq!(ToDownstream::try_from(&flat[..]), Err(error));
            let message = ToDownstream { payload: &FRAME[..14], ..message };
            let flat: Vec<u8> = (&message).into();
            assert_eq!(ToDownstream::try_from(&flat[..]), Ok(message));
        }
    }
}
