//! What every command prints, byte for byte, as a table and as JSON.
//!
//! `golden/obu.json` and `golden/rsu.json` are what two daemons say, made by hand with something of
//! everything. `golden/obu/` and `golden/rsu/` hold what `v2xctl` makes of it: `NAME.txt` is the
//! table, `NAME.json` the JSON, each object broken into lines so that a change can be read. A field
//! that comes, goes or gets another name is seen there.
//!
//! `V2X_WRITE_GOLDEN=1 cargo test -p v2xctl --test golden` writes them anew. Look at the difference
//! before it is kept: programs of users read the JSON.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod daemon;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use control_socket::message::{Ask, Topics};
use daemon::{Daemon, v2xctl};
use node_lib::messages::control::echo::Verdict;
use serde_json::Value;

/// What is typed at a vehicle. The file is named after it.
const AT_OBU: [&str; 29] = [
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
    "handovers --histogram",
    "why",
    "why 7",
    "why 3",
    "stats",
    "stats --zero",
    "stats drop_",
    "events",
    "events --past",
    "config",
    "config show",
    "config get hello_history",
    "config set log debug",
    "config check",
    "config reload",
    "record",
    "record start",
    "record mark bump",
    "log-level",
];

/// What is typed at a road-side unit, where it says something else.
const AT_RSU: [&str; 16] = [
    "status",
    "neighbors",
    "upstreams",
    "routes",
    "rsus",
    "clients",
    "clients pin 02:00:00:00:00:73 02:00:00:00:00:02",
    "clients unpin",
    "clients flush",
    "obus",
    "tree",
    "radio",
    "why",
    "events --past",
    "config check",
    "record stop",
];

/// What is asked over the radio: at the vehicle with an answer, at the road-side unit without.
const PROBES: [&str; 2] =
    ["ping -c 2 -i 0.1 02:00:00:00:00:0a", "traceroute -q 2 02:00:00:00:00:0a"];

/// Commands that print nothing of a daemon: a full screen, another program, scripts of clap.
const OTHERS: [&str; 4] = ["top", "trace", "completions", "help"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// All that is typed, and at whom.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let at_obu = AT_OBU.iter().chain(&PROBES).map(|line| ("obu", *line));
    at_obu.chain(AT_RSU.iter().chain(&PROBES).map(|line| ("rsu", *line)))
}

/// What is typed, with a dash for all that would be odd in the name of a file.
fn name_of(line: &str) -> String {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// A daemon that says what stands in the file, to whatever it is asked.
fn daemon_of(role: &'static str, topics: Topics) -> Daemon {
    let answer = move |ask: &Ask| {
        let mut topics = topics.clone();
        let answer = topics.pinged.as_mut().and_then(|pinged| pinged.answer.as_mut());
        if let (Ask::Ping(ask), Some(echoed)) = (ask, answer) {
            let asked = usize::from(ask.hop_limit) + 1;
            if asked < echoed.path.len() {
                echoed.path.truncate(asked);
                echoed.verdict = Verdict::HopLimit;
            }
        }
        // Whoever subscribes hears the end at once.
        let is_end = matches!(ask, Ask::Subscribe(_));
        (Ok(topics), if is_end { vec![String::new()] } else { Vec::new() })
    };
    Daemon::named(role, answer)
}

/// Each object in lines, after a look that it is one line of compact JSON.
fn in_lines(out: &str) -> String {
    let pretty = out.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value.to_string(), line, "compact, fields in the order of their names");
        format!("{value:#}\n")
    });
    pretty.collect()
}

/// Compares with the file, or writes it. Says what differs.
fn differs(file: &Path, text: &str) -> Option<String> {
    if std::env::var_os("V2X_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    (kept != text).then(|| format!("{} has\n{kept}\nnow it is\n{text}\n", file.display()))
}

#[test]
fn every_command_prints_what_its_file_has() {
    let mut wrong = String::new();
    let mut files = BTreeSet::new();
    for role in ["obu", "rsu"] {
        let file = directory().join(format!("{role}.json"));
        let topics: Topics =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        // A field that was added since would be left out here, and so in what is printed.
        let all = serde_json::to_string_pretty(&topics).unwrap() + "\n";
        wrong.extend(differs(&file, &all));
        let daemon = daemon_of(role, topics);
        for (_, line) in lines().filter(|(of, _)| *of == role) {
            // A names file of this machine is not to matter.
            let words: Vec<_> =
                ["--names", "/dev/null"].into_iter().chain(line.split(' ')).collect();
            let (_, table, _) = daemon.run(&words);
            let (_, json, _) = daemon.run(&[&["-o", "json"], &words[..]].concat());
            for (text, ending) in [(table, "txt"), (in_lines(&json), "json")] {
                let file = directory().join(role).join(format!("{}.{ending}", name_of(line)));
                assert!(!text.is_empty(), "{role}: {line}: nothing");
                wrong.extend(differs(&file, &text));
                assert!(files.insert(file.clone()), "two have the name {}", file.display());
            }
        }
        for entry in std::fs::read_dir(directory().join(role)).unwrap() {
            let path = entry.unwrap().path();
            assert!(files.contains(&path), "{}: nothing prints that", path.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}V2X_WRITE_GOLDEN=1 writes them anew");
}

/// Commands that `--help` lists below these words.
fn commands(words: &[&str]) -> Vec<String> {
    let (_, help, _) = v2xctl(&[words, &["--help"]].concat());
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let listed = list.lines().take_while(|line| !line.is_empty());
    // The description of a command may go on below it.
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    listed.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_command_has_a_file() {
    let mut seen = 0;
    for command in commands(&[]).iter().filter(|command| !OTHERS.contains(&&***command)) {
        let below = commands(&[command]);
        let below = below.iter().filter(|below| *below != "help");
        let all =
            std::iter::once(command.clone()).chain(below.map(|below| format!("{command} {below}")));
        for typed in all {
            let is_it = |line: &str| line == typed || line.starts_with(&format!("{typed} "));
            assert!(lines().any(|(_, line)| is_it(line)), "{typed} has no golden file");
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen} commands in --help");
}
