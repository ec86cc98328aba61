//! AnnouncementAck: the RSU knows this OBU's upstream and clients, or tells why not.
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x27`                                                              |
//! |      1 |     1 | flags       | none                                                                |
//! |      2 |     2 | length      | 32 + 2 × labels                                                     |
//! |      4 |     6 | destination | the OBU                                                             |
//! |     10 |     6 | rsu         | who answers                                                         |
//! |     16 |     4 | epoch       | of the OBU's word; with status 1 the higher one                     |
//! |     20 |     4 | seq         | of the OBU's word that is answered                                  |
//! |     24 |     4 | digest      | of the OBU's word                                                   |
//! |     28 |     1 | part        | of the announcement; 0 for a reply                                  |
//! |     29 |     1 | parts       | of the announcement, at least 1; 1 for a reply                      |
//! |     30 |     1 | status      | 0 accepted, 1 stale epoch, 2 send all, 3 upstream known             |
//! |     31 |     1 | relays      | yet to pass, see [`crate::messages::way`]                           |
//! |     32 |   2 × | labels      | of the relays beyond the next one                                   |
//!
//! A word of an OBU is an announcement or a reply.

use crate::mac::NodeId;
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::way::{LABEL_LEN, Way, labels_of};
use crate::messages::{Kind, ParseError};
use crate::order::Seq;

/// Length without the labels.
pub const HEADER_LEN: usize = 32;

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 destination: 6,
        10 rsu: 6,
        16 epoch: 4,
        20 seq: 4,
        24 digest: 4,
        28 part: 1,
        29 parts: 1,
        30 status: 1,
        31 relays: 1,
    }
}

/// What became of an OBU's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AckStatus {
    /// The clients of this part are known; in answer to a reply: the OBU's upstream is.
    Accepted = 0,
    /// A higher epoch is known; it stands in the epoch field.
    StaleEpoch = 1,
    /// The set this RSU holds does not match the digest: send every part.
    SendAll = 2,
    /// The upstream of an OBU on standby is known. What is known of its clients, this does not say.
    Known = 3,
}

impl AckStatus {
    fn from_wire(status: u8) -> Result<Self, ParseError> {
        [Self::Accepted, Self::StaleEpoch, Self::SendAll, Self::Known]
            .into_iter()
            .find(|known| *known as u8 == status)
            .ok_or(Kind::AnnouncementAck.value("status", "0 to 3", u32::from(status)))
    }
}

/// Answer of an RSU to an OBU's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncementAck<'a> {
    /// The OBU.
    pub destination: NodeId,
    /// Who answers.
    pub rsu: NodeId,
    /// Of that word; the higher one with [`AckStatus::StaleEpoch`].
    pub epoch: u32,
    /// Of that word.
    pub seq: Seq,
    /// Of that word.
    pub digest: u32,
    /// Of the announcement; 0 for a reply.
    pub part: u8,
    /// Of the announcement; 1 for a reply.
    pub parts: u8,
    /// What became of it.
    pub status: AckStatus,
    /// What is left of the way to the OBU.
    pub way: Way<'a>,
}

impl AnnouncementAck<'_> {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::AnnouncementAck, HEADER_LEN, 0);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.way.labels() * LABEL_LEN
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.way.as_bytes());
    }

    pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.reserve(Wire::FIELDS + self.way.labels());
        self.wire().push_parts(parts);
        parts.extend(self.way.as_bytes().chunks(LABEL_LEN).map(<[u8]>::to_vec));
    }

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::AnnouncementAck.first_byte(),
            flags: [0],
            length: length(self.wire_len()),
            destination: self.destination.0,
            rsu: self.rsu.0,
            epoch: self.epoch.to_be_bytes(),
            seq: self.seq.0.to_be_bytes(),
            digest: self.digest.to_be_bytes(),
            part: [self.part],
            parts: [self.parts],
            status: [self.status as u8],
            relays: [self.way.relays()],
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for AnnouncementAck<'a> {
    type Error = ParseError;

    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::AnnouncementAck;
        let (_, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, labels)) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            destination,
            rsu,
            epoch,
            seq,
            digest,
            part: [part],
            parts: [parts],
            status: [status],
            relays: [relays],
        } = wire;
        kind.part(part, parts)?;
        kind.relays(relays)?;
        let need = HEADER_LEN + labels_of(relays) * LABEL_LEN;
        let way = Way::new(relays, labels.as_chunks().0).filter(|_| body.len() == need);
        let Some(way) = way else {
            return Err(ParseError::Length { message: kind.name(), need, have: body.len() });
        };
        Ok(Self {
            destination: kind.node("destination", destination)?,
            rsu: kind.node("rsu", rsu)?,
            epoch: u32::from_be_bytes(epoch),
            seq: Seq(u32::from_be_bytes(seq)),
            digest: u32::from_be_bytes(digest),
            part,
            parts,
            status: AckStatus::from_wire(status)?,
            way,
        })
    }
}

conversions!(AnnouncementAck<'_>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::way::{LABELS_MAX, RELAYS_MAX};

    fn ack(way: Way<'_>) -> AnnouncementAck<'_> {
        AnnouncementAck {
            destination: NodeId([2, 0, 0, 0, 0, 2]),
            rsu: NodeId([2, 0, 0, 0, 0, 1]),
            epoch: 5,
            seq: Seq(0x0102_0304),
            digest: 0xdead_beef,
            part: 1,
            parts: 3,
            status: AckStatus::Accepted,
            way,
        }
    }

    fn error(patches: &[(usize, u8)]) -> ParseError {
        let mut flat: Vec<u8> = (&ack(Way::END)).into();
        for &(at, value) in patches {
            flat[at] = value;
        }
        AnnouncementAck::try_from(&flat[..]).unwrap_err()
    }

    #[test]
    fn reads_as_it_was_written() {
        for (code, status) in
            [AckStatus::Accepted, AckStatus::StaleEpoch, AckStatus::SendAll, AckStatus::Known]
                .into_iter()
                .enumerate()
        {
            let ack = AnnouncementAck { status, ..ack(Way::END) };
            let flat: Vec<u8> = (&ack).into();
            let expected = [
                &[0x27, 0, 0, 32][..],
                &[2, 0, 0, 0, 0, 2],
                &[2, 0, 0, 0, 0, 1],
                &[0, 0, 0, 5],
                &[1, 2, 3, 4],
                &[0xde, 0xad, 0xbe, 0xef],
                &[1, 3, u8::try_from(code).unwrap(), 0],
            ]
            .concat();
            assert_eq!(flat, expected);
            assert_eq!(AnnouncementAck::try_from(&flat[..]), Ok(ack));
        }
    }

    #[test]
    fn ways_of_every_length_read_as_they_were_written() {
        let labels: [[u8; LABEL_LEN]; LABELS_MAX] =
            std::array::from_fn(|index| [0xa0, u8::try_from(index).unwrap() + 1]);
        for relays in 0..=RELAYS_MAX {
            let count = usize::from(relays).saturating_sub(1);
            let ack = ack(Way::new(relays, &labels[..count]).unwrap());
            let flat: Vec<u8> = (&ack).into();
            let len = 32 + 2 * count;
            assert_eq!(flat.len(), len, "{relays} relays");
            assert_eq!(usize::from(flat[3]), len, "{relays} relays");
            assert_eq!(flat[31], relays);
            assert_eq!(flat[32..], labels[..count].concat(), "no padding behind {relays} relays");
            assert_eq!(AnnouncementAck::try_from(&flat[..]), Ok(ack), "{relays} relays");
        }
    }

    #[test]
    fn labels_are_as_many_as_the_relays_want() {
        for (relays, behind, need) in
            [(0, 2, 32), (1, 2, 32), (2, 0, 34), (2, 1, 34), (2, 3, 34), (2, 4, 34), (15, 26, 60)]
        {
            let mut flat: Vec<u8> = (&ack(Way::END)).into();
            flat[31] = relays;
            flat.resize(32 + behind, 0xa0);
            flat[3] = u8::try_from(flat.len()).unwrap();
            let error = ParseError::Length { message: "AnnouncementAck", need, have: 32 + behind };
            assert_eq!(AnnouncementAck::try_from(&flat[..]), Err(error), "{relays} relays");
        }
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        let value =
            |field, need, have| ParseError::Value { message: "AnnouncementAck", field, need, have };
        assert_eq!(error(&[(30, 4)]), value("status", "0 to 3", 4));
        assert_eq!(error(&[(31, 16)]), value("relays", "at most 15", 16));
        assert_eq!(error(&[(28, 3)]), value("part", "below parts", 3));
        assert_eq!(error(&[(28, 0), (29, 0)]), value("part", "below parts", 0));
    }
}
