//! AnnouncementAck: the RSU has these clients, or tells why not.
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x17`                                                              |
//! |      1 |     1 | flags       | none                                                                |
//! |      2 |     2 | length      | 30                                                                  |
//! |      4 |     6 | destination | the OBU                                                             |
//! |     10 |     6 | rsu         | who answers                                                         |
//! |     16 |     4 | epoch       | of the announcement; with status 1 the higher one                   |
//! |     20 |     1 | hop_limit   | relays still allowed                                                |
//! |     21 |     1 | part        | of the announcement                                                 |
//! |     22 |     1 | parts       | of the announcement, at least 1                                     |
//! |     23 |     1 | status      | 0 accepted, 1 stale epoch, 2 send all                               |
//! |     24 |     4 | digest      | of the announcement                                                 |
//! |     28 |     2 | reserved    | zero                                                                |

use std::mem::offset_of;

use crate::mac::NodeId;
use crate::messages::prefix::length;
use crate::messages::{Kind, ParseError};

/// Length of the message.
pub const LEN: usize = 30;

/// Where `hop_limit` (1 byte) stands, from the prefix on.
pub const HOP_LIMIT_OFFSET: usize = offset_of!(Wire, hop_limit);

layout! {
    struct Wire: LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 destination: 6,
        10 rsu: 6,
        16 epoch: 4,
        20 hop_limit: 1,
        21 part: 1,
        22 parts: 1,
        23 status: 1,
        24 digest: 4,
        28 reserved: 2,
    }
}

/// What became of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AckStatus {
    /// The clients of this part are known.
    Accepted = 0,
    /// A higher epoch is known; it stands in the epoch field.
    StaleEpoch = 1,
    /// The set this RSU holds does not match the digest: send every part.
    SendAll = 2,
}

impl AckStatus {
    fn from_wire(status: u8) -> Result<Self, ParseError> {
        [Self::Accepted, Self::StaleEpoch, Self::SendAll]
            .into_iter()
            .find(|known| *known as u8 == status)
            .ok_or(Kind::AnnouncementAck.value("status", "0 to 2", u32::from(status)))
    }
}

/// Answer of an RSU to an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncementAck {
    /// The OBU.
    pub destination: NodeId,
    /// Who answers.
    pub rsu: NodeId,
    /// Of the announcement; the higher one with [`AckStatus::StaleEpoch`].
    pub epoch: u32,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// Of the announcement.
    pub part: u8,
    /// Of the announcement.
    pub parts: u8,
    /// What became of it.
    pub status: AckStatus,
    /// Of the announcement.
    pub digest: u32,
}

impl AnnouncementAck {
    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::AnnouncementAck.first_byte(),
            flags: [0],
            length: length(LEN),
            destination: self.destination.0,
            rsu: self.rsu.0,
            epoch: self.epoch.to_be_bytes(),
            hop_limit: [self.hop_limit],
            part: [self.part],
            parts: [self.parts],
            status: [self.status as u8],
            digest: self.digest.to_be_bytes(),
            reserved: [0; 2],
        }
    }
}

impl TryFrom<&[u8]> for AnnouncementAck {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::AnnouncementAck;
        let (_, body) = kind.open(bytes)?;
        let Some((wire, [])) = Wire::read(body) else {
            return Err(kind.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            destination,
            rsu,
            epoch,
            hop_limit: [hop_limit],
            part: [part],
            parts: [parts],
            status: [status],
            digest,
            reserved,
        } = wire;
        kind.part(part, parts)?;
        if reserved != [0; 2] {
            return Err(kind.value("reserved", "zero", u16::from_be_bytes(reserved).into()));
        }
        Ok(Self {
            destination: kind.node("destination", destination)?,
            rsu: kind.node("rsu", rsu)?,
            epoch: u32::from_be_bytes(epoch),
            hop_limit,
            part,
            parts,
            status: AckStatus::from_wire(status)?,
            digest: u32::from_be_bytes(digest),
        })
    }
}

fixed_size!(AnnouncementAck: LEN);
conversions!(AnnouncementAck);

#[cfg(test)]
mod tests {
    use super::*;

    fn ack() -> AnnouncementAck {
        AnnouncementAck {
            destination: NodeId([2, 0, 0, 0, 0, 2]),
            rsu: NodeId([2, 0, 0, 0, 0, 1]),
            epoch: 5,
            hop_limit: 8,
            part: 1,
            parts: 3,
            status: AckStatus::Accepted,
            digest: 0xdead_beef,
        }
    }

    fn patched(at: usize, value: u8) -> Result<AnnouncementAck, ParseError> {
        let mut flat: Vec<u8> = (&ack()).into();
        flat[at] = value;
        AnnouncementAck::try_from(&flat[..])
    }

    #[test]
    fn reads_as_it_was_written() {
        for status in [AckStatus::Accepted, AckStatus::StaleEpoch, AckStatus::SendAll] {
            let ack = AnnouncementAck { status, ..ack() };
            let flat: Vec<u8> = (&ack).into();
            assert_eq!(flat.len(), LEN);
            assert_eq!(flat[..4], [0x17, 0, 0, 30]);
            assert_eq!(AnnouncementAck::try_from(&flat[..]), Ok(ack));
        }
    }

    #[test]
    fn refuses_an_unknown_status_and_reserved_bytes() {
        let value = |field, need, have| {
            Err(ParseError::Value { message: "AnnouncementAck", field, need, have })
        };
        assert_eq!(patched(23, 3), value("status", "0 to 2", 3));
        assert_eq!(patched(28, 1), value("reserved", "zero", 256));
        assert_eq!(patched(21, 3), value("part", "below parts", 3));
    }

    #[test]
    fn a_relay_patches_the_hop_limit() {
        let patched = patched(HOP_LIMIT_OFFSET, 7);
        assert_eq!(patched, Ok(AnnouncementAck { hop_limit: 7, ..ack() }));
    }
}
