//! Splitting: each segment is the frame `etherparse` builds from the fields it should have.

use node_lib::offload::{Gso, Malformed, Segments, VnetHeader, complete};
use proptest::prelude::*;

use crate::frames::*;

/// All segments, cut with slots of `slot` bytes.
pub(crate) fn split(
    vnet: &VnetHeader,
    frame: &[u8],
    slot: usize,
) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut segments = Segments::plan(vnet, frame)?;
    let mut frames = Vec::new();
    let mut memory = vec![0xaa; slot];
    loop {
        let remaining = segments.remaining();
        let Some(len) = segments.next_into(frame, &mut memory) else {
            assert_eq!(remaining, 0);
            return Ok(frames);
        };
        frames.push(memory[..len?].to_vec());
        assert_eq!(segments.remaining() + 1, remaining);
    }
}

/// What splitting `segment` should give: each frame built from scratch.
fn expected(flow: &Flow, segment: &Segment, gso_size: usize) -> Vec<Vec<u8>> {
    let count = segment.payload.len().div_ceil(gso_size);
    let mut frames = Vec::new();
    for (i, payload) in segment.payload.chunks(gso_size).enumerate() {
        let mut flags = segment.flags;
        if i > 0 {
            flags &= !CWR;
        }
        if i + 1 < count {
            flags &= !(FIN | PSH);
        }
        frames.push(flow.tcp(&Segment {
            seq: segment.seq.wrapping_add((i * gso_size) as u32),
            identification: segment.identification.wrapping_add(i as u16),
            flags,
            payload: payload.to_vec(),
            ..segment.clone()
        }));
    }
    frames
}

#[test]
fn a_full_super_frame_becomes_its_segments() {
    let segment =
        Segment { flags: ACK | PSH | FIN | CWR | ECE, ..Segment::with(pattern(64_000, 1)) };
    for (is_v6, tags) in [(false, 0), (true, 0), (false, 1), (true, 2)] {
        let flow = Flow { is_v6, tags, ..Flow::PLAIN };
        let (vnet, frame) = flow.super_frame(&segment, 1448);
        let frames = split(&vnet, &frame, 1600).unwrap();
        assert_eq!(frames, expected(&flow, &segment, 1448));
        assert_eq!(frames.len(), 45);
        frames.iter().for_each(|frame| assert_intact(frame));
    }
}

#[test]
fn what_fits_one_segment_becomes_one_frame() {
    for len in [0, 1, 100] {
        let segment = Segment { flags: ACK | PSH | CWR, ..Segment::with(pattern(len, 1)) };
        let (vnet, frame) = Flow::PLAIN.super_frame(&segment, 100);
        assert_eq!(split(&vnet, &frame, 1600).unwrap(), [Flow::PLAIN.tcp(&segment)]);
    }
}

#[test]
fn a_slot_too_short_is_an_error_and_the_end() {
    let (vnet, frame) = Flow::PLAIN.super_frame(&Segment::with(pattern(3000, 1)), 1448);
    let mut segments = Segments::plan(&vnet, &frame).unwrap();
    let mut slot = [0; 1000];
    let need = 14 + 20 + 32 + 1448;
    assert_eq!(
        segments.next_into(&frame, &mut slot),
        Some(Err(Malformed::Slot { need, have: 1000 }))
    );
    assert_eq!(segments.next_into(&frame, &mut slot), None);
}

#[test]
fn says_what_is_malformed() {
    let flow = Flow::PLAIN;
    let (vnet, frame) = flow.super_frame(&Segment::with(pattern(3000, 1)), 1448);
    let plan = |vnet: &VnetHeader, frame: &[u8]| Segments::plan(vnet, frame).err();
    let patched = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[at] = byte;
        plan(&vnet, &frame)
    };
    assert_eq!(plan(&vnet, &frame), None);
    assert_eq!(plan(&vnet, &frame[..13]), Some(Malformed::Truncated));
    assert_eq!(patched(12, 0x09), Some(Malformed::NotIp(0x0900)));
    assert_eq!(patched(14, 0x65), Some(Malformed::IpHeader));
    assert_eq!(patched(14, 0x44), Some(Malformed::IpHeader));
    assert_eq!(plan(&vnet, &frame[..2000]), Some(Malformed::IpLength));
    assert_eq!(patched(16, 0), Some(Malformed::IpLength));
    assert_eq!(patched(46, 0x40), Some(Malformed::TransportHeader));
    assert_eq!(patched(20, 0x20), Some(Malformed::Protocol(Gso::TcpV4)));
    assert_eq!(patched(23, 47), Some(Malformed::Protocol(Gso::TcpV4)));
    let with = |change: fn(&mut VnetHeader)| {
        let mut vnet = vnet;
        change(&mut vnet);
        plan(&vnet, &frame)
    };
    assert_eq!(with(|vnet| vnet.gso = Gso::None), Some(Malformed::Protocol(Gso::None)));
    assert_eq!(with(|vnet| vnet.gso = Gso::TcpV6), Some(Malformed::Protocol(Gso::TcpV6)));
    assert_eq!(with(|vnet| vnet.gso_size = 0), Some(Malformed::GsoSize));
    assert_eq!(with(|vnet| vnet.needs_csum = false), Some(Malformed::Checksum));
    assert_eq!(with(|vnet| vnet.csum_start += 2), Some(Malformed::Checksum));
    assert_eq!(with(|vnet| vnet.csum_offset = 6), Some(Malformed::Checksum));
    assert_eq!(with(|vnet| vnet.hdr_len = 0xffff), None, "the hint is not used");
}

