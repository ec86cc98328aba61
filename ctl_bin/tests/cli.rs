//! The command line of `v2xctl`, against a daemon made for the purpose.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod daemon;
mod pty;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use control_socket::health::problems;
use control_socket::message::{Access, AnswerLine, Ask, Hello, RequestLine, Topics, VERSION};
use control_socket::record::Moment;
use daemon::v2xctl;
use node_lib::NodeId;
use node_lib::control::snapshot::{NodeRole, Snapshot, View};
use pty::Session;
use serde_json::Value;

const COMMANDS: [&str; 12] = [
    "status",
    "neighbors",
    "upstreams",
    "routes",
    "rsus",
    "clients",
    "obus",
    "tree",
    "radio",
    "handovers",
    "why",
    "stats",
];

/// A daemon that says `first`, and answers every request with its view.
fn daemon_saying(directory: &Path, first: String, view: View) -> PathBuf {
    let path = directory.join("obu0.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let _ = writeln!(stream.get_mut(), "{first}");
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|len| len > 0) {
                let request: RequestLine = serde_json::from_str(&line).unwrap();
                line.clear();
                let topics = Topics {
                    node: view.node.id,
                    role: view.node.role,
                    problems: Some(problems(&view, [].iter(), Moment::default())),
                    view: Some(view.clone()),
                    changes: Some(Vec::new()),
                    log: matches!(request.ask, Ask::Get(_)).then(|| "info".to_owned()),
                    ..Topics::default()
                };
                let answer = AnswerLine { id: request.id, ok: Some(Box::new(topics)), error: None };
                let _ = writeln!(stream.get_mut(), "{}", serde_json::to_string(&answer).unwrap());
            }
        }
    });
    path
}

fn hello(version: u32) -> String {
    let hello = Hello {
        v2x_control: version,
        version: "0.1.0".to_owned(),
        name: "obu0".to_owned(),
        pid: 7,
        started_unix_ms: 1,
        access: Access::ReadOnly,
    };
    serde_json::to_string(&hello).unwrap()
}

fn view(role: NodeRole) -> View {
    let mut view = View::default();
    view.node = Snapshot::of(NodeId([2, 0, 0, 0, 0, 9]), role);
    (view.radio.is_up, view.tap.is_up) = (true, true);
    view
}

#[test]
fn a_daemon_that_is_not_there_is_code_3_and_each_cause_has_its_cure() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("no.sock");
    let (code, _, said) = v2xctl(&["-s", missing.to_str().unwrap()]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("no such socket") && said.contains("--control"), "{said}");
    let dead = directory.path().join("dead.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let (code, _, said) = v2xctl(&["status", "-s", dead.to_str().unwrap()]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("start it again"), "{said}");
    let (code, _, said) = v2xctl(&["-s", "no-such-tap"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("/run/v2x/no-such-tap.sock"), "{said}");
}

#[test]
fn another_version_and_somebody_elses_socket_are_told_apart() {
    for (first, expected) in [
        (hello(VERSION + 1), "version 2"),
        ("SSH-2.0-OpenSSH".to_owned(), "no control socket"),
        ("{\"hello\":1}".to_owned(), "no control socket"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = daemon_saying(directory.path(), first, view(NodeRole::Rsu));
        let (code, _, said) = v2xctl(&["-s", path.to_str().unwrap()]);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn status_is_code_4_when_nothing_gets_through_and_says_why() {
    for (role, expected) in [(NodeRole::Rsu, 0), (NodeRole::Obu, 4)] {
        let directory = tempfile::tempdir().unwrap();
        let path = daemon_saying(directory.path(), hello(VERSION), view(role));
        let path = path.to_str().unwrap();
        for line in [&["-s", path][..], &["s", "-s", path]] {
            let (code, out, said) = v2xctl(line);
            assert_eq!(code, expected, "{out}{said}");
            assert!(out.contains("02:00:00:00:00:09"), "{out}");
            let says_why = out.contains("no upstream") && out.contains("cure: ");
            assert_eq!(says_why, expected == 4, "{out}");
            assert!(!out.contains('\x1b'), "colours only on a terminal: {out:?}");
            assert!(!out.contains("MAC -"), "what is not known is not shown: {out}");
        }
        let (code, out, _) = v2xctl(&["-o", "json", "-s", path]);
        let read: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &read["is_healthy"]), (expected, &(expected == 0).into()));
        // Only status tells by its code.
        assert_eq!(v2xctl(&["neighbors", "-s", path]).0, 0);
    }
}

/// What a terminal gets to see, until the last line of this text is there.
fn on_a_terminal(path: &str, variable: Option<(&str, &str)>, text: &str) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_v2xctl"));
    command.env_clear().envs(variable).args(["-s", path]);
    let mut session = Session::start(&mut command);
    session.end();
    session.wait_for(text.lines().last().unwrap());
    session.said().replace("\r\n", "\n")
}

#[test]
fn a_terminal_has_colours_unless_they_are_not_wanted() {
    for (role, colour, word) in
        [(NodeRole::Rsu, "\x1b[32m", "well"), (NodeRole::Obu, "\x1b[31m", "ill")]
    {
        let directory = tempfile::tempdir().unwrap();
        let path = daemon_saying(directory.path(), hello(VERSION), view(role));
        let path = path.to_str().unwrap();
        let (_, plain, _) = v2xctl(&["-s", path]);
        let coloured = on_a_terminal(path, None, &plain);
        assert!(coloured.contains(&format!("{colour}{word}\x1b[0m")), "{coloured:?}");
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
        assert_eq!(on_a_terminal(path, Some(("NO_COLOR", "1")), &plain), plain);
    }
}

#[test]
fn every_command_prints_a_table_and_one_line_of_json_with_the_same_head() {
    let directory = tempfile::tempdir().unwrap();
    let path = daemon_saying(directory.path(), hello(VERSION), view(NodeRole::Rsu));
    let path = path.to_str().unwrap();
    for command in COMMANDS {
        let (code, out, said) = v2xctl(&[command, "-s", path]);
        assert_eq!((code, &*said), (0, ""), "{command}");
        assert!(!out.trim().is_empty(), "{command}");
        let (code, out, said) = v2xctl(&["-o", "json", command, "-s", path]);
        assert_eq!((code, out.lines().count()), (0, 1), "{command}: {said}");
        let read: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&read["schema"], &read["daemon"]), (&1.into(), &"obu0".into()), "{command}");
        assert_eq!(read["node"], "02:00:00:00:00:09", "{command}");
    }
    let (_, out, _) = v2xctl(&["log-level", "-s", path]);
    assert_eq!(out, "info\n");
}

