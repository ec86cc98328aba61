//! Five packets through one buffer: take, fill, send, return. The buffer stays the same and after
//! the first packet nothing is allocated; both are checked, and the exit code tells.
//!
//! `cargo run -p node_lib --example buffer_pool_usage`

#[path = "../benches/support/counting.rs"]
mod counting;

use std::process::ExitCode;

use node_lib::buffer_pool::{get_buffer, return_buffer, stats};

const PACKETS: u8 = 5;

fn main() -> ExitCode {
    // Printing allocates, so what happened is kept aside until all packets are through.
    let mut seen = Vec::with_capacity(PACKETS.into());

    for packet in 1..=PACKETS {
        let (address, counted) = counting::count(|| {
            let mut buf = get_buffer(1200);
            buf.extend_from_slice(&[packet; 1200]);
            let address = buf.as_ptr().addr();
            // Here a device would send it.
            return_buffer(buf);
            address
        });
        seen.push((packet, address, counted.allocations));
    }

    for (packet, address, allocations) in &seen {
        println!("packet {packet}: buffer at {address:#x}, {allocations} allocations");
    }
    let stats = stats();
    println!("{} taken from the pool, {} allocated", stats.hits, stats.misses);

    let reused = seen.windows(2).all(
        |pair| matches!(pair, [(_, before, _), (_, now, made)] if before == now && *made == 0),
    );
    if reused && stats.misses == 1 {
        println!("one buffer carried all packets");
        ExitCode::SUCCESS
    } else {
        eprintln!("the buffer was not used again");
        ExitCode::FAILURE
    }
}