#[test]
fn a_datagram_whose_checksum_is_zero_says_so_in_the_other_form() {
    let flow = Flow::PLAIN;
    let mut payload = pattern(200, 1);
    payload[98..100].copy_from_slice(&[0, 0]);
    let first = flow.udp(7, &payload[..100]);
    payload[98..100].copy_from_slice(&first[40..42]);
    let (vnet, frame) = flow.super_datagram(7, &payload, 100);
    let frames = split(&vnet, &frame, 1600).unwrap();
    assert_eq!(frames[0][40..42], [0xff, 0xff]);
    assert_eq!(frames, [flow.udp(7, &payload[..100]), flow.udp(8, &payload[100..])]);
}

#[test]
fn a_checksum_beyond_the_frame_is_malformed() {
    let mut frame = Flow::PLAIN.tcp(&Segment::with(vec![1]));
    let len = frame.len() as u16;
    let vnet = |csum_start, csum_offset| VnetHeader {
        needs_csum: true,
        csum_start,
        csum_offset,
        ..VnetHeader::default()
    };
    for (start, offset) in [(len + 1, 0), (len - 1, 0), (34, len - 35), (0xffff, 0xffff)] {
        assert_eq!(complete(&vnet(start, offset), &mut frame), Err(Malformed::Checksum));
    }
}

proptest! {
    #[test]
    fn segments_are_what_the_sender_would_have_built(
        flow in Flow::any(),
        segment in Segment::any(1..20_000),
        gso_size in 500_u16..9000,
    ) {
        let (vnet, frame) = flow.super_frame(&segment, gso_size);
        let frames = split(&vnet, &frame, 9200).unwrap();
        prop_assert_eq!(frames, expected(&flow, &segment, usize::from(gso_size)));
    }

    #[test]
    fn datagrams_are_what_the_sender_would_have_built(
        flow in Flow::any(),
        identification: u16,
        len in 1_usize..10_000,
        gso_size in 100_u16..2000,
    ) {
        let payload = pattern(len, 5);
        let (vnet, frame) = flow.super_datagram(identification, &payload, gso_size);
        let frames = split(&vnet, &frame, 2200).unwrap();
        let expected: Vec<_> = (0..).zip(payload.chunks(usize::from(gso_size)))
            .map(|(i, payload)| flow.udp(identification.wrapping_add(i), payload))
            .collect();
        prop_assert_eq!(frames, expected);
    }

    #[test]
    fn unfinished_checksums_are_finished(
        flow in Flow::any(),
        segment in Segment::any(0..1500),
        is_udp: bool,
    ) {
        let (whole, protocol, csum_offset) = if is_udp {
            (flow.udp(1, &segment.payload), 17, 6)
        } else {
            (flow.tcp(&segment), 6, 16)
        };
        let mut frame = whole.clone();
        flow.make_partial(&mut frame, protocol, usize::from(csum_offset));
        let csum_start = flow.transport() as u16;
        let vnet = VnetHeader { needs_csum: true, csum_start, csum_offset, ..<_>::default() };
        complete(&vnet, &mut frame).unwrap();
        // TCP has two forms of zero, and the kernel writes this one.
        let at = usize::from(csum_start + csum_offset);
        if whole[at..at + 2] == [0, 0] {
            prop_assert_eq!(&frame[at..at + 2], &[0xff, 0xff]);
        } else {
            prop_assert_eq!(frame, whole);
        }
    }

    #[test]
    fn nothing_it_reads_makes_it_panic(
        vnet: [u8; 10],
        flow in Flow::any(),
        segment in Segment::any(0..3000),
        damage in proptest::collection::vec((0_usize..120, any::<u8>()), 0..4),
        cut in 0_usize..4000,
        trust: bool,
    ) {
        let (right, mut frame) = flow.super_frame(&segment, 700);
        for (at, byte) in damage {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        }
        frame.truncate(cut);
        let vnet = if trust { right } else { VnetHeader::parse(vnet).unwrap_or(right) };
        let total = frame.len();
        if let Ok(frames) = split(&vnet, &frame, 4000) {
            prop_assert!(frames.len() <= total.max(1));
        }
        let _ = complete(&vnet, &mut frame);
        // Another frame than the one that was planned for, too.
        if let Ok(mut segments) = Segments::plan(&vnet, &frame) {
            let mut slot = [0; 4000];
            let _ = segments.next_into(&frame[..frame.len() / 2], &mut slot);
            let _ = segments.next_into(&[], &mut slot);
        }
    }

    #[test]
    fn no_bytes_at_all_make_it_panic(
        vnet: [u8; 10],
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(vnet) = VnetHeader::parse(vnet) {
            let _ = split(&vnet, &frame, 2000);
            let _ = complete(&vnet, &mut frame);
        }
    }
}
