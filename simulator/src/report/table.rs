//! Results as tables a person reads.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::cost::RunCost;
use crate::measure::{AirtimeShares, Record, Suite};
use crate::scenario::{Override, Scenario};
use crate::ships;
use crate::summary::{FlowSum, HandOverSum, Spread, Summary, percent};

/// A variant: what was changed for it, and what came of it.
pub struct VariantRow<'a> {
    /// What was changed.
    pub changes: &'a [Override],
    /// Runs that were planned.
    pub planned: usize,
    /// What came of those that finished.
    pub summary: Summary,
}

/// All about one variant, and what of it does not ship.
pub fn one(scenario: &Scenario, row: &VariantRow<'_>, does_not_ship: &[String]) -> String {
    let VariantRow { planned, summary, .. } = row;
    let mut text = String::new();
    if !scenario.about.is_empty() {
        let _ = writeln!(text, "{}", scenario.about.trim());
    }
    let runs = match summary.runs {
        all if all == *planned => plural(all as u64, "run"),
        some => format!("{} of {} finished", count(some as u64), plural(*planned as u64, "run")),
    };
    let _ = writeln!(text, "{} simulated, {runs}, radio {}", scenario.duration, scenario.radio);
    let _ = writeln!(text, "{}\n", ships::in_words(does_not_ship));
    if summary.runs == 0 {
        return text;
    }
    let tables = [
        traffic(summary),
        losses(summary),
        hand_overs(summary),
        gaps(summary),
        own_gaps(&scenario.recorded(), [("simulated".to_owned(), summary)]),
        routes(summary),
        candidates(summary),
        control(summary),
    ];
    for table in tables.into_iter().flatten() {
        let _ = writeln!(text, "{table}\n");
    }
    text
}

/// Tables with a row for each variant: traffic, delay by direction, hand-overs, and routes with
/// what they cost. Below, what of all variants does not ship.
pub fn many(scenario: &Scenario, rows: &[VariantRow<'_>], does_not_ship: &[String]) -> String {
    let names = short_names(rows.first().map_or(&[] as &[Override], |row| row.changes));
    let table = |columns: &[&str], cells: &dyn Fn(&VariantRow<'_>) -> Vec<String>| {
        let header: Vec<&str> =
            names.iter().map(String::as_str).chain(columns.iter().copied()).collect();
        let mut table = with_header(&header);
        for row in rows {
            table.add_row(row.changes.iter().map(|change| change.text.clone()).chain(cells(row)));
        }
        align(&mut table, 0);
        format!("{table}\n\n")
    };
    let mut text = table(
        &["runs", "frames", "lost", "by routing", "doubled", "delay p50/p99/max ms"],
        &|VariantRow { planned, summary, .. }| {
            let all = summary.traffic();
            let runs = match summary.runs {
                all if all == *planned => count(all as u64),
                some => format!("{some} of {planned}"),
            };
            vec![
                runs,
                count(all.due),
                share(all.lost.total(), all.due),
                share(all.lost.by_routing(), all.due),
                count(all.doubled),
                three(all.delay_ms.spread(), delay),
            ]
        },
    );
    let mut directions: Vec<&str> = Vec::new();
    for direction in rows.iter().flat_map(|row| &row.summary.directions) {
        if !directions.contains(&direction.flow.as_str()) {
            directions.push(&direction.flow);
        }
    }
    if directions.len() > 1 {
        let columns: Vec<String> =
            directions.iter().map(|name| format!("delay {name} p50/p99/max ms")).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        text += &table(&columns, &|row| {
            let of = |name: &&str| {
                let sum = row.summary.directions.iter().find(|sum| sum.flow == *name);
                three(sum.and_then(|sum| sum.delay_ms.spread()), delay)
            };
            directions.iter().map(of).collect()
        });
    }
    text += &table(
        &["hand-overs", "measured", "gap p50/p99/max ms", "by routing p50/p99/max ms"],
        &|VariantRow { summary, .. }| {
            let all = &summary.all_hand_overs;
            let gaps = [all.gap_ms, all.gap_by_routing_ms].map(|gap| three(gap, whole));
            [count(all.count), count(all.measured)].into_iter().chain(gaps).collect()
        },
    );
    let simulated = rows.iter().map(|row| {
        let changes: Vec<String> = row.changes.iter().map(ToString::to_string).collect();
        (changes.join(" "), &row.summary)
    });
    if let Some(own) = own_gaps(&scenario.recorded(), simulated) {
        text += &format!("{own}\n\n");
    }
    text += &table(
        &[HAVE_A_ROUTE, EVERY_LINK, "candidates", "control/node s", "airtime mean/worst %"],
        &|VariantRow { summary, .. }| {
            let routes = summary.routes;
            vec![
                share(routes.routed, routes.reachable),
                share(routes.working, routes.reachable),
                measured(summary.candidates.median(), |median| median.to_string()),
                measured(summary.control_frames_per_node_s, |frames| format!("{frames:.1}")),
                airtime(summary),
            ]
        },
    );
    text + &ships::in_words(does_not_ship) + "\n"
}

/// What OBUs believe, and beside it what is true.
const HAVE_A_ROUTE: &str = "have a route";
const EVERY_LINK: &str = "every link there";

/// The last part of each key, or all of it where that would not tell two apart.
fn short_names(changes: &[Override]) -> Vec<String> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let is_shared = |name: &str| changes.iter().filter(|c| last(&c.key) == name).count() > 1;
    let name = |change: &Override| {
        let short = last(&change.key);
        if is_shared(&short) { change.key.clone() } else { short }
    };
    changes.iter().map(name).collect()
}

