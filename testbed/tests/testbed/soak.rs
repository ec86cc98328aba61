//! The soak in its quickest form, and that it would notice what it looks for.

use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result, ensure};
use testbed::endurance::soak::{self, Case, SoakPlan, StackErrors};
use testbed::topology::line::{LineTopology, Offload, ROAD_V4, TAP, VEHICLE_V4, has_tap_offload};
use testbed::{Programs, PromiscuousSocket, arena, wait_until};

use crate::harness::{Area, ms};

pub(crate) const AREA: Area = Area {
    name: "soak",
    alone: &[
        ("nothing_is_harmed_over_1_hop", || nothing_is_harmed_over(1)),
        ("nothing_is_harmed_over_2_hops", || nothing_is_harmed_over(2)),
        ("a_wrong_checksum_is_counted", a_wrong_checksum_is_counted),
        ("a_repeated_handshake_is_no_error", a_repeated_handshake_is_no_error),
    ],
    together: &[],
};

/// Each pair of offloads with one kind of traffic, so that together all kinds are there. All pairs
/// with all kinds is `make soak`.
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
        let plan = SoakPlan::quick();
        let report = soak::run(&plan, case, &programs, logs.path())?;
        ensure!(report.transfers.iter().all(|sent| sent.bytes == plan.bytes), "{report:?}");
        ensure!(report.mtu_changes > 0, "{}: the MTU never changed", case.name());
    }
    Ok(())
}

/// Otherwise a soak that finds no error would say nothing.
fn a_wrong_checksum_is_counted() -> Result<()> {
    let line = LineTopology::cable(false)?;
    ensure!(StackErrors::of(&line.road)?.is_none(), "errors before the first");
    // To port 9, with a checksum that says 1.
    send_segment(&line, [9, 9], SYN, Some(1))?;
    let errors = wait_until("the kernel counts it", ms(2000), || {
        Ok(Some(StackErrors::of(&line.road)?).filter(|errors| !errors.is_none()))
    })?;
    let expected = StackErrors { tcp_checksums: 1, ..StackErrors::default() };
    ensure!(errors == expected, "{errors:?}");
    Ok(())
}

/// An end whose SYN was answered by a segment that got lost sends it again, on a connection that
/// the other end holds to be open. The kernel counts that among segments that are wrong.
fn a_repeated_handshake_is_no_error() -> Result<()> {
    let line = LineTopology::cable(false)?;
    let listener = line.road.run(|| Ok(TcpListener::bind((ROAD_V4, 0))?))?;
    let to = listener.local_addr()?;
    let client = line.vehicle.run(|| Ok(TcpStream::connect(to)?))?;
    let (_server, from) = listener.accept()?;
    ensure!(from == client.local_addr()?, "somebody else connected");
    send_segment(&line, [from.port(), to.port()], SYN, None)?;
    wait_until("the kernel answers it", ms(2000), || {
        Ok((StackErrors::challenges(&line.road)? == 1).then_some(()))
    })?;
    let errors = StackErrors::of(&line.road)?;
    ensure!(errors.is_none(), "{errors:?}");
    Ok(())
}

const SYN: u8 = 2;

/// From the vehicle to the road side, as a frame on the cable; with the right checksum unless one
/// is given.
fn send_segment(
    line: &LineTopology,
    ports: [u16; 2],
    flags: u8,
    checksum: Option<u16>,
) -> Result<()> {
    let (to, from) = (line.road.state(TAP)?.mac, line.vehicle.state(TAP)?.mac);
    let ip = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.octets(),
        std::net::IpAddr::V6(_) => [0; 4],
    };
    let addresses = [ip(VEHICLE_V4), ip(ROAD_V4)].concat();
    let mut header = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    header.extend(&addresses);
    let of_header = internet_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&of_header);
    let mut segment = ports.map(u16::to_be_bytes).concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    let pseudo = [&addresses[..], &[0, 6, 0, 20], &segment].concat();
    let of_segment = checksum.unwrap_or_else(|| internet_checksum(&pseudo));
    segment[16..18].copy_from_slice(&of_segment.to_be_bytes());
    let frame = [&to.0[..], &from.0, &[8, 0], &header, &segment].concat();
    line.vehicle.run(|| Ok(PromiscuousSocket::open(TAP)?))?.send(&frame)?;
    Ok(())
}

/// RFC 1071, of an even number of bytes.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
