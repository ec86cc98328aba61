//! Telling the RSU where we are and who is behind our TAP: announcements until acknowledged after
//! every change, a reply with a digest about once a second.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::{HOP_LIMIT, Radio};
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::control::replies::ShortReply;
use node_lib::{Mac, NodeId, Order, Seq, Timestamp};

use super::announcements::{Acked, Announcements, Heading};
use super::core::Core;

/// First repetition of an unacknowledged announcement; each further one waits twice as long …
const REPEAT_FIRST: Duration = Duration::from_millis(20);

/// … up to this …
const REPEAT_MAX: Duration = Duration::from_millis(320);

/// … and after so many the digest in the periodic reply has to heal it.
const ATTEMPTS_MAX: u32 = 12;

/// After so many, about 0.9 s, the RSU, or the way to it, does not work for us, whatever its heartbeats say:
/// another RSU is used if there is one. Where each of six hops there and back loses every tenth frame, it takes
/// six attempts to be heard once in 99 cases.
const ATTEMPTS_IN_VAIN: u32 = 6;

/// A reply that shows a new way back goes out within this.
const REPLY_WITHIN: Duration = Duration::from_millis(20);

/// In a crowd, replies of idle OBUs that show a new way back are spread over six times
/// [`Core::crowd_wait`], 1.5 s at most, or all behind one relay would speak when its way changes. Those whose upstream
/// itself changed, of whom there are fewer, show it within once that; what is later is lost to their clients …
const SHOW_SLOWER: u32 = 6;

/// … and announcements of idle OBUs that went to another RSU, or whose RSU started again, are spread over four times
/// that.
const ANNOUNCE_SLOWER: u32 = 4;

/// A new client is announced after this, so that a burst of new ones needs one announcement.
const GATHER_FOR: Duration = Duration::from_millis(50);

/// An announcement not yet acknowledged in all its parts.
#[derive(Clone, Debug)]
struct Pending {
    acked: Acked,
    attempts: u32,
    /// A reply has shown the way back, while the budget of announcements was empty.
    is_shown: bool,
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
#[derive(Clone, Debug)]
struct Telling {
    pending: Option<Pending>,
    reply_at: Timestamp,
    /// The heartbeat to answer, and when it came.
    heard: Option<(Seq, Timestamp)>,
}

/// The RSU that we may go to next.
#[derive(Clone, Debug)]
struct Standby {
    rsu: NodeId,
    telling: Telling,
    acknowledged: bool,
}

/// What the RSUs must know of us: the one we are attached to, and the one we may go to next.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    epoch: u32,
    /// Order of our replies and announcements; relays learn the way back from it.
    order: Order,
    /// The client set.
    announcements: Announcements,
    clients_changed: Option<Timestamp>,
    attached: Telling,
    /// The next reply shows a new way back.
    is_to_show: bool,
    /// The RSU that has acknowledged the present set with the present epoch.
    known_at: Option<NodeId>,
    /// The RSU has not answered [`ATTEMPTS_IN_VAIN`] announcements in a row.
    is_unanswered: bool,
    /// The way back has moved since then, and a reply alone has said so, or will.
    is_unconfirmed: bool,
    standby: Option<Standby>,
}

impl Telling {
    fn new(now: Timestamp) -> Self {
        Self { pending: None, reply_at: now, heard: None }
    }

    fn announce(&mut self, now: Timestamp) {
        self.pending = Some(Pending {
            acked: Acked::default(),
            attempts: 0,
            is_shown: false,
            next: now,
            wait: REPEAT_FIRST,
        });
    }

