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
    /// Heard, claimed or refreshed: what ages are judged by (to within [`TOUCH_EVERY`]).
    used: Timestamp,
    /// A frame of the client itself came from the owner.
    heard: Option<Timestamp>,
    /// When the owner got it.
    since: Timestamp,
    moves: Moves,
    /// The owner before the moves counted in `moves`.
    home: Owner,
    /// It came while half of the table was free, and is not pushed out by those that come later.
    is_kept: bool,
}

/// Clients of one owner, the longest unused first.
#[derive(Clone, Debug, Default)]
struct Listed {
    kept: BTreeSet<(Timestamp, Client)>,
    others: BTreeSet<(Timestamp, Client)>,
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

/// … within this time is held where it was before the first of these moves for the rest of it. Two
/// switches are looped, two machines have one address, or somebody sends in its name (the limits of
/// batman-adv, `BATADV_ROAMING_MAX_COUNT` and `_TIME` in `main.h`).
const MOVES_WITHIN: Duration = Duration::from_secs(20);

/// A table of more entries than this takes all the room it may ever need, in one piece. One that
/// grows by doubling moves each time, keeps the loop waiting meanwhile, and leaves holes in the
/// heap. And it doubles once more when half of its places are taken and entries come and go.
const FEW: usize = 64;

/// Clients by VLAN and MAC, with the owner (a port, a node) each was last heard behind.
///
/// Half of the places belong to clients that came while one of these was free; nobody pushes those
/// out. The other half is shared: when full, the owner with the most entries there loses the one
/// unused for longest. So a single noisy owner cannot push the others out (the rule of Open
/// vSwitch, `lib/mac-learning.h`). A flood of addresses, from one owner or from many, pushes out
/// those that came with it and not who was known before, however silent.
#[derive(Clone, Debug)]
pub struct ClientCache<Owner> {
    entries: HashMap<Client, Entry<Owner>, FixedState>,
    by_owner: BTreeMap<Owner, Listed>,
    /// How many of its clients an owner may lose, for owners that have some.
    by_others: BTreeSet<(usize, Owner)>,
    kept: usize,
    entries_max: usize,
    age_max: Duration,
    /// There is room for all there may be.
    is_roomy: bool,
}

/// What is known of one client, for whoever looks inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<Owner> {
    /// Who.
    pub client: Client,
    /// Where it is.
    pub owner: Owner,
    /// Heard, claimed or refreshed.
    pub used: Timestamp,
    /// A frame of its own came from there.
    pub heard: Option<Timestamp>,
    /// When the owner got it.
    pub since: Timestamp,
    /// It moves too often, and is held there.
    pub is_held: bool,
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

/// What a frame or a word taught, and what was forgotten for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson<Owner> {
    /// What changed.
    pub learnt: Learnt<Owner>,
    /// So many entries were evicted to make room.
    pub evicted: u64,
}

impl<Owner> From<Learnt<Owner>> for Lesson<Owner> {
    /// With nobody evicted.
    fn from(learnt: Learnt<Owner>) -> Self {
        Self { learnt, evicted: 0 }
    }
}

impl<Owner: Copy + Ord> ClientCache<Owner> {
    /// An empty cache for at most `entries_max` clients, each forgotten after `age_max` unused.
    /// `seed` keeps strangers from choosing colliding MACs.
    pub fn new(entries_max: usize, age_max: Duration, seed: u64) -> Self {
        Self {
            entries: HashMap::with_hasher(FixedState::with_seed(seed)),
            by_owner: BTreeMap::new(),
            by_others: BTreeSet::new(),
            kept: 0,
            entries_max: entries_max.max(1),
            age_max,
            is_roomy: false,
        }
    }

    /// A frame from `client` came from `owner`.
    #[inline]
    pub fn learn(&mut self, now: Timestamp, client: Client, owner: Owner) -> Lesson<Owner> {
        self.learn_settled(now, client, owner, Duration::ZERO)
    }

    /// As [`ClientCache::learn`]; but a client that came to another owner less than `settled_for`
    /// ago stays there: the frame was under way meanwhile.
    #[inline]
    pub fn learn_settled(
        &mut self,
        now: Timestamp,
        client: Client,
        owner: Owner,
        settled_for: Duration,
    ) -> Lesson<Owner> {
        // Nearly every frame ends here; the rest is kept out of its way.
        let is_known = self.entries.get(&client).is_some_and(|entry| {
            entry.owner == owner && entry.heard.is_some_and(|at| now.since(at) < TOUCH_EVERY)
        });
        if is_known { Learnt::Known.into() } else { self.note(now, client, owner, settled_for) }
    }

