//! Segmentation offload: what a super-frame of 64 KiB costs in each direction, and the checksum
//! under both. Bytes are those of the payload; `copy` beside them is the same memory copied and
//! nothing else.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use node_lib::offload::{Gso, Joiner, Segments, Sum, VnetHeader, complete};

const SIZES: [usize; 3] = [64, 1460, 65_000];
const PAYLOAD: usize = 44 * MSS;
/// Payload of a segment in a frame of 1514 bytes with timestamps.
const MSS: usize = 1448;
const SLOT: usize = 1536;

fn checksum(c: &mut Criterion) {
    let mut group = c.benchmark_group("offload/checksum");
    for size in SIZES {
        let data: Vec<u8> = (0..size).map(|at| at as u8).collect();
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::new("sum", size), |b| {
            b.iter(|| Sum::of(black_box(&data)).finish());
        });
    }
    group.finish();
}

fn split(c: &mut Criterion) {
    let mut group = c.benchmark_group("offload/split");
    let mut slots = vec![0; 64 * SLOT];
    for (name, is_v6) in [("tcp4", false), ("tcp6", true)] {
        let (vnet, frame) = super_frame(is_v6);
        group.throughput(Throughput::Bytes(PAYLOAD as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let Ok(mut segments) = Segments::plan(black_box(&vnet), black_box(&frame)) else {
                    return 0;
                };
                let mut bytes = 0;
                for slot in slots.chunks_exact_mut(SLOT) {
                    match segments.next_into(&frame, slot) {
                        Some(Ok(len)) => bytes += len,
                        _ => break,
                    }
                }
                bytes
            });
        });
        group.bench_function(BenchmarkId::new("copy", name), |b| {
            b.iter(|| {
                for (slot, part) in slots.chunks_exact_mut(SLOT).zip(black_box(&frame).chunks(MSS))
                {
                    slot.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
                }
                slots.len()
            });
        });
    }
    group.finish();
}

fn join(c: &mut Criterion) {
    let mut group = c.benchmark_group("offload/join");
    for (name, is_v6, flows) in
        [("tcp4", false, 1), ("tcp6", true, 1), ("tcp4_16_flows", false, 16)]
    {
        let frames = frames(is_v6, flows);
        group.throughput(Throughput::Bytes(PAYLOAD as u64));
        let mut joiner = Joiner::new();
        group.bench_function(name, |b| {
            b.iter(|| {
                joiner
                    .join(black_box(&frames))
                    .map(|write| write.parts().map(<[u8]>::len).sum::<usize>())
                    .sum::<usize>()
            });
        });
    }
    // Nothing to join: the price for those who gain nothing.
    let mut datagrams = frames(false, 1);
    for datagram in &mut datagrams {
        if let Some(protocol) = datagram.get_mut(14 + 9) {
            *protocol = 17;
        }
    }
    group.throughput(Throughput::Elements(datagrams.len() as u64));
    let mut joiner = Joiner::new();
    group.bench_function("udp_passed", |b| {
        b.iter(|| joiner.join(black_box(&datagrams)).map(|write| write.segments()).sum::<usize>());
    });
    group.finish();
}

/// TCP with timestamps and no VLAN tag; the checksum of the pseudo header is left to `complete`.
fn super_frame(is_v6: bool) -> (VnetHeader, Vec<u8>) {
    let ip_len = if is_v6 { 40 } else { 20 };
    let transport = 14 + ip_len;
    let tcp_len = 32 + PAYLOAD;
    let mut frame = vec![0; 12];
    if is_v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((tcp_len as u16).to_be_bytes());
        frame.extend([6, 64]);
        frame.extend([0x20; 32]);
    } else {
        frame.extend([0x08, 0, 0x45, 0]);
        frame.extend(((20 + tcp_len) as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        frame.extend([10; 8]);
    }
    let addresses = frame.get(frame.len() - if is_v6 { 32 } else { 8 }..).unwrap_or_default();
    let partial = Sum::pseudo_header(addresses, 6, tcp_len as u32).partial();
    frame.extend([0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 1, 0]);
    frame.extend(partial);
    frame.extend([0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame.extend((0..PAYLOAD).map(|at| (at / 3) as u8));
    let vnet = VnetHeader {
        needs_csum: true,
        gso: if is_v6 { Gso::TcpV6 } else { Gso::TcpV4 },
        gso_size: MSS as u16,
        csum_start: transport as u16,
        csum_offset: 16,
        ..VnetHeader::default()
    };
    (vnet, frame)
}

/// The segments of a super-frame, dealt out to `flows` flows that differ in the source port.
fn frames(is_v6: bool, flows: u16) -> Vec<Vec<u8>> {
    let (vnet, whole) = super_frame(is_v6);
    let transport = usize::from(vnet.csum_start);
    let mut segments = Vec::new();
    if let Ok(mut split) = Segments::plan(&vnet, &whole) {
        let mut slot = [0; SLOT];
        while let Some(Ok(len)) = split.next_into(&whole, &mut slot) {
            segments.push(slot.get(..len).unwrap_or_default().to_vec());
        }
    }
    for (i, segment) in (0..).zip(&mut segments) {
        if flows == 1 {
            continue;
        }
        // Number within its flow, for sequence number and identification.
        let (flow, number) = (i % flows, i / flows);
        let mut set = |at: usize, bytes: &[u8]| {
            if let Some(place) = segment.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        set(transport, &(1000 + flow).to_be_bytes());
        set(transport + 4, &(u32::from(number) * MSS as u32).to_be_bytes());
        set(14 + 4, &number.to_be_bytes());
        set(14 + 10, &[0, 0]);
        set(transport + 16, &Sum::pseudo_header(&[10; 8], 6, 32 + MSS as u32).partial());
        let ip = VnetHeader { needs_csum: true, csum_start: 14, csum_offset: 10, ..vnet };
        let header = segment.get_mut(..34).unwrap_or_default();
        let finished = complete(&ip, header).and_then(|()| complete(&vnet, segment));
        assert_eq!(finished, Ok(()), "the checksums are within the frame");
    }
    segments
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = checksum, split, join
}
criterion_main!(benches);
