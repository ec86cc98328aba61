//! [`Reload`]: SIGHUP has the configuration file read again. What can change does, of the rest it
//! is said that it waits for the next start.

use std::collections::BTreeMap;

use clap::Parser;
use tracing::{info, warn};

use crate::Role;
use crate::args;
use crate::logging::LogLevel;

/// The one setting that a running daemon takes.
const LIVE: &str = "log";

/// What the settings are, by key: the words of each.
type Settings = BTreeMap<String, Option<String>>;

/// Reads the command line, the environment and the file again.
pub struct Reload {
    read: Box<dyn Fn() -> Result<Settings, String> + Send>,
    /// What the daemon runs with.
    current: Settings,
    level: LogLevel,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The file cannot be understood: everything stays.
    Refused(String),
    /// These wait for the next start, and whether what is logged has changed.
    Read { waiting: Vec<String>, log: Option<String> },
}

impl Reload {
    /// For a program that was started with a file; `None` without one.
    pub fn of<A: Parser>(role: Role, level: LogLevel) -> Option<Self> {
        let read = move || {
            let resolved = args::resolve::<A>(role, std::env::args_os());
            resolved.map(|resolved| resolved.settings()).map_err(|error| error.to_string())
        };
        let has_file = args::resolve::<A>(role, std::env::args_os()).ok()?.has_file();
        has_file.then(|| Self::new(read, level)).flatten()
    }

    fn new(
        read: impl Fn() -> Result<Settings, String> + Send + 'static,
        level: LogLevel,
    ) -> Option<Self> {
        let current = read().ok()?;
        Some(Self { read: Box::new(read), current, level })
    }

    /// Does it, and says in the log what became of it.
    pub fn run(&mut self) {
        match self.outcome() {
            Outcome::Refused(error) => {
                let error = error.trim().replace('\n', "; ");
                warn!(%error, "the configuration is not taken, all settings stay as they are");
            }
            Outcome::Read { waiting, log } => {
                if let Some(log) = log {
                    info!(%log, "what is logged has changed");
                }
                if waiting.is_empty() {
                    info!("the configuration was read again");
                } else {
                    let settings = waiting.join(", ");
                    warn!(%settings, "the configuration was read again; these wait for the next start");
                }
            }
        }
    }

    fn outcome(&mut self) -> Outcome {
        let new = match (self.read)() {
            Ok(new) => new,
            Err(error) => return Outcome::Refused(error),
        };
        let has_changed = |key: &&String| self.current.get(*key) != new.get(*key);
        let changed: Vec<_> = new.keys().filter(has_changed).cloned().collect();
        let mut log = None;
        if changed.iter().any(|key| key == LIVE)
            && let Some(Some(filter)) = new.get(LIVE)
        {
            if let Err(error) = self.level.set(filter) {
                return Outcome::Refused(error);
            }
            self.current.insert(LIVE.to_owned(), Some(filter.clone()));
            log = Some(filter.clone());
        }
        let waiting = changed.into_iter().filter(|key| key != LIVE).collect();
        Outcome::Read { waiting, log }
    }
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn what_is_logged_changes_at_once_and_the_rest_waits() {
        let settings = |mtu: &str, log: &str| {
            let pair = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
            Settings::from([pair("mtu", mtu), pair("log", log)])
        };
        let file = Arc::new(Mutex::new(Ok(settings("1500", "info"))));
        let (reader, set) = (Arc::clone(&file), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&set);
        let level = LogLevel::new(
            "info",
            Arc::new(move |filter| {
                log.lock().unwrap().push(filter.to_string());
                Ok(())
            }),
        );
        let mut reload = Reload::new(move || reader.lock().unwrap().clone(), level).unwrap();
        let read = |waiting: &[&str], log: Option<&str>| Outcome::Read {
            waiting: waiting.iter().map(|key| (*key).to_owned()).collect(),
            log: log.map(str::to_owned),
        };
        assert_eq!(reload.outcome(), read(&[], None));
        *file.lock().unwrap() = Ok(settings("1400", "debug"));
        assert_eq!(reload.outcome(), read(&["mtu"], Some("debug")));
        // What waits goes on waiting, and is said again; what was taken is not.
        assert_eq!(reload.outcome(), read(&["mtu"], None));
        *file.lock().unwrap() = Err("car.toml:1: no".to_owned());
        assert_eq!(reload.outcome(), Outcome::Refused("car.toml:1: no".to_owned()));
        *file.lock().unwrap() = Ok(settings("1500", "debug"));
        assert_eq!(reload.outcome(), read(&[], None));
        assert_eq!(*set.lock().unwrap(), ["debug"]);
    }
}
