//! Frames of batman-adv, in its own layout and so of its own size on air (`batadv_packet.h`,
//! compatibility version 15). All numbers are big-endian and follow the Ethernet header, whose
//! EtherType is 0x4305.
//!
//! Originator message ([`Ogm`]); several follow each other in one frame:
//!
//! | offset | bytes | field       | meaning                                                     |
//! |-------:|------:|-------------|-------------------------------------------------------------|
//! |      0 |     1 | type        | `0x00`                                                      |
//! |      1 |     1 | version     | 15                                                          |
//! |      2 |     1 | ttl         | hops it may still go                                        |
//! |      3 |     1 | flags       | [`NOT_BEST_NEXT_HOP`], [`DIRECT_LINK`]                      |
//! |      4 |     4 | seqno       | of the originator                                           |
//! |      8 |     6 | orig        | the originator                                              |
//! |     14 |     6 | prev sender | who the sender heard it from                                |
//! |     20 |     1 | reserved    | 0                                                           |
//! |     21 |     1 | tq          | quality of the way so far, 255 at the originator            |
//! |     22 |     2 | tvlv length |                                                             |
//! |     24 |       | tvlvs       | type 1, version 1, length 2, value                          |
//!
//! The others, each with what follows it: unicast (`0x40`, version, ttl, version of the table,
//! destination 6; the client's frame), broadcast (`0x01`, version, ttl, 0, seqno 4, originator 6;
//! the client's frame), and unicast of tvlvs (`0x44`, version, ttl, 0, destination 6, source 6,
//! tvlv length 2, 0 2; tvlvs).
//!
//! A table of clients is tvlv 4, version 1: flags 1, version of the table 1, number of VLANs 2 (1),
//! then for the VLAN checksum 4, VLAN 2, reserved 2; and 12 bytes for each client: flags 1 (1:
//! gone), reserved 3, MAC 6, VLAN 2.

use node_lib::Mac;
use node_lib::messages::ethernet::Header;

pub(super) const ETHERTYPE: u16 = 0x4305;
pub(super) const VERSION: u8 = 15;
/// Hops of whatever sets out.
pub(super) const TTL: u8 = 50;

/// The sender has a better way to the originator: for measuring the link only.
pub(super) const NOT_BEST_NEXT_HOP: u8 = 1;
/// The sender heard it from the originator itself.
pub(super) const DIRECT_LINK: u8 = 1 << 2;

const TYPE_OGM: u8 = 0x00;
const TYPE_BROADCAST: u8 = 0x01;
const TYPE_UNICAST: u8 = 0x40;
const TYPE_TVLV: u8 = 0x44;

/// Bytes of an OGM without tvlvs.
pub(super) const OGM_LEN: usize = 24;
/// Bytes in front of a client's frame to one.
pub(super) const UNICAST_LEN: usize = 10;
/// Bytes in front of a client's frame to all.
pub(super) const BROADCAST_LEN: usize = 14;

const TVLV_DISTRIBUTED_ARP: u8 = 2;
const TVLV_TABLE: u8 = 4;
const TVLV_MULTICAST: u8 = 6;
const TABLE_LEN: usize = 12;
/// Bytes of one client in a table.
pub(super) const CLIENT_LEN: usize = 12;
const CLIENT_GONE: u8 = 1;

/// The changes of an OGM.
pub(super) const TABLE_DIFF: u8 = 1;
/// Please send me your table.
pub(super) const TABLE_REQUEST: u8 = 1 << 1;
/// Here it is.
pub(super) const TABLE_RESPONSE: u8 = 1 << 2;
/// All of it, and not what changed last.
pub(super) const TABLE_FULL: u8 = 1 << 4;

/// An originator message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ogm<'a> {
    pub(super) ttl: u8,
    pub(super) flags: u8,
    pub(super) seqno: u32,
    pub(super) orig: Mac,
    pub(super) prev_sender: Mac,
    pub(super) tq: u8,
    pub(super) tvlvs: &'a [u8],
}

impl<'a> Ogm<'a> {
    /// The first of those that follow each other, and the rest.
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<OGM_LEN>()?;
        let &[kind, version, ttl, flags, s0, s1, s2, s3, ref addresses @ .., _, tq, l0, l1] = head;
        let (orig, prev_sender) = addresses.split_first_chunk::<6>()?;
        let (tvlvs, rest) = rest.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
        let ogm = Self {
            ttl,
            flags,
            seqno: u32::from_be_bytes([s0, s1, s2, s3]),
            orig: Mac(*orig),
            prev_sender: Mac(*prev_sender.first_chunk()?),
            tq,
            tvlvs,
        };
        (kind == TYPE_OGM && version == VERSION && ogm.orig.is_unicast()).then_some((ogm, rest))
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend([TYPE_OGM, VERSION, self.ttl, self.flags]);
        out.extend(self.seqno.to_be_bytes());
        out.extend(self.orig.0);
        out.extend(self.prev_sender.0);
        out.extend([0, self.tq]);
        emit_len(self.tvlvs, out);
        out.extend(self.tvlvs);
    }
}