/// Share of the time that control frames take, mean and worst second at any receiver, in percent.
fn airtime(summary: &Summary) -> String {
    measured(summary.airtime, |AirtimeShares { mean, worst }| {
        format!("{:.2} / {:.2}", 100.0 * mean.control, 100.0 * worst.control)
    })
}

/// The same runs with the nodes of several suites: what they deliver, and what their routes cost.
pub fn protocols(runs: &[(Suite, Vec<Record>)]) -> String {
    let mut delivered = with_header(&[
        "delivered",
        HAVE_A_ROUTE,
        EVERY_LINK,
        "frames",
        "lost",
        "by routing",
        "doubled",
        "delay p50/p99/max ms",
        "longest gap of a run p50/max s",
    ]);
    let mut cost = with_header(&[
        "control traffic",
        "frames",
        "bytes",
        "frames/node s",
        "bytes/node s",
        "airtime mean/worst %",
        "channel busy mean/worst %",
    ]);
    for (suite, records) in runs {
        let summary = &Summary::of(records);
        let (all, routes) = (summary.traffic(), summary.routes);
        let of_run = |record: &Record| {
            let gaps = record.flows.iter().filter_map(|flow| flow.longest_gap_ms);
            gaps.max_by(f64::total_cmp)
        };
        let gaps = Spread::of(records.iter().filter_map(of_run).collect());
        let mut cells = vec![
            share(routes.routed, routes.reachable),
            share(routes.working, routes.reachable),
            count(all.due),
            share(all.lost.total(), all.due),
            share(all.lost.by_routing(), all.due),
            count(all.doubled),
            three(all.delay_ms.spread(), delay),
            measured(gaps, |gaps| format!("{:.2} / {:.2}", gaps.p50 / 1e3, gaps.max / 1e3)),
        ];
        if !suite.carries_traffic() {
            cells.fill(dash());
        }
        delivered.add_row([suite.as_str().to_owned()].into_iter().chain(cells));
        cost.add_row(vec![
            suite.as_str().to_owned(),
            count(summary.kinds.iter().map(|kind| kind.frames).sum()),
            count(summary.kinds.iter().map(|kind| kind.bytes).sum()),
            measured(summary.control_frames_per_node_s, |frames| format!("{frames:.1}")),
            measured(summary.control_bytes_per_node_s, |bytes| format!("{bytes:.0}")),
            airtime(summary),
            measured(summary.airtime, |AirtimeShares { mean, worst }| {
                format!("{:.1} / {:.1}", 100.0 * mean.busy, 100.0 * worst.busy)
            }),
        ]);
    }
    align(&mut delivered, 1);
    align(&mut cost, 1);
    format!("{delivered}\n\n{cost}\n")
}

