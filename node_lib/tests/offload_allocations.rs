//! Once warm, splitting and joining ask nothing of the allocator.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, and that is all"
)]

use etherparse::PacketBuilder;
use node_lib::offload::{Gso, Joiner, Segments, VnetHeader};

#[path = "../../benches/support/counting.rs"]
mod counting;

const WINDOWS: usize = 20;

/// Four flows, interleaved, and a datagram: super-frames, frames alone, and frames passed.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for i in 0..63_u32 {
        let flow = (i % 4) as u8;
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, flow], [2, 0, 0, 0, 1, 0])
            .ipv6([flow; 16], [9; 16], 64)
            .tcp(1000, 2000, i / 4 * 1400, 500)
            .ack(1)
            .write_to_vec(&mut frame, &[i as u8; 1400])
            .unwrap();
        frames.push(frame);
    }
    let mut datagram = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([1; 4], [2; 4], 64)
        .udp(1, 2)
        .write_to_vec(&mut datagram, b"datagram")
        .unwrap();
    frames.push(datagram);
    frames
}

#[test]
fn a_warm_joiner_and_every_split_allocate_nothing() {
    let frames = frames();
    let mut joiner = Joiner::new();
    let mut super_frame = Vec::with_capacity(1 << 16);
    let mut slot = [0; 1600];
    let mut round = || {
        let (mut writes, mut segments) = (0, 0);
        for write in joiner.join(&frames) {
            writes += 1;
            if write.vnet().gso == Gso::None {
                continue;
            }
            super_frame.clear();
            write.parts().skip(1).for_each(|part| super_frame.extend_from_slice(part));
            let vnet: VnetHeader = write.vnet();
            let mut split = Segments::plan(&vnet, &super_frame).unwrap();
            while let Some(len) = split.next_into(&super_frame, &mut slot) {
                len.unwrap();
                segments += 1;
            }
        }
        (writes, segments)
    };
    assert_eq!(round(), (5, 63));
    // What a round costs would show in each window. The thread that runs the tests may have
    // something to do beside one.
    let mut seen = Vec::new();
    loop {
        let (done, counted) = counting::count(|| (0..100).map(|_| round()).last());
        assert_eq!(done, Some((5, 63)));
        if counted.allocations == 0 {
            break;
        }
        seen.push(counted);
        assert!(seen.len() < WINDOWS, "{seen:?}");
    }
}
