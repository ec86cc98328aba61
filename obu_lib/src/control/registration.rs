//! Telling RSUs who our upstream is and who is behind our TAP: a word until it is acknowledged
//! after every change, and one about once a second.
//!
//! Three kinds of RSUs must know something of us:
//!
//! | the RSU | what it is told |
//! |---|---|
//! | we are attached to | our upstream, and all clients |
//! | we may go to next (*standby*) | the same, so that it is ready |
//! | others are attached to through us | our upstream: without it the RSU does not find the way down to them |
//!
//! A new upstream takes one word, however many are behind us: they have the same upstreams as
//! before. As long as no frame goes this way it is only mentioned, in a reply that nobody
//! acknowledges.

mod telling;

use std::time::Duration;

use node_lib::control::deadline::Deadline;
use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::Radio;
use node_lib::control::table::Table;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{EPOCH_STEP_MAX, NodeId, Order, Seq, Timestamp};

use super::announcements::{Acked, Announcements, Heading};
use super::context::Context;
use super::timing;
use super::towards::{Standing, Towards};
use telling::{Pending, REPEAT_FIRST, Stage, Telling, Why, Word};

/// An RSU that asks for our clients is told them whatever our budget, this often at most: it asks a
/// hundred OBUs a second and no more, and until it knows them nothing reaches them. Somebody else
/// may ask in its name.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// A word that is not acknowledged is repeated after [`REPEAT_FIRST`] for each hop, and waits twice
/// as long each time, up to this …
const REPEAT_MAX: Duration = Duration::from_millis(320);

/// … and in a crowd, as long as no frame goes this way, from that to so many times as long: 0.3 s
/// at first, and 5 s at most. Nobody waits for the answer, and repetitions are in the way of
/// answers …
const REPEAT_SLOWER: u32 = 16;

/// … and after so many the periodic reply has to heal it. An RSU asks nobody who stands by for
/// clients: that one goes on, as rarely as it replies.
const ATTEMPTS_MAX: u32 = 12;

/// After so many in a row, 1.6 s if it is always the same, or 2.2 s over many hops, the RSU, or the
/// way to it, does not work for us, whatever its heartbeats say: another RSU is used if there is
/// one. Where each of six hops there and back loses every tenth frame, seven are in vain in one
/// case of 200, and over two hops in one of 1,800. While frames go such a case comes every three
/// seconds ([`REPLIES_UNACKNOWLEDGED`]).
const WORDS_IN_VAIN: u32 = 7;

/// Announcements of idle OBUs that went to another RSU, or whose RSU started again, are spread over
/// so many times [`Context::turn_wait`].
const ANNOUNCE_SLOWER: u32 = 4;

/// While frames go this way, after so many periodic replies the next one is to be acknowledged:
/// else nothing would show that a relay keeps what we say to itself. An RSU takes who has been
/// silent for three words, and five seconds, to be gone.
const REPLIES_UNACKNOWLEDGED: u8 = 2;

/// A new client is announced after this, so that a burst of new ones needs one announcement.
const GATHER_FOR: Duration = Duration::from_millis(50);

/// The RSU that we may go to next.
#[derive(Clone, Debug)]
struct Standby {
    rsu: NodeId,
    telling: Telling,
    acknowledged: bool,
}

/// What the RSUs must know of us.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    epoch: u32,
    /// When our RSU was last told our clients because it asked, whatever our budget.
    asked_at: Option<Timestamp>,
    /// When it was last raised for what an RSU knows.
    raised_at: Option<Timestamp>,
    /// Order of our words.
    order: Order,
    /// The client set.
    announcements: Announcements,
    clients_changed: Option<Timestamp>,
    attached: Telling,
    /// The heartbeat to answer, and when it came.
    heard: Option<(Seq, Timestamp)>,
    /// The RSU that has acknowledged the present set with the present epoch.
    known_at: Option<NodeId>,
    /// Words that the RSU we are attached to was to acknowledge, since it last answered.
    unanswered: u32,
    standby: Option<Standby>,
    /// RSUs that others go to through us.
    relayed: Table<NodeId, Telling>,
}

