//! Telling the LAN where clients are now, so that its switches move the port without waiting for
//! the client to speak.
//!
//! As hypervisors do after a live migration, the RSU sends from the client's own MAC. One
//! reverse-ARP request is for switches, which learn from it. As far as the client's addresses are
//! known, it sends an ARP announcement and unsolicited neighbour advertisements. They are for those
//! who look at addresses: routers, switches that answer ARP for others, and vehicles behind other
//! RSUs.

pub(crate) mod rarp;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::address_announcement::AddressAnnouncement;
use node_lib::control::deadline::Deadline;
use node_lib::control::node::Replies;
use node_lib::control::token_bucket::TokenBucket;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::ethernet::Tag;

use super::addresses::{AddressBook, Addresses};
use super::clients::CLIENTS_MAX;
use rarp::Whereabouts;

/// Each client is named this often …
const ROUNDS: u8 = 3;

/// … this far apart, because a switch may just be busy with a topology change.
const ROUND_EVERY: Duration = Duration::from_millis(150);

/// Clients named at once, in one to four frames each …
const BURST: usize = 16;

/// … and the pause after them: 8,000 clients a second.
const PAUSE: Duration = Duration::from_millis(2);

/// So many clients are named at once, in all rounds together, and one every millisecond after that.
const NAMES: TokenBucket = TokenBucket::new(NAMES_BURST, Duration::from_millis(1));

/// See [`NAMES`]: all clients of five vehicles with as many as an announcement names.
const NAMES_BURST: u32 = 1024;

/// Later rounds take no more than so much of it: when there are too many, each is named once.
const NAMES_KEPT: u32 = NAMES_BURST / 4;

/// What is due when a client has yet to be named.
pub(crate) const DUE: &str = "name clients to the LAN";

/// Announcements to the LAN under way, by due time.
#[derive(Clone, Debug)]
pub(crate) struct WiredAnnouncements {
    waiting: BTreeMap<(Timestamp, Client), u8>,
    not_before: Timestamp,
    names: TokenBucket,
    /// Further rounds that were left out for clients that came since.
    left_out: u64,
}

impl Default for WiredAnnouncements {
    fn default() -> Self {
        let not_before = Timestamp::ZERO;
        Self { waiting: BTreeMap::new(), not_before, names: NAMES, left_out: 0 }
    }
}

impl WiredAnnouncements {
    /// The client is behind this RSU from now on. Returns whether it finds a place to wait in: if
    /// there is none, that of a further round of another, of which the last is due last.
    #[must_use]
    pub(crate) fn add(&mut self, now: Timestamp, client: Client) -> bool {
        // There are so many in forged client sets only: further rounds are left out, and then new
        // clients.
        if self.waiting.len() >= CLIENTS_MAX {
            let last = self.waiting.last_entry().filter(|last| *last.get() < ROUNDS);
            let Some(last) = last else { return false };
            last.remove();
            self.left_out += 1;
        }
        self.waiting.insert((now, client), ROUNDS);
        true
    }

    /// Writes what is due, for clients that are still here. Returns how often a client was left
    /// out.
    pub(crate) fn drive(
        &mut self,
        now: Timestamp,
        whereabouts: impl Fn(Client) -> Option<Whereabouts>,
        addresses: &AddressBook,
        out: &mut Replies,
    ) -> u64 {
        let left_out = std::mem::take(&mut self.left_out);
        if now < self.not_before {
            return left_out;
        }
        left_out + self.name_due(now, whereabouts, addresses, out)
    }

