//! Telling the RSU where we are and who is behind our TAP: announcements until acknowledged after
//! every change, a reply with a digest about once a second.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::{
    self, Announcement, Client, Clients, client_digest,
};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{Mac, NodeId, Order, Seq, Timestamp};

use super::core::Core;

/// First repetition of an unacknowledged announcement; each further one waits twice as long …
const REPEAT_FIRST: Duration = Duration::from_millis(20);

/// … up to this …
const REPEAT_MAX: Duration = Duration::from_millis(320);

/// … and after so many the digest in the periodic reply has to heal it.
const ATTEMPTS_MAX: u32 = 12;

/// A reply that shows a new way back goes out within this.
const REPLY_WITHIN: Duration = Duration::from_millis(20);

/// A new client is announced after this, so that a burst of new ones needs one announcement.
const GATHER_FOR: Duration = Duration::from_millis(50);

/// An announcement not yet acknowledged in all its parts.
#[derive(Debug)]
struct Pending {
    acked: Vec<bool>,
    attempts: u32,
    next: Timestamp,
    wait: Duration,
}

/// Whom we tell, and how to get there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Towards {
    pub(crate) rsu: NodeId,
    pub(crate) upstream: Mac,
    /// We are attached elsewhere and may come.
    pub(crate) standby: bool,
}

/// What one RSU has been told.
#[derive(Debug)]
struct Telling {
    pending: Option<Pending>,
    reply_at: Timestamp,
    /// The heartbeat to answer, and when it came.
    heard: Option<(Seq, Timestamp)>,
}

/// The RSU that we may go to next.
#[derive(Debug)]
struct Standby {
    rsu: NodeId,
    telling: Telling,
    acknowledged: bool,
}

/// What the RSUs must know of us: the one we are attached to, and the one we may go to next.
#[derive(Debug)]
pub(crate) struct Registration {
    epoch: u32,
    /// Order of our replies and announcements; relays learn the way back from it.
    order: Order,
    clients: Vec<Client>,
    digest: u32,
    /// Encoded client groups, one entry per announcement frame.
    parts: Vec<Vec<u8>>,
    clients_changed: Option<Timestamp>,
    attached: Telling,
    standby: Option<Standby>,
}

impl Telling {
    fn new(now: Timestamp) -> Self {
        Self { pending: None, reply_at: now, heard: None }
    }

    fn announce(&mut self, now: Timestamp, parts: usize) {
        self.pending =
            Some(Pending { acked: vec![false; parts], attempts: 0, next: now, wait: REPEAT_FIRST });
    }

    /// A part is acknowledged; the attempts it took once all are.
    fn note_ack(&mut self, part: u8) -> Option<u32> {
        let pending = self.pending.as_mut()?;
        if let Some(acked) = pending.acked.get_mut(usize::from(part)) {
            *acked = true;
        }
        let attempts = pending.attempts;
        pending.acked.iter().all(|acked| *acked).then(|| {
            self.pending = None;
            attempts
        })
    }

    fn deadline(&self) -> Timestamp {
        self.pending.as_ref().map_or(self.reply_at, |pending| self.reply_at.min(pending.next))
    }
}

impl Registration {
    pub(crate) fn new(core: &Core, now: Timestamp) -> Self {
        let mut registration = Self {
            epoch: 0,
            order: Order { boot: core.radio.boot, seq: Seq(0) },
            clients: Vec::new(),
            digest: 0,
            parts: Vec::new(),
            clients_changed: None,
            attached: Telling::new(now),
            standby: None,
        };
        registration.set_clients(Vec::new(), core.radio.mtu);
        registration
    }

    /// The set behind our TAP is now this. It is announced shortly.
    pub(crate) fn set_clients(&mut self, sorted: Vec<Client>, mtu: usize) {
        self.digest = client_digest(&sorted);
        self.parts = split_into_parts(&sorted, mtu);
        self.clients = sorted;
    }

    /// A client came or went.
    pub(crate) fn note_clients_changed(&mut self, now: Timestamp) {
        self.clients_changed.get_or_insert(now);
    }

    /// The client set must be read again now.
    pub(crate) fn wants_clients(&mut self, now: Timestamp) -> bool {
        let due = self.clients_changed.is_some_and(|at| now.since(at) >= GATHER_FOR);
        if due {
            self.clients_changed = None;
        }
        due
    }

    pub(crate) fn note_heartbeat(&mut self, now: Timestamp, seq: Seq) {
        self.attached.heard = Some((seq, now));
    }

    /// The way back to us has moved somewhere: a reply shows the new one. Many behind the same relay have
    /// to, and must not all speak at once.
    pub(crate) fn reply_soon(&mut self, core: &mut Core, now: Timestamp) {
        let soon = now + core.random.up_to(REPLY_WITHIN);
        self.attached.reply_at = self.attached.reply_at.min(soon);
    }