#[test]
fn several_daemons_are_asked_and_the_worst_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = daemon_saying(directory.path(), hello(VERSION), view(NodeRole::Rsu));
    let missing = directory.path().join("no.sock");
    let (code, out, said) =
        v2xctl(&["-s", path.to_str().unwrap(), "-s", missing.to_str().unwrap()]);
    assert_eq!(code, 3, "{said}");
    assert!(out.starts_with("obu0:\n"), "{out}");
}

#[test]
fn names_stand_for_ids() {
    let directory = tempfile::tempdir().unwrap();
    let path = daemon_saying(directory.path(), hello(VERSION), view(NodeRole::Rsu));
    let names = directory.path().join("names");
    std::fs::write(&names, "02:00:00:00:00:09 rsu-north\n").unwrap();
    let line = ["--names", names.to_str().unwrap(), "-s", path.to_str().unwrap()];
    let (_, out, _) = v2xctl(&line);
    assert!(out.contains("RSU rsu-north"), "{out}");
    std::fs::write(&names, "rsu-north\n").unwrap();
    let (code, _, said) = v2xctl(&line);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("line 1"), "{said}");
}

#[test]
fn help_and_completions_know_every_command_and_bad_words_are_code_2() {
    let (code, help, _) = v2xctl(&["--help"]);
    assert_eq!(code, 0);
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = v2xctl(&["completions", shell]);
        assert_eq!(code, 0);
        for command in COMMANDS.iter().chain(&["events", "config", "log-level"]) {
            assert!(help.contains(command), "{command}");
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    for code in 0..=4 {
        assert!(help.contains(&format!("\n  {code}  ")), "{help}");
    }
    let bad: [&[&str]; 5] =
        [&["nonsense"], &["-o", "xml"], &["-w=0"], &["why", "x"], &["clients", "flush", "x"]];
    for line in bad {
        let (code, _, said) = v2xctl(line);
        assert_eq!(code, 2, "{line:?}: {said}");
    }
}

#[test]
fn who_reads_no_further_is_no_panic() {
    for line in [&["completions", "bash"][..], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_v2xctl"));
        let output = command.env_clear().args(line).stdout(writer).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.is_empty(), "{line:?}: {}: {said}", output.status);
    }
}

/// Copies a program in a process of its own. Were it written here, a child that another test starts
/// meanwhile could hold it open for a moment, and nothing that is open for writing can be run.
fn copy(from: &Path, to: &Path) {
    Command::new("cp").arg("-p").args([from, to]).assert().success();
}

/// `v2xctl trace` in a directory of its own, with this beside it.
fn trace(beside: Option<&str>, line: &[&str]) -> (i32, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("v2xctl");
    copy(Path::new(env!("CARGO_BIN_EXE_v2xctl")), &program);
    if let Some(script) = beside {
        let written = directory.path().join("script");
        std::fs::write(&written, script).unwrap();
        std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o755)).unwrap();
        copy(&written, &directory.path().join("v2xtrace"));
    }
    let mut command = Command::new(program);
    let output = command.env_clear().arg("trace").args(line).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn trace_is_the_program_beside_it_with_all_arguments_and_its_exit_code() {
    let script = "#!/bin/sh\nfor each; do echo \"$each\"; done; exit 7\n";
    for line in [
        &["--help"][..],
        &["info", "a directory"],
        &["export", "one.v2xr", "-o", "drive.pcapng"],
        &["cut", "-o", "part.v2xr", "--from", "-1", "one.v2xr"],
        &["page", "--watch", "--all", "-s", "x"],
        &[],
    ] {
        let (code, said, wrong) = trace(Some(script), line);
        let expected: String = line.iter().map(|word| format!("{word}\n")).collect();
        assert_eq!((code, said, wrong), (7, expected, String::new()), "{line:?}");
    }
    let (code, said, wrong) = trace(None, &["info", "x"]);
    assert_eq!((code, said), (2, String::new()), "{wrong}");
    assert!(wrong.contains("expected it beside v2xctl or in PATH"), "{wrong}");
}
