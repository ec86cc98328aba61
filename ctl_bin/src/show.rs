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
use node_lib::control::snapshot::View;
use serde_json::{Map, Value, json};

use crate::args::{Command, ConfigAction};
use crate::names::Names;
pub(crate) use past::events;

/// Version of the JSON that is printed. Fields may be added within one.
const SCHEMA: u32 = 1;

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
        Command::Clients { action: Some(_) } => {
            format!("{} clients forgotten\n", topics.flushed.unwrap_or(0))
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
        | Command::Completions { .. } => String::new(),
    })
}

/// For programs: one object on one line.
pub(crate) fn json(command: &Command, daemon: &str, topics: &Topics) -> String {
    object(daemon, topics, fields(command, topics))
}

/// An object with these fields behind those that every one has.
pub(crate) fn object(daemon: &str, topics: &Topics, fields: Value) -> String {
    let mut object = Map::new();
    object.insert("schema".to_owned(), SCHEMA.into());
    object.insert("daemon".to_owned(), daemon.into());
    for (name, value) in [
        ("node", json!(topics.node)),
        ("role", json!(topics.role)),
        ("at_unix_ms", json!(topics.at_unix_ms)),
    ] {
        object.insert(name.to_owned(), value);
    }
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    format!("{}\n", Value::Object(object))
}

fn fields(command: &Command, topics: &Topics) -> Value {
    let empty = View::default();
    let view = topics.view.as_ref().unwrap_or(&empty);
    let node = &view.node;
    match command {
        Command::Status => status::json(topics, view),
        Command::Neighbors => json!({ "neighbours": node.neighbours }),
        Command::Upstreams | Command::Rsus => json!({ "routes": node.routes }),
        Command::Routes => json!({
            "routes": node.routes.iter().map(without_candidates).collect::<Vec<_>>(),
            "obus": node.obus,
        }),
        Command::Radio => json!({
            "air": node.air,
            "radio": view.radio,
            "is_radio_full": view.is_radio_full,
            "alone": view.alone,
            "other_ethertypes": view.other_ethertypes,
            "counters": { "radio": view.counters.radio, "signal": view.counters.signal },
        }),
        Command::Clients { action: None } => json!({ "clients": node.clients }),
        Command::Clients { action: Some(_) } => json!({ "flushed": topics.flushed }),
        Command::Obus => json!({ "obus": node.obus }),
        Command::Tree => json!({
            "obus": node.obus, "children": node.children, "attached": node.attached,
        }),
        Command::Handovers { .. } => past::json(topics),
        Command::Why { id: None } => json!({ "attached": node.attached, "routes": node.routes }),
        Command::Why { id: Some(id) } => {
            let change = topics.changes.iter().flatten().find(|change| change.number == *id);
            json!({ "change": change })
        }
        Command::Events { .. } => json!({ "events": topics.events }),
        Command::Stats { .. } => json!({ "counters": view.counters }),
        Command::Config { action: Some(ConfigAction::Check | ConfigAction::Reload) } => {
            json!({ "reloaded": topics.reloaded })
        }
        Command::Config { .. } => json!({ "config": topics.config }),
        Command::Record { .. } => json!({ "recording": topics.recording }),
        Command::LogLevel { .. } => json!({ "log": topics.log }),
        Command::Top
        | Command::Ping { .. }
        | Command::Traceroute { .. }
        | Command::Completions { .. } => json!({}),
    }
}

/// Which setting is meant, if it is one.
fn name_in(action: Option<&ConfigAction>) -> Option<&str> {
    match action {
        Some(ConfigAction::Get { name } | ConfigAction::Set { name, .. }) => Some(name),
        _ => None,
    }
}

fn without_candidates(route: &node_lib::control::snapshot::Route) -> Value {
    let mut value = json!(route);
    if let Value::Object(fields) = &mut value {
        fields.remove("candidates");
    }
    value
}
