//! Many runs in a few numbers: [`Summary`].

use std::collections::BTreeMap;

use serde::Serialize;

pub use crate::measure::Spread;
use crate::measure::{
    AirtimeShares, CandidateSamples, Delays, FlowDelays, FlowRecord, HandOverRecord, KindCount,
    Lost, OwnRecord, Record, RouteShare,
};

/// All runs of one variant together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Runs.
    pub runs: usize,
    /// Each `[[flow]]`, all its clients together, in the order of the file.
    pub flows: Vec<FlowSum>,
    /// The same frames by direction, named by it. Broadcasts have none.
    pub directions: Vec<FlowSum>,
    /// Hand-overs by cause, the most frequent first.
    pub hand_overs: Vec<HandOverSum>,
    /// All hand-overs.
    pub all_hand_overs: HandOverSum,
    /// Time with a route.
    pub routes: RouteShare,
    /// Neighbours OBUs could send through.
    pub candidates: CandidateSamples,
    /// Control frames by kind.
    pub kinds: Vec<KindCount>,
    /// How full the channel was: the mean over runs, and the worst second of all.
    pub airtime: Option<AirtimeShares>,
    /// Control frames per running node and second; none if no whole second was measured.
    pub control_frames_per_node_s: Option<f64>,
    /// Bytes in them.
    pub control_bytes_per_node_s: Option<f64>,
}

/// One `[[flow]]`, or one direction, over all runs.
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
    /// From client to client, of delivered frames.
    pub delay_ms: Delays,
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
    /// Of those, settled before the next change.
    pub settled: u64,
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

/// A share in percent; none of nothing.
pub fn percent(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| 100.0 * part as f64 / of as f64)
}

impl Summary {
    /// Of these runs.
    pub fn of(records: &[Record]) -> Self {
        let (mut flows, mut directions) = (Sums::default(), Sums::default());
        let mut candidates = CandidateSamples::default();
        let mut routes = RouteShare::default();
        let mut kinds: Vec<KindCount> = Vec::new();
        let (mut frames, mut bytes, mut node_seconds) = (0, 0, 0);
        let airtimes = || records.iter().filter_map(|record| record.control.airtime);
        let airtime = airtimes().next().is_some().then(|| {
            let part = 1.0 / airtimes().count() as f64;
            let mut all = AirtimeShares::default();
            for AirtimeShares { mean, worst } in airtimes() {
                all.mean.add(mean, part);
                all.worst.raise(worst);
            }
            all
        });
        for record in records {
            for flow in &record.flows {
                flows.change(&flow.flow, |sum| sum.count(flow));
                if let Some(direction) = flow.direction {
                    directions.change(direction.as_str(), |sum| sum.count(flow));
                }
            }
            for FlowDelays { flow, direction, delays } in &record.delays {
                flows.change(flow, |sum| sum.delay_ms.add(delays));
                if let Some(direction) = direction {
                    directions.change(direction.as_str(), |sum| sum.delay_ms.add(delays));
                }
            }
            routes.reachable += record.routes.reachable;
            routes.routed += record.routes.routed;
            routes.working += record.routes.working;
            routes.hops += record.routes.hops;
            routes.hops_least += record.routes.hops_least;
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
        let all: Vec<&HandOverRecord> =
            records.iter().flat_map(|record| &record.hand_overs).collect();
        let mut by_cause: BTreeMap<&str, Vec<&HandOverRecord>> = BTreeMap::new();
        for hand_over in &all {
            by_cause.entry(hand_over.cause).or_default().push(hand_over);
        }
        let mut hand_overs: Vec<HandOverSum> =
            by_cause.into_iter().map(|(cause, some)| HandOverSum::of(cause, &some)).collect();
        hand_overs.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cause.cmp(&b.cause)));
        let per_node_s = |sum: u64| (node_seconds > 0).then(|| sum as f64 / node_seconds as f64);
        Self {
            runs: records.len(),
            flows: flows.0,
            directions: directions.0,
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

/// Sums by name, in the order in which they are first named.
#[derive(Default)]
struct Sums(Vec<FlowSum>);

impl Sums {
    /// Changes the sum with this name, which begins with nothing.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut FlowSum)) {
        if let Some(sum) = self.0.iter_mut().find(|sum| sum.flow == name) {
            change(sum);
        } else {
            let mut sum = FlowSum { flow: name.to_owned(), ..FlowSum::default() };
            change(&mut sum);
            self.0.push(sum);
        }
    }
}

impl FlowSum {
    /// Adds one flow of one run, but for its delays.
    fn count(&mut self, flow: &FlowRecord) {
        self.sent += flow.sent;
        self.due += flow.due;
        self.received += flow.received;
        self.lost += flow.lost;
        self.doubled += flow.doubled;
        self.sent_twice += flow.sent_twice;
        self.note_gap(flow.longest_gap_ms);
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.due += other.due;
        self.received += other.received;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.sent_twice += other.sent_twice;
        self.note_gap(other.longest_gap_ms);
        self.delay_ms.add(&other.delay_ms);
    }

    fn note_gap(&mut self, gap: Option<f64>) {
        let longest = |gap: f64| self.longest_gap_ms.map_or(gap, |longest| longest.max(gap));
        self.longest_gap_ms = gap.map(longest).or(self.longest_gap_ms);
    }
}

impl HandOverSum {
    fn of(cause: &str, hand_overs: &[&HandOverRecord]) -> Self {
        let spread = |value: fn(&HandOverRecord) -> Option<f64>| {
            Spread::of(hand_overs.iter().filter_map(|hand_over| value(hand_over)).collect())
        };
        let sum = |value: fn(&HandOverRecord) -> u64| -> u64 {
            hand_overs.iter().map(|hand_over| value(hand_over)).sum()
        };
        let own: Vec<OwnRecord> = hand_overs.iter().filter_map(|hand_over| hand_over.own).collect();
        let own_sum = |value: fn(&OwnRecord) -> u64| -> u64 { own.iter().map(value).sum() };
        let own = OwnSum {
            records: own.len() as u64,
            settled: own_sum(|own| own.is_settled.into()),
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
    fn no_share_of_nothing() {
        assert_eq!(percent(1, 4), Some(25.0));
        assert_eq!(percent(0, 0), None);
    }
}
