//! The fragment: a part of a data message that is longer than a radio carries in one frame.
//!
//! | offset | bytes | field    | meaning                                                              |
//! |-------:|------:|----------|----------------------------------------------------------------------|
//! |      0 |     1 | type     | `0x2c`                                                               |
//! |      1 |     1 | flags    | bits 2–0 user priority of the frame inside                           |
//! |      2 |     2 | length   | 12 + the part                                                        |
//! |      4 |     4 | id       | of the message among those the sender has cut up                     |
//! |      8 |     2 | total    | bytes of the message, at least 36                                    |
//! |     10 |     1 | index    | which part, counted from 0                                           |
//! |     11 |     1 | count    | parts of the message, 2 to 8                                         |
//! |     12 |       | part     | bytes index × size to (index + 1) × size of the message              |
//!
//! All parts but the last have the same size, `total / count` rounded up. So where a part belongs
//! and how long it is follows from the header. One of another length is refused, and parts cannot
//! overlap.
//!
//! Fragments live for one hop. The neighbour puts the message together
//! ([`crate::control::reassembly`]) and handles it as if it had come in one frame; if it passes it
//! on, it cuts it up for its own radio. So radios of different MTU may follow each other, and
//! whoever counts, routes or looks for duplicates knows no fragments. The priority stands in each,
//! as only the first part has the header of the frame inside.

use std::ops::Range;

use super::flags::PRIORITY;
use super::format::Format;
use super::prefix::length;
use super::{ETHERNET_HEADER_LEN, Kind, ParseError, data};

/// Length before the part.
pub const HEADER_LEN: usize = 12;

/// Parts of a message, at most. Eight carry a packet of 1500 over a radio of 208, and one of 9000
/// over a radio of 1500. With more the loss of one frame in a hundred would cost more than every
/// twelfth message.
pub const COUNT_MAX: u8 = 8;

/// The shortest message: an inner frame that is only a header.
const TOTAL_MIN: u16 = (data::HEADER_LEN + ETHERNET_HEADER_LEN) as u16;

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 id: 4,
        8 total: 2,
        10 index: 1,
        11 count: 1,
    }
}

/// The longest message that eight frames of a radio with this MTU carry.
pub const fn message_max(radio_mtu: usize) -> usize {
    let most = radio_mtu.saturating_sub(HEADER_LEN).saturating_mul(COUNT_MAX as usize);
    if most < u16::MAX as usize { most } else { u16::MAX as usize }
}

/// Where a part belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPlace {
    /// Bytes of the message.
    pub total: u16,
    /// Which part, counted from 0.
    pub index: u8,
    /// Parts of the message.
    pub count: u8,
}

impl PartPlace {
    /// The parts of a message of `total` bytes for a radio with this MTU. `None` if it does not
    /// carry it in [`COUNT_MAX`].
    pub fn all(total: usize, radio_mtu: usize) -> Option<impl Iterator<Item = Self>> {
        let room = radio_mtu.checked_sub(HEADER_LEN).filter(|room| *room > 0)?;
        let total = u16::try_from(total).ok()?;
        let count = u8::try_from(usize::from(total).div_ceil(room)).ok()?.max(2);
        (count <= COUNT_MAX).then(|| (0..count).map(move |index| Self { total, index, count }))
    }

    /// Which bytes of the message the part is.
    pub fn range(&self) -> Range<usize> {
        let total = usize::from(self.total);
        let size = total.div_ceil(usize::from(self.count).max(1));
        let begin = size * usize::from(self.index);
        begin.min(total)..(begin + size).min(total)
    }
}

/// A part of a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// User priority of the frame inside, at most 7.
    pub priority: u8,
    /// Of the message among those the sender has cut up.
    pub id: u32,
    /// Where it belongs.
    pub place: PartPlace,
    /// The bytes; as many as [`PartPlace::range`] says.
    pub part: &'a [u8],
}

