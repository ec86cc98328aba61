//! Which network addresses clients have, as far as their own frames say: so that the LAN can be
//! told of a move in the words of ARP and neighbour discovery.

pub(crate) mod snooping;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use node_lib::messages::control::announcement::Client;

use super::clients::CLIENTS_MAX;
use snooping::Said;

/// Addresses of one client: at most one of IPv4 and two of IPv6, one for the link and one beyond
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: [Option<Ipv6Addr>; 2],
    /// It said that it is a router.
    pub(crate) is_router: bool,
}

/// Addresses by client.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressBook {
    by_client: BTreeMap<Client, Addresses>,
}

impl AddressBook {
    /// The client's frame said this. What is stated replaces what was known; what is only concluded
    /// fills a gap. Beyond [`CLIENTS_MAX`] clients nothing is noted.
    pub(crate) fn note(&mut self, client: Client, said: Said) {
        let has_room = self.by_client.len() < CLIENTS_MAX;
        if !has_room && !self.by_client.contains_key(&client) {
            return;
        }
        let known = self.by_client.entry(client).or_default();
        known.is_router = said.is_router.unwrap_or(known.is_router);
        match said.address {
            IpAddr::V4(address) => fill(&mut known.v4, address, said.is_stated),
            IpAddr::V6(address) => {
                let [link, beyond] = &mut known.v6;
                let slot = if address.is_unicast_link_local() { link } else { beyond };
                fill(slot, address, said.is_stated);
            }
        }
    }

    pub(crate) fn of(&self, client: Client) -> Addresses {
        self.by_client.get(&client).copied().unwrap_or_default()
    }

    /// Forgets clients that are not known any more.
    pub(crate) fn retain(&mut self, is_known: impl Fn(Client) -> bool) {
        self.by_client.retain(|client, _| is_known(*client));
    }
}

fn fill<T>(slot: &mut Option<T>, address: T, is_stated: bool) {
    if is_stated || slot.is_none() {
        *slot = Some(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::Mac;

    fn client(n: u32) -> Client {
        let [a, b, c, d] = n.to_be_bytes();
        Client { vlan: 0, mac: Mac([2, 0, a, b, c, d]) }
    }

    fn v4(last: u8, is_stated: bool) -> Said {
        let address = Ipv4Addr::new(10, 0, 0, last).into();
        Said { address, is_stated, is_unasked: false, is_router: None }
    }

    fn v6(first: u16, last: u16) -> Said {
        let address = Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last).into();
        Said { address, is_stated: true, is_unasked: false, is_router: None }
    }

    #[test]
    fn what_is_stated_counts_more_than_what_is_concluded() {
        let mut book = AddressBook::default();
        let known = |book: &AddressBook| book.of(client(1)).v4.unwrap().octets()[3];
        book.note(client(1), v4(1, false));
        book.note(client(1), v4(2, false));
        assert_eq!(known(&book), 1);
        book.note(client(1), v4(3, true));
        book.note(client(1), v4(4, false));
        assert_eq!(known(&book), 3);
    }

    #[test]
    fn a_client_has_one_address_for_the_link_and_one_beyond() {
        let mut book = AddressBook::default();
        for said in [v6(0xfe80, 1), v6(0x2001, 2), v6(0x2001, 3), v6(0xfe80, 4)] {
            book.note(client(1), said);
        }
        let last = |slot: Option<Ipv6Addr>| slot.unwrap().segments()[7];
        assert_eq!(book.of(client(1)).v6.map(last), [4, 3]);
    }

    #[test]
    fn the_book_is_bounded_and_loses_who_is_gone() {
        let mut book = AddressBook::default();
        for n in 0..10_000 {
            book.note(client(n), v4(1, true));
        }
        assert_eq!(book.by_client.len(), CLIENTS_MAX);
        book.retain(|known| known == client(5));
        assert_eq!(book.by_client.len(), 1);
        assert_eq!(book.of(client(6)), Addresses::default());
    }
}
