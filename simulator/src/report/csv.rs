//! Results as tables for programs: one file for runs, and beside it one each for flows, hand-overs
//! and seconds.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use csv::Writer;

use crate::campaign::{Campaign, Outcome};
use crate::measure::{
    AirtimeShares, ControlTraffic, Direction, FlowRecord, HandOverRecord, OwnRecord, Record, Second,
};
use crate::ships::does_not_ship;
use crate::summary::{FlowSum, Spread, Summary, percent};

/// Writes `out.csv`, `out.flows.csv`, `out.hand-overs.csv` and `out.seconds.csv`; returns their
/// names.
///
/// # Errors
/// A file cannot be written.
pub fn write(path: &Path, campaign: &Campaign, outcomes: &[Outcome]) -> io::Result<Vec<PathBuf>> {
    let beside = |what: &str| path.with_extension(format!("{what}.csv"));
    let files = vec![path.to_owned(), beside("flows"), beside("hand-overs"), beside("seconds")];
    let mut runs = Table::create(path, RUNS)?;
    let mut flows = Table::create(&beside("flows"), FLOWS)?;
    let mut hand_overs = Table::create(&beside("hand-overs"), HAND_OVERS)?;
    let mut seconds = Table::create(&beside("seconds"), SECONDS)?;
    for outcome in outcomes {
        let Ok(done) = &outcome.result else { continue };
        let Some(variant) = campaign.variants.get(outcome.variant) else { continue };
        let changes: Vec<String> = variant.changes.iter().map(ToString::to_string).collect();
        let parts = does_not_ship(&variant.scenario, campaign.suite);
        let first = [changes.join(" "), outcome.seed.to_string()];
        let record = &done.record;
        runs.write(&first, &Run::of(record, parts))?;
        for flow in &record.flows {
            flows.write(&first, flow)?;
        }
        for change in &record.hand_overs {
            hand_overs.write(&first, change)?;
        }
        for second in &record.control.seconds {
            seconds.write(&first, second)?;
        }
    }
    runs.flush()?;
    flows.flush()?;
    hand_overs.flush()?;
    seconds.flush()?;
    Ok(files)
}

/// A file of rows that begin with variant and seed.
struct Table<T: 'static> {
    writer: Writer<File>,
    columns: &'static [Column<T>],
}

