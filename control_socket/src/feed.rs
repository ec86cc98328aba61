//! [`Feed`]: listens to a daemon for as long as anybody wants to, over the ends of connections and
//! of daemons.
//!
//! However many listen, one line subscribes to all they want. It is kept, and sent again as it is
//! after each reconnect. What the numbers of events show to be missing is told as a
//! [gap](News::Gap); what comes twice is told once.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::client::{ClientError, SocketClient};
use crate::message::{Ask, Hello, RefusalKind, Reply, RequestLine, Topic, Topics};
use crate::record::{CHANGES_KEPT, Change, Happened};

/// The first wait after a connection that ended, and the longest.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A connection that lasted for so long was a good one: the next wait is the first again.
const GOOD_AFTER: Duration = Duration::from_secs(1);

/// The id of our only subscription.
const ID: u64 = 1;

/// Who listens for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener(u64);

/// What a listener hears.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// There is a daemon: this one. Its topics follow, as they are now.
    Connected(Box<Hello>),
    /// What is new; after [`News::Connected`] all there is.
    Topics(Box<Topics>),
    /// So many events were missed before the next: the daemon keeps the last ones only, and we were
    /// away or read too slowly. `None`: some, nobody knows how many.
    Gap(Option<u64>),
    /// The daemon is another one, or was started again: numbers begin anew.
    Restarted,
    /// The connection has ended, or there is none; the next attempt comes after this.
    Away(String, Duration),
}

/// How long to wait before the next attempt: twice as long each time, up to a limit, and never the
/// same for all who wait.
#[derive(Clone, Debug)]
pub struct Backoff {
    least: Duration,
    most: Duration,
    next: Duration,
    dice: RandomState,
    rolls: u64,
}

impl Backoff {
    /// From `least` to `most`.
    pub fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, next: least, dice: RandomState::new(), rolls: 0 }
    }

    /// The next wait: between half of what it grew to and all of it.
    pub fn wait(&mut self) -> Duration {
        self.rolls += 1;
        let roll = self.dice.hash_one(self.rolls) % 1024;
        let wait = self.next;
        self.next = (self.next * 2).min(self.most);
        let half = wait / 2;
        half + half * u32::try_from(roll).unwrap_or(0) / 1023
    }

    /// All is well again.
    pub fn reset(&mut self) {
        self.next = self.least;
    }
}

/// All that listeners want, and the line that asks for it.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    by_listener: BTreeMap<Listener, BTreeSet<Topic>>,
    next: u64,
    line: Vec<u8>,
}

impl Wanted {
    /// One more listens, for these topics.
    pub fn add(&mut self, topics: &[Topic]) -> Listener {
        let listener = Listener(self.next);
        self.next += 1;
        self.by_listener.insert(listener, topics.iter().copied().collect());
        self.build();
        listener
    }

    /// One listens no longer.
    pub fn remove(&mut self, listener: Listener) {
        self.by_listener.remove(&listener);
        self.build();
    }

    /// The line that subscribes to everything. Kept: nothing is made for it.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The listener wants some of these topics.
    pub fn is_for(&self, listener: Listener, topics: &Topics) -> bool {
        let wanted = self.by_listener.get(&listener);
        wanted.is_some_and(|wanted| wanted.iter().any(|topic| has(topics, *topic)))
    }

    fn build(&mut self) {
        let all: BTreeSet<_> = self.by_listener.values().flatten().copied().collect();
        let ask = Ask::Subscribe(all.into_iter().collect());
        // Words and numbers: nothing in it cannot be written.
        self.line = serde_json::to_vec(&RequestLine { id: ID, ask }).unwrap_or_default();
        self.line.push(b'\n');
    }
}

/// Listens to the daemon behind a socket.
#[derive(Debug)]
pub struct Feed {
    path: PathBuf,
    wanted: Wanted,
    /// What is wanted has changed since it was said.
    is_changed: bool,
    client: Option<(SocketClient, Instant)>,
    backoff: Backoff,
    retry_at: Option<Instant>,
    /// The daemon heard last.
    run: Option<(u32, u64)>,
    /// The event that comes next.
    next_event: Option<u64>,
    /// Changes told, and whether with what they cost.
    changes: BTreeMap<u64, bool>,
    waiting: std::collections::VecDeque<News>,
    reconnects: u64,
}

