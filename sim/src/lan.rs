//! A learning Ethernet switch: [`Lan`].

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::mac::Mac;
use node_lib::messages::ethernet::Header;
use node_lib::time::Timestamp;

/// One port of a [`Lan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LanPort(pub usize);

/// A switch as it stands behind several RSUs: learns on which port an address was last seen as a
/// sender, sends there what is addressed to it, and anything else to all other ports.
///
/// A RARP broadcast moves an address to another port like any other frame.
#[derive(Clone, Debug, Default)]
pub struct Lan {
    ports: usize,
    table: BTreeMap<Mac, (LanPort, Timestamp)>,
}

/// An address not seen for this long is unknown again (IEEE 802.1Q-2018 §8.8.3, default).
const AGE_MAX: Duration = Duration::from_secs(300);

/// Addresses remembered; above that, new ones are flooded until old ones age.
const TABLE_MAX: usize = 8192;

impl Lan {
    /// A switch without ports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a port.
    pub fn add_port(&mut self) -> LanPort {
        self.ports += 1;
        LanPort(self.ports - 1)
    }

    /// Where a frame that came in on `from` goes out.
    pub fn forward(&mut self, now: Timestamp, from: LanPort, frame: &[u8]) -> Vec<LanPort> {
        let Some((to, source)) = addresses(frame) else { return Vec::new() };
        if source.is_unicast() && (self.table.len() < TABLE_MAX || self.table.contains_key(&source))
        {
            self.table.insert(source, (from, now));
        }
        if to.is_bridge_local() {
            return Vec::new();
        }
        match self.port_of(now, to) {
            Some(port) if port == from => Vec::new(),
            Some(port) => vec![port],
            None => (0..self.ports).map(LanPort).filter(|&port| port != from).collect(),
        }
    }

    /// The port an address was last seen on.
    pub fn port_of(&self, now: Timestamp, address: Mac) -> Option<LanPort> {
        let &(port, seen) = self.table.get(&address)?;
        (address.is_unicast() && now.since(seen) < AGE_MAX).then_some(port)
    }
}

/// Destination and source of an Ethernet frame; `None` if it is too short to be one.
pub(super) fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let (header, _) = Header::read(frame)?;
    Some((header.to, header.from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(n: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, n])
    }

    fn frame(to: Mac, from: Mac) -> Vec<u8> {
        [&to.0[..], &from.0, &[0x08, 0x00], &[0; 46]].concat()
    }

    fn lan() -> (Lan, [LanPort; 3]) {
        let mut lan = Lan::new();
        let ports = [lan.add_port(), lan.add_port(), lan.add_port()];
        (lan, ports)
    }

    #[test]
    fn floods_the_unknown_and_learns_from_the_answer() {
        let (mut lan, [a, b, c]) = lan();
        let now = Timestamp::ZERO;
        assert_eq!(lan.forward(now, a, &frame(mac(2), mac(1))), [b, c]);
        assert_eq!(lan.forward(now, b, &frame(mac(1), mac(2))), [a]);
        assert_eq!(lan.forward(now, a, &frame(mac(2), mac(1))), [b]);
        assert_eq!(lan.forward(now, a, &frame(Mac::BROADCAST, mac(1))), [b, c]);
    }

    #[test]
    fn a_broadcast_from_another_port_moves_the_address() {
        let (mut lan, [a, b, c]) = lan();
        let now = Timestamp::ZERO;
        lan.forward(now, a, &frame(Mac::BROADCAST, mac(1)));
        lan.forward(now, b, &frame(Mac::BROADCAST, mac(1)));
        assert_eq!(lan.forward(now, c, &frame(mac(1), mac(3))), [b]);
    }

    #[test]
    fn forgets_after_five_minutes_and_keeps_what_stays_on_one_link() {
        let (mut lan, [a, b, c]) = lan();
        lan.forward(Timestamp::ZERO, a, &frame(Mac::BROADCAST, mac(1)));
        let later = Timestamp::ZERO + AGE_MAX;
        assert_eq!(lan.forward(later, b, &frame(mac(1), mac(2))), [a, c]);
        let local = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
        assert_eq!(lan.forward(later, b, &frame(local, mac(2))), []);
        assert_eq!(lan.forward(later, b, &[0; 13]), []);
    }
}
