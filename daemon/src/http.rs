//! The HTTP endpoint, `--http`: off unless it is asked for. It shows what the control socket shows,
//! to browsers and to Prometheus, and changes nothing.
//!
//! | file | what it does |
//! |---|---|
//! | `address` | where it listens |
//! | `server` | takes connections, so many at once, each with its limits |
//! | `guard` | who may ask at all, and what browsers are told about every answer |
//! | `endpoint` | what the answers are made from |
//! | `answers` | the tables as JSON, health, the web page |
//! | `kept` | answers that are made once for all who ask within a moment |
//! | `metrics` | the same for Prometheus |
//! | `events` | a stream of what happens |
//!
//! It runs on a thread of its own, with a lower priority than the packet loop where that is
//! allowed. However much is asked, the loop is asked no more often than the rules of
//! [`node_lib::runtime::inside`] let it be.

pub mod address;
mod answers;
mod endpoint;
mod events;
mod guard;
mod kept;
mod metrics;
mod server;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context as _, anyhow};
use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use tracing::{debug, info, warn};

use crate::args::Common;
use crate::control::shared::Shared;
use crate::exit::{Failure, FailureKind};

use address::HttpAddress;
pub use endpoint::STREAMS_MAX;
pub use server::{CONNECTIONS_MAX, HEAD_MAX};

/// Connections that wait to be taken.
const BACKLOG: u32 = 64;

/// What the kernel keeps for a connection whose client reads slowly.
const SEND_BUFFER: u32 = 256 << 10;

/// By so much less urgent than the packet loop.
const NICE: i32 = 10;

/// Looks whether the endpoint could be had, and leaves nothing behind.
pub fn check(args: &Common) -> Result<(), Failure> {
    args.http.map_or(Ok(()), |address| bound(address).map(drop))
}

/// The endpoint, bound, before there is a node.
#[derive(Debug)]
pub(crate) struct Http {
    listener: TcpListener,
    address: SocketAddr,
}

impl Http {
    /// Listens where the user wants it. Must run inside a tokio runtime.
    pub(crate) fn open(args: &Common) -> Result<Option<Self>, Failure> {
        let Some(address) = args.http else { return Ok(None) };
        let failed = |error| failure(address, &error);
        let listener = bound(address)?.listen(BACKLOG).map_err(failed)?;
        let listener = listener.into_std().map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Some(Self { listener, address }))
    }

    /// Answers from now on, until the returned guard is dropped.
    pub(crate) fn serve(self, shared: Arc<Shared>) -> io::Result<HttpServing> {
        let Self { listener, address } = self;
        info!(%address, "http endpoint");
        if !address.ip().is_loopback() {
            warn!(
                %address,
                "the http endpoint is open to other machines: whoever reaches it may look at \
                 everything"
            );
        }
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                debug!(%error, "the http endpoint has the priority of the packet loop");
            }
            runtime.block_on(async move {
                tokio::select! {
                    ended = server::serve(listener, shared) => {
                        if let Err(error) = ended {
                            warn!(%error, "the http endpoint has ended");
                        }
                    }
                    _ = stopped => {}
                }
            });
            // As in `start::on_tokio`.
            runtime.shutdown_background();
        })?;
        Ok(HttpServing { stop: Some(stop), thread: Some(thread) })
    }
}

/// Ends the endpoint, and every connection, when it is dropped.
#[derive(Debug)]
pub(crate) struct HttpServing {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for HttpServing {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It waits for nobody. If it has panicked there is nothing left to end.
            let _ = thread.join();
        }
    }
}

fn bound(HttpAddress(address): HttpAddress) -> Result<TcpSocket, Failure> {
    let bound = || {
        let socket = match address.ip() {
            IpAddr::V4(_) => TcpSocket::new_v4()?,
            IpAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Connections of the daemon before may still be dying.
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bound().map_err(|error| failure(HttpAddress(address), &error))
}

fn failure(address: HttpAddress, error: &io::Error) -> Failure {
    let (kind, hint) = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            (FailureKind::Permission, ": expected a port from 1024 on")
        }
        io::ErrorKind::AddrInUse => (FailureKind::Usage, ": another program listens there"),
        io::ErrorKind::AddrNotAvailable => {
            (FailureKind::Interface, ": no interface of this machine has that address")
        }
        _ => (FailureKind::Runtime, ""),
    };
    Failure::new(kind, anyhow!("{address}: cannot listen: {error}{hint}"))
}

/// Starts the endpoint, if there is one.
pub(crate) fn start(
    http: Option<Http>,
    shared: &Arc<Shared>,
) -> Result<Option<HttpServing>, Failure> {
    let serving = http.map(|http| http.serve(Arc::clone(shared))).transpose();
    serving
        .context("cannot start the http endpoint")
        .map_err(|error| Failure::new(FailureKind::Runtime, error))
}
