//! Telling the RSU where we are and who is behind our TAP: announcements until acknowledged after
//! every change, a reply with a digest about once a second.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::{HOP_LIMIT, Radio};
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{Mac, NodeId, Order, Seq, Timestamp};

use super::announcements::{Acked, Announcements, Heading};
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
    acked: Acked,
    attempts: u32,
    next: Timestamp,
    wait: Duration,
}

/// What the RSU must know of us.
#[derive(Debug)]
pub(crate) struct Registration {
    epoch: u32,
    /// Order of our replies and announcements; relays learn the way back from it.
    order: Order,
    /// The client set.
    announcements: Announcements,
    pending: Option<Pending>,
    clients_changed: Option<Timestamp>,
    reply_at: Timestamp,
    /// The heartbeat to answer, and when it came.
    heard: Option<(Seq, Timestamp)>,
}

impl Registration {
    pub(crate) fn new(core: &Core, now: Timestamp) -> Self {
        let mut registration = Self {
            epoch: 0,
            order: Order { boot: core.radio.boot, seq: Seq(0) },
            announcements: Announcements::default(),
            pending: None,
            clients_changed: None,
            reply_at: now,
            heard: None,
        };
        registration.set_clients(&[], &core.radio);
        registration
    }

    /// The set behind our TAP is now this. It is announced shortly.
    pub(crate) fn set_clients(&mut self, sorted: &[Client], radio: &Radio) {
        self.announcements.rebuild(radio, sorted);
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
        self.heard = Some((seq, now));
    }

    /// We are attached anew: whoever has the highest epoch owns our clients.
    pub(crate) fn begin(&mut self, core: &mut Core, now: Timestamp, reply_every: Duration) {
        self.epoch = self.epoch.saturating_add(1);
        self.announce(now);
        self.reply_at = now + core.random.jitter(reply_every, 25);
    }

    /// The way back to us has moved somewhere: a reply shows the new one. Many behind the same relay have
    /// to, and must not all speak at once.
    pub(crate) fn reply_soon(&mut self, core: &mut Core, now: Timestamp) {
        let soon = now + core.random.up_to(REPLY_WITHIN);
        self.reply_at = self.reply_at.min(soon);
    }

    /// No longer attached.
    pub(crate) fn end(&mut self) {
        self.pending = None;
        self.heard = None;
    }

    /// Announces the present set until it is acknowledged.
    pub(crate) fn announce(&mut self, now: Timestamp) {
        self.pending =
            Some(Pending { acked: Acked::default(), attempts: 0, next: now, wait: REPEAT_FIRST });
    }

    /// Sends what is due, through `upstream` to `rsu`.
    pub(crate) fn drive(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        rsu: NodeId,
        upstream: Mac,
        reply_every: Duration,
        out: &mut Replies,
    ) {
        self.announce_if_due(core, now, rsu, upstream, out);
        if now >= self.reply_at {
            self.reply_at = now + core.random.jitter(reply_every, 25);
            self.reply(core, now, rsu, upstream, false, out);
        }
    }

    fn announce_if_due(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        rsu: NodeId,
        upstream: Mac,
        out: &mut Replies,
    ) {
        let Some(pending) = self.pending.as_mut().filter(|pending| now >= pending.next) else {
            return;
        };
        if pending.attempts >= ATTEMPTS_MAX {
            self.pending = None;
            return;
        }
        pending.attempts += 1;
        pending.next = now + core.random.jitter(pending.wait, 25);
        pending.wait = (pending.wait * 2).min(REPEAT_MAX);
        let heading = Heading { upstream, rsu, epoch: self.epoch, standby: false };
        self.announcements.send(core, heading, &pending.acked, &mut self.order, out);
    }

    /// Answers the last heartbeat: renews the way back, and lets the RSU compare client sets.
    pub(crate) fn reply(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        rsu: NodeId,
        upstream: Mac,
        goodbye: bool,
        out: &mut Replies,
    ) {
        self.order = self.order.next();
        let (answers, held) =
            self.heard.map_or((Seq(0), Duration::ZERO), |(seq, at)| (seq, now - at));
        let reply = HeartbeatReply {
            rsu,
            origin: core.radio.id,
            order: self.order,
            answers,
            hop_limit: HOP_LIMIT,
            hops: 0,
            held_100us: u16::try_from(held.as_micros() / 100).unwrap_or(u16::MAX),
            epoch: self.epoch,
            digest: self.announcements.digest(),
            clients: u16::try_from(self.announcements.clients()).unwrap_or(u16::MAX),
            goodbye,
            standby: false,
        };
        core.radio.control(upstream, reply, out, &mut core.counters);
    }

    /// The RSU answered an announcement, or asks for one.
    pub(crate) fn handle_ack(&mut self, core: &mut Core, now: Timestamp, ack: &AnnouncementAck) {
        match ack.status {
            AckStatus::Accepted if self.is_answered_by(ack) => {
                let Some(pending) = &mut self.pending else { return };
                pending.acked.note(ack.part);
                if self.announcements.is_complete(&pending.acked) {
                    let attempts = pending.attempts;
                    self.pending = None;
                    core.event(Event::Acknowledged { rsu: ack.rsu, epoch: self.epoch, attempts });
                }
            }
            // An answer to an older announcement of ours.
            AckStatus::Accepted => {}
            AckStatus::StaleEpoch if ack.epoch >= self.epoch => {
                // From before our restart, most likely: jump above it.
                self.epoch = ack.epoch.saturating_add(1);
                self.announce(now);
            }
            AckStatus::StaleEpoch => {}
            AckStatus::SendAll => {
                if self.pending.is_none() {
                    self.announce(now);
                }
            }
        }
    }

    /// The acknowledgement is of the present set, and of the present attachment.
    fn is_answered_by(&self, ack: &AnnouncementAck) -> bool {
        ack.epoch == self.epoch && ack.digest == self.announcements.digest()
    }

    pub(crate) fn deadline(&self) -> Timestamp {
        let mut next = self.reply_at;
        if let Some(pending) = &self.pending {
            next = next.min(pending.next);
        }
        if let Some(at) = self.clients_changed {
            next = next.min(at + GATHER_FOR);
        }
        next
    }
}
