//! `v2xctl top` on a terminal: it is left as it was, whatever ends the program.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod pty;

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use pty::{ENTER, Session};

fn top() -> Session {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("obu0.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_v2xctl"));
    let session = Session::start(command.arg("-s").arg(socket).arg("top"));
    session.wait_for(ENTER);
    // It waits for its daemon, and says so.
    // It waits for its daemon, and says so, in one of two ways.
    session.wait_for("daemon");
    assert!(session.is_raw());
    session
}

#[test]
fn keys_end_it_and_leave_the_terminal_as_it_was() {
    for key in [&b"q"[..], b"\x03"] {
        let mut session = top();
        session.type_in(key);
        assert!(session.end().success());
        session.is_as_before();
    }
}

#[test]
fn signals_end_it_and_leave_the_terminal_as_it_was() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut session = top();
        session.signal(signal);
        assert!(session.end().success(), "{signal}");
        session.is_as_before();
    }
}

#[test]
fn without_a_terminal_it_says_so() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_v2xctl"));
    command.args(["-s", "/nowhere/x.sock", "top"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("needs a terminal"), "{said}");
}
