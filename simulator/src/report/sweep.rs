//! Tables of a sweep: [`kinds`], and [`changes`] from one to another.

use comfy_table::Table;

use super::table::{align, with_header};
use crate::sweep::goal::{Goal, in_scenes};
use crate::sweep::kinds::{FigureChange, FigureRow};

/// Every figure of every kind of scene.
pub fn kinds(rows: &[FigureRow]) -> Table {
    let mut table =
        with_header(&["scenes", "figure", "goal", "median", "worst", "of scenes meet it", ""]);
    let mut last = None;
    for row in rows {
        let is_first = last.replace(row.kind) != Some(row.kind);
        let kept = format!("{} of {}", row.kept, row.scenes);
        table.add_row(vec![
            if is_first { row.kind.to_string() } else { String::new() },
            row.figure.name().to_owned(),
            goal(row),
            row.figure.text(row.median),
            row.figure.text(row.worst),
            row.limit.map_or_else(String::new, |_| kept),
            verdict(row).to_owned(),
        ]);
    }
    align(&mut table, 3);
    table
}

/// Goals met and missed, by their names.
pub fn verdicts(rows: &[FigureRow]) -> String {
    let mut text = String::new();
    let mut last = None;
    for row in rows {
        if last.replace(row.kind) == Some(row.kind) {
            continue;
        }
        let Some(goal) = Goal::of(row.kind) else { continue };
        let missed = rows.iter().filter(|other| other.kind == row.kind);
        let missed = missed.filter(|row| row.is_met() == Some(false));
        let missed: Vec<String> =
            missed.map(|row| format!("{} ({})", row.figure.name(), of(row))).collect();
        let what = if missed.is_empty() {
            "met".to_owned()
        } else {
            format!("missed: {}", missed.join(", "))
        };
        text += &format!("{} ({} vehicles): {what}\n", goal.name, row.kind.vehicles);
    }
    text
}

fn of(row: &FigureRow) -> String {
    format!("{:.0} % of scenes", 100.0 * row.kept_share())
}

/// What a figure is held against.
fn goal(row: &FigureRow) -> String {
    let Some(limit) = row.limit else { return String::new() };
    let limit = row.figure.text(limit).replace(".00", "");
    let sign = if row.figure.is_good() { "≥" } else { "≤" };
    format!("{sign} {limit} in {:.0} %", 100.0 * in_scenes(row.figure))
}

fn verdict(row: &FigureRow) -> &'static str {
    match row.is_met() {
        Some(true) => "met",
        Some(false) => "missed",
        None => "",
    }
}

/// Before and after, figure by figure.
pub fn changes(changes: &[FigureChange]) -> Table {
    let mut table = with_header(&[
        "scenes",
        "figure",
        "goal",
        "median",
        "worst",
        "scenes that meet it",
        "better",
        "worse",
        "",
    ]);
    let mut last = None;
    for FigureChange { before, after, better, worse } in changes {
        let is_first = last.replace(after.kind) != Some(after.kind);
        let text = |value| after.figure.text(value);
        let arrow = |was: String, is: String| format!("{was} → {is}");
        let kept = |row: &FigureRow| format!("{:.0} %", 100.0 * row.kept_share());
        table.add_row(vec![
            if is_first { format!("{} ({})", after.kind, after.scenes) } else { String::new() },
            after.figure.name().to_owned(),
            goal(after),
            arrow(text(before.median), text(after.median)),
            arrow(text(before.worst), text(after.worst)),
            after.limit.map_or_else(String::new, |_| arrow(kept(before), kept(after))),
            better.to_string(),
            worse.to_string(),
            match (verdict(before), verdict(after)) {
                (was, is) if was == is => is.to_owned(),
                (was, is) => arrow(was.to_owned(), is.to_owned()),
            },
        ]);
    }
    align(&mut table, 3);
    table
}
