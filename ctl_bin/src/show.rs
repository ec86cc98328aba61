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

use crate::args::{ClientAction, ConfigAction, CtlCommand};
use crate::names::Names;
pub(crate) use past::events;

/// For people. An error says why there is nothing to print.
pub(crate) fn table(
    command: &CtlCommand,
    names: &Names,
    daemon: &str,
    topics: &Topics,
) -> Result<String, String> {
    let view = || topics.view.as_ref().ok_or_else(|| "the daemon sent no view".to_owned());
    Ok(match command {
        CtlCommand::Status => status::table(names, daemon, topics, view()?),
        CtlCommand::Neighbors => around::neighbors(names, view()?),
        CtlCommand::Upstreams => around::upstreams(names, &view()?.node.routes),
        CtlCommand::Routes => around::routes(names, view()?),
        CtlCommand::Rsus => around::rsus(names, view()?),
        CtlCommand::Radio => around::radio(names, view()?),
        CtlCommand::Clients { action: None } => behind::clients(names, view()?),
        CtlCommand::Clients { action: Some(action) } => {
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
        CtlCommand::Obus => behind::obus(names, view()?),
        CtlCommand::Tree => behind::tree(names, view()?),
        CtlCommand::Handovers { histogram: false } => past::handovers(names, topics),
        CtlCommand::Handovers { histogram: true } => past::histogram(topics),
        CtlCommand::Why { id } => past::why(names, topics, view()?, *id)?,
        CtlCommand::Events { .. } => past::events(names, topics),
        CtlCommand::Stats { prefix, zero } => process::stats(view()?, prefix.as_deref(), *zero),
        CtlCommand::Config { action: Some(ConfigAction::Check) } => {
            process::reloaded(topics, false)
        }
        CtlCommand::Config { action: Some(ConfigAction::Reload) } => {
            process::reloaded(topics, true)
        }
        CtlCommand::Config { action } => process::config(topics, name_in(action.as_ref()))?,
        CtlCommand::Record { .. } => process::recording(topics),
        CtlCommand::LogLevel { .. } => format!("{}\n", topics.log.as_deref().unwrap_or("-")),
        // They say what they see as they see it.
        CtlCommand::Top
        | CtlCommand::Ping { .. }
        | CtlCommand::Traceroute { .. }
        | CtlCommand::Trace { .. }
        | CtlCommand::Completions { .. } => String::new(),
    })
}

/// For programs: one object on one line.
pub(crate) fn json(command: &CtlCommand, daemon: &str, topics: &Topics) -> String {
    let object = match table_of(command) {
        Some(table) => table.json(daemon, topics),
        None => table::object(daemon, topics, changed(command, topics)),
    };
    format!("{object}\n")
}

/// What a command that changed something says of it.
fn changed(command: &CtlCommand, topics: &Topics) -> Value {
    match command {
        CtlCommand::Clients { action: Some(ClientAction::Flush { .. }) } => {
            json!({ "flushed": topics.flushed })
        }
        CtlCommand::Clients { .. } => json!({ "pins": topics.pins }),
        CtlCommand::Config { .. } => json!({ "reloaded": topics.reloaded }),
        CtlCommand::Record { .. } => json!({ "recording": topics.recording }),
        _ => json!({}),
    }
}

/// The table a command shows; `None` where it changed something, and says what.
fn table_of(command: &CtlCommand) -> Option<TableKind> {
    Some(match command {
        CtlCommand::Status => TableKind::Status,
        CtlCommand::Neighbors => TableKind::Neighbors,
        CtlCommand::Upstreams => TableKind::Upstreams,
        CtlCommand::Routes => TableKind::Routes,
        CtlCommand::Rsus => TableKind::Rsus,
        CtlCommand::Radio => TableKind::Radio,
        CtlCommand::Clients { action: None } => TableKind::Clients,
        CtlCommand::Obus => TableKind::Obus,
        CtlCommand::Tree => TableKind::Tree,
        CtlCommand::Handovers { .. } => TableKind::Handovers,
        CtlCommand::Why { id } => TableKind::Why(*id),
        CtlCommand::Events { .. } => TableKind::Events,
        CtlCommand::Stats { .. } => TableKind::Stats,
        CtlCommand::Config { action: Some(ConfigAction::Check | ConfigAction::Reload) } => {
            return None;
        }
        CtlCommand::Config { .. } => TableKind::Config,
        CtlCommand::LogLevel { .. } => TableKind::LogLevel,
        CtlCommand::Clients { action: Some(_) }
        | CtlCommand::Record { .. }
        | CtlCommand::Top
        | CtlCommand::Ping { .. }
        | CtlCommand::Traceroute { .. }
        | CtlCommand::Trace { .. }
        | CtlCommand::Completions { .. } => return None,
    })
}

/// Which setting is meant, if it is one.
fn name_in(action: Option<&ConfigAction>) -> Option<&str> {
    match action {
        Some(ConfigAction::Get { name } | ConfigAction::Set { name, .. }) => Some(name),
        _ => None,
    }
}