    /// A part is acknowledged; the attempts it took once all are.
    fn note_ack(&mut self, of: &Announcements, part: u8) -> Option<u32> {
        let pending = self.pending.as_mut()?;
        pending.acked.note(part);
        let attempts = pending.attempts;
        of.is_complete(&pending.acked).then(|| {
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
            announcements: Announcements::default(),
            clients_changed: None,
            attached: Telling::new(now),
            is_to_show: false,
            known_at: None,
            is_unanswered: false,
            is_unconfirmed: false,
            standby: None,
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
        self.attached.heard = Some((seq, now));
    }

    /// The way back to us has moved somewhere: a reply shows the new one. Many behind the same relay have
    /// to, and must not all speak at once.
    pub(crate) fn reply_soon(&mut self, core: &mut Core, now: Timestamp) {
        // Nobody talks to those whose clients are still: they have time.
        let wait = if core.is_idle(now) { core.crowd_wait() * SHOW_SLOWER } else { Duration::ZERO };
        let soon = now + core.random.up_to(REPLY_WITHIN) + wait;
        self.attached.reply_at = self.attached.reply_at.min(soon);
        self.is_to_show = true;
    }

    /// Our clients speak again: what could wait while they were still goes out now, or answers to them
    /// would take the old way.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        if self.is_unconfirmed {
            self.is_to_show = false;
            return self.announce(now);
        }
        if std::mem::take(&mut self.is_to_show) {
            self.attached.reply_at = self.attached.reply_at.min(now);
        }
        if let Some(first) = self.attached.pending.as_mut().filter(|p| p.attempts == 0) {
            first.next = first.next.min(now);
        }
    }

    /// We are attached anew: whoever has the highest epoch owns our clients. Where they are known already only
    /// the way to them is new, and in a crowd a reply says that, while they are still. Returns whether this
    /// will be acknowledged.
    pub(crate) fn begin(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        rsu: NodeId,
        reply_every: Duration,
    ) -> bool {
        if self.known_at == Some(rsu) && core.has_time(now) {
            let soon = now + core.crowd_wait();
            let planned = self.attached.reply_at;
            self.attached.reply_at = if self.is_to_show { planned.min(soon) } else { soon };
            (self.is_to_show, self.is_unconfirmed) = (true, true);
            return false;
        }
        self.is_unanswered = false;
        self.epoch = self.epoch.saturating_add(1);
        if self.standby_at() == Some(rsu) {
            self.standby = None;
        }
        self.announce(now);
        if let Some(pending) = &mut self.attached.pending
            && core.is_idle(now)
        {
            pending.next = now + core.crowd_wait() * ANNOUNCE_SLOWER;
        }
        self.attached.reply_at = now + core.random.jitter(reply_every, 25);
        self.is_to_show = false;
        true
    }

    /// No longer attached.
    pub(crate) fn end(&mut self) {
        self.attached.pending = None;
        self.attached.heard = None;
        self.standby = None;
    }

    /// Announces the present set until it is acknowledged.
    pub(crate) fn announce(&mut self, now: Timestamp) {
        self.known_at = None;
        self.is_unconfirmed = false;
        self.attached.announce(now);
    }

    /// The same when many others have to at this moment: their RSU started again. In a crowd they spread it.
    pub(crate) fn announce_with_others(&mut self, core: &mut Core, now: Timestamp) {
        self.announce(now);
        let slower = if core.is_idle(now) { ANNOUNCE_SLOWER } else { 1 };
        if let Some(pending) = &mut self.attached.pending {
            pending.next = now + core.crowd_wait() * slower;
        }
    }

    /// The set changed: everybody who knows us must know.
    pub(crate) fn announce_to_all(&mut self, now: Timestamp) {
        self.announce(now);
        if let Some(standby) = &mut self.standby {
            standby.acknowledged = false;
            standby.telling.announce(now);
        }
    }

