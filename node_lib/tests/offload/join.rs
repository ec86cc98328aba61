//! Joining: splitting what was joined gives the same frames, and as few writes as GRO would make.

use std::collections::HashMap;

use node_lib::offload::join::{FLOWS_MAX, PARTS_MAX, SEGMENTS_MAX};
use node_lib::offload::{Gso, Joiner, VnetHeader, complete};
use proptest::prelude::*;

use crate::frames::*;
use crate::split::split;

/// One write as the kernel gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    vnet: VnetHeader,
    frame: Vec<u8>,
    segments: usize,
}

fn join<F: AsRef<[u8]>>(joiner: &mut Joiner, frames: &[F]) -> Vec<Written> {
    let mut written = Vec::new();
    for write in joiner.join(frames) {
        assert!(write.parts().count() <= PARTS_MAX);
        let bytes: Vec<u8> = write.parts().flatten().copied().collect();
        let vnet = VnetHeader::parse(*bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(vnet, write.vnet());
        if vnet.gso != Gso::None {
            let frames = split(&vnet, &bytes[10..], 70_000).unwrap();
            assert_eq!(write.bytes(), frames.iter().map(Vec::len).sum());
            assert_eq!(write.longest(), frames.iter().map(Vec::len).max().unwrap());
        } else {
            assert_eq!((write.bytes(), write.longest()), (bytes.len() - 10, bytes.len() - 10));
        }
        written.push(Written { vnet, frame: bytes[10..].to_vec(), segments: write.segments() });
    }
    written
}

/// The frames a kernel would make of the writes, checking each super-frame on the way.
fn split_all(written: &[Written]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for write in written {
        if write.vnet.gso == Gso::None {
            assert_eq!(write.vnet, VnetHeader::default());
            frames.push(write.frame.clone());
            continue;
        }
        let segments = split(&write.vnet, &write.frame, 70_000).unwrap();
        assert_eq!(segments.len(), write.segments);
        // As one frame it is right too: lengths, header checksum, sum of the pseudo header.
        let mut whole = write.frame.clone();
        complete(&write.vnet, &mut whole).unwrap();
        let at = usize::from(write.vnet.csum_start + write.vnet.csum_offset);
        if whole[at..at + 2] != [0xff, 0xff] {
            assert_intact(&whole);
        }
        frames.extend(segments);
    }
    frames
}

fn counts(written: &[Written]) -> Vec<usize> {
    written.iter().map(|write| write.segments).collect()
}

/// `count` segments of `len` bytes, one after the other.
fn train(flow: &Flow, count: u16, len: usize) -> Vec<Segment> {
    let segment = |i: u16| Segment {
        seq: 5_u32.wrapping_sub(4000).wrapping_add(u32::from(i) * len as u32),
        identification: 0xfff0_u16.wrapping_add(i),
        ..Segment::with(pattern(len, i as u8 ^ flow.number))
    };
    (0..count).map(segment).collect()
}

fn frames(flow: &Flow, segments: &[Segment]) -> Vec<Vec<u8>> {
    segments.iter().map(|segment| flow.tcp(segment)).collect()
}

/// Joins a train of five of which one was changed; returns how many segments each write has.
fn joined_with(at: usize, change: impl Fn(&mut Segment)) -> Vec<usize> {
    let mut segments = train(&Flow::PLAIN, 5, 1000);
    change(&mut segments[at]);
    let frames = frames(&Flow::PLAIN, &segments);
    let written = join(&mut Joiner::new(), &frames);
    assert_eq!(split_all(&written), frames);
    counts(&written)
}

/// The same with a changed frame.
fn joined_with_bytes(flow: &Flow, at: usize, change: impl Fn(&mut Vec<u8>)) -> Vec<usize> {
    let mut frames = frames(flow, &train(flow, 5, 1000));
    change(&mut frames[at]);
    let written = join(&mut Joiner::new(), &frames);
    assert_eq!(split_all(&written), frames);
    counts(&written)
}

#[test]
fn a_train_is_one_write() {
    for (is_v6, tags, has_timestamps) in
        [(false, 0, true), (true, 0, false), (false, 2, false), (true, 1, true)]
    {
        let flow = Flow { is_v6, tags, has_timestamps, ..Flow::PLAIN };
        let frames = frames(&flow, &train(&flow, 45, 1400));
        let written = join(&mut Joiner::new(), &frames);
        assert_eq!(counts(&written), [45]);
        assert_eq!(usize::from(written[0].vnet.hdr_len), frames[0].len() - 1400);
        assert_eq!(written[0].vnet.gso_size, 1400);
        assert_eq!(split_all(&written), frames);
    }
}

#[test]
fn a_super_frame_has_64_segments_and_65535_bytes_at_most() {
    let small = frames(&Flow::PLAIN, &train(&Flow::PLAIN, 150, 10));
    let written = join(&mut Joiner::new(), &small);
    assert_eq!(counts(&written), [SEGMENTS_MAX, SEGMENTS_MAX, 150 - 2 * SEGMENTS_MAX]);
    assert_eq!(split_all(&written), small);
    // 66 bytes of headers; 7 times 9352 and 5 times 13093 bytes of payload are 65464 and 65465.
    for (len, most) in [(9352, 7), (13_093, 5), (13_094, 4), (32_734, 2), (32_735, 1)] {
        let large = frames(&Flow::PLAIN, &train(&Flow::PLAIN, 8, len));
        let written = join(&mut Joiner::new(), &large);
        assert_eq!(written[0].segments, most, "{len} bytes");
        assert!(written.iter().all(|write| write.frame.len() <= 65_535));
        assert_eq!(split_all(&written), large);
    }
}

#[test]
fn interleaved_flows_are_one_write_each_and_the_oldest_gives_way() {
    for (flows, writes) in [(2, 2), (FLOWS_MAX, FLOWS_MAX), (FLOWS_MAX + 1, 3 * (FLOWS_MAX + 1))] {
        let flows: Vec<_> = (0..flows).map(|i| Flow { number: i as u8, ..Flow::PLAIN }).collect();
        let mut mixed = Vec::new();
        for i in 0..3 {
            mixed.extend(flows.iter().map(|flow| flow.tcp(&train(flow, 3, 500)[i])));
        }
        let written = join(&mut Joiner::new(), &mixed);
        assert_eq!(written.len(), writes);
        let mut out = split_all(&written);
        out.sort();
        mixed.sort();
        assert_eq!(out, mixed);
    }
}

#[test]
fn a_shorter_segment_and_the_flags_psh_and_fin_end_a_super_frame() {
    assert_eq!(joined_with(4, |segment| segment.payload.truncate(1)), [5]);
    assert_eq!(joined_with(4, |segment| segment.flags |= PSH), [5]);
    assert_eq!(joined_with(4, |segment| segment.flags |= FIN), [5]);
    assert_eq!(joined_with(2, |segment| segment.flags |= PSH), [3, 2]);
    assert_eq!(joined_with(0, |segment| segment.flags |= PSH), [1, 4]);
    let mut segments = train(&Flow::PLAIN, 5, 1000);
    segments[2].payload.truncate(999);
    segments[3].seq -= 1;
    segments[4].seq -= 1;
    let frames = frames(&Flow::PLAIN, &segments);
    assert_eq!(counts(&join(&mut Joiner::new(), &frames)), [3, 2]);
}

#[test]
fn what_differs_begins_the_next_super_frame() {
    let changes: [fn(&mut Segment); 10] = [
        |segment| segment.urgent += 1,
        |segment| segment.window += 1,
        |segment| segment.ack += 1,
        |segment| segment.timestamp += 1,
        |segment| segment.flags |= ECE,
        |segment| segment.seq += 1,
        |segment| segment.seq -= 1,
        |segment| segment.identification += 1,
        |segment| segment.identification -= 1,
        |segment| segment.payload.push(0),
    ];
    for change in changes {
        // Alone: what follows is not like it either.
        assert_eq!(joined_with(2, change), [2, 1, 2]);
    }
    assert_eq!(joined_with(2, |segment| segment.flags |= CWR), [2, 3]);
    assert_eq!(joined_with(0, |segment| segment.flags |= CWR), [5]);
    assert_eq!(joined_with(1, |segment| segment.flags |= CWR), [1, 4]);
}

#[test]
fn cwr_of_the_first_segment_is_marked() {
    let mut segments = train(&Flow::PLAIN, 3, 1000);
    segments[0].flags |= CWR;
    let written = join(&mut Joiner::new(), &frames(&Flow::PLAIN, &segments));
    assert!(written[0].vnet.ecn);
}

#[test]
fn what_may_not_join_passes_and_ends_its_flow() {
    let changes: [fn(&mut Segment); 5] = [
        |segment| segment.flags |= SYN,
        |segment| segment.flags |= RST,
        |segment| segment.flags |= URG,
        |segment| segment.flags &= !ACK,
        |segment| segment.payload.clear(),
    ];
    for change in changes {
        assert_eq!(joined_with(2, change), [2, 1, 2]);
        assert_eq!(joined_with(0, change), [1, 4]);
    }
    let plain = Flow::PLAIN;
    let v6 = Flow { is_v6: true, ..Flow::PLAIN };
    // Padding, and a wrong checksum of the IPv4 header.
    assert_eq!(joined_with_bytes(&plain, 2, |frame| frame.push(0)), [2, 1, 2]);
    assert_eq!(joined_with_bytes(&plain, 2, |frame| frame[24] ^= 1), [2, 1, 2]);
    for flow in [plain, v6] {
        let transport = flow.transport();
        // A wrong checksum, wherever the damage is, also in the first.
        for at in [transport + 16, transport + 17, transport + 32, transport + 900] {
            assert_eq!(joined_with_bytes(&flow, 2, |frame| frame[at] ^= 1), [2, 1, 2]);
            assert_eq!(joined_with_bytes(&flow, 0, |frame| frame[at] ^= 1), [1, 4]);
        }
    }
    for flow in [
        Flow { has_extras: true, ..Flow::PLAIN },
        Flow { has_extras: true, is_v6: true, ..Flow::PLAIN },
    ] {
        assert_eq!(joined_with_bytes(&flow, 0, |_| {}), [1; 5]);
    }
}

#[test]
fn the_other_zero_of_a_checksum_passes_as_it_is() {
    // A payload whose last two bytes make the checksum zero.
    let mut segments = train(&Flow::PLAIN, 3, 1000);
    let check = |segment: &Segment| {
        let frame = Flow::PLAIN.tcp(segment);
        u16::from_be_bytes([frame[50], frame[51]])
    };
    segments[1].payload[998..].copy_from_slice(&[0, 0]);
    let missing = check(&segments[1]).to_be_bytes();
    segments[1].payload[998..].copy_from_slice(&missing);
    assert_eq!(check(&segments[1]), 0);

    let mut frames = frames(&Flow::PLAIN, &segments);
    assert_eq!(counts(&join(&mut Joiner::new(), &frames)), [3]);
    frames[1][50..52].copy_from_slice(&[0xff, 0xff]);
    let written = join(&mut Joiner::new(), &frames);
    assert_eq!(counts(&written), [1, 1, 1]);
    assert_eq!(split_all(&written), frames);
}

#[test]
fn the_other_zero_of_a_header_checksum_passes_as_it_is() {
    let mut segments = train(&Flow::PLAIN, 3, 1000);
    let check = |segment: &Segment| {
        let frame = Flow::PLAIN.tcp(segment);
        u16::from_be_bytes([frame[24], frame[25]])
    };
    // Identifications such that the checksum of the second header is zero.
    segments[1].identification = 0;
    let identification = check(&segments[1]);
    for (i, segment) in (0..).zip(&mut segments) {
        segment.identification = identification + i - 1;
    }
    assert_eq!(check(&segments[1]), 0);

    let mut frames = frames(&Flow::PLAIN, &segments);
    assert_eq!(counts(&join(&mut Joiner::new(), &frames)), [3]);
    frames[1][24..26].copy_from_slice(&[0xff, 0xff]);
    let written = join(&mut Joiner::new(), &frames);
    assert_eq!(counts(&written), [1, 1, 1]);
    assert_eq!(split_all(&written), frames);
}

#[test]
fn other_addresses_ports_or_tags_are_other_flows() {
    let flow = Flow { tags: 1, ..Flow::PLAIN };
    let transport = flow.transport();
    // MAC addresses, tag, IP addresses, ports; the IPv4 addresses changed so that checksums stay
    // right.
    let changes: [(usize, usize); 5] =
        [(0, 1), (6, 7), (14, 15), (transport - 6, transport - 2), (transport, transport + 2)];
    for (a, b) in changes {
        let mut frames = frames(&flow, &train(&flow, 2, 1000));
        frames[1].swap(a, b);
        assert_ne!(frames[1], flow.tcp(&train(&flow, 2, 1000)[1]), "{a} and {b} differ");
        let written = join(&mut Joiner::new(), &frames);
        assert_eq!(counts(&written), [1, 1]);
        assert_eq!(split_all(&written), frames);
    }
}

#[test]
fn a_fragment_of_tcp_ends_every_flow_and_one_of_udp_none() {
    let flow = Flow::PLAIN;
    let mut frames = frames(&flow, &train(&flow, 4, 1000));
    let mut fragment = Flow { number: 9, ..Flow::PLAIN }.tcp(&Segment::with(vec![1; 100]));
    fragment[20] = 0x20;
    frames.insert(2, fragment.clone());
    assert_eq!(counts(&join(&mut Joiner::new(), &frames)), [2, 1, 2]);
    frames[2][23] = 17;
    assert_eq!(counts(&join(&mut Joiner::new(), &frames)), [1, 4]);
}

#[test]
fn other_traffic_passes_and_ends_nothing() {
    let flow = Flow::PLAIN;
    let mut frames = frames(&flow, &train(&flow, 4, 1000));
    frames.insert(1, flow.udp(3, b"datagram"));
    frames.insert(3, vec![0xff; 60]);
    let written = join(&mut Joiner::new(), &frames);
    assert_eq!(counts(&written), [1, 1, 4]);
    assert_eq!((&written[0].frame, &written[1].frame), (&frames[1], &frames[3]));
}

#[test]
fn nothing_in_nothing_out() {
    assert!(join(&mut Joiner::new(), &[] as &[&[u8]]).is_empty());
    let shorts: Vec<Vec<u8>> = (0..60).map(|len| vec![8; len]).collect();
    assert_eq!(split_all(&join(&mut Joiner::new(), &shorts)), shorts);
}

/// What happens to a flow next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Full,
    Flags(u8),
    Short(usize),
    Long,
    Ack,
    Window,
    Timestamp,
    Skip,
    Repeat,
    Identification(u16),
    Ttl,
    Damage(usize),
    Padding,
    Fragment,
    Cut(usize),
    Udp,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        40 => Just(Event::Full),
        3 => prop_oneof![
            Just(PSH), Just(FIN), Just(SYN), Just(RST), Just(URG), Just(ECE), Just(CWR),
            Just(PSH | FIN | CWR), any::<u8>(),
        ].prop_map(Event::Flags),
        2 => (0_usize..300).prop_map(Event::Short),
        1 => Just(Event::Long),
        1 => Just(Event::Ack),
        1 => Just(Event::Window),
        1 => Just(Event::Timestamp),
        1 => Just(Event::Skip),
        1 => Just(Event::Repeat),
        1 => prop_oneof![Just(0), Just(2), any::<u16>()].prop_map(Event::Identification),
        1 => Just(Event::Ttl),
        3 => (0_usize..400).prop_map(Event::Damage),
        1 => Just(Event::Padding),
        1 => Just(Event::Fragment),
        1 => (0_usize..100).prop_map(Event::Cut),
        1 => Just(Event::Udp),
    ]
}

