//! The soak in its quickest form, and that it would notice what it looks for.

#![allow(clippy::indexing_slicing, reason = "test code: an index out of range is a failed test")]

mod harness;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use testbed::line::{Line, Offload, ROAD_V4, TAP, VEHICLE_V4, has_tap_offload};
use testbed::soak::{self, Case, Plan, StackErrors};
use testbed::{PacketSocket, Programs, arena, wait_until};

fn main() -> ExitCode {
    harness::main(&[
        ("nothing_is_harmed_over_1_hop", || nothing_is_harmed_over(1)),
        ("nothing_is_harmed_over_2_hops", || nothing_is_harmed_over(2)),
        ("a_wrong_checksum_is_counted", a_wrong_checksum_is_counted),
    ])
}

/// Each pair of offloads with one kind of traffic, so that together all kinds are there. All pairs with
/// all kinds is `make soak`.
fn nothing_is_harmed_over(hops: usize) -> Result<()> {
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let logs = tempfile::TempDir::new_in(arena::scratch())?;
    let all = Case::all(has_tap_offload(&programs)?);
    let mut kinds =
        [(false, true), (true, false), (true, true), (false, false)].into_iter().cycle();
    let mut offloads: Vec<(Offload, Offload)> = Vec::new();
    for case in all.iter().filter(|case| case.hops == hops) {
        if !offloads.contains(&case.offload) {
            offloads.push(case.offload);
        }
    }
    for offload in offloads {
        let (is_v6, is_tagged) = kinds.next().context("kinds go on for ever")?;
        let case = Case { hops, offload, is_v6, is_tagged };
        ensure!(all.contains(&case), "{} is not a case of the soak", case.name());
        let plan = Plan::quick();
        let report = soak::run(&plan, case, &programs, logs.path())?;
        ensure!(report.transfers.iter().all(|sent| sent.bytes == plan.bytes), "{report:?}");
        ensure!(report.mtu_changes > 0, "{}: the MTU never changed", case.name());
    }
    Ok(())
}

/// Otherwise a soak that finds no error would say nothing.
fn a_wrong_checksum_is_counted() -> Result<()> {
    let line = Line::cable(false)?;
    ensure!(StackErrors::of(&line.road)?.is_none(), "errors before the first");
    let (to, from) = (line.road.state(TAP)?.mac, line.vehicle.state(TAP)?.mac);
    let ip = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.octets(),
        std::net::IpAddr::V6(_) => [0; 4],
    };
    let mut header = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    header.extend([ip(VEHICLE_V4), ip(ROAD_V4)].concat());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&folded.to_be_bytes());
    // A SYN to port 9 whose checksum field says 1.
    let segment = [0, 9, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 1, 0, 0];
    let frame = [&to.0[..], &from.0, &[8, 0], &header, &segment].concat();
    line.vehicle.run(|| Ok(PacketSocket::open(TAP)?))?.send(&frame)?;
    let errors = wait_until("the kernel counts it", harness::ms(2000), || {
        Ok(Some(StackErrors::of(&line.road)?).filter(|errors| !errors.is_none()))
    })?;
    let expected = StackErrors { tcp_checksums: 1, ..StackErrors::default() };
    ensure!(errors == expected, "{errors:?}");
    Ok(())
}
