//! Announcement: these clients are behind this OBU from now on.
//!
//! | offset | bytes | field        | meaning                                                        |
//! |-------:|------:|--------------|----------------------------------------------------------------|
//! |      0 |     1 | type         | `0x26`                                                         |
//! |      1 |     1 | flags        | bit 1 standby: the OBU is attached elsewhere and may come      |
//! |      2 |     2 | length       | 46 + the groups                                                |
//! |      4 |     6 | rsu          | for whom                                                       |
//! |     10 |     6 | origin       | the OBU                                                        |
//! |     16 |     4 | boot         | starts of the OBU                                              |
//! |     20 |     4 | seq          | replies and announcements of the OBU since that start          |
//! |     24 |     4 | epoch        | of the OBU's attachment: the highest owns the clients          |
//! |     28 |     6 | via          | the OBU's upstream for this RSU; the RSU itself at one hop     |
//! |     34 |     4 | digest       | of the whole set, see [`client_digest`]                        |
//! |     38 |     1 | part         | of the set, counted from 0                                     |
//! |     39 |     1 | parts        | how many make the set, at least 1                              |
//! |     40 |     2 | within_ds    | the OBU's next word comes within this, in 0.1 s, at least 1    |
//! |     42 |     2 | mtu          | the longest packet of the OBU's own radio, in bytes; saturates |
//! |     44 |     1 | at_risk_10ms | as in a reply                                                  |
//! |     45 |     1 | hops         | from the OBU to the sender, 0 at the OBU, at most 32           |
//! |     46 |       | groups       | to the end of the message                                      |
//!
//! Each group is the clients of one VLAN:
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     2 | vlan        | 0 untagged, otherwise 1 to 4094                                     |
//! |      2 |     2 | count       | addresses that follow, at least 1                                   |
//! |      4 |   6 × | macs        | unicast addresses                                                   |
//!
//! A message has at most 230 addresses, in all groups together: with one group that is 46 + 4 +
//! 1380 = 1430 bytes, which a radio of 1500 carries. A set without clients is one part without
//! groups.
//!
//! An OBU keeps its announcement ready as a frame and patches it when it needs it; a relay patches
//! `hops` in the copy it forwards. Both are in [`ready`].

pub mod ready;

use std::hash::{Hash, Hasher};

use crate::mac::{Mac, NodeId};
use crate::messages::flags::{STANDBY, flag};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::{Kind, ParseError};
use crate::order::Order;

/// Length without the groups.
pub const HEADER_LEN: usize = 46;

/// Addresses in one message, in all groups together.
pub const MAX_CLIENTS: usize = 230;

/// Highest VLAN id (IEEE 802.1Q-2018 table 9-2: 4095 is reserved).
pub const MAX_VLAN: u16 = 4094;

const GROUP_HEADER_LEN: usize = 4;

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 rsu: 6,
        10 origin: 6,
        16 boot: 4,
        20 seq: 4,
        24 epoch: 4,
        28 via: 6,
        34 digest: 4,
        38 part: 1,
        39 parts: 1,
        40 within_ds: 2,
        42 mtu: 2,
        44 at_risk_10ms: 1,
        45 hops: 1,
    }
}

/// Clients of one OBU, or a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement<'a> {
    /// For whom.
    pub rsu: NodeId,
    /// The OBU.
    pub origin: NodeId,
    /// Boot count and sequence of the OBU.
    pub order: Order,
    /// Of the OBU's attachment.
    pub epoch: u32,
    /// The OBU's upstream for this RSU; the RSU itself at one hop.
    pub via: NodeId,
    /// Of the whole set.
    pub digest: u32,
    /// Of the set, counted from 0.
    pub part: u8,
    /// How many make the set.
    pub parts: u8,
    /// The OBU's next word comes within this, in 0.1 s.
    pub within_ds: u16,
    /// The longest packet of the OBU's own radio, in bytes. From those of all on the way the RSU
    /// makes that of the way.
    pub mtu: u16,
    /// What the RSU sent to the OBU or through it within this, in 10 ms, may not have arrived.
    pub at_risk_10ms: u8,
    /// From the OBU to the sender.
    pub hops: u8,
    /// The OBU is attached elsewhere and may come: know its clients, but leave them where they are.
    pub standby: bool,
    /// The clients of this part.
    pub clients: Clients<'a>,
}

