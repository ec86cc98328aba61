//! Which OBUs are attached or may come, and whether we know their clients.
//!
//! Frames can be forged, and nothing in them tells. So what one frame may change is limited:
//!
//! * **A step is believed at once**, if boot count, epoch and sequence go on from what was said
//!   last. What the OBU itself says then is older than what was said for it: it is told, and
//!   answers with a higher epoch, which is news.
//! * **A jump is believed when a second word bears it out** ([`WITNESS_AFTER`] later), and the
//!   count known so far says nothing new meanwhile. That holds for a restart too: an OBU repeats
//!   its announcement until it is answered.
//! * **Who is attached and alive is never pushed out** by newcomers. When all places are taken,
//!   those unheard for longest are asked whether they are still there. Who does not answer makes
//!   room; until then newcomers are refused. Else a thousand announcements of made-up OBUs would
//!   shut out real ones for as long as OBUs of so large a crowd may be silent, four minutes.

pub(crate) mod left;
pub(crate) mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_lib::control::snapshot;
use node_lib::control::table::Table;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Client, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{Boot, EPOCH_STEP_MAX, NodeId, Order, Seq, Timestamp};

use super::clients::CLIENTS_MAX;
use super::departed::LATE_FOR;
use left::LeftWays;
use tree::Edge;

/// OBUs remembered, attached or not: twice the vehicles of the densest traffic jam in radio range.
const OBUS_MAX: usize = 1024;

/// A missing client set is asked for at most this often.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Clients kept of one OBU; what a set has beyond is not kept, and the set never complete. A
/// vehicle announces 512 at most.
const SET_MAX: usize = 2048;

/// Clients kept of all OBUs together: four times those the RSU forwards for. What is announced
/// beyond is not kept.
const CLAIMS_MAX: usize = 4 * CLIENTS_MAX;

/// What an OBU that left has said is remembered for so long, so that a late copy of it is known as
/// such: no frame is under way for longer.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// A sequence number further ahead is a jump, and so is an epoch more than [`EPOCH_STEP_MAX`]
/// ahead: an OBU says a word a second when idle, and a few dozen when it moves.
const SEQ_STEP_MAX: u32 = 1024;

/// A jump is believed when it is repeated so long after its first word: no two frames are one then.
/// An OBU repeats an announcement 20, 60, 140 and 300 ms after the first, so one that has started
/// again is believed with its third word, and soon enough if one of them is lost.
const WITNESS_AFTER: Duration = Duration::from_millis(50);

/// A word so many numbers behind the last, or [`LATE_FOR`] after it, is no copy that was overtaken,
/// but most likely the OBU itself, of whom somebody else has spoken.
const CONTESTED_FROM: u32 = 4;

/// For a newcomer's place, OBUs unheard for so long are asked …
const SILENT_FOR: Duration = Duration::from_secs(1);

/// … so many at once, this far apart, …
const KNOCKS_AT_ONCE: usize = 8;
const KNOCK_EVERY: Duration = Duration::from_millis(100);

/// … and so often each, before one that says nothing goes. At 10 % loss in either direction an OBU
/// that is there is taken to be gone once in 20,000 times, and its next reply brings it back.
const KNOCKS: u8 = 6;

/// Two starts of one OBU that take turns so often, within [`DUEL_WITHIN`], are two OBUs. An OBU
/// that starts again and again is one: each start is another.
const DUEL_AFTER: u8 = 3;

/// See [`DUEL_AFTER`].
const DUEL_WITHIN: Duration = Duration::from_secs(10);

/// The LAN side hears of the clients of one OBU by what the OBU says; that they are alive is noted
/// this often, however often it says so.
const VOUCH_EVERY: Duration = Duration::from_millis(500);

/// Words of an OBU that may be missed before it is taken to be gone, and the shortest time that
/// takes.
const WORDS: u32 = 3;
const SILENCE_MIN: Duration = Duration::from_secs(5);

/// How an OBU stands to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It was here.
    Gone,
    /// It is attached elsewhere: it may come, or others come through it.
    Standby,
    /// Its clients are behind us.
    Attached,
}

/// What an OBU said, in the order in which it counts: a restart is newer than all before it, then
/// the higher epoch, and of what it says within one the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    boot: Boot,
    epoch: u32,
    seq: Seq,
}

/// What is known of one OBU.
#[derive(Clone, Debug)]
struct Registered {
    standing: Standing,
    /// The last word that decided the standing, …
    word: Word,
    /// … and when it came.
    said: Timestamp,
    /// Who its upstream is.
    edge: Edge,
    /// What goes through it arrives, for all we know.
    passes_on: bool,
    /// When it was last heard, …
    heard: Timestamp,
    /// … and within which time it has its next word.
    within: Duration,
    /// Digest of the set its announcement names; the set is complete when all parts are there.
    digest: u32,
    parts: Vec<Option<Vec<Client>>>,
    /// The complete set before this one, while this one is not complete.
    before: Vec<Client>,
    /// A word that jumps, and waits to be borne out.
    rival: Option<Rival>,
    left: LeftWays,
    /// When a frame of its clients last came.
    spoke_at: Option<Timestamp>,
    duel: Duel,
    /// It has come: its set is complete, and it was attached since.
    has_come: bool,
    /// Its coming has been reported to the operator.
    is_reported: bool,
    asked_at: Option<Timestamp>,
    vouched_at: Option<Timestamp>,
    /// Questions in a row, for its place, to which it has said nothing.
    knocks: u8,
    round_trip_us: Option<u32>,
}

/// The last word of a count that jumps, and when the first came.
#[derive(Clone, Copy, Debug)]
struct Rival {
    word: Word,
    since: Timestamp,
}

/// How often two starts under one id have taken turns. What is late of a start that is over makes
/// one turn with its successor at most: it has all come within [`LATE_FOR`].
#[derive(Clone, Copy, Debug, Default)]
struct Duel {
    between: [Boot; 2],
    times: u8,
    since: Timestamp,
    last: Timestamp,
    is_news: bool,
}

/// What each word of an OBU says, whatever else it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    pub(crate) order: Order,
    pub(crate) epoch: u32,
    pub(crate) edge: Edge,
    /// The next one comes within this.
    pub(crate) within: Duration,
}

impl Says {
    fn word(&self) -> Word {
        Word { boot: self.order.boot, epoch: self.epoch, seq: self.order.seq }
    }
}

/// What a word of an OBU is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The OBU has not announced itself.
    Unknown,
    /// Newer than all before.
    Newest,
    /// Overtaken by what was said since, or a copy.
    Old,
    /// Far from all that was said: nothing is concluded from it yet.
    Unproven,
    /// Newer than all before, but with it two OBUs would be behind each other: nothing is concluded
    /// from it.
    Circular,
}

