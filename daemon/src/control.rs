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
mod keeper;
mod server;
mod socket;

use std::sync::Arc;

use control_socket::message::{Access, Hello, Setting, VERSION};
use node_lib::runtime::inside::Inside;
use tracing::info;

use crate::args::Common;
use crate::exit::Failure;
use crate::logging::LogLevel;
use crate::recording::Recording;
use crate::reload::Reload;
use keeper::Keeper;
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
    /// Reads the configuration again; `None` without a file of it.
    pub(crate) reload: Option<Reload>,
    /// What is recorded; `None` where there is no recorder.
    pub(crate) recording: Option<Recording>,
}

/// Everything a connection needs.
#[derive(Debug)]
struct Shared {
    started_unix_ms: u64,
    about: About,
    inside: Inside,
    keeper: Arc<Keeper>,
}

impl Shared {
    fn hello(&self, access: Access) -> Hello {
        Hello {
            v2x_control: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.about.name.clone(),
            pid: std::process::id(),
            started_unix_ms: self.started_unix_ms,
            access,
        }
    }
}

/// The control socket of a daemon, before it has a node.
#[derive(Debug)]
pub struct Control {
    sockets: Option<Sockets>,
    about: About,
}

impl Control {
    /// Makes the sockets the user wants. Where nobody asked for any, and the default cannot be had,
    /// the reason stands in the log and the daemon runs without.
    ///
    /// # Errors
    /// Sockets that were asked for cannot be made.
    pub async fn open(
        args: &Common,
        settings: Vec<Setting>,
        log: LogLevel,
    ) -> Result<Self, Failure> {
        let sockets = Sockets::open(args).await?;
        let name = args.tap_name.clone();
        let about = About { name, settings, log, reload: None, recording: None };
        Ok(Self { sockets, about })
    }

    /// With what reads the configuration again.
    #[must_use]
    pub fn with_reload(mut self, reload: Option<Reload>) -> Self {
        self.about.reload = reload;
        self
    }

    /// With the recording of the node.
    #[must_use]
    pub(crate) fn with_recording(mut self, recording: Option<Recording>) -> Self {
        self.about.recording = recording;
        self
    }

    /// Answers from now on, until the returned guard is dropped. Must run inside a tokio runtime.
    pub fn serve(self, inside: Inside) -> Option<Serving> {
        let Sockets { read_only, read_write } = self.sockets?;
        info!(socket = %read_only.path().display(), "control socket");
        let keeper = Keeper::start(&inside);
        let shared = Arc::new(Shared {
            started_unix_ms: keeper::now_unix_ms(),
            about: self.about,
            inside,
            keeper,
        });
        let guards = [(read_only, Access::ReadOnly), (read_write, Access::ReadWrite)];
        let guards = guards.map(|(socket, access)| {
            let (listener, guard) = socket.split();
            tokio::spawn(server::serve(listener, Arc::clone(&shared), access));
            guard
        });
        Some(Serving { _guards: guards })
    }
}

/// Takes the sockets away when it is dropped.
#[derive(Debug)]
pub struct Serving {
    _guards: [socket::Guard; 2],
}
