//! The control socket: who runs a daemon looks inside, and changes what can be changed while it
//! runs.
//!
//! | file | what it does |
//! |---|---|
//! | `socket` | makes the two sockets, puts stale ones aside, takes them away at the end |
//! | `keeper` | keeps what happened, and tells it on |
//! | `shared` | what every answer is made from |
//! | `server` | takes clients, so many at once |
//! | `connection` | one client: requests, subscriptions, what it is too slow for |
//!
//! All of it runs on the thread of tokio, beside the packet loop, and asks the loop through
//! [`node_lib::runtime::inside`]. What is said is in the crate `control_socket`.

mod connection;
pub(crate) mod keeper;
mod server;
pub(crate) mod shared;
mod socket;

use std::sync::Arc;

use control_socket::message::{Access, Setting};
use node_lib::runtime::inside::Inside;
use tracing::info;

use crate::args::Common;
use crate::exit::Failure;
use crate::http::{self, Http};
use crate::logging::LogLevel;
use crate::position::{Locator, Reading};
use crate::recording::RecordingSwitch;
use crate::reload::Reload;
use keeper::Keeper;
pub use shared::About;
use shared::Shared;
pub use socket::Sockets;

/// Looks whether the control socket the user asked for could be made, and changes nothing.
///
/// # Errors
/// It could not: the same as of [`ControlSocket::open`].
pub async fn check(args: &Common) -> Result<(), Failure> {
    Ok(Sockets::check(args).await?)
}

/// The control socket of a daemon, and its HTTP endpoint, before it has a node.
#[derive(Debug)]
pub struct ControlSocket {
    sockets: Option<Sockets>,
    http: Option<Http>,
    locator: Option<Locator>,
    about: About,
}

impl ControlSocket {
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
        let locator = Locator::open(args)?;
        let name = args.tap_name.clone();
        let whereabouts = locator.as_ref().map(Locator::whereabouts);
        let (reload, recording, unsaved_start) = (None, None, None);
        let about = About { name, settings, log, reload, recording, whereabouts, unsaved_start };
        Ok(Self { sockets, http, locator, about })
    }

    /// With what reads the configuration again.
    #[must_use]
    pub fn with_reload(mut self, reload: Option<Reload>) -> Self {
        self.about.reload = reload;
        self
    }

    /// With the recording of the node.
    #[must_use]
    pub(crate) fn with_recording(mut self, recording: Option<RecordingSwitch>) -> Self {
        self.about.recording = recording;
        self
    }

    /// With why the state file does not have this start ([`StartCount::why_unsaved`]).
    ///
    /// [`StartCount::why_unsaved`]: node_lib::runtime::boot::StartCount::why_unsaved
    #[must_use]
    pub fn with_unsaved_start(mut self, why: Option<String>) -> Self {
        self.about.unsaved_start = why;
        self
    }

    /// Answers from now on, until the returned guard is dropped. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// The thread of the HTTP endpoint, or that which reads the position, cannot be started.
    pub fn serve(self, inside: Inside) -> Result<Option<Serving>, Failure> {
        let Self { sockets, http, locator, about } = self;
        let reading = locator.map(|locator| locator.start(inside.clone())).transpose()?;
        if sockets.is_none() && http.is_none() {
            // The node wants to know where it is all the same.
            return Ok(reading.map(|reading| Serving {
                _guards: None,
                _http: None,
                _reading: Some(reading),
            }));
        }
        let keeper = Keeper::start(&inside);
        let started_unix_ms = keeper::now_unix_ms();
        let shared = Arc::new(Shared { started_unix_ms, about, inside, keeper });
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
        Ok(Some(Serving { _guards: guards, _http: http, _reading: reading }))
    }
}

/// Takes the sockets away, and ends the HTTP endpoint and the reading of the position, when it is
/// dropped.
#[derive(Debug)]
pub struct Serving {
    _guards: Option<[socket::Guard; 2]>,
    _http: Option<http::HttpServing>,
    _reading: Option<Reading>,
}
