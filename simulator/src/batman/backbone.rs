//! Several RSUs on one LAN: [`Backbone`], which keeps a client's frames from coming out twice or
//! going in a circle.
//!
//! Bridge loop avoidance II, as batman-adv has it switched on by default: for each client of the
//! mesh one gateway is responsible, which has claimed it. Gateways tell each other on the LAN; a
//! claim bears the client's address, so that switches learn where it is now.
//!
//! Simpler than `net/batman-adv/bridge_loop_avoidance.c`, each time in favour of the model:
//!
//! * Gateways on a LAN believe each other's claims at once. In batman-adv they first have to hear
//!   of each other over the mesh (`batadv_check_claim_group`), and until then each puts the others'
//!   clients on its radio as its own.
//! * One that starts does not hold broadcasts back for 30 s (`BATADV_BLA_WAIT_PERIODS`).
//! * Frames that look for loops are not sent (each minute, `BATADV_BLA_LOOPDETECT_PERIODS`).
//!
//! And in nobody's: a LAN here loses nothing, so tables of claims are not compared; and a vehicle
//! does not claim on its own TAP, where no other gateway is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use node_lib::messages::ethernet::{ARP, Header};
use node_lib::{Mac, Timestamp};

/// Gateways make themselves known so often (`BATADV_BLA_PERIOD_LENGTH`).
pub(super) const PERIOD: Duration = Duration::from_secs(10);
/// A silent gateway is gone, and a claim over (`BATADV_BLA_BACKBONE_TIMEOUT`,
/// `BATADV_BLA_CLAIM_TIMEOUT`).
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(60);
const CLAIM_TIMEOUT: Duration = Duration::from_secs(100);
/// A client whose frames were heard over the radio so lately has not moved to the LAN.
const RACE: Duration = Duration::from_millis(100);
/// Broadcasts remembered by content, and for how long (`BATADV_DUPLIST_SIZE`,
/// `BATADV_DUPLIST_TIMEOUT`).
const DUPLICATES_MAX: usize = 16;
const DUPLICATE_FOR: Duration = Duration::from_millis(500);

/// Claims and gateways known; another is refused.
const CLAIMS_MAX: usize = 4096;
const GATEWAYS_MAX: usize = 64;

/// Address claims go to: magic, what it is, group.
const CLAIM_MAGIC: [u8; 3] = [0xff, 0x43, 0x05];
const CLAIM: u8 = 0;
const UNCLAIM: u8 = 1;
const ANNOUNCE: u8 = 2;

/// Is a frame to this address what gateways tell each other?
pub(super) fn is_claim(to: Mac) -> bool {
    to.0.starts_with(&CLAIM_MAGIC)
}

/// What is known of the other gateways.
#[derive(Debug)]
pub(super) struct Backbone {
    us: Mac,
    /// When each spoke last.
    gateways: BTreeMap<Mac, Timestamp>,
    /// Who is responsible for a client, and when it was last heard there.
    claims: BTreeMap<Mac, (Mac, Timestamp)>,
    /// Checksums of broadcasts from the radio, the newest last, and who sent them.
    broadcasts: VecDeque<(u64, Mac, Timestamp)>,
}

/// What to do with a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BackboneVerdict {
    Drop,
    Pass,
    /// Tell the LAN this, and then pass it.
    PassAfter(Vec<u8>),
}

impl Backbone {
    pub(super) fn new(us: Mac) -> Self {
        let (gateways, claims, broadcasts) = Default::default();
        Self { us, gateways, claims, broadcasts }
    }

    fn claim(&self, kind: u8, client: Mac) -> Vec<u8> {
        let source = if kind == CLAIM { client } else { self.us };
        let mut frame = Vec::with_capacity(42);
        let [a, b, c] = CLAIM_MAGIC;
        Header { to: Mac([a, b, c, kind, 0, 0]), from: source, ethertype: ARP }.emit(&mut frame);
        // ARP reply, Ethernet and IPv4; sender: the gateway, target: the client.
        frame.extend([0, 1, 8, 0, 6, 4, 0, 2]);
        frame.extend(self.us.0);
        frame.extend([0; 4]);
        frame.extend(client.0);
        frame.extend([0; 4]);
        frame
    }

