//! The announcement as a whole frame that is ready before it is needed: [`ReadyAnnouncement`].
//!
//! When the upstream is lost every client is cut off, and the announcement is what ends that. So it
//! is built when the client set changes, which is rare and not urgent. When it is needed only what
//! differs is written: the two addresses, RSU, order, epoch, upstream, next word, what is
//! at risk and flags, 40 bytes for 230 clients.

use super::{Announcement, Client, Clients, Wire};
use crate::mac::{Mac, NodeId};
use crate::messages::flags::{STANDBY, flag};
use crate::messages::prefix::length;
use crate::messages::{ETHERNET_HEADER_LEN, Message};
use crate::order::Order;
use std::mem::offset_of;

/// One part of a client set, as a frame but for what [`Patch`] holds.
#[derive(Clone, Debug, Default)]
pub struct ReadyAnnouncement {
    frame: Vec<u8>,
}

/// Of which OBU's set a [`ReadyAnnouncement`] is a part, and which.
#[derive(Clone, Copy, Debug)]
pub struct PartOf {
    /// EtherType of our frames.
    pub ethertype: u16,
    /// The OBU.
    pub origin: NodeId,
    /// The longest packet of its own radio, in bytes.
    pub mtu: u16,
    /// Of the whole set.
    pub digest: u32,
    /// Which part, counted from 0.
    pub part: u8,
    /// How many make the set.
    pub parts: u8,
}

/// What differs from one sending to the next.
#[derive(Clone, Copy, Debug)]
pub struct Patch {
    /// The upstream.
    pub to: Mac,
    /// Our radio.
    pub from: Mac,
    /// For whom.
    pub rsu: NodeId,
    /// Boot count and sequence of the OBU.
    pub order: Order,
    /// Of its attachment.
    pub epoch: u32,
    /// Its upstream.
    pub via: NodeId,
    /// Its next word comes within this, in 0.1 s.
    pub within_ds: u16,
    /// What the RSU sent this way within this, in 10 ms, may not have arrived.
    pub at_risk_10ms: u8,
    /// The OBU is attached elsewhere and may come.
    pub standby: bool,
}

/// Where a field of the message stands in the frame.
const fn at(offset: usize) -> usize {
    ETHERNET_HEADER_LEN + offset
}

impl ReadyAnnouncement {
    /// Builds the frame anew, in the memory it has. `sorted` fits one message.
    pub fn rebuild(&mut self, of: PartOf, sorted: &[Client]) {
        let PartOf { ethertype, origin, mtu, digest, part, parts } = of;
        let empty = Announcement {
            rsu: NodeId::NONE,
            origin,
            order: Order::default(),
            epoch: 0,
            via: NodeId::NONE,
            digest,
            part,
            parts,
            within_ds: 1,
            mtu,
            at_risk_10ms: 0,
            hops: 0,
            standby: false,
            clients: Clients::EMPTY,
        };
        let (to, from) = (Mac::ZERO, Mac::ZERO);
        self.frame.clear();
        Message { to, from, ethertype, packet: empty.into() }.emit(&mut self.frame);
        Clients::encode(sorted, &mut self.frame);
        let len = self.frame.len().saturating_sub(ETHERNET_HEADER_LEN);
        put(&mut self.frame, at(offset_of!(Wire, length)), length(len));
    }

    /// The frame, ready to be sent.
    pub fn patch(&mut self, patch: &Patch) -> &[u8] {
        let Patch { to, from, rsu, order, epoch, via, within_ds, at_risk_10ms, standby } = *patch;
        let frame = &mut self.frame;
        put(frame, 0, to.0);
        put(frame, Mac::LEN, from.0);
        put(frame, at(offset_of!(Wire, flags)), [flag(standby, STANDBY)]);
        put(frame, at(offset_of!(Wire, rsu)), rsu.0);
        put(frame, at(offset_of!(Wire, boot)), order.boot.0.to_be_bytes());
        put(frame, at(offset_of!(Wire, seq)), order.seq.0.to_be_bytes());
        put(frame, at(offset_of!(Wire, epoch)), epoch.to_be_bytes());
        put(frame, at(offset_of!(Wire, via)), via.0);
        put(frame, at(offset_of!(Wire, within_ds)), within_ds.to_be_bytes());
        put(frame, at(offset_of!(Wire, at_risk_10ms)), [at_risk_10ms]);
        frame
    }
}

