//! The header of an Ethernet frame, and VLAN tags: their one reader and their one writer.
//!
//! | offset | bytes | field     | meaning                                                              |
//! |-------:|------:|-----------|----------------------------------------------------------------------|
//! |      0 |     6 | to        | the interface it is for, or a group                                  |
//! |      6 |     6 | from      | the interface that sent it                                           |
//! |     12 |     2 | ethertype | what follows: a protocol, or a tag                                   |
//!
//! A tag (IEEE 802.1Q-2018 §9.6) stands between this header and the protocol:
//!
//! | offset | bytes | field     | meaning                                                              |
//! |-------:|------:|-----------|----------------------------------------------------------------------|
//! |      0 |     2 | control   | priority (3 bits), drop eligible (1), VLAN (12)                      |
//! |      2 |     2 | ethertype | what follows                                                         |
//!
//! The C-tag (customer) says which VLAN a client is in. The S-tag (service, IEEE 802.1ad) in front
//! of one is a network's own: to a node it is a protocol it does not know, and carries.
//!
//! This is no crate, because `etherparse` reads packets as a host does, and refuses what it cannot:
//! a bridge carries that too. The tests hold these lines against it.

use crate::mac::Mac;

/// Destination, source, EtherType.
pub const HEADER_LEN: usize = 14;

/// Control and EtherType.
pub const TAG_LEN: usize = 4;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;

/// EtherType of ARP (RFC 826).
pub const ARP: u16 = 0x0806;

/// EtherType of reverse ARP (RFC 903).
pub const RARP: u16 = 0x8035;

/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// EtherType of a C-tag (IEEE 802.1Q).
pub const C_TAG: u16 = 0x8100;

/// EtherType of an S-tag (IEEE 802.1ad).
const S_TAG: u16 = 0x88a8;

/// An S-tag and a C-tag.
const TAGS_MAX: usize = 2;

/// The value of a tag's VLAN that is never on a wire (IEEE 802.1Q-2018 table 9-2).
const VLAN_RESERVED: u16 = 0x0fff;

layout! {
    struct Wire: HEADER_LEN {
        0 to: 6,
        6 from: 6,
        12 ethertype: 2,
    }
}

/// What every frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// To whom.
    pub to: Mac,
    /// From whom.
    pub from: Mac,
    /// Of what follows: a protocol, or a tag.
    pub ethertype: u16,
}

impl Header {
    /// Rows of the table: parts of the nested form.
    pub(super) const FIELDS: usize = Wire::FIELDS;

    /// The header and what follows it; `None` when there are too few bytes.
    #[inline]
    pub fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (Wire { to, from, ethertype }, rest) = Wire::read(frame)?;
        let ethertype = u16::from_be_bytes(ethertype);
        Some((Self { to: Mac(to), from: Mac(from), ethertype }, rest))
    }

    /// Appends the header.
    #[inline]
    pub fn emit(self, out: &mut Vec<u8>) {
        self.wire().append(out);
    }

    /// Appends the header, with a C-tag in it if there is one.
    #[inline]
    pub fn emit_with(self, tag: Option<Tag>, out: &mut Vec<u8>) {
        let Some(tag) = tag else { return self.emit(out) };
        Self { ethertype: C_TAG, ..self }.emit(out);
        out.extend_from_slice(&tag.0.to_be_bytes());
        out.extend_from_slice(&self.ethertype.to_be_bytes());
    }

    pub(super) fn push_parts(self, parts: &mut Vec<Vec<u8>>) {
        self.wire().push_parts(parts);
    }

    #[inline]
    fn wire(self) -> Wire {
        Wire { to: self.to.0, from: self.from.0, ethertype: self.ethertype.to_be_bytes() }
    }
}

/// Destination and source of a frame; `None` when there are too few bytes for them.
#[inline]
pub fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let (to, rest) = frame.split_first_chunk::<{ Mac::LEN }>()?;
    Some((Mac(*to), Mac(*rest.first_chunk::<{ Mac::LEN }>()?)))
}

/// The control part of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u16);

impl Tag {
    /// VLAN id; 0 for none, as in a tag that has a priority only.
    #[inline]
    pub const fn vlan(self) -> u16 {
        self.0 & VLAN_RESERVED
    }

    /// The VLAN id is one that no frame has.
    #[inline]
    pub const fn is_reserved(self) -> bool {
        self.vlan() == VLAN_RESERVED
    }

    /// User priority.
    #[inline]
    pub const fn priority(self) -> u8 {
        (self.0 >> 13) as u8
    }

    /// The tag, the EtherType behind it, and what follows that.
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, u16, &[u8])> {
        let ([c0, c1, e0, e1], rest) = bytes.split_first_chunk::<TAG_LEN>()?;
        Some((Self(u16::from_be_bytes([*c0, *c1])), u16::from_be_bytes([*e0, *e1]), rest))
    }
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<'a> {
    /// Its C-tag, if it has one.
    pub tag: Option<Tag>,
    /// The protocol.
    pub ethertype: u16,
    /// What follows header and tag.
    pub payload: &'a [u8],
}

/// Takes the C-tag, if there is one, off what follows a header with this EtherType. `None` when it
/// is cut short.
#[inline]
pub fn carried(ethertype: u16, rest: &[u8]) -> Option<Carried<'_>> {
    if ethertype != C_TAG {
        return Some(Carried { tag: None, ethertype, payload: rest });
    }
    let (tag, ethertype, payload) = Tag::read(rest)?;
    Some(Carried { tag: Some(tag), ethertype, payload })
}