    /// The RSU we are attached to does not answer what we announce.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// From now on this RSU is told that we may come; `None`: none is.
    pub(crate) fn stand_by(&mut self, now: Timestamp, rsu: Option<NodeId>) {
        if self.standby_at() == rsu {
            return;
        }
        self.standby = rsu.map(|rsu| {
            let mut telling = Telling::new(now);
            telling.announce(now);
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
        // Planned when the crowd was larger, or said to be.
        telling.reply_at = telling.reply_at.min(now + reply_every * 5 / 4);
        if now >= telling.reply_at {
            // A reply straight after the first announcement would say nothing new.
            let is_first = towards.standby && telling.pending.is_some();
            telling.reply_at = now + core.random.jitter(reply_every, 25);
            self.is_to_show &= towards.standby;
            if !is_first {
                self.reply_in_turn(core, now, towards, out);
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
        if pending.attempts >= ATTEMPTS_IN_VAIN && !towards.standby {
            self.is_unanswered = true;
        }
        if pending.attempts >= ATTEMPTS_MAX {
            telling.pending = None;
            return;
        }
        if !core.announcing.take(now) {
            pending.next = core.announcing.next_at().max(now + REPEAT_FIRST);
            if pending.attempts == 0 && !std::mem::replace(&mut pending.is_shown, true) {
                // Nobody acknowledges a reply, but it shows the new way back at once.
                self.reply(core, now, towards, false, out);
            }
            return;
        }
        pending.attempts += 1;
        // In a crowd the answer takes longer, and another announcement would make it take longer still.
        pending.next = now + core.random.jitter(pending.wait, 25) + core.crowd_wait();
        pending.wait = (pending.wait * 2).min(REPEAT_MAX);
        let Towards { rsu, upstream, standby } = towards;
        let heading = Heading { upstream, rsu, epoch: self.epoch, standby };
        self.announcements.send(core, heading, &pending.acked, &mut self.order, out);
    }

    /// Renews the way back when its time has come. In a crowd relays may keep what we say until others behind
    /// them have spoken as well.
    fn reply_in_turn(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        towards: Towards,
        out: &mut Replies,
    ) {
        if towards.standby || !core.is_brief(now) {
            return self.reply(core, now, towards, false, out);
        }
        let reply = ShortReply::of(&self.next_reply(core, now, towards, false));
        core.reply_together(towards.upstream, towards.rsu, std::iter::once(reply), out);
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
        let reply = self.next_reply(core, now, towards, goodbye);
        core.radio.control(towards.upstream, reply, out, &mut core.counters);
    }

    fn next_reply(
        &mut self,
        core: &Core,
        now: Timestamp,
        towards: Towards,
        goodbye: bool,
    ) -> HeartbeatReply {
        self.order = self.order.next();
        let heard = if towards.standby { None } else { self.attached.heard };
        let (answers, held) = heard.map_or((Seq(0), Duration::ZERO), |(seq, at)| (seq, now - at));
        HeartbeatReply {
            rsu: towards.rsu,
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
            standby: towards.standby,
        }
    }

    /// The RSU we are attached to answered an announcement, or asks for one. Whether it now knows all.
    pub(crate) fn handle_ack(
        &mut self,
        core: &mut Core,
        now: Timestamp,
        ack: &AnnouncementAck,
    ) -> bool {
        match ack.status {
            AckStatus::Accepted if self.is_answered_by(ack) => {
                let attempts = self.attached.note_ack(&self.announcements, ack.part);
                let Some(attempts) = attempts else { return false };
                self.is_unanswered = false;
                self.known_at = Some(ack.rsu);
                self.is_unconfirmed = false;
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
        let is_present = self.is_answered_by(ack);
        let Some(standby) = self.standby.as_mut().filter(|standby| standby.rsu == ack.rsu) else {
            return;
        };
        match ack.status {
            AckStatus::Accepted if is_present => {
                if standby.telling.note_ack(&self.announcements, ack.part).is_some() {
                    standby.acknowledged = true;
                }
            }
            AckStatus::Accepted => {}
            AckStatus::StaleEpoch => self.raise_epoch(now, ack.epoch),
            AckStatus::SendAll => {
                standby.acknowledged = false;
                if standby.telling.pending.is_none() {
                    standby.telling.announce(now);
                }
            }
        }
    }

    /// The acknowledgement is of the present set, and of the present attachment.
    fn is_answered_by(&self, ack: &AnnouncementAck) -> bool {
        ack.epoch == self.epoch && ack.digest == self.announcements.digest()
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