/// Appends the frame in which this announcement was heard as a relay sends it on: to the next, from
/// us, one hop further. Padding stays behind.
pub fn relay(
    heard: &[u8],
    announcement: &Announcement<'_>,
    (to, from): (Mac, Mac),
    hops: u8,
    out: &mut Vec<u8>,
) {
    let len = ETHERNET_HEADER_LEN + announcement.wire_len();
    let start = out.len();
    out.extend_from_slice(heard.get(..len).unwrap_or(heard));
    let frame = out.get_mut(start..).unwrap_or_default();
    put(frame, 0, to.0);
    put(frame, Mac::LEN, from.0);
    put(frame, at(offset_of!(Wire, hops)), [hops]);
}

fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(field) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
        *field = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_CLIENTS, client_digest};
    use super::*;
    use crate::messages::{ETHERTYPE_DEFAULT, MIN_FRAME_LEN, PacketType, control::Control};

    const UPSTREAM: Mac = Mac([2, 0, 0, 0, 0, 5]);
    const US: Mac = Mac([2, 0, 0, 0, 0, 6]);
    const PATCH: Patch = Patch {
        to: UPSTREAM,
        from: US,
        rsu: NodeId([2, 0, 0, 0, 0, 7]),
        order: Order::new(3, 700),
        epoch: 9,
        via: NodeId([2, 0, 0, 0, 0, 8]),
        within_ds: 12,
        at_risk_10ms: 0,
        standby: true,
    };

    fn clients(count: usize) -> Vec<Client> {
        let client = |n: usize| Client {
            vlan: if n < 100 { 0 } else { 7 },
            mac: Mac([2, 0, 0, 0, 1, n as u8]),
        };
        (0..count).map(client).collect()
    }

    fn part_of(set: &[Client]) -> PartOf {
        PartOf {
            ethertype: ETHERTYPE_DEFAULT,
            origin: US.into(),
            mtu: 1400,
            digest: client_digest(set),
            part: 1,
            parts: 3,
        }
    }

    /// The same message as it is serialized from scratch.
    fn serialized(set: &[Client], patch: &Patch, hops: u8) -> Vec<u8> {
        let mut groups = Vec::new();
        Clients::encode(set, &mut groups);
        let announcement = Announcement {
            rsu: patch.rsu,
            origin: US.into(),
            order: patch.order,
            epoch: patch.epoch,
            via: patch.via,
            digest: client_digest(set),
            part: 1,
            parts: 3,
            within_ds: patch.within_ds,
            at_risk_10ms: patch.at_risk_10ms,
            mtu: 1400,
            hops,
            standby: patch.standby,
            clients: Clients::parse(&groups).unwrap(),
        };
        let (to, from) = (patch.to, patch.from);
        let packet = announcement.into();
        (&Message { to, from, ethertype: ETHERTYPE_DEFAULT, packet }).into()
    }

    #[test]
    fn a_patched_frame_is_the_frame_as_if_serialized() {
        let mut ready = ReadyAnnouncement::default();
        for count in [MAX_CLIENTS, 0, 1, 101] {
            let set = clients(count);
            ready.rebuild(part_of(&set), &set);
            for standby in [true, false, true] {
                let at_risk_10ms = if standby { 23 } else { 0 };
                let patch = Patch { standby, at_risk_10ms, ..PATCH };
                assert_eq!(ready.patch(&patch), serialized(&set, &patch, 0), "{count}");
            }
        }
    }

    #[test]
    fn a_relay_changes_addresses_and_hops_and_leaves_padding_behind() {
        let set = clients(1);
        let mut heard = serialized(&set, &PATCH, 0);
        heard.resize(heard.len().max(MIN_FRAME_LEN) + 2, 0xee);
        let message = Message::try_from(&heard[..heard.len() - 2]).unwrap();
        let PacketType::Control(Control::Announcement(announcement)) = message.packet else {
            panic!("{message:?}");
        };
        let mut out = vec![1, 2];
        let to = Mac([2, 0, 0, 0, 0, 8]);
        relay(&heard, &announcement, (to, UPSTREAM), 1, &mut out);
        assert_eq!(out[2..], serialized(&set, &Patch { to, from: UPSTREAM, ..PATCH }, 1));
    }
}
