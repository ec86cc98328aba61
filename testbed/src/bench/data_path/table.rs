//! What was measured, as tables a person reads.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::goals::{BenchGoal, GOALS, GoalStanding};
use super::machine::Machine;
use super::measure::BenchRun;
use super::results::{BenchFigure, BenchResults, FIGURES, RoundSpread};
use super::variant::BenchVariant;
use crate::topology::line::Offload;

/// Everything: figures, goals, and where they were measured.
pub(super) fn all(machine: &Machine, results: &BenchResults) -> String {
    let rounds = results.runs.iter().map(|run| run.round).max().unwrap_or(0);
    let mut text = String::new();
    let Machine { processor, cores, kernel, load_before } = machine;
    let _ = writeln!(
        text,
        "{processor}, {cores} cores, Linux {kernel}, load before {load_before}; {rounds} rounds. \
         Medians, least to most below.\n"
    );
    let _ = writeln!(text, "{}\n", figures(results));
    let _ = writeln!(text, "{}", goals(results));
    let mut loops = loop_rows(results).into_iter();
    if let Some(head) = loops.next() {
        let mut table = with_header(head);
        table.add_rows(loops);
        let _ = writeln!(text, "\n{table}");
    }
    text
}

fn figures(results: &BenchResults) -> Table {
    let names = results.variants.iter().map(|variant| variant.name().replacen(", ", "\n", 1));
    let mut table = with_header(std::iter::once(String::new()).chain(names));
    for figure in &FIGURES {
        let cells = results.variants.iter().map(|variant| {
            let spread = results.spread(*variant, figure);
            spread.map_or_else(|| "–".to_owned(), |spread| cell(figure, spread))
        });
        let title = format!("{}\n{:>4}{}", figure.title, "", figure.unit);
        table.add_row(std::iter::once(title).chain(cells));
    }
    table
}

fn cell(figure: &BenchFigure, spread: RoundSpread) -> String {
    let RoundSpread { min, median, max } = spread;
    let digits = figure.decimals;
    format!("{median:.digits$}\n{min:.digits$}–{max:.digits$}")
}

fn goals(results: &BenchResults) -> Table {
    let mut rows = goal_rows(results).into_iter();
    let mut table = with_header(rows.next().unwrap_or_default());
    table.add_rows(rows);
    table
}

/// What is asked and what is reached, below a header.
fn goal_rows(results: &BenchResults) -> Vec<Vec<String>> {
    let offloads = offloads(results);
    let head = ["ratio of medians (of single rounds)", "goal", "stretch"].into_iter();
    let head = head.chain(offloads.iter().map(|offload| name_of(*offload))).map(str::to_owned);
    let mut rows = vec![head.collect()];
    for goal in &GOALS {
        let reached = offloads.iter().map(|offload| {
            let spread = goal.measured(results, *offload);
            spread.map_or_else(|| "–".to_owned(), |spread| reached(goal, spread))
        });
        let [at_least, stretch] = asked(goal);
        rows.push([goal.title.to_owned(), at_least, stretch].into_iter().chain(reached).collect());
    }
    rows
}

/// With which TAPs the daemons were measured.
fn offloads(results: &BenchResults) -> Vec<Offload> {
    let of = |variant: &BenchVariant| match *variant {
        BenchVariant::Ours { offload, .. } => Some(offload),
        _ => None,
    };
    let has = |offload: &Offload| results.variants.iter().any(|have| of(have) == Some(*offload));
    [Offload::Off, Offload::On].into_iter().filter(has).collect()
}

fn name_of(offload: Offload) -> &'static str {
    match offload {
        Offload::Off => "ours",
        Offload::On => "ours + offload",
    }
}

/// Goal and stretch as text.
fn asked(goal: &BenchGoal) -> [String; 2] {
    let sign = if goal.is_cost { "≤" } else { "≥" };
    [goal.at_least, goal.stretch].map(|value| format!("{sign} {value}{}", goal.unit))
}

/// Goals and figures as Markdown, to be kept with the documentation.
pub(super) fn markdown(results: &BenchResults) -> String {
    let names = results.variants.iter().map(|variant| variant.name());
    let mut figures =
        vec![std::iter::once("median (least–most)".to_owned()).chain(names).collect()];
    for figure in &FIGURES {
        let cells = results.variants.iter().map(|variant| {
            let spread = results.spread(*variant, figure);
            let shown = |spread| cell(figure, spread).replacen('\n', " (", 1) + ")";
            spread.map_or_else(|| "–".to_owned(), shown)
        });
        let title = format!("{}, {}", title(figure), figure.unit);
        figures.push(std::iter::once(title).chain(cells).collect());
    }
    let tables = [goal_rows(results), figures, loop_rows(results)];
    let tables = tables.iter().filter(|rows| !rows.is_empty()).map(|rows| markdown_table(rows));
    tables.collect::<Vec<_>>().join("\n")
}

/// A table with a header, and numbers in all columns but the first.
fn markdown_table(rows: &[Vec<String>]) -> String {
    let line = |cells: &Vec<String>| format!("| {} |\n", cells.join(" | "));
    let columns = rows.first().map_or(0, Vec::len);
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.insert(
        1.min(lines.len()),
        format!("|---{}|\n", "|---:".repeat(columns.saturating_sub(1))),
    );
    lines.concat()
}

/// Every figure of two threads against one loop, below a header; nothing unless both were measured.
fn loop_rows(results: &BenchResults) -> Vec<Vec<String>> {
    let [one, two] = BenchVariant::LOOPS;
    let head = ["two threads against one loop", "ratio of medians (of single rounds)"];
    // Not of what others did.
    let ratios = FIGURES.iter().filter(|figure| figure.key != "others").filter_map(|figure| {
        let RoundSpread { min, median, max } = results.ratio(two, one, figure)?;
        Some(vec![title(figure), format!("{median:.2}× ({min:.2}–{max:.2})")])
    });
    let mut rows: Vec<_> = ratios.collect();
    if !rows.is_empty() {
        rows.insert(0, head.map(str::to_owned).to_vec());
    }
    rows
}

/// The name of a figure, where indentation shows nothing.
fn title(figure: &BenchFigure) -> String {
    figure.title.replacen("  ", "… ", 1)
}

fn reached(goal: &BenchGoal, spread: RoundSpread) -> String {
    let RoundSpread { min, median, max } = spread;
    let mark = match goal.standing(median) {
        GoalStanding::Stretch => "✓✓",
        GoalStanding::Met => "✓",
        GoalStanding::Missed => "✗",
    };
    let unit = goal.unit;
    if min < max {
        format!("{mark} {median:.2}{unit} ({min:.2}–{max:.2})")
    } else {
        format!("{mark} {median:.2}{unit}")
    }
}

/// One run in a line, shown while the bench is running.
pub(super) fn line(run: &BenchRun) -> String {
    format!(
        "{:<22} TCP {:>6.0} and {:>6.0} Mbit/s   UDP {:>4.0} and {:>4.0} k/s   round trip {:>4.0} \
         µs, under TCP {:>5.0}",
        run.variant.name(),
        run.tcp_1.bits_per_s / 1e6,
        run.tcp_4.bits_per_s / 1e6,
        run.udp_64.delivered_per_s / 1e3,
        run.udp_1400.delivered_per_s / 1e3,
        run.idle.round_trips.p50_us,
        run.loaded.p50_us,
    )
}

fn with_header<T: ToString>(header: impl IntoIterator<Item = T>) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED.with_rounded_corners())
        .set_header(header.into_iter().map(|text| text.to_string()));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
