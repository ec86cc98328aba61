//! What neighbours and RSUs say to the OBU.

use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::messages::{Cost, PacketType, Rhythm, Way};
use node_lib::{Boot, Mac, NodeId, Order, Seq};

use super::{A, RSU, Talk, US, id};

/// Of radios here, in bytes.
pub(super) const MTU: u16 = 1500;

#[derive(Clone)]
pub(crate) enum Heard {
    Heartbeat {
        boot: u32,
        seq: u32,
        hops: u8,
        via: Option<Mac>,
    },
    Answer {
        nonce: u32,
        seq: u32,
        hops: u8,
    },
    AnswerTo {
        asker: Mac,
        seq: u32,
    },
    /// About an RSU with this boot count, one hop away.
    AnswerOf {
        boot: u32,
        nonce: u32,
        seq: u32,
    },
    Probe {
        boot: u32,
    },
    ProbeFor {
        rsu: Mac,
    },
    /// It asks somebody else.
    ProbeOf {
        whom: Mac,
    },
    Withdrawal {
        goodbye: bool,
    },
    Ack {
        epoch: u32,
        status: AckStatus,
        digest: u32,
    },
    Reply {
        origin: Mac,
        seq: u32,
        hops: u8,
    },
    Standby {
        origin: Mac,
        rsu: Mac,
        seq: u32,
    },
    Impostor,
}

impl Heard {
    pub(crate) fn heartbeat(seq: u32, hops: u8) -> Self {
        Self::Heartbeat { boot: 1, seq, hops, via: None }
    }

    pub(crate) fn heartbeat_via(seq: u32, hops: u8, via: Mac) -> Self {
        Self::Heartbeat { boot: 1, seq, hops, via: Some(via) }
    }

    pub(crate) fn answer(nonce: u32, seq: u32, hops: u8) -> Self {
        Self::Answer { nonce, seq, hops }
    }
}

impl Talk {
    pub(super) fn hear_now(&mut self, from: Mac, to: Mac, heard: Heard) {
        let sender = id(from);
        let sender_boot = Boot(1);
        let (rsu, obus, rhythm) = (id(self.rsu), self.obus, self.rhythm);
        // A question to us alone goes to all as well.
        let asked = if to == US { id(US) } else { NodeId::NONE };
        let packet: PacketType<'_> = match heard.clone() {
            Heard::Heartbeat { boot, seq, hops, via } => Heartbeat {
                rsu,
                order: Order::new(boot, seq),
                rhythm,
                hop_limit: HOP_LIMIT - hops,
                hops,
                cost: Cost(64 * u16::from(hops)),
                sender,
                sender_boot,
                // It counts those it brings.
                hello: if self.is_lossy { seq } else { seq >> self.stride },
                via: via.map_or(if hops == 0 { NodeId::NONE } else { rsu }, id),
                obus,
                mtu: self.mtu,
                children: self.children,
                stride: self.stride,
                position: self.position,
            }
            .into(),
            Heard::Answer { nonce, seq, hops } => {
                let answer = answer(rsu, from, US, nonce, seq, hops);
                let stride = self.stride;
                let route = answer.route.map(|route| AnsweredRoute { stride, rhythm, ..route });
                ProbeAnswer { mtu: self.mtu, route, ..answer }.into()
            }
            Heard::AnswerTo { asker, seq } => answer(rsu, from, asker, ASKED, seq, 1).into(),
            Heard::AnswerOf { boot, nonce, seq } => {
                let mut answer = answer(rsu, from, US, nonce, seq, 1);
                answer.route =
                    answer.route.map(|r| AnsweredRoute { order: Order::new(boot, seq), ..r });
                answer.into()
            }
            Heard::Probe { boot } => {
                let sender_boot = Boot(boot);
                Probe { sender, sender_boot, nonce: ASKED, rsu: NodeId::NONE, asked }.into()
            }
            Heard::ProbeFor { rsu } => {
                Probe { sender, sender_boot, nonce: ASKED, rsu: id(rsu), asked }.into()
            }
            Heard::ProbeOf { whom } => {
                Probe { sender, sender_boot, nonce: ASKED, rsu, asked: id(whom) }.into()
            }
            Heard::Impostor => {
                let (sender, rsu) = (id(US), NodeId::NONE);
                Probe { sender, sender_boot, nonce: ASKED, rsu, asked }.into()
            }
            Heard::Withdrawal { goodbye } => {
                let rsus = if goodbye { NodeIds::EMPTY } else { NodeIds::parse(&RSU.0).unwrap() };
                Withdrawal { sender, sender_boot, goodbye, rsus }.into()
            }
            Heard::Ack { epoch, status, digest } => AnnouncementAck {
                destination: id(US),
                rsu,
                epoch,
                seq: self.said,
                digest,
                part: 0,
                parts: 1,
                status,
                way: Way::END,
            }
            .into(),
            Heard::Reply { origin, seq, hops } => reply(origin, RSU, seq, hops, false).into(),
            Heard::Standby { origin, rsu, seq } => reply(origin, rsu, seq, 0, true).into(),
        };
        self.wire(from, to, packet);
        if let Heard::Heartbeat { boot, seq, hops, via } = heard {
            self.answer_as_upstream(from, (boot, seq, hops), via);
        }
    }
}

/// Nonce of the questions others ask here.
const ASKED: u32 = 99;

pub(super) fn answer(
    rsu: NodeId,
    from: Mac,
    asker: Mac,
    nonce: u32,
    seq: u32,
    hops: u8,
) -> ProbeAnswer {
    ProbeAnswer {
        sender: id(from),
        sender_boot: Boot(1),
        asker: id(asker),
        nonce,
        mtu: MTU,
        rsu,
        route: Some(AnsweredRoute {
            order: Order::new(1, seq),
            rhythm: Rhythm::each(100),
            hops,
            hop_limit: HOP_LIMIT - hops,
            cost: Cost(64 * u16::from(hops)),
            via: if hops == 0 { NodeId::NONE } else { rsu },
            stride: 0,
        }),
    }
}

/// What an OBU says whose upstream we are; or what we said, when it is ours.
pub(crate) fn reply(origin: Mac, rsu: Mac, seq: u32, hops: u8, standby: bool) -> HeartbeatReply {
    HeartbeatReply {
        rsu: id(rsu),
        origin: id(origin),
        order: Order::new(1, seq),
        epoch: 1,
        via: id(if origin == US { A } else { US }),
        digest: 0,
        clients: 0,
        within_ds: 13,
        at_risk_10ms: 0,
        answers: Seq(0),
        held_100us: 0,
        mtu: MTU,
        hops,
        goodbye: false,
        standby,
        acknowledge: false,
    }
}
