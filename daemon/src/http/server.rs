//! Takes connections. Each has a bound: in number, in what it may send, in how long it may take.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use futures_util::future::{Either, ready};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tracing::debug;

use super::kept::Kept;
use super::{answers, guard};
use crate::control::shared::Shared;

/// Connections at once. A browser has six, and Prometheus one.
pub const CONNECTIONS_MAX: usize = 64;

/// The longest request, in bytes: method, path and header fields. There is no body.
pub const HEAD_MAX: usize = 16 << 10;

/// So long a client may take to send a request, and to think of the next one.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// A client that takes nothing for so long is left.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Clients too many that are told so at once; any more are left without a word.
const REFUSALS_MAX: usize = 16;

/// After a client that could not be taken, because there are no descriptors for example.
const REST: Duration = Duration::from_millis(100);

/// Serves for ever.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (router, kept) = answers::router(shared);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "http: a client could not be taken");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (router, kept) = (router.clone(), Arc::clone(&kept));
            tokio::spawn(async move {
                connection(stream, router, &kept).await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
            tokio::spawn(async move {
                refuse(stream).await;
                drop(place);
            });
        }
    }
}

/// A request has at most 100 header fields: hyper's own limit, for which it needs no memory.
fn limits() -> http1::Builder {
    let mut limits = http1::Builder::new();
    limits.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN).max_buf_size(HEAD_MAX);
    limits
}

fn timed(stream: TcpStream) -> TokioIo<std::pin::Pin<Box<TimeoutStream<TcpStream>>>> {
    // An answer is one piece as a rule, and what happens is to be told at once.
    let _ = stream.set_nodelay(true);
    let mut timed = TimeoutStream::new(stream);
    timed.set_write_timeout(Some(STALLED_AFTER));
    TokioIo::new(Box::pin(timed))
}

async fn connection(stream: TcpStream, router: Router, kept: &Kept) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let answer = if let Some(refusal) = guard::refusal(&request) {
            Either::Left(ready(Ok(refusal)))
        } else if let Some(whole) = kept.answer(&request) {
            return Either::Left(ready(Ok(whole)));
        } else {
            Either::Right(router.call(request))
        };
        Either::Right(async move {
            let mut response = answer.await?;
            guard::describe(response.headers_mut());
            Ok::<_, Infallible>(response)
        })
    });
    let served = limits().serve_connection(timed(stream), service).await;
    if let Err(error) = served {
        debug!(%error, "http: a client is left");
    }
}

/// Tells a client that there are too many. It gets one answer, and a tenth of the time.
async fn refuse(stream: TcpStream) {
    let service = service_fn(|_: Request<hyper::body::Incoming>| async {
        let text = format!("{CONNECTIONS_MAX} connections are open; expected fewer\n");
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let close = header::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        Ok::<_, Infallible>(response)
    });
    let answered = limits().serve_connection(timed(stream), service);
    let _ = tokio::time::timeout(REQUEST_WITHIN / 10, answered).await;
}