    #[cold]
    fn note(
        &mut self,
        now: Timestamp,
        client: Client,
        owner: Owner,
        settled_for: Duration,
    ) -> Lesson<Owner> {
        let Some(entry) = self.entries.get_mut(&client) else {
            let evicted = self.insert(now, client, owner, Some(now));
            return Lesson { learnt: Learnt::New, evicted };
        };
        if entry.owner == owner {
            entry.heard = Some(now);
            self.touch(now, client);
            return Learnt::Renewed.into();
        }
        if now.since(entry.since) < settled_for {
            return Learnt::Known.into();
        }
        if entry.moves.begins(now) {
            entry.home = entry.owner;
        }
        if let Err(first) = entry.moves.note(now) {
            let home = entry.home;
            if first && home != entry.owner {
                entry.heard = None;
                self.reassign(now, client, home);
            }
            return Learnt::Held { first }.into();
        }
        entry.heard = Some(now);
        self.reassign(now, client, owner).into()
    }

    /// `owner` says that `client`, which may never speak, is behind it, and the caller believes it:
    /// this is never held back.
    pub fn claim(&mut self, now: Timestamp, client: Client, owner: Owner) -> Lesson<Owner> {
        match self.entries.get_mut(&client) {
            None => {
                let evicted = self.insert(now, client, owner, None);
                Lesson { learnt: Learnt::New, evicted }
            }
            Some(entry) if entry.owner == owner => {
                self.touch(now, client);
                Learnt::Known.into()
            }
            Some(entry) => {
                entry.heard = None;
                self.reassign(now, client, owner).into()
            }
        }
    }

