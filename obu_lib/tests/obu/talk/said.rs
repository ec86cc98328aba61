//! What the OBU said, as its neighbours and its RSU read it.

use node_lib::messages::control::Control;
use node_lib::messages::control::announcement::{Announcement, Client};
use node_lib::messages::control::heartbeat::Heartbeat;
use node_lib::messages::control::probe::Probe;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, NodeId, Seq};

use super::{Talk, US, id};

/// What we said of ourselves, and want to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) to: Mac,
    pub(crate) rsu: Mac,
    pub(crate) via: Mac,
    pub(crate) epoch: u32,
    pub(crate) seq: Seq,
    pub(crate) digest: u32,
    pub(crate) part: (u8, u8),
    pub(crate) standby: bool,
    /// With all clients; otherwise only who our upstream is.
    pub(crate) is_set: bool,
}

impl Word {
    /// All our clients, or a part of them, announced to this neighbour.
    pub(crate) fn of_set(to: Mac, a: &Announcement<'_>) -> Self {
        Word {
            to,
            rsu: Mac(a.rsu.0),
            via: Mac(a.via.0),
            epoch: a.epoch,
            seq: a.order.seq,
            digest: a.digest,
            part: (a.part, a.parts),
            standby: a.standby,
            is_set: true,
        }
    }
}

impl Talk {
    pub(crate) fn sent_to(&self) -> Vec<Mac> {
        self.sent.iter().map(|(to, _)| *to).collect()
    }

    pub(crate) fn each<T>(&self, mut pick: impl FnMut(Mac, &Control<'_>) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        for (to, flat) in &self.sent {
            if let PacketType::Control(control) = Message::try_from(&flat[..]).unwrap().packet {
                picked.extend(pick(*to, &control));
            }
        }
        picked
    }

    pub(crate) fn heartbeats(&self) -> Vec<Heartbeat> {
        self.each(|_, control| match control {
            Control::Heartbeat(heartbeat) => Some(*heartbeat),
            _ => None,
        })
    }

    pub(crate) fn withdrawals(&self) -> usize {
        self.each(|_, control| matches!(control, Control::Withdrawal(_)).then_some(())).len()
    }

    /// What was said of the MTU of our radio, and in which message.
    pub(crate) fn mtus_said(&self) -> Vec<(&'static str, u16)> {
        self.each(|_, control| match control {
            Control::Heartbeat(heartbeat) => Some(("Heartbeat", heartbeat.mtu)),
            Control::HeartbeatReply(reply) => Some(("HeartbeatReply", reply.mtu)),
            Control::ProbeAnswer(answer) => Some(("ProbeAnswer", answer.mtu)),
            Control::Announcement(announcement) => Some(("Announcement", announcement.mtu)),
            _ => None,
        })
    }

    /// Questions that were sent are forgotten.
    pub(crate) fn forget_probes(&mut self) {
        self.sent.retain(|(_, flat)| asks(flat).is_none());
    }

    /// What was sent to this one, or asks it, is forgotten.
    pub(crate) fn forget_sent_to(&mut self, who: Mac) {
        self.sent.retain(|(to, flat)| *to != who && asks(flat) != Some(who));
    }

    pub(crate) fn solicitations(&self) -> usize {
        self.asked().into_iter().filter(|whom| whom.is_group()).count()
    }

    pub(crate) fn announcements(&self) -> usize {
        self.each(|_, control| matches!(control, Control::Announcement(_)).then_some(())).len()
    }

    pub(crate) fn replies(&self) -> usize {
        self.each(|_, control| matches!(control, Control::HeartbeatReply(_)).then_some(())).len()
    }

    /// Who was asked; a question to all names nobody.
    pub(crate) fn asked(&self) -> Vec<Mac> {
        self.each(|_, control| match control {
            Control::Probe(probe) => Some(whom(probe)),
            _ => None,
        })
    }