/// What an announcement means to us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// There is no room for another OBU.
    Refused,
    /// Nothing is concluded from it yet, and nothing is said: if it is true it will be repeated.
    Unproven,
    /// The OBU is known to have said otherwise, with this epoch: it must use a higher one.
    Stale(u32),
    /// Accepted.
    Accepted(Accepted),
}

/// What an accepted claim changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The OBU is attached to us.
    pub(crate) is_attached: bool,
    /// It was attached until now.
    pub(crate) has_left: bool,
    /// It was not said before: its clients may be taken over from where they are.
    pub(crate) is_new: bool,
    /// The OBU has come, and all its clients are known for the first time since.
    pub(crate) has_come: bool,
    /// All its clients, if they are known, and this is new.
    pub(crate) set: Option<Vec<Client>>,
}

/// What [`Obus::knock`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Knocked {
    /// To be asked, with the digest of the set we hold.
    pub(crate) asked: Vec<(NodeId, u32)>,
    /// Not there any more.
    pub(crate) gone: Vec<NodeId>,
}

/// OBUs by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Obus {
    by_id: Table<NodeId, Registered>,
    /// Who announces a client, and since when: the clients of all sets in `by_id`.
    claims: BTreeMap<(Client, NodeId), Timestamp>,
    attached: usize,
    evicted: u64,
    /// Those that are yet to be told where they were what was said for them since.
    untold: BTreeSet<NodeId>,
    /// When somebody was last asked for the sake of a newcomer.
    knocked_at: Option<Timestamp>,
}

impl Obus {
    /// The OBU has announced itself, in whatever standing.
    #[inline]
    pub(crate) fn knows(&self, obu: NodeId) -> bool {
        self.by_id.contains_key(&obu)
    }

    /// The OBU has announced itself, and has not left.
    #[inline]
    pub(crate) fn is_here(&self, obu: NodeId) -> bool {
        self.by_id.get(&obu).is_some_and(|known| known.standing != Standing::Gone)
    }

    /// The boot count of the OBU, as its last word had it.
    pub(crate) fn boot(&self, obu: NodeId) -> Option<Boot> {
        self.by_id.get(&obu).map(|known| known.word.boot)
    }

    /// The OBU is attached to us.
    pub(crate) fn is_attached(&self, obu: NodeId) -> bool {
        self.by_id.get(&obu).is_some_and(Registered::is_attached)
    }

    /// An OBU announces (a part of) its clients. The verdict says whether the way it came is the
    /// way back.
    pub(crate) fn claim(
        &mut self,
        now: Timestamp,
        announcement: &Announcement<'_>,
        says: Says,
    ) -> (Verdict, Claim) {
        let Announcement { origin: obu, part, parts, digest, .. } = *announcement;
        let word = says.word();
        let is_circular = self.closes_circle(obu, says.edge);
        let standing = if announcement.standby { Standing::Standby } else { Standing::Attached };
        let is_unknown = !self.by_id.contains_key(&obu);
        if is_unknown && is_circular {
            return (Verdict::Circular, Claim::Unproven);
        }
        if is_unknown {
            if !self.make_room() {
                return (Verdict::Unknown, Claim::Refused);
            }
            self.by_id.insert(obu, Registered::new(now, says, digest, parts));
        }
        let Some(known) = self.by_id.get_mut(&obu) else {
            return (Verdict::Unknown, Claim::Refused);
        };
        let verdict = if is_unknown { Verdict::Newest } else { known.judge(now, &says) };
        let verdict = verdict.unless(is_circular);
        let is_last = verdict == Verdict::Newest;
        let is_other_set = digest != known.digest || known.parts.len() != usize::from(parts);
        match verdict {
            Verdict::Unproven | Verdict::Circular => return (verdict, Claim::Unproven),
            Verdict::Old
                if word.epoch != known.word.epoch
                    || standing != known.standing
                    || is_other_set
                    || known.is_contested(now, word.seq, says.edge) =>
            {
                if known.left.contradict(now, says.edge) {
                    self.untold.insert(obu);
                }
                return (verdict, Claim::Stale(known.word.epoch));
            }
            _ => {}
        }
        let is_raised = (word.boot, word.epoch) != (known.word.boot, known.word.epoch);
        let was = known.standing;
        if is_other_set {
            known.begin_set(&mut self.claims, obu, digest, parts);
        }
        let room = CLAIMS_MAX.saturating_sub(self.claims.len());
        let is_new_part = known.keep(part, announcement.clients.iter(), room);
        if is_new_part {
            known.index(&mut self.claims, obu, part, now);
        }
        if is_last {
            if known.leave(now, standing, &says, is_other_set) {
                self.untold.insert(obu);
            }
            self.attached = known.follow(now, standing, says, self.attached);
        }
        let is_new = is_new_part || is_raised || was != known.standing;
        let set = if is_new { known.complete_set() } else { None };
        if set.is_some() {
            known.end_set(&mut self.claims, obu);
        }
        let has_come = known.is_attached() && set.is_some() && !known.has_come;
        known.has_come |= has_come;
        let accepted = Accepted {
            is_attached: known.is_attached(),
            has_left: was == Standing::Attached && !known.is_attached(),
            is_new: known.is_attached() && is_new,
            has_come,
            set,
        };
        (verdict, Claim::Accepted(accepted))
    }

    /// An OBU answers a heartbeat, and says by the way how it stands to us. `None`: nothing changes
    /// but its upstream.
    pub(crate) fn hear_reply(
        &mut self,
        now: Timestamp,
        reply: &HeartbeatReply,
        says: Says,
    ) -> (Verdict, Option<Accepted>) {
        let obu = reply.origin;
        let is_circular = self.closes_circle(obu, says.edge);
        if reply.standby && !self.by_id.contains_key(&obu) {
            if is_circular {
                return (Verdict::Circular, None);
            }
            if !self.make_room() {
                return (Verdict::Unknown, None);
            }
            // Others come through it. That it may be made up makes it no worse than an
            // announcement.
            let mut relay = Registered::new(now, says, reply.digest, 1);
            relay.standing = Standing::Standby;
            self.by_id.insert(obu, relay);
            return (Verdict::Newest, None);
        }
        let Some(known) = self.by_id.get_mut(&obu) else {
            return (Verdict::Unknown, None);
        };
        let verdict = known.judge(now, &says).unless(is_circular);
        if verdict == Verdict::Old
            && known.is_contested(now, says.order.seq, says.edge)
            && known.left.contradict(now, says.edge)
        {
            self.untold.insert(obu);
        }
        if verdict != Verdict::Newest {
            return (verdict, None);
        }
        let was = known.standing;
        let has_set = known.digest == reply.digest && known.is_complete();
        let standing = match (reply.standby, has_set) {
            // It may be that we hold no set of it yet; that it is not here any more is certain.
            (true, _) => Standing::Standby,
            (false, true) => Standing::Attached,
            // Its upstream is news in any case.
            (false, false) => was,
        };
        if known.leave(now, standing, &says, false) {
            self.untold.insert(obu);
        }
        self.attached = known.follow(now, standing, says, self.attached);
        if known.standing == was {
            return (verdict, None);
        }
        let set = known.complete_set();
        let has_come = known.is_attached() && !known.has_come;
        known.has_come |= has_come;
        let accepted = Accepted {
            is_attached: known.is_attached(),
            has_left: was == Standing::Attached,
            is_new: known.is_attached(),
            has_come,
            set,
        };
        (verdict, Some(accepted))
    }