    /// The client is where it is known to be, as if it had come just now: see
    /// [`ClientCache::learn_settled`].
    pub fn settle(&mut self, now: Timestamp, client: Client) {
        if let Some(entry) = self.entries.get_mut(&client) {
            entry.since = now;
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
        let is_kept = self.kept < self.entries_max / 2;
        let moves = Moves::default();
        let entry = Entry { owner, used: now, heard, since: now, moves, home: owner, is_kept };
        if !self.is_roomy && self.entries.len() >= FEW {
            self.is_roomy = true;
            // A table at most half full clears out what was forgotten, and stays where it is.
            self.entries.reserve((2 * self.entries_max).saturating_sub(self.entries.len()));
        }
        self.entries.insert(client, entry);
        self.list(owner, now, client, is_kept);
        evicted
    }

    fn reassign(&mut self, now: Timestamp, client: Client, owner: Owner) -> Learnt<Owner> {
        let Some(entry) = self.entries.get_mut(&client) else { return Learnt::New };
        let before = *entry;
        (entry.owner, entry.used, entry.since) = (owner, now, now);
        self.unlist(before.owner, before.used, client, before.is_kept);
        self.list(owner, now, client, before.is_kept);
        Learnt::Moved(before.owner)
    }

    fn touch(&mut self, now: Timestamp, client: Client) {
        let Some(entry) = self.entries.get_mut(&client) else { return };
        let (owner, used, is_kept) = (entry.owner, entry.used, entry.is_kept);
        if now.since(used) < TOUCH_EVERY {
            return;
        }
        entry.used = now;
        if let Some(listed) = self.by_owner.get_mut(&owner) {
            let listed = listed.half(is_kept);
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

    /// When a frame from the client was last noted where it is now (to within a second); `None` if
    /// it never spoke there.
    #[inline]
    pub fn last_heard(&self, client: Client) -> Option<Timestamp> {
        self.entries.get(&client)?.heard
    }

    /// Forgets one client.
    pub fn forget(&mut self, client: Client) -> bool {
        let Some(entry) = self.entries.remove(&client) else { return false };
        self.unlist(entry.owner, entry.used, client, entry.is_kept);
        true
    }

    /// Forgets every client of `owner`.
    pub fn forget_owner(&mut self, owner: Owner) {
        let Some(listed) = self.by_owner.remove(&owner) else { return };
        self.by_others.remove(&(listed.others.len(), owner));
        self.kept -= listed.kept.len();
        for client in listed.clients() {
            self.entries.remove(&client);
        }
    }

    /// Marks every client of `owner` as heard now: it refreshes all of them.
    pub fn touch_owner(&mut self, now: Timestamp, owner: Owner) {
        let Some(listed) = self.by_owner.get_mut(&owner) else { return };
        for half in [&mut listed.kept, &mut listed.others] {
            *half = std::mem::take(half).into_iter().map(|(_, client)| (now, client)).collect();
        }
        for client in listed.clients() {
            if let Some(entry) = self.entries.get_mut(&client) {
                entry.used = now;
            }
        }
    }

    /// Forgets what is too old. Returns how many were.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let is_old = |(used, _): &&(Timestamp, Client)| now.since(*used) >= self.age_max;
        let old = |listed: &Listed| -> Vec<Client> {
            let halves = [&listed.kept, &listed.others].into_iter();
            halves.flat_map(|half| half.iter().take_while(is_old)).map(|(_, c)| *c).collect()
        };
        let old: Vec<Client> = self.by_owner.values().flat_map(old).collect();
        for client in &old {
            self.forget(*client);
        }
        old.len()
    }

    /// Whether anybody is behind `owner`.
    pub fn has_clients(&self, owner: Owner) -> bool {
        self.by_owner.contains_key(&owner)
    }

    /// The clients of `owner`, in the order an announcement lists them.
    pub fn clients_of(&self, owner: Owner) -> Vec<Client> {
        let mut clients: Vec<_> =
            self.by_owner.get(&owner).into_iter().flat_map(Listed::clients).collect();
        clients.sort_unstable();
        clients
    }

    /// Each client that is not too old, in no order.
    pub fn iter(&self, now: Timestamp) -> impl Iterator<Item = Known<Owner>> {
        let entries = self.entries.iter();
        let fresh = entries.filter(move |(_, entry)| now.since(entry.used) < self.age_max);
        fresh.map(move |(client, entry)| Known {
            client: *client,
            owner: entry.owner,
            used: entry.used,
            heard: entry.heard,
            since: entry.since,
            is_held: entry.moves.is_held && now.since(entry.moves.first) < MOVES_WITHIN,
        })
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
        let noisiest = self.by_others.last().and_then(|(_, owner)| self.by_owner.get(owner));
        let Some((_, client)) = noisiest.and_then(|listed| listed.others.first()).copied() else {
            return 0;
        };
        u64::from(self.forget(client))
    }

    fn list(&mut self, owner: Owner, used: Timestamp, client: Client, is_kept: bool) {
        let listed = self.by_owner.entry(owner).or_default();
        self.by_others.remove(&(listed.others.len(), owner));
        listed.half(is_kept).insert((used, client));
        if !listed.others.is_empty() {
            self.by_others.insert((listed.others.len(), owner));
        }
        self.kept += usize::from(is_kept);
    }

    fn unlist(&mut self, owner: Owner, used: Timestamp, client: Client, is_kept: bool) {
        let Some(listed) = self.by_owner.get_mut(&owner) else { return };
        self.by_others.remove(&(listed.others.len(), owner));
        if listed.half(is_kept).remove(&(used, client)) {
            self.kept -= usize::from(is_kept);
        }
        if !listed.others.is_empty() {
            self.by_others.insert((listed.others.len(), owner));
        } else if listed.kept.is_empty() {
            self.by_owner.remove(&owner);
        }
    }
}

impl Listed {
    fn half(&mut self, is_kept: bool) -> &mut BTreeSet<(Timestamp, Client)> {
        if is_kept { &mut self.kept } else { &mut self.others }
    }

    fn clients(&self) -> impl Iterator<Item = Client> {
        self.kept.iter().chain(&self.others).map(|(_, client)| *client)
    }
}

impl Moves {
    /// A move now is the first of a window.
    fn begins(&self, now: Timestamp) -> bool {
        self.count == 0 || now.since(self.first) >= MOVES_WITHIN
    }

    /// The client moves. An error when it does so too often, with whether that is noticed only now.
    fn note(&mut self, now: Timestamp) -> Result<(), bool> {
        if self.begins(now) {
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
        assert_eq!(cache.learn(at(0), mac(1), 'a'), Learnt::New.into());
        assert_eq!(cache.learn(at(0), mac(1), 'a'), Learnt::Known.into());
        assert_eq!(cache.learn(at(0), mac(1), 'b'), Learnt::Moved('a').into());
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
        assert_eq!(cache.expire(at(100)), 0, "its owner refreshed it");
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
    fn a_client_that_moves_more_than_five_times_in_twenty_seconds_is_held_where_it_was_before() {
        let mut cache = cache(10);
        cache.learn(at(0), mac(1), 'a');
        for (second, owner) in (1..).zip(['b', 'a', 'b', 'a', 'b']) {
            assert!(matches!(cache.learn(at(second), mac(1), owner).learnt, Learnt::Moved(_)));
        }
        assert_eq!(cache.learn(at(6), mac(1), 'a').learnt, Learnt::Held { first: true });
        assert_eq!(cache.learn(at(7), mac(1), 'b').learnt, Learnt::Held { first: false });
        assert_eq!(cache.owner(at(20), mac(1)), Some('a'));
        // The window began with the first move, in second 1.
        assert_eq!(cache.learn(at(20), mac(1), 'b').learnt, Learnt::Held { first: false });
        assert_eq!(cache.learn(at(21), mac(1), 'b').learnt, Learnt::Moved('a'));
    }

    #[test]
    fn whoever_sends_in_the_name_of_a_client_does_not_get_it_for_good() {
        let mut cache = cache(10);
        cache.learn(at(0), mac(1), 'a');
        for n in 0..40 {
            cache.learn(at(1 + n / 4), mac(1), if n % 2 == 0 { 'x' } else { 'a' });
        }
        cache.learn(at(11), mac(1), 'x');
        assert_eq!(cache.owner(at(11), mac(1)), Some('a'));
    }

    #[test]
    fn a_flood_of_addresses_does_not_push_out_a_client_that_was_known_before_and_is_silent() {
        let mut cache = cache(512);
        for n in 0..12 {
            cache.learn(at(0), mac(n), 'a');
        }
        for n in 0..100_000 {
            cache.learn(at(1 + u64::from(n) / 5000), mac(1000 + n), 'a');
        }
        assert_eq!(cache.len(), 512);
        assert!((0..12).all(|n| cache.owner(at(21), mac(n)) == Some('a')));
    }

    #[test]
    fn forgotten_owners_make_room_for_as_many_protected_clients_as_they_had() {
        let mut cache = ClientCache::<u32>::new(100, MINUTE, 1);
        for n in 0..100 {
            cache.learn(at(0), mac(n), n / 20);
        }
        // Owners 0 and 1 and half of 2 came first.
        let kept_without = [(4, 50), (2, 40), (1, 20), (0, 0), (3, 0)];
        for (owner, kept) in kept_without {
            cache.forget_owner(owner);
            assert_eq!(cache.kept, kept, "without {owner}");
        }
        assert!(cache.is_empty() && cache.by_others.is_empty());
    }

    #[test]
    fn a_flood_from_many_owners_does_not_push_out_those_known_before() {
        let mut cache = ClientCache::<u32>::new(1000, MINUTE, 1);
        for n in 0..100 {
            cache.learn(at(0), mac(n), n / 10);
        }
        for n in 1000..51_000 {
            cache.learn(at(1), mac(n), n);
        }
        assert_eq!((0..10).map(|owner| cache.clients_of(owner).len()).sum::<usize>(), 100);
        cache.expire(at(100));
        assert!(cache.is_empty() && cache.kept == 0 && cache.by_others.is_empty());
    }

    #[test]
    fn a_frame_that_was_under_way_does_not_take_a_client_back() {
        let mut cache = cache(10);
        let grace = Duration::from_secs(3);
        cache.claim(at(10), mac(1), 'a');
        assert_eq!(cache.learn_settled(at(12), mac(1), 'b', grace).learnt, Learnt::Known);
        assert_eq!(cache.owner(at(12), mac(1)), Some('a'));
        assert_eq!(cache.learn_settled(at(13), mac(1), 'b', grace).learnt, Learnt::Moved('a'));
        cache.settle(at(20), mac(1));
        assert_eq!(cache.learn_settled(at(22), mac(1), 'a', grace).learnt, Learnt::Known);
        assert_eq!(cache.learn_settled(at(23), mac(1), 'a', grace).learnt, Learnt::Moved('b'));
    }

    #[test]
    fn a_claim_is_never_held_back_and_is_not_hearing() {
        let mut cache = cache(10);
        for turn in 0..20 {
            let owner = if turn % 2 == 0 { 'a' } else { 'b' };
            assert_ne!(cache.claim(at(turn), mac(1), owner).learnt, Learnt::Known);
        }
        assert_eq!(cache.last_heard(mac(1)), None);
        cache.learn(at(30), mac(1), 'b');
        assert_eq!(cache.last_heard(mac(1)), Some(at(30)));
        assert_eq!(cache.claim(at(31), mac(1), 'b').learnt, Learnt::Known);
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
