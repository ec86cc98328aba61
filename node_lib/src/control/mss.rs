//! TCP over a path that carries less than its hosts believe: the MSS option of a SYN is lowered to
//! what fits ([`Clamp`]).
//!
//! Hosts derive the MSS they announce from the MTU of their own interface (RFC 6691 §2), here 1500.
//! Each segment of that size would need two frames on a radio of 1500, for a handful of bytes. Path
//! MTU discovery would find out, but is slow, and dead where ICMP is filtered (RFC 2923 §2.1; RFC
//! 4821 is for hosts, and off by default). So whoever sends a SYN or SYN-ACK over the radio lowers
//! the option, as PPPoE gateways do. Each hop does it, so the smallest radio of the path decides.
//!
//! | field | value |
//! |---|---|
//! | MSS over IPv4 | at most the IP packet that fits − 40 (RFC 6691 §2: both headers without options) |
//! | MSS over IPv6 | at most the IP packet that fits − 60 |
//! | either | never below 536 and 1220, what every host takes (RFC 9293 §3.7.1) |
//! | checksum | changed by the difference (RFC 1624 §3) |
//!
//! A SYN without the option asks for just these. A smaller value is never raised.

use etherparse::tcp_option::{
    KIND_END, KIND_MAXIMUM_SEGMENT_SIZE, KIND_NOOP, LEN_MAXIMUM_SEGMENT_SIZE,
};
use etherparse::{Ipv4Header, Ipv6Header, TcpHeader};

use crate::control::path_mtu::least;
use crate::offload::Sum;
use crate::offload::headers::{
    Headers, SYN, TCP, TCP_CHECK, TCP_FLAGS, Version, array_at, put, u8_at,
};

/// What is to be changed in a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    mss_at: usize,
    mss: u16,
    check_at: usize,
    check: [u8; 2],
}

impl Clamp {
    /// Looks at a client's Ethernet frame. `None` unless it is a SYN that asks for segments longer
    /// than IP packets of `packet_max` bytes can carry.
    #[inline]
    pub fn of(frame: &[u8], packet_max: usize) -> Option<Self> {
        let headers = Headers::parse(frame).ok()?;
        // Of a fragmented packet only the first part has the header, and a checksum over all of it.
        if headers.protocol != TCP || headers.is_fragment {
            return None;
        }
        let flags = u8_at(frame, headers.transport + TCP_FLAGS).ok()?;
        if flags & SYN == 0 { None } else { Self::of_syn(frame, &headers, packet_max) }
    }

    #[cold]
    fn of_syn(frame: &[u8], headers: &Headers, packet_max: usize) -> Option<Self> {
        let ip_header = match headers.version {
            Version::V4 => Ipv4Header::MIN_LEN,
            Version::V6 => Ipv6Header::LEN,
        };
        let most = packet_max.max(least(headers.version)) - ip_header - TcpHeader::MIN_LEN;
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        let options_at = headers.transport + TcpHeader::MIN_LEN;
        let options = frame.get(options_at..headers.tcp_payload(frame).ok()?)?;
        let (at, asked) = find_mss(options)?;
        let mss_at = options_at + at;
        if asked <= most {
            return None;
        }
        let check_at = headers.transport + TCP_CHECK;
        let check: [u8; 2] = array_at(frame, check_at).ok()?;
        let change = match (mss_at - check_at) % 2 {
            0 => Change { from: asked, to: most },
            // The option may begin anywhere: a number across two words counts with its bytes
            // swapped.
            _ => Change { from: asked.swap_bytes(), to: most.swap_bytes() },
        };
        Some(Self { mss_at, mss: most, check_at, check: change.applied_to(check) })
    }

    /// Makes the change in the frame that was looked at, or in a copy of it.
    pub fn apply(&self, frame: &mut [u8]) {
        let changed = put(frame, self.mss_at, self.mss.to_be_bytes())
            .and_then(|()| put(frame, self.check_at, self.check));
        debug_assert!(changed.is_ok(), "the options stand where they were found");
    }
}

/// Where the value of the MSS option stands among the options, and the value. Not with the
/// iterator of `etherparse`, which ends at the first kind it does not know, such as a signature
/// (RFC 2385) that hosts write in front.
fn find_mss(options: &[u8]) -> Option<(usize, u16)> {
    let mut rest = options;
    loop {
        rest = match *rest {
            [KIND_MAXIMUM_SEGMENT_SIZE, LEN_MAXIMUM_SEGMENT_SIZE, high, low, ..] => {
                return Some((options.len() - rest.len() + 2, u16::from_be_bytes([high, low])));
            }
            [KIND_NOOP, ref rest @ ..] => rest,
            [KIND_END | KIND_MAXIMUM_SEGMENT_SIZE, ..] => return None,
            [_, len @ 2..=u8::MAX, ..] => rest.get(usize::from(len)..)?,
            _ => return None,
        };
    }
}

