//! Which OBUs are attached or may come, and whether we know their clients.

use std::cmp::Reverse;
use std::time::Duration;

use node_lib::control::table::Table;
use node_lib::messages::control::announcement::{Announcement, Client, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::{Boot, NodeId, Seq, Timestamp};

/// OBUs remembered, attached or not: twice the vehicles of the densest traffic jam in radio range.
const OBUS_MAX: usize = 1024;

/// A missing client set is asked for at most this often.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Clients kept of one OBU; what a set has beyond is not kept, and the set never complete. A vehicle
/// announces 512 at most.
const SET_MAX: usize = 2048;

/// What an OBU that left has said is remembered for so long, so that a late copy of it is known as such:
/// no frame is under way for longer.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// How an OBU stands to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It was here.
    Gone,
    /// It is attached elsewhere and may come.
    Standby,
    /// Its clients are behind us.
    Attached,
}

/// What an OBU said, in the order in which it counts: a restart is newer than all before it, then the
/// highest epoch owns, and of what it says within one the last word.
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
    /// The last word that decided the standing.
    word: Word,
    /// When it was last heard.
    heard: Timestamp,
    /// Digest of the set its announcement names; the set is complete when all parts are there.
    digest: u32,
    parts: Vec<Option<Vec<Client>>>,
    /// Its arrival has been reported.
    is_reported: bool,
    asked_at: Option<Timestamp>,
    round_trip_us: Option<u32>,
}

/// What an announcement or reply means to us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The OBU was known with a higher epoch: it must use one above this.
    Stale(u32),
    /// The OBU has named another set since, with the same epoch.
    Overtaken,
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
    /// It has restarted: its epochs began anew, and another may have a better claim now.
    pub(crate) has_restarted: bool,
    /// All its clients, if they are known.
    pub(crate) set: Option<Vec<Client>>,
}

/// OBUs by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Obus {
    by_id: Table<NodeId, Registered>,
    evicted: u64,
}

impl Obus {
    /// The OBU has announced itself, in whatever standing.
    #[inline]
    pub(crate) fn knows(&self, obu: NodeId) -> bool {
        self.by_id.contains_key(&obu)
    }

    /// The epoch of the OBU, if it is attached to us.
    pub(crate) fn epoch(&self, obu: NodeId) -> Option<u32> {
        self.by_id.get(&obu).filter(|known| known.is_attached()).map(|known| known.word.epoch)
    }

    /// An OBU announces (a part of) its clients.
    pub(crate) fn claim(&mut self, now: Timestamp, announcement: &Announcement<'_>) -> Claim {
        let Announcement { origin: obu, order, epoch, part, parts, digest, .. } = *announcement;
        let word = Word { boot: order.boot, epoch, seq: order.seq };
        let standing = if announcement.standby { Standing::Standby } else { Standing::Attached };
        let is_unknown = !self.by_id.contains_key(&obu);
        if is_unknown && !self.has_room() {
            // Its clients are reachable, but it will be asked for them again and again.
            let is_attached = standing == Standing::Attached;
            return Claim::Accepted(Accepted { is_attached, is_new: true, ..Accepted::default() });
        }
        let fresh = || Registered::new(now, standing, word, digest, parts);
        let known = self.by_id.get_or_insert_with(obu, fresh);
        if known.bars(now, word) {
            return Claim::Stale(known.word.epoch);
        }
        let has_restarted = word.boot != known.word.boot;
        let is_raised = (word.boot, word.epoch) != (known.word.boot, known.word.epoch);
        let is_last = is_unknown || is_raised || word > known.word;
        let was = if is_unknown { Standing::Gone } else { known.standing };
        if digest != known.digest || known.parts.len() != usize::from(parts) {
            if !is_last {
                return Claim::Overtaken;
            }
            known.digest = digest;
            known.parts = vec![None; usize::from(parts)];
        }
        let is_new_part = known.keep(part, announcement.clients.iter());
        if is_last {
            known.follow(now, standing, word);
        }
        let set = known.complete_set();
        let has_come = known.is_attached() && set.is_some() && !known.is_reported;
        known.is_reported |= has_come;
        Claim::Accepted(Accepted {
            is_attached: known.is_attached(),
            has_left: was == Standing::Attached && !known.is_attached(),
            is_new: known.is_attached() && (is_new_part || is_raised || was != Standing::Attached),
            has_come,
            has_restarted,
            set,
        })
    }