    fn name_due(
        &mut self,
        now: Timestamp,
        whereabouts: impl Fn(Client) -> Option<Whereabouts>,
        addresses: &AddressBook,
        out: &mut Replies,
    ) -> u64 {
        let mut left_out = 0;
        for _ in 0..BURST {
            let Some(((_, client), rounds)) = self
                .waiting
                .first_key_value()
                .filter(|((due, _), _)| *due <= now)
                .map(|(k, v)| (*k, *v))
            else {
                return left_out;
            };
            let Some(whereabouts) = whereabouts(client) else {
                self.waiting.pop_first();
                continue;
            };
            let kept = if rounds == ROUNDS { 0 } else { NAMES_KEPT };
            if !self.names.take_above(now, kept) {
                if rounds == ROUNDS {
                    // Once each must be named: it waits.
                    break;
                }
                self.waiting.pop_first();
                left_out += 1;
                continue;
            }
            self.waiting.pop_first();
            name(client, whereabouts, addresses, out);
            if rounds > 1 {
                self.waiting.insert((now + ROUND_EVERY, client), rounds - 1);
            }
        }
        self.not_before = now + PAUSE;
        left_out
    }

    /// When [`WiredAnnouncements::drive`] next has something to do.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let ((due, _), _) = self.waiting.first_key_value()?;
        Some(Deadline::new(*due, DUE).not_before(self.not_before))
    }
}

