//! How figures and tables look.

use std::fmt::Display;

use comfy_table::{CellAlignment, Table, presets};
use node_lib::control::snapshot::KnownPosition;

/// What stands for a figure that is not known.
pub(crate) const UNKNOWN: &str = "-";

/// A figure, or that it is not known.
pub(crate) fn known(figure: Option<impl Display>) -> String {
    figure.map_or_else(|| UNKNOWN.to_owned(), |figure| figure.to_string())
}

/// A figure with so many decimals, or that it is not known.
pub(crate) fn decimals(figure: Option<f64>, decimals: usize) -> String {
    known(figure.map(|figure| format!("{figure:.decimals$}")))
}

/// A share in per cent, or that it is not known.
pub(crate) fn percent(ratio: Option<f64>) -> String {
    decimals(ratio.map(|ratio| ratio * 100.0), 0)
}

/// Where a node says that it is: degrees north and east.
pub(crate) fn place(place: Option<&KnownPosition>) -> String {
    known(place.map(|at| format!("{:.7},{:.7}", at.latitude_deg, at.longitude_deg)))
}

/// How long ago it was there.
pub(crate) fn place_age(place: Option<&KnownPosition>) -> String {
    known(place.and_then(|place| place.age_ms))
}

/// A span in words a person reads at a glance.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{ms} ms"),
        10_000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// When, as a person reads it: UTC.
pub(crate) fn time(unix_ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(unix_ms);
    humantime::format_rfc3339_millis(at).to_string()
}

/// A table without lines: it can be cut and sorted. The first `left` columns are words, the others
/// figures.
pub(crate) fn table(header: &[&str], left: usize, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash_and_never_zero() {
        assert_eq!(known(None::<u8>), "-");
        assert_eq!(decimals(Some(1.239), 2), "1.24");
        assert_eq!(percent(Some(0.1)), "10");
    }

    #[test]
    fn spans_are_read_at_a_glance() {
        let spans = [60, 9_999, 12_000, 119_999, 120_000, 7_200_000].map(span);
        assert_eq!(spans, ["60 ms", "9999 ms", "12 s", "119 s", "2 min", "2 h"]);
    }

    #[test]
    fn figures_stand_below_each_other() {
        let rows =
            vec![vec!["a".to_owned(), "1".to_owned()], vec!["bc".to_owned(), "10".to_owned()]];
        assert_eq!(table(&["name", "count"], 1, rows), "name  count\na         1\nbc       10\n");
    }
}
