//! Takes clients, so many at once.

use std::sync::Arc;
use std::time::Duration;

use control_socket::message::{Access, AnswerLine, CLIENTS_MAX, Refusal, RefusalKind};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tracing::debug;

use super::connection::{self, LineWriter};
use super::shared::Shared;

/// After a client that could not be taken, because there are no descriptors for example.
const REST: Duration = Duration::from_millis(100);

/// Serves one socket for ever.
pub(super) async fn serve(listener: UnixListener, shared: Arc<Shared>, access: Access) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "control socket: a client could not be taken");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let shared = Arc::clone(&shared);
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                tokio::spawn(async move {
                    connection::serve(stream, shared, access).await;
                    drop(place);
                });
            }
            Err(_) => {
                let text = format!("{CLIENTS_MAX} clients are connected; expected fewer");
                let error = Some(Refusal { kind: RefusalKind::TooMany, text });
                let mut out = LineWriter::new(stream.into_split().1);
                // One line fits into the socket of a new client.
                tokio::spawn(async move { out.line(&AnswerLine { id: 0, ok: None, error }).await });
            }
        }
    }
}
