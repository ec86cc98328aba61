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
    used: Timestamp,
}

/// An entry in use is only marked as such again after this long: marking costs a tree update, and
/// ages are judged in minutes.
const TOUCH_EVERY: Duration = Duration::from_secs(1);

/// Clients by VLAN and MAC, with the owner (a port, a node) each was last heard behind.
///
/// When full, the owner with the most entries loses the one unused for longest: a single noisy
/// owner cannot push the others out (the rule of Open vSwitch, `lib/mac-learning.h`).
#[derive(Debug)]
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
    /// The client was not known.
    New,
    /// The client was behind another owner before.
    Moved(Owner),
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
    pub fn learn(&mut self, now: Timestamp, client: Client, owner: Owner) -> (Learnt<Owner>, u64) {
        if let Some(entry) = self.entries.get_mut(&client) {
            if entry.owner == owner && now.since(entry.used) < TOUCH_EVERY {
                return (Learnt::Known, 0);
            }
            let before = *entry;
            *entry = Entry { owner, used: now };
            unlist(&mut self.by_owner, before.owner, before.used, client);
            self.by_owner.entry(owner).or_default().insert((now, client));
            let learnt =
                if before.owner == owner { Learnt::Known } else { Learnt::Moved(before.owner) };
            return (learnt, 0);
        }
        let evicted = if self.entries.len() >= self.entries_max { self.evict() } else { 0 };
        self.entries.insert(client, Entry { owner, used: now });
        self.by_owner.entry(owner).or_default().insert((now, client));
        (Learnt::New, evicted)
    }

    /// Behind which owner the client is.
    pub fn owner(&self, now: Timestamp, client: Client) -> Option<Owner> {
        let entry = self.entries.get(&client)?;
        (now.since(entry.used) < self.age_max).then_some(entry.owner)
    }

    /// When a frame from the client was last noted (to within a second).
    pub fn last_used(&self, client: Client) -> Option<Timestamp> {
        self.entries.get(&client).map(|entry| entry.used)
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

/// A client as the cache knows it.
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
