//! Telling the LAN where clients are now, so that its switches move the port without waiting for
//! the client to speak.
//!
//! One reverse-ARP request per client, sent from the client's own MAC, as hypervisors send it after
//! a live migration (RFC 903 format; nobody answers, switches learn from the source address).

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::node::Replies;
use node_lib::messages::control::announcement::Client;

/// EtherType of reverse ARP (RFC 903).
pub(crate) const RARP: u16 = 0x8035;

/// Each client is named this often …
const ROUNDS: u8 = 3;

/// … this far apart, because a switch may just be busy with a topology change.
const ROUND_EVERY: Duration = Duration::from_millis(150);

/// Frames written at once …
const BURST: usize = 16;

/// … and the pause after them: 8,000 clients a second.
const PAUSE: Duration = Duration::from_millis(2);

/// Announcements waiting. Beyond, new ones are dropped: they come from forged client sets only.
const WAITING_MAX: usize = 4 * 8192;

/// Announcements to the LAN under way, by due time.
#[derive(Debug, Default)]
pub(crate) struct WiredAnnouncements {
    waiting: BTreeMap<(Timestamp, Client), u8>,
    not_before: Timestamp,
}

impl WiredAnnouncements {
    /// The client is behind this RSU from now on.
    pub(crate) fn add(&mut self, now: Timestamp, client: Client) -> bool {
        let has_room = self.waiting.len() < WAITING_MAX;
        if has_room {
            self.waiting.insert((now, client), ROUNDS);
        }
        has_room
    }

    /// Writes what is due, for clients that are still here.
    pub(crate) fn drive(
        &mut self,
        now: Timestamp,
        is_here: impl Fn(Client) -> bool,
        out: &mut Replies,
    ) {
        if now < self.not_before {
            return;
        }
        for _ in 0..BURST {
            let Some(((_, client), rounds)) = self
                .waiting
                .first_key_value()
                .filter(|((due, _), _)| *due <= now)
                .map(|(k, v)| (*k, *v))
            else {
                return;
            };
            self.waiting.pop_first();
            if !is_here(client) {
                continue;
            }
            out.tap(|flat| write_rarp(client, flat));
            if rounds > 1 {
                self.waiting.insert((now + ROUND_EVERY, client), rounds - 1);
            }
        }
        self.not_before = now + PAUSE;
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let ((due, _), _) = self.waiting.first_key_value()?;
        Some((*due).max(self.not_before))
    }
}

/// Shortest Ethernet frame without its check sequence (IEEE 802.3 §3.2.7).
const MIN_FRAME: usize = 60;

fn write_rarp(client: Client, frame: &mut Vec<u8>) {
    let mac = client.mac.0;
    frame.extend_from_slice(&[0xff; 6]);
    frame.extend_from_slice(&mac);
    if client.vlan != 0 {
        frame.extend_from_slice(&0x8100u16.to_be_bytes());
        frame.extend_from_slice(&client.vlan.to_be_bytes());
    }
    frame.extend_from_slice(&RARP.to_be_bytes());
    // Ethernet, IPv4, their address lengths, operation 3 = request reverse.
    frame.extend_from_slice(&[0, 1, 0x08, 0, 6, 4, 0, 3]);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&[0; 4]);
    frame.resize(frame.len().max(MIN_FRAME), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::Mac;
    use node_lib::control::inner::Inner;
    use node_lib::control::node::ReplyType;

    fn client(n: u8, vlan: u16) -> Client {
        Client { vlan, mac: Mac([2, 0, 0, 0, 0, n]) }
    }

    fn drive(wired: &mut WiredAnnouncements, ms: u64) -> Vec<Inner> {
        let mut out = Replies::new();
        wired.drive(Timestamp::from_millis(ms), |client| client.mac.0[5] != 99, &mut out);
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
        wired.add(Timestamp::ZERO, client(1, 0));
        wired.add(Timestamp::ZERO, client(2, 7));
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
    fn a_client_that_left_meanwhile_is_not_named() {
        let mut wired = WiredAnnouncements::default();
        wired.add(Timestamp::ZERO, client(99, 0));
        assert_eq!(drive(&mut wired, 0), []);
        assert_eq!(wired.deadline(), None);
    }

    #[test]
    fn many_clients_are_paced() {
        let mut wired = WiredAnnouncements::default();
        for n in 0..40 {
            wired.add(Timestamp::ZERO, client(n, 0));
        }
        assert_eq!(drive(&mut wired, 0).len(), BURST);
        assert_eq!(drive(&mut wired, 1).len(), 0);
        assert_eq!(drive(&mut wired, 2).len(), BURST);
        assert_eq!(drive(&mut wired, 4).len(), 8);
    }
}
