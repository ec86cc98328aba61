//! All runs, and what they come to.

use serde::Serialize;

use super::full_rsu::FullRsu;
use super::measure::{BenchRun, CpuCost, Process, UdpRates};
use super::variant::BenchVariant;

/// Everything measured.
#[derive(Clone, Debug, Serialize)]
pub struct BenchResults {
    /// In the order of tables.
    pub variants: Vec<BenchVariant>,
    /// In the order in which they were made.
    pub runs: Vec<BenchRun>,
    /// A road-side unit full of vehicles.
    pub full_rsu: FullRsu,
}

/// Something every run gives, or every run with programs.
#[derive(Clone, Copy, Debug)]
pub struct BenchFigure {
    /// What files call it.
    pub key: &'static str,
    /// What tables call it.
    pub title: &'static str,
    /// Unit of what [`BenchFigure::of`] gives.
    pub unit: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    /// Whether less is better.
    pub is_cost: bool,
    /// What a run says; `None` where no program carried.
    pub of: fn(&BenchRun) -> Option<f64>,
}

/// Median and range over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundSpread {
    /// Least.
    pub min: f64,
    /// Half are no less, half no more.
    pub median: f64,
    /// Most.
    pub max: f64,
}

impl RoundSpread {
    /// Of these values; `None` when there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        let upper = *values.get(half)?;
        let is_even = values.len().is_multiple_of(2);
        let lower = if is_even { *values.get(half - 1)? } else { upper };
        let median = f64::midpoint(lower, upper);
        Some(Self { min: *values.first()?, median, max: *values.last()? })
    }
}

impl BenchResults {
    /// A figure of a variant over all rounds.
    pub fn spread(&self, variant: BenchVariant, figure: &BenchFigure) -> Option<RoundSpread> {
        RoundSpread::of(self.of(variant).filter_map(figure.of))
    }

    /// By how much a figure of one variant exceeds that of another: the medians' ratio, and the
    /// least and most of the ratios of single rounds.
    pub fn ratio(
        &self,
        variant: BenchVariant,
        to: BenchVariant,
        figure: &BenchFigure,
    ) -> Option<RoundSpread> {
        let (ours, theirs) = (self.spread(variant, figure)?, self.spread(to, figure)?);
        let each = self.of(variant).filter_map(|run| {
            let other = self.of(to).find(|other| other.round == run.round)?;
            Some((figure.of)(run)? / (figure.of)(other)?)
        });
        let RoundSpread { min, max, .. } = RoundSpread::of(each)?;
        Some(RoundSpread { min, median: ours.median / theirs.median, max })
    }

    fn of(&self, variant: BenchVariant) -> impl Iterator<Item = &BenchRun> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }
}

/// The figures, in the order of tables.
pub const FIGURES: [BenchFigure; 17] = [
    TCP_1,
    rate("tcp_4", "TCP, 4 flows", "Mbit/s", |run| Some(run.tcp_4.bits_per_s / 1e6)),
    UDP_64,
    rate("udp_1400", "UDP 1400 B delivered", "kframes/s", |run| {
        Some(run.udp_1400.delivered_per_s / 1e3)
    }),
    IDLE_P50,
    cost("idle_p99", "round trip idle, p99", "µs", |run| Some(run.idle.round_trips.p99_us)),
    BenchFigure {
        decimals: 1,
        ..cost("cpu_idle", "CPU per idle round trip, all programs", "µs", |run| {
            let answered = run.idle.round_trips.sent - run.idle.round_trips.lost;
            (!run.processes.is_empty() && answered > 0)
                .then(|| run.idle.cpu_ns as f64 / 1e3 / answered as f64)
        })
    },
    cost("loaded_p50", "round trip under TCP, p50", "µs", |run| Some(run.loaded.p50_us)),
    LOADED_P99,
    CPU_TCP,
    cost("cpu_tcp_vehicle", "  at the vehicle (sends)", "ns", |run| {
        per_frame(first(run), |process| process.tcp_1)
    }),
    cost("cpu_tcp_relay", "  at the relay", "ns", |run| {
        per_frame(run.processes.get(1).filter(|_| run.processes.len() > 2), |process| process.tcp_1)
    }),
    cost("cpu_tcp_road", "  at the road side (receives)", "ns", |run| {
        per_frame(last(run), |process| process.tcp_1)
    }),
    CPU_UDP,
    cost("cpu_udp_1400", "CPU per datagram, UDP 1400 B", "ns", |run| {
        per_datagram(run, run.udp_1400, |process| process.udp_1400)
    }),
    BenchFigure {
        decimals: 1,
        ..cost("resident", "resident memory of the largest program", "MiB", |run| {
            let most = run.processes.iter().map(|process| process.resident).max()?;
            Some(most as f64 / MEBIBYTE)
        })
    },
    cost("others", "share of the machine others had", "%", |run| Some(run.others * 100.0)),
];

