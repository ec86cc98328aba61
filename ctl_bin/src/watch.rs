//! `-w`: what commands show, again and again, over the ends of connections and daemons.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use control_socket::client::ClientError;
use control_socket::feed::{Feed, News};
use control_socket::message::{Topic, Topics};
use control_socket::record::{CHANGES_KEPT, EVENTS_KEPT};

/// Whoever listens looks so often whether it is still to.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is known of a daemon by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// What it is called.
    pub(crate) name: String,
    /// The last of everything.
    pub(crate) topics: Topics,
    /// Something came since this was last taken.
    pub(crate) is_new: bool,
    /// Why there is no connection.
    pub(crate) away: Option<String>,
    /// Events that were missed, all told.
    pub(crate) missed: u64,
}

impl Seen {
    /// Takes in what a feed says.
    pub(crate) fn take(&mut self, news: News) {
        self.is_new = true;
        match news {
            News::Connected(hello) => (self.name, self.away) = (hello.name, None),
            News::Topics(topics) => self.merge(*topics),
            News::Gap(missed) => self.missed += missed.unwrap_or(1),
            News::Restarted => {
                self.topics = Topics::default();
            }
            News::Away(why, wait) => {
                self.away = Some(format!("{why}; next attempt in {} ms", wait.as_millis()));
            }
        }
    }

    fn merge(&mut self, new: Topics) {
        let old = std::mem::take(&mut self.topics);
        let events = appended(old.events, new.events, EVENTS_KEPT);
        let changes = match (old.changes, new.changes) {
            (Some(mut old), Some(new)) => {
                // One that is known comes again when its cost is.
                old.retain(|change| !new.iter().any(|newer| newer.number == change.number));
                let mut all = appended(Some(old), Some(new), CHANGES_KEPT);
                all.iter_mut().for_each(|all| all.sort_by_key(|change| change.number));
                all
            }
            (old, new) => new.or(old),
        };
        self.topics = Topics {
            view: new.view.or(old.view),
            position: new.position.or(old.position),
            problems: new.problems.or(old.problems),
            config: new.config.or(old.config),
            log: new.log.or(old.log),
            recording: new.recording.or(old.recording),
            events,
            changes,
            at_unix_ms: new.at_unix_ms,
            node: new.node,
            role: new.role,
            ..Topics::default()
        };
    }
}

fn appended<T>(old: Option<Vec<T>>, new: Option<Vec<T>>, most: usize) -> Option<Vec<T>> {
    let Some(new) = new else { return old };
    let mut all: VecDeque<_> = old.unwrap_or_default().into();
    all.extend(new);
    let surplus = all.len().saturating_sub(most);
    Some(all.into_iter().skip(surplus).collect())
}

/// Listens to a daemon on a thread of its own.
#[derive(Debug)]
pub(crate) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<ClientError>>,
}

impl Watcher {
    /// To the daemon behind this socket.
    pub(crate) fn start(socket: &Path, topics: &[Topic]) -> Self {
        let name = socket.display().to_string();
        let seen = Arc::new(Mutex::new(Seen { name, ..Seen::default() }));
        let mut feed = Feed::new(PathBuf::from(socket));
        feed.subscribe(topics);
        // Whoever watches has gone: nobody needs to listen any more.
        let watched = Arc::downgrade(&seen);
        let thread = std::thread::spawn(move || {
            loop {
                let news = match feed.next(PATIENCE) {
                    Ok(news) => news,
                    Err(error) => return error,
                };
                let Some(seen) = watched.upgrade() else {
                    return ClientError::Missing(PathBuf::new());
                };
                if let Some(news) = news {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).take(news);
                }
            }
        });
        Self { seen, thread: Some(thread) }
    }

    /// What is known by now.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it listens no longer, if so; told once.
    pub(crate) fn failed(&mut self) -> Option<ClientError> {
        self.thread.take_if(|thread| thread.is_finished()).and_then(|thread| thread.join().ok())
    }

    /// It listens, or tries to.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use control_socket::record::Change;
    use node_lib::control::event::Cause;

    use super::*;

    fn change(number: u64, silence_ms: u64) -> Change {
        let (cause, routes) = (Cause::Dead, Vec::new());
        Change {
            number,
            at_unix_ms: 0,
            from: None,
            to: None,
            cause,
            silence_ms,
            cost: None,
            routes,
        }
    }

    fn changes(list: &[(u64, u64)]) -> News {
        let changes = list.iter().map(|(number, ms)| change(*number, *ms)).collect();
        News::Topics(Box::new(Topics { changes: Some(changes), ..Topics::default() }))
    }

    #[test]
    fn what_comes_replaces_what_was_and_is_kept_where_nothing_comes() {
        let mut seen = Seen::default();
        let log = Topics { log: Some("info".to_owned()), ..Topics::default() };
        seen.take(News::Topics(Box::new(log)));
        seen.take(changes(&[(1, 5), (2, 5)]));
        seen.take(changes(&[(1, 9), (3, 5)]));
        let kept = seen.topics.changes.as_ref().unwrap();
        let kept: Vec<_> = kept.iter().map(|change| (change.number, change.silence_ms)).collect();
        assert_eq!(kept, [(1, 9), (2, 5), (3, 5)]);
        assert_eq!(seen.topics.log.as_deref(), Some("info"));
        seen.take(News::Gap(Some(4)));
        seen.take(News::Away("gone".to_owned(), Duration::from_millis(100)));
        assert_eq!((seen.missed, seen.away.is_some()), (4, true));
        seen.take(News::Restarted);
        assert_eq!(seen.topics, Topics::default());
        for n in 0..2000 {
            seen.take(changes(&[(n, 0)]));
        }
        assert_eq!(seen.topics.changes.unwrap().len(), CHANGES_KEPT);
    }
}
