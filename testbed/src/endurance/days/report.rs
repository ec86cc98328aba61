//! What became of a run, for a person to read.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::fault::FaultKind;
use super::health::Chart;
use crate::probe::Totals;

/// Broken invariants kept; the rest is counted.
const BROKEN_MAX: usize = 40;

/// One kind of fault, or several at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How often it was timed.
    pub times: u64,
    /// The longest time without traffic.
    pub worst: Duration,
    /// What was promised, when the row's key does not say so.
    pub within: Duration,
}

impl Row {
    /// An empty row with this promise.
    pub fn of(within: Duration) -> Self {
        Self { within, ..Self::default() }
    }

    /// One more time.
    pub fn note(&mut self, took: Duration) {
        self.times += 1;
        self.worst = self.worst.max(took);
    }
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct DaysReport {
    /// Of the script.
    pub seed: u64,
    /// How long faults were to go on.
    pub lasts: Duration,
    /// How long it all took.
    pub took: Duration,
    /// Rounds of faults.
    pub rounds: u64,
    /// Rounds whose times say nothing, because the machine made everybody wait.
    pub unjudged: u64,
    /// Faults of each kind, also those that came together with others.
    pub faults: BTreeMap<FaultKind, u64>,
    /// After faults of one kind alone, and (`None`) of several at once: by what was promised.
    pub rows: BTreeMap<(Option<FaultKind>, Duration), Row>,
    /// While a fault of one kind lasted, for vehicles with another way.
    pub survived: BTreeMap<FaultKind, Row>,
    /// Invariants that were broken.
    pub broken: Vec<String>,
    /// Broken ones that were not kept.
    pub broken_more: u64,
    /// All frames.
    pub totals: Totals,
    /// Of the doubled ones: sent to both road-side units by a bridge that had just come up.
    pub flooded: u64,
    /// Clients that came and went.
    pub clients: u64,
    /// By how much boot counts have grown.
    pub lived: Duration,
    /// The largest share of a core that a daemon took when nothing happened.
    pub rest: f64,
    /// What was measured of each node.
    pub charts: Vec<(String, Chart)>,
    /// Ends of logs, when something was broken.
    pub logs: String,
}

impl DaysReport {
    /// A report of nothing yet.
    pub fn new(seed: u64, lasts: Duration) -> Self {
        Self {
            seed,
            lasts,
            took: Duration::ZERO,
            rounds: 0,
            unjudged: 0,
            faults: BTreeMap::new(),
            rows: BTreeMap::new(),
            survived: BTreeMap::new(),
            broken: Vec::new(),
            broken_more: 0,
            totals: Totals::default(),
            flooded: 0,
            clients: 0,
            lived: Duration::ZERO,
            rest: 0.0,
            charts: Vec::new(),
            logs: String::new(),
        }
    }

    /// An invariant was broken.
    pub fn broke(&mut self, what: String) {
        if self.broken.len() < BROKEN_MAX {
            self.broken.push(what);
        } else {
            self.broken_more += 1;
        }
    }

    /// The command that lets the same happen again.
    pub fn command(&self) -> String {
        let seconds = self.lasts.as_secs();
        format!("testbed days --seed {} --seconds {seconds}", self.seed)
    }

    /// All of it.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.table_of_faults(), self.table_of_nodes());
        let Totals { sent, arrived, doubled, harmed, stray } = self.totals;
        let faults: u64 = self.faults.values().sum();
        text += &format!(
            "  {faults} faults in {} rounds, {:.1} days of boot counts, {} clients came and went\n",
            self.rounds,
            self.lived.as_secs_f64() / 86_400.0,
            self.clients,
        );
        text += &format!(
            "  {sent} frames sent, {arrived} arrived; {doubled} twice ({} of them \
             flooded by a LAN bridge just up), {harmed} harmed, {stray} a minute late\n  at rest a \
             daemon takes at most {:.1} % of a core\n",
            self.flooded,
            self.rest * 100.0,
        );
        if self.unjudged > 0 {
            text += &format!(
                "  {} rounds were not timed: the machine let everybody wait\n",
                self.unjudged
            );
        }
        text += &format!("  seed {}, {:.0} s\n", self.seed, self.took.as_secs_f64());
        text
    }

    /// What was broken, and how to see it again; `None` when nothing was.
    pub fn complaint(&self) -> Option<String> {
        let first = self.broken.first()?;
        let rest = self.broken.iter().skip(1).map(|what| format!("\n  {what}")).collect::<String>();
        let more = match self.broken_more {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        Some(format!("broken invariants:\n  {first}{rest}{more}\nagain: {}", self.command()))
    }

    fn table_of_faults(&self) -> Table {
        let mut table = table([
            "fault",
            "faults",
            "timed",
            "traffic after, worst",
            "promised",
            "meanwhile, worst",
            "promised",
        ]);
        for ((kind, within), row) in &self.rows {
            let meanwhile = kind.and_then(|kind| self.survived.get(&kind));
            let count = kind.and_then(|kind| self.faults.get(&kind));
            let ms = |time: Duration| format!("{} ms", time.as_millis());
            table.add_row([
                kind.map_or("several at once", FaultKind::name).to_owned(),
                count.map_or_else(String::new, u64::to_string),
                row.times.to_string(),
                ms(row.worst),
                ms(*within),
                meanwhile.map_or_else(String::new, |row| ms(row.worst)),
                meanwhile.map_or_else(String::new, |row| ms(row.within)),
            ]);
        }
        table
    }

    fn table_of_nodes(&self) -> Table {
        let mut table = table(["node", "memory, KiB", "last", "descriptors", "most", "log lines"]);
        for (name, chart) in &self.charts {
            let kib = |bytes: u64| (bytes / 1024).to_string();
            let (early, late) =
                chart.anonymous.map_or_else(Default::default, |(a, b)| (kib(a), kib(b)));
            let (warm, most) = chart
                .descriptors
                .map_or_else(Default::default, |(a, b)| (a.to_string(), b.to_string()));
            table.add_row([name.clone(), early, late, warm, most, chart.lines.to_string()]);
        }
        table
    }
}

/// Text to the left, numbers to the right.
fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners()).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_tells_how_to_see_it_again_and_is_not_endless() {
        let mut report = DaysReport::new(42, Duration::from_secs(90));
        assert_eq!(report.complaint(), None);
        for n in 0..BROKEN_MAX + 5 {
            report.broke(format!("thing {n}"));
        }
        let complaint = report.complaint().unwrap();
        assert!(complaint.ends_with("again: testbed days --seed 42 --seconds 90"), "{complaint}");
        assert!(complaint.contains("and 5 more"), "{complaint}");
    }

    #[test]
    fn the_table_has_the_worst_of_each_kind_beside_its_promise() {
        let mut report = DaysReport::new(1, Duration::from_secs(1));
        let row = report.rows.entry((Some(FaultKind::Stall), Duration::from_secs(1))).or_default();
        row.note(Duration::from_millis(40));
        row.note(Duration::from_millis(30));
        report.faults.insert(FaultKind::Stall, 3);
        let text = report.text();
        let line = text.lines().find(|line| line.contains("stall")).unwrap();
        let words = line.split(|c: char| c.is_whitespace() || "│┆".contains(c));
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        assert_eq!(words, ["stall", "3", "2", "40", "ms", "1000", "ms"], "{text}");
    }
}
