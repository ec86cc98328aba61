//! Announcements of another RSU on the LAN come in several rounds, for switches that were busy.
//! Vehicles need to hear them once.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::messages::control::announcement::Client;

/// Rounds are closer together than this; what a host announces by itself again is not (RFC 5227
/// §1.1: 2 s).
const SAME_WITHIN: Duration = Duration::from_secs(1);

/// Announcements remembered. Beyond, the oldest goes, and a further round of it is passed on.
const REMEMBERED_MAX: usize = 512;

/// Announcements passed on lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    passed: VecDeque<(Timestamp, Client, IpAddr)>,
}

impl Repeats {
    /// Notes that `client` announces `address`; `false` if that was passed on a moment ago, and
    /// nobody else has announced it since.
    pub(crate) fn is_new(&mut self, now: Timestamp, client: Client, address: IpAddr) -> bool {
        while self.passed.front().is_some_and(|(at, ..)| now.since(*at) >= SAME_WITHIN) {
            self.passed.pop_front();
        }
        if self.passed.iter().any(|(_, c, a)| (*c, *a) == (client, address)) {
            return false;
        }
        // Whoever had the address until now has it no more, and is news when it takes it back.
        self.passed.retain(|(_, c, a)| *a != address || c.vlan != client.vlan);
        if self.passed.len() >= REMEMBERED_MAX {
            self.passed.pop_front();
        }
        self.passed.push_back((now, client, address));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::Mac;

    fn is_new(repeats: &mut Repeats, ms: u64, address: u32) -> bool {
        let client = Client { vlan: 0, mac: Mac([2; 6]) };
        repeats.is_new(Timestamp::from_millis(ms), client, IpAddr::V4(address.into()))
    }

    #[test]
    fn an_announcement_is_new_once_a_second() {
        let mut repeats = Repeats::default();
        assert!(is_new(&mut repeats, 0, 1) && is_new(&mut repeats, 1, 2));
        assert!(!is_new(&mut repeats, 150, 1) && !is_new(&mut repeats, 999, 1));
        assert!(is_new(&mut repeats, 1000, 1));
    }

    #[test]
    fn an_address_that_goes_back_to_who_had_it_is_news() {
        let mut repeats = Repeats::default();
        let mut of = |ms, vlan, mac| {
            let client = Client { vlan, mac: Mac([2, 0, 0, 0, 0, mac]) };
            repeats.is_new(Timestamp::from_millis(ms), client, IpAddr::V4(7.into()))
        };
        assert!(of(0, 0, 1) && of(300, 0, 2), "two servers, one of which takes over");
        assert!(!of(450, 0, 2), "its second round");
        assert!(of(600, 0, 1), "and the first is back");
        assert!(of(700, 5, 3) && !of(750, 0, 1), "in another VLAN it is another");
    }

    #[test]
    fn memory_is_bounded() {
        let mut repeats = Repeats::default();
        for address in 0..10_000 {
            assert!(is_new(&mut repeats, 0, address));
        }
        assert_eq!(repeats.passed.len(), REMEMBERED_MAX);
    }
}
