//! Clients that an operator has put behind an OBU: [`Pins`].

use std::collections::BTreeMap;

use node_lib::control::pin::NoPin;
use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, NodeId};

use super::obus::Obus;

/// An operator types them one by one.
pub(crate) const PINS_MAX: usize = 256;

/// Behind which OBU a client is, by the word of an operator.
///
/// A pin counts while its OBU is attached to this RSU, by whatever way. While it is elsewhere the
/// client is where it is heard, as any other: another RSU has it then, and frames for it that were
/// kept here for the OBU would be lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    by_client: BTreeMap<Client, NodeId>,
}

impl Pins {
    /// Returns whether that is new.
    pub(crate) fn put(&mut self, client: Client, obu: NodeId) -> Result<bool, NoPin> {
        let has_room = self.by_client.len() < PINS_MAX || self.by_client.contains_key(&client);
        if !has_room {
            return Err(NoPin::Full(PINS_MAX));
        }
        Ok(self.by_client.insert(client, obu) != Some(obu))
    }

    /// Takes off all, or those of clients with this address. Returns how many.
    pub(crate) fn take(&mut self, which: Option<Mac>) -> usize {
        let before = self.by_client.len();
        self.by_client.retain(|client, _| which.is_some_and(|mac| client.mac != mac));
        before - self.by_client.len()
    }

    /// Where the client is pinned to, be it in effect or not.
    pub(crate) fn of(&self, client: Client) -> Option<NodeId> {
        self.by_client.get(&client).copied()
    }

    /// The OBU behind which the client is, because it is pinned to it and the OBU is here.
    #[inline]
    pub(crate) fn in_effect(&self, client: Client, obus: &Obus) -> Option<NodeId> {
        // Where nobody pins, no frame looks anything up.
        if self.by_client.is_empty() {
            return None;
        }
        self.of(client).filter(|obu| obus.is_attached(*obu))
    }

    /// Clients pinned to this OBU.
    pub(crate) fn behind(&self, obu: NodeId) -> Vec<Client> {
        self.iter().filter(|(_, at)| *at == obu).map(|(client, _)| client).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Client, NodeId)> {
        self.by_client.iter().map(|(client, obu)| (*client, *obu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: usize, vlan: u16) -> Client {
        Client { vlan, mac: Mac([2, 0, 0, 0, (n >> 8) as u8, n as u8]) }
    }

    #[test]
    fn pins_are_bounded_and_taken_off_by_address() {
        let mut pins = Pins::default();
        let [here, there] = [NodeId([2; 6]), NodeId([4; 6])];
        for n in 0..PINS_MAX {
            assert_eq!(pins.put(client(n, 0), here), Ok(true));
        }
        assert_eq!(pins.put(client(0, 7), here), Err(NoPin::Full(PINS_MAX)));
        assert_eq!(pins.put(client(0, 0), here), Ok(false), "it is there already");
        assert_eq!(pins.put(client(0, 0), there), Ok(true), "one that is there may move");
        assert_eq!(pins.take(Some(client(1, 0).mac)), 1);
        assert_eq!(pins.put(client(0, 7), here), Ok(true));
        assert_eq!(pins.behind(there), [client(0, 0)]);
        assert_eq!(pins.take(Some(client(0, 0).mac)), 2, "in every VLAN");
        assert_eq!(pins.take(None), PINS_MAX - 2);
    }
}
