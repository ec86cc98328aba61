//! Which OBUs are attached or may come, and whether we know their clients.
//!
//! Frames can be forged, and nothing in them tells. So what one frame may change is limited:
//!
//! * **A step is believed at once**, if boot count, epoch and sequence go on from what was said
//!   last. What the OBU itself says then is older than what was said for it: it is told, and
//!   answers with a higher epoch, which is news.
//! * **A jump is believed when a second word bears it out** ([`word::WITNESS_AFTER`] later), and
//!   the count known so far says nothing new meanwhile. That holds for a restart too: an OBU
//!   repeats its announcement until it is answered.
//! * **Who is attached and alive is never pushed out** by newcomers. When all places are taken,
//!   those unheard for longest are asked whether they are still there. Who does not answer makes
//!   room; until then newcomers are refused. Else a thousand announcements of made-up OBUs would
//!   shut out real ones for as long as OBUs of so large a crowd may be silent, four minutes.

mod answer;
mod claim;
mod client_set;
mod duel;
pub(crate) mod left;
mod room;
mod scene;
pub(crate) mod tree;
mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_lib::control::at_risk::{AtRisk, BYTES_MAX};
use node_lib::control::positions::Positions;
use node_lib::control::snapshot;
use node_lib::control::table::Table;
use node_lib::messages::WORDS_BELIEVED;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::data::Data;
use node_lib::{Boot, Mac, NodeId, Timestamp};

use super::lan_announce::rarp::Whereabouts;
pub(crate) use answer::Acknowledgement;
pub(crate) use claim::{Accepted, Claim, Farewell};
use duel::Duel;
use left::LeftWays;
use tree::Edge;
pub(crate) use word::{Judged, Says, WordVerdict};
use word::{Rival, Word};

/// What an OBU that left has said is remembered for so long, so that a late copy of it is known as
/// such: no frame is under way for longer.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// An OBU is not taken to be gone before this.
const SILENCE_MIN: Duration = Duration::from_secs(5);

/// Bytes kept of one term of [`AtRisk`] for all attached OBUs, each of which has an equal share.
const KEPT_MAX: usize = 4 << 20;

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
    refreshed_at: Option<Timestamp>,
    /// Questions in a row, for its place, to which it has said nothing.
    knocks: u8,
    round_trip_us: Option<u32>,
    /// Copies of frames it was sent lately.
    kept: AtRisk,
    /// Its upstream is another one since its last word, and what was sent later than this may not
    /// have arrived.
    moved: Option<Timestamp>,
}

/// OBUs by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Obus {
    by_id: Table<NodeId, Registered>,
    /// Who announces a client, and since when: the clients of all sets in `by_id`.
    claims: BTreeMap<(Client, NodeId), Timestamp>,
    attached: usize,
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

    /// What other RSUs are told of a client that is behind this OBU.
    pub(crate) fn whereabouts(&self, obu: NodeId) -> Whereabouts {
        let word = self.by_id.get(&obu).map(|known| known.word);
        let (boot, epoch) = word.map_or((Boot(0), 0), |word| (word.boot, word.epoch));
        Whereabouts { obu, boot, epoch }
    }

    /// The OBU is attached to us.
    pub(crate) fn is_attached(&self, obu: NodeId) -> bool {
        self.by_id.get(&obu).is_some_and(Registered::is_attached)
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

    /// A frame is sent to this OBU. Should it not arrive, it can go another way.
    #[inline]
    pub(crate) fn keep(&mut self, now: Timestamp, obu: NodeId, data: Data<'_>) {
        let most = (KEPT_MAX / self.attached.max(1)).min(BYTES_MAX);
        if let Some(known) = self.by_id.get_mut(&obu) {
            known.kept.keep(now, None, data, most);
        }
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn tidy(&mut self, now: Timestamp) {
        for known in self.by_id.values_mut() {
            known.kept.tidy(now);
        }
    }

    /// Since when what went to this OBU or through it may not have arrived, if it has another
    /// upstream now and there is a way to it. Said once.
    pub(crate) fn take_moved(&mut self, obu: NodeId) -> Option<Timestamp> {
        self.by_id.get(&obu)?.moved?;
        self.way(obu).ok()?;
        self.by_id.get_mut(&obu)?.moved.take()
    }

    /// This OBU and those to whom the way leads through it, as far as they were sent anything.
    pub(crate) fn sent_through(&self, relay: NodeId) -> Vec<NodeId> {
        let sent = self.by_id.iter().filter(|(_, known)| !known.kept.is_empty());
        sent.map(|(obu, _)| *obu).filter(|obu| self.leads_through(*obu, relay)).collect()
    }

    /// Hands over what this OBU was sent since then, to go to this first hop.
    pub(crate) fn reroute(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        since: Timestamp,
        to: Mac,
        send: impl FnMut(Data<'_>),
    ) {
        if let Some(known) = self.by_id.get_mut(&obu) {
            known.kept.reroute(now, since, to, send);
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
    pub(crate) fn view(&self, now: Timestamp, positions: &Positions) -> Vec<snapshot::KnownObu> {
        let known = self.by_id.iter().map(|(id, known)| snapshot::KnownObu {
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
            position: positions.of(now, *id),
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
            refreshed_at: None,
            knocks: 0,
            round_trip_us: None,
            kept: AtRisk::default(),
            moved: None,
        }
    }

    fn is_attached(&self) -> bool {
        self.standing == Standing::Attached
    }

    fn stand(&mut self, standing: Standing) {
        self.has_come &= standing == Standing::Attached && self.is_attached();
        self.standing = standing;
    }

    /// Without a word for so long it is taken to be gone.
    fn lifetime(&self) -> Duration {
        (self.within * WORDS_BELIEVED).max(SILENCE_MIN)
    }

    /// What it says of its upstream still holds.
    fn leads_on(&self) -> bool {
        self.standing != Standing::Gone
    }
}