    /// An OBU answers a heartbeat, and says by the way how it stands to us. `None`: nothing changes.
    pub(crate) fn hear_reply(
        &mut self,
        now: Timestamp,
        reply: &HeartbeatReply,
    ) -> Option<Accepted> {
        let known = self.by_id.get_mut(&reply.origin)?;
        let word = Word { boot: reply.order.boot, epoch: reply.epoch, seq: reply.order.seq };
        if known.bars(now, word) || word <= known.word {
            return None;
        }
        known.heard = now;
        let was = known.standing;
        let has_restarted = word.boot != known.word.boot;
        let has_set = known.digest == reply.digest && known.is_complete();
        if reply.standby {
            // It may be that we hold no set of it yet; that it is not here any more is certain.
            known.follow(now, Standing::Standby, word);
        } else if has_set {
            known.follow(now, Standing::Attached, word);
        }
        if known.standing == was {
            return None;
        }
        let set = known.complete_set();
        let has_come = known.is_attached() && !known.is_reported;
        known.is_reported |= has_come;
        Some(Accepted {
            is_attached: known.is_attached(),
            has_left: was == Standing::Attached,
            is_new: known.is_attached(),
            has_come,
            has_restarted,
            set,
        })
    }

    /// The OBU said goodbye. Returns whether it was attached until now.
    pub(crate) fn hear_goodbye(&mut self, now: Timestamp, reply: &HeartbeatReply) -> bool {
        let word = Word { boot: reply.order.boot, epoch: reply.epoch, seq: reply.order.seq };
        let Some(known) = self.by_id.get_mut(&reply.origin) else {
            // What it said before may still come.
            if self.by_id.len() < OBUS_MAX {
                let gone = Registered::new(now, Standing::Gone, word, reply.digest, 1);
                self.by_id.insert(reply.origin, gone);
            }
            return false;
        };
        if known.bars(now, word) || word <= known.word {
            return false;
        }
        let was_attached = known.is_attached();
        known.follow(now, Standing::Gone, word);
        was_attached
    }

    /// The OBU fell silent, or all its clients appeared elsewhere. Returns whether it was attached
    /// until now.
    pub(crate) fn lose(&mut self, now: Timestamp, obu: NodeId) -> bool {
        let Some(known) = self.by_id.get_mut(&obu) else { return false };
        let was_attached = known.is_attached();
        known.follow(now, Standing::Gone, known.word);
        was_attached
    }

    /// Whether the set we hold of `obu` is not the one its reply names, so that it must be asked
    /// for now.
    pub(crate) fn must_ask(&mut self, now: Timestamp, reply: &HeartbeatReply) -> bool {
        let Some(known) = self.by_id.get_mut(&reply.origin) else {
            // Nothing is kept for an OBU that has not announced itself: it may be a forgery.
            return true;
        };
        let standing = if reply.standby { Standing::Standby } else { Standing::Attached };
        let matches = known.standing == standing
            && known.word.epoch == reply.epoch
            && known.digest == reply.digest
            && known.is_complete();
        let asked_lately = known.asked_at.is_some_and(|at| now.since(at) < ASK_EVERY);
        if matches || asked_lately {
            return false;
        }
        known.asked_at = Some(now);
        true
    }

    /// The OBU is attached, and the set we hold is the one its reply names.
    pub(crate) fn vouches(&self, obu: NodeId, digest: u32) -> bool {
        let vouches = |known: &Registered| {
            known.is_attached() && known.digest == digest && known.is_complete()
        };
        self.by_id.get(&obu).is_some_and(vouches)
    }

    /// Of the attached OBUs that announced this client, the one with the highest epoch.
    pub(crate) fn claimant(&self, client: Client) -> Option<NodeId> {
        let claims = self.by_id.iter().filter(|(_, known)| {
            let mut parts = known.parts.iter().flatten();
            known.is_attached() && parts.any(|part| part.binary_search(&client).is_ok())
        });
        claims.min_by_key(|(obu, known)| rank(known.word.epoch, **obu)).map(|(obu, _)| *obu)
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
        self.by_id.remove(&obu);
    }

