//! `top`: a daemon on a full screen, for as long as one looks.
//!
//! | file | what it is about |
//! |---|---|
//! | `screen` | the terminal, and that it is left as it was |
//! | `model` | which daemon is shown, and how it has been |
//! | `rates` | counters to rates |
//! | `draw` | what stands where |

mod draw;
mod model;
mod rates;
mod screen;

use std::path::PathBuf;
use std::time::Duration;

use control_socket::message::Topic;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::names::Names;
use crate::say::{Outcome, complain};
use crate::watch::Watcher;
use model::Model;
use screen::Screen;

/// Looks for keys, signals and news so often.
const EVERY: Duration = Duration::from_millis(200);

/// Shows these daemons until somebody has seen enough.
pub(crate) fn run(names: &Names, sockets: &[PathBuf]) -> Outcome {
    let topics = [Topic::View, Topic::Problems, Topic::Changes];
    let mut watchers: Vec<_> =
        sockets.iter().map(|socket| Watcher::start(socket, &topics)).collect();
    let mut screen = match Screen::open() {
        Ok(screen) => screen,
        Err(error) => {
            complain(&format!("top needs a terminal: {error}"));
            return Outcome::Usage;
        }
    };
    let mut model = Model { place: (0, watchers.len()), ..Model::default() };
    let mut failed = None;
    loop {
        if let Some(error) = watchers.iter_mut().find_map(Watcher::failed) {
            failed = Some(error);
        }
        if !watchers.iter().any(Watcher::is_alive) {
            break;
        }
        if let Some(watcher) = watchers.get(model.place.0) {
            model.seen = watcher.seen().clone();
        }
        if let Some(view) = &model.seen.topics.view {
            model.rates.note(view);
        }
        if let Err(error) = screen.draw(|frame| draw::draw(frame, &model, names)) {
            drop(screen);
            complain(&format!("cannot write to the terminal: {error}"));
            return Outcome::Usage;
        }
        match screen.event(EVERY) {
            Ok(Some(event)) => match meaning(&event) {
                Some(Key::Quit) => return Outcome::Done,
                Some(Key::Another(step)) => model.another(step),
                None => {}
            },
            Ok(None) => {}
            // Told to end, or the terminal has gone.
            Err(_) => return Outcome::Done,
        }
    }
    drop(screen);
    if let Some(error) = failed {
        complain(&error.to_string());
    }
    Outcome::Unreachable
}

enum Key {
    Quit,
    /// So many daemons further.
    Another(usize),
}

fn meaning(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return None;
    };
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Tab | KeyCode::Right | KeyCode::Down => Some(Key::Another(1)),
        _ => None,
    }
}
