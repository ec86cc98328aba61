//! Who is behind our own TAP.

use std::time::Duration;

use node_lib::control::client_cache::{ClientCache, Learnt, Lesson, client};
use node_lib::control::inner::Inner;
use node_lib::control::snapshot;
use node_lib::messages::control::announcement::Client;
use node_lib::start::clients::{AGE_MAX, CLIENTS_MAX, Remembered};
use node_lib::{Mac, Timestamp};

/// A client heard on the TAP within this time has not moved: its frame coming from the radio is a
/// reflection (the lock of Open vSwitch after a gratuitous ARP, shortened for moving hosts).
const REFLECTION_FOR: Duration = Duration::from_secs(1);

/// A client may have been heard so much later than was noted of it ([`ClientCache::last_heard`]).
const NOTED_WITHIN: Duration = Duration::from_secs(1);

/// Clients on the TAP side.
#[derive(Clone, Debug)]
pub(crate) struct LocalClients {
    /// Its times are [`known`] ones.
    cache: ClientCache<()>,
    tap_mac: Option<Mac>,
}

/// The cache's time begins an hour before that of the node: so there is a time for what was heard
/// before the start, for as long as it counts.
#[inline]
fn known(now: Timestamp) -> Timestamp {
    now + AGE_MAX
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

/// What a client that was heard, or told of, has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The set has one more.
    pub(crate) is_news: bool,
    /// So many were evicted for it.
    pub(crate) evicted: u64,
}

impl From<Lesson<()>> for Noted {
    fn from(lesson: Lesson<()>) -> Self {
        Self { is_news: lesson.learnt == Learnt::New, evicted: lesson.evicted }
    }
}

impl LocalClients {
    pub(crate) fn new(tap_mac: Option<Mac>, seed: u64) -> Self {
        Self { cache: ClientCache::new(CLIENTS_MAX, AGE_MAX, seed), tap_mac }
    }

    /// A client spoke on the TAP.
    #[inline]
    pub(crate) fn learn(&mut self, now: Timestamp, inner: Inner) -> Noted {
        self.cache.learn(known(now), client(inner.vlan, inner.source), ()).into()
    }

    /// Somebody says that a client is here and was last heard so long ago.
    pub(crate) fn remember(&mut self, now: Timestamp, remembered: Remembered) -> Noted {
        let Remembered { client, silent_for } = remembered;
        if !client.mac.is_unicast() || self.is_tap(client) || silent_for >= AGE_MAX {
            return Noted::default();
        }
        let heard = known(now).before(silent_for);
        if self.cache.last_heard(client).is_some_and(|since| since >= heard) {
            return Noted::default();
        }
        self.cache.learn(heard, client, ()).into()
    }

    /// The TAP itself, which is announced without having spoken. In a VLAN it is a client like any
    /// other.
    fn is_tap(&self, known: Client) -> bool {
        self.tap_mac.is_some_and(|mac| known == client(0, mac))
    }

    /// All of them, but for the TAP itself, which is there at every start.
    pub(crate) fn remembered(&self, now: Timestamp) -> Vec<Remembered> {
        let clients = self.cache.clients_of(()).into_iter();
        let heard = |client| self.cache.last_heard(client).unwrap_or(Timestamp::ZERO);
        let silent_for = |client| known(now).since(heard(client));
        clients
            .filter(|client| !self.is_tap(*client))
            .map(|client| Remembered { client, silent_for: silent_for(client) })
            .filter(|remembered| remembered.silent_for < AGE_MAX)
            .collect()
    }

    /// The frame is for somebody on the TAP side already.
    #[inline]
    pub(crate) fn is_local(&self, now: Timestamp, inner: Inner) -> bool {
        self.cache.owner(known(now), client(inner.vlan, inner.destination)).is_some()
    }

