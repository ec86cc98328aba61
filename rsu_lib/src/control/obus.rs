//! Which OBUs are attached, and whether we know their clients.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::messages::control::announcement::{Announcement, Client, client_digest};
use node_lib::{Boot, NodeId, Timestamp};

/// OBUs remembered: twice the vehicles of the densest traffic jam in radio range.
const OBUS_MAX: usize = 1024;

/// A missing client set is asked for at most this often.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What is known of one attached OBU.
#[derive(Debug)]
struct Registered {
    boot: Boot,
    epoch: u32,
    /// Digest of the set its announcement names; the set is complete when all parts are there.
    digest: u32,
    parts: Vec<Option<Vec<Client>>>,
    asked_at: Option<Timestamp>,
    round_trip_us: Option<u32>,
}

/// What an announcement means to us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The OBU was known with a higher epoch: it must use one above this.
    Stale(u32),
    /// Accepted; not all parts are there yet, or this one was there already.
    Accepted,
    /// Accepted, and with it the set is complete.
    Complete(Vec<Client>),
}

/// Attached OBUs by id.
#[derive(Debug, Default)]
pub(crate) struct Obus {
    by_id: BTreeMap<NodeId, Registered>,
}

impl Obus {
    pub(crate) fn contains(&self, obu: NodeId) -> bool {
        self.by_id.contains_key(&obu)
    }

    /// An OBU announces (a part of) its clients.
    pub(crate) fn claim(&mut self, announcement: &Announcement<'_>) -> Claim {
        let Announcement { origin: obu, order, epoch, part, parts, digest, .. } = *announcement;
        let boot = order.boot;
        let fresh = || Registered {
            boot,
            epoch,
            digest,
            parts: vec![None; usize::from(parts)],
            asked_at: None,
            round_trip_us: None,
        };
        let full = self.by_id.len() >= OBUS_MAX;
        if full && !self.by_id.contains_key(&obu) {
            // Attached OBUs are never pushed out by new ones; silent ones leave after 5 s.
            return Claim::Accepted;
        }
        let known = self.by_id.entry(obu).or_insert_with(fresh);
        // A restarted OBU starts its epochs anew; its boot count says so.
        if boot <= known.boot && epoch < known.epoch {
            return Claim::Stale(known.epoch);
        }
        let is_same_set = digest == known.digest && known.parts.len() == usize::from(parts);
        if !is_same_set {
            *known = Registered { round_trip_us: known.round_trip_us, ..fresh() };
        }
        (known.boot, known.epoch) = (boot, epoch);
        if let Some(slot) = known.parts.get_mut(usize::from(part)) {
            *slot = Some(announcement.clients.iter().collect());
        }
        match known.complete_set() {
            Some(set) => Claim::Complete(set),
            None => Claim::Accepted,
        }
    }

    /// Whether the set we hold of `obu` is not the one its reply names, so that it must be asked
    /// for now.
    pub(crate) fn must_ask(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        epoch: u32,
        digest: u32,
    ) -> bool {
        let Some(known) = self.by_id.get_mut(&obu) else {
            // Nothing is kept for an OBU that has not announced itself: it may be a forgery.
            return true;
        };
        let matches = known.epoch == epoch && known.digest == digest && known.is_complete();
        let asked_lately = known.asked_at.is_some_and(|at| now.since(at) < ASK_EVERY);
        if matches || asked_lately {
            return false;
        }
        known.asked_at = Some(now);
        true
    }

    /// The set we hold is the one its reply names.
    pub(crate) fn vouches(&self, obu: NodeId, digest: u32) -> bool {
        self.by_id.get(&obu).is_some_and(|known| known.digest == digest && known.is_complete())
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

    pub(crate) fn forget(&mut self, obu: NodeId) -> bool {
        self.by_id.remove(&obu).is_some()
    }

    /// How many.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.by_id.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> {
        self.by_id.keys().copied()
    }
}

impl Registered {
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

    fn client(n: u8) -> Client {
        Client { vlan: 0, mac: Mac([2, 0, 0, 0, 1, n]) }
    }

    fn claim_part(
        obus: &mut Obus,
        (boot, epoch): (u32, u32),
        (part, parts): (u8, u8),
        digest: u32,
        clients: &[Client],
    ) -> Claim {
        let mut groups = Vec::new();
        Clients::encode(clients, &mut groups);
        obus.claim(&Announcement {
            rsu: NodeId([2, 0, 0, 0, 0, 9]),
            origin: OBU,
            order: Order::new(boot, epoch),
            epoch,
            hop_limit: 16,
            hops: 0,
            part,
            parts,
            digest,
            standby: false,
            clients: Clients::parse(&groups).unwrap(),
        })
    }

    fn claim(obus: &mut Obus, boot: u32, epoch: u32, set: &[Client]) -> Claim {
        claim_part(obus, (boot, epoch), (0, 1), client_digest(set), set)
    }

    #[test]
    fn the_highest_epoch_owns_and_a_late_claim_is_told_so() {
        let mut obus = Obus::default();
        assert_eq!(claim(&mut obus, 1, 5, &[client(1)]), Claim::Complete(vec![client(1)]));
        assert_eq!(claim(&mut obus, 1, 4, &[client(2)]), Claim::Stale(5));
        assert_eq!(claim(&mut obus, 1, 6, &[client(2)]), Claim::Complete(vec![client(2)]));
    }

    #[test]
    fn a_restarted_obu_is_accepted_at_once() {
        let mut obus = Obus::default();
        claim(&mut obus, 1, 500, &[client(1)]);
        assert_eq!(claim(&mut obus, 2, 1, &[client(1)]), Claim::Complete(vec![client(1)]));
        assert_eq!(claim(&mut obus, 2, 0, &[client(1)]), Claim::Stale(1));
    }

    #[test]
    fn parts_may_come_in_any_order_and_twice() {
        let mut obus = Obus::default();
        let (a, b) = (vec![client(1)], vec![client(2)]);
        let digest = client_digest(&[client(1), client(2)]);
        let part = |obus: &mut Obus, n, clients: &[Client]| {
            claim_part(obus, (1, 1), (n, 2), digest, clients)
        };
        assert_eq!(part(&mut obus, 1, &b), Claim::Accepted);
        assert_eq!(part(&mut obus, 1, &b), Claim::Accepted);
        assert!(obus.must_ask(Timestamp::ZERO, OBU, 1, digest));
        assert_eq!(part(&mut obus, 0, &a), Claim::Complete(vec![client(1), client(2)]));
        assert!(!obus.must_ask(Timestamp::ZERO, OBU, 1, digest));
    }

    #[test]
    fn a_set_that_differs_is_asked_for_but_not_all_the_time() {
        let mut obus = Obus::default();
        claim(&mut obus, 1, 1, &[client(1)]);
        let other = client_digest(&[client(2)]);
        assert!(obus.must_ask(Timestamp::from_millis(1), OBU, 1, other));
        assert!(!obus.must_ask(Timestamp::from_millis(50), OBU, 1, other));
        assert!(obus.must_ask(Timestamp::from_millis(101), OBU, 1, other));
    }
}
