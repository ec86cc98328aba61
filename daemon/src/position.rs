//! Where the node is: `--position`. Off unless it is asked for; it is shown, and decides nothing.
//!
//! | file | what it does |
//! |---|---|
//! | `source` | what `--position` takes |
//! | `tpv` | one line of gpsd |
//! | `lines` | lines out of bytes, none without bound |
//! | `tracker` | what is known, and for how long: no I/O, it is told the time |
//! | `reader` | the thread that reads a gpsd or a file |
//!
//! The control socket and the HTTP endpoint ask here. The node is told of each fix as well, for its
//! neighbours, if they may know (`--share-position`), and for recordings. Unknown is unknown:
//! without a fix, or with one that is older than [`FIX_AGE_MAX`], there is no position.

mod lines;
mod reader;
mod source;
mod tpv;
mod tracker;

use std::fs::File;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{convert::Infallible, thread};

use anyhow::{Context as _, anyhow};
use control_socket::position::PositionReport;
use node_lib::Timestamp;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::inside::Inside;
use tracing::debug;

use crate::args::Common;
use crate::exit::{Failure, FailureKind, print};

use reader::{Stop, Waits};
pub use source::PositionSource;
pub use tracker::FIX_AGE_MAX;
use tracker::Tracker;

/// By so much less urgent than the packet loop.
const NICE: i32 = 10;

/// Looks whether the source could be used. A gpsd may come later, and is not asked.
pub fn check(args: &Common) -> Result<(), Failure> {
    args.position.as_ref().map_or(Ok(()), |source| file_of(source).map(drop))
}

/// Looks whether there is something to share, if it is to be shared.
pub fn check_sharing(args: &Common) -> Result<(), Failure> {
    if args.share_position && args.position.is_none() {
        let text = "expected --position as well, which says what is shared";
        return Err(Failure::new(FailureKind::Usage, anyhow!(text)));
    }
    Ok(())
}

/// Tells the user of `--check` what would be used, if anything would.
pub fn print_checked(args: &Common) -> Result<(), Failure> {
    let Some(source) = &args.position else { return Ok(()) };
    let shared = if args.share_position { ", told to all in radio range" } else { "" };
    print(&format!("position: {source}{shared}\n"))
}

fn file_of(source: &PositionSource) -> Result<Option<File>, Failure> {
    let PositionSource::File(path) = source else { return Ok(None) };
    reader::open(path).map(Some).map_err(|error| {
        Failure::new(FailureKind::Usage, anyhow!("file:{}: {error}", path.display()))
    })
}

/// What those who read and those who ask share.
#[derive(Debug)]
struct Shared {
    source: String,
    clock: Clock,
    tracker: Mutex<Tracker>,
    /// The node, once there is one.
    node: OnceLock<Inside>,
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes in a line of the source, and tells the node what it says. Returns whether it is one of
    /// gpsd.
    fn take(&self, now: Timestamp, line: Option<&[u8]>) -> bool {
        let is_of_gpsd = self.lock().take(now, line);
        self.tell_node();
        is_of_gpsd
    }

    fn tell_node(&self) {
        let Some(node) = self.node.get() else { return };
        let news = self.lock().take_news();
        if let Some(located) = news {
            // One that has stopped need not know.
            let _ = node.locate(located);
        }
    }

    /// What is in it is whole between any two operations on it.
    fn lock(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the node is, for whoever asks.
#[derive(Clone, Debug)]
pub(crate) struct Whereabouts(Arc<Shared>);

impl Whereabouts {
    /// What is known now. Waits for nothing.
    pub(crate) fn position(&self) -> PositionReport {
        let now = self.0.now();
        self.0.lock().position(now)
    }
}

/// A source, before it is read.
#[derive(Debug)]
pub(crate) struct Locator {
    source: PositionSource,
    file: Option<File>,
    shared: Arc<Shared>,
    waits: Waits,
}

impl Locator {
    /// The source the user wants.
    pub(crate) fn open(args: &Common) -> Result<Option<Self>, Failure> {
        let Some(source) = args.position.clone() else { return Ok(None) };
        let file = file_of(&source)?;
        let tracker = Mutex::new(Tracker::new(&source));
        let shared = Shared {
            source: source.to_string(),
            clock: Clock::start(),
            tracker,
            node: OnceLock::new(),
        };
        Ok(Some(Self { source, file, shared: Arc::new(shared), waits: Waits::DEFAULT }))
    }

    pub(crate) fn whereabouts(&self) -> Whereabouts {
        Whereabouts(Arc::clone(&self.shared))
    }

    /// Reads from now on, until the returned guard is dropped, and tells this node.
    pub(crate) fn start(self, node: Inside) -> Result<Reading, Failure> {
        let Self { source, file, shared, waits } = self;
        let _ = shared.node.set(node);
        let (stop, stopped) = mpsc::channel();
        let read = move || {
            if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                debug!(%error, "reading the position has the priority of the packet loop");
            }
            let stop = Stop(stopped);
            shared.tell_node();
            match (source, file) {
                (PositionSource::Gpsd { host, port }, _) => {
                    reader::follow(&host, port, &shared, waits, &stop);
                }
                (_, Some(file)) => reader::replay(file, &shared, &stop),
                // A fixed value is there already.
                (_, None) => {}
            }
        };
        thread::Builder::new()
            .name("position".to_owned())
            .spawn(read)
            .context("cannot start the thread that reads the position")
            .map_err(|error| Failure::new(FailureKind::Runtime, error))?;
        Ok(Reading { _stop: stop })
    }
}

/// Ends the reading when it is dropped, and does not wait for its end: a disk or a name server may
/// keep the thread.
#[derive(Debug)]
pub(crate) struct Reading {
    _stop: Sender<Infallible>,
}

#[cfg(test)]
mod tests;