/// What a column is called, and what stands in it.
type Column<T> = (&'static str, fn(&T) -> String);

impl<T> Table<T> {
    fn create(path: &Path, columns: &'static [Column<T>]) -> io::Result<Self> {
        let mut writer = Writer::from_path(path)?;
        writer.write_record(["variant", "seed"].into_iter().chain(columns.iter().map(|c| c.0)))?;
        Ok(Self { writer, columns })
    }

    fn write(&mut self, first: &[String; 2], of: &T) -> io::Result<()> {
        let row = self.columns.iter().map(|(_, value)| value(of));
        Ok(self.writer.write_record(first.iter().cloned().chain(row))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A whole run.
struct Run {
    sum: Summary,
    traffic: FlowSum,
    control_frames: u64,
    control_bytes: u64,
    airtime: Option<AirtimeShares>,
    trace_hash: String,
    does_not_ship: String,
}

impl Run {
    fn of(record: &Record, does_not_ship: Vec<String>) -> Self {
        let sum = Summary::of(std::slice::from_ref(record));
        let ControlTraffic { frames, bytes, airtime, .. } = record.control;
        Self {
            traffic: sum.traffic(),
            sum,
            control_frames: frames,
            control_bytes: bytes,
            airtime,
            trace_hash: record.trace_hash.clone(),
            does_not_ship: does_not_ship.join(", "),
        }
    }

    /// Of frames that went this way.
    fn delay(&self, direction: Direction) -> Option<Spread> {
        let mut sums = self.sum.directions.iter();
        sums.find(|sum| sum.flow == direction.as_str())?.delay_ms.spread()
    }
}

const RUNS: &[Column<Run>] = &[
    ("frames", |run| run.traffic.due.to_string()),
    ("received", |run| run.traffic.received.to_string()),
    ("lost_out_of_range", |run| run.traffic.lost.out_of_range.to_string()),
    ("lost_on_air", |run| run.traffic.lost.on_air.to_string()),
    ("lost_in_queue", |run| run.traffic.lost.in_queue.to_string()),
    ("lost_on_dead_link", |run| run.traffic.lost.on_dead_link.to_string()),
    ("lost_in_node", |run| run.traffic.lost.in_node.to_string()),
    ("doubled", |run| run.traffic.doubled.to_string()),
    ("sent_twice", |run| run.traffic.sent_twice.to_string()),
    ("longest_gap_ms", |run| or_empty(run.traffic.longest_gap_ms)),
    ("delay_p50_ms", |run| spread(run.traffic.delay_ms.spread(), |s| s.p50)),
    ("delay_p99_ms", |run| spread(run.traffic.delay_ms.spread(), |s| s.p99)),
    ("delay_max_ms", |run| spread(run.traffic.delay_ms.spread(), |s| s.max)),
    ("delay_up_p50_ms", |run| spread(run.delay(Direction::Up), |s| s.p50)),
    ("delay_up_p99_ms", |run| spread(run.delay(Direction::Up), |s| s.p99)),
    ("delay_up_max_ms", |run| spread(run.delay(Direction::Up), |s| s.max)),
    ("delay_down_p50_ms", |run| spread(run.delay(Direction::Down), |s| s.p50)),
    ("delay_down_p99_ms", |run| spread(run.delay(Direction::Down), |s| s.p99)),
    ("delay_down_max_ms", |run| spread(run.delay(Direction::Down), |s| s.max)),
    ("delay_between_vehicles_p50_ms", |run| {
        spread(run.delay(Direction::BetweenVehicles), |s| s.p50)
    }),
    ("delay_between_vehicles_p99_ms", |run| {
        spread(run.delay(Direction::BetweenVehicles), |s| s.p99)
    }),
    ("delay_between_vehicles_max_ms", |run| {
        spread(run.delay(Direction::BetweenVehicles), |s| s.max)
    }),
    ("hand_overs", |run| run.sum.all_hand_overs.count.to_string()),
    ("gap_p50_ms", |run| spread(run.sum.all_hand_overs.gap_ms, |s| s.p50)),
    ("gap_p90_ms", |run| spread(run.sum.all_hand_overs.gap_ms, |s| s.p90)),
    ("gap_p99_ms", |run| spread(run.sum.all_hand_overs.gap_ms, |s| s.p99)),
    ("gap_max_ms", |run| spread(run.sum.all_hand_overs.gap_ms, |s| s.max)),
    ("gap_by_routing_p50_ms", |run| spread(run.sum.all_hand_overs.gap_by_routing_ms, |s| s.p50)),
    ("gap_by_routing_p99_ms", |run| spread(run.sum.all_hand_overs.gap_by_routing_ms, |s| s.p99)),
    ("gap_by_routing_max_ms", |run| spread(run.sum.all_hand_overs.gap_by_routing_ms, |s| s.max)),
    ("routed_percent", |run| share(run.sum.routes.routed, run.sum.routes.reachable)),
    ("working_percent", |run| share(run.sum.routes.working, run.sum.routes.reachable)),
    ("candidates_median", |run| or_empty(run.sum.candidates.median())),
    ("three_candidates_percent", |run| {
        share(run.sum.candidates.have_three, run.sum.candidates.could_have_three)
    }),
    ("control_frames", |run| run.control_frames.to_string()),
    ("control_bytes", |run| run.control_bytes.to_string()),
    ("control_frames_per_node_s", |run| or_empty(run.sum.control_frames_per_node_s)),
    ("control_bytes_per_node_s", |run| or_empty(run.sum.control_bytes_per_node_s)),
    ("control_airtime_mean", |run| or_empty(run.airtime.map(|air| air.mean.control))),
    ("control_airtime_worst", |run| or_empty(run.airtime.map(|air| air.worst.control))),
    ("busy_mean", |run| or_empty(run.airtime.map(|air| air.mean.busy))),
    ("busy_worst", |run| or_empty(run.airtime.map(|air| air.worst.busy))),
    ("trace_hash", |run| run.trace_hash.clone()),
    ("does_not_ship", |run| run.does_not_ship.clone()),
];

const FLOWS: &[Column<FlowRecord>] = &[
    ("flow", |flow| flow.flow.clone()),
    ("from", |flow| flow.from.clone()),
    ("to", |flow| flow.to.clone()),
    ("sent", |flow| flow.sent.to_string()),
    ("due", |flow| flow.due.to_string()),
    ("received", |flow| flow.received.to_string()),
    ("lost_out_of_range", |flow| flow.lost.out_of_range.to_string()),
    ("lost_on_air", |flow| flow.lost.on_air.to_string()),
    ("lost_in_queue", |flow| flow.lost.in_queue.to_string()),
    ("lost_on_dead_link", |flow| flow.lost.on_dead_link.to_string()),
    ("lost_in_node", |flow| flow.lost.in_node.to_string()),
    ("doubled", |flow| flow.doubled.to_string()),
    ("sent_twice", |flow| flow.sent_twice.to_string()),
    ("longest_gap_ms", |flow| or_empty(flow.longest_gap_ms)),
    ("direction", |flow| or_empty(flow.direction.map(Direction::as_str))),
    ("delay_p50_ms", |flow| spread(flow.delay_ms, |s| s.p50)),
    ("delay_p90_ms", |flow| spread(flow.delay_ms, |s| s.p90)),
    ("delay_p99_ms", |flow| spread(flow.delay_ms, |s| s.p99)),
    ("delay_max_ms", |flow| spread(flow.delay_ms, |s| s.max)),
];

const HAND_OVERS: &[Column<HandOverRecord>] = &[
    ("time_s", |change| change.time_s.to_string()),
    ("obu", |change| change.obu.clone()),
    ("cause", |change| change.cause.to_owned()),
    ("from_rsu", |change| change.from.rsu.clone()),
    ("from_via", |change| change.from.via.clone()),
    ("to_rsu", |change| or_empty(change.to.as_ref().map(|to| &to.rsu))),
    ("to_via", |change| or_empty(change.to.as_ref().map(|to| &to.via))),
    ("silence_ms", |change| change.silence_ms.to_string()),
    ("without_ms", |change| or_empty(change.without_ms)),
    ("frames", |change| change.frames.to_string()),
    ("lost_out_of_range", |change| change.lost.out_of_range.to_string()),
    ("lost_on_air", |change| change.lost.on_air.to_string()),
    ("lost_in_queue", |change| change.lost.in_queue.to_string()),
    ("lost_on_dead_link", |change| change.lost.on_dead_link.to_string()),
    ("lost_in_node", |change| change.lost.in_node.to_string()),
    ("doubled", |change| change.doubled.to_string()),
    ("sent_twice", |change| change.sent_twice.to_string()),
    ("gap_ms", |change| or_empty(change.gap_ms)),
    ("gap_by_routing_ms", |change| or_empty(change.gap_by_routing_ms)),
    ("own_settled", |change| own(change, |own| own.is_settled)),
    ("own_gap_ms", |change| own(change, |own| own.gap_ms)),
    ("own_lost", |change| own(change, |own| own.lost)),
    ("own_at_risk", |change| own(change, |own| own.at_risk)),
    ("own_doubled", |change| own(change, |own| own.doubled)),
    ("own_sent_twice", |change| own(change, |own| own.sent_twice)),
];

const SECONDS: &[Column<Second>] = &[
    ("time_s", |second| second.time_s.to_string()),
    ("nodes", |second| second.nodes.to_string()),
    ("control_frames", |second| second.control_frames.to_string()),
    ("control_bytes", |second| second.control_bytes.to_string()),
    ("data_frames", |second| second.data_frames.to_string()),
    ("control_airtime_mean", |second| or_empty(second.airtime.map(|air| air.mean.control))),
    ("control_airtime_worst", |second| or_empty(second.airtime.map(|air| air.worst.control))),
    ("busy_mean", |second| or_empty(second.airtime.map(|air| air.mean.busy))),
    ("busy_worst", |second| or_empty(second.airtime.map(|air| air.worst.busy))),
];

/// What the OBU wrote down itself; empty where it wrote nothing.
fn own<V: ToString>(change: &HandOverRecord, value: fn(&OwnRecord) -> V) -> String {
    or_empty(change.own.as_ref().map(value))
}

/// One of the percentiles; empty if nothing was measured.
fn spread(of: Option<Spread>, value: fn(Spread) -> f64) -> String {
    or_empty(of.map(value))
}

fn share(part: u64, of: u64) -> String {
    or_empty(percent(part, of))
}

fn or_empty<V: ToString>(value: Option<V>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
