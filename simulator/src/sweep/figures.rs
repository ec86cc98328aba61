//! What a sweep takes from a run: [`Figures`], and each by its name: [`Figure`].

use serde::{Deserialize, Serialize};
use sim::Role;

use crate::cast::Cast;
use crate::measure::{Delays, Lost, Record};

/// Figures of one scene. Shares are from 0 to 1. What was not measured is none.
///
/// A vehicle that no chain of links leads to a road-side unit cannot have a route, whatever the
/// protocol does; with road-side units at random places that is often so. So shares are told twice.
/// One is of the moments in which a vehicle *could* have a route, which is what a protocol can be
/// judged by. That is when each link of a chain brings more than half of its frames, and the chain
/// has been there for the grace time. The other is of *all* moments of all vehicles, which is what
/// somebody in a vehicle would see. The grace time in which a route may still be looked for is in
/// neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Vehicles on the road at once, on average.
    pub vehicles: f64,
    /// Of the moments of vehicles: one could have a route.
    pub reachable: Option<f64>,
    /// Of the moments in which one could have a route: it had one.
    pub routed: Option<f64>,
    /// Of all moments.
    pub routed_of_all: Option<f64>,
    /// Of the moments in which one could have a route: it had one, and every link of it was there.
    pub working: Option<f64>,
    /// Of all moments.
    pub working_of_all: Option<f64>,
    /// Airtime of control frames: mean over receivers and seconds.
    pub control_mean: Option<f64>,
    /// In the worst second at any receiver.
    pub control_worst: Option<f64>,
    /// Time in which the channel was busy, mean.
    pub busy_mean: Option<f64>,
    /// Of the clients' frames whose vehicle could have had a route: lost.
    pub lost: Option<f64>,
    /// Of all clients' frames.
    pub lost_of_all: Option<f64>,
    /// Delay of delivered frames that half of them do not exceed, in milliseconds.
    pub delay_p50_ms: Option<f64>,
    /// The same, for 99 %.
    pub delay_p99_ms: Option<f64>,
}

impl Figures {
    /// Of a run.
    pub fn of(record: &Record, cast: &Cast) -> Self {
        let routes = record.routes;
        let moments = routes.reachable + routes.unreachable;
        let rsus = cast.of_role(Role::Rsu).count() as f64;
        let seconds = &record.control.seconds;
        let nodes: f64 = seconds.iter().map(|second| second.nodes as f64).sum();
        let mut lost = Lost::default();
        let mut due = 0;
        for flow in &record.flows {
            lost += flow.lost;
            due += flow.due;
        }
        let mut delays = Delays::default();
        record.delays.iter().for_each(|flow| delays.add(&flow.delays));
        let delay = delays.spread();
        let airtime = record.control.airtime;
        Self {
            vehicles: (nodes / seconds.len().max(1) as f64 - rsus).max(0.0),
            reachable: share(routes.reachable, moments),
            routed: share(routes.routed, routes.reachable),
            routed_of_all: share(routes.routed, moments),
            working: share(routes.working, routes.reachable),
            working_of_all: share(routes.working, moments),
            control_mean: airtime.map(|airtime| airtime.mean.control),
            control_worst: airtime.map(|airtime| airtime.worst.control),
            busy_mean: airtime.map(|airtime| airtime.mean.busy),
            lost: share(lost.total() - lost.out_of_range, due - lost.out_of_range.min(due)),
            lost_of_all: share(lost.total(), due),
            delay_p50_ms: delay.map(|delay| delay.p50),
            delay_p99_ms: delay.map(|delay| delay.p99),
        }
    }
}

/// To a millionth.
fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| (1e6 * part as f64 / of as f64).round() / 1e6)
}

/// The figures a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// [`Figures::routed`].
    Routed,
    /// [`Figures::routed_of_all`].
    RoutedOfAll,
    /// [`Figures::working`].
    Working,
    /// [`Figures::working_of_all`].
    WorkingOfAll,
    /// [`Figures::control_mean`].
    ControlMean,
    /// [`Figures::control_worst`].
    ControlWorst,
    /// [`Figures::lost`].
    Lost,
    /// [`Figures::lost_of_all`].
    LostOfAll,
    /// [`Figures::delay_p99_ms`].
    DelayP99,
    /// Watched rules that were broken.
    Broken,
}

impl Figure {
    /// In the order of tables.
    pub const ALL: [Self; 10] = [
        Self::Routed,
        Self::RoutedOfAll,
        Self::Working,
        Self::WorkingOfAll,
        Self::ControlMean,
        Self::ControlWorst,
        Self::Lost,
        Self::LostOfAll,
        Self::DelayP99,
        Self::Broken,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Routed => "routed",
            Self::RoutedOfAll => "routed, of all",
            Self::Working => "every link there",
            Self::WorkingOfAll => "every link there, of all",
            Self::ControlMean => "control airtime, mean",
            Self::ControlWorst => "control airtime, worst second",
            Self::Lost => "frames lost",
            Self::LostOfAll => "frames lost, of all",
            Self::DelayP99 => "delay p99",
            Self::Broken => "rules broken",
        }
    }

    /// Is more better?
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Routed | Self::RoutedOfAll | Self::Working | Self::WorkingOfAll)
    }

    /// A value for reading.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::DelayP99 if value < 10.0 => format!("{value:.1} ms"),
            Self::DelayP99 => format!("{value:.0} ms"),
            Self::Broken => format!("{value:.0}"),
            _ => format!("{:.2} %", 100.0 * value),
        }
    }
}