/// A frame off the radio, behind its Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatmanPacket<'a> {
    Ogms(Ogms<'a>),
    Unicast { ttl: u8, table: u8, destination: Mac, inner: &'a [u8] },
    Broadcast { ttl: u8, seqno: u32, orig: Mac, inner: &'a [u8] },
    Tvlv { ttl: u8, destination: Mac, source: Mac, tvlvs: &'a [u8] },
}

/// OGMs of one frame, as far as they can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ogms<'a>(&'a [u8]);

impl<'a> Iterator for Ogms<'a> {
    type Item = Ogm<'a>;

    fn next(&mut self) -> Option<Ogm<'a>> {
        let (ogm, rest) = Ogm::read(self.0)?;
        self.0 = rest;
        Some(ogm)
    }
}

impl<'a> BatmanPacket<'a> {
    /// Reads one; `None` if it is malformed, or of a kind that is not modelled.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let &[kind, version, ttl, fourth] = bytes.first_chunk()?;
        if version != VERSION {
            return None;
        }
        let rest = bytes.get(4..)?;
        match kind {
            TYPE_OGM => Ogm::read(bytes).map(|_| Self::Ogms(Ogms(bytes))),
            TYPE_UNICAST => {
                let (destination, inner) = mac(rest)?;
                Some(Self::Unicast { ttl, table: fourth, destination, inner })
            }
            TYPE_BROADCAST => {
                let (seqno, rest) = rest.split_first_chunk::<4>()?;
                let (orig, inner) = mac(rest)?;
                Some(Self::Broadcast { ttl, seqno: u32::from_be_bytes(*seqno), orig, inner })
            }
            TYPE_TVLV => {
                let (destination, rest) = mac(rest)?;
                let (source, rest) = mac(rest)?;
                let (&[l0, l1, _, _], tvlvs) = rest.split_first_chunk::<4>()?;
                let tvlvs = tvlvs.get(..u16::from_be_bytes([l0, l1]).into())?;
                Some(Self::Tvlv { ttl, destination, source, tvlvs })
            }
            _ => None,
        }
    }

    /// Appends it; OGMs as they lie.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Ogms(ogms) => out.extend(ogms.0),
            Self::Unicast { ttl, table, destination, inner } => {
                out.extend([TYPE_UNICAST, VERSION, ttl, table]);
                out.extend(destination.0);
                out.extend(inner);
            }
            Self::Broadcast { ttl, seqno, orig, inner } => {
                out.extend([TYPE_BROADCAST, VERSION, ttl, 0]);
                out.extend(seqno.to_be_bytes());
                out.extend(orig.0);
                out.extend(inner);
            }
            Self::Tvlv { ttl, destination, source, tvlvs } => {
                out.extend([TYPE_TVLV, VERSION, ttl, 0]);
                out.extend(destination.0);
                out.extend(source.0);
                emit_len(tvlvs, out);
                out.extend([0, 0]);
                out.extend(tvlvs);
            }
        }
    }
}

fn mac(bytes: &[u8]) -> Option<(Mac, &[u8])> {
    let (mac, rest) = bytes.split_first_chunk::<6>()?;
    Some((Mac(*mac), rest))
}

/// Length of what is never longer than a frame.
fn emit_len(value: &[u8], out: &mut Vec<u8>) {
    out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
}

/// Ethernet header of a frame for the radio.
pub(super) fn emit_ethernet(to: Mac, from: Mac, out: &mut Vec<u8>) {
    Header { to, from, ethertype: ETHERTYPE }.emit(out);
}

/// Who lives behind an originator, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TranslationTable<'a> {
    pub(super) flags: u8,
    /// Counts changes; wraps.
    pub(super) version: u8,
    /// Of the whole table after them.
    pub(super) checksum: u32,
    clients: &'a [u8],
}

impl<'a> TranslationTable<'a> {
    /// The table among tvlvs.
    pub(super) fn find(mut tvlvs: &'a [u8]) -> Option<Self> {
        loop {
            let (&[kind, version, l0, l1], rest) = tvlvs.split_first_chunk::<4>()?;
            let (value, rest) = rest.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
            if (kind, version) == (TVLV_TABLE, 1) {
                let (head, clients) = value.split_first_chunk::<TABLE_LEN>()?;
                let &[flags, version, v0, v1, c0, c1, c2, c3, ..] = head;
                let is_whole = clients.len().is_multiple_of(CLIENT_LEN) && [v0, v1] == [0, 1];
                let checksum = u32::from_be_bytes([c0, c1, c2, c3]);
                return is_whole.then_some(Self { flags, version, checksum, clients });
            }
            tvlvs = rest;
        }
    }

