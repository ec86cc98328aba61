//! Who is behind our own TAP.

use std::time::Duration;

use node_lib::control::client_cache::{ClientCache, Learnt, client};
use node_lib::control::inner::Inner;
use node_lib::control::snapshot;
use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, Timestamp};

/// Clients remembered: a vehicle's LAN, three announcements long. Beyond, the longest unused goes.
const CLIENTS_MAX: usize = 512;

/// A client that says nothing is remembered for an hour: a camera or a sign in a vehicle does not
/// move elsewhere, and must stay reachable although it never speaks.
const AGE_MAX: Duration = Duration::from_secs(3600);

/// A client heard on the TAP within this time has not moved: its frame coming from the radio is a
/// reflection (the lock of Open vSwitch after a gratuitous ARP, shortened for moving hosts).
const REFLECTION_FOR: Duration = Duration::from_secs(1);

/// Clients on the TAP side.
#[derive(Clone, Debug)]
pub(crate) struct LocalClients {
    cache: ClientCache<()>,
    tap_mac: Option<Mac>,
}

/// What a frame from the radio says about its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FromRadio {
    /// Not one of ours.
    Stranger,
    /// One of ours that has just spoken here: the frame is its own, coming back.
    Reflection,
    /// One of ours that has moved to the other side; it was forgotten.
    Moved,
}

impl LocalClients {
    pub(crate) fn new(tap_mac: Option<Mac>, seed: u64) -> Self {
        Self { cache: ClientCache::new(CLIENTS_MAX, AGE_MAX, seed), tap_mac }
    }

    /// A client spoke on the TAP. Returns whether the set changed, and how many were evicted for it.
    #[inline]
    pub(crate) fn learn(&mut self, now: Timestamp, inner: Inner) -> (bool, u64) {
        let (learnt, evicted) = self.cache.learn(now, client(inner.vlan, inner.source), ());
        (learnt == Learnt::New, evicted)
    }

    /// The frame is for somebody on the TAP side already.
    #[inline]
    pub(crate) fn is_local(&self, now: Timestamp, inner: Inner) -> bool {
        self.cache.owner(now, client(inner.vlan, inner.destination)).is_some()
    }

    /// A frame with this sender came from the radio.
    #[inline]
    pub(crate) fn hear_from_radio(&mut self, now: Timestamp, inner: Inner) -> FromRadio {
        if Some(inner.source) == self.tap_mac {
            return FromRadio::Reflection;
        }
        let client = client(inner.vlan, inner.source);
        match self.cache.last_heard(client) {
            None => FromRadio::Stranger,
            Some(used) if now.since(used) < REFLECTION_FOR => FromRadio::Reflection,
            Some(_) => {
                self.cache.forget(client);
                FromRadio::Moved
            }
        }
    }

    /// Forgets all, or those with this address. Returns how many.
    pub(crate) fn forget(&mut self, which: Option<Mac>) -> usize {
        let known = self.cache.clients_of(()).into_iter();
        let meant = known.filter(|client| which.is_none_or(|mac| client.mac == mac));
        meant.filter(|client| self.cache.forget(*client)).count()
    }

    /// All there are, by VLAN and address, the TAP itself among them.
    pub(crate) fn view(&self, now: Timestamp) -> Vec<snapshot::Client> {
        let age = |at| snapshot::age_ms(now, at);
        let known = self.cache.iter(now).map(|known| snapshot::Client {
            mac: known.client.mac,
            vlan: known.client.vlan,
            port: snapshot::Port::Tap,
            obu: None,
            age_ms: Some(age(known.used)),
            heard_ms: known.heard.map(age),
            since_ms: Some(age(known.since)),
            is_held: known.is_held,
        });
        let mut clients: Vec<_> = known.collect();
        let is_own =
            |client: &snapshot::Client| (client.vlan, Some(client.mac)) == (0, self.tap_mac);
        if let Some(mac) = self.tap_mac
            && !clients.iter().any(is_own)
        {
            let (port, obu, is_held) = (snapshot::Port::Tap, None, false);
            let (age_ms, heard_ms, since_ms) = (None, None, None);
            clients.push(snapshot::Client {
                mac,
                vlan: 0,
                port,
                obu,
                age_ms,
                heard_ms,
                since_ms,
                is_held,
            });
        }
        clients.sort_unstable_by_key(|client| (client.vlan, client.mac));
        clients
    }

