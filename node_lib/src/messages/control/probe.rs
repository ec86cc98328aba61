//! Probe: is this link alive, and what would you do for me? ProbeAnswer: the sender's route, now.
//!
//! A node probes an upstream that fell silent, and solicits (`rsu` zero) when it has none. The
//! answer is worth as much as a heartbeat of that neighbour: it carries the same fields.
//!
//! A probe goes to all in either case, and names who is to answer. A radio repeats a unicast frame
//! until it is acknowledged, so one of a link that loses half would hardly ever get lost, and one
//! to who is gone would take the air of seven. The probes of ETX are broadcast for the same reason
//! (De Couto et al., MobiCom 2003, §3.2).
//!
//! # Probe
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x23`                                                              |
//! |      1 |     1 | flags       | none                                                                |
//! |      2 |     2 | length      | 24                                                                  |
//! |      4 |     6 | sender      | who asks                                                            |
//! |     10 |     4 | sender_boot | starts of the sender                                                |
//! |     14 |     4 | nonce       | comes back in the answer                                            |
//! |     18 |     6 | rsu         | whose route is asked for; zero: any                                 |
//! |     24 |     6 | asked       | who is to answer; zero: everyone who has a route                    |
//!
//! # ProbeAnswer
//!
//! | offset | bytes | field       | meaning                                                             |
//! |-------:|------:|-------------|---------------------------------------------------------------------|
//! |      0 |     1 | type        | `0x24`                                                              |
//! |      1 |     1 | flags       | bits 5–4 stride, as in a heartbeat; 0 without a route               |
//! |      2 |     2 | length      | 52                                                                  |
//! |      4 |     6 | sender      | who answers                                                         |
//! |     10 |     4 | sender_boot | starts of the sender                                                |
//! |     14 |     6 | asker       | who asked                                                           |
//! |     20 |     4 | nonce       | of the question                                                     |
//! |     24 |     2 | mtu         | the longest packet that passes all radios from the sender to the RSU, as in a heartbeat; without a way that of its own radio |
//! |     26 |     6 | rsu         | whose route this is; zero only without a route                      |
//! |     32 |     4 | boot        | starts of the RSU                                                   |
//! |     36 |     4 | seq         | of the last heartbeat the sender heard from it                      |
//! |     40 |     2 | interval    | of that heartbeat, its pace as well                                 |
//! |     42 |     6 | via         | the sender's upstream for this RSU; zero at the RSU and only there  |
//! |     48 |     2 | cost        | of the path from sender to RSU                                      |
//! |     50 |     1 | hop_limit   | relays still allowed                                                |
//! |     51 |     1 | hops        | from the RSU, 0 there and only there, at most 32; 255: no route     |
//!
//! Without a route, `boot` to `hop_limit` are zero.

use super::heartbeat::Heartbeat;
use crate::mac::NodeId;
use crate::messages::flags::{STRIDE, stride_flags};
use crate::messages::format::Format;
use crate::messages::prefix::length;
use crate::messages::{Cost, Kind, ParseError, Rhythm};
use crate::order::{Boot, Order};

/// Length of a probe.
pub const LEN: usize = 30;

/// Length of an answer.
pub const ANSWER_LEN: usize = 52;

/// In `hops`: the sender has no route.
pub const NO_ROUTE: u8 = 255;

layout! {
    struct Wire: LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 sender: 6,
        10 sender_boot: 4,
        14 nonce: 4,
        18 rsu: 6,
        24 asked: 6,
    }
}

layout! {
    struct AnswerWire: ANSWER_LEN {
        0 version_type: 1,
        1 flags: 1,
        2 length: 2,
        4 sender: 6,
        10 sender_boot: 4,
        14 asker: 6,
        20 nonce: 4,
        24 mtu: 2,
        26 rsu: 6,
        32 boot: 4,
        36 seq: 4,
        40 interval: 2,
        42 via: 6,
        48 cost: 2,
        50 hop_limit: 1,
        51 hops: 1,
    }
}

/// Asks a neighbour, or all of them, for a route. It goes to all in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Who asks.
    pub sender: NodeId,
    /// Starts of the sender.
    pub sender_boot: Boot,
    /// Comes back in the answer.
    pub nonce: u32,
    /// Whose route is asked for; [`NodeId::NONE`]: any, a solicitation.
    pub rsu: NodeId,
    /// Who is to answer; [`NodeId::NONE`]: everyone who has a route.
    pub asked: NodeId,
}

impl Probe {
    pub(crate) const FORMAT: Format = Format::fixed(Kind::Probe, LEN, 0);

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            version_type: Kind::Probe.first_byte(),
            flags: [0],
            length: length(LEN),
            sender: self.sender.0,
            sender_boot: self.sender_boot.0.to_be_bytes(),
            nonce: self.nonce.to_be_bytes(),
            rsu: self.rsu.0,
            asked: self.asked.0,
        }
    }
}

impl TryFrom<&[u8]> for Probe {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::Probe;
        let (_, body) = Self::FORMAT.open(bytes)?;
        let Some((wire, [])) = Wire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let Wire { version_type: _, flags: _, length: _, sender, sender_boot, nonce, rsu, asked } =
            wire;
        Ok(Self {
            sender: kind.node("sender", sender)?,
            sender_boot: Boot(u32::from_be_bytes(sender_boot)),
            nonce: u32::from_be_bytes(nonce),
            rsu: NodeId(rsu),
            asked: NodeId(asked),
        })
    }
}

/// What the sender knows about an RSU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// Who answers.
    pub sender: NodeId,
    /// Starts of the sender.
    pub sender_boot: Boot,
    /// Who asked.
    pub asker: NodeId,
    /// Of the question.
    pub nonce: u32,
    /// The longest packet that passes all radios from the sender to the RSU, in bytes; without a
    /// way, that of its own.
    pub mtu: u16,
    /// Whose route this is; may be [`NodeId::NONE`] only without a route.
    pub rsu: NodeId,
    /// The route, if the sender has one.
    pub route: Option<AnsweredRoute>,
}

/// The route in a [`ProbeAnswer`]: what a heartbeat of the sender says, or would say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredRoute {
    /// Boot count and sequence of the last heartbeat of the RSU.
    pub order: Order,
    /// As that heartbeat said.
    pub rhythm: Rhythm,
    /// The sender's upstream for this RSU; [`NodeId::NONE`] at the RSU.
    pub via: NodeId,
    /// Of the path from sender to RSU.
    pub cost: Cost,
    /// Relays still allowed.
    pub hop_limit: u8,
    /// From the RSU to the sender.
    pub hops: u8,
    /// Of the heartbeats that the RSU sends the sender brings every one, every second or every
    /// fourth.
    pub stride: u8,
}

impl From<&Heartbeat> for AnsweredRoute {
    fn from(heartbeat: &Heartbeat) -> Self {
        Self {
            order: heartbeat.order,
            rhythm: heartbeat.rhythm,
            via: heartbeat.via,
            cost: heartbeat.cost,
            hop_limit: heartbeat.hop_limit,
            hops: heartbeat.hops,
            stride: heartbeat.stride,
        }
    }
}

impl ProbeAnswer {
    pub(crate) const FORMAT: Format = Format::fixed(Kind::ProbeAnswer, ANSWER_LEN, STRIDE);

    #[inline]
    fn wire(&self) -> AnswerWire {
        // What the other route fields hold when there is none.
        let route = self.route.unwrap_or(AnsweredRoute {
            order: Order::new(0, 0),
            rhythm: Rhythm::each(0),
            via: NodeId::NONE,
            cost: Cost::ZERO,
            hop_limit: 0,
            hops: NO_ROUTE,
            stride: 0,
        });
        AnswerWire {
            version_type: Kind::ProbeAnswer.first_byte(),
            flags: [stride_flags(route.stride)],
            length: length(ANSWER_LEN),
            sender: self.sender.0,
            sender_boot: self.sender_boot.0.to_be_bytes(),
            asker: self.asker.0,
            nonce: self.nonce.to_be_bytes(),
            mtu: self.mtu.to_be_bytes(),
            rsu: self.rsu.0,
            boot: route.order.boot.0.to_be_bytes(),
            seq: route.order.seq.0.to_be_bytes(),
            interval: route.rhythm.field(),
            via: route.via.0,
            cost: route.cost.0.to_be_bytes(),
            hop_limit: [route.hop_limit],
            hops: [route.hops],
        }
    }
}

impl TryFrom<&[u8]> for ProbeAnswer {
    type Error = ParseError;

    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let kind = Kind::ProbeAnswer;
        let (flags, body) = Self::FORMAT.open(bytes)?;
        let stride = kind.stride(flags)?;
        let Some((wire, [])) = AnswerWire::read(body) else {
            return Err(Self::FORMAT.truncated(body.len()));
        };
        let AnswerWire {
            version_type: _,
            flags: _,
            length: _,
            sender,
            sender_boot,
            asker,
            nonce,
            mtu,
            rsu,
            boot,
            seq,
            interval,
            via,
            cost,
            hop_limit: [hop_limit],
            hops: [hops],
        } = wire;
        let route = if hops == NO_ROUTE {
            let [v0, v1, low @ ..] = via;
            let fields = [
                ("boot", u32::from_be_bytes(boot)),
                ("seq", u32::from_be_bytes(seq)),
                ("interval_ms", u16::from_be_bytes(interval).into()),
                ("via", u32::from_be_bytes(low)),
                ("via", u16::from_be_bytes([v0, v1]).into()),
                ("cost", u16::from_be_bytes(cost).into()),
                ("hop_limit", hop_limit.into()),
                ("stride", stride.into()),
            ];
            if let Some((field, have)) = fields.into_iter().find(|&(_, value)| value != 0) {
                return Err(kind.value(field, "zero without a route", have));
            }
            None
        } else {
            let ends = (kind.node("rsu", rsu)?, NodeId(sender), NodeId(via));
            Some(AnsweredRoute {
                order: Order::new(u32::from_be_bytes(boot), u32::from_be_bytes(seq)),
                rhythm: Rhythm::read(kind, interval)?,
                via: NodeId(via),
                cost: Cost(u16::from_be_bytes(cost)),
                hop_limit,
                hops: kind.hops_from(hops, ends)?,
                stride,
            })
        };
        Ok(Self {
            sender: kind.node("sender", sender)?,
            sender_boot: Boot(u32::from_be_bytes(sender_boot)),
            asker: kind.node("asker", asker)?,
            nonce: u32::from_be_bytes(nonce),
            mtu: kind.mtu(mtu)?,
            rsu: NodeId(rsu),
            route,
        })
    }
}

fixed_size!(Probe: LEN, ProbeAnswer: ANSWER_LEN);
conversions!(Probe, ProbeAnswer);

#[cfg(test)]
mod tests {
    use super::*;

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    const RELAY: NodeId = NodeId([2, 0, 0, 0, 0, 3]);

    fn answer(route: Option<AnsweredRoute>) -> ProbeAnswer {
        ProbeAnswer {
            sender: RELAY,
            sender_boot: Boot(4),
            asker: OBU,
            nonce: 17,
            mtu: 1400,
            rsu: RSU,
            route,
        }
    }

    fn route() -> AnsweredRoute {
        AnsweredRoute {
            order: Order::new(3, 1000),
            rhythm: Rhythm { tick_ms: 100, pace: 1 },
            via: RSU,
            cost: Cost(64),
            hop_limit: 7,
            hops: 1,
            stride: 0,
        }
    }

    fn probe() -> Probe {
        let (rsu, asked) = (NodeId::NONE, NodeId::NONE);
        Probe { sender: OBU, sender_boot: Boot(9), nonce: 17, rsu, asked }
    }

    #[test]
    fn a_solicitation_asks_for_any_rsu() {
        let flat: Vec<u8> = (&probe()).into();
        let expected = [&[0x23, 0, 0, 30][..], &OBU.0, &[0, 0, 0, 9], &[0, 0, 0, 17], &[0; 12]];
        assert_eq!(flat, expected.concat());
        assert_eq!(Probe::try_from(&flat[..]), Ok(probe()));
    }

    #[test]
    fn a_question_to_one_names_who_is_to_answer() {
        let one = Probe { rsu: RSU, asked: RELAY, ..probe() };
        let flat: Vec<u8> = (&one).into();
        assert_eq!(flat[18..], [RSU.0, RELAY.0].concat());
        assert_eq!(Probe::try_from(&flat[..]), Ok(one));
    }

    #[test]
    fn an_answer_reads_as_it_was_written() {
        let head = [
            &[0x24, 0, 0, 52][..],
            &RELAY.0,
            &[0, 0, 0, 4],
            &OBU.0,
            &[0, 0, 0, 17],
            &[0x05, 0x78],
            &RSU.0,
        ];
        let known =
            [&[0, 0, 0, 3][..], &[0, 0, 0x03, 0xe8], &[0x40, 100], &RSU.0, &[0, 64], &[7, 1]];
        let none = [&[0; 19][..], &[255]];
        for (route, tail) in [(None, none.concat()), (Some(route()), known.concat())] {
            let flat: Vec<u8> = (&answer(route)).into();
            assert_eq!(flat, [head.concat(), tail].concat());
            assert_eq!(ProbeAnswer::try_from(&flat[..]), Ok(answer(route)));
        }
    }

    #[test]
    fn a_radio_carries_the_smallest_packet() {
        let need =
            |message| ParseError::Value { message, field: "mtu", need: "at least 120", have: 119 };
        let flat: Vec<u8> = (&ProbeAnswer { mtu: 119, ..answer(None) }).into();
        assert_eq!(ProbeAnswer::try_from(&flat[..]), Err(need("ProbeAnswer")));
        let least = ProbeAnswer { mtu: 120, ..answer(None) };
        let flat: Vec<u8> = (&least).into();
        assert_eq!(ProbeAnswer::try_from(&flat[..]), Ok(least));
    }

    #[test]
    fn only_an_answer_without_a_route_may_name_no_rsu() {
        let flat: Vec<u8> = (&ProbeAnswer { rsu: NodeId::NONE, ..answer(None) }).into();
        assert!(ProbeAnswer::try_from(&flat[..]).is_ok());
        let flat: Vec<u8> = (&ProbeAnswer { rsu: NodeId::NONE, ..answer(Some(route())) }).into();
        let need = ParseError::NoNode { message: "ProbeAnswer", field: "rsu" };
        assert_eq!(ProbeAnswer::try_from(&flat[..]), Err(need));
    }

    #[test]
    fn no_route_has_no_fields() {
        for at in 32..ANSWER_LEN - 1 {
            let mut flat: Vec<u8> = (&answer(None)).into();
            flat[at] = 1;
            let error = ProbeAnswer::try_from(&flat[..]).unwrap_err();
            assert!(
                matches!(error, ParseError::Value { need: "zero without a route", .. }),
                "{at}: {error}"
            );
        }
    }

    #[test]
    fn a_path_beyond_the_limit_is_neither_a_route_nor_none() {
        let flat: Vec<u8> = (&answer(Some(AnsweredRoute { hops: 254, ..route() }))).into();
        let error = ProbeAnswer::try_from(&flat[..]).unwrap_err();
        assert!(matches!(error, ParseError::Value { field: "hops", have: 254, .. }), "{error}");
    }
}
