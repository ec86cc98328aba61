//! Results as tables for programs: one file for runs, and beside it one each for flows, hand-overs and
//! seconds.

use std::io;
use std::path::{Path, PathBuf};

use csv::Writer;

use crate::campaign::{Campaign, Outcome};
use crate::measure::{Lost, OwnRecord, Record};
use crate::summary::{Summary, percent};

/// Writes `out.csv`, `out.flows.csv`, `out.hand-overs.csv` and `out.seconds.csv`; returns their names.
///
/// # Errors
/// A file cannot be written.
pub fn write(path: &Path, campaign: &Campaign, outcomes: &[Outcome]) -> io::Result<Vec<PathBuf>> {
    let beside = |what: &str| path.with_extension(format!("{what}.csv"));
    let files = vec![path.to_owned(), beside("flows"), beside("hand-overs"), beside("seconds")];
    let [mut runs, mut flows, mut hand_overs, mut seconds] = [
        Writer::from_path(path)?,
        Writer::from_path(beside("flows"))?,
        Writer::from_path(beside("hand-overs"))?,
        Writer::from_path(beside("seconds"))?,
    ];
    runs.write_record(RUNS)?;
    flows.write_record(FLOWS)?;
    hand_overs.write_record(HAND_OVERS)?;
    seconds.write_record(SECONDS)?;
    for outcome in outcomes {
        let Ok(done) = &outcome.result else { continue };
        let changes = campaign.variants.get(outcome.variant).map(|variant| &variant.changes);
        let changes: Vec<String> = changes.into_iter().flatten().map(ToString::to_string).collect();
        let (variant, seed) = (changes.join(" "), outcome.seed.to_string());
        let first = || [variant.clone(), seed.clone()];
        let record = &done.record;
        runs.write_record(first().into_iter().chain(run(record)))?;
        for flow in &record.flows {
            let row = [
                flow.flow.clone(),
                flow.from.clone(),
                flow.to.clone(),
                flow.sent.to_string(),
                flow.due.to_string(),
                flow.received.to_string(),
            ];
            let rest = [
                flow.doubled.to_string(),
                flow.sent_twice.to_string(),
                flow.longest_gap_ms.to_string(),
            ];
            flows
                .write_record(first().into_iter().chain(row).chain(lost(flow.lost)).chain(rest))?;
        }
        for change in &record.hand_overs {
            let to = change.to.as_ref();
            let row = [
                change.time_s.to_string(),
                change.obu.clone(),
                change.cause.to_owned(),
                change.from.rsu.clone(),
                change.from.via.clone(),
                to.map(|to| to.rsu.clone()).unwrap_or_default(),
                to.map(|to| to.via.clone()).unwrap_or_default(),
                change.silence_ms.to_string(),
                change.without_ms.to_string(),
                change.frames.to_string(),
            ];
            let rest = [
                change.doubled.to_string(),
                change.sent_twice.to_string(),
                change.gap_ms.to_string(),
                change.gap_by_routing_ms.to_string(),
            ];
            let row = first().into_iter().chain(row).chain(lost(change.lost)).chain(rest);
            hand_overs.write_record(row.chain(own(change.own.as_ref())))?;
        }
        for second in &record.control.seconds {
            let row = [
                second.time_s.to_string(),
                second.nodes.to_string(),
                second.control_frames.to_string(),
                second.control_bytes.to_string(),
                second.data_frames.to_string(),
                second.airtime.mean.control.to_string(),
                second.airtime.worst.control.to_string(),
                second.airtime.mean.busy.to_string(),
                second.airtime.worst.busy.to_string(),
            ];
            seconds.write_record(first().into_iter().chain(row))?;
        }
    }
    for mut table in [runs, flows, hand_overs, seconds] {
        table.flush()?;
    }
    Ok(files)
}