impl Registration {
    pub(crate) fn new(context: &Context, now: Timestamp) -> Self {
        let mut registration = Self {
            epoch: 0,
            asked_at: None,
            raised_at: None,
            order: Order { boot: context.radio.boot, seq: Seq(0) },
            announcements: Announcements::default(),
            clients_changed: None,
            attached: Telling::new(now),
            heard: None,
            known_at: None,
            unanswered: 0,
            standby: None,
            relayed: Table::new(),
        };
        registration.set_clients(&[], &context.radio, context.radio.said_mtu());
        registration
    }

    /// The set behind our TAP is now this. It is announced shortly.
    pub(crate) fn set_clients(&mut self, sorted: &[Client], radio: &Radio, mtu: u16) {
        self.announcements.rebuild(radio, mtu, sorted);
    }

    /// A client came or went.
    pub(crate) fn note_clients_changed(&mut self, now: Timestamp) {
        self.clients_changed.get_or_insert(now);
    }

    /// The client set must be read again now. `mtu`: the longest packet on the ways to those who
    /// are told.
    pub(crate) fn wants_clients(&mut self, now: Timestamp, mtu: u16) -> bool {
        let due = self.clients_changed.is_some_and(|at| now.since(at) >= GATHER_FOR);
        if due {
            self.clients_changed = None;
        }
        due || self.announcements.mtu() != mtu
    }

    /// The upstream brought a heartbeat of the RSU we are attached to.
    pub(crate) fn note_heartbeat(&mut self, now: Timestamp, seq: Seq) {
        self.heard = Some((seq, now));
    }

