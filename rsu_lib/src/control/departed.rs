//! What is still under way when an OBU has gone to another RSU. These are frames of the LAN that a
//! switch sent here before it knew, and frames of the OBU that some relay still had.
//!
//! For [`LATE_FOR`] the former are sent down the old way, and the latter handed to the LAN, without
//! taking them for news: the client is where the other RSU says it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use node_lib::messages::control::announcement::Client;
use node_lib::{NodeId, Timestamp};

use super::clients::CLIENTS_MAX;

/// What is still under way to an OBU that has left is sent after it for so long.
pub(crate) const LATE_FOR: Duration = Duration::from_millis(300);

/// What is due after that, when the clients of an OBU have all gone to the LAN, its own TAP's
/// address among them: so another RSU there says that it has the OBU.
pub(crate) const FAREWELL: &str = "take an OBU whose clients are on the LAN to be gone";

/// Clients that left a moment ago.
#[derive(Clone, Debug, Default)]
pub(crate) struct Late {
    by_client: BTreeMap<Client, (NodeId, Timestamp)>,
    /// In the order in which they end; an entry may have been renewed since.
    ending: VecDeque<(Timestamp, Client)>,
}

impl Late {
    /// The client was behind `obu` until now. Beyond [`CLIENTS_MAX`] nothing is kept: what is late
    /// for that client is dropped.
    pub(crate) fn add(&mut self, now: Timestamp, client: Client, obu: NodeId) {
        self.expire(now);
        if self.ending.len() < CLIENTS_MAX {
            let until = now + LATE_FOR;
            self.by_client.insert(client, (obu, until));
            self.ending.push_back((until, client));
        }
    }

    /// The client is back.
    pub(crate) fn remove(&mut self, client: Client) {
        self.by_client.remove(&client);
    }

    /// The OBU the client was behind a moment ago.
    #[inline]
    pub(crate) fn obu(&self, now: Timestamp, client: Client) -> Option<NodeId> {
        self.by_client.get(&client).filter(|(_, until)| now < *until).map(|(obu, _)| *obu)
    }

    pub(crate) fn expire(&mut self, now: Timestamp) {
        while let Some((until, client)) = self.ending.front().copied().filter(|(at, _)| *at <= now)
        {
            self.ending.pop_front();
            if self.by_client.get(&client).is_some_and(|(_, renewed)| *renewed <= until) {
                self.by_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::Mac;

    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn client(n: u32) -> Client {
        let [a, b, c, d] = n.to_be_bytes();
        Client { vlan: 0, mac: Mac([2, 0, a, b, c, d]) }
    }

    #[test]
    fn a_client_is_late_for_three_hundred_milliseconds_after_it_last_left() {
        let mut late = Late::default();
        late.add(at(0), client(1), OBU);
        late.add(at(200), client(1), OBU);
        late.expire(at(300));
        assert_eq!(late.obu(at(499), client(1)), Some(OBU));
        assert_eq!(late.obu(at(500), client(1)), None);
        late.expire(at(500));
        assert!(late.by_client.is_empty() && late.ending.is_empty());
    }

    #[test]
    fn a_client_that_came_back_is_not_late() {
        let mut late = Late::default();
        late.add(at(0), client(1), OBU);
        late.remove(client(1));
        assert_eq!(late.obu(at(1), client(1)), None);
    }

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let mut late = Late::default();
        for n in 0..20_000 {
            late.add(at(0), client(n), OBU);
        }
        assert_eq!((late.by_client.len(), late.ending.len()), (CLIENTS_MAX, CLIENTS_MAX));
        late.add(at(300), client(0), OBU);
        assert_eq!((late.by_client.len(), late.ending.len()), (1, 1));
    }
}