    /// We are attached anew: whoever has the highest epoch owns our clients.
    pub(crate) fn begin(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        rsu: NodeId,
        reply_every: Duration,
    ) {
        self.epoch = self.epoch.saturating_add(1);
        if self.standby_at() == Some(rsu) {
            self.standby = None;
        }
        self.announce(now);
        self.attached.reply_at = now + core.random.jitter(reply_every, 25);
    }

    /// No longer attached.
    pub(crate) fn end(&mut self) {
        self.attached.pending = None;
        self.attached.heard = None;
        self.standby = None;
    }

    /// Announces the present set until it is acknowledged.
    pub(crate) fn announce(&mut self, now: Timestamp) {
        self.attached.announce(now, self.parts.len());
    }

    /// The set changed: everybody who knows us must know.
    pub(crate) fn announce_to_all(&mut self, now: Timestamp) {
        self.announce(now);
        if let Some(standby) = &mut self.standby {
            standby.acknowledged = false;
            standby.telling.announce(now, self.parts.len());
        }
    }

    /// From now on this RSU is told that we may come; `None`: none is.
    pub(crate) fn stand_by(&mut self, now: Timestamp, rsu: Option<NodeId>) {
        if self.standby_at() == rsu {
            return;
        }
        self.standby = rsu.map(|rsu| {
            let mut telling = Telling::new(now);
            telling.announce(now, self.parts.len());
            Standby { rsu, telling, acknowledged: false }
        });
    }

    /// The RSU that is told that we may come.
    pub(crate) fn standby_at(&self) -> Option<NodeId> {
        self.standby.as_ref().map(|standby| standby.rsu)
    }

    /// This RSU has acknowledged that we may come.
    pub(crate) fn is_expected_at(&self, rsu: NodeId) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.rsu == rsu && standby.acknowledged)
    }

    /// Sends what is due to the RSU we are attached to.
    pub(crate) fn drive(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        towards: Towards,
        reply_every: Duration,
        out: &mut Replies,
    ) {
        self.announce_if_due(core, now, towards, out);
        let telling = match &mut self.standby {
            Some(standby) if towards.standby => &mut standby.telling,
            _ => &mut self.attached,
        };
        if now >= telling.reply_at {
            // A reply straight after the first announcement would say nothing new.
            let is_first = towards.standby && telling.pending.is_some();
            telling.reply_at = now + core.random.jitter(reply_every, 25);
            if !is_first {
                self.reply(core, now, towards, false, out);
            }
        }
    }

    fn announce_if_due(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        towards: Towards,
        out: &mut Replies,
    ) {
        let telling = match &mut self.standby {
            Some(standby) if towards.standby => &mut standby.telling,
            _ => &mut self.attached,
        };
        let Some(pending) = telling.pending.as_mut().filter(|pending| now >= pending.next) else {
            return;
        };
        if pending.attempts >= ATTEMPTS_MAX {
            telling.pending = None;
            return;
        }
        pending.attempts += 1;
        pending.next = now + core.random.jitter(pending.wait, 25);
        pending.wait = (pending.wait * 2).min(REPEAT_MAX);
        let count = u8::try_from(self.parts.len()).unwrap_or(u8::MAX);
        for (part, (groups, acked)) in (0u8..).zip(self.parts.iter().zip(&pending.acked)) {
            if *acked {
                continue;
            }
            self.order = self.order.next();
            let Ok(clients) = Clients::parse(groups) else { continue };
            let announcement = Announcement {
                rsu: towards.rsu,
                origin: core.radio.id,
                order: self.order,
                epoch: self.epoch,
                hop_limit: HOP_LIMIT,
                hops: 0,
                part,
                parts: count,
                digest: self.digest,
                standby: towards.standby,
                clients,
            };
            core.radio.control(towards.upstream, announcement, out, &mut core.counters);
        }
    }

    /// Answers the last heartbeat: renews the way back, and lets the RSU compare client sets.
    pub(crate) fn reply(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        towards: Towards,
        goodbye: bool,
        out: &mut Replies,
    ) {
        self.order = self.order.next();
        let heard = if towards.standby { None } else { self.attached.heard };
        let (answers, held) = heard.map_or((Seq(0), Duration::ZERO), |(seq, at)| (seq, now - at));
        let reply = HeartbeatReply {
            rsu: towards.rsu,
            origin: core.radio.id,
            order: self.order,
            answers,
            hop_limit: HOP_LIMIT,
            hops: 0,
            held_100us: u16::try_from(held.as_micros() / 100).unwrap_or(u16::MAX),
            epoch: self.epoch,
            digest: self.digest,
            clients: u16::try_from(self.clients.len()).unwrap_or(u16::MAX),
            goodbye,
            standby: towards.standby,
        };
        core.radio.control(towards.upstream, reply, out, &mut core.counters);
    }

    /// The RSU we are attached to answered an announcement, or asks for one. Whether it now knows all.
    pub(crate) fn handle_ack(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        ack: &AnnouncementAck,
    ) -> bool {
        match ack.status {
            AckStatus::Accepted if ack.epoch == self.epoch && ack.digest == self.digest => {
                let Some(attempts) = self.attached.note_ack(ack.part) else { return false };
                core.event(Event::Acknowledged { rsu: ack.rsu, epoch: self.epoch, attempts });
                return true;
            }
            // An answer to an older announcement of ours.
            AckStatus::Accepted => {}
            AckStatus::StaleEpoch => self.raise_epoch(now, ack.epoch),
            AckStatus::SendAll => {
                if self.attached.pending.is_none() {
                    self.announce(now);
                }
            }
        }
        false
    }

    /// The RSU we may go to answered.
    pub(crate) fn handle_standby_ack(&mut self, now: Timestamp, ack: &AnnouncementAck) {
        let (epoch, digest, parts) = (self.epoch, self.digest, self.parts.len());
        let Some(standby) = self.standby.as_mut().filter(|standby| standby.rsu == ack.rsu) else {
            return;
        };
        match ack.status {
            AckStatus::Accepted if ack.epoch == epoch && ack.digest == digest => {
                if standby.telling.note_ack(ack.part).is_some() {
                    standby.acknowledged = true;
                }
            }
            AckStatus::Accepted => {}
            AckStatus::StaleEpoch => self.raise_epoch(now, ack.epoch),
            AckStatus::SendAll => {
                standby.acknowledged = false;
                if standby.telling.pending.is_none() {
                    standby.telling.announce(now, parts);
                }
            }
        }
    }

    /// Somewhere we are known with this epoch, from before our restart most likely: jump above it.
    fn raise_epoch(&mut self, now: Timestamp, known: u32) {
        if known >= self.epoch {
            self.epoch = known.saturating_add(1);
            self.announce_to_all(now);
        }
    }

    /// When [`Registration::drive`] next has something to do, for the RSU on standby only while there
    /// is a way to it.
    pub(crate) fn deadline(&self, reaches_standby: bool) -> Timestamp {
        let mut next = self.attached.deadline();
        if let Some(standby) = self.standby.as_ref().filter(|_| reaches_standby) {
            next = next.min(standby.telling.deadline());
        }
        if let Some(at) = self.clients_changed {
            next = next.min(at + GATHER_FOR);
        }
        next
    }
}