/// Plays `events` on `flows`; each frame with the number of its flow.
fn play(flows: &[Flow], events: &[(usize, Event)]) -> Vec<(usize, Vec<u8>)> {
    const LEN: usize = 300;
    let mut segments: Vec<_> =
        flows.iter().map(|flow| Segment::with(pattern(LEN, flow.number))).collect();
    let mut frames = Vec::new();
    for &(n, event) in events {
        let n = n % flows.len();
        let mut flow = flows[n].clone();
        let next = &mut segments[n];
        next.payload = pattern(LEN, flow.number ^ next.seq as u8);
        next.flags = ACK;
        match event {
            Event::Flags(flags) => next.flags ^= flags,
            Event::Short(len) => next.payload.truncate(len),
            Event::Long => next.payload.extend([1; 10]),
            Event::Ack => next.ack += 1,
            Event::Window => next.window ^= 3,
            Event::Timestamp => next.timestamp += 1,
            Event::Skip => next.seq = next.seq.wrapping_add(LEN as u32),
            Event::Repeat => next.seq = next.seq.wrapping_sub(LEN as u32),
            Event::Identification(by) => {
                next.identification = next.identification.wrapping_sub(1).wrapping_add(by);
            }
            Event::Ttl => flow.ttl ^= 1,
            _ => {}
        }
        let mut frame = match event {
            Event::Udp => flow.udp(next.identification, &next.payload),
            _ => flow.tcp(next),
        };
        match event {
            // Not the addresses or ports: then it would be of another flow, in any order.
            Event::Damage(at) => {
                let at = flow.transport() + 4 + at;
                if let Some(byte) = frame.get_mut(at) {
                    *byte = byte.wrapping_add(1 + (n as u8 & 3) * 7);
                }
            }
            Event::Padding => frame.extend([0; 6]),
            Event::Fragment if !flow.is_v6 => frame[flow.network() + 7] ^= 1,
            Event::Cut(by) => frame.truncate(frame.len() - by.min(frame.len() - 14)),
            _ => {}
        }
        next.seq = next.seq.wrapping_add(next.payload.len() as u32);
        next.identification = next.identification.wrapping_add(1);
        frames.push((n, frame));
    }
    frames
}

