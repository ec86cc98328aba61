//! What the tests of this room have an OBU say.

#![cfg(test)]

use std::time::Duration;

use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{Mac, NodeId, Order, Seq, Timestamp};

use super::Obus;
use super::claim::{Accepted, Claim};
use super::tree::Edge;
use super::word::{Judged, Says, WordVerdict};

pub(super) const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
pub(super) const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 9]);
pub(super) const NOW: Timestamp = Timestamp::from_millis(1000);

pub(super) fn client(n: u8) -> Client {
    Client { vlan: 0, mac: Mac([2, 0, 0, 0, 1, n]) }
}

/// What an OBU says: boot count, epoch and sequence, and whether it is on standby.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said(pub(super) u32, pub(super) u32, pub(super) u32, pub(super) bool);

impl Said {
    /// By an OBU whose upstream is the RSU.
    pub(super) fn says(self) -> Says {
        let Self(boot, epoch, seq, _) = self;
        let edge = Edge { via: RSU, mac: Some(Mac([2, 0, 0, 0, 0, 1])), mtu: 1500 };
        let within = Duration::from_millis(1300);
        let at_risk = Duration::ZERO;
        Says { order: Order::new(boot, seq), epoch, edge, within, at_risk }
    }
}

pub(super) fn claim_part(
    obus: &mut Obus,
    said: (NodeId, Said),
    part: (u8, u8),
    digest: u32,
    clients: &[Client],
) -> Claim {
    claim_part_at(NOW, obus, said, part, digest, clients)
}

pub(super) fn claim_part_at(
    at: Timestamp,
    obus: &mut Obus,
    said: (NodeId, Said),
    part: (u8, u8),
    digest: u32,
    clients: &[Client],
) -> Claim {
    judge_part(at, obus, said, part, digest, clients).1
}

/// The whole set, with what is thought of the word.
pub(super) fn judge_at(
    at: Timestamp,
    obus: &mut Obus,
    said: Said,
    set: &[Client],
) -> (Judged, Claim) {
    judge_part(at, obus, (OBU, said), (0, 1), client_digest(set), set)
}

pub(super) fn judge_part(
    at: Timestamp,
    obus: &mut Obus,
    (obu, said): (NodeId, Said),
    (part, parts): (u8, u8),
    digest: u32,
    clients: &[Client],
) -> (Judged, Claim) {
    let mut groups = Vec::new();
    Clients::encode(clients, &mut groups);
    let Said(boot, epoch, seq, standby) = said;
    let announcement = Announcement {
        rsu: RSU,
        origin: obu,
        order: Order::new(boot, seq),
        epoch,
        via: RSU,
        digest,
        part,
        parts,
        within_ds: 13,
        at_risk_10ms: 0,
        mtu: 1500,
        hops: 0,
        standby,
        clients: Clients::parse(&groups).unwrap(),
    };
    obus.claim(at, &announcement, said.says())
}

pub(super) fn claim(obus: &mut Obus, said: Said, set: &[Client]) -> Claim {
    claim_at(0, obus, said, set)
}

/// So many milliseconds later.
pub(super) fn claim_at(ms: u64, obus: &mut Obus, said: Said, set: &[Client]) -> Claim {
    let at = NOW + Duration::from_millis(ms);
    claim_part_at(at, obus, (OBU, said), (0, 1), client_digest(set), set)
}

pub(super) fn hear_reply(obus: &mut Obus, reply: &HeartbeatReply) -> Option<Accepted> {
    hear_reply_at(NOW, obus, reply)
}

pub(super) fn hear_reply_at(
    at: Timestamp,
    obus: &mut Obus,
    reply: &HeartbeatReply,
) -> Option<Accepted> {
    obus.hear_reply(at, reply, says_of(reply)).1
}

/// The answer to this word is a question for the OBU's clients.
pub(super) fn must_ask(at: Timestamp, obus: &mut Obus, reply: &HeartbeatReply) -> bool {
    let answer = obus.answer(at, reply, says_of(reply).edge, WordVerdict::Newest);
    answer.is_some_and(|answer| answer.status == AckStatus::SendAll) && obus.may_ask(at, OBU)
}

pub(super) fn hear_goodbye(obus: &mut Obus, reply: &HeartbeatReply) -> bool {
    obus.hear_goodbye(NOW, reply, says_of(reply)).was_attached
}

pub(super) fn says_of(reply: &HeartbeatReply) -> Says {
    Said(reply.order.boot.0, reply.epoch, reply.order.seq.0, reply.standby).says()
}

pub(super) fn reply(Said(boot, epoch, seq, standby): Said, digest: u32) -> HeartbeatReply {
    HeartbeatReply {
        rsu: RSU,
        origin: OBU,
        order: Order::new(boot, seq),
        epoch,
        via: RSU,
        digest,
        clients: 0,
        within_ds: 13,
        at_risk_10ms: 0,
        answers: Seq(0),
        held_100us: 0,
        mtu: 1500,
        hops: 0,
        goodbye: false,
        standby,
        acknowledge: false,
    }
}

pub(super) fn come(set: &[Client]) -> Claim {
    let set = Some(set.to_vec());
    Claim::Accepted(Accepted {
        is_attached: true,
        has_left: false,
        is_new: true,
        has_come: true,
        set,
    })
}

pub(super) fn waiting(set: &[Client]) -> Claim {
    Claim::Accepted(Accepted { set: Some(set.to_vec()), ..Accepted::default() })
}

pub(super) fn accepted(claim: Claim) -> Accepted {
    match claim {
        Claim::Accepted(accepted) => accepted,
        other => panic!("{other:?}"),
    }
}
