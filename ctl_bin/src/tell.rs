//! How what daemons say is printed: in which form, and whose it is.

use control_socket::message::Topics;
use control_socket::table;
use serde_json::json;

use crate::args::{Args, CtlCommand, Output};
use crate::names::Names;
use crate::say::{complain, print};
use crate::show;

/// Prints what one or several daemons say to a command.
pub(crate) struct Teller<'a> {
    pub(crate) command: &'a CtlCommand,
    pub(crate) output: Output,
    pub(crate) names: &'a Names,
    /// Several daemons are asked.
    is_of_many: bool,
    /// Each says something at any time, so a line must say by itself whose it is.
    is_live: bool,
}

impl<'a> Teller<'a> {
    /// Of so many daemons.
    pub(crate) fn new(args: &'a Args, names: &'a Names, daemons: usize) -> Self {
        let command = args.command.as_ref().unwrap_or(&CtlCommand::Status);
        let is_live = match command {
            CtlCommand::Events { past } => !past || args.watch.is_some(),
            _ => false,
        };
        Self { command, output: args.output, names, is_of_many: daemons > 1, is_live }
    }

    /// Says whose the following is, where that is not said with each line. An object of JSON always
    /// says it.
    pub(crate) fn head(&self, daemon: &str) {
        if self.output == Output::Table && self.is_of_many && !self.is_live {
            print(&format!("{daemon}:\n"));
        }
    }

    /// Prints what the command shows of this, and says whether there was anything to show.
    pub(crate) fn show(&self, daemon: &str, topics: Topics) -> bool {
        match show::shown(self.command, self.output, self.names, daemon, topics) {
            Ok(text) => self.print(daemon, &text),
            Err(refusal) => {
                complain(&refusal.to_string());
                return false;
            }
        }
        true
    }

    /// So many events are missing here.
    pub(crate) fn missed(&self, daemon: &str, topics: &Topics, missed: u64) {
        let text = match self.output {
            Output::Json => table::object(daemon, topics, json!({ "missed": missed })).to_string(),
            Output::Table => format!("{missed} events were missed"),
        };
        self.print(daemon, &(text + "\n"));
    }

    fn print(&self, daemon: &str, text: &str) {
        if self.output == Output::Table && self.is_of_many && self.is_live {
            let lines: String = text.lines().map(|line| format!("{daemon}: {line}\n")).collect();
            print(&lines);
        } else {
            print(text);
        }
    }
}