impl Fragment<'_> {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::Fragment, HEADER_LEN, PRIORITY);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.part.len()
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.part);
    }

    /// Appends the message up to its part, for a sender that has that in two pieces.
    pub fn emit_head(&self, out: &mut Vec<u8>) {
        self.wire().append(out);
    }

    pub(super) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.reserve(Wire::FIELDS + 1);
        self.wire().push_parts(parts);
        parts.push(self.part.to_vec());
    }

    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Fragment.first_byte(),
            flags: [self.priority & PRIORITY],
            length: length(HEADER_LEN + self.place.range().len()),
            id: self.id.to_be_bytes(),
            total: self.place.total.to_be_bytes(),
            index: [self.place.index],
            count: [self.place.count],
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for Fragment<'a> {
    type Error = ParseError;

    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::Fragment;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, part)) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            id,
            total,
            index: [index],
            count: [count],
        } = wire;
        let total = u16::from_be_bytes(total);
        if total < TOTAL_MIN {
            return Err(kind.value("total", "at least 36", u32::from(total)));
        }
        if !(2..=COUNT_MAX).contains(&count) {
            return Err(kind.value("count", "2 to 8", u32::from(count)));
        }
        if index >= count {
            return Err(kind.value("index", "below count", u32::from(index)));
        }
        let place = PartPlace { total, index, count };
        let need = place.range().len();
        if need == 0 {
            return Err(kind.value("count", "no more than there are bytes for", u32::from(count)));
        }
        if part.len() != need {
            let (need, have) = (HEADER_LEN + need, body.len());
            return Err(ParseError::Length { message: kind.name(), need, have });
        }
        Ok(Self { priority: flags, id: u32::from_be_bytes(id), place, part })
    }
}

conversions!(Fragment<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(total: usize, mtu: usize) -> Vec<Range<usize>> {
        PartPlace::all(total, mtu).unwrap().map(|place| place.range()).collect()
    }

    fn fragment(part: &[u8]) -> Fragment<'_> {
        let place = PartPlace { total: 101, index: 1, count: 2 };
        Fragment { priority: 5, id: 0x0102_0304, place, part }
    }

    #[test]
    fn parts_follow_each_other_and_fit_the_radio() {
        assert_eq!(ranges(1540, 1500), [0..770, 770..1540]);
        assert_eq!(ranges(1501, 1500), [0..751, 751..1501]);
        for mtu in 100..1600 {
            for total in [36, 37, 700, 1501, 1540, 9040] {
                let Some(places) = PartPlace::all(total, mtu) else {
                    assert!(total > message_max(mtu), "{total} over {mtu}");
                    continue;
                };
                assert!(total <= message_max(mtu), "{total} over {mtu}");
                let mut next = 0;
                for range in places.map(|place| place.range()) {
                    assert_eq!(range.start, next, "{total} over {mtu}");
                    assert!(!range.is_empty() && HEADER_LEN + range.len() <= mtu);
                    next = range.end;
                }
                assert_eq!(next, total);
            }
        }
    }

    #[test]
    fn what_eight_do_not_carry_is_not_cut_up() {
        assert_eq!(message_max(1500), 11_904);
        assert!(PartPlace::all(11_904, 1500).is_some());
        assert!(PartPlace::all(11_905, 1500).is_none());
        assert_eq!(message_max(20_000), 65_535);
        assert!(PartPlace::all(65_536, 20_000).is_none());
        assert!(PartPlace::all(100, 12).is_none());
        assert_eq!(message_max(12), 0);
    }

    #[test]
    fn reads_as_it_was_written() {
        let part = [7; 50];
        let flat: Vec<u8> = (&fragment(&part)).into();
        assert_eq!(flat[..12], [0x2c, 5, 0, 62, 1, 2, 3, 4, 0, 101, 1, 2]);
        assert_eq!(Fragment::try_from(&flat[..]), Ok(fragment(&part)));
        let mut head = Vec::new();
        Fragment { part: &[], ..fragment(&part) }.emit_head(&mut head);
        assert_eq!(head, flat[..12]);
    }

    #[test]
    fn refuses_what_no_message_can_be_cut_into() {
        let flat: Vec<u8> = (&fragment(&[7; 50])).into();
        for (at, value, need) in [
            (1, 0x08, "flags"),
            (1, 0x45, "key slot"),
            (3, 61, "length"),
            (9, 35, "total"),
            (9, 100 + 3, "length 62"),
            (10, 0, "length 62"),
            (10, 2, "index"),
            (11, 0, "count"),
            (11, 1, "count"),
            (11, 9, "count"),
        ] {
            let mut broken = flat.clone();
            broken[at] = value;
            let error = Fragment::try_from(&broken[..]).unwrap_err().to_string();
            assert!(error.contains(need) || at == 3, "{at} = {value}: {error}");
        }
        // Parts of 6 bytes: the last would be empty.
        let place = PartPlace { total: 41, index: 7, count: 8 };
        assert!(place.range().is_empty());
        let flat: Vec<u8> = (&Fragment { place, ..fragment(&[]) }).into();
        let error = Fragment::try_from(&flat[..]).unwrap_err().to_string();
        assert!(error.contains("count"), "{error}");
    }
}