fn of_flow(frames: &[(usize, Vec<u8>)], flow: usize) -> Vec<&[u8]> {
    frames.iter().filter(|(n, _)| *n == flow).map(|(_, frame)| &frame[..]).collect()
}

/// Numbers of their own, so that no frame belongs to two flows.
fn flows(max: usize) -> impl Strategy<Value = Vec<Flow>> {
    proptest::collection::vec(Flow::any(), 1..max).prop_map(|mut flows| {
        for (number, flow) in (0..).zip(&mut flows) {
            flow.number = number;
            flow.has_extras &= number % 4 == 3;
        }
        flows
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn splitting_what_was_joined_gives_the_same_frames_in_the_order_of_each_flow(
        flows in flows(20),
        events in proptest::collection::vec((any::<usize>(), event()), 0..150),
        batch in prop_oneof![Just(64_usize), 1_usize..150],
    ) {
        let sent = play(&flows, &events);
        let flow_of: HashMap<&[u8], usize> =
            sent.iter().map(|(n, frame)| (&frame[..], *n)).collect();
        let mut joiner = Joiner::new();
        let mut received = Vec::new();
        for batch in sent.chunks(batch) {
            let frames: Vec<_> = batch.iter().map(|(_, frame)| frame).collect();
            for frame in split_all(&join(&mut joiner, &frames)) {
                prop_assert!(flow_of.contains_key(&frame[..]), "nobody sent this");
                received.push((flow_of[&frame[..]], frame));
            }
        }
        prop_assert_eq!(received.len(), sent.len());
        // Frames that belong to no TCP flow may overtake those that do.
        let tcp = |frames: &[(usize, Vec<u8>)], is_tcp: bool| -> Vec<(usize, Vec<u8>)> {
            let ours = |(n, frame): &&(usize, Vec<u8>)| is_of_tcp(&flows[*n], frame) == is_tcp;
            frames.iter().filter(ours).cloned().collect()
        };
        for is_tcp in [true, false] {
            let (sent, received) = (tcp(&sent, is_tcp), tcp(&received, is_tcp));
            for n in 0..flows.len() {
                prop_assert_eq!(of_flow(&received, n), of_flow(&sent, n));
            }
        }
    }

    #[test]
    fn joining_what_was_split_gives_the_same_super_frame(
        flow in Flow::any(),
        segment in Segment::any(2..60_000),
        gso_size in 1000_u16..9000,
    ) {
        let flow = Flow { has_extras: false, ..flow };
        let (vnet, frame) = flow.super_frame(&segment, gso_size);
        let frames = split(&vnet, &frame, 9200).unwrap();
        let written = join(&mut Joiner::new(), &frames);
        if frames.len() > 1 {
            prop_assert_eq!(written, [Written { vnet, frame, segments: frames.len() }]);
        } else {
            prop_assert_eq!(&written[0].frame, &frames[0]);
        }
    }

    #[test]
    fn no_bytes_at_all_are_changed(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 0..70),
    ) {
        let mut out = split_all(&join(&mut Joiner::new(), &frames));
        let mut frames = frames;
        out.sort();
        frames.sort();
        prop_assert_eq!(out, frames);
    }
}

/// By the protocol field, wherever the frame was cut.
fn is_of_tcp(flow: &Flow, frame: &[u8]) -> bool {
    let at = match (flow.is_v6, flow.has_extras) {
        (false, _) => flow.network() + 9,
        (true, false) => flow.network() + 6,
        (true, true) => flow.network() + 40,
    };
    frame.get(at) == Some(&6)
}
