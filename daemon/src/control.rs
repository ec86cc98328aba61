//! The control socket: who runs a daemon looks inside, and changes what can be changed while it
//! runs.
//!
//! | file | what it does |
//! |---|---|
//! | `socket` | makes the two sockets, puts stale ones aside, takes them away at the end |
//! | `keeper` | keeps what happened, and tells it on |
//! | `server` | takes clients, so many at once |
//! | `connection` | one client: requests, subscriptions, what it is too slow for |
//!
//! All of it runs on the thread of tokio, beside the packet loop, and asks the loop through
//! [`node_lib::runtime::inside`]. What is said is in the crate `control_socket`.

mod connection;
pub(crate) mod keeper;
mod server;
mod socket;

use std::sync::Arc;

use control_socket::message::{
    Access, Hello, Refusal, RefusalKind, Setting, Topic, Topics, VERSION,
};
use node_lib::runtime::inside::{Inside, Stopped};
use tracing::info;

use crate::args::Common;
use crate::exit::Failure;
use crate::http::{self, Http};
use crate::logging::LogLevel;
use keeper::{Keeper, now_unix_ms};
pub use socket::Sockets;

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
    fn hello(&self, access: Access) -> Hello {
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

fn stopped(stopped: Stopped) -> Refusal {
    Refusal { kind: RefusalKind::Stopped, text: stopped.to_string() }
}

/// The control socket of a daemon, and its HTTP endpoint, before it has a node.
#[derive(Debug)]
pub struct Control {
    sockets: Option<Sockets>,
    http: Option<Http>,
    about: About,
}

impl Control {
    /// Makes the sockets the user wants, and listens for HTTP if he wants that. Where nobody asked
    /// for any, and the default cannot be had, the reason stands in the log and the daemon runs
    /// without.
    ///
    /// # Errors
    /// What was asked for cannot be had.
    pub async fn open(
        args: &Common,
        settings: Vec<Setting>,
        log: LogLevel,
    ) -> Result<Self, Failure> {
        let sockets = Sockets::open(args).await?;
        let http = Http::open(args)?;
        let about = About { name: args.tap_name.clone(), settings, log };
        Ok(Self { sockets, http, about })
    }

    /// Answers from now on, until the returned guard is dropped. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// The thread of the HTTP endpoint cannot be started.
    pub fn serve(self, inside: Inside) -> Result<Option<Serving>, Failure> {
        let Self { sockets, http, about } = self;
        if sockets.is_none() && http.is_none() {
            return Ok(None);
        }
        let keeper = Keeper::start(&inside);
        let shared = Arc::new(Shared { about, inside, keeper });
        let http = http::start(http, &shared)?;
        let guards = sockets.map(|Sockets { read_only, read_write }| {
            info!(socket = %read_only.path().display(), "control socket");
            let guards = [(read_only, Access::ReadOnly), (read_write, Access::ReadWrite)];
            guards.map(|(socket, access)| {
                let (listener, guard) = socket.split();
                tokio::spawn(server::serve(listener, Arc::clone(&shared), access));
                guard
            })
        });
        Ok(Some(Serving { _guards: guards, _http: http }))
    }
}

/// Takes the sockets away, and ends the HTTP endpoint, when it is dropped.
#[derive(Debug)]
pub struct Serving {
    _guards: Option<[socket::Guard; 2]>,
    _http: Option<http::Serving>,
}
