//! Which MAC is behind which node: a bridge's forwarding table, VLAN-aware, bounded and aged.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use foldhash::fast::FixedState;

use crate::mac::Mac;
use crate::messages::control::announcement::Client;
use crate::time::Timestamp;

/// What is known of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<Owner> {
    owner: Owner,
    /// Heard, claimed or vouched for: what ages are judged by (to within [`TOUCH_EVERY`]).
    used: Timestamp,
    /// A frame of the client itself came from the owner.
    heard: Option<Timestamp>,
    /// When the owner got it.
    since: Timestamp,
    moves: Moves,
}

/// Moves of one client between owners, in a window that starts with the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Moves {
    count: u8,
    first: Timestamp,
    is_held: bool,
}

/// An entry in use is only marked as such again after this long: marking costs a tree update, and
/// ages are judged in minutes.
const TOUCH_EVERY: Duration = Duration::from_secs(1);

/// A client whose frames come from another owner more often than this …
const MOVES_MAX: u8 = 5;

/// … within this time is held where it is for the rest of it: two switches are looped, or two machines
/// have one address (the limits of batman-adv, `BATADV_ROAMING_MAX_COUNT` and `_TIME` in `main.h`).
const MOVES_WITHIN: Duration = Duration::from_secs(20);

/// Clients by VLAN and MAC, with the owner (a port, a node) each was last heard behind.
///
/// When full, the owner with the most entries loses the one unused for longest: a single noisy
/// owner cannot push the others out (the rule of Open vSwitch, `lib/mac-learning.h`).
#[derive(Clone, Debug)]
pub struct ClientCache<Owner> {
    entries: HashMap<Client, Entry<Owner>, FixedState>,
    by_owner: BTreeMap<Owner, BTreeSet<(Timestamp, Client)>>,
    entries_max: usize,
    age_max: Duration,
}

/// What [`ClientCache::learn`] changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt<Owner> {
    /// The client was known there.
    Known,
    /// The client was known there, and is noted again after a while.
    Renewed,
    /// The client was not known.
    New,
    /// The client was behind another owner before.
    Moved(Owner),
    /// The client moves too often and is held where it is.
    Held {
        /// Since just now.
        first: bool,
    },
}

impl<Owner: Copy + Ord> ClientCache<Owner> {
    /// An empty cache for at most `entries_max` clients, each forgotten after `age_max` unused.
    /// `seed` keeps strangers from choosing colliding MACs.
    pub fn new(entries_max: usize, age_max: Duration, seed: u64) -> Self {
        Self {
            entries: HashMap::with_hasher(FixedState::with_seed(seed)),
            by_owner: BTreeMap::new(),
            entries_max: entries_max.max(1),
            age_max,
        }
    }

    /// A frame from `client` came from `owner`. Also returns how many entries were evicted for it.
    #[inline]
    pub fn learn(&mut self, now: Timestamp, client: Client, owner: Owner) -> (Learnt<Owner>, u64) {
        self.learn_settled(now, client, owner, Duration::ZERO)
    }

    /// As [`ClientCache::learn`]; but a client that came to another owner less than `settled_for` ago
    /// stays there: the frame was under way meanwhile.
    #[inline]
    pub fn learn_settled(
        &mut self,
        now: Timestamp,
        client: Client,
        owner: Owner,
        settled_for: Duration,
    ) -> (Learnt<Owner>, u64) {
        // Nearly every frame ends here; the rest is kept out of its way.
        let is_known = self.entries.get(&client).is_some_and(|entry| {
            entry.owner == owner && entry.heard.is_some_and(|at| now.since(at) < TOUCH_EVERY)
        });
        if is_known { (Learnt::Known, 0) } else { self.note(now, client, owner, settled_for) }
    }

