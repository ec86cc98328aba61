//! Our client set as frames that are ready to be sent: built when the set changes, patched when
//! needed. Announcing, repeating and noting what is acknowledged allocate nothing.

use node_lib::Order;
use node_lib::control::node::Replies;
use node_lib::control::radio::Radio;
use node_lib::messages::Kind;
use node_lib::messages::control::announcement::ready::{PartOf, Patch, ReadyAnnouncement};
use node_lib::messages::control::announcement::{self, Client, Clients, client_digest};

use super::context::Context;
use super::towards::{Standing, Towards};

/// Parts a set can have: a set for a radio too small for it is announced as far as this goes.
const PARTS_MAX: usize = u8::MAX as usize;

/// The announcement of one client set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announcements {
    /// The first `parts` are in use; the rest is memory for larger sets.
    frames: Vec<ReadyAnnouncement>,
    parts: u8,
    digest: u32,
    clients: usize,
    mtu: u16,
}

/// To whom an announcement goes, and what it says beside the set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heading {
    pub(crate) towards: Towards,
    pub(crate) epoch: u32,
    pub(crate) within_ds: u16,
}

/// Which parts of an announcement have been acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    bits: [u64; 4],
}

impl Announcements {
    /// The set is now this. `mtu`: the longest packet that passes all radios on the way to those
    /// who are told, in bytes.
    pub(crate) fn rebuild(&mut self, radio: &Radio, mtu: u16, sorted: &[Client]) {
        self.mtu = mtu;
        self.digest = client_digest(sorted);
        self.clients = sorted.len();
        let room = usize::from(mtu).saturating_sub(announcement::HEADER_LEN);
        let parts = split(sorted, room).take(PARTS_MAX);
        self.parts = u8::try_from(parts.clone().count()).unwrap_or(u8::MAX);
        self.frames.resize_with(self.frames.len().max(usize::from(self.parts)), Default::default);
        let of = PartOf {
            ethertype: radio.ethertype,
            origin: radio.id,
            mtu: radio.said_mtu(),
            digest: self.digest,
            part: 0,
            parts: self.parts,
        };
        for (part, (clients, frame)) in (0..).zip(parts.zip(&mut self.frames)) {
            frame.rebuild(PartOf { part, ..of }, clients);
        }
    }

    /// What it was last [rebuilt](Self::rebuild) for.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Of the set; see [`client_digest`].
    pub(crate) fn digest(&self) -> u32 {
        self.digest
    }

    /// Clients in the set.
    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// Sends the parts that are not acknowledged. Each has an order of its own, the next after
    /// `last`.
    pub(crate) fn send(
        &mut self,
        context: &mut Context,
        heading: Heading,
        acked: &Acked,
        last: &mut Order,
        out: &mut Replies,
    ) {
        let Heading { towards, epoch, within_ds } = heading;
        let Towards { rsu, upstream, via, standing, at_risk_10ms, .. } = towards;
        let standby = standing != Standing::Attached;
        for (part, frame) in (0..self.parts).zip(&mut self.frames) {
            if acked.has(part) {
                continue;
            }
            *last = last.next();
            let from = context.radio.mac;
            let patch = Patch {
                to: upstream,
                from,
                rsu,
                order: *last,
                epoch,
                via,
                within_ds,
                at_risk_10ms,
                standby,
            };
            let copy = |flat: &mut Vec<u8>| flat.extend_from_slice(frame.patch(&patch));
            context.radio.ready(Kind::Announcement, out, &mut context.counters, copy);
        }
    }

    /// All parts are acknowledged.
    pub(crate) fn is_complete(&self, acked: &Acked) -> bool {
        (0..self.parts).all(|part| acked.has(part))
    }
}

impl Acked {
    pub(crate) fn note(&mut self, part: u8) {
        if let Some(word) = self.bits.get_mut(usize::from(part / 64)) {
            *word |= 1 << (part % 64);
        }
    }

    fn has(&self, part: u8) -> bool {
        self.bits.get(usize::from(part / 64)).is_some_and(|word| word >> (part % 64) & 1 == 1)
    }
}

/// As few parts as fit; an empty set is one empty part.
fn split(sorted: &[Client], room: usize) -> impl Iterator<Item = &[Client]> + Clone {
    let mut rest = Some(sorted);
    std::iter::from_fn(move || {
        let all = rest?;
        let (part, after) = all.split_at(Clients::fitting(all, room).min(all.len()));
        // A radio too small for a single client ends this as well.
        rest = Some(after).filter(|after| !after.is_empty() && after.len() < all.len());
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::messages::ETHERTYPE_DEFAULT;
    use node_lib::{Boot, Mac};

    fn clients(count: u16, vlan: impl Fn(u16) -> u16) -> Vec<Client> {
        let mut clients: Vec<_> = (0..count)
            .map(|n| {
                let [high, low] = n.to_be_bytes();
                Client { vlan: vlan(n), mac: Mac([2, 0, 0, 0, high, low]) }
            })
            .collect();
        clients.sort_unstable();
        clients
    }

    fn parts(set: &[Client], mtu: usize) -> u8 {
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let ethertype = ETHERTYPE_DEFAULT;
        let radio = Radio::new(mac.into(), Boot(1), mac, ethertype, mtu);
        let mut announcements = Announcements::default();
        announcements.rebuild(&radio, radio.said_mtu(), set);
        assert_eq!(announcements.frames.len(), usize::from(announcements.parts));
        announcements.parts
    }

    #[test]
    fn two_hundred_and_thirty_clients_fit_one_frame() {
        assert_eq!(parts(&clients(230, |_| 0), 1500), 1);
        assert_eq!(parts(&clients(231, |_| 0), 1500), 2);
        assert_eq!(parts(&[], 1500), 1);
        assert_eq!(parts(&clients(5, |_| 0), 10), 1, "no client fits");
    }

    #[test]
    fn no_part_is_larger_than_the_radio_carries_and_none_is_lost() {
        for mtu in [100, 576, 1500] {
            let all = clients(400, |n| n % 50);
            let room = mtu - announcement::HEADER_LEN;
            let parts: Vec<_> = split(&all, room).collect();
            assert!(parts.iter().all(|part| Clients::encoded_len(part) <= room));
            assert_eq!(parts.concat(), all);
        }
    }

    #[test]
    fn each_part_is_acknowledged_for_itself() {
        let mut acked = Acked::default();
        let announcements = Announcements { parts: 200, ..Announcements::default() };
        for part in (0..200).rev() {
            assert!(!acked.has(part) && !announcements.is_complete(&acked));
            acked.note(part);
            acked.note(part);
        }
        assert!(announcements.is_complete(&acked) && !acked.has(200));
    }
}
