//! Which daemons are asked, for what, and what the shell is told.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory as _;
use control_socket::client::{Client, ClientError};
use control_socket::message::{Ask, Topic};
use control_socket::path;

use crate::args::{Args, ClientAction, Command, Output};
use crate::names::Names;
use crate::show;

/// What the shell is told. The worst of all daemons counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Done = 0,
    Unhealthy = 4,
    Refused = 1,
    Usage = 2,
    Unreachable = 3,
}

/// Does what was typed.
pub(crate) fn run(args: &Args) -> ExitCode {
    if let Some(Command::Completions { shell }) = &args.command {
        clap_complete::generate(*shell, &mut Args::command(), "v2xctl", &mut io::stdout());
        return ExitCode::SUCCESS;
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

/// Once, or again and again.
fn watch(args: &Args, names: &Names) -> Outcome {
    loop {
        let sockets = match sockets(args) {
            Ok(sockets) => sockets,
            Err(error) => {
                complain(&error);
                return Outcome::Unreachable;
            }
        };
        if args.watch.is_some() && args.output == Output::Table {
            // Clears the screen and goes to its corner; who reads a pipe gets one answer after the
            // other.
            print(if io::stdout().is_terminal() { "\x1b[2J\x1b[H" } else { "" });
        }
        let worst = ask_all(args, names, &sockets);
        match args.watch {
            Some(every) => std::thread::sleep(every),
            None => return worst,
        }
    }
}

/// One after the other; those that are listened to, at the same time.
fn ask_all(args: &Args, names: &Names, sockets: &[PathBuf]) -> Outcome {
    let ask = |socket: &PathBuf| ask_one(args, names, socket, sockets.len() > 1);
    let worst = if matches!(args.command, Some(Command::Events { past: false })) {
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
            "no control socket in {}: is a daemon running? One with --control PATH is asked with -s PATH",
            path::DIRECTORY
        ));
    }
    Ok(found)
}

fn ask_one(args: &Args, names: &Names, socket: &Path, is_one_of_many: bool) -> Outcome {
    match converse(args, names, socket, is_one_of_many) {
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

fn converse(
    args: &Args,
    names: &Names,
    socket: &Path,
    is_one_of_many: bool,
) -> Result<Outcome, ClientError> {
    let command = args.command.clone().unwrap_or(Command::Status);
    let ask = wanted(&command);
    let socket = if ask.is_change() { path::read_write(socket) } else { socket.to_owned() };
    let mut client = Client::connect(&socket)?;
    let topics = client.ask(ask)?;
    let name = client.hello().name.clone();
    if args.output == Output::Table && is_one_of_many {
        print(&format!("{name}:\n"));
    }
    print(&match args.output {
        Output::Json => show::json(&command, &name, &topics),
        Output::Table => match show::table(&command, names, &name, &topics) {
            Ok(text) => text,
            Err(refusal) => {
                complain(&refusal);
                return Ok(Outcome::Refused);
            }
        },
    });
    if matches!(command, Command::Events { past: false }) {
        listen(args, names, &mut client, &command, &name)?;
    }
    let is_status = matches!(command, Command::Status);
    let is_ill = topics.problems.iter().flatten().any(|problem| problem.is_fatal);
    Ok(if is_status && is_ill { Outcome::Unhealthy } else { Outcome::Done })
}

/// Prints events as they come, for ever.
fn listen(
    args: &Args,
    names: &Names,
    client: &mut Client,
    command: &Command,
    name: &str,
) -> Result<(), ClientError> {
    loop {
        let update = client.next_update()?;
        if let Some(missed) = update.missed {
            print(&match args.output {
                Output::Json => format!("{{\"missed\":{missed}}}\n"),
                Output::Table => format!("{missed} events were missed: this reader is too slow\n"),
            });
        }
        if update.topics.events.is_some() {
            print(&match args.output {
                Output::Json => show::json(command, name, &update.topics),
                Output::Table => show::events(names, &update.topics),
            });
        }
    }
}

/// What a command needs of the daemon.
fn wanted(command: &Command) -> Ask {
    use Topic::{Changes, Config, Events, Log, Problems, View};
    Ask::Get(match command {
        Command::Status => vec![View, Problems],
        Command::Handovers { .. } => vec![Changes],
        Command::Why { .. } => vec![View, Changes],
        Command::Events { past: true } => vec![Events],
        Command::Events { past: false } => return Ask::Subscribe(vec![Events]),
        Command::Config { .. } => vec![Config],
        Command::LogLevel { filter: None } => vec![Log],
        Command::LogLevel { filter: Some(filter) } => return Ask::SetLog(filter.clone()),
        Command::Clients { action: Some(ClientAction::Flush { mac }) } => {
            return Ask::FlushClients(*mac);
        }
        _ => vec![View],
    })
}

/// Writes to standard output. Who closed it has seen enough.
pub(crate) fn print(text: &str) {
    let mut out = anstream::stdout();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn complain(text: &str) {
    // Nobody is left to tell.
    let _ = writeln!(anstream::stderr(), "v2xctl: {text}");
}