/// One client: an address on one VLAN. The same address on two VLANs is two clients.
///
/// Field order is priority: `derive(Ord)` compares top to bottom.
#[derive(Clone, Copy, Debug, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Client {
    /// 0: untagged.
    pub vlan: u16,
    /// Unicast.
    pub mac: Mac,
}

impl Client {
    /// All of it as one number: looked up for every frame.
    #[inline]
    fn number(self) -> u64 {
        let Mac([a, b, c, d, e, f]) = self.mac;
        let [high, low] = self.vlan.to_ne_bytes();
        u64::from_ne_bytes([high, low, a, b, c, d, e, f])
    }
}

impl PartialEq for Client {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl Hash for Client {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.number());
    }
}

/// The groups of an announcement, where they stand in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Clients<'a> {
    groups: &'a [u8],
    len: usize,
}

impl<'a> Clients<'a> {
    /// No clients.
    pub const EMPTY: Self = Self { groups: &[], len: 0 };

    /// The clients in these groups, which must fill the bytes. [`Self::encode`] makes such bytes.
    pub fn parse(groups: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::Announcement;
        let truncated = |missing: usize| ParseError::Truncated {
            message: kind.name(),
            need: HEADER_LEN + groups.len() + missing,
            have: HEADER_LEN + groups.len(),
        };
        let mut len = 0;
        let mut rest = groups;
        while !rest.is_empty() {
            let Some((group, tail)) = Group::split(rest) else {
                let need = GROUP_HEADER_LEN + usize::from(Group::count(rest)) * Mac::LEN;
                return Err(truncated(need - rest.len()));
            };
            if group.vlan > MAX_VLAN {
                return Err(kind.value("vlan", "at most 4094", u32::from(group.vlan)));
            }
            if group.macs.is_empty() {
                return Err(kind.value("count", "at least 1", 0));
            }
            len += group.macs.len();
            if len > MAX_CLIENTS {
                let have = u32::try_from(len).unwrap_or(u32::MAX);
                return Err(kind.value("count", "at most 230 in all groups", have));
            }
            if let Some(&mac) = group.macs.iter().find(|&&mac| !Mac(mac).is_unicast()) {
                return Err(ParseError::Client { message: kind.name(), have: Mac(mac) });
            }
            rest = tail;
        }
        Ok(Self { groups, len })
    }

    /// Appends the groups of these clients, which are sorted: one group per VLAN.
    pub fn encode(sorted: &[Client], out: &mut Vec<u8>) {
        out.reserve(Self::encoded_len(sorted));
        for group in sorted.chunk_by(|a, b| a.vlan == b.vlan) {
            let vlan = group.first().map_or(0, |client| client.vlan);
            debug_assert!(group.len() <= MAX_CLIENTS, "{} clients in a message", group.len());
            let count = u16::try_from(group.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&vlan.to_be_bytes());
            out.extend_from_slice(&count.to_be_bytes());
            for client in group {
                out.extend_from_slice(&client.mac.0);
            }
        }
    }

    /// Bytes that [`Self::encode`] appends for these clients, which are sorted.
    pub fn encoded_len(sorted: &[Client]) -> usize {
        let groups = sorted.chunk_by(|a, b| a.vlan == b.vlan).count();
        groups * GROUP_HEADER_LEN + sorted.len() * Mac::LEN
    }

    /// How many of the first of these clients, which are sorted, go into one message with `room`
    /// bytes for groups. Every VLAN costs four bytes more, so that [`MAX_CLIENTS`] alone is no safe
    /// measure.
    pub fn fitting(sorted: &[Client], room: usize) -> usize {
        let mut used = 0;
        let mut vlan = None;
        for (index, client) in sorted.iter().enumerate() {
            used += Mac::LEN + if vlan == Some(client.vlan) { 0 } else { GROUP_HEADER_LEN };
            vlan = Some(client.vlan);
            if used > room || index == MAX_CLIENTS {
                return index;
            }
        }
        sorted.len()
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.len
    }