    pub(crate) fn answers(&self) -> usize {
        self.each(|_, control| matches!(control, Control::ProbeAnswer(_)).then_some(())).len()
    }

    /// To whom answers went.
    pub(crate) fn answered(&self) -> Vec<Mac> {
        self.each(|to, control| matches!(control, Control::ProbeAnswer(_)).then_some(to))
    }

    pub(crate) fn relayed_data(&self) -> usize {
        let is_data =
            |flat: &[u8]| matches!(Message::try_from(flat).unwrap().packet, PacketType::Data(_));
        self.sent.iter().filter(|(_, flat)| is_data(flat)).count()
    }

    pub(crate) fn last_probe(&self, to: Mac) -> Option<u32> {
        let nonces = self.each(|_, control| match control {
            Control::Probe(probe) if whom(probe) == to => Some(probe.nonce),
            _ => None,
        });
        nonces.last().copied()
    }

    pub(crate) fn sent_probe(&self, to: Mac) -> u32 {
        self.last_probe(to).expect("a probe was sent")
    }

    pub(super) fn last_announcement(&self) -> (Mac, u32, Vec<Client>, u32) {
        let read =
            |a: &Announcement<'_>| (Mac(a.rsu.0), a.epoch, a.clients.iter().collect(), a.digest);
        let all = self.each(|_, control| match control {
            Control::Announcement(announcement) => Some(read(announcement)),
            _ => None,
        });
        all.last().expect("an announcement was sent").clone()
    }

    /// To whom, for which RSU, with which epoch, and whether only that we may come, was announced.
    pub(crate) fn announced(&self) -> Vec<(Mac, Mac, u32, bool)> {
        self.each(|to, control| match control {
            Control::Announcement(a) => Some((to, Mac(a.rsu.0), a.epoch, a.standby)),
            _ => None,
        })
    }

    /// To whom and for which RSU replies went, and whether as a goodbye.
    pub(crate) fn replied(&self) -> Vec<(Mac, Mac, bool)> {
        self.each(|to, control| match control {
            Control::HeartbeatReply(reply) => Some((to, Mac(reply.rsu.0), reply.goodbye)),
            _ => None,
        })
    }

    /// Whom data frames were sent to.
    pub(crate) fn data_sent_to(&self) -> Vec<Mac> {
        let is_data =
            |flat: &[u8]| matches!(Message::try_from(flat).unwrap().packet, PacketType::Data(_));
        self.sent.iter().filter(|(_, flat)| is_data(flat)).map(|(to, _)| *to).collect()
    }

    /// RSU, epoch and clients of the last announcement.
    pub(crate) fn sent_announcement(&self) -> (Mac, u32, Vec<Client>) {
        let (rsu, epoch, clients, _) = self.last_announcement();
        (rsu, epoch, clients)
    }

    /// What we said of ourselves that is to be acknowledged, in the order in which it was sent.
    pub(crate) fn words(&self) -> Vec<Word> {
        self.each(|to, control| match control {
            Control::Announcement(a) if a.origin == id(US) => Some(Word::of_set(to, a)),
            Control::HeartbeatReply(r) if r.origin == id(US) && r.acknowledge => Some(Word {
                to,
                rsu: Mac(r.rsu.0),
                via: Mac(r.via.0),
                epoch: r.epoch,
                seq: r.order.seq,
                digest: r.digest,
                part: (0, 1),
                standby: r.standby,
                is_set: false,
            }),
            _ => None,
        })
    }
}

/// Whom a frame asks, if it is a question.
fn asks(flat: &[u8]) -> Option<Mac> {
    match Message::try_from(flat).unwrap().packet {
        PacketType::Control(Control::Probe(probe)) => Some(whom(&probe)),
        _ => None,
    }
}

/// Who is to answer this.
pub(super) fn whom(probe: &Probe) -> Mac {
    if probe.asked == NodeId::NONE { Mac::BROADCAST } else { Mac(probe.asked.0) }
}
