//! One run: a variant from its start to its end, and everything taken from it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::machine::Spent;
use super::variant::BenchVariant;
use crate::daemons::programs::Programs;
use crate::probe::{FloodReport, Iperf3, Iperf3Report, PingReport, PingStream, flood};
use crate::topology::line::{LineTopology, RADIO, ROAD_V4};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct BenchPlan {
    /// Rounds of all variants.
    pub rounds: usize,
    /// One TCP flow, whole seconds.
    pub tcp_1_s: u32,
    /// Four TCP flows, whole seconds.
    pub tcp_4_s: u32,
    /// UDP, for each size.
    pub udp: Duration,
    /// Round trips, idle and again under load.
    pub pings: u32,
    /// OBUs the road-side unit of the memory check knows.
    pub vehicles: u16,
    /// Clients behind them.
    pub clients: u16,
}

impl BenchPlan {
    /// What `make bench` does, with so many rounds.
    pub fn full(rounds: usize) -> Self {
        Self {
            rounds,
            tcp_1_s: 2,
            tcp_4_s: 1,
            udp: Duration::from_secs(1),
            pings: 500,
            vehicles: 1000,
            clients: 8192,
        }
    }

    /// Just long enough that every figure is there.
    pub fn quick() -> Self {
        Self {
            rounds: 1,
            tcp_1_s: 1,
            tcp_4_s: 1,
            udp: Duration::from_secs(1),
            pings: 25,
            vehicles: 20,
            clients: 100,
        }
    }
}

/// Between two pings.
pub(super) const PING_EVERY: Duration = Duration::from_millis(2);
/// Until a TCP flow has its full speed, before round trips under load are taken.
const SPEED_UP: Duration = Duration::from_millis(300);
const UDP_SMALL: usize = 64;
const UDP_LARGE: usize = 1400;

/// What one run gave.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRun {
    /// Which round, from 1.
    pub round: usize,
    /// What was measured.
    pub variant: BenchVariant,
    /// The share of the machine that neither this nor idleness had from its start to its end.
    pub others: f64,
    /// Nothing else on the line; taken before, together with the other variants of the round.
    pub idle: Idle,
    /// While `tcp_1` was running.
    pub loaded: RoundTrips,
    /// One flow.
    pub tcp_1: Tcp,
    /// Four flows.
    pub tcp_4: Tcp,
    /// 64 bytes of payload.
    pub udp_64: UdpRates,
    /// 1400 bytes of payload.
    pub udp_1400: UdpRates,
    /// The programs that carried, from the vehicle to the road side.
    pub processes: Vec<Process>,
}

/// Round trips while nothing else is on the line, and what they cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Idle {
    /// How long they took.
    #[serde(flatten)]
    pub round_trips: RoundTrips,
    /// Processor time of all programs that carry while they were asked, nanoseconds.
    pub cpu_ns: u64,
}

/// Round trips of ICMP echoes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundTrips {
    /// Median, microseconds.
    pub p50_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// Asked.
    pub sent: u64,
    /// Never answered, and not in the figures above.
    pub lost: u64,
}

/// What iperf3 said.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tcp {
    /// Received, all flows together.
    pub bits_per_s: f64,
    /// Segments sent again.
    pub retransmits: u64,
}

/// Datagrams per second under overload.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UdpRates {
    /// Taken by the sender's stack.
    pub offered_per_s: f64,
    /// Received by a socket.
    pub delivered_per_s: f64,
    /// Received altogether.
    pub delivered: u64,
}

/// A program that carried, and what it took.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its namespace.
    pub place: String,
    /// For one TCP flow.
    pub tcp_1: CpuCost,
    /// For small datagrams.
    pub udp_64: CpuCost,
    /// For large datagrams.
    pub udp_1400: CpuCost,
    /// Memory at the end, bytes.
    pub resident: u64,
}

/// Processor time, and what was done in it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CpuCost {
    /// Nanoseconds.
    pub cpu_ns: u64,
    /// Frames on its radio, both ways.
    pub frames: u64,
}

impl CpuCost {
    fn since(self, before: Self) -> Self {
        Self { cpu_ns: self.cpu_ns - before.cpu_ns, frames: self.frames - before.frames }
    }
}

