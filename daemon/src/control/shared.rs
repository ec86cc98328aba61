//! What every answer is made from, on the control socket and over HTTP: [`Shared`].

use std::sync::Arc;

use control_socket::health::{HealthProblem, unsaved_start};
use control_socket::message::{
    Access, Hello, Recording, Refusal, RefusalKind, Setting, Topic, Topics, VERSION,
};
use node_lib::control::snapshot::View;
use node_lib::runtime::inside::{Inside, Stopped};

use super::keeper::{Keeper, now_unix_ms};
use crate::logging::LogLevel;
use crate::position::Whereabouts;
use crate::recording::RecordingSwitch;
use crate::reload::{self, Reload};

/// What the control socket shows beside the node.
#[derive(Clone, Debug)]
pub struct About {
    /// The TAP, by which the daemon is known on its host.
    pub name: String,
    /// All settings, and where each comes from.
    pub settings: Vec<Setting>,
    /// What is logged.
    pub log: LogLevel,
    /// Reads the configuration again; `None` without a file of it.
    pub(crate) reload: Option<Reload>,
    /// What is recorded; `None` where there is no recorder.
    pub(crate) recording: Option<RecordingSwitch>,
    /// Where the node is; `None` if nobody says so.
    pub(crate) whereabouts: Option<Whereabouts>,
    /// Why the state file does not have this start; `None` if it does, or there is none.
    pub(crate) unsaved_start: Option<String>,
}

/// Everything a connection needs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) started_unix_ms: u64,
    pub(crate) about: About,
    pub(crate) inside: Inside,
    pub(crate) keeper: Arc<Keeper>,
}

impl Shared {
    pub(super) fn hello(&self, access: Access) -> Hello {
        Hello {
            v2x_control: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.about.name.clone(),
            pid: std::process::id(),
            started_unix_ms: self.started_unix_ms,
            access,
        }
    }

    /// Those of the node, and of its start.
    fn problems(&self, view: &View) -> Vec<HealthProblem> {
        let of_start = self.about.unsaved_start.as_deref().map(unsaved_start);
        self.keeper.problems(view).into_iter().chain(of_start).collect()
    }

    /// These topics, now.
    pub(crate) async fn look(&self, topics: &[Topic]) -> Result<Topics, Refusal> {
        let Self { about, inside, keeper, .. } = self;
        let view = inside.view().await.map_err(stopped)?;
        let has = |topic| topics.contains(&topic);
        let recording = match about.recording.clone().filter(|_| has(Topic::Recording)) {
            Some(recording) => Some(elsewhere(move || recording.view()).await?),
            None => has(Topic::Recording).then(Recording::default),
        };
        let whereabouts = about.whereabouts.as_ref().filter(|_| has(Topic::View));
        Ok(Topics {
            at_unix_ms: now_unix_ms(),
            node: view.node.id,
            role: view.node.role,
            events: has(Topic::Events).then(|| keeper.events()),
            changes: has(Topic::Changes).then(|| keeper.changes()),
            problems: has(Topic::Problems).then(|| self.problems(&view)),
            config: has(Topic::Config).then(|| reload::as_they_are(&about.settings, &about.log)),
            log: has(Topic::Log).then(|| about.log.current()),
            view: has(Topic::View).then(|| (*view).clone()),
            position: whereabouts.map(Whereabouts::position),
            recording,
            reloaded: None,
            pinged: None,
            pins: None,
            flushed: None,
        })
    }
}

pub(super) fn stopped(stopped: Stopped) -> Refusal {
    Refusal { kind: RefusalKind::Stopped, text: stopped.to_string() }
}

/// Where something may wait without keeping others from their answers.
pub(super) async fn elsewhere<T: Send + 'static>(
    what: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(what).await.map_err(|error| unable(error.to_string()))
}

pub(super) fn unable(text: impl Into<String>) -> Refusal {
    Refusal { kind: RefusalKind::Unable, text: text.into() }
}