    /// Forgets what is too old; whether anything was.
    pub(crate) fn expire(&mut self, now: Timestamp) -> bool {
        self.cache.expire(now) > 0
    }

    /// The set to announce: everybody on the TAP side, and the TAP itself.
    pub(crate) fn announced(&self) -> Vec<Client> {
        let mut clients = self.cache.clients_of(());
        if let Some(own) = self.tap_mac.map(|mac| client(0, mac))
            && let Err(at) = clients.binary_search(&own)
        {
            clients.insert(at, own);
        }
        clients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMERA: Mac = Mac([2, 0, 0, 0, 0, 7]);
    const TAP: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn from(source: Mac) -> Inner {
        Inner { destination: Mac::BROADCAST, source, vlan: 0, ethertype: 0x0800 }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn the_tap_itself_is_announced_before_anybody_speaks() {
        let mut clients = LocalClients::new(Some(TAP), 1);
        assert_eq!(clients.announced(), [client(0, TAP)]);
        assert_eq!(clients.learn(at(0), from(CAMERA)), (true, 0));
        assert_eq!(clients.learn(at(0), from(CAMERA)), (false, 0));
        assert_eq!(clients.announced(), [client(0, TAP), client(0, CAMERA)]);
    }

    #[test]
    fn a_frame_of_our_own_coming_back_is_told_from_a_client_that_moved() {
        let mut clients = LocalClients::new(None, 1);
        clients.learn(at(10), from(CAMERA));
        assert_eq!(clients.hear_from_radio(at(10), from(CAMERA)), FromRadio::Reflection);
        assert_eq!(clients.hear_from_radio(at(12), from(CAMERA)), FromRadio::Moved);
        assert_eq!(clients.hear_from_radio(at(12), from(CAMERA)), FromRadio::Stranger);
        assert_eq!(clients.announced(), []);
    }

    #[test]
    fn a_client_that_says_nothing_for_an_hour_is_forgotten_and_the_tap_never() {
        let mut clients = LocalClients::new(Some(TAP), 1);
        clients.learn(at(10), from(CAMERA));
        assert!(!clients.expire(at(3600)));
        assert_eq!(clients.announced().len(), 2);
        assert!(clients.expire(at(3700)));
        assert_eq!(clients.announced(), [client(0, TAP)]);
        assert!(!clients.expire(at(3800)), "nothing changes any more");
    }

    #[test]
    fn the_taps_own_frame_coming_back_is_a_reflection_whenever_it_comes() {
        let mut clients = LocalClients::new(Some(TAP), 1);
        assert_eq!(clients.hear_from_radio(at(5000), from(TAP)), FromRadio::Reflection);
        assert_eq!(clients.hear_from_radio(at(5000), from(CAMERA)), FromRadio::Stranger);
    }

    #[test]
    fn a_frame_for_a_client_here_is_local() {
        let mut clients = LocalClients::new(None, 1);
        let to_camera = Inner { destination: CAMERA, ..from(TAP) };
        assert!(!clients.is_local(at(10), to_camera));
        clients.learn(at(10), from(CAMERA));
        assert!(clients.is_local(at(11), to_camera));
        assert!(!clients.is_local(at(11), Inner { vlan: 5, ..to_camera }), "another VLAN");
    }

    #[test]
    fn of_too_many_clients_the_longest_unused_goes_and_is_counted() {
        let mut clients = LocalClients::new(None, 1);
        let nth = |n: usize| Mac([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
        let evicted: u64 =
            (0..CLIENTS_MAX + 10).map(|n| clients.learn(at(n as u64), from(nth(n))).1).sum();
        assert_eq!((evicted, clients.announced().len()), (10, CLIENTS_MAX));
    }
}