/// A number in what a checksum covers gets another value.
struct Change {
    from: u16,
    to: u16,
}

impl Change {
    /// HC' = ~(~HC + ~m + m') (RFC 1624 equation 3).
    fn applied_to(&self, check: [u8; 2]) -> [u8; 2] {
        let sum = Sum::default().plus_u16(!u16::from_be_bytes(check));
        sum.minus_u16(self.from).plus_u16(self.to).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::offload::headers::u16_at;

    /// A client's SYN over IPv4 that asks for segments of 1460 bytes, and where it does.
    pub(crate) fn syn() -> (Vec<u8>, usize) {
        (v4(&[], &[], SYN, &OPTIONS, &[]), 14 + 20 + 20 + 2)
    }

    const ACK: u8 = 0x10;
    /// The IP packets of a TAP over a radio of 1500.
    const FITS: usize = 1460;

    /// Window scale, then MSS 1460 where RFC 9293 lets it stand: anywhere.
    const OPTIONS: [u8; 8] = [2, 4, 0x05, 0xb4, 1, 3, 3, 7];
    const ODD_OPTIONS: [u8; 8] = [1, 2, 4, 0x05, 0xb4, 3, 3, 7];

    fn ethernet(tags: &[u8], ethertype: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend_from_slice(tags);
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame
    }

    fn tcp(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let offset = (20 + options.len() as u8) / 4 * 16;
        let mut tcp = vec![0x80, 1, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, offset, flags, 0xff, 0xff];
        tcp.extend_from_slice(&[0, 0, 0, 0]);
        tcp.extend_from_slice(options);
        tcp.extend_from_slice(payload);
        tcp
    }

    /// `more` is what stands between the fixed IP header and TCP.
    fn v4(tags: &[u8], more: &[u8], flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut frame = ethernet(tags, 0x0800);
        let segment = tcp(flags, options, payload);
        let len = (20 + more.len() + segment.len()) as u16;
        frame.extend_from_slice(&[0x45 + more.len() as u8 / 4, 0]);
        frame.extend_from_slice(&len.to_be_bytes());
        frame.extend_from_slice(&[0, 1, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend_from_slice(more);
        finish(frame, &segment)
    }

    fn v6(tags: &[u8], more: &[u8], flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut frame = ethernet(tags, 0x86dd);
        let segment = tcp(flags, options, payload);
        let len = (more.len() + segment.len()) as u16;
        let next = if more.is_empty() { TCP } else { 60 };
        frame.extend_from_slice(&[0x60, 0, 0, 0]);
        frame.extend_from_slice(&len.to_be_bytes());
        frame.extend_from_slice(&[next, 64]);
        frame.extend_from_slice(&[0xfd; 16]);
        frame.extend_from_slice(&[0xfe; 16]);
        frame.extend_from_slice(more);
        finish(frame, &segment)
    }

    fn finish(mut frame: Vec<u8>, segment: &[u8]) -> Vec<u8> {
        let transport = frame.len();
        frame.extend_from_slice(segment);
        let check = checksum(&frame).finish();
        frame[transport + TCP_CHECK..][..2].copy_from_slice(&check);
        frame
    }

    /// Of pseudo header and segment.
    fn checksum(frame: &[u8]) -> Sum {
        let headers = Headers::parse(frame).unwrap();
        let segment = &frame[headers.transport..headers.end];
        let addresses = headers.addresses(frame).unwrap();
        Sum::pseudo_header(addresses, TCP, segment.len() as u32).plus(Sum::of(segment))
    }

    /// The MSS a frame has after clamping, and everything else as it was.
    fn clamped(frame: &[u8], mss_at: usize) -> u16 {
        let mut after = frame.to_vec();
        Clamp::of(frame, FITS).expect("a SYN that asks for too much").apply(&mut after);
        assert!(checksum(&after).is_valid(), "checksum of {after:02x?}");
        let headers = Headers::parse(frame).unwrap();
        for (at, (before, after)) in frame.iter().zip(&after).enumerate() {
            let may_change = [mss_at, mss_at + 1].contains(&at)
                || [0, 1].contains(&at.wrapping_sub(headers.transport + TCP_CHECK));
            assert!(before == after || may_change, "byte {at} changed");
        }
        assert_eq!(Clamp::of(&after, FITS), None, "once is enough");
        u16_at(&after, mss_at).unwrap()
    }

    const TAG: [u8; 4] = [0x81, 0, 0, 7];
    const TWO_TAGS: [u8; 8] = [0x88, 0xa8, 0, 9, 0x81, 0, 0, 7];

    #[test]
    fn syn_and_syn_ack_ask_for_what_fits_whatever_is_in_front() {
        for tags in [&[][..], &TAG, &TWO_TAGS] {
            for flags in [SYN, SYN | ACK] {
                for ip_options in [&[][..], &[1, 1, 1, 0]] {
                    let frame = v4(tags, ip_options, flags, &OPTIONS, &[]);
                    let mss_at = 14 + tags.len() + 20 + ip_options.len() + 20 + 2;
                    assert_eq!(clamped(&frame, mss_at), 1420);
                }
                // Destination options with padding in front of TCP.
                for extension in [&[][..], &[TCP, 0, 1, 4, 0, 0, 0, 0]] {
                    let frame = v6(tags, extension, flags, &OPTIONS, &[]);
                    let mss_at = 14 + tags.len() + 40 + extension.len() + 20 + 2;
                    assert_eq!(clamped(&frame, mss_at), 1400);
                }
            }
        }
    }

    #[test]
    fn the_option_may_stand_at_an_odd_place_and_the_syn_may_carry_data() {
        let frame = v4(&[], &[], SYN, &ODD_OPTIONS, &[]);
        assert_eq!(clamped(&frame, 14 + 20 + 20 + 3), 1420);
        let frame = v6(&[], &[], SYN, &ODD_OPTIONS, b"fast open");
        assert_eq!(clamped(&frame, 14 + 40 + 20 + 3), 1400);
    }

    #[test]
    fn options_nobody_has_heard_of_may_stand_in_front() {
        let signature = [19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let options = [&signature[..], &[2, 4, 0x05, 0xb4, 0xfd, 2]].concat();
        let frame = v4(&[], &[], SYN, &options, &[]);
        assert_eq!(clamped(&frame, 14 + 20 + 20 + 18 + 2), 1420);
    }

    #[test]
    fn a_checksum_stays_right_whatever_the_numbers() {
        // Each payload gives another checksum, those that carry around included.
        for n in 0..=u16::MAX {
            let frame = v4(&[], &[], SYN, &OPTIONS, &n.to_be_bytes());
            let mut after = frame.clone();
            Clamp::of(&frame, FITS).unwrap().apply(&mut after);
            assert!(checksum(&after).is_valid(), "{n}");
        }
    }

    #[test]
    fn what_fits_and_what_is_no_syn_is_left_alone() {
        let small = [2, 4, 0x05, 0x8c, 1, 3, 3, 7];
        assert_eq!(Clamp::of(&v4(&[], &[], SYN, &small, &[]), FITS), None, "1420");
        assert_eq!(Clamp::of(&v4(&[], &[], SYN, &[], &[]), FITS), None, "no option");
        assert_eq!(Clamp::of(&v4(&[], &[], ACK, &OPTIONS, &[]), FITS), None, "no SYN");
        let mut udp = v4(&[], &[], SYN, &OPTIONS, &[]);
        udp[14 + 9] = 17;
        assert_eq!(Clamp::of(&udp, FITS), None, "UDP");
        let mut fragment = v4(&[], &[], SYN, &OPTIONS, &[]);
        fragment[14 + 6] = 0x20;
        assert_eq!(Clamp::of(&fragment, FITS), None, "a fragment");
        let arp = ethernet(&[], 0x0806);
        assert_eq!(Clamp::of(&arp, FITS), None);
    }

    #[test]
    fn broken_options_are_left_alone_and_nothing_panics() {
        for options in [
            [0, 2, 4, 5, 0xb4, 0, 0, 0],
            [2, 3, 0x05, 0xb4, 1, 1, 1, 1],
            [3, 0, 2, 4, 0x05, 0xb4, 0, 0],
            [3, 9, 2, 4, 0x05, 0xb4, 0, 0],
            [1, 1, 1, 1, 1, 1, 1, 2],
        ] {
            assert_eq!(Clamp::of(&v4(&[], &[], SYN, &options, &[]), FITS), None, "{options:?}");
        }
        let frame = v6(&TAG, &[TCP, 0, 1, 4, 0, 0, 0, 0], SYN, &OPTIONS, &[]);
        for len in 0..frame.len() {
            assert_eq!(Clamp::of(&frame[..len], FITS), None, "cut to {len}");
        }
    }

    #[test]
    fn what_every_host_takes_is_not_lowered() {
        for (frame, mss_at, least) in [
            (v4(&[], &[], SYN, &OPTIONS, &[]), 14 + 20 + 20 + 2, 536),
            (v6(&[], &[], SYN, &OPTIONS, &[]), 14 + 40 + 20 + 2, 1220),
        ] {
            let mut after = frame.clone();
            Clamp::of(&frame, 30).unwrap().apply(&mut after);
            assert_eq!(u16_at(&after, mss_at), Ok(least));
        }
    }
}