    /// What a gateway says every [`PERIOD`]: which clients it gives back, and that it is there.
    /// Forgets who has not.
    pub(super) fn announce(&mut self, now: Timestamp) -> Vec<Vec<u8>> {
        let Self { gateways, claims, us, .. } = self;
        gateways.retain(|_, heard| now.since(*heard) <= GATEWAY_TIMEOUT);
        let mut given_back = Vec::new();
        claims.retain(|client, (by, heard)| {
            if by != us {
                return gateways.contains_key(by);
            }
            let stays = now.since(*heard) <= CLAIM_TIMEOUT;
            if !stays {
                given_back.push(*client);
            }
            stays
        });
        let unclaims = given_back.into_iter().map(|client| self.claim(UNCLAIM, client));
        unclaims.chain([self.claim(ANNOUNCE, self.us)]).collect()
    }

    pub(super) fn is_gateway(&self, node: Mac) -> bool {
        self.gateways.contains_key(&node)
    }

    /// Does another gateway answer for this client of the mesh?
    pub(super) fn is_claimed_elsewhere(&self, client: Mac) -> bool {
        self.claims.get(&client).is_some_and(|(by, _)| *by != self.us)
    }

    /// Was the same broadcast brought by another originator a moment ago?
    pub(super) fn is_repeated(&mut self, now: Timestamp, orig: Mac, checksum: u64) -> bool {
        self.broadcasts.retain(|(_, _, heard)| now.since(*heard) < DUPLICATE_FOR);
        if self.broadcasts.iter().any(|(sum, by, _)| *sum == checksum && *by != orig) {
            return true;
        }
        if self.broadcasts.len() >= DUPLICATES_MAX {
            self.broadcasts.pop_front();
        }
        self.broadcasts.push_back((checksum, orig, now));
        false
    }

    /// A client's frame came over the radio and is to go to the LAN (`batadv_bla_rx`).
    pub(super) fn pass_to_lan(
        &mut self,
        now: Timestamp,
        client: Mac,
        is_for_all: bool,
    ) -> BackboneVerdict {
        match self.claims.get_mut(&client) {
            Some((by, heard)) if *by == self.us => {
                *heard = now;
                BackboneVerdict::Pass
            }
            Some(_) if is_for_all => BackboneVerdict::Drop,
            known => {
                if known.is_none() && self.claims.len() >= CLAIMS_MAX {
                    return BackboneVerdict::Drop;
                }
                self.claims.insert(client, (self.us, now));
                BackboneVerdict::PassAfter(self.claim(CLAIM, client))
            }
        }
    }

    /// A frame came from the LAN and is to go to the radio (`batadv_bla_tx`).
    pub(super) fn pass_to_radio(
        &mut self,
        now: Timestamp,
        frame: &[u8],
        to: Mac,
        from: Mac,
    ) -> BackboneVerdict {
        if is_claim(to) {
            self.hear_claim(now, frame, to);
            return BackboneVerdict::Drop;
        }
        match self.claims.get(&from) {
            None => BackboneVerdict::Pass,
            Some((by, heard)) if *by == self.us => {
                if now.since(*heard) <= RACE {
                    return BackboneVerdict::Drop;
                }
                self.claims.remove(&from);
                BackboneVerdict::PassAfter(self.claim(UNCLAIM, from))
            }
            Some(_) if to.is_group() => BackboneVerdict::Drop,
            Some(_) => BackboneVerdict::Pass,
        }
    }

