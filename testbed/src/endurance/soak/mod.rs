//! The data path under load for long, with every byte checked: hops, segmentation offload at either
//! end, IP versions and VLAN tags, while the radio's MTU changes.
//!
//! Each case runs the real programs on a fresh [`LineTopology`]. All at once there are iperf3 with
//! sixteen flows in each direction, a transfer in each direction in which every byte is checked,
//! and datagrams too long for one frame. Meanwhile the radios get another MTU again and again, and
//! the TAPs keep theirs. Whatever a program harms without the receiver's checksum noticing is found
//! by content, and whatever the checksum notices is found in the kernel's counters: both must be
//! zero.

pub mod command;
mod errors;
mod tagged;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

pub use errors::StackErrors;
use tagged::Tagged;

use crate::daemons::programs::Programs;
use crate::probe::{Iperf3, Iperf3Report, TcpReport, UdpStream, transfer};
use crate::topology::line::{
    Carrier, LineTopology, Offload, RADIO_MTU, ROAD_V4, ROAD_V6, TAP, TAP_MTU, VEHICLE_V4,
    VEHICLE_V6, wait_until_reached,
};

/// How much is sent in each case.
#[derive(Clone, Copy, Debug)]
pub struct SoakPlan {
    /// Bytes checked in each direction.
    pub bytes: u64,
    /// How long iperf3 runs beside them, whole seconds.
    pub iperf3_s: u32,
    /// Flows of iperf3 in each direction.
    pub flows: u32,
    /// Between two changes of the MTU.
    pub mtu_every: Duration,
}

impl SoakPlan {
    /// What `make soak` does.
    pub fn full(mebibytes: u64) -> Self {
        let mtu_every = Duration::from_millis(1500);
        Self { bytes: mebibytes << 20, iperf3_s: 10, flows: 16, mtu_every }
    }

    /// The same things, a moment each.
    pub fn quick() -> Self {
        Self { bytes: 16 << 20, iperf3_s: 1, flows: 16, mtu_every: Duration::from_millis(300) }
    }
}

/// One way through the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// 1 or 2.
    pub hops: usize,
    /// What the vehicle's TAP does, and the road side's.
    pub offload: (Offload, Offload),
    /// IPv6 rather than IPv4.
    pub is_v6: bool,
    /// On a VLAN over the TAPs.
    pub is_tagged: bool,
}

impl Case {
    /// Every case; those with offload only when the daemons have it.
    pub fn all(has_offload: bool) -> Vec<Self> {
        use Offload::{Off, On};
        let offloads: &[_] = match has_offload {
            true => &[(Off, Off), (On, On), (On, Off), (Off, On)],
            false => &[(Off, Off)],
        };
        let mut all = Vec::new();
        for hops in [1, 2] {
            for offload in offloads {
                for (is_v6, is_tagged) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    all.push(Self { hops, offload: *offload, is_v6, is_tagged });
                }
            }
        }
        all
    }

    /// What tables call it.
    pub fn name(&self) -> String {
        let text = |offload| if offload == Offload::On { "on" } else { "off" };
        let (vehicle, road) = self.offload;
        format!(
            "{} hop{}, offload {}/{}, IPv{}{}",
            self.hops,
            if self.hops == 1 { "" } else { "s" },
            text(vehicle),
            text(road),
            if self.is_v6 { 6 } else { 4 },
            if self.is_tagged { ", tagged" } else { "" },
        )
    }
}

/// What went through in a case without harm.
#[derive(Clone, Copy, Debug)]
pub struct CaseReport {
    /// Of iperf3, both directions.
    pub iperf3: Iperf3Report,
    /// Checked, vehicle to road side and back.
    pub transfers: [TcpReport; 2],
    /// How often the MTU changed meanwhile.
    pub mtu_changes: u32,
    /// Long datagrams that arrived, both ways.
    pub datagrams: u64,
}

/// The VLAN used.
const VLAN: u16 = 7;
const VLAN_NAME: &str = "vlan7";
const VEHICLE_TAGGED: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 31, 0, 2)),
    IpAddr::V6(Ipv6Addr::new(0xfd31, 0, 0, 0, 0, 0, 0, 2)),
];
const ROAD_TAGGED: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 31, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd31, 0, 0, 0, 0, 0, 0, 1)),
];
/// MTUs of the radio, one after the other. The last alone has room for a frame of the TAP in one
/// piece.
const MTUS: [u32; 4] = [1400, RADIO_MTU - 1, 1321, RADIO_MTU];
/// A datagram in several fragments, and how often one is sent.
const DATAGRAM_LEN: usize = 4000;
const DATAGRAM_EVERY: Duration = Duration::from_millis(5);

/// Runs one case. Anything harmed is an error.
pub fn run(plan: &SoakPlan, case: Case, programs: &Programs, logs: &Path) -> Result<CaseReport> {
    let mut line = LineTopology::lay(case.hops)?;
    let (vehicle, road) = case.offload;
    line.start(programs, &Carrier::Daemons { vehicle, road }, logs)
        .and_then(|()| load(plan, case, &line))
        .map_err(|error| anyhow!("{}\n{}: {error:#}", line.log_tails(), case.name()))
}