    /// This client is behind the TAP, in whatever VLAN, or is the TAP.
    pub(crate) fn has(&self, now: Timestamp, mac: Mac) -> bool {
        Some(mac) == self.tap_mac || self.cache.iter(known(now)).any(|one| one.client.mac == mac)
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
            Some(noted) if known(now).since(noted) < REFLECTION_FOR + NOTED_WITHIN => {
                FromRadio::Reflection
            }
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
    pub(crate) fn view(&self, now: Timestamp) -> Vec<snapshot::KnownClient> {
        let now = known(now);
        let age = |at| snapshot::age_ms(now, at);
        let known = self.cache.iter(now).map(|known| snapshot::KnownClient {
            mac: known.client.mac,
            vlan: known.client.vlan,
            port: snapshot::ClientPort::Tap,
            obu: None,
            age_ms: Some(age(known.used)),
            heard_ms: known.heard.map(age),
            since_ms: Some(age(known.since)),
            is_held: known.is_held,
            pinned: None,
        });
        let mut clients: Vec<_> = known.collect();
        let is_own =
            |client: &snapshot::KnownClient| (client.vlan, Some(client.mac)) == (0, self.tap_mac);
        if let Some(mac) = self.tap_mac
            && !clients.iter().any(is_own)
        {
            let (port, obu, is_held) = (snapshot::ClientPort::Tap, None, false);
            let (age_ms, heard_ms, since_ms) = (None, None, None);
            clients.push(snapshot::KnownClient {
                mac,
                vlan: 0,
                port,
                obu,
                age_ms,
                heard_ms,
                since_ms,
                is_held,
                pinned: None,
            });
        }
        clients.sort_unstable_by_key(|client| (client.vlan, client.mac));
        clients
    }

    /// Forgets what is too old; whether anything was.
    pub(crate) fn expire(&mut self, now: Timestamp) -> bool {
        self.cache.expire(known(now)) > 0
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

    const NEWS: Noted = Noted { is_news: true, evicted: 0 };

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
        assert_eq!(clients.learn(at(0), from(CAMERA)), NEWS);
        assert_eq!(clients.learn(at(0), from(CAMERA)), Noted::default());
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
    fn a_client_that_goes_on_speaking_has_not_moved_whenever_its_frame_comes_back() {
        let mut clients = LocalClients::new(None, 1);
        let at = Timestamp::from_millis;
        for ms in [0, 500, 990] {
            clients.learn(at(ms), from(CAMERA));
        }
        assert_eq!(clients.hear_from_radio(at(1010), from(CAMERA)), FromRadio::Reflection);
        assert_eq!(clients.announced(), [client(0, CAMERA)]);
    }

    #[test]
    fn an_interface_of_the_tap_in_a_vlan_is_remembered_as_any_client() {
        let mut clients = LocalClients::new(Some(TAP), 1);
        clients.learn(at(1), Inner { vlan: 5, ..from(TAP) });
        let noted = clients.remembered(at(1));
        let mut again = LocalClients::new(Some(TAP), 1);
        for client in noted {
            assert_eq!(again.remember(at(0), client), NEWS);
        }
        assert_eq!(again.announced(), [client(0, TAP), client(5, TAP)]);
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
    fn who_looks_inside_sees_how_long_a_client_has_been_silent() {
        let mut clients = LocalClients::new(None, 1);
        clients.learn(at(10), from(CAMERA));
        clients.learn(at(15), from(CAMERA));
        let [seen] = clients.view(at(40)).try_into().unwrap();
        assert_eq!((seen.age_ms, seen.heard_ms), (Some(25_000), Some(25_000)));
        assert_eq!(seen.since_ms, Some(30_000));
        assert!(clients.view(at(3615)).is_empty(), "forgotten");
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

    fn camera(silent_secs: u64) -> Remembered {
        Remembered { client: client(0, CAMERA), silent_for: Duration::from_secs(silent_secs) }
    }

    #[test]
    fn a_client_of_an_earlier_start_is_announced_for_what_is_left_of_its_hour() {
        let mut clients = LocalClients::new(Some(TAP), 1);
        assert_eq!(clients.remember(at(0), camera(3000)), NEWS);
        assert_eq!(clients.remember(at(0), camera(3000)), Noted::default());
        assert_eq!(clients.announced(), [client(0, TAP), client(0, CAMERA)]);
        assert_eq!(clients.remembered(at(10)), [camera(3010)]);
        assert!(!clients.expire(at(599)));
        assert!(clients.expire(at(600)));
        assert_eq!(clients.announced(), [client(0, TAP)]);
        assert_eq!(clients.remember(at(0), camera(3600)), Noted::default(), "too old");
    }

    #[test]
    fn what_is_said_of_a_client_does_not_outweigh_what_it_said_itself() {
        let mut clients = LocalClients::new(None, 1);
        clients.learn(at(100), from(CAMERA));
        assert_eq!(clients.remember(at(100), camera(50)), Noted::default());
        assert_eq!(clients.remembered(at(100)), [camera(0)]);
        // A bridge hears also what it does not send us.
        assert_eq!(clients.remember(at(200), camera(10)), Noted::default());
        assert_eq!(clients.remembered(at(200)), [camera(10)]);
    }

    #[test]
    fn a_remembered_client_that_is_heard_on_the_radio_has_moved() {
        let mut clients = LocalClients::new(None, 1);
        clients.remember(at(0), camera(20));
        assert_eq!(clients.hear_from_radio(at(0), from(CAMERA)), FromRadio::Moved);
        assert_eq!(clients.announced(), []);
        // One that spoke just before the restart: its frame is still under way.
        clients.remember(at(0), camera(0));
        assert_eq!(clients.hear_from_radio(at(0), from(CAMERA)), FromRadio::Reflection);
        assert_eq!(clients.hear_from_radio(at(2), from(CAMERA)), FromRadio::Moved);
    }

    #[test]
    fn neither_groups_nor_the_tap_are_remembered() {
        let mut clients = LocalClients::new(Some(TAP), 1);
        for mac in [TAP, Mac::BROADCAST, Mac::ZERO, Mac([1, 0, 0x5e, 0, 0, 1])] {
            let remembered = Remembered { client: client(0, mac), ..camera(1) };
            assert_eq!(clients.remember(at(0), remembered), Noted::default(), "{mac}");
        }
        clients.learn(at(1), from(TAP));
        assert_eq!(clients.remembered(at(1)), []);
    }

    #[test]
    fn of_too_many_clients_the_longest_unused_goes_and_is_counted() {
        let mut clients = LocalClients::new(None, 1);
        let nth = |n: usize| Mac([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
        let evicted: u64 =
            (0..CLIENTS_MAX + 10).map(|n| clients.learn(at(n as u64), from(nth(n))).evicted).sum();
        assert_eq!((evicted, clients.announced().len()), (10, CLIENTS_MAX));
    }
}