pub(super) const TCP_1: BenchFigure =
    rate("tcp_1", "TCP, 1 flow", "Mbit/s", |run| Some(run.tcp_1.bits_per_s / 1e6));
pub(super) const UDP_64: BenchFigure =
    rate("udp_64", "UDP 64 B delivered", "kframes/s", |run| Some(run.udp_64.delivered_per_s / 1e3));
pub(super) const IDLE_P50: BenchFigure =
    cost("idle_p50", "round trip idle, p50", "µs", |run| Some(run.idle.round_trips.p50_us));
pub(super) const LOADED_P99: BenchFigure =
    cost("loaded_p99", "round trip under TCP, p99", "µs", |run| Some(run.loaded.p99_us));
pub(super) const CPU_TCP: BenchFigure =
    cost("cpu_tcp", "CPU per frame, TCP, both ends", "ns", |run| {
        per_frame(ends(run), |process| process.tcp_1)
    });
pub(super) const CPU_UDP: BenchFigure =
    cost("cpu_udp_64", "CPU per datagram, UDP 64 B, both ends", "ns", |run| {
        per_datagram(run, run.udp_64, |process| process.udp_64)
    });

pub(super) const MEBIBYTE: f64 = 1024.0 * 1024.0;

const fn rate(
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&BenchRun) -> Option<f64>,
) -> BenchFigure {
    BenchFigure { key, title, unit, decimals: 0, is_cost: false, of }
}

const fn cost(
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&BenchRun) -> Option<f64>,
) -> BenchFigure {
    BenchFigure { key, title, unit, decimals: 0, is_cost: true, of }
}

fn first(run: &BenchRun) -> Option<&Process> {
    run.processes.first()
}

fn last(run: &BenchRun) -> Option<&Process> {
    run.processes.last()
}

fn ends(run: &BenchRun) -> impl Iterator<Item = &Process> {
    first(run).into_iter().chain(last(run))
}

/// Processor time of both ends per datagram that arrived. Frames on the radio say little about
/// these: several small ones may share one.
fn per_datagram(run: &BenchRun, udp: UdpRates, of: fn(&Process) -> CpuCost) -> Option<f64> {
    let cpu_ns: u64 = ends(run).map(|process| of(process).cpu_ns).sum();
    (udp.delivered > 0 && cpu_ns > 0).then(|| cpu_ns as f64 / udp.delivered as f64)
}

/// Processor time per frame of these programs, taken together.
fn per_frame<'a>(
    processes: impl IntoIterator<Item = &'a Process>,
    of: fn(&Process) -> CpuCost,
) -> Option<f64> {
    let add = |sum: CpuCost, cost: CpuCost| CpuCost {
        cpu_ns: sum.cpu_ns + cost.cpu_ns,
        frames: sum.frames + cost.frames,
    };
    let sum = processes.into_iter().map(of).fold(CpuCost::default(), add);
    (sum.frames > 0).then(|| sum.cpu_ns as f64 / sum.frames as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let spread = |values: &[f64]| RoundSpread::of(values.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0]), Some(RoundSpread { min: 3.0, median: 3.0, max: 3.0 }));
        assert_eq!(spread(&[9.0, 1.0, 4.0]), Some(RoundSpread { min: 1.0, median: 4.0, max: 9.0 }));
        assert_eq!(
            spread(&[9.0, 1.0, 4.0, 6.0]),
            Some(RoundSpread { min: 1.0, median: 5.0, max: 9.0 })
        );
    }
}
