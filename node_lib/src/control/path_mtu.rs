//! Packets that are too long for the radio, and what their senders are told: [`PathMtu`].
//!
//! | the packet | the answer |
//! |---|---|
//! | IPv4 with "don't fragment" | ICMP destination unreachable, fragmentation needed (type 3, code 4) with the MTU that fits (RFC 1191 §4, RFC 1812 §5.2.7.1) |
//! | IPv6 | ICMPv6 packet too big (type 2), the same (RFC 4443 §3.2, RFC 8201) |
//! | anything else | none: nobody would understand it |
//!
//! A bridge has no address of its own to answer from. So the answer has the source the sender waits
//! for: address and MAC of the host the packet was for, in the VLAN it came in. Bridges and
//! switches know that MAC behind this port already, so no table learns anything false. A host that
//! checks the way back to a source finds it right. The host needs only the header inside to find
//! the connection. Linux answers the same way for VXLAN and GENEVE that are ports of a bridge
//! (`iptunnel_pmtud_build_icmp` in `net/ipv4/ip_tunnel_core.c`, since 5.9).
//!
//! Never answered are ICMP errors, groups, broadcasts, later parts of a packet, and packets whose
//! sender is nobody in particular (RFC 1122 §3.2.2, RFC 4443 §2.4 (e)). IPv6 would allow answers
//! about groups. Each member's way has another MTU, though, and the smallest would be forced on
//! all. Answers have a limit (RFC 4443 §2.4 (f)): who sends long packets with a false source must
//! not make us send as many.

use std::time::Duration;

use crate::control::token_bucket::TokenBucket;
use crate::messages::capacity::{INNER_OVERHEAD, packet_max, packet_max_in_fragments};
use crate::messages::ethernet::{HEADER_LEN, Header, addresses};
use crate::offload::Sum;
use crate::offload::headers::{Headers, V6_LEN, Version, array_at, u8_at, u16_at};
use crate::time::Timestamp;

/// Answers: 100 a second, 50 at once. A host keeps what it was told for ten minutes (RFC 1191
/// §6.3), so thousands of hosts need less.
const ANSWERS: TokenBucket = TokenBucket::new(50, Duration::from_millis(10));

/// What every host takes, and no path is said to carry less: RFC 791 §3.1 and RFC 8200 §5.
const LEAST_V4: usize = 576;
const LEAST_V6: usize = 1280;

/// An answer is no longer than this, whatever it quotes: RFC 1812 §4.3.2.3 and RFC 4443 §2.4 (c).
const ANSWER_MAX_V4: usize = 576;
const ANSWER_MAX_V6: usize = 1280;

/// Protocol numbers (IANA).
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// ICMP types that are no errors: echo, router discovery, time stamp, information, address mask.
const QUERIES_V4: [u8; 10] = [0, 8, 9, 10, 13, 14, 15, 16, 17, 18];
/// ICMPv6 types below are errors (RFC 4443 §2.1).
const QUERIES_V6_FROM: u8 = 128;
/// ICMPv6 redirect, which is not answered either (RFC 4443 §2.4 (e.2)).
const REDIRECT_V6: u8 = 137;

/// Bytes of an IPv4 header without options.
const V4_LEN: usize = 20;
/// Bytes in front of what an answer quotes.
const ICMP_LEN: usize = 8;
const DONT_FRAGMENT: u16 = 0x4000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// The hop limit systems start with.
const HOPS: u8 = 64;
/// Internetwork control (RFC 1812 §4.3.2.5).
const PRECEDENCE: u8 = 0xc0;

/// What is said to senders of packets that are too long.
#[derive(Clone, Debug)]
pub struct PathMtu {
    /// Senders hear of whatever takes more than one frame; otherwise only of what no number of
    /// frames carries.
    is_discovered: bool,
    answers: TokenBucket,
}

impl PathMtu {
    /// With `is_discovered` senders are told of every packet that takes more than one frame of the
    /// radio; without only of those that [fragments](crate::messages::fragment) do not carry
    /// either.
    pub const fn new(is_discovered: bool) -> Self {
        Self { is_discovered, answers: ANSWERS }
    }

    /// The answer to a client's frame, for a way past radios with this MTU. `None`: it is not too
    /// long, or its sender cannot be told, or has been told often enough.
    #[inline]
    pub fn answer(&mut self, now: Timestamp, frame: &[u8], radio_mtu: usize) -> Option<Answer> {
        let most = if self.is_discovered {
            packet_max(radio_mtu)
        } else {
            packet_max_in_fragments(radio_mtu)
        };
        if frame.len() <= most + INNER_OVERHEAD {
            return None;
        }
        let answer = Answer::to(frame, most)?;
        self.answers.take(now).then_some(answer)
    }
}

/// What to say about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    headers: Headers,
    mtu: u16,
}

