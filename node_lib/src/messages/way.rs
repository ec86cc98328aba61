//! The way down to an OBU in few bytes: [`Way`], made of [`Label`]s.
//!
//! An RSU knows every OBU's upstream, so it knows the whole way. It writes that into what it sends
//! down (a source route, as in the non-storing mode of RPL, RFC 6550 §9.7 and RFC 6554). A relay
//! keeps nothing of ways that lead past it.
//!
//! | field  | bytes | meaning                                                                  |
//! |--------|------:|--------------------------------------------------------------------------|
//! | relays |     1 | relays yet to pass, the next node among them: 0 at the OBU, at most 15   |
//! | labels |   2 × | of the relays beyond the next one, the nearest first: relays − 1, or none |
//!
//! * The first relay is the frame's addressee, and the last node the message's destination. So one
//!   hop and two need no label, and *n* hops need *n* − 2.
//! * A relay takes the first label off and sends to its child of that label; without labels to its
//!   child of the destination's id. Each hop makes the number of relays smaller, and where it is
//!   zero nobody passes the message on: so nothing can go round in a circle.
//! * A [`Label`] follows from the node id. Nobody has to give it out or to ask for it. Two children
//!   of one relay share one by chance once in 65,536 pairs: then both are sent to, and the wrong
//!   one drops the message.

use crate::mac::NodeId;

/// Relays on the longest way. With one hop more, sixteen in all, a way is as long as any that is
/// worth having: at 90 % per hop, sixteen hops deliver 19 %.
pub const RELAYS_MAX: u8 = 15;

/// Labels in one message.
pub const LABELS_MAX: usize = RELAYS_MAX as usize - 1;

/// Bytes of a label.
pub const LABEL_LEN: usize = 2;

/// Stands for a node among the children of a relay: the low 16 bits of the CRC-32 of its id (the
/// polynomial of IEEE 802.3). Vendors number their interfaces, so ids differ in few bits; their
/// checksums in many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub [u8; LABEL_LEN]);

impl Label {
    /// Of this node.
    pub fn of(node: NodeId) -> Self {
        let [.., high, low] = crc32fast::hash(&node.0).to_be_bytes();
        Self([high, low])
    }
}

/// What is left of the way to an OBU, where it stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Way<'a> {
    relays: u8,
    /// One less than `relays`, or none.
    labels: &'a [[u8; LABEL_LEN]],
}

impl<'a> Way<'a> {
    /// No relay is left: the next node is the OBU.
    pub const END: Self = Self { relays: 0, labels: &[] };

    /// A way past so many relays, with the labels of all but the next. `None` if there are more or
    /// fewer, or more relays than [`RELAYS_MAX`].
    #[inline]
    pub fn new(relays: u8, labels: &'a [[u8; LABEL_LEN]]) -> Option<Self> {
        let is_one = relays <= RELAYS_MAX && labels.len() == labels_of(relays);
        is_one.then_some(Self { relays, labels })
    }

    /// Relays yet to pass, the next node among them.
    #[inline]
    pub const fn relays(self) -> u8 {
        self.relays
    }

    /// Labels in the message.
    #[inline]
    pub const fn labels(self) -> usize {
        self.labels.len()
    }

    /// Where a relay sends to, and the way from there. `None` at the end of the way.
    #[inline]
    pub fn next(self) -> Option<(Next, Self)> {
        let relays = self.relays.checked_sub(1)?;
        Some(match self.labels.split_first() {
            Some((first, labels)) => (Next::Labelled(Label(*first)), Self { relays, labels }),
            None => (Next::Destination, Self::END),
        })
    }

    /// The labels as they stand in a message.
    #[inline]
    pub(super) const fn as_bytes(self) -> &'a [u8] {
        self.labels.as_flattened()
    }
}

/// Where a relay sends a message on its way down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To its child with this label.
    Labelled(Label),
    /// To its child that the message is for.
    Destination,
}

/// Labels of a way past so many relays.
#[inline]
pub(super) const fn labels_of(relays: u8) -> usize {
    relays.saturating_sub(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_ids_have_labels_of_their_own() {
        let mut labels: Vec<_> =
            (0..=255).map(|last| Label::of(NodeId([2, 0, 0, 0, 0, last]))).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), 256);
        // By Python's zlib.crc32, the checksum of this id is 0x8b0d303e.
        assert_eq!(Label::of(NodeId([2, 0, 0, 0, 0, 1])).0, [0x30, 0x3e]);
    }

    #[test]
    fn each_relay_takes_the_first_label_off_and_the_last_sends_to_the_destination() {
        let bytes = [[1, 2], [3, 4]];
        let way = Way::new(3, &bytes).unwrap();
        assert_eq!((way.relays(), way.labels()), (3, 2));
        let (next, way) = way.next().unwrap();
        assert_eq!((next, way.relays()), (Next::Labelled(Label([1, 2])), 2));
        let (next, way) = way.next().unwrap();
        assert_eq!((next, way.relays(), way.labels()), (Next::Labelled(Label([3, 4])), 1, 0));
        assert_eq!(way.next(), Some((Next::Destination, Way::END)));
        assert_eq!(Way::END.next(), None, "the OBU passes nothing on");
    }

    #[test]
    fn relays_and_labels_fit_each_other() {
        let labels = [[0; LABEL_LEN]; LABELS_MAX + 1];
        for relays in 0..=RELAYS_MAX {
            let fitting = usize::from(relays).saturating_sub(1);
            for count in 0..=LABELS_MAX {
                let way = Way::new(relays, &labels[..count]);
                assert_eq!(way.is_some(), count == fitting, "{relays} relays, {count} labels");
            }
        }
        assert_eq!(Way::new(RELAYS_MAX + 1, &labels), None);
    }
}