    /// OBUs attached.
    pub(crate) fn attached(&self) -> usize {
        self.by_id.values().filter(|known| known.is_attached()).count()
    }

    /// All, in whatever standing, and whether what they said may be forgotten once they are silent.
    pub(crate) fn all(&self, now: Timestamp) -> impl Iterator<Item = (NodeId, Standing, bool)> {
        let is_old = move |known: &Registered| now.since(known.heard) > REMEMBERED_FOR;
        self.by_id.iter().map(move |(obu, known)| (*obu, known.standing, is_old(known)))
    }

    /// OBUs pushed out since this was last asked.
    pub(crate) fn take_evicted(&mut self) -> u64 {
        std::mem::take(&mut self.evicted)
    }

    /// Makes room for one more. Attached OBUs are never pushed out by new ones: silent ones leave after
    /// 5 s. First go those that left, then those on standby, the longest unheard before others.
    fn has_room(&mut self) -> bool {
        if self.by_id.len() < OBUS_MAX {
            return true;
        }
        let least = self.by_id.iter().min_by_key(|(_, known)| (known.standing, known.heard));
        let Some((obu, _)) = least.filter(|(_, known)| !known.is_attached()) else { return false };
        let obu = *obu;
        self.by_id.remove(&obu);
        self.evicted += 1;
        true
    }
}

/// Of two OBUs that announce one client, the one whose rank is smaller has it: the one with the higher
/// epoch, and of equals always the same.
pub(crate) fn rank(epoch: u32, obu: NodeId) -> (Reverse<u32>, NodeId) {
    (Reverse(epoch), obu)
}

impl Registered {
    fn new(now: Timestamp, standing: Standing, word: Word, digest: u32, parts: u8) -> Self {
        Self {
            standing,
            word,
            heard: now,
            digest,
            parts: vec![None; usize::from(parts)],
            is_reported: false,
            asked_at: None,
            round_trip_us: None,
        }
    }

    fn is_attached(&self) -> bool {
        self.standing == Standing::Attached
    }

    /// What the OBU says now was overtaken by what it said before. An OBU whose boot count went
    /// backwards is heard again when what it said is forgotten.
    fn bars(&self, now: Timestamp, word: Word) -> bool {
        (word.boot, word.epoch) < (self.word.boot, self.word.epoch)
            && (word.boot == self.word.boot || now.since(self.heard) <= REMEMBERED_FOR)
    }

    fn follow(&mut self, now: Timestamp, standing: Standing, word: Word) {
        self.is_reported &= standing == Standing::Attached && self.is_attached();
        self.standing = standing;
        self.word = word;
        self.heard = now;
    }