    fn hear_claim(&mut self, now: Timestamp, frame: &[u8], to: Mac) {
        let Some((gateway, client)) = frame.get(22..).and_then(|arp| {
            let (gateway, rest) = arp.split_first_chunk::<6>()?;
            let client = rest.get(4..)?.first_chunk::<6>()?;
            Some((Mac(*gateway), Mac(*client)))
        }) else {
            return;
        };
        let is_known = self.gateways.contains_key(&gateway);
        if gateway == self.us || !is_known && self.gateways.len() >= GATEWAYS_MAX {
            return;
        }
        self.gateways.insert(gateway, now);
        let [_, _, _, kind, ..] = to.0;
        let is_theirs = self.claims.get(&client).is_some_and(|(by, _)| *by == gateway);
        match kind {
            CLAIM if self.claims.contains_key(&client) || self.claims.len() < CLAIMS_MAX => {
                self.claims.insert(client, (gateway, now));
            }
            UNCLAIM if is_theirs => {
                self.claims.remove(&client);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const CLIENT: Mac = Mac([2, 1, 0, 0, 0, 1]);
    const SERVER: Mac = Mac([2, 1, 0, 0, 0, 2]);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Another gateway's frame comes from the LAN.
    fn tell(to: &mut Backbone, now: u64, frame: &[u8]) {
        let [destination, source] = [0, 6].map(|at| Mac(*frame[at..].first_chunk().unwrap()));
        assert_eq!(to.pass_to_radio(at(now), frame, destination, source), BackboneVerdict::Drop);
    }

    #[test]
    fn one_gateway_passes_a_clients_broadcasts_and_unicasts_move_it() {
        let (mut a, mut b) = (Backbone::new(A), Backbone::new(B));
        let BackboneVerdict::PassAfter(claim) = a.pass_to_lan(at(0), CLIENT, true) else {
            panic!("not claimed")
        };
        assert_eq!((claim.len(), &claim[6..12]), (42, &CLIENT.0[..]));
        tell(&mut b, 0, &claim);
        assert!(b.is_gateway(A) && b.is_claimed_elsewhere(CLIENT));
        assert_eq!(a.pass_to_lan(at(1), CLIENT, true), BackboneVerdict::Pass);
        assert_eq!(b.pass_to_lan(at(1), CLIENT, true), BackboneVerdict::Drop);
        // What B would put back on the radio, A has put there.
        assert_eq!(b.pass_to_radio(at(1), &[], Mac::BROADCAST, CLIENT), BackboneVerdict::Drop);
        assert_eq!(b.pass_to_radio(at(1), &[], CLIENT, SERVER), BackboneVerdict::Pass);
        // The client prefers B now.
        let BackboneVerdict::PassAfter(claim) = b.pass_to_lan(at(2), CLIENT, false) else {
            panic!("not claimed")
        };
        tell(&mut a, 2, &claim);
        assert_eq!(a.pass_to_lan(at(3), CLIENT, true), BackboneVerdict::Drop);
        // It moved to the LAN.
        assert_eq!(
            b.pass_to_radio(at(102), &[], SERVER, CLIENT),
            BackboneVerdict::Drop,
            "perhaps a race"
        );
        let BackboneVerdict::PassAfter(unclaim) = b.pass_to_radio(at(103), &[], SERVER, CLIENT)
        else {
            panic!("still claimed");
        };
        tell(&mut a, 103, &unclaim);
        assert!(!a.is_claimed_elsewhere(CLIENT));
    }

    #[test]
    fn a_gateway_that_is_gone_gives_back_its_clients() {
        let (mut a, mut b) = (Backbone::new(A), Backbone::new(B));
        let BackboneVerdict::PassAfter(claim) = a.pass_to_lan(at(0), CLIENT, true) else {
            panic!("not claimed")
        };
        tell(&mut b, 0, &claim);
        for word in a.announce(at(10_000)) {
            tell(&mut b, 10_000, &word);
        }
        b.announce(at(70_000));
        assert!(b.is_gateway(A) && b.is_claimed_elsewhere(CLIENT));
        b.announce(at(70_001));
        assert!(!b.is_gateway(A) && !b.is_claimed_elsewhere(CLIENT));
    }

    #[test]
    fn a_client_not_heard_for_long_is_given_back() {
        let (mut a, mut b) = (Backbone::new(A), Backbone::new(B));
        let BackboneVerdict::PassAfter(claim) = a.pass_to_lan(at(0), CLIENT, true) else {
            panic!("not claimed")
        };
        tell(&mut b, 0, &claim);
        for now in (10_000..=110_000).step_by(10_000) {
            for word in a.announce(at(now)) {
                tell(&mut b, now, &word);
            }
            b.announce(at(now));
            assert_eq!(b.is_claimed_elsewhere(CLIENT), now <= 100_000, "{now}");
        }
        assert!(b.is_gateway(A));
        assert!(matches!(b.pass_to_lan(at(110_000), CLIENT, true), BackboneVerdict::PassAfter(_)));
    }

    #[test]
    fn a_broadcast_two_gateways_brought_in_counts_once_and_tables_are_bounded() {
        let mut a = Backbone::new(A);
        assert!(!a.is_repeated(at(0), A, 7));
        assert!(a.is_repeated(at(499), B, 7));
        assert!(!a.is_repeated(at(499), B, 8));
        assert!(!a.is_repeated(at(500), B, 7));
        for n in 0..5000_u32 {
            let [_, _, high, low] = n.to_be_bytes();
            a.pass_to_lan(at(0), Mac([2, 5, 0, 0, high, low]), true);
            a.is_repeated(at(0), A, n.into());
            let mut other = Backbone::new(Mac([2, 6, 0, 0, high, low]));
            for word in other.announce(at(0)) {
                tell(&mut a, 0, &word);
            }
        }
        let lens = (a.claims.len(), a.gateways.len(), a.broadcasts.len());
        assert_eq!(lens, (CLAIMS_MAX, GATEWAYS_MAX, DUPLICATES_MAX));
        for len in 0..42 {
            a.pass_to_radio(at(1), &vec![0; len], Mac([0xff, 0x43, 5, 0, 0, 0]), B);
        }
    }
}