/// The same of a whole frame.
#[inline]
pub fn carried_by(frame: &[u8]) -> Option<Carried<'_>> {
    let (header, rest) = Header::read(frame)?;
    carried(header.ethertype, rest)
}

/// What is behind the tags of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Where it begins.
    pub at: usize,
    /// Which it is.
    pub ethertype: u16,
}

/// The protocol behind up to two tags of either kind.
#[inline]
pub fn protocol(frame: &[u8]) -> Option<Protocol> {
    let (Header { mut ethertype, .. }, mut rest) = Header::read(frame)?;
    let mut at = HEADER_LEN;
    for _ in 0..TAGS_MAX {
        if !matches!(ethertype, C_TAG | S_TAG) {
            break;
        }
        (_, ethertype, rest) = Tag::read(rest)?;
        at += TAG_LEN;
    }
    Some(Protocol { at, ethertype })
}

#[cfg(test)]
mod tests {
    use etherparse::{LinkExtSlice, SlicedPacket};
    use proptest::prelude::*;

    use super::*;

    const TO: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
    const FROM: Mac = Mac([2, 0, 0, 0, 0, 0xb]);
    const HEADER: Header = Header { to: TO, from: FROM, ethertype: 0x88b6 };

    fn frame(tag: Option<Tag>) -> Vec<u8> {
        let mut frame = Vec::new();
        HEADER.emit_with(tag, &mut frame);
        frame.extend_from_slice(b"rest");
        frame
    }

    #[test]
    fn what_is_written_is_read() {
        for tag in [None, Some(Tag(0)), Some(Tag(1)), Some(Tag(0xe000)), Some(Tag(0xffff))] {
            let bytes = frame(tag);
            let has_tag = tag.is_some();
            assert_eq!(addresses(&bytes), Some((TO, FROM)));
            let (header, _) = Header::read(&bytes).unwrap();
            let ethertype = if has_tag { C_TAG } else { HEADER.ethertype };
            assert_eq!(header, Header { ethertype, ..HEADER });
            let expected = Carried { tag, ethertype: HEADER.ethertype, payload: b"rest" };
            assert_eq!(carried_by(&bytes), Some(expected));
            let at = if has_tag { 18 } else { 14 };
            let is = Protocol { at, ethertype: HEADER.ethertype };
            assert_eq!(protocol(&bytes), Some(is));
        }
    }

    #[test]
    fn what_is_cut_short_is_not_read() {
        let bytes = frame(Some(Tag(5)));
        for len in 0..18 {
            let short = bytes.get(..len).unwrap();
            assert_eq!(carried_by(short), None, "{len}");
            assert_eq!(protocol(short), None, "{len}");
            assert_eq!(addresses(short).is_some(), len >= 12, "{len}");
            assert_eq!(Header::read(short).is_some(), len >= 14, "{len}");
        }
    }

    #[test]
    fn a_tag_has_a_priority_and_a_vlan() {
        let tag = Tag(0b1011_0000_0000_0111);
        assert_eq!((tag.priority(), tag.vlan(), tag.is_reserved()), (5, 7, false));
        assert!(Tag(0x0fff).is_reserved() && Tag(0xffff).is_reserved());
        assert!(!Tag(0x0ffe).is_reserved());
    }

    proptest! {
        /// Tags of either kind, up to three of them, and what follows.
        #[test]
        fn another_implementation_finds_the_same(
            tags in proptest::collection::vec((any::<bool>(), any::<u16>()), 0..4),
        ) {
            let mut ethertypes: Vec<u16> =
                tags.iter().map(|(is_s, _)| if *is_s { S_TAG } else { C_TAG }).collect();
            ethertypes.push(HEADER.ethertype);
            let mut bytes = [TO.0, FROM.0].concat();
            bytes.extend(ethertypes[0].to_be_bytes());
            for ((_, control), next) in tags.iter().zip(&ethertypes[1..]) {
                bytes.extend(control.to_be_bytes());
                bytes.extend(next.to_be_bytes());
            }
            bytes.extend(b"rest");

            let packet = SlicedPacket::from_ethernet(&bytes).unwrap();
            let theirs: Vec<_> = packet.link_exts.iter().filter_map(|extension| match extension {
                LinkExtSlice::Vlan(tag) => Some(tag.to_header()),
                _ => None,
            }).collect();
            let Protocol { at, ethertype } = protocol(&bytes).unwrap();
            let seen = theirs.len().min(TAGS_MAX);
            prop_assert_eq!(at, HEADER_LEN + seen * TAG_LEN);
            prop_assert_eq!(ethertype, ethertypes[seen]);
            if let (Some(tag), C_TAG) = (theirs.first(), ethertypes[0]) {
                let ours = carried_by(&bytes).unwrap();
                prop_assert_eq!(ours.ethertype, tag.ether_type.0);
                let ours = ours.tag.unwrap();
                prop_assert_eq!(ours.vlan(), tag.vlan_id.value());
                prop_assert_eq!(ours.priority(), tag.pcp.value());
            } else {
                prop_assert_eq!(carried_by(&bytes).unwrap().tag, None);
            }
        }
    }
}