/// What it cost to simulate so long.
pub fn cost(simulated_s: f64, cost: RunCost, peak_memory: Option<u64>) -> String {
    let speed = simulated_s / cost.cpu_s.max(1e-9);
    let memory = peak_memory.map_or_else(String::new, |bytes| {
        format!(", peak memory {:.0} MiB", bytes as f64 / f64::from(1 << 20))
    });
    format!(
        "{simulated_s:.0} s simulated in {:.1} s of processor time: {speed:.1} times as fast as \
         they pass{memory}",
        cost.cpu_s
    )
}

fn traffic(summary: &Summary) -> Option<Table> {
    let mut table = with_header(&[
        "traffic",
        "sent",
        "received",
        "lost",
        "doubled",
        "sent twice",
        "longest gap",
        "delay p50",
        "p99",
        "max",
    ]);
    for (name, flow) in flows(summary) {
        let delays = flow.delay_ms.spread();
        let of = |value: fn(Spread) -> f64| measured(delays, |delays| delay(value(delays)) + " ms");
        table.add_row(vec![
            name,
            count(flow.sent),
            count(flow.received),
            share(flow.lost.total(), flow.due),
            count(flow.doubled),
            count(flow.sent_twice),
            measured(flow.longest_gap_ms, millis),
            of(|delays| delays.p50),
            of(|delays| delays.p99),
            of(|delays| delays.max),
        ]);
    }
    align(&mut table, 1);
    (!summary.flows.is_empty()).then_some(table)
}

fn losses(summary: &Summary) -> Option<Table> {
    let mut table = with_header(&[
        "lost frames",
        "all",
        "out of range",
        "on air",
        "queue",
        "dead link",
        "in node",
        "by routing",
    ]);
    for (name, FlowSum { lost, due, .. }) in flows(summary) {
        table.add_row(vec![
            name,
            count(lost.total()),
            count(lost.out_of_range),
            count(lost.on_air),
            count(lost.in_queue),
            count(lost.on_dead_link),
            count(lost.in_node),
            share(lost.by_routing(), due),
        ]);
    }
    align(&mut table, 1);
    (!summary.flows.is_empty()).then_some(table)
}

/// Each flow and all of them, and between these the directions of which there are several flows.
fn flows(summary: &Summary) -> Vec<(String, FlowSum)> {
    let of = |sum: &FlowSum| (sum.flow.clone(), sum.clone());
    let mut rows: Vec<(String, FlowSum)> = summary.flows.iter().map(of).collect();
    if rows.len() > summary.directions.len() {
        let of = |sum: &FlowSum| (format!("all {}", sum.flow), sum.clone());
        rows.extend(summary.directions.iter().map(of));
    }
    if summary.flows.len() > 1 {
        rows.push(of(&summary.traffic()));
    }
    rows
}

fn hand_overs(summary: &Summary) -> Option<Table> {
    let mut table = with_header(&[
        "hand-overs",
        "count",
        "to other RSU",
        "no upstream p99",
        "frames",
        "lost",
        "by routing",
        "doubled",
        "sent twice",
    ]);
    for sum in causes(summary) {
        table.add_row(vec![
            sum.cause.clone(),
            count(sum.count),
            count(sum.rsu_changed),
            measured(sum.without_ms.map(|without| without.p99), millis),
            count(sum.frames),
            share(sum.lost.total(), sum.frames),
            share(sum.lost.by_routing(), sum.frames),
            count(sum.doubled),
            count(sum.sent_twice),
        ]);
    }
    align(&mut table, 1);
    (!summary.hand_overs.is_empty()).then_some(table)
}

