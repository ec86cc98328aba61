//! What is printed for each command.
//!
//! | file | commands |
//! |---|---|
//! | `status` | status |
//! | `around` | neighbors, upstreams, routes, rsus, radio |
//! | `behind` | clients, obus, tree |
//! | `past` | handovers, why, events |
//! | `process` | stats, config, record, log-level |

mod around;
mod behind;
mod past;
mod process;
mod status;

use control_socket::message::Topics;
use control_socket::table::{self, TableKind};
use serde_json::{Value, json};

use crate::args::{ClientAction, Command, ConfigAction};
use crate::names::Names;
pub(crate) use past::events;

/// For people. An error says why there is nothing to print.
pub(crate) fn table(
    command: &Command,
    names: &Names,
    daemon: &str,
    topics: &Topics,
) -> Result<String, String> {
    let view = || topics.view.as_ref().ok_or_else(|| "the daemon sent no view".to_owned());
    Ok(match command {
        Command::Status => status::table(names, daemon, topics, view()?),
        Command::Neighbors => around::neighbors(names, view()?),
        Command::Upstreams => around::upstreams(names, &view()?.node.routes),
        Command::Routes => around::routes(names, view()?),
        Command::Rsus => around::rsus(names, view()?),
        Command::Radio => around::radio(names, view()?),
        Command::Clients { action: None } => behind::clients(names, view()?),
        Command::Clients { action: Some(action) } => {
            let pins = topics.pins.unwrap_or(0);
            match action {
                ClientAction::Flush { .. } => {
                    format!("{} clients forgotten\n", topics.flushed.unwrap_or(0))
                }
                ClientAction::Pin { .. } if pins == 0 => "pinned there already\n".to_owned(),
                ClientAction::Pin { .. } => "pinned\n".to_owned(),
                ClientAction::Unpin { .. } => format!("{pins} pins taken off\n"),
            }
        }
        Command::Obus => behind::obus(names, view()?),
        Command::Tree => behind::tree(names, view()?),
        Command::Handovers { histogram: false } => past::handovers(names, topics),
        Command::Handovers { histogram: true } => past::histogram(topics),
        Command::Why { id } => past::why(names, topics, view()?, *id)?,
        Command::Events { .. } => past::events(names, topics),
        Command::Stats { prefix, zero } => process::stats(view()?, prefix.as_deref(), *zero),
        Command::Config { action: Some(ConfigAction::Check) } => process::reloaded(topics, false),
        Command::Config { action: Some(ConfigAction::Reload) } => process::reloaded(topics, true),
        Command::Config { action } => process::config(topics, name_in(action.as_ref()))?,
        Command::Record { .. } => process::recording(topics),
        Command::LogLevel { .. } => format!("{}\n", topics.log.as_deref().unwrap_or("-")),
        // They say what they see as they see it.
        Command::Top
        | Command::Ping { .. }
        | Command::Traceroute { .. }
        | Command::Trace { .. }
        | Command::Completions { .. } => String::new(),
    })
}

/// For programs: one object on one line.
pub(crate) fn json(command: &Command, daemon: &str, topics: &Topics) -> String {
    let object = match table_of(command) {
        Some(table) => table.json(daemon, topics),
        None => table::object(daemon, topics, changed(command, topics)),
    };
    format!("{object}\n")
}

/// What a command that changed something says of it.
fn changed(command: &Command, topics: &Topics) -> Value {
    match command {
        Command::Clients { action: Some(ClientAction::Flush { .. }) } => {
            json!({ "flushed": topics.flushed })
        }
        Command::Clients { .. } => json!({ "pins": topics.pins }),
        Command::Config { .. } => json!({ "reloaded": topics.reloaded }),
        Command::Record { .. } => json!({ "recording": topics.recording }),
        _ => json!({}),
    }
}

/// The table a command shows; `None` where it changed something, and says what.
fn table_of(command: &Command) -> Option<TableKind> {
    Some(match command {
        Command::Status => TableKind::Status,
        Command::Neighbors => TableKind::Neighbors,
        Command::Upstreams => TableKind::Upstreams,
        Command::Routes => TableKind::Routes,
        Command::Rsus => TableKind::Rsus,
        Command::Radio => TableKind::Radio,
        Command::Clients { action: None } => TableKind::Clients,
        Command::Obus => TableKind::Obus,
        Command::Tree => TableKind::Tree,
        Command::Handovers { .. } => TableKind::Handovers,
        Command::Why { id } => TableKind::Why(*id),
        Command::Events { .. } => TableKind::Events,
        Command::Stats { .. } => TableKind::Stats,
        Command::Config { action: Some(ConfigAction::Check | ConfigAction::Reload) } => {
            return None;
        }
        Command::Config { .. } => TableKind::Config,
        Command::LogLevel { .. } => TableKind::LogLevel,
        Command::Clients { action: Some(_) }
        | Command::Record { .. }
        | Command::Top
        | Command::Ping { .. }
        | Command::Traceroute { .. }
        | Command::Trace { .. }
        | Command::Completions { .. } => return None,
    })
}

/// Which setting is meant, if it is one.
fn name_in(action: Option<&ConfigAction>) -> Option<&str> {
    match action {
        Some(ConfigAction::Get { name } | ConfigAction::Set { name, .. }) => Some(name),
        _ => None,
    }
}
