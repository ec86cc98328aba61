//! Which daemons are asked, for what, and what the shell is told.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::CommandFactory as _;
use control_socket::client::{ClientError, SocketClient};
use control_socket::message::{Ask, PinAsk, SetAsk, Topic};
use control_socket::path;
use control_socket::table::TableKind;
use node_lib::NodeId;

use crate::args::{Args, ClientAction, ConfigAction, CtlCommand, Output, RecordAction};
use crate::names::Names;
use crate::probe;
use crate::say::{Outcome, complain, print};
use crate::show;
use crate::tell::Teller;
use crate::top;
use crate::watch::Watcher;

/// Does what was typed.
pub(crate) fn run(args: &Args) -> ExitCode {
    if let Some(CtlCommand::Completions { shell }) = &args.command {
        // Not straight to the terminal: clap panics when whoever reads has seen enough.
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Args::command(), "v2xctl", &mut script);
        print(&String::from_utf8_lossy(&script));
        return ExitCode::SUCCESS;
    }
    if let Some(CtlCommand::Trace { line }) = &args.command {
        complain(&trace(line));
        return ExitCode::from(Outcome::Usage as u8);
    }
    let outcome = Names::read(args.names.as_deref()).map_or_else(
        |error| {
            complain(&error);
            Outcome::Usage
        },
        |names| watch(args, &names),
    );
    ExitCode::from(outcome as u8)
}

/// Becomes the program that reads recordings, which needs the nodes themselves and no daemon. The
/// one that stands beside this program belongs to it. Returns why that cannot be done.
fn trace(line: &[OsString]) -> String {
    const NAME: &str = "v2xtrace";
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name(NAME));
    let beside = beside.filter(|program| program.exists());
    let error = Command::new(beside.unwrap_or_else(|| NAME.into())).args(line).exec();
    format!(
        "{NAME}: {error}; expected it beside v2xctl or in PATH: it is in the package, or cargo \
         build --release -p recorder"
    )
}

/// Once, or again and again.
fn watch(args: &Args, names: &Names) -> Outcome {
    let listens = topics_to_watch(args.command.as_ref().unwrap_or(&CtlCommand::Status));
    let mut watchers = BTreeMap::new();
    let mut there = Vec::new();
    loop {
        there = match or_as_before(sockets(args), there) {
            Ok(there) => there,
            Err(error) => {
                complain(&error);
                return Outcome::Unreachable;
            }
        };
        if matches!(args.command, Some(CtlCommand::Top)) {
            return top::run(names, &there);
        }
        let teller = Teller::new(args, names, there.len());
        let Some(every) = args.watch else { return ask_all(&teller, &there) };
        if args.output == Output::Table && !matches!(args.command, Some(CtlCommand::Events { .. }))
        {
            // Clears the screen and goes to its corner; who reads a pipe gets one answer after the
            // other.
            print(if io::stdout().is_terminal() { "\x1b[2J\x1b[H" } else { "" });
        }
        if listens.is_empty() {
            ask_all(&teller, &there);
        } else {
            for socket in &there {
                let start = |socket: &PathBuf| Watcher::start(socket, &listens);
                watchers.entry(socket.clone()).or_insert_with_key(start);
            }
            if !show_watched(&teller, &mut watchers) {
                return Outcome::Unreachable;
            }
        }
        std::thread::sleep(every);
    }
}

