//! Many runs in a few numbers: [`Summary`].

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measure::{
    Airtime, Candidates, FlowRecord, HandOver, KindCount, Lost, OwnRecord, Record, RouteShare,
};

/// All runs of one variant together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Runs.
    pub runs: usize,
    /// Each `[[flow]]`, all its clients together, in the order of the file.
    pub flows: Vec<FlowSum>,
    /// Hand-overs by cause, the most frequent first.
    pub hand_overs: Vec<HandOverSum>,
    /// All hand-overs.
    pub all_hand_overs: HandOverSum,
    /// Time with a route.
    pub routes: RouteShare,
    /// Neighbours OBUs could send through.
    pub candidates: Candidates,
    /// Control frames by kind.
    pub kinds: Vec<KindCount>,
    /// How full the channel was: the mean over runs, and the worst second of all.
    pub airtime: Option<Airtime>,
    /// Control frames per running node and second; none if no whole second was measured.
    pub control_frames_per_node_s: Option<f64>,
    /// Bytes in them.
    pub control_bytes_per_node_s: Option<f64>,
}

/// One `[[flow]]` over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowSum {
    /// Its name.
    pub flow: String,
    /// Frames sent.
    pub sent: u64,
    /// Frames that should have been received.
    pub due: u64,
    /// Frames received.
    pub received: u64,
    /// Frames lost.
    pub lost: Lost,
    /// Frames received twice.
    pub doubled: u64,
    /// Frames sent over two links at once.
    pub sent_twice: u64,
    /// The longest time in which nothing came through to one client; none without frames to one.
    pub longest_gap_ms: Option<f64>,
}

/// Hand-overs of one cause, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HandOverSum {
    /// The cause, or `all`.
    pub cause: String,
    /// How many.
    pub count: u64,
    /// To another RSU.
    pub rsu_changed: u64,
    /// Of those, with frames around them: what gaps are of.
    pub measured: u64,
    /// Longest time in which nothing of a flow came through.
    pub gap_ms: Option<Spread>,
    /// The same, counting only frames that another route would have saved.
    pub gap_by_routing_ms: Option<Spread>,
    /// Time without an upstream, of those that found another.
    pub without_ms: Option<Spread>,
    /// Frames sent within a second of a hand-over.
    pub frames: u64,
    /// Of those, lost.
    pub lost: Lost,
    /// Of those, received twice.
    pub doubled: u64,
    /// Of those, sent over two links at once.
    pub sent_twice: u64,
    /// What the OBUs themselves wrote down.
    pub own: OwnSum,
}

/// What OBUs wrote down of hand-overs ([`OwnRecord`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OwnSum {
    /// Hand-overs with a record.
    pub records: u64,
    /// Of those, acknowledged by the RSU.
    pub acknowledged: u64,
    /// Time without a way that was believed.
    pub gap_ms: Option<Spread>,
    /// Frames dropped because there was no way.
    pub lost: u64,
    /// Frames handed to an upstream after its last sign of life, and to nobody else.
    pub at_risk: u64,
    /// Frames that came twice, and were delivered once.
    pub doubled: u64,
    /// Frames sent both ways.
    pub sent_twice: u64,
}

/// How values are spread: the smallest value that this share of all values does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Half of them.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// All of them.
    pub max: f64,
}

impl Spread {
    /// Of these values; none of none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        // Nearest rank, in whole numbers: the value at ⌈n·share⌉, counted from one.
        let rank = |percent: usize| {
            let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
            values.get(place).copied()
        };
        Some(Self { p50: rank(50)?, p90: rank(90)?, p99: rank(99)?, max: rank(100)? })
    }
}

/// A share in percent; none of nothing.
pub fn percent(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| 100.0 * part as f64 / of as f64)
}

