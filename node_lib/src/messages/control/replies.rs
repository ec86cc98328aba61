//! HeartbeatReplies: what OBUs of a crowd whose clients are still say to their RSU, several in one frame.
//!
//! | offset | bytes | field   | meaning                                                                 |
//! |-------:|------:|---------|-------------------------------------------------------------------------|
//! |      0 |     1 | type    | `0x1b`                                                                  |
//! |      1 |     1 | flags   | none                                                                    |
//! |      2 |     2 | length  | 10 + 24 × replies                                                       |
//! |      4 |     6 | rsu     | for whom                                                                |
//! |     10 |  24 × | replies | at least 1                                                              |
//!
//! Each of them:
//!
//! | offset | bytes | field     | meaning                                                               |
//! |-------:|------:|-----------|-----------------------------------------------------------------------|
//! |      0 |     6 | origin    | the OBU                                                               |
//! |      6 |     4 | boot      | starts of the OBU                                                     |
//! |     10 |     4 | seq       | replies and announcements of the OBU since that start                 |
//! |     14 |     1 | hop_limit | relays still allowed                                                  |
//! |     15 |     1 | hops      | from the OBU to the sender, 0 at the OBU, at most 32                  |
//! |     16 |     4 | epoch     | of the OBU's attachment to this RSU                                   |
//! |     20 |     4 | digest    | of the OBU's clients                                                  |
//!
//! The digest is [`super::announcement::client_digest`]. Each means what a [`HeartbeatReply`] means that answers no
//! heartbeat, and is neither a goodbye nor on standby. A relay
//! may keep them for a moment and pass several on together: of the 152 µs that a reply takes on a 10 MHz
//! channel at 6 Mbit/s, two thirds are preamble, headers and checksum.

use super::heartbeat::HeartbeatReply;
use crate::mac::NodeId;
use crate::messages::prefix::length;
use crate::messages::{Kind, ParseError};
use crate::order::{Order, Seq};

/// Length without the replies.
pub const HEADER_LEN: usize = 10;

/// Length of one reply.
pub const REPLY_LEN: usize = 24;

layout! {
    struct Wire: HEADER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 rsu: 6,
    }
}

layout! {
    struct ReplyWire: REPLY_LEN {
        0 origin: 6,
        6 boot: 4,
        10 seq: 4,
        14 hop_limit: 1,
        15 hops: 1,
        16 epoch: 4,
        20 digest: 4,
    }
}

/// Several OBUs reply to one RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatReplies<'a> {
    /// For whom.
    pub rsu: NodeId,
    /// What they say.
    pub replies: ManyReplies<'a>,
}

/// Replies where they stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ManyReplies<'a>(&'a [[u8; REPLY_LEN]]);

/// What one OBU says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortReply {
    /// The OBU.
    pub origin: NodeId,
    /// Boot count and sequence of the OBU.
    pub order: Order,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// From the OBU to the sender.
    pub hops: u8,
    /// Of the OBU's attachment.
    pub epoch: u32,
    /// Of the OBU's clients.
    pub digest: u32,
}

impl ShortReply {
    /// What a reply says, without the heartbeat it answers and the number of clients. Neither a goodbye nor one
    /// on standby can be said so.
    pub const fn of(reply: &HeartbeatReply) -> Self {
        let HeartbeatReply { origin, order, hop_limit, hops, epoch, digest, .. } = *reply;
        Self { origin, order, hop_limit, hops, epoch, digest }
    }

    /// The same as a message of its own.
    pub const fn to(self, rsu: NodeId) -> HeartbeatReply {
        let Self { origin, order, hop_limit, hops, epoch, digest } = self;
        HeartbeatReply {
            rsu,
            origin,
            order,
            answers: Seq(0),
            hop_limit,
            hops,
            held_100us: 0,
            epoch,
            digest,
            clients: 0,
            goodbye: false,
            standby: false,
        }
    }

    /// Appends it as it stands in a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.wire().append(out);
    }

    fn wire(&self) -> ReplyWire {
        ReplyWire {
            origin: self.origin.0,
            boot: self.order.boot.0.to_be_bytes(),
            seq: self.order.seq.0.to_be_bytes(),
            hop_limit: [self.hop_limit],
            hops: [self.hops],
            epoch: self.epoch.to_be_bytes(),
            digest: self.digest.to_be_bytes(),
        }
    }

    fn read(bytes: &[u8; REPLY_LEN]) -> Option<Self> {
        let (wire, _) = ReplyWire::read(bytes)?;
        Some(Self {
            origin: NodeId(wire.origin),
            order: Order::new(u32::from_be_bytes(wire.boot), u32::from_be_bytes(wire.seq)),
            hop_limit: u8::from_be_bytes(wire.hop_limit),
            hops: u8::from_be_bytes(wire.hops),
            epoch: u32::from_be_bytes(wire.epoch),
            digest: u32::from_be_bytes(wire.digest),
        })
    }
}

