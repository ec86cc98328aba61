//! [`Reload`]: SIGHUP has the configuration file read again. What can change does, of the rest it
//! is said that it waits for the next start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser;
use control_socket::message::{Origin, Reloaded, Setting};
use tracing::{info, warn};

use crate::Role;
use crate::args;
use crate::logging::LogLevel;

/// The one setting that a running daemon takes.
const LIVE: &str = "log";

/// What the settings are, by key: the words of each.
type Settings = BTreeMap<String, Option<String>>;

/// Reads the command line, the environment and the file again. SIGHUP and the control socket share
/// it.
#[derive(Clone)]
pub struct Reload(Arc<Mutex<Inner>>);

struct Inner {
    read: Box<dyn Fn() -> Result<Settings, String> + Send>,
    /// What the daemon runs with.
    current: Settings,
    level: LogLevel,
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
        Some(Self(Arc::new(Mutex::new(Inner { read: Box::new(read), current, level }))))
    }

    /// Does it, and says in the log what became of it. The error says everything that is wrong with
    /// the file; then all settings stay as they are.
    pub fn run(&self) -> Result<Reloaded, String> {
        let outcome = self.outcome(true);
        match &outcome {
            Err(error) => {
                let error = error.trim().replace('\n', "; ");
                warn!(%error, "the configuration is not taken, all settings stay as they are");
            }
            Ok(Reloaded { taken, waiting }) => {
                if taken.iter().any(|key| key == LIVE) {
                    info!(log = %self.lock().level.current(), "what is logged has changed");
                }
                if waiting.is_empty() {
                    info!("the configuration was read again");
                } else {
                    let settings = waiting.join(", ");
                    warn!(%settings, "the configuration was read again; these wait for the next \
                                      start");
                }
            }
        }
        outcome
    }

    /// What [`Self::run`] would do. Changes nothing.
    pub fn check(&self) -> Result<Reloaded, String> {
        self.outcome(false)
    }

    fn outcome(&self, is_taken: bool) -> Result<Reloaded, String> {
        let mut inner = self.lock();
        let new = (inner.read)()?;
        let has_changed = |key: &&String| inner.current.get(*key) != new.get(*key);
        let changed = new.keys().filter(has_changed).cloned();
        let (mut taken, waiting): (Vec<_>, _) = changed.partition(|key| key == LIVE);
        match new.get(LIVE) {
            Some(Some(filter)) if !taken.is_empty() && is_taken => {
                inner.level.set(filter)?;
                inner.current.insert(LIVE.to_owned(), Some(filter.clone()));
            }
            Some(Some(_)) => {}
            _ => taken.clear(),
        }
        Ok(Reloaded { taken, waiting })
    }

    /// What is in it is whole between any two operations on it.
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A setting gets this value until the next start. The error says which can.
pub(crate) fn set(name: &str, value: &str, level: &LogLevel) -> Result<(), String> {
    if name == LIVE {
        return level.set(value);
    }
    Err(format!(
        "{name} cannot change while the daemon runs; expected {LIVE}. Put it into the \
         configuration file and start the daemon again"
    ))
}

/// The settings of the start, with what has changed since.
pub(crate) fn as_they_are(settings: &[Setting], level: &LogLevel) -> Vec<Setting> {
    let mut settings = settings.to_vec();
    let current = level.current();
    for setting in settings.iter_mut().filter(|setting| setting.name == LIVE) {
        if setting.values != [current.as_str()] {
            (setting.values, setting.from) = (vec![current.clone()], Origin::Socket);
        }
    }
    settings
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("current", &self.lock().current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let reload = Reload::new(move || reader.lock().unwrap().clone(), level).unwrap();
        let read = |waiting: &[&str], taken: &[&str]| {
            let [waiting, taken] = [waiting, taken].map(|k| k.iter().map(|&k| k.into()).collect());
            Ok(Reloaded { taken, waiting })
        };
        assert_eq!(reload.run(), read(&[], &[]));
        *file.lock().unwrap() = Ok(settings("1400", "debug"));
        // Looking changes nothing.
        assert_eq!(reload.check(), read(&["mtu"], &["log"]));
        assert_eq!(*set.lock().unwrap(), [""; 0]);
        assert_eq!(reload.run(), read(&["mtu"], &["log"]));
        // What waits goes on waiting, and is said again; what was taken is not.
        assert_eq!(reload.clone().run(), read(&["mtu"], &[]));
        *file.lock().unwrap() = Err("car.toml:1: no".to_owned());
        assert_eq!(reload.check(), Err("car.toml:1: no".to_owned()));
        assert_eq!(reload.run(), Err("car.toml:1: no".to_owned()));
        *file.lock().unwrap() = Ok(settings("1500", "debug"));
        assert_eq!(reload.run(), read(&[], &[]));
        assert_eq!(*set.lock().unwrap(), ["debug"]);
    }
}
