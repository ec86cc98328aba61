//! Heartbeat: an RSU makes itself known and relays carry the news outward. HeartbeatReply: an OBU tells
//! the RSU that it is there, along the path it would send data on.
//!
//! # Heartbeat
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x11`                                                              |
//! |      1 |     1 | flags       | bit 0 few candidates; bit 1 relays: others route through the sender |
//! |      2 |     2 | length      | 50                                                                  |
//! |      4 |     6 | rsu         | whose heartbeat                                                     |
//! |     10 |     4 | boot        | starts of the RSU                                                   |
//! |     14 |     4 | seq         | heartbeats since that start                                         |
//! |     18 |     2 | interval_ms | until the next, 1 to 10000                                          |
//! |     20 |     1 | hop_limit   | relays still allowed                                                |
//! |     21 |     1 | hops        | from the RSU to the sender, at most 32; 0 at the RSU and only there |
//! |     22 |     2 | cost        | of the path from sender to RSU, see [`Cost`]                        |
//! |     24 |     6 | sender      | who sent this copy                                                  |
//! |     30 |     4 | sender_boot | starts of the sender                                                |
//! |     34 |     4 | hello       | heartbeats the sender sent on this radio, of any RSU                |
//! |     38 |     6 | via         | the sender's upstream for this RSU; zero at the RSU and only there  |
//! |     44 |     4 | path        | which relays it came through, see [`PathTag`]                       |
//! |     48 |     2 | obus        | attached to the RSU; saturates                                      |
//!
//! A gap in `hello` is loss on the link from the sender, and nothing else: a relay that had no news to
//! pass on leaves no gap. `via` lets a node see that a neighbour routes through it. `path` changes when any
//! relay on the way does: then OBUs behind it must show the RSU their new way back. `obus` sets the pace of
//! what every OBU says about once a second: the more there are, the rarer each speaks.
//!
//! # HeartbeatReply
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x12`                                                              |
//! |      1 |     1 | flags       | bit 0 goodbye: the OBU leaves; bit 1 standby: it may come           |
//! |      2 |     2 | length      | 42                                                                  |
//! |      4 |     6 | rsu         | for whom                                                            |
//! |     10 |     6 | origin      | the OBU                                                             |
//! |     16 |     4 | boot        | starts of the OBU                                                   |
//! |     20 |     4 | seq         | replies and announcements of the OBU since that start               |
//! |     24 |     4 | answers     | sequence of the heartbeat answered                                  |
//! |     28 |     1 | hop_limit   | relays still allowed                                                |
//! |     29 |     1 | hops        | from the OBU to the sender, 0 at the OBU, at most 32                |
//! |     30 |     2 | held_100us  | how long the OBU held the heartbeat, in 0.1 ms; saturates           |
//! |     32 |     4 | epoch       | of the OBU's attachment to this RSU                                 |
//! |     36 |     4 | digest      | of the OBU's clients, see [`super::announcement::client_digest`]    |
//! |     40 |     2 | clients     | how many                                                            |
//!
//! An RSU that holds another digest asks for the clients ([`super::ack::AckStatus::SendAll`]).
//! `held_100us` is what the RSU subtracts to see the round trip of the path.

use crate::mac::NodeId;
use crate::messages::prefix::{FEW_CANDIDATES, GOODBYE, RELAYS, STANDBY, length};
use crate::messages::{Cost, Kind, ParseError, PathTag};
use crate::order::{Boot, Order, Seq};

/// Length of a heartbeat.
pub const LEN: usize = 50;

/// Length of a reply.
pub const REPLY_LEN: usize = 42;

layout! {
    struct Wire: LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 rsu: 6,
        10 boot: 4,
        14 seq: 4,
        18 interval_ms: 2,
        20 hop_limit: 1,
        21 hops: 1,
        22 cost: 2,
        24 sender: 6,
        30 sender_boot: 4,
        34 hello: 4,
        38 via: 6,
        44 path: 4,
        48 obus: 2,
    }
}

layout! {
    struct ReplyWire: REPLY_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 rsu: 6,
        10 origin: 6,
        16 boot: 4,
        20 seq: 4,
        24 answers: 4,
        28 hop_limit: 1,
        29 hops: 1,
        30 held_100us: 2,
        32 epoch: 4,
        36 digest: 4,
        40 clients: 2,
    }
}

/// An RSU is there, and the sender of this copy has a path to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whose heartbeat.
    pub rsu: NodeId,
    /// Boot count and sequence of the RSU.
    pub order: Order,
    /// Until the RSU's next heartbeat.
    pub interval_ms: u16,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// From the RSU to the sender.
    pub hops: u8,
    /// Of the path from sender to RSU.
    pub cost: Cost,
    /// Who sent this copy.
    pub sender: NodeId,
    /// Starts of the sender.
    pub sender_boot: Boot,
    /// Heartbeats the sender sent on this radio.
    pub hello: u32,
    /// The sender's upstream for this RSU; [`NodeId::NONE`] at the RSU.
    pub via: NodeId,
    /// The relays between the RSU and the sender.
    pub path: PathTag,
    /// OBUs attached to the RSU.
    pub obus: u16,
    /// The sender knows fewer candidates than it would like.
    pub few_candidates: bool,
    /// Others route through the sender to this RSU.
    pub relays: bool,
}