    #[cold]
    fn note(
        &mut self,
        now: Timestamp,
        client: Client,
        owner: Owner,
        settled_for: Duration,
    ) -> (Learnt<Owner>, u64) {
        let Some(entry) = self.entries.get_mut(&client) else {
            let evicted = self.insert(now, client, owner, Some(now));
            return (Learnt::New, evicted);
        };
        if entry.owner == owner {
            entry.heard = Some(now);
            self.touch(now, client);
            return (Learnt::Renewed, 0);
        }
        if now.since(entry.since) < settled_for {
            return (Learnt::Known, 0);
        }
        if let Err(first) = entry.moves.note(now) {
            return (Learnt::Held { first }, 0);
        }
        entry.heard = Some(now);
        (self.reassign(now, client, owner), 0)
    }

    /// `owner` says that `client`, which may never speak, is behind it, and the caller believes it:
    /// this is never held back. Also returns how many entries were evicted for it.
    pub fn claim(&mut self, now: Timestamp, client: Client, owner: Owner) -> (Learnt<Owner>, u64) {
        match self.entries.get_mut(&client) {
            None => (Learnt::New, self.insert(now, client, owner, None)),
            Some(entry) if entry.owner == owner => {
                self.touch(now, client);
                (Learnt::Known, 0)
            }
            Some(entry) => {
                entry.heard = None;
                (self.reassign(now, client, owner), 0)
            }
        }
    }

    fn insert(
        &mut self,
        now: Timestamp,
        client: Client,
        owner: Owner,
        heard: Option<Timestamp>,
    ) -> u64 {
        let evicted = if self.entries.len() >= self.entries_max { self.evict() } else { 0 };
        let entry = Entry { owner, used: now, heard, since: now, moves: Moves::default() };
        self.entries.insert(client, entry);
        self.by_owner.entry(owner).or_default().insert((now, client));
        evicted
    }

    fn reassign(&mut self, now: Timestamp, client: Client, owner: Owner) -> Learnt<Owner> {
        let Some(entry) = self.entries.get_mut(&client) else { return Learnt::New };
        let before = *entry;
        (entry.owner, entry.used, entry.since) = (owner, now, now);
        unlist(&mut self.by_owner, before.owner, before.used, client);
        self.by_owner.entry(owner).or_default().insert((now, client));
        Learnt::Moved(before.owner)
    }

    fn touch(&mut self, now: Timestamp, client: Client) {
        let Some(entry) = self.entries.get_mut(&client) else { return };
        let (owner, used) = (entry.owner, entry.used);
        if now.since(used) < TOUCH_EVERY {
            return;
        }
        entry.used = now;
        if let Some(listed) = self.by_owner.get_mut(&owner) {
            listed.remove(&(used, client));
            listed.insert((now, client));
        }
    }

    /// Behind which owner the client is.
    #[inline]
    pub fn owner(&self, now: Timestamp, client: Client) -> Option<Owner> {
        let entry = self.entries.get(&client)?;
        (now.since(entry.used) < self.age_max).then_some(entry.owner)
    }

    /// When a frame from the client was last noted where it is now (to within a second); `None` if it
    /// never spoke there.
    #[inline]
    pub fn last_heard(&self, client: Client) -> Option<Timestamp> {
        self.entries.get(&client)?.heard
    }

    /// Forgets one client.
    pub fn forget(&mut self, client: Client) -> bool {
        let Some(entry) = self.entries.remove(&client) else { return false };
        unlist(&mut self.by_owner, entry.owner, entry.used, client);
        true
    }

    /// Forgets every client of `owner`.
    pub fn forget_owner(&mut self, owner: Owner) {
        for (_, client) in self.by_owner.remove(&owner).unwrap_or_default() {
            self.entries.remove(&client);
        }
    }

    /// Marks every client of `owner` as heard now: it vouches for all of them.
    pub fn touch_owner(&mut self, now: Timestamp, owner: Owner) {
        let Some(listed) = self.by_owner.get_mut(&owner) else { return };
        *listed = std::mem::take(listed).into_iter().map(|(_, client)| (now, client)).collect();
        for (_, client) in listed.iter() {
            if let Some(entry) = self.entries.get_mut(client) {
                entry.used = now;
            }
        }
    }