/// Encodes the set in as few frames as the radio's MTU allows; an empty set is one empty frame.
fn split_into_parts(sorted: &[Client], mtu: usize) -> Vec<Vec<u8>> {
    let room = mtu.saturating_sub(announcement::HEADER_LEN);
    let mut parts = Vec::new();
    let mut rest = sorted;
    loop {
        let (part, after) = rest.split_at(Clients::fitting(rest, room).min(rest.len()));
        let mut groups = Vec::new();
        Clients::encode(part, &mut groups);
        parts.push(groups);
        // A radio too small for a single client ends this as well.
        if after.is_empty() || after.len() == rest.len() || parts.len() >= usize::from(u8::MAX) {
            return parts;
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(count: u16, vlan: impl Fn(u16) -> u16) -> Vec<Client> {
        let mut clients: Vec<_> = (0..count)
            .map(|n| {
                let [high, low] = n.to_be_bytes();
                Client { vlan: vlan(n), mac: Mac([2, 0, 0, 0, high, low]) }
            })
            .collect();
        clients.sort_unstable();
        clients
    }

    #[test]
    fn two_hundred_and_thirty_clients_fit_one_frame() {
        assert_eq!(split_into_parts(&clients(230, |_| 0), 1500).len(), 1);
        assert_eq!(split_into_parts(&clients(231, |_| 0), 1500).len(), 2);
        assert_eq!(split_into_parts(&[], 1500).len(), 1);
    }

    #[test]
    fn no_part_is_larger_than_the_radio_carries_and_none_is_lost() {
        for mtu in [100, 576, 1500] {
            let all = clients(400, |n| n % 50);
            let parts = split_into_parts(&all, mtu);
            assert!(parts.iter().all(|part| part.len() + announcement::HEADER_LEN <= mtu));
            let read: Vec<_> = parts
                .iter()
                .flat_map(|p| Clients::parse(p).unwrap().iter().collect::<Vec<_>>())
                .collect();
            assert_eq!(read, all);
        }
    }
}