    /// None.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// First to last.
    pub fn iter(self) -> impl Iterator<Item = Client> + use<'a> {
        self.groups().flat_map(|group| {
            group.macs.iter().map(move |&mac| Client { vlan: group.vlan, mac: Mac(mac) })
        })
    }

    fn groups(self) -> impl Iterator<Item = Group<'a>> + use<'a> {
        let mut rest = self.groups;
        std::iter::from_fn(move || {
            let (group, tail) = Group::split(rest)?;
            rest = tail;
            Some(group)
        })
    }
}

/// The clients of one VLAN.
#[derive(Clone, Copy)]
struct Group<'a> {
    vlan: u16,
    macs: &'a [[u8; Mac::LEN]],
}

impl<'a> Group<'a> {
    /// The first group and what follows it; `None` when there are too few bytes.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[v0, v1, c0, c1], tail) = bytes.split_first_chunk::<GROUP_HEADER_LEN>()?;
        let count = usize::from(u16::from_be_bytes([c0, c1]));
        let (macs, tail) = tail.split_at_checked(count * Mac::LEN)?;
        let (macs, _) = macs.as_chunks();
        Some((Self { vlan: u16::from_be_bytes([v0, v1]), macs }, tail))
    }

    /// What the first group says it holds; 0 when it does not even say that.
    fn count(bytes: &[u8]) -> u16 {
        match bytes {
            &[_, _, c0, c1, ..] => u16::from_be_bytes([c0, c1]),
            _ => 0,
        }
    }
}

/// Digest of a set of clients, which is sorted and has no client twice: CRC-32 (IEEE 802.3) over
/// VLAN (2 bytes, big-endian) and MAC of each. Two equal sets have one digest, however they were
/// sent.
pub fn client_digest(sorted: &[Client]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for client in sorted {
        let [v0, v1] = client.vlan.to_be_bytes();
        let [a, b, c, d, e, f] = client.mac.0;
        crc.update(&[v0, v1, a, b, c, d, e, f]);
    }
    crc.finalize()
}

impl Announcement<'_> {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::Announcement, HEADER_LEN, STANDBY);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.clients.groups.len()
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.clients.groups);
    }

    pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        let rows = self.clients.groups().map(|group| 2 + group.macs.len()).sum::<usize>();
        parts.reserve(Wire::FIELDS + rows);
        self.wire().push_parts(parts);
        for group in self.clients.groups() {
            let count = u16::try_from(group.macs.len()).unwrap_or(u16::MAX);
            parts.push(group.vlan.to_be_bytes().to_vec());
            parts.push(count.to_be_bytes().to_vec());
            parts.extend(group.macs.iter().map(|mac| mac.to_vec()));
        }
    }

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Announcement.first_byte(),
            flags: [flag(self.standby, STANDBY)],
            length: length(self.wire_len()),
            rsu: self.rsu.0,
            origin: self.origin.0,
            boot: self.order.boot.0.to_be_bytes(),
            seq: self.order.seq.0.to_be_bytes(),
            epoch: self.epoch.to_be_bytes(),
            via: self.via.0,
            digest: self.digest.to_be_bytes(),
            part: [self.part],
            parts: [self.parts],
            within_ds: self.within_ds.to_be_bytes(),
            mtu: self.mtu.to_be_bytes(),
            at_risk_10ms: [self.at_risk_10ms],
            hops: [self.hops],
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for Announcement<'a> {
    type Error = ParseError;

    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::Announcement;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, groups)) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            rsu,
            origin,
            boot,
            seq,
            epoch,
            via,
            digest,
            part: [part],
            parts: [parts],
            within_ds,
            mtu,
            at_risk_10ms: [at_risk_10ms],
            hops: [hops],
        } = wire;
        kind.part(part, parts)?;
        Ok(Self {
            rsu: kind.node("rsu", rsu)?,
            origin: kind.node("origin", origin)?,
            order: Order::new(u32::from_be_bytes(boot), u32::from_be_bytes(seq)),
            epoch: u32::from_be_bytes(epoch),
            via: kind.upstream(via, origin)?,
            digest: u32::from_be_bytes(digest),
            part,
            parts,
            within_ds: kind.within(within_ds)?,
            mtu: kind.mtu(mtu)?,
            at_risk_10ms,
            hops: kind.hops(hops)?,
            standby: flags & STANDBY != 0,
            clients: Clients::parse(groups)?,
        })
    }
}