impl Feed {
    /// To the daemon behind this socket, be there one yet or not.
    pub fn new(path: PathBuf) -> Self {
        let (least, most) = WAIT;
        Self::with_backoff(path, Backoff::new(least, most))
    }

    /// With waits of one's own.
    pub fn with_backoff(path: PathBuf, backoff: Backoff) -> Self {
        Self {
            path,
            wanted: Wanted::default(),
            is_changed: false,
            client: None,
            backoff,
            retry_at: None,
            run: None,
            next_event: None,
            changes: BTreeMap::new(),
            waiting: std::collections::VecDeque::new(),
            reconnects: 0,
        }
    }

    /// One more listens, for these topics.
    pub fn subscribe(&mut self, topics: &[Topic]) -> Listener {
        self.is_changed = true;
        self.wanted.add(topics)
    }

    /// One listens no longer.
    pub fn unsubscribe(&mut self, listener: Listener) {
        self.is_changed = true;
        self.wanted.remove(listener);
    }

    /// What everybody wants.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Connections there were.
    pub fn connections(&self) -> u64 {
        self.reconnects
    }

    /// Waits for news, no longer than this. `None`: there are none.
    ///
    /// # Errors
    /// Trying again is of no use: the daemon is of another version, is none, or may not be asked.
    pub fn next(&mut self, patience: Duration) -> Result<Option<News>, ClientError> {
        let until = Instant::now() + patience;
        loop {
            if let Some(news) = self.waiting.pop_front() {
                return Ok(Some(news));
            }
            if self.client.is_none() {
                let now = Instant::now();
                let at = self.retry_at.unwrap_or(now);
                if at > until {
                    std::thread::sleep(until.saturating_duration_since(now));
                    return Ok(None);
                }
                std::thread::sleep(at.saturating_duration_since(now));
                self.connect()?;
                continue;
            }
            if self.is_changed
                && let Err(error) = self.say_wanted()
            {
                self.away(error)?;
                continue;
            }
            let Some((client, _)) = &mut self.client else { continue };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            match client.next_reply(left) {
                Ok(None) => return Ok(None),
                Ok(Some(reply)) => self.take(reply)?,
                Err(error) => self.away(error)?,
            }
        }
    }

    fn connect(&mut self) -> Result<(), ClientError> {
        let client = match SocketClient::connect(&self.path) {
            Ok(client) => client,
            Err(error) => return self.away(error),
        };
        self.reconnects += 1;
        let hello = client.hello().clone();
        let run = (hello.pid, hello.started_unix_ms);
        if self.run.replace(run).is_some_and(|before| before != run) {
            (self.next_event, self.changes) = (Some(0), BTreeMap::new());
            self.waiting.push_back(News::Restarted);
        }
        self.client = Some((client, Instant::now()));
        self.waiting.push_back(News::Connected(Box::new(hello)));
        match self.say_wanted() {
            Ok(()) => Ok(()),
            Err(error) => self.away(error),
        }
    }

    /// One line, however many listen.
    fn say_wanted(&mut self) -> Result<(), ClientError> {
        self.is_changed = false;
        let Some((client, _)) = &mut self.client else { return Ok(()) };
        client.send(self.wanted.line())
    }

    /// There is no connection; why decides whether there will be one.
    fn away(&mut self, error: ClientError) -> Result<(), ClientError> {
        let is_transient = match &error {
            ClientError::Missing(_) | ClientError::Dead(_) | ClientError::Io { .. } => true,
            ClientError::Refused { refusal, .. } => {
                matches!(refusal.kind, RefusalKind::TooMany | RefusalKind::Stopped)
            }
            ClientError::Forbidden(_)
            | ClientError::Version { .. }
            | ClientError::Foreign { .. } => false,
        };
        if !is_transient {
            return Err(error);
        }
        if self.client.take().is_some_and(|(_, since)| since.elapsed() >= GOOD_AFTER) {
            self.backoff.reset();
        }
        let wait = self.backoff.wait();
        self.retry_at = Some(Instant::now() + wait);
        self.waiting.push_back(News::Away(error.to_string(), wait));
        Ok(())
    }

    fn take(&mut self, reply: Reply) -> Result<(), ClientError> {
        match reply {
            Reply::Answer(answer) => match (answer.ok, answer.error) {
                (Some(topics), _) => self.sort(*topics, None, true),
                (None, Some(refusal)) => {
                    let path = self.path.clone();
                    return self.away(ClientError::Refused { path, refusal });
                }
                (None, None) => {}
            },
            Reply::Update(update) => self.sort(*update.topics, update.missed, false),
        }
        Ok(())
    }

