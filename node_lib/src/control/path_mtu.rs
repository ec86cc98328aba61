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

use etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded;
use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpDscp, IpFragOffset, IpHeaders, IpSlice,
    Ipv4Header, Ipv4HeaderSlice, Ipv6Header, PacketBuilder, icmpv6, ip_number,
};

use crate::control::inner::is_one_host;
use crate::control::token_bucket::TokenBucket;
use crate::messages::capacity::{INNER_OVERHEAD, packet_max, packet_max_in_fragments};
use crate::messages::ethernet::Header;
use crate::offload::headers::{Headers, Version};
use crate::time::Timestamp;

/// Answers: 100 a second, 50 at once. A host keeps what it was told for ten minutes (RFC 1191
/// §6.3), so thousands of hosts need less.
const ANSWERS: TokenBucket = TokenBucket::new(50, Duration::from_millis(10));

/// The hop limit systems start with.
const HOPS: u8 = 64;

/// What every host takes, and no path is said to carry less: RFC 791 §3.1 and RFC 8200 §5. So an
/// answer is no longer, whatever it quotes: RFC 1812 §4.3.2.3 and RFC 4443 §2.4 (c).
pub(super) const fn least(version: Version) -> usize {
    match version {
        Version::V4 => 576,
        Version::V6 => 1280,
    }
}

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
    pub fn answer<'a>(
        &mut self,
        now: Timestamp,
        frame: &'a [u8],
        radio_mtu: usize,
    ) -> Option<Answer<'a>> {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// What is in front of the packet: Ethernet header and tags.
    link: &'a [u8],
    packet: &'a [u8],
    ip: IpSlice<'a>,
    mtu: u16,
}

impl<'a> Answer<'a> {
    /// What to say about a packet, if it may have this many bytes.
    #[cold]
    fn to(frame: &'a [u8], most: usize) -> Option<Self> {
        let Headers { version, network, end, .. } = Headers::parse(frame).ok()?;
        let (link, packet) = frame.get(..end)?.split_at_checked(network)?;
        let (Header { to, from, .. }, _) = Header::read(link)?;
        let ip = IpSlice::from_slice(packet).ok()?;
        let mtu = most.max(least(version));
        let may_be_told = !to.is_group()
            && from.is_unicast()
            && is_one_host(ip.source_addr())
            && is_one_host(ip.destination_addr())
            && ip.ipv4().is_none_or(|ip| must_stay_whole(ip.header()))
            && !is_error(&ip);
        // One that fits what is said would be sent again just as it is.
        let is_longer = packet.len() > mtu;
        let mtu = u16::try_from(mtu).ok()?;
        (may_be_told && is_longer).then_some(Self { link, packet, ip, mtu })
    }

    /// The longest packet that gets through, as the sender is told.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Appends the Ethernet frame for the sender of the frame that was looked at.
    pub fn emit(&self, flat: &mut Vec<u8>) {
        // Addresses the other way round, the same tags.
        let Some((Header { to, from, ethertype }, tags)) = Header::read(self.link) else { return };
        Header { to: from, from: to, ethertype }.emit(flat);
        flat.extend_from_slice(tags);
        let written = match &self.ip {
            IpSlice::Ipv4(ip) => {
                let ip = Ipv4Header {
                    // Internetwork control (RFC 1812 §4.3.2.5).
                    dscp: IpDscp::CS6,
                    time_to_live: HOPS,
                    source: ip.header().destination(),
                    destination: ip.header().source(),
                    ..Ipv4Header::default()
                };
                let needed = FragmentationNeeded { next_hop_mtu: self.mtu };
                let quoted = self.quoted(Version::V4, Ipv4Header::MIN_LEN + Icmpv4Header::MIN_LEN);
                PacketBuilder::ip(IpHeaders::Ipv4(ip, Default::default()))
                    .icmpv4(Icmpv4Type::DestinationUnreachable(needed))
                    .write_to_vec(flat, quoted)
            }
            IpSlice::Ipv6(ip) => {
                let (to, from) = (ip.header().source(), ip.header().destination());
                let quoted = self.quoted(Version::V6, Ipv6Header::LEN + Icmpv6Header::MIN_LEN);
                PacketBuilder::ipv6(from, to, HOPS)
                    .icmpv6(Icmpv6Type::PacketTooBig { mtu: self.mtu.into() })
                    .write_to_vec(flat, quoted)
            }
        };
        debug_assert!(written.is_ok(), "it is short, and its ICMP that of its IP");
    }

    /// What an answer has room for behind its own headers.
    fn quoted(&self, version: Version, headers: usize) -> &'a [u8] {
        self.packet.get(..least(version) - headers).unwrap_or(self.packet)
    }
}

