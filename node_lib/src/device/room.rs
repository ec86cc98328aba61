//! [`Room`]: when a socket whose buffer was full takes frames again.

use std::task::{Context, Poll};

use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::sys;

/// Watches a socket for room to write, through a descriptor of its own and only while there is none: otherwise every
/// frame that has left would wake the loop.
#[derive(Debug, Default)]
pub(super) struct Room(Option<AsyncFd<Socket>>);

impl Room {
    /// The socket has no room: watches it from now on.
    pub(super) fn await_in(&mut self, socket: &Socket) {
        let again = socket.try_clone();
        self.0 = again.and_then(|socket| sys::register(socket, Interest::WRITABLE)).ok();
    }

    /// Nobody waits for room any more.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    /// Ready when there is room, or when nothing tells.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.0 {
            Some(fd) => fd.poll_write_ready(cx).map(drop),
            None => Poll::Ready(()),
        }
    }
}