    /// The OBU said goodbye. Returns whether it was attached until now.
    pub(crate) fn hear_goodbye(
        &mut self,
        now: Timestamp,
        reply: &HeartbeatReply,
        says: Says,
    ) -> bool {
        let Some(known) = self.by_id.get_mut(&reply.origin) else {
            // What it said before may still come.
            if self.by_id.len() < OBUS_MAX {
                let gone = Registered::new(now, says, reply.digest, 1);
                self.by_id.insert(reply.origin, gone);
            }
            return false;
        };
        if known.judge(now, &says) != Verdict::Newest {
            return false;
        }
        let was_attached = known.is_attached();
        // What is under way to it goes the way it was.
        let says = Says { edge: known.edge, ..says };
        if known.leave(now, Standing::Gone, &says, false) {
            self.untold.insert(reply.origin);
        }
        self.attached = known.follow(now, Standing::Gone, says, self.attached);
        was_attached
    }

    /// The OBU fell silent: nothing gets past it either. Returns whether it was attached until now.
    pub(crate) fn give_up(&mut self, now: Timestamp, obu: NodeId) -> bool {
        if let Some(known) = self.by_id.get_mut(&obu) {
            known.passes_on = false;
        }
        self.lose(now, obu)
    }

    /// The OBU fell silent, or all its clients appeared elsewhere. Returns whether it was attached
    /// until now.
    pub(crate) fn lose(&mut self, now: Timestamp, obu: NodeId) -> bool {
        let Some(known) = self.by_id.get_mut(&obu) else { return false };
        let was_attached = known.is_attached();
        self.attached -= usize::from(was_attached);
        known.stand(Standing::Gone);
        known.heard = now;
        was_attached
    }

    /// What this reply is answered, and with which epoch: that its upstream is known, if it wants
    /// to know; that its clients are to be announced, if the set we hold is not the one it names;
    /// or that somebody else speaks for it.
    pub(crate) fn answer(
        &self,
        now: Timestamp,
        reply: &HeartbeatReply,
        edge: Edge,
        verdict: Verdict,
    ) -> Option<(AckStatus, u32)> {
        if verdict == Verdict::Circular {
            return None;
        }
        let ask = (AckStatus::SendAll, reply.epoch);
        let Some(known) = self.by_id.get(&reply.origin) else {
            // Nothing is kept for an OBU that has not announced itself: it may be a forgery.
            return (!reply.standby && self.has_room()).then_some(ask);
        };
        let is_contested = known.word.boot != reply.order.boot
            || known.word.epoch != reply.epoch
            || known.is_contested(now, reply.order.seq, edge);
        let wants = (reply.acknowledge && verdict == Verdict::Newest).then_some(reply.epoch);
        if reply.standby {
            // Those that may come announce themselves; of the others nothing more need be known.
            let is_old = verdict == Verdict::Old && is_contested;
            return match wants {
                _ if is_old => Some((AckStatus::StaleEpoch, known.word.epoch)),
                wants => wants.map(|epoch| (AckStatus::Known, epoch)),
            };
        }
        let matches = known.standing == Standing::Attached
            && !is_contested
            && known.digest == reply.digest
            && known.is_complete();
        if matches {
            return wants.map(|epoch| (AckStatus::Accepted, epoch));
        }
        Some(ask)
    }

    /// Whether an OBU whose frame came is to be asked for its clients now: it has not announced
    /// itself, or has left `long_ago`.
    pub(crate) fn must_ask_sender(&self, now: Timestamp, obu: NodeId, gone: Duration) -> bool {
        match self.by_id.get(&obu) {
            None => self.has_room(),
            Some(known) => known.standing == Standing::Gone && now.since(known.heard) >= gone,
        }
    }

    /// The OBU was not asked just now; then it is.
    pub(crate) fn may_ask(&mut self, now: Timestamp, obu: NodeId) -> bool {
        self.by_id.get_mut(&obu).is_none_or(|known| known.may_ask(now))
    }

    /// The OBU is attached, the set we hold is the one its reply names, and that has not been noted
    /// for a while.
    pub(crate) fn vouches(&mut self, now: Timestamp, obu: NodeId, digest: u32) -> bool {
        let Some(known) = self.by_id.get_mut(&obu) else { return false };
        let is_due = known.vouched_at.is_none_or(|at| now.since(at) >= VOUCH_EVERY);
        let vouches =
            is_due && known.is_attached() && known.digest == digest && known.is_complete();
        if vouches {
            known.vouched_at = Some(now);
        }
        vouches
    }

    /// Of the attached OBUs that announce this client, the one that has done so for longest.
    pub(crate) fn claimant(&self, client: Client) -> Option<NodeId> {
        let claims = self.claims_of(client).filter(|(obu, _)| self.is_attached(*obu));
        claims.min_by_key(|(obu, since)| (*since, *obu)).map(|(obu, _)| obu)
    }

    /// Since when this OBU announces the client.
    pub(crate) fn claimed(&self, client: Client, obu: NodeId) -> Option<Timestamp> {
        self.claims.get(&(client, obu)).copied()
    }

    fn claims_of(&self, client: Client) -> impl Iterator<Item = (NodeId, Timestamp)> {
        let all = (client, NodeId([0; 6]))..=(client, NodeId([0xff; 6]));
        self.claims.range(all).map(|((_, obu), since)| (*obu, *since))
    }