impl Answer {
    /// What to say about a packet, if it may have this many bytes.
    #[cold]
    fn to(frame: &[u8], most: usize) -> Option<Self> {
        let headers = Headers::parse(frame).ok()?;
        let (to, from) = addresses(frame)?;
        if to.is_group() || !from.is_unicast() {
            return None;
        }
        let least = match headers.version {
            Version::V4 => LEAST_V4,
            Version::V6 => LEAST_V6,
        };
        let mtu = most.max(least);
        let may_be_told = match headers.version {
            Version::V4 => may_be_told_v4(frame, &headers)?,
            Version::V6 => may_be_told_v6(frame, &headers)?,
        };
        // One that fits what is said would be sent again just as it is.
        let is_longer = headers.end - headers.network > mtu;
        let mtu = u16::try_from(mtu).ok()?;
        (may_be_told && is_longer).then_some(Self { headers, mtu })
    }

    /// The longest packet that gets through, as the sender is told.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Appends the Ethernet frame for the sender of `frame`, which is the one that was looked at.
    pub fn emit(&self, frame: &[u8], flat: &mut Vec<u8>) {
        let begin = flat.len();
        let part = |at: usize, len: usize| frame.get(at..at + len).unwrap_or_default();
        // Addresses the other way round, the same tags.
        let Some((Header { to, from, ethertype }, _)) = Header::read(frame) else { return };
        Header { to: from, from: to, ethertype }.emit(flat);
        flat.extend_from_slice(frame.get(HEADER_LEN..self.headers.network).unwrap_or_default());
        let network = begin + self.headers.network;
        let packet = frame.get(self.headers.network..self.headers.end).unwrap_or_default();
        let quoted = |most: usize| packet.get(..most.min(packet.len())).unwrap_or_default();
        match self.headers.version {
            Version::V4 => {
                let quoted = quoted(ANSWER_MAX_V4 - V4_LEN - ICMP_LEN);
                let len = (V4_LEN + ICMP_LEN + quoted.len()) as u16;
                flat.extend_from_slice(&[0x45, PRECEDENCE]);
                flat.extend_from_slice(&len.to_be_bytes());
                flat.extend_from_slice(&[0, 0, 0x40, 0, HOPS, ICMP, 0, 0]);
                flat.extend_from_slice(part(self.headers.network + 16, 4));
                flat.extend_from_slice(part(self.headers.network + 12, 4));
                let check = Sum::of(flat.get(network..).unwrap_or_default()).finish();
                fill_in(flat, network + 10, check);
                let icmp = flat.len();
                flat.extend_from_slice(&[3, 4, 0, 0, 0, 0]);
                flat.extend_from_slice(&self.mtu.to_be_bytes());
                flat.extend_from_slice(quoted);
                let check = Sum::of(flat.get(icmp..).unwrap_or_default()).finish();
                fill_in(flat, icmp + 2, check);
            }
            Version::V6 => {
                let quoted = quoted(ANSWER_MAX_V6 - V6_LEN - ICMP_LEN);
                let len = (ICMP_LEN + quoted.len()) as u16;
                flat.extend_from_slice(&[0x60, 0, 0, 0]);
                flat.extend_from_slice(&len.to_be_bytes());
                flat.extend_from_slice(&[ICMPV6, HOPS]);
                flat.extend_from_slice(part(self.headers.network + 24, 16));
                flat.extend_from_slice(part(self.headers.network + 8, 16));
                let icmp = flat.len();
                flat.extend_from_slice(&[2, 0, 0, 0]);
                flat.extend_from_slice(&u32::from(self.mtu).to_be_bytes());
                flat.extend_from_slice(quoted);
                let addresses = flat.get(network + 8..icmp).unwrap_or_default();
                let sum = Sum::pseudo_header(addresses, ICMPV6, len.into());
                let check = sum.plus(Sum::of(flat.get(icmp..).unwrap_or_default())).finish();
                fill_in(flat, icmp + 2, check);
            }
        }
    }
}

fn fill_in(flat: &mut [u8], at: usize, check: [u8; 2]) {
    if let Some(place) = flat.get_mut(at..at + 2) {
        place.copy_from_slice(&check);
    }
}

/// `None` when the packet ends before what must be looked at.
fn may_be_told_v4(frame: &[u8], headers: &Headers) -> Option<bool> {
    let flags = u16_at(frame, headers.network + 6).ok()?;
    let [from, to] = [12, 16].map(|at| array_at::<4>(frame, headers.network + at));
    // This network, this host, groups and reserved (RFC 1122 §3.2.1.3); its own broadcast a host
    // sends to the MAC for all.
    let is_one = |address: [u8; 4]| !matches!(address, [0 | 127 | 224.., ..]);
    let is_error = headers.protocol == ICMP
        && flags & FRAGMENT_OFFSET == 0
        && !QUERIES_V4.contains(&u8_at(frame, headers.transport).ok()?);
    Some(
        flags & DONT_FRAGMENT != 0
            && flags & FRAGMENT_OFFSET == 0
            && is_one(from.ok()?)
            && is_one(to.ok()?)
            && !is_error,
    )
}

