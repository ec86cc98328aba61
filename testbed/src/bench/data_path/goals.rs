//! What the data path is to reach, as ratios within one run.

use super::results::{
    BenchFigure, BenchResults, CPU_TCP, CPU_UDP, IDLE_P50, LOADED_P99, MEBIBYTE, RoundSpread,
    TCP_1, UDP_64,
};
use super::variant::BenchVariant;
use crate::topology::line::Offload;

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub struct BenchGoal {
    /// What tables call it.
    pub title: &'static str,
    /// With what unit.
    pub unit: &'static str,
    /// Asked for.
    pub at_least: f64,
    /// Hoped for.
    pub stretch: f64,
    /// Whether less is better.
    pub is_cost: bool,
    standard: Standard,
}

/// What is held against what.
#[derive(Clone, Copy, Debug)]
pub enum Standard {
    /// A figure of the daemons against another variant.
    Ratio {
        /// Which figure.
        figure: BenchFigure,
        /// Over how many hops.
        hops: usize,
        /// Against what.
        to: BenchVariant,
    },
    /// Memory of a road-side unit that knows many vehicles and clients.
    FullRsu,
}

/// Where something measured stands to a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalStanding {
    /// More than asked.
    Stretch,
    /// As asked.
    Met,
    /// Less than asked.
    Missed,
}

impl BenchGoal {
    /// What the daemons reach, with these TAPs.
    pub fn measured(&self, results: &BenchResults, offload: Offload) -> Option<RoundSpread> {
        match self.standard {
            Standard::Ratio { figure, hops, to } => {
                results.ratio(BenchVariant::Ours { hops, offload }, to, &figure)
            }
            Standard::FullRsu => RoundSpread::of([results.full_rsu.resident as f64 / MEBIBYTE]),
        }
    }

    /// How this value stands.
    pub fn standing(&self, value: f64) -> GoalStanding {
        let reaches = |goal: f64| if self.is_cost { value <= goal } else { value >= goal };
        match (reaches(self.stretch), reaches(self.at_least)) {
            (true, _) => GoalStanding::Stretch,
            (false, true) => GoalStanding::Met,
            (false, false) => GoalStanding::Missed,
        }
    }
}

/// All goals of the data path that a whole system can show.
pub(super) const GOALS: [BenchGoal; 9] = [
    at_least("TCP, 1 flow, 1 hop, against naive", TCP_1, (1, NAIVE_1), 2.0, 2.4),
    at_least("TCP, 1 flow, 1 hop, against veth without offload", TCP_1, (1, VETH), 0.5, 0.65),
    at_least("TCP, 1 flow, 2 hops, against a naive chain", TCP_1, (2, NAIVE_2), 1.5, 2.0),
    at_least("UDP 64 B delivered under overload, against naive", UDP_64, (1, NAIVE_1), 1.3, 1.5),
    at_most("round trip idle, p50, against naive", IDLE_P50, 1.0, 0.9),
    at_most("round trip under one TCP flow, p99, against naive", LOADED_P99, 1.0, 0.5),
    at_most("CPU per frame, TCP, against naive", CPU_TCP, 0.75, 0.6),
    at_most("CPU per datagram, UDP 64 B, against naive", CPU_UDP, 0.75, 0.6),
    BenchGoal {
        title: "memory of an RSU with 1,000 routes and 8,192 clients",
        unit: " MiB",
        at_least: 32.0,
        stretch: 16.0,
        is_cost: true,
        standard: Standard::FullRsu,
    },
];

const VETH: BenchVariant = BenchVariant::VethPlain;
const NAIVE_1: BenchVariant = BenchVariant::Naive { hops: 1 };
const NAIVE_2: BenchVariant = BenchVariant::Naive { hops: 2 };

const fn at_least(
    title: &'static str,
    figure: BenchFigure,
    (hops, to): (usize, BenchVariant),
    at_least: f64,
    stretch: f64,
) -> BenchGoal {
    let standard = Standard::Ratio { figure, hops, to };
    BenchGoal { title, unit: "×", at_least, stretch, is_cost: false, standard }
}

const fn at_most(
    title: &'static str,
    figure: BenchFigure,
    at_most: f64,
    stretch: f64,
) -> BenchGoal {
    let standard = Standard::Ratio { figure, hops: 1, to: NAIVE_1 };
    BenchGoal { title, unit: "×", at_least: at_most, stretch, is_cost: true, standard }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_met_from_below_and_a_rate_from_above() {
        let [tcp, .., memory] = GOALS;
        let standings =
            |goal: BenchGoal, values: [f64; 3]| values.map(|value| goal.standing(value));
        let expected = [GoalStanding::Missed, GoalStanding::Met, GoalStanding::Stretch];
        assert_eq!(standings(tcp, [1.99, 2.0, 2.4]), expected);
        assert_eq!(standings(memory, [32.1, 32.0, 16.0]), expected);
    }
}
