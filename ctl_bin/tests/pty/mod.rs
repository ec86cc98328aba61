//! A terminal for a program under test: what it shows, what is typed, and how it leaves it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic, and takes what it needs"
)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;

/// What switches to the other screen, and back.
pub(crate) const ENTER: &str = "\x1b[?1049h";
pub(crate) const LEAVE: &str = "\x1b[?1049l";

pub(crate) struct Session {
    child: Child,
    near: File,
    far: OwnedFd,
    before: Termios,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Session {
    pub(crate) fn start(command: &mut Command) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let before = tcgetattr(&pair.slave).unwrap();
        let end = || pair.slave.try_clone().unwrap();
        let child = command.stdin(end()).stdout(end()).stderr(end());
        let child = child.env("TERM", "xterm-256color").spawn().unwrap();
        let near = File::from(pair.master);
        let said = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, heard) = (near.try_clone().unwrap(), Arc::clone(&said));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                heard.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self { child, near, far: pair.slave, before, said }
    }

    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    pub(crate) fn wait_for(&self, what: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.said().contains(what) {
            assert!(Instant::now() < until, "{what:?} never came: {:?}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn type_in(&mut self, keys: &[u8]) {
        self.near.write_all(keys).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    pub(crate) fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end: {:?}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The terminal is as it was: its settings, and the screen that is shown.
    pub(crate) fn is_as_before(&self) {
        assert_eq!(tcgetattr(&self.far).unwrap(), self.before, "{:?}", self.said());
        self.wait_for(LEAVE);
        let said = self.said();
        assert!(said.rfind(ENTER) < said.rfind(LEAVE), "{said:?}");
    }

    pub(crate) fn is_raw(&self) -> bool {
        tcgetattr(&self.far).unwrap() != self.before
    }
}