/// `None` when the packet ends before what must be looked at.
fn may_be_told_v6(frame: &[u8], headers: &Headers) -> Option<bool> {
    let [from, to] = [8, 24].map(|at| array_at::<16>(frame, headers.network + at));
    let is_one = |address: [u8; 16]| address[0] != 0xff && u128::from_be_bytes(address) > 1;
    let kind = || u8_at(frame, headers.transport).ok();
    let is_error = headers.protocol == ICMPV6
        && kind().is_none_or(|kind| kind < QUERIES_V6_FROM || kind == REDIRECT_V6);
    Some(is_one(from.ok()?) && is_one(to.ok()?) && !is_error)
}

#[cfg(test)]
mod tests {
    use etherparse::{
        Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanId,
        icmpv4,
    };

    use super::*;

    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
    const FAR: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
    const HOST_V4: [u8; 4] = [10, 0, 0, 1];
    const FAR_V4: [u8; 4] = [198, 51, 100, 7];
    const HOST_V6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const FAR_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

    fn now() -> Timestamp {
        Timestamp::from_millis(1000)
    }

    fn v4(len: usize, tag: Option<u16>) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2(HOST, FAR);
        let payload = vec![7; len - 28];
        let mut frame = Vec::new();
        let vlan = tag.map(|tag| VlanId::try_new(tag).unwrap());
        match vlan {
            None => builder.ipv4(HOST_V4, FAR_V4, 64).udp(1000, 53).write(&mut frame, &payload),
            Some(vlan) => builder
                .single_vlan(vlan)
                .ipv4(HOST_V4, FAR_V4, 64)
                .udp(1000, 53)
                .write(&mut frame, &payload),
        }
        .unwrap();
        // etherparse sets "don't fragment".
        let network = if vlan.is_some() { 18 } else { 14 };
        assert_eq!(frame[network + 6], 0x40);
        frame
    }

    fn v6(len: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(HOST, FAR).ipv6(HOST_V6, FAR_V6, 64);
        builder.udp(1000, 53).write(&mut frame, &vec![7; len - 48]).unwrap();
        frame
    }

    /// The answer to a frame, on a radio of this MTU, with discovery.
    fn answer(frame: &[u8], radio_mtu: usize) -> Option<Vec<u8>> {
        let answer = PathMtu::new(true).answer(now(), frame, radio_mtu)?;
        let mut flat = vec![0xee; 3];
        answer.emit(frame, &mut flat);
        Some(flat.split_off(3))
    }

    #[test]
    fn an_ipv4_sender_hears_what_fits_from_the_host_it_spoke_to() {
        for tag in [None, Some(7)] {
            let frame = v4(1500, tag);
            let answer = answer(&frame, 1500).expect("an answer");
            let read = SlicedPacket::from_ethernet(&answer).unwrap();
            let Some(NetSlice::Ipv4(ip)) = &read.net else { panic!("{read:?}") };
            assert_eq!((ip.header().source(), ip.header().destination()), (FAR_V4, HOST_V4));
            assert_eq!(
                ip.header().header_checksum(),
                ip.header().to_header().calc_header_checksum()
            );
            assert_eq!(usize::from(ip.header().total_len()), 576);
            let Some(TransportSlice::Icmpv4(icmp)) = &read.transport else { panic!("{read:?}") };
            let needed = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1448 };
            assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(needed));
            assert_eq!(icmp.checksum(), icmp.icmp_type().calc_checksum(icmp.payload()));
            let network = if tag.is_some() { 18 } else { 14 };
            assert_eq!(icmp.payload(), &frame[network..network + 548]);
            assert_eq!(answer[..12], [HOST, FAR].concat());
            assert_eq!(answer[12..network], frame[12..network], "the same VLAN");
        }
    }

    #[test]
    fn an_ipv6_sender_hears_the_same() {
        let frame = v6(1500);
        let answer = answer(&frame, 1500).expect("an answer");
        let read = SlicedPacket::from_ethernet(&answer).unwrap();
        let Some(NetSlice::Ipv6(ip)) = &read.net else { panic!("{read:?}") };
        assert_eq!((ip.header().source(), ip.header().destination()), (FAR_V6, HOST_V6));
        assert_eq!(answer.len() - 14, 1280);
        let Some(TransportSlice::Icmpv6(icmp)) = &read.transport else { panic!("{read:?}") };
        assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1448 });
        assert!(icmp.is_checksum_valid(FAR_V6, HOST_V6));
        assert_eq!(icmp.payload(), &frame[14..14 + 1232]);
        assert_eq!(answer[..12], [HOST, FAR].concat());
    }

    #[test]
    fn what_fits_is_not_spoken_of_and_the_next_try_fits() {
        for mtu in [700, 1000, 1400, 1500, 2000] {
            let most = packet_max(mtu);
            assert_eq!(answer(&v4(most, None), mtu), None);
            assert_eq!(answer(&v4(most, Some(7)), mtu), None, "{mtu}: that is what was told");
            assert!(answer(&v4(most + 5, None), mtu).is_some());
            assert!(answer(&v4(most + 1, Some(7)), mtu).is_some());
        }
    }

    #[test]
    fn nobody_is_told_of_less_than_every_path_carries() {
        let told = |frame: &[u8], mtu| {
            PathMtu::new(true).answer(now(), frame, mtu).map(|answer| answer.mtu())
        };
        assert_eq!(told(&v4(1500, None), 300), Some(576));
        assert_eq!(told(&v4(576, None), 300), None, "fragments carry it");
        assert_eq!(told(&v6(1500), 1000), Some(1280));
        assert_eq!(told(&v6(1280), 1000), None);
    }

    #[test]
    fn without_discovery_only_what_fragments_do_not_carry_is_spoken_of() {
        let told = |frame: &[u8], mtu| {
            PathMtu::new(false).answer(now(), frame, mtu).map(|answer| answer.mtu())
        };
        assert_eq!(told(&v4(1500, None), 1500), None);
        assert_eq!(told(&v4(9000, None), 1500), None);
        // 8 × (1000 − 12) − 68: past as many relays as there may be.
        assert_eq!(told(&v4(9000, None), 1000), Some(7836));
        assert_eq!(told(&v4(7836, Some(7)), 1000), None);
        assert_eq!(told(&v4(7837, Some(7)), 1000), Some(7836));
        assert_eq!(told(&v6(9000), 1000), Some(7836));
    }

    #[test]
    fn who_cannot_be_told_is_not() {
        let with = |at: usize, bytes: &[u8]| {
            let mut frame = v4(1500, None);
            frame[at..at + bytes.len()].copy_from_slice(bytes);
            answer(&frame, 1500)
        };
        assert!(with(14, &[]).is_some());
        assert_eq!(with(20, &[0]), None, "may be fragmented");
        assert_eq!(with(20, &[0x40, 1]), None, "a later part");
        assert_eq!(with(0, &[0xff; 6]), None, "to all MACs");
        assert_eq!(with(0, &[1, 0, 0x5e]), None, "to a group of MACs");
        for nobody in [[0; 4], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]] {
            assert_eq!(with(26, &nobody), None, "from {nobody:?}");
            assert_eq!(with(30, &nobody), None, "to {nobody:?}");
        }
        // Protocol and ICMP type.
        for (kind, is_told) in [(8, true), (0, true), (3, false), (5, false), (11, false)] {
            let mut frame = v4(1500, None);
            (frame[23], frame[34]) = (ICMP, kind);
            assert_eq!(answer(&frame, 1500).is_some(), is_told, "ICMP type {kind}");
        }
        let with = |at: usize, bytes: &[u8]| {
            let mut frame = v6(1500);
            frame[at..at + bytes.len()].copy_from_slice(bytes);
            answer(&frame, 1500)
        };
        assert!(with(14, &[]).is_some());
        assert_eq!(with(22, &[0; 16]), None, "from nobody");
        assert_eq!(with(22, &[0xff]), None, "from a group");
        assert_eq!(with(38, &[0xff]), None, "to a group");
        for (kind, is_told) in [(128, true), (129, true), (1, false), (2, false), (137, false)] {
            let mut frame = v6(1500);
            (frame[20], frame[54]) = (ICMPV6, kind);
            assert_eq!(answer(&frame, 1500).is_some(), is_told, "ICMPv6 type {kind}");
        }
        let mut arp = v4(1500, None);
        arp[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(answer(&arp, 1500), None);
    }

    #[test]
    fn answers_have_a_limit_and_an_answer_is_never_answered() {
        let (mut path, frame) = (PathMtu::new(true), v4(1500, None));
        let mut answers = |ms: u64| {
            let at = Timestamp::from_millis(ms);
            (0..1000).filter(|_| path.answer(at, &frame, 1500).is_some()).count()
        };
        assert_eq!((answers(1000), answers(1100)), (50, 10));
        for frame in [v4(1500, None), v6(1500)] {
            let said = answer(&frame, 1500).unwrap();
            assert_eq!(answer(&said, 200), None);
        }
    }

    #[test]
    fn a_packet_that_is_cut_short_is_left_alone() {
        for frame in [v4(1500, Some(7)), v6(1500)] {
            for len in 0..frame.len() {
                assert_eq!(answer(&frame[..len], 100), None, "cut to {len}");
            }
        }
    }
}
