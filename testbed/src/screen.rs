//! What demo and corridor print, with colours only for a terminal.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, stdout};
use std::time::Duration;

use anyhow::Result;

/// The output, and what its last table will say.
pub(crate) struct Screen {
    has_colours: bool,
    steps: Cell<u32>,
    summary: RefCell<Vec<(String, String)>>,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const CYAN: &str = "1;36";
/// Columns of the label in front of a result.
const LABEL_WIDTH: usize = 16;

impl Screen {
    pub(crate) fn new() -> Self {
        let has_colours = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { has_colours, steps: Cell::new(0), summary: RefCell::default() }
    }

    pub(crate) fn title(&self, text: &str) {
        println!("\n  {}", self.paint(BOLD, text));
    }

    pub(crate) fn text(&self, text: &str) {
        println!("{text}");
    }

    pub(crate) fn dim(&self, text: &str) {
        println!("  {}", self.paint(DIM, text));
    }

    /// Begins the next numbered step.
    pub(crate) fn step(&self, text: &str) {
        self.steps.set(self.steps.get() + 1);
        println!("\n  {}", self.paint(CYAN, &format!("{}  {text}", self.steps.get())));
    }

    pub(crate) fn plain(&self, text: &str) {
        println!("     {text}");
    }

    /// Something that worked.
    pub(crate) fn good(&self, label: &str, text: &str) {
        println!("   {} {label:<LABEL_WIDTH$} {text}", self.paint(GREEN, "✓"));
    }

    /// A line of the table at the end.
    pub(crate) fn remember(&self, what: &str, result: String) {
        self.summary.borrow_mut().push((what.to_owned(), result));
    }

    /// The table.
    pub(crate) fn end(&self, took: Duration) -> Result<()> {
        let rows = self.summary.borrow();
        let width = |text: &str| text.chars().count();
        let left = rows.iter().map(|(what, _)| width(what)).max().unwrap_or(0);
        let right = rows.iter().map(|(_, result)| width(result)).max().unwrap_or(0);
        let line =
            |a, b, c| format!("  {a}{}{b}{}{c}", "─".repeat(left + 2), "─".repeat(right + 2));
        println!("\n{}", line('┌', '┬', '┐'));
        for (what, result) in rows.iter() {
            let result = format!("{result:<right$}");
            println!("  │ {what:<left$} │ {} │", self.paint(BOLD, &result));
        }
        println!("{}", line('└', '┴', '┘'));
        println!(
            "  {} in {:.0} s. Nothing is left on this machine.\n",
            self.paint(GREEN, "All of it worked"),
            took.as_secs_f64()
        );
        Ok(())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A duration to the millisecond.
pub(crate) fn in_ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