impl Heartbeat {
    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Heartbeat.first_byte(),
            flags: [
                (u8::from(self.few_candidates) * FEW_CANDIDATES) | (u8::from(self.relays) * RELAYS)
            ],
            length: length(LEN),
            rsu: self.rsu.0,
            boot: self.order.boot.0.to_be_bytes(),
            seq: self.order.seq.0.to_be_bytes(),
            interval_ms: self.interval_ms.to_be_bytes(),
            hop_limit: [self.hop_limit],
            hops: [self.hops],
            cost: self.cost.0.to_be_bytes(),
            sender: self.sender.0,
            sender_boot: self.sender_boot.0.to_be_bytes(),
            hello: self.hello.to_be_bytes(),
            via: self.via.0,
            path: self.path.0.to_be_bytes(),
            obus: self.obus.to_be_bytes(),
        }
    }
}

impl TryFrom<&[u8]> for Heartbeat {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::Heartbeat;
        let (flags, body) = kind.open(bytes)?;
        let Some((wire, [])) = Wire::read(body) else {
            return Err(kind.truncated(body.len()));
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            rsu,
            boot,
            seq,
            interval_ms,
            hop_limit: [hop_limit],
            hops: [hops],
            cost,
            sender,
            sender_boot,
            hello,
            via,
            path,
            obus,
        } = wire;
        let (rsu, sender) = (kind.node("rsu", rsu)?, kind.node("sender", sender)?);
        Ok(Self {
            rsu,
            order: Order::new(u32::from_be_bytes(boot), u32::from_be_bytes(seq)),
            interval_ms: kind.interval(interval_ms)?,
            hop_limit,
            hops: kind.hops_from(hops, (rsu, sender, NodeId(via)))?,
            cost: Cost(u16::from_be_bytes(cost)),
            sender,
            sender_boot: Boot(u32::from_be_bytes(sender_boot)),
            hello: u32::from_be_bytes(hello),
            via: NodeId(via),
            path: PathTag(u32::from_be_bytes(path)),
            obus: u16::from_be_bytes(obus),
            few_candidates: flags & FEW_CANDIDATES != 0,
            relays: flags & RELAYS != 0,
        })
    }
}

/// An OBU heard a heartbeat and is attached to its RSU, or leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// For whom.
    pub rsu: NodeId,
    /// The OBU.
    pub origin: NodeId,
    /// Boot count and sequence of the OBU.
    pub order: Order,
    /// Sequence of the heartbeat answered.
    pub answers: Seq,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// From the OBU to the sender.
    pub hops: u8,
    /// How long the OBU held the heartbeat, in 0.1 ms.
    pub held_100us: u16,
    /// Of the OBU's attachment.
    pub epoch: u32,
    /// Of the OBU's clients.
    pub digest: u32,
    /// How many clients.
    pub clients: u16,
    /// The OBU leaves.
    pub goodbye: bool,
    /// The OBU is attached elsewhere and may come.
    pub standby: bool,
}

impl HeartbeatReply {
    #[inline]
    fn wire(&self) -> ReplyWire {
        ReplyWire {
            version_type: Kind::HeartbeatReply.first_byte(),
            flags: [if self.goodbye { GOODBYE } else { 0 } | if self.standby { STANDBY } else { 0 }],
            length: length(REPLY_LEN),
            rsu: self.rsu.0,
            origin: self.origin.0,
            boot: self.order.boot.0.to_be_bytes(),
            seq: self.order.seq.0.to_be_bytes(),
            answers: self.answers.0.to_be_bytes(),
            hop_limit: [self.hop_limit],
            hops: [self.hops],
            held_100us: self.held_100us.to_be_bytes(),
            epoch: self.epoch.to_be_bytes(),
            digest: self.digest.to_be_bytes(),
            clients: self.clients.to_be_bytes(),
        }
    }
}

impl TryFrom<&[u8]> for HeartbeatReply {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::HeartbeatReply;
        let (flags, body) = kind.open(bytes)?;
        let Some((wire, [])) = ReplyWire::read(body) else {
            return Err(kind.truncated(body.len()));
        };
        let ReplyWire {
            version_type: _,
            flags: _,
            length: _,
            rsu,
            origin,
            boot,
            seq,
            answers,
            hop_limit: [hop_limit],
            hops: [hops],
            held_100us,
            epoch,
            digest,
            clients,
        } = wire;
        Ok(Self {
            rsu: kind.node("rsu", rsu)?,
            origin: kind.node("origin", origin)?,
            order: Order::new(u32::from_be_bytes(boot), u32::from_be_bytes(seq)),
            answers: Seq(u32::from_be_bytes(answers)),
            hop_limit,
            hops: kind.hops(hops)?,
            held_100us: u16::from_be_bytes(held_100us),
            epoch: u32::from_be_bytes(epoch),
            digest: u32::from_be_bytes(digest),
            clients: u16::from_be_bytes(clients),
            goodbye: flags & GOODBYE != 0,
            standby: flags & STANDBY != 0,
        })
    }
}