    /// Clients that came, and those that are gone (`false`), in order.
    pub(super) fn clients(&self) -> impl Iterator<Item = (Mac, bool)> + use<'a> {
        let read = |entry: &[u8]| {
            let (&[flags, _, _, _], rest) = entry.split_first_chunk()?;
            Some((mac(rest)?.0, flags & CLIENT_GONE == 0))
        };
        self.clients.chunks_exact(CLIENT_LEN).filter_map(read)
    }
}

/// Appends a table.
pub(super) fn emit_table(
    flags: u8,
    version: u8,
    checksum: u32,
    clients: impl ExactSizeIterator<Item = (Mac, bool)>,
    out: &mut Vec<u8>,
) {
    let len = TABLE_LEN + clients.len() * CLIENT_LEN;
    out.extend([TVLV_TABLE, 1]);
    out.extend(u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    out.extend([flags, version, 0, 1]);
    out.extend(checksum.to_be_bytes());
    out.extend([0; 4]);
    for (client, is_there) in clients {
        out.extend([if is_there { 0 } else { CLIENT_GONE }, 0, 0, 0]);
        out.extend(client.0);
        out.extend([0, 0]);
    }
}

/// Appends what else an OGM carries by default: that the node takes part in the distributed ARP
/// table, and in multicast optimisation. Neither does anything here; they are sent for their size.
pub(super) fn emit_usual_tvlvs(out: &mut Vec<u8>) {
    out.extend([TVLV_DISTRIBUTED_ARP, 1, 0, 0]);
    out.extend([TVLV_MULTICAST, 2, 0, 4, 0, 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn tvlvs(clients: &[(Mac, bool)]) -> Vec<u8> {
        let mut tvlvs = Vec::new();
        emit_table(TABLE_DIFF, 3, 0xabcd, clients.iter().copied(), &mut tvlvs);
        emit_usual_tvlvs(&mut tvlvs);
        tvlvs
    }

    fn ogm(tvlvs: &[u8]) -> Ogm<'_> {
        Ogm { ttl: 50, flags: 4, seqno: 7, orig: A, prev_sender: B, tq: 255, tvlvs }
    }

    #[test]
    fn frames_have_the_sizes_of_batman_adv_and_are_read_as_written() {
        // struct batadv_ogm_packet 24; tvlvs: table 4 + 4 + 8, and 12 for each change; ARP 4;
        // multicast 8.
        let (idle, busy) = (tvlvs(&[]), tvlvs(&[(A, true), (B, false)]));
        let mut frame = Vec::new();
        for (tvlvs, len) in [(&idle, 52), (&busy, 76)] {
            let before = frame.len();
            ogm(tvlvs).emit(&mut frame);
            assert_eq!(frame.len() - before, len);
        }
        let Some(BatmanPacket::Ogms(ogms)) = BatmanPacket::read(&frame) else {
            panic!("{frame:?}")
        };
        assert_eq!(ogms.collect::<Vec<_>>(), [ogm(&idle), ogm(&busy)]);
        let table = TranslationTable::find(&busy).unwrap();
        assert_eq!((table.flags, table.version, table.checksum), (TABLE_DIFF, 3, 0xabcd));
        assert_eq!(table.clients().collect::<Vec<_>>(), [(A, true), (B, false)]);

        let inner: &[u8] = &[9; 60];
        for (packet, len) in [
            (BatmanPacket::Unicast { ttl: 50, table: 1, destination: A, inner }, 10 + 60),
            (BatmanPacket::Broadcast { ttl: 50, seqno: 1, orig: A, inner }, 14 + 60),
            (BatmanPacket::Tvlv { ttl: 50, destination: A, source: B, tvlvs: &idle }, 20 + 28),
        ] {
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            assert_eq!((bytes.len(), BatmanPacket::read(&bytes)), (len, Some(packet)));
        }
    }

    #[test]
    fn what_is_cut_short_is_no_packet() {
        let tvlvs = tvlvs(&[(A, true)]);
        let mut frame = Vec::new();
        ogm(&tvlvs).emit(&mut frame);
        for len in 0..frame.len() {
            assert_eq!(BatmanPacket::read(&frame[..len]), None, "{len}");
        }
        for len in 0..16 {
            assert_eq!(TranslationTable::find(&tvlvs[..len]), None, "{len}");
        }
        frame[1] = 14;
        assert_eq!(BatmanPacket::read(&frame), None, "another version");
    }
}