/// No router may cut it up, and none has.
fn must_stay_whole(header: Ipv4HeaderSlice<'_>) -> bool {
    header.dont_fragment() && header.fragments_offset() == IpFragOffset::ZERO
}

/// An ICMP message that is not to be answered by another.
fn is_error(ip: &IpSlice<'_>) -> bool {
    let kind = ip.payload().payload.first().copied().unwrap_or_default();
    match ip.payload_ip_number() {
        // All but echo, router discovery, time stamp, information, address mask.
        ip_number::ICMP => !matches!(kind, 0 | 8..=10 | 13..=18),
        // Errors (RFC 4443 §2.1) and redirects (RFC 4443 §2.4 (e.2)).
        ip_number::IPV6_ICMP => {
            kind < icmpv6::TYPE_ECHO_REQUEST || kind == icmpv6::TYPE_REDIRECT_MESSAGE
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use etherparse::VlanId;

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
            None => {
                builder.ipv4(HOST_V4, FAR_V4, 64).udp(1000, 53).write_to_vec(&mut frame, &payload)
            }
            Some(vlan) => builder
                .single_vlan(vlan)
                .ipv4(HOST_V4, FAR_V4, 64)
                .udp(1000, 53)
                .write_to_vec(&mut frame, &payload),
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
        builder.udp(1000, 53).write_to_vec(&mut frame, &vec![7; len - 48]).unwrap();
        frame
    }

    /// The answer to a frame, on a radio of this MTU, with discovery.
    fn answer(frame: &[u8], radio_mtu: usize) -> Option<Vec<u8>> {
        let answer = PathMtu::new(true).answer(now(), frame, radio_mtu)?;
        let mut flat = vec![0xee; 3];
        answer.emit(&mut flat);
        Some(flat.split_off(3))
    }

    /// The headers in front of what is quoted, in hexadecimal, and what is quoted.
    fn head_and_quoted(answer: &[u8], head_len: usize) -> (String, &[u8]) {
        let (head, quoted) = answer.split_at(head_len);
        (head.iter().map(|byte| format!("{byte:02x}")).collect(), quoted)
    }

    const MACS: &str = "02000000000a02000000000b";

    #[test]
    fn an_ipv4_sender_hears_what_fits_from_the_host_it_spoke_to() {
        for (tag, in_vlan) in [(None, ""), (Some(7), "81000007")] {
            let frame = v4(1500, tag);
            let answer = answer(&frame, 1500).expect("an answer");
            let network = 14 + in_vlan.len() / 2;
            let (head, quoted) = head_and_quoted(&answer, network + 28);
            // Length 576, and 1448 bytes fit.
            let ip = "45c0024000004000400103c2c63364070a000001";
            assert_eq!(head, format!("{MACS}{in_vlan}0800{ip}0304427a000005a8"));
            assert_eq!(quoted, &frame[network..network + 548]);
        }
        let frame = v4(9000, None);
        let mut flat = Vec::new();
        PathMtu::new(false).answer(now(), &frame, 1000).expect("an answer").emit(&mut flat);
        assert!(head_and_quoted(&flat, 42).0.ends_with("030437c300001e9c"), "7836 bytes fit");
    }

    #[test]
    fn an_ipv6_sender_hears_the_same() {
        let to_sender = "20010db8000000000000000000000007fd000000000000000000000000000001";
        let frame = v6(1500);
        // Some sums carry into the upper half once more when their halves are added.
        for (fill, check) in [(7, "0502"), (0x93, "fffc"), (0xaf, "fefb")] {
            let mut frame = frame.clone();
            frame[62..].fill(fill);
            let answer = answer(&frame, 1500).expect("an answer");
            let (head, quoted) = head_and_quoted(&answer, 62);
            let ip = format!("6000000004d83a40{to_sender}");
            assert_eq!(head, format!("{MACS}86dd{ip}0200{check}000005a8"));
            assert_eq!(quoted, &frame[14..14 + 1232]);
        }
        let mut frame = frame;
        frame.splice(12..12, [0x88, 0xa8, 0, 9, 0x81, 0, 0xe0, 7]);
        let answer = answer(&frame, 1400).expect("an answer");
        let (head, quoted) = head_and_quoted(&answer, 70);
        let ip = format!("6000000004d83a40{to_sender}");
        assert_eq!(head, format!("{MACS}88a800098100e00786dd{ip}0200056600000544"));
        assert_eq!(quoted, &frame[22..22 + 1232]);
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
            (frame[23], frame[34]) = (1, kind);
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
            (frame[20], frame[54]) = (58, kind);
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