/// What subscribers of a command are told of again; none, where it has to be asked again.
fn topics_to_watch(command: &CtlCommand) -> Vec<Topic> {
    match wanted(command) {
        Ask::Get(topics) | Ask::Subscribe(topics) => {
            let is_told = |topic: &Topic| {
                matches!(topic, Topic::View | Topic::Events | Topic::Changes | Topic::Problems)
            };
            if topics.iter().all(is_told) { topics } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// Shows what is known of each daemon by now. Says whether there is any left to listen to.
fn show_watched(teller: &Teller<'_>, watchers: &mut BTreeMap<PathBuf, Watcher>) -> bool {
    let is_events = matches!(teller.command, CtlCommand::Events { .. });
    for watcher in watchers.values_mut() {
        if let Some(error) = watcher.failed() {
            complain(&error.to_string());
        }
        let mut seen = watcher.seen();
        let has_come = seen.topics.at_unix_ms > 0;
        teller.head(&seen.name);
        if let Some(away) = &seen.away {
            complain(away);
        }
        let missed = std::mem::take(&mut seen.missed);
        if missed > 0 {
            teller.missed(&seen.name, &seen.topics, missed);
        }
        let is_news = std::mem::take(&mut seen.is_new);
        if has_come && (is_news || !is_events) {
            teller.show(&seen.name, seen.topics.clone());
        }
        if is_events {
            // Each once.
            seen.topics.events = None;
        }
    }
    watchers.values().any(Watcher::is_alive)
}

/// One after the other; those that are listened to, at the same time.
fn ask_all(teller: &Teller<'_>, sockets: &[PathBuf]) -> Outcome {
    let ask = |socket: &PathBuf| ask_one(teller, socket);
    let worst = if matches!(teller.command, CtlCommand::Events { past: false }) {
        std::thread::scope(|scope| {
            let listeners: Vec<_> =
                sockets.iter().map(|socket| scope.spawn(move || ask(socket))).collect();
            let outcomes = listeners.into_iter().map(|listener| listener.join());
            outcomes.map(|outcome| outcome.unwrap_or(Outcome::Unreachable)).max()
        })
    } else {
        sockets.iter().map(ask).max()
    };
    worst.unwrap_or(Outcome::Done)
}

/// The sockets the user means.
fn sockets(args: &Args) -> Result<Vec<PathBuf>, String> {
    let of = |text: &String| {
        // A name has no slash in it.
        if text.contains('/') { PathBuf::from(text) } else { path::of(text) }
    };
    if !args.socket.is_empty() {
        return Ok(args.socket.iter().map(of).collect());
    }
    let directory = Path::new(path::DIRECTORY);
    let found = path::all_in(directory).map_err(|error| format!("{}: {error}", path::DIRECTORY))?;
    if found.is_empty() {
        return Err(format!(
            "no control socket in {}: is a daemon running? One with --control PATH is asked with \
             -s PATH",
            path::DIRECTORY
        ));
    }
    Ok(found)
}

/// The sockets there are; if there are none any more, those that were there: their daemons may
/// start again.
fn or_as_before(
    found: Result<Vec<PathBuf>, String>,
    before: Vec<PathBuf>,
) -> Result<Vec<PathBuf>, String> {
    found.or_else(|error| if before.is_empty() { Err(error) } else { Ok(before) })
}

fn ask_one(teller: &Teller<'_>, socket: &Path) -> Outcome {
    match converse(teller, socket) {
        Ok(outcome) => outcome,
        Err(error) => {
            complain(&error.to_string());
            match error {
                ClientError::Refused { .. } => Outcome::Refused,
                _ => Outcome::Unreachable,
            }
        }
    }
}

fn converse(teller: &Teller<'_>, socket: &Path) -> Result<Outcome, ClientError> {
    let command = teller.command;
    if let Some(asked) = probe::Asked::of(command) {
        return probe::run(teller, socket, asked);
    }
    let ask = wanted(command);
    let socket = if ask.is_change() { path::read_write(socket) } else { socket.to_owned() };
    let mut client = SocketClient::connect(&socket)?;
    let topics = client.ask(ask)?;
    let name = client.hello().name.clone();
    let is_status = matches!(command, CtlCommand::Status);
    let is_ill = topics.problems.iter().flatten().any(|problem| problem.is_fatal);
    teller.head(&name);
    if !teller.show(&name, topics) {
        return Ok(Outcome::Refused);
    }
    if matches!(command, CtlCommand::Events { past: false }) {
        listen(teller, &mut client, &name)?;
    }
    Ok(if is_status && is_ill { Outcome::Unhealthy } else { Outcome::Done })
}

/// Prints events as they come, for ever.
fn listen(teller: &Teller<'_>, client: &mut SocketClient, name: &str) -> Result<(), ClientError> {
    loop {
        let update = client.next_update()?;
        if let Some(missed) = update.missed {
            teller.missed(name, &update.topics, missed);
        }
        if update.topics.events.is_some() {
            teller.show(name, *update.topics);
        }
    }
}

/// What a command needs of the daemon.
fn wanted(command: &CtlCommand) -> Ask {
    match command {
        CtlCommand::Events { past: false } => Ask::Subscribe(vec![Topic::Events]),
        CtlCommand::Config { action: Some(ConfigAction::Set { name, value }) } => {
            Ask::Set(SetAsk { name: name.clone(), value: value.clone() })
        }
        CtlCommand::Config { action: Some(ConfigAction::Check) } => Ask::Check,
        CtlCommand::Config { action: Some(ConfigAction::Reload) } => Ask::Reload,
        CtlCommand::Record { action: Some(action) } => match action {
            RecordAction::Start { directory } => Ask::RecordStart(directory.clone()),
            RecordAction::Stop => Ask::RecordStop,
            RecordAction::Mark { text } => Ask::RecordMark(text.join(" ")),
        },
        CtlCommand::LogLevel { filter: Some(filter) } => Ask::SetLog(filter.clone()),
        CtlCommand::Clients { action: Some(action) } => match *action {
            ClientAction::Flush { mac } => Ask::FlushClients(mac),
            ClientAction::Pin { mac, obu, vlan } => {
                Ask::PinClient(PinAsk { mac, vlan, obu: NodeId(obu.0) })
            }
            ClientAction::Unpin { mac } => Ask::UnpinClients(mac),
        },
        _ => {
            let topics = show::table_of(command).map_or(&[Topic::View][..], TableKind::topics);
            Ask::Get(topics.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_daemon_that_goes_is_waited_for_and_none_at_all_is_said() {
        let obu = vec![PathBuf::from("/run/v2x/obu0.sock")];
        let none = || Err("no control socket".to_owned());
        assert_eq!(or_as_before(none(), Vec::new()), none());
        assert_eq!(or_as_before(none(), obu.clone()), Ok(obu.clone()));
        let both = [obu.clone(), vec![PathBuf::from("/run/v2x/rsu0.sock")]].concat();
        assert_eq!(or_as_before(Ok(both.clone()), obu), Ok(both));
    }
}