fn gaps(summary: &Summary) -> Option<Table> {
    let mut table = with_header(&[
        "gaps",
        "hand-overs",
        "gap p50",
        "p90",
        "p99",
        "max",
        "by routing p50",
        "p90",
        "p99",
        "max",
    ]);
    for sum in causes(summary) {
        let percentiles: [fn(Spread) -> f64; 4] = [|s| s.p50, |s| s.p90, |s| s.p99, |s| s.max];
        let of = |gaps: Option<Spread>| percentiles.map(|value| measured(gaps.map(value), millis));
        let first = [sum.cause.clone(), count(sum.measured)];
        table.add_row(first.into_iter().chain(of(sum.gap_ms)).chain(of(sum.gap_by_routing_ms)));
    }
    align(&mut table, 1);
    (summary.all_hand_overs.measured > 0).then_some(table)
}

/// What vehicles themselves wrote down of their hand-overs: when the scenario was recorded, and in
/// each of these. `None` if it was not recorded.
fn own_gaps<'a>(
    recorded: &[f64],
    simulated: impl IntoIterator<Item = (String, &'a Summary)>,
) -> Option<Table> {
    if recorded.is_empty() {
        return None;
    }
    let mut table = with_header(&["own gaps", "hand-overs a run", "gap p50", "p90", "p99", "max"]);
    let mut row = |name: String, a_run: String, gaps: Option<Spread>| {
        let percentiles: [fn(Spread) -> f64; 4] = [|s| s.p50, |s| s.p90, |s| s.p99, |s| s.max];
        let gaps = percentiles.map(|value| measured(gaps.map(value), millis));
        table.add_row([name, a_run].into_iter().chain(gaps));
    };
    let of_recorded = Spread::of(recorded.to_vec());
    row("recorded".to_owned(), count(recorded.len() as u64), of_recorded);
    for (name, summary) in simulated {
        let own = summary.all_hand_overs.own;
        let a_run = own.records as f64 / summary.runs.max(1) as f64;
        row(name, format!("{a_run:.1}"), own.gap_ms);
    }
    align(&mut table, 1);
    Some(table)
}

/// Hand-overs by cause, and all of them.
fn causes(summary: &Summary) -> impl Iterator<Item = &HandOverSum> {
    let all = (summary.hand_overs.len() > 1).then_some(&summary.all_hand_overs);
    summary.hand_overs.iter().chain(all)
}

fn routes(summary: &Summary) -> Option<Table> {
    let routes = summary.routes;
    let mut table =
        with_header(&["routes", "samples", HAVE_A_ROUTE, EVERY_LINK, "hops", "shortest"]);
    let mean = |hops: u64| match routes.working {
        0 => dash(),
        working => format!("{:.2}", hops as f64 / working as f64),
    };
    table.add_row(vec![
        "OBUs that can reach an RSU".to_owned(),
        count(routes.reachable),
        share(routes.routed, routes.reachable),
        share(routes.working, routes.reachable),
        mean(routes.hops),
        mean(routes.hops_least),
    ]);
    align(&mut table, 1);
    (routes.reachable > 0).then_some(table)
}

fn candidates(summary: &Summary) -> Option<Table> {
    let candidates = &summary.candidates;
    let median = candidates.median()?;
    let mut table = with_header(&["neighbours to send through", "samples", ""]);
    let all = candidates.histogram.iter().sum();
    table.add_row(vec!["median".to_owned(), count(all), median.to_string()]);
    table.add_row(vec![
        "three or more, where there are".to_owned(),
        count(candidates.could_have_three),
        share(candidates.have_three, candidates.could_have_three),
    ]);
    align(&mut table, 1);
    Some(table)
}