    /// Our clients speak again: what could wait while they were still goes out now, or answers to
    /// them would take the old way.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        if let Some(first) = self.attached.pending.as_mut().filter(|p| p.attempts == 0) {
            first.next = first.next.min(now);
        }
    }

    /// We are attached anew. The RSU that knows our clients is told who our upstream is, another
    /// one all: whoever has the highest epoch owns our clients. Those whose clients are still take
    /// their turn.
    pub(crate) fn begin(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        (rsu, via): (NodeId, NodeId),
        reply_every: Duration,
    ) {
        let wait = if context.is_idle(now) { context.turn_wait() } else { Duration::ZERO };
        self.unanswered = 0;
        self.relayed.remove(&rsu);
        self.attached.via = via;
        if self.is_known_at(rsu) {
            return self.attached.tell(Word::Upstream(Why::Change), self.order, now + wait);
        }
        self.known_at = None;
        self.epoch = self.epoch.saturating_add(1);
        if self.standby_at() == Some(rsu) {
            self.standby = None;
        }
        let at = now + wait * ANNOUNCE_SLOWER;
        self.attached.tell(Word::Set(Acked::default()), self.order, at);
        self.attached.reply_at = now + context.random.jitter(reply_every, 25);
    }

    /// The RSU was told of another way to us for a while, and that is over.
    pub(crate) fn return_to_upstream(&mut self, now: Timestamp) {
        self.attached.tell_anew(self.order, now);
    }

    /// No longer attached.
    pub(crate) fn end(&mut self) {
        self.attached.pending = None;
        self.heard = None;
        self.standby = None;
    }

    /// Announces the present set until it is acknowledged.
    pub(crate) fn announce(&mut self, now: Timestamp) {
        self.known_at = None;
        self.attached.tell(Word::Set(Acked::default()), self.order, now);
    }

    /// An RSU started again: it has forgotten all it was told. Many others have to tell it in this
    /// moment as well. In a crowd they spread it.
    pub(crate) fn tell_again(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        rsu: NodeId,
        ours: bool,
    ) {
        let slower = if context.is_idle(now) { ANNOUNCE_SLOWER } else { 1 };
        let at = now + context.turn_wait() * slower;
        let all = Word::Set(Acked::default());
        // Also if it was away for so long that we are attached nowhere: we come back as one it does
        // not know.
        if self.is_known_at(rsu) {
            self.known_at = None;
        }
        if ours {
            self.attached.tell(all, self.order, at);
        }
        if let Some(standby) = self.standby.as_mut().filter(|standby| standby.rsu == rsu) {
            standby.acknowledged = false;
            standby.telling.tell(all, self.order, at);
        }
        if let Some(telling) = self.relayed.get_mut(&rsu) {
            telling.tell(Word::Upstream(Why::News), self.order, at);
            telling.reply_at = at;
        }
    }

    /// The set changed: everybody who knows it must know.
    pub(crate) fn announce_to_all(&mut self, now: Timestamp) {
        self.announce(now);
        if let Some(standby) = &mut self.standby {
            standby.acknowledged = false;
            standby.telling.tell(Word::Set(Acked::default()), self.order, now);
        }
    }

    /// RSUs that others go to through us, and relays on the way there, must know where we are.
    pub(crate) fn tell_relayed(&mut self, now: Timestamp) {
        for telling in self.relayed.values_mut() {
            telling.tell(Word::Upstream(Why::News), self.order, now);
            telling.reply_at = now;
        }
    }

    /// The RSU has acknowledged all our clients.
    pub(crate) fn is_known_at(&self, rsu: NodeId) -> bool {
        self.known_at == Some(rsu)
    }

    /// The RSU we are attached to has not answered [`WORDS_IN_VAIN`] words in a row.
    pub(crate) fn is_unanswered(&self) -> bool {
        // The last one has had its time when the next is said.
        self.unanswered > WORDS_IN_VAIN
    }

    /// What this RSU has been told: we are attached to it, may go there next, or others go there
    /// through us.
    fn told(&mut self, rsu: NodeId, is_ours: bool) -> Option<&mut Telling> {
        match &mut self.standby {
            _ if is_ours => Some(&mut self.attached),
            Some(standby) if standby.rsu == rsu => Some(&mut standby.telling),
            _ => self.relayed.get_mut(&rsu),
        }
    }

    /// This RSU knows that `via` is our upstream, or has been told as often as it is.
    pub(crate) fn has_told(&mut self, rsu: NodeId, is_ours: bool, via: NodeId) -> bool {
        self.told(rsu, is_ours).is_some_and(|told| told.via == via && told.pending.is_none())
    }

    /// Somebody behind us says what this RSU is to acknowledge: it can answer only if it knows our
    /// upstream. What was only mentioned is mentioned again, what is repeated slowly is said soon.
    pub(crate) fn remind(&mut self, now: Timestamp, rsu: NodeId, is_ours: bool) {
        let Some(telling) = self.told(rsu, is_ours) else { return };
        match &mut telling.pending {
            Some(pending) if pending.is_mentioned() => telling.reply_at = now,
            Some(pending) if pending.is_slow => pending.next = pending.next.min(now + REPEAT_MAX),
            _ => {}
        }
    }

    /// This RSU's answer to somebody behind us came through our upstream: it knows that one.
    pub(crate) fn note_passing_ack(&mut self, rsu: NodeId, is_ours: bool) {
        if let Some(telling) = self.told(rsu, is_ours) {
            telling.pending.take_if(|pending| pending.is_mentioned());
        }
    }

    /// From now on this RSU is told that we may come; `None`: none is.
    pub(crate) fn stand_by(&mut self, now: Timestamp, rsu: Option<NodeId>) {
        if self.standby_at() == rsu {
            return;
        }
        self.standby = rsu.map(|rsu| {
            let mut telling = Telling::new(now);
            telling.tell(Word::Set(Acked::default()), self.order, now);
            self.relayed.remove(&rsu);
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

    /// Others do not go to any but these RSUs through us any more.
    pub(crate) fn retain_relayed(&mut self, is_relayed: impl Fn(NodeId) -> bool) {
        self.relayed.retain(|rsu, _| is_relayed(*rsu));
    }

    fn telling(&mut self, now: Timestamp, towards: &Towards) -> &mut Telling {
        match (towards.standing, &mut self.standby) {
            (Standing::Attached, _) => &mut self.attached,
            (Standing::Standby, Some(standby)) => &mut standby.telling,
            _ => self.relayed.get_or_insert_with(towards.rsu, || Telling::new(now)),
        }
    }

    /// Sends what is due to this RSU. Whether the RSU we are attached to is told of a new upstream
    /// and need not answer.
    pub(crate) fn drive(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        towards: Towards,
        reply_every: Duration,
        out: &mut Replies,
    ) -> bool {
        let last = self.order;
        let is_attached = towards.standing == Standing::Attached;
        let telling = self.telling(now, &towards);
        telling.note_upstream(towards.via, last, now);
        if now >= telling.reply_at && telling.pending.is_none() && is_attached && towards.is_used {
            telling.replies += 1;
            if telling.replies > REPLIES_UNACKNOWLEDGED {
                telling.tell(Word::Upstream(Why::Check), last, now);
            }
        }
        let is_mentioned = self.tell_if_due(context, now, towards, reply_every, out);
        let next = context.random.jitter(reply_every, 25);
        let telling = self.telling(now, &towards);
        // Planned when the crowd was larger, or said to be.
        telling.reply_at = telling.reply_at.min(now + timing::longest(reply_every));
        if now >= telling.reply_at {
            telling.reply_at = now + next;
            // A reply straight after the first word would say nothing new.
            let is_first = towards.standing != Standing::Attached
                && telling.pending.as_ref().is_some_and(|pending| !pending.is_mentioned());
            if !is_first {
                self.reply(context, now, towards, reply_every, Flags::default(), out);
            }
        }
        is_mentioned && towards.standing == Standing::Attached
    }

    /// Sends the word that is due, if any. Whether it is only mentioned, in the next reply.
    fn tell_if_due(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        towards: Towards,
        reply_every: Duration,
        out: &mut Replies,
    ) -> bool {
        let is_attached = towards.standing == Standing::Attached;
        let is_standby = towards.standing == Standing::Standby;
        let is_slow = context.may_defer(now) && !towards.is_used;
        let telling = self.telling(now, &towards);
        let is_due = |pending: &&mut Pending| {
            now >= pending.next || (pending.is_mentioned() || pending.is_slow) && towards.is_used
        };
        let Some(pending) = telling.pending.as_mut().filter(is_due) else {
            return false;
        };
        let may_mention =
            pending.word == Word::Upstream(Why::Change) || towards.standing == Standing::Relay;
        if may_mention && pending.attempts == 0 && !towards.is_used {
            // On a radio that fades an idle vehicle may change its upstream every other second. It
            // mentions it in a reply: now at its own RSU, and in the next at others.
            let was = std::mem::replace(&mut pending.stage, Stage::Mentioned);
            if is_attached && was != Stage::Mentioned {
                telling.reply_at = now;
            }
            pending.next = now + reply_every;
            return was != Stage::Mentioned;
        }
        // It matters now, and is repeated as any other word.
        if pending.attempts >= ATTEMPTS_MAX && !is_standby {
            telling.pending = None;
        } else if pending.stage == Stage::AskedFor || context.announcing.take(now) {
            pending.stage = Stage::Said;
            pending.attempts += 1;
            // In a crowd the answer takes longer, and another word would make it take longer still.
            let (first, most) = if is_slow {
                (REPEAT_MAX, REPEAT_MAX * REPEAT_SLOWER)
            } else {
                (REPEAT_FIRST * u32::from(towards.hops), REPEAT_MAX)
            };
            let most = if pending.attempts > ATTEMPTS_MAX { reply_every } else { most };
            let wait = (first * (1 << (pending.attempts - 1).min(ATTEMPTS_MAX))).min(most);
            pending.is_slow = is_slow;
            pending.next = now + context.random.jitter(wait, 25) + context.turn_wait();
            let word = pending.word;
            self.unanswered += u32::from(is_attached);
            match word {
                Word::Upstream(_) => {
                    let flags = Flags { acknowledge: true, ..Flags::default() };
                    self.reply(context, now, towards, reply_every, flags, out);
                    let next = context.random.jitter(reply_every, 25);
                    self.telling(now, &towards).reply_at = now + next;
                }
                Word::Set(acked) => {
                    let heading =
                        Heading { towards, epoch: self.epoch, within_ds: within_ds(reply_every) };
                    self.announcements.send(context, heading, &acked, &mut self.order, out);
                }
            }
        } else {
            pending.stage = Stage::PutOff;
            pending.next = context.announcing.next_at().max(now + REPEAT_FIRST);
            if pending.attempts == 0 && (is_attached || towards.is_used) {
                pending.attempts = 1;
                // Nobody acknowledges this, but an RSU that sends frames here finds the new way
                // down at once. One we only might go to can wait.
                self.reply(context, now, towards, reply_every, Flags::default(), out);
            }
        }
        false
    }

    /// Says who our upstream is, answers the last heartbeat, and lets the RSU compare client sets.
    pub(crate) fn reply(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        towards: Towards,
        reply_every: Duration,
        Flags { goodbye, acknowledge }: Flags,
        out: &mut Replies,
    ) {
        self.order = self.order.next();
        let standby = towards.standing != Standing::Attached;
        let heard = self.heard.filter(|_| !standby);
        let (answers, held) = heard.map_or((Seq(0), Duration::ZERO), |(seq, at)| (seq, now - at));
        let reply = HeartbeatReply {
            rsu: towards.rsu,
            origin: context.radio.id,
            order: self.order,
            epoch: self.epoch,
            via: towards.via,
            digest: self.announcements.digest(),
            clients: u16::try_from(self.announcements.clients()).unwrap_or(u16::MAX),
            within_ds: within_ds(reply_every),
            answers,
            held_100us: u16::try_from(held.as_micros() / 100).unwrap_or(u16::MAX),
            mtu: context.radio.said_mtu(),
            at_risk_10ms: towards.at_risk_10ms,
            hops: 0,
            goodbye,
            standby,
            acknowledge,
        };
        context.radio.control(towards.upstream, reply, out, &mut context.counters);
    }

    /// The RSU we are attached to answered, or asks for our clients. Whether it now knows all.
    pub(crate) fn handle_ack(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        ack: &AnnouncementAck<'_>,
    ) -> bool {
        self.unanswered = 0;
        if self.is_surpassed_by(ack) {
            self.go_above(now, ack);
            return false;
        }
        match ack.status {
            AckStatus::Accepted | AckStatus::Known if self.is_answered_by(ack) => {
                let word = self.attached.pending.as_ref().map(|pending| pending.word);
                let attempts = self.attached.note_ack(&self.announcements, ack);
                let Some(attempts) = attempts else { return false };
                if word == Some(Word::Upstream(Why::Check)) {
                    return false;
                }
                if matches!(word, Some(Word::Set(_))) {
                    self.known_at = Some(ack.rsu);
                }
                context.event(Event::Acknowledged { rsu: ack.rsu, epoch: self.epoch, attempts });
                return true;
            }
            // An answer to an older word of ours.
            AckStatus::Accepted | AckStatus::Known | AckStatus::StaleEpoch => {}
            AckStatus::SendAll => {
                let word = self.attached.pending.as_ref().map(|pending| pending.word);
                if !matches!(word, Some(Word::Set(_))) {
                    self.announce(now);
                }
                let may_answer = self.asked_at.is_none_or(|at| now.since(at) >= ASKED_EVERY);
                if may_answer && self.attached.note_asked(now) {
                    self.asked_at = Some(now);
                }
            }
        }
        false
    }

    /// An RSU that we are not attached to answered.
    pub(crate) fn handle_other_ack(&mut self, now: Timestamp, ack: &AnnouncementAck<'_>) {
        if self.is_surpassed_by(ack) {
            return self.go_above(now, ack);
        }
        let is_present = self.is_answered_by(ack);
        if let Some(telling) = self.relayed.get_mut(&ack.rsu) {
            if ack.status == AckStatus::SendAll {
                // It wants to know whether we are still there.
                telling.tell(Word::Upstream(Why::News), self.order, now);
            } else if is_present {
                telling.note_ack(&self.announcements, ack);
            }
        }
        let Some(standby) = self.standby.as_mut().filter(|standby| standby.rsu == ack.rsu) else {
            return;
        };
        match ack.status {
            AckStatus::Accepted | AckStatus::Known if is_present => {
                let was_set =
                    matches!(standby.telling.pending, Some(Pending { word: Word::Set(_), .. }));
                let is_known = standby.telling.note_ack(&self.announcements, ack).is_some();
                standby.acknowledged |= was_set && is_known;
            }
            AckStatus::SendAll => {
                standby.acknowledged = false;
                standby.telling.tell(Word::Set(Acked::default()), self.order, now);
            }
            _ => {}
        }
    }

    /// The acknowledgement is of the present set, and of the present attachment.
    fn is_answered_by(&self, ack: &AnnouncementAck<'_>) -> bool {
        ack.epoch == self.epoch && ack.digest == self.announcements.digest()
    }

    /// An RSU knows of a word that we have not said: somebody else speaks for us, or we did before
    /// a restart.
    fn is_surpassed_by(&self, ack: &AnnouncementAck<'_>) -> bool {
        match ack.status {
            AckStatus::StaleEpoch => ack.epoch >= self.epoch,
            _ => (ack.epoch, ack.seq) > (self.epoch, self.order.seq),
        }
    }

    /// Says how things are, above what the RSU knows. What is too far above the RSU does not
    /// believe itself for long; and beyond the last epoch there would be none.
    fn go_above(&mut self, now: Timestamp, ack: &AnnouncementAck<'_>) {
        if self.raised_at.is_some_and(|at| now.since(at) < REPEAT_FIRST) {
            return;
        }
        self.raised_at = Some(now);
        let step = ack.epoch.saturating_sub(self.epoch);
        let known = if step < EPOCH_STEP_MAX { ack.epoch } else { self.epoch };
        self.epoch = known.saturating_add(1);
        self.announce_to_all(now);
        if let Some(telling) = self.relayed.get_mut(&ack.rsu) {
            telling.tell(Word::Upstream(Why::News), self.order, now);
        }
    }

    /// When [`Registration::drive`] next has something to do. `is_reached`: there is a way to this
    /// RSU, and it is told.
    pub(crate) fn deadline(&self, is_reached: impl Fn(NodeId) -> bool) -> Deadline {
        let standby = self.standby.as_ref().map(|standby| (standby.rsu, &standby.telling));
        let relayed = self.relayed.iter().map(|(rsu, telling)| (*rsu, telling));
        let others = standby.into_iter().chain(relayed).filter(|(rsu, _)| is_reached(*rsu));
        let gathered = self.clients_changed.map(|at| at + GATHER_FOR);
        others
            .map(|(_, telling)| telling.deadline())
            .fold(self.attached.deadline(), Deadline::or)
            .or_at(gathered, "announce new clients")
    }
}

/// What a reply says beside how things are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) goodbye: bool,
    pub(crate) acknowledge: bool,
}

/// The same in 0.1 s, as it is said: at least that.
fn within_ds(reply_every: Duration) -> u16 {
    u16::try_from(timing::longest(reply_every).as_millis().div_ceil(100)).unwrap_or(u16::MAX).max(1)
}