    /// Keeps a part of the set; whether it was not there yet.
    fn keep(&mut self, part: u8, clients: impl Iterator<Item = Client>) -> bool {
        let kept: usize = self.parts.iter().flatten().map(Vec::len).sum();
        let Some(slot @ None) = self.parts.get_mut(usize::from(part)) else { return false };
        let clients: Vec<_> = clients.collect();
        if kept + clients.len() <= SET_MAX {
            *slot = Some(clients);
        }
        true
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

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::messages::control::announcement::Clients;
    use node_lib::{Mac, Order};

    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn client(n: u8) -> Client {
        Client { vlan: 0, mac: Mac([2, 0, 0, 0, 1, n]) }
    }

    /// What an OBU says: boot count, epoch and sequence, and whether it is on standby.
    #[derive(Clone, Copy)]
    struct Says(u32, u32, u32, bool);

    fn claim_part(
        obus: &mut Obus,
        (obu, Says(boot, epoch, seq, standby)): (NodeId, Says),
        (part, parts): (u8, u8),
        digest: u32,
        clients: &[Client],
    ) -> Claim {
        let mut groups = Vec::new();
        Clients::encode(clients, &mut groups);
        let announcement = Announcement {
            rsu: NodeId([2, 0, 0, 0, 0, 9]),
            origin: obu,
            order: Order::new(boot, seq),
            epoch,
            hop_limit: 16,
            hops: 0,
            part,
            parts,
            digest,
            standby,
            clients: Clients::parse(&groups).unwrap(),
        };
        obus.claim(NOW, &announcement)
    }

    fn claim(obus: &mut Obus, says: Says, set: &[Client]) -> Claim {
        claim_part(obus, (OBU, says), (0, 1), client_digest(set), set)
    }

    fn reply(Says(boot, epoch, seq, standby): Says, digest: u32) -> HeartbeatReply {
        HeartbeatReply {
            rsu: NodeId([2, 0, 0, 0, 0, 9]),
            origin: OBU,
            order: Order::new(boot, seq),
            answers: Seq(0),
            hop_limit: 16,
            hops: 0,
            held_100us: 0,
            epoch,
            digest,
            clients: 0,
            goodbye: false,
            standby,
        }
    }

    fn come(set: &[Client]) -> Claim {
        let set = Some(set.to_vec());
        Claim::Accepted(Accepted {
            is_attached: true,
            has_left: false,
            is_new: true,
            has_come: true,
            has_restarted: false,
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
    fn the_highest_epoch_owns_and_a_late_claim_is_told_so() {
        let mut obus = Obus::default();
        assert_eq!(claim(&mut obus, Says(1, 5, 1, false), &[client(1)]), come(&[client(1)]));
        assert_eq!(claim(&mut obus, Says(1, 4, 2, false), &[client(2)]), Claim::Stale(5));
        let now = accepted(claim(&mut obus, Says(1, 6, 3, false), &[client(2)]));
        assert_eq!((now.is_new, now.set), (true, Some(vec![client(2)])));
    }

    #[test]
    fn a_restarted_obu_is_accepted_at_once_and_what_it_said_before_no_more() {
        let mut obus = Obus::default();
        claim(&mut obus, Says(1, 500, 1, false), &[client(1)]);
        assert!(accepted(claim(&mut obus, Says(2, 1, 1, false), &[client(1)])).is_new);
        assert_eq!(claim(&mut obus, Says(2, 0, 0, false), &[client(1)]), Claim::Stale(1));
        assert_eq!(claim(&mut obus, Says(1, 501, 9, false), &[client(1)]), Claim::Stale(1));
    }

    #[test]
    fn parts_may_come_in_any_order_and_twice() {
        let mut obus = Obus::default();
        let (a, b) = (vec![client(1)], vec![client(2)]);
        let digest = client_digest(&[client(1), client(2)]);
        let part = |obus: &mut Obus, seq, n, clients: &[Client]| {
            accepted(claim_part(obus, (OBU, Says(1, 1, seq, false)), (n, 2), digest, clients))
        };
        assert_eq!(part(&mut obus, 2, 1, &b).set, None);
        assert_eq!(part(&mut obus, 2, 1, &b).set, None);
        assert!(obus.must_ask(NOW, &reply(Says(1, 1, 3, false), digest)));
        let whole = part(&mut obus, 1, 0, &a);
        assert_eq!((whole.has_come, whole.set), (true, Some(vec![client(1), client(2)])));
        assert!(!obus.must_ask(NOW, &reply(Says(1, 1, 3, false), digest)));
    }

    #[test]
    fn a_set_that_differs_is_asked_for_but_not_all_the_time() {
        let mut obus = Obus::default();
        claim(&mut obus, Says(1, 1, 1, false), &[client(1)]);
        let other = reply(Says(1, 1, 2, false), client_digest(&[client(2)]));
        assert!(obus.must_ask(Timestamp::from_millis(1), &other));
        assert!(!obus.must_ask(Timestamp::from_millis(50), &other));
        assert!(obus.must_ask(Timestamp::from_millis(101), &other));
    }

    #[test]
    fn on_standby_the_set_is_kept_and_the_obu_is_not_attached() {
        let mut obus = Obus::default();
        let set = [client(1), client(2)];
        assert_eq!(claim(&mut obus, Says(1, 5, 1, true), &set), waiting(&set));
        assert_eq!((obus.attached(), obus.epoch(OBU), obus.knows(OBU)), (0, None, true));
        let same = reply(Says(1, 5, 2, true), client_digest(&set));
        assert!(!obus.must_ask(NOW, &same));
        assert!(!obus.vouches(OBU, client_digest(&set)));
        assert!(obus.must_ask(NOW, &HeartbeatReply { digest: 7, ..same }), "heals a lost set");
    }

    #[test]
    fn who_was_on_standby_comes_with_all_clients_at_its_first_word() {
        let mut obus = Obus::default();
        let set = [client(1), client(2)];
        let digest = client_digest(&set);
        for (part, clients) in (0..).zip([&set[..1], &set[1..]]) {
            claim_part(&mut obus, (OBU, Says(1, 5, 1, true)), (part, 2), digest, clients);
        }
        // Of the two parts one arrives.
        let says = (OBU, Says(1, 6, 3, false));
        assert_eq!(claim_part(&mut obus, says, (1, 2), digest, &set[1..]), come(&set));
        assert_eq!(obus.attached(), 1);
    }

    #[test]
    fn a_reply_alone_makes_an_obu_on_standby_attached_when_its_set_is_the_one_we_hold() {
        let mut obus = Obus::default();
        let set = [client(1)];
        claim(&mut obus, Says(1, 5, 1, true), &set);
        assert_eq!(obus.hear_reply(NOW, &reply(Says(1, 6, 3, false), 7)), None);
        let now = obus.hear_reply(NOW, &reply(Says(1, 6, 3, false), client_digest(&set)));
        assert_eq!(now.map(Claim::Accepted), Some(come(&set)));
        // The standby it sent before comes late.
        let late = obus.hear_reply(NOW, &reply(Says(1, 5, 2, true), client_digest(&set)));
        assert_eq!((late, obus.attached()), (None, 1));
    }

    #[test]
    fn standby_with_a_higher_epoch_means_that_the_obu_has_left() {
        let mut obus = Obus::default();
        claim(&mut obus, Says(1, 5, 1, false), &[client(1)]);
        let left = accepted(claim(&mut obus, Says(1, 6, 2, true), &[client(1)]));
        assert!(left.has_left && !left.is_attached);
        let late = accepted(claim(&mut obus, Says(1, 6, 1, true), &[client(1)]));
        assert_eq!((late.has_left, late.is_new), (false, false));
    }

    #[test]
    fn a_claim_from_before_the_goodbye_is_not_new() {
        let mut obus = Obus::default();
        claim(&mut obus, Says(1, 5, 1, false), &[client(1)]);
        let goodbye = HeartbeatReply { goodbye: true, ..reply(Says(1, 5, 9, false), 0) };
        assert!(obus.hear_goodbye(NOW, &goodbye));
        assert!(!obus.hear_goodbye(NOW, &goodbye), "said three times");
        let late = accepted(claim(&mut obus, Says(1, 5, 8, false), &[client(1)]));
        assert!(!late.is_attached && !late.is_new);
        let back = accepted(claim(&mut obus, Says(1, 5, 10, false), &[client(1)]));
        assert!(back.is_attached && back.is_new && back.has_come);
    }

    #[test]
    fn those_on_standby_make_room_and_those_attached_do_not() {
        let mut obus = Obus::default();
        let id = |n: usize| NodeId([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
        let say = |obus: &mut Obus, n: usize, standby| {
            claim_part(obus, (id(n), Says(1, 1, 1, standby)), (0, 1), 0, &[])
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
        say(&mut obus, 9999, true);
        assert!(!obus.knows(id(9999)));
    }

    #[test]
    fn a_set_without_end_is_not_kept() {
        let mut obus = Obus::default();
        let set: Vec<_> = (0..230).map(client).collect();
        for part in 0..255 {
            claim_part(&mut obus, (OBU, Says(1, 1, 1, true)), (part, 255), 7, &set);
        }
        let kept: usize = obus.by_id.get(&OBU).unwrap().parts.iter().flatten().map(Vec::len).sum();
        assert!(kept <= SET_MAX, "{kept}");
    }
}
