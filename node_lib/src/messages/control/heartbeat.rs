//! Heartbeat: an RSU makes itself known and relays carry the news outward. HeartbeatReply: an OBU
//! tells the RSU that it is there and who its upstream is, along the path it would send data on.
//!
//! # Heartbeat
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x21`                                                              |
//! |      1 |     1 | flags       | bits 3–1 children, saturates; bits 5–4 stride, at most 2            |
//! |      2 |     2 | length      | 48; 60 with a position                                              |
//! |      4 |     6 | rsu         | whose heartbeat                                                     |
//! |     10 |     4 | boot        | starts of the RSU                                                   |
//! |     14 |     4 | seq         | intervals since that start                                          |
//! |     18 |     2 | interval    | bits 15–14 pace; bits 13–0 from one `seq` to the next, in ms: 1 to 10000, times 2 to the power of the pace |
//! |     20 |     2 | obus        | attached to the RSU; saturates                                      |
//! |     22 |     6 | sender      | who sent this copy                                                  |
//! |     28 |     4 | sender_boot | starts of the sender                                                |
//! |     32 |     4 | hello       | heartbeats the sender sent on this radio, of any RSU                |
//! |     36 |     6 | via         | the sender's upstream for this RSU; zero at the RSU and only there  |
//! |     42 |     2 | cost        | of the path from sender to RSU, see [`Cost`]                        |
//! |     44 |     2 | mtu         | the longest packet that passes all radios from the sender to the RSU, its own among them, in bytes; saturates |
//! |     46 |     1 | hop_limit   | relays still allowed                                                |
//! |     47 |     1 | hops        | from the RSU to the sender, at most 32; 0 at the RSU and only there |
//!
//! What the RSU says comes first and is the same in all copies (offsets 4 to 21), what each sender
//! says of itself follows. So the first can be signed by the RSU, and the rest by the sender.
//!
//! A gap in `hello` is loss on the link from the sender, and nothing else: a relay that had no news
//! to pass on leaves no gap. `via` lets a node see that a neighbour routes through it. `mtu` is
//! there because a radio drops longer frames before anybody can count them: what goes to the RSU
//! through this neighbour is no longer. A relay says the smaller of its own radio's and of what its
//! upstream said; so it is known at the far end of the way. By `obus` every OBU knows how rarely to
//! say what it says about once a second: the more there are, the rarer each speaks.
//!
//! # Where the sender is
//!
//! A sender that wants to be seen on a map adds its position, at most once a second: see
//! [`super::position`].
//!
//! | offset | bytes | field        | meaning                                                            |
//! |-------:|------:|--------------|--------------------------------------------------------------------|
//! |     48 |     4 | latitude_e7  | 10⁻⁷ degrees (WGS 84), signed, north is positive; at most 90°      |
//! |     52 |     4 | longitude_e7 | 10⁻⁷ degrees, signed, east is positive; at most 180°               |
//! |     56 |     2 | accuracy_dm  | how far off it may be, in 0.1 m; 65535: not known                  |
//! |     58 |     2 | age_ms       | the sender was there so long ago, at most 5000                     |
//!
//! # HeartbeatReply
//!
//! | offset | bytes | field        | meaning                                                                 |
//! |-------:|------:|--------------|-------------------------------------------------------------------------|
//! |      0 |     1 | type         | `0x22`                                                                  |
//! |      1 |     1 | flags        | bit 0 goodbye; bit 1 standby; bit 2 acknowledge: see below              |
//! |      2 |     2 | length       | 52                                                                      |
//! |      4 |     6 | rsu          | for whom                                                                |
//! |     10 |     6 | origin       | the OBU                                                                 |
//! |     16 |     4 | boot         | starts of the OBU                                                       |
//! |     20 |     4 | seq          | replies and announcements of the OBU since that start                   |
//! |     24 |     4 | epoch        | of the OBU's attachment to this RSU                                     |
//! |     28 |     6 | via          | the OBU's upstream for this RSU; the RSU itself at one hop              |
//! |     34 |     4 | digest       | of the OBU's clients, see [`super::announcement::client_digest`]        |
//! |     38 |     2 | clients      | how many                                                                |
//! |     40 |     2 | within_ds    | the OBU's next word comes within this, in 0.1 s, at least 1             |
//! |     42 |     4 | answers      | sequence of the heartbeat answered                                      |
//! |     46 |     2 | held_100us   | how long the OBU held the heartbeat, in 0.1 ms; saturates               |
//! |     48 |     2 | mtu          | the longest packet of the OBU's own radio, in bytes; saturates          |
//! |     50 |     1 | at_risk_10ms | for how long the RSU's frames may not have arrived, in 10 ms; saturates |
//! |     51 |     1 | hops         | from the OBU to the sender, 0 at the OBU, at most 32                    |
//!
//! *Goodbye*: the OBU leaves. *Standby*: the OBU is attached elsewhere. It may come, or others that
//! are on their way to this RSU come through it. *Acknowledge*: the OBU wants to hear that the RSU
//! knows its upstream ([`super::ack::AckStatus::Accepted`]; [`super::ack::AckStatus::Known`] to an
//! OBU on standby).
//!
//! The upstreams of all OBUs are the tree from which an RSU makes the ways down
//! ([`crate::messages::way`]). An RSU that holds no set of an attached OBU, or one of another
//! digest, asks for it ([`super::ack::AckStatus::SendAll`]). Three times `within_ds` without a
//! word, and the OBU is taken to be gone. `held_100us` is what the RSU subtracts to see the round
//! trip of the path.

use super::position::{self, Position};
use crate::mac::NodeId;
use crate::messages::flags::{
    ACKNOWLEDGE, CHILDREN, GOODBYE, STANDBY, STRIDE, children, children_flags, flag, stride_flags,
};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::{Cost, Kind, ParseError, Rhythm};
use crate::order::{Boot, Order, Seq};

/// Length of a heartbeat without a position.
pub const LEN: usize = 48;

/// Length of a reply.
pub const REPLY_LEN: usize = 52;

layout! {
    struct Wire: LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 rsu: 6,
        10 boot: 4,
        14 seq: 4,
        18 interval: 2,
        20 obus: 2,
        22 sender: 6,
        28 sender_boot: 4,
        32 hello: 4,
        36 via: 6,
        42 cost: 2,
        44 mtu: 2,
        46 hop_limit: 1,
        47 hops: 1,
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
        24 epoch: 4,
        28 via: 6,
        34 digest: 4,
        38 clients: 2,
        40 within_ds: 2,
        42 answers: 4,
        46 held_100us: 2,
        48 mtu: 2,
        50 at_risk_10ms: 1,
        51 hops: 1,
    }
}

/// An RSU is there, and the sender of this copy has a path to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whose heartbeat.
    pub rsu: NodeId,
    /// Boot count and sequence of the RSU.
    pub order: Order,
    /// How often heartbeats of the RSU come.
    pub rhythm: Rhythm,
    /// OBUs attached to the RSU.
    pub obus: u16,
    /// Who sent this copy.
    pub sender: NodeId,
    /// Starts of the sender.
    pub sender_boot: Boot,
    /// Heartbeats the sender sent on this radio.
    pub hello: u32,
    /// The sender's upstream for this RSU; [`NodeId::NONE`] at the RSU.
    pub via: NodeId,
    /// Of the path from sender to RSU.
    pub cost: Cost,
    /// The longest packet that passes all radios from the sender to the RSU, its own among them, in
    /// bytes.
    pub mtu: u16,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// From the RSU to the sender.
    pub hops: u8,
    /// Neighbours that this RSU reaches through the sender, at most
    /// [`CHILDREN_MAX`](crate::messages::flags::CHILDREN_MAX): so many, or more.
    pub children: u8,
    /// Of the heartbeats that the RSU sends the sender brings every one, every second or every
    /// fourth: those whose number is a multiple of two to the power of pace and stride.
    pub stride: u8,
    /// Where the sender is, if it says so.
    pub position: Option<Position>,
}

impl Heartbeat {
    pub(crate) const FORMAT: Format = Format::at_least(Kind::Heartbeat, LEN, CHILDREN | STRIDE);

    /// Bytes on the wire, prefix included.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        if self.position.is_some() { LEN + position::LEN } else { LEN }
    }

    /// Appends the message.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.wire().append(out);
        if let Some(position) = &self.position {
            position.emit(out);
        }
    }

    pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
        self.wire().push_parts(parts);
        if let Some(position) = &self.position {
            position.push_parts(parts);
        }
    }

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Heartbeat.first_byte(),
            flags: [children_flags(self.children) | stride_flags(self.stride)],
            length: length(self.wire_len()),
            rsu: self.rsu.0,
            boot: self.order.boot.0.to_be_bytes(),
            seq: self.order.seq.0.to_be_bytes(),
            interval: self.rhythm.field(),
            obus: self.obus.to_be_bytes(),
            sender: self.sender.0,
            sender_boot: self.sender_boot.0.to_be_bytes(),
            hello: self.hello.to_be_bytes(),
            via: self.via.0,
            cost: self.cost.0.to_be_bytes(),
            mtu: self.mtu.to_be_bytes(),
            hop_limit: [self.hop_limit],
            hops: [self.hops],
        }
    }
}

impl TryFrom<&[u8]> for Heartbeat {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::Heartbeat;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, rest)) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let position = match <&[u8; position::LEN]>::try_from(rest) {
            Ok(rest) => Some(Position::read(kind, rest)?),
            Err(_) if rest.is_empty() => None,
            Err(_) => {
                let need = LEN + position::LEN;
                return Err(ParseError::Length { message: kind.name(), need, have: body.len() });
            }
        };
        let Wire {
            version_type: _,
            flags: _,
            length: _,
            rsu,
            boot,
            seq,
            interval,
            obus,
            sender,
            sender_boot,
            hello,
            via,
            cost,
            mtu,
            hop_limit: [hop_limit],
            hops: [hops],
        } = wire;
        let (rsu, sender) = (kind.node("rsu", rsu)?, kind.node("sender", sender)?);
        Ok(Self {
            rsu,
            order: Order::new(u32::from_be_bytes(boot), u32::from_be_bytes(seq)),
            rhythm: Rhythm::read(kind, interval)?,
            obus: u16::from_be_bytes(obus),
            sender,
            sender_boot: Boot(u32::from_be_bytes(sender_boot)),
            hello: u32::from_be_bytes(hello),
            via: NodeId(via),
            cost: Cost(u16::from_be_bytes(cost)),
            mtu: kind.mtu(mtu)?,
            hop_limit,
            hops: kind.hops_from(hops, (rsu, sender, NodeId(via)))?,
            children: children(flags),
            stride: kind.stride(flags)?,
            position,
        })
    }
}

/// An OBU heard a heartbeat, and says how it stands to its RSU and who its upstream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
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
    /// Of the OBU's clients.
    pub digest: u32,
    /// How many clients.
    pub clients: u16,
    /// The OBU's next word comes within this, in 0.1 s.
    pub within_ds: u16,
    /// Sequence of the heartbeat answered.
    pub answers: Seq,
    /// How long the OBU held the heartbeat, in 0.1 ms.
    pub held_100us: u16,
    /// The longest packet of the OBU's own radio, in bytes. From those of all on the way the RSU
    /// makes that of the way.
    pub mtu: u16,
    /// What the RSU sent to the OBU or through it within this, in 10 ms, may not have arrived: it
    /// lost its upstream, there has been no sign of life of that one for so long, and the RSU has
    /// not acknowledged the next one.
    pub at_risk_10ms: u8,
    /// From the OBU to the sender.
    pub hops: u8,
    /// The OBU leaves.
    pub goodbye: bool,
    /// The OBU is attached elsewhere: it may come, or others come through it.
    pub standby: bool,
    /// The OBU wants to know that the RSU knows its upstream.
    pub acknowledge: bool,
}

impl HeartbeatReply {
    pub(crate) const FORMAT: Format =
        Format::fixed(Kind::HeartbeatReply, REPLY_LEN, GOODBYE | STANDBY | ACKNOWLEDGE);

    #[inline]
    fn wire(&self) -> ReplyWire {
        ReplyWire {
            version_type: Kind::HeartbeatReply.first_byte(),
            flags: [flag(self.goodbye, GOODBYE)
                | flag(self.standby, STANDBY)
                | flag(self.acknowledge, ACKNOWLEDGE)],
            length: length(REPLY_LEN),
            rsu: self.rsu.0,
            origin: self.origin.0,
            boot: self.order.boot.0.to_be_bytes(),
            seq: self.order.seq.0.to_be_bytes(),
            epoch: self.epoch.to_be_bytes(),
            via: self.via.0,
            digest: self.digest.to_be_bytes(),
            clients: self.clients.to_be_bytes(),
            within_ds: self.within_ds.to_be_bytes(),
            answers: self.answers.0.to_be_bytes(),
            held_100us: self.held_100us.to_be_bytes(),
            mtu: self.mtu.to_be_bytes(),
            at_risk_10ms: [self.at_risk_10ms],
            hops: [self.hops],
        }
    }
}

impl TryFrom<&[u8]> for HeartbeatReply {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::HeartbeatReply;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, [])) = ReplyWire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let ReplyWire {
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
            clients,
            within_ds,
            answers,
            held_100us,
            mtu,
            at_risk_10ms: [at_risk_10ms],
            hops: [hops],
        } = wire;
        Ok(Self {
            rsu: kind.node("rsu", rsu)?,
            origin: kind.node("origin", origin)?,
            order: Order::new(u32::from_be_bytes(boot), u32::from_be_bytes(seq)),
            epoch: u32::from_be_bytes(epoch),
            via: kind.upstream(via, origin)?,
            digest: u32::from_be_bytes(digest),
            clients: u16::from_be_bytes(clients),
            within_ds: kind.within(within_ds)?,
            answers: Seq(u32::from_be_bytes(answers)),
            held_100us: u16::from_be_bytes(held_100us),
            mtu: kind.mtu(mtu)?,
            at_risk_10ms,
            hops: kind.hops(hops)?,
            goodbye: flags & GOODBYE != 0,
            standby: flags & STANDBY != 0,
            acknowledge: flags & ACKNOWLEDGE != 0,
        })
    }
}

fixed_size!(HeartbeatReply: REPLY_LEN);
conversions!(Heartbeat, HeartbeatReply);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::MAX_HOPS;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    const RELAY: NodeId = NodeId([2, 0, 0, 0, 0, 3]);

    fn heartbeat() -> Heartbeat {
        Heartbeat {
            rsu: RSU,
            order: Order::new(3, 1000),
            rhythm: Rhythm { tick_ms: 100, pace: 1 },
            obus: 9,
            sender: OBU,
            sender_boot: Boot(9),
            hello: 4242,
            via: RSU,
            cost: Cost(80),
            mtu: 1500,
            hop_limit: 7,
            hops: 1,
            children: 0,
            stride: 0,
            position: None,
        }
    }

    fn reply() -> HeartbeatReply {
        HeartbeatReply {
            rsu: RSU,
            origin: OBU,
            order: Order::new(9, 77),
            epoch: 5,
            via: RELAY,
            digest: 0xdead_beef,
            clients: 3,
            within_ds: 0x0102,
            answers: Seq(1000),
            held_100us: 13,
            mtu: 1400,
            at_risk_10ms: 23,
            hops: 2,
            goodbye: false,
            standby: false,
            acknowledge: false,
        }
    }

    fn patched(message: &Heartbeat, at: usize, bytes: &[u8]) -> Result<Heartbeat, ParseError> {
        let mut flat: Vec<u8> = message.into();
        flat[at..at + bytes.len()].copy_from_slice(bytes);
        Heartbeat::try_from(&flat[..])
    }

    fn patched_reply(at: usize, bytes: &[u8]) -> Result<HeartbeatReply, ParseError> {
        let mut flat: Vec<u8> = (&reply()).into();
        flat[at..at + bytes.len()].copy_from_slice(bytes);
        HeartbeatReply::try_from(&flat[..])
    }

    const fn value(
        message: &'static str,
        field: &'static str,
        need: &'static str,
        have: u32,
    ) -> ParseError {
        ParseError::Value { message, field, need, have }
    }

    #[test]
    fn a_heartbeat_reads_as_it_was_written() {
        let flat: Vec<u8> = (&heartbeat()).into();
        let by_the_rsu = [
            &[0x21, 0, 0, 48][..],
            &RSU.0,
            &[0, 0, 0, 3],
            &[0, 0, 0x03, 0xe8],
            &[0x40, 100],
            &[0, 9],
        ];
        let by_the_sender = [
            &OBU.0[..],
            &[0, 0, 0, 9],
            &[0, 0, 0x10, 0x92],
            &RSU.0,
            &[0, 80],
            &[0x05, 0xdc],
            &[7, 1],
        ];
        assert_eq!(flat, [by_the_rsu.concat(), by_the_sender.concat()].concat());
        assert_eq!(flat.capacity(), LEN);
        assert_eq!(Heartbeat::try_from(&flat[..]), Ok(heartbeat()));
    }

    #[test]
    fn what_the_rsu_says_is_the_same_in_all_copies() {
        let relayed = Heartbeat {
            sender: RELAY,
            sender_boot: Boot(1),
            hello: 1,
            via: OBU,
            cost: Cost(160),
            mtu: 1200,
            hop_limit: 6,
            hops: 2,
            ..heartbeat()
        };
        let (first, second): (Vec<u8>, Vec<u8>) = ((&heartbeat()).into(), (&relayed).into());
        assert_eq!(first[4..22], second[4..22]);
    }

    #[test]
    fn a_reply_reads_as_it_was_written() {
        for flags in 0..8_u8 {
            let reply = HeartbeatReply {
                goodbye: flags & 1 != 0,
                standby: flags & 2 != 0,
                acknowledge: flags & 4 != 0,
                ..reply()
            };
            let flat: Vec<u8> = (&reply).into();
            let expected = [
                &[0x22, flags, 0, 52][..],
                &RSU.0,
                &OBU.0,
                &[0, 0, 0, 9],
                &[0, 0, 0, 77],
                &[0, 0, 0, 5],
                &RELAY.0,
                &[0xde, 0xad, 0xbe, 0xef],
                &[0, 3],
                &[1, 2],
                &[0, 0, 0x03, 0xe8],
                &[0, 13],
                &[0x05, 0x78],
                &[23, 2],
            ];
            assert_eq!(flat, expected.concat());
            assert_eq!(HeartbeatReply::try_from(&flat[..]), Ok(reply));
        }
    }

    #[test]
    fn an_interval_of_zero_would_mean_a_flood() {
        let need = |have| value("Heartbeat", "interval_ms", "1 to 10000", have);
        assert_eq!(patched(&heartbeat(), 18, &[0, 0]), Err(need(0)));
        assert_eq!(patched(&heartbeat(), 18, &[0x27, 0x11]), Err(need(10_001)));
        assert!(patched(&heartbeat(), 18, &[0x27, 0x10]).is_ok());
        // 1250 and 1251 ms, eight times each.
        let slowest = Heartbeat { rhythm: Rhythm { tick_ms: 1250, pace: 3 }, ..heartbeat() };
        assert_eq!(patched(&heartbeat(), 18, &[0xc4, 0xe2]), Ok(slowest));
        assert_eq!(patched(&heartbeat(), 18, &[0xc4, 0xe3]), Err(need(10_008)));
    }

    #[test]
    fn a_radio_carries_the_smallest_packet() {
        let need = |message| value(message, "mtu", "at least 120", 119);
        assert_eq!(patched(&heartbeat(), 44, &[0, 119]), Err(need("Heartbeat")));
        assert_eq!(patched_reply(48, &[0, 119]), Err(need("HeartbeatReply")));
        for mtu in [120, u16::MAX] {
            let read = patched(&heartbeat(), 44, &mtu.to_be_bytes());
            assert_eq!(read, Ok(Heartbeat { mtu, ..heartbeat() }));
            let read = patched_reply(48, &mtu.to_be_bytes());
            assert_eq!(read, Ok(HeartbeatReply { mtu, ..reply() }));
        }
    }

    #[test]
    fn nobody_is_an_upstream_of_its_own() {
        let need = ParseError::Via { message: "HeartbeatReply", have: OBU };
        assert_eq!(patched_reply(28, &OBU.0), Err(need));
        let need = ParseError::NoNode { message: "HeartbeatReply", field: "via" };
        assert_eq!(patched_reply(28, &[0; 6]), Err(need));
        assert!(patched_reply(28, &RSU.0).is_ok());
    }

    #[test]
    fn the_next_word_comes_some_time_and_not_at_once() {
        let need = value("HeartbeatReply", "within_ds", "at least 1", 0);
        assert_eq!(patched_reply(40, &[0, 0]), Err(need));
        assert_eq!(patched_reply(40, &[0, 1]), Ok(HeartbeatReply { within_ds: 1, ..reply() }));
    }

    #[test]
    fn flags_without_a_meaning_are_zero() {
        for bit in 3..6 {
            let have = 1 << bit;
            let need = ParseError::Flags { message: "HeartbeatReply", need: 0x07, have };
            assert_eq!(patched_reply(1, &[have]), Err(need));
        }
    }

    #[test]
    fn no_hops_and_no_upstream_has_the_rsu_and_nobody_else() {
        let at_the_rsu = Heartbeat { hops: 0, sender: RSU, via: NodeId::NONE, ..heartbeat() };
        let flat: Vec<u8> = (&at_the_rsu).into();
        assert_eq!(Heartbeat::try_from(&flat[..]), Ok(at_the_rsu));
        for (at, bytes) in [(47, &[0][..]), (22, &RSU.0), (36, &NodeId::NONE.0)] {
            assert!(patched(&heartbeat(), at, bytes).is_err(), "a relay, other bytes at {at}");
        }
        for (at, bytes) in [(47, &[1][..]), (22, &OBU.0), (36, &OBU.0)] {
            assert!(patched(&at_the_rsu, at, bytes).is_err(), "an RSU, other bytes at {at}");
        }
    }

    #[test]
    fn a_path_ends_at_the_limit() {
        assert!(patched(&heartbeat(), 47, &[MAX_HOPS]).is_ok());
        let need = |message| value(message, "hops", "at most 32", 33);
        assert_eq!(patched(&heartbeat(), 47, &[MAX_HOPS + 1]), Err(need("Heartbeat")));
        assert!(patched_reply(51, &[MAX_HOPS]).is_ok());
        assert_eq!(patched_reply(51, &[MAX_HOPS + 1]), Err(need("HeartbeatReply")));
    }

    #[test]
    fn nobody_sends_nothing() {
        for (at, field) in [(4, "rsu"), (22, "sender")] {
            let need = ParseError::NoNode { message: "Heartbeat", field };
            assert_eq!(patched(&heartbeat(), at, &[0; 6]), Err(need));
        }
        for (at, field) in [(4, "rsu"), (10, "origin")] {
            let need = ParseError::NoNode { message: "HeartbeatReply", field };
            assert_eq!(patched_reply(at, &[0; 6]), Err(need));
        }
    }
}