pub(super) fn measure(
    plan: &BenchPlan,
    round: usize,
    (variant, idle): (BenchVariant, Idle),
    programs: &Programs,
    logs: &Path,
) -> Result<BenchRun> {
    let name = variant.name();
    let before = Spent::now()?;
    let line = variant.set_up(programs, logs).with_context(|| format!("start of {name}"))?;
    let mut run = take(plan, round, (variant, idle), &line)
        .map_err(|error| anyhow!("{}\n{name}: {error:#}", line.log_tails()))?;
    // Its programs have ended then.
    drop(line);
    run.others = Spent::now()?.others_since(before);
    Ok(run)
}

fn take(
    plan: &BenchPlan,
    round: usize,
    (variant, idle): (BenchVariant, Idle),
    line: &LineTopology,
) -> Result<BenchRun> {
    let LineTopology { vehicle, road, .. } = line;
    let server = Iperf3::serve(road, ROAD_V4)?;
    let (tcp_1, tcp_1_costs) = costing(line, || {
        std::thread::scope(|scope| {
            let pings = scope.spawn(|| {
                std::thread::sleep(SPEED_UP);
                PingStream::count(vehicle, ROAD_V4, plan.pings, PING_EVERY)
            });
            let tcp = server.run(vehicle, 1, plan.tcp_1_s, false)?;
            let pings = pings.join().map_err(|_| anyhow!("the ping died"))??;
            Ok((Tcp::from(tcp), RoundTrips::from(pings)))
        })
    })?;
    let (tcp_1, loaded) = tcp_1;
    let tcp_4 = server.run(vehicle, 4, plan.tcp_4_s, false)?.into();
    drop(server);
    let udp =
        |payload| costing(line, || Ok(flood(vehicle, road, ROAD_V4, payload, plan.udp)?.into()));
    let (udp_64, udp_64_costs) = udp(UDP_SMALL)?;
    let (udp_1400, udp_1400_costs) = udp(UDP_LARGE)?;
    let mut processes = Vec::new();
    let costs = tcp_1_costs.into_iter().zip(udp_64_costs).zip(udp_1400_costs);
    for ((place, daemon), ((tcp_1, udp_64), udp_1400)) in
        line.places().into_iter().zip(line.running()).zip(costs)
    {
        let (place, resident) = (place.name().to_owned(), daemon.usage()?.resident);
        processes.push(Process { place, tcp_1, udp_64, udp_1400, resident });
    }
    Ok(BenchRun {
        round,
        variant,
        others: 0.0,
        idle,
        loaded,
        tcp_1,
        tcp_4,
        udp_64,
        udp_1400,
        processes,
    })
}

/// Does something, and says what it cost each program that carries.
fn costing<T>(line: &LineTopology, work: impl FnOnce() -> Result<T>) -> Result<(T, Vec<CpuCost>)> {
    let before = costs(line)?;
    let done = work()?;
    let after = costs(line)?;
    Ok((done, after.into_iter().zip(before).map(|(after, before)| after.since(before)).collect()))
}

pub(super) fn costs(line: &LineTopology) -> Result<Vec<CpuCost>> {
    let places = line.places();
    let each = places.iter().zip(line.running()).map(|(place, daemon)| {
        let cpu_ns = u64::try_from(daemon.usage()?.cpu.as_nanos())?;
        Ok(CpuCost { cpu_ns, frames: place.frames(RADIO)?.total() })
    });
    each.collect()
}

impl From<PingReport> for RoundTrips {
    fn from(report: PingReport) -> Self {
        Self {
            p50_us: report.delay_median().as_secs_f64() * 1e6,
            p99_us: report.delay_p99().as_secs_f64() * 1e6,
            sent: report.sent,
            lost: report.lost,
        }
    }
}

impl From<Iperf3Report> for Tcp {
    fn from(report: Iperf3Report) -> Self {
        Self { bits_per_s: report.bits_per_s, retransmits: report.retransmits }
    }
}

impl From<FloodReport> for UdpRates {
    fn from(report: FloodReport) -> Self {
        let FloodReport { offered_per_s, delivered_per_s, delivered } = report;
        Self { offered_per_s, delivered_per_s, delivered }
    }
}