impl Summary {
    /// Of these runs.
    pub fn of(records: &[Record]) -> Self {
        let mut flows: Vec<FlowSum> = Vec::new();
        let mut candidates = Candidates::default();
        let mut routes = RouteShare::default();
        let mut kinds: Vec<KindCount> = Vec::new();
        let (mut frames, mut bytes, mut node_seconds) = (0, 0, 0);
        let airtimes = || records.iter().filter_map(|record| record.control.airtime);
        let airtime = airtimes().next().is_some().then(|| {
            let part = 1.0 / airtimes().count() as f64;
            let mut all = Airtime::default();
            for Airtime { mean, worst } in airtimes() {
                all.mean.add(mean, part);
                all.worst.raise(worst);
            }
            all
        });
        for record in records {
            for flow in &record.flows {
                let flow = FlowSum::from(flow);
                match flows.iter_mut().find(|sum| sum.flow == flow.flow) {
                    Some(sum) => sum.add(&flow),
                    None => flows.push(flow),
                }
            }
            routes.reachable += record.routes.reachable;
            routes.routed += record.routes.routed;
            routes.working += record.routes.working;
            routes.unreachable += record.routes.unreachable;
            candidates.add(&record.candidates);
            for kind in &record.control.kinds {
                match kinds.iter_mut().find(|sum| sum.kind == kind.kind) {
                    Some(sum) => {
                        sum.frames += kind.frames;
                        sum.bytes += kind.bytes;
                    }
                    None => kinds.push(kind.clone()),
                }
            }
            for second in &record.control.seconds {
                frames += second.control_frames;
                bytes += second.control_bytes;
                node_seconds += second.nodes;
            }
        }
        let all: Vec<&HandOver> = records.iter().flat_map(|record| &record.hand_overs).collect();
        let mut by_cause: BTreeMap<&str, Vec<&HandOver>> = BTreeMap::new();
        for hand_over in &all {
            by_cause.entry(hand_over.cause).or_default().push(hand_over);
        }
        let mut hand_overs: Vec<HandOverSum> =
            by_cause.into_iter().map(|(cause, some)| HandOverSum::of(cause, &some)).collect();
        hand_overs.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cause.cmp(&b.cause)));
        let per_node_s = |sum: u64| (node_seconds > 0).then(|| sum as f64 / node_seconds as f64);
        Self {
            runs: records.len(),
            flows,
            hand_overs,
            all_hand_overs: HandOverSum::of("all", &all),
            routes,
            candidates,
            kinds,
            airtime,
            control_frames_per_node_s: per_node_s(frames),
            control_bytes_per_node_s: per_node_s(bytes),
        }
    }

    /// All flows together.
    pub fn traffic(&self) -> FlowSum {
        let mut all = FlowSum { flow: "all".to_owned(), ..FlowSum::default() };
        self.flows.iter().for_each(|flow| all.add(flow));
        all
    }
}

impl FlowSum {
    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.due += other.due;
        self.received += other.received;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.sent_twice += other.sent_twice;
        let longest = |gap: f64| self.longest_gap_ms.map_or(gap, |longest| longest.max(gap));
        self.longest_gap_ms = other.longest_gap_ms.map(longest).or(self.longest_gap_ms);
    }
}

impl From<&FlowRecord> for FlowSum {
    fn from(flow: &FlowRecord) -> Self {
        Self {
            flow: flow.flow.clone(),
            sent: flow.sent,
            due: flow.due,
            received: flow.received,
            lost: flow.lost,
            doubled: flow.doubled,
            sent_twice: flow.sent_twice,
            longest_gap_ms: flow.longest_gap_ms,
        }
    }
}

impl HandOverSum {
    fn of(cause: &str, hand_overs: &[&HandOver]) -> Self {
        let spread = |value: fn(&HandOver) -> Option<f64>| {
            Spread::of(hand_overs.iter().filter_map(|hand_over| value(hand_over)).collect())
        };
        let sum = |value: fn(&HandOver) -> u64| -> u64 {
            hand_overs.iter().map(|hand_over| value(hand_over)).sum()
        };
        let own: Vec<OwnRecord> = hand_overs.iter().filter_map(|hand_over| hand_over.own).collect();
        let own_sum = |value: fn(&OwnRecord) -> u64| -> u64 { own.iter().map(value).sum() };
        let own = OwnSum {
            records: own.len() as u64,
            acknowledged: own_sum(|own| own.acknowledged.into()),
            gap_ms: Spread::of(own.iter().map(|own| own.gap_ms).collect()),
            lost: own_sum(|own| own.lost),
            at_risk: own_sum(|own| own.at_risk),
            doubled: own_sum(|own| own.doubled),
            sent_twice: own_sum(|own| own.sent_twice),
        };
        let mut lost = Lost::default();
        hand_overs.iter().for_each(|hand_over| lost += hand_over.lost);
        Self {
            cause: cause.to_owned(),
            count: hand_overs.len() as u64,
            rsu_changed: sum(|hand_over| hand_over.rsu_changed.into()),
            measured: sum(|hand_over| hand_over.gap_ms.is_some().into()),
            gap_ms: spread(|hand_over| hand_over.gap_ms),
            gap_by_routing_ms: spread(|hand_over| hand_over.gap_by_routing_ms),
            without_ms: spread(|hand_over| hand_over.without_ms),
            frames: sum(|hand_over| hand_over.frames),
            lost,
            doubled: sum(|hand_over| hand_over.doubled),
            sent_twice: sum(|hand_over| hand_over.sent_twice),
            own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let spread = Spread::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(spread, Some(Spread { p50: 100.0, p90: 180.0, p99: 198.0, max: 200.0 }));
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.p50, one.max), (7.0, 7.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn no_share_of_nothing() {
        assert_eq!(percent(1, 4), Some(25.0));
        assert_eq!(percent(0, 0), None);
    }
}
