//! What every answer is made from, on the control socket and over HTTP: [`Shared`].

use std::sync::Arc;

use control_socket::message::{
    Access, Hello, Refusal, RefusalKind, Setting, Topic, Topics, VERSION,
};
use node_lib::runtime::inside::{Inside, Stopped};

use super::keeper::{Keeper, now_unix_ms};
use crate::logging::LogLevel;

/// What the control socket shows beside the node.
#[derive(Clone, Debug)]
pub struct About {
    /// The TAP, by which the daemon is known on its host.
    pub name: String,
    /// All settings, and where each comes from.
    pub settings: Vec<Setting>,
    /// What is logged.
    pub log: LogLevel,
}

/// Everything a connection needs.
#[derive(Debug)]
pub(crate) struct Shared {
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
            access,
        }
    }

    /// These topics, now.
    pub(crate) async fn look(&self, topics: &[Topic]) -> Result<Topics, Refusal> {
        let Self { about, inside, keeper } = self;
        let view = inside.view().await.map_err(stopped)?;
        let has = |topic| topics.contains(&topic);
        Ok(Topics {
            at_unix_ms: now_unix_ms(),
            node: view.node.id,
            role: view.node.role,
            events: has(Topic::Events).then(|| keeper.events()),
            changes: has(Topic::Changes).then(|| keeper.changes()),
            problems: has(Topic::Problems).then(|| keeper.problems(&view)),
            config: has(Topic::Config).then(|| about.settings.clone()),
            log: has(Topic::Log).then(|| about.log.current()),
            view: has(Topic::View).then(|| (*view).clone()),
            flushed: None,
        })
    }
}

pub(super) fn stopped(stopped: Stopped) -> Refusal {
    Refusal { kind: RefusalKind::Stopped, text: stopped.to_string() }
}