const RUNS: &[&str] = &[
    "variant",
    "seed",
    "frames",
    "received",
    "lost_out_of_range",
    "lost_on_air",
    "lost_in_queue",
    "lost_on_dead_link",
    "lost_in_node",
    "doubled",
    "sent_twice",
    "longest_gap_ms",
    "hand_overs",
    "gap_p50_ms",
    "gap_p90_ms",
    "gap_p99_ms",
    "gap_max_ms",
    "gap_by_routing_p50_ms",
    "gap_by_routing_p99_ms",
    "gap_by_routing_max_ms",
    "routed_percent",
    "working_percent",
    "candidates_median",
    "three_candidates_percent",
    "control_frames",
    "control_bytes",
    "control_frames_per_node_s",
    "control_bytes_per_node_s",
    "control_airtime_mean",
    "control_airtime_worst",
    "busy_mean",
    "busy_worst",
    "trace_hash",
];

const FLOWS: &[&str] = &[
    "variant",
    "seed",
    "flow",
    "from",
    "to",
    "sent",
    "due",
    "received",
    "lost_out_of_range",
    "lost_on_air",
    "lost_in_queue",
    "lost_on_dead_link",
    "lost_in_node",
    "doubled",
    "sent_twice",
    "longest_gap_ms",
];

const HAND_OVERS: &[&str] = &[
    "variant",
    "seed",
    "time_s",
    "obu",
    "cause",
    "from_rsu",
    "from_via",
    "to_rsu",
    "to_via",
    "silence_ms",
    "without_ms",
    "frames",
    "lost_out_of_range",
    "lost_on_air",
    "lost_in_queue",
    "lost_on_dead_link",
    "lost_in_node",
    "doubled",
    "sent_twice",
    "gap_ms",
    "gap_by_routing_ms",
    "own_acknowledged",
    "own_gap_ms",
    "own_lost",
    "own_at_risk",
    "own_doubled",
    "own_sent_twice",
];

const SECONDS: &[&str] = &[
    "variant",
    "seed",
    "time_s",
    "nodes",
    "control_frames",
    "control_bytes",
    "data_frames",
    "control_airtime_mean",
    "control_airtime_worst",
    "busy_mean",
    "busy_worst",
];

/// Empty where the OBU wrote nothing down.
fn own(own: Option<&OwnRecord>) -> [String; 6] {
    own.map_or_else(Default::default, |own| {
        [
            own.acknowledged.to_string(),
            own.gap_ms.to_string(),
            own.lost.to_string(),
            own.at_risk.to_string(),
            own.doubled.to_string(),
            own.sent_twice.to_string(),
        ]
    })
}

fn lost(lost: Lost) -> [String; 5] {
    [lost.out_of_range, lost.on_air, lost.in_queue, lost.on_dead_link, lost.in_node]
        .map(|frames| frames.to_string())
}

fn run(record: &Record) -> Vec<String> {
    let sum = Summary::of(std::slice::from_ref(record));
    let (all, changes) = (sum.traffic(), &sum.all_hand_overs);
    let share = |part, of| percent(part, of).map(|share| share.to_string()).unwrap_or_default();
    let airtime = record.control.airtime;
    let first = vec![all.due.to_string(), all.received.to_string()];
    let rest = vec![
        all.doubled.to_string(),
        all.sent_twice.to_string(),
        all.longest_gap_ms.to_string(),
        changes.count.to_string(),
        changes.gap_ms.p50.to_string(),
        changes.gap_ms.p90.to_string(),
        changes.gap_ms.p99.to_string(),
        changes.gap_ms.max.to_string(),
        changes.gap_by_routing_ms.p50.to_string(),
        changes.gap_by_routing_ms.p99.to_string(),
        changes.gap_by_routing_ms.max.to_string(),
        share(sum.routes.routed, sum.routes.reachable),
        share(sum.routes.working, sum.routes.reachable),
        sum.candidates.median().map(|median| median.to_string()).unwrap_or_default(),
        share(sum.candidates.have_three, sum.candidates.could_have_three),
        record.control.frames.to_string(),
        record.control.bytes.to_string(),
        sum.control_frames_per_node_s.to_string(),
        sum.control_bytes_per_node_s.to_string(),
        airtime.mean.control.to_string(),
        airtime.worst.control.to_string(),
        airtime.mean.busy.to_string(),
        airtime.worst.busy.to_string(),
        record.trace_hash.clone(),
    ];
    first.into_iter().chain(lost(all.lost)).chain(rest).collect()
}