fixed_size!(Heartbeat: LEN, HeartbeatReply: REPLY_LEN);
conversions!(Heartbeat, HeartbeatReply);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::MAX_HOPS;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);

    fn heartbeat() -> Heartbeat {
        Heartbeat {
            rsu: RSU,
            order: Order::new(3, 1000),
            interval_ms: 100,
            hop_limit: 7,
            hops: 1,
            cost: Cost(80),
            sender: OBU,
            sender_boot: Boot(9),
            hello: 4242,
            via: RSU,
            path: PathTag(7),
            obus: 9,
            few_candidates: true,
            relays: false,
        }
    }

    fn reply() -> HeartbeatReply {
        HeartbeatReply {
            rsu: RSU,
            origin: OBU,
            order: Order::new(9, 77),
            answers: Seq(1000),
            hop_limit: 8,
            hops: 0,
            held_100us: 13,
            epoch: 5,
            digest: 0xdead_beef,
            clients: 3,
            goodbye: false,
            standby: false,
        }
    }

    fn patched(message: &Heartbeat, at: usize, bytes: &[u8]) -> Result<Heartbeat, ParseError> {
        let mut flat: Vec<u8> = message.into();
        flat[at..at + bytes.len()].copy_from_slice(bytes);
        Heartbeat::try_from(&flat[..])
    }

    #[test]
    fn a_heartbeat_reads_as_it_was_written() {
        let flat: Vec<u8> = (&heartbeat()).into();
        assert_eq!(flat.len(), LEN);
        assert_eq!(flat.capacity(), LEN);
        assert_eq!(flat[..4], [0x11, 1, 0, 50]);
        assert_eq!(flat[48..], [0, 9]);
        assert_eq!(flat[18..24], [0, 100, 7, 1, 0, 80]);
        assert_eq!(Heartbeat::try_from(&flat[..]), Ok(heartbeat()));
    }

    #[test]
    fn a_reply_reads_as_it_was_written() {
        for (goodbye, standby) in [(false, false), (true, false), (false, true)] {
            let reply = HeartbeatReply { goodbye, standby, ..reply() };
            let flat: Vec<u8> = (&reply).into();
            assert_eq!(flat.len(), REPLY_LEN);
            assert_eq!(flat[..4], [0x12, u8::from(goodbye) | u8::from(standby) << 1, 0, 42]);
            assert_eq!(HeartbeatReply::try_from(&flat[..]), Ok(reply));
        }
    }

    #[test]
    fn an_interval_of_zero_would_mean_a_flood() {
        let need = |have| ParseError::Value {
            message: "Heartbeat",
            field: "interval_ms",
            need: "1 to 10000",
            have,
        };
        assert_eq!(patched(&heartbeat(), 18, &[0, 0]), Err(need(0)));
        assert_eq!(patched(&heartbeat(), 18, &[0x27, 0x11]), Err(need(10_001)));
        assert!(patched(&heartbeat(), 18, &[0x27, 0x10]).is_ok());
    }

    #[test]
    fn no_hops_and_no_upstream_has_the_rsu_and_nobody_else() {
        let at_the_rsu = Heartbeat { hops: 0, sender: RSU, via: NodeId::NONE, ..heartbeat() };
        let flat: Vec<u8> = (&at_the_rsu).into();
        assert_eq!(Heartbeat::try_from(&flat[..]), Ok(at_the_rsu));
        for (at, bytes) in [(21, &[0][..]), (24, &RSU.0), (38, &NodeId::NONE.0)] {
            assert!(patched(&heartbeat(), at, bytes).is_err(), "a relay, other bytes at {at}");
        }
        for (at, bytes) in [(21, &[1][..]), (24, &OBU.0), (38, &OBU.0)] {
            assert!(patched(&at_the_rsu, at, bytes).is_err(), "an RSU, other bytes at {at}");
        }
    }

    #[test]
    fn a_path_ends_at_the_limit() {
        assert!(patched(&heartbeat(), 21, &[MAX_HOPS]).is_ok());
        let need =
            ParseError::Value { message: "Heartbeat", field: "hops", need: "at most 32", have: 33 };
        assert_eq!(patched(&heartbeat(), 21, &[MAX_HOPS + 1]), Err(need));
        let reply = HeartbeatReply { hops: 33, ..reply() };
        let flat: Vec<u8> = (&reply).into();
        assert!(HeartbeatReply::try_from(&flat[..]).is_err());
    }

    #[test]
    fn nobody_sends_nothing() {
        for (at, field) in [(4, "rsu"), (24, "sender")] {
            let need = ParseError::NoNode { message: "Heartbeat", field };
            assert_eq!(patched(&heartbeat(), at, &[0; 6]), Err(need));
        }
        let flat: Vec<u8> = (&HeartbeatReply { origin: NodeId::NONE, ..reply() }).into();
        let need = ParseError::NoNode { message: "HeartbeatReply", field: "origin" };
        assert_eq!(HeartbeatReply::try_from(&flat[..]), Err(need));
    }
}
