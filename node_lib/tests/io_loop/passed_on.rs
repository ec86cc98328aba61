//! A frame passed on is sent from where it lies, without an allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use node_lib::device::{Burst, Device, Outgoing, StaticLinks};
use node_lib::runtime::Runtime;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::Remote;

use crate::bench::{Bench, put, take};
use crate::script::{Call, Script};

#[test]
fn a_frame_passed_on_is_sent_from_where_it_lies_and_copies_keep_their_content() {
    let mut node = Script::new(|call, out| {
        let Call::Wire(_) = call else { return };
        out.wire(|flat| flat.extend_from_slice(&[1; 14]));
    });
    node.pass = Some(|frame, out| {
        out.wire_around(0, &frame[4..], |head| head.extend_from_slice(&[2; 40]));
        out.tap_frame(&frame[4..]);
        out.wire_around(0, &frame[4..], |head| head.extend_from_slice(&[3; 40]));
    });
    let mut bench = Bench::new();
    for n in 0..3 {
        put(&mut bench.air, &[n; 60]);
    }
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let around = |head: u8, n: u8| [[head; 40].as_slice(), &[n; 56]].concat();
    let expected = (0..3).flat_map(|n| [around(2, n), around(3, n), vec![1; 14]]);
    assert_eq!(take(&mut bench.air), expected.collect::<Vec<_>>());
    assert_eq!(take(&mut bench.host), [[0; 56], [1; 56], [2; 56]]);
}

#[test]
fn forwarding_a_frame_allocates_nothing() {
    let mut node = Script::new(|call, out| match call {
        Call::Wire(frame) => out.tap(|flat| flat.extend_from_slice(frame)),
        Call::Tap(frame) => out.wire(|flat| flat.extend_from_slice(frame)),
        _ => {}
    });
    node.record = false;
    let mut bench = Bench::new();
    let mut traffic = |rounds: u32| {
        let Bench { radio, air, tap, host, tap_mtu, link, .. } = &mut bench;
        let runtime = Runtime {
            clock: Clock::start(),
            radio: link.clone(),
            tap_mtu: *tap_mtu,
            bundles: true,
            coalesce: Duration::ZERO,
            busy_poll: Duration::ZERO,
            announcements: Vec::new(),
            remembered: Vec::new(),
            client_file: None,
        };
        let (mut links, mut remote) = (StaticLinks, Remote::new());
        let running = runtime.start(&mut node, radio, tap, &mut links, &mut remote);
        let mut running = running.unwrap();
        let mut burst = Burst::new(64);
        let mut before = 0;
        for round in 0..rounds {
            if round == 100 {
                before = ALLOCATIONS.get();
            }
            for _ in 0..20 {
                air.send(&[Outgoing::new(&[5; 1400])]);
                host.send(&[Outgoing::new(&[6; 200])]);
            }
            assert_eq!(running.turn(Some(Duration::ZERO)).unwrap(), None);
            host.recv(&mut burst);
            air.recv(&mut burst);
        }
        ALLOCATIONS.get() - before
    };
    assert_eq!(traffic(1100), 0, "allocations while 40000 frames were forwarded");
    assert!(bench.tap.counters().tx_frames > 15_000, "{:?}", bench.tap.counters());
}

/// Counts the allocations of each thread, so that tests do not count each other's.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: forwards to the system's allocator; the counter is a plain thread-local without
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