    /// A reply answered a heartbeat sent so long ago.
    pub(crate) fn note_round_trip(&mut self, obu: NodeId, sample: Duration) {
        if let Some(known) = self.by_id.get_mut(&obu) {
            let sample = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX);
            // As RFC 6298 §2.3: srtt ← 7/8·srtt + 1/8·sample.
            let srtt = known.round_trip_us.map_or(sample, |srtt| srtt - srtt / 8 + sample / 8);
            known.round_trip_us = Some(srtt);
        }
    }

    /// Smoothed time from a heartbeat to the OBU's reply, without the time the OBU held it.
    pub(crate) fn round_trip(&self, obu: NodeId) -> Option<Duration> {
        let micros = self.by_id.get(&obu)?.round_trip_us?;
        Some(Duration::from_micros(u64::from(micros)))
    }

    pub(crate) fn forget(&mut self, obu: NodeId) {
        if let Some(known) = self.by_id.remove(&obu) {
            self.untold.remove(&obu);
            self.attached -= usize::from(known.is_attached());
            for client in known.parts.iter().flatten().flatten().chain(&known.before) {
                self.claims.remove(&(*client, obu));
            }
        }
    }

    /// OBUs attached.
    #[inline]
    pub(crate) fn attached(&self) -> usize {
        self.attached
    }

    /// Those that have not said for too long that they are there, and how they stood.
    pub(crate) fn silent(&self, now: Timestamp) -> impl Iterator<Item = (NodeId, Standing)> {
        let is_silent = move |known: &Registered| {
            let silence = now.since(known.heard);
            silence
                >= if known.standing == Standing::Gone { REMEMBERED_FOR } else { known.lifetime() }
        };
        let silent = self.by_id.iter().filter(move |(_, known)| is_silent(known));
        silent.map(|(obu, known)| (*obu, known.standing))
    }

    /// A frame of an attached OBU came: it is there, though its replies may have been lost.
    #[inline]
    pub(crate) fn renew(&mut self, now: Timestamp, obu: NodeId) {
        if let Some(known) = self.by_id.get_mut(&obu).filter(|known| known.is_attached()) {
            known.heard = now;
            known.spoke_at = Some(now);
        }
    }

    /// OBUs attached, and the smoothed round trip of heartbeat and reply.
    pub(crate) fn each_attached(&self) -> impl Iterator<Item = (NodeId, Option<Duration>)> {
        let attached = self.by_id.iter().filter(|(_, known)| known.is_attached());
        attached.map(|(obu, _)| (*obu, self.round_trip(*obu)))
    }

    /// All that are known, by id.
    pub(crate) fn view(&self, now: Timestamp) -> Vec<snapshot::Obu> {
        let known = self.by_id.iter().map(|(id, known)| snapshot::Obu {
            id: *id,
            standing: match known.standing {
                Standing::Gone => snapshot::ObuStanding::Gone,
                Standing::Standby => snapshot::ObuStanding::Standby,
                Standing::Attached => snapshot::ObuStanding::Attached,
            },
            upstream: known.edge.via,
            mac: known.edge.mac,
            way: self.relays(known.edge),
            heard_ms: snapshot::age_ms(now, known.heard),
            boot: known.word.boot.0,
            epoch: known.word.epoch,
            clients: known.parts.iter().flatten().map(Vec::len).sum(),
            is_complete: known.is_complete(),
            round_trip_us: known.round_trip_us,
            is_contested: known.rival.is_some(),
        });
        known.collect()
    }

    /// That the OBU has come is reported to the operator.
    pub(crate) fn note_reported(&mut self, obu: NodeId) {
        if let Some(known) = self.by_id.get_mut(&obu) {
            known.is_reported = true;
        }
    }

    /// Whether that the OBU is gone is to be reported: that it came was.
    pub(crate) fn take_reported(&mut self, obu: NodeId) -> bool {
        self.by_id.get_mut(&obu).is_some_and(|known| std::mem::take(&mut known.is_reported))
    }

    /// Whether two nodes with the id of this OBU keep interrupting each other; said once per duel.
    pub(crate) fn take_duel(&mut self, obu: NodeId) -> bool {
        self.by_id.get_mut(&obu).is_some_and(|known| std::mem::take(&mut known.duel.is_news))
    }

    /// OBUs pushed out since this was last asked.
    pub(crate) fn take_evicted(&mut self) -> u64 {
        std::mem::take(&mut self.evicted)
    }

    /// Whom to ask whether they are still there, now that a newcomer finds no place; and those that
    /// have not answered, whose places it may have.
    pub(crate) fn knock(&mut self, now: Timestamp) -> Knocked {
        let mut knocked = Knocked::default();
        if self.knocked_at.is_some_and(|at| now.since(at) < KNOCK_EVERY) {
            return knocked;
        }
        self.knocked_at = Some(now);
        let silent =
            self.by_id.iter_mut().filter(|(_, known)| now.since(known.heard) >= SILENT_FOR);
        let mut silent: Vec<_> = silent.map(|(obu, known)| (known.heard, *obu, known)).collect();
        silent.sort_unstable_by_key(|(heard, obu, _)| (*heard, *obu));
        for (_, obu, known) in silent.into_iter().take(KNOCKS_AT_ONCE) {
            if known.knocks >= KNOCKS {
                knocked.gone.push(obu);
            } else {
                known.knocks += 1;
                knocked.asked.push((obu, known.digest));
            }
        }
        knocked
    }

    /// There is room for one more, or somebody who makes room.
    fn has_room(&self) -> bool {
        self.by_id.len() < OBUS_MAX || self.attached < self.by_id.len()
    }

    /// Makes room for one more. Attached OBUs are not pushed out by new ones, see [`Obus::knock`],
    /// nor are those on whom others' ways lead. First go those that left, then those on standby,
    /// the longest unheard before others.
    fn make_room(&mut self) -> bool {
        if self.by_id.len() < OBUS_MAX {
            return true;
        }
        if !self.has_room() {
            return false;
        }
        let relays: BTreeSet<_> = self.by_id.values().map(|known| known.edge.via).collect();
        let goes = |(obu, known): &(&NodeId, &Registered)| {
            !known.is_attached() && (known.standing == Standing::Gone || !relays.contains(*obu))
        };
        let least = self.by_id.iter().filter(goes).min_by_key(|(_, k)| (k.standing, k.heard));
        let Some(obu) = least.map(|(obu, _)| *obu) else { return false };
        self.forget(obu);
        self.evicted += 1;
        true
    }
}

impl Registered {
    /// An OBU that has said this, and is not taken for attached yet.
    fn new(now: Timestamp, says: Says, digest: u32, parts: u8) -> Self {
        Self {
            standing: Standing::Gone,
            word: says.word(),
            said: now,
            edge: says.edge,
            passes_on: true,
            heard: now,
            within: says.within,
            digest,
            parts: vec![None; usize::from(parts)],
            before: Vec::new(),
            rival: None,
            left: LeftWays::default(),
            spoke_at: None,
            duel: Duel::default(),
            has_come: false,
            is_reported: false,
            asked_at: None,
            vouched_at: None,
            knocks: 0,
            round_trip_us: None,
        }
    }

    fn is_attached(&self) -> bool {
        self.standing == Standing::Attached
    }

    fn may_ask(&mut self, now: Timestamp) -> bool {
        let is_due = self.asked_at.is_none_or(|at| now.since(at) >= ASK_EVERY);
        if is_due {
            self.asked_at = Some(now);
        }
        is_due
    }