fn control(summary: &Summary) -> Option<Table> {
    let mut table = with_header(&["control", "frames", "bytes", "share"]);
    let all: u64 = summary.kinds.iter().map(|kind| kind.frames).sum();
    let bytes: u64 = summary.kinds.iter().map(|kind| kind.bytes).sum();
    for kind in summary.kinds.iter().filter(|kind| kind.frames > 0) {
        let (frames, bytes) = (count(kind.frames), count(kind.bytes));
        table.add_row(vec![kind.kind.clone(), frames, bytes, share(kind.frames, all)]);
    }
    table.add_row(vec!["all".to_owned(), count(all), count(bytes), share(all, all)]);
    table.add_row(vec![
        "per node and second".to_owned(),
        measured(summary.control_frames_per_node_s, |frames| format!("{frames:.1}")),
        measured(summary.control_bytes_per_node_s, |bytes| format!("{bytes:.0}")),
        String::new(),
    ]);
    if let Some(AirtimeShares { mean, worst }) = summary.airtime {
        for (name, mean, worst) in [
            ("airtime of control", mean.control, worst.control),
            ("channel busy", mean.busy, worst.busy),
        ] {
            let percent = |share: f64| format!("{:.2} %", 100.0 * share);
            table.add_row(vec![
                name.to_owned(),
                format!("mean {}", percent(mean)),
                format!("worst {}", percent(worst)),
                String::new(),
            ]);
        }
    }
    align(&mut table, 1);
    (all > 0).then_some(table)
}

/// Columns of a terminal that all tables fit into.
const WIDTH_MAX: u16 = 120;

pub(crate) fn with_header(names: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners()).set_header(names);
    // Cells wrap where long names would make a table wider.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH_MAX);
    table
}

/// Numbers to the right, from this column on.
pub(crate) fn align(table: &mut Table, first: usize) {
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// With a space between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// As percent, with as many digits as say something.
pub(crate) fn share(part: u64, of: u64) -> String {
    match percent(part, of) {
        None => dash(),
        Some(percent) if part == 0 || part == of => format!("{percent:.0} %"),
        Some(percent) if (0.1..99.9).contains(&percent) => format!("{percent:.1} %"),
        Some(percent) => format!("{percent:.3} %"),
    }
}

fn millis(ms: f64) -> String {
    if ms < 10.0 && ms > 0.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

fn three(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    measured(spread, |Spread { p50, p99, max, .. }| {
        format!("{} / {} / {}", text(p50), text(p99), text(max))
    })
}

fn whole(ms: f64) -> String {
    format!("{ms:.0}")
}

/// A delay in milliseconds, with the digits it has.
fn delay(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.2}"),
        10.0..100.0 => format!("{ms:.1}"),
        _ => whole(ms),
    }
}

/// A dash where nothing was measured.
fn measured<V>(value: Option<V>, text: impl FnOnce(V) -> String) -> String {
    value.map_or_else(dash, text)
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_reading() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(999), "999");
        assert_eq!(share(1, 2), "50.0 %");
        assert_eq!(share(1, 100_000), "0.001 %");
        assert_eq!(share(0, 5), "0 %");
        assert_eq!(share(0, 0), "–");
        let named = |keys: &[&str]| {
            let changes: Vec<_> = keys.iter().map(|key| Override::new(key, "1")).collect();
            short_names(&changes).join(" ")
        };
        assert_eq!(named(&["obu.speed_kmh", "radio.loss"]), "speed_kmh loss");
        assert_eq!(named(&["link.loss", "radio.loss"]), "link.loss radio.loss");
        assert_eq!(
            (millis(0.0), millis(4.26), millis(171.4)),
            ("0 ms".into(), "4.3 ms".into(), "171 ms".into())
        );
    }
}
