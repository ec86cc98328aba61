//! [`Screen`]: the terminal while it is ours. Whatever ends the program, it is left as it was: the
//! end of the program, a key, a signal, a panic.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A terminal in raw mode, on its other screen. Given back when this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    is_told_to_end: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal. A panic gives it back first, and then says what it has to say.
    pub(super) fn open() -> io::Result<Self> {
        let is_told_to_end = Arc::new(AtomicBool::new(false));
        // In raw mode Ctrl-C is a key; these come from elsewhere.
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_told_to_end))?;
        }
        let opened = ratatui::try_init();
        if opened.is_err() {
            // It may have got half way.
            let _ = ratatui::try_restore();
        }
        Ok(Self { terminal: opened?, is_told_to_end })
    }

    /// Shows a picture.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }

    /// What somebody typed, if anything within this time. An error: the program is told to end.
    pub(super) fn event(&self, patience: Duration) -> io::Result<Option<Event>> {
        let polled = event::poll(patience);
        if self.is_told_to_end.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match polled {
            Ok(true) => event::read().map(Some),
            Ok(false) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A panic has given it back already, and said on it what it had to say.
        if std::thread::panicking() {
            return;
        }
        // A terminal that has gone needs nothing back.
        let _ = ratatui::try_restore();
    }
}

#[cfg(test)]
#[path = "../../tests/pty/mod.rs"]
mod pty;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use std::process::Command;

    use super::pty::{ENTER, LEAVE, Session};
    use super::*;

    /// Set for the process that is to panic.
    const CHILD: &str = "V2XCTL_TEST_PANICS";

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_is_told() {
        if std::env::var_os(CHILD).is_some() {
            let mut screen = Screen::open().unwrap();
            screen.draw(|frame| frame.render_widget("something", frame.area())).unwrap();
            panic!("as planned");
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "top::screen::tests::a_panic_leaves_the_terminal_as_it_was_and_is_told";
        let mut session =
            Session::start(command.args(["--exact", name, "--nocapture"]).env(CHILD, "1"));
        session.wait_for(ENTER);
        assert!(!session.end().success());
        session.wait_for("as planned");
        session.is_as_before();
        // It is told on the screen that stays.
        let said = session.said();
        assert!(said.rfind(LEAVE) < said.rfind("as planned"), "{said:?}");
    }
}