impl<'a> ManyReplies<'a> {
    /// None.
    pub const EMPTY: Self = Self(&[]);

    /// The replies in these bytes, all of which they must fill. [`ShortReply::encode`] makes such bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::HeartbeatReplies;
        let (replies, rest) = bytes.as_chunks::<REPLY_LEN>();
        if !rest.is_empty() {
            let need = bytes.len() + REPLY_LEN - rest.len();
            return Err(ParseError::Truncated { message: kind.name(), need, have: bytes.len() });
        }
        let many = Self(replies);
        for reply in many.iter() {
            kind.node("origin", reply.origin.0)?;
            kind.hops(reply.hops)?;
        }
        Ok(many)
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// None.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// First to last.
    pub fn iter(self) -> impl Iterator<Item = ShortReply> + use<'a> {
        self.0.iter().filter_map(ShortReply::read)
    }
}

impl HeartbeatReplies<'_> {
    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN + self.replies.len() * REPLY_LEN
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.wire_len());
        self.wire().append(out);
        out.extend_from_slice(self.replies.0.as_flattened());
    }

    pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.reserve(Wire::FIELDS + self.replies.len() * ReplyWire::FIELDS);
        self.wire().push_parts(parts);
        self.replies.iter().for_each(|reply| reply.wire().push_parts(parts));
    }

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::HeartbeatReplies.first_byte(),
            flags: [0],
            length: length(self.wire_len()),
            rsu: self.rsu.0,
        }
    }
}

impl<'a> TryFrom<&'a [u8]> for HeartbeatReplies<'a> {
    type Error = ParseError;

    fn try_from(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let kind = Kind::HeartbeatReplies;
        let (_, body) = kind.open(bytes)?;
        let Some((wire, replies)) = Wire::read(body) else {
            return Err(kind.truncated(body.len()));
        };
        let replies = ManyReplies::parse(replies)?;
        if replies.is_empty() {
            return Err(kind.value("replies", "at least 1", 0));
        }
        Ok(Self { rsu: kind.node("rsu", wire.rsu)?, replies })
    }
}

conversions!(HeartbeatReplies<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

    fn short(n: u8) -> ShortReply {
        ShortReply {
            origin: NodeId([2, 0, 0, 0, 1, n]),
            order: Order::new(7, u32::from(n)),
            hop_limit: 15,
            hops: 1,
            epoch: 3,
            digest: 0xdead_beef,
        }
    }

    fn flat(replies: &[ShortReply]) -> Vec<u8> {
        let mut bytes = Vec::new();
        replies.iter().for_each(|reply| reply.encode(&mut bytes));
        (&HeartbeatReplies { rsu: RSU, replies: ManyReplies(bytes.as_chunks().0) }).into()
    }

    #[test]
    fn reads_as_it_was_written() {
        for count in [1, 2, 50] {
            let said: Vec<_> = (1..=count).map(short).collect();
            let flat = flat(&said);
            assert_eq!(flat.len(), 10 + 24 * usize::from(count));
            let read = HeartbeatReplies::try_from(&flat[..]).unwrap();
            assert_eq!(read.rsu, RSU);
            assert_eq!(read.replies.iter().collect::<Vec<_>>(), said);
        }
    }

    #[test]
    fn a_reply_keeps_what_it_says() {
        let reply = short(5).to(RSU);
        assert_eq!((reply.rsu, reply.origin), (RSU, short(5).origin));
        assert!(!reply.goodbye && !reply.standby);
        assert_eq!(ShortReply::of(&reply), short(5));
    }

    #[test]
    fn refuses_nobody_none_and_half_a_reply() {
        let nobody = ShortReply { origin: NodeId::NONE, ..short(1) };
        let need = ParseError::NoNode { message: "HeartbeatReplies", field: "origin" };
        assert_eq!(HeartbeatReplies::try_from(&flat(&[short(2), nobody])[..]), Err(need));
        let error = HeartbeatReplies::try_from(&flat(&[])[..]).unwrap_err();
        assert!(matches!(error, ParseError::Value { field: "replies", .. }), "{error}");
        let far = ShortReply { hops: 33, ..short(1) };
        assert!(HeartbeatReplies::try_from(&flat(&[far])[..]).is_err());
        let error = ManyReplies::parse(&[2; 25]).unwrap_err();
        let need = ParseError::Truncated { message: "HeartbeatReplies", need: 48, have: 25 };
        assert_eq!(error, need);
    }
}