    /// This word is not the newest, and says that the newest is not the OBU's own.
    fn is_contested(&self, now: Timestamp, seq: Seq, edge: Edge) -> bool {
        match self.word.seq.0.checked_sub(seq.0) {
            None => false,
            Some(0) => edge != self.edge,
            Some(behind) => behind >= CONTESTED_FROM || now.since(self.said) >= LATE_FOR,
        }
    }

    /// What this word is worth, after all that was said before.
    fn judge(&mut self, now: Timestamp, says: &Says) -> Verdict {
        let word = says.word();
        if word.follows(self.word) {
            if word <= self.word {
                return Verdict::Old;
            }
            if let Some(rival) = self.rival.take() {
                self.duel.note(now, word.boot, rival.word.boot);
            }
            return Verdict::Newest;
        }
        let is_bound = self.standing != Standing::Gone || word < self.word;
        let is_over = now.since(self.heard) > REMEMBERED_FOR && self.standing == Standing::Gone;
        if !is_bound || is_over {
            self.rival = None;
            return Verdict::Newest;
        }
        if let Some((before, edge)) = self.left.outweighed_by(now, says) {
            self.rival = None;
            self.duel.note(now, word.boot, self.word.boot);
            // As if the OBU had not jumped.
            (self.word, self.edge) = (before, edge);
            return Verdict::Newest;
        }
        match self.rival {
            Some(rival) if word.follows(rival.word) => {
                if word <= rival.word {
                    return Verdict::Unproven;
                }
                self.rival = Some(Rival { word, ..rival });
                if now.since(rival.since) < WITNESS_AFTER {
                    return Verdict::Unproven;
                }
                self.rival = None;
                self.duel.note(now, word.boot, self.word.boot);
                Verdict::Newest
            }
            _ => {
                self.rival = Some(Rival { word, since: now });
                Verdict::Unproven
            }
        }
    }

    /// Takes the word for the OBU's last. Returns how many are attached then.
    fn follow(&mut self, now: Timestamp, standing: Standing, says: Says, attached: usize) -> usize {
        let others = attached - usize::from(self.is_attached());
        self.stand(standing);
        self.word = says.word();
        self.said = now;
        self.edge = says.edge;
        self.passes_on = true;
        self.within = says.within;
        self.heard = now;
        self.knocks = 0;
        others + usize::from(self.is_attached())
    }

    fn stand(&mut self, standing: Standing) {
        self.has_come &= standing == Standing::Attached && self.is_attached();
        self.standing = standing;
    }

    /// Without a word for so long it is taken to be gone.
    fn lifetime(&self) -> Duration {
        (self.within * WORDS).max(SILENCE_MIN)
    }

    /// What it says of its upstream still holds.
    fn leads_on(&self) -> bool {
        self.standing != Standing::Gone
    }

    /// Another set is announced. The one before counts until this is complete.
    fn begin_set(
        &mut self,
        claims: &mut BTreeMap<(Client, NodeId), Timestamp>,
        obu: NodeId,
        digest: u32,
        parts: u8,
    ) {
        let was_complete = self.is_complete();
        let old = std::mem::replace(&mut self.parts, vec![None; usize::from(parts)]);
        let old = old.into_iter().flatten().flatten();
        if was_complete {
            self.before = old.collect();
            self.before.sort_unstable();
        } else {
            for client in old.filter(|client| self.before.binary_search(client).is_err()) {
                claims.remove(&(client, obu));
            }
        }
        self.digest = digest;
    }

    /// The set is complete: who was in the one before and is not in this one is not announced any
    /// more.
    fn end_set(&mut self, claims: &mut BTreeMap<(Client, NodeId), Timestamp>, obu: NodeId) {
        for client in std::mem::take(&mut self.before) {
            if !self.names(client) {
                claims.remove(&(client, obu));
            }
        }
    }

    fn names(&self, client: Client) -> bool {
        self.parts.iter().flatten().any(|part| part.binary_search(&client).is_ok())
    }

    /// Keeps a part of the set, as far as there is room; whether it was not there yet.
    fn keep(&mut self, part: u8, clients: impl Iterator<Item = Client>, room: usize) -> bool {
        let kept: usize = self.parts.iter().flatten().map(Vec::len).sum();
        let Some(slot @ None) = self.parts.get_mut(usize::from(part)) else { return false };
        let mut clients: Vec<_> = clients.collect();
        if clients.len() > room.min(SET_MAX.saturating_sub(kept)) {
            clients.clear();
        }
        clients.sort_unstable();
        *slot = Some(clients);
        true
    }

    /// Notes since when the OBU announces the clients of a part.
    fn index(
        &self,
        claims: &mut BTreeMap<(Client, NodeId), Timestamp>,
        obu: NodeId,
        part: u8,
        now: Timestamp,
    ) {
        for client in self.parts.get(usize::from(part)).iter().copied().flatten().flatten() {
            claims.entry((*client, obu)).or_insert(now);
        }
    }

    fn is_complete(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// All clients, once every part is there and together they are what the digest says.
    fn complete_set(&self) -> Option<Vec<Client>> {
        let mut set = Vec::new();
        for part in &self.parts {
            set.extend_from_slice(part.as_deref()?);
        }
        set.sort_unstable();
        (client_digest(&set) == self.digest).then_some(set)
    }
}

impl Verdict {
    /// What is newest is no more than a word that waits for another while the tree would have a
    /// circle with it.
    fn unless(self, is_circular: bool) -> Self {
        if self == Self::Newest && is_circular { Self::Circular } else { self }
    }
}

impl Word {
    /// Of one count with `other`: no further from it than an OBU gets while we miss what it says.
    fn follows(self, other: Self) -> bool {
        self.boot == other.boot
            && self.epoch.abs_diff(other.epoch) <= EPOCH_STEP_MAX
            && self.seq.0.abs_diff(other.seq.0) <= SEQ_STEP_MAX
    }
}

impl Duel {
    /// The one start has taken its turn after the other.
    fn note(&mut self, now: Timestamp, one: Boot, other: Boot) {
        let between = [one.min(other), one.max(other)];
        if self.between != between || now.since(self.since) > DUEL_WITHIN {
            *self = Self { between, since: now, ..Self::default() };
        } else if now.since(self.last) < LATE_FOR {
            return;
        }
        self.last = now;
        self.times = self.times.saturating_add(1);
        self.is_news |= self.times == DUEL_AFTER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::messages::control::announcement::Clients;
    use node_lib::{Mac, Order};

    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 9]);
    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn client(n: u8) -> Client {
        Client { vlan: 0, mac: Mac([2, 0, 0, 0, 1, n]) }
    }

    /// What an OBU says: boot count, epoch and sequence, and whether it is on standby.
    #[derive(Clone, Copy, Debug)]
    struct Said(u32, u32, u32, bool);

