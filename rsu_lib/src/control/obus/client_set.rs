//! The clients an OBU announces, in parts, and who announces a client.

use std::collections::BTreeMap;

use node_lib::messages::control::announcement::{Client, client_digest};
use node_lib::{NodeId, Timestamp};

use super::{Obus, Registered};
use crate::control::clients::CLIENTS_MAX;

/// Clients kept of one OBU; what a set has beyond is not kept, and the set never complete. A
/// vehicle announces 512 at most.
const SET_MAX: usize = 2048;

/// Clients kept of all OBUs together: four times those the RSU forwards for. What is announced
/// beyond is not kept.
pub(super) const CLAIMS_MAX: usize = 4 * CLIENTS_MAX;

impl Registered {
    /// Another set is announced. The one before counts until this is complete.
    pub(super) fn begin_set(
        &mut self,
        claims: &mut BTreeMap<(Client, NodeId), Timestamp>,
        obu: NodeId,
        digest: u32,
        parts: u8,
    ) {
        // One whose parts are all there, and are not what its digest says, never counts.
        let was_complete = self.complete_set().is_some();
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
    pub(super) fn end_set(
        &mut self,
        claims: &mut BTreeMap<(Client, NodeId), Timestamp>,
        obu: NodeId,
    ) {
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
    pub(super) fn keep(
        &mut self,
        part: u8,
        clients: impl Iterator<Item = Client>,
        room: usize,
    ) -> bool {
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
    pub(super) fn index(
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

    pub(super) fn is_complete(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// All clients, once every part is there and together they are what the digest says.
    pub(super) fn complete_set(&self) -> Option<Vec<Client>> {
        let mut set = Vec::new();
        for part in &self.parts {
            set.extend_from_slice(part.as_deref()?);
        }
        set.sort_unstable();
        (client_digest(&set) == self.digest).then_some(set)
    }
}

impl Obus {
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
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use node_lib::Mac;
    use node_lib::messages::control::heartbeat::HeartbeatReply;

    use super::super::scene::*;
    use super::*;

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
    fn sets_that_are_not_what_they_say_leave_no_claims_behind() {
        let mut obus = Obus::default();
        for n in 0..200_u32 {
            let [.., high, low] = n.to_be_bytes();
            let named = (0..230).map(|m| Client { vlan: 0, mac: Mac([2, 0, 1, high, low, m]) });
            let set: Vec<_> = named.collect();
            claim_part(&mut obus, (OBU, Said(1, 1, n, false)), (0, 1), n, &set);
            assert!(obus.claims.len() <= 2 * set.len(), "{} after {n}", obus.claims.len());
        }
        obus.forget(OBU);
        assert!(obus.claims.is_empty(), "{}", obus.claims.len());
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
}
