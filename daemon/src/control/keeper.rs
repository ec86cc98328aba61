//! [`Keeper`]: keeps what happened, and tells subscribers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use control_socket::health::{HealthProblem, problems};
use control_socket::record::{Change, GapTally, Happened, History, Moment};
use node_lib::control::snapshot::View;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::inside::Inside;
use node_lib::runtime::request::Told;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Events that wait for a subscriber that reads slowly.
const WAITING_MAX: usize = 256;

/// What happened since the start, and who wants to hear more.
#[derive(Debug)]
pub(crate) struct Keeper {
    history: Mutex<History>,
    clock: Clock,
    news: broadcast::Sender<Arc<Notice>>,
}

/// Something that happened, as subscribers are told.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) happened: Happened,
    /// The change of upstream it is, or whose cost it tells.
    pub(crate) change: Option<Change>,
}

impl Keeper {
    /// Keeps what happens from now on. Must run inside a tokio runtime.
    pub(crate) fn start(inside: &Inside) -> Arc<Self> {
        let (news, _) = broadcast::channel(WAITING_MAX);
        let keeper = Arc::new(Self { history: Mutex::default(), clock: Clock::start(), news });
        let (itself, mut events) = (Arc::clone(&keeper), inside.events());
        tokio::spawn(async move {
            loop {
                match events.recv().await {
                    Ok(told) => itself.note(&told),
                    Err(RecvError::Lagged(missed)) => itself.lock().note_missed(missed),
                    // The loop has ended.
                    Err(RecvError::Closed) => return,
                }
            }
        });
        keeper
    }

    fn note(&self, told: &Told) {
        let news = {
            let mut history = self.lock();
            let happened = history.note(self.now(), &told.event, &told.routes);
            let change = history.change_told(&happened).cloned();
            Notice { happened, change }
        };
        // An error means that nobody listens.
        let _ = self.news.send(Arc::new(news));
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.news.subscribe()
    }

    pub(crate) fn events(&self) -> Vec<Happened> {
        self.lock().events()
    }

    pub(crate) fn changes(&self) -> Vec<Change> {
        self.lock().changes()
    }

    pub(crate) fn gaps(&self) -> GapTally {
        self.lock().gaps()
    }

    pub(crate) fn problems(&self, view: &View) -> Vec<HealthProblem> {
        problems(view, self.lock().faults(), self.now())
    }

    fn now(&self) -> Moment {
        Moment { unix_ms: now_unix_ms(), clock: self.clock.now() }
    }

    /// The history is whole between any two operations on it.
    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
