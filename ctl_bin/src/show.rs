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
use control_socket::table::{self, NotThere, TableKind};
use node_lib::control::snapshot::View;
use serde_json::{Value, json};

use crate::args::{ClientAction, ConfigAction, CtlCommand, Output};
use crate::names::Names;

/// What a command shows of what the daemon said, in this form. An error says why there is nothing
/// to show, whatever the form.
pub(crate) fn shown(
    command: &CtlCommand,
    output: Output,
    names: &Names,
    daemon: &str,
    topics: Topics,
) -> Result<String, NotThere> {
    let kind = table_of(command);
    let topics = match kind {
        Some(kind) => kind.narrowed(topics)?,
        None => topics,
    };
    Ok(match (output, kind) {
        (Output::Table, _) => table(command, names, daemon, &topics),
        (Output::Json, Some(kind)) => format!("{}\n", kind.json(daemon, &topics)),
        (Output::Json, None) => {
            format!("{}\n", table::object(daemon, &topics, changed(command, &topics)))
        }
    })
}

/// For people.
fn table(command: &CtlCommand, names: &Names, daemon: &str, topics: &Topics) -> String {
    let empty = View::default();
    let view = topics.view.as_ref().unwrap_or(&empty);
    match command {
        CtlCommand::Status => status::table(names, daemon, topics, view),
        CtlCommand::Neighbors => around::neighbors(names, view),
        CtlCommand::Upstreams => {
            around::upstreams(names, &view.node.routes, view.node.without_way())
        }
        CtlCommand::Routes => around::routes(names, view),
        CtlCommand::Rsus => around::rsus(names, view),
        CtlCommand::Radio => around::radio(names, view),
        CtlCommand::Clients { action: None } => behind::clients(names, view),
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
        CtlCommand::Obus => behind::obus(names, view),
        CtlCommand::Tree => behind::tree(names, view),
        CtlCommand::Handovers { histogram: false } => past::handovers(names, topics),
        CtlCommand::Handovers { histogram: true } => past::histogram(topics),
        CtlCommand::Why { id: None } => past::why_now(names, topics, view),
        CtlCommand::Why { id: Some(_) } => past::why_then(names, topics),
        CtlCommand::Events { .. } => past::events(names, topics),
        CtlCommand::Stats { zero, .. } => process::stats(view, *zero),
        CtlCommand::Config { action: Some(ConfigAction::Check) } => {
            process::reloaded(topics, false)
        }
        CtlCommand::Config { action: Some(ConfigAction::Reload) } => {
            process::reloaded(topics, true)
        }
        CtlCommand::Config { .. } => process::config(topics),
        CtlCommand::Record { .. } => process::recording(topics),
        CtlCommand::LogLevel { .. } => format!("{}\n", topics.log.as_deref().unwrap_or("-")),
        // They say what they see as they see it.
        CtlCommand::Top
        | CtlCommand::Ping { .. }
        | CtlCommand::Traceroute { .. }
        | CtlCommand::Trace { .. }
        | CtlCommand::Completions { .. } => String::new(),
    }
}

/// What a command that changed something says of it.
fn changed(command: &CtlCommand, topics: &Topics) -> Value {
    match command {
        CtlCommand::Clients { action: Some(ClientAction::Flush { .. }) } => {
            json!({ "flushed": topics.flushed })
        }
        CtlCommand::Clients { .. } => json!({ "pins": topics.pins }),
        CtlCommand::Config { .. } => json!({ "reloaded": topics.reloaded }),
        _ => json!({}),
    }
}

/// The table a command shows; `None` where it changed something, and says what.
pub(crate) fn table_of(command: &CtlCommand) -> Option<TableKind<'_>> {
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
        CtlCommand::Stats { prefix, .. } => TableKind::Stats(prefix.as_deref()),
        CtlCommand::Config { action: Some(ConfigAction::Check | ConfigAction::Reload) } => {
            return None;
        }
        CtlCommand::Config { action } => TableKind::Config(name_in(action.as_ref())),
        CtlCommand::LogLevel { .. } => TableKind::LogLevel,
        CtlCommand::Record { .. } => TableKind::Record,
        CtlCommand::Clients { action: Some(_) }
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