    /// Leaves out what was told before, and tells what is missing. What stands in an answer is how
    /// things are, also where that is nothing.
    fn sort(&mut self, mut topics: Topics, missed: Option<u64>, is_answer: bool) {
        if let Some(events) = topics.events.take() {
            let mut last = is_answer.then(Vec::new);
            for (gap, events) in self.new_events(events) {
                if let Some(events) = last.replace(events).filter(|before| !before.is_empty()) {
                    let before = Topics { events: Some(events), ..Topics::default() };
                    self.waiting.push_back(News::Topics(Box::new(before)));
                }
                if gap > 0 {
                    self.waiting.push_back(News::Gap(Some(gap)));
                }
            }
            topics.events = last;
        } else if missed.is_some() && self.next_event.is_none() {
            // Of changes alone nobody has the numbers.
            self.waiting.push_back(News::Gap(None));
        }
        if let Some(changes) = topics.changes.take() {
            let changes: Vec<_> = changes.into_iter().filter(|c| self.is_news(c)).collect();
            topics.changes = (is_answer || !changes.is_empty()).then_some(changes);
        }
        if Topic::ALL.iter().any(|topic| has(&topics, *topic)) {
            self.waiting.push_back(News::Topics(Box::new(topics)));
        }
    }

    /// Those not told before, in runs without a gap, each with how many are missing before it. The
    /// daemon itself may have missed some of what it keeps.
    fn new_events(&mut self, events: Vec<Happened>) -> Vec<(u64, Vec<Happened>)> {
        let mut runs: Vec<(u64, Vec<Happened>)> = Vec::new();
        // What was before we first listened is no gap.
        let mut next = self.next_event.or(events.first().map(|first| first.number)).unwrap_or(0);
        for happened in events {
            let Some(gap) = happened.number.checked_sub(next) else { continue };
            next = happened.number + 1;
            match runs.last_mut().filter(|_| gap == 0) {
                Some((_, run)) => run.push(happened),
                None => runs.push((gap, vec![happened])),
            }
        }
        self.next_event = Some(next);
        runs
    }

    /// It was not told yet, or not with what it cost.
    fn is_news(&mut self, change: &Change) -> bool {
        let has_cost = change.cost.is_some();
        let before = self.changes.insert(change.number, has_cost);
        while self.changes.len() > 2 * CHANGES_KEPT {
            self.changes.pop_first();
        }
        match before {
            None => true,
            Some(had_cost) => has_cost && !had_cost,
        }
    }
}