fn name(client: Client, whereabouts: Whereabouts, addresses: &AddressBook, out: &mut Replies) {
    let (mac, tag) = (client.mac, (client.vlan != 0).then_some(Tag(client.vlan)));
    out.tap(|flat| rarp::write(mac, tag, whereabouts, flat));
    let Addresses { v4, v6, is_router } = addresses.of(client);
    let v6 = v6.into_iter().flatten().map(IpAddr::V6);
    for address in v4.map(IpAddr::V4).into_iter().chain(v6) {
        let announcement = AddressAnnouncement { mac, tag, address, is_router };
        out.tap(|flat| announcement.emit(flat));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::addresses::snooping::Said;
    use super::*;
    use node_lib::control::inner::Inner;
    use node_lib::control::node::ReplyType;
    use node_lib::{Boot, Mac, NodeId};

    const WHEREABOUTS: Whereabouts =
        Whereabouts { obu: NodeId([2, 0, 0, 0, 0, 9]), boot: Boot(1), epoch: 1 };

    /// Bytes from hexadecimal text, blanks ignored.
    pub(crate) fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let (pairs, rest) = digits.as_chunks::<2>();
        assert!(rest.is_empty(), "{text}");
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        pairs.iter().map(|pair| byte(pair).unwrap()).collect()
    }

    fn client(n: u8, vlan: u16) -> Client {
        Client { vlan, mac: Mac([2, 0, 0, 0, 0, n]) }
    }

    fn drive(wired: &mut WiredAnnouncements, ms: u64) -> Vec<Inner> {
        drive_with(wired, ms, &AddressBook::default())
    }

    fn drive_with(wired: &mut WiredAnnouncements, ms: u64, book: &AddressBook) -> Vec<Inner> {
        let mut out = Replies::new();
        let whereabouts = |client: Client| (client.mac.0[5] != 99).then_some(WHEREABOUTS);
        wired.drive(Timestamp::from_millis(ms), whereabouts, book, &mut out);
        let frames = out.take().into_iter();
        frames
            .map(|reply| match reply {
                ReplyType::TapFlat(frame) => Inner::parse(&frame).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn each_client_is_named_three_times_in_its_vlan() {
        let mut wired = WiredAnnouncements::default();
        assert!(wired.add(Timestamp::ZERO, client(1, 0)));
        assert!(wired.add(Timestamp::ZERO, client(2, 7)));
        for ms in [0, 150, 300] {
            let sent = drive(&mut wired, ms);
            let expect = [(client(1, 0), 0), (client(2, 7), 7)];
            let sent: Vec<_> =
                sent.iter().map(|i| (Client { vlan: i.vlan, mac: i.source }, i.vlan)).collect();
            assert_eq!(sent, expect, "{ms}");
        }
        assert_eq!(wired.deadline(), None);
    }

    #[test]
    fn addresses_that_are_known_are_named_as_well() {
        let mut wired = WiredAnnouncements::default();
        let mut book = AddressBook::default();
        let v6 = |first: u16| IpAddr::V6([first, 0, 0, 0, 0, 0, 0, 1].into());
        for address in [IpAddr::V4([10, 0, 0, 1].into()), v6(0xfe80), v6(0x2001)] {
            book.note(
                client(1, 7),
                Said { address, is_stated: true, is_unasked: false, is_router: None },
            );
        }
        assert!(wired.add(Timestamp::ZERO, client(1, 7)));
        for ms in [0, 150, 300] {
            let sent = drive_with(&mut wired, ms, &book);
            let ethertypes: Vec<_> = sent.iter().map(|inner| inner.ethertype).collect();
            assert_eq!(ethertypes, [0x8035, 0x0806, 0x86dd, 0x86dd], "{ms}");
            assert!(sent.iter().all(|inner| (inner.vlan, inner.source) == (7, client(1, 7).mac)));
        }
        assert_eq!(wired.deadline(), None);
    }

    #[test]
    fn a_client_that_left_meanwhile_is_not_named() {
        let mut wired = WiredAnnouncements::default();
        assert!(wired.add(Timestamp::ZERO, client(99, 0)));
        assert_eq!(drive(&mut wired, 0), []);
        assert_eq!(wired.deadline(), None);
    }

    #[test]
    fn of_very_many_each_is_named_once_and_the_rest_is_counted() {
        let mut wired = WiredAnnouncements::default();
        let client = |n: u32| {
            let [_, _, high, low] = n.to_be_bytes();
            Client { vlan: 0, mac: Mac([2, 0, 0, high, low, 1]) }
        };
        let add = |n: &u32| wired.add(Timestamp::from_millis(u64::from(*n) / 1000), client(*n));
        let mut left_out = 20_000 - (0..20_000).filter(add).count() as u64;
        assert_eq!(wired.waiting.len(), CLIENTS_MAX);
        let mut frames = 0;
        for ms in 20..20_000 {
            let mut out = Replies::new();
            let at = Timestamp::from_millis(ms);
            let book = AddressBook::default();
            left_out += wired.drive(at, |_| Some(WHEREABOUTS), &book, &mut out);
            frames += out.as_slice().len() as u64;
            assert!(frames <= 1024 + ms, "{frames} frames in {ms} ms");
        }
        assert_eq!(wired.deadline(), None);
        assert!(frames >= CLIENTS_MAX as u64, "{frames}");
        assert!(left_out >= 20_000 - CLIENTS_MAX as u64, "{left_out}");
    }

    #[test]
    fn many_clients_are_paced() {
        let mut wired = WiredAnnouncements::default();
        for n in 0..40 {
            assert!(wired.add(Timestamp::ZERO, client(n, 0)));
        }
        assert_eq!(drive(&mut wired, 0).len(), BURST);
        assert_eq!(drive(&mut wired, 1).len(), 0);
        assert_eq!(drive(&mut wired, 2).len(), BURST);
        assert_eq!(drive(&mut wired, 4).len(), 8);
    }

    #[test]
    fn of_too_many_each_is_named_once_and_what_is_left_out_is_counted() {
        const CLIENTS: usize = 3000;
        let mut wired = WiredAnnouncements::default();
        for n in 0..CLIENTS {
            let mac = Mac([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
            assert!(wired.add(Timestamp::ZERO, Client { vlan: 0, mac }));
        }
        let (mut named, mut left_out) = (Vec::new(), 0);
        for ms in 0..5000 {
            let mut out = Replies::new();
            let now = Timestamp::from_millis(ms);
            let book = AddressBook::default();
            left_out += wired.drive(now, |_| Some(WHEREABOUTS), &book, &mut out);
            named.extend(out.take().into_iter().map(|reply| match reply {
                ReplyType::TapFlat(frame) => Inner::parse(&frame).unwrap().source,
                other => panic!("{other:?}"),
            }));
        }
        named.sort_unstable();
        let often: Vec<usize> = named.chunk_by(|one, other| one == other).map(<[_]>::len).collect();
        assert_eq!(often.len(), CLIENTS, "each at least once");
        let seldom = often.iter().filter(|times| **times < usize::from(ROUNDS)).count();
        assert!(seldom > 0);
        assert_eq!(left_out, seldom as u64);
    }
}