    /// Forgets what is too old. Returns how many were.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let before = self.entries.len();
        let mut empty = Vec::new();
        for (owner, listed) in &mut self.by_owner {
            while let Some((used, client)) = listed.first().copied() {
                if now.since(used) < self.age_max {
                    break;
                }
                listed.pop_first();
                self.entries.remove(&client);
            }
            if listed.is_empty() {
                empty.push(*owner);
            }
        }
        for owner in empty {
            self.by_owner.remove(&owner);
        }
        before - self.entries.len()
    }

    /// Whether anybody is behind `owner`.
    pub fn has_clients(&self, owner: Owner) -> bool {
        self.by_owner.contains_key(&owner)
    }

    /// The clients of `owner`, in the order an announcement lists them.
    pub fn clients_of(&self, owner: Owner) -> Vec<Client> {
        let listed = self.by_owner.get(&owner).into_iter().flatten();
        let mut clients: Vec<_> = listed.map(|(_, client)| *client).collect();
        clients.sort_unstable();
        clients
    }

    /// Clients known, the aged ones not yet expired included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No client known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn evict(&mut self) -> u64 {
        let noisiest = self.by_owner.iter().max_by_key(|(_, l)| l.len()).map(|(owner, _)| *owner);
        let Some(owner) = noisiest else { return 0 };
        let Some((used, client)) = self.by_owner.get(&owner).and_then(|l| l.first()).copied()
        else {
            return 0;
        };
        unlist(&mut self.by_owner, owner, used, client);
        self.entries.remove(&client);
        1
    }
}

impl Moves {
    /// The client moves. An error when it does so too often, with whether that is noticed only now.
    fn note(&mut self, now: Timestamp) -> Result<(), bool> {
        if self.count == 0 || now.since(self.first) >= MOVES_WITHIN {
            *self = Self { count: 0, first: now, is_held: false };
        }
        if self.count >= MOVES_MAX {
            return Err(!std::mem::replace(&mut self.is_held, true));
        }
        self.count += 1;
        Ok(())
    }
}

/// A client as the cache knows it.
#[inline]
pub fn client(vlan: u16, mac: Mac) -> Client {
    Client { vlan, mac }
}

