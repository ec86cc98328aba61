//! A daemon for `v2xctl` to ask, which answers what a test tells it to.

#![allow(dead_code, clippy::unwrap_used, reason = "a test may panic, and takes what it needs")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use assert_cmd::Command;
use control_socket::message::{
    Access, AnswerLine, Ask, Hello, Refusal, RefusalKind, RequestLine, Topics, VERSION,
};
use control_socket::path::read_write;

/// Exit code, standard output, standard error.
pub(crate) fn v2xctl(line: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_v2xctl"));
    let output = command.env_clear().args(line).timeout(Duration::from_secs(20)).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A daemon that answers so, on both of its sockets; and what it is asked on which of them. What
/// stands beside an answer is said after it, a piece at a time, and then the connection ends.
pub(crate) struct Daemon {
    _directory: tempfile::TempDir,
    pub(crate) socket: PathBuf,
    pub(crate) asked: Receiver<(Access, Ask)>,
}

pub(crate) type Said = (Result<Topics, RefusalKind>, Vec<String>);

impl Daemon {
    pub(crate) fn new(answer: impl Fn(&Ask) -> Said + Send + Sync + 'static) -> Self {
        Self::named("obu0", answer)
    }

    pub(crate) fn named(
        name: &'static str,
        answer: impl Fn(&Ask) -> Said + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(format!("{name}.sock"));
        let (answer, (asked, asks)) = (Arc::new(answer), channel());
        for (path, access) in
            [(socket.clone(), Access::ReadOnly), (read_write(&socket), Access::ReadWrite)]
        {
            let (listener, answer) = (UnixListener::bind(path).unwrap(), Arc::clone(&answer));
            let asked = asked.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = BufReader::new(stream.unwrap());
                    let _ = writeln!(stream.get_mut(), "{}", hello(name, access));
                    let mut line = String::new();
                    while stream.read_line(&mut line).is_ok_and(|len| len > 0) {
                        let RequestLine { id, ask } = serde_json::from_str(&line).unwrap();
                        line.clear();
                        let (said, more) = answer(&ask);
                        let _ = asked.send((access, ask));
                        let error = said.as_ref().err().copied().map(refusal);
                        let answer = AnswerLine { id, ok: said.ok().map(Box::new), error };
                        let answer = serde_json::to_string(&answer).unwrap();
                        let _ = writeln!(stream.get_mut(), "{answer}");
                        for line in &more {
                            let _ = writeln!(stream.get_mut(), "{line}");
                            std::thread::sleep(Duration::from_millis(500));
                        }
                        if !more.is_empty() {
                            break;
                        }
                    }
                }
            });
        }
        Self { _directory: directory, socket, asked: asks }
    }

    /// One that answers everything with this.
    pub(crate) fn of(topics: Topics) -> Self {
        Self::new(move |_| (Ok(topics.clone()), Vec::new()))
    }

    pub(crate) fn run(&self, line: &[&str]) -> (i32, String, String) {
        v2xctl(&[&["-s", self.socket.to_str().unwrap()], line].concat())
    }
}

fn hello(name: &str, access: Access) -> String {
    let (version, name) = ("0.1.0".to_owned(), name.to_owned());
    let hello = Hello { v2x_control: VERSION, version, name, pid: 7, started_unix_ms: 1, access };
    serde_json::to_string(&hello).unwrap()
}

pub(crate) fn refusal(kind: RefusalKind) -> Refusal {
    Refusal { kind, text: "it is full moon".to_owned() }
}