fn load(plan: &SoakPlan, case: Case, line: &LineTopology) -> Result<CaseReport> {
    let (vehicle, road) = (&line.vehicle, &line.road);
    let ends = Ends::of(case, line)?;
    let Ends { vehicle: at_vehicle, road: at_road, .. } = ends;
    let server = Iperf3::serve(road, at_road)?;
    let streams = [
        UdpStream::start(vehicle, road, at_road, DATAGRAM_EVERY, DATAGRAM_LEN)?,
        UdpStream::start(road, vehicle, at_vehicle, DATAGRAM_EVERY, DATAGRAM_LEN)?,
    ];
    let is_over = AtomicBool::new(false);
    let (iperf3, transfers, mtu_changes) = std::thread::scope(|scope| {
        let up = scope.spawn(|| transfer(vehicle, road, at_road, plan.bytes));
        let down = scope.spawn(|| transfer(road, vehicle, at_vehicle, plan.bytes));
        let iperf3 = scope.spawn(|| server.run(vehicle, plan.flows, plan.iperf3_s, true));
        let changes = scope.spawn(|| change_mtus(line, plan.mtu_every, &is_over));
        let died = |_| anyhow!("a thread died");
        let (up, down) = (up.join().map_err(died), down.join().map_err(died));
        let iperf3 = iperf3.join().map_err(died);
        is_over.store(true, Ordering::Relaxed);
        let changes = changes.join().map_err(died)?.context("MTU")?;
        let up = up?.context("transfer from the vehicle to the road side")?;
        let down = down?.context("transfer from the road side to the vehicle")?;
        Ok::<_, anyhow::Error>((iperf3??, [up, down], changes))
    })?;
    let mut datagrams = 0;
    for stream in streams {
        let report = stream.stop()?;
        ensure!(report.duplicates == 0, "datagrams came twice: {report:?}");
        datagrams += report.received;
    }
    ensure!(datagrams > 0, "no datagram of {DATAGRAM_LEN} bytes arrived");
    ensure!(
        iperf3.bits_per_s > 0.0 && iperf3.back_bits_per_s > 0.0,
        "iperf3 stood still in a direction: {iperf3:?}"
    );
    for ns in line.places() {
        let errors = StackErrors::of(ns)?;
        ensure!(errors.is_none(), "the kernel in {} found {errors:?}", ns.name());
    }
    Ok(CaseReport { iperf3, transfers, mtu_changes, datagrams })
}

/// Addresses that traffic uses.
struct Ends {
    vehicle: IpAddr,
    road: IpAddr,
    _tagged: Vec<Tagged>,
}

impl Ends {
    fn of(case: Case, line: &LineTopology) -> Result<Self> {
        let pick = |[v4, v6]: [IpAddr; 2]| if case.is_v6 { v6 } else { v4 };
        if !case.is_tagged {
            let (vehicle, road) = (pick([VEHICLE_V4, VEHICLE_V6]), pick([ROAD_V4, ROAD_V6]));
            return Ok(Self { vehicle, road, _tagged: Vec::new() });
        }
        let mut tagged = Vec::new();
        for (ns, addresses) in [(&line.vehicle, VEHICLE_TAGGED), (&line.road, ROAD_TAGGED)] {
            tagged.push(Tagged::start(ns, VLAN_NAME, TAP, VLAN)?);
            for address in addresses {
                ns.add_address(VLAN_NAME, address, if address.is_ipv4() { 24 } else { 64 })?;
            }
        }
        let (vehicle, road) = (pick(VEHICLE_TAGGED), pick(ROAD_TAGGED));
        // An IPv6 address is not to be had before its interface is operational.
        wait_until_reached(&line.vehicle, road)?;
        wait_until_reached(&line.road, vehicle)?;
        Ok(Self { vehicle, road, _tagged: tagged })
    }
}

/// Changes the MTU of all radios, and sees to it that those of the TAPs stay, until it is over. How
/// often.
fn change_mtus(line: &LineTopology, every: Duration, is_over: &AtomicBool) -> Result<u32> {
    let mut changes = 0;
    for mtu in MTUS.into_iter().cycle() {
        let next = Instant::now() + every;
        while Instant::now() < next {
            if is_over.load(Ordering::Relaxed) {
                return Ok(changes);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        line.set_radio_mtu(mtu)?;
        for ns in [&line.vehicle, &line.road] {
            let tap_mtu = ns.state(TAP)?.mtu;
            ensure!(tap_mtu == TAP_MTU, "{}: a TAP of {tap_mtu} over {mtu}", ns.name());
        }
        changes += 1;
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_cover_both_ends_with_and_without_offload() {
        let all = Case::all(true);
        assert_eq!((all.len(), Case::all(false).len()), (32, 8));
        let mixed = all.iter().filter(|case| case.offload.0 != case.offload.1).count();
        assert_eq!(mixed, 16);
    }
}