    impl Said {
        /// By an OBU whose upstream is the RSU.
        fn says(self) -> Says {
            let Self(boot, epoch, seq, _) = self;
            let edge = Edge { via: RSU, mac: Some(Mac([2, 0, 0, 0, 0, 1])), mtu: 1500 };
            let within = Duration::from_millis(1300);
            Says { order: Order::new(boot, seq), epoch, edge, within }
        }
    }

    fn claim_part(
        obus: &mut Obus,
        said: (NodeId, Said),
        part: (u8, u8),
        digest: u32,
        clients: &[Client],
    ) -> Claim {
        claim_part_at(NOW, obus, said, part, digest, clients)
    }

    fn claim_part_at(
        at: Timestamp,
        obus: &mut Obus,
        (obu, said): (NodeId, Said),
        (part, parts): (u8, u8),
        digest: u32,
        clients: &[Client],
    ) -> Claim {
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
            mtu: 1500,
            hops: 0,
            standby,
            clients: Clients::parse(&groups).unwrap(),
        };
        obus.claim(at, &announcement, said.says()).1
    }

    fn claim(obus: &mut Obus, said: Said, set: &[Client]) -> Claim {
        claim_at(0, obus, said, set)
    }

    /// So many milliseconds later.
    fn claim_at(ms: u64, obus: &mut Obus, said: Said, set: &[Client]) -> Claim {
        let at = NOW + Duration::from_millis(ms);
        claim_part_at(at, obus, (OBU, said), (0, 1), client_digest(set), set)
    }

    fn hear_reply(obus: &mut Obus, reply: &HeartbeatReply) -> Option<Accepted> {
        hear_reply_at(NOW, obus, reply)
    }

    fn hear_reply_at(at: Timestamp, obus: &mut Obus, reply: &HeartbeatReply) -> Option<Accepted> {
        obus.hear_reply(at, reply, says_of(reply)).1
    }

    /// The answer to this word is a question for the OBU's clients.
    fn must_ask(at: Timestamp, obus: &mut Obus, reply: &HeartbeatReply) -> bool {
        let answer = obus.answer(at, reply, says_of(reply).edge, Verdict::Newest);
        answer.is_some_and(|(status, _)| status == AckStatus::SendAll) && obus.may_ask(at, OBU)
    }

    fn hear_goodbye(obus: &mut Obus, reply: &HeartbeatReply) -> bool {
        obus.hear_goodbye(NOW, reply, says_of(reply))
    }

    fn says_of(reply: &HeartbeatReply) -> Says {
        Said(reply.order.boot.0, reply.epoch, reply.order.seq.0, reply.standby).says()
    }

    fn reply(Said(boot, epoch, seq, standby): Said, digest: u32) -> HeartbeatReply {
        HeartbeatReply {
            rsu: RSU,
            origin: OBU,
            order: Order::new(boot, seq),
            epoch,
            via: RSU,
            digest,
            clients: 0,
            within_ds: 13,
            answers: Seq(0),
            held_100us: 0,
            mtu: 1500,
            hops: 0,
            goodbye: false,
            standby,
            acknowledge: false,
        }
    }

    fn come(set: &[Client]) -> Claim {
        let set = Some(set.to_vec());
        Claim::Accepted(Accepted {
            is_attached: true,
            has_left: false,
            is_new: true,
            has_come: true,
            set,
        })
    }

    fn waiting(set: &[Client]) -> Claim {
        Claim::Accepted(Accepted { set: Some(set.to_vec()), ..Accepted::default() })
    }

    fn accepted(claim: Claim) -> Accepted {
        match claim {
            Claim::Accepted(accepted) => accepted,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_said_with_a_lower_epoch_is_told_the_higher() {
        let mut obus = Obus::default();
        assert_eq!(claim(&mut obus, Said(1, 5, 1, false), &[client(1)]), come(&[client(1)]));
        assert_eq!(claim(&mut obus, Said(1, 4, 2, false), &[client(2)]), Claim::Stale(5));
        let now = accepted(claim(&mut obus, Said(1, 6, 3, false), &[client(2)]));
        assert_eq!((now.is_new, now.set), (true, Some(vec![client(2)])));
    }

    #[test]
    fn a_restarted_obu_is_accepted_when_it_repeats_itself_and_what_it_said_before_no_more() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(9, 500, 1, false), &[client(1)]);
        for boot in [10, 3] {
            let again = |obus: &mut Obus, ms, seq| {
                claim_at(ms, obus, Said(boot, 1, seq, false), &[client(1)])
            };
            assert_eq!(again(&mut obus, 1000, 1), Claim::Unproven, "{boot}");
            assert_eq!(again(&mut obus, 1049, 2), Claim::Unproven, "{boot}");
            assert_eq!(again(&mut obus, 1050, 2), Claim::Unproven, "{boot}: a copy");
            assert!(accepted(again(&mut obus, 1050, 3)).is_new, "{boot}");
            assert_eq!(again(&mut obus, 1051, 2), accepted_copy(), "{boot}");
            let late = claim_at(1051, &mut obus, Said(9, 500, 2, false), &[client(1)]);
            assert_eq!(late, Claim::Unproven, "{boot}");
        }
    }

    fn accepted_copy() -> Claim {
        Claim::Accepted(Accepted { is_attached: true, ..Accepted::default() })
    }

    #[test]
    fn a_jump_is_not_believed_while_the_count_that_is_known_goes_on() {
        for jump in [Said(u32::MAX, 9, 9, false), Said(1, u32::MAX, 9, false)] {
            let mut obus = Obus::default();
            claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
            for n in 0..50 {
                let Said(boot, epoch, seq, standby) = jump;
                let forged = Said(boot, epoch, seq + n, standby);
                let heard = claim_at(u64::from(n) * 100, &mut obus, forged, &[client(2)]);
                assert_eq!(heard, Claim::Unproven, "{n}");
                let ours = reply(Said(1, 5, 2 + n, false), client_digest(&[client(1)]));
                hear_reply_at(NOW + Duration::from_millis(u64::from(n) * 100), &mut obus, &ours);
            }
            assert_eq!(obus.claimant(client(1)), Some(OBU));
            assert_eq!(obus.claimant(client(2)), None);
            assert!(obus.take_duel(OBU) && !obus.take_duel(OBU), "and reported, once");
        }
    }

    #[test]
    fn the_obu_itself_is_told_when_others_spoke_for_it_and_wins_with_its_next_word() {
        let forged = [
            Said(1, 5, 1000, false), // a step of the sequence, and another set
            Said(1, 40, 3, false),   // a step of the epoch
            Said(1, 5, 900, true),   // on standby
        ];
        for forged in forged {
            let mut obus = Obus::default();
            claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
            claim(&mut obus, forged, &[client(2)]);
            let ours = reply(Said(1, 5, 2, false), client_digest(&[client(1)]));
            assert_eq!(hear_reply(&mut obus, &ours), None);
            assert!(must_ask(NOW, &mut obus, &ours), "{forged:?}");
            let Claim::Stale(epoch) = claim(&mut obus, Said(1, 5, 3, false), &[client(1)]) else {
                panic!("{forged:?}");
            };
            let last = claim(&mut obus, Said(1, epoch + 1, 4, false), &[client(1)]);
            assert_eq!(accepted(last).set, Some(vec![client(1)]), "{forged:?}");
        }
    }

    #[test]
    fn once_a_false_count_was_believed_the_true_one_wins_when_the_false_one_stops() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        for (ms, seq) in [(0, u32::MAX - 1), (300, u32::MAX)] {
            claim_at(ms, &mut obus, Said(u32::MAX, u32::MAX, seq, false), &[client(2)]);
        }
        assert_eq!(obus.claimant(client(2)), Some(OBU));
        assert!(must_ask(
            NOW,
            &mut obus,
            &reply(Said(1, 5, 2, false), client_digest(&[client(1)]))
        ));
        for (ms, seq) in [(400, 3), (420, 4), (449, 5)] {
            let heard = claim_at(ms, &mut obus, Said(1, 5, seq, false), &[client(1)]);
            assert_eq!(heard, Claim::Unproven);
        }
        assert!(accepted(claim_at(450, &mut obus, Said(1, 5, 6, false), &[client(1)])).is_new);
        assert_eq!((obus.claimant(client(1)), obus.claimant(client(2))), (Some(OBU), None));
    }

    #[test]
    fn a_restart_is_no_duel() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        let mut is_believed = false;
        for n in 0..20 {
            let again = Said(100, 1, n, false);
            let heard = claim_at(u64::from(n) * 100, &mut obus, again, &[client(1)]);
            is_believed |= matches!(heard, Claim::Accepted(_));
            assert!(!obus.take_duel(OBU), "{n}");
        }
        assert!(is_believed);
    }

    #[test]
    fn two_obus_with_one_id_are_noticed() {
        let mut obus = Obus::default();
        for n in 0..20 {
            let boot = 7 + 100 * (n / 4 % 2);
            claim_at(u64::from(n) * 100, &mut obus, Said(boot, 1, n, false), &[client(boot as u8)]);
        }
        assert!(obus.take_duel(OBU));
    }

    #[test]
    fn parts_may_come_in_any_order_and_twice() {
        let mut obus = Obus::default();
        let (a, b) = (vec![client(1)], vec![client(2)]);
        let digest = client_digest(&[client(1), client(2)]);
        let part = |obus: &mut Obus, seq, n, clients: &[Client]| {
            accepted(claim_part(obus, (OBU, Said(1, 1, seq, false)), (n, 2), digest, clients))
        };
        assert_eq!(part(&mut obus, 2, 1, &b).set, None);
        assert_eq!(part(&mut obus, 2, 1, &b).set, None);
        assert!(must_ask(NOW, &mut obus, &reply(Said(1, 1, 3, false), digest)));
        let whole = part(&mut obus, 1, 0, &a);
        assert_eq!((whole.has_come, whole.set), (true, Some(vec![client(1), client(2)])));
        assert!(!must_ask(NOW, &mut obus, &reply(Said(1, 1, 3, false), digest)));
    }

    #[test]
    fn a_set_that_differs_is_asked_for_but_not_all_the_time() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 1, 1, false), &[client(1)]);
        let other = reply(Said(1, 1, 2, false), client_digest(&[client(2)]));
        assert!(must_ask(Timestamp::from_millis(1), &mut obus, &other));
        assert!(!must_ask(Timestamp::from_millis(50), &mut obus, &other));
        assert!(must_ask(Timestamp::from_millis(101), &mut obus, &other));
    }

    #[test]
    fn on_standby_the_set_is_kept_and_the_obu_is_not_attached() {
        let mut obus = Obus::default();
        let set = [client(1), client(2)];
        assert_eq!(claim(&mut obus, Said(1, 5, 1, true), &set), waiting(&set));
        assert_eq!((obus.attached(), obus.is_here(OBU)), (0, true));
        let same = reply(Said(1, 5, 2, true), client_digest(&set));
        assert!(!must_ask(NOW, &mut obus, &same));
        assert!(!obus.vouches(NOW, OBU, client_digest(&set)));
        let other = HeartbeatReply { digest: 7, ..same };
        assert!(!must_ask(NOW, &mut obus, &other), "it announces itself, if it is to be known");
    }

    #[test]
    fn who_was_on_standby_comes_with_all_clients_at_its_first_word() {
        let mut obus = Obus::default();
        let set = [client(1), client(2)];
        let digest = client_digest(&set);
        for (part, clients) in (0..).zip([&set[..1], &set[1..]]) {
            claim_part(&mut obus, (OBU, Said(1, 5, 1, true)), (part, 2), digest, clients);
        }
        // Of the two parts one arrives.
        let says = (OBU, Said(1, 6, 3, false));
        assert_eq!(claim_part(&mut obus, says, (1, 2), digest, &set[1..]), come(&set));
        assert_eq!(obus.attached(), 1);
    }

    #[test]
    fn a_reply_alone_makes_an_obu_on_standby_attached_when_its_set_is_the_one_we_hold() {
        let mut obus = Obus::default();
        let set = [client(1)];
        claim(&mut obus, Said(1, 5, 1, true), &set);
        assert_eq!(hear_reply(&mut obus, &reply(Said(1, 6, 3, false), 7)), None);
        let now = hear_reply(&mut obus, &reply(Said(1, 6, 4, false), client_digest(&set)));
        assert_eq!(now.map(Claim::Accepted), Some(come(&set)));
        // The standby it sent before comes late.
        let late = hear_reply(&mut obus, &reply(Said(1, 5, 2, true), client_digest(&set)));
        assert_eq!((late, obus.attached()), (None, 1));
    }

    #[test]
    fn standby_with_a_higher_epoch_means_that_the_obu_has_left() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        let left = accepted(claim(&mut obus, Said(1, 6, 2, true), &[client(1)]));
        assert!(left.has_left && !left.is_attached);
        let late = accepted(claim(&mut obus, Said(1, 6, 1, true), &[client(1)]));
        assert_eq!((late.has_left, late.is_new), (false, false));
    }

    #[test]
    fn a_claim_from_before_the_goodbye_is_not_new() {
        let mut obus = Obus::default();
        claim(&mut obus, Said(1, 5, 1, false), &[client(1)]);
        let goodbye = HeartbeatReply { goodbye: true, ..reply(Said(1, 5, 9, false), 0) };
        assert!(hear_goodbye(&mut obus, &goodbye));
        assert!(!hear_goodbye(&mut obus, &goodbye), "said three times");
        // Late, or somebody else said the goodbye: then the OBU answers with a higher epoch.
        assert_eq!(claim(&mut obus, Said(1, 5, 8, false), &[client(1)]), Claim::Stale(5));
        let back = accepted(claim(&mut obus, Said(1, 5, 10, false), &[client(1)]));
        assert!(back.is_attached && back.is_new && back.has_come);
    }

    #[test]
    fn those_on_standby_make_room_and_those_attached_do_not() {
        let mut obus = Obus::default();
        let id = |n: usize| NodeId([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
        let say = |obus: &mut Obus, n: usize, standby| {
            claim_part(obus, (id(n), Said(1, 1, 1, standby)), (0, 1), 0, &[])
        };
        for n in 0..OBUS_MAX {
            say(&mut obus, n, n % 2 == 0);
        }
        for n in OBUS_MAX..3 * OBUS_MAX {
            say(&mut obus, n, false);
        }
        assert_eq!((obus.by_id.len(), obus.attached()), (OBUS_MAX, OBUS_MAX));
        assert_eq!(obus.take_evicted(), OBUS_MAX as u64 / 2);
        assert!((1..OBUS_MAX).step_by(2).all(|n| obus.knows(id(n))));
        assert_eq!(say(&mut obus, 9999, true), Claim::Refused);
        assert!(!obus.knows(id(9999)));
        let stranger = HeartbeatReply { origin: id(9999), ..reply(Said(1, 1, 2, false), 0) };
        assert!(!must_ask(NOW, &mut obus, &stranger), "or it would be asked for ever");
        obus.lose(NOW, id(1));
        assert!(must_ask(NOW, &mut obus, &stranger), "now there is room");
    }

    #[test]
    fn of_those_who_announce_a_client_the_first_has_the_claim() {
        let mut obus = Obus::default();
        let id = |n| NodeId([2, 0, 0, 0, 2, n]);
        let say = |obus: &mut Obus, ms, n, seq, set: &[Client]| {
            let at = NOW + Duration::from_millis(ms);
            let (says, digest) = ((id(n), Said(1, seq, seq, false)), client_digest(set));
            claim_part_at(at, obus, says, (0, 1), digest, set)
        };
        let (one, two) = (client(1), client(2));
        say(&mut obus, 0, 7, 1, &[one]);
        say(&mut obus, 1, 3, 1, &[one, two]);
        assert_eq!(obus.claimant(one), Some(id(7)));
        say(&mut obus, 2, 7, 2, &[one, two]);
        assert_eq!((obus.claimant(one), obus.claimant(two)), (Some(id(7)), Some(id(3))));
        say(&mut obus, 3, 7, 3, &[two]);
        assert_eq!(obus.claimant(one), Some(id(3)), "not announced any more");
        obus.forget(id(3));
        assert_eq!((obus.claimant(one), obus.claimant(two)), (None, Some(id(7))));
        obus.forget(id(7));
        assert!(obus.claims.is_empty());
    }

    #[test]
    fn who_claims_a_client_is_found_without_looking_at_the_sets_of_others() {
        let mut obus = Obus::default();
        for n in 0..1000_u16 {
            let [high, low] = n.to_be_bytes();
            let id = NodeId([2, 0, 0, 1, high, low]);
            let set = [Client { vlan: n, mac: Mac([2, 0, 0, 0, 0, 1]) }];
            claim_part(&mut obus, (id, Said(1, 1, 1, false)), (0, 1), client_digest(&set), &set);
        }
        let asked = Client { vlan: 500, mac: Mac([2, 0, 0, 0, 0, 1]) };
        assert!(obus.claimant(asked).is_some());
        assert_eq!(obus.claims_of(asked).count(), 1, "claims looked at");
    }

    #[test]
    fn what_has_no_room_is_not_kept_and_not_asked_for_again() {
        let mut obus = Obus::default();
        let set: Vec<_> = (0..230).map(client).collect();
        for n in 0..200 {
            let id = NodeId([2, 0, 0, 0, 2, n]);
            for part in 0..8 {
                let says = (id, Said(1, 1, u32::from(part), false));
                claim_part(&mut obus, says, (part, 8), 7, &set);
            }
        }
        assert!(obus.claims.len() <= CLAIMS_MAX, "{}", obus.claims.len());
        let last = NodeId([2, 0, 0, 0, 2, 199]);
        let reply = HeartbeatReply { origin: last, ..reply(Said(1, 1, 9, false), 7) };
        assert!(!must_ask(NOW, &mut obus, &reply));
    }

    #[test]
    fn a_set_without_end_is_not_kept() {
        let mut obus = Obus::default();
        let set: Vec<_> = (0..230).map(client).collect();
        for part in 0..255 {
            claim_part(&mut obus, (OBU, Said(1, 1, 1, true)), (part, 255), 7, &set);
        }
        let kept: usize = obus.by_id.get(&OBU).unwrap().parts.iter().flatten().map(Vec::len).sum();
        assert!(kept <= SET_MAX, "{kept}");
    }

    #[test]
    fn goodbyes_of_strangers_are_remembered_as_far_as_there_is_room() {
        let mut obus = Obus::default();
        for n in 0..OBUS_MAX as u32 + 9 {
            let [_, b, c, d] = n.to_be_bytes();
            let origin = NodeId([2, 0, 1, b, c, d]);
            hear_goodbye(&mut obus, &HeartbeatReply { origin, ..reply(Said(1, 1, 1, false), 0) });
        }
        assert_eq!(obus.by_id.len(), OBUS_MAX);
    }

    #[test]
    fn who_left_begins_a_higher_count_at_once_and_a_lower_one_when_the_old_is_forgotten() {
        let left = |boot| {
            let mut obus = Obus::default();
            claim(&mut obus, Said(boot, 5, 1, false), &[client(1)]);
            let goodbye = HeartbeatReply { goodbye: true, ..reply(Said(boot, 5, 2, false), 0) };
            assert!(hear_goodbye(&mut obus, &goodbye));
            obus
        };
        let comes = |obus: &mut Obus, at, boot| {
            let set = [client(1)];
            let says = (OBU, Said(boot, 1, 1, false));
            let claim = claim_part_at(at, obus, says, (0, 1), client_digest(&set), &set);
            matches!(claim, Claim::Accepted(Accepted { is_attached: true, .. }))
        };
        assert!(comes(&mut left(500), NOW, 900));
        assert!(!comes(&mut left(500), NOW, 100), "a late word of an earlier life");
        let long_after = NOW + REMEMBERED_FOR * 2;
        assert!(comes(&mut left(500), long_after, 100), "its clock was set back");
    }
}
