//! A connection to the kernel, and the task that serves it.

use std::io;
use std::pin::Pin;

use futures_util::stream::{Stream, StreamExt};
use rtnetlink::packet_core::NetlinkMessage;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::{Handle, MulticastGroup};
use tokio::task::JoinHandle;

pub(super) type MessageStream =
    Pin<Box<dyn Stream<Item = NetlinkMessage<RouteNetlinkMessage>> + Send>>;

/// Whoever serves the connection. It is stopped before the receiver of its messages goes: one that
/// comes in between would be a warning in the log of a program that ends in order.
#[derive(Debug)]
pub(super) struct Server(Option<JoinHandle<()>>);

impl Server {
    /// Stops it, and lets go of the receiver afterwards.
    pub(super) fn stop(&mut self, messages: MessageStream) {
        let Some(server) = self.0.take() else { return };
        server.abort();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Aborted, which is an error.
                let _ = server.await;
                drop(messages);
            });
        }
    }
}

pub(super) fn connect() -> io::Result<(Handle, MessageStream, Server)> {
    let (connection, handle, messages) =
        rtnetlink::new_multicast_connection(&[MulticastGroup::Link])?;
    let server = Server(Some(tokio::spawn(connection)));
    Ok((handle, messages.map(|(message, _)| message).boxed(), server))
}