/// Something of this topic is there.
fn has(topics: &Topics, topic: Topic) -> bool {
    match topic {
        Topic::View => topics.view.is_some(),
        Topic::Events => topics.events.is_some(),
        Topic::Changes => topics.changes.is_some(),
        Topic::Problems => topics.problems.is_some(),
        Topic::Config => topics.config.is_some(),
        Topic::Log => topics.log.is_some(),
        Topic::Recording => topics.recording.is_some(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may panic"
    )]

    use super::*;

    #[test]
    fn fifty_listeners_need_one_line() {
        let mut wanted = Wanted::default();
        let listeners: Vec<_> =
            (0..50).map(|n| wanted.add(&[Topic::ALL[n % 7], Topic::ALL[n / 7 % 7]])).collect();
        let line: RequestLine = serde_json::from_slice(wanted.line()).unwrap();
        let Ask::Subscribe(topics) = line.ask else { panic!("{line:?}") };
        assert_eq!(topics.len(), Topic::ALL.len());
        assert_eq!(wanted.line().iter().filter(|byte| **byte == b'\n').count(), 1);
        // Who leaves takes along what nobody else wants.
        for listener in listeners.iter().skip(1) {
            wanted.remove(*listener);
        }
        let line: RequestLine = serde_json::from_slice(wanted.line()).unwrap();
        assert_eq!(line.ask, Ask::Subscribe(vec![Topic::View]));
        let log = Topics { log: Some("info".to_owned()), ..Topics::default() };
        assert!(!wanted.is_for(listeners[0], &log) && !wanted.is_for(listeners[1], &log));
    }

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let (least, most) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(least, most);
        let mut grown = least;
        let mut waits = BTreeSet::new();
        for _ in 0..20 {
            let wait = backoff.wait();
            assert!((grown / 2..=grown).contains(&wait), "{wait:?} of {grown:?}");
            waits.insert(wait);
            grown = (grown * 2).min(most);
        }
        assert!(waits.len() > 10, "{waits:?}");
        backoff.reset();
        assert!(backoff.wait() <= least);
    }

    fn happened(numbers: std::ops::Range<u64>) -> Topics {
        let event = |number| {
            let obu = node_lib::NodeId([2; 6]);
            let event = node_lib::control::event::Event::ObuDetached { obu };
            Happened { number, at_unix_ms: 0, event }
        };
        Topics { events: Some(numbers.map(event).collect()), ..Topics::default() }
    }

    #[test]
    fn what_is_missing_is_told_and_what_comes_twice_is_not() {
        let mut feed = Feed::new("/nowhere".into());
        let mut told = |topics, missed| {
            feed.sort(topics, missed, false);
            let news: Vec<_> = feed.waiting.drain(..).collect();
            news.iter()
                .map(|news| match news {
                    News::Gap(gap) => format!("gap {gap:?}"),
                    News::Topics(topics) => {
                        let events = topics.events.as_ref().unwrap();
                        format!("{}-{}", events[0].number, events[events.len() - 1].number)
                    }
                    other => format!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(told(happened(7..9), None), ["7-8"], "the past is no gap");
        assert_eq!(told(happened(8..10), None), ["9-9"]);
        assert_eq!(told(happened(9..10), None), [""; 0]);
        assert_eq!(told(Topics::default(), Some(3)), [""; 0], "the next one tells");
        assert_eq!(told(happened(13..14), None), ["gap Some(3)", "13-13"]);
        assert_eq!(told(happened(12..15), None), ["14-14"]);
        // The daemon missed some itself: what it keeps has a gap inside, and is told in order.
        let mut kept = happened(13..17);
        kept.events.as_mut().unwrap().extend(happened(20..22).events.unwrap());
        assert_eq!(told(kept, None), ["15-16", "gap Some(3)", "20-21"]);
    }

    #[test]
    fn a_connection_that_lasted_makes_the_next_wait_the_first_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let daemon = std::thread::spawn(move || {
            use std::io::Write as _;
            let hello = Hello {
                v2x_control: crate::message::VERSION,
                version: String::new(),
                name: String::new(),
                pid: 1,
                started_unix_ms: 1,
                access: crate::message::Access::ReadOnly,
            };
            let hello = serde_json::to_string(&hello).unwrap();
            for _ in 0..2 {
                writeln!(listener.accept().unwrap().0, "{hello}").unwrap();
            }
        });
        let least = Duration::from_millis(100);
        let mut feed = Feed::with_backoff(path.clone(), Backoff::new(least, 64 * least));
        let mut wait = |since: Option<Duration>| {
            let client = since.map(|since| {
                (SocketClient::connect(&path).unwrap(), Instant::now().checked_sub(since).unwrap())
            });
            feed.client = client;
            feed.away(ClientError::Missing(path.clone())).unwrap();
            match feed.waiting.pop_back() {
                Some(News::Away(_, wait)) => wait,
                other => panic!("{other:?}"),
            }
        };
        let grown = [(); 5].map(|()| wait(None));
        assert!(grown[4] >= 8 * least, "{grown:?}");
        // One that is thrown out at once is as good as none.
        assert!(wait(Some(Duration::ZERO)) >= 16 * least);
        assert!(wait(Some(GOOD_AFTER)) <= least);
        daemon.join().unwrap();
    }

    #[test]
    fn of_changes_no_more_is_kept_than_a_daemon_can_send_again() {
        let mut feed = Feed::new("/nowhere".into());
        let (cause, routes) = (node_lib::control::event::Cause::Dead, Vec::new());
        let (from, to, cost) = (None, None, None);
        let change =
            Change { number: 0, at_unix_ms: 0, from, to, cause, silence_ms: 0, cost, routes };
        for number in 0..5 * CHANGES_KEPT as u64 {
            let changes = Some(vec![Change { number, ..change.clone() }]);
            feed.sort(Topics { changes, ..Topics::default() }, None, false);
        }
        assert_eq!(feed.waiting.len(), 5 * CHANGES_KEPT, "each is told");
        assert_eq!(feed.changes.len(), 2 * CHANGES_KEPT);
        assert_eq!(feed.changes.keys().next_back(), Some(&(5 * CHANGES_KEPT as u64 - 1)));
    }
}