fn unlist<Owner: Ord>(
    by_owner: &mut BTreeMap<Owner, BTreeSet<(Timestamp, Client)>>,
    owner: Owner,
    used: Timestamp,
    client: Client,
) {
    if let Some(listed) = by_owner.get_mut(&owner) {
        listed.remove(&(used, client));
        if listed.is_empty() {
            by_owner.remove(&owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn cache(entries_max: usize) -> ClientCache<char> {
        ClientCache::new(entries_max, MINUTE, 1)
    }

    fn mac(n: u32) -> Client {
        let [a, b, c, d] = n.to_be_bytes();
        client(0, Mac([2, 0, a, b, c, d]))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_client_is_where_it_was_last_heard() {
        let mut cache = cache(10);
        assert_eq!(cache.learn(at(0), mac(1), 'a'), (Learnt::New, 0));
        assert_eq!(cache.learn(at(0), mac(1), 'a'), (Learnt::Known, 0));
        assert_eq!(cache.learn(at(0), mac(1), 'b'), (Learnt::Moved('a'), 0));
        assert_eq!(cache.owner(at(0), mac(1)), Some('b'));
        assert_eq!(cache.clients_of('a'), []);
    }

    #[test]
    fn the_same_mac_in_two_vlans_is_two_clients() {
        let mut cache = cache(10);
        let (untagged, tagged) = (client(0, Mac([2; 6])), client(7, Mac([2; 6])));
        cache.learn(at(0), untagged, 'a');
        cache.learn(at(0), tagged, 'b');
        assert_eq!(cache.owner(at(0), untagged), Some('a'));
        assert_eq!(cache.owner(at(0), tagged), Some('b'));
    }

    #[test]
    fn what_is_not_heard_ages_out() {
        let mut cache = cache(10);
        cache.learn(at(0), mac(1), 'a');
        cache.learn(at(30), mac(2), 'a');
        assert_eq!(cache.owner(at(60), mac(1)), None, "too old even before it is removed");
        assert_eq!(cache.expire(at(60)), 1);
        assert_eq!(cache.clients_of('a'), [mac(2)]);
        cache.touch_owner(at(80), 'a');
        assert_eq!(cache.expire(at(100)), 0, "its owner vouched for it");
    }

    #[test]
    fn a_million_clients_of_one_owner_do_not_push_out_the_others() {
        let mut cache = cache(1000);
        for n in 0..100 {
            cache.learn(at(0), mac(n), 'a');
        }
        for n in 1000..1_001_000 {
            cache.learn(at(1), mac(n), 'b');
        }
        assert_eq!(cache.len(), 1000);
        assert_eq!(cache.clients_of('a').len(), 100);
        assert_eq!(cache.owner(at(1), mac(1_000_999)), Some('b'), "the newest is kept");
    }

    #[test]
    fn a_client_that_moves_more_than_five_times_in_twenty_seconds_is_held() {
        let mut cache = cache(10);
        cache.learn(at(0), mac(1), 'a');
        for (second, owner) in (1..).zip(['b', 'a', 'b', 'a', 'b']) {
            assert!(matches!(cache.learn(at(second), mac(1), owner).0, Learnt::Moved(_)));
        }
        assert_eq!(cache.learn(at(6), mac(1), 'a').0, Learnt::Held { first: true });
        assert_eq!(cache.learn(at(7), mac(1), 'a').0, Learnt::Held { first: false });
        assert_eq!(cache.owner(at(20), mac(1)), Some('b'));
        // The window began with the first move, in second 1.
        assert_eq!(cache.learn(at(20), mac(1), 'a').0, Learnt::Held { first: false });
        assert_eq!(cache.learn(at(21), mac(1), 'a').0, Learnt::Moved('b'));
    }

    #[test]
    fn a_frame_that_was_under_way_does_not_take_a_client_back() {
        let mut cache = cache(10);
        let grace = Duration::from_secs(3);
        cache.claim(at(10), mac(1), 'a');
        assert_eq!(cache.learn_settled(at(12), mac(1), 'b', grace).0, Learnt::Known);
        assert_eq!(cache.owner(at(12), mac(1)), Some('a'));
        assert_eq!(cache.learn_settled(at(13), mac(1), 'b', grace).0, Learnt::Moved('a'));
    }

    #[test]
    fn a_claim_is_never_held_back_and_is_not_hearing() {
        let mut cache = cache(10);
        for turn in 0..20 {
            let owner = if turn % 2 == 0 { 'a' } else { 'b' };
            assert_ne!(cache.claim(at(turn), mac(1), owner).0, Learnt::Known);
        }
        assert_eq!(cache.last_heard(mac(1)), None);
        cache.learn(at(30), mac(1), 'b');
        assert_eq!(cache.last_heard(mac(1)), Some(at(30)));
        assert_eq!(cache.claim(at(31), mac(1), 'b').0, Learnt::Known);
        assert_eq!(cache.last_heard(mac(1)), Some(at(30)));
        cache.claim(at(32), mac(1), 'a');
        assert_eq!(cache.last_heard(mac(1)), None, "it has not spoken there");
    }

    #[test]
    fn an_owner_can_be_forgotten_at_once() {
        let mut cache = cache(10);
        cache.learn(at(0), mac(1), 'a');
        cache.learn(at(0), mac(2), 'b');
        cache.forget_owner('a');
        assert_eq!(cache.len(), 1);
        assert!(cache.forget(mac(2)) && !cache.forget(mac(2)));
        assert!(cache.is_empty());
    }
}