conversions!(Announcement<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);

    fn client(vlan: u16, last: u8) -> Client {
        Client { vlan, mac: Mac([2, 0, 0, 0, 0xc, last]) }
    }

    fn clients() -> Vec<Client> {
        vec![client(0, 1), client(0, 2), client(100, 1)]
    }

    fn encoded(sorted: &[Client]) -> Vec<u8> {
        let mut groups = Vec::new();
        Clients::encode(sorted, &mut groups);
        groups
    }

    fn announcement(groups: &[u8]) -> Announcement<'_> {
        Announcement {
            rsu: NodeId([2, 0, 0, 0, 0, 1]),
            origin: OBU,
            order: Order::new(9, 78),
            epoch: 5,
            via: NodeId([2, 0, 0, 0, 0, 3]),
            digest: client_digest(&clients()),
            part: 0,
            parts: 1,
            within_ds: 12,
            at_risk_10ms: 0,
            mtu: 1400,
            hops: 2,
            standby: false,
            clients: Clients::parse(groups).unwrap(),
        }
    }

    fn value(field: &'static str, need: &'static str, have: u32) -> ParseError {
        ParseError::Value { message: "Announcement", field, need, have }
    }

    #[test]
    fn reads_as_it_was_written() {
        let groups = encoded(&clients());
        let flat: Vec<u8> = (&announcement(&groups)).into();
        assert_eq!(flat.len(), 46 + 4 + 12 + 4 + 6);
        let read = Announcement::try_from(&flat[..]).unwrap();
        assert_eq!(read, announcement(&groups));
        assert_eq!(read.clients.len(), 3);
        assert_eq!(read.clients.iter().collect::<Vec<_>>(), clients());
    }

    #[test]
    fn a_set_may_be_empty() {
        let flat: Vec<u8> = (&announcement(&[])).into();
        assert_eq!(Announcement::try_from(&flat[..]).unwrap().clients, Clients::EMPTY);
    }

    #[test]
    fn each_field_stands_where_the_table_says() {
        let one = encoded(&[client(100, 7)]);
        let announcement = Announcement {
            digest: 0xdead_beef,
            part: 1,
            parts: 3,
            standby: true,
            ..announcement(&one)
        };
        let flat: Vec<u8> = (&announcement).into();
        assert_eq!(flat[..4], [0x26, 2, 0, 56]);
        assert_eq!(flat[4..16], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        assert_eq!(flat[16..28], [0, 0, 0, 9, 0, 0, 0, 78, 0, 0, 0, 5]);
        assert_eq!(flat[28..38], [2, 0, 0, 0, 0, 3, 0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(flat[38..46], [1, 3, 0, 12, 5, 120, 0, 2]);
        assert_eq!(flat[46..], [0, 100, 0, 1, 2, 0, 0, 0, 0xc, 7]);
    }

    #[test]
    fn refuses_what_no_obu_can_say_of_itself() {
        let patched = |at: usize, bytes: &[u8]| {
            let mut flat: Vec<u8> = (&announcement(&[])).into();
            flat[at..at + bytes.len()].copy_from_slice(bytes);
            Announcement::try_from(&flat[..]).map(|announcement| announcement.mtu)
        };
        let itself = ParseError::Via { message: "Announcement", have: OBU };
        assert_eq!(patched(28, &OBU.0), Err(itself));
        let nobody = ParseError::NoNode { message: "Announcement", field: "via" };
        assert_eq!(patched(28, &[0; 6]), Err(nobody));
        assert_eq!(patched(40, &[0, 0]), Err(value("within_ds", "at least 1", 0)));
        assert_eq!(patched(42, &[0, 119]), Err(value("mtu", "at least 120", 119)));
        assert_eq!(patched(42, &[0, 120]), Ok(120));
        assert_eq!(patched(45, &[33]), Err(value("hops", "at most 32", 33)));
        let flags = ParseError::Flags { message: "Announcement", need: 2, have: 1 };
        assert_eq!(patched(1, &[1]), Err(flags));
    }

    #[test]
    fn a_part_is_one_of_the_parts() {
        for (part, parts) in [(0, 0), (1, 1), (7, 3)] {
            let flat: Vec<u8> = (&Announcement { part, parts, ..announcement(&[]) }).into();
            let need = value("part", "below parts", part.into());
            assert_eq!(Announcement::try_from(&flat[..]), Err(need));
        }
    }

    #[test]
    fn refuses_what_is_no_vlan_and_an_empty_group() {
        let error = Clients::parse(&[0x0f, 0xff, 0, 1, 2, 0, 0, 0, 0, 1]).unwrap_err();
        assert_eq!(error, value("vlan", "at most 4094", 4095));
        let error = Clients::parse(&[0, 0, 0, 0]).unwrap_err();
        assert_eq!(error, value("count", "at least 1", 0));
    }

    #[test]
    fn refuses_clients_that_are_no_interface() {
        for mac in [Mac::ZERO, Mac::BROADCAST, Mac([1, 0, 0x5e, 0, 0, 1])] {
            let groups = encoded(&[Client { vlan: 0, mac }]);
            let need = ParseError::Client { message: "Announcement", have: mac };
            assert_eq!(Clients::parse(&groups), Err(need));
        }
    }

    #[test]
    fn holds_230_clients_and_no_more() {
        let mut many: Vec<_> = (0..230).map(|last| client(0, last)).collect();
        let groups = encoded(&many);
        assert_eq!(Clients::parse(&groups).unwrap().len(), MAX_CLIENTS);
        let full: Vec<u8> = (&announcement(&groups)).into();
        assert_eq!(full.len(), 46 + 4 + 1380);
        assert_eq!(Clients::fitting(&many, usize::MAX), 230);
        many.push(client(1, 0));
        let need = value("count", "at most 230 in all groups", 231);
        assert_eq!(Clients::parse(&encoded(&many)), Err(need));
        assert_eq!(Clients::fitting(&many, usize::MAX), 230);
    }

    #[test]
    fn says_how_many_clients_fit() {
        let sorted = clients();
        for (room, count) in [(0, 0), (9, 0), (10, 1), (15, 1), (16, 2), (25, 2), (26, 3)] {
            assert_eq!(Clients::fitting(&sorted, room), count, "{room}");
            assert!(Clients::encoded_len(&sorted[..count]) <= room);
        }
        assert_eq!(Clients::encoded_len(&sorted), encoded(&sorted).len());
    }

    #[test]
    fn refuses_half_a_group() {
        let groups = encoded(&clients());
        let flat: Vec<u8> = (&announcement(&groups)).into();
        // Cut where a group ends, the rest is a message; anywhere else it is not.
        for have in (HEADER_LEN + 1..flat.len()).filter(|&have| have != HEADER_LEN + 16) {
            let mut cut = flat[..have].to_vec();
            cut[2..4].copy_from_slice(&u16::try_from(have).unwrap().to_be_bytes());
            let error = Announcement::try_from(&cut[..]).unwrap_err();
            assert!(matches!(error, ParseError::Truncated { .. }), "{have}: {error}");
        }
    }

    #[test]
    fn the_digest_tells_sets_apart() {
        assert_eq!(client_digest(&[]), 0);
        // CRC-32 of 00 00 02 00 00 00 0c 01, as zlib computes it.
        assert_eq!(client_digest(&[client(0, 1)]), 0xf358_01f8);
        assert_ne!(client_digest(&[client(0, 1)]), client_digest(&[client(1, 1)]));
    }
}
